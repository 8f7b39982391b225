"""Guards: equalities that let a device look up its window tuples instead of scanning them.

before  join areas with factors and combinations
after   per area and route tag, if possible, a guard: an equality that all combinations of the
        tag require, on one of as many attributes as there are indexes
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations

from seustream.compiler.plan.areas import factor_numbers
from seustream.compiler.plan.requests import Requests
from seustream.compiler.plan.routes import RoutePlan
from seustream.compiler.plan.statistics import Estimate
from seustream.hdl.config import DeviceConfig
from seustream.hdl.device import Area, Tables
from seustream.hdl.isa import Condition


def guard(
    tables: Tables, requests: Requests, routes: RoutePlan, estimate: Estimate, config: DeviceConfig
) -> Tables:
    """Adds every area's guards to the tables."""
    areas = []
    for slot, area in enumerate(tables.areas):
        numbers = factor_numbers(slot, routes)
        shares = [estimate.selectivity(requests.factors[number]) for number in numbers]
        areas.append(replace(area, guards=choose(area, shares, config.indexes)))
    return replace(tables, areas=tuple(areas))


def choose(area: Area, shares: list[float], indexes: int) -> dict[int, int]:
    """Chooses guards on at most `indexes` attributes, for as many tags as possible; among equals,
    those that leave the least to look at. `shares` are the parts of the pairs that the factors let
    through."""
    # Attributes are few, so all sets of them are tried; among equals the smallest and first one
    # wins.
    attributes = sorted({f.window_attribute for f in area.factors if f.condition is Condition.EQ})
    best: dict[int, int] = {}
    best_cost = (0, math.inf)
    for count in range(min(indexes, len(attributes)) + 1):
        for chosen in combinations(attributes, count):
            guards = dict(_guards(area, shares, frozenset(chosen)))
            cost = (-len(guards), sum(shares[index] for index in guards.values()))
            if cost < best_cost:
                best, best_cost = guards, cost
    return best


def _guards(
    area: Area, shares: list[float], attributes: frozenset[int]
) -> Iterator[tuple[int, int]]:
    for tag in sorted({row.pre_tag for row in area.combinations}):
        possible = [
            index
            for index in equalities(area, tag)
            if area.factors[index].window_attribute in attributes
        ]
        if possible:
            yield tag, min(possible, key=lambda index: (shares[index], index))


def equalities(area: Area, tag: int) -> Iterable[int]:
    """Returns the EQ factors that all combinations of a tag require, ascending."""
    required = [set(row.factors) for row in area.combinations if row.pre_tag == tag]
    common = set.intersection(*required) if required else set()
    return sorted(i for i in common if area.factors[i].condition is Condition.EQ)
