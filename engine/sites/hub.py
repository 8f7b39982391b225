"""The hub of `strategy=auto`: where blocks of all streams are joined.

A hub joins each block with the rows it has of the other streams. Rows come with the blocks that are
sent there. Rows that a block may see and that are not there are fetched from the sites, which keep
them whichever node is the hub. So any node can become the hub at any block, and one that has lost
its memory fetches it again. A block with more results than may go out from a hub waits for the
centre to forward it: from another node they would be cheaper.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from seustream.engine.sites import messages as m
from seustream.engine.sites.costs import times
from seustream.engine.sites.layout import SiteLayout
from seustream.engine.sites.model import BlockId, Partial, results_of, start
from seustream.engine.sites.outbox import Outbox
from seustream.engine.sites.store import BlockStore


@dataclass(slots=True)
class _Replica:
    """Rows of one stream: complete up to block `upto`, and of some blocks after it."""

    rows: BlockStore
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
    """The hub's role; a node that has not been a hub yet has empty replicas."""

    def __init__(self, layout: SiteLayout, node: int, outbox: Outbox) -> None:
        self.join, self.node, self.outbox = layout.join, node, outbox
        self.query_node, self.costs = layout.query_node, layout.costs
        self.replicas = [_Replica(BlockStore(self.join, k)) for k in range(len(self.join))]
        self.epoch: m.Epoch = (0, -1)
        self.watermark = -math.inf
        self.waiting: dict[BlockId, m.Ship] = {}
        self.held: dict[BlockId, tuple[m.Ship, list[Partial]]] = {}
        self.joined: dict[BlockId, float] = {}
        self.handlers: dict[type[m.SiteMessage], Callable[[int, Any], None]] = {
            m.Ship: self.on_ship,
            m.Fetched: self.on_fetched,
            m.Forward: self.on_forward,
            m.NewEpoch: self.on_new_epoch,
            m.Rebuild: lambda sender, rebuild: self.follow(rebuild.epoch),
        }

    def on_ship(self, sender: int, ship: m.Ship) -> None:
        self.follow(ship.epoch)
        self._expire(ship.watermark)
        if sender != ship.block[0]:
            self.outbox.ack(sender, ship)
        if ship.block in self.joined or ship.tau < self.watermark:
            return
        stream, no = ship.block
        replica = self.replicas[stream]
        replica.rows.store(row for row in ship.rows if row not in replica.rows.kept)
        replica.beyond |= {no}
        replica.whole(replica.upto)
        self.waiting[ship.block] = ship
        self._go_on()

    def on_fetched(self, sender: int, fetched: m.Fetched) -> None:
        self.outbox.answered(fetched.ref, by=sender)
        replica = self.replicas[fetched.stream]
        replica.rows.store(
            row
            for row in fetched.rows
            if row not in replica.rows.kept and row.end >= self.watermark
        )
        if fetched.after <= replica.upto:
            replica.whole(fetched.upto)
        self._go_on()

    def _go_on(self) -> None:
        """Joins blocks that have all rows they may see here; asks for the rows that the others
        lack."""
        for ship in list(self.waiting.values()):
            lacking = [
                k
                for k, upto in enumerate(ship.visible)
                if k != ship.block[0] and not self.replicas[k].has(upto)
            ]
            for k in lacking:
                replica, upto = self.replicas[k], ship.visible[k]
                but = tuple(sorted(no for no in replica.beyond if no <= upto))
                fetch = m.Fetch(k, replica.upto, upto, but, ship.tau)
                if (k, fetch.ref) not in self.outbox.unanswered:
                    self.outbox.repeat(k, fetch)
            if not lacking:
                del self.waiting[ship.block]
                self._join(ship)

    def _join(self, ship: m.Ship) -> None:
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
        self._report(ship, len(parts), going)

    def _report(self, ship: m.Ship, results: int, delivered: bool) -> None:
        joined = m.Joined(self.epoch, ship.block, ship.tau, results, delivered)
        self.outbox.repeat(self.epoch[1], joined)

    def _deliver(self, ship: m.Ship, parts: list[Partial]) -> None:
        source, w = ship.block[0], self.costs.w
        spent = times(len(ship.rows), w[source][self.node])
        if parts:
            spent += times(len(parts), w[self.node][self.query_node])
            what = (ship.block, ship.tau, ship.watermark, results_of(parts), spent)
            self.outbox.repeat(self.query_node, m.Deliver(*what))
        else:
            self.outbox.repeat(source, m.Done(ship.block, ship.tau, spent))

    def on_forward(self, sender: int, forward: m.Forward) -> None:
        self.outbox.answered(forward.ref, by=sender)
        if forward.block not in self.held:
            return
        ship, parts = self.held.pop(forward.block)
        if forward.to == self.node:
            self._deliver(ship, parts)
        else:
            self.outbox.repeat(forward.to, replace(ship, most=math.inf, moving=True))

    def on_new_epoch(self, sender: int, led: m.NewEpoch) -> None:
        self.outbox.ack(sender, led)
        self.follow(led.epoch)

    def follow(self, epoch: m.Epoch) -> None:
        """Follows another centre, or another life of it: blocks that wait for a Forward are
        reported to it."""
        if epoch <= self.epoch:
            return
        self.epoch = epoch
        self.outbox.forget(m.Joined)
        for ship, parts in self.held.values():
            self._report(ship, len(parts), delivered=False)

    def _expire(self, watermark: float) -> None:
        if watermark <= self.watermark:
            return
        self.watermark = watermark
        self.joined = {block: tau for block, tau in self.joined.items() if tau >= watermark}
        for replica in self.replicas:
            replica.rows.expire(watermark)
