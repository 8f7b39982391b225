"""What moving messages costs, by the time unit of the block that caused them.

Preset `paper` counts rows and synopsis entries; `real` counts also orders, visible numbers,
acknowledgements, recovery, and every repetition.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from engine.sites.costs import UnitCosts, times
from engine.sites.messages import (
    Deliver,
    Delta,
    Expire,
    Fetched,
    Message,
    Plan,
    Probe,
    Ship,
    Standing,
    Told,
    ref,
)

ENTRY = 0.25
MOVE = "move"
"""The kind of charges for rows a new hub lacks."""
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
    """`deliver` false leaves results out. `width` weighs a row by the streams merged in it.
    `ingest_cost` is what rows cost from a feeder that is elsewhere to the sites that store them: part
    of no way of joining, and so of no total."""

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
        message: Message,
        costs: UnitCosts,
        group: int = 0,
        less: float = 0.0,
    ) -> None:
        """Of several joins that share their messages, `group` is whose this one is, and `less` what
        the message holds that another took along."""
        if self.preset == "paper":
            told = (getattr(message, "epoch", None), getattr(message, "no", None))
            if isinstance(message, Ship):
                told = (message.moving, None)
            key = (group, sender, to, type(message).__name__, ref(message), *told)
            if key in self._seen:
                return
            self._seen.add(key)
        units = self.units(message) - less
        if units:
            stream, no = self._block(message)
            kind = type(message).__name__.lower()
            if isinstance(message, Fetched) or (isinstance(message, Ship) and message.moving):
                kind = MOVE
            tau = getattr(message, "tau", -math.inf)
            cost = times(units, costs.w[sender][to])
            self.charges.append(Charge(tau, sender, to, kind, stream, no, units, cost))

    def ingest(self, feeder: int, site: int, rows: int, costs: UnitCosts) -> None:
        """Rows on their way from a feeder to their site."""
        self.ingest_cost += times(rows * self.width(1), costs.w[feeder][site])

    def units(self, message: Message) -> float:
        real = self.preset == "real"
        match message:
            case Probe(position=position, parts=parts):
                return len(parts) * self.width(position + 1)
            case Deliver(results=results):
                return len(results) * self.width(self.n) if self.deliver else 0.0
            case Ship(rows=rows) | Fetched(rows=rows):
                return len(rows) * self.width(1)
            case Told():
                return ENTRY * (message.entries or real)
            case Delta(counts=counts) | Expire(counts=counts):
                return ENTRY * (len(counts) or real)
            case Plan(keep=keep):
                extras = math.ceil((self.n - 1) / 8) + math.ceil(self.n / 2) if real else 0
                return ENTRY * (len(keep) + extras)
            case Standing(counts=counts):
                return ENTRY * (1 + len(counts)) if real else 0.0
        return ENTRY if real else 0.0

    def _block(self, message: Message) -> tuple[int, int]:
        match message:
            case Probe(block=block) | Deliver(block=block) | Ship(block=block):
                return block
            case (
                Delta(stream=stream, no=no)
                | Plan(stream=stream, no=no)
                | Told(stream=stream, no=no)
                | Fetched(stream=stream, upto=no)
            ):
                return stream, no
            case Expire(stream=stream, number=number):
                return stream, number
        return -1, -1

    @property
    def total(self) -> float:
        return sum(charge.cost for charge in self.charges)

    @property
    def moved(self) -> float:
        """What hubs cost that took the place of others, or of planned joins."""
        return sum(charge.cost for charge in self.charges if charge.kind == MOVE)

    def by_unit(self) -> dict[float, float]:
        found: dict[float, float] = {}
        for charge in self.charges:
            found[charge.tau] = found.get(charge.tau, 0) + charge.cost
        return found

    def of_block(self, stream: int, no: int) -> float:
        """What moving a block's rows cost: its probes and results."""
        return sum(
            c.cost
            for c in self.charges
            if (c.stream, c.no) == (stream, no) and c.kind in ("probe", "ship", "deliver")
        )

    def text(self) -> str:
        """One charge a line, for comparison byte by byte."""
        return "\n".join(
            json.dumps([c.tau, c.sender, c.to, c.kind, c.stream, c.no, c.units, c.cost])
            for c in self.charges
        )
