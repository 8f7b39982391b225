"""Compiles any statement of this front end to a query: the entry point for other packages."""

from __future__ import annotations

from collections.abc import Mapping

from seustream.compiler.catalogue import Stream
from seustream.compiler.errors import Problems, SourceText, Span
from seustream.compiler.language.bind import ParameterValue
from seustream.compiler.pattern import ir, tree
from seustream.compiler.pattern.analyse import PatternContext, analyse
from seustream.compiler.pattern.parse import parse_statement
from seustream.compiler.pattern.recognize import recognize


def bind(statement: tree.Statement, name: str, context: PatternContext) -> ir.MatchQuery:
    if isinstance(statement, tree.Recognize):
        return recognize(statement, name, context)
    return analyse(statement, name, context)


def compile_pattern(
    text: str,
    *streams: Stream,
    name: str = "q0",
    parameters: Mapping[str, ParameterValue] | None = None,
    bounded: bool = False,
) -> ir.MatchQuery:
    """Compiles one PATTERN or MATCH_RECOGNIZE statement over some streams. Raises `CompileError`
    with all problems. `bounded` allows WITHIN to be left out."""
    source, problems = SourceText(text), Problems()
    end = len(text.rstrip().removesuffix(";"))
    statement = parse_statement(source, Span(0, end), problems)
    problems.raise_any(source)
    assert statement is not None
    known = {stream.name.lower(): stream for stream in streams}
    query = bind(
        statement, name, PatternContext(source, problems, known, parameters or {}, bounded)
    )
    problems.raise_any(source)
    return query
