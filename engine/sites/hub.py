"""A hub: joins blocks of all streams with what it has of the others.

Rows come with the blocks that are sent here; what a block may see and is not here is fetched from
the sites, which is what a move costs. So any node can become the hub at any block, and one that has
lost its memory fetches it again.

A block whose results are more than it was told may go out from here waits to be told where to go:
from another node they would be cheaper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from engine.sites.costs import UnitCosts, times
from engine.sites.messages import (
    Ack,
    Deliver,
    Done,
    Epoch,
    Fetch,
    Fetched,
    Forward,
    Joined,
    Led,
    Ship,
    ref,
)
from engine.sites.model import BlockId, Join, Partial, start
from engine.sites.outbox import Outbox
from engine.sites.site import results_of
from engine.sites.store import RowStore


@dataclass(slots=True)
class _Replica:
    """Rows of one stream: whole up to block `upto`, and of some blocks after it."""

    rows: RowStore
    upto: int = -1
    beyond: frozenset[int] = frozenset()

    def has(self, upto: int) -> bool:
        return self.upto >= upto

    def whole(self, upto: int) -> None:
        self.upto = max(self.upto, upto)
        while self.upto + 1 in self.beyond:
            self.upto += 1
        self.beyond = frozenset(no for no in self.beyond if no > self.upto)


class Hub:
    """The role; a node that is none yet has empty replicas."""

    def __init__(
        self, join: Join, node: int, outbox: Outbox, query_node: int, costs: UnitCosts
    ) -> None:
        self.join, self.node, self.outbox, self.query_node = join, node, outbox, query_node
        self.costs = costs
        self.replicas = [_Replica(RowStore(join, k)) for k in range(len(join))]
        self.epoch: Epoch = (0, -1)
        self.watermark = -math.inf
        self.waiting: dict[BlockId, Ship] = {}
        self.held: dict[BlockId, tuple[Ship, list[Partial]]] = {}
        self.joined: dict[BlockId, float] = {}

    def on_ship(self, sender: int, ship: Ship) -> None:
        self.follow(ship.epoch)
        self._expire(ship.watermark)
        if sender != ship.block[0]:
            self.outbox.say(sender, Ack(ref(ship)))
        if ship.block in self.joined or ship.tau < self.watermark:
            return
        stream, no = ship.block
        replica = self.replicas[stream]
        replica.rows.store(row for row in ship.rows if row not in replica.rows.kept)
        replica.beyond |= {no}
        replica.whole(replica.upto)
        self.waiting[ship.block] = ship
        self._go_on()

    def on_fetched(self, sender: int, found: Fetched) -> None:
        self.outbox.answered(ref(found), by=sender)
        replica = self.replicas[found.stream]
        replica.rows.store(
            row for row in found.rows if row not in replica.rows.kept and row.end >= self.watermark
        )
        if found.after <= replica.upto:
            replica.whole(found.upto)
        self._go_on()

    def _go_on(self) -> None:
        """Joins what has all it may see here, asks for what the others lack."""
        for ship in list(self.waiting.values()):
            lacking = [
                k
                for k, upto in enumerate(ship.visible)
                if k != ship.block[0] and not self.replicas[k].has(upto)
            ]
            for k in lacking:
                replica, upto = self.replicas[k], ship.visible[k]
                but = tuple(sorted(no for no in replica.beyond if no <= upto))
                fetch = Fetch(k, replica.upto, upto, but, ship.tau)
                if (k, ref(fetch)) not in self.outbox.unanswered:
                    self.outbox.insist(k, fetch)
            if not lacking:
                del self.waiting[ship.block]
                self._join(ship)

    def _join(self, ship: Ship) -> None:
        stream, _ = ship.block
        parts = [part for row in ship.rows if (part := start(self.join, row, ship.members)).alive]
        visited, left = 1 << stream, set(range(len(self.join))) - {stream}
        while left and parts:
            k = min(k for k in left if self.join.linked(visited, k))
            parts = self.replicas[k].rows.probe(parts, ship.visible[k])
            visited, left = visited | 1 << k, left - {k}
        self.joined[ship.block] = ship.tau
        going = len(parts) <= ship.most
        if going:
            self._deliver(ship, parts)
        else:
            self.held[ship.block] = ship, parts
        self._tell(ship, len(parts), going)

    def _tell(self, ship: Ship, results: int, delivered: bool) -> None:
        told = Joined(self.epoch, ship.block, ship.tau, results, delivered)
        self.outbox.insist(self.epoch[1], told)

    def _deliver(self, ship: Ship, parts: list[Partial]) -> None:
        source, w = ship.block[0], self.costs.w
        spent = times(len(ship.rows), w[source][self.node])
        if parts:
            spent += times(len(parts), w[self.node][self.query_node])
            found = results_of(parts)
            results = Deliver(ship.block, ship.tau, ship.watermark, found, spent)
            self.outbox.insist(self.query_node, results)
        else:
            self.outbox.insist(source, Done(ship.block, ship.tau, spent))

    def on_forward(self, sender: int, forward: Forward) -> None:
        self.outbox.answered(("joined", *forward.block), by=sender)
        if forward.block not in self.held:
            return
        ship, parts = self.held.pop(forward.block)
        if forward.to == self.node:
            self._deliver(ship, parts)
        else:
            self.outbox.insist(forward.to, replace(ship, most=math.inf, moving=True))

    def on_led(self, sender: int, led: Led) -> None:
        self.outbox.say(sender, Ack(ref(led)))
        self.follow(led.epoch)

    def follow(self, epoch: Epoch) -> None:
        """Another centre, or another life of it: who waits to be told where to go asks there."""
        if epoch <= self.epoch:
            return
        self.epoch = epoch
        self.outbox.forget(Joined)
        for ship, parts in self.held.values():
            self._tell(ship, len(parts), delivered=False)

    def _expire(self, watermark: float) -> None:
        if watermark <= self.watermark:
            return
        self.watermark = watermark
        self.joined = {block: tau for block, tau in self.joined.items() if tau >= watermark}
        for replica in self.replicas:
            replica.rows.expire(watermark)
