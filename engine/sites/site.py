"""A site: keeps its stream's rows, asks the centre about each new block, probes for others.

A block is PENDING until its plan arrives, PLANNED while its rows are on their way, then DONE and
forgotten. Every row is stored at once, whatever the filter says: it may match later. The site
sends a block's surviving rows to the first site of the order; each joins what arrives with its own
rows up to the number the plan names (`visible`), so that a combination is found exactly once.

Rows are deleted when their windows end before the watermark, which no unfinished or future block
of any stream lies before.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.sites.costs import UnitCosts, times
from engine.sites.errors import BadKey, BlockGap, FeederBlocked, LateBlock
from engine.sites.keys import Key
from engine.sites.messages import (
    Ack,
    Announce,
    Deliver,
    Delta,
    Done,
    Epoch,
    Expire,
    Lost,
    Plan,
    Probe,
    Rebuild,
    Stale,
    Standing,
    Takeover,
    Wait,
    ref,
)
from engine.sites.model import BlockRows, Entry, Join, Partial, Result, Row, Stored, start
from engine.sites.outbox import Outbox
from engine.sites.sizes import counts
from engine.sites.store import RowStore, Store
from engine.sites.synopsis import Exact, Kind

RETRY_LIMIT = 5
MAX_PENDING = 1024


class State(enum.Enum):
    PENDING = "pending"
    PLANNED = "planned"


@dataclass(slots=True)
class _Open:
    """A block not yet done."""

    tau: float
    counts: dict[Entry, int]
    rows: list[Stored]
    state: State = State.PENDING


class Site:
    """The site of one stream. `on_plan` is told of each plan, `on_over` of each block whose rows
    went somewhere, once nothing of it is under way any more."""

    def __init__(
        self,
        join: Join,
        stream: int,
        outbox: Outbox,
        *,
        epoch: Epoch,
        query_node: int,
        costs: UnitCosts,
        candidates: Sequence[int],
        kind: Kind | None = None,
        store: Store | None = None,
        retry_limit: int = RETRY_LIMIT,
        max_pending: int = MAX_PENDING,
        forgot: bool = False,
    ) -> None:
        self.join, self.stream, self.outbox = join, stream, outbox
        self.epoch, self.attempt = epoch, 0
        self.query_node, self.costs, self.candidates = query_node, costs, tuple(candidates)
        self.kind = kind or Exact()
        self.store: Store = store or RowStore(join, stream)
        self.retry_limit, self.max_pending = retry_limit, max_pending
        self.forgot = forgot
        self.open: dict[int, _Open] = {}
        self.next, self.next_expire, self.planned = 0, 0, -1
        self.tau = self.watermark = -math.inf
        self.suspects: set[int] = set()
        self.asked: int | None = None
        self.probed: dict[tuple[int, int, int], float] = {}
        self.counters: Counter[str] = Counter()
        self.on_plan: Callable[[Plan], None] = lambda plan: None
        self.on_over: Callable[[Done], None] = lambda done: None

    # --- what the feeder does -----------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether another block may come."""
        return len(self.open) < self.max_pending

    @property
    def low(self) -> float:
        """No unfinished or future block of this stream lies before this time."""
        return self.open[self.first_open].tau if self.open else self.tau

    @property
    def first_open(self) -> int:
        return min(self.open, default=self.next)

    def submit(self, block: BlockRows) -> None:
        """Takes a block whole or not at all; one with a number it had before is ignored."""
        if self.forgot and block.no is not None:
            self._resume(block.no)
        no = self.next if block.no is None else block.no
        if no < self.next:
            self.counters["repeated blocks"] += 1
            return
        if no > self.next:
            raise BlockGap(f"block {no} of stream {self.stream} came, {self.next} is the next")
        if block.tau < self.tau:
            self.counters["late blocks"] += 1
            raise LateBlock(
                f"a block of stream {self.stream} closes at {block.tau}, one at {self.tau} came",
                "closing times of a stream never fall",
            )
        if not self.ready:
            raise FeederBlocked(f"site {self.stream} has {len(self.open)} open blocks")
        rows = [
            stored
            for index, row in enumerate(block.rows)
            if (stored := self._stored(row, block.tau, (self.stream, no, index))) is not None
        ]
        self.next, self.tau = no + 1, block.tau
        self.open[no] = _Open(block.tau, counts(map(self.entry, rows)), rows)
        if len(self.join) == 1:
            self._answer_alone(no)
        else:
            self.store.store(rows)
            self._ask(no)

    def _stored(self, row: Row, tau: float, tid: tuple[int, int, int]) -> Stored | None:
        """The row as it is kept; None, and counted, if it can join nothing."""
        ends = tuple(row.t + windows[self.stream] for windows in self.join.windows)
        if row.t > tau or not any(tau <= end for end in ends):
            self.counters["rows after their block" if row.t > tau else "expired rows"] += 1
            return None
        try:
            values = self.join.values(self.stream, row.keys)
        except BadKey:
            self.counters["rows with bad keys"] += 1
            return None
        if values is None:
            self.counters["rows that equal nothing"] += 1
            return None
        domain = self.join.streams[self.stream].domain
        if domain is not None and not domain.issuperset(values):
            self.counters["rows out of their domain"] += 1
            return None
        kept = row.t + self.join.horizons[self.stream] if self.join.horizons else -math.inf
        return Stored(tid, values, row.t, tau, ends, row.payload, kept)

    def entry(self, row: Stored) -> Entry:
        return tuple(map(self._entry, row.values))

    def _entry(self, value: Key) -> Key:
        return self.kind.entry(value)

    def _ask(self, no: int) -> None:
        block = self.open[no]
        delta = Delta(
            self.epoch, self.stream, no, block.tau, block.counts, self.low, self.first_open
        )
        self.outbox.insist(self.epoch[1], delta)

    def _answer_alone(self, no: int) -> None:
        """One stream has nothing to join: every row is a result."""
        block = self.open[no]
        block.state = State.PLANNED
        parts = [start(self.join, row) for row in block.rows]
        self._send_results((self.stream, no), block.tau, parts)

    # --- what the centre says -------------------------------------------------

    def on_plan_message(self, plan: Plan) -> None:
        if plan.epoch != self.epoch:
            return
        block = self.open.get(plan.no)
        if block is not None and block.state is State.PENDING:
            self.outbox.answered(("delta", self.stream, plan.no))
            self._centre_lives()
            self.planned = max(self.planned, plan.no)
            self.on_plan(plan)
            parts = [
                part
                for row in block.rows
                if self.entry(row) in plan.keep
                and (part := start(self.join, row, plan.members)).alive
            ]
            block.rows, block.state = [], State.PLANNED
            if parts:
                mine = (self.stream, plan.no)
                spent = times(len(parts), self.costs.w[self.stream][plan.order[0]])
                probe = Probe(
                    mine,
                    block.tau,
                    plan.order,
                    0,
                    plan.visible,
                    plan.watermark,
                    tuple(parts),
                    spent,
                )
                self.outbox.insist(plan.order[0], probe)
            else:
                self._finish(plan.no)
        self.advance(plan.watermark)

    def on_wait(self, wait: Wait) -> None:
        if wait.epoch == self.epoch:
            self.outbox.calm(("delta", wait.stream, wait.no))

    def advance(self, watermark: float) -> None:
        """Deletes what no window can reach any more, and says so."""
        if watermark <= self.watermark:
            return
        self.watermark = watermark
        self.probed = {key: tau for key, tau in self.probed.items() if tau >= watermark}
        gone = self.store.expire(watermark)
        if gone and len(self.join) > 1:
            self._deleted(counts(map(self.entry, gone)))

    def _deleted(self, expired: dict[Entry, int]) -> None:
        message = Expire(self.epoch, self.stream, self.next_expire, self.tau, expired)
        self.next_expire += 1
        self.outbox.insist(self.epoch[1], message)

    def on_rebuild(self, sender: int, message: Rebuild) -> None:
        mine = (self.epoch, self.attempt)
        if message.epoch < self.epoch or (
            message.epoch == self.epoch and message.attempt != self.attempt
        ):
            self.outbox.say(sender, Stale(self.epoch))
            return
        if (message.epoch, message.attempt) != mine:
            self.epoch, self.attempt = message.epoch, message.attempt
            self.outbox.forget(Delta, Expire, Announce, Takeover)
            self.asked = None
        pending = [no for no, block in self.open.items() if block.state is State.PENDING]
        self.outbox.say(sender, self._standing(pending))
        for no in pending:
            self._ask(no)

    def _standing(self, pending: list[int]) -> Standing:
        waiting = {row for no in pending for row in self.open[no].rows}
        held = counts(self.entry(row) for row in self.store.rows() if row not in waiting)
        return Standing(
            self.epoch,
            self.attempt,
            self.stream,
            held,
            tuple(pending),
            self.next,
            self.planned,
            self.low,
            self.first_open,
            self.next_expire,
        )

    # --- what other sites say -------------------------------------------------

    def on_probe(self, sender: int, probe: Probe) -> None:
        self.outbox.say(sender, Ack(ref(probe)))
        key = (*probe.block, probe.position)
        # Before the watermark every block is done: whatever comes of it is a repetition.
        if key in self.probed or probe.tau < self.watermark:
            self.counters["repeated probes"] += 1
            return
        self.probed[key] = probe.tau
        joined = self.store.probe(probe.parts, probe.visible[self.stream])
        following = probe.position + 1
        if not joined:
            self.outbox.insist(probe.block[0], Done(probe.block, probe.tau, probe.spent))
        elif following == len(probe.order):
            self._send_results(probe.block, probe.tau, joined, probe.spent)
        else:
            onward = Probe(
                probe.block,
                probe.tau,
                probe.order,
                following,
                probe.visible,
                probe.watermark,
                tuple(joined),
                probe.spent + times(len(joined), self.costs.w[self.stream][probe.order[following]]),
            )
            self.outbox.insist(probe.order[following], onward)

    def _send_results(
        self, block: tuple[int, int], tau: float, parts: list[Partial], spent: float = 0.0
    ) -> None:
        spent += times(len(parts), self.costs.w[self.stream][self.query_node])
        message = Deliver(block, tau, self.watermark, results_of(parts), spent)
        self.outbox.insist(self.query_node, message)

    def on_done(self, sender: int, done: Done) -> None:
        self.outbox.say(sender, Ack(ref(done)))
        self._finish(done.block[1], done)

    def _finish(self, no: int, done: Done | None = None) -> None:
        block = self.open.get(no)
        if block is not None and block.state is State.PLANNED:
            del self.open[no]
            if done is not None:
                self.on_over(done)

    # --- when the centre is silent, or the store lost --------------------------

    def tick(self) -> None:
        """Looks for another centre once the present one has left too many questions open."""
        if self.outbox.tries(Delta, Expire, Announce) < self.retry_limit:
            return
        self.suspects.add(self.epoch[1] if self.asked is None else self.asked)
        if self.suspects.issuperset(self.candidates):
            self.suspects.clear()
        left = [node for node in self.candidates if node not in self.suspects]
        self.outbox.forget(Takeover)
        self.asked = self.costs.centre(range(len(self.join)), left)
        self.outbox.insist(self.asked, Takeover(self.epoch))
        self.outbox.calm()

    def on_ack(self, ack: Ack) -> None:
        if ack.ref[0] == "expire" and ack.ref[1:3] == self.epoch:
            self._centre_lives()

    def _centre_lives(self) -> None:
        """Nobody need take over; whoever was asked to may be dead and never answer."""
        self.suspects.clear()
        if self.asked is not None:
            self.outbox.answered(ref(Takeover(self.epoch)), by=self.asked)
            self.asked = None

    def on_stale(self, message: Stale) -> None:
        """This site missed an epoch, which no centre will ask it about again."""
        if message.epoch > self.epoch:
            self.outbox.insist(message.epoch[1], Takeover(message.epoch))

    def _resume(self, no: int) -> None:
        """The first block after a start without memory says where the numbers are."""
        self.forgot, self.next = False, no
        if no:
            self.lose_store()

    def lose_store(self) -> None:
        """The rows are gone, and what was under way with them; says so to everyone concerned."""
        self.store.clear()
        self.open.clear()
        self.planned = self.next - 1
        self.outbox.forget(Delta, Expire, Announce)
        self.outbox.insist(self.query_node, Lost(self.stream))
        self.outbox.insist(self.epoch[1], Takeover(self.epoch))


def results_of(parts: Sequence[Partial]) -> tuple[Result, ...]:
    """Complete combinations as results."""
    return tuple(
        Result(
            tuple(m for m, end in enumerate(part.ends) if part.newest <= end),
            tuple(row for row in part.rows if row is not None),
        )
        for part in parts
    )
