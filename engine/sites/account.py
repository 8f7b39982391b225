"""`strategy=auto`: planned joins between sites, or everything shipped to one node, the hub.

The hub wins where results outgrow the rows they are made of: without windows nearly always. What
each hub would have cost by now is known at any moment, whatever the run itself does; so the run
can stay below the best of them, known afterwards, by one rule:

    before anything is spent, what was spent with it must not exceed what the cheapest hub costs

Where planned joins cannot keep it, everything goes to the hub that is the cheapest so far; where a
hub cannot, to another. Each thing that costs is such a step, decided before it is done: rows sent
to the hub, results sent from it, a synopsis, a probe. The cheapest hub itself always keeps the rule,
so there is always a step to take, and

    spent <= cost of the best hub, at every moment,    total = spent + moves charged

A move costs the rows the new hub lacks; it is charged, and not part of `spent`. Moving is always
within the rule, so a hub is also taken when it is the cheaper by far (`gains`).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from seustream.engine.sites.costs import UnitCosts, times

CHECK_UNITS = 10
GAIN = 0.2


@dataclass
class Account:
    """The account of a run: money spent, and the cost of each node as the hub. `query_node` None leaves out
    delivery. `hub` is where rows go, None for planned joins."""

    costs: UnitCosts
    query_node: int | None
    nodes: Sequence[int]
    hub: int | None = None
    spent: float = 0.0
    moved: float = 0.0
    moves: int = 0
    hubs: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.hubs = dict.fromkeys(self.nodes, 0.0)

    # --- what every hub would pay ---------------------------------------------------

    def arrived(self, stream: int, rows: float) -> None:
        """New rows: a hub has to be sent them."""
        for h in self.nodes:
            self.hubs[h] += times(rows, self.costs.w[stream][h])

    def joined(self, results: float) -> None:
        """New results: a hub has to deliver them."""
        for h in self.nodes:
            self.hubs[h] += self.delivery(h, results)

    def delivery(self, at: int, results: float) -> float:
        """Results from a node to the query node."""
        if self.query_node is None:
            return 0.0
        return times(results, self.costs.w[at][self.query_node])

    @property
    def best(self) -> float:
        """The cost of the cheapest hub."""
        return min(self.hubs.values())

    @property
    def leader(self) -> int:
        """The cheapest hub; of equals the lowest node."""
        return min(self.nodes, key=lambda h: (self.hubs[h], h))

    # --- what this run pays ----------------------------------------------------------

    def affords(self, cost: float) -> bool:
        return self.spent + cost <= self.best

    def pay(self, cost: float) -> None:
        self.spent += cost

    def most_results(self, at: int) -> float:
        """The most results that may be delivered from a node, not yet `joined`, before another hub
        would have been the cheaper one."""
        if self.query_node is None:
            return math.inf
        most, mine = math.inf, self.costs.w[at][self.query_node]
        for h in self.nodes:
            dearer = mine - self.costs.w[h][self.query_node]
            if dearer > 0:
                # An unreachable query node takes nothing from here while another reaches it.
                room = 0.0 if dearer == math.inf else (self.hubs[h] - self.spent) / dearer
                most = min(most, room)
        return most

    def go(self, hub: int, move: float) -> None:
        """To another hub, for what the rows it lacks cost on their way."""
        self.hub, self.moves = hub, self.moves + 1
        self.moved += move

    @property
    def total(self) -> float:
        return self.spent + self.moved


class Recent:
    """The last units, for the look every ten of them whether a hub would have been a gain."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.units = 0
        self._marks: deque[tuple[float, dict[int, float]]] = deque(maxlen=CHECK_UNITS + 1)
        self._mark()

    def _mark(self) -> None:
        self._marks.append((self.account.spent, dict(self.account.hubs)))

    def unit_over(self) -> bool:
        """Takes note of a unit's end; whether it is time to look."""
        self.units += 1
        self._mark()
        return self.units % CHECK_UNITS == 0

    def gains(self, hub: int, move: float) -> bool:
        """True if over the last units a hub would have saved a fifth, its move included."""
        spent, hubs = self._marks[0]
        own = self.account.spent - spent
        return self.account.hubs[hub] - hubs[hub] + move < (1 - GAIN) * own

    def best(self) -> int:
        """The hub that would have cost least over the last units."""
        hubs = self._marks[0][1]
        return min(self.account.nodes, key=lambda h: (self.account.hubs[h] - hubs[h], h))
