"""Random queries and arrivals, all drawn from the `random.Random` that is given."""

from __future__ import annotations

import dataclasses
import itertools
import random

from seustream.hdl.config import DeviceConfig
from seustream.hdl.device import Tables, Window
from seustream.hdl.isa import Condition
from tests.cosim.queries import RANGE, ROWS, UNBOUNDED, On, Query, Raw, Where, arrivals

SYMBOLS = ["=", "=", "<", ">", ">=", "<=", "<>"]


def random_queries(chance: random.Random, groups: tuple[int, ...]) -> list[Query]:
    def window() -> Window:
        return chance.choice([RANGE(chance.randrange(8)), ROWS(chance.randrange(1, 6))])

    def where() -> Where:
        comparisons = tuple(
            (chance.randrange(4), chance.choice(SYMBOLS), chance.randrange(3))
            for _ in range(chance.randrange(1, 3))
        )
        return Where(comparisons, chance.random() < 0.5)

    queries = []
    for _ in range(chance.randrange(1, 4)):
        streams = chance.sample(range(len(groups)), chance.randrange(1, len(groups) + 1))
        terms = []
        for _ in range(chance.choice([1, 1, 2])):
            term = []
            for _ in range(chance.randrange(len(streams) + 1) if len(streams) > 1 else 0):
                x, y = chance.sample(streams, 2)
                a, b = chance.randrange(4), chance.randrange(4)
                term.append(On(x, a, chance.choice(SYMBOLS), y, b))
            terms.append(tuple(term))
        selected = {
            s: where() for s in streams if chance.random() < (0.3 if len(streams) > 1 else 0.8)
        }
        queries.append(Query({s: window() for s in streams}, tuple(terms), selected))
    # Some have the same join with other windows.
    for query in queries[:]:
        for _ in range(chance.choice([0, 0, 0, 1, 2])):
            queries.append(dataclasses.replace(query, windows={s: window() for s in query.windows}))
    return queries[:8]


def random_arrivals(chance: random.Random, groups: tuple[int, ...], n: int) -> list[Raw]:
    """Returns arrivals, few enough per timestamp that no window of `random_queries` overflows."""
    rows, now, at_once = [], 0, 0
    for _ in range(n):
        step = chance.choice([0, 0, 1, 1, 2, 5]) if at_once < 2 else 1
        at_once = 0 if step else at_once + 1
        now += step
        attributes = tuple(chance.randrange(3) for _ in range(4))
        rows.append((chance.choice(groups), now, attributes))
    return arrivals(rows, groups, [i for i in range(n) if chance.random() < 0.1])


def wide_queries(
    chance: random.Random, groups: tuple[int, ...], config: DeviceConfig
) -> list[Query]:
    """Returns random queries, most of whose windows may keep more than the counters can
    distinguish."""
    old, far = config.longest_range, config.longest_rows
    sizes = (UNBOUNDED, ROWS(1), ROWS(4), ROWS(far), RANGE(0), RANGE(old // 2), RANGE(old))
    return [
        dataclasses.replace(query, windows={s: chance.choice(sizes) for s in query.windows})
        for query in random_queries(chance, groups)
    ]


def gappy_arrivals(
    chance: random.Random, groups: tuple[int, ...], n: int, config: DeviceConfig
) -> list[Raw]:
    """Returns bursts of arrivals with large steps in between; some are ticks."""
    old = min(config.longest_range, 1 << 50)  # so that the sum is within 64 bits
    gaps = (0, 0, 1, 1, 2, old // 3, old, old + 1, 2 * old + 1, 2 * old + 2, 10 * old)
    times = itertools.accumulate(chance.choice(gaps) * (chance.random() < 0.3) for _ in range(n))
    rows = []
    for now in times:
        attributes = tuple(chance.randrange(3) for _ in range(4))
        rows.append((chance.choice(groups), now, attributes))
    return arrivals(rows, groups, [i for i in range(n) if chance.random() < 0.2])


def with_guards(chance: random.Random, tables: Tables) -> Tables:
    """Returns the tables with a random possible guard for every tag that can have one."""
    areas = []
    for area in tables.areas:
        common: dict[int, set[int]] = {}
        for row in area.combinations:
            equal = {f for f in row.factors if area.factors[f].condition is Condition.EQ}
            common[row.pre_tag] = common.get(row.pre_tag, equal) & equal
        guards = {tag: chance.choice(sorted(some)) for tag, some in common.items() if some}
        areas.append(dataclasses.replace(area, guards=guards))
    return dataclasses.replace(tables, areas=tuple(areas))
