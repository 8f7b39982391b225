"""Keys by which a query set can be divided: a column of each stream.

of     SELECT … FROM R, S, T WHERE R.a = S.d AND S.d = T.f AND R.b > S.e WINDOW RANGE 100
keys   R by a, S by d, T by f

If every result of every query has the same key in all its components, tuples of different keys
never meet: each device, or each task of Spark, takes its share of the keys with all windows, and
together they give the results of one. This requires a condition that implies the equalities, and
windows that do not count tuples, since ROWS counts those of other keys too. A group must be of one
key, so GROUP BY has to contain it; the same holds for PARTITION BY of a window, of a pattern and of
functions OVER. Other queries over one stream work with any key.

A column of a derived stream is a key if it has the value of one: it leads back to the columns by
which the base streams must be divided.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from seustream.compiler.apas.compile import Compiled
from seustream.compiler.catalogue import TIME_COLUMN, Stream
from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import Kind, Type
from seustream.compiler.logical import program as logical
from seustream.compiler.logical.joins import (
    ChangeLog,
    JoinKind,
    JoinSide,
    JoinTree,
    members,
    optional,
)
from seustream.compiler.logical.levels import Node, definitions, level, levels, nodes, part, reads
from seustream.compiler.logical.program import Program, Query
from seustream.compiler.logical.windows import PartitionWindow
from seustream.compiler.pattern import ir
from seustream.hdl.device import WindowKind
from seustream.hdl.isa import Condition

Pair = tuple[tuple[int, str], tuple[int, str]]
"""Two equal columns, each with the position of its stream in the FROM list."""
Choice = dict[str, str]
"""A column of each base stream."""
Way = tuple[Choice, set[tuple[int, str]]]
"""A choice, and the columns of a FROM list that have the key under it."""
Origins = Mapping[str, Mapping[str, list[Choice]]]
"""By stream and column, the ways to divide base streams so that each row is where its value
demands."""
_MANY = 256
"""The most ways that are considered for one group of columns."""


@dataclass(frozen=True, slots=True)
class Keys:
    """`columns` gives a column of each stream, None if there is no way. `why` names the query that
    prevents it, or what each result has in common."""

    columns: tuple[tuple[str, str], ...] | None
    why: str

    def of(self, stream: str) -> str | None:
        return dict(self.columns or ()).get(stream)


def keys_of_each(program: Program) -> dict[str, Keys]:
    """Returns the keys of each query alone, with what it reads. A query may have some although the
    set has none."""
    return {name: keys(part(program, name)) for name in program.names}


_SEVERAL, _ALL = "has groups of several keys", "has one group of all rows"


_KINDS = "where a key is a whole number, a text, a date or a boolean"


class _NoKey(Exception):
    """A query brings rows of several keys together; the text continues after its name."""


def keys(program: Program) -> Keys:
    """Finds the keys of a query set."""
    at, defined = levels(program), definitions(program)
    origins: dict[str, Mapping[str, list[Choice]]] = {
        stream.name: {c.name: [{stream.name: c.name}] for c in stream.columns if _is_key(c.type)}
        for stream in program.base
    }
    names = {id(node): name for name, node in defined.items()}
    streams = {stream.name: stream for stream in program.streams}
    offers: list[list[Choice]] = []
    joined = False
    for node in sorted(nodes(program), key=lambda one: level(one, at)):
        try:
            ways = _Ways(node, origins)
            mine = ways.offers()
        except _NoKey as error:
            return Keys(None, f"query {_written(node)} {error}")
        offers += mine
        joined |= bool(mine) and ways.several
        if (name := names.get(id(node))) is not None:
            origins[name] = ways.results(streams[name])
    found = _agreed(offers, {})
    if found is None:
        return Keys(None, "the queries equate different columns of their streams")
    if not found:
        return Keys((), "no query brings tuples together")
    for stream in _read(program):
        if stream.name not in found:
            if not (own := [c.name for c in stream.columns if _is_key(c.type)]):
                return Keys(None, f"stream {stream.name} has no column that is a key")
            found[stream.name] = own[0]
    columns = tuple((s.name, found[s.name]) for s in program.streams if s.name in found)
    return Keys(columns, "every join equates them" if joined else "every group has one")


def _written(node: Node) -> str:
    """Returns the name of the written query that a node is part of."""
    return node.name.partition("#")[0]


def _read(program: Program) -> Iterator[Stream]:
    """Yields the base streams that nodes read; one that no join reads may use any of its keys."""
    names = {name for node in nodes(program) for name in reads(node)}
    return (stream for stream in program.base if stream.name in names)


class _Ways:
    """The ways to divide the base streams of a node by key."""

    def __init__(self, node: Node, origins: Origins) -> None:
        self.node, self.origins = node, origins
        self.several = len(reads(node)) > 1 or len(getattr(node, "sources", ())) > 1

    def offers(self) -> list[list[Choice]]:
        """Returns lists of choices, each of which must hold in one choice; raises `_NoKey` if some
        list is empty."""
        match self.node:
            case Compiled():
                raise _NoKey("is APAS, whose tuples meet by their times alone")
            case ir.MatchQuery() as pattern:
                return [self._partitioned(pattern)]
            case Query() as query:
                return self._query(query)
            case JoinTree() as tree:
                return self._tree(tree)
            case logical.PeriodGroups() as groups:
                return [self._periods(groups)]
            case logical.Distinct() as distinct:
                return [self._distinct(distinct)]
            case logical.OverRows() as over:
                return self._over(over)
            case logical.UnionAll():
                return []
        raise _NoKey("brings rows of several keys together")

    def results(self, stream: Stream) -> Mapping[str, list[Choice]]:
        """Returns the columns of the stream defined by a node that have the value of a key."""
        return {
            column.name: ways
            for column, ways in zip(stream.columns, self._columns(), strict=False)
            if ways
        }

    # --- nodes ------------------------------------------------------------------

    def _query(self, query: Query) -> list[list[Choice]]:
        if query.where == x.FALSE:
            return []  # no results, wherever its tuples go
        if len(query.sources) == 1 and not query.aggregated:
            return []
        return [self._meeting(query, "does not equate a column of each of its streams")]

    def _tree(self, tree: JoinTree) -> list[list[Choice]]:
        changes = isinstance(tree, ChangeLog) and _counts(tree.sources[0])
        if len(tree.sources) == 1 and not (tree.aggregated or changes):
            return []
        return [self._meeting(tree, "does not equate a column of both sides of each join")]

    def _meeting(self, node: Query | JoinTree, apart: str) -> list[Choice]:
        """Returns the ways in which tuples that meet, that are in one group, or that push each other
        out of a window have one key."""
        if any(source.window.kind is WindowKind.ROWS for source in node.sources):
            raise _NoKey("counts tuples (ROWS), also those of other keys")
        ways = self._joined(node) if len(node.sources) > 1 else self._alone(node.sources[0])
        if not ways and len(node.sources) > 1:
            kind = next(_no_keys(_conditions(node)), None)
            raise _NoKey(apart if kind is None else f"equates columns of type {kind}, {_KINDS}")
        found = self._grouped(node, ways) if node.aggregated else _some(ways)
        for source in filter(_counts, node.sources):
            found = [choice for choice in found if self._divides(source, choice)]
            if not found:
                raise _NoKey(f"counts tuples ({source.window}), also those of other keys")
        return found

    def _alone(self, source: logical.Source) -> list[Way]:
        own = self.origins.get(source.stream.name, {})
        return [(choice, {(0, name)}) for name, some in own.items() for choice in some]

    def _divides(self, source: logical.Source, choice: Choice) -> bool:
        """Returns whether a column that partitions the source's window has the value of the key."""
        assert isinstance(source.window, PartitionWindow)
        keys = {key.lower() for key in source.window.keys}
        own = self.origins.get(source.stream.name, {})
        ways = [way for name, some in own.items() if name.lower() in keys for way in some]
        return any(way.items() <= choice.items() for way in ways)

    def _grouped(self, query: Query | JoinTree, ways: list[Way]) -> list[Choice]:
        """Returns the ways in which the rows of one group have one key."""
        missing = self._missing()
        by = {
            (e.source, e.name)
            for e in query.group_by
            if isinstance(e, x.ColumnReference) and e.source not in missing
        }
        if not (found := [choice for choice, group in ways if group & by]):
            raise _NoKey(_groups_of(query.group_by))
        return found

    def _periods(self, node: logical.PeriodGroups) -> list[Choice]:
        if isinstance(node.every, logical.Periodic) and node.every.by_rows:
            raise _NoKey("counts tuples (windows by rows), also those of other keys")
        if node.limit is not None:
            raise _NoKey("compares groups of several keys (LIMIT)")
        found = [w for e in node.group_by for w in self._leaf(node.columns, e)]
        if not found:
            raise _NoKey(_groups_of(node.group_by))
        return found

    def _distinct(self, node: logical.Distinct) -> list[Choice]:
        if node.window.kind is WindowKind.ROWS:
            raise _NoKey("counts tuples (ROWS), also those of other keys")
        found = [way for some in self.origins.get(node.inputs[0].name, {}).values() for way in some]
        if not found:
            raise _NoKey("compares rows without a key")
        return found

    def _over(self, node: logical.OverRows) -> list[list[Choice]]:
        read = [item.expression for item in node.items]
        read += [] if node.qualify is None else [node.qualify]
        found = [leaf for e in read for leaf in x.leaves(e) if isinstance(leaf, logical.Over)]
        if isinstance(node, logical.RankedRows) and node.best is not None:
            found.append(node.best[0])
        offers = []
        for over in dict.fromkeys(found):
            ways = [w for e in over.partition for w in self._leaf(node.columns, e)]
            if not ways:
                raise _NoKey(f"has partitions of several keys ({over.function} OVER)")
            offers.append(ways)
        return offers

    def _partitioned(self, pattern: ir.MatchQuery) -> list[Choice]:
        own = self.origins.get(pattern.stream.name, {})
        found = [
            way for name, some in own.items() if name.lower() in pattern.partition for way in some
        ]
        if not found:
            raise _NoKey("is not partitioned by a key")
        return found

    # --- columns ----------------------------------------------------------------

    def _columns(self) -> list[list[Choice]]:
        """Returns by result column the ways in which it has the value of a key."""
        node = self.node
        match node:
            case logical.PeriodGroups():
                own = [item.expression for item in node.items]
                return [self._leaf(node.columns, e) if e in node.group_by else [] for e in own]
            case logical.OverRows():
                return [self._leaf(node.columns, item.expression) for item in node.items]
            case logical.Distinct():
                return [self._input(0, item.expression) for item in node.items]
            case logical.UnionAll():
                parts = [
                    [self.origins.get(one.name, {}).get(c.name, []) for c in one.columns]
                    for one in node.inputs
                ]
                return [_together(some) for some in zip(*parts, strict=False)]
            case Query() | JoinTree():
                return [self._joined_column(item.expression) for item in node.items]
            case ir.PatternQuery():
                return [self._element(node, column.expression) for column in node.outputs]
        return []

    def _leaf(self, columns: Sequence[x.ColumnReference], e: x.Expression) -> list[Choice]:
        """Returns the ways of an expression over the leaves, whose values the one input has in this
        order."""
        node = self.node
        assert isinstance(node, logical.Operation)
        (stream,) = node.inputs
        if not isinstance(e, x.ColumnReference) or e not in columns:
            return []
        name = stream.columns[list(columns).index(e)].name
        return self.origins.get(stream.name, {}).get(name, [])

    def _input(self, number: int, e: x.Expression) -> list[Choice]:
        node = self.node
        assert isinstance(node, logical.Operation)
        name = e.name if isinstance(e, x.ColumnReference) else ""
        return self.origins.get(node.inputs[number].name, {}).get(name, [])

    def _element(self, pattern: ir.PatternQuery, e: object) -> list[Choice]:
        own = self.origins.get(pattern.stream.name, {})
        if not isinstance(e, ir.Value) or e.attribute not in pattern.partition:
            return []
        return [way for name, some in own.items() if name.lower() == e.attribute for way in some]

    def _joined_column(self, e: x.Expression) -> list[Choice]:
        node = self.node
        assert isinstance(node, Query | JoinTree)
        if not isinstance(e, x.ColumnReference) or e.source not in range(len(node.sources)):
            return []
        if e.source in self._missing() or (node.aggregated and e not in node.group_by):
            return []
        if len(node.sources) == 1:
            return self.origins.get(node.sources[0].stream.name, {}).get(e.name, [])
        return [choice for choice, group in self._joined(node) if (e.source, e.name) in group]

    def _missing(self) -> frozenset[int]:
        """Returns the sources that a result may lack."""
        return optional(self.node.tree) if isinstance(self.node, JoinTree) else frozenset()

    def _joined(self, node: Query | JoinTree) -> list[Way]:
        """Returns the ways to choose one column of each source, all of them equal wherever tuples
        meet."""
        sources, met = node.sources, [implied(node.where)]
        if isinstance(node, JoinTree):
            parts = list(_meetings(node.tree, met[0]))
            met = [pairs for _, _, pairs in parts]
        found: list[Way] = []
        for group in groups(set().union(*met)):
            at_source = [sorted(name for at, name in group if at == i) for i in range(len(sources))]
            ways = self._one_each(sources, at_source, {}, ())
            if isinstance(node, JoinTree):
                ways = (way for way in ways if all(_meets(way[1], *part) for part in parts))
            found += itertools.islice(ways, _MANY)
        return found

    def _one_each(
        self,
        sources: Sequence[logical.Source],
        columns: list[list[str]],
        chosen: Choice,
        names: tuple[str, ...],
    ) -> Iterator[Way]:
        at = len(names)
        if at == len(sources):
            yield chosen, set(enumerate(names))
            return
        own = self.origins.get(sources[at].stream.name, {})
        for name in columns[at]:
            for way in own.get(name, ()):
                # Two aliases of one stream have one key.
                if (both := _both(chosen, way)) is not None:
                    yield from self._one_each(sources, columns, both, (*names, name))


