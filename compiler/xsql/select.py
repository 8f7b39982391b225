"""One SELECT: sources, windows, conditions and result columns, bound and typed.

before  SELECT R.a, count(*) FROM R, S WHERE R.a = S.d GROUP BY R.a WINDOW RANGE 5 minutes
after   a logical `Query` over the streams of FROM
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from seustream.compiler.catalogue import TIMESTAMP_NAMES, Column, Stream
from seustream.compiler.errors import Problems, SourceText, Span, suggest
from seustream.compiler.language import expressions as x
from seustream.compiler.language import syntax
from seustream.compiler.language.bind import FAILED, Binder, ParameterValue
from seustream.compiler.language.indexable import indexable
from seustream.compiler.language.options import query_options
from seustream.compiler.language.overloads import LISTS
from seustream.compiler.language.types import Kind
from seustream.compiler.logical import program as logical
from seustream.compiler.logical.joins import (
    CHANGE,
    ChangeLog,
    JoinSide,
    JoinTree,
    TreeJoin,
    joins,
    optional,
    timing,
    visible,
)
from seustream.compiler.logical.windows import PartitionWindow, is_plain
from seustream.compiler.xsql import periods, tree
from seustream.compiler.xsql.joins import (
    JoinBinder,
    indexed,
    inner_only,
    selects,
)
from seustream.compiler.xsql.naming import ResultName, columns_of, columns_of_all, result_names
from seustream.compiler.xsql.ordering import limit_of
from seustream.compiler.xsql.overs import by_time, order_keys, overs
from seustream.compiler.xsql.periods import BoundSelect
from seustream.compiler.xsql.places import spelt_out
from seustream.compiler.xsql.scope import QueryScope
from seustream.compiler.xsql.windowed import differences
from seustream.compiler.xsql.windows import bounded, extents, missing_window
from seustream.compiler.xsql.windows import steps as steps_of
from seustream.hdl.device import Window, WindowKind


@dataclass
class SelectBinder:
    """Binds the SELECTs of one text. `known_stream` looks a name up in the catalogue and reports an
    unknown one. `streams` are those of the catalogue, folded, in their order."""

    source: SourceText
    problems: Problems
    known_stream: Callable[[syntax.Name], Stream | None]
    streams: Mapping[str, Stream]
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)

    def query(self, name: str, select: tree.Select, span: Span) -> logical.Query | JoinTree:
        """Binds a SELECT that is one query."""
        return self.bound(name, select, span).query

    def bound(self, name: str, select: tree.Select, span: Span) -> BoundSelect:
        """Binds a SELECT as the query of this name; also returns its clauses beyond one."""
        sources, lasting = self._sources(select)
        found = len(self.problems.found)
        written, select = select, spelt_out(select, sources, self.problems)
        binding = JoinBinder(sources, self.parameters, self.problems)
        side, conditions = binding.select(select)

        named = self._named_windows(select)
        newest = timing(side, sources) or visible(side)

        def scope(within: str, aggregates: bool | str = True) -> QueryScope:
            of = binding.scope((visible(side),), within)
            return replace(of, aggregates=aggregates, named=named, timing=newest)

        grouping = scope("GROUP BY", "group by columns, aggregate in SELECT")
        seen = [sources[position] for position in newest]
        every = periods.every(select, seen, self._binder(grouping), self.problems)
        window = {} if every is None else {leaf.name: leaf for leaf in _WINDOW}
        if every is None:
            terms = [term for join in joins(side) for term in x.conjuncts(join.condition)]
            tied = sum(1 for _ in differences((*terms, *conditions), sources)) // 2
            every = periods.of_windows(select, sources, optional(side), tied, self.problems)
        steps = None
        if any(clause.slide is not None for clause in select.windows):
            every = steps = steps_of(select, sources, every, self.problems)
        group_by = self._group_by(select, replace(grouping, derived=window))
        items = self._items(select, replace(scope("SELECT"), derived=window, every=every))
        derived = window | {item.name.lower(): item.expression for item in items}
        over = replace(scope("HAVING"), derived=derived, every=every)
        having = None
        if select.having is not None:
            having = self._binder(over).condition(select.having)
        parts = [*zip((item.expression for item in items), _spans(select, items), strict=True)]
        if having is not None and select.having is not None:
            parts.append((having, select.having.span))
        aggregated = bool(group_by) or having is not None or every is not None or _aggregates(parts)
        qualify = None
        if select.qualify is not None:
            qualify = self._binder(replace(over, within="QUALIFY")).condition(select.qualify)
            if not aggregated:
                qualify = self._of_rows(qualify, select.qualify.span, "QUALIFY")
            parts.append((qualify, select.qualify.span))
        ordering = replace(over, within="ORDER BY")
        results = [_result(key.expression, derived) for key in written.order_by]
        timely = every is None and not aggregated and by_time(select.order_by, seen)
        timely = timely and all(e is None or _is_time(e, newest) for e in results)
        order_by: tuple[logical.OrderKey, ...] = ()
        for key, e in () if timely else zip(select.order_by, results, strict=True):
            # The name of a result column means no column of a stream.
            names = ordering if e is None else replace(ordering, levels=((),))
            order_by += order_keys((key,), self._binder(names))
            if not aggregated:
                self._of_rows(order_by[-1].expression, key.expression.span, "ORDER BY")
        parts += [
            (k.expression, o.expression.span)
            for k, o in zip(order_by, select.order_by, strict=False)
        ]
        looks_back = [span for part, span in parts if overs(part)]
        if aggregated and (looks_back or select.qualify is not None):
            self.problems.add(
                "over",
                "functions OVER frames look at groups when a window is over",
                [*looks_back, parts[-1][1]][0],
                "GROUP BY a, TUMBLE(ts, 1 minute)",
            )
        if select.qualify is not None and not looks_back and qualify is not FAILED:
            self.problems.add(
                "over",
                "QUALIFY is a condition on functions OVER frames",
                select.qualify.span,
                "other conditions stand in WHERE or HAVING",
            )
        if steps is not None and not (group_by or _aggregates(parts)):
            self.problems.add(
                "group-window",
                "SLIDE gives groups at each step, and this query makes none",
                select.windows[0].span,
                "aggregate, or leave SLIDE out",
            )
        if aggregated and every is None and not select.windows and len(sources) == len(lasting) + 1:
            way = ", or WINDOW UNBOUNDED for all rows so far"
            missing_window(select, "aggregates", self.problems, way)
        if aggregated and every is None and (select.order_by or select.limit is not None):
            self._unordered(select)
        if aggregated and len(self.problems.found) == found:
            self._check_grouping(parts, group_by)
        query = logical.Query(
            name,
            sources,
            x.TRUE,
            items,
            group_by,
            having,
            aggregated,
            self.text(select.span),
            span,
            strict=query_options(select.options, self.problems).strict,
        )
        if len(self.problems.found) == found:
            query = replace(
                query, sources=bounded(select, query, side, conditions, lasting, self.problems)
            )
            self._timed(select, sources, side)
        limit = limit_of(select, self.problems)
        changes = select.changes is not None
        stays = changes and not aggregated and _stays(select, query, side)
        if changes:
            ordered = bool(select.qualify or looks_back) or limit is not None
            grows = every is not None and steps is None
            self._check_changes(select, ordered, grows, stays, side)
            if any(item.name.lower() == CHANGE.name for item in items):
                said = f"the first column of EMIT CHANGES is called {CHANGE.name}, too"
                self.problems.add("duplicate-name", said, select.span, "name the other with AS")
        if stays:
            comes = logical.Item(CHANGE.name, x.Literal("+", CHANGE.type))
            query = replace(query, items=(comes, *items))
        whole = self._joined(query, side, conditions, changes and every is None and not stays)
        if timely and limit is None and qualify is None and isinstance(whole, JoinTree):
            qualify = x.TRUE  # all others give their rows by time anyway
        return BoundSelect(whole, every, order_by, limit, qualify, changes)

    def _timed(
        self, select: tree.Select, sources: tuple[logical.Source, ...], side: JoinSide
    ) -> None:
        """Reports a join that keeps rows of tables alone, which have no time."""
        tables = {at for at, source in enumerate(sources) if source.stream.table}
        kept = [join.left for join in joins(side) if join.kind.keeps_left]
        kept += [join.left for join in joins(side) if not join.kind.pairs or join.kind.looks_up]
        kept += [join.right for join in joins(side) if join.kind.keeps_right]
        alone = [part for part in (side, *kept) if tables.issuperset(visible(part))]
        if alone:
            at = sources[visible(alone[0])[0]]
            self.problems.add(
                "table-alone",
                f"rows of table {at.stream.name} would be results by themselves, and they have no time",
                at.span,
                "join a stream with it, the stream on the left: s LEFT JOIN t ON ...",
            )

    def _joined(
        self,
        query: logical.Query,
        side: JoinSide,
        conditions: list[x.Expression],
        changes: bool,
    ) -> logical.Query | JoinTree:
        """Returns the query with its joins: a list of streams if they are inner."""
        if changes:
            tree_of = self._tree(query, side, x.conjunction(tuple(conditions)))
            known = {name: getattr(tree_of, name) for name in JoinTree.__dataclass_fields__}
            known["items"] = (logical.Item(CHANGE.name, CHANGE), *query.items)
            return ChangeLog(**known)
        plain = all(is_plain(source.window) for source in query.sources)
        if plain and (not isinstance(side, TreeJoin) or inner_only(side)):
            matches = [join.condition for join in joins(side)]
            conditions[:0] = [term for e in matches for term in x.conjuncts(e)]
            return replace(query, where=x.conjunction(tuple(conditions)))
        return self._tree(query, side, x.conjunction(tuple(conditions)))

    def _tree(self, query: logical.Query, side: JoinSide, where: x.Expression) -> JoinTree:
        """Returns the query as an operation over its streams, in the order of the catalogue."""
        order = list(self.streams)

        def created(stream: Stream) -> int:
            folded = stream.name.lower()
            # A hidden stream comes after all that a text can name; hidden ones are numbered.
            return order.index(folded) if folded in order else len(order) + _number(stream)

        streams = {source.stream.name: source.stream for source in query.sources}
        inputs = sorted((s for s in streams.values() if not s.unknown), key=created)
        return JoinTree(
            name=query.name,
            inputs=tuple(inputs),
            items=query.items,
            text=query.text,
            span=query.span,
            strict=query.strict,
            sources=query.sources,
            tree=indexed(side),
            where=indexable(where, optional(side)),
            group_by=query.group_by,
            having=query.having,
            aggregated=query.aggregated,
        )

    def _group_by(self, select: tree.Select, scope: QueryScope) -> tuple[x.Expression, ...]:
        """Binds the keys of groups other than a window. A windowing function in FROM requires its
        window_start and window_end there."""
        binder = self._binder(scope)
        found = [binder.key(e, "GROUP BY") for e in select.group_by if not periods.is_window(e)]
        keys = tuple(e for e in found if e not in _WINDOW)
        for item in tree.from_items(select.sources):
            if item.windows is None:
                continue
            if not all(leaf in found for leaf in _WINDOW):
                self.problems.add(
                    "group-window",
                    f"{item.windows.name} in FROM makes the windows of groups",
                    item.span,
                    "add GROUP BY window_start, window_end",
                )
                continue
            sessions = item.windows.name.lower() == "session"
            if (item.partition or sessions) and {*map(binder.value, item.partition)} != {*keys}:
                self.problems.add(
                    "group-window",
                    "sessions are those of the groups",
                    item.partition[0].span if item.partition else item.span,
                    "name the same columns in PARTITION BY and, beside the window's, in GROUP BY",
                )
        return keys

    def _check_changes(
        self, select: tree.Select, ordered: bool, grows: bool, stays: bool, side: JoinSide
    ) -> None:
        """Reports clauses with which EMIT CHANGES cannot be combined. `grows` allows groups of
        windows, `stays` means that a row never leaves."""
        assert select.changes is not None
        said = hint = ""
        if any(clause.slide is not None for clause in select.windows):
            said, hint = "groups at steps do not change", "leave EMIT CHANGES out, or SLIDE"
        elif grows and (ordered or select.order_by):
            said = "the first rows of a window are known when it is over"
            hint = "leave EMIT CHANGES out, or ORDER BY and LIMIT"
        elif select.order_by and select.limit is None:
            said = "changes come in the order of time"
            hint = "leave ORDER BY out, or say how many rows you want: LIMIT 10"
        elif ordered and not stays:
            said = (
                "ranks and frames change with rows that come, and do not know of those that leave"
            )
            hint = (
                "derive a stream from the join or the window, and rank that: CREATE STREAM s AS ..."
            )
        elif any(join.kind.looks_up for join in joins(side)) and not stays:
            said = "an ASOF join looks up once, and does not know of rows that leave"
            hint = (
                "derive a stream from the ASOF join, and select from that: CREATE STREAM s AS ..."
            )
        if said:
            self.problems.add("changes", said, select.changes, hint)

    def _named_windows(self, select: tree.Select) -> dict[str, tree.OverWindow]:
        """Returns the windows for OVER by their names; reports a name that stands twice."""
        found = dict[str, tree.OverWindow]()
        for name, window in select.named_windows:
            if name.text.lower() in found:
                said = f"{name.text} stands twice in WINDOW"
                self.problems.add(
                    "duplicate-name", said, name.span, "give one of them another name"
                )
            found[name.text.lower()] = window
        return found

    def _of_rows(self, e: x.Expression, span: Span, within: str) -> x.Expression:
        """Returns an expression of a query without groups; reports an aggregate in it."""
        call = next((part for part in x.walk(e) if isinstance(part, x.AggregateCall)), None)
        if call is None:
            return e
        self.problems.add(
            "aggregate-here",
            f"{call.function} cannot stand in {within} of a query without groups",
            call.at or span,
            f"{call.function}(...) OVER (PARTITION BY k) has a value in each row; GROUP BY TUMBLE(ts, 1 minute) makes groups",
        )
        return FAILED

    def _unordered(self, select: tree.Select) -> None:
        """Reports an ORDER BY or LIMIT over groups that keep changing."""
        if select.order_by:
            at = select.order_by[0].expression.span
        elif select.limit is not None:
            at = select.limit[1]
        self.problems.add(
            "group-window",
            "these groups give a row at each change; only those of a window can be ordered or counted",
            at,
            "GROUP BY TUMBLE(ts, 1 minute), or HOP, or SESSION; or order a stream derived from them",
        )

    def windows_of(self, item: tree.FromItem) -> periods.Every | None:
        """Returns the windows that a function of FROM makes of its stream; None if a problem was
        reported."""
        stream = self.known_stream(item.stream)
        if stream is None or item.windows is None or not periods.is_window(item.windows):
            return None
        at = item.span
        source = logical.Source(item.stream.text, stream, Window(WindowKind.RANGE, 0), at, at)
        binder = self._binder(QueryScope((source,), self.parameters, "FROM"))
        return periods.read(item.windows, (source,), binder, self.problems)

    def columns_of(self, relation: logical.Relation, span: Span) -> tuple[Column, ...]:
        """Returns the columns of the stream of a query's results."""
        columns = tuple(Column(item.name, item.expression.type) for item in relation.items)
        for column in columns:
            if column.name.lower() in TIMESTAMP_NAMES:
                self.problems.add(
                    "duplicate-name",
                    f"{column.name} is the implicit time of every stream",
                    span,
                    "its tuples have the time of their newest component; name another time with AS",
                )
        return columns

    def _binder(self, scope: QueryScope) -> Binder:
        return Binder(scope, self.problems)

    def text(self, span: Span) -> str:
        return self.source.text[span.start : span.end]

    def _sources(self, select: tree.Select) -> tuple[tuple[logical.Source, ...], frozenset[int]]:
        """Returns the streams of FROM, then those of the subqueries; also the positions of lasting
        ones: tables and the right sides of ASOF joins, which have no window."""
        written = [item for part in selects(select) for item in tree.from_items(part.sources)]
        rights = {item for part in selects(select) for item in tree.looked_up(part.sources)}
        streams = {item: self.known_stream(item.stream) for item in written}
        lasting = {item for item, of in streams.items() if item in rights or (of and of.table)}
        sources = []
        windows = iter(extents(select, lasting, self.problems))
        for part in selects(select):
            aliases: set[str] = set()
            for item in tree.from_items(part.sources):
                alias = (item.alias or item.stream).text
                if alias.lower() in aliases:
                    self.problems.add(
                        "duplicate-name",
                        f"{alias} stands twice in FROM",
                        item.span,
                        f"name one of them: {item.stream.text} AS {alias}2",
                    )
                aliases.add(alias.lower())
                stream = streams[item] or Stream(alias, (), unknown=True)
                window, *places = next(windows)
                if isinstance(window, PartitionWindow):
                    self._check_keys(window, stream, places[1])
                sources.append(logical.Source(alias, stream, window, *places))
        return tuple(sources), frozenset(at for at, item in enumerate(written) if item in lasting)

    def _check_keys(self, window: PartitionWindow, stream: Stream, at: Span) -> None:
        for key in window.keys:
            column = stream.column(key)
            if column is not None and column.type.kind is Kind.LIST:
                self.problems.add("type-mismatch", "a list is no key of PARTITION BY", at, LISTS)
            if column is None:
                self.problems.add(
                    "unknown-column",
                    f"stream {stream.name} has no column {key}",
                    at,
                    suggest(key, [column.name for column in stream.columns], "columns"),
                )

    # --- result columns -------------------------------------------------------

    def _items(self, select: tree.Select, scope: QueryScope) -> tuple[logical.Item, ...]:
        binder = self._binder(scope)
        found: list[tuple[ResultName, x.Expression, Span]] = []
        for written in select.items:
            e = written.expression
            several = self._several(e, scope)
            if several is not None:
                if written.alias is not None:
                    self.problems.add(
                        "syntax",
                        f"{self.text(e.span)} is several columns, AS names one",
                        written.alias.span,
                        "leave the name out, or name the columns one by one",
                    )
                found += [(*column, written.span) for column in several]
                continue
            value = binder.value(e)
            if written.alias is not None:
                name = ResultName.fixed(written.alias.text)
            elif isinstance(e, syntax.Reference) and isinstance(value, x.ColumnReference):
                name = ResultName.of_column(value.alias, e.path[-1])
            else:
                name = ResultName.fixed(" ".join(self.text(e.span).split()))
            found.append((name, value, written.span))
        taken: set[str] = {name.lower() for name in logical.RESULT_TIMES}
        items = []
        names = result_names([name for name, _, _ in found])
        for number, (called, (_, value, span)) in enumerate(zip(names, found, strict=True)):
            if called.lower() in taken and select.unnamed:
                called = f"{called}#{number}"
            if called.lower() in taken:
                self.problems.add(
                    "duplicate-name",
                    f"two result columns are called {called}",
                    span,
                    "name one with AS",
                )
            taken.add(called.lower())
            items.append(logical.Item(called, value))
        return tuple(items)

    def _several(
        self, e: syntax.Expression, scope: QueryScope
    ) -> list[tuple[ResultName, x.Expression]] | None:
        """Returns the columns of an item that stands for several: `*`, `R.*`, or the window of the
        groups."""
        if tree.is_star(e):
            if not e.parts:
                return columns_of_all(scope)
            at = scope.source(e.parts[0], self.problems)
            return [] if at is None else columns_of(scope.sources, at)
        if scope.is_window(e, self._binder(scope)):
            return [(ResultName.fixed(leaf.name), leaf) for leaf in _WINDOW]
        return None

    def _check_grouping(
        self, parts: list[tuple[x.Expression, Span]], group_by: tuple[x.Expression, ...]
    ) -> None:
        for e, span in parts:
            column = _ungrouped(e, (*group_by, *_WINDOW))
            if column is not None:
                self.problems.add(
                    "not-grouped",
                    f"{x.show(column)} is neither grouped nor aggregated",
                    span,
                    f"add it to GROUP BY, or take min({x.show(column)})",
                )


