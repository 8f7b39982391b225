"""The contract between a device and its host: the tables it loads, the batches it takes, the
results it gives back.

Rules of the contract, the same for every device (models, RTL, board):

1. *Order.* A batch is in arrival order: by timestamp, then source, then arrival.
   Timestamps never fall, within a batch or from one batch to the next; a batch in
   which they do is refused whole (`BatchRefused`).
2. *Sequence numbers* count a source stream's tuples from 0, without gaps, whether
   the device stores them or not. Streams of one `group` are copies of one source
   (a self-join); a tuple on any of them moves the counter of all, so the copies of
   a tuple come right after each other, in stream order.
3. *Ticks.* A tuple with `admit` false only moves the clock and the counter: it is
   neither stored nor probed. The host sends one where it deals with a tuple itself.
4. *Results* of a raw tuple are complete when `push` returns or, for a pipelined
   device, after `flush`. Each combination is delivered once per route tag, as one record
   for all queries of the tag that it satisfies; a query with overlapping terms may see it
   more than once, always for the same raw tuple. Their order within one raw tuple is free.
   A query over one stream has a raw tuple for a result if it has the selection bits that the
   query `needs`.
5. *Windows.* A result is delivered only if every component was in its stream's
   window of that query when the latest component arrived.
6. *Overflow.* A device keeps `DeviceConfig.capacity` tuples a stream. When one more is
   stored, the oldest, which some window could still reach, is reported in
   `Results.handed_over`, never dropped silently. It leaves before the tuple that takes its
   place probes.
7. *Load.* `load` drains what is in flight, then swaps programs and tables and
   keeps clock, counters and the stored tuples, whose selection bits are evaluated
   anew; only an image with other streams or groups empties the windows and forgets
   the sequence numbers. An image that is refused (`LoadRefused`) leaves the device as
   it was. `reset` empties the windows.
8. *Counters.* A device counts time modulo 2^`timestamp_width` and sequence numbers
   modulo 2^`sequence_width`. It tells a stored tuple's age exactly up to
   `longest_range` ticks, and its rank (the last sequence number of its source less its
   own) up to `longest_rows`; windows longer than that are refused at `load`. When the
   arrival of any raw tuple, of whatever stream, tick or not, takes a stored tuple over
   one of the two, that tuple leaves, however large the step. If it is dead, past what its
   area's `Retention` keeps, it is dropped, which comes first; if some window still keeps it
   (UNBOUNDED, ROWS an old one, RANGE one of high rank) it is handed over as in an overflow,
   before the arriving tuple probes. Timestamps and sequence numbers in results are whole,
   64 bits, whatever their width inside.
9. *Groups.* For a route tag that is `grouped`, a device may keep the results of the query that is named from
   leaving, and give the groups that they form instead, in `Results.grouped`: before the first raw tuple of
   another period, and when `push` returns or after `flush`. Or it delivers such a result as any other, as one that finds no room for
   its group; each is in one of the two, and of each group there may be several records. They are counted as delivered.
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
"""Component sequence number of a stream that has no part in a result."""


# --- tables: an image, decoded ------------------------------------------------


class WindowKind(enum.IntEnum):
    UNUSED = 0
    RANGE = 1
    ROWS = 2
    UNBOUNDED = 3


@dataclass(frozen=True, slots=True)
class Window:
    """Window of a query over a stream, the tuples it still sees: newest - ts <= size for RANGE,
    the last `size` tuples for ROWS."""

    kind: WindowKind
    size: int = 0

    def __str__(self) -> str:
        if self.kind in (WindowKind.RANGE, WindowKind.ROWS):
            return f"{self.kind.name} {self.size}"
        return self.kind.name


UNUSED = Window(WindowKind.UNUSED)


@dataclass(frozen=True, slots=True)
class Retention:
    """Time for which a join area keeps a tuple (Large Window Only): while its age is at
    most `range` ticks or it is among the last `rows`. None is for ever."""

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
    """`attribute condition constant`, on the encoded attribute of a raw tuple."""

    attribute: int
    condition: Condition
    constant: int


@dataclass(frozen=True, slots=True)
class Selection:
    """One selection bit: all of the comparisons, or any of them."""

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
    """One row of an area's combination part: a probe tuple with route tag `pre_tag`
    that agrees with a window tuple in all factors and selections goes on as `post_tag`."""

    pre_tag: int
    factors: tuple[int, ...]
    window_selections: tuple[int, ...]
    probe_selections: tuple[int, ...]
    post_tag: int


@dataclass(frozen=True, slots=True)
class Area:
    """A join area: what M3Join states (factors, combinations) and the program that does it.

    guards  route tag -> index of an EQ factor that every combination of that tag requires.
            For a probe with the tag a device may look only at window tuples that have the
            factor's attribute value, or may take no notice: the results are the same. A
            device with room for few indexes may use the guards of some attributes only.
    """

    factors: tuple[Factor, ...] = ()
    combinations: tuple[Combination, ...] = ()
    program: tuple[int, ...] = ()
    retention: Retention = Retention()
    guards: dict[int, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Route:
    """A row of the join routing table. `insert` is set in the rows of raw tuples, whose
    tag is their stream number."""

    insert: bool = False
    probes: frozenset[int] = frozenset()
    queries: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Grouped:
    """The groups that a route tag's results form for one of its queries: by the attribute `key` (its stream, its number), or
    one group of all; with the sum, the least and the greatest of the attribute `value`, if there is one.
    A period of so many ticks begins at `offset`, and others before and after it."""

    query: int
    key: tuple[int, int] | None
    value: tuple[int, int] | None
    period: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Tables:
    """Everything a device loads.

    groups      per stream, the source it is a copy of (rule 2)
    selections  per stream, its selection bits
    admission   per stream, masks of selection bits: a raw tuple that has all bits of
                none of them is dropped at the door
    windows     per query, per stream, the output window
    filters     per query, the selection bits that a raw tuple needs to be a result of it by itself, 0
                for a join; nothing at all if every query is a join
    grouped     per route tag, the groups that a device forms of its results if it can (rule 9)
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
        """The selection bits that a raw tuple needs to be a result of a query."""
        return self.filters[query] if self.filters else 0

    def cuts(self, timestamp: Ints) -> Ints:
        """The rows of a batch that are in another period of some groups than the row before."""
        changes = np.zeros(max(len(timestamp) - 1, 0), np.bool_)
        for period, offset in {(one.period, one.offset) for one in self.grouped.values()}:
            number = (timestamp - offset) // period
            changes |= number[1:] != number[:-1]
        return np.flatnonzero(changes) + 1

    def masks(self, stream: int) -> list[tuple[int, bool]]:
        """The admission masks of a stream, and whether a raw tuple must have all bits of it: those of one
        bit are one mask, of which any bit is enough."""
        return _merged(self.admission[stream])

    def selection_entries(self, stream: int, places: int) -> int:
        """Entries of a stream's selection table in rows of so many."""
        bits = [len(selection.comparisons) for selection in self.selections[stream]]
        return selection_entries(bits, self.admission[stream], places)