def _some(ways: list[Way]) -> list[Choice]:
    return [choice for choice, _ in ways]


def _together(parts: Iterable[list[Choice]]) -> list[Choice]:
    """Returns the ways in which one of each part hold together."""
    found: list[Choice] = [{}]
    for ways in parts:
        both = [_both(before, way) for before in found for way in ways]
        found = [one for one in both if one is not None][:_MANY]
    return found


def _both(a: Choice, b: Choice) -> Choice | None:
    """Merges both choices, None if they contradict each other."""
    return {**a, **b} if all(a.get(stream, name) == name for stream, name in b.items()) else None


def _counts(source: logical.Source) -> bool:
    """Returns whether tuples push others out of the source's window."""
    return source.window.kind is WindowKind.ROWS or isinstance(source.window, PartitionWindow)


def _meetings(side: JoinSide, given: set[Pair]) -> Iterator[tuple[set[int], set[int], set[Pair]]]:
    """Yields the two sides of each join of a tree, and the equalities of everything it brings
    together. `given` holds for any part that reaches a result, and so does the condition of an
    inner join above."""
    if isinstance(side, int):
        return
    inner = side.kind is JoinKind.INNER
    own = implied(side.condition) | (given if inner else set())
    yield set(members(side.left)), set(members(side.right)), own
    above = own if inner else given
    yield from _meetings(side.left, set() if side.kind.keeps_right else above)
    yield from _meetings(side.right, above if inner else set())


