"""Resolves the names in an X-SQL expression: columns of the streams in FROM, the time `ts` of each
stream, and in HAVING also the columns of SELECT."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from seustream.compiler.catalogue import Column
from seustream.compiler.errors import Problems, Span, nearest, suggest
from seustream.compiler.language import expressions as x
from seustream.compiler.language import syntax as s
from seustream.compiler.language.bind import FAILED, Binder, ParameterValue
from seustream.compiler.language.elsewhere import INSTEAD
from seustream.compiler.logical.program import WINDOW_END, WINDOW_START, Source
from seustream.compiler.xsql import tree
from seustream.compiler.xsql.overs import over, overs
from seustream.compiler.xsql.periods import Every, edge, is_window, read

_WINDOWS = ("window", "session_window")
"""Spark's names for the window of a group, whose bounds are window.start and window.end."""


def reference(index: int, source: Source, column: Column) -> x.ColumnReference:
    """Returns a column of a source, marked if it is the time of the source's rows."""
    timed = source.stream.is_time(column.name)
    return x.ColumnReference(index, column.name, column.type, column.nullable, source.alias, timed)


@dataclass(frozen=True, slots=True)
class Merged:
    """A column of USING: one name for the columns of several sources, and its value."""

    name: str
    sources: frozenset[int]
    value: x.Expression


