"""Tests pairs of probes and window tuples, with an index and without one, against the
definition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from seustream.cosim import pairs
from seustream.cosim.pairs import Codes, Found, by_all, by_index, holds, index_of, shared_equality
from seustream.hdl.device import NOT_IN_RESULT, Area, Combination, Factor, Ints
from seustream.hdl.isa import Condition

TAG, STREAMS, ATTRIBUTES = 3, 2, 4
HIGHEST = (1 << 32) - 1


@dataclass
class Side:
    """Probes, or a window."""

    sequence: Ints
    attributes: Codes
    bits: Ints

    def __len__(self) -> int:
        return len(self.bits)


def case(seed: int, equality: bool) -> tuple[Area, Side, Side, tuple[Ints, Ints]]:
    """Returns an area with several combinations, some of another tag; with `equality` all of TAG
    share one. There are few values, the greatest among them."""
    chance = np.random.default_rng(seed)
    conditions = [c for c in Condition if c is not Condition.EQ or not equality]
    factors = [
        Factor(int(chance.integers(4)), int(chance.integers(STREAMS)), int(chance.integers(4)), one)
        for one in chance.choice(np.array(conditions, object), 5)
    ]
    factors[2] = Factor(2, 0, 1, Condition.EQ if equality else Condition.LT)
    combinations = []
    for number in range(4):
        own = {int(f) for f in chance.choice(5, chance.integers(0, 3), replace=False)}
        own |= {2} if number else set()
        tag, post = (TAG, int(chance.integers(10, 12))) if number else (TAG + 1, 10)
        some = tuple(int(b) for b in chance.choice(3, chance.integers(0, 2), replace=False))
        combinations.append(Combination(tag, tuple(sorted(own)), some, some[:1], post))
    values = np.array([0, 1, 2, 7, HIGHEST])
    probes, window = 25, 40

    def attributes(*shape: int) -> Codes:
        return chance.choice(values, shape).astype(np.uint32)

    carried = np.where(chance.random((probes, STREAMS)) < 0.8, 5, NOT_IN_RESULT)
    low = np.sort(chance.integers(0, window, probes))
    high = np.minimum(low + chance.integers(0, 25, probes), window)
    return (
        Area(tuple(factors), tuple(combinations)),
        Side(carried, attributes(probes, STREAMS, ATTRIBUTES), chance.integers(0, 8, probes)),
        Side(np.arange(window), attributes(window, ATTRIBUTES), chance.integers(0, 8, window)),
        (low, high),
    )


def defined(
    area: Area, probes: Side, window: Side, sight: tuple[Ints, Ints]
) -> set[tuple[int, ...]]:
    """Returns post tag, probe and place of each pair, found one after the other."""
    found = set()
    for who in range(len(probes)):
        for whom in range(int(sight[0][who]), int(sight[1][who])):
            for row in area.combinations:
                if row.pre_tag == TAG and all(
                    _factor(area.factors[i], probes, who, window, whom) for i in row.factors
                ):
                    mine = sum(1 << b for b in row.probe_selections)
                    theirs = sum(1 << b for b in row.window_selections)
                    if probes.bits[who] & mine == mine and window.bits[whom] & theirs == theirs:
                        found.add((row.post_tag, who, whom))
    return found


def _factor(factor: Factor, probes: Side, who: int, window: Side, whom: int) -> bool:
    if factor.condition is Condition.TRUE:
        return True
    a = probes.attributes[who, factor.probe_stream, factor.probe_attribute]
    b = window.attributes[whom, factor.window_attribute]
    carried = probes.sequence[who, factor.probe_stream] != NOT_IN_RESULT
    return bool(carried and holds(factor.condition, np.array([a]), np.array([b]))[0])


def flat(found: list[Found]) -> list[tuple[int, int, int]]:
    return [
        (post, int(a), int(b)) for post, who, whom in found for a, b in zip(who, whom, strict=True)
    ]


@pytest.mark.parametrize("at_once", [1, 7, 1 << 20])
@pytest.mark.parametrize("seed", range(12))
def test_an_index_finds_what_all_with_all_finds(
    seed: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(f"seed {seed}")
    monkeypatch.setattr(pairs, "PAIRS_AT_ONCE", at_once)
    area, probes, window, sight = case(seed, equality=True)
    equality = shared_equality(area, TAG)
    assert equality == 2
    keys = index_of(window.attributes[:, area.factors[equality].window_attribute])
    indexed = flat(list(by_index(area, TAG, equality, probes, window, keys, sight)))
    every = flat(list(by_all(area, TAG, probes, window, sight)))
    assert len(set(indexed)) == len(indexed)
    assert set(indexed) == set(every) == defined(area, probes, window, sight)
    # Results of one probe with one tag come in the order of the window, either way.
    by_probe = sorted(indexed, key=lambda pair: (pair[0], pair[1]))
    assert by_probe == sorted(every, key=lambda pair: (pair[0], pair[1]))


def test_there_is_something_to_find() -> None:
    found = [defined(*case(seed, equality=True)) for seed in range(12)]
    assert sum(map(len, found)) > 100


def test_an_equality_is_shared_or_there_is_none() -> None:
    for seed in range(12):
        area = case(seed, equality=False)[0]
        assert shared_equality(area, TAG) is None or all(
            shared_equality(area, TAG) in row.factors
            for row in area.combinations
            if row.pre_tag == TAG
        )
    assert shared_equality(Area(), TAG) is None
