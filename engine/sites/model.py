"""The join: its streams, the columns in which they are equal, their windows; rows and blocks.

A *class* is a set of columns that the equalities make equal. Rows are joined by the values of
classes, in the order of `Join.classes_of(stream)`. That tuple is the row's key, `u` in formulas.

The answer of a join over blocks is

    { (r_0..r_{n-1}) : values of classes equal, max τ(block(r_k)) ≤ min (t(r_k) + window_k) }

regardless of the order in which messages arrive. A row exactly as old as its window still joins.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, TypeAlias

from seustream.compiler.plan.keys import groups
from seustream.engine.sites.errors import BadQuery, DisconnectedJoinGraph, RowWindowRefused
from seustream.engine.sites.keys import Key, canonical
from seustream.hdl.device import Window, WindowKind

Column: TypeAlias = tuple[int, str]
"""A stream's number and the name of one of its columns."""

Tid: TypeAlias = tuple[int, int, int]
"""A row by stream, block number and place in the block."""

BlockId: TypeAlias = tuple[int, int]
"""A stream's number and the block's own."""

Entry: TypeAlias = tuple[Key, ...]
"""A row's values by class, each as its synopsis spells it."""


@dataclass(frozen=True, slots=True)
class SiteRow:
    """A row as its source gives it: values of the stream's join columns, time, and any payload."""

    keys: tuple[object, ...]
    t: float
    payload: object = None


@dataclass(frozen=True, slots=True)
class Stored:
    """A row in a store: its join values, and the times until which it can be joined (by member
    query). Its `tid` alone identifies it."""

    tid: Tid
    values: tuple[Key, ...] = field(compare=False)
    t: float = field(compare=False)
    tau: float = field(compare=False)
    ends: tuple[float, ...] = field(compare=False)
    payload: object = field(default=None, compare=False)
    kept: float = field(default=-math.inf, compare=False)

    @property
    def end(self) -> float:
        """The time until which it is stored: the end of its last window, or later if other joins
        need it."""
        return max(*self.ends, self.kept)


@dataclass(frozen=True, slots=True)
class SiteStream:
    """A stream of one site. `window` is a time span, `math.inf`, or a window of the contract.
    `domain`, if given, holds the keys to expect; `carried` are columns that conditions read, which
    travel with the rows."""

    name: str
    columns: tuple[str, ...]
    window: float | Window = math.inf
    domain: frozenset[Key] | None = None
    carried: tuple[str, ...] = ()

    @property
    def span(self) -> float:
        return span(self.window, self.name)


def span(window: float | Window, name: str) -> float:
    """Returns the length of a window in time."""
    if isinstance(window, Window):
        if window.kind is WindowKind.ROWS:
            raise RowWindowRefused(
                f"stream {name} has the window {window}, counted in rows",
                "across sites there is no one order to count in; use RANGE",
            )
        return math.inf if window.kind is WindowKind.UNBOUNDED else window.size
    if not window >= 0:
        raise BadQuery(f"stream {name} has a window of {window}", "a window is 0 or longer")
    return window


class SiteResidual(Protocol):
    """A condition that is not an equality; it is applied to the rows of its streams where they
    first meet."""

    @property
    def streams(self) -> tuple[int, ...]: ...

    def among(self, payloads: Sequence[tuple[object, ...]]) -> Sequence[bool]:
        """Returns for which of several combinations the condition holds; each is the payloads of
        the rows of `streams`, in that order."""


