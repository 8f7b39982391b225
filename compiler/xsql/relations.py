"""Translates a written query to nodes of the graph.

A SELECT that joins windows is one `Query`. Anything more is an `Operation` over streams defined by
queries of its own; these *hidden* streams are named after it, with a # and a number.

before  SELECT a FROM R UNION ALL SELECT b FROM S               as q
after   q#1: SELECT a FROM R, q#2: SELECT b FROM S, q: UnionAll(q#1, q#2)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field, replace

from seustream.compiler.catalogue import TIME_COLUMN, TIMESTAMP_NAMES, Column, Stream, WindowEnd
from seustream.compiler.errors import Problems, Span
from seustream.compiler.language import expressions as x
from seustream.compiler.language.syntax import (
    Connective,
    Expression,
    Name,
    Negation,
    Reference,
)
from seustream.compiler.language.types import BIGINT, Kind, Type, meet
from seustream.compiler.logical import program as logical
from seustream.compiler.logical.joins import ChangeLog, JoinTree
from seustream.compiler.logical.windows import is_plain
from seustream.compiler.xsql import tree
from seustream.compiler.xsql.grouped_overs import over_groups
from seustream.compiler.xsql.joins import selects
from seustream.compiler.xsql.ordering import apart, branches_of, keys
from seustream.compiler.xsql.overs import Ranked, best_of, over_rows, overs
from seustream.compiler.xsql.periods import BoundSelect, grouped
from seustream.compiler.xsql.select import SelectBinder
from seustream.compiler.xsql.times import ends, is_time, timed, with_ends
from seustream.compiler.xsql.windowed import rows_of, wanted
from seustream.compiler.xsql.windows import window
from seustream.hdl.device import Window, WindowKind


@dataclass
class Relations:
    """Binds one written query. `hidden` are the streams that it creates for itself, in order, each
    with the query or operation that defines it. `taken` are the existing streams, folded."""

    select: SelectBinder
    taken: Container[str]
    hidden: list[tuple[Stream, logical.Relation]] = field(default_factory=list)
    names: dict[str, Stream] = field(default_factory=dict, init=False)
    """Streams that only a part of the query can name, folded: those of WITH and of FROM."""

    written: dict[str, tree.Query] = field(default_factory=dict, init=False)
    """The written queries behind these streams, by the names given to the streams."""

    _groups: list[tree.Query | None] = field(default_factory=list, init=False)
    """Groups that were put into FROM for functions OVER them."""

    _count: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        outer = self.select.known_stream
        self.select.known_stream = lambda name: self.names.get(name.text.lower()) or outer(name)

    def whole(self, name: str, query: tree.Query, span: Span) -> logical.Relation:
        """Returns the node that computes a whole query, of which WITH (strict) is in all parts."""
        found = self.relation(name, query, span)
        if found.strict:
            self.hidden = [(stream, replace(of, strict=True)) for stream, of in self.hidden]
        return found

    def relation(self, name: str, query: tree.Query, span: Span) -> logical.Relation:
        """Returns the node that computes a query of this name."""
        if isinstance(query, tree.Select | tree.UnionClause) and (parts := apart(query)):
            return self._ordered(name, query, *parts, span)
        match query:
            case tree.Select() if query.distinct:
                return self._distinct(name, replace(query, distinct=False), query.windows, span)
            case tree.Select():
                if (around_groups := over_groups(query, self.select.text)) is not None:
                    self._groups += [i.query for i in tree.from_items(around_groups.sources)]
                    return self.relation(name, around_groups, span)
                before = dict(self.names)
                query = self._windowed(name, query)
                self._derive_all(name, query)
                select = self.select.bound(name, query, span)
                self.names = before
                if select.every is not None:
                    return grouped(select, select.every, self.hide)
                looks = any(overs(item.expression) for item in select.query.items)
                if looks or select.qualify or select.order_by or select.limit is not None:
                    select = self._of_groups(select) if select.changes else select
                    return over_rows(select, self._hide_rows, _is_end(select.query))
                if isinstance(select.query, logical.Query):
                    if select.changes and (inner := self._ranked(select.query)) is not None:
                        return self._rank_changes(select.query, inner)
                    self._push_ranks(select.query)
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
                return replace(found, text=self.select.text(query.span))

    def _derive_all(self, name: str, select: tree.Select) -> None:
        """Turns the queries in FROM into streams, including those in the subqueries of WHERE."""
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

    def _windowed(self, name: str, select: tree.Select) -> tree.Select:
        """Turns TUMBLE and HOP in FROM into queries in FROM, unless the SELECT groups by them, also in
        the subqueries of WHERE."""

        def part(of: tree.FromPart) -> tree.FromPart:
            if isinstance(of, tree.JoinClause):
                return replace(of, left=part(of.left), right=part(of.right))
            if not wanted(select, of):
                return of
            every = self.select.windows_of(of)
            if not isinstance(every, logical.Periodic):
                return of
            self._count += 1
            hidden = Name(f"({of.windows.name}#{self._count})", of.span)  # type: ignore[union-attr]  # it has periods
            query = rows_of(of, every, self.select.problems)
            made = self._derive(name, query)
            *columns, end = made.columns
            follow = every.slide == every.size and not every.cumulates
            last = WindowEnd(every.size, every.offset if follow else None)
            stream = replace(made, columns=(*columns, replace(end, ends=last)))
            place = next(at for at, (one, _) in enumerate(self.hidden) if one is made)
            self.hidden[place] = (stream, self.hidden[place][1])
            self.names[hidden.text.lower()] = stream
            return tree.FromItem(hidden, of.alias or of.stream, of.span)

        def inside(e: Expression) -> Expression:
            match e:
                case Connective():
                    return replace(e, operands=tuple(map(inside, e.operands)))
                case Negation():
                    return replace(e, operand=inside(e.operand))
                case tree.Exists(tree.Select() as query) | tree.InQuery(_, tree.Select() as query):
                    return replace(e, query=self._windowed(name, query))
            return e

        where = None if select.where is None else inside(select.where)
        return replace(select, sources=tuple(map(part, select.sources)), where=where)

    def _ordered(
        self,
        name: str,
        written: tree.Select | tree.UnionClause,
        query: tree.Select | tree.UnionClause,
        outer: tree.Select,
        span: Span,
    ) -> logical.Relation:
        """Returns the node that orders the results of a query around it."""
        relation = self.relation(name, query, query.span)
        if outer.changes is not None and isinstance(relation, logical.UnionAll):
            self._check_grows(relation, query, outer.changes)
        results = [item.name for item in relation.items]
        # No stream has a column with a name of the time.
        names = [f"{n}#{i}" if n.lower() in TIMESTAMP_NAMES else n for i, n in enumerate(results)]
        items = map(logical.Item, names, (item.expression for item in relation.items))
        stream = self._stream_of(name, replace(relation, items=tuple(items)), query)
        before, at = dict(self.names), query.span
        source = tree.FromItem(Name("(ORDER BY)", at), Name("subquery", at), at)
        self.names[source.stream.text.lower()] = stream
        columns = [Name(column, at) for column in names]
        order = keys(written, columns, results, self.select.problems)
        chosen = tuple(
            tree.SelectItem(Reference((column,), at), Name(result, at), at)
            for column, result in zip(columns, results, strict=True)
        )
        found = self.relation(
            name, replace(outer, items=chosen, sources=(source,), order_by=order), span
        )
        self.names = before
        return replace(found, strict=found.strict or relation.strict)

    def _check_grows(
        self, of: logical.UnionAll, query: tree.Select | tree.UnionClause, at: Span
    ) -> None:
        """Reports a union whose rows change or leave: an order of it does not know of that."""
        known = {stream.name: part for stream, part in self.hidden}
        # After a mistake in its columns, the union has only the first part.
        for stream, written in zip(of.inputs, branches_of(query), strict=False):
            if _grows(known[stream.name], written):
                continue
            said = (
                "ranks and frames change with rows that come, and do not know of those that leave"
            )
            hint = "derive a stream from the union, and rank that: CREATE STREAM s AS ..."
            self.select.problems.add("changes", said, at, hint)
            return

    def _derive(self, name: str, query: tree.Query) -> Stream:
        """Derives a hidden stream, with columns, from the results of a part."""
        return self._stream_of(name, self.untimed(self.relation(name, query, query.span)), query)

    def _stream_of(self, name: str, relation: logical.Relation, query: tree.Query) -> Stream:
        """Derives a hidden stream, with columns, from a relation."""
        columns = self.select.columns_of(relation, query.span)
        columns = with_ends(columns, relation)
        stream = Stream(self._free(name), columns, relation.text, time=timed(relation, columns))
        self.hidden.append((stream, replace(relation, name=stream.name, defines=stream.name)))
        self.written[stream.name] = query
        return stream

    def untimed(self, of: logical.Relation) -> logical.Relation:
        """Returns a relation whose results become a stream, without a result that is merely the
        time of its rows under the name that every stream's time has."""
        for place, item in enumerate(of.items):
            if item.name.lower() in TIMESTAMP_NAMES and len(of.items) > 1 and is_time(of, place):
                return self._without(of, place) or of
        return of

    def _without(self, of: logical.Relation, place: int) -> logical.Relation | None:
        """Removes one result from a relation; returns None if the relation distinguishes rows by
        it."""
        items = (*of.items[:place], *of.items[place + 1 :])
        if isinstance(of, logical.Distinct):
            return None
        if not isinstance(of, logical.UnionAll):
            return replace(of, items=items)
        inputs, made = [], {}
        for stream in of.inputs:
            at = [one.name for one, _ in self.hidden].index(stream.name)
            part = self._without(self.hidden[at][1], place)
            if part is None:
                return None
            columns = (*stream.columns[:place], *stream.columns[place + 1 :])
            inputs.append(replace(stream, columns=columns))
            made[at] = (inputs[-1], part)
        for at, both in made.items():
            self.hidden[at] = both
        return replace(of, inputs=tuple(inputs), items=items)

    def _distinct(
        self,
        name: str,
        query: tree.Select | tree.UnionClause,
        clauses: tuple[tree.WindowClause, ...],
        span: Span,
    ) -> logical.Operation:
        """Returns each row of a query unless an equal one was given within the window."""
        problems = self.select.problems
        relation: logical.Relation
        last = query.second if isinstance(query, tree.UnionClause) else query
        if isinstance(last, tree.Select) and last.changes is not None:
            hint = "group by the columns, which says the same: SELECT a FROM R GROUP BY a ... EMIT CHANGES"
            said = "DISTINCT and UNION give a row once, and know of no row that goes"
            problems.add("changes", said, last.changes, hint)
        found = len(problems.found)
        if isinstance(query, tree.UnionClause):
            relation, what = self._union_all(name, query, span), "unites without ALL"
        else:
            relation, what = self.relation(name, query, span), "is DISTINCT"
        plain = [clause for clause in clauses if clause.kind in _PLAIN and clause.slide is None]
        if not clauses:
            at = Span(query.span.end - 1, query.span.end)
            hint = "end it with the window within which rows are given once: WINDOW RANGE 1 hour"
            if isinstance(query, tree.UnionClause):
                hint = "end it, before a UNION ALL, with the window within which rows are given once: WINDOW RANGE 1 hour"
            problems.add("missing-window", f"a query that {what} needs a window", at, hint)
        elif len(clauses) != 1 or (len(plain) != 1 and len(problems.found) == found):
            hint = "RANGE, ROWS or UNBOUNDED; derive a stream from the rest, and select from that"
            problems.add(
                "distinct", f"a query that {what} has one plain window", clauses[0].span, hint
            )
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

    def _unordered(self, select: tree.Select) -> None:
        """Reports an ORDER BY or LIMIT of a part of a UNION."""
        if select.order_by or select.limit is not None:
            at = select.order_by[0].expression.span if select.order_by else select.span
            self.select.problems.add(
                "group-window",
                "ORDER BY and LIMIT stand behind the last SELECT of a UNION, and are of all of them",
                at,
                "to order one of them alone, put it in FROM: SELECT * FROM (SELECT ... ORDER BY ...) UNION ...",
            )

    def _push_ranks(self, query: logical.Query) -> None:
        """Passes to the ranks of a query in FROM which of them WHERE leaves out.

        before  SELECT … FROM (SELECT *, row_number() OVER (… ORDER BY b) AS rn FROM R) WHERE rn <= 3
        after   the inner one keeps the best 3 of each partition
        """
        relation = self._ranked(query)
        if relation is not None:
            place = next(at for at, (_, of) in enumerate(self.hidden) if of is relation)
            best = _best(relation, _within(relation, query.where))
            self.hidden[place] = (self.hidden[place][0], best)

    def _ranked(self, query: logical.Query) -> logical.RankedRows | None:
        """Returns the query in FROM, if it is the only one and ranks its rows."""
        if len(query.sources) > 1:
            return None
        own = {stream.name: relation for stream, relation in self.hidden}
        found = own.get(query.sources[0].stream.name)
        return found if type(found) is logical.RankedRows else None

    def _rank_changes(self, query: logical.Query, of: logical.RankedRows) -> logical.Relation:
        """Returns the changes of some rows and columns of a ranking query in FROM.

        before  SELECT b FROM (SELECT *, row_number() OVER (… ORDER BY b) AS rn FROM R) WHERE rn <= 3 EMIT CHANGES
        after   SELECT b FROM R QUALIFY row_number() OVER (… ORDER BY b) <= 3 EMIT CHANGES
        """
        own = {item.name for item in of.items}
        parts = [query.where, *(item.expression for item in query.items)]
        if query.aggregated or any(e.name not in own for part in parts for e in x.columns(part)):
            hint = "rank in this SELECT: QUALIFY row_number() OVER (...) <= 3"
            said = "the query in FROM gives its ranks once, when they are certain"
            self.select.problems.add("changes", said, query.sources[0].span, hint)
            return query
        self._changed(query)
        _, inner = self.hidden.pop()
        if not isinstance(inner, logical.RankChanges):
            return query  # already reported
        where = _within(inner, query.where)
        qualify = where if inner.qualify is None else x.conjunction((inner.qualify, where))
        items = [logical.Item(i.name, _within(inner, i.expression)) for i in query.items[1:]]
        made = replace(
            inner,
            name=query.name,
            items=(inner.items[0], *items),
            text=query.text,
            span=query.span,
            strict=query.strict,
            defines=None,
            keeps_oldest=False,
            qualify=qualify,
        )
        return made if made.signed is not None else _best(made, qualify)

    def _changed(self, query: logical.Query) -> Stream:
        """Derives the query in FROM again, with EMIT CHANGES."""
        written = self.written[query.sources[0].stream.name]
        assert isinstance(written, tree.Select)
        return self._derive(query.name, replace(written, changes=written.span))

    def _of_groups(self, select: BoundSelect) -> BoundSelect:
        """Makes a SELECT with EMIT CHANGES rank the groups of a query in FROM as they change."""
        query = select.query
        if not isinstance(query, logical.Query) or len(query.sources) > 1:
            return select
        parts = [item.expression for item in query.items]
        parts += [] if select.qualify is None else [select.qualify]
        leaves = [leaf for part in parts for leaf in overs(part)]
        # Frames look back on the rows as the groups give them; an order is one around that.
        ranks = any(leaf.order for leaf in leaves) or (select.order_by and not leaves)
        of = {stream.name: relation for stream, relation in self.hidden}
        inner = of.get(query.sources[0].stream.name)
        groups = isinstance(inner, logical.PeriodGroups) and not inner.changes
        joined = isinstance(inner, logical.Query | JoinTree) and not isinstance(inner, ChangeLog)
        if not ranks or not (groups or (joined and inner.aggregated)):  # type: ignore[union-attr]  # a query
            return select
        stream = self._changed(query)
        source = replace(query.sources[0], stream=stream)
        signed = column_of(stream, 0)
        return replace(select, query=replace(query, sources=(source,)), signed=signed)

    def _union_all(self, name: str, query: tree.UnionClause, span: Span) -> logical.Operation:
        written = list(map(_unnamed, _changing(branches_of(query)), itertools.count()))
        branches = [self.relation(name, branch, branch.span) for branch in written]
        for part in written:
            if isinstance(part, tree.Select) and not isinstance(branches[0], logical.PeriodGroups):
                self._unordered(part)
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
        """Derives a hidden stream from a relation's results. Its columns are numbered from c1; the
        last one is ts_oldest."""
        name = self._free(relation.name)
        columns = [
            Column(f"c{place}", item.expression.type, ends=last)
            for place, (item, last) in enumerate(
                zip(relation.items, ends(relation), strict=True), start=1
            )
        ]
        oldest = Column(logical.RESULT_TIMES[0], BIGINT, nullable=False)
        time = timed(relation, columns)
        stream = Stream(name, (*columns, oldest), relation.text, time=time)
        self.hidden.append((stream, replace(relation, name=name, defines=name, keeps_oldest=True)))
        return stream

    def _hide_rows(self, of: logical.Relation) -> Stream:
        """Derives a hidden stream from the rows that functions range OVER. Groups that were put into
        FROM for these functions become it themselves, so that each row keeps its oldest time."""
        if isinstance(of, logical.Query) and len(of.sources) == 1 and self.hidden:
            stream, groups = self.hidden[-1]
            own = any(self.written.get(stream.name) is query for query in self._groups)
            if isinstance(groups, logical.PeriodGroups) and own and of.sources[0].stream is stream:
                self.hidden.pop()
                items = [logical.Item(i.name, _of_group(groups, i.expression)) for i in of.items]
                of = replace(groups, name=of.name, items=tuple(items), defines=None)
        return self.hide(of)

    def _free(self, name: str) -> str:
        """Returns a name for the next hidden stream of a query."""
        number = 1
        made = {stream.name.lower() for stream, _ in self.hidden}
        while (free := f"{name}#{number}").lower() in made or free.lower() in self.taken:
            number += 1
        return free


