"""From a written query to nodes of the graph.

A SELECT that joins windows is one `Query`. Everything beyond is an `Operation` over streams that
queries of its own define; these *hidden* streams are named after it, with a # and a number.

before  SELECT a FROM R UNION ALL SELECT b FROM S               as q
after   q#1: SELECT a FROM R, q#2: SELECT b FROM S, q: UnionAll(q#1, q#2)
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field, replace

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.errors import Problems, Span
from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import BIGINT, Kind, Type, meet
from seustream.compiler.logical import program as logical
from seustream.compiler.xsql import tree
from seustream.compiler.xsql.joins import selects
from seustream.compiler.xsql.overs import over_rows, overs
from seustream.compiler.xsql.periods import grouped
from seustream.compiler.xsql.select import SelectBinder
from seustream.compiler.xsql.windows import window
from seustream.hdl.device import Window, WindowKind


@dataclass
class Relations:
    """Binds one written query; `hidden` are the streams it makes for itself, each with the query or
    operation that defines it, in the order in which they are made. `taken` are the streams that
    exist, folded."""

    select: SelectBinder
    taken: Container[str]
    hidden: list[tuple[Stream, logical.Relation]] = field(default_factory=list)
    names: dict[str, Stream] = field(default_factory=dict, init=False)
    """Streams that only a part of the query can name, folded: those of WITH and of FROM."""

    def __post_init__(self) -> None:
        outer = self.select.known_stream
        self.select.known_stream = lambda name: self.names.get(name.text.lower()) or outer(name)

    def relation(self, name: str, query: tree.Query, span: Span) -> logical.Relation:
        """The node that answers a query of this name."""
        match query:
            case tree.Select() if query.distinct:
                return self._distinct(name, replace(query, distinct=False), query.windows, span)
            case tree.Select():
                before = dict(self.names)
                self._derive_all(name, query)
                select = self.select.bound(name, query, span)
                self.names = before
                if select.every is not None:
                    return grouped(select, select.every, self.hide)
                if any(overs(item.expression) for item in select.query.items) or select.qualify:
                    return over_rows(select, self.hide)
                return select.query
            case tree.UnionClause() if query.distinct:
                return self._distinct(name, query, query.second.windows, span)
            case tree.UnionClause():
                return self._union_all(name, query, span)
            case tree.With():
                before = dict(self.names)
                own = set[str]()
                for common in query.common:
                    folded = common.name.text.lower()
                    if folded in own:
                        self.select.problems.add(
                            "duplicate-name",
                            f"{common.name.text} stands twice behind WITH",
                            common.name.span,
                            "give one of them another name",
                        )
                    own.add(folded)
                    self.names[folded] = self._derive(name, common.query)
                found = self.relation(name, query.query, span)
                self.names = before
                return found

    def _derive_all(self, name: str, select: tree.Select) -> None:
        """Makes streams of the queries in FROM, also in that of the subqueries of WHERE."""
        own = set[str]()
        for part in selects(select):
            for item in tree.from_items(part.sources):
                if item.query is None:
                    continue
                folded = item.stream.text.lower()
                if folded in own and part is not select:
                    self.select.problems.add(
                        "duplicate-name",
                        f"{(item.alias or item.stream).text} is a query of this SELECT already",
                        item.stream.span,
                        "give one of them another name",
                    )
                own.add(folded)
                self.names[folded] = self._derive(name, item.query)

    def _derive(self, name: str, query: tree.Query) -> Stream:
        """A hidden stream of a part's results, with the columns these have."""
        relation = self.relation(name, query, query.span)
        columns = self.select.columns_of(relation, query.span)
        stream = Stream(self._free(name), columns, relation.text)
        self.hidden.append((stream, replace(relation, name=stream.name, defines=stream.name)))
        return stream

    def _distinct(
        self,
        name: str,
        query: tree.Select | tree.UnionClause,
        clauses: tuple[tree.WindowClause, ...],
        span: Span,
    ) -> logical.Operation:
        """The rows of a query, each unless an equal one was given within the window."""
        problems = self.select.problems
        relation: logical.Relation
        if isinstance(query, tree.UnionClause):
            relation, what = self._union_all(name, query, span), "unites without ALL"
        else:
            relation, what = self.relation(name, query, span), "is DISTINCT"
        plain = [clause for clause in clauses if clause.kind in _PLAIN and clause.slide is None]
        if not clauses:
            at = Span(query.span.end - 1, query.span.end)
            hint = "end it with the window within which rows are given once: WINDOW RANGE 1 hour"
            problems.add("missing-window", f"a query that {what} needs a window", at, hint)
        elif len(clauses) != 1 or len(plain) != 1:
            hint = "RANGE, ROWS or UNBOUNDED; derive a stream from the rest, and select from that"
            problems.add(
                "distinct", f"a query that {what} has one plain window", clauses[0].span, hint
            )
        if isinstance(relation, logical.PeriodGroups):
            hint = "leave DISTINCT out, or derive a stream from the groups"
            problems.add("distinct", "groups of windows come once each", span, hint)
        stream = self.hide(relation)
        items = tuple(
            logical.Item(item.name, column_of(stream, number))
            for number, item in enumerate(relation.items)
        )
        return logical.Distinct(
            name=name,
            inputs=(stream,),
            items=items,
            text=self.select.text(query.span),
            span=span,
            strict=relation.strict,
            window=window(plain[0], Problems()) if plain else Window(WindowKind.UNBOUNDED),
        )

    def _union_all(self, name: str, query: tree.UnionClause, span: Span) -> logical.Operation:
        written = list(_branches(query))
        branches = [self.relation(name, branch, branch.span) for branch in written]
        first = branches[0]
        types = [item.expression.type for item in first.items]
        for branch, at in zip(branches[1:], written[1:], strict=True):
            if len(branch.items) != len(first.items):
                self.select.problems.add(
                    "union-columns",
                    f"this SELECT gives {_counted(branch)}, the first {len(first.items)}",
                    at.span,
                    "the parts of UNION ALL have the same columns in the same order",
                )
                types = []
                break
            for number, (known, item) in enumerate(zip(types, branch.items, strict=True)):
                met = meet([known, item.expression.type])
                if met is None:
                    self.select.problems.add(
                        "type-mismatch",
                        f"column {number + 1} is {item.expression.type} here and {known} before",
                        _item_span(at, number),
                        "convert one with CAST(... AS ...)",
                    )
                else:
                    types[number] = met
        if not types:
            types = [item.expression.type for item in first.items]
            branches = branches[:1]
        inputs = tuple(self.hide(_converted(branch, types)) for branch in branches)
        items = tuple(
            logical.Item(item.name, column_of(inputs[0], number))
            for number, item in enumerate(first.items)
        )
        text = self.select.text(query.span)
        strict = any(branch.strict for branch in branches)
        return logical.UnionAll(
            name=name, inputs=inputs, items=items, text=text, span=span, strict=strict
        )

    def hide(self, relation: logical.Relation) -> Stream:
        """A hidden stream of a relation's results. Its columns go by number, c1 the first; the last
        one is ts_oldest."""
        name = self._free(relation.name)
        columns = [
            Column(f"c{place}", item.expression.type)
            for place, item in enumerate(relation.items, start=1)
        ]
        oldest = Column(logical.RESULT_TIMES[0], BIGINT, nullable=False)
        stream = Stream(name, (*columns, oldest), relation.text)
        self.hidden.append((stream, replace(relation, name=name, defines=name, keeps_oldest=True)))
        return stream

    def _free(self, name: str) -> str:
        """A name for the next hidden stream of a query."""
        number = 1
        made = {stream.name.lower() for stream, _ in self.hidden}
        while (free := f"{name}#{number}").lower() in made or free.lower() in self.taken:
            number += 1
        return free