def selection_entries(bits: Iterable[int], admission: Iterable[int], places: int) -> int:
    """Entries of a selection table in rows of so many, for bits of so many comparisons: a row for each
    comparison of as many bits (none at all takes one, that always or never holds), and in the last place
    the masks."""
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


class LoadRefused(ValueError):
    """An image a device does not take. `reason` says why; `area` and `address` where,
    if it is about a program."""

    def __init__(self, reason: str, area: int | None = None, address: int | None = None) -> None:
        self.reason, self.area, self.address = reason, area, address
        place = "" if area is None else f"area {area}"
        if address is not None:
            place += f", address {address}"
        super().__init__(f"image refused: {place + ': ' if place else ''}{reason}")


# --- batches ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Batch:
    """Raw tuples in arrival order, in columns; `attributes` is n x 4."""

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
    """A batch for a device that has no image yet."""

    def __init__(self) -> None:
        super().__init__("no image is loaded: call load() before push()")


class BatchRefused(ValueError):
    """A batch a device does not take. `row` is the first row at fault."""

    def __init__(self, reason: str, row: int) -> None:
        self.reason, self.row = reason, row
        super().__init__(f"batch refused: row {row}: {reason}")


def check_batch(batch: Batch, tables: Tables, config: DeviceConfig, now: int | None) -> None:
    """Raises `BatchRefused` if a device must not take the batch; a device asks before it
    touches the first row. `now` is the last timestamp it saw, None before the first."""
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
    """Stored tuples that left early: stream, sequence number, and of the raw tuple whose
    arrival displaced it, too, stream (`taker`) and sequence number (`taken_by`). A tuple
    that left a full buffer was displaced by one of its own stream (rule 6), one that left
    for the counters (rule 8) by one of any stream, ticks included."""

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
    """Groups of results (rule 9), in columns: the query; the code of the key, 0 without one; how many results, of
    one period; sum, least and greatest of the codes of the value, 0 without one; the times of the oldest
    component, and of the first of the results."""

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
        """Those of a query."""
        return self.some(np.flatnonzero(self.query == query))

    def some(self, rows: Ints) -> Groups:
        """Some of them, in another order."""
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
    """Join results in columns, a record for a combination: `queries` has a bit for each query that
    it satisfies, one at least; `sequences` is m x 4, `NOT_IN_RESULT` where a stream has no part.
    Its length is in records, those that are in `grouped` left out."""

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
        """Counts results, a record once for each of its queries, and those in groups."""
        return int(np.bitwise_count(self.queries).sum() + self.grouped.count.sum())

    def of(self, query: int) -> Bools:
        """Marks the records of a query."""
        found: Bools = (self.queries >> np.uint64(query) & np.uint64(1)).astype(np.bool_)
        return found

    def each(self) -> tuple[Ints, Ints]:
        """Expands to one row a result: its record, and its query."""
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
    """Counters since the last reset. All count tuples, but for `pairs`. A processor may count in `pairs` and
    `circulated` what meets a tuple that died shortly before; such a combination is not delivered.

    taken       raw tuples pushed, ticks included
    ticks       of these, not admitted by the host
    dropped     of these, dropped at the door by the selections
    pairs       (probe, window) pairs compared
    circulated  joined tuples handed back to the router
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
    """Cycles of one unit of a processor since the last reset, in clock cycles.

    busy      it worked
    starved   there was nothing for it to do
    blocked   it had something, and waited for another unit
    """

    busy: int
    starved: int
    blocked: int


class Clocked(Protocol):
    """Counters of a device with a clock of its own, beside `Status`. The models have no clock."""

    def counters(self) -> dict[str, int]:
        """cycles, hits (pairs executed), stalls (cycles an instruction waited for the router),
        rewinds (probes left for others)."""

    def units(self) -> dict[str, UnitCycles]:
        """Gives the cycles of each unit, by its name."""


class Device(Protocol):
    """A WJASIP, whatever it is made of."""

    @property
    def config(self) -> DeviceConfig: ...

    def load(self, image: bytes) -> None:
        """Take an image; raises `LoadRefused` and stays as it was."""

    def push(self, batch: Batch) -> Results:
        """Process raw tuples; gives the results known so far. Raises `NotLoaded` without
        an image, `BatchRefused` for a batch it cannot take, and stays as it was."""

    def flush(self) -> Results:
        """Drain the pipeline; gives the remaining results."""

    def status(self) -> Status:
        """Counters since the last reset."""

    def reset(self) -> None:
        """Empty the windows, clear the clock and all counters; keeps the image."""