def _meets(chosen: set[tuple[int, str]], left: set[int], right: set[int], pairs: set[Pair]) -> bool:
    """Returns whether tuples that meet in a join have one key, given that each side has: some
    column of each side must be equal."""
    return any(
        {at for at, _ in group & chosen} & left and {at for at, _ in group & chosen} & right
        for group in groups(pairs)
    )


def _agreed(offers: list[list[Choice]], chosen: Choice) -> Choice | None:
    """Chooses one choice from each list, without contradictions."""
    if not offers:
        return chosen
    for choice in offers[0]:
        if (both := _both(chosen, choice)) is not None:
            found = _agreed(offers[1:], both)
            if found is not None:
                return found
    return None


def implied(e: x.Expression) -> set[Pair]:
    """Returns the equalities of columns that hold whenever the condition does."""
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


def _is_key(kind: Type) -> bool:
    return _same_key(kind, kind)


def _same_key(a: Type, b: Type) -> bool:
    """Returns whether equal values of these types are the same key. Floating-point numbers are
    rounded in comparisons, and times and timestamps make no useful partition keys."""
    if (a.is_integer and b.is_integer) or (a.is_text and b.is_text):
        return True
    return a.kind is b.kind and a.kind in (Kind.DATE, Kind.BOOLEAN)


