"""The state a join keeps between two calls, for its snapshot: the rows its windows can still reach, the
rows that wait for other streams, and the members of its groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from seustream.compiler.catalogue import Stream
from seustream.engine.host.grouping import Grouping
from seustream.engine.host.stores import Stores
from seustream.engine.stream.merge import Merger
from seustream.engine.stream.schema import stream_schema
from seustream.engine.stream.snapshot import Snapshot


def streams_of(
    merger: Merger, streams: Sequence[Stream], stores: Stores, seen: Mapping[str, int]
) -> tuple[dict[str, Any], dict[str, pa.Table]]:
    """By stream, what is known of it in plain values; and its rows, kept and waiting."""
    plain, tables = {}, {}
    for stream in streams:
        queue = merger.by_name[stream.name]
        plain[stream.name] = {
            "promise": queue.promise,
            "ended": queue.stopped,
            "seen": seen[stream.name],
        }
        tables[f"kept {stream.name}"] = stores[stream.name].table
        tables[f"waiting {stream.name}"] = merger.waiting_rows(stream.name, stream_schema(stream))
    return plain, tables


def clock_of(merger: Merger, seen: Mapping[str, int]) -> dict[str, tuple[int | None, bool]]:
    """Returns the promise and the end of each input that only keeps time."""
    return {q.name: (q.promise, q.stopped) for q in merger.queues if q.name not in seen}


def restore_streams(
    merger: Merger, streams: Sequence[Stream], seen: dict[str, int], state: Snapshot
) -> None:
    """Streams that were known before, with the columns they had: rows that waited wait again."""
    for stream in streams:
        known = state.plain["streams"].get(stream.name)
        waiting = state.tables.get(f"waiting {stream.name}")
        if known is None or waiting is None or not waiting.schema.equals(stream_schema(stream)):
            continue
        seen[stream.name] = known["seen"]
        merger.push(stream.name, waiting)
        _go_on(merger, stream.name, known["promise"], known["ended"])
    for name, (promise, ended) in state.plain.get("clock", {}).items():
        if name in merger.by_name and name not in seen:
            _go_on(merger, name, promise, ended)


def _go_on(merger: Merger, stream: str, promise: int | None, ended: bool) -> None:
    if promise is not None:
        merger.boundary(stream, promise)
    if ended:
        merger.stop(stream)


def united(own: Snapshot | None, kind: str, others: Sequence[Snapshot]) -> Snapshot:
    """The joint state of several joins over base streams, for one of them whose queries may have
    been another's: the windows that reach back furthest, the groups and faults of all. `earlier` says
    by group and stream how many rows stand there before those the group counts from."""
    plain: dict[str, Any] = dict(own.plain) if own is not None else {}
    tables: dict[str, pa.Table] = {}
    known = [*others, *((own,) if own is not None else ())]
    for member in ("streams", "groups", "faults"):
        plain[member] = {name: value for one in known for name, value in one.plain[member].items()}
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


def restore_groups(groupings: Mapping[str, Grouping], state: Snapshot) -> None:
    """Members of the groups of queries whose text is the same."""
    for name, grouping in groupings.items():
        if state.plain["groups"].get(name) == grouping.query.text:
            earlier = state.plain.get("earlier", {}).get(name, {})
            grouping.restore(state.tables[f"group {name}"], earlier)
