"""`strategy=auto`: planned joins between sites, or everything shipped to one node, the hub.

The hub wins where results outgrow the rows they are made of: without windows nearly always. So
the cost of both is kept count of, unit by unit, and the stores move when the hub is the cheaper:

1. every 10 units, if over those the hub would have cost less by a fifth, its move included;
2. at once, if the next unit, growing as the last did, would put the run above the best hub so far;
3. from one hub to another once it has lost half of what that move costs.

Rule 1 alone lets ten units without a window cost more than thirty at a hub; the others keep a run
within the cost of the best hub, known afterwards, and the moves charged (docs/decisions/0051).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.multijoin.costs import UnitCosts, times

CHECK_UNITS = 10
GAIN = 0.2
RECENT_UNITS = 3


@dataclass(frozen=True, slots=True)
class Unit:
    """What one time unit brought: the cost of the planned joins (None at a hub), new rows by site,
    results, and by site the rows alive at its end, which a move has to take along. After the last
    unit nothing moves."""

    planned: float | None
    rows: Sequence[int]
    results: int
    live: Sequence[int]
    last: bool = False


@dataclass
class Strategy:
    """Where blocks go: `hub` is None for planned joins. `query_node` None leaves out delivery."""

    costs: UnitCosts
    query_node: int | None
    nodes: Sequence[int]
    hub: int | None = None
    spent: float = 0.0
    migration: float = 0.0
    moves: list[tuple[int, int]] = field(default_factory=list)
    _hubs: list[list[float]] = field(default_factory=list)
    _own: list[float] = field(default_factory=list)

    def hub_cost(self, h: int, rows: Sequence[int], results: int) -> float:
        """What a unit costs at a hub."""
        w = self.costs.w
        shipped = sum(times(count, w[i][h]) for i, count in enumerate(rows))
        out = 0.0 if self.query_node is None else times(results, w[h][self.query_node])
        return shipped + out

    def after(self, unit: Unit) -> int | None:
        """Takes note of a unit and says where the next one's blocks go. A caller moves once every
        block is done, and pays `move_cost`."""
        hubs = [self.hub_cost(h, unit.rows, unit.results) for h in self.nodes]
        if self.hub is None:
            assert unit.planned is not None
            own = unit.planned
        else:
            own = hubs[self.nodes.index(self.hub)]
        self._hubs.append(hubs)
        self._own.append(own)
        self.spent += own
        to = None if unit.last else self._better(unit)
        if to is not None and to != self.hub:
            self.hub = to
            self.migration += self.move_cost(to, unit.live)
            self.moves.append((len(self._own), to))
        return self.hub

    def move_cost(self, to: int, live: Sequence[int]) -> float:
        """Sites keep their rows, so every move is one from the sites."""
        return sum(times(rows, self.costs.w[i][to]) for i, rows in enumerate(live))

    @property
    def own_costs(self) -> Sequence[float]:
        """What each unit cost, moves left out."""
        return self._own

    @property
    def best_costs(self) -> Sequence[float]:
        """What each unit would have cost at the best hub for it."""
        return [min(unit) for unit in self._hubs]

    @property
    def total(self) -> float:
        return self.spent + self.migration

    def _over(self, units: int) -> list[float]:
        """What the last units would have cost at each node."""
        return [sum(unit[h] for unit in self._hubs[-units:]) for h in range(len(self.nodes))]

    def _better(self, unit: Unit) -> int | None:
        regret = self.spent - min(self._over(len(self._hubs)))
        if self.hub is not None:
            span = min(RECENT_UNITS, len(self._hubs))
            recent = self._over(span)
            best = min(range(len(recent)), key=recent.__getitem__)
            gain = (recent[self.nodes.index(self.hub)] - recent[best]) / span
            dear = self.move_cost(self.nodes[best], unit.live)
            return self.nodes[best] if gain > 0 and regret + gain > dear / 2 else None
        latest = self._hubs[-1]
        best = min(range(len(latest)), key=latest.__getitem__)
        own, before, earlier = [*self._own[:-4:-1], 0.0, 0.0][:3]
        growth = max(0.0, min(own - before, before - earlier))
        excess = own + growth - latest[best]
        if own > latest[best] and regret + excess > 0:
            return self.nodes[best]
        if len(self._own) % CHECK_UNITS == 0:
            longer = self._over(CHECK_UNITS)
            best = min(range(len(longer)), key=longer.__getitem__)
            hub = longer[best] + self.move_cost(self.nodes[best], unit.live)
            if hub < (1 - GAIN) * sum(self._own[-CHECK_UNITS:]):
                return self.nodes[best]
        return None
