"""Semantic analysis: statements carried out in order against a catalogue.

before  syntax trees, names as written
after   a `Program`: streams, queries with bound and typed expressions
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from seustream.compiler.apas.compile import Compiled
from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.catalogue import TIMESTAMP_NAMES, Column, Stream
from seustream.compiler.errors import Problems, Source, Span, suggest
from seustream.compiler.language import expressions as x
from seustream.compiler.language import syntax
from seustream.compiler.language.bind import Binder, ParameterValue, bind_type
from seustream.compiler.language.types import MILLISECONDS
from seustream.compiler.pattern import ir
from seustream.compiler.pattern import tree as pattern_tree
from seustream.compiler.pattern.analyse import Context
from seustream.compiler.pattern.fields import stream_of
from seustream.compiler.pattern.statements import bind
from seustream.compiler.plan import logical
from seustream.compiler.plan.levels import Node, nodes, reads, used
from seustream.compiler.xsql import intervals, tree
from seustream.compiler.xsql.intervals import compile_apas
from seustream.compiler.xsql.parse import Statement
from seustream.compiler.xsql.scope import Scope
from seustream.hdl.config import MAX_STREAMS
from seustream.hdl.device import Window, WindowKind

_FILE_NAME = re.compile(r"[^\x00-\x1f/\\:*?\"<>|]{1,100}")
_LARGEST = (1 << 63) - 1


@dataclass
class Analysis:
    """The state after the statements so far."""

    source: Source
    problems: Problems
    streams: dict[str, Stream] = field(default_factory=dict)
    queries: dict[str, logical.Query] = field(default_factory=dict)
    requests: list[logical.Request] = field(default_factory=list)
    derivations: dict[str, Node] = field(default_factory=dict)
    patterns: dict[str, ir.Query] = field(default_factory=dict)
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)
    bounded: bool = False
    libraries: Libraries = field(default_factory=Libraries)

    def run(self, statements: list[Statement]) -> logical.Program:
        for statement in statements:
            self._statement(statement)
        for request in self.requests:
            if request.verb == "explain" and request.target.lower() not in self._names():
                self.problems.add(
                    "unknown-query",
                    f"query {request.target} is dropped later in this text",
                    request.span,
                    "EXPLAIN shows what is compiled: the queries left at the end",
                )
        return self._with_definitions(
            logical.Program(
                tuple(self.streams.values()),
                tuple(self.queries.values()),
                tuple(self.requests),
                tuple(self.patterns.values()),
            )
        )

    def _with_definitions(self, program: logical.Program) -> logical.Program:
        """Before the queries, the definitions of the derived streams that some query reads,
        itself or through others, in the order of the streams."""
        wanted = used([*nodes(program)], self.derivations)
        queries, patterns, apas = [], [], {}
        for folded, node in self.derivations.items():
            if folded not in wanted:
                continue
            if isinstance(node, Compiled):
                apas[node.name] = node
                continue
            # Queries and streams may share a name; # is in no name of a query.
            own = f"{node.name}#stream" if folded in self._names() else node.name
            if isinstance(node, ir.Query):
                patterns.append(replace(node, name=own, defines=node.name))
            else:
                queries.append(replace(node, name=own, defines=node.name))
        return replace(
            program,
            queries=(*queries, *program.queries),
            patterns=(*patterns, *program.patterns),
            apas=apas,
        )

    def _statement(self, s: Statement) -> None:
        match s:
            case tree.CreateStream():
                self._create(s)
            case tree.CreateStreamAs():
                self._create_as(s)
            case tree.CreateStreamApas():
                self._create_apas(s)
            case tree.DropStream():
                self._drop_stream(s.name)
            case tree.Select():
                self._register(self._next_name(), s, s.span)
            case tree.RegisterQuery():
                self._register(s.name.text, s.select, s.span, s.name)
            case tree.DropQuery():
                if self._known_query(s.name):
                    self.queries.pop(s.name.text.lower(), None)
                    self.patterns.pop(s.name.text.lower(), None)
            case pattern_tree.Pattern() | pattern_tree.Recognize():
                self._pattern(s)
            case tree.Show():
                lines = self._streams_shown() if s.what == "streams" else self._queries_shown()
                self.requests.append(logical.Request("show", s.what, s.span, tuple(lines)))
            case tree.Explain():
                if isinstance(s.target, tree.Select):
                    name = self._next_name()
                    self._register(name, s.target, s.span)
                    self.requests.append(logical.Request("explain", name, s.span))
                elif self._known_query(s.target):
                    name = self._names()[s.target.text.lower()]
                    self.requests.append(logical.Request("explain", name, s.span))

    def _streams_shown(self) -> list[str]:
        return [
            f"stream {stream.name} ({', '.join(f'{c.name} {c.type}' for c in stream.columns)})"
            for stream in self.streams.values()
        ]

    def _queries_shown(self) -> list[str]:
        every = [(q.name, q.text) for q in self.queries.values()]
        every += [(p.name, p.text) for p in self.patterns.values()]
        return [f"query {name}: {' '.join(text.split())}" for name, text in every]

    def _names(self) -> dict[str, str]:
        """Every query and pattern, by its folded name."""
        queries = {folded: query.name for folded, query in self.queries.items()}
        return queries | {folded: pattern.name for folded, pattern in self.patterns.items()}

    # --- streams --------------------------------------------------------------

    def _create(self, s: tree.CreateStream) -> None:
        seen: dict[str, str] = {}
        columns = []
        for column in s.columns:
            folded = column.name.text.lower()
            if folded in seen:
                self.problems.add(
                    "duplicate-name",
                    f"stream {s.name.text} already has a column {seen[folded]}",
                    column.name.span,
                    "give one of them another name",
                )
            if folded in ("ts", "timestamp"):
                self.problems.add(
                    "duplicate-name",
                    f"{column.name.text} is the implicit time of every stream",
                    column.name.span,
                    "leave it out; input files carry it in their column ts",
                )
            seen[folded] = column.name.text
            kind = bind_type(column.type, self.problems)
            columns.append(Column(column.name.text, kind, column.nullable))
        self._add_stream(s.name, Stream(s.name.text, tuple(columns)))

    def _create_as(self, s: tree.CreateStreamAs) -> None:
        query = self._bind(s.name.text, s.select, s.select.span)
        columns = tuple(Column(_own_name(item), item.expression.type) for item in query.items)
        names = [column.name.lower() for column in columns]
        for name in sorted({name for name in names if names.count(name) > 1}):
            self.problems.add(
                "duplicate-name",
                f"stream {s.name.text} would have two columns {name}",
                s.select.span,
                "name one with AS",
            )
        for column in columns:
            if column.name.lower() in TIMESTAMP_NAMES:
                self.problems.add(
                    "duplicate-name",
                    f"{column.name} is the implicit time of every stream",
                    s.select.span,
                    "its tuples have the time of their newest component; name another time with AS",
                )
        if self._add_stream(s.name, Stream(s.name.text, columns, self._text(s.select.span))):
            self.derivations[s.name.text.lower()] = query

    def _create_apas(self, s: tree.CreateStreamApas) -> None:
        name = s.name.text
        compiled = compile_apas(
            self.source, s.text, name, self.streams, self.problems, self.libraries
        )
        if compiled is None:
            self._add_stream(s.name, Stream(name, (), unknown=True))
            return
        text = self._text(s.text)
        stream = intervals.stream_of(name, compiled, text, s.span, self.problems)
        if self._add_stream(s.name, stream):
            self.derivations[name.lower()] = compiled

    def _add_stream(self, name: syntax.Name, stream: Stream) -> bool:
        if "#" in name.text:
            self.problems.add(
                "bad-name",
                f"{name.text}: # numbers the copies of a stream in a self-join",
                name.span,
                "choose a name without #",
            )
        if name.text.lower() in self.streams:
            known = self.streams[name.text.lower()].name
            self.problems.add(
                "duplicate-name",
                f"there is already a stream {known}",
                name.span,
                f"DROP STREAM {known} first, or choose another name",
            )
            return False
        self.streams[name.text.lower()] = stream
        return True

    def _drop_stream(self, name: syntax.Name) -> None:
        stream = self._known_stream(name)
        if stream is None:
            return
        users = [
            *(("query", q.name) for q in self.queries.values() if stream.name in reads(q)),
            *(("query", p.name) for p in self.patterns.values() if stream.name in reads(p)),
            *(("stream", d.name) for d in self.derivations.values() if stream.name in reads(d)),
        ]
        if users:
            self.problems.add(
                "stream-in-use",
                f"stream {stream.name} is used by {', '.join(map(' '.join, users))}",
                name.span,
                f"DROP {users[0][0].upper()} {users[0][1]} first",
            )
            return
        del self.streams[name.text.lower()]
        self.derivations.pop(name.text.lower(), None)

    def _known_stream(self, name: syntax.Name) -> Stream | None:
        stream = self.streams.get(name.text.lower())
        if stream is None:
            known = [stream.name for stream in self.streams.values()]
            self.problems.add(
                "unknown-stream",
                f"there is no stream {name.text}",
                name.span,
                suggest(name.text, known, "streams"),
            )
        return stream

    # --- queries --------------------------------------------------------------

    def _next_name(self) -> str:
        names = self._names()
        number = len(names)
        while f"q{number}" in names:
            number += 1
        return f"q{number}"

    def _known_query(self, name: syntax.Name) -> bool:
        if name.text.lower() in self._names():
            return True
        known = list(self._names().values())
        self.problems.add(
            "unknown-query",
            f"there is no query {name.text}",
            name.span,
            suggest(name.text, known, "queries"),
        )
        return False

    def _register(
        self, name: str, select: tree.Select, span: Span, written: syntax.Name | None = None
    ) -> None:
        self._check_name(name, span if written is None else written.span)
        self.queries[name.lower()] = self._bind(name, select, span)

    def _check_name(self, name: str, at: Span) -> None:
        if name.lower() in self._names():
            known = self._names()[name.lower()]
            self.problems.add(
                "duplicate-name",
                f"there is already a query {known}",
                at,
                f"DROP QUERY {known} first, or choose another name",
            )
        if not _FILE_NAME.fullmatch(name) or name.strip(". ") == "":
            self.problems.add(
                "bad-name",
                f"{name!r} cannot name a result file",
                at,
                "use letters, digits and underscores",
            )

    def _pattern(self, s: pattern_tree.Statement) -> None:
        """A pattern: registered under its name or the next one, or as a stream."""
        header = s.header
        context = Context(self.source, self.problems, self.streams, self.parameters, self.bounded)
        if header is not None and header.verb == "create" and header.name is not None:
            query = bind(s, header.name.text, context)
            if self._add_stream(header.name, stream_of(query.name, query, self.problems)):
                self.derivations[query.name.lower()] = query
            return
        named = header is not None and header.name is not None
        name = header.name.text if header and header.name else self._next_name()
        self._check_name(name, header.name.span if named and header and header.name else s.span)
        self.patterns[name.lower()] = bind(s, name, context)
        if header is not None and header.verb == "explain":
            self.requests.append(logical.Request("explain", name, s.span))

    def _bind(self, name: str, select: tree.Select, span: Span) -> logical.Query:
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
            self._text(select.span),
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

    def _text(self, span: Span) -> str:
        return self.source.text[span.start : span.end]

    def _sources(self, select: tree.Select) -> tuple[logical.Source, ...]:
        windows = self._windows(select)
        aliases: dict[str, str] = {}
        sources = []
        for item, (window, window_span) in zip(select.sources, windows, strict=True):
            alias = (item.alias or item.stream).text
            if alias.lower() in aliases:
                self.problems.add(
                    "duplicate-name",
                    f"{alias} stands twice in FROM",
                    item.span,
                    f"name one of them: {item.stream.text} AS {alias}2",
                )
            aliases[alias.lower()] = alias
            stream = self._known_stream(item.stream) or Stream(alias, (), unknown=True)
            sources.append(logical.Source(alias, stream, window, item.span, window_span))
        if len(select.sources) > MAX_STREAMS:
            extra = select.sources[MAX_STREAMS:]
            self.problems.add(
                "too-many-streams",
                f"the query joins {len(select.sources)} streams, a device holds {MAX_STREAMS}",
                Span(extra[0].span.start, extra[-1].span.end),
                "split it into queries of four streams or fewer",
            )
        return tuple(sources)

    # --- windows --------------------------------------------------------------

    def _windows(self, select: tree.Select) -> list[tuple[Window, Span]]:
        windows = [(self._window(clause), clause.span) for clause in select.windows]
        streams = len(select.sources)
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

    def _window(self, clause: tree.WindowClause) -> Window:
        if clause.kind == "now":
            return Window(WindowKind.RANGE, 0)
        if clause.kind == "unbounded":
            return Window(WindowKind.UNBOUNDED)
        size = clause.size if clause.size is not None else 0
        if clause.kind == "rows":
            if size < 1 or not isinstance(size, int) or size > _LARGEST:
                self.problems.add(
                    "row-count",
                    f"a window holds a whole number of rows, 1 or more, not {size}",
                    clause.span,
                    "for a time, name a unit: RANGE 5 seconds",
                )
                return Window(WindowKind.ROWS, 1)
            return Window(WindowKind.ROWS, size)
        factor = 1
        if clause.unit is not None:
            factor = MILLISECONDS.get(clause.unit.text.lower(), 0)
            if factor == 0:
                self.problems.add(
                    "unknown-unit",
                    f"{clause.unit.text} is no unit of time",
                    clause.unit.span,
                    suggest(clause.unit.text, MILLISECONDS, "units"),
                )
                return Window(WindowKind.RANGE, 0)
        if size < 0:
            self.problems.add(
                "negative-range",
                f"a range of {size} reaches into the future",
                clause.span,
                "ranges reach back from now, 0 is NOW",
            )
            return Window(WindowKind.RANGE, 0)
        if size * factor > _LARGEST:
            self.problems.add(
                "range-size",
                "a range is at most 2^63 - 1 milliseconds",
                clause.span,
                "write UNBOUNDED",
            )
            return Window(WindowKind.RANGE, 0)
        ticks = Fraction(repr(size)) * factor  # exactly: 1.001 minutes are 60060 ms
        if ticks.denominator > 1:
            self.problems.add(
                "range-size",
                f"a range is a whole number of milliseconds, not {float(ticks):g}",
                clause.span,
                "use a smaller unit",
            )
            return Window(WindowKind.RANGE, 0)
        return Window(WindowKind.RANGE, int(ticks))

    # --- result columns -------------------------------------------------------

    def _items(self, select: tree.Select, scope: Scope) -> tuple[logical.Item, ...]:
        binder, sources = self._binder(scope), scope.sources
        items: list[tuple[logical.Item, Span]] = []
        if select.items is None:
            for index in range(len(sources)):
                items += [(item, select.span) for item in _all_of(sources, index)]
        for written in select.items or ():
            e = written.expression
            if isinstance(e, syntax.Reference) and e.everything:
                if written.alias is not None:
                    self.problems.add(
                        "syntax",
                        f"{self._text(e.span)} is several columns, AS names one",
                        written.alias.span,
                        "leave the name out, or name the columns one by one",
                    )
                position = scope.source(e.parts[0], self.problems)
                if position is not None:
                    items += [(item, written.span) for item in _all_of(sources, position)]
                continue
            if written.alias is not None:
                name = written.alias.text
            elif isinstance(e, syntax.Reference):
                name = str(e)
            else:
                name = " ".join(self._text(e.span).split())
            items.append((logical.Item(name, binder.value(e)), written.span))
        names: set[str] = {name.lower() for name in logical.RESULT_TIMES}
        for item, span in items:
            if item.name.lower() in names:
                self.problems.add(
                    "duplicate-name",
                    f"two result columns are called {item.name}",
                    span,
                    "name one with AS",
                )
            names.add(item.name.lower())
        return tuple(item for item, _ in items)

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


def _own_name(item: logical.Item) -> str:
    """A result column's name as a column of a derived stream: `a` for `R.a`."""
    e = item.expression
    if isinstance(e, x.Column) and item.name.lower() == f"{e.alias}.{e.name}".lower():
        return e.name
    return item.name


def _all_of(sources: tuple[logical.Source, ...], index: int) -> list[logical.Item]:
    source = sources[index]
    return [
        logical.Item(
            f"{source.alias}.{column.name}",
            x.Column(index, column.name, column.type, column.nullable, source.alias),
        )
        for column in source.stream.columns
    ]
