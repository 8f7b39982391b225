"""The events a matcher may still need, in columns, and per element the list of those that fit
it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from seustream.compiler.pattern.ir import Strategy
from seustream.engine.pattern.batch import EventBatch, concat
from seustream.engine.pattern.columns import Ints
from seustream.engine.pattern.event import END_OF_STREAM, Event
from seustream.engine.pattern.lists import FAR
from seustream.engine.pattern.meaning import Meaning
from seustream.engine.pattern.sampling import constants, fitting
from seustream.engine.stream.growing import Growing

_MOST_PIECES = 128


class KeptEvents:
    """Events in order, without those that fit no element. `rows` holds, by element, the places of
    the events that fit it. `gone` counts the earlier events that are forgotten, `came` all that
    arrived. `ordered` is whether they arrived in the order of their times."""

    def __init__(self, meaning: Meaning) -> None:
        # Of the numbers of events, which count the forgotten ones too, 32 bits are enough.
        self._lists = [Growing(np.uint32) for _ in meaning.query.elements]
        self.gone = self.came = 0
        self.ordered, self._newest = True, -1
        self._meaning, self._query = meaning, meaning.query
        self._constants = constants(meaning.query)
        self._pieces: list[EventBatch] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def rows(self) -> list[Ints]:
        return [(rows.view - _bits(self.gone)).astype(np.int64) for rows in self._lists]

    def fills(self, elements: Iterable[int]) -> bool:
        """Returns whether each of these elements has an event."""
        return all(len(self._lists[element]) for element in elements)

    @property
    def largest(self) -> int:
        return max(map(len, self._lists), default=0)

    @property
    def log(self) -> EventBatch | None:
        """All kept events in one piece, or None if there are none."""
        if len(self._pieces) > 1:
            self._pieces = [concat(*self._pieces)]
        return self._pieces[0] if self._pieces else None

    def latest(self, most: int) -> EventBatch:
        """Returns at most this many of the latest events; some must be kept."""
        log = self.log
        assert log is not None
        return log.take(slice(-most, None))

    def events(self) -> list[Event]:
        """Returns the kept events as single events."""
        return [event for piece in self._pieces for event in piece.rows()]

    def take(self, batch: EventBatch) -> tuple[EventBatch, list[Ints]]:
        """Adds events to their lists. Returns the ones that are kept, and by element the places
        among them of those that fit it."""
        self.came += len(batch)
        if len(batch):
            seq = batch.seq
            self.ordered &= bool(seq[0] > self._newest and (seq[1:] > seq[:-1]).all())
            self._newest = int(seq[-1])
        fits = fitting(self._query, batch, self._constants, self._meaning.faults)
        # Under STRICT any event at all comes between two others.
        kept = np.full(len(batch), self._query.strategy is Strategy.STRICT)
        for rows in fits:
            kept[rows] = True
        if not kept.all():
            batch = batch.take(kept.nonzero()[0])
            places = kept.cumsum() - 1
            fits = [places[rows] for rows in fits]
        for element, rows in enumerate(fits):
            if len(rows):
                self._lists[element].append((rows + (self.gone + self._size)).astype(np.uint32))
        if len(batch):
            self._pieces.append(batch)
            self._size += len(batch)
            if len(self._pieces) > _MOST_PIECES:
                self._pieces = [concat(*self._pieces)]
        return batch, fits

    def expire(self, now: int) -> int:
        """Forgets events that no later match can have; returns the time before which it forgets
        them."""
        horizon = 0 if now == END_OF_STREAM else self._query.horizon
        if horizon is None:
            return -FAR
        earliest, gone = max(now + 1 - horizon, -FAR), 0
        while self._pieces and (now == END_OF_STREAM or self._pieces[0].ts[-1] < earliest):
            gone += len(self._pieces.pop(0))
        if self._pieces and self._pieces[0].ts[0] < earliest:
            first = self._pieces[0]
            cut = int(np.searchsorted(first.ts, earliest, "left"))
            self._pieces[0] = first.take(slice(cut, None))
            gone += cut
        if gone:
            for rows in self._lists:
                if len(rows):
                    rows.drop(int((rows.view - _bits(self.gone)).searchsorted(gone)))
            self._size -= gone
            self.gone += gone
        return min(earliest, FAR)


def _bits(number: int) -> np.uint32:
    return np.uint32(number & 0xFFFFFFFF)
