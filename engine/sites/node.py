"""A node: the roles of one machine, as a site, a candidate for the centre, or the query node.

A node has no thread and no clock. `receive` and `tick` are passed the time and leave messages in
the outbox. The caller moves them: the simulated network, or a process with sockets. Each role lists
the messages it takes in `handlers`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from seustream.engine.sites import messages as m
from seustream.engine.sites.auto import AutoCentre, AutoSite
from seustream.engine.sites.centre import Centre
from seustream.engine.sites.costs import UnitCosts
from seustream.engine.sites.hub import Hub
from seustream.engine.sites.layout import SiteLayout
from seustream.engine.sites.model import BlockRows, Result
from seustream.engine.sites.outbox import Outbox
from seustream.engine.sites.sink import Sink
from seustream.engine.sites.site import Site
from seustream.engine.sites.store import Store

Emit: TypeAlias = Callable[[int, Result], None]
OnAccept: TypeAlias = Callable[[m.Delta | m.Announce, m.Plan], None]


class SiteNode:
    """One of the layout's nodes, with its roles there. `attempt` counts its lives: a node that
    starts again gets another one, and has forgotten everything."""

    def __init__(
        self,
        layout: SiteLayout,
        number: int,
        emit: Emit = lambda member, result: None,
        store: Store | None = None,
        attempt: int = 0,
    ) -> None:
        self.layout, self.number = layout, number
        self.outbox = Outbox(layout.retry)
        self.site: Site | None = None
        self.centre: Centre | None = None
        self.sink: Sink | None = None
        self.hub: Hub | None = None
        auto = layout.strategy == "auto"
        if number < len(layout.join):
            kind = AutoSite if auto else Site
            self.site = kind(layout, number, self.outbox, store, forgot=attempt > 0)
        self._costs, self._members = layout.costs, (True,) * layout.join.members
        self._on_accept: OnAccept = lambda delta, plan: None
        if number in layout.candidates:
            self.centre = self._new_centre(attempt)
        if number == layout.query_node:
            self.sink = Sink(self.outbox, emit)
        if auto and (self.site is not None or self.sink is not None):
            self.hub = Hub(layout, number, self.outbox)
            self.hub.follow(layout.first_epoch)

    @property
    def members(self) -> dict[int, SiteNode]:
        """The nodes of single joins of which this node consists."""
        return {0: self}

    def _new_centre(self, attempt: int) -> Centre:
        kind = AutoCentre if self.layout.strategy == "auto" else Centre
        centre = kind(self.layout, self.number, self.outbox, self._costs, attempt)
        centre.on_accept, centre.members = self._on_accept, self._members
        return centre

    def on_accept(self, call: OnAccept) -> None:
        """Registers a callback for each plan that the centre makes, including after it crashes
        here."""
        self._on_accept = call
        if self.centre is not None:
            self.centre.on_accept = call

    def crash_centre(self, attempt: int) -> None:
        """Makes the centre of this node forget everything; a site on the same node keeps its
        state."""
        if self.centre is not None:
            self.outbox.forget(m.Rebuild, m.Ask, m.NewEpoch)
            self.centre = self._new_centre(attempt)

    def submit(self, block: BlockRows, now: float) -> None:
        assert self.site is not None
        self.outbox.now = now
        self.site.submit(block)

    def set_costs(self, costs: UnitCosts) -> None:
        """Sets new unit costs; a centre that crashes here later starts again with them."""
        self._costs = costs
        if self.site is not None:
            self.site.costs = costs
        if self.hub is not None:
            self.hub.costs = costs
        if self.centre is not None:
            self.centre.set_costs(costs)

    def set_members(self, members: tuple[bool, ...]) -> None:
        """Sets the member queries that take part in blocks accepted from now on."""
        self._members = members
        if self.centre is not None:
            self.centre.members = members

    def tick(self, now: float) -> None:
        self.outbox.tick(now)
        if self.site is not None:
            self.site.tick()

    def receive(self, sender: int, message: m.SiteMessage, now: float) -> None:
        self.outbox.now = now
        if isinstance(message, m.Ack):
            self.outbox.answered(message.to, by=sender)
        elif isinstance(message, m.Stale):
            # Another node is in a later epoch than the one this node wanted to end.
            self.outbox.forget(m.Takeover)
        for role in (self.centre, self.site, self.hub, self.sink):
            if role is not None and (handle := role.handlers.get(type(message))) is not None:
                handle(sender, message)

    def drain(self) -> list[tuple[int, m.SiteMessage]]:
        """Returns the messages to send, and empties the outbox."""
        return self.outbox.drain()

    @property
    def idle(self) -> bool:
        """Returns whether nothing is open and nothing unanswered."""
        busy = self.site is not None and self.site.open
        return not busy and not self.outbox.unanswered and not self.outbox.out
