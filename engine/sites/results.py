"""Divides a query set into joins across sites and the rest, and turns combinations of rows into the
rows of SELECT, by the code that completes those of a device.

    across = plan_across(program, {"r", "s"})       # streams that live at sites, folded
    across.joins, across.rest                       # joined between sites; the others, and why not
    finished(across.queries[0], across.joins[0], ["R", "S"], combinations)
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from seustream.compiler.catalogue import TIME_COLUMN
from seustream.compiler.catalogue import Stream as Definition
from seustream.compiler.logical.program import Program, Query
from seustream.engine.host.answers import blaming, completed
from seustream.engine.host.grouping import Grouping
from seustream.engine.host.join import Side
from seustream.engine.host.rows import RowStore
from seustream.engine.sites.errors import BadQuery
from seustream.engine.sites.model import EquiJoin, SiteStream, Stored
from seustream.engine.sites.query import columns_read, conditions_left, join_of
from seustream.engine.stream.answers import result_schema
from seustream.engine.stream.faults import QueryFaults
from seustream.engine.stream.merge import timestamps
from seustream.engine.stream.schema import arrow_type


@dataclass(frozen=True)
class Across:
    """The queries joined across sites and their joins, over logical sites: a site for each copy of
    a stream that a query reads, `of[k]` is the stream of site k. `rest` are the other queries with
    the reason, whose streams have to be fetched whole."""

    queries: tuple[Query, ...]
    joins: tuple[EquiJoin, ...]
    sites: tuple[SiteStream, ...]
    of: tuple[Definition, ...]
    rest: dict[str, str]


def plan_across(program: Program, remote: Collection[str], strict: bool = False) -> Across:
    """Divides a query set whose streams partly live at sites, `remote` by folded name. Under `strict`
    a fault is an error that names the row, which only a run of its own can tell."""
    queries: list[Query] = []
    rest: dict[str, str] = {}
    for query in program.queries:
        reason = "is strict" if strict or query.strict else _why_whole(program, query, remote)
        if reason is None:
            queries.append(query)
        else:
            rest[query.name] = reason
    copies: dict[tuple[str, int], Definition] = {}
    carried: dict[str, set[str]] = {}
    keys: dict[tuple[str, int], set[str]] = {}
    for query in queries:
        at, plain = _places(query), join_of(query)
        for k, (source, place) in enumerate(zip(query.sources, at, strict=True)):
            copies[place] = source.stream
            keys.setdefault(place, set()).update(plain.streams[k].columns)
            for read in (columns_read(query), columns_read(query, conditions_left(query))):
                carried.setdefault(source.stream.name, set()).update(read[k])
    # Payloads are a site's, whichever query asks: with the columns that any of them reads.
    takes = {name: tuple(sorted(columns)) for name, columns in carried.items()}
    order = sorted(copies)
    joins = tuple(
        join_of(
            query,
            [_name(*place) for place in _places(query)],
            [takes[source.stream.name] for source in query.sources],
            by_row=True,
        )
        for query in queries
    )
    sites = tuple(
        SiteStream(_name(*place), tuple(sorted(keys[place])), carried=takes[place[0]])
        for place in order
    )
    return Across(tuple(queries), joins, sites, tuple(copies[place] for place in order), rest)


def _why_whole(program: Program, query: Query, remote: Collection[str]) -> str | None:
    """Why a query is not joined across sites; None if it is."""
    if query.defines is not None:
        return "defines a stream"
    if any(s.stream.defined_by is not None or s.stream.name in program.apas for s in query.sources):
        return "reads a derived stream"
    if len(query.sources) == 1:
        return "reads one stream"
    if not any(source.stream.name.lower() in remote for source in query.sources):
        return "reads streams of this machine only"
    try:
        join_of(query)
    except BadQuery as error:
        return str(error)
    return None


def _places(query: Query) -> list[tuple[str, int]]:
    """The logical site of each source: its stream, and which copy of it in this query."""
    names = [source.stream.name for source in query.sources]
    return [(name, names[:k].count(name)) for k, name in enumerate(names)]


def _name(stream: str, copy: int) -> str:
    return f"{stream}#{copy + 1}" if copy else stream


def finished(
    query: Query,
    join: EquiJoin,
    order: Sequence[str],
    combinations: Sequence[Sequence[Stored]],
    faults: QueryFaults,
) -> pa.Table:
    """The result rows of a query from its combinations, a row of each source in FROM order;
    `order` are the streams of the query set as they come at equal times."""
    if not combinations:
        return result_schema(query).empty_table()
    rows: list[dict[int, Stored]] = [{} for _ in query.sources]
    for combination in combinations:
        for mine, row in zip(rows, combination, strict=True):
            mine[_place(row)] = row
    # By time, then stream, then place in it; copies of a tuple stand side by side.
    places = _places(query)
    tuples = sorted(
        {
            (row.t, order.index(name), place)
            for (name, _), mine in zip(places, rows, strict=True)
            for place, row in mine.items()
        }
    )
    most = 1 + max(copy for _, copy in places)
    first = {(stream, place): most * n for n, (_, stream, place) in enumerate(tuples)}
    sides, numbers = [], []
    for source, ((name, copy), mine) in enumerate(zip(places, rows, strict=True)):
        own = sorted(mine)
        table = _table(query, source, join.streams[source].carried, [mine[p] for p in own])
        store = RowStore(table.schema, copy + 1)
        at = np.array([first[order.index(name), place] for place in own], np.int64)
        store.append(table, timestamps(table), [at + before for before in range(copy + 1)])
        sides.append(Side(store, copy, query.sources[source].window, query.sources[source].alias))
        numbers.append({place: number for number, place in enumerate(own)})
    sequences = [
        [number[_place(row)] for number, row in zip(numbers, combination, strict=True)]
        for combination in combinations
    ]
    grouping = Grouping(query) if query.aggregated else None
    with blaming(query, faults):
        return completed(query, grouping, sides, np.array(sequences, np.int64), faults)


def _place(row: Stored) -> int:
    place: int = row.payload[0]  # type: ignore[index]  # a payload is a tuple: place, columns
    return place


def _table(query: Query, source: int, names: Sequence[str], rows: Sequence[Stored]) -> pa.Table:
    """Rows of a source as a table of their times and what they carry."""
    columns: dict[str, pa.Array] = {"ts": pa.array([int(row.t) for row in rows], pa.int64())}
    for at, name in enumerate(names, start=1):
        column = query.sources[source].stream.column(name)
        if column is not None and name != TIME_COLUMN.name:
            values = [row.payload[at] for row in rows]  # type: ignore[index]  # as above
            columns[name] = pa.array(values, arrow_type(column.type))
    return pa.table(columns)
