"""A site: keeps its stream's rows, asks the centre about each new block, probes for others.

A block is PENDING until its plan arrives, PLANNED while its rows are on their way, then DONE and
forgotten. Every row is stored at once, even if the filter rejects it: it may match later. The site
sends a block's surviving rows to the first site of the order. Each site joins arriving rows with
its own rows up to the number that the plan gives (`visible`), so that a combination is found
exactly once.

Rows are deleted when their windows end before the watermark. No unfinished or future block of any
stream lies before it.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from seustream.engine.sites import messages as m
from seustream.engine.sites.costs import times
from seustream.engine.sites.errors import BadKey, BlockGap, FeederBlocked, LateBlock
from seustream.engine.sites.layout import SiteLayout
from seustream.engine.sites.model import (
    BlockRows,
    Entry,
    Partial,
    SiteRow,
    Stored,
    counts,
    results_of,
    start,
)
from seustream.engine.sites.outbox import Outbox
from seustream.engine.sites.store import BlockStore, Store


class SiteState(enum.Enum):
    PENDING = "pending"
    PLANNED = "planned"


@dataclass(slots=True)
class _Open:
    """A block not yet done; `begin` is the earliest time that matters for its results."""

    tau: float
    begin: float
    counts: dict[Entry, int]
    rows: list[Stored]
    state: SiteState = SiteState.PENDING


class Site:
    """The site of one stream. `on_plan` is called with each plan. `on_over` is called with each
    block whose rows went somewhere, once nothing of it is under way any more. `on_watermark`
    decides what is deleted when plans bring watermarks."""

    def __init__(
        self,
        layout: SiteLayout,
        stream: int,
        outbox: Outbox,
        store: Store | None = None,
        forgot: bool = False,
    ) -> None:
        self.layout, self.stream, self.outbox = layout, stream, outbox
        self.join, self.costs, self.query_node = layout.join, layout.costs, layout.query_node
        self.epoch, self.attempt = layout.first_epoch, 0
        self.store: Store = store or BlockStore(self.join, stream)
        self.forgot = forgot
        self.open: dict[int, _Open] = {}
        self.next, self.next_expire, self.planned = 0, 0, -1
        self.tau = self.watermark = -math.inf
        self.suspects: set[int] = set()
        self.asked: int | None = None
        self.probed: dict[tuple[int, int, int], float] = {}
        self.counters: Counter[str] = Counter()
        self.on_plan: Callable[[m.Plan], None] = lambda plan: None
        self.on_over: Callable[[m.Done], None] = lambda done: None
        self.on_watermark: Callable[[float], None] = self.advance
        self.handlers: dict[type[m.SiteMessage], Callable[[int, Any], None]] = {
            m.Plan: self.on_plan_message,
            m.Probe: self.on_probe,
            m.Done: self.on_done,
            m.Rebuild: self.on_rebuild,
            m.Wait: self.on_wait,
            m.Ack: self.on_ack,
            m.Stale: self.on_stale,
        }

    # --- what the feeder does -----------------------------------------------

    @property
    def ready(self) -> bool:
        """Returns whether another block may come."""
        return len(self.open) < self.layout.max_pending

    @property
    def low(self) -> float:
        """The time before which no unfinished or future block of this stream lies."""
        return self.open[self.first_open].begin if self.open else self.tau

    @property
    def first_open(self) -> int:
        return min(self.open, default=self.next)

    def submit(self, block: BlockRows) -> None:
        """Takes a block whole or not at all; ignores one whose number it had before."""
        if self.forgot and block.no is not None:
            self._resume(block.no)
        no = self.next if block.no is None else block.no
        if no < self.next:
            self.counters["repeated blocks"] += 1
            return
        if no > self.next:
            raise BlockGap(f"block {no} of stream {self.stream} came, {self.next} is the next")
        begin = block.tau
        if self.join.by_row:
            begin = min((row.t for row in block.rows), default=block.tau)
        if begin < self.tau:
            self.counters["late blocks"] += 1
            raise LateBlock(
                f"a block of stream {self.stream} closes at {begin}, one at {self.tau} came",
                "closing times of a stream never fall",
            )
        if not self.ready:
            raise FeederBlocked(f"site {self.stream} has {len(self.open)} open blocks")
        rows = [
            stored
            for index, row in self._admitted(block.rows)
            if (stored := self._stored(row, block.tau, (self.stream, no, index))) is not None
        ]
        self.next, self.tau = no + 1, block.tau
        self.open[no] = _Open(block.tau, begin, counts(map(self.entry, rows)), rows)
        if len(self.join) == 1:
            self._answer_alone(no)
        else:
            self.store.store(rows)
            self._ask(no)

    def _admitted(self, rows: Sequence[SiteRow]) -> list[tuple[int, SiteRow]]:
        """Returns the rows, with their places, that pass the conditions over this stream alone."""
        kept = list(enumerate(rows))
        for residual in self.join.residuals:
            if residual.streams == (self.stream,) and kept:
                held = residual.among([(row.payload,) for _, row in kept])
                kept = [one for one, holds in zip(kept, held, strict=True) if holds]
        return kept

    def _stored(self, row: SiteRow, tau: float, tid: tuple[int, int, int]) -> Stored | None:
        """Returns the row in the form in which it is kept; counts it and returns None if it can
        join nothing."""
        ends = tuple(row.t + windows[self.stream] for windows in self.join.windows)
        when = row.t if self.join.by_row else tau
        reason, values = "", None
        if row.t > tau:
            reason = "rows after their block"
        elif not any(when <= end for end in ends):
            reason = "expired rows"
        else:
            domain = self.join.streams[self.stream].domain
            try:
                values = self.join.values(self.stream, row.keys)
                if values is None:
                    reason = "rows that equal nothing"
                elif domain is not None and not domain.issuperset(values):
                    reason = "rows out of their domain"
            except BadKey:
                reason = "rows with bad keys"
        if reason or values is None:
            self.counters[reason] += 1
            return None
        kept = row.t + self.join.horizons[self.stream] if self.join.horizons else -math.inf
        return Stored(tid, values, row.t, when, ends, row.payload, kept)

    def entry(self, row: Stored) -> Entry:
        return tuple(map(self.layout.kind.entry, row.values))

    def _ask(self, no: int) -> None:
        b = self.open[no]
        mine = (self.epoch, self.stream, no, b.tau, b.counts, self.low, self.first_open)
        self.outbox.repeat(self.epoch[1], m.Delta(*mine))

    def _answer_alone(self, no: int) -> None:
        """Answers a block of a join of one stream: every row is a result."""
        block = self.open[no]
        block.state = SiteState.PLANNED
        parts = [start(self.join, row) for row in block.rows]
        self._send_results((self.stream, no), block.tau, parts)

    # --- what the centre sends -------------------------------------------------

    def take(self, plan: m.Plan) -> list[Stored] | None:
        """Returns the rows of a block whose plan has come, or None if the block awaits no plan."""
        block = self.open.get(plan.no)
        if plan.epoch != self.epoch or block is None or block.state is not SiteState.PENDING:
            return None
        self.outbox.answered(("delta", self.stream, plan.no))
        self._centre_lives()
        self.planned = max(self.planned, plan.no)
        self.on_plan(plan)
        rows, block.rows, block.state = block.rows, [], SiteState.PLANNED
        return rows

    def on_plan_message(self, sender: int, plan: m.Plan) -> None:
        if plan.epoch != self.epoch:
            return
        if (rows := self.take(plan)) is not None:
            parts = [
                part
                for row in rows
                if self.entry(row) in plan.keep
                and (part := start(self.join, row, plan.members)).alive
            ]
            if parts:
                mine, first = (self.stream, plan.no), plan.order[0]
                way = (plan.order, 0, plan.visible, plan.watermark, tuple(parts))
                spent = times(len(parts), self.costs.w[self.stream][first])
                self.outbox.repeat(first, m.Probe(mine, plan.tau, *way, spent))
            else:
                self._finish(plan.no)
        self.on_watermark(plan.watermark)

    def on_wait(self, sender: int, wait: m.Wait) -> None:
        if wait.epoch == self.epoch:
            self.outbox.reset_tries(wait.ref)

    def advance(self, watermark: float) -> None:
        """Deletes rows that no window can reach any more, and sends the centre their keys."""
        if watermark <= self.watermark:
            return
        self.watermark = watermark
        self.probed = {key: tau for key, tau in self.probed.items() if tau >= watermark}
        gone = self.store.expire(watermark)
        if gone and len(self.join) > 1:
            self._deleted(counts(map(self.entry, gone)))

    def _deleted(self, expired: dict[Entry, int]) -> None:
        message = m.Expire(self.epoch, self.stream, self.next_expire, self.tau, expired)
        self.next_expire += 1
        self.outbox.repeat(self.epoch[1], message)

    def on_rebuild(self, sender: int, message: m.Rebuild) -> None:
        asked = (message.epoch, message.attempt)
        if message.epoch < self.epoch or (
            message.epoch == self.epoch and message.attempt != self.attempt
        ):
            self.outbox.send(sender, m.Stale(self.epoch))
            return
        if asked != (self.epoch, self.attempt):
            self.epoch, self.attempt = asked
            self.outbox.forget(m.Delta, m.Expire, m.Announce, m.Takeover)
            self.asked = None
        pending = [no for no, block in self.open.items() if block.state is SiteState.PENDING]
        self.outbox.send(sender, self._standing(pending))
        for no in pending:
            self._ask(no)

    def _standing(self, pending: list[int]) -> m.Standing:
        waiting = {row for no in pending for row in self.open[no].rows}
        held = counts(self.entry(row) for row in self.store.rows() if row not in waiting)
        numbers = (tuple(pending), self.next, self.planned, self.low, self.first_open)
        return m.Standing(self.epoch, self.attempt, self.stream, held, *numbers, self.next_expire)

    # --- what other sites send -------------------------------------------------

    def on_probe(self, sender: int, probe: m.Probe) -> None:
        self.outbox.ack(sender, probe)
        key = (*probe.block, probe.position)
        # Before the watermark every block is done, so any probe for one is a repetition.
        if key in self.probed or probe.tau < self.watermark:
            self.counters["repeated probes"] += 1
            return
        self.probed[key] = probe.tau
        joined = self.store.probe(probe.parts, probe.visible[self.stream])
        following = probe.position + 1
        if not joined:
            self.outbox.repeat(probe.block[0], m.Done(probe.block, probe.tau, probe.spent))
        elif following == len(probe.order):
            self._send_results(probe.block, probe.tau, joined, probe.spent)
        else:
            to = probe.order[following]
            spent = probe.spent + times(len(joined), self.costs.w[self.stream][to])
            onward = replace(probe, position=following, parts=tuple(joined), spent=spent)
            self.outbox.repeat(to, onward)

    def _send_results(
        self, block: tuple[int, int], tau: float, parts: list[Partial], spent: float = 0.0
    ) -> None:
        spent += times(len(parts), self.costs.w[self.stream][self.query_node])
        message = m.Deliver(block, tau, self.watermark, results_of(parts), spent)
        self.outbox.repeat(self.query_node, message)

    def on_done(self, sender: int, done: m.Done) -> None:
        self.outbox.ack(sender, done)
        self._finish(done.block[1], done)

    def _finish(self, no: int, done: m.Done | None = None) -> None:
        block = self.open.get(no)
        if block is not None and block.state is SiteState.PLANNED:
            del self.open[no]
            if done is not None:
                self.on_over(done)

    # --- when the centre is silent, or the store lost --------------------------

    def tick(self) -> None:
        """Looks for another centre once the present one has left too many questions open."""
        if self.outbox.tries(m.Delta, m.Expire, m.Announce) < self.layout.retry_limit:
            return
        self.suspects.add(self.epoch[1] if self.asked is None else self.asked)
        if self.suspects.issuperset(self.layout.candidates):
            self.suspects.clear()
        left = [node for node in self.layout.candidates if node not in self.suspects]
        self.outbox.forget(m.Takeover)
        self.asked = self.costs.centre(range(len(self.join)), left)
        self.outbox.repeat(self.asked, m.Takeover(self.epoch))
        self.outbox.reset_tries()

    def on_ack(self, sender: int, ack: m.Ack) -> None:
        if ack.to[:2] == ("expire", self.epoch):
            self._centre_lives()

    def _centre_lives(self) -> None:
        """Ends the request to take over; the node that was asked may be dead and never answer."""
        self.suspects.clear()
        if self.asked is not None:
            self.outbox.answered(m.Takeover(self.epoch).ref, by=self.asked)
            self.asked = None

    def on_stale(self, sender: int, message: m.Stale) -> None:
        """Asks for a new centre: this site missed an epoch, about which no centre will ask it
        again."""
        if message.epoch > self.epoch:
            self.outbox.repeat(message.epoch[1], m.Takeover(message.epoch))

    def _resume(self, no: int) -> None:
        """Learns the next number from the first block after a start without memory."""
        self.forgot, self.next = False, no
        if no:
            self.lose_store()

    def lose_store(self) -> None:
        """Drops the rows and everything under way with them; informs the nodes concerned."""
        self.store.clear()
        self.open.clear()
        self.planned = self.next - 1
        self.outbox.forget(m.Delta, m.Expire, m.Announce)
        self.outbox.repeat(self.query_node, m.Lost(self.stream))
        self.outbox.repeat(self.epoch[1], m.Takeover(self.epoch))
