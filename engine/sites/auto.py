"""The roles of `strategy=auto`: planned joins or a hub, block by block, as the account allows.

A site announces blocks by numbers, which costs nothing, records the changes of its store, and sends
these changes when it is asked. The centre decides one block after the other:

    some site without rows     nothing can join: an empty plan, no site sends anything
    planned joins              Ask ──▶ Changes, then a plan with filter and order
    hub                        a plan that names the hub; its Joined ends the block

Each step is taken if `account.Account` affords it. Costs and results of a planned block are not
known beforehand, so the account holds the most they can cost and the fewest results there can be,
until the site reports the real figures. With exact synopses of one class, the bound of the account
is then that of the run. Otherwise sizes are estimates, whose errors are corrected afterwards.

`hub.Hub` is the hub's role.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from seustream.engine.sites import messages as m
from seustream.engine.sites.account import Account, Recent
from seustream.engine.sites.centre import Centre
from seustream.engine.sites.costs import ENTRY, UnitCosts, times
from seustream.engine.sites.errors import SynopsisUnderflow
from seustream.engine.sites.model import BlockId, Counts, Entry, Stored
from seustream.engine.sites.planner import plan
from seustream.engine.sites.site import Site, SiteState
from seustream.engine.sites.synopsis import Exact

# --- the site -----------------------------------------------------------------------


class AutoSite(Site):
    """Announces blocks, sends its synopses when asked, ships rows to a hub."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.account: m.AccountState | None = None
        self.changes: dict[Entry, int] = {}
        self.log: dict[int, tuple[dict[Entry, int], dict[Entry, int]]] = {}
        self.sent: m.Changes | None = None
        self.stood: m.Standing | None = None
        self.spent, self.results = 0.0, 0
        self.finished: dict[int, m.Done] = {}
        self.earlier: set[int] = set()
        self.shipped: dict[int, tuple[m.Plan, tuple[Stored, ...]]] = {}
        self.handlers |= {m.Ask: self.on_ask, m.Fetch: self.on_fetch}

    def _ask(self, no: int) -> None:
        block = self.open[no]
        if no not in self.log:
            self.log[no] = (self.changes, block.counts)
            self.changes = {}
        for over in [over for over in self.finished if over < self.first_open]:
            done = self.finished.pop(over)
            self.spent, self.results = self.spent + done.spent, self.results + done.results
        mine = (self.epoch, self.stream, no, block.tau)
        rows, owed = sum(block.counts.values()), self._unsent(no).entries
        so_far = (self.low, self.first_open, self.spent, self.results)
        self.outbox.repeat(self.epoch[1], m.Announce(*mine, rows, owed, *so_far))

    def _deleted(self, expired: dict[Entry, int]) -> None:
        _add(self.changes, expired, -1)

    def _unsent(self, no: int) -> m.Changes:
        """Returns the changes up to a block that the centre does not know."""
        changes: dict[Entry, int] = {}
        for number in [number for number in self.log if number <= no]:
            before, block = self.log[number]
            _add(changes, before)
            if number < no:
                _add(changes, block)
        net = {entry: count for entry, count in changes.items() if count}
        return m.Changes(self.epoch, self.stream, no, self.tau, net, self.log[no][1])

    def on_ask(self, sender: int, ask: m.Ask) -> None:
        if ask.epoch != self.epoch:
            return
        if self.sent is None or (self.sent.epoch, self.sent.no) != (ask.epoch, ask.no):
            if ask.no not in self.log:
                return
            self.sent = replace(self._unsent(ask.no), tau=ask.tau)
            self._forget_log(ask.no)
        self.outbox.send(sender, self.sent)

    def _forget_log(self, upto: int) -> None:
        self.log = {no: noted for no, noted in self.log.items() if no > upto}

    def _standing(self, pending: list[int]) -> m.Standing:
        """Returns all that is stored, once per epoch: from then on, changes are owed."""
        mine = (self.epoch, self.attempt)
        if self.stood is None or (self.stood.epoch, self.stood.attempt) != mine:
            self.changes, self.sent = {}, None
            self.log = {no: ({}, self.open[no].counts) for no in pending}
            self.spent, self.results, self.finished = 0.0, 0, {}
            self.earlier = self.open.keys() - set(pending)
            self.stood = replace(super()._standing(pending), account=self.account)
        return self.stood

    def on_plan_message(self, sender: int, plan: m.Plan) -> None:
        if plan.epoch == self.epoch and plan.account is not None:
            states = (self.account or plan.account, plan.account)
            self.account = max(states, key=lambda state: state.number)
        if plan.way is not None and (rows := self.take(plan)) is not None:
            self.shipped[plan.no] = plan, tuple(rows)
            # Rows do not come back from a hub: no node will ask for these.
            self._forget_log(plan.no)
            self._ship(plan.no)
        super().on_plan_message(sender, plan)

    def _ship(self, no: int) -> None:
        plan, rows = self.shipped[no]
        assert plan.way is not None
        block = (self.epoch, (self.stream, no), plan.tau, plan.visible, plan.watermark)
        ship = m.Ship(*block, plan.members, plan.way.most, plan.way.moving, rows)
        self.outbox.repeat(plan.way.hub, ship)

    def on_rebuild(self, sender: int, message: m.Rebuild) -> None:
        before = self.epoch, self.attempt
        super().on_rebuild(sender, message)
        if (self.epoch, self.attempt) != before:
            # So hubs learn of the new epoch, and where to report the blocks they have joined.
            for no in self.shipped:
                self._ship(no)

    def _finish(self, no: int, done: m.Done | None = None) -> None:
        block = self.open.get(no)
        if block is None or block.state is not SiteState.PLANNED:
            return
        super()._finish(no, done)
        if self.shipped.pop(no, None) is not None:
            self.outbox.answered(("ship", (self.stream, no)))
        elif done is not None and no not in self.earlier:
            self.finished[no] = done

    def on_fetch(self, sender: int, fetch: m.Fetch) -> None:
        rows = tuple(
            row
            for row in self.store.rows()
            if fetch.after < row.tid[1] <= fetch.upto and row.tid[1] not in fetch.but
        )
        self.outbox.send(sender, m.Fetched(fetch.stream, fetch.after, fetch.upto, fetch.tau, rows))

    def lose_store(self) -> None:
        self.log, self.changes, self.sent, self.stood = {}, {}, None, None
        self.shipped.clear()
        self.outbox.forget(m.Ship)
        super().lose_store()


