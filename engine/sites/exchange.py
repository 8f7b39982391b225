"""The exchange between streams that live at sites and the graph that runs their queries.

before  R at a site ─┐                  after  R at a site ─┐
        S at a site ─┴ join ─ project          S at a site ─┴ exchange ─ join ─ project

An exchange passes on the rows that are in some combination found by the sites. The graph behind it
joins them again, as it joins rows of files: a row that is in no combination changes no result of a
join over windows of time. So the sites leave out rows that cannot join, and everything else is done
in one way only.

    exchange = plan_exchange(program, {"r", "s"})    # streams that live at sites, folded
    exchange.joins, exchange.whole                   # found between sites; fetched whole, and why
    exchange.rows(run.results)                       # by stream, what the graph is to read
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import pyarrow as pa

from seustream.compiler.catalogue import TIME_COLUMN
from seustream.compiler.catalogue import Stream as Definition
from seustream.compiler.language import expressions as x
from seustream.compiler.logical.levels import nodes, reads
from seustream.compiler.logical.program import Program, Query
from seustream.engine.sites.errors import BadQuery
from seustream.engine.sites.model import EquiJoin, Result, SiteStream
from seustream.engine.sites.query import columns_read, join_of
from seustream.engine.stream.schema import stream_schema


@dataclass(frozen=True)
class SiteExchange:
    """The queries whose rows meet at sites, and their joins, over logical sites: one for each copy
    of a stream that a query reads. `of[k]` is the stream of site k. `whole` holds streams at sites
    that are fetched whole, each with the query that needs this, and the reason."""

    queries: tuple[Query, ...]
    joins: tuple[EquiJoin, ...]
    sites: tuple[SiteStream, ...]
    of: tuple[Definition, ...]
    remote: frozenset[str]
    whole: dict[str, str]

    @property
    def met(self) -> dict[str, Definition]:
        """The streams of which only the rows come that are in some combination, by name."""
        return {
            stream.name: stream
            for stream in self.of
            if stream.name.lower() in self.remote and stream.name not in self.whole
        }

    def aliases(self, q: int) -> dict[str, str]:
        """Returns the name that each site of a join has in its query."""
        pairs = zip(self.joins[q].streams, self.queries[q].sources, strict=True)
        return {site.name: source.alias for site, source in pairs}

    def rows(self, results: Iterable[tuple[int, Result]]) -> dict[str, pa.Table]:
        """Returns, by stream, the rows that are in some combination, in the order they have at
        their site. Each of `results` is a query's number and a combination."""
        met = self.met
        found: dict[str, dict[int, tuple[object, ...]]] = {name: {} for name in met}
        for q, result in results:
            for source, row in zip(self.queries[q].sources, result.rows, strict=True):
                if (mine := found.get(source.stream.name)) is not None:
                    mine[row.payload[0]] = (int(row.t), *row.payload[1:])  # type: ignore[index]  # place, columns
        carried = {
            stream.name: site.carried for stream, site in zip(self.of, self.sites, strict=True)
        }
        return {
            name: _table(met[name], carried[name], [mine[place] for place in sorted(mine)])
            for name, mine in found.items()
        }


def plan_exchange(program: Program, remote: Collection[str], strict: bool = False) -> SiteExchange:
    """Finds the part of a query set that sites can join; `remote` holds the folded names of their
    streams. Under `strict`, a fault is an error that names the row among all rows, so all rows have
    to come."""
    queries: list[Query] = []
    whole: dict[str, str] = {}
    for node in nodes(program):
        reason = "reads all of its stream"
        if isinstance(node, Query):
            reason = "is strict" if strict or node.strict else _why_whole(program, node)
        if isinstance(node, Query) and not reason:
            queries.append(node)
        for name in reads(node) if reason else ():
            if name.lower() in remote:
                whole.setdefault(name, f"query {node.name.partition('#')[0]}: {reason}")
    # Sites need not meet for rows that all come anyway.
    queries = [q for q in queries if {n for n in reads(q) if n.lower() in remote} - whole.keys()]
    copies: dict[tuple[str, int], Definition] = {}
    carried: dict[str, set[str]] = {}
    keys: dict[tuple[str, int], set[str]] = {}
    for query in queries:
        plain = join_of(query)
        for k, (source, place) in enumerate(zip(query.sources, _places(query), strict=True)):
            copies[place] = source.stream
            keys.setdefault(place, set()).update(plain.streams[k].columns)
            wanted = {column.name for column in source.stream.columns if not column.nullable}
            wanted |= columns_read(query)[k] - {TIME_COLUMN.name}
            wanted |= columns_read(query, [query.where])[k]
            carried.setdefault(source.stream.name, set()).update(wanted)
    # Payloads belong to a site, whichever query asks: they have the columns that any query reads.
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
    of = tuple(copies[place] for place in order)
    return SiteExchange(tuple(queries), joins, sites, of, frozenset(remote), whole)


def _why_whole(program: Program, query: Query) -> str:
    """Returns why sites cannot tell which rows a query needs, or an empty text if they can."""
    if any(s.stream.defined_by is not None or s.stream.name in program.apas for s in query.sources):
        return "reads a derived stream"
    if len(query.sources) == 1 and query.where == x.TRUE:
        return "reads all of its stream"
    try:
        join_of(query)
    except BadQuery as error:
        return str(error)
    return ""


def _places(query: Query) -> list[tuple[str, int]]:
    """Returns the logical site of each source: its stream, and which copy of it in this query."""
    names = [source.stream.name for source in query.sources]
    return [(name, names[:k].count(name)) for k, name in enumerate(names)]


def _name(stream: str, copy: int) -> str:
    return f"{stream}#{copy + 1}" if copy else stream


def _table(
    stream: Definition, carried: tuple[str, ...], rows: list[tuple[object, ...]]
) -> pa.Table:
    """Builds rows of a stream from their times and carried columns; NULL in columns that no query
    reads."""
    schema = stream_schema(stream)
    at = {name: place for place, name in enumerate(("ts", *carried))}
    columns = [
        pa.array(
            [row[at[field.name]] for row in rows] if field.name in at else [None] * len(rows),
            field.type,
        )
        for field in schema
    ]
    return pa.table(columns, schema=schema)
