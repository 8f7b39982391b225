"""Unit costs: the cost of moving one row from one node to another.

Nodes are the sites 0..n-1 and the others that take part: the query node, candidates for the centre.
Costs need be neither symmetric nor metric; infinity means unreachable.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seustream.engine.sites.errors import BadCosts

ENTRY = 0.25
"""The weight of a synopsis entry, in rows."""

MOST = 1e100
"""The largest cost but infinity: sums of many, times all rows, stay finite."""

MOVE_GAIN = 0.2
"""The centre moves only if the sum of its distances falls by more than this fraction."""


@dataclass(frozen=True, slots=True)
class UnitCosts:
    """`w[a][b]` is the cost of one row from a to b. Immutable; a change is a new `version`."""

    w: tuple[tuple[float, ...], ...]
    version: int = 0

    def __post_init__(self) -> None:
        nodes = len(self.w)
        for a, row in enumerate(self.w):
            if len(row) != nodes:
                raise BadCosts(
                    f"row {a} has {len(row)} costs, there are {nodes} nodes",
                    "unit costs are a square matrix",
                )
            for b, cost in enumerate(row):
                if cost != cost:
                    raise BadCosts(f"cost from {a} to {b} is NaN", "infinity means unreachable")
                if cost < 0:
                    raise BadCosts(f"cost from {a} to {b} is {cost}", "costs are 0 or more")
                if MOST < cost < math.inf:
                    what = f"cost from {a} to {b} is {cost:g}"
                    raise BadCosts(
                        what, f"one is at most {MOST:g}, or inf, which means unreachable"
                    )
            if row[a] != 0:
                raise BadCosts(f"cost from {a} to itself is {row[a]}", "it is 0 by definition")

    @classmethod
    def of(cls, rows: Sequence[Sequence[float]], version: int = 0) -> UnitCosts:
        return cls(tuple(tuple(row) for row in rows), version)

    def __len__(self) -> int:
        return len(self.w)

    def distance(self, node: int, sources: Iterable[int]) -> float:
        """Returns the cost from all sources to the node and back."""
        return sum(self.w[i][node] + self.w[node][i] for i in sources)

    def centre(self, sources: Sequence[int], candidates: Iterable[int] | None = None) -> int:
        """Returns the node where a centre costs least; among equals, the lowest node."""
        among = sorted(sources if candidates is None else candidates)
        return min(among, key=lambda node: (self.distance(node, sources), node))

    def move(self, now: int, sources: Sequence[int], candidates: Iterable[int]) -> int:
        """Returns the node where the centre should be, given where it is. Small gains do not move
        it, so that it does not wander with fluctuating costs."""
        best = self.centre(sources, candidates)
        here, there = self.distance(now, sources), self.distance(best, sources)
        return best if there < here * (1 - MOVE_GAIN) else now

    def metric_closure(self) -> UnitCosts:
        """Returns the costs of the cheapest ways, which may lead over other nodes."""
        w = [list(row) for row in self.w]
        nodes = range(len(w))
        for via in nodes:
            for a in nodes:
                for b in nodes:
                    w[a][b] = min(w[a][b], w[a][via] + w[via][b])
        return UnitCosts.of(w, self.version)


def times(units: float, cost: float) -> float:
    """Returns units at a unit cost; an unreachable node costs infinity even for nothing (0 times
    infinity)."""
    return math.inf if cost == math.inf else units * cost
