"""Windows that need more than their buffer, and windows that let go of what they no longer need."""

from __future__ import annotations

import random
import re

import numpy as np
import pyarrow as pa
import pytest

from engine.host.errors import WindowOverflow
from tests.engine.host.reference import (
    either,
    equal,
    stream,
)
from tests.engine.host.running import (
    DEVICES,
    collected,
    compiled,
    driver_of,
    run,
    same_as_in_loops,
)

# --- windows without room -----------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("window", ["RANGE 40", "ROWS 25", "UNBOUNDED"])
def test_overflow_in_software_is_exact(device: str, window: str) -> None:
    chance = random.Random(window)
    r = stream("R", [(ts, chance.randint(0, 3)) for ts in range(60)])
    s = stream("S", [(ts, chance.randint(0, 3)) for ts in range(0, 120, 2)])
    query = equal(r, s, window)
    whole = same_as_in_loops([r, s], query, "tiny", device)
    sliced = same_as_in_loops([r, s], query, "tiny", device, chance=chance)
    # The last of 60 tuples need no room for 16 others; RANGE 40 sees 41 of R, 21 of S.
    needed = {
        "RANGE 40": {"R": 41, "S": 21},
        "ROWS 25": {"R": 25, "S": 25},
        "UNBOUNDED": {"R": 60, "S": 60},
    }
    for driver in (whole, sliced):
        report = driver.report.overflow
        assert {name: found.needed for name, found in report.items()} == needed[window]
        assert {name: found.left_early for name, found in report.items()} == {"R": 44, "S": 44}
        assert {found.window for found in report.values()} == {window}


def test_no_overflow_to_the_last_place() -> None:
    """Sixteen tuples fit a buffer of sixteen."""
    r, s = stream("R", [(ts, 1) for ts in range(40)]), stream("S", [(ts, 1) for ts in range(40)])
    assert same_as_in_loops([r, s], equal(r, s, "ROWS 16"), "tiny").report.overflow == {}
    assert same_as_in_loops([r, s], equal(r, s, "RANGE 15"), "tiny").report.overflow == {}
    assert "R" in same_as_in_loops([r, s], equal(r, s, "ROWS 17"), "tiny").report.overflow


def test_overflow_of_both_copies_of_a_stream() -> None:
    r = stream("R", [(ts, ts % 3) for ts in range(40)])
    driver = same_as_in_loops([r], equal(r, r, "RANGE 20"), "tiny")
    assert {name: found.needed for name, found in driver.report.overflow.items()} == {
        "R": 21,
        "R#2": 21,
    }


def test_rows_in_software_and_windows_without_room_together() -> None:
    chance = random.Random(9)
    rows = [
        (ts, chance.choice((None, 1, 2, 2, 1, 2, 1, 70_000)), chance.choice((3, 1, 2)))
        for ts in range(50)
    ]
    r, s = stream("R", rows, "int", "int"), stream("S", rows, "int", "int")
    driver = same_as_in_loops([r, s], either(r, s), "tiny", chance=chance)
    assert driver.report.overflow
    assert driver.report.in_software


@pytest.mark.parametrize(
    ("window", "need", "depth", "devices"),
    [
        ("RANGE 1000", 50, 64, 4),
        ("ROWS 30", 30, 32, 2),
        ("ROWS 17", 17, 32, 2),
        ("UNBOUNDED", 50, 64, 4),
    ],
)
def test_overflow_as_an_error(window: str, need: int, depth: int, devices: int) -> None:
    r, s = stream("R", [(ts, ts) for ts in range(50)]), stream("S", [(0, 5)])
    driver = driver_of(compiled([r, s], equal(r, s, window).text, config="tiny"), overflow="error")
    with pytest.raises(WindowOverflow) as caught:
        run(driver, [r, s])
    assert str(caught.value) == (
        f"the window of stream R ({window}) needs {need} tuples, its buffer holds 16"
    )
    assert caught.value.hint is not None
    assert f"a configuration of depth {depth} or {devices} devices would do" in caught.value.hint
    assert "overflow in software" in caught.value.hint


def test_the_error_knows_how_many_rows_a_window_of_rows_will_need() -> None:
    """Though the first overflow comes with the seventeenth tuple."""
    r, s = stream("R", [(ts, ts) for ts in range(18)]), stream("S", [])
    driver = driver_of(
        compiled([r, s], equal(r, s, "ROWS 100").text, config="tiny"), overflow="error"
    )
    with pytest.raises(WindowOverflow, match=r"needs 100 tuples, its buffer holds 16"):
        run(driver, [r, s])


