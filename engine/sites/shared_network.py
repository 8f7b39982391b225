"""A simulated network for several queries over the same sites; see `transport` for one."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.sites.ledger import Ledger
from engine.sites.model import BlockRows, Tid
from engine.sites.shared import Bundle, SharedLayout, SharedNode, charge
from engine.sites.transport import message_is_for_centre
from engine.sites.weather import CLEAR, Mail, Weather


@dataclass
class SharedNetwork:
    """Nodes in one process and the bundles between them. `results` are a query and its rows, in
    the order of its streams, by site."""

    layout: SharedLayout
    weather: Weather = CLEAR
    seed: int = 0
    ledger: Ledger = field(init=False)
    results: list[tuple[int, tuple[Tid, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.now, self.next_tick = 0.0, self.layout.retry / 2
        self.mail: Mail[Bundle] = Mail(self.weather, self.seed)
        self.down: dict[int, float] = {}
        self.lives: dict[int, int] = {}
        self.ledger = Ledger(len(self.layout.sites), deliver=self.layout.deliver)
        self.nodes = {
            number: SharedNode(
                self.layout, number, lambda q, tids, result: self.results.append((q, tids))
            )
            for number in self.layout.nodes
        }

    def submit(self, block: BlockRows) -> None:
        self.nodes[block.stream].submit(block, self.now)
        self._post(block.stream)

    def crash_centre(self, node: int, until: float) -> None:
        """The centres there die and come back at a time, remembering nothing."""
        self.lives[node] = self.lives.get(node, 0) + 1
        self.nodes[node].crash_centre(self.lives[node])
        self.down[node] = until

    @property
    def idle(self) -> bool:
        return not self.mail and all(node.idle for node in self.nodes.values())

    def run(self, most: int = 1_000_000) -> None:
        """Moves messages until all is quiet."""
        for _ in range(most):
            if self.idle:
                return
            self.step()
        raise RuntimeError(f"not quiet after {most} events, seed {self.seed}")

    def step(self) -> None:
        """The next bundle or, if none is earlier, everybody's clock."""
        arrived = self.mail.arrived(self.next_tick)
        if arrived is not None:
            self.now, sender, to, bundle = arrived
            if self.now < self.down.get(to, 0.0):
                left = tuple(part for part in bundle.parts if not message_is_for_centre(part[1]))
                bundle = Bundle(left)
            self.nodes[to].receive(sender, bundle, self.now)
            self._post(to)
            return
        self.now = self.next_tick
        self.next_tick += self.layout.retry / 2
        for number, node in self.nodes.items():
            node.tick(self.now)
            self._post(number)

    def _post(self, sender: int) -> None:
        for to, bundle in self.nodes[sender].drain():
            charge(self.ledger, self.layout, sender, to, bundle)
            self.mail.post(self.now, sender, to, bundle)
