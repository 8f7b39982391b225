"""Lottery routing: each site sends a block's rows to the site that let the fewest through.

A site remembers for each other how many rows it sent there and how many came of them. The next
stop is the one with the highest share `sf = (sent + 1)/(came + 1)` among those not yet visited, the
lowest of equals; nothing is drawn, and unit costs do not matter. The 1s make an unseen site 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from engine.sites.costs import UnitCosts, times
from engine.sites.model import Counts
from engine.sites.sizes import Synopses


@dataclass(frozen=True, slots=True)
class Trip:
    """A block's way: the nodes in order, the rows that left each, and whether it got through."""

    nodes: tuple[int, ...]
    rows: tuple[int, ...]
    through: bool

    @property
    def results(self) -> int:
        return self.rows[-1] if self.through else 0

    def cost(self, costs: UnitCosts, sink: int | None) -> float:
        total = 0.0
        for a, b, rows in zip(self.nodes, self.nodes[1:], self.rows, strict=False):
            total += times(rows, costs.w[a][b])
        if self.through and sink is not None:
            total += times(self.rows[-1], costs.w[self.nodes[-1]][sink])
        return total


class Lottery:
    """What all sites remember."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.sent = [[0] * n for _ in range(n)]
        self.came = [[0] * n for _ in range(n)]

    def share(self, at: int, to: int) -> Fraction:
        return Fraction(self.sent[at][to] + 1, self.came[at][to] + 1)

    def next(self, at: int, left: set[int]) -> int:
        """Shares compared by cross-multiplication; of equals the lowest site."""
        sent, came = self.sent[at], self.came[at]
        best = -1
        for k in sorted(left):
            if best < 0 or (sent[k] + 1) * (came[best] + 1) > (sent[best] + 1) * (came[k] + 1):
                best = k
        return best

    def route(self, source: int, block: Counts, synopses: Synopses) -> Trip:
        """Sends a block round, by counts, and remembers."""
        nodes, rows = [source], [sum(block.values())]
        left, at, current = set(range(self.n)) - {source}, source, dict(block)
        while left and current:
            to = self.next(at, left)
            held = synopses.sites[to].by_class[0]
            joined = {e: c * held.count(e[0]) for e, c in current.items() if held.has(e[0])}
            self.sent[at][to] += rows[-1]
            self.came[at][to] += sum(joined.values())
            left.discard(to)
            at, current = to, joined
            nodes.append(to)
            rows.append(sum(joined.values()))
        return Trip(tuple(nodes), tuple(rows), not left)
