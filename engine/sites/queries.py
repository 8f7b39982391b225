"""X-SQL queries as joins across sites: each alias of FROM a site, its rows in blocks by timestamp.

before  SELECT * FROM R, S, T WHERE R.a = S.d AND S.e = T.f AND R.b < T.g
        WINDOW RANGE 100, RANGE 5, RANGE 0
after   streams R(a) 100, S(d, e) 5, T(f) 0; R.a = S.d, S.e = T.f; R.b < T.g where R and T meet

With a block for each timestamp the join's windows are those of X-SQL: a combination is a result if
each of its rows was in its stream's window when the newest came.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from compiler.language import expressions as x
from compiler.plan.keys import implied
from compiler.plan.logical import Query
from engine.sites.errors import BadQuery
from engine.sites.model import BlockRows, Join, Row, Stream
from engine.sites.where import Where, at_source, carried


def join_of(query: Query) -> Join:
    """The join of a query whose condition equates columns of its streams; its other conditions
    are looked at where their rows meet."""
    terms = query.where.terms if isinstance(query.where, x.And) else (query.where,)
    others = [term for term in terms if not (isinstance(term, x.Compare) and implied(term))]
    if query.aggregated:
        raise BadQuery(
            f"query {query.name} groups or aggregates", "join across sites, aggregate the results"
        )
    if any(not x.sources(term) for term in others) and query.where != x.TRUE:
        raise BadQuery(f"query {query.name} has a condition without a column, which never changes")
    equal = sorted({pair for term in terms for pair in implied(term)})
    read = {
        k: tuple(sorted({c.name for term in others for c in x.columns(term) if c.source == k}))
        for k in range(len(query.sources))
    }
    residuals = []
    for term in others:
        over = tuple(sorted(x.sources(term)))
        if over:
            residuals.append(Where(over, term, tuple(read[k] for k in over)))
    columns: list[list[str]] = [[] for _ in query.sources]
    for pair in equal:
        for source, name in pair:
            if name not in columns[source]:
                columns[source].append(name)
    streams = tuple(
        Stream(source.alias, tuple(names), source.window, carried=read[k])
        for k, (source, names) in enumerate(zip(query.sources, columns, strict=True))
    )
    return Join(streams, tuple(equal), residuals=tuple(residuals))


def blocks_of(join: Join, stream: int, rows: pa.Table, first: int = 0) -> Iterator[BlockRows]:
    """Rows in the order of their timestamps, a block for each; numbered from `first`. A row's
    payload is its place in the table, and what conditions read of it; one that a condition over its
    stream alone excludes stays out."""
    ts = np.asarray(rows.column("ts").combine_chunks(), dtype=np.int64)
    if np.any(ts[1:] < ts[:-1]):
        raise BadQuery(
            f"rows of stream {join.streams[stream].name} are not in the order of their timestamps",
            "sort them, or let engine.temporal.merge.Merger do it",
        )
    keys = zip(
        *(rows.column(name).to_pylist() for name in join.streams[stream].columns), strict=True
    )
    payloads = carried(join, stream, rows)
    made = [
        Row(key, t, payload) for key, t, payload in zip(keys, ts.tolist(), payloads, strict=True)
    ]
    left = set(at_source(join, stream, rows))
    times, starts = np.unique(ts, return_index=True)
    ends = [*starts[1:].tolist(), len(made)]
    for no, (tau, start, end) in enumerate(
        zip(times.tolist(), starts.tolist(), ends, strict=True), start=first
    ):
        block = tuple(made[place] for place in range(start, end) if place in left)
        yield BlockRows(stream, tau, block, no)