def _of_group(of: logical.PeriodGroups, e: x.Expression) -> x.Expression:
    """Rewrites an expression over the rows of groups as one over the groups."""
    if isinstance(e, x.ColumnReference) and e.name == TIME_COLUMN.name:
        last = (logical.WINDOW_END, x.Literal(1, BIGINT))
        return x.Call("-", last, (BIGINT, BIGINT), BIGINT)
    return _within(of, e)


def _within(of: logical.Relation, e: x.Expression) -> x.Expression:
    """Rewrites an expression over the results of a relation as one over the inputs of these."""
    if isinstance(e, x.ColumnReference):
        own = {item.name: item.expression for item in of.items}
        return own.get(e.name, e)
    return x.rebuild(e, lambda part: _within(of, part))


def _best(of: Ranked, condition: x.Expression) -> Ranked:
    """Keeps the rows that a condition on their rank admits, if all ranks use one order."""
    parts = [condition, *(item.expression for item in of.items)]
    ranks = [leaf for part in parts for leaf in overs(part)]
    one = len({(leaf.partition, leaf.order) for leaf in ranks}) == 1
    return best_of(of, condition) if one else of


def _is_end(query: logical.Query | JoinTree) -> Callable[[x.Expression], bool]:
    def known(e: x.Expression) -> bool:
        if not isinstance(e, x.ColumnReference) or len(query.sources) > 1:
            return False
        column = query.sources[0].stream.column(e.name)
        return column is not None and column.ends is not None

    return known


