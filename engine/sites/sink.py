"""The query node: emits each combination once.

Without a crash of the centre, every combination comes once. A block planned again after a crash may
find combinations again, which are recognised by their rows. A combination is remembered until no
unfinished block can find it: until its window ends before the watermark.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

from seustream.engine.sites.messages import Deliver, Done, Lost, SiteMessage
from seustream.engine.sites.model import BlockId, Result, Tid
from seustream.engine.sites.outbox import Outbox


class Sink:
    """Receives results. `emit` gets each once per member query: the member and the rows, in stream
    order."""

    def __init__(self, outbox: Outbox, emit: Callable[[int, Result], None]) -> None:
        self.outbox, self.emit = outbox, emit
        self.blocks: dict[BlockId, float] = {}
        self.seen: dict[tuple[int, tuple[Tid, ...]], float] = {}
        self.watermark = -math.inf
        self.incomplete = False
        self.counters: Counter[str] = Counter()
        self.handlers: dict[type[SiteMessage], Callable[[int, Any], None]] = {
            Deliver: self.on_deliver,
            Lost: self.on_lost,
        }

    def on_deliver(self, sender: int, message: Deliver) -> None:
        self.outbox.ack(sender, message)
        if message.block in self.blocks or message.tau < self.watermark:
            self.counters["repeated deliveries"] += 1
            return
        self.blocks[message.block] = message.tau
        for result in message.results:
            for member in result.members:
                key = (member, result.tids)
                if key in self.seen:
                    self.counters["repeated results"] += 1
                    continue
                self.seen[key] = min(row.ends[member] for row in result.rows)
                self.counters["results"] += 1
                self.emit(member, result)
        done = Done(message.block, message.tau, message.spent, len(message.results))
        self.outbox.repeat(message.block[0], done)
        if message.watermark > self.watermark:
            self.watermark = message.watermark
            self.blocks = {b: tau for b, tau in self.blocks.items() if tau >= self.watermark}
            self.seen = {k: end for k, end in self.seen.items() if end >= self.watermark}

    def on_lost(self, sender: int, message: Lost) -> None:
        self.outbox.ack(sender, message)
        self.incomplete = True
        self.counters["lost stores"] += 1
