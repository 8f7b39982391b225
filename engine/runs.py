"""The account and the state of a run of a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from seustream.engine.host.driver import DEVICE_JOIN, JoinCounts
from seustream.engine.host.stages import SOFTWARE_JOIN, SoftwareJoin
from seustream.engine.stream.faults import Lines
from seustream.engine.stream.merge import OnLate
from seustream.engine.stream.operator import Operator
from seustream.engine.stream.snapshot import Snapshot, kind_of, tables_of, unpack


@dataclass(slots=True)
class Report:
    """The account of a run, for users: rows taken and late by base stream, and results by query. By
    stream, it has rows without a time, rows a pattern could not take for lack of one, and rows an
    APAS query refused because they end before they begin. By query, it has tuples with key 0 of its
    time-tables; the matcher of each pattern; and by place, how many evaluations had no value, and
    the first row."""

    taken: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    results: dict[str, int] = field(default_factory=dict)
    timeless: dict[str, int] = field(default_factory=dict)
    untimed: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    bad_keys: dict[str, int] = field(default_factory=dict)
    derived: dict[str, int] = field(default_factory=dict)
    engines: dict[str, str] = field(default_factory=dict)
    faults: dict[str, Lines] = field(default_factory=dict)
    join: JoinCounts = field(default_factory=JoinCounts)


@dataclass(frozen=True, slots=True)
class GateState:
    """The state of a base stream's gate: waiting rows, its promise, whether it has ended, its counts,
    and its highest time."""

    waiting: pa.Table
    promise: int | None
    ended: bool
    taken: int = 0
    late: int = 0
    timeless: int = 0
    highest: int | None = None


@dataclass(frozen=True, slots=True)
class Lineages:
    """By name, what derived streams and queries are made by: digests of texts."""

    streams: Mapping[str, str]
    nodes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RunState:
    """Enough to continue on another device, or on another day: gates by stream, the operators'
    snapshots by name, and counts of results."""

    gates: dict[str, GateState]
    operators: dict[str, bytes]
    results: dict[str, int]
    failed: dict[str, list[str]] = field(default_factory=dict)
    """By query, its text and the reason of its failure."""
    tables: dict[str, pa.Table] = field(default_factory=dict)
    """The rows of tables that no join of base streams keeps, for queries that begin late."""
    lineages: Lineages | None = None
    """Of the queries and streams to which the state belongs."""

    def rows(self) -> Iterator[tuple[str, pa.Table]]:
        """Yields the rows of base streams that queries can still reach, or that wait, for a caller
        that saves what it can. Of operators that keep rows of one stream it is the one that keeps
        the most, so that each row comes once."""
        most: dict[str, list[pa.Table]] = {name: [rows] for name, rows in self.tables.items()}
        for packed in self.operators.values():
            tables = tables_of(packed)
            for name, gate in self.gates.items():
                own = [tables.get(f"{what} {name}") for what in _AS_THEY_CAME]
                known = [
                    one for one in own if one is not None and one.schema == gate.waiting.schema
                ]
                if sum(map(len, known)) > sum(map(len, most.get(name, ()))):
                    most[name] = known
        for name, gate in self.gates.items():
            for rows in (gate.waiting, *most.get(name, ())):
                yield name, rows

    def without_rows(self) -> list[str]:
        """Returns the queries, and the streams that queries define, of which `rows` has not all
        that they can still reach: what they keep is in a form of their own."""
        found = set()
        for own, packed in self.operators.items():
            if kind_of(packed) not in _KEEP_ROWS:
                found.add(own.rpartition(" ")[2])
            for table, rows in tables_of(packed).items():
                what, _, stream = table.partition(" ")
                if what in _AS_THEY_CAME and stream and stream not in self.gates and len(rows):
                    found.add(stream)
        return sorted({name.partition("#")[0] for name in found})


_AS_THEY_CAME = ("kept", "waiting")
_KEEP_ROWS = (DEVICE_JOIN, SOFTWARE_JOIN, "joins", "changes", "union")
"""The kinds of operators that keep the rows of their streams, in tables of these two names."""


def software_join(number: int) -> str:
    """Returns the name of the operator that joins without a device, by its level."""
    return f"{SOFTWARE_JOIN} {number}"


def base_kind(name: str) -> str | None:
    """Returns the kind of an operator that joins base streams, by its name; None for all others."""
    if name.startswith(DEVICE_JOIN):
        return DEVICE_JOIN
    return SOFTWARE_JOIN if name == software_join(0) else None


def base_joins(snapshots: Mapping[str, bytes]) -> dict[str, Snapshot]:
    """Returns the states of the operators that join base streams."""
    kinds = {name: base_kind(name) for name in snapshots}
    return {name: unpack(snapshots[name], kind) for name, kind in kinds.items() if kind is not None}


def late_of(streams: set[str], on_late: OnLate | None) -> OnLate:
    """Returns a function that passes on only the late rows of these streams."""

    def take(stream: str, rows: pa.Table) -> None:
        if on_late is not None and stream in streams:
            on_late(stream, rows)

    return take


def before(name: str, operator: Operator, snapshots: Mapping[str, bytes]) -> bytes | None:
    """Returns an operator's earlier snapshot. A query of its name may have been of another kind,
    and new queries may add or remove levels below a software join."""
    found = snapshots.get(name)
    if base_kind(name) is not None:
        return found
    if not isinstance(operator, SoftwareJoin):
        same = found is not None and kind_of(found) == kind_of(operator.snapshot())
        return found if same else None
    joins = [
        one
        for key, one in snapshots.items()
        if key.startswith(SOFTWARE_JOIN) and base_kind(key) is None
    ]
    return max(joins, key=operator.alike, default=None)
