"""The list of disjoint elements: the trace of Fig. 17, every case of section 8.2, and brute force.

Brute force computes the aggregate of all tuples that hold an instant; it reveals wrong values,
missing and extra intervals. The cases were worked out by hand from the definition of the index.
"""

from __future__ import annotations

import math
import random

import pytest

from seustream.engine.temporal.aggregates.index import ListIndex, Result, merged
from tests.engine.temporal.aggregates.five import five, of
from tests.engine.temporal.reference.network import GapIndex

SUM = of("sum")


def sums() -> ListIndex:
    return ListIndex([SUM])


def shown(index: ListIndex) -> list[tuple[int, int, int]]:
    return [(p.start, p.end, index.partials.final(p.state)[0]) for p in index.pieces]


def add(index: ListIndex, s: int, e: int, v: float, sign: int = 1) -> None:
    index.change(tuple((v,) for _ in index.partials.functions), s, e, sign)


def flat(results: list[Result]) -> list[tuple[int, int, int]]:
    return [(start, end, values[0]) for start, end, values in results]


@pytest.mark.acceptance(45)
def test_figure_17() -> None:
    index = sums()
    trace = []
    for s, e, v in [(1, 4, -1), (1, 6, -4), (1, 8, 7), (3, 7, 2)]:
        emitted = flat(index.reorganise(s))
        add(index, s, e, v)
        trace.append((emitted, shown(index)))
    assert trace == [
        ([], [(1, 4, -1)]),
        ([], [(1, 4, -5), (4, 6, -4)]),
        ([], [(1, 4, 2), (4, 6, 3), (6, 8, 7)]),
        ([(1, 3, 2)], [(3, 4, 4), (4, 6, 5), (6, 7, 9), (7, 8, 7)]),
    ]


def filled(*pieces: tuple[int, int, int]) -> ListIndex:
    index = sums()
    for s, e, v in pieces:
        add(index, s, e, v)
    return index


@pytest.mark.acceptance(47)
def test_reorganise_leaves_what_has_not_ended() -> None:
    index = filled((1, 4, 1), (4, 6, 2), (6, 8, 3))
    assert flat(index.reorganise(4)) == [(1, 4, 1)]
    assert shown(index) == [(4, 6, 2), (6, 8, 3)]


@pytest.mark.acceptance(47)
def test_reorganise_of_nothing_and_at_a_start() -> None:
    assert sums().reorganise(5) == []
    index = filled((1, 4, 1))
    assert index.reorganise(1) == []
    assert shown(index) == [(1, 4, 1)]


@pytest.mark.acceptance(47)
def test_reorganise_splits_the_running_element_once() -> None:
    index = filled((1, 4, 1), (6, 9, 2))
    assert flat(index.reorganise(7)) == [(1, 4, 1), (6, 7, 2)]
    assert shown(index) == [(7, 9, 2)]


@pytest.mark.acceptance(47)
def test_a_change_inside_two_elements_gives_disjoint_pieces() -> None:
    index = filled((1, 4, 2), (4, 6, 3))
    add(index, 2, 6, 10)
    assert shown(index) == [(1, 2, 2), (2, 4, 12), (4, 6, 13)]


@pytest.mark.acceptance(47)
def test_an_element_that_reaches_beyond_both_ends_is_cut_in_three() -> None:
    index = filled((1, 9, 2))
    add(index, 3, 5, 10)
    assert shown(index) == [(1, 3, 2), (3, 5, 12), (5, 9, 2)]


@pytest.mark.acceptance(47)
def test_gaps_before_between_and_after_are_filled() -> None:
    index = filled((1, 3, 1), (5, 8, 2))
    add(index, 1, 8, 10)
    assert shown(index) == [(1, 3, 11), (3, 5, 10), (5, 8, 12)]
    index = filled((4, 5, 1))
    add(index, 2, 7, 10)
    assert shown(index) == [(2, 4, 10), (4, 5, 11), (5, 7, 10)]


@pytest.mark.acceptance(47)
def test_an_instant_changes_nothing() -> None:
    index = filled((1, 3, 1))
    add(index, 2, 2, 10)
    assert shown(index) == [(1, 3, 1)]


@pytest.mark.acceptance(47)
def test_the_tail_begins_with_one_value() -> None:
    index = ListIndex([of("avg")])
    add(index, 1, 3, 4.0)
    add(index, 2, 5, 8.0)
    assert index.reorganise(9) == [(1, 2, (4.0,)), (2, 3, (6.0,)), (3, 5, (8.0,))]


