"""The golden model: M3Join on the Roujoin architecture, by its definition.

It reads an image's factors and combinations, never its programs, so that the execution by the
instruction-level model and the hardware is checked against it. Raw tuples are taken in blocks,
whose probes meet window tuples in numpy (`seustream.cosim.pairs`). Position decides which of these
a probe may see: those stored up to its raw tuple's arrival, not expired, and not pushed out by
then. A block therefore gives exactly the results of its tuples one by one. It counts in 64 bits;
the limits of a device's counters only decide which tuples leave early.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from seustream.compiler.wjasip.image import decode
from seustream.cosim.groups import GroupedResults, groups_of, members_of
from seustream.cosim.pairs import (
    Bools,
    Codes,
    Keys,
    by_all,
    by_index,
    holds,
    index_of,
    shared_equality,
)
from seustream.hdl.config import MAX_ATTRIBUTES, MAX_STREAMS, DeviceConfig
from seustream.hdl.device import (
    NOT_IN_RESULT,
    Area,
    Batch,
    HandedOver,
    Ints,
    NotLoaded,
    Results,
    Retention,
    Selection,
    Status,
    Tables,
    Window,
    WindowKind,
    check_batch,
)

_BLOCK, _LONG_BLOCK = 256, 4096
"""Raw tuples per block: few if probes meet all of a window, which grows by as many; many if an
index finds their partners, which is rebuilt for each block."""
_EARLIEST = int(np.iinfo(np.int64).min)
_decoded = functools.lru_cache(maxsize=4)(decode)

Joins: TypeAlias = Callable[[int, int, int, Ints], None]
"""Called with what probes of a tag found in an area: tag, area, the tag of the joined tuples, and
their sequence numbers by stream, one row each."""


@dataclass(slots=True)
class _Store:
    """The window buffer of a join area."""

    timestamp: Ints
    sequence: Ints
    attributes: Codes
    bits: Ints

    @classmethod
    def empty(cls) -> _Store:
        none = np.empty(0, np.int64)
        return cls(none, none, np.empty((0, MAX_ATTRIBUTES), np.uint32), none)

    def __len__(self) -> int:
        return len(self.timestamp)

    def append(self, batch: Batch, rows: Ints, bits: Ints) -> None:
        self.timestamp = np.concatenate((self.timestamp, batch.timestamp[rows]))
        self.sequence = np.concatenate((self.sequence, batch.sequence[rows]))
        self.attributes = np.concatenate((self.attributes, batch.attributes[rows]))
        self.bits = np.concatenate((self.bits, bits))

    def drop_before(self, position: int) -> None:
        self.timestamp = self.timestamp[position:].copy()
        self.sequence = self.sequence[position:].copy()
        self.attributes = self.attributes[position:].copy()
        self.bits = self.bits[position:].copy()


@dataclass(slots=True)
class _Sight:
    """The part of one window that the raw tuples of a block see: positions [low, high) for each."""

    low: Ints
    high: Ints


@dataclass(slots=True)
class _Probes:
    """Probe tuples of one route tag: the block row of their raw tuple and, by stream, what they
    carry. `bits` are the raw tuple's own selection bits, 0 once joined."""

    row: Ints
    sequence: Ints
    timestamp: Ints
    attributes: Codes
    bits: Ints

    def __len__(self) -> int:
        return len(self.row)


