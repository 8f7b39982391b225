"""A node: what runs on one machine, be it a site, a candidate for the centre, the query node.

A node has no thread and no clock. `receive` and `tick` are handed the time and leave messages in
the outbox; what drives it moves them: the simulated network, or a process with sockets. A role
lists the messages it takes in `handlers`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from seustream.engine.sites import messages as m
from seustream.engine.sites.auto import AutoCentre, AutoSite
from seustream.engine.sites.centre import Centre
from seustream.engine.sites.costs import UnitCosts
from seustream.engine.sites.errors import BadCosts, BadQuery
from seustream.engine.sites.hub import Hub
from seustream.engine.sites.model import BlockRows, EquiJoin, Result
from seustream.engine.sites.outbox import Outbox
from seustream.engine.sites.planner import PLANNERS
from seustream.engine.sites.sink import Sink
from seustream.engine.sites.site import MAX_PENDING, RETRY_LIMIT, Site
from seustream.engine.sites.store import Store
from seustream.engine.sites.synopsis import Exact, SynopsisKind

Strategy: TypeAlias = Literal["planned", "auto"]
Emit: TypeAlias = Callable[[int, Result], None]
OnAccept: TypeAlias = Callable[[m.Delta | m.Announce, m.Plan], None]


@dataclass(frozen=True)
class SiteLayout:
    """The facts all nodes agree on before they start. Node k is the site of stream k; the query node
    and other candidates follow, or are sites as well. With the strategy `auto` rows go to a hub
    where planned joins would cost more (seustream.engine.sites.account)."""

    join: EquiJoin
    costs: UnitCosts
    query_node: int
    planner: str = "auto"
    candidates: tuple[int, ...] = ()
    deliver: bool = True
    kind: SynopsisKind = field(default_factory=Exact)
    retry: float = 20.0
    retry_limit: int = RETRY_LIMIT
    max_pending: int = MAX_PENDING
    strategy: Strategy = "planned"
    first_centre: int | None = None

    def __post_init__(self) -> None:
        if not self.candidates:
            object.__setattr__(self, "candidates", tuple(range(len(self.join))))
        needed = max(len(self.join) - 1, self.query_node, *self.candidates) + 1
        if len(self.costs) < needed:
            raise BadCosts(f"unit costs for {len(self.costs)} nodes, there are {needed}")
        if self.strategy not in get_args(Strategy):
            raise BadQuery(f"there is no strategy {self.strategy!r}", "planned or auto")

    @property
    def nodes(self) -> tuple[int, ...]:
        return tuple(sorted({*range(len(self.join)), self.query_node, *self.candidates}))

    @property
    def sources(self) -> int:
        return len(self.join)

    @property
    def first_epoch(self) -> m.Epoch:
        if self.first_centre is not None:
            return 1, self.first_centre
        return 1, self.costs.centre(range(len(self.join)), self.candidates)

    def node(
        self, number: int, emit: Emit, store: Store | None = None, attempt: int = 0
    ) -> SiteNode:
        return SiteNode(self, number, emit, attempt, store)


class SiteNode:
    """One of the layout's nodes, with the roles it gives it. `attempt` counts its lives: a node
    that starts again is handed another one, and has forgotten everything."""

    def __init__(
        self,
        layout: SiteLayout,
        number: int,
        emit: Emit = lambda member, result: None,
        attempt: int = 0,
        store: Store | None = None,
    ) -> None:
        self.layout, self.number = layout, number
        self.outbox = Outbox(layout.retry)
        self.site: Site | None = None
        self.centre: Centre | None = None
        self.sink: Sink | None = None
        self.hub: Hub | None = None
        auto = layout.strategy == "auto"
        if number < len(layout.join):
            self.site = (AutoSite if auto else Site)(
                layout.join,
                number,
                self.outbox,
                epoch=layout.first_epoch,
                query_node=layout.query_node,
                costs=layout.costs,
                candidates=layout.candidates,
                kind=layout.kind,
                store=store,
                retry_limit=layout.retry_limit,
                max_pending=layout.max_pending,
                forgot=attempt > 0,
            )
        self._costs, self._members = layout.costs, (True,) * layout.join.members
        self._on_accept: OnAccept = lambda delta, plan: None
        if number in layout.candidates:
            self.centre = self._new_centre(attempt)
        if number == layout.query_node:
            self.sink = Sink(self.outbox, emit)
        if auto and (self.site is not None or self.sink is not None):
            self.hub = Hub(layout.join, number, self.outbox, layout.query_node, layout.costs)
            self.hub.follow(layout.first_epoch)

    @property
    def members(self) -> dict[int, SiteNode]:
        """The nodes of single joins it is made of."""
        return {0: self}

    def _new_centre(self, attempt: int) -> Centre:
        layout = self.layout
        centre = (AutoCentre if layout.strategy == "auto" else Centre)(
            layout.join,
            self.number,
            self.outbox,
            epoch=layout.first_epoch if not attempt else (0, layout.first_epoch[1]),
            costs=self._costs,
            planner=PLANNERS[layout.planner],
            query_node=layout.query_node if layout.deliver else None,
            candidates=layout.candidates,
            kind=layout.kind,
            attempt=attempt,
        )
        centre.on_accept, centre.members = self._on_accept, self._members
        return centre

    def on_accept(self, call: OnAccept) -> None:
        """Calls back for each plan the centre makes, also after it crashed here."""
        self._on_accept = call
        if self.centre is not None:
            self.centre.on_accept = call

    def crash_centre(self, attempt: int) -> None:
        """The centre of this node forgets everything; a site beside it does not."""
        if self.centre is not None:
            self.outbox.forget(m.Rebuild, m.Ask, m.NewEpoch)
            self.centre = self._new_centre(attempt)

    def submit(self, block: BlockRows, now: float) -> None:
        assert self.site is not None
        self.outbox.now = now
        self.site.submit(block)

    def set_costs(self, costs: UnitCosts) -> None:
        """The newest unit costs; a centre that crashes here later starts again with them."""
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
            # Somebody is further than the epoch this node wanted to end.
            self.outbox.forget(m.Takeover)
        for role in (self.centre, self.site, self.hub, self.sink):
            if role is not None and (handle := role.handlers.get(type(message))) is not None:
                handle(sender, message)

    def drain(self) -> list[tuple[int, m.SiteMessage]]:
        """The messages to send."""
        return self.outbox.drain()

    @property
    def idle(self) -> bool:
        """Nothing open, nothing unanswered."""
        busy = self.site is not None and self.site.open
        return not busy and not self.outbox.unanswered and not self.outbox.out