@pytest.mark.acceptance(48)
def test_merging_joins_touching_equal_results_of_one_call() -> None:
    index = filled((1, 3, 0), (1, 5, 2))
    assert flat(index.reorganise(5)) == [(1, 5, 2)]
    index = filled((1, 3, 0), (1, 5, 2))
    assert flat(index.reorganise(2)) == [(1, 2, 2)]
    assert flat(index.reorganise(5)) == [(2, 5, 2)]
    index = filled((1, 3, 2), (4, 5, 2))
    assert flat(index.reorganise(5)) == [(1, 3, 2), (4, 5, 2)]
    nan = math.nan
    assert len(merged([(1, 2, (nan,)), (2, 3, (nan,)), (3, 4, (1.0,))])) == 2


@pytest.mark.acceptance(49)
def test_deletes_leave_min_and_max_until_nothing_lives() -> None:
    index = ListIndex([of("min"), of("max"), of("sum")])
    add(index, 1, 10, 3)
    add(index, 1, 10, 7)
    add(index, 4, 10, 7, -1)
    assert index.reorganise(6) == [(1, 4, (3, 7, 10)), (4, 6, (3, 7, 3))]
    add(index, 6, 10, 3, -1)
    assert index.pieces == []
    assert index.reorganise(20) == []


def test_a_sum_of_zero_is_data() -> None:
    index = filled((1, 5, 4), (1, 5, -4))
    assert flat(index.reorganise(5)) == [(1, 5, 0)]


def test_withdrawing_from_a_gap_is_a_fault_of_ours() -> None:
    with pytest.raises(AssertionError, match="nothing to withdraw"):
        add(sums(), 1, 4, 2, -1)


def test_gaps_can_be_told() -> None:
    index = GapIndex((0, 0), [of("sum"), of("count")], [1, 1])
    add(index, 1, 3, 5)
    assert index.reorganise(6) == [(1, 3, (5, 1)), (3, 6, (0, 0))]
    add(index, 6, 7, 1)
    assert index.reorganise(9) == [(6, 7, (1, 1)), (7, 9, (0, 0))]


FIVE = five()


def brute(live: list[int]) -> tuple[float, ...]:
    return (len(live), sum(live), sum(live) / len(live), min(live), max(live))


@pytest.mark.acceptance(46)
@pytest.mark.parametrize("seed", range(60))
def test_the_five_equal_brute_force_at_every_instant(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    tuples = sorted(
        (ts, ts + chance.randint(0, 12), chance.randint(-4, 4))
        for ts in (chance.randint(0, 25) for _ in range(chance.randint(1, 25)))
    )
    index = ListIndex(FIVE)
    results: list[Result] = []
    for s, e, v in tuples:
        results += index.reorganise(s)
        add(index, s, e, v)
    results += index.reorganise(100)
    for t in range(45):
        live = [v for s, e, v in tuples if s <= t < e]
        found = [values for start, end, values in results if start <= t < end]
        assert found == ([brute(live)] if live else []), t


@pytest.mark.acceptance(22)
@pytest.mark.parametrize("seed", range(60))
def test_additions_and_withdrawals_against_a_history(seed: int) -> None:
    """Each tuple may be withdrawn from a later point to its end, as a time-table does."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    index = ListIndex([of("count"), of("sum"), of("avg")])
    truth: dict[int, list[int]] = {t: [] for t in range(60)}
    open_ones: list[tuple[int, int, int]] = []
    results: list[Result] = []
    now = 0
    for _ in range(chance.randint(1, 25)):
        now += chance.randint(0, 3)
        results += index.reorganise(now)
        open_ones = [each for each in open_ones if each[1] > now]
        if open_ones and chance.random() < 0.4:
            s, e, v = open_ones.pop(chance.randrange(len(open_ones)))
            add(index, now, e, v, -1)
            for t in range(max(now, s), e):
                truth[t].remove(v)
        else:
            e, v = now + chance.randint(1, 9), chance.randint(-4, 4)
            add(index, now, e, v)
            open_ones.append((now, e, v))
            for t in range(now, e):
                truth[t].append(v)
    results += index.reorganise(100)
    for t, live in truth.items():
        found = [values for start, end, values in results if start <= t < end]
        assert found == ([brute(live)[:3]] if live else []), t
