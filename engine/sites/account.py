"""`strategy=auto`: planned joins between sites, or everything shipped to one node, the hub.

The hub wins where results outgrow the rows they are made of; without windows, nearly always. The
cost that each hub would have had so far is known at any moment, whatever the run itself does. So
the run can stay below the best of them in hindsight, by one rule:

    before anything is spent, the total including it must not exceed the cost of the cheapest hub

Where planned joins cannot keep the rule, everything goes to the hub that is the cheapest so far;
where a hub cannot, to another. Each thing that costs is such a step, decided before it is done:
rows sent to the hub, results sent from it, a synopsis, a probe. The cheapest hub itself always
keeps the rule, so there is always a step to take, and

    spent <= cost of the best hub, at every moment,    total = spent + moves charged

A move costs the rows that the new hub lacks. It is charged, but is not part of `spent`. Moving is
always within the rule, so a hub is also taken when it is cheaper by far (`gains`).
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
    """The account of a run: the cost so far, and the cost of each node as the hub. If `query_node`
    is None, delivery is not counted. `hub` is where rows go, None for planned joins."""

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
        """Counts new rows: a hub has to be sent them."""
        for h in self.nodes:
            self.hubs[h] += times(rows, self.costs.w[stream][h])

    def joined(self, results: float) -> None:
        """Counts new results: a hub has to deliver them."""
        for h in self.nodes:
            self.hubs[h] += self.delivery(h, results)

    def delivery(self, at: int, results: float) -> float:
        """Returns the cost of sending results from a node to the query node."""
        if self.query_node is None:
            return 0.0
        return times(results, self.costs.w[at][self.query_node])

    @property
    def best(self) -> float:
        """The cost of the cheapest hub."""
        return min(self.hubs.values())

    @property
    def leader(self) -> int:
        """The cheapest hub; among equals, the lowest node."""
        return min(self.nodes, key=lambda h: (self.hubs[h], h))

    # --- what this run pays ----------------------------------------------------------

    def affords(self, cost: float) -> bool:
        return self.spent + cost <= self.best

    def pay(self, cost: float) -> None:
        self.spent += cost

    def most_results(self, at: int) -> float:
        """Returns the most results, not yet `joined`, that may be delivered from a node before
        another hub would have been cheaper."""
        if self.query_node is None:
            return math.inf
        most, mine = math.inf, self.costs.w[at][self.query_node]
        for h in self.nodes:
            dearer = mine - self.costs.w[h][self.query_node]
            if dearer > 0:
                # No results are delivered from here if the query node is unreachable while another
                # hub reaches it.
                room = 0.0 if dearer == math.inf else (self.hubs[h] - self.spent) / dearer
                most = min(most, room)
        return most

    def go(self, hub: int, move: float) -> None:
        """Moves to another hub, at the cost of sending it the rows it lacks."""
        self.hub, self.moves = hub, self.moves + 1
        self.moved += move

    @property
    def total(self) -> float:
        return self.spent + self.moved


class Recent:
    """The last units, to check every ten of them whether a hub would have been a gain."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.units = 0
        self._marks: deque[tuple[float, dict[int, float]]] = deque(maxlen=CHECK_UNITS + 1)
        self._mark()

    def _mark(self) -> None:
        self._marks.append((self.account.spent, dict(self.account.hubs)))

    def unit_over(self) -> bool:
        """Records the end of a unit; returns whether it is time to check."""
        self.units += 1
        self._mark()
        return self.units % CHECK_UNITS == 0

    def gains(self, hub: int, move: float) -> bool:
        """Returns whether a hub would have saved a fifth over the last units, its move included."""
        spent, hubs = self._marks[0]
        own = self.account.spent - spent
        return self.account.hubs[hub] - hubs[hub] + move < (1 - GAIN) * own

    def best(self) -> int:
        """Returns the hub that would have cost least over the last units."""
        hubs = self._marks[0][1]
        return min(self.account.nodes, key=lambda h: (self.account.hubs[h] - hubs[h], h))
