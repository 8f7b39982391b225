"""Semantic analysis: executes statements in order against a catalogue.

before  syntax trees, names as written
after   a `Program`: streams, queries with bound and typed expressions
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from seustream.compiler.apas.compile import Compiled
from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.catalogue import Stream
from seustream.compiler.errors import Problems, SourceText, Span, suggest
from seustream.compiler.language import syntax
from seustream.compiler.language.bind import ParameterValue
from seustream.compiler.language.options import query_options
from seustream.compiler.logical import program as logical
from seustream.compiler.logical.levels import Node, nodes, reads, used
from seustream.compiler.pattern import ir
from seustream.compiler.pattern import tree as pattern_tree
from seustream.compiler.xsql import intervals, tree
from seustream.compiler.xsql.definitions import defined
from seustream.compiler.xsql.descriptions import (
    columns_of,
    registration_of,
    statement_of,
    text_of,
)
from seustream.compiler.xsql.intervals import compile_apas
from seustream.compiler.xsql.parse import Statement
from seustream.compiler.xsql.relations import Relations
from seustream.compiler.xsql.select import SelectBinder
from seustream.compiler.xsql.times import timed, with_ends

_LATE = "late."
"""The beginning of the names of late rows, among those of queries."""
_FILE_NAME = re.compile(r"[^\x00-\x1f/\\:*?\"<>|]{1,100}")


@dataclass
class Analysis:
    """The state after the statements so far."""

    source: SourceText
    problems: Problems
    streams: dict[str, Stream] = field(default_factory=dict)
    queries: dict[str, logical.Relation] = field(default_factory=dict)
    requests: list[logical.ShowRequest] = field(default_factory=list)
    derivations: dict[str, Node] = field(default_factory=dict)
    patterns: dict[str, ir.MatchQuery] = field(default_factory=dict)
    apas: dict[str, Compiled] = field(default_factory=dict)
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)
    bounded: bool = False
    libraries: Libraries = field(default_factory=Libraries)
    owners: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By hidden stream, folded, the kind and name of its reader."""

    definitions: dict[int, tuple[Node, Node]] = field(default_factory=dict)
    """Caches, by identity of a derived stream's node, that node and the query that defines the
    stream, so that a longer text gets the same one."""

    def continued(self, source: SourceText, problems: Problems) -> Analysis:
        """Copies the state for the statements of a longer text, which do not change this one."""
        members = ("streams", "queries", "derivations", "patterns", "apas", "owners", "definitions")
        after = replace(self, source=source, problems=problems, requests=[])
        for member in members:
            setattr(after, member, dict(getattr(self, member)))
        return after

    @property
    def visible(self) -> dict[str, Stream]:
        """Returns the streams that a text can name: all but the hidden ones."""
        return {folded: s for folded, s in self.streams.items() if folded not in self.owners}

    def run(self, statements: list[Statement]) -> logical.Program:
        for statement in statements:
            self._statement(statement)
        for request in self.requests:
            if request.verb != "show" and request.target.lower() not in self._names():
                self.problems.add(
                    "unknown-query",
                    f"query {request.target} is dropped later in this text",
                    request.span,
                    "EXPLAIN shows what is compiled: the queries left at the end",
                )
        return self._program()

    def run_apas(self) -> logical.Program:
        """Analyses a text that is one APAS query; its name is that of its last select."""
        query = self._compiled_apas("q0", Span(0, len(self.source.text)))
        if query is not None:
            self.apas["q0"] = replace(query, name=query.tree.label, asked=True)
        return self._program()

    def _program(self) -> logical.Program:
        return self._with_definitions(
            logical.Program(
                tuple(self.streams.values()),
                tuple(q for q in self.queries.values() if isinstance(q, logical.Query)),
                tuple(self.requests),
                tuple(self.patterns.values()),
                operations=tuple(
                    o for o in self.queries.values() if isinstance(o, logical.Operation)
                ),
                asked_apas=tuple(self.apas.values()),
            )
        )

    def _with_definitions(self, program: logical.Program) -> logical.Program:
        """Adds, before the queries, the definitions of the derived streams that they read, directly
        or through others, in the order of the streams."""
        wanted, names = used([*nodes(program)], self.derivations), self._names()
        queries: list[logical.Query] = []
        operations: list[logical.Operation] = []
        patterns, apas = [], {}
        known, self.definitions = self.definitions, {}
        for folded, node in self.derivations.items():
            if folded not in wanted:
                continue
            if isinstance(node, Compiled):
                apas[node.name] = node
                continue
            # Queries and streams may share a name; no query's name contains #.
            own = f"{node.name}#stream" if folded in names else node.name
            of, defining = known.get(id(node), (None, node))
            if of is not node or defining.name != own:
                defining = replace(node, name=own, defines=node.name)
            self.definitions[id(node)] = node, defining
            if isinstance(defining, ir.MatchQuery):
                patterns.append(defining)
            elif isinstance(defining, logical.Operation):
                operations.append(defining)
            elif isinstance(defining, logical.Query):
                queries.append(defining)
        return replace(
            program,
            queries=(*queries, *program.queries),
            operations=(*operations, *program.operations),
            patterns=(*patterns, *program.patterns),
            apas=apas,
        )

    def _statement(self, s: Statement) -> None:
        mode, name = getattr(s, "mode", ""), getattr(s, "name", None)
        if mode and isinstance(name, syntax.Name) and self._settled(s, mode, name):
            return
        match s:
            case tree.CreateStream():
                self._create(s)
            case tree.CreateStreamAs():
                self._create_as(s)
            case tree.CreateStreamApas():
                self._create_apas(s)
            case tree.DropStream():
                self._drop_stream(s.name)
            case tree.Select() | tree.UnionClause() | tree.With():
                self._register(self._next_name(), s, s.span)
            case tree.RegisterQuery():
                self._register(s.name.text, s.query, s.span, s.name)
            case tree.RegisterApas():
                self._check_name(s.name.text, s.name.span)
                query = self._apas(s.name.text, s)
                if query is not None:
                    self.apas[s.name.text.lower()] = replace(query, asked=True)
            case tree.DropQuery():
                if self._known_query(s.name):
                    for known in (self.queries, self.patterns, self.apas):
                        known.pop(s.name.text.lower(), None)
                    self._disown("query", s.name)
            case pattern_tree.Pattern() | pattern_tree.Recognize():
                self._pattern(s)
            case tree.Describe():
                described = self._described(s)
                if described is not None:
                    request = logical.ShowRequest("show", s.name.text, s.span, tuple(described))
                    self.requests.append(request)
            case tree.Show():
                lines = self._streams_shown() if s.what == "streams" else self._queries_shown()
                self.requests.append(logical.ShowRequest("show", s.what, s.span, tuple(lines)))
            case tree.Explain():
                verb = "analyze" if s.analyze else "explain"
                if not isinstance(s.target, syntax.Name):
                    name = self._next_name()
                    self._register(name, s.target, s.span)
                    self.requests.append(logical.ShowRequest(verb, name, s.span))
                elif self._known_query(s.target):
                    name = self._names()[s.target.text.lower()]
                    self.requests.append(logical.ShowRequest(verb, name, s.span))

    def _settled(self, s: Statement, mode: str, name: syntax.Name) -> bool:
        """Returns whether IF [NOT] EXISTS leaves nothing to do; OR REPLACE drops an existing
        object, unless it is used."""
        query = isinstance(s, tree.RegisterQuery | tree.RegisterApas | tree.DropQuery) or (
            isinstance(s, pattern_tree.Headed) and not s.creates
        )
        there = name.text.lower() in (self._names() if query else self.visible)
        if mode == "replace" and there:
            self._statement(
                tree.DropQuery(name, s.span) if query else tree.DropStream(name, s.span)
            )
            return name.text.lower() in (self._names() if query else self.visible)
        return there if mode == "unless" else not there and mode == "if"

    def _described(self, s: tree.Describe) -> list[str] | None:
        """Describes the columns of a stream or a query, or the statement that creates it."""
        folded = s.name.text.lower()
        query = next((q for q in self._registered() if q.name.lower() == folded), None)
        stream = None if s.query else self.visible.get(folded)
        if stream is not None and not s.create:
            null = {True: "", False: " NOT NULL"}
            own = [f"{c.name} {c.type}{null[c.nullable]}" for c in stream.columns]
            return own if stream.table else ["ts bigint NOT NULL", *own]
        if stream is not None:
            return [statement_of(stream)]
        if query is not None:
            return [registration_of(query)] if s.create else columns_of(query)
        if s.query:
            self._known_query(s.name)  # which reports it
        elif s.create:
            self._known_stream(s.name)
        else:
            names = [*(of.name for of in self.visible.values()), *self._names().values()]
            hint = suggest(s.name.text, names, "streams and queries")
            said = f"there is no stream or query {s.name.text}"
            self.problems.add("unknown-stream", said, s.name.span, hint)
        return None

    def _registered(self) -> list[Node]:
        """Returns the queries of all three languages."""
        return [*self.queries.values(), *self.patterns.values(), *self.apas.values()]

    def _streams_shown(self) -> list[str]:
        return [
            f"{'table' if stream.table else 'stream'} {stream.name} ({', '.join(f'{c.name} {c.type}' for c in stream.columns)})"
            for stream in self.visible.values()
        ]

    def _queries_shown(self) -> list[str]:
        return [f"query {q.name}: {' '.join(text_of(q).split())}" for q in self._registered()]

    def _names(self) -> dict[str, str]:
        """Returns every query and pattern, by its folded name."""
        queries = {folded: query.name for folded, query in self.queries.items()}
        queries |= {folded: pattern.name for folded, pattern in self.patterns.items()}
        return queries | {folded: compiled.name for folded, compiled in self.apas.items()}

    # --- streams --------------------------------------------------------------

    def _create(self, s: tree.CreateStream) -> None:
        self._add_stream(s.name, defined(s, self.problems))

    def _create_as(self, s: tree.CreateStreamAs) -> None:
        relations = Relations(self._binder(), self.streams)
        query = relations.untimed(relations.whole(s.name.text, s.query, s.query.span))
        columns = with_ends(relations.select.columns_of(query, s.query.span), query)
        text, time = self._text(s.query.span), timed(query, columns)
        stream = Stream(s.name.text, columns, text, time=time)
        if self._check_stream(s.name):
            self._own("stream", s.name.text, relations)
            self.streams[s.name.text.lower()] = stream
            self.derivations[s.name.text.lower()] = query

    def _create_apas(self, s: tree.CreateStreamApas) -> None:
        name = s.name.text
        compiled = self._apas(name, s)
        if compiled is None:
            self._add_stream(s.name, Stream(name, (), unknown=True))
            return
        text = f"APAS $${self._text(s.text)}$${' WITH (strict)' * compiled.strict}"
        stream = intervals.stream_of(name, compiled, text, s.span, self.problems)
        if self._add_stream(s.name, stream):
            self.derivations[name.lower()] = compiled

    def _apas(self, name: str, s: tree.CreateStreamApas | tree.RegisterApas) -> Compiled | None:
        query = self._compiled_apas(name, s.text)
        options = query_options(s.options, self.problems)
        return None if query is None else replace(query, strict=options.strict)

    def _compiled_apas(self, name: str, text: Span) -> Compiled | None:
        return compile_apas(
            self.source, text, name, self.visible, self.problems, self.libraries, self.parameters
        )

    def _add_stream(self, name: syntax.Name, stream: Stream) -> bool:
        free = self._check_stream(name)
        if free:
            self.streams[name.text.lower()] = stream
        return free

    def _check_stream(self, name: syntax.Name) -> bool:
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
        return True

    def _own(self, kind: str, name: str, relations: Relations) -> None:
        """Adds the streams that a query creates for itself."""
        for stream, relation in relations.hidden:
            self.streams[stream.name.lower()] = stream
            self.derivations[stream.name.lower()] = relation
            self.owners[stream.name.lower()] = (kind, name)

    def _disown(self, kind: str, name: syntax.Name) -> None:
        """Removes the streams that only the dropped object could read."""
        for folded, (of, owner) in list(self.owners.items()):
            if (of, owner.lower()) == (kind, name.text.lower()):
                del self.streams[folded], self.derivations[folded], self.owners[folded]

    def _drop_stream(self, name: syntax.Name) -> None:
        stream = self._known_stream(name)
        if stream is None:
            return
        users = [
            *(("query", q.name) for q in self.queries.values() if stream.name in reads(q)),
            *(("query", p.name) for p in self.patterns.values() if stream.name in reads(p)),
            *(("query", c.name) for c in self.apas.values() if stream.name in reads(c)),
            *(
                self.owners.get(folded, ("stream", d.name))
                for folded, d in self.derivations.items()
                if stream.name in reads(d)
            ),
        ]
        users = list(dict.fromkeys(users))
        if users:
            self.problems.add(
                "stream-in-use",
                f"stream {stream.name} is used by {', '.join(map(' '.join, users))}",
                name.span,
                f"{'; '.join(f'DROP {kind.upper()} {of}' for kind, of in users[:5])} first",
            )
            return
        del self.streams[name.text.lower()]
        self.derivations.pop(name.text.lower(), None)
        self._disown("stream", name)

    def _known_stream(self, name: syntax.Name) -> Stream | None:
        stream = self.visible.get(name.text.lower())
        if stream is None:
            known = [stream.name for stream in self.visible.values()]
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
        self, name: str, query: tree.Query, span: Span, written: syntax.Name | None = None
    ) -> None:
        self._check_name(name, span if written is None else written.span)
        relations = Relations(self._binder(), self.streams)
        self.queries[name.lower()] = relations.whole(name, query, span)
        self._own("query", name, relations)

    def _binder(self) -> SelectBinder:
        return SelectBinder(
            self.source, self.problems, self._known_stream, self.streams, self.parameters
        )

    def _text(self, span: Span) -> str:
        return self.source.text[span.start : span.end]

    def _check_name(self, name: str, at: Span) -> None:
        if name.lower() in self._names():
            known = self._names()[name.lower()]
            self.problems.add(
                "duplicate-name",
                f"there is already a query {known}",
                at,
                f"DROP QUERY {known} first, or choose another name",
            )
        if name.lower().startswith(_LATE):
            self.problems.add(
                "bad-name",
                f"{name!r} is the name of late rows",
                at,
                f"only names that do not begin with {_LATE}",
            )
        if not _FILE_NAME.fullmatch(name) or name.strip(". ") == "":
            self.problems.add(
                "bad-name",
                f"{name!r} cannot name a result file",
                at,
                "use letters, digits and underscores",
            )

    def _pattern(self, s: pattern_tree.Statement) -> None:
        """Adds a pattern: registered under its name or the next free one, or as a stream."""
        from seustream.compiler.pattern.analyse import PatternContext
        from seustream.compiler.pattern.fields import stream_of
        from seustream.compiler.pattern.statements import bind

        header, given = s.header, s.name
        context = PatternContext(
            self.source, self.problems, self.visible, self.parameters, self.bounded
        )
        if s.creates and given is not None:
            query = bind(s, given.text, context)
            if self._add_stream(given, stream_of(query.name, query, self.problems)):
                self.derivations[query.name.lower()] = query
            return
        name = self._next_name() if given is None else given.text
        self._check_name(name, s.span if given is None else given.span)
        self.patterns[name.lower()] = bind(s, name, context)
        if header is not None and header.verb == "explain":
            self.requests.append(logical.ShowRequest("explain", name, s.span))
