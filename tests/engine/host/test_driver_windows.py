"""Windows that need more room than their buffer, and windows that release what they no longer
need."""

from __future__ import annotations

import contextlib
import dataclasses
import random
import re

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.pipeline import Options, compile_text
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun
from seustream.engine.host.driver import Overflow
from seustream.engine.host.errors import WindowOverflow
from seustream.hdl.config import CONFIGURATIONS
from tests.engine.host.reference import (
    Query,
    Stream,
    either,
    equal,
    join,
    random_query,
    random_streams,
    stream,
)
from tests.engine.host.running import (
    DEVICES,
    collected,
    compiled,
    driver_of,
    join_of,
    rows_of,
    run,
    same_as_in_loops,
    wanted,
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
    # The last 12 of 60 tuples still have room; RANGE 40 sees 41 of R, 21 of S.
    needed = {
        "RANGE 40": {"R": 41, "S": 21},
        "ROWS 25": {"R": 25, "S": 25},
        "UNBOUNDED": {"R": 60, "S": 60},
    }
    for driver in (whole, sliced):
        report = driver.report.join.overflow
        assert {name: found.needed for name, found in report.items()} == needed[window]
        assert {name: found.left_early for name, found in report.items()} == {"R": 48, "S": 48}
        assert {found.window for found in report.values()} == {window}


def test_no_overflow_to_the_last_place() -> None:
    """Twelve tuples fit a ring of sixteen, which keeps a quarter in reserve."""
    r, s = stream("R", [(ts, 1) for ts in range(40)]), stream("S", [(ts, 1) for ts in range(40)])
    assert same_as_in_loops([r, s], equal(r, s, "ROWS 12"), "tiny").report.join.overflow == {}
    assert same_as_in_loops([r, s], equal(r, s, "RANGE 11"), "tiny").report.join.overflow == {}
    assert "R" in same_as_in_loops([r, s], equal(r, s, "ROWS 13"), "tiny").report.join.overflow


def test_overflow_of_both_copies_of_a_stream() -> None:
    r = stream("R", [(ts, ts % 3) for ts in range(40)])
    driver = same_as_in_loops([r], equal(r, r, "RANGE 20"), "tiny")
    assert {name: found.needed for name, found in driver.report.join.overflow.items()} == {
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
    assert driver.report.join.overflow
    assert driver.report.join.in_software


@pytest.mark.parametrize(
    ("window", "need", "depth"),
    [("RANGE 1000", 50, 128), ("ROWS 30", 30, 64), ("ROWS 13", 13, 32), ("UNBOUNDED", 50, 0)],
)
def test_overflow_as_an_error(window: str, need: int, depth: int) -> None:
    r, s = stream("R", [(ts, ts) for ts in range(50)]), stream("S", [(0, 5)])
    driver = driver_of(compiled([r, s], equal(r, s, window).text, config="tiny"), overflow="error")
    with pytest.raises(WindowOverflow) as caught:
        run(driver, [r, s])
    assert str(caught.value) == (
        f"the window of stream R ({window}) needs {need} tuples, its buffer holds 12"
    )
    assert caught.value.hint is not None
    way = f"a configuration of at least depth {depth}" if depth else "a window that tuples leave"
    assert caught.value.hint == (
        f"{way}; or let the host join what does not fit (--overflow software)"
    )


def test_the_error_knows_how_many_rows_a_window_of_rows_will_need() -> None:
    """The error states 100, although the buffer overflows at the thirteenth tuple."""
    r, s = stream("R", [(ts, ts) for ts in range(18)]), stream("S", [])
    driver = driver_of(
        compiled([r, s], equal(r, s, "ROWS 100").text, config="tiny"), overflow="error"
    )
    with pytest.raises(WindowOverflow, match=r"needs 100 tuples, its buffer holds 12"):
        run(driver, [r, s])


def test_overflow_is_one_of_two_things() -> None:
    compilation = compiled([stream("R", [])], "SELECT * FROM R WINDOW NOW;")
    with pytest.raises(ValueError, match="overflow = 'maybe': want 'software' or 'error'"):
        driver_of(compilation, overflow="maybe")
    with pytest.raises(ValueError, match="slack = -5"):
        driver_of(compilation, slack=-5)


# --- memory -------------------------------------------------------------------


def test_memory_stays_flat_on_a_long_run() -> None:
    """Pushes 200,000 tuples; a window sees 400 of them."""
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
        longest = max(longest, *(len(store) for store in join_of(driver).stores.by_name.values()))
        largest = max(
            largest, *(store.table.nbytes for store in join_of(driver).stores.by_name.values())
        )
        assert sum(join_of(driver).merger.waiting.values()) <= 1
        if start == count // 2:
            middle = pa.total_allocated_bytes()
    assert longest < 12_000
    assert largest < 600_000
    assert pa.total_allocated_bytes() < 2 * middle
    assert results > 10_000
    assert sum(driver.report.taken.values()) == 2 * count
    assert driver.report.taken["R"] == count


def test_what_a_window_of_rows_sees_is_kept() -> None:
    """The rows stay long after their time: S is silent while R goes on and is trimmed."""
    r = stream("R", [])
    s = stream("S", [(0, ts) for ts in range(3)])
    driver = driver_of(
        compiled([r, s], "SELECT y.a FROM R AS x, S AS y WHERE x.a = y.a WINDOW RANGE 5, ROWS 2;")
    )
    driver.push("S", s.table)
    ts = np.arange(1, 30_001)
    driver.push("R", pa.table({"ts": ts, "a": np.zeros(30_000, np.int32)}))
    assert list(driver.finish()) == []
    assert len(join_of(driver).stores["R"]) < 20_000
    driver = driver_of(driver.compilation)
    driver.push("S", s.table)
    values = np.zeros(30_000, np.int32)
    values[-3:] = 0, 1, 2
    driver.push("R", pa.table({"ts": ts, "a": values}))
    assert collected(driver, driver.finish())["q0"].column("a").to_pylist() == [1, 2]


def test_rows_and_results_agree_after_many_trims() -> None:
    """Sequence numbers continue; results of late pairs name rows far from the store's first."""
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
    assert found.column("x_ts").to_pylist() == list(range(count))
    assert found.column("y_ts").to_pylist() == list(range(2, count + 2))
    assert found.column("a").to_pylist() == list(range(count))
    assert join_of(driver).stores["R"].first > 30_000


def test_the_hint_of_an_overflow_can_be_followed() -> None:
    """The depth it names holds everything."""
    r, s = stream("R", [(ts, ts) for ts in range(50)]), stream("S", [(0, 5)])
    query = equal(r, s, "RANGE 1000").text
    with pytest.raises(WindowOverflow) as caught:
        run(driver_of(compiled([r, s], query, config="tiny"), overflow="error"), [r, s])
    depth = int(re.findall(r"depth (\d+)", caught.value.hint or "")[0])
    driver = driver_of(compiled([r, s], query, config="default"), overflow="error")
    assert depth <= driver.devices[0].config.depth
    run(driver, [r, s])


# --- counters that wrap ---------------------------------------------------------

NARROW = dataclasses.replace(
    CONFIGURATIONS["tiny"], name="narrow", timestamp_width=16, sequence_width=8, depth=256
)


def narrow_driver(streams: list[Stream], query: Query, device: str, **options: object) -> GraphRun:
    """Makes a driver with a device whose counters represent ages up to 32767 ticks and ranks up to
    127."""
    text = "\n".join(s.create for s in streams) + f"\nREGISTER QUERY q0 AS {query.text}"
    c = compile_text(text, options=Options(config=NARROW))
    return GraphRun(c, DEVICES[device](NARROW), **options)  # type: ignore[arg-type]


def same_when_narrow(
    streams: list[Stream], query: Query, device: str, chance: random.Random | None = None
) -> GraphRun:
    driver = narrow_driver(streams, query, device, slice_rows=64)
    found = run(driver, streams, chance)["q0"]
    want = wanted(streams, query, join(streams, query))
    assert rows_of(found) == want
    assert want, "a test without results shows nothing"
    return driver


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("window", ["UNBOUNDED", "ROWS 3"])
def test_nothing_is_lost_when_the_clock_wraps(device: str, window: str) -> None:
    """R has two bursts far apart; S finds the first again long after it."""
    r = stream("R", [*((ts, ts % 3) for ts in range(6)), (200_000, 1), (200_001, 2)])
    s = stream("S", [(3, 1), (70_000, 0), (70_001, 1), (140_000, 2), (200_005, 2)])
    driver = same_when_narrow([r, s], equal(r, s, window), device)
    report = driver.report.join.overflow
    alive = 6 if window == "UNBOUNDED" else 3
    assert report["R"].left_early == alive
    assert (report["R"].needed, report["R"].rank) == (0, 0)
    # The age of the oldest tuple of R that is alive when the first of S comes late.
    assert report["R"].age == 70_000 - (6 - alive)
    assert report["R"].needs(NARROW) == [
        f"a tuple {report['R'].age:,} ticks old, 16-bit timestamps tell 32,767"
    ]


@pytest.mark.parametrize("device", DEVICES)
def test_nothing_is_lost_when_the_counter_wraps(device: str) -> None:
    r = stream("R", [(ts // 8, ts % 50) for ts in range(400)])
    s = stream("S", [(60, 7), (61, 8)])
    driver = same_when_narrow([r, s], equal(r, s, "RANGE 1000"), device)
    report = driver.report.join.overflow["R"]
    assert (report.left_early, report.needed, report.age, report.rank) == (400 - 128, 0, 0, 128)


@pytest.mark.parametrize("device", DEVICES)
def test_rows_the_device_does_not_take_count_too(device: str) -> None:
    """NULLs count as ticks, so the rows before them leave the device."""
    r = stream("R", [(0, 1), (1, 2), *((50 + ts, None) for ts in range(200)), (90_000, 2)])
    s = stream("S", [(40_000, None), (40_001, 2), (40_002, 1), (95_000, 2)])
    driver = same_when_narrow([r, s], equal(r, s, "UNBOUNDED"), device)
    assert driver.report.join.in_software == {}
    assert driver.report.join.overflow["R"].rank == 128
    assert driver.report.join.overflow["S"].age == 49_999


@pytest.mark.parametrize("device", DEVICES)
def test_both_copies_of_a_stream_wrap(device: str) -> None:
    r = stream("R", [(ts * 300, ts % 40) for ts in range(300)])
    driver = same_when_narrow([r], equal(r, r, "UNBOUNDED"), device)
    report = driver.report.join.overflow
    assert {name: found.left_early for name, found in report.items()} == {"R": 190, "R#2": 190}
    assert {name: found.age for name, found in report.items()} == {"R": 33_000, "R#2": 33_000}


@pytest.mark.parametrize("seed", range(24))
def test_random_streams_on_narrow_counters(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    early = 0
    for device in DEVICES:
        streams = random_streams(chance, 30, count=2)
        for s in streams:
            ts = 0
            for row in s.rows:
                ts += chance.choice((0, 1, 20, 30_000, 70_000))
                row["ts"] = ts
        query = random_query(chance, streams, 2)
        driver = narrow_driver(streams, query, device, slice_rows=chance.choice((7, 64)))
        found = run(driver, streams, chance)["q0"]
        assert rows_of(found) == wanted(streams, query, join(streams, query))
        early += sum(o.left_early for o in driver.report.join.overflow.values())
    print(f"{early} left early")


def test_the_error_says_which_counter() -> None:
    r, s = stream("R", [(0, 1), (40_000, 1)]), stream("S", [(7, 1), (41_000, 1)])
    driver = narrow_driver([r, s], equal(r, s), "golden", overflow="error")
    with pytest.raises(WindowOverflow) as caught:
        run(driver, [r, s])
    assert str(caught.value) == (
        "the window of stream R (UNBOUNDED) needs a tuple 40,000 ticks old, 16-bit timestamps"
        " tell 32,767"
    )
    assert caught.value.hint == (
        "a window that tuples leave; or let the host join what does not fit (--overflow software)"
    )


def test_the_error_says_all_that_is_short() -> None:
    """The window exceeds its buffer, and the counters can represent neither the rank nor the
    age."""
    needs = Overflow("UNBOUNDED", 9, needed=300, age=1 << 40, rank=128)
    assert needs.needs(NARROW) == [
        "300 tuples, its buffer holds 192",
        "a tuple 1,099,511,627,776 ticks old, 16-bit timestamps tell 32,767",
        "a tuple 128 before the last, 8-bit sequence numbers tell 127",
    ]
    assert needs.cures(NARROW) == [
        "depth 512",
        "timestamp_width 42",
        "sequence_width 9",
    ]
    assert Overflow("UNBOUNDED", age=1 << 63).cures(NARROW) == []


def test_the_hint_about_a_counter_can_be_followed() -> None:
    r, s = stream("R", [(0, 1), (40_000, 1)]), stream("S", [(7, 1), (41_000, 1)])
    text = f"{r.create} {s.create} {equal(r, s).text}"
    for width, fits in ((16, False), (17, True)):
        config = dataclasses.replace(NARROW, timestamp_width=width)
        c = compile_text(text, options=Options(config=config))
        driver = GraphRun(c, GoldenDevice(config), overflow="error")
        with contextlib.nullcontext() if fits else pytest.raises(WindowOverflow):
            run(driver, [r, s])