def column_of(stream: Stream, number: int, source: int = 0) -> x.ColumnReference:
    """Returns a column of an operation's input."""
    column = stream.columns[number]
    return x.ColumnReference(source, column.name, column.type, column.nullable, stream.name)


def _counted(query: logical.Relation) -> str:
    number = len(query.items)
    return f"{number} column{'s' * (number > 1)}"


def _grows(of: logical.Relation, written: tree.Select | tree.UnionClause) -> bool:
    """Returns whether the rows of a part of a union stay as they come."""
    if not isinstance(of, logical.Query) or not isinstance(written, tree.Select):
        return False
    if len(of.sources) > 1 or of.aggregated:
        return False
    window = of.sources[0].window
    return not written.windows or (window.kind is WindowKind.UNBOUNDED and is_plain(window))


_PLAIN = ("range", "rows", "now", "unbounded")


def _changing(
    parts: Iterable[tree.Select | tree.UnionClause],
) -> Iterator[tree.Select | tree.UnionClause]:
    """Yields the parts of a union, each with the EMIT CHANGES that follows the union: the changes
    are those of the whole."""
    every = list(parts)
    said = [of.changes for of in every if isinstance(of, tree.Select) and of.changes is not None]
    for part in every:
        yield replace(part, changes=said[0]) if said and isinstance(part, tree.Select) else part


def _unnamed(part: tree.Select | tree.UnionClause, number: int) -> tree.Select | tree.UnionClause:
    """Returns a part of a union; the columns have the names of the first one."""
    return replace(part, unnamed=number > 0) if isinstance(part, tree.Select) else part


def _item_span(query: tree.Select | tree.UnionClause, number: int) -> Span:
    if isinstance(query, tree.Select) and not query.stars:
        return query.items[number].span
    return query.span


def _converted(query: logical.Relation, types: list[Type]) -> logical.Relation:
    """Casts the result columns of a query to these types."""
    items = tuple(
        item
        if item.expression.type == to or Kind.ERROR in (item.expression.type.kind, to.kind)
        else logical.Item(item.name, x.Cast(item.expression, to))
        for item, to in zip(query.items, types, strict=True)
    )
    return replace(query, items=items)
