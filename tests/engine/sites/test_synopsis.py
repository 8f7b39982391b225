"""Synopses never count too little, under random additions and removals of what was added."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from seustream.engine.sites.errors import SynopsisUnderflow
from seustream.engine.sites.keys import Key
from seustream.engine.sites.model import EquiJoin
from seustream.engine.sites.synopsis import (
    SATURATED,
    CountingBloom,
    CountMin,
    Exact,
    Hashed,
    Synopses,
    SynopsisKind,
    overlap,
)
from tests.engine.sites.running import of_values

KINDS = [Exact(), Hashed(16), CountMin(3, 20), CountingBloom(2, 64)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
@pytest.mark.parametrize("seed", range(5))
def test_statement_33_never_less_than_there_is(kind: SynopsisKind, seed: int) -> None:
    chance = random.Random(seed)
    synopsis, truth = kind.new(), Counter[Key]()
    for _ in range(600):
        if chance.random() < 0.6 or not truth:
            key, count = chance.randint(1, 60), chance.randint(1, 3)
            synopsis.add(kind.entry(key), count)
            truth[key] += count
        else:
            key = chance.choice(sorted(truth))  # type: ignore[type-var]
            count = chance.randint(1, truth[key])
            synopsis.remove(kind.entry(key), count)
            truth[key] -= count
            truth += Counter()
        for key, count in truth.items():
            assert synopsis.has(kind.entry(key)), (seed, key)
            if not isinstance(kind, CountingBloom):
                assert synopsis.count(kind.entry(key)) >= count, (seed, key)
    if isinstance(kind, Exact):
        assert all(synopsis.count(key) == truth[key] for key in range(61))


def test_linear_synopses_return_to_nothing() -> None:
    for kind in (Exact(), Hashed(8), CountMin(3, 10)):
        synopsis = kind.new()
        for key in range(50):
            synopsis.add(kind.entry(key), key + 1)
        for key in range(50):
            synopsis.remove(kind.entry(key), key + 1)
        assert not any(synopsis.has(kind.entry(key)) for key in range(50))
        assert all(not cells for cells in synopsis.cells())


def test_statement_34_a_full_counter_stays_full() -> None:
    kind = CountingBloom(1, 4)
    synopsis = kind.new()
    synopsis.add("a", SATURATED + 5)
    for _ in range(SATURATED + 5):
        synopsis.remove("a")
    assert synopsis.has("a")
    almost = kind.new()
    almost.add("a", SATURATED - 1)
    almost.remove("a", SATURATED - 1)
    assert not almost.has("a")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
def test_more_removed_than_there_was(kind: SynopsisKind) -> None:
    synopsis = kind.new()
    synopsis.add(kind.entry(1), 2)
    with pytest.raises(SynopsisUnderflow):
        synopsis.remove(kind.entry(1), 3)


def test_buckets_bound_products_from_above() -> None:
    chance = random.Random(9)
    for _ in range(50):
        kind = Hashed(chance.choice([1, 3, 8]))
        vectors = [[chance.randint(0, 4) for _ in range(12)] for _ in range(3)]
        by_bucket = []
        for vector in vectors:
            synopsis = kind.new()
            for key, count in enumerate(vector):
                synopsis.add(kind.entry(key), count)
            by_bucket.append(synopsis)
        true = sum(math.prod(column) for column in zip(*vectors, strict=True))
        above = sum(math.prod(s.count(b) for s in by_bucket) for b in range(kind.m))
        assert above >= true


def test_sized_for_an_error() -> None:
    kind = CountMin.sized(error=0.05, doubt=0.05)
    synopsis = kind.new()
    for key in range(1000):
        synopsis.add(key)
    over = [synopsis.count(key) - 1 for key in range(1000)]
    assert sum(more > 0.05 * 1000 for more in over) <= 0.05 * 1000
    bloom = CountingBloom.sized(keys=500, rate=0.02)
    assert bloom.rate(500) == pytest.approx(0.02, rel=0.1)
    synopsis = bloom.new()
    for key in range(500):
        synopsis.add(key)
    wrong = sum(synopsis.has(key) for key in range(500, 5500)) / 5000
    assert wrong == pytest.approx(bloom.rate(500), rel=0.3)


def test_overlap_of_exact_counts_is_the_chance_of_equality() -> None:
    a, b = Exact().new(), Exact().new()
    for key, count in {1: 2, 2: 1}.items():
        a.add(key, count)
    for key, count in {1: 1, 3: 3}.items():
        b.add(key, count)
    assert overlap([a, b], [3, 4]) == pytest.approx(2 / 12)
    assert overlap([a, b], [0, 4]) == 0


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
def test_filters_keep_whatever_an_exact_one_keeps(kind: SynopsisKind) -> None:
    chance = random.Random(3)
    join = EquiJoin.on_one_key([math.inf] * 3)
    for _ in range(30):
        exact, near = Synopses(join), Synopses(join, kind)
        for k in range(3):
            for key in (chance.randint(1, 30) for _ in range(chance.randint(0, 12))):
                exact.sites[k].add(of_values({key: 1}))
                near.sites[k].add(of_values({kind.entry(key): 1}))
        block: dict[Key, int] = dict.fromkeys(chance.sample(range(1, 31), 8), 1)
        kept = {key for (key,) in exact.filter(0, of_values(block))}
        spelled = of_values({kind.entry(key): 1 for key in block})
        near_kept = near.filter(0, spelled)
        assert {kind.entry(key) for key in kept} <= {entry for (entry,) in near_kept}
