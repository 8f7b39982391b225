"""Planners compared with every possible order on random instances; the specification's
instances."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from seustream.engine.sites.costs import UnitCosts
from seustream.engine.sites.errors import PlannerLimit
from seustream.engine.sites.model import EquiJoin, SiteStream
from seustream.engine.sites.planner import (
    PLANNERS,
    Order,
    Task,
    auto,
    branch_and_bound,
    enumerate_orders,
    plan,
    smje,
    smjh,
    subset_dp,
    two_pass,
)
from seustream.engine.sites.synopsis import Synopses
from tests.engine.sites.running import of_values


def instance(seed: int, n: int | None = None, dearest: int = 10) -> Task:
    """Returns random counts and asymmetric costs, with delivery or without."""
    chance = random.Random(seed)
    n = n or chance.randint(2, 6)
    known = Synopses(EquiJoin.on_one_key([math.inf] * n))
    for site in known.sites:
        site.add(of_values({v: chance.randint(0, 3) for v in range(4)}))
    source = chance.randrange(n)
    kept = known.filter(source, of_values({v: chance.randint(0, 2) for v in range(4)}))
    costs = UnitCosts.of(
        [[0 if a == b else chance.randint(0, dearest) for b in range(n + 1)] for a in range(n + 1)]
    )
    return Task(n, source, known.sizes(source, kept), costs, chance.choice([None, n]))


@pytest.mark.parametrize("first", range(0, 1200, 300))
def test_statement_10_exact_planners_agree(first: int) -> None:
    for seed in range(first, first + 300):
        # A small range of costs makes many ties; the order among equals is part of the answer.
        task = instance(seed, dearest=10 if seed % 2 else 2)
        want = enumerate_orders(task)
        assert branch_and_bound(task) == want, seed
        assert subset_dp(task) == want, seed
        assert smje(task) == want, seed


def test_of_equals_the_first_order() -> None:
    """With unit costs of 0 and 1, nearly every best order has equals."""
    for seed in range(400):
        task = instance(seed, n=5, dearest=1)
        want = enumerate_orders(task)
        assert subset_dp(task) == branch_and_bound(task) == want, seed


@pytest.mark.parametrize("planner", [smjh, two_pass])
def test_statement_11_heuristics(planner: object) -> None:
    assert callable(planner)
    for seed in range(400):
        task = instance(seed)
        best, found = enumerate_orders(task), planner(task)
        assert found.cost == task.cost(found.sites), seed
        assert found.cost >= best.cost, seed
        if task.n <= 3:
            assert found.cost == best.cost, seed


def test_heuristics_are_as_far_off_as_they_were_found_to_be() -> None:
    off = {"smjh": [], "two_pass": []}  # type: dict[str, list[float]]
    for seed in range(300):
        task = instance(seed, n=5)
        best = subset_dp(task).cost
        if best:
            for name, ratios in off.items():
                ratios.append(PLANNERS[name](task).cost / best)
    means = {name: sum(ratios) / len(ratios) for name, ratios in off.items()}
    assert 1 <= means["two_pass"] < means["smjh"]


def four() -> Task:
    costs = UnitCosts.of([[0, 1, 2, 6], [1, 0, 10, 1], [2, 10, 0, 10], [6, 1, 10, 0]])
    counts = {1: 2, 2: 2, 3: 3}
    return Task(
        4, 0, lambda visited: math.prod(c for k, c in counts.items() if visited >> k & 1), costs
    )


def test_statement_12_four_sites() -> None:
    assert smjh(four()) == Order(61, (1, 2, 3))
    assert subset_dp(four()) == smje(four()) == Order(26, (2, 1, 3))


def test_statement_13_limits() -> None:
    with pytest.raises(PlannerLimit, match="stops at 9 sites, here are 10"):
        smje(instance(1, n=10))
    with pytest.raises(PlannerLimit):
        plan(instance(1, n=10), smje)
    large = instance(1, n=14)
    found = auto(large)
    assert sorted(found.sites) == list(large.others)
    assert found == min(smjh(large), two_pass(large))
    ten = instance(3, n=10)
    assert auto(ten) == subset_dp(ten)


def test_branch_and_bound_leaves_branches_out() -> None:
    nodes, trials = 0, 30

    def count() -> None:
        nonlocal nodes
        nodes += 1

    for seed in range(trials):
        branch_and_bound(instance(seed, n=7), count)
    everything = sum(math.perm(6, length) for length in range(7))
    assert everything == 1957
    assert nodes / trials < everything / 2


def test_one_site_has_nothing_to_order_and_two_have_one_order() -> None:
    """Statement 22 for planners."""
    alone = Task(1, 0, lambda visited: 7, UnitCosts.of([[0, 3], [3, 0]]), sink=1)
    for planner in PLANNERS.values():
        assert planner(alone) == Order(21, ())
        two = instance(5, n=2)
        assert planner(two).sites == two.others


@pytest.mark.parametrize("name", PLANNERS)
def test_the_unreachable_is_not_visited_from_there(name: str) -> None:
    chance = random.Random(11)
    for seed in range(150):
        task = instance(seed, n=chance.randint(2, 5))
        w = [[c if chance.random() < 0.7 else math.inf for c in row] for row in task.costs.w]
        for k in range(len(w)):
            w[k][k] = 0
        cut = Task(task.n, task.source, task.size, UnitCosts.of(w), task.sink)
        best = min(cut.cost(order) for order in itertools.permutations(cut.others))
        found = plan(cut, PLANNERS[name])
        if best == math.inf:
            assert found is None, seed
        else:
            assert found is not None, seed
            assert found.cost < math.inf, seed


def test_a_planner_that_fails_costs_no_results() -> None:
    def broken(task: Task) -> Order:
        raise ZeroDivisionError

    found = plan(four(), broken)
    assert found is not None
    assert found.sites == (1, 2, 3)


def test_orders_stay_connected() -> None:
    """A chain of streams; each shares a class only with the next."""
    n = 5
    streams = tuple(SiteStream(f"s{k}", ("l", "r")) for k in range(n))
    chain = EquiJoin(streams, tuple(((k, "r"), (k + 1, "l")) for k in range(n - 1)))
    for seed in range(60):
        chance = random.Random(seed)
        known = Synopses(chain)
        for k, site in enumerate(known.sites):
            for _ in range(6):
                site.add({tuple(chance.randint(1, 2) for _ in chain.classes_of(k)): 1})
        source = chance.randrange(n)
        width = len(chain.classes_of(source))
        kept = known.filter(source, {tuple([1] * width): 2, tuple([2] * width): 1})
        costs = UnitCosts.of(
            [[0 if a == b else chance.randint(1, 9) for b in range(n)] for a in range(n)]
        )
        task = Task(n, source, known.sizes(source, kept), costs, None, chain.linked)
        best = enumerate_orders(task)
        for name, planner in PLANNERS.items():
            found = planner(task)
            reached = 1 << source
            for k in found.sites:
                assert chain.linked(reached, k), (seed, name)
                reached |= 1 << k
            assert reached == (1 << n) - 1
            assert found.cost >= best.cost - 1e-9
        assert subset_dp(task) == best
        assert smje(task) == best
