"""One SELECT: sources, windows, conditions and result columns, bound and typed.

before  SELECT R.a, count(*) FROM R, S WHERE R.a = S.d GROUP BY R.a WINDOW RANGE 5 minutes
after   a logical `Query` over the streams of FROM
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from seustream.compiler.catalogue import Stream
from seustream.compiler.errors import Problems, Source, Span, suggest
from seustream.compiler.language import expressions as x
from seustream.compiler.language import syntax
from seustream.compiler.language.bind import Binder, ParameterValue
from seustream.compiler.plan import logical
from seustream.compiler.xsql import tree
from seustream.compiler.xsql.naming import Name, result_names
from seustream.compiler.xsql.scope import Scope
from seustream.compiler.xsql.windows import window
from seustream.hdl.device import Window, WindowKind


@dataclass
class SelectBinder:
    """Binds SELECTs of one text; `known_stream` looks a name up in the catalogue, and reports it if
    it is not there."""

    source: Source
    problems: Problems
    known_stream: Callable[[syntax.Name], Stream | None]
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)

    def query(self, name: str, select: tree.Select, span: Span) -> logical.Query:
        """A SELECT as the query of this name."""
        sources = self._sources(select)
        found = len(self.problems.found)
        where: x.Expression = x.TRUE
        if select.where is not None:
            where = self._binder(Scope(sources, self.parameters)).condition(select.where)
        grouping = self._binder(
            Scope(sources, self.parameters, "GROUP BY", "group by columns, aggregate in SELECT")
        )
        group_by = tuple(grouping.value(e) for e in select.group_by)
        listed = Scope(sources, self.parameters, "SELECT", aggregates=True)
        items = self._items(select, listed)
        having = None
        if select.having is not None:
            derived = {item.name.lower(): item.expression for item in items}
            over = Scope(sources, self.parameters, "HAVING", aggregates=True, derived=derived)
            having = self._binder(over).condition(select.having)
        parts = [item.expression for item in items] + ([] if having is None else [having])
        aggregated = (
            bool(group_by)
            or having is not None
            or any(isinstance(e, x.Aggregate) for part in parts for e in x.walk(part))
        )
        if aggregated and not select.windows and len(sources) == 1:
            self._missing_window(select, "aggregates")
        if aggregated and len(self.problems.found) == found:
            self._check_grouping(select, items, having, group_by)
        return logical.Query(
            name,
            sources,
            where,
            items,
            group_by,
            having,
            aggregated,
            self.text(select.span),
            span,
            strict=self._strict(select),
        )

    def _binder(self, scope: Scope) -> Binder:
        return Binder(scope, self.problems)

    def _strict(self, select: tree.Select) -> bool:
        for option in select.options:
            if option.text.lower() != "strict":
                self.problems.add(
                    "unknown-option",
                    f"there is no option {option.text}",
                    option.span,
                    suggest(option.text, ["strict"], "options"),
                )
        return bool(select.options)

    def text(self, span: Span) -> str:
        return self.source.text[span.start : span.end]

    def _sources(self, select: tree.Select) -> tuple[logical.Source, ...]:
        windows = self._windows(select)
        aliases: dict[str, str] = {}
        sources = []
        for item, (extent, window_span) in zip(select.sources, windows, strict=True):
            alias = (item.alias or item.stream).text
            if alias.lower() in aliases:
                self.problems.add(
                    "duplicate-name",
                    f"{alias} stands twice in FROM",
                    item.span,
                    f"name one of them: {item.stream.text} AS {alias}2",
                )
            aliases[alias.lower()] = alias
            stream = self.known_stream(item.stream) or Stream(alias, (), unknown=True)
            sources.append(logical.Source(alias, stream, extent, item.span, window_span))
        return tuple(sources)

    # --- windows --------------------------------------------------------------

    def _windows(self, select: tree.Select) -> list[tuple[Window, Span]]:
        windows = [(window(clause, self.problems), clause.span) for clause in select.windows]
        streams = len(select.sources)
        if not windows:
            if streams > 1:
                self._missing_window(select, "joins streams")
            return [(Window(WindowKind.RANGE, 0), select.span)] * streams
        if len(windows) == 1:
            return windows * streams
        if len(windows) != streams:
            spans = [clause.span for clause in select.windows]
            self.problems.add(
                "window-count",
                f"{len(windows)} windows for {streams} stream{'s' if streams > 1 else ''}",
                Span(spans[0].start, spans[-1].end),
                "give one window for all streams, or one for each in FROM order",
            )
            windows = (windows * streams)[:streams]
        return windows

    def _missing_window(self, select: tree.Select, why: str) -> None:
        self.problems.add(
            "missing-window",
            f"a query that {why} needs a window",
            Span(select.span.end - 1, select.span.end),
            "end it with its windows, such as WINDOW RANGE 5 minutes",
        )

    # --- result columns -------------------------------------------------------

    def _items(self, select: tree.Select, scope: Scope) -> tuple[logical.Item, ...]:
        binder, sources = self._binder(scope), scope.sources
        found: list[tuple[Name, x.Expression, Span]] = []
        if select.items is None:
            for index in range(len(sources)):
                found += [(*column, select.span) for column in _all_of(sources, index)]
        for written in select.items or ():
            e = written.expression
            if isinstance(e, syntax.Reference) and e.everything:
                if written.alias is not None:
                    self.problems.add(
                        "syntax",
                        f"{self.text(e.span)} is several columns, AS names one",
                        written.alias.span,
                        "leave the name out, or name the columns one by one",
                    )
                position = scope.source(e.parts[0], self.problems)
                if position is not None:
                    found += [(*column, written.span) for column in _all_of(sources, position)]
                continue
            value = binder.value(e)
            if written.alias is not None:
                name = Name.fixed(written.alias.text)
            elif isinstance(e, syntax.Reference) and isinstance(value, x.Column):
                name = Name.of_column(value.alias, e.path[-1])
            else:
                name = Name.fixed(" ".join(self.text(e.span).split()))
            found.append((name, value, written.span))
        taken: set[str] = {name.lower() for name in logical.RESULT_TIMES}
        items = []
        names = result_names([name for name, _, _ in found])
        for called, (_, value, span) in zip(names, found, strict=True):
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

    def _check_grouping(
        self,
        select: tree.Select,
        items: tuple[logical.Item, ...],
        having: x.Expression | None,
        group_by: tuple[x.Expression, ...],
    ) -> None:
        spans = [item.span for item in select.items] if select.items else []
        if len(spans) != len(items):
            spans = [select.span] * len(items)
        parts = [(item.expression, span) for item, span in zip(items, spans, strict=True)]
        if having is not None and select.having is not None:
            parts.append((having, select.having.span))
        for e, span in parts:
            column = _ungrouped(e, group_by)
            if column is not None:
                self.problems.add(
                    "not-grouped",
                    f"{x.show(column)} is neither grouped nor aggregated",
                    span,
                    f"add it to GROUP BY, or take min({x.show(column)})",
                )


def _ungrouped(e: x.Expression, group_by: tuple[x.Expression, ...]) -> x.Column | None:
    """A column of `e` that has no single value in a group."""
    if e in group_by or isinstance(e, x.Aggregate):
        return None
    if isinstance(e, x.Column):
        return e
    for child in x.children(e):
        found = _ungrouped(child, group_by)
        if found is not None:
            return found
    return None


def _all_of(sources: tuple[logical.Source, ...], index: int) -> list[tuple[Name, x.Expression]]:
    source = sources[index]
    return [
        (
            Name.of_column(source.alias, column.name),
            x.Column(index, column.name, column.type, column.nullable, source.alias),
        )
        for column in source.stream.columns
    ]
