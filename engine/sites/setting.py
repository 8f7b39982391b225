"""The experiment's setting: random unit costs and random streams, by a seed.

Nodes 0..n-1 are sites, node n is the query node. Unit costs are 1..10; each site gets about five
rows a time unit, with keys 1..20. The generator is plain Python's, so that a seed means the same
everywhere.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from engine.sites.costs import UnitCosts

UNITS, RATE, DOMAIN, DEAREST = 30, 5, 20, 10


@dataclass(frozen=True, slots=True)
class Setting:
    """What one run has: costs, and `keys[t][i]`, the keys of site i's block at time t."""

    n: int
    costs: UnitCosts
    keys: tuple[tuple[tuple[int, ...], ...], ...]

    @property
    def query_node(self) -> int:
        return self.n

    @property
    def sources(self) -> range:
        return range(self.n)

    @property
    def rows(self) -> int:
        return sum(len(block) for unit in self.keys for block in unit)


def setting(seed: int, n: int, units: int = UNITS) -> Setting:
    """The setting of one seed; the paper's has 30 units and seeds 1000·n + s."""
    chance = random.Random(seed)
    w = [[0] * (n + 1) for _ in range(n + 1)]
    for a in range(n + 1):
        for b in range(a + 1, n + 1):
            w[a][b] = w[b][a] = 1 + int(chance.random() * DEAREST)
    keys = tuple(
        tuple(
            tuple(1 + int(chance.random() * DOMAIN) for _ in range(_poisson(chance)))
            for _ in range(n)
        )
        for _ in range(units)
    )
    return Setting(n, UnitCosts.of(w), keys)


def _poisson(chance: random.Random) -> int:
    """Knuth's way."""
    k, p, floor = 0, 1.0, math.exp(-RATE)
    while True:
        p *= chance.random()
        if p <= floor:
            return k
        k += 1
