"""Defines the contract between a device and its host: the tables that a device loads, the batches
that it accepts and the results that it returns.

The rules of the contract are the same for every device (models, RTL, board):

1. *Order.* A batch is in arrival order: by timestamp, then source, then arrival.
   Timestamps never decrease, neither within a batch nor from one batch to the next; a
   batch in which they do is refused as a whole (`BatchRefused`).
2. *Sequence numbers* count a source stream's tuples from 0, without gaps, whether or
   not the device stores them. Streams of one `group` are copies of one source
   (a self-join); a tuple on any of them advances the counter of all, so the copies of
   a tuple arrive back to back, in stream order.
3. *Ticks.* A tuple with `admit` false only advances the clock and the sequence counter:
   it is not stored and does not probe. The host sends one for each tuple that it handles
   itself.
4. *Results* of a raw tuple are complete when `push` returns or, for a pipelined
   device, after `flush`. Each combination is delivered once per route tag, as one record
   for all queries of the tag that it satisfies; a query with overlapping terms may see it
   more than once, always for the same raw tuple. The order of the results of one raw tuple
   is unspecified. For a query over a single stream, a raw tuple is itself a result if it has
   all selection bits that the query `needs`.
5. *Windows.* A result is delivered only if every component was in its stream's
   window of that query when the latest component arrived.
6. *Overflow.* A device keeps `DeviceConfig.capacity` tuples per stream. When one more is
   stored, the oldest, which some window could still reach, is evicted and reported in
   `Results.handed_over`; it is never dropped silently. It leaves before the tuple that
   displaces it probes.
7. *Load.* `load` drains what is in flight, then swaps programs and tables. It keeps the
   clock, the counters and the stored tuples, and evaluates the selection bits of these
   tuples anew; only an image with other streams or groups empties the windows and resets
   the sequence numbers. An image that is refused (`LoadRefused`) leaves the device as
   it was. `reset` empties the windows.
8. *Counters.* A device counts time modulo 2^`timestamp_width` and sequence numbers
   modulo 2^`sequence_width`. It resolves a stored tuple's age exactly up to
   `longest_range` ticks, and its rank (the last sequence number of its source minus its
   own) up to `longest_rows`; `load` refuses windows longer than that. When the arrival of
   any raw tuple, on any stream, tick or not, takes a stored tuple past either limit, that
   tuple leaves, however large the step. A dead tuple, past what its area's `Retention`
   keeps, is dropped; this is tested first. A tuple that some window still keeps
   (UNBOUNDED; ROWS, an old tuple; RANGE, one of high rank) is handed over as in an overflow,
   before the arriving tuple probes. Timestamps and sequence numbers in results are full
   64-bit values, whatever their internal width.
9. *Groups.* For a route tag that is `grouped`, a device may hold back the results of the named query and
   return the groups that they form instead, in `Results.grouped`: before the first raw tuple of another
   period, and when `push` returns or after `flush`. It may also deliver such a result like any other, for
   example one that finds no room for its group. Each result is in exactly one of the two, and a group may
   have several records. Grouped results count as delivered.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Protocol

import numpy as np
import numpy.typing as npt

from seustream.hdl.config import MAX_ATTRIBUTES, MAX_STREAMS, DeviceConfig
from seustream.hdl.isa import Condition

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
BitMaps = npt.NDArray[np.uint64]

NOT_IN_RESULT = -1
"""Component sequence number for a stream that takes no part in a result."""


# --- tables: an image, decoded ------------------------------------------------


class WindowKind(enum.IntEnum):
    UNUSED = 0
    RANGE = 1
    ROWS = 2
    UNBOUNDED = 3


@dataclass(frozen=True, slots=True)
class Window:
    """Window of a query over a stream: the tuples that the query still sees. RANGE covers tuples with
    newest - ts <= size, ROWS the last `size` tuples."""

    kind: WindowKind
    size: int = 0

    def __str__(self) -> str:
        if self.kind in (WindowKind.RANGE, WindowKind.ROWS):
            return f"{self.kind.name} {self.size}"
        return self.kind.name


UNUSED = Window(WindowKind.UNUSED)


@dataclass(frozen=True, slots=True)
class Retention:
    """Time for which a join area keeps a tuple (Large Window Only): as long as its age is at
    most `range` ticks or it is among the last `rows`. A `range` of None means forever."""

    range: int | None = -1
    rows: int = 0

    @classmethod
    def over(cls, windows: Iterable[Window]) -> Retention:
        longest, most = -1, 0
        for window in windows:
            if window.kind is WindowKind.UNBOUNDED:
                return cls(None, 0)
            if window.kind is WindowKind.RANGE:
                longest = max(longest, window.size)
            elif window.kind is WindowKind.ROWS:
                most = max(most, window.size)
        return cls(longest, most)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison `attribute condition constant` on the encoded attribute of a raw tuple."""

    attribute: int
    condition: Condition
    constant: int