@dataclass(frozen=True)
class EquiJoin:
    """An equi-join of streams, one stream per site, for one or several member queries that differ
    only in their windows. `windows[m][k]` is member m's window of stream k. `horizons`, if given,
    is the least time for which each stream's rows are stored, for the sake of other joins. With
    `by_row`, windows compare the times of rows, not of blocks, so that a block may hold rows of
    several times."""

    streams: tuple[SiteStream, ...]
    equal: tuple[tuple[Column, Column], ...]
    windows: tuple[tuple[float, ...], ...] = ()
    residuals: tuple[SiteResidual, ...] = ()
    horizons: tuple[float, ...] = ()
    by_row: bool = False

    def __post_init__(self) -> None:
        own = (tuple(stream.span for stream in self.streams),)
        windows = tuple(tuple(span(w, "") for w in member) for member in self.windows) or own
        if any(len(member) != len(self.streams) for member in windows):
            raise BadQuery("a member query has not one window for each stream")
        object.__setattr__(self, "windows", windows)
        for stream, name in (column for pair in self.equal for column in pair):
            if not 0 <= stream < len(self.streams):
                raise BadQuery(f"there is no stream {stream}")
            if name not in (known := self.streams[stream].columns):
                raise BadQuery(
                    f"stream {self.streams[stream].name} has no column {name}",
                    f"its columns: {', '.join(known)}",
                )
        self._check_connected()

    @cached_property
    def classes(self) -> tuple[frozenset[Column], ...]:
        return tuple(map(frozenset, sorted(groups(set(self.equal)), key=min)))

    @cached_property
    def _of(self) -> tuple[tuple[int, ...], ...]:
        return tuple(
            tuple(c for c, columns in enumerate(self.classes) if any(s == k for s, _ in columns))
            for k in range(len(self.streams))
        )

    @cached_property
    def _places(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """The places of each class's columns among the columns of its streams, by stream and
        class."""
        return tuple(
            tuple(
                tuple(at for at, name in enumerate(of.columns) if (k, name) in self.classes[c])
                for c in self._of[k]
            )
            for k, of in enumerate(self.streams)
        )

    @classmethod
    def on_one_key(cls, windows: Sequence[float | Window]) -> EquiJoin:
        """Returns a join of n streams with one column each, all equal."""
        streams = tuple(SiteStream(f"R{k}", ("v",), window) for k, window in enumerate(windows))
        equal = tuple(((0, "v"), (k, "v")) for k in range(1, len(windows)))
        return cls(streams, equal)

    def __len__(self) -> int:
        return len(self.streams)

    @property
    def members(self) -> int:
        return len(self.windows)

    def classes_of(self, stream: int) -> tuple[int, ...]:
        """Returns the classes in which a stream has columns."""
        return self._of[stream]

    def values(self, stream: int, keys: tuple[object, ...]) -> tuple[Key, ...] | None:
        """Returns a row's value in each of its classes; None if it can join nothing."""
        found = []
        for places in self._places[stream]:
            value, *rest = [canonical(keys[place]) for place in places]
            if value is None or any(other != value for other in rest):
                return None
            found.append(value)
        return tuple(found)

    def linked(self, visited: int, stream: int) -> bool:
        """Returns whether a stream shares a class with one of a set of streams, given as bits."""
        mine = set(self._of[stream])
        return any(visited >> k & 1 and not mine.isdisjoint(self._of[k]) for k in range(len(self)))

    def _check_connected(self) -> None:
        if not self.streams:
            raise BadQuery("a join of no streams")
        reached = 1
        for _ in self.streams:
            for k in range(len(self)):
                if self.linked(reached, k):
                    reached |= 1 << k
        apart = [s.name for k, s in enumerate(self.streams) if not reached >> k & 1]
        if apart:
            raise DisconnectedJoinGraph(
                f"no equality connects {', '.join(apart)} with {self.streams[0].name}",
                "add one; a cross product of whole streams is not sent between sites",
            )


@dataclass(frozen=True, slots=True)
class Partial:
    """Rows joined so far: by stream, with the values of known classes, the newest block's time, and
    by member query the time after which nothing can be added."""

    rows: tuple[Stored | None, ...]
    values: tuple[Key | None, ...]
    newest: float
    ends: tuple[float, ...]

    @property
    def alive(self) -> bool:
        return any(self.newest <= end for end in self.ends)

    @property
    def tids(self) -> tuple[Tid, ...]:
        return tuple(row.tid for row in self.rows if row is not None)


def start(join: EquiJoin, row: Stored, members: Sequence[bool] | None = None) -> Partial:
    """Returns a row on its own, as a probe; with `members`, only for these members."""
    ends = row.ends
    if members is not None:
        ends = tuple(e if on else -math.inf for e, on in zip(ends, members, strict=True))
    stream = row.tid[0]
    rows: list[Stored | None] = [None] * len(join)
    rows[stream] = row
    values: list[Key | None] = [None] * len(join.classes)
    for c, value in zip(join.classes_of(stream), row.values, strict=True):
        values[c] = value
    return Partial(tuple(rows), tuple(values), row.tau, ends)


def extend(join: EquiJoin, part: Partial, row: Stored) -> Partial | None:
    """Returns the partial extended by one row; None if their keys or windows do not match."""
    stream = row.tid[0]
    values = list(part.values)
    for c, value in zip(join.classes_of(stream), row.values, strict=True):
        if values[c] is None:
            values[c] = value
        elif values[c] != value:
            return None
    newest = max(part.newest, row.tau)
    ends = tuple(map(min, part.ends, row.ends))
    if all(newest > end for end in ends):
        return None
    rows = list(part.rows)
    rows[stream] = row
    return Partial(tuple(rows), tuple(values), newest, ends)


def admitted(join: EquiJoin, stream: int, parts: list[Partial]) -> list[Partial]:
    """Returns the partials, just extended by rows of a stream, whose residual conditions hold.
    Conditions apply if all their rows have met now and had not before. The partials have the same
    streams."""
    for residual in join.residuals:
        if not parts:
            break
        there = {k for k, row in enumerate(parts[0].rows) if row is not None}
        if stream in residual.streams and there.issuperset(residual.streams):
            met = [tuple(_payload(part.rows[k]) for k in residual.streams) for part in parts]
            parts = [p for p, holds in zip(parts, residual.among(met), strict=True) if holds]
    return parts


def _payload(row: Stored | None) -> object:
    assert row is not None
    return row.payload


@dataclass(frozen=True, slots=True)
class Result:
    """One combination, for the member queries in whose windows it lies."""

    members: tuple[int, ...]
    rows: tuple[Stored, ...]

    @property
    def tids(self) -> tuple[Tid, ...]:
        return tuple(row.tid for row in self.rows)


def results_of(parts: Sequence[Partial]) -> tuple[Result, ...]:
    """Returns complete combinations as results."""
    return tuple(
        Result(
            tuple(m for m, end in enumerate(part.ends) if part.newest <= end),
            tuple(row for row in part.rows if row is not None),
        )
        for part in parts
    )


@dataclass(frozen=True, slots=True)
class BlockRows:
    """A block as a site is given it: rows of one stream up to time `tau`; empty blocks count
    too."""

    stream: int
    tau: float
    rows: tuple[SiteRow, ...]
    no: int | None = None


Counts: TypeAlias = Mapping[Entry, int]
"""A synopsis vector: the number of rows with each entry."""


def counts(entries: Iterable[Entry]) -> dict[Entry, int]:
    """Counts rows by entry."""
    vector: dict[Entry, int] = {}
    for entry in entries:
        vector[entry] = vector.get(entry, 0) + 1
    return vector
