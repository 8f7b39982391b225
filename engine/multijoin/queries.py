"""X-SQL queries as joins across sites: each alias of FROM a site, its rows in blocks by timestamp.

before  SELECT * FROM R, S, T WHERE R.a = S.d AND S.e = T.f WINDOW RANGE 100, RANGE 5, RANGE 0
after   streams R(a) 100, S(d, e) 5, T(f) 0; R.a = S.d, S.e = T.f

With a block for each timestamp the join's windows are those of X-SQL: a combination is a result if
each of its rows was in its stream's window when the newest came.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from compiler.plan import expressions as x
from compiler.plan.keys import implied
from compiler.plan.logical import Query
from engine.multijoin.errors import BadQuery
from engine.multijoin.model import BlockRows, Join, Row, Stream


def join_of(query: Query) -> Join:
    """The join of a query whose condition is equalities of columns and nothing else."""
    terms = query.where.terms if isinstance(query.where, x.And) else (query.where,)
    others = [term for term in terms if not implied(term)]
    if others or query.aggregated:
        raise BadQuery(
            f"query {query.name} does more than equate columns of different streams",
            "apply other conditions to the rows before, or to the results after",
        )
    equal = sorted(pair for term in terms for pair in implied(term))
    columns: list[list[str]] = [[] for _ in query.sources]
    for pair in equal:
        for source, name in pair:
            if name not in columns[source]:
                columns[source].append(name)
    streams = tuple(
        Stream(source.alias, tuple(names), source.window)
        for source, names in zip(query.sources, columns, strict=True)
    )
    return Join(streams, tuple(equal))


def blocks_of(join: Join, stream: int, rows: pa.Table, first: int = 0) -> Iterator[BlockRows]:
    """Rows in the order of their timestamps, a block for each; numbered from `first`. A row's
    payload is its place in the table."""
    ts = np.asarray(rows.column("ts").combine_chunks(), dtype=np.int64)
    if np.any(ts[1:] < ts[:-1]):
        raise BadQuery(
            f"rows of stream {join.streams[stream].name} are not in the order of their timestamps",
            "sort them, or let engine.temporal.merge.Merger do it",
        )
    keys = zip(
        *(rows.column(name).to_pylist() for name in join.streams[stream].columns), strict=True
    )
    made = [
        Row(key, t, place) for place, (key, t) in enumerate(zip(keys, ts.tolist(), strict=True))
    ]
    times, starts = np.unique(ts, return_index=True)
    ends = [*starts[1:].tolist(), len(made)]
    for no, (tau, start, end) in enumerate(
        zip(times.tolist(), starts.tolist(), ends, strict=True), start=first
    ):
        yield BlockRows(stream, tau, tuple(made[start:end]), no)
