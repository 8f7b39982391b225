"""A simulated network: nodes in one process, messages that are late, lost and repeated, and nodes
that crash, all drawn from a seed."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from seustream.engine.sites import messages as m
from seustream.engine.sites.costs import ENTRY, UnitCosts
from seustream.engine.sites.explain import Block, block_of
from seustream.engine.sites.layout import SiteLayout
from seustream.engine.sites.model import BlockRows, EquiJoin, Result
from seustream.engine.sites.node import SiteNode
from seustream.engine.sites.shared import Bundle, SharedLayout, node_of
from seustream.engine.sites.store import Store
from tests.engine.sites.ledger import Ledger

Passes = Callable[[int, int, Any], bool]
"""Returns whether a message from one node to another gets through."""


@dataclass(frozen=True, slots=True)
class LineFaults:
    """The faults of a network: the longest delay, and the shares of messages lost and repeated."""

    delay: int = 0
    loss: float = 0.0
    repeat: float = 0.0


NO_FAULTS = LineFaults()


class Mail:
    """Messages under way. A message from a node to itself arrives at once and is never lost."""

    def __init__(self, faults: LineFaults, seed: int) -> None:
        self.faults, self.chance = faults, random.Random(seed)
        self._count = itertools.count()
        self._under_way: list[tuple[float, int, int, int, Any]] = []

    def __bool__(self) -> bool:
        return bool(self._under_way)

    def post(self, now: float, sender: int, to: int, parcel: object) -> None:
        here, copies = sender == to, 1
        if not here:
            copies -= self.chance.random() < self.faults.loss
            copies += self.chance.random() < self.faults.repeat
        for _ in range(copies):
            late = 0 if here else self.chance.randint(0, self.faults.delay)
            heapq.heappush(self._under_way, (now + late, next(self._count), sender, to, parcel))

    def arrived(self, until: float) -> tuple[float, int, int, Any] | None:
        """Returns the next parcel that arrives up to a time: when, from whom, to whom, and its
        content."""
        if not self._under_way or self._under_way[0][0] > until:
            return None
        at, _, sender, to, parcel = heapq.heappop(self._under_way)
        return at, sender, to, parcel


@dataclass
class SiteNetwork:
    """Nodes in one process and the messages between them. Time moves from event to event. `stores`
    gives a site's store if it is not to be in memory. `results` are what the query node emits: the
    number of a member query, and a result."""

    layout: SiteLayout | SharedLayout
    faults: LineFaults = NO_FAULTS
    seed: int = 0
    ledger: Ledger = field(default_factory=lambda: Ledger(0))
    results: list[tuple[int, Result]] = field(default_factory=list)
    passes: Passes = lambda sender, to, message: True
    stores: Callable[[int], Store | None] = lambda site: None

    def __post_init__(self) -> None:
        self.now, self.next_tick = 0.0, self.layout.retry / 2
        self.costs = self.layout.costs
        self.mail = Mail(self.faults, self.seed)
        self.nodes: dict[int, Any] = {
            number: node_of(
                self.layout,
                number,
                lambda number, result: self.results.append((number, result)),
                self.stores(number) if number < self.layout.sources else None,
            )
            for number in self.layout.nodes
        }
        self.down: dict[int, float] = {}
        self.lives: dict[int, int] = {}
        if not self.ledger.n:
            self.ledger = Ledger(self.layout.sources, deliver=self.layout.deliver)

    # --- what a user does -------------------------------------------------------

    def submit(self, block: BlockRows, feeder: int | None = None) -> None:
        """Hands a block to its site; if it comes from a feeder on another node, charges the way."""
        self.nodes[block.stream].submit(block, self.now)
        if feeder is not None:
            self.ledger.ingest(feeder, block.stream, len(block.rows), self.costs)
        self._post(block.stream)

    def set_costs(self, costs: UnitCosts, nodes: Iterable[int] | None = None) -> None:
        """Sets new unit costs at some nodes now; the others may follow later."""
        self.costs = costs
        for number in self.nodes if nodes is None else nodes:
            self.nodes[number].set_costs(costs)
            self._post(number)

    def crash_centre(self, node: int, until: float) -> None:
        """Kills the centre of a node, which comes back at a given time, remembering nothing."""
        self.lives[node] = self.lives.get(node, 0) + 1
        self.nodes[node].crash_centre(self.lives[node])
        self.down[node] = until

    def lose_store(self, stream: int) -> None:
        node: SiteNode = self.nodes[stream]
        assert node.site is not None
        node.site.lose_store()
        self._post(stream)

    @property
    def idle(self) -> bool:
        return not self.mail and all(node.idle for node in self.nodes.values())

    def run(self, until: Callable[[], bool] | None = None, most: int = 1_000_000) -> None:
        """Moves messages until the network is idle, or a condition holds."""
        for _ in range(most):
            if (self.idle and until is None) or (until is not None and until()):
                return
            self.step()
        raise RuntimeError(f"not quiet after {most} events, seed {self.seed}")

    # --- events -----------------------------------------------------------------

    def step(self) -> None:
        """Delivers the next message or, if none is earlier, ticks every node's clock."""
        arrived = self.mail.arrived(self.next_tick)
        if arrived is None:
            self.now = self.next_tick
            self.next_tick += self.layout.retry / 2
            for number, node in self.nodes.items():
                node.tick(self.now)
                self._post(number)
            return
        self.now, sender, to, parcel = arrived
        if self.now < self.down.get(to, 0.0):
            parcel = without_centre(parcel)
        if parcel is not None:
            self.nodes[to].receive(sender, parcel, self.now)
            self._post(to)

    def _post(self, sender: int) -> None:
        """Posts the outgoing messages of a node."""
        for to, parcel in self.nodes[sender].drain():
            charge(self.layout, self.ledger, sender, to, parcel, self.costs)
            if sender == to or self.passes(sender, to, parcel):
                self.mail.post(self.now, sender, to, parcel)