class GoldenDevice:
    """Device contract: `seustream.hdl.device.Device`. `joins`, if given, is called with every
    joined tuple."""

    def __init__(self, config: DeviceConfig, joins: Joins | None = None) -> None:
        self.config, self._joins = config, joins
        self._tables: Tables | None = None
        self._block_size = _BLOCK
        self._indexes: dict[tuple[int, int], Keys] = {}  # of this block: area, attribute
        self.reset()

    def _empty(self) -> None:
        streams = 0 if self._tables is None else self._tables.streams
        self._stores = [_Store.empty() for _ in range(streams)]
        self._counter = np.full(streams, -1, np.int64)  # last sequence number, by stream

    # --- contract -------------------------------------------------------------

    def load(self, image: bytes) -> None:
        tables = _decoded(image, self.config)
        if not self.config.groups:
            tables = replace(tables, grouped={})
        old, self._tables = self._tables, tables
        if old is None or old.groups != tables.groups:
            self._empty()
        for store, selections in zip(self._stores, tables.selections, strict=True):
            store.bits = _selection_bits(store.attributes, selections)
        indexed = (
            shared_equality(area, row.pre_tag) is not None
            for area in tables.areas
            for row in area.combinations
        )
        self._block_size = _LONG_BLOCK if all(indexed) else _BLOCK

    def reset(self) -> None:
        self._empty()
        self._now: int | None = None
        self._status = Status()

    def flush(self) -> Results:
        return Results()

    def status(self) -> Status:
        occupancy = tuple(len(store) for store in self._stores)
        return replace(self._status, loaded=self._tables is not None, occupancy=occupancy)

    def push(self, batch: Batch) -> Results:
        if self._tables is None:
            raise NotLoaded
        check_batch(batch, self._tables, self.config, self._now)
        size = self._block_size
        members: list[GroupedResults] = []
        found = []
        for start in range(0, len(batch), size):
            found.append(self._block(self._tables, batch.slice(start, start + size), members))
        groups = groups_of(members)
        self._status.delivered += int(groups.count.sum())
        return replace(Results.concatenate(found), grouped=groups)

    # --- one block ------------------------------------------------------------

    def _block(self, tables: Tables, block: Batch, members: list[GroupedResults]) -> Results:
        counters = self._count(tables, block)
        bits, stored = self._door(tables, block)
        handed, sights = [], []
        for stream in range(tables.streams):
            rows = np.flatnonzero(stored & (block.stream == stream))
            sight, left = self._insert(tables, block, stream, rows, bits[rows], counters[:, stream])
            sights.append(sight)
            handed.append(left)
        self._indexes = {}
        found = list(self._circulate(tables, block, bits, stored, counters, sights, members))
        for store, sight in zip(self._stores, sights, strict=True):
            store.drop_before(int(sight.low[-1]))
        self._now = int(block.timestamp[-1])
        self._counter = counters[-1]
        out = _in_order(found, HandedOver.concatenate(handed))
        self._status.delivered += out.delivered
        self._status.handed_over += len(out.handed_over)
        return out

    def _count(self, tables: Tables, block: Batch) -> Ints:
        """Returns, per raw tuple and stream, the last sequence number that the stream has reached."""
        groups = np.array(tables.groups)
        moved = np.where(groups[block.stream][:, None] == groups, block.sequence[:, None], -1)
        return np.maximum(np.maximum.accumulate(moved, axis=0), self._counter)

    def _door(self, tables: Tables, block: Batch) -> tuple[Ints, Bools]:
        """Returns the selection bits of the raw tuples, and which tuples are stored and probed."""
        bits = np.zeros(len(block), np.int64)
        wanted = np.zeros(len(block), np.bool_)
        for stream, (selections, masks) in enumerate(
            zip(tables.selections, tables.admission, strict=True)
        ):
            mine = block.stream == stream
            bits[mine] = _selection_bits(block.attributes[mine], selections)
            for mask in masks:
                wanted |= mine & (bits & mask == mask)
        self._status.taken += len(block)
        self._status.ticks += int(np.count_nonzero(~block.admit))
        self._status.dropped += int(np.count_nonzero(block.admit & ~wanted))
        return bits, block.admit & wanted

    def _insert(
        self,
        tables: Tables,
        block: Batch,
        stream: int,
        rows: Ints,
        bits: Ints,
        counter: Ints,
    ) -> tuple[_Sight, HandedOver]:
        """Stores the block's tuples of one stream. Returns what every raw tuple of the block sees
        of this window, and the tuples that had to leave it early."""
        store, capacity = self._stores[stream], self.config.capacity
        if not tables.routes[stream].insert:
            rows, bits = rows[:0], bits[:0]
        before = len(store)
        store.append(block, rows, bits)
        high = before + np.searchsorted(rows, np.arange(len(block)), side="right")
        alive = _first_alive(store, tables.areas[stream].retention, block.timestamp, counter)
        room = np.maximum(high - capacity, self._first_countable(store, block.timestamp, counter))
        sight = _Sight(np.maximum(room, np.minimum(alive, high)), high)
        # A position leaves with the first raw tuple that no longer sees it.
        leavers = np.arange(int(sight.low[-1]))
        takers = np.searchsorted(sight.low, leavers, side="right")
        early = leavers >= alive[takers]
        leavers, takers = leavers[early], takers[early]
        left = HandedOver(
            np.full(len(leavers), stream, np.int64),
            store.sequence[leavers],
            block.stream[takers].astype(np.int64),
            block.sequence[takers],
        )
        return sight, left

    def _first_countable(self, store: _Store, now: Ints, counter: Ints) -> Ints:
        """Returns, per raw tuple, the position of the oldest window tuple whose age and rank the
        device's counters can represent."""
        by_age = np.searchsorted(store.timestamp, _reach_back(now, self.config.longest_range))
        by_rank = np.searchsorted(store.sequence, counter - self.config.longest_rows)
        first: Ints = np.maximum(by_age, by_rank)
        return first

    def _circulate(
        self,
        tables: Tables,
        block: Batch,
        bits: Ints,
        stored: Bools,
        counters: Ints,
        sights: list[_Sight],
        members: list[GroupedResults],
    ) -> Iterator[tuple[Ints, Results]]:
        """Runs router and join areas until nothing is in flight. Returns results with the block row
        of their raw tuple, and adds those that are in groups to `members`."""
        waiting = [
            (
                stream,
                _raw_probes(block, bits, stream, np.flatnonzero(stored & (block.stream == stream))),
            )
            for stream in range(tables.streams)
        ]
        while waiting:
            tag, probes = waiting.pop()
            if not len(probes):
                continue
            route = tables.routes[tag]
            if route.queries:
                yield _deliver(tag, tables, probes, block, counters, members)
            for area in route.probes:
                for post, joined in self._probe(
                    tables.areas[area], area, tag, probes, sights[area]
                ):
                    self._status.circulated += len(joined)
                    waiting.append((post, joined))

    def _probe(
        self, area: Area, number: int, tag: int, probes: _Probes, sight: _Sight
    ) -> Iterator[tuple[int, _Probes]]:
        """Matches all probes of one tag against one window; combinations give joined tuples."""
        store = self._stores[number]
        seen = sight.low[probes.row], sight.high[probes.row]
        self._status.pairs += int((seen[1] - seen[0]).sum())
        equality = shared_equality(area, tag)
        if equality is None:
            found = by_all(area, tag, probes, store, seen)
        else:
            attribute = area.factors[equality].window_attribute
            keys = self._indexes.get((number, attribute))
            if keys is None:
                keys = index_of(store.attributes[:, attribute])
                self._indexes[number, attribute] = keys
            found = by_index(area, tag, equality, probes, store, keys, seen)
        for post, who, whom in found:
            joined = _join(probes, who, store, whom, number)
            if self._joins is not None:
                self._joins(tag, number, post, joined.sequence)
            yield post, joined