def _conditions(node: Query | JoinTree) -> Iterator[x.Expression]:
    yield node.where
    sides = [node.tree] if isinstance(node, JoinTree) else []
    while sides:
        side = sides.pop()
        if not isinstance(side, int):
            yield side.condition
            sides += [side.left, side.right]


def _no_keys(conditions: Iterable[x.Expression]) -> Iterator[Type]:
    """Yields the types of columns that conditions equate although they are no keys."""
    for one in itertools.chain.from_iterable(map(x.walk, conditions)):
        match one:
            case x.Compare(Condition.EQ, x.ColumnReference() as left, x.ColumnReference() as right):
                apart = left.source != right.source
                if apart and left.type.kind is right.type.kind and not _is_key(left.type):
                    yield left.type


def _groups_of(by: Sequence[x.Expression]) -> str:
    """Says why groups have no key."""
    no_key = next(
        (e.type for e in by if isinstance(e, x.ColumnReference) and not _is_key(e.type)), None
    )
    if no_key is None:
        return _SEVERAL if by else _ALL
    return f"groups by a column of type {no_key}, {_KINDS}"


def groups(pairs: set[Pair]) -> list[set[tuple[int, str]]]:
    """Groups columns that are all equal to each other."""
    found: list[set[tuple[int, str]]] = []
    for a, b in sorted(pairs):
        touched = [group for group in found if a in group or b in group]
        found = [group for group in found if group not in touched]
        found.append({a, b}.union(*touched))
    return found
