"""Every structure agrees with the list, call by call, on streams without deletions."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from compiler.apas.functions import Aggregate, Average, Count, Greatest, Least, Sum
from engine.temporal.aggregates.choose import choose
from engine.temporal.aggregates.index import ListIndex
from engine.temporal.aggregates.live import Live, MergeHeap, RunningTotal, Staircase, TwoStacks
from engine.temporal.aggregates.suffix import SuffixIndex

ANY: list[Aggregate] = [Count(), Sum(), Average(), Least(), Greatest()]
STRUCTURES: dict[str, tuple[Callable[[Aggregate], Live], list[Aggregate]]] = {
    "running total": (RunningTotal, [Count(), Sum(), Average()]),
    "staircase": (Staircase, [Least(), Greatest()]),
    "heap": (MergeHeap, ANY),
    "two stacks": (TwoStacks, ANY),
}


@pytest.mark.acceptance(51)
@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("seed", range(120))
def test_equals_the_list(name: str, seed: int) -> None:
    print(f"seed {seed}")
    make, functions = STRUCTURES[name]
    chance = random.Random(seed)
    reference = ListIndex(functions)
    index = SuffixIndex([make(function) for function in functions])
    now, longest = chance.randint(-5, 5), chance.choice((1, 4, 30))
    te = now
    for _ in range(chance.randint(1, 60)):
        now += chance.choice((0, 0, 1, 2, 9))
        ends = now + chance.randint(0, longest)
        # Two stacks are for windows, whose te never falls.
        te = max(te, ends) if name == "two stacks" else ends
        v = tuple((float(chance.randint(-8, 8)),) for _ in functions)
        assert index.reorganise(now) == reference.reorganise(now)
        index.change(v, now, te)
        reference.change(v, now, te)
    assert index.reorganise(2**63 - 1) == reference.reorganise(2**63 - 1)


def test_totals_do_not_drift() -> None:
    """A naive running sum of these is off by a whole unit and never recovers."""
    index = SuffixIndex([RunningTotal(Sum())])
    index.reorganise(0)
    index.change(((1.0,),), 0, 100)
    for t in range(1, 50):
        index.reorganise(t)
        index.change(((1e16 + t,),), t, t + 1)
    ((_, _, (value,)),) = index.reorganise(60)[-1:]
    assert value == 1.0


def test_a_sum_that_overflows_changes_nothing() -> None:
    index = SuffixIndex([RunningTotal(Count()), RunningTotal(Sum())])
    index.reorganise(0)
    index.change(((2**62,), (2**62,)), 0, 10)
    with pytest.raises(ArithmeticError):
        index.change(((2**62,), (2**62,)), 0, 10)
    assert index.reorganise(20) == [(0, 10, (1, 2**62))]


def test_only_additions_from_the_present_on() -> None:
    index = SuffixIndex([RunningTotal(Count())])
    index.reorganise(4)
    for start, sign in ((5, 1), (4, -1)):
        with pytest.raises(AssertionError, match="only additions from 4 on"):
            index.change(((1,),), start, 9, sign)


def test_what_is_chosen() -> None:
    class Last(Aggregate):
        """Neither removes nor merges."""

    class Product(Aggregate):
        merges = True

    assert isinstance(choose([Last()], False, True), ListIndex)
    assert isinstance(choose([Count()], True, True), ListIndex)
    assert isinstance(choose([Count()], False, True, gap=(0,)), ListIndex)
    for in_order, other in ((True, TwoStacks), (False, MergeHeap)):
        index = choose([Sum(), Least(), Product()], False, in_order)
        assert isinstance(index, SuffixIndex)
        assert [type(part) for part in index.parts] == [RunningTotal, Staircase, other]