_WINDOW = (logical.WINDOW_START, logical.WINDOW_END)


def _result(e: syntax.Expression, results: Mapping[str, x.Expression]) -> x.Expression | None:
    """Returns the result column that a key of ORDER BY names, if the key is a mere name."""
    if not isinstance(e, syntax.Reference) or len(e.parts) != 1 or e.everything:
        return None
    return results.get(e.path[0].lower())


def _is_time(e: x.Expression, newest: Sequence[int]) -> bool:
    """Returns whether a value is the time of its row, which is that of the newest of these
    sources."""
    return isinstance(e, x.ColumnReference) and e.timed and [*newest] == [e.source]


def _aggregates(parts: list[tuple[x.Expression, Span]]) -> bool:
    return any(isinstance(e, x.AggregateCall) for part, _ in parts for e in x.walk(part))


def _stays(select: tree.Select, query: logical.Query, side: JoinSide) -> bool:
    """Returns whether results stay once they are there: those of one stream or of ASOF joins, if no
    window removes rows."""
    if isinstance(side, TreeJoin) and not all(join.kind.looks_up for join in joins(side)):
        return False
    windows = [source.window for source in query.sources]
    ends = any(of.kind is not WindowKind.UNBOUNDED or not is_plain(of) for of in windows)
    return not (select.windows and ends)


def _spans(select: tree.Select, items: tuple[logical.Item, ...]) -> list[Span]:
    """Returns the places of the items; for items from a *, the whole SELECT."""
    spans = [item.span for item in select.items] if select.items else []
    return spans if len(spans) == len(items) else [select.span] * len(items)


def _number(hidden: Stream) -> int:
    return int(hidden.name.rpartition("#")[2])


def _ungrouped(e: x.Expression, group_by: tuple[x.Expression, ...]) -> x.ColumnReference | None:
    """Returns a column of `e` that has no single value in a group."""
    if e in group_by or isinstance(e, x.AggregateCall):
        return None
    if isinstance(e, x.ColumnReference):
        return e
    for child in x.children(e):
        found = _ungrouped(child, group_by)
        if found is not None:
            return found
    return None
