"""Splits a text into statements, since those of all languages are in one file.

before  CREATE STREAM R (a int); REGISTER QUERY q FOR 1 hour AS SELECT a FROM R;
after   the spans of two statements, and that q ends after 3,600,000 ms
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

from seustream.compiler.errors import Problems, SourceText, Span, suggest
from seustream.compiler.language.parse import MAX_NESTING
from seustream.compiler.language.types import MILLISECONDS, read_interval
from seustream.compiler.pattern import parse as patterns

_PIECE = re.compile(
    r"--[^\n]*|/\*(?s:.*?)\*/|/\*|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`|(?s:\$\$.*?\$\$)|\$\$|[;()]|'|\"|`|[^-/'\"`;()$]+|-|/|\$"
)

_FOR = re.compile(
    r"(?P<head>(?:\s|--[^\n]*(?:\n|$)|/\*(?s:.*?)\*/)*REGISTER\s+(?:OR\s+REPLACE\s+)?QUERY\s+(?:IF\s+NOT\s+EXISTS\s+)?"
    r"(?P<name>\w+|\"(?:[^\"]|\"\")+\")\s)"
    r"(?P<for>\s*FOR\s+(?:INTERVAL\s*)?(?P<size>'[^']*'|[\d.]+)\s*(?P<unit>[a-z]*)\s)(?=\s*AS\b)",
    re.IGNORECASE,
)

_LONGER = "a whole number of milliseconds above 0, such as FOR 1 hour"


def durations(text: str, problems: Problems, start: int = 0) -> tuple[str, dict[str, int]]:
    """Returns a text with its FOR clauses blanked, and the milliseconds for which each such query
    is registered."""
    found: dict[str, int] = {}
    if not re.search(r"\sFOR\s", text[start:], re.IGNORECASE):
        return text, found
    for span in split(text, Problems(), start):
        match = _FOR.match(text, span.start, span.end)
        if match is None:
            continue
        length_of = f"{match['size']} {match['unit']}".replace("'", "").strip()
        length = read_interval(length_of)
        if length is None or length <= timedelta(0):
            unknown = length is None and match["unit"].lower() not in MILLISECONDS
            problems.add(
                "unknown-unit",
                f"FOR {length_of} is no time a query can last",
                Span(match.start("size"), match.end("unit")),
                suggest(match["unit"], MILLISECONDS, "units") if unknown else _LONGER,
            )
            length = timedelta(0)
        name = match["name"]
        name = name[1:-1].replace('""', '"') if name.startswith('"') else name
        found[name] = length // timedelta(milliseconds=1)
        begin, end = match.span("for")
        text = text[:begin] + " " * (end - begin) + text[end:]
    return text, found


def split(text: str, problems: Problems, start: int = 0) -> Iterator[Span]:
    """Yields the spans of the statements that can be parsed, without the semicolons."""
    depth = 0
    blank, too_deep = True, False
    code = ""  # of the statement so far, without comments and strings
    for match in _PIECE.finditer(text, start):
        piece = match.group()
        if piece == ";" and patterns.goes_on(code, text[match.end() :]):
            continue
        if piece.startswith(('"', "`")):
            code += " _ "  # a name, whatever it is
        elif not piece.startswith(("--", "/*", "'", "$$")):
            code += piece
        if piece == ";":
            code = ""
            if not (blank or too_deep):
                yield Span(start, match.start())
            start, depth, blank, too_deep = match.end(), 0, True, False
            continue
        if piece in ("'", '"', "`", "$$", "/*"):
            what = {"'": "string", '"': "quoted name", "`": "quoted name", "/*": "comment"}
            twice = "" if len(piece) == 2 else f"; a {piece} within it is written twice"
            problems.add(
                "unterminated",
                f"this {what.get(piece, 'APAS text')} does not end",
                Span(match.start(), match.end()),
                f"close it with {'*/' if piece == '/*' else piece}{twice}",
            )
            return
        if piece == "(":
            depth += 1
            if depth > MAX_NESTING and not too_deep:
                too_deep = True
                problems.add(
                    "too-deep",
                    f"more than {MAX_NESTING} parentheses are open here",
                    Span(match.start(), match.end()),
                    "write the condition flatter",
                )
        elif piece == ")":
            depth -= 1
        if not piece.startswith(("--", "/*")) and not piece.isspace():
            blank = False
    if not (blank or too_deep):
        yield Span(start, len(text))


def end_of(source: SourceText, span: Span) -> Span:
    """Returns the place of the last token of a statement, comments aside."""
    *_, last = written(source, span)
    end = last.start() + len(last.group().rstrip())
    return Span(end - 1, end)


def written(source: SourceText, span: Span) -> Iterator[re.Match[str]]:
    """Yields the pieces of a statement that are neither space nor comments."""
    for match in _PIECE.finditer(source.text, span.start, span.end):
        if not match.group().isspace() and not match.group().startswith(("--", "/*")):
            yield match