# --- the parts ----------------------------------------------------------------


def _first_alive(store: _Store, keep: Retention, now: Ints, counter: Ints) -> Ints:
    """Returns, per raw tuple, the position of the oldest window tuple that some window still
    reaches. Both age and rank fall along the window, so all later tuples are alive too."""
    if keep.range is None:
        return np.zeros(len(now), np.int64)
    by_age = np.full(len(now), len(store))
    if keep.range >= 0:
        by_age = np.searchsorted(store.timestamp, _reach_back(now, keep.range), side="left")
    by_rank = np.searchsorted(store.sequence, counter - keep.rows, side="right")
    first: Ints = np.minimum(by_age, by_rank)
    return first


def _reach_back(now: Ints, ticks: int) -> Ints:
    """Returns the oldest timestamp that a range reaches, as far back as 64 bits go."""
    oldest: Ints = np.maximum(now, _EARLIEST + ticks) - ticks
    return oldest


def _selection_bits(attributes: Codes, selections: tuple[Selection, ...]) -> Ints:
    bits = np.zeros(len(attributes), np.int64)
    for number, selection in enumerate(selections):
        tests = [
            holds(test.condition, attributes[:, test.attribute], np.uint32(test.constant))
            for test in selection.comparisons
        ]
        start = np.full(len(attributes), selection.every)
        combine = np.logical_and if selection.every else np.logical_or
        for test in tests:
            start = combine(start, test)
        bits |= start.astype(np.int64) << number
    return bits