@dataclass(frozen=True, slots=True)
class Selection:
    """One selection bit: the AND of its comparisons (`every`), or their OR."""

    every: bool
    comparisons: tuple[Comparison, ...]


@dataclass(frozen=True, slots=True)
class Factor:
    """One comparison of an area's factor part: `probe attribute condition window attribute`."""

    window_attribute: int
    probe_stream: int
    probe_attribute: int
    condition: Condition


@dataclass(frozen=True, slots=True)
class Combination:
    """One row of an area's combination part: a probe tuple with route tag `pre_tag` that satisfies
    all factors and selections with a window tuple continues as `post_tag`."""

    pre_tag: int
    factors: tuple[int, ...]
    window_selections: tuple[int, ...]
    probe_selections: tuple[int, ...]
    post_tag: int


@dataclass(frozen=True, slots=True)
class Area:
    """A join area: what M3Join states (factors, combinations) and the program that implements it.

    guards  route tag -> index of an EQ factor that every combination of that tag requires.
            For a probe with the tag, a device may examine only the window tuples that have
            the factor's attribute value, or may ignore the guard: the results are the same. A
            device with few indexes may use the guards of some attributes only.
    """

    factors: tuple[Factor, ...] = ()
    combinations: tuple[Combination, ...] = ()
    program: tuple[int, ...] = ()
    retention: Retention = Retention()
    guards: dict[int, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Route:
    """A row of the join routing table. `insert` is set only in the rows of raw tuples, whose
    tag is their stream number."""

    insert: bool = False
    probes: frozenset[int] = frozenset()
    queries: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Grouped:
    """Groups that the results of a route tag form for one of its queries: by the attribute `key` (stream,
    attribute number), or a single group without one. Each group has the sum, minimum and maximum of the
    attribute `value`, if there is one. Periods are `period` ticks long and aligned to `offset`."""

    query: int
    key: tuple[int, int] | None
    value: tuple[int, int] | None
    period: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Tables:
    """Everything a device loads.

    groups      per stream, the source that it is a copy of (rule 2)
    selections  per stream, its selection bits
    admission   per stream, masks of selection bits: a raw tuple that does not have all bits
                of at least one mask is dropped on input
    windows     per query and stream, the output window
    filters     per query, the selection bits that a raw tuple needs to be a result by itself, 0 for
                a join; empty if every query is a join
    grouped     per route tag, the groups that a device forms from its results if it can (rule 9)
    """

    groups: tuple[int, ...]
    selections: tuple[tuple[Selection, ...], ...]
    admission: tuple[tuple[int, ...], ...]
    areas: tuple[Area, ...]
    routes: dict[int, Route]
    windows: tuple[tuple[Window, ...], ...]
    filters: tuple[int, ...] = ()
    grouped: dict[int, Grouped] = field(default_factory=dict, hash=False)

    @property
    def streams(self) -> int:
        return len(self.groups)

    def needs(self, query: int) -> int:
        """The selection bits that a raw tuple needs to be a result of a query by itself."""
        return self.filters[query] if self.filters else 0

    def cuts(self, timestamp: Ints) -> Ints:
        """Finds the rows of a batch at which the period of any grouping changes."""
        changes = np.zeros(max(len(timestamp) - 1, 0), np.bool_)
        for period, offset in {(one.period, one.offset) for one in self.grouped.values()}:
            number = (timestamp - offset) // period
            changes |= number[1:] != number[:-1]
        return np.flatnonzero(changes) + 1

    def masks(self, stream: int) -> list[tuple[int, bool]]:
        """The admission masks of a stream, each with a flag: whether a raw tuple must have all of its bits.
        Masks of a single bit are merged into one, of which any bit suffices."""
        return _merged(self.admission[stream])

    def selection_entries(self, stream: int, places: int) -> int:
        """Counts the entries of a stream's selection table with `places` entries per row."""
        bits = [len(selection.comparisons) for selection in self.selections[stream]]
        return selection_entries(bits, self.admission[stream], places)


def selection_entries(bits: Iterable[int], admission: Iterable[int], places: int) -> int:
    """Counts the entries of a selection table with `places` entries per row. `bits` gives the number of
    comparisons of each selection bit. A group of `places` bits takes as many rows as its largest bit has
    comparisons; a bit without any takes one, which always or never holds. Each admission mask takes the
    last place of a row."""
    sizes = [max(size, 1) for size in bits]
    groups = [sizes[first : first + places] for first in range(0, len(sizes), places)]
    masks = len(_merged(admission))
    if groups and (len(groups[-1]) < places or groups[-1][-1] < max(groups[-1])):
        masks -= masks > 0
    return places * (sum(map(max, groups)) + masks)


def _merged(admission: Iterable[int]) -> list[tuple[int, bool]]:
    masks = list(admission)
    single = sum({mask for mask in masks if mask.bit_count() == 1})
    return [(single, False)] * (single != 0) + [
        (mask, True) for mask in masks if mask.bit_count() != 1
    ]


_ROWS_BY = {
    "groups": "stream",
    "program": "address",
    "guards": "tag",
    "join rows": "tag",
    "interest": "tag",
    "terms": "tag",
    "routes": "tag",
    "windows": "query",
    "filters": "query",
    "grouped": "tag",
}
"""By table, what numbers its rows, where that is no place in a list."""


class LoadRefused(ValueError):
    """An image that a device refuses. `reason` gives the cause, the others where it is, as far as it has a
    place.

    area   the join area, which has the number of its stream
    table  the table of the image, or what a loader derives from a program: `join rows`, `interest`, `terms`
    row    the row of the table: its place in the list, in `program` the address, in `groups` the stream, in
           `windows` and `filters` the query, in any other table that is by route tag the tag
    """

    def __init__(
        self,
        reason: str,
        area: int | None = None,
        table: str | None = None,
        row: int | None = None,
    ) -> None:
        self.reason, self.area, self.table, self.row = reason, area, table, row
        place = [f"area {area}"] if area is not None else []
        place += [table] if table is not None else []
        place += [f"{_ROWS_BY.get(table or '', 'row')} {row}"] if row is not None else []
        super().__init__(
            ": ".join(["image refused", *([", ".join(place)] if place else []), reason])
        )


# --- batches ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Batch:
    """Raw tuples in arrival order, by columns; `attributes` is n x 4."""

    stream: npt.NDArray[np.uint8]
    timestamp: Ints
    sequence: Ints
    admit: npt.NDArray[np.bool_]
    attributes: npt.NDArray[np.uint32]

    def __post_init__(self) -> None:
        n = len(self.stream)
        if not len(self.timestamp) == len(self.sequence) == len(self.admit) == n:
            raise ValueError("columns of a batch differ in length")
        if self.attributes.shape != (n, MAX_ATTRIBUTES):
            raise ValueError(f"attributes are {self.attributes.shape}, want {(n, MAX_ATTRIBUTES)}")

    def __len__(self) -> int:
        return len(self.stream)

    def slice(self, start: int, stop: int) -> Batch:
        part = slice(start, stop)
        return Batch(
            self.stream[part],
            self.timestamp[part],
            self.sequence[part],
            self.admit[part],
            self.attributes[part],
        )


class NotLoaded(RuntimeError):
    """A batch was pushed to a device that has no image yet."""

    def __init__(self) -> None:
        super().__init__("no image is loaded: call load() before push()")


class BatchRefused(ValueError):
    """A batch that a device refuses. `row` is the first row at fault."""

    def __init__(self, reason: str, row: int) -> None:
        self.reason, self.row = reason, row
        super().__init__(f"batch refused: row {row}: {reason}")


def check_batch(batch: Batch, tables: Tables, config: DeviceConfig, now: int | None) -> None:
    """Raises `BatchRefused` if a device must not accept the batch; a device calls it before it
    processes the first row. `now` is the last timestamp it saw, None before the first."""
    if not len(batch):
        return
    foreign = np.flatnonzero(batch.stream >= tables.streams)
    if foreign.size:
        row = int(foreign[0])
        raise BatchRefused(
            f"stream {batch.stream[row]}, the image has {tables.streams} streams", row
        )
    first = batch.timestamp[0] if now is None else now
    before = np.concatenate((np.array([first], np.int64), batch.timestamp[:-1]))
    fallen = np.flatnonzero(batch.timestamp < before)
    if fallen.size:
        row = int(fallen[0])
        raise BatchRefused(f"timestamp {batch.timestamp[row]} after {before[row]}", row)
    wide = np.argwhere(batch.attributes >= 1 << config.attribute_width)
    if wide.size:
        row, attribute = map(int, wide[0])
        raise BatchRefused(
            f"attribute {attribute} = {batch.attributes[row, attribute]} is wider than"
            f" {config.attribute_width} bits",
            row,
        )


def _no_ints() -> Ints:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class HandedOver:
    """Stored tuples that left early: stream and sequence number of each, and stream (`taker`) and
    sequence number (`taken_by`) of the raw tuple whose arrival displaced it. A tuple that left
    a full buffer was displaced by one of its own stream (rule 6). One that left because of the
    counters (rule 8) was displaced by one of any stream, ticks included."""

    stream: Ints = field(default_factory=_no_ints)
    sequence: Ints = field(default_factory=_no_ints)
    taker: Ints = field(default_factory=_no_ints)
    taken_by: Ints = field(default_factory=_no_ints)

    def __len__(self) -> int:
        return len(self.stream)

    @classmethod
    def concatenate(cls, parts: Iterable[HandedOver]) -> HandedOver:
        parts = list(parts)
        if not parts:
            return cls()
        return cls(
            np.concatenate([part.stream for part in parts]),
            np.concatenate([part.sequence for part in parts]),
            np.concatenate([part.taker for part in parts]),
            np.concatenate([part.taken_by for part in parts]),
        )


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of results (rule 9), by columns: the query; the code of the key, 0 without one; the number of
    results, all of one period; sum, minimum and maximum of the codes of the value, 0 without one; the
    timestamps of the oldest component and of the first result."""

    query: Ints = field(default_factory=_no_ints)
    key: Ints = field(default_factory=_no_ints)
    count: Ints = field(default_factory=_no_ints)
    total: Ints = field(default_factory=_no_ints)
    least: Ints = field(default_factory=_no_ints)
    greatest: Ints = field(default_factory=_no_ints)
    oldest: Ints = field(default_factory=_no_ints)
    first: Ints = field(default_factory=_no_ints)

    def __len__(self) -> int:
        return len(self.query)

    def of(self, query: int) -> Groups:
        """Selects the groups of a query."""
        return self.some(np.flatnonzero(self.query == query))

    def some(self, rows: Ints) -> Groups:
        """Selects rows, in the order given."""
        return Groups(*(getattr(self, column.name)[rows] for column in fields(self)))

    @classmethod
    def concatenate(cls, parts: Iterable[Groups]) -> Groups:
        some = [part for part in parts if len(part)]
        if len(some) < 2:
            return some[0] if some else cls()
        return cls(
            *(
                np.concatenate([getattr(part, column.name) for part in some])
                for column in fields(cls)
            )
        )


@dataclass(frozen=True, slots=True)
class Results:
    """Join results by columns, one record per combination: `queries` has a bit for each query that
    it satisfies, at least one; `sequences` is m x 4, `NOT_IN_RESULT` where a stream takes no part.
    The length counts records, without the results in `grouped`."""

    queries: BitMaps = field(default_factory=lambda: np.empty(0, np.uint64))
    newest: Ints = field(default_factory=_no_ints)
    oldest: Ints = field(default_factory=_no_ints)
    sequences: Ints = field(default_factory=lambda: np.empty((0, MAX_STREAMS), np.int64))
    handed_over: HandedOver = field(default_factory=HandedOver)
    grouped: Groups = field(default_factory=Groups)

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def delivered(self) -> int:
        """Counts results: a record once for each of its queries, plus those in groups."""
        return int(np.bitwise_count(self.queries).sum() + self.grouped.count.sum())

    def of(self, query: int) -> Bools:
        """Marks the records of a query."""
        found: Bools = (self.queries >> np.uint64(query) & np.uint64(1)).astype(np.bool_)
        return found

    def each(self) -> tuple[Ints, Ints]:
        """Expands to one row per result: the index of its record, and its query."""
        octets = self.queries.astype("<u8").view(np.uint8).reshape(-1, 8)
        record, query = np.nonzero(np.unpackbits(octets, axis=1, bitorder="little"))
        return record, query

    @classmethod
    def concatenate(cls, parts: Iterable[Results]) -> Results:
        parts = list(parts)
        if not parts:
            return cls()
        return cls(
            np.concatenate([part.queries for part in parts]),
            np.concatenate([part.newest for part in parts]),
            np.concatenate([part.oldest for part in parts]),
            np.concatenate([part.sequences for part in parts]),
            HandedOver.concatenate(part.handed_over for part in parts),
            Groups.concatenate(part.grouped for part in parts),
        )


@dataclass(slots=True)
class Status:
    """Counters since the last reset. All except `pairs` count tuples. A processor may also count, in `pairs` and
    `circulated`, combinations with a tuple that died shortly before; these are not delivered.

    taken       raw tuples pushed, ticks included
    ticks       of these, not admitted by the host
    dropped     of these, dropped on input by the selections
    pairs       (probe, window) pairs compared
    circulated  joined tuples sent back to the router
    delivered   results delivered, a record once for each of its queries
    handed_over stored tuples that left early
    occupancy   tuples stored now, per stream
    """

    loaded: bool = False
    taken: int = 0
    ticks: int = 0
    dropped: int = 0
    pairs: int = 0
    circulated: int = 0
    delivered: int = 0
    handed_over: int = 0
    occupancy: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class UnitCycles:
    """Clock cycles of one unit of a processor since the last reset, by state.

    busy      the unit was working
    starved   it had no work
    blocked   it had work, but stalled on another unit
    """

    busy: int
    starved: int
    blocked: int


class Clocked(Protocol):
    """Counters that a device with a clock of its own has besides `Status`. The models have no clock."""

    def counters(self) -> dict[str, int]:
        """Gives cycles, hits (pairs executed), stalls (cycles that an instruction waited for the
        router) and rewinds (probes set aside for others)."""

    def units(self) -> dict[str, UnitCycles]:
        """Gives the cycles of each unit, by name."""


class Device(Protocol):
    """A WJASIP, whether model, RTL or board."""

    @property
    def config(self) -> DeviceConfig: ...

    def load(self, image: bytes) -> None:
        """Load an image. Raises `LoadRefused` for one that it cannot take, and is then unchanged."""

    def push(self, batch: Batch) -> Results:
        """Process raw tuples and return the results known so far. Raises `NotLoaded` without an image
        and `BatchRefused` for a batch that it cannot take, and is then unchanged."""

    def flush(self) -> Results:
        """Drain the pipeline and return the remaining results."""

    def status(self) -> Status:
        """Counters since the last reset."""

    def reset(self) -> None:
        """Empty the windows and clear the clock and all counters; keep the image."""
