"""Operators that begin late see the windows as they stand.

before  a run with a join of R and S goes on with LEFT JOIN beside it, at a time both have passed
after   the operator of LEFT JOIN has the rows that the join keeps; its results for them are dropped

Joins and groups that begin late find these rows themselves (`seustream.engine.host.stages`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Protocol

import pyarrow as pa

from seustream.compiler.logical.levels import Node, reads
from seustream.compiler.logical.program import Query
from seustream.engine.assembly import OperatorWork, text_of
from seustream.engine.completeness import looks_back, selects
from seustream.engine.host.answers import selection_of
from seustream.engine.host.driver import DEVICE_JOIN
from seustream.engine.host.stages import SOFTWARE_JOIN
from seustream.engine.host.state import KeptRows, united
from seustream.engine.stream.merge import END_OF_STREAM, Merger, timestamps
from seustream.engine.stream.operator import Operator
from seustream.engine.stream.snapshot import plain_of, unpack


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


def kept_rows(snapshots: Mapping[str, bytes]) -> dict[str, KeptRows]:
    """Returns the rows, by stream, that joins and groups had when a state was saved."""
    joins = [
        unpack(packed, kind)
        for kind in (DEVICE_JOIN, SOFTWARE_JOIN)
        for name, packed in snapshots.items()
        if name.startswith(kind)
    ]
    tables = united(None, DEVICE_JOIN, joins).tables
    return {
        stream: KeptRows(tables[f"kept {stream}"], tables[f"waiting {stream}"])
        for stream in {name for one in joins for name in one.plain["streams"]}
    }


def begins(
    answers: Mapping[str, Iterable[Node]], snapshots: Mapping[str, bytes], kept: Collection[str]
) -> set[str]:
    """Returns the names of operators that are not in a state and look back on rows that are
    kept."""
    found = set()
    for own, some in answers.items():
        (node, *_) = some
        if isinstance(node, Query) or not looks_back(node):
            continue
        packed = snapshots.get(own)
        if packed is not None and plain_of(packed).get("text") == text_of(node):
            continue
        if packed is None or reads(node) <= set(kept):
            found.add(own)
    return found


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