def _add(to: dict[Entry, int], counts: Counts, sign: int = 1) -> None:
    for entry, count in counts.items():
        to[entry] = to.get(entry, 0) + sign * count


# --- the centre ----------------------------------------------------------------------


@dataclass(slots=True)
class _Deciding:
    """The block whose turn it is; `asked` are the sites that have not answered yet, None once it
    went to a hub."""

    announce: m.Announce
    visible: tuple[int, ...]
    asked: set[int] | None = field(default_factory=set)
    changes: m.Changes | None = None


class AutoCentre(Centre):
    """The centre's role where the layout says `auto`; every candidate has one."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.handlers |= {m.Changes: self.on_changes, m.Joined: self.on_joined}

    def _start_empty(self) -> None:
        super()._start_empty()
        n = len(self.join)
        nodes = sorted({*range(n), *([] if self.query_node is None else [self.query_node])})
        self.account = Account(self.costs, self.query_node, nodes)
        self.recent, self.unit = Recent(self.account), -math.inf
        self.states = 0
        self.deciding: _Deciding | None = None
        self.rows = [0] * n
        self.owed = [0] * n
        self.unsent = [False] * n
        self.latest: list[m.Announce | None] = [None] * n
        self.settled = [(0.0, 0)] * n
        self.reserved: dict[BlockId, tuple[float, int]] = {}
        windows = [window for member in self.join.windows for window in member]
        one_class = len(self.join.classes) <= 1 and isinstance(self.layout.kind, Exact)
        exact = one_class and not self.join.residuals
        self.counts_exactly = exact and all(window == math.inf for window in windows)

    # --- announcements ---------------------------------------------------------------

    def on_delta(self, sender: int, delta: m.Delta | m.Announce) -> None:
        if self.active and delta.epoch == self.epoch and not self.rebuilding:
            assert isinstance(delta, m.Announce)
            self._settle(delta)
            deciding = self.deciding
            if deciding is not None and (delta.stream, delta.no) == _block(deciding.announce):
                if (delta.stream, delta.no) in self.replies:
                    self.outbox.send(sender, self.replies[delta.stream, delta.no])
                else:
                    self.outbox.send(sender, m.Wait(self.epoch, delta.stream, delta.no))
                return
        super().on_delta(sender, delta)

    def _settle(self, announce: m.Announce) -> None:
        """Replaces the estimates of finished blocks by their real cost."""
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

    def _accept(self, delta: m.Delta | m.Announce) -> None:
        assert isinstance(delta, m.Announce)
        i = delta.stream
        self._look(delta.tau)
        self.deciding = deciding = _Deciding(delta, self._take(delta))
        self.account.arrived(i, delta.rows)
        self.rows[i] += delta.rows
        self.owed[i], self.latest[i] = delta.owed, delta
        self.unsent[i] = self.unsent[i] or delta.rows > 0
        if self.account.hub is not None:
            self._to_hub()
        elif not delta.rows or not all(self.rows):
            self._close({}, (), 0.0)
        else:
            self._ask(deciding)

    def _look(self, tau: float) -> None:
        """Checks, every ten units of time, whether a hub would have been a gain."""
        if tau > self.unit:
            due = self.recent.unit_over() if self.unit > -math.inf else False
            self.unit = tau
            best = self.recent.best()
            if due and self.account.hub is None and self.recent.gains(best, self._move_cost(best)):
                self.account.go(best, self._move_cost(best))

    def _move_cost(self, to: int) -> float:
        """Estimates the cost of sending the live rows to a node, as far as the centre knows
        them."""
        known = (site.rows for site in self.synopses.sites)
        return sum(times(rows, self.costs.w[k][to]) for k, rows in enumerate(known))

    # --- planned joins ---------------------------------------------------------------

    def _ask(self, deciding: _Deciding) -> None:
        i = deciding.announce.stream
        asked = {i} | {k for k in range(len(self.join)) if self.unsent[k]}
        cost = sum(times(ENTRY * self.owed[k], self.costs.w[k][self.node]) for k in asked)
        if not self.account.affords(cost):
            self._to_hub()
            return
        deciding.asked = asked
        for k in asked:
            latest = self.latest[k]
            assert latest is not None
            self.outbox.repeat(k, m.Ask(self.epoch, k, latest.no, latest.tau))

    def on_changes(self, sender: int, changes: m.Changes) -> None:
        if not self._is_mine(changes.epoch):
            return
        self.outbox.answered(changes.ref, by=sender)
        deciding, k = self.deciding, changes.stream
        latest = self.latest[k]
        if deciding is None or not deciding.asked or k not in deciding.asked:
            return
        if latest is None or latest.no != changes.no:
            return
        deciding.asked.discard(k)
        self.account.pay(times(ENTRY * changes.entries, self.costs.w[k][self.node]))
        self.unsent[k] = False
        self.owed[k] = 0
        known = self.synopses.sites[k]
        try:
            known.add({entry: count for entry, count in changes.changes.items() if count > 0})
            known.remove({entry: -count for entry, count in changes.changes.items() if count < 0})
        except SynopsisUnderflow:
            self.counters["underflows"] += 1
            self.lead(self.epoch)
            return
        if k == deciding.announce.stream:
            deciding.changes = changes
        else:
            known.add(changes.block)
        if not deciding.asked:
            self._order(deciding)
            self._accept_all()

    def _order(self, deciding: _Deciding) -> None:
        assert deciding.changes is not None
        i, block = deciding.announce.stream, deciding.changes.block
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
        visible, state = deciding.visible, self._state()
        self._answer(deciding.announce, keep, order, visible, predicted, account=state)

    # --- the hub ----------------------------------------------------------------------

    def _to_hub(self) -> None:
        """Sends the block under decision to the hub, or to another one if this one costs too
        much."""
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
        way = m.ToHub(hub, self.account.most_results(hub), moving)
        self._answer(announce, {}, (), self.deciding.visible, 0.0, way, self._state())

    def on_joined(self, sender: int, joined: m.Joined) -> None:
        """Takes the report that a hub has joined a block. A block that no query waits for any more
        does not concern the account: it was accepted before a crash."""
        mine = self._is_mine(joined.epoch)
        if joined.delivered:
            self.outbox.ack(sender, joined)
        if not mine:
            return
        deciding = self.deciding
        if (
            deciding is None
            or deciding.asked is not None
            or _block(deciding.announce) != joined.block
        ):
            if not joined.delivered:
                to = self.account.hub
                self.outbox.send(sender, m.Forward(joined.block, sender if to is None else to))
            return
        self.account.joined(joined.results)
        if not joined.delivered and self.account.leader != self.account.hub:
            self.account.go(self.account.leader, 0.0)
        assert self.account.hub is not None
        if not joined.delivered:
            self.outbox.send(sender, m.Forward(joined.block, self.account.hub))
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

    def lead(self, after: m.Epoch) -> None:
        super().lead(after)
        if self.query_node is not None and self.query_node >= len(self.join):
            self.outbox.repeat(self.query_node, m.NewEpoch(self.epoch))

    def _state(self) -> m.AccountState:
        self.states += 1
        account = self.account
        return m.AccountState(self.states, account.spent, account.hub, dict(account.hubs))

    def _resume(self, standings: dict[int, m.Standing]) -> None:
        self.rows = [sum(standings[k].counts.values()) for k in range(len(self.join))]
        states = [s.account for s in standings.values() if s.account is not None]
        if states:
            last = max(states, key=lambda state: state.number)
            self.states = last.number
            self.account.spent, self.account.hub = last.spent, last.hub
            self.account.hubs.update(last.hubs)


def _block(announce: m.Announce) -> BlockId:
    return announce.stream, announce.no
