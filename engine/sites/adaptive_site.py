"""A site where `strategy=auto`: announces blocks, tells its synopses when asked, ships to a hub.

What changes in the store is noted by block until the centre asks for it: deletions before the block
was closed, and the block's own keys. Rows stay here whoever the hub is, so that any node can
become one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.sites.messages import (
    Announce,
    Books,
    Done,
    Fetch,
    Fetched,
    Plan,
    Rebuild,
    Ship,
    Standing,
    Tell,
    Told,
)
from engine.sites.model import Entry, Stored
from engine.sites.site import Site, State


class AdaptiveSite(Site):
    """Of a layout that says `auto`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.books: Books | None = None
        self.changes: dict[Entry, int] = {}
        self.log: dict[int, tuple[dict[Entry, int], dict[Entry, int]]] = {}
        self.told: Told | None = None
        self.stood: Standing | None = None
        self.spent, self.results = 0.0, 0
        self.finished: dict[int, Done] = {}
        self.earlier: set[int] = set()
        self.shipped: dict[int, tuple[Plan, tuple[Stored, ...]]] = {}

    # --- what the centre is told ------------------------------------------------------

    def _ask(self, no: int) -> None:
        block = self.open[no]
        if no not in self.log:
            self.log[no] = (self.changes, block.counts)
            self.changes = {}
        for over in [over for over in self.finished if over < self.first_open]:
            done = self.finished.pop(over)
            self.spent, self.results = self.spent + done.spent, self.results + done.results
        announce = Announce(
            self.epoch,
            self.stream,
            no,
            block.tau,
            sum(block.counts.values()),
            self._untold(no).entries,
            self.low,
            self.first_open,
            self.spent,
            self.results,
        )
        self.outbox.insist(self.epoch[1], announce)

    def _deleted(self, expired: dict[Entry, int]) -> None:
        for entry, count in expired.items():
            self.changes[entry] = self.changes.get(entry, 0) - count

    def _untold(self, no: int) -> Told:
        """What the centre does not know up to a block."""
        changes: dict[Entry, int] = {}
        for number in [number for number in self.log if number <= no]:
            before, block = self.log[number]
            for part in (before, block) if number < no else (before,):
                for entry, count in part.items():
                    changes[entry] = changes.get(entry, 0) + count
        net = {entry: count for entry, count in changes.items() if count}
        return Told(self.epoch, self.stream, no, self.tau, net, self.log[no][1])

    def on_tell(self, sender: int, tell: Tell) -> None:
        if tell.epoch != self.epoch:
            return
        if self.told is None or (self.told.epoch, self.told.no) != (tell.epoch, tell.no):
            if tell.no not in self.log:
                return
            self.told = replace(self._untold(tell.no), tau=tell.tau)
            self.log = {no: noted for no, noted in self.log.items() if no > tell.no}
        self.outbox.say(sender, self.told)

    def _standing(self, pending: list[int]) -> Standing:
        """All that is stored, once an epoch: what changes after it was asked for is owed."""
        mine = (self.epoch, self.attempt)
        if self.stood is None or (self.stood.epoch, self.stood.attempt) != mine:
            self.changes, self.told = {}, None
            self.log = {no: ({}, self.open[no].counts) for no in pending}
            self.spent, self.results, self.finished = 0.0, 0, {}
            self.earlier = self.open.keys() - set(pending)
            self.stood = replace(super()._standing(pending), books=self.books)
        return self.stood

    # --- what the centre says ----------------------------------------------------------

    def on_plan_message(self, plan: Plan) -> None:
        block = self.open.get(plan.no)
        mine = plan.epoch == self.epoch
        if mine and plan.books is not None:
            self.books = max(self.books or plan.books, plan.books, key=lambda books: books.number)
        if mine and plan.way is not None and block is not None and block.state is State.PENDING:
            self.outbox.answered(("delta", self.stream, plan.no))
            self._centre_lives()
            self.planned = max(self.planned, plan.no)
            self.on_plan(plan)
            block.state = State.PLANNED
            self.shipped[plan.no] = plan, tuple(block.rows)
            block.rows = []
            # From a hub there is no way back: nobody will ask for these.
            self.log = {no: noted for no, noted in self.log.items() if no > plan.no}
            self._ship(plan.no)
        super().on_plan_message(plan)

    def _ship(self, no: int) -> None:
        plan, rows = self.shipped[no]
        assert plan.way is not None
        ship = Ship(
            self.epoch,
            (self.stream, no),
            plan.tau,
            plan.visible,
            plan.watermark,
            plan.members,
            plan.way.most,
            plan.way.moving,
            rows,
        )
        self.outbox.insist(plan.way.hub, ship)

    def on_rebuild(self, sender: int, message: Rebuild) -> None:
        before = self.epoch, self.attempt
        super().on_rebuild(sender, message)
        if (self.epoch, self.attempt) != before:
            # So hubs hear of the new epoch, and whom to tell what they have joined.
            for no in self.shipped:
                self._ship(no)

    def _finish(self, no: int, done: Done | None = None) -> None:
        block = self.open.get(no)
        if block is None or block.state is not State.PLANNED:
            return
        super()._finish(no, done)
        if self.shipped.pop(no, None) is not None:
            self.outbox.answered(("ship", self.stream, no))
        elif done is not None and no not in self.earlier:
            self.finished[no] = done

    # --- what a hub asks -----------------------------------------------------------------

    def on_fetch(self, sender: int, fetch: Fetch) -> None:
        rows = tuple(
            row
            for row in self.store.rows()
            if fetch.after < row.tid[1] <= fetch.upto and row.tid[1] not in fetch.but
        )
        self.outbox.say(sender, Fetched(fetch.stream, fetch.after, fetch.upto, fetch.tau, rows))

    def lose_store(self) -> None:
        self.log, self.changes, self.told, self.stood = {}, {}, None, None
        self.shipped.clear()
        self.outbox.forget(Ship)
        super().lose_store()