@dataclass
class QueryScope:
    """The names at one place of a query. `derived` are the columns of SELECT by their folded names;
    a column of a stream takes precedence. `levels` are the sources that can be named here, those of
    the nearest SELECT first; without levels, all can. `merged` are the columns of USING, the last
    first; `every` holds the windows of the query's groups, `named` the windows of OVER by their
    folded names; `timing` the sources whose newest time is that of a row."""

    sources: tuple[Source, ...]
    parameters: Mapping[str, ParameterValue]
    within: str = "WHERE"
    aggregates: bool | str = "conditions on aggregates stand in HAVING"
    derived: Mapping[str, x.Expression] = field(default_factory=dict)
    levels: tuple[tuple[int, ...], ...] = ()
    merged: Sequence[Merged] = ()
    every: Every | None = None
    named: Mapping[str, tree.OverWindow] = field(default_factory=dict)
    timing: tuple[int, ...] = ()

    codes: Mapping[str, str] = field(default_factory=dict, init=False)

    def reference(self, e: s.Reference, binder: Binder) -> x.Expression:
        if e.everything:
            return binder.fail("syntax", f"{e} is no value", e.span, "it stands in SELECT")
        *qualifier, name = e.parts
        if qualifier:
            window = self.derived.get(f"window_{name.text.lower()}")
            if qualifier[0].text.lower() in _WINDOWS and window in (WINDOW_START, WINDOW_END):
                return window
            index = self.source(qualifier[0], binder.problems)
            return FAILED if index is None else self._column(index, name, binder)
        having = self._having(name)
        if len(having) > 1:
            for merged in self.merged:
                if merged.name == name.text.lower() and merged.sources.issuperset(having):
                    return merged.value
            ways = " or ".join(f"{self.sources[index].alias}.{name.text}" for index in having)
            return binder.fail(
                "ambiguous-column",
                f"column {name.text} is in {len(having)} streams",
                e.span,
                f"write {ways}",
            )
        if having:
            return self._column(having[0], name, binder)
        if name.text.lower() in self.derived:
            return self._derived(name, e.span, binder)
        seen = [self.sources[index] for index in self._seen()]
        if any(source.stream.unknown for source in seen):
            return FAILED
        known = [c.name for source in seen for c in source.stream.columns]
        hint = INSTEAD.get(name.text.lower()) or suggest(
            name.text, [*known, *self.derived], "columns"
        )
        if name.text.lower() in (WINDOW_START.name, WINDOW_END.name):
            hint = "SELECT, HAVING and ORDER BY have it where GROUP BY has TUMBLE, HOP or SESSION"
        elif name.is_quoted and nearest(name.text, known) is None:
            hint = f"a text takes single quotes: '{name.text}'"
        return binder.fail(
            "unknown-column", f"no stream of this query has a column {name.text}", e.span, hint
        )

    def _levels(self) -> tuple[tuple[int, ...], ...]:
        return self.levels or (tuple(range(len(self.sources))),)

    def _seen(self) -> list[int]:
        return [index for level in self._levels() for index in level]

    def _having(self, name: s.Name) -> list[int]:
        """Returns the sources of the nearest SELECT that has a column of this name."""
        for level in self._levels():
            streams = [(index, self.sources[index].stream) for index in level]
            found = [i for i, of in streams if of.column(name.text) and not of.unknown]
            if found:
                return found
        return []

    def source(self, name: s.Name, problems: Problems) -> int | None:
        """Returns the position in FROM of the stream or alias of this name."""
        for index in self._seen():
            if self.sources[index].alias.lower() == name.text.lower():
                return index
        known = [self.sources[index].alias for index in self._seen()]
        problems.add(
            "unknown-stream",
            f"{name.text} is not in FROM",
            name.span,
            suggest(name.text, known, "streams of this query"),
        )
        return None

    def _column(self, index: int, name: s.Name, binder: Binder) -> x.Expression:
        source = self.sources[index]
        column = source.stream.column(name.text)
        if column is None:
            known = [c.name for c in source.stream.columns]
            return binder.fail(
                "unknown-column",
                f"stream {source.alias if '#' in source.stream.name else source.stream.name}"
                f" has no column {name.text}",
                name.span,
                INSTEAD.get(name.text.lower()) or suggest(name.text, known, "columns"),
            )
        return reference(index, source, column)

    def _derived(self, name: s.Name, span: Span, binder: Binder) -> x.Expression:
        found = self.derived[name.text.lower()]
        looks = bool(overs(found))
        if binder.aggregating and (
            looks or any(isinstance(part, x.AggregateCall) for part in x.walk(found))
        ):
            return binder.fail(
                "over" if looks else "aggregate-here",
                f"{name.text}, which is {x.show(found)}, cannot stand in the argument of"
                f" {binder.aggregating}",
                span,
                "write the other function in a SELECT around this one"
                if looks
                else "aggregates do not nest",
            )
        return found

    # --- what X-SQL has no more of than other languages -----------------------

    def is_window(self, e: s.Expression, binder: Binder) -> bool:
        """Returns whether an item is the window of the query's groups, as Spark writes it."""
        if isinstance(e, s.Reference) and len(e.parts) == 1:
            called = e.path[0].lower() in _WINDOWS and not self._having(e.parts[0])
            return called and self.every is not None
        if not isinstance(e, s.FunctionCall) or self.every is None or not is_window(e):
            return False
        return self._is_the_window(e, e, binder)

    def _is_the_window(self, call: s.FunctionCall, e: s.Expression, binder: Binder) -> bool:
        """Checks a window that is written again outside GROUP BY."""
        found = len(binder.problems.found)
        sources = [self.sources[at] for at in self.timing]
        if read(call, sources, binder, binder.problems) != self.every:
            if len(binder.problems.found) == found:
                said = "the groups are those of another window"
                hint = "write it as GROUP BY has it, or window_start and window_end"
                if self.every is None:
                    said, hint = "the groups are of no window", "GROUP BY TUMBLE, HOP or SESSION"
                binder.fail("group-window", said, e.span, hint)
            return False
        return True

    def call(self, e: s.FunctionCall, binder: Binder) -> x.Expression | None:
        if (of := edge(e)) is not None:
            window, leaf = of
            return leaf if self._is_the_window(window, e, binder) else FAILED
        if is_window(e):
            return binder.fail(
                "group-window", f"{e.name} is no value", e.at, "it stands in GROUP BY by itself"
            )
        return None

    def special(self, e: s.Expression, binder: Binder) -> x.Expression:
        if isinstance(e, tree.OverCall):
            within = None if self.within in ("SELECT", "QUALIFY", "ORDER BY") else self.within
            sources = [self.sources[at] for at in self.timing]
            return over(e, binder, sources, within, self.named)
        return binder.fail(
            "subquery-here",
            f"a subquery cannot stand here, in {self.within}",
            e.span,
            "EXISTS and IN (SELECT ...) stand in WHERE, connected with the rest by AND",
        )

    @property
    def functions(self) -> Iterable[str]:
        return ()
