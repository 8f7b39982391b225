"""Keys by which a query set can be divided over several devices: a column of each stream.

of     SELECT … FROM R, S, T WHERE R.a = S.d AND S.d = T.f AND R.b > S.e WINDOW RANGE 100
keys   R by a, S by d, T by f

If every result of every query has the same key in all its components, tuples of different keys
never meet: each device takes its share of the keys and all windows, and the results are those of
one device. That is so where a condition implies the equalities, and where windows do not count
tuples, since ROWS counts those of other keys too. Groups must be of one key, so GROUP BY has to
have it; and so has PARTITION BY of a pattern. Other queries over one stream go with any key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from seustream.compiler.catalogue import TIME_COLUMN, Stream
from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import Kind, Type
from seustream.compiler.logical.program import Program, Query
from seustream.compiler.pattern import ir
from seustream.hdl.device import WindowKind
from seustream.hdl.isa import Condition

Pair = tuple[tuple[int, str], tuple[int, str]]
"""Two columns, each by the position of its stream in the FROM list, that are equal."""
Choice = dict[str, str]
"""A column of each stream."""


@dataclass(frozen=True, slots=True)
class Keys:
    """`columns` of each stream, None if there is no way; `why` says for which query, or what
    each result has in common."""

    columns: tuple[tuple[str, str], ...] | None
    why: str

    def of(self, stream: str) -> str | None:
        return dict(self.columns or ()).get(stream)


def keys(program: Program) -> Keys:
    """The keys of a query set."""
    offers = []
    for query in program.queries:
        if query.where == x.FALSE:
            continue  # no results, wherever its tuples go
        if reason := _never(query):
            return Keys(None, f"query {query.name} {reason}")
        if len(query.sources) == 1 and not query.aggregated:
            continue
        if not (choices := list(_choices(query))):
            return Keys(None, f"query {query.name} does not equate a column of each of its streams")
        if query.aggregated and not (choices := [c for c in choices if _grouped(query, c)]):
            return Keys(None, f"query {query.name} has groups of several keys")
        offers.append(choices)
    for operation in program.operations:
        return Keys(None, f"query {operation.name} brings rows of several keys together")
    for pattern in program.patterns:
        if pattern.stream.defined_by is not None:
            return Keys(None, f"query {pattern.name} reads a derived stream")
        if not (choices := list(_partitions(pattern))):
            return Keys(None, f"query {pattern.name} is not partitioned by a key")
        offers.append(choices)
    found = _agreed(offers, {})
    if found is None:
        return Keys(None, "the queries equate different columns of their streams")
    if not found:
        return Keys((), "no query brings tuples together")
    for stream in _read(program):
        if stream.name not in found:
            if not (own := [c.name for c in stream.columns if _same_key(c.type, c.type)]):
                return Keys(None, f"stream {stream.name} has no column that is a key")
            found[stream.name] = own[0]
    columns = tuple((s.name, found[s.name]) for s in program.streams if s.name in found)
    alone = not any(len(query.sources) > 1 for query in program.queries)
    return Keys(columns, "every group has one" if alone else "every join equates them")


def _read(program: Program) -> list[Stream]:
    """The streams of all queries and patterns; those no join has go by any key they have."""
    found = {s.stream.name: s.stream for query in program.queries for s in query.sources}
    found |= {pattern.stream.name: pattern.stream for pattern in program.patterns}
    return list(found.values())


def _never(query: Query) -> str | None:
    if any(source.stream.defined_by is not None for source in query.sources):
        return "reads a derived stream"
    counts = any(source.window.kind is WindowKind.ROWS for source in query.sources)
    if counts and (len(query.sources) > 1 or query.aggregated):
        return "counts tuples (ROWS), also those of other keys"
    return None


def _choices(query: Query) -> Iterator[Choice]:
    """The ways to choose one column of each of a query's streams so that all are equal."""
    if len(query.sources) == 1:
        stream = query.sources[0].stream
        yield from ({stream.name: c.name} for c in stream.columns if _same_key(c.type, c.type))
    for group in groups(implied(query.where)):
        by_source = [
            sorted(name for at, name in group if at == i) for i in range(len(query.sources))
        ]
        yield from _one_each(query, by_source, {})


def _grouped(query: Query, choice: Choice) -> bool:
    """Says whether rows of one group have one key."""
    streams = [source.stream.name for source in query.sources]
    return any(
        isinstance(e, x.ColumnReference) and choice.get(streams[e.source]) == e.name
        for e in query.group_by
    )


def _partitions(pattern: ir.MatchQuery) -> Iterator[Choice]:
    for column in pattern.stream.columns:
        if column.name.lower() in pattern.partition and _same_key(column.type, column.type):
            yield {pattern.stream.name: column.name}


def _one_each(query: Query, by_source: list[list[str]], chosen: Choice) -> Iterator[Choice]:
    at = len(query.sources) - len(by_source)
    if not by_source:
        yield dict(chosen)
        return
    stream = query.sources[at].stream.name
    for name in by_source[0]:
        # Two aliases of one stream have one key.
        if chosen.get(stream, name) == name:
            yield from _one_each(query, by_source[1:], {**chosen, stream: name})


def _agreed(offers: list[list[Choice]], chosen: Choice) -> Choice | None:
    """One choice of each query, none against another."""
    if not offers:
        return chosen
    for choice in offers[0]:
        if all(chosen.get(stream, name) == name for stream, name in choice.items()):
            found = _agreed(offers[1:], {**chosen, **choice})
            if found is not None:
                return found
    return None


def implied(e: x.Expression) -> set[Pair]:
    """Equalities of columns that hold whenever the condition does."""
    match e:
        case x.And():
            return set().union(*(implied(term) for term in e.terms))
        case x.Or():
            return set.intersection(*(implied(term) for term in e.terms))
        case x.Compare(Condition.EQ, x.ColumnReference() as left, x.ColumnReference() as right):
            named = TIME_COLUMN.name not in (left.name, right.name)
            if named and left.source != right.source and _same_key(left.type, right.type):
                first, second = sorted(((left.source, left.name), (right.source, right.name)))
                return {(first, second)}
    return set()


def _same_key(a: Type, b: Type) -> bool:
    """Says whether equal values of these types are the same key. Floating numbers round when they
    are compared with others, times and timestamps are no keys of a partition anyone wants."""
    if (a.is_integer and b.is_integer) or (a.is_text and b.is_text):
        return True
    return a.kind is b.kind and a.kind in (Kind.DATE, Kind.BOOLEAN)


def groups(pairs: set[Pair]) -> list[set[tuple[int, str]]]:
    """Columns that are all equal to each other."""
    found: list[set[tuple[int, str]]] = []
    for a, b in sorted(pairs):
        touched = [group for group in found if a in group or b in group]
        found = [group for group in found if group not in touched]
        found.append({a, b}.union(*touched))
    return found