def _raw_probes(block: Batch, bits: Ints, stream: int, rows: Ints) -> _Probes:
    n = len(rows)
    sequence = np.full((n, MAX_STREAMS), NOT_IN_RESULT, np.int64)
    timestamp = np.zeros((n, MAX_STREAMS), np.int64)
    attributes = np.zeros((n, MAX_STREAMS, MAX_ATTRIBUTES), np.uint32)
    sequence[:, stream] = block.sequence[rows]
    timestamp[:, stream] = block.timestamp[rows]
    attributes[:, stream] = block.attributes[rows]
    return _Probes(rows, sequence, timestamp, attributes, bits[rows])


def _join(probes: _Probes, who: Ints, store: _Store, whom: Ints, stream: int) -> _Probes:
    """Joins probe tuples with window tuples, pair by pair."""
    joined = _Probes(
        probes.row[who],
        probes.sequence[who],
        probes.timestamp[who],
        probes.attributes[who],
        np.zeros(len(who), np.int64),
    )
    joined.sequence[:, stream] = store.sequence[whom]
    joined.timestamp[:, stream] = store.timestamp[whom]
    joined.attributes[:, stream] = store.attributes[whom]
    return joined


def _deliver(
    tag: int,
    tables: Tables,
    probes: _Probes,
    block: Batch,
    counters: Ints,
    members: list[GroupedResults],
) -> tuple[Ints, Results]:
    """Applies the output check: a tuple is a result of each query all of whose windows it fits, a
    raw one if it also passes the filter. For the query whose groups the tag's results form, it is a
    member."""
    newest = block.timestamp[probes.row]
    maps = np.zeros(len(probes), np.uint64)
    carried = probes.sequence != NOT_IN_RESULT
    last = np.iinfo(np.int64).max
    oldest = np.where(carried, probes.timestamp, last).min(axis=1, initial=last)
    grouped = tables.grouped.get(tag)
    for query in tables.routes[tag].queries:
        fits = _fits(tables.windows[query], probes, newest, counters)
        fits &= probes.bits & tables.needs(query) == tables.needs(query)
        if grouped is not None and grouped.query == query:
            members.append(members_of(grouped, block, probes.row, probes.attributes, oldest, fits))
        else:
            maps |= fits.astype(np.uint64) << np.uint64(query)
    some = maps != 0
    return probes.row[some], Results(maps[some], newest[some], oldest[some], probes.sequence[some])


def _fits(windows: tuple[Window, ...], probes: _Probes, newest: Ints, counters: Ints) -> Bools:
    fits = np.ones(len(probes), np.bool_)
    for stream, window in enumerate(windows):
        if window.kind is WindowKind.RANGE:
            reached = probes.timestamp[:, stream] >= _reach_back(newest, window.size)
            fits &= (probes.sequence[:, stream] == NOT_IN_RESULT) | reached
        elif window.kind is WindowKind.ROWS:
            rank = counters[probes.row, stream] - probes.sequence[:, stream]
            fits &= (probes.sequence[:, stream] == NOT_IN_RESULT) | (rank < window.size)
    return fits


def _in_order(found: list[tuple[Ints, Results]], handed: HandedOver) -> Results:
    """Orders a block's results by the arrival of their raw tuples."""
    if not found:
        return Results(handed_over=handed)
    order = np.argsort(np.concatenate([rows for rows, _ in found]), kind="stable")
    out = Results.concatenate(results for _, results in found)
    return Results(
        out.queries[order], out.newest[order], out.oldest[order], out.sequences[order], handed
    )
