"""Tallies on random histories, compared with what all their values say, and the work that a change
costs once something was asked. `test_aggregates` has their results as aggregates."""

from __future__ import annotations

import functools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.tallies import Frequencies, Sketch, Tally, hashed


def most_frequent(values: list[Any]) -> Any:
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], value), default=None)


def estimated(values: list[int]) -> int:
    """Computes the estimate of a HyperLogLog of 4096 buckets from all runs."""
    longest: dict[int, int] = {}
    for value in values:
        longest[value >> 6] = max(value & 63, longest.get(value >> 6, 0))
    empty = 4096 - len(longest)
    total = empty + sum((Fraction(1, 2**run) for run in longest.values()), Fraction(0))
    estimate = 0.7213 / (1 + 1.079 / 4096) * (4096**2 / float(total))
    return round(4096 * math.log(4096 / empty) if estimate <= 10240 and empty else estimate)


def hashes(chance: random.Random) -> int:
    """Returns a hash; some buckets have many, with runs of zeros of all lengths."""
    if chance.random() < 0.5:
        return hashed(chance.randrange(10**6))
    return chance.randrange(3) << 6 | chance.randint(1, 53)


CASES: list[tuple[type[Tally], Callable[[Any], Any], Any, Any]] = [
    (Frequencies, Frequencies.most, most_frequent, lambda chance: chance.randrange(12)),
    (Frequencies, Frequencies.most, most_frequent, lambda chance: chance.choice("abc")),
    (Sketch, Sketch.estimate, estimated, hashes),
]


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize(("kind", "ask", "by_definition", "draw"), CASES)
def test_as_all_values_say(kind: Any, ask: Any, by_definition: Any, draw: Any, seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    tally, values, share = kind(), [], chance.choice((0.3, 0.5, 0.7))
    for _ in range(400):
        if values and chance.random() < share:
            value = values.pop(chance.choice((0, chance.randrange(len(values)))))
            tally.change(value, -1)
        else:
            values.append(draw(chance))
            tally.change(values[-1], 1)
        if chance.random() < 0.6:
            assert ask(tally) == by_definition(values)
        if chance.random() < 0.05:
            other, tally = tally, tally.copy()
            other.change(draw(chance), 1)  # changes no copy
        if chance.random() < 0.05:
            tally = kind(dict(tally))  # as from a snapshot
        if chance.random() < 0.05:
            more = [draw(chance) for _ in range(3)]
            values += more
            tally = tally.with_all(Counter(more))
    assert dict(tally) == Counter(values)


def test_the_most_frequent_costs_no_look_at_all_values() -> None:
    compared = 0

    @functools.total_ordering
    class Value:
        def __init__(self, number: int) -> None:
            self.number = number

        def __lt__(self, other: Value) -> bool:
            nonlocal compared
            compared += 1
            return self.number < other.number

    values = [Value(number) for number in range(4000)]
    tally = Frequencies(dict.fromkeys(values, 1))
    assert tally.most() is values[0]
    compared = 0
    for turn in range(8000):  # the most frequent value is the one that leaves
        tally.change(values[turn % 4000], 1)
        assert tally.most() is values[turn % 4000]
        tally.change(values[turn % 4000], -1)
    assert compared < 200 * 8000
    assert tally.heap is None or len(tally.heap) <= 2 * len(tally) + 64


def test_an_estimate_costs_no_look_at_all_values() -> None:
    looks = 0

    class Seen(Sketch):
        def __iter__(self) -> Iterator[Any]:
            nonlocal looks
            looks += 1
            return super().__iter__()

    sketch = Seen(dict.fromkeys(map(hashed, range(3000)), 1))
    for number in range(1000):
        sketch.change(hashed(number), -1)
        assert sketch.estimate() == estimated(list(dict(sketch)))
    assert looks == 1


def test_states_from_snapshots_have_the_counts_alone() -> None:
    for name in ("mode", "approx_count_distinct"):
        entry = AGGREGATES[name]
        state = entry.init()
        for value in ("a", "b", "b"):
            state = entry.insert(state, value)
        assert entry.remove is not None
        assert entry.merge is not None
        saved = dict(state)
        assert entry.result(saved) == entry.result(state)
        assert entry.merge(saved, saved) == {key: 2 * count for key, count in state.items()}
        assert entry.result(entry.remove(saved, "b")) == {"mode": "a"}.get(name, 2)


def test_hashes_of_equal_numbers_are_equal() -> None:
    for number in (0, 1, -7, 2**70, 0.5, -1e300, 5e-324):
        same = [number, Decimal(number), float(number)]
        assert len({hashed(one) for one in same}) == 1
    assert hashed(True) == hashed(1)
    assert hashed(0.0) == hashed(-0.0)
    assert len({hashed(one) for one in (math.inf, -math.inf, "1", 1)}) == 4