def charge(
    layout: SiteLayout | SharedLayout,
    ledger: Ledger,
    sender: int,
    to: int,
    parcel: m.SiteMessage | Bundle,
    costs: UnitCosts,
) -> None:
    """Charges a message, or a bundle: a key that several of its messages hold counts once."""
    if isinstance(parcel, m.SiteMessage):
        ledger.charge(sender, to, parcel, costs)
        return
    assert isinstance(layout, SharedLayout)
    seen: set[tuple[object, ...]] = set()
    for g, message in parcel.parts:
        less = 0.0
        if isinstance(message, m.Delta | m.Plan | m.Expire):
            group = layout.groups[g]
            columns = group.columns(message.stream)
            held = message.keep if isinstance(message, m.Plan) else message.counts
            for entry in held:
                key = (type(message), group.sites[message.stream], columns, entry)
                less += ENTRY * (key in seen)
                seen.add(key)
        ledger.charge(sender, to, message, costs, g, less)


def without_centre(parcel: m.SiteMessage | Bundle) -> m.SiteMessage | Bundle | None:
    """Returns the part of a message that reaches a node whose centre is dead."""
    if isinstance(parcel, m.SiteMessage):
        return None if parcel.CENTRE else parcel
    return Bundle(tuple(part for part in parcel.parts if not part[1].CENTRE))


@dataclass
class Record:
    """All decisions of a run, in the order in which they were made; for a block planned again after
    a crash, the last one."""

    join: EquiJoin
    ledger: Ledger
    decisions: dict[tuple[int, int], Block] = field(default_factory=dict)

    def note(self, delta: m.Delta | m.Announce, plan: m.Plan) -> None:
        self.decisions[plan.stream, plan.no] = block_of(self.join, delta, plan)

    def blocks(self) -> list[Block]:
        return [
            replace(block, actual=self.ledger.of_block(*key))
            for key, block in self.decisions.items()
        ]


def watch(network: SiteNetwork) -> Record:
    """Records the decisions of a network's centres from now on, whichever of them leads."""
    assert isinstance(network.layout, SiteLayout)
    record = Record(network.layout.join, network.ledger)
    for node in network.nodes.values():
        node.on_accept(record.note)
    return record
