"""Random queries and arrivals, all from the `random.Random` they are given."""

from __future__ import annotations

import random

from hdl.device import Window
from tests.cosim.queries import RANGE, ROWS, On, Query, Raw, Where, arrivals

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
        streams = chance.sample(range(len(groups)), chance.randrange(2, len(groups) + 1))
        terms = []
        for _ in range(chance.choice([1, 1, 2])):
            term = []
            for _ in range(chance.randrange(len(streams) + 1)):
                x, y = chance.sample(streams, 2)
                a, b = chance.randrange(4), chance.randrange(4)
                term.append(On(x, a, chance.choice(SYMBOLS), y, b))
            terms.append(tuple(term))
        selected = {s: where() for s in streams if chance.random() < 0.3}
        queries.append(Query({s: window() for s in streams}, tuple(terms), selected))
    return queries


def random_arrivals(chance: random.Random, groups: tuple[int, ...], n: int) -> list[Raw]:
    """Bounded in number for one timestamp, so that no window of `random_queries` overflows."""
    rows, now, at_once = [], 0, 0
    for _ in range(n):
        step = chance.choice([0, 0, 1, 1, 2, 5]) if at_once < 2 else 1
        at_once = 0 if step else at_once + 1
        now += step
        attributes = tuple(chance.randrange(3) for _ in range(4))
        rows.append((chance.choice(groups), now, attributes))
    return arrivals(rows, groups, [i for i in range(n) if chance.random() < 0.1])