def test_overflow_is_one_of_two_things() -> None:
    compilation = compiled([stream("R", [])], "SELECT * FROM R WINDOW NOW;")
    with pytest.raises(ValueError, match="overflow = 'maybe': want 'software' or 'error'"):
        driver_of(compilation, overflow="maybe")
    with pytest.raises(ValueError, match="slack = -5"):
        driver_of(compilation, slack=-5)


# --- memory -------------------------------------------------------------------


def test_memory_stays_flat_on_a_long_run() -> None:
    """200,000 tuples, of which a window sees 400."""
    text = "SELECT x.b FROM R AS x, S AS y WHERE x.a = y.a WINDOW RANGE 200;"
    r, s = stream("R", [], "int", "varchar(20)"), stream("S", [])
    driver = driver_of(compiled([r, s], text))
    chance = np.random.default_rng(1)
    count, at_once, longest, largest, results = 100_000, 2_500, 0, 0, 0
    middle = 0
    for start in range(0, count, at_once):
        ts = np.arange(start, start + at_once)
        a = chance.integers(0, 1000, at_once).astype(np.int32)
        driver.push("R", pa.table({"ts": ts, "a": a, "b": [f"number {t}" for t in ts]}))
        driver.push("S", pa.table({"ts": ts, "a": chance.permutation(a)}))
        results += sum(rows.num_rows for _, rows in driver.advance())
        longest = max(longest, *(len(store) for store in driver.stores.values()))
        largest = max(largest, *(store.table.nbytes for store in driver.stores.values()))
        waiting = sum(part.num_rows for queue in driver.merger.queues for part in queue.waiting)
        assert waiting <= 2
        if start == count // 2:
            middle = pa.total_allocated_bytes()
    assert longest < 12_000
    assert largest < 600_000
    assert pa.total_allocated_bytes() < 2 * middle
    assert results > 10_000
    assert sum(driver.report.taken.values()) == 2 * (count - 1)
    assert driver.report.taken["R"] == count - 1


def test_what_a_window_of_rows_sees_is_kept() -> None:
    """Long after its time: S is silent while R runs on and is trimmed."""
    r = stream("R", [])
    s = stream("S", [(0, ts) for ts in range(3)])
    driver = driver_of(
        compiled([r, s], "SELECT y.a FROM R AS x, S AS y WHERE x.a = y.a WINDOW RANGE 5, ROWS 2;")
    )
    driver.push("S", s.table)
    ts = np.arange(1, 30_001)
    driver.push("R", pa.table({"ts": ts, "a": np.zeros(30_000, np.int32)}))
    assert list(driver.finish()) == []
    assert len(driver.stores["R"]) < 20_000
    driver = driver_of(driver.compilation)
    driver.push("S", s.table)
    values = np.zeros(30_000, np.int32)
    values[-3:] = 0, 1, 2
    driver.push("R", pa.table({"ts": ts, "a": values}))
    assert collected(driver, driver.finish())["q0"].column("y.a").to_pylist() == [1, 2]


def test_rows_and_results_agree_after_many_trims() -> None:
    """Sequence numbers go on; results of late pairs name rows far from the store's first."""
    r, s = stream("R", []), stream("S", [])
    driver = driver_of(
        compiled(
            [r, s], "SELECT x.ts, y.ts, x.a FROM R AS x, S AS y WHERE x.a = y.a WINDOW RANGE 3;"
        )
    )
    count = 60_000
    ts = np.arange(count)
    driver.push("R", pa.table({"ts": ts, "a": ts.astype(np.int32)}))
    driver.push("S", pa.table({"ts": ts + 2, "a": ts.astype(np.int32)}))
    found = collected(driver, driver.finish())["q0"]
    assert found.column("x.ts").to_pylist() == list(range(count))
    assert found.column("y.ts").to_pylist() == list(range(2, count + 2))
    assert found.column("x.a").to_pylist() == list(range(count))
    assert driver.stores["R"].first > 30_000


def test_the_hint_of_an_overflow_can_be_followed() -> None:
    """The depth it names has room for everything."""
    r, s = stream("R", [(ts, ts) for ts in range(50)]), stream("S", [(0, 5)])
    query = equal(r, s, "RANGE 1000").text
    with pytest.raises(WindowOverflow) as caught:
        run(driver_of(compiled([r, s], query, config="tiny"), overflow="error"), [r, s])
    depth = int(re.findall(r"depth (\d+)", caught.value.hint or "")[0])
    driver = driver_of(compiled([r, s], query, config="default"), overflow="error")
    assert depth <= driver.device.config.depth
    run(driver, [r, s])
