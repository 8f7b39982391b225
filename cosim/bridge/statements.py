"""The catalogue of a session as a text, and the effect of statements on it.

    change = carried_out(standing, entries, "REGISTER QUERY fast FOR 1 hour AS SELECT …", "q.xsql")
    change.compilation      of the catalogue afterwards
    change.entries          its statements; those of dropped objects are gone

A session's query set is the text of the statements in effect, in their order. If a statement cannot be
executed, nothing changes: neither it nor those before it in the same text take effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from seustream.compiler.errors import CompileError, Problem, Problems, SourceText, Span
from seustream.compiler.language.options import QueryOptions, query_options
from seustream.compiler.language.syntax import Name, Option
from seustream.compiler.logical.program import ShowRequest
from seustream.compiler.pattern import tree as pattern_tree
from seustream.compiler.pipeline import Compilation, compile_text, finished
from seustream.compiler.xsql import tree
from seustream.compiler.xsql.descriptions import statement_of
from seustream.compiler.xsql.parse import Statement, parse
from seustream.compiler.xsql.statements import durations, split
from seustream.engine.explain import explain

_SHORT = 10_000
"""Characters of obsolete statements that are tolerated."""


_USUAL = QueryOptions()


@dataclass(frozen=True, slots=True)
class Entry:
    """A statement in effect: `kind` is stream or query, `language` that of a query."""

    kind: str
    name: str
    text: str
    language: str = ""
    options: QueryOptions = _USUAL


@dataclass(frozen=True, slots=True)
class CatalogueChange:
    """The effect of a text on a catalogue. `until` has the milliseconds for which a query is
    registered, `shown` the answers to SHOW and EXPLAIN, `analyzed` the queries whose figures
    EXPLAIN ANALYZE asks for, `carried` the statements that changed something."""

    compilation: Compilation
    entries: tuple[Entry, ...]
    created: tuple[str, ...] = ()
    registered: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    until: dict[str, int] = field(default_factory=dict)
    shown: tuple[str, ...] = ()
    analyzed: tuple[str, ...] = ()
    lists: bool = False
    """SHOW QUERIES is among the statements; a server adds its figures."""
    carried: tuple[str, ...] = ()
    is_verbatim: bool = False
    """The statements are exactly those of the text."""


def text_of(statements: Iterable[str]) -> str:
    """Returns statements as the text of a catalogue."""
    return "".join(f"{one};\n" for one in statements)


def _begins(statements: Iterable[str], at: int) -> tuple[int, ...]:
    """Returns where statements begin in a catalogue's text from a place on. Who reads of a fault has
    the statement, not the catalogue."""
    ends = accumulate((len(text_of([one])) for one in statements), initial=at)
    return tuple(ends)[:-1]


def carried_out(
    standing: Compilation,
    entries: Sequence[Entry],
    text: str,
    file: str,
    around: tuple[str, str] = ("", ""),
) -> CatalogueChange:
    """Executes the statements of a text after those in effect; raises `CompileError` with places in
    `text`. The text in `around` is part of the statement, but not of the places.

    Only the new statements are compiled. Dropped statements stay in the catalogue's text, followed
    by their DROP, until they make up half of the text.
    """
    problems = Problems()
    plain, until = durations(text, problems) if not around[0] else (text, {})
    problems.raise_any(SourceText(text, file))
    known = standing.source.text
    glue = "" if not known or known.endswith(";\n") else "\n;\n"
    before = len(known) + len(glue)
    new = around[0] + plain + around[1]
    try:
        c = compile_text(glue + new, file, stop_after="tree", after=standing)
        change = _applied(entries, SourceText(new, file), c, until)
        added, whole = text_of(change.carried), text_of([one.text for one in change.entries])
        parts = (*standing.source.parts, *_begins(change.carried, before))
        if before + len(added) > 2 * len(whole) + _SHORT:
            compilation = compile_text(whole, file, standing.options)
            parts = _begins([one.text for one in change.entries], 0)
        elif change.is_verbatim and not c.program.requests:
            compilation = finished(c)
            parts = (*standing.source.parts, before + len(around[0]))
        else:
            compilation = compile_text(glue + added, file, after=standing)
        compilation = replace(compilation, source=replace(compilation.source, parts=parts))
    except CompileError as error:
        raise _moved(error, text, file, before + len(around[0])) from None
    if not around[0]:
        check_streams(standing, c, SourceText(plain, file))
    asked = [request for request in c.program.requests if request.span.start >= before]
    shown = tuple(line for request in asked for line in answer_to(compilation, c, request))
    analyzed = tuple(request.target for request in asked if request.verb == "analyze")
    lists = any((request.verb, request.target) == ("show", "queries") for request in asked)
    return replace(change, compilation=compilation, shown=shown, analyzed=analyzed, lists=lists)


def check_streams(standing: Compilation, after: Compilation, source: SourceText) -> None:
    """Raises `CompileError` if a text makes a base stream anew: a run knows streams by their names,
    so the new one would inherit the time that the old one has reached."""
    base = {stream.name.lower(): stream for stream in standing.program.base}
    now = {stream.name.lower(): stream for stream in after.program.streams}
    dropped, problems = set[str](), Problems()
    for statement in parse(source, Problems()):
        name = getattr(statement, "name", None)
        if not isinstance(name, Name) or (folded := name.text.lower()) not in base:
            continue
        if isinstance(statement, tree.DropStream):
            dropped.add(folded)
            continue
        made = made_by(statement, [])
        if made is None or made[0] != "stream":
            continue
        same = folded in now and statement_of(now[folded]) == statement_of(base[folded])
        if folded in dropped or (getattr(statement, "mode", "") == "replace" and not same):
            problems.add(
                "stream-in-use",
                f"stream {base[folded].name} is there, and would be made anew in one text",
                name.span,
                f"DROP STREAM {base[folded].name} in a text of its own: what has come on it is then gone",
            )
    problems.raise_any(source)


def entries_of(c: Compilation) -> tuple[Entry, ...]:
    """Returns the statements of a text that are in effect after all of them are executed."""
    return _applied((), c.source, c, {}).entries


def _applied(
    entries: Sequence[Entry], source: SourceText, c: Compilation, until: dict[str, int]
) -> CatalogueChange:
    standing = {(entry.kind, entry.name.lower()): entry for entry in entries}
    made: dict[str, list[str]] = {"stream": [], "query": []}
    dropped: list[str] = []
    carried: list[str] = []
    problems = Problems()
    spans = list(split(source.text, problems))
    for span in spans:
        written = source.text[span.start : span.end].strip()
        for statement in parse(SourceText(written), problems):
            if isinstance(statement, tree.DropQuery | tree.DropStream):
                kind = "query" if isinstance(statement, tree.DropQuery) else "stream"
                gone = standing.pop((kind, statement.name.text.lower()), None)
                if gone is None:
                    continue  # IF EXISTS
                if kind == "query":
                    dropped.append(gone.name)
                carried.append(written)
                continue
            found = made_by(statement, [name for kind, name in standing if kind == "query"])
            if found is not None:
                kind, name, named, language = found
                if getattr(statement, "mode", "") == "unless" and (kind, name.lower()) in standing:
                    continue
                full = written if named else f"REGISTER QUERY {name} AS {written}"
                options = query_options(_options_of(statement), Problems())
                # Nobody reads one that is replaced, but it may read what was created after it.
                standing.pop((kind, name.lower()), None)
                standing[kind, name.lower()] = Entry(kind, name, full, language, options)
                made[kind].append(name)
                carried.append(full)
    registered = [name for name in made["query"] if ("query", name.lower()) in standing]
    return CatalogueChange(
        c,
        tuple(standing.values()),
        tuple(made["stream"]),
        tuple(dict.fromkeys(registered)),
        tuple(dict.fromkeys(dropped)),
        until,
        carried=tuple(carried),
        is_verbatim=carried == [source.text[span.start : span.end].strip() for span in spans],
    )


def made_by(statement: Statement, queries: list[str]) -> tuple[str, str, bool, str] | None:
    """Returns what a statement defines: kind, name, whether the name is written in it, and
    language."""
    match statement:
        case tree.CreateStream() | tree.CreateStreamAs() | tree.CreateStreamApas():
            return "stream", statement.name.text, True, ""
        case tree.RegisterQuery():
            return "query", statement.name.text, True, "X-SQL"
        case tree.RegisterApas():
            return "query", statement.name.text, True, "APAS"
        case pattern_tree.Pattern() | pattern_tree.Recognize():
            if statement.header is not None and statement.header.verb == "explain":
                return None
            if statement.name is not None:
                kind = "stream" if statement.creates else "query"
                return kind, statement.name.text, True, "PATTERN"
            return "query", _free(queries), False, "PATTERN"
        case tree.Show() | tree.Describe() | tree.Explain():
            return None
    return "query", _free(queries), False, "X-SQL"


def _options_of(statement: Statement) -> tuple[Option, ...]:
    match statement:
        case tree.RegisterQuery():
            return tree.options_of(statement.query)
        case tree.Select() | tree.UnionClause() | tree.With():
            return tree.options_of(statement)
        case tree.RegisterApas() | pattern_tree.Pattern() | pattern_tree.Recognize():
            return statement.options
    return ()


def _free(names: list[str]) -> str:
    number = len(names)
    while f"q{number}" in names:
        number += 1
    return f"q{number}"


def _moved(error: CompileError, text: str, file: str, before: int) -> CompileError:
    """Moves problems to their places in the new text; those of earlier statements, to its
    beginning."""
    end = max(len(text), 1)

    def place(span: Span) -> Span:
        if span.start < before:
            return Span(0, 1)
        start = min(span.start - before, end - 1)
        return Span(start, max(min(span.end - before, end), start + 1))

    moved = [Problem(p.kind, p.message, place(p.span), p.hint) for p in error.problems]
    return CompileError(SourceText(text, file), moved)


def answer_to(after: Compilation, c: Compilation, request: ShowRequest) -> list[str]:
    """Returns the answer to SHOW or EXPLAIN; a query that is only explained is compiled for it."""
    if request.verb == "show":
        return list(request.lines)
    whole = (
        after
        if request.target in after.program.names
        else compile_text(c.source.text, c.source.name, c.options)
    )
    return explain(whole, query=request.target).splitlines()
