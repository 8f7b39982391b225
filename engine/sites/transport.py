"""A simulated network: partitions, crashes and the weather, all drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from engine.sites.costs import UnitCosts
from engine.sites.ledger import Ledger
from engine.sites.messages import (
    Announce,
    Delta,
    Expire,
    Joined,
    Message,
    Stale,
    Standing,
    Takeover,
    Told,
)
from engine.sites.model import BlockRows, Result
from engine.sites.node import Layout, Node
from engine.sites.store import Store
from engine.sites.weather import CLEAR, Mail, Weather

Filter = Callable[[int, int, Message], bool]
"""Whether a message from one node to another gets through."""


@dataclass
class Network:
    """Nodes in one process and the messages between them. Time moves from event to event. `stores`
    gives a site's store where it is not to be in memory."""

    layout: Layout
    weather: Weather = CLEAR
    seed: int = 0
    ledger: Ledger | None = None
    results: list[tuple[int, Result]] = field(default_factory=list)
    passes: Filter = lambda sender, to, message: True
    stores: Callable[[int], Store | None] = lambda site: None

    def __post_init__(self) -> None:
        self.now = 0.0
        self.costs = self.layout.costs
        self.mail: Mail[Message] = Mail(self.weather, self.seed)
        self.nodes = {
            number: Node(
                self.layout,
                number,
                lambda m, r: self.results.append((m, r)),
                store=self.stores(number) if number < len(self.layout.join) else None,
            )
            for number in self.layout.nodes
        }
        self.down: dict[int, float] = {}
        self.lives: dict[int, int] = {}
        self.next_tick = self.layout.retry / 2
        self.ledger = self.ledger or Ledger(len(self.layout.join), deliver=self.layout.deliver)

    # --- what a user does -------------------------------------------------------

    def submit(self, block: BlockRows, feeder: int | None = None) -> None:
        """Hands a block to its site; from a feeder on another node, what that costs is counted."""
        self.nodes[block.stream].submit(block, self.now)
        if feeder is not None:
            assert self.ledger is not None
            self.ledger.ingest(feeder, block.stream, len(block.rows), self.costs)
        self._post(block.stream)

    def set_costs(self, costs: UnitCosts, nodes: Iterable[int] | None = None) -> None:
        """New unit costs reach some nodes now, the others perhaps later."""
        self.costs = costs
        for number in self.nodes if nodes is None else nodes:
            self.nodes[number].set_costs(costs)
            self._post(number)

    def crash_centre(self, node: int, until: float) -> None:
        """The centre there dies and comes back at a time, remembering nothing."""
        self.lives[node] = self.lives.get(node, 0) + 1
        self.nodes[node].crash_centre(self.lives[node])
        self.down[node] = until

    def lose_store(self, stream: int) -> None:
        site = self.nodes[stream].site
        assert site is not None
        site.lose_store()
        self._post(stream)

    @property
    def idle(self) -> bool:
        return not self.mail and all(node.idle for node in self.nodes.values())

    def run(self, until: Callable[[], bool] | None = None, most: int = 1_000_000) -> None:
        """Moves messages until all is quiet, or a condition holds."""
        for _ in range(most):
            if (self.idle and until is None) or (until is not None and until()):
                return
            self.step()
        raise RuntimeError(f"not quiet after {most} events, seed {self.seed}")

    # --- events -----------------------------------------------------------------

    def step(self) -> None:
        """The next message or, if none is earlier, everybody's clock."""
        arrived = self.mail.arrived(self.next_tick)
        if arrived is not None:
            self.now, sender, to, message = arrived
            node = self.nodes[to]
            if self._is_down(to) and message_is_for_centre(message):
                return
            node.receive(sender, message, self.now)
            self._post(to)
            return
        self.now = self.next_tick
        self.next_tick += self.layout.retry / 2
        for number, node in self.nodes.items():
            node.tick(self.now)
            self._post(number)

    def _is_down(self, node: int) -> bool:
        return self.now < self.down.get(node, 0.0)

    def _post(self, sender: int) -> None:
        """Sends what a node has to say."""
        for to, message in self.nodes[sender].drain():
            assert self.ledger is not None
            self.ledger.charge(sender, to, message, self.costs)
            if sender == to or self.passes(sender, to, message):
                self.mail.post(self.now, sender, to, message)


def message_is_for_centre(message: Message) -> bool:
    return isinstance(
        message, Delta | Expire | Standing | Stale | Takeover | Announce | Told | Joined
    )
