"""Planners: in which order a block visits the other sites.

All planners minimise, over the orders π of the sites visited from the source π_0,

    C(π) = Σ size({π_1..π_{j-1}})·w(π_{j-1}, π_j)  + size(all)·w(π_{n-1}, query node)

and among equal costs take the order that comes first. `size` depends only on the set visited, so
`subset_dp` is exact in 2^n·n² steps. With one class sizes never shrink, which lets `smje` prune.
With several classes an order may only go on to a site that shares a class with those visited.

| name | |
|---|---|
| `smje` | exact: depth first, pruned; all orders with several classes; up to 9 sites |
| `subset_dp` | exact: best order of each set by its last site |
| `smjh` | one survivor for each length and last site |
| `two_pass` | the better of a greedy pass from the source and one from the query node |
| `auto` | `subset_dp` up to 10 sites, above that the better of the two heuristics |
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from seustream.engine.sites.costs import UnitCosts, times
from seustream.engine.sites.errors import PlannerLimit
from seustream.engine.sites.synopsis import Size

SMJE_SITES = 9
EXACT_SITES = 10
RETRY_SITES = 16


@dataclass(frozen=True, slots=True, order=True)
class Order:
    """The order that a planner chose: its predicted cost and the sites in order."""

    cost: float
    sites: tuple[int, ...]


@dataclass(frozen=True)
class Task:
    """One block to plan. `sink` is the query node, or None if delivery is not counted;
    `linked(visited, k)` is true if k can follow a set that includes the source."""

    n: int
    source: int
    size: Size
    costs: UnitCosts
    sink: int | None = None
    linked: Callable[[int, int], bool] | None = None

    @cached_property
    def others(self) -> tuple[int, ...]:
        return tuple(k for k in range(self.n) if k != self.source)

    @property
    def all(self) -> int:
        """All sites but the source, as bits."""
        return (1 << self.n) - 1 & ~(1 << self.source)

    def allows(self, visited: int, k: int) -> bool:
        return self.linked is None or self.linked(visited | 1 << self.source, k)

    def step(self, visited: int, a: int, b: int) -> float:
        """Returns the cost of going on from a to b after a set was visited."""
        return times(self.size(visited), self.costs.w[a][b])

    def delivery(self, last: int) -> float:
        return 0 if self.sink is None else self.step(self.all, last, self.sink)

    def cost(self, order: tuple[int, ...]) -> float:
        """Returns C of one order."""
        total, visited, at = 0.0, 0, self.source
        for k in order:
            total += self.step(visited, at, k)
            visited, at = visited | 1 << k, k
        return total + self.delivery(at)


Planner: TypeAlias = Callable[[Task], Order]


def enumerate_orders(task: Task) -> Order:
    """Tries every order; the reference for the other planners."""

    def possible(order: tuple[int, ...]) -> bool:
        visited = 0
        for k in order:
            if not task.allows(visited, k):
                return False
            visited |= 1 << k
        return True

    return min(
        Order(task.cost(order), order)
        for order in itertools.permutations(task.others)
        if possible(order)
    )


def smje(task: Task) -> Order:
    """Searches all orders, skipping those that cannot win."""
    if task.n > SMJE_SITES:
        raise PlannerLimit(
            f"smje looks at every order and stops at {SMJE_SITES} sites, here are {task.n}",
            "use auto, which is as exact up to 10 and quick above",
        )
    if task.linked is not None:
        return enumerate_orders(task)
    return branch_and_bound(task)


def branch_and_bound(task: Task, on_node: Callable[[], None] = lambda: None) -> Order:
    """Searches depth first in ascending order; leaves a branch whose lower bound reaches the best
    cost. Sizes must never shrink as sites are added, which one class guarantees."""
    best = Order(math.inf, task.others)

    def bound(g: float, visited: int, at: int, rest: tuple[int, ...]) -> float:
        w = task.costs.w
        nearest = sum(min(w[x][k] for x in (*rest, at) if x != k) for k in rest)
        left = times(task.size(visited), nearest)
        if task.sink is not None:
            last = min(w[k][task.sink] for k in rest) if rest else w[at][task.sink]
            left += times(task.size(task.all), last)
        return g + left

    def descend(g: float, visited: int, order: tuple[int, ...], rest: tuple[int, ...]) -> None:
        nonlocal best
        on_node()
        at = order[-1] if order else task.source
        if not rest:
            total = g + task.delivery(at)
            if total < best.cost:
                best = Order(total, order)
            return
        if bound(g, visited, at, rest) >= best.cost:
            return
        for k in rest:
            left = tuple(x for x in rest if x != k)
            descend(g + task.step(visited, at, k), visited | 1 << k, (*order, k), left)

    descend(0.0, 0, (), task.others)
    return best


def subset_dp(task: Task) -> Order:
    """Finds the best order of each set by its last site, from smaller sets to larger ones."""
    return _layers(task, keep=lambda visited, k: (visited, k))


def smjh(task: Task) -> Order:
    """Keeps one survivor for each last site, lengthened step by step."""
    return _layers(task, keep=lambda visited, k: k)


def _layers(task: Task, keep: Callable[[int, int], object]) -> Order:
    """Lengthens orders by one site at a time; among those that `keep` maps to the same cell, the
    best survives. It is the inner loop of every plan, so it uses plain tuples and asks for each
    size once."""
    if not task.others:
        return Order(task.delivery(task.source), ())
    w, inf = task.costs.w, math.inf
    first = task.size(0)
    layer: dict[object, tuple[float, tuple[int, ...], int]] = {
        keep(1 << k, k): (times(first, w[task.source][k]), (k,), 1 << k)
        for k in task.others
        if task.allows(0, k)
    }
    for _ in range(len(task.others) - 1):
        grown: dict[object, tuple[float, tuple[int, ...], int]] = {}
        for cost, sites, visited in layer.values():
            size, row = task.size(visited), w[sites[-1]]
            for k in task.others:
                if visited >> k & 1 or not task.allows(visited, k):
                    continue
                after = visited | 1 << k
                total = cost + size * row[k] if row[k] != inf else inf
                cell = keep(after, k)
                best = grown.get(cell)
                if best is None or total < best[0] or (total == best[0] and (*sites, k) < best[1]):
                    grown[cell] = (total, (*sites, k), after)
        layer = grown
    return min(Order(cost + task.delivery(sites[-1]), sites) for cost, sites, _ in layer.values())


def two_pass(task: Task) -> Order:
    """Takes the better of two greedy passes."""
    orders = {_forward(task), _backward(task)}
    return min(Order(task.cost(order), order) for order in orders)


def _forward(task: Task) -> tuple[int, ...]:
    """Builds an order from the source on: chooses the next site by the cost to reach it and to go
    on."""
    w = task.costs.w
    order: tuple[int, ...] = ()
    visited, at, left = 0, task.source, set(task.others)
    while left:

        def price(
            k: int, visited: int = visited, at: int = at, left: set[int] = left
        ) -> tuple[float, int]:
            rest = left - {k}
            total = times(len(rest) * task.size(visited), w[at][k])
            total += sum(times(task.size(visited | 1 << k), w[k][x]) for x in rest)
            if len(rest) == 1:
                (x,) = rest
                total += task.delivery(x)
            return total, k

        k = min((k for k in left if task.allows(visited, k)), key=price)
        order, visited, at, left = (*order, k), visited | 1 << k, k, left - {k}
    return order


def _backward(task: Task) -> tuple[int, ...]:
    """Builds an order from the query node back: chooses the last site by the cost to reach and to
    leave it."""
    w = task.costs.w
    order: tuple[int, ...] = ()
    following, left = task.sink, set(task.others)
    while left:
        every = sum(1 << k for k in left)

        def price(
            k: int, following: int | None = following, left: set[int] = left, every: int = every
        ) -> tuple[float, int]:
            before = left - {k} or {task.source}
            total = sum(times(task.size(every & ~(1 << k)), w[x][k]) for x in before)
            if following is not None:
                total += times(len(before) * task.size(every), w[k][following])
            return total, k

        k = min((k for k in left if _stays_whole(task, left - {k}, k)), key=price)
        order, following, left = (k, *order), k, left - {k}
    return order


def _stays_whole(task: Task, rest: set[int], last: int) -> bool:
    """Returns whether a set can be visited, site by site, before its last site."""
    if task.linked is None:
        return True
    visited, left = 0, set(rest)
    while True:
        near = {k for k in left if task.allows(visited, k)}
        if not near:
            return not left and task.allows(visited, last)
        visited |= sum(1 << k for k in near)
        left -= near


def auto(task: Task) -> Order:
    """Plans exactly while that is quick, otherwise by the better heuristic."""
    return subset_dp(task) if task.n <= EXACT_SITES else min(smjh(task), two_pass(task))


PLANNERS: dict[str, Planner] = {
    "smje": smje,
    "subset_dp": subset_dp,
    "smjh": smjh,
    "two_pass": two_pass,
    "auto": auto,
}


def plan(task: Task, planner: Planner) -> Order | None:
    """Returns the order to use, or None if none has a finite cost. If a heuristic finds none, an
    exact planner is tried. A planner that fails costs money, not results: the ascending order is
    used then."""
    try:
        found = planner(task)
        if found.cost == math.inf and task.n <= RETRY_SITES:
            found = subset_dp(task)
    except PlannerLimit:
        raise
    except Exception:
        found = _ascending(task)
    return None if found.cost == math.inf else found


def _ascending(task: Task) -> Order:
    """Returns the first possible order."""
    order: tuple[int, ...] = ()
    visited = 0
    while len(order) < len(task.others):
        k = next(k for k in task.others if not visited >> k & 1 and task.allows(visited, k))
        order, visited = (*order, k), visited | 1 << k
    return Order(task.cost(order), order)
