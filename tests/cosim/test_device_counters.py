"""Tests the contract of `seustream.hdl.device`, rule 8, on every device: counters that wrap.

Clocks of 16 bits and sequence numbers of 8 can tell ages up to 32767 ticks and ranks up to 127.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence

import pytest

from seustream.compiler.wjasip.image import encode
from seustream.cosim.golden import GoldenDevice
from seustream.cosim.iss import IssDevice
from seustream.hdl.config import DeviceConfig
from seustream.hdl.device import UNUSED, LoadRefused, Retention, Window
from tests.cosim.contract import (
    EQUAL,
    NARROW,
    PAIRS,
    SHALLOW,
    NewDevice,
    assert_same,
    loaded,
    query_rows,
)
from tests.cosim.generate import gappy_arrivals, wide_queries
from tests.cosim.oracle import expected
from tests.cosim.queries import (
    RANGE,
    ROWS,
    UNBOUNDED,
    On,
    Query,
    R,
    Raw,
    S,
    T,
    Where,
    arrivals,
    build,
    handed_over,
    rows_of,
    run,
)

OLD, FAR = NARROW.longest_range, NARROW.longest_rows
NONE = (0, 0, 0, 0)

Handed = tuple[int, int, int, int]


def left_early(
    new_device: NewDevice,
    queries: Sequence[Query],
    raws: Sequence[Raw],
    groups: tuple[int, ...] = (0, 1, 2),
    config: DeviceConfig = NARROW,
) -> list[Handed]:
    """Returns the tuples handed over. Checks that each has a reason and is in time, and that the
    results are those that need none of these tuples, or need them only before they left."""
    device = loaded(new_device, build(queries, groups), config)
    results = run(device, raws)
    handed = sorted(handed_over(results))
    assert device.status().handed_over == len(handed)
    age_and_rank = ages_and_ranks(raws, groups)
    position = {(raw.stream, raw.sequence): at for at, raw in enumerate(raws)}
    left = {(s, sequence): position[taker, by] for s, sequence, taker, by in handed}
    assert len(left) == len(handed), "a tuple is handed over once"
    for part, at in left.items():
        raw = raws[position[part]]
        age, rank = age_and_rank(raw, at)
        keep = Retention.over(q.windows.get(raw.stream, UNUSED) for q in queries)
        assert keep.range is None or age <= keep.range or rank < keep.rows, "dead"
        assert age > OLD or rank > FAR or raws[at].stream == raw.stream, "without a reason"
        age, rank = age_and_rank(raw, at - 1)
        assert age <= OLD, "too late"
        assert rank <= FAR, "too late"
    want = []
    for row in expected(raws, queries, groups):
        parts = [(s, sequence) for s, sequence in enumerate(row[3]) if sequence >= 0]
        latest = max(position[part] for part in parts)
        told = (age_and_rank(raws[position[part]], latest) for part in parts)
        in_device = all(left.get(part, len(raws)) > latest for part in parts)
        assert not in_device or all(age <= OLD and rank <= FAR for age, rank in told)
        if in_device:
            want.append(row)
    assert_same(rows_of(results), want, queries)
    return handed


def ages_and_ranks(
    raws: Sequence[Raw], groups: tuple[int, ...]
) -> Callable[[Raw, int], tuple[int, int]]:
    """Returns a function for age and rank of a raw tuple at the arrival of the one at a
    position."""
    lasts: list[dict[int, int]] = [{}]
    for raw in raws:
        lasts.append({**lasts[-1], groups[raw.stream]: raw.sequence})

    def of(raw: Raw, at: int) -> tuple[int, int]:
        last = lasts[at + 1][groups[raw.stream]]
        return raws[at].timestamp - raw.timestamp, last - raw.sequence

    return of


# --- ages ----------------------------------------------------------------------


@pytest.mark.parametrize("window", [UNBOUNDED, ROWS(1), ROWS(3)], ids=str)
@pytest.mark.parametrize(
    ("gap", "handed"),
    [
        (OLD - 1, []),
        (OLD, []),
        (OLD + 1, [(R, 0, S, 0)]),
        (2 * OLD + 1, [(R, 0, S, 0)]),
        (2 * OLD + 2, [(R, 0, S, 0)]),  # as many ticks as the clock counts: an age of 0
        (2 * OLD + 7, [(R, 0, S, 0)]),
        (4 * OLD + 4, [(R, 0, S, 0)]),
        (1 << 40, [(R, 0, S, 0)]),
        ((1 << 40) + 3, [(R, 0, S, 0)]),
        (1 << 62, [(R, 0, S, 0)]),
    ],
)
def test_a_tuple_older_than_the_clock_tells_is_handed_over(
    new_device: NewDevice, window: Window, gap: int, handed: list[Handed]
) -> None:
    """It is handed over before the late arrival probes, which does not find it."""
    query = Query({R: window, S: window})
    raws = arrivals([(R, 5, ()), (S, 5 + gap, ()), (R, 5 + gap, ())])
    assert left_early(new_device, [query], raws) == handed


def test_one_tick_after_another_adds_up(new_device: NewDevice) -> None:
    """No step is large, yet the clock wraps around twice."""
    steps = range(0, 4 * OLD, OLD // 3)
    raws = arrivals([(R, 0, ()), *((S, t, ()) for t in steps)])
    taker = next(n for n, t in enumerate(steps) if t > OLD)
    handed = left_early(new_device, [PAIRS], raws)
    assert handed[0] == (R, 0, S, taker)
    assert {row[0] for row in handed[1:]} == {S}


def test_a_window_of_time_needs_no_more_than_the_clock_tells(new_device: NewDevice) -> None:
    """Older tuples are dead, and dead tuples are not handed over, however large the step."""
    query = Query({R: RANGE(OLD), S: RANGE(OLD)})
    for gap in (OLD, OLD + 1, 2 * OLD + 2, 1 << 40):
        raws = arrivals([(R, 0, ()), (R, 9, ()), (S, gap, ()), (S, gap + 9, ()), (R, gap + 9, ())])
        assert left_early(new_device, [query], raws) == []


def test_dead_by_rank_is_dropped_and_the_rest_handed_over(new_device: NewDevice) -> None:
    """The last two of R are kept, so the other two are dead when they become too old."""
    query = Query({R: ROWS(2), S: ROWS(1)})
    raws = arrivals([*((R, t, ()) for t in range(4)), (S, OLD + 10, ())])
    assert left_early(new_device, [query], raws) == [(R, 2, S, 0), (R, 3, S, 0)]


def test_a_tick_takes_a_tuple_over_the_clock(new_device: NewDevice) -> None:
    """A tick on another stream does so, then one on its own."""
    rows = [(R, 0, ()), (R, 7, ()), (S, OLD + 1, ()), (R, OLD + 8, ()), (S, OLD + 8, ())]
    raws = arrivals(rows, ticks=[2, 3])
    assert left_early(new_device, [PAIRS], raws) == [(R, 0, S, 0), (R, 1, R, 2)]


def test_a_tuple_dropped_at_the_door_is_an_arrival(new_device: NewDevice) -> None:
    query = Query({R: UNBOUNDED, S: UNBOUNDED}, where={S: Where(((0, "=", 1),))})
    raws = arrivals([(R, 0, ()), (S, OLD + 1, (2,)), (S, OLD + 1, (1,))])
    assert left_early(new_device, [query], raws) == [(R, 0, S, 0)]


def test_an_arrival_on_a_stream_no_query_joins_moves_the_clock(new_device: NewDevice) -> None:
    raws = arrivals([(R, 0, ()), (T, OLD + 1, ()), (S, OLD + 1, ())])
    assert left_early(new_device, [PAIRS], raws) == [(R, 0, T, 0)]


def test_one_arrival_takes_from_every_window(new_device: NewDevice) -> None:
    chain = Query(dict.fromkeys((R, S, T), UNBOUNDED))
    raws = arrivals([(R, 0, ()), (S, 1, ()), (T, 2, ()), (R, OLD + 2, ()), (S, OLD + 3, ())])
    assert left_early(new_device, [chain], raws) == [
        (R, 0, R, 1),
        (S, 0, R, 1),
        (T, 0, S, 1),
    ]


# --- ranks ---------------------------------------------------------------------


@pytest.mark.parametrize("window", [UNBOUNDED, RANGE(OLD)], ids=str)
@pytest.mark.parametrize("ticks", [False, True], ids=["stored", "ticks"])
@pytest.mark.parametrize("later", [FAR - 1, FAR, FAR + 1, 2 * FAR + 2, 5 * FAR])
def test_a_tuple_of_higher_rank_than_the_counter_tells_is_handed_over(
    new_device: NewDevice, window: Window, ticks: bool, later: int
) -> None:
    query = Query({R: window, S: window})
    n = later + 1
    rows = [*((R, t, ()) for t in range(n)), (S, n, ())]
    raws = arrivals(rows, ticks=range(1, n) if ticks else ())
    gone = min(max(later - FAR, 0), 1 if ticks else n)
    want = [(R, k, R, k + FAR + 1) for k in range(gone)]
    assert left_early(new_device, [query], raws) == want


def test_tuples_dropped_at_the_door_are_counted(new_device: NewDevice) -> None:
    query = Query({R: UNBOUNDED, S: UNBOUNDED}, where={R: Where(((0, "=", 1),))})
    rows = [(R, 0, (1,)), *((R, t, ()) for t in range(1, FAR + 3)), (S, FAR + 3, ())]
    assert left_early(new_device, [query], arrivals(rows)) == [(R, 0, R, FAR + 1)]


def test_a_window_of_rows_needs_no_more_than_the_counter_tells(new_device: NewDevice) -> None:
    query = Query({R: ROWS(FAR), S: ROWS(FAR)})
    rows = [(R if t % 40 else S, t, ()) for t in range(3 * FAR)]
    assert left_early(new_device, [query], arrivals(rows)) == []


def test_a_gap_in_both_counters_is_handed_over_once(new_device: NewDevice) -> None:
    rows = [(R, 0, ()), *((R, 9, ()) for _ in range(FAR)), (R, OLD + 1, ()), (S, OLD + 2, ())]
    assert left_early(new_device, [PAIRS], arrivals(rows)) == [(R, 0, R, FAR + 1)]


def test_a_full_buffer_and_a_counter_at_once(new_device: NewDevice) -> None:
    """All places are taken: two tuples leave for their age, which makes the room that the arrival
    needs."""
    n = SHALLOW.capacity
    rows = [*((R, 0 if k < 2 else 50, ()) for k in range(n)), (R, OLD + 1, ()), (R, OLD + 2, ())]
    rows += [(R, OLD + 3, ()), (S, OLD + 3, ())]
    assert left_early(new_device, [PAIRS], arrivals(rows), config=SHALLOW) == [
        (R, 0, R, n),
        (R, 1, R, n),
        (R, 2, R, n + 2),
    ]


# --- self-joins ----------------------------------------------------------------

COPIES = (0, 0, 2)


def test_the_first_copy_takes_from_both(new_device: NewDevice) -> None:
    """The copies share a counter, which the first one to arrive moves."""
    query = Query({R: UNBOUNDED, S: UNBOUNDED})
    raws = arrivals([(0, t, ()) for t in range(FAR + 2)], COPIES)
    assert left_early(new_device, [query], raws, COPIES) == [
        (R, 0, R, FAR + 1),
        (S, 0, R, FAR + 1),
    ]


def test_another_stream_takes_from_both_copies(new_device: NewDevice) -> None:
    query = Query({R: UNBOUNDED, S: ROWS(1), T: ROWS(1)})
    raws = arrivals([(0, 0, ()), (2, OLD + 1, ())], COPIES)
    assert left_early(new_device, [query], raws, COPIES) == [(R, 0, T, 0), (S, 0, T, 0)]


# --- timestamps, load, batches ---------------------------------------------------


def test_timestamps_of_results_are_whole(new_device: NewDevice) -> None:
    """Holds far beyond the range of the clock, below zero, too, and when the clock wraps around
    between the two parts."""
    for start in (-(1 << 62), -OLD // 2, 1_700_000_000_000, (1 << 62) + 65_535):
        raws = arrivals([(R, start, ()), (S, start + OLD, ())])
        results = run(loaded(new_device, build([PAIRS]), NARROW), raws)
        assert rows_of(results) == [(0, start + OLD, start, (0, 0, -1, -1))]


def test_windows_longer_than_the_counters_are_refused(new_device: NewDevice) -> None:
    for window in (RANGE(OLD + 1), ROWS(FAR + 1)):
        device = new_device(NARROW)
        with pytest.raises(LoadRefused, match="longer than"):
            device.load(encode(build([Query({R: window, S: UNBOUNDED})]), NARROW))


def test_a_larger_window_of_a_later_image_finds_what_the_counters_tell(
    new_device: NewDevice,
) -> None:
    device = loaded(new_device, build([Query({R: ROWS(2), S: ROWS(2)})]), NARROW)
    run(device, arrivals([(R, 0, ()), (R, 20, ())]))
    device.load(encode(build([PAIRS]), NARROW))
    results = run(device, [Raw(S, OLD + 3, 0, True, NONE)])
    assert handed_over(results) == [(R, 0, S, 0)]
    assert query_rows(results, 0) == [(1, 0, -1, -1)]


def test_64_bits_tell_every_age_there_is(new_device: NewDevice) -> None:
    """The exception is the age that a tuple from one end of time has at the other end."""
    config = dataclasses.replace(NARROW, timestamp_width=64, sequence_width=64)
    first, last = -(1 << 63), (1 << 63) - 1
    for gap, handed in ((last, []), (last + 1, [(R, 0, S, 0)]), (last - first, [(R, 0, S, 0)])):
        raws = arrivals([(R, first, ()), (S, first + gap, ()), (S, first + gap, ())])
        results = run(loaded(new_device, build([PAIRS]), config), raws)
        assert handed_over(results) == handed
        assert results.delivered == (0 if handed else 2)


# --- random ones ---------------------------------------------------------------

GROUPS = [(0, 1), (0, 1, 2), (0, 0), (0, 0, 2)]


@pytest.mark.parametrize("seed", range(40))
def test_random_gaps(new_device: NewDevice, seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    groups = chance.choice(GROUPS)
    queries = wide_queries(chance, groups, NARROW)
    raws = gappy_arrivals(chance, groups, 40, NARROW)
    config = chance.choice((SHALLOW, NARROW))
    left_early(new_device, queries, raws, groups, config)


@pytest.mark.parametrize("seed", range(10))
def test_random_ranks(new_device: NewDevice, seed: int) -> None:
    """One stream brings many more tuples than its counter can tell apart, most of them ticks."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    queries = [PAIRS, Query({R: UNBOUNDED, S: ROWS(3)}, ((On(R, 0, "<", S, 0),),))]
    rows = [(chance.choice((R, R, R, S)), t // 4, (chance.randrange(3),)) for t in range(500)]
    raws = arrivals(rows, ticks=[i for i in range(500) if chance.random() < 0.9])
    assert left_early(new_device, queries, raws)


@pytest.mark.parametrize("seed", range(20))
def test_devices_agree_whatever_the_batches(seed: int) -> None:
    """Results, hand-overs and counters agree; block borders of the golden model fall anywhere."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    groups = chance.choice(GROUPS)
    tables = build(
        [*wide_queries(chance, groups, NARROW), Query({0: UNBOUNDED, 1: UNBOUNDED}, (EQUAL,))],
        groups,
    )
    raws = gappy_arrivals(chance, groups, 400, NARROW)
    config = dataclasses.replace(NARROW, depth=64)
    runs = []
    for kind, at_once in (
        (GoldenDevice, None),
        (GoldenDevice, 7),
        (IssDevice, None),
        (IssDevice, 1),
    ):
        device = loaded(kind, tables, config)
        results = run(device, raws, at_once)
        runs.append((sorted(rows_of(results)), sorted(handed_over(results)), device.status()))
    assert all(each == runs[0] for each in runs)
    assert runs[0][1]
