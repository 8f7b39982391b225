"""A node: what runs on one machine, be it a site, a candidate for the centre, the query node.

A node has no thread and no clock. `receive` and `tick` are told the time and leave messages in
the outbox; whoever drives it moves them: the simulated network, or a process with sockets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from engine.sites.adaptive_centre import AdaptiveCentre
from engine.sites.adaptive_site import AdaptiveSite
from engine.sites.centre import Centre
from engine.sites.costs import UnitCosts
from engine.sites.errors import BadCosts, BadQuery
from engine.sites.hub import Hub
from engine.sites.messages import (
    Ack,
    Announce,
    Deliver,
    Delta,
    Done,
    Epoch,
    Expire,
    Fetch,
    Fetched,
    Forward,
    Joined,
    Led,
    Lost,
    Message,
    Plan,
    Probe,
    Rebuild,
    Ship,
    Stale,
    Standing,
    Takeover,
    Tell,
    Told,
    Wait,
)
from engine.sites.model import BlockRows, Join, Result
from engine.sites.outbox import Outbox
from engine.sites.planner import PLANNERS
from engine.sites.sink import Sink
from engine.sites.site import MAX_PENDING, RETRY_LIMIT, Site
from engine.sites.store import Store
from engine.sites.synopsis import Exact, Kind

Strategy: TypeAlias = Literal["planned", "auto"]


@dataclass(frozen=True)
class Layout:
    """What all nodes agree on before they start. Node k is the site of stream k; the query node
    and other candidates follow, or are sites as well. With the strategy `auto` rows go to a hub
    where planned joins would cost more (engine.sites.strategy)."""

    join: Join
    costs: UnitCosts
    query_node: int
    planner: str = "auto"
    candidates: tuple[int, ...] = ()
    deliver: bool = True
    kind: Kind = field(default_factory=Exact)
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
    def first_epoch(self) -> Epoch:
        if self.first_centre is not None:
            return 1, self.first_centre
        return 1, self.costs.centre(range(len(self.join)), self.candidates)


class Node:
    """One of the layout's nodes, with the roles it gives it. `attempt` counts its lives: a node
    that starts again is handed another one, and has forgotten everything."""

    def __init__(
        self,
        layout: Layout,
        number: int,
        emit: Callable[[int, Result], None] = lambda member, result: None,
        attempt: int = 0,
        store: Store | None = None,
    ) -> None:
        self.layout, self.number = layout, number
        self.outbox = Outbox(layout.retry)
        self.site: Site | None = None
        self.centre: Centre | None = None
        self.sink: Sink | None = None
        if number < len(layout.join):
            kind = AdaptiveSite if layout.strategy == "auto" else Site
            self.site = kind(
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
        self._told: Callable[[Delta | Announce, Plan], None] = lambda delta, plan: None
        if number in layout.candidates:
            self.centre = self._new_centre(attempt)
        if number == layout.query_node:
            self.sink = Sink(self.outbox, emit)
        self.hub: Hub | None = None
        if layout.strategy == "auto" and (self.site is not None or self.sink is not None):
            self.hub = Hub(layout.join, number, self.outbox, layout.query_node, layout.costs)
            self.hub.follow(layout.first_epoch)

    def _new_centre(self, attempt: int) -> Centre:
        layout = self.layout
        kind = AdaptiveCentre if layout.strategy == "auto" else Centre
        centre = kind(
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
        centre.on_accept, centre.members = self._told, self._members
        return centre

    def on_accept(self, told: Callable[[Delta | Announce, Plan], None]) -> None:
        """Tells someone of each plan the centre makes, also after it crashed here."""
        self._told = told
        if self.centre is not None:
            self.centre.on_accept = told

    def crash_centre(self, attempt: int) -> None:
        """The centre of this node forgets everything; a site beside it does not."""
        assert self.centre is not None
        self.outbox.forget(Rebuild, Tell, Led)
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
        """Which member queries take part in blocks accepted from now on."""
        self._members = members
        if self.centre is not None:
            self.centre.members = members

    def tick(self, now: float) -> None:
        self.outbox.tick(now)
        if self.site is not None:
            self.site.tick()

    def receive(self, sender: int, message: Message, now: float) -> None:
        self.outbox.now = now
        match message:
            case Ack():
                self.outbox.answered(message.ref, by=sender)
                if self.site is not None:
                    self.site.on_ack(message)
            case Stale():
                # Somebody is further than the epoch this node wanted to end.
                self.outbox.forget(Takeover)
                if self.centre is not None:
                    self.centre.on_stale(message)
                if self.site is not None:
                    self.site.on_stale(message)
            case Delta() | Expire() | Standing() | Takeover() | Announce() | Told() | Joined():
                if self.centre is not None:
                    self._to_centre(self.centre, sender, message)
            case Deliver() | Lost():
                if self.sink is not None:
                    if isinstance(message, Deliver):
                        self.sink.on_deliver(sender, message)
                    else:
                        self.sink.on_lost(sender, message)
            case Ship() | Fetched() | Forward() | Led():
                if self.hub is not None:
                    self._to_hub(self.hub, sender, message)
            case _:
                if self.site is not None:
                    self._to_site(self.site, sender, message)

    def _to_centre(
        self,
        centre: Centre,
        sender: int,
        message: Delta | Expire | Standing | Takeover | Announce | Told | Joined,
    ) -> None:
        match message:
            case Delta() | Announce():
                centre.on_delta(sender, message)
            case Told() if isinstance(centre, AdaptiveCentre):
                centre.on_told(sender, message)
            case Joined() if isinstance(centre, AdaptiveCentre):
                centre.on_joined(sender, message)
            case Expire():
                centre.on_expire(sender, message)
            case Standing():
                centre.on_standing(sender, message)
            case Takeover():
                centre.on_takeover(sender, message)

    def _to_hub(self, hub: Hub, sender: int, message: Ship | Fetched | Forward | Led) -> None:
        match message:
            case Ship():
                hub.on_ship(sender, message)
            case Fetched():
                hub.on_fetched(sender, message)
            case Forward():
                hub.on_forward(sender, message)
            case Led():
                hub.on_led(sender, message)

    def _to_site(self, site: Site, sender: int, message: Message) -> None:
        match message:
            case Plan():
                site.on_plan_message(message)
            case Probe():
                site.on_probe(sender, message)
            case Done():
                site.on_done(sender, message)
            case Tell() if isinstance(site, AdaptiveSite):
                site.on_tell(sender, message)
            case Fetch() if isinstance(site, AdaptiveSite):
                site.on_fetch(sender, message)
            case Rebuild():
                site.on_rebuild(sender, message)
                if self.hub is not None:
                    self.hub.follow(message.epoch)
                if self.centre is not None:
                    self.centre.give_way(message.epoch)
            case Wait():
                site.on_wait(message)

    def drain(self) -> list[tuple[int, Message]]:
        """What this node has to say."""
        return self.outbox.drain()

    @property
    def idle(self) -> bool:
        """Nothing open, nothing unanswered."""
        busy = self.site is not None and self.site.open
        return not busy and not self.outbox.unanswered and not self.outbox.out
