"""The synopsis filter before a device: tuples that cannot join in the window stay at their source.

Each source keeps, for a column that others need, which keys occurred in which stretch of time: one
bit per hash value, `bits` of them, one set per stretch. These synopses are what sources would send
each other. A tuple is decided once all streams it needs have promised to be past the end of its
window; until then it is held. Bits never miss a key, so results do not change. A tuple let through
by chance is dropped by the device.

    filter = SynopsisFilter(needs(compilation.program), streams)
    filter.push("R", rows);  filter.push("S", rows)       # as they come
    for stream, rows in filter.release(): ...             # what may join, in order of arrival
    filter.end("R");  filter.end("S")                     # nothing more comes

The price is time: a tuple waits for at most as long as its longest window.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seustream.engine.sites.needs import Needs, Partner

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
STRETCHES = 16
"""Stretches of time in the longest window; more of them are more exact and take more room."""


@dataclass(slots=True)
class SavedPrefilter:
    """The effect of the filter on a stream. A synopsis counts as its bits or as two bytes per key,
    whichever is shorter."""

    tuples: int = 0
    dropped: int = 0
    bytes: int = 0
    dropped_bytes: int = 0
    synopsis_bytes: int = 0

    @property
    def saved_bytes(self) -> int:
        """The bytes not sent, minus those of the synopses."""
        return self.dropped_bytes - self.synopsis_bytes


class KeysOverTime:
    """The keys of a column that occurred, by time: a row of bits for each stretch of time and, for
    each bit, the first stretch in which it was seen."""

    def __init__(self, bits: int, stretch: int) -> None:
        self.bits, self.stretch = bits, stretch
        # Row 0 stands for every stretch in which nothing was seen.
        self.matrix: Bools = np.zeros((8, bits), np.bool_)
        self.row_of: dict[int, int] = {}
        self.free = list(range(7, 0, -1))
        self.first: Ints = np.full(bits, _NEVER, np.int64)

    def __len__(self) -> int:
        return len(self.row_of)

    def add(self, places: Ints, ts: Ints) -> None:
        """Adds keys by their place among the bits; negative places are NULL and never occur."""
        valid = places >= 0
        places, when = places[valid], ts[valid] // self.stretch
        stretches, which = np.unique(when, return_inverse=True)
        rows = np.array([self._row(stretch) for stretch in stretches.tolist()], np.int64)
        if len(rows):
            self.matrix[rows[which], places] = True
            np.minimum.at(self.first, places, when)

    def _row(self, stretch: int) -> int:
        if stretch not in self.row_of:
            if not self.free:
                rows = len(self.matrix)
                self.matrix = np.concatenate((self.matrix, np.zeros_like(self.matrix)))
                self.free = list(range(2 * rows - 1, rows - 1, -1))
            self.row_of[stretch] = self.free.pop()
        return self.row_of[stretch]

    def has(self, places: Ints, ts: Ints, before: float, after: float) -> Bools:
        """Returns which keys may have occurred from `before` earlier to `after` later; `after` is
        finite."""
        found = np.zeros(len(places), np.bool_)
        mine = np.flatnonzero(places >= 0)
        places, when = places[mine], ts[mine] // self.stretch
        ahead = math.floor((self.stretch - 1 + after) / self.stretch)
        if math.isinf(before):
            found[mine] = self.first[places] <= when + ahead
            return found
        offsets = range(math.floor(-before / self.stretch), ahead + 1)
        stretches, which = np.unique(when, return_inverse=True)
        rows = np.array(
            [[self.row_of.get(s + offset, 0) for s in stretches.tolist()] for offset in offsets],
            np.int64,
        )
        seen = np.zeros(len(places), np.bool_)
        for row in rows:
            seen |= self.matrix[row[which], places]
        found[mine] = seen
        return found

    def forget(self, before: float) -> int:
        """Frees stretches that end before a time; returns the number of bytes they had as
        synopses."""
        size = 0
        for stretch in [at for at in self.row_of if (at + 1) * self.stretch <= before]:
            row = self.row_of.pop(stretch)
            size += min(self.bits // 8, 2 * int(np.count_nonzero(self.matrix[row])))
            self.matrix[row] = False
            self.free.append(row)
        return size


_NEVER = np.iinfo(np.int64).max


def places(column: pa.Array, bits: int) -> Ints:
    """Returns the places of keys among the bits; -1 for NULL."""
    valid = np.asarray(column.is_valid())
    kind = column.type
    if pa.types.is_date32(kind):
        column, kind = column.cast(pa.int32()), pa.int32()
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        numbers = np.asarray(pc.fill_null(column.cast(pa.int64()), 0), dtype=np.int64)
    else:
        coded = pc.fill_null(column.cast(pa.string()), "").dictionary_encode()
        words = [zlib.crc32(word.encode()) for word in coded.dictionary.to_pylist()]
        numbers = np.array(words, np.int64)[np.asarray(coded.indices)]
    spread = (numbers.view(np.uint64) * _SPREAD) >> np.uint64(32)
    return np.where(valid, (spread % np.uint64(bits)).astype(np.int64), -1)


@dataclass(slots=True)
class _SentStream:
    waiting: list[pa.Table] = field(default_factory=list)
    boundary: float = -math.inf
    saved: SavedPrefilter = field(default_factory=SavedPrefilter)


class SynopsisFilter:
    """The filter of all streams of a query set. `slack` is how far timestamps may fall back within
    a stream; `bits` is a power of two."""

    def __init__(
        self, needs: Needs, streams: Sequence[str], bits: int = 1 << 14, slack: int = 0
    ) -> None:
        if bits < 8 or bits & (bits - 1):
            raise ValueError(f"bits = {bits}: want a power of two, 8 or more")
        if slack < 0:
            raise ValueError(f"slack = {slack}: want 0 or more")
        self.needs, self.bits, self.slack = needs, bits, slack
        self.streams = {name: _SentStream() for name in streams}
        reaches = [
            reach
            for ways in needs.ways.values()
            for way in ways
            for partner in way
            for reach in (partner.before, partner.after)
            if not math.isinf(reach)
        ]
        stretch = max(1, math.ceil(max(reaches, default=1) / STRETCHES))
        self.keys = {
            (stream, column): KeysOverTime(bits, stretch)
            for stream, columns in needs.columns().items()
            for column in columns
        }

    def push(self, stream: str, rows: pa.Table) -> None:
        """Takes rows of one stream, with their timestamps in `ts`."""
        if not rows.num_rows:
            return
        mine = self.streams[stream]
        ts = np.asarray(rows.column("ts").combine_chunks(), dtype=np.int64)
        for (of, column), keys in self.keys.items():
            if of == stream:
                keys.add(places(rows.column(column).combine_chunks(), self.bits), ts)
        mine.waiting.append(rows)
        mine.saved.tuples += rows.num_rows
        mine.saved.bytes += rows.nbytes
        mine.boundary = max(mine.boundary, float(ts.max()) - self.slack)

    def promise(self, stream: str, boundary: float) -> None:
        """Promises that nothing of this stream comes before `boundary` any more."""
        mine = self.streams[stream]
        mine.boundary = max(mine.boundary, boundary)

    def end(self, stream: str) -> None:
        self.promise(stream, math.inf)

    @property
    def saved(self) -> dict[str, SavedPrefilter]:
        return {name: stream.saved for name, stream in self.streams.items()}

    def release(self) -> Iterator[tuple[str, pa.Table]]:
        """Yields the rows that are decided and may join, by stream in order of arrival."""
        for name, stream in self.streams.items():
            rows = self._decided(name, stream)
            if rows is None:
                continue
            kept = rows.filter(pa.array(self.may_join(name, rows)))
            stream.saved.dropped += rows.num_rows - kept.num_rows
            share = 1 - kept.num_rows / rows.num_rows
            stream.saved.dropped_bytes += round(rows.nbytes * share)
            if kept.num_rows:
                yield name, kept
        self.forget(self._earliest)

    def _decided(self, name: str, stream: _SentStream) -> pa.Table | None:
        """Returns the waiting rows before the first that has to keep waiting."""
        if not stream.waiting:
            return None
        rows = pa.concat_tables(stream.waiting)
        ts = np.asarray(rows.column("ts").combine_chunks(), dtype=np.int64)
        late = np.flatnonzero(ts >= self.limit(name))
        cut = int(late[0]) if len(late) else rows.num_rows
        stream.waiting = [rows.slice(cut)] if cut < rows.num_rows else []
        return rows.slice(0, cut) if cut else None

    def limit(self, name: str) -> float:
        """Returns the time before which rows of a stream are decided. A partner that may come at
        any later time is neither waited for nor decided."""
        return min(
            (
                self.streams[partner.stream].boundary - partner.after
                for way in self.needs.ways.get(name, ())
                for partner in way
                if not math.isinf(partner.after)
            ),
            default=math.inf,
        )

    def may_join(self, name: str, rows: pa.Table) -> Bools:
        """Returns which rows find, in at least one way, all the partners they need."""
        if name not in self.needs.ways:
            return np.ones(rows.num_rows, np.bool_)
        ts = np.asarray(rows.column("ts").combine_chunks(), dtype=np.int64)
        found = np.zeros(rows.num_rows, np.bool_)
        for way in self.needs.ways[name]:
            all_there = np.ones(rows.num_rows, np.bool_)
            for partner in way:
                all_there &= self._has(partner, rows, ts)
            found |= all_there
        return found

    def _has(self, partner: Partner, rows: pa.Table, ts: Ints) -> Bools:
        where = places(rows.column(partner.ours).combine_chunks(), self.bits)
        if math.isinf(partner.after):
            return where >= 0
        keys = self.keys[partner.stream, partner.column]
        return keys.has(where, ts, partner.before, partner.after)

    def forget(self, earliest: Callable[[str], float]) -> None:
        """Frees bits that no waiting or coming tuple asks for. `earliest` gives, for a stream, a
        time before which none is still to be decided."""
        for (stream, column), keys in self.keys.items():
            asked = [
                # A tuple that looks back for ever asks when a key was first seen, which is kept.
                earliest(name) - (0 if math.isinf(partner.before) else partner.before)
                for name, ways in self.needs.ways.items()
                for way in ways
                for partner in way
                if (partner.stream, partner.column) == (stream, column)
            ]
            freed = keys.forget(min(asked))
            self.streams[stream].saved.synopsis_bytes += freed

    def _earliest(self, name: str) -> float:
        """Returns a time before which no tuple of a stream is still to be decided."""
        stream = self.streams[name]
        first = [float(pc.min(part.column("ts")).as_py()) for part in stream.waiting]
        return min([stream.boundary, *first])
