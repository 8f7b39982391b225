"""The host driver around a device: whole runs, compared with loops that try every combination.

Rows and their order must be equal; work that the driver does in software (NULL, integers too wide
for the device) must not show. See also `test_driver_input` (order, late tuples, refused rows) and
`test_driver_windows` (windows without room, memory).
"""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from seustream.compiler.pipeline import PLANS
from seustream.engine.host.errors import EvaluationError
from tests.engine.host.reference import (
    Condition,
    Query,
    Source,
    Stream,
    compare,
    either,
    equal,
    join,
    random_query,
    random_streams,
    stream,
)
from tests.engine.host.running import (
    DEVICES,
    compiled,
    driver_of,
    fits,
    join_of,
    rows_of,
    run,
    same_as_in_loops,
    wanted,
)

# --- whole runs ---------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", range(50))
def test_random_queries(seed: int, device: str) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    plan, config = chance.choice(list(PLANS)), chance.choice(("default", "thesis", "tiny", "tiny"))
    while True:
        count = chance.choice((1, 2, 2, 2, 3, 3, 4))
        streams = random_streams(chance, {1: 40, 2: 40, 3: 14, 4: 6}[count])
        query = random_query(chance, streams, count)
        if fits(streams, query.text, config, plan):
            break
    same_as_in_loops(streams, query, config, device, plan, chance if seed % 2 else None)


def test_the_random_queries_leave_nothing_out() -> None:
    """The random queries include runs with rows in software, windows without room, and dropped
    misses."""
    seen: set[str] = set()
    for seed in range(40):
        chance = random.Random(seed)
        streams = random_streams(chance, 40)
        query = random_query(chance, streams, 2)
        driver = driver_of(compiled(streams, query.text, config="tiny"))
        run(driver, streams)
        report = driver.report
        seen |= {"rows in software"} if report.join.in_software else set()
        seen |= {"overflow"} if report.join.overflow else set()
        seen |= {"misses"} if report.join.residual else set()
        seen |= {"results"} if sum(report.results.values()) else set()
    assert seen == {"rows in software", "overflow", "misses", "results"}


