"""The input of the driver: order, progress, and messages about rows that do not fit their
stream."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from seustream.engine.graph import GraphRun
from seustream.engine.host.errors import RowsRefused
from tests.engine.host.reference import (
    equal,
    stream,
)
from tests.engine.host.running import (
    DEVICES,
    collected,
    compiled,
    driver_of,
    rows_of,
    run,
)

# --- order and late tuples ----------------------------------------------------


def test_late_tuples_are_counted_and_handed_over() -> None:
    r = stream("R", [(1, 1), (5, 2), (3, 2), (4, 2), (9, 2)])
    s = stream("S", [(2, 2), (10, 2)])
    seen: list[tuple[str, pa.Table]] = []
    query = equal(r, s, "RANGE 20").text
    driver = driver_of(compiled([r, s], query), on_late=lambda *late: seen.append(late))
    found = run(driver, [r, s])["q0"]
    assert driver.report.late == {"R": 2}
    assert [(name, rows_of(rows)) for name, rows in seen] == [("R", [(3, 2), (4, 2)])]
    assert driver.report.taken == {"R": 3, "S": 2}
    assert [row[2:] for row in rows_of(found)] == [(2, 5), (2, 9), (5, 10), (9, 10)]


def test_slack_puts_them_in_order() -> None:
    r = stream("R", [(1, 1), (5, 2), (3, 2), (4, 2), (9, 2)])
    s = stream("S", [(2, 2), (10, 2)])
    driver = driver_of(compiled([r, s], equal(r, s, "RANGE 20").text), slack=2)
    found = run(driver, [r, s])["q0"]
    assert driver.report.late == {}
    assert len(found) == 8
    newest = found.column("ts_newest").to_pylist()
    assert newest == sorted(newest)


def test_results_come_as_soon_as_nothing_earlier_can() -> None:
    r, s = stream("R", [(1, 7)]), stream("S", [(2, 7)])
    driver = driver_of(compiled([r, s], equal(r, s).text))
    driver.push("R", r.table)
    driver.push("S", s.table)
    assert list(driver.advance()) == []
    driver.push("S", stream("S", [(3, 0)]).table)
    assert list(driver.advance()) == []
    driver.push("R", stream("R", [(3, 0)]).table)
    ((name, rows),) = driver.advance()
    assert (name, rows_of(rows)) == ("q0", [(7, 7, 1, 2)])
    assert list(driver.advance()) == []
    assert list(driver.finish()) == [] or driver.report.results["q0"] == 2


def test_a_stream_that_never_gets_a_tuple() -> None:
    r, s, t = stream("R", [(1, 7), (9, 7)]), stream("S", [(2, 7), (9, 0)]), stream("T", [])
    queries = (equal(r, s).text, "SELECT * FROM R, T WINDOW UNBOUNDED;")
    driver = driver_of(compiled([r, s, t], *queries))
    driver.push("R", r.table)
    driver.push("S", s.table)
    assert list(driver.advance()) == []  # T may still deliver an earlier tuple
    found = collected(driver, driver.finish())
    assert rows_of(found["q0"]) == [(7, 7, 1, 2), (7, 7, 2, 9)]
    assert found["q1"].num_rows == 0


def test_a_stream_no_query_reads_holds_nothing_back() -> None:
    r, t = stream("R", [(1, 7), (2, 8)]), stream("T", [(5, 0), (1, 0), (6, 0)])
    driver = driver_of(compiled([t, r], "SELECT * FROM R WINDOW NOW;"))
    driver.push("R", r.table)
    ((_, rows),) = driver.advance()
    assert rows_of(rows) == [(7, 1, 1), (8, 2, 2)]
    driver.push("T", t.table)
    assert collected(driver, driver.finish())["q0"].num_rows == 0
    assert driver.report.taken == {"R": 2, "T": 2}
    assert driver.report.late == {"T": 1}


def test_no_tuples_at_all() -> None:
    r, s = stream("R", []), stream("S", [])
    for text in (equal(r, s).text, "SELECT * FROM R WINDOW NOW;"):
        driver = driver_of(compiled([r, s], text))
        assert list(driver.advance()) == []
        driver.push("R", r.table)
        assert list(driver.finish()) == []
        assert list(driver.finish()) == []
        assert driver.report.results == {"q0": 0}


def test_no_queries_at_all() -> None:
    r = stream("R", [(1, 1)])
    driver = driver_of(compiled([r]))
    assert run(driver, [r]) == {}
    assert driver.report.taken == {"R": 1}


def test_progress_counts_every_tuple_once() -> None:
    r, s = stream("R", [(ts, 1) for ts in range(30)]), stream("S", [(ts, 1) for ts in range(9)])
    steps: list[int] = []
    driver = driver_of(compiled([r, s], equal(r, s, "NOW").text), on_progress=steps.append)
    run(driver, [r, s], random.Random(1))
    assert len(steps) > 1
    assert sum(steps) == 39


def test_no_slice_is_longer_than_asked() -> None:
    r = stream("R", [(ts, 1) for ts in range(30)])
    driver = driver_of(compiled([r], "SELECT * FROM R WINDOW NOW;"), slice_rows=7)
    driver.push("R", r.table)
    assert [rows.num_rows for _, rows in driver.finish()] == [7, 7, 7, 7, 2]


# --- rows that are not of their stream ----------------------------------------


def test_an_unknown_stream() -> None:
    r, s = stream("R", []), stream("S", [])
    driver = driver_of(compiled([r, s], equal(r, s).text))
    with pytest.raises(RowsRefused, match=r"^there is no stream Q$") as caught:
        driver.push("Q", r.table)
    assert caught.value.hint == "streams: R, S"


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_not_a_number_is_null(device: str) -> None:
    nan = float("nan")
    r, s = stream("R", [(1, nan), (2, 1.0)], "real"), stream("S", [(3, nan), (4, 1.0)], "real")
    driver = driver_of(
        compiled([r, s], equal(r, s).text, "SELECT a FROM R WHERE a IS NULL WINDOW NOW;"), device
    )
    found = run(driver, [r, s])
    assert rows_of(found["q0"]) == [(1.0, 1.0, 2, 4)]
    assert rows_of(found["q1"]) == [(None, 1, 1)]


def test_after_the_end_nothing_is_taken() -> None:
    r = stream("R", [(1, 1)])
    driver = driver_of(compiled([r], "SELECT * FROM R WINDOW NOW;"))
    run(driver, [r])
    with pytest.raises(RowsRefused, match=r"^stream R has ended$"):
        driver.push("R", r.table)


@pytest.mark.parametrize("device", DEVICES)
def test_a_device_used_before_starts_anew(device: str) -> None:
    r, s = stream("R", [(5, 7), (9, 7)]), stream("S", [(6, 7)])
    compilation = compiled([r, s], equal(r, s).text)
    made = DEVICES[device](compilation.options.config)
    runs = [run(GraphRun(compilation, made), [r, s]) for _ in range(2)]
    assert runs[0] == runs[1]
    assert runs[0]["q0"].num_rows == 2
    assert made.status().taken == 3
