"""Watches an APAS query moment by moment: what flows on each edge of its network, with its lifetime.

before  a text, rows of its streams, the name of an APAS query
after   the nodes, the edges with the attributes they carry, and the steps: one for each time at which
        rows come, and one for the end of all streams, each with what flows on every edge

An edge to -1 leads out of the network, to the results. A lifetime that never ends is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.apas.compile import Compiled
from seustream.compiler.errors import suggest
from seustream.compiler.explain.facts.apas import apas
from seustream.compiler.pipeline import Compilation
from seustream.engine.stream.faults import QueryFaults
from seustream.engine.stream.merge import END_OF_STREAM
from seustream.engine.temporal.columnar.batch import IntervalBatch
from seustream.engine.temporal.elements import FOREVER
from seustream.engine.temporal.stream import TemporalNode
from seustream.errors import UserError
from seustream.frames import Rows
from seustream.studio.rows import as_json, left_out, page_rows
from seustream.studio.wanted import while_wanted

MOST_FLOWING = 200
"""The most rows on an edge that one step shows; the others are counted."""


def flowable(c: Compilation) -> list[Compiled]:
    """Returns the APAS queries that read streams of rows alone, not results."""
    base = {stream.name for stream in c.program.base}
    every = (*c.program.asked_apas, *c.program.apas.values())
    return [query for query in every if set(query.network.sources) <= base]


def flowing(c: Compilation, rows: Mapping[str, Rows], name: str) -> dict[str, Any]:
    """Returns the steps of an APAS query over these rows, as JSON. Without a name it takes the
    first."""
    queries = {query.name: query for query in flowable(c)}
    if not queries:
        raise UserError(
            ["no APAS query reads the streams of the text"],
            hint="REGISTER QUERY q AS APAS $$ … $$: the gallery's text `intervals` has one",
        )
    query = queries.get(name or next(iter(queries)))
    if query is None:
        hint = suggest(name, queries, "APAS queries")
        raise UserError([f"there is no APAS query {name!r}"], hint=hint)
    streams = {one.name: one for one in c.program.base if one.name in query.network.sources}
    come = {one: page_rows(stream, rows, "seustream run") for one, stream in streams.items()}
    tables = {one: arrived.taken for one, arrived in come.items()}
    flow = _Flow(query)
    node = TemporalNode(
        query, streams, QueryFaults(query.strict, source=c.source), on_output=flow.note
    )
    times = np.unique(np.concatenate([table["ts"].to_numpy() for table in tables.values()]))
    steps = []
    for at in while_wanted([*times.tolist(), None]):
        flow.begin()
        given = []
        for one, table in tables.items():
            if at is not None and (now := table.filter(pc.equal(table["ts"], at))).num_rows:
                node.push(one, now)
                given.append(f"{now.num_rows} of {one}")
            node.advance(one, END_OF_STREAM if at is None else at)
        for _ in node.outputs():
            pass
        said = "no row comes any more" if at is None else ", ".join(given)
        steps.append({"at": at, "title": said, "edges": flow.edges, "more": flow.more})
    facts = apas(query).network
    return {
        "query": query.name,
        "queries": list(queries),
        "nodes": [{"title": one.title, "does": list(one.does)} for one in facts],
        "edges": [
            {"from": source, "to": to, "place": place, "carries": list(carries)}
            for source, to, place, carries in flow.of
        ],
        "steps": steps,
        "left_out": left_out(c.program, come),
        "refused": sum(node.refused.values()),
    }


class _Flow:
    """Records what flows over the edges in a step."""

    def __init__(self, query: Compiled) -> None:
        nodes = query.network.nodes
        last = len(nodes) - 1
        facts = apas(query).network
        self._columns = [edge.columns for node in nodes for edge in node.edges]
        self._columns.append(tuple(range(2, 2 + len(nodes[last].leaves))))
        self.of = [
            (edge.node, one.node, place, edge.carries)
            for one in facts
            for place, edge in enumerate(one.inputs)
        ]
        self.of.append((last, -1, 0, tuple(leaf for leaf, _ in nodes[last].leaves)))
        self.begin()

    def begin(self) -> None:
        self.edges: list[list[list[Any]]] = [[] for _ in self.of]
        self.more = [0] * len(self.of)

    def note(self, number: int, out: IntervalBatch) -> None:
        for at, (source, *_) in enumerate(self.of):
            if source == number:
                room = MOST_FLOWING - len(self.edges[at])
                some = out.take(slice(room)).picked(self._columns[at])
                self.edges[at] += _shown(some)
                self.more[at] += len(out) - len(some)


def _shown(rows: IntervalBatch) -> list[list[Any]]:
    ends = [None if te == FOREVER else te for te in rows.te.tolist()]
    times = map(list, zip(rows.ts.tolist(), ends, strict=True))
    if not rows.columns:
        return [*times]
    names = [str(place) for place in range(len(rows.columns))]
    values = as_json(pa.table(rows.columns, names=names))["rows"]
    return [time + row for time, row in zip(times, values, strict=True)]