@pytest.mark.parametrize("seed", range(8))
def test_results_do_not_depend_on_slices_or_device(seed: int) -> None:
    """Neither the order of results nor the numbers of the report depend on them."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    streams = random_streams(chance, 40, 3)
    queries = [random_query(chance, streams, count).text for count in (1, 2, 2)]
    compilation = compiled(streams, *queries, config="tiny")
    runs, reports = [], []
    for device in DEVICES:
        for slicing in (None, random.Random(seed), random.Random(-seed - 1)):
            driver = driver_of(compilation, device, slice_rows=chance.choice((1, 7, 8192)))
            runs.append(run(driver, streams, slicing))
            reports.append(
                (driver.report.taken, driver.report.results, driver.report.join.in_software)
            )
    assert all(found == runs[0] for found in runs)
    assert all(report == reports[0] for report in reports)
    assert any(table.num_rows for table in runs[0].values())


def test_many_queries_at_once_are_many_queries_alone() -> None:
    chance = random.Random(11)
    streams = random_streams(chance, 20, 2)
    queries = [random_query(chance, streams, 2) for _ in range(4)]
    driver = driver_of(compiled(streams, *(query.text for query in queries)))
    found = run(driver, streams, chance)
    for number, query in enumerate(queries):
        assert rows_of(found[f"q{number}"]) == wanted(streams, query, join(streams, query))


# --- rows a device cannot take ------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
def test_null_in_a_compared_column_goes_to_software(device: str) -> None:
    r = stream("R", [(1, None, 5), (2, 7, None), (3, None, None), (4, 7, 5)], "int", "int")
    s = stream("S", [(1, 7, 5), (5, None, 5), (6, 7, None), (7, 8, 8)], "int", "int")
    driver = same_as_in_loops([r, s], either(r, s), device=device)
    assert driver.report.results["q0"] == 7
    assert driver.report.join.in_software == {"R": 3, "S": 2}


def test_a_null_that_settles_the_condition_goes_nowhere() -> None:
    r, s = stream("R", [(1, None), (2, 7)]), stream("S", [(3, None), (4, 7)])
    driver = same_as_in_loops([r, s], equal(r, s))
    assert driver.report.join.in_software == {}
    assert driver.devices[0].status().ticks == 2


def test_null_elsewhere_is_no_reason() -> None:
    r, s = stream("R", [(1, 7, None)], "int", "int"), stream("S", [(2, 7)])
    driver = same_as_in_loops([r, s], equal(r, s))
    assert driver.report.join.in_software == {}
    assert driver.report.results == {"q0": 1}


@pytest.mark.parametrize(
    ("config", "top"), [("thesis", 127), ("tiny", 32767), ("default", 2**31 - 1)]
)
def test_integers_out_of_range_go_to_software(config: str, top: int) -> None:
    values = [0, top, -top - 1, top + 1, -top - 2, 2**31 - 1, -(2**31)]
    values = [v for v in values if -(2**31) <= v < 2**31]
    r = stream("R", [(ts, v) for ts, v in enumerate(values)])
    s = stream("S", [(ts, v) for ts, v in enumerate(reversed(values), len(values))])
    driver = same_as_in_loops([r, s], equal(r, s), config)
    beyond = sum(not -top - 1 <= v <= top for v in values)
    assert driver.report.results["q0"] >= len(values)
    assert driver.report.join.in_software == ({"R": beyond, "S": beyond} if beyond else {})


def test_dates_out_of_range_of_a_narrow_device() -> None:
    chance = random.Random(3)
    r, s = (
        Stream(name, {"a": "date"}, [{"ts": ts, "a": value} for ts, value in enumerate(values)])
        for name, values in (("R", _days(chance)), ("S", _days(chance)))
    )
    driver = same_as_in_loops([r, s], equal(r, s), "thesis")
    assert driver.report.join.in_software["R"] > 0
    assert driver.report.results["q0"] > 0


def _days(chance: random.Random) -> list[object]:
    first = np.datetime64("1969-06-01")
    return [(first + chance.choice((0, 200, 201, 500))).astype(object) for _ in range(10)]


# --- queries of one stream, of none, and none at all --------------------------


@pytest.mark.parametrize("window", ["NOW", "ROWS 1", "UNBOUNDED"])
def test_a_query_of_one_stream(window: str) -> None:
    """Each tuple gives a result once, whatever the window."""
    r = stream("R", [(1, 5, "x"), (1, None, "y"), (3, 7, None), (4, 9, "z")], "int", "varchar(8)")
    text = f"SELECT b, a + 1 AS more, ts FROM R WHERE a > 5 OR b = 'y' WINDOW {window};"
    driver = driver_of(compiled([r], text))
    found = run(driver, [r], random.Random(2))["q0"]
    assert found.column_names == ["b", "more", "ts", "ts_oldest", "ts_newest"]
    assert rows_of(found) == [("y", None, 1, 1, 1), (None, 8, 3, 3, 3), ("z", 10, 4, 4, 4)]
    assert driver.devices[0].status().taken == 4


def test_one_stream_beside_a_join() -> None:
    r, s = stream("R", [(1, 5), (2, 6)]), stream("S", [(3, 5)])
    driver = driver_of(compiled([r, s], equal(r, s).text, "SELECT a FROM R WINDOW NOW;"))
    found = run(driver, [r, s])
    assert rows_of(found["q0"]) == [(5, 5, 1, 3)]
    assert rows_of(found["q1"]) == [(5, 1, 1), (6, 2, 2)]


def test_what_another_condition_excludes_needs_no_value() -> None:
    """Holds for a query of one stream and for a join, on the device and in software."""
    rows = [(1, 1, "5"), (2, 2, "five"), (3, 1, "6")]
    r, s = stream("R", rows, "int", "varchar(8)"), stream("S", [(4, 1), (5, None)])
    one = "SELECT R.b FROM R WHERE CAST(R.b AS int) > 5 AND R.a = 1 WINDOW NOW;"
    two = "SELECT R.b FROM R, S WHERE CAST(R.b AS int) > 5 AND R.a = S.a WINDOW UNBOUNDED;"
    three = two.replace("R.a = S.a", "(R.a = S.a OR R.a = S.a + 0)")
    found = run(driver_of(compiled([r, s], one, two, three)), [r, s])
    assert [rows.column("b").to_pylist() for rows in found.values()] == [["6"]] * 3
    place = r"no int in CAST\(R\.b AS int\) at 3:"
    others = [
        (one.replace("R.a = 1", "R.a = 2"), "row 2 of R at ts 2", []),
        (two.replace("R.a =", "R.a <> "), "R at ts 2, S at ts 4", []),
    ]
    for text, row, rows_left in others:
        driver = driver_of(compiled([r, s], text))
        assert run(driver, [r, s])["q0"].column("b").to_pylist() == rows_left
        ((where, (count, first)),) = driver.report.faults["q0"].items()
        assert re.match(place, where)
        assert (count, first) == (1, row)
        strict = text.replace(";", " WITH (strict);")
        for failing in (
            driver_of(compiled([r, s], text), strict=True),
            driver_of(compiled([r, s], strict)),
        ):
            with pytest.raises(EvaluationError, match=f"^query q0: {place}.*, {row}$") as caught:
                run(failing, [r, s])
            assert caught.value.hint


def test_a_fault_in_a_result_column_is_null_and_counted() -> None:
    r, s = stream("R", [(1, 2**62)], "bigint"), stream("S", [(2, 2**62)], "bigint")
    for text in (
        "SELECT x.a * 4 AS b FROM R AS x WINDOW NOW;",
        "SELECT x.a * 4 AS b FROM R AS x, S AS y WHERE x.a = y.a WINDOW UNBOUNDED;",
    ):
        driver = driver_of(compiled([r, s], text))
        assert run(driver, [r, s])["q0"].column("b").to_pylist() == [None]
        ((where, (count, _)),) = driver.report.faults["q0"].items()
        assert (where.split(" at ")[0], count) == ("integer overflow in x.a * 4", 1)
        with pytest.raises(EvaluationError, match=r"^query q0: integer overflow in x\.a \* 4"):
            run(driver_of(compiled([r, s], text), strict=True), [r, s])


@pytest.mark.parametrize(
    "where", ["1 = 2", "R.a = S.a AND R.a <> S.a", "R.a < R.a", "R.a = NULL", "NULL"]
)
def test_a_condition_that_is_never_true(where: str) -> None:
    r, s = stream("R", [(1, 1), (2, 2)]), stream("S", [(1, 1), (3, 2)])
    never = f"SELECT * FROM R, S WHERE {where} WINDOW UNBOUNDED;"
    alone = f"SELECT * FROM R WHERE {where.replace('S.', 'R.')} WINDOW NOW;"
    driver = driver_of(compiled([r, s], never, alone, equal(r, s).text))
    found = run(driver, [r, s])
    assert [len(rows) for rows in found.values()] == [0, 0, 2]
    driver = driver_of(compiled([r, s], never))
    assert run(driver, [r, s])["q0"].num_rows == 0
    assert not driver.devices[0].status().loaded


def test_a_condition_that_is_always_true() -> None:
    r, s = stream("R", [(1, 1), (2, 2)]), stream("S", [(1, 1), (3, 2)])
    driver = same_as_in_loops(
        [r, s], Query((Source("x", r, "RANGE 1"), Source("y", s, "ROWS 1")), None)
    )
    assert driver.report.results["q0"] == 3


# --- time as a column ---------------------------------------------------------


@pytest.mark.parametrize("first", [0, -(2**40), 1_700_000_000_000])
def test_timestamps_compared(first: int) -> None:
    """Codes count from the first tuple of the run, on whichever stream it comes."""
    r = stream("R", [(first + ts, 0) for ts in (5, 6, 9, 9)])
    s = stream("S", [(first + ts, 0) for ts in (0, 6, 9, 2**36)])
    for operator in ("<", "=", ">="):
        where = Condition(
            f"x.ts {operator} y.ts",
            lambda rows, o=operator: compare(o, rows[0]["ts"], rows[1]["ts"]),  # type: ignore[misc]
        )
        query = Query((Source("x", r, "UNBOUNDED"), Source("y", s, "UNBOUNDED")), where)
        driver = same_as_in_loops([r, s], query)
        assert join_of(driver).first_tick == first