def column_of(stream: Stream, number: int, source: int = 0) -> x.ColumnReference:
    """A column of an operation's input."""
    column = stream.columns[number]
    return x.ColumnReference(source, column.name, column.type, column.nullable, stream.name)


def _counted(query: logical.Relation) -> str:
    number = len(query.items)
    return f"{number} column{'s' * (number > 1)}"


_PLAIN = ("range", "rows", "now", "unbounded")


def _branches(
    query: tree.Select | tree.UnionClause,
) -> Iterator[tree.Select | tree.UnionClause]:
    """The parts of a union. A UNION in front of UNION ALL is a part by itself."""
    if isinstance(query, tree.UnionClause):
        first = query.first
        alone = isinstance(first, tree.UnionClause) and first.distinct and not query.distinct
        yield from (first,) if alone else _branches(first)
        yield query.second
    else:
        yield query


def _item_span(query: tree.Select | tree.UnionClause, number: int) -> Span:
    if isinstance(query, tree.Select) and not query.stars:
        return query.items[number].span
    return query.span


def _converted(query: logical.Relation, types: list[Type]) -> logical.Relation:
    """The query with result columns of these types."""
    items = tuple(
        item
        if item.expression.type == to or Kind.ERROR in (item.expression.type.kind, to.kind)
        else logical.Item(item.name, x.Cast(item.expression, to))
        for item, to in zip(query.items, types, strict=True)
    )
    return replace(query, items=items)
