"""Operators that begin late see the windows as they stand.

before  a run with a join of R and S goes on with LEFT JOIN beside it, at a time both have passed
after   the operator of LEFT JOIN has the rows that the join keeps; its results for them are dropped

Joins and groups that begin late find these rows themselves (`seustream.engine.host.stages`). The
rows of a table never leave, so the run keeps those that no join keeps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from seustream.compiler.catalogue import Stream
from seustream.compiler.logical.levels import Node, reads
from seustream.compiler.logical.program import Query
from seustream.engine.assembly import OperatorWork, text_of
from seustream.engine.completeness import looks_back, selects
from seustream.engine.host.answers import selection_of
from seustream.engine.host.driver import DEVICE_JOIN
from seustream.engine.host.stages import SOFTWARE_JOIN, SoftwareJoin
from seustream.engine.host.state import KeptRows, united
from seustream.engine.runs import RunState, base_joins, base_kind, before
from seustream.engine.stream.merge import END_OF_STREAM, Merger, timestamps
from seustream.engine.stream.operator import Operator
from seustream.engine.stream.snapshot import Snapshot, plain_of, tables_of, unpack


class Graph(Protocol):
    """The operators and streams of a run, and the nodes that define and read them."""

    operators: dict[str, Operator]
    gates: dict[str, Merger]
    readers: dict[str, list[str]]
    definitions: dict[str, Node]
    defined: dict[str, str]
    defines: dict[str, list[str]]
    schemas: dict[str, pa.Schema]
    work: dict[str, OperatorWork]

    def runs(self, own: str) -> bool: ...
    def as_stream(self, stream: str, rows: pa.Table) -> pa.Table: ...


def kept_rows(
    snapshots: Mapping[str, bytes], tables: Mapping[str, pa.Table]
) -> dict[str, KeptRows]:
    """Returns the rows, by stream, that joins and groups had when a state was saved, and those of
    tables. Joins of base streams let in what later levels may still let wait."""
    found: dict[str, KeptRows] = {}
    for kind in (DEVICE_JOIN, SOFTWARE_JOIN):
        for name, packed in snapshots.items():
            if name.startswith(kind):
                one = unpack(packed, kind)
                for stream in one.plain["streams"]:
                    rows = KeptRows(one.tables[f"kept {stream}"], one.tables[f"waiting {stream}"])
                    if stream not in found or rows.total > found[stream].total:
                        found[stream] = rows
    return with_tables(found, tables)


def with_tables(
    kept: Mapping[str, KeptRows], tables: Mapping[str, pa.Table]
) -> dict[str, KeptRows]:
    """Adds the rows of tables, unless they wait for a join."""
    return {**kept} | {
        name: KeptRows(rows, rows.schema.empty_table())
        for name, rows in tables.items()
        if name not in kept or not kept[name].waiting.num_rows
    }


def rows_of_tables(state: RunState, streams: Iterable[Stream]) -> dict[str, pa.Table]:
    """Returns the rows of tables in a state."""
    names = {stream.name for stream in streams if stream.table}
    known = kept_rows(state.operators, {}) if names else {}
    return {
        name: pa.concat_tables(rows) for name, rows in known.items() if name in names and rows.total
    } | {name: rows for name, rows in state.tables.items() if name in names}


def go_on(
    run: Graph,
    answers: Mapping[str, Iterable[Node]],
    snapshots: Mapping[str, bytes],
    kept: Mapping[str, KeptRows],
    tables: Collection[str],
) -> set[str]:
    """Restores the operators of a run from the snapshots of another. Returns those that begin
    late."""
    base = base_joins(snapshots)
    now = {name for name in run.operators if base_kind(name) is not None}
    moved = len(base) > 1 or base.keys() != now or bool(tables)
    late = set()
    for name, operator in run.operators.items():
        packed = before(name, operator, snapshots)
        rows = {of: kept[of] for of in operator.inputs if of in tables}
        if (kind := base_kind(name)) is not None and moved and (base or rows):
            packed = _joined(kind, base.get(name), [*base.values()], rows).pack()
        elif kind is None and isinstance(operator, SoftwareJoin):
            own = () if packed is None else (unpack(packed, SOFTWARE_JOIN),)
            rows |= {of: kept[of] for of in operator.inputs if of in kept and "#" not in of}
            packed = _joined(SOFTWARE_JOIN, None, own, rows).pack()
        elif _is_new(answers[name], packed):
            late.add(name)
            _wait_again(run, operator, packed, kept)
            continue
        if packed is not None:
            operator.restore(packed)
    return late


def _is_new(answers: Iterable[Node], packed: bytes | None) -> bool:
    """Returns whether a query looks back and is not in the state of its operator."""
    (node, *_) = answers
    if isinstance(node, Query) or not looks_back(node):
        return False
    return packed is None or plain_of(packed).get("text") != text_of(node)


def _wait_again(
    run: Graph, operator: Operator, packed: bytes | None, kept: Mapping[str, KeptRows]
) -> None:
    """Gives a query in place of another of its kind the rows that waited for that one, of streams
    that are not kept elsewhere. Hidden streams are those of the other query."""
    tables = {} if packed is None else tables_of(packed)
    for name in operator.inputs:
        rows = tables.get(f"waiting {name}")
        if (
            rows is not None
            and "#" not in name
            and rows.schema.equals(run.schemas[name])
            and not any(True for _ in _past(run, name, kept))
        ):
            operator.push(name, rows)


def _joined(
    kind: str, own: Snapshot | None, others: Sequence[Snapshot], kept: Mapping[str, KeptRows]
) -> Snapshot:
    """Returns the joint state of several joins for one of them, with rows that are kept elsewhere.
    Rows that wait for it stay its own: they are the last of its stream."""
    found = united(own, kind, others)
    rows, streams = {**found.tables}, {**found.plain["streams"]}
    earlier = {group: {**of} for group, of in found.plain["earlier"].items()}
    for name, some in kept.items():
        if f"kept {name}" not in rows:
            streams[name] = {"promise": None, "ended": False, "seen": some.let_in.num_rows}
            rows |= {f"kept {name}": some.let_in, f"waiting {name}": some.waiting}
            continue
        mine, every = (
            KeptRows(rows[f"kept {name}"], rows[f"waiting {name}"]),
            pa.concat_tables(some),
        )
        if every.schema == mine.let_in.schema and every.num_rows > mine.total:
            let_in = every.slice(0, every.num_rows - mine.waiting.num_rows)
            for of in earlier.values():
                of[name] = of.get(name, 0) + let_in.num_rows - mine.let_in.num_rows
            seen = max(streams[name]["seen"], let_in.num_rows)
            streams[name] = {**streams[name], "seen": seen}
            rows[f"kept {name}"] = let_in
    return Snapshot(kind, {**found.plain, "streams": streams, "earlier": earlier}, rows)


def bring(run: Graph, late: set[str], kept: Mapping[str, KeptRows]) -> None:
    """Feeds the kept rows to operators that begin late, and drops the results they give for
    these."""

    def push(stream: str, rows: pa.Table) -> None:
        for own in filter(run.runs, late.intersection(run.readers[stream])):
            with run.work[own]:
                run.operators[own].push(stream, rows)

    def advance(stream: str, watermark: int) -> None:
        for rows in _past(run, stream, kept) if late.intersection(run.readers[stream]) else ():
            push(stream, rows)
        for own in filter(run.runs, late.intersection(run.readers[stream])):
            with run.work[own]:
                run.operators[own].advance(stream, watermark)

    for name, gate in run.gates.items() if late else ():
        advance(name, gate.watermark)
    for own, operator in run.operators.items() if late else ():
        if own in late and run.runs(own):
            with run.work[own]:
                for query, rows in operator.outputs():
                    if (stream := run.defined.get(query)) is not None:
                        push(stream, run.as_stream(stream, rows))
        for stream in run.defines[own]:
            advance(stream, min(operator.watermark, _let_in(run, stream, kept)))


def _let_in(run: Graph, stream: str, kept: Mapping[str, KeptRows]) -> int:
    """Returns the time up to which a join has let in the rows of which a stream is made. Rows that
    waited for streams that it no longer reads come with the next step."""
    node = run.definitions[stream]
    read = reads(node) if isinstance(node, Query) else set()
    waiting = [kept[name].waiting for name in read if name in kept]
    return min(
        (int(timestamps(rows)[0]) - 1 for rows in waiting if rows.num_rows), default=END_OF_STREAM
    )


def _past(
    run: Graph, stream: str, kept: Mapping[str, KeptRows], selects_them: bool = False
) -> Iterator[pa.Table]:
    """Yields the rows of a stream that have come and are kept, or are made of such rows. A join
    that selects them will itself let in the waiting rows."""
    rows, node = kept.get(stream), run.definitions.get(stream)
    if rows is not None and rows.let_in.schema.equals(run.schemas[stream]):
        yield rows.let_in
        if not selects_them:
            yield rows.waiting
    elif isinstance(node, Query) and selects(node):
        for some in _past(run, node.sources[0].stream.name, kept, selects_them=True):
            yield run.as_stream(stream, selection_of(node, some))
