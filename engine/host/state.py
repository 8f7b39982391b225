"""The state that a join keeps between two calls, for its snapshot: the rows its windows can still
reach, the rows that wait for other streams, the members of its groups, and held results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from seustream.compiler.catalogue import Stream
from seustream.compiler.logical.program import Query
from seustream.engine.host.defined import DefinedRows
from seustream.engine.host.grouping import Grouping
from seustream.engine.host.stores import Stores
from seustream.engine.stream.faults import QueryFaults, fault_report, restore
from seustream.engine.stream.merge import Merger, Slice
from seustream.engine.stream.schema import stream_schema
from seustream.engine.stream.snapshot import Snapshot


class KeptRows(NamedTuple):
    """The rows of a stream that joins and groups keep, and those waiting to be let in."""

    let_in: pa.Table
    waiting: pa.Table

    @property
    def total(self) -> int:
        return int(self.let_in.num_rows + self.waiting.num_rows)


class JoinInputs:
    """The common part of the device join and the software join. Both take in their streams in one
    order of time, and keep windows, groups and faults, which a snapshot saves."""

    streams: Sequence[Stream]
    inputs: tuple[str, ...]
    merger: Merger
    stores: Stores
    defined: DefinedRows
    seen: dict[str, int]
    queries: Sequence[Query]
    groupings: Mapping[str, Grouping]
    faults: Mapping[str, QueryFaults]

    @property
    def watermark(self) -> int:
        return self.merger.watermark

    def push(self, input: str, rows: pa.Table) -> None:
        if input in self.seen:
            self.merger.push(input, rows)

    def advance(self, input: str, watermark: int) -> None:
        self.merger.advance(input, watermark)

    def _released(self, rows: int) -> Iterator[Slice]:
        for part in self.merger.release(rows):
            yield part.narrowed(self.inputs, tuple(self.seen))

    def kept_rows(self) -> dict[str, KeptRows]:
        """Returns the rows of each stream, kept and waiting."""
        return {
            stream.name: KeptRows(
                self.stores[stream.name].table,
                self.merger.waiting_rows(stream.name, stream_schema(stream)),
            )
            for stream in self.streams
        }

    def _saved(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """Returns plain values, and tables by name: rows kept or waiting, and members of groups."""
        known: dict[str, Any] = {}
        tables: dict[str, pa.Table] = {}
        for name, rows in self.kept_rows().items():
            tables |= {f"kept {name}": rows.let_in, f"waiting {name}": rows.waiting}
        for stream in self.streams:
            name, queue = stream.name, self.merger.by_name[stream.name]
            known[name] = {
                "promise": queue.promise,
                "ended": queue.stopped,
                "seen": self.seen[name],
            }
        for grouping in set(self.groupings.values()):
            for name, members in grouping.members(self.stores).items():
                if self.groupings.get(name) is grouping:
                    tables[f"group {name}"] = members
        held, waiting = self.defined.waiting()
        tables |= waiting
        plain = {
            "streams": known,
            "held": held,
            # Inputs that only keep time: their promise and end.
            "clock": {
                q.name: (q.promise, q.stopped)
                for q in self.merger.queues
                if q.name not in self.seen
            },
            "groups": {q.name: q.text for q in self.queries if q.name in self.groupings},
            "faults": fault_report(self.faults),
        }
        return plain, tables

    def _resume(self, state: Snapshot) -> None:
        """Restores the groups of queries whose text is the same, faults, and known streams that
        have the columns they had; rows that were waiting wait again."""
        groups, earlier = state.plain["groups"], state.plain.get("earlier", {})
        same = {q.name for q in self.queries if q.name in groups and groups[q.name] == q.text}
        for grouping in set(self.groupings.values()):
            known = {
                name: state.tables[f"group {name}"] for name in grouping.numbers if name in same
            }
            grouping.restore(known, earlier)
        restore(self.faults, state.plain["faults"])
        self.defined.resume(state)
        for stream in self.streams:
            known = state.plain["streams"].get(stream.name)
            waiting = state.tables.get(f"waiting {stream.name}")
            if known is None or waiting is None or not waiting.schema.equals(stream_schema(stream)):
                continue
            self.seen[stream.name] = known["seen"]
            self.merger.push(stream.name, waiting)
            self._go_on(stream.name, known["promise"], known["ended"])
        for name, (promise, ended) in state.plain.get("clock", {}).items():
            if name in self.merger.by_name and name not in self.seen:
                self._go_on(name, promise, ended)

    def _go_on(self, stream: str, promise: int | None, ended: bool) -> None:
        if promise is not None:
            self.merger.boundary(stream, promise)
        if ended:
            self.merger.stop(stream)


def united(own: Snapshot | None, kind: str, others: Sequence[Snapshot]) -> Snapshot:
    """Returns the joint state of several joins over base streams, for one of them whose queries may
    have been another's: the windows that reach back furthest, and the groups and faults of all.
    `earlier` gives, by group and stream, how many rows precede those that the group counts from."""
    plain: dict[str, Any] = dict(own.plain) if own is not None else {}
    tables: dict[str, pa.Table] = {}
    known = [*others, *((own,) if own is not None else ())]
    for member in ("streams", "held", "groups", "faults"):
        plain[member] = {
            name: value for one in known for name, value in one.plain.get(member, {}).items()
        }
    for one in known:
        for name, rows in one.tables.items():
            if name not in tables or rows.num_rows >= tables[name].num_rows:
                tables[name] = rows
    plain["earlier"] = {
        group: {stream: _kept(tables, stream) - _kept(one.tables, stream) for stream in one_streams}
        for one in known
        for one_streams in (one.plain["streams"],)
        for group in one.plain["groups"]
    }
    return Snapshot(kind, plain, tables)


def _kept(tables: Mapping[str, pa.Table], stream: str) -> int:
    return int(tables[f"kept {stream}"].num_rows)
