"""The synopsis centre: accepts blocks one at a time, decides which rows can join and where they go.

A block is accepted once its stream's earlier blocks are. It sees every block accepted before it,
which `visible` gives to the sites by number. Filter and order come from the synopses and unit costs
of that moment.

A centre forgets everything when it dies. The next one asks every site what it holds (Rebuild) and
accepts nothing until all have answered. A higher epoch fences off the plans of the old one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from seustream.engine.sites import messages as m
from seustream.engine.sites.costs import UnitCosts
from seustream.engine.sites.errors import PlannerLimit, SynopsisUnderflow
from seustream.engine.sites.layout import SiteLayout
from seustream.engine.sites.model import BlockId, Entry
from seustream.engine.sites.outbox import Outbox
from seustream.engine.sites.planner import PLANNERS, SMJE_SITES, Task, plan, smje
from seustream.engine.sites.synopsis import Size, Synopses


@dataclass(slots=True)
class _Accepted:
    """A block that is in the synopses and waits for an order of finite cost."""

    delta: m.Delta
    keep: dict[Entry, int]
    visible: tuple[int, ...]
    size: Size


class Centre:
    """The centre's role. Every candidate has one, and one of them is active. `sites[k]` is stream
    k's node."""

    def __init__(
        self,
        layout: SiteLayout,
        node: int,
        outbox: Outbox,
        costs: UnitCosts | None = None,
        attempt: int = 0,
    ) -> None:
        self.layout, self.node, self.outbox = layout, node, outbox
        self.join, self.costs = layout.join, costs or layout.costs
        self.planner = PLANNERS[layout.planner]
        if self.planner is smje and len(self.join) > SMJE_SITES:
            raise PlannerLimit(
                f"smje stops at {SMJE_SITES} sites, here are {len(self.join)}", "use auto"
            )
        first = layout.first_epoch
        self.epoch, self.attempt = (0 if attempt else 1, first[1]), attempt
        self.active = first[1] == node and attempt == 0
        self.query_node = layout.query_node if layout.deliver else None
        self.members = (True,) * self.join.members
        self.counters: Counter[str] = Counter()
        self.on_accept: Callable[[m.Delta | m.Announce, m.Plan], None] = lambda delta, plan: None
        self.handlers: dict[type[m.SiteMessage], Callable[[int, Any], None]] = {
            m.Delta: self.on_delta,
            m.Announce: self.on_delta,
            m.Expire: self.on_expire,
            m.Standing: self.on_standing,
            m.Takeover: self.on_takeover,
            m.Stale: self.on_stale,
            m.Rebuild: self.on_rebuild,
        }
        self._start_empty()

    def _start_empty(self) -> None:
        n = len(self.join)
        self.synopses = Synopses(self.join, self.layout.kind)
        self.expected: list[list[int]] = [[] for _ in range(n)]
        self.next = [0] * n
        self.visible = [-1] * n
        self.low = [-math.inf] * n
        self.first_open = [0] * n
        self.next_expire = [0] * n
        self.held: dict[BlockId, m.Delta | m.Announce] = {}
        self.expires: dict[BlockId, m.Expire] = {}
        self.replies: dict[BlockId, m.Plan] = {}
        self.waiting: dict[BlockId, _Accepted] = {}
        self.standings: dict[int, m.Standing] | None = None

    @property
    def rebuilding(self) -> bool:
        return self.standings is not None

    # --- blocks ---------------------------------------------------------------

    def on_delta(self, sender: int, delta: m.Delta | m.Announce) -> None:
        if not self._is_mine(delta.epoch):
            return
        i, block = delta.stream, (delta.stream, delta.no)
        self.low[i] = max(self.low[i], delta.low)
        self.first_open[i] = max(self.first_open[i], delta.first_open)
        for done in [b for b in self.replies if b[0] == i and b[1] < self.first_open[i]]:
            del self.replies[done]
        if delta.no < self.first_open[i]:
            return
        if block in self.replies:
            self.outbox.send(sender, self.replies[block])
            return
        if block not in self.waiting:
            self.held[block] = delta
        self._accept_all()
        if block not in self.replies:
            self.outbox.send(sender, m.Wait(self.epoch, *block))

    def _is_mine(self, epoch: m.Epoch) -> bool:
        """Returns whether a message's epoch is the one that this centre leads. A later epoch ends
        this one; if this node led it and has forgotten, the centre starts afresh."""
        if epoch > self.epoch:
            if epoch[1] == self.node:
                self.lead(epoch)
            else:
                self._step_down(epoch)
        return self.active and epoch == self.epoch

    def _expected(self, k: int) -> int:
        return self.expected[k][0] if self.expected[k] else self.next[k]

    def _accept_all(self) -> None:
        """Accepts every held block whose turn it is; none is skipped."""
        if self.rebuilding:
            return
        going = True
        while going:
            going = False
            for k in range(len(self.join)):
                delta = self.held.pop((k, self._expected(k)), None)
                if delta is not None:
                    self._accept(delta)
                    going = True

    def _accept(self, delta: m.Delta | m.Announce) -> None:
        assert isinstance(delta, m.Delta)
        i = delta.stream
        keep = self.synopses.filter(i, delta.counts)
        size = self.synopses.sizes(i, keep)
        self._plan(_Accepted(delta, keep, self._take(delta), size))
        self.synopses.sites[i].add(delta.counts)

    def _take(self, delta: m.Delta | m.Announce) -> tuple[int, ...]:
        """Takes a block whose turn has come, which later blocks will see; returns the blocks that
        it sees."""
        i, visible = delta.stream, tuple(self.visible)
        self.visible[i] = max(self.visible[i], delta.no)
        if self.expected[i]:
            self.expected[i].pop(0)
        self.next[i] = max(self.next[i], delta.no + 1)
        return visible

    def _plan(self, block: _Accepted) -> None:
        delta = block.delta
        order: tuple[int, ...] = ()
        predicted = 0.0
        if block.keep:
            found = plan(self._task(delta.stream, block.size), self.planner)
            if found is None:
                self.waiting[delta.stream, delta.no] = block
                return
            order, predicted = found.sites, found.cost
        self._answer(delta, block.keep, order, block.visible, predicted)

    def _task(self, stream: int, size: Size) -> Task:
        linked = self.join.linked if len(self.join.classes) > 1 else None
        return Task(len(self.join), stream, size, self.costs, self.query_node, linked)

    def _answer(
        self,
        delta: m.Delta | m.Announce,
        keep: dict[Entry, int],
        order: tuple[int, ...],
        visible: tuple[int, ...],
        predicted: float,
        way: m.ToHub | None = None,
        account: m.AccountState | None = None,
    ) -> None:
        block = (self.epoch, delta.stream, delta.no, delta.tau)
        going = (visible, min(self.low), self.members, predicted)
        answer = m.Plan(*block, keep, order, *going, way, account)
        self.replies[delta.stream, delta.no] = answer
        self.on_accept(delta, answer)
        self.outbox.send(delta.stream, answer)

    def set_costs(self, costs: UnitCosts) -> None:
        """Applies new unit costs: blocks without a way may have one now, and the centre may
        move."""
        self.costs = costs
        if not self.active:
            return
        again, self.waiting = self.waiting, {}
        for block in again.values():
            self._plan(block)
        to = costs.move(self.node, range(len(self.join)), self.layout.candidates)
        if to != self.node:
            self.outbox.repeat(to, m.Takeover(self.epoch))

    # --- deletions ------------------------------------------------------------

    def on_expire(self, sender: int, message: m.Expire) -> None:
        if not self._is_mine(message.epoch) or self.rebuilding:
            return
        self.outbox.ack(sender, message)
        k = message.stream
        self.expires[k, message.number] = message
        while (due := self.expires.pop((k, self.next_expire[k]), None)) is not None:
            self.next_expire[k] += 1
            try:
                self.synopses.sites[k].remove(due.counts)
            except SynopsisUnderflow:
                self.counters["underflows"] += 1
                self.lead(self.epoch)
                return
        for number in [key for key in self.expires if key[0] == k and key[1] < self.next_expire[k]]:
            del self.expires[number]

    # --- changing places --------------------------------------------------------

    def on_takeover(self, sender: int, message: m.Takeover) -> None:
        """Leads, unless another node is further ahead, or the sender is being asked already."""
        asking = self.standings is not None and sender not in self.standings
        if asking and message.epoch <= self.epoch:
            return
        if message.epoch >= self.epoch:
            self.lead(message.epoch)
        else:
            self.outbox.send(sender, m.Stale(self.epoch))

    def lead(self, after: m.Epoch) -> None:
        """Becomes the centre of a later epoch than `after`: asks every site what it holds."""
        self._start_empty()
        self.outbox.forget(m.Rebuild, m.Ask)
        self.epoch, self.active = (max(after, self.epoch)[0] + 1, self.node), True
        self.standings = {}
        self.counters["rebuilds"] += 1
        for k in range(len(self.join)):
            self.outbox.repeat(k, m.Rebuild(self.epoch, self.attempt))

    def on_rebuild(self, sender: int, message: m.Rebuild) -> None:
        """Steps down if another node leads a later epoch."""
        if message.epoch > self.epoch and message.epoch[1] != self.node:
            self._step_down(message.epoch)

    def _step_down(self, epoch: m.Epoch) -> None:
        self._start_empty()
        self.outbox.forget(m.Rebuild, m.Takeover, m.Ask)
        self.epoch, self.active = epoch, False

    def on_stale(self, sender: int, message: m.Stale) -> None:
        """Learns of a later epoch at a site: leads the next one if this node led that epoch,
        otherwise steps down."""
        if not self.active or message.epoch < self.epoch:
            return
        if message.epoch[1] == self.node:
            self.lead(message.epoch)
        elif message.epoch > self.epoch:
            self._step_down(message.epoch)

    def on_standing(self, sender: int, standing: m.Standing) -> None:
        if (standing.epoch, standing.attempt) != (self.epoch, self.attempt) or not self.active:
            return
        self.outbox.answered(standing.ref, by=sender)
        if self.standings is None or standing.stream in self.standings:
            return
        self.standings[standing.stream] = standing
        if len(self.standings) < len(self.join):
            return
        for k, known in self.standings.items():
            self.synopses.sites[k].add(known.counts)
            self.expected[k] = sorted(known.pending)
            self.next[k], self.visible[k] = known.next, known.planned
            self.low[k] = max(self.low[k], known.low)
            self.first_open[k] = max(self.first_open[k], known.first_open)
            self.next_expire[k] = known.next_expire
        answers, self.standings = self.standings, None
        self._resume(answers)
        self._accept_all()

    def _resume(self, standings: dict[int, m.Standing]) -> None:
        """Takes up the rest of the sites' answers, once all have answered."""
