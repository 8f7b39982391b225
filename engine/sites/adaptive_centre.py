"""The centre of `strategy=auto`: planned joins or a hub, block by block, as its account allows.

Sites announce blocks by numbers, which cost nothing. The centre decides one block after the other:

    some site without rows     nothing can join: an empty plan, nobody tells anything
    planned joins              Tell ──▶ Told, then a plan with filter and order
    hub                        a plan that names the hub; its Joined ends the block

Each step is taken if `strategy.Account` affords it. Costs and results of a planned block are not
known beforehand, so the account holds the most they can cost and the fewest results there can be,
until the site tells what it was. With exact synopses of one class the bound of the account is then
that of the run; otherwise sizes are estimates, and what they were off is put right afterwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from engine.sites.centre import Centre
from engine.sites.costs import UnitCosts, times
from engine.sites.errors import SynopsisUnderflow
from engine.sites.ledger import ENTRY
from engine.sites.messages import (
    Ack,
    Announce,
    Books,
    Delta,
    Epoch,
    Forward,
    Hubwards,
    Joined,
    Led,
    Standing,
    Tell,
    Told,
    Wait,
    ref,
)
from engine.sites.model import BlockId, Entry
from engine.sites.planner import plan
from engine.sites.strategy import Account, Recent
from engine.sites.synopsis import Exact


@dataclass(slots=True)
class _Deciding:
    """The block whose turn it is; `asked` have not told yet, None once it went to a hub."""

    announce: Announce
    visible: tuple[int, ...]
    asked: set[int] | None = field(default_factory=set)
    told: Told | None = None


class AdaptiveCentre(Centre):
    """Every candidate has one where the layout says `auto`."""

    def _start_empty(self) -> None:
        super()._start_empty()
        n = len(self.join)
        nodes = sorted({*range(n), *([] if self.query_node is None else [self.query_node])})
        self.account = Account(self.costs, self.query_node, nodes)
        self.recent, self.unit = Recent(self.account), -math.inf
        self.books = 0
        self.deciding: _Deciding | None = None
        self.rows = [0] * n
        self.owed = [0] * n
        self.untold = [False] * n
        self.latest: list[Announce | None] = [None] * n
        self.settled = [(0.0, 0)] * n
        self.reserved: dict[BlockId, tuple[float, int]] = {}
        windows = [window for member in self.join.windows for window in member]
        one_class = len(self.join.classes) <= 1 and isinstance(self.kind, Exact)
        exact = one_class and not self.join.residuals
        self.counts_exactly = exact and all(window == math.inf for window in windows)

    # --- announcements ---------------------------------------------------------------

    def on_delta(self, sender: int, delta: Delta | Announce) -> None:
        if self.active and delta.epoch == self.epoch and not self.rebuilding:
            assert isinstance(delta, Announce)
            self._settle(delta)
            deciding = self.deciding
            if deciding is not None and (delta.stream, delta.no) == _block(deciding.announce):
                if (delta.stream, delta.no) in self.replies:
                    self.outbox.say(sender, self.replies[delta.stream, delta.no])
                else:
                    self.outbox.say(sender, Wait(self.epoch, delta.stream, delta.no))
                return
        super().on_delta(sender, delta)

    def _settle(self, announce: Announce) -> None:
        """What finished blocks have cost takes the place of what they were held to cost."""
        i = announce.stream
        spent, results = self.settled[i]
        if announce.results < results or announce.spent < spent:
            return
        for block in [b for b in self.reserved if b[0] == i and b[1] < announce.first_open]:
            most, fewest = self.reserved.pop(block)
            self.account.pay(-most)
            self.account.joined(-fewest)
        self.account.pay(announce.spent - spent)
        self.account.joined(announce.results - results)
        self.settled[i] = announce.spent, announce.results

    def _accept_all(self) -> None:
        while self.deciding is None and not self.rebuilding:
            turns = ((k, self._expected(k)) for k in range(len(self.join)))
            block = next((turn for turn in turns if turn in self.held), None)
            if block is None:
                return
            self._accept(self.held.pop(block))

    def _accept(self, delta: Delta | Announce) -> None:
        assert isinstance(delta, Announce)
        i = delta.stream
        self._look(delta.tau)
        self.deciding = deciding = _Deciding(delta, self._take(delta))
        self.account.arrived(i, delta.rows)
        self.rows[i] += delta.rows
        self.owed[i], self.latest[i] = delta.owed, delta
        self.untold[i] = self.untold[i] or delta.rows > 0
        if self.account.hub is not None:
            self._to_hub()
        elif not delta.rows or not all(self.rows):
            self._close({}, (), 0.0)
        else:
            self._ask(deciding)

    def _look(self, tau: float) -> None:
        """Every ten units of time: would a hub have been a gain?"""
        if tau > self.unit:
            due = self.recent.unit_over() if self.unit > -math.inf else False
            self.unit = tau
            best = self.recent.best()
            if due and self.account.hub is None and self.recent.gains(best, self._move_cost(best)):
                self.account.go(best, self._move_cost(best))

    def _move_cost(self, to: int) -> float:
        """About what the living rows cost on their way, as far as they have been told."""
        known = (site.rows for site in self.synopses.sites)
        return sum(times(rows, self.costs.w[k][to]) for k, rows in enumerate(known))

    # --- planned joins ---------------------------------------------------------------

    def _ask(self, deciding: _Deciding) -> None:
        i = deciding.announce.stream
        asked = {i} | {k for k in range(len(self.join)) if self.untold[k]}
        cost = sum(times(ENTRY * self.owed[k], self.costs.w[k][self.node]) for k in asked)
        if not self.account.affords(cost):
            self._to_hub()
            return
        deciding.asked = asked
        for k in asked:
            latest = self.latest[k]
            assert latest is not None
            self.outbox.insist(k, Tell(self.epoch, k, latest.no, latest.tau))

    def on_told(self, sender: int, told: Told) -> None:
        if not self._is_mine(told.epoch):
            return
        self.outbox.answered(ref(told), by=sender)
        deciding, k = self.deciding, told.stream
        latest = self.latest[k]
        if deciding is None or not deciding.asked or k not in deciding.asked:
            return
        if latest is None or latest.no != told.no:
            return
        deciding.asked.discard(k)
        self.account.pay(times(ENTRY * told.entries, self.costs.w[k][self.node]))
        self.untold[k] = False
        self.owed[k] = 0
        known = self.synopses.sites[k]
        try:
            known.add({entry: count for entry, count in told.changes.items() if count > 0})
            known.remove({entry: -count for entry, count in told.changes.items() if count < 0})
        except SynopsisUnderflow:
            self.counters["underflows"] += 1
            self.lead(self.epoch)
            return
        if k == deciding.announce.stream:
            deciding.told = told
        else:
            known.add(told.block)
        if not deciding.asked:
            self._order(deciding)
            self._accept_all()

    def _order(self, deciding: _Deciding) -> None:
        assert deciding.told is not None
        i, block = deciding.announce.stream, deciding.told.block
        keep = self.synopses.filter(i, block)
        size = self.synopses.sizes(i, keep)
        self.synopses.sites[i].add(block)
        if not keep:
            self._close({}, (), 0.0)
            return
        task = self._task(i, size)
        order = plan(task, self.planner)
        answer = times(ENTRY * len(keep), self.costs.w[self.node][i])
        fewest = int(size(task.all)) if self.counts_exactly else 0
        self.account.joined(fewest)
        if order is None and self.account.best == math.inf:
            # No way at all: the block waits for better unit costs.
            self.account.joined(-fewest)
            self.synopses.sites[i].remove(block)
            return
        if order is None or not self.account.affords(answer + order.cost):
            self.account.joined(-fewest)
            self._to_hub()
            return
        self.account.pay(answer + order.cost)
        self.reserved[i, deciding.announce.no] = order.cost, fewest
        self._close(keep, order.sites, order.cost)

    def _close(self, keep: dict[Entry, int], order: tuple[int, ...], predicted: float) -> None:
        assert self.deciding is not None
        deciding, self.deciding = self.deciding, None
        self._answer(
            deciding.announce, keep, order, deciding.visible, predicted, books=self._books()
        )

    # --- the hub ----------------------------------------------------------------------

    def _to_hub(self) -> None:
        """The block under decision goes to the hub; to another, if this one costs too much."""
        assert self.deciding is not None
        announce = self.deciding.announce
        hub, moving = self.account.hub, True
        if hub is not None:
            cost = times(announce.rows, self.costs.w[announce.stream][hub])
            if self.account.affords(cost):
                self.account.pay(cost)
                moving = False
        if hub is None or moving:
            hub = self.account.leader
            self.account.go(hub, self._move_cost(hub))
        self.deciding.asked = None
        way = Hubwards(hub, self.account.most_results(hub), moving)
        self._answer(announce, {}, (), self.deciding.visible, 0.0, way, self._books())

    def on_joined(self, sender: int, joined: Joined) -> None:
        """A hub has joined a block. One nobody waits for any more is no concern of the account: it
        was accepted before a crash."""
        if not self._is_mine(joined.epoch):
            if joined.delivered:
                self.outbox.say(sender, Ack(ref(joined)))
            return
        deciding = self.deciding
        mine = (
            deciding is not None
            and deciding.asked is None
            and _block(deciding.announce) == joined.block
        )
        if not mine:
            if joined.delivered:
                self.outbox.say(sender, Ack(ref(joined)))
            else:
                to = self.account.hub
                self.outbox.say(sender, Forward(joined.block, sender if to is None else to))
            return
        self.account.joined(joined.results)
        if joined.delivered:
            self.outbox.say(sender, Ack(ref(joined)))
        elif self.account.leader != self.account.hub:
            self.account.go(self.account.leader, 0.0)
        assert self.account.hub is not None
        if not joined.delivered:
            self.outbox.say(sender, Forward(joined.block, self.account.hub))
        self.account.pay(self.account.delivery(self.account.hub, joined.results))
        self.deciding = None
        self._accept_all()

    # --- changing places ----------------------------------------------------------------

    def set_costs(self, costs: UnitCosts) -> None:
        self.account.costs = costs
        super().set_costs(costs)
        deciding = self.deciding
        if deciding is not None and deciding.asked == set():
            self._order(deciding)
            self._accept_all()

    def lead(self, after: Epoch) -> None:
        super().lead(after)
        if self.query_node is not None and self.query_node >= len(self.join):
            self.outbox.insist(self.query_node, Led(self.epoch))

    def _books(self) -> Books:
        self.books += 1
        account = self.account
        return Books(self.books, account.spent, account.hub, dict(account.hubs))

    def _resume(self, standings: dict[int, Standing]) -> None:
        self.rows = [sum(standings[k].counts.values()) for k in range(len(self.join))]
        books = [s.books for s in standings.values() if s.books is not None]
        if books:
            last = max(books, key=lambda book: book.number)
            self.books = last.number
            self.account.spent, self.account.hub = last.spent, last.hub
            self.account.hubs.update(last.hubs)


def _block(announce: Announce) -> BlockId:
    return announce.stream, announce.no
