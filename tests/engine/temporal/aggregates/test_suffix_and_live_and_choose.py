"""Every structure agrees with the list, call by call, on streams without deletions."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import pytest

from seustream.compiler.apas.functions import Aggregate, Registered
from seustream.compiler.apas.types import DOUBLE
from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.registry import CONDITION, FAULT, INTEGER, TEXT
from seustream.compiler.language.types import Type
from seustream.engine.temporal.aggregates.choose import choose
from seustream.engine.temporal.aggregates.index import ListIndex
from seustream.engine.temporal.aggregates.live import (
    Live,
    LiveRows,
    MergeHeap,
    RunningTotal,
    Staircase,
    TwoStacks,
)
from seustream.engine.temporal.aggregates.suffix import SuffixIndex
from tests.engine.temporal.aggregates.five import five, of

ANY = five(DOUBLE)
PICKS = [of("first", DOUBLE), of("last", DOUBLE)]


def staircase(function: Registered) -> Live:
    return Staircase(function.entry.name == "max")


STRUCTURES: dict[str, tuple[Callable[[Registered], Live], list[Registered]]] = {
    "running total": (RunningTotal, ANY[:3]),
    "staircase": (staircase, ANY[3:]),
    "heap": (MergeHeap, ANY),
    "two stacks": (TwoStacks, [*ANY, *PICKS]),
    "rows": (LiveRows, [*ANY, *PICKS]),
}


@pytest.mark.acceptance(51)
@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("seed", range(120))
def test_equals_the_list(name: str, seed: int) -> None:
    print(f"seed {seed}")
    make, functions = STRUCTURES[name]
    chance = random.Random(seed)
    reference = ListIndex(functions)
    index = SuffixIndex(functions, [make(function) for function in functions])
    now, longest = chance.randint(-5, 5), chance.choice((1, 4, 30))
    te = now
    for _ in range(chance.randint(1, 60)):
        now += chance.choice((0, 0, 1, 2, 9))
        ends = now + chance.randint(0, longest)
        # Two stacks serve windows, whose te never falls.
        te = max(te, ends) if name == "two stacks" else ends
        v = tuple((chance.choice((None, *map(float, range(-8, 9)))),) for _ in functions)
        assert index.reorganise(now) == reference.reorganise(now)
        index.change(v, now, te)
        reference.change(v, now, te)
    assert index.reorganise(2**63 - 1) == reference.reorganise(2**63 - 1)


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("name", AGGREGATES)
def test_every_aggregate_equals_its_definition_at_every_instant(
    name: str, in_order: bool, distinct: bool
) -> None:
    """Holds for the list and for the structure chosen. States are shared, so none may change in
    place."""
    entry = AGGREGATES[name]
    of = {CONDITION: (True, False), TEXT: "xyz", INTEGER: range(8)}
    kinds = [of.get(kind, (0.0, 1.0, 2.0, 5.0)) for kind in entry.parameters]
    type = entry.result_type if isinstance(entry.result_type, Type) else DOUBLE
    function = Registered(entry, type, distinct)
    for seed in range(20):
        print(f"seed {seed}")
        chance = random.Random(seed)
        rows, now, te = [], 0, 0
        for _ in range(20):
            now += chance.choice((0, 1, 3))
            te = max(te, now + chance.randint(1, 12)) if in_order else now + chance.randint(1, 12)
            rows.append((now, te, tuple(chance.choice(values) for values in kinds)))
        for index in (ListIndex([function]), choose([function], False, in_order)):
            found = []
            for start, end, values in rows:
                found += index.reorganise(start)
                index.change((values,), start, end)
            found += index.reorganise(te + 100)
            for instant in range(te + 13):
                state = entry.init()
                alive = [values for start, end, values in rows if start <= instant < end]
                for values in dict.fromkeys(alive) if distinct else alive:
                    state = entry.insert(state, *values)
                got = [each[0] for start, end, each in found if start <= instant < end]
                assert got == ([function.result(state)] if alive else []), instant


def test_the_rows_of_a_window_in_order_are_not_merged_anew() -> None:
    """Each tuple is merged a few times, however many live."""
    entry, merges = AGGREGATES["max_by"], 0

    def merge(a: Any, b: Any) -> Any:
        nonlocal merges
        merges += 1
        assert entry.merge is not None
        return entry.merge(a, b)

    for distinct in (False, True):
        counted = Registered(dataclasses.replace(entry, merge=merge), DOUBLE, distinct)
        index, merges = choose([counted], False, True), 0
        for now in range(3000):
            index.reorganise(now)
            index.change(((float(now), now % 700),), now, now + 1000)
        assert merges < 4 * 3000


def test_totals_do_not_drift() -> None:
    """A naive running sum of these is off by a whole unit and never recovers."""
    index = SuffixIndex([of("sum", DOUBLE)], [RunningTotal(of("sum", DOUBLE))])
    index.reorganise(0)
    index.change(((1.0,),), 0, 100)
    for t in range(1, 50):
        index.reorganise(t)
        index.change(((1e16 + t,),), t, t + 1)
    ((_, _, (value,)),) = index.reorganise(60)[-1:]
    assert value == 1.0


def test_a_sum_that_does_not_fit_has_no_value_until_it_does() -> None:
    functions = [of("count"), of("sum")]
    index = SuffixIndex(functions, [RunningTotal(each) for each in functions])
    index.reorganise(0)
    index.change(((2**62,), (2**62,)), 0, 10)
    index.change(((2**62,), (2**62,)), 0, 5)
    assert index.reorganise(20) == [(0, 5, (2, FAULT)), (5, 10, (1, 2**62))]


def test_only_additions_from_the_present_on() -> None:
    index = SuffixIndex([of("count")], [RunningTotal(of("count"))])
    index.reorganise(4)
    for start, sign in ((5, 1), (4, -1)):
        with pytest.raises(AssertionError, match="only additions from 4 on"):
            index.change(((1,),), start, 9, sign)


def test_what_is_chosen() -> None:
    class Last(Aggregate):
        """Supports neither removal nor merging."""

    class Product(Aggregate):
        merges = True

    assert isinstance(choose([Last()], False, True), ListIndex)
    assert isinstance(choose([of("count")], True, True), ListIndex)
    assert isinstance(choose([of("first")], True, True), ListIndex)
    for name, in_order, rows in (
        ("first", True, TwoStacks),
        ("min_by", True, TwoStacks),
        ("last", False, LiveRows),
        ("array_agg", True, LiveRows),
    ):
        for distinct in (False, True):
            function = Registered(AGGREGATES[name], DOUBLE, distinct)
            index = choose([function, of("sum")], False, in_order)
            assert isinstance(index, SuffixIndex)
            assert [type(part) for part in index.parts] == [rows, RunningTotal]
    for in_order, other in ((True, TwoStacks), (False, MergeHeap)):
        index = choose([of("sum"), of("min"), Product()], False, in_order)
        assert isinstance(index, SuffixIndex)
        assert [type(part) for part in index.parts] == [RunningTotal, Staircase, other]
