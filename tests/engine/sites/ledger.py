"""The ledger: the cost of moving messages, by the time unit of the block that caused them.

Preset `paper` counts rows and synopsis entries; `real` also counts orders, visible numbers,
acknowledgements, recovery, and every repetition.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from seustream.engine.sites import messages as m
from seustream.engine.sites.costs import ENTRY, UnitCosts, times

MOVE = "move"
"""The kind of the charges for rows that a new hub lacks."""
Preset: TypeAlias = Literal["paper", "real"]


@dataclass(frozen=True, slots=True)
class Charge:
    tau: float
    sender: int
    to: int
    kind: str
    stream: int
    no: int
    units: float
    cost: float


@dataclass
class Ledger:
    """`deliver` false leaves results out. `width` weighs a row by the number of streams merged in
    it. `ingest_cost` is the cost of rows from a feeder elsewhere to the sites that store them: it
    is part of no way of joining, and so of no total."""

    n: int
    preset: Preset = "paper"
    deliver: bool = True
    width: Callable[[int], float] = lambda streams: 1
    charges: list[Charge] = field(default_factory=list)
    ingest_cost: float = 0.0
    _seen: set[tuple[object, ...]] = field(default_factory=set)

    def charge(
        self,
        sender: int,
        to: int,
        message: m.SiteMessage,
        costs: UnitCosts,
        group: int = 0,
        less: float = 0.0,
    ) -> None:
        """Charges a message. If several joins share their messages, `group` is the message's join,
        and `less` is the part of its content that another join's message already carried."""
        kind = type(message).__name__.lower()
        moving = getattr(message, "moving", None)
        if self.preset == "paper":
            about = (getattr(message, "epoch", None), getattr(message, "no", None))
            if isinstance(message, m.Ship):
                about = (moving, None)
            key = (group, sender, to, kind, message.ref, *about)
            if key in self._seen:
                return
            self._seen.add(key)
        units = self.units(message) - less
        if units:
            if isinstance(message, m.Fetched) or moving:
                kind = MOVE
            tau = getattr(message, "tau", -math.inf)
            cost = times(units, costs.w[sender][to])
            self.charges.append(Charge(tau, sender, to, kind, *_block(message), units, cost))

    def ingest(self, feeder: int, site: int, rows: int, costs: UnitCosts) -> None:
        """Charges rows on their way from a feeder to their site."""
        self.ingest_cost += times(rows * self.width(1), costs.w[feeder][site])

    def units(self, message: m.SiteMessage) -> float:
        """Returns the weight of a message, in rows."""
        real = self.preset == "real"
        match message:
            case m.Probe(position=position, parts=parts):
                return len(parts) * self.width(position + 1)
            case m.Deliver(results=results):
                return len(results) * self.width(self.n) if self.deliver else 0.0
            case m.Ship(rows=rows) | m.Fetched(rows=rows):
                return len(rows) * self.width(1)
            case m.Changes():
                return ENTRY * (message.entries or real)
            case m.Delta(counts=counts) | m.Expire(counts=counts):
                return ENTRY * (len(counts) or real)
            case m.Plan(keep=keep):
                extras = math.ceil((self.n - 1) / 8) + math.ceil(self.n / 2) if real else 0
                return ENTRY * (len(keep) + extras)
            case m.Standing(counts=counts):
                return ENTRY * (1 + len(counts)) if real else 0.0
        return ENTRY if real else 0.0

    @property
    def total(self) -> float:
        return sum(charge.cost for charge in self.charges)

    @property
    def moved(self) -> float:
        """Returns the cost of moves, to a hub that replaces another or replaces planned joins."""
        return sum(charge.cost for charge in self.charges if charge.kind == MOVE)

    def by_unit(self) -> dict[float, float]:
        units: dict[float, float] = {}
        for charge in self.charges:
            units[charge.tau] = units.get(charge.tau, 0) + charge.cost
        return units

    def of_block(self, stream: int, no: int) -> float:
        """Returns the cost of moving a block's rows: its probes and results."""
        way = ("probe", "ship", "deliver")
        return sum(
            c.cost for c in self.charges if (c.stream, c.no) == (stream, no) and c.kind in way
        )

    def text(self) -> str:
        """Writes one charge a line, for comparison byte by byte."""
        return "\n".join(
            json.dumps([c.tau, c.sender, c.to, c.kind, c.stream, c.no, c.units, c.cost])
            for c in self.charges
        )


def _block(message: m.SiteMessage) -> tuple[int, int]:
    """Returns the block a charge belongs to; (-1, -1) for none."""
    match message:
        case m.Probe(block=block) | m.Deliver(block=block) | m.Ship(block=block):
            return block
        case m.Expire(stream=stream, number=no) | m.Fetched(stream=stream, upto=no):
            return stream, no
        case m.Delta(stream=stream, no=no) | m.Plan(stream=stream, no=no):
            return stream, no
        case m.Changes(stream=stream, no=no):
            return stream, no
    return -1, -1
