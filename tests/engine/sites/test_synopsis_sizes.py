"""Synopsis vectors, filters and sizes: the specification's figures, and brute force for
exactness."""

from __future__ import annotations

import math
import random

import pytest

from seustream.engine.sites.model import EquiJoin, SiteStream
from seustream.engine.sites.planner import Task, subset_dp
from seustream.engine.sites.synopsis import Hashed, Synopses
from tests.engine.sites import animals
from tests.engine.sites.running import of_values


def task(known: Synopses, counts: dict[tuple[int | float | str | bytes, ...], int]) -> Task:
    return Task(3, 1, known.sizes(1, counts), animals.COSTS)


def test_statement_01_vectors_and_filter() -> None:
    known = animals.synopses()
    vectors = [[site.by_class[0].count(key) for key in range(1, 11)] for site in known.sites]
    assert vectors == [
        [1, 0, 1, 2, 1, 0, 0, 0, 1, 0],
        [0, 1, 1, 0, 1, 0, 0, 0, 0, 2],
        [0, 1, 1, 1, 1, 0, 1, 0, 0, 1],
    ]
    first = animals.block(animals.FIRST)
    assert animals.vector(first) == [0, 0, 1, 1, 0, 0, 0, 1, 0, 0]
    assert animals.vector(known.filter(1, first)) == [0, 0, 1, 1, 0, 0, 0, 0, 0, 0]
    second = known.filter(1, animals.block(animals.SECOND))
    assert animals.vector(second) == [0, 0, 1, 0, 1, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("keys", "plain", "filtered", "order", "results"),
    [
        (animals.FIRST, {(0, 2): 129, (2, 0): 110}, {(0, 2): 111, (2, 0): 90}, (2, 0), 3),
        (animals.SECOND, {(0, 2): 104, (2, 0): 110}, {(0, 2): 86, (2, 0): 90}, (0, 2), 2),
    ],
)
def test_statement_02_03_order_costs(
    keys: tuple[int, ...],
    plain: dict[tuple[int, ...], int],
    filtered: dict[tuple[int, ...], int],
    order: tuple[int, ...],
    results: int,
) -> None:
    known, block = animals.synopses(), animals.block(keys)
    kept = known.filter(1, block)
    for way, cost in plain.items():
        assert task(known, block).cost(way) == cost
    for way, cost in filtered.items():
        assert task(known, kept).cost(way) == cost
    best = subset_dp(task(known, kept))
    assert (best.sites, best.cost) == (order, filtered[order])
    assert known.sizes(1, kept)(0b101) == results


def test_delivery_to_the_first_site() -> None:
    known = animals.synopses()
    kept = known.filter(1, animals.block(animals.FIRST))
    whole = Task(3, 1, known.sizes(1, kept), animals.COSTS, sink=0)
    assert (whole.cost((2, 0)), whole.cost((0, 2))) == (90, 186)


def test_statement_08_buckets() -> None:
    kind = Hashed(4, lambda key: int(key) % 4)
    known = Synopses(animals.join(), kind)
    for site, rows in zip(known.sites, animals.DATA, strict=True):
        for key, _ in rows:
            site.add({(kind.entry(key),): 1})
    buckets = [[site.by_class[0].count(b) for b in range(4)] for site in known.sites]
    assert buckets[0] == [2, 3, 0, 1]
    assert buckets[2] == [1, 1, 2, 2]
    block = {(kind.entry(key),): 0 for key in animals.FIRST}
    for key in animals.FIRST:
        block[kind.entry(key),] += 1
    kept = known.filter(1, block)
    assert sum(kept.values()) == 3
    planned = task(known, kept)
    assert (planned.size(0b001), planned.size(0b100)) == (5, 4)
    assert (planned.cost((0, 2)), planned.cost((2, 0))) == (179, 160)
    assert subset_dp(planned).sites == (2, 0)
    true = task(animals.synopses(), animals.block(animals.FIRST))
    assert true.cost((2, 0)) == 110


ABC = EquiJoin(
    (SiteStream("R1", ("a",)), SiteStream("R2", ("a", "b")), SiteStream("R3", ("b",))),
    (((0, "a"), (1, "a")), ((1, "b"), (2, "b"))),
)


def test_statement_09_several_classes() -> None:
    known = Synopses(ABC)
    known.sites[0].add({(1,): 2, (3,): 1})
    known.sites[2].add({("x",): 3, ("z",): 1})
    block = {(1, "x"): 1, (1, "y"): 1, (2, "x"): 1, (3, "z"): 2}
    kept = known.filter(1, block)
    assert kept == {(1, "x"): 1, (3, "z"): 2}
    size = known.sizes(1, kept)
    assert [size(visited) for visited in (0b001, 0b100, 0b101)] == pytest.approx([4, 5, 8])
    known.sites[1].add(block)
    mine = known.filter(0, {(1,): 2, (3,): 1, (5,): 1})
    assert mine == {(1,): 2, (3,): 1}
    size = known.sizes(0, mine)
    assert [size(visited) for visited in (0b010, 0b110)] == pytest.approx([6, 9.6])


def test_nothing_joins_an_empty_store() -> None:
    known = Synopses(ABC)
    known.sites[1].add({(1, "x"): 4})
    assert known.sizes(0, {(1,): 2})(0b110) == 0


@pytest.mark.parametrize("seed", range(20))
def test_with_one_class_sizes_are_exact(seed: int) -> None:
    chance = random.Random(seed)
    n = chance.randint(2, 5)
    stores = [[chance.randint(1, 5) for _ in range(chance.randint(0, 6))] for _ in range(n)]
    known = Synopses(EquiJoin.on_one_key([math.inf] * n))
    for site, keys in zip(known.sites, stores, strict=True):
        for key in keys:
            site.add(of_values({key: 1}))
    kept = known.filter(0, {(key,): stores[0].count(key) for key in set(stores[0])})
    assert set(kept) == {(key,) for key in stores[0] if all(key in s for s in stores[1:])}
    size = known.sizes(0, kept)
    for visited in range(0, 1 << n, 2):
        sites = [k for k in range(n) if visited >> k & 1]
        want = sum(c * math.prod(stores[k].count(key) for k in sites) for (key,), c in kept.items())
        assert size(visited) == want, seed
