"""Text to statements to syntax trees.

A file is first cut at its semicolons, then every statement is parsed by itself, so that
a mistake in one does not hide those in the next. Everything around the statement is
blanked out, not cut off: positions are those of the file. PATTERN statements, whose elements
have semicolons between them, and MATCH_RECOGNIZE have parsers of their own.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.tree import Meta
from lark.visitors import v_args

from seustream.compiler.errors import Problems, SourceText, Span
from seustream.compiler.language import syntax as s
from seustream.compiler.language.parse import (
    MAX_NESTING,
    TOKEN_NAMES,
    library_call,
    parser,
    span_of,
    token_name,
    token_span,
    whole_number,
)
from seustream.compiler.pattern import parse as patterns
from seustream.compiler.pattern import tree as pattern_tree
from seustream.compiler.xsql import tree
from seustream.compiler.xsql.clauses import WindowBuilder
from seustream.compiler.xsql.mistakes import FORMS, MISTAKES

_PIECE = re.compile(
    r"--[^\n]*|/\*(?s:.*?)\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`|(?s:\$\$.*?\$\$)|\$\$|[;()]|'|\"|`|[^-/'\"`;()$]+|-|/|\$"
)


_BEFORE_UNITS = ("INTEGER", "DECIMAL", "STRING")

Statement = tree.Statement | pattern_tree.Statement


def parse(source: SourceText, problems: Problems, start: int = 0) -> list[Statement]:
    """Every statement of a text, from one's beginning on, that could be parsed; the others are reported."""
    statements: list[Statement] = []
    half = re.compile("[\ud800-\udfff]").search(source.text, start)
    if half is not None:
        problems.add("not-text", "half of a character", Span(*half.span()), "files are UTF-8")
    for span in split(source.text, problems, start):
        statement = _parse_statement(source, span, problems)
        if statement is not None:
            statements.append(statement)
    return statements


def tokens(source: SourceText) -> list[tuple[str, str, int, int]]:
    """Every token of a text: terminal, text, line, column. A statement with a character
    that begins no token is listed up to it; `parse` reports it."""
    found = []
    for span in split(source.text, Problems()):
        try:
            lexer = _parser_of(source.text[span.start : span.end])
            before = ""
            for token in lexer.lex(_blanked(source.text, span), dont_ignore=False):
                line, column = source.position(token.start_pos or 0)
                # What is called like a unit is one after a number.
                unit = token.type == "UNIT" and before not in _BEFORE_UNITS
                before = "NAME" if unit else token.type
                found.append((before, str(token), line, column))
        except UnexpectedInput:
            continue
    return found


def split(text: str, problems: Problems, start: int = 0) -> Iterator[Span]:
    """Spans of the statements, without the semicolons; of those that can be parsed."""
    depth = 0
    blank, too_deep = True, False
    code = ""  # of the statement so far, without comments and strings
    for match in _PIECE.finditer(text, start):
        piece = match.group()
        if piece == ";" and patterns.goes_on(code, text[match.end() :]):
            continue
        if not piece.startswith(("--", "/*", "'", '"', "`", "$$")):
            code += piece
        if piece == ";":
            code = ""
            if not (blank or too_deep):
                yield Span(start, match.start())
            start, depth, blank, too_deep = match.end(), 0, True, False
            continue
        if piece in ("'", '"', "`", "$$"):
            what = {"'": "string", '"': "quoted name", "`": "quoted name"}.get(piece, "APAS text")
            twice = "" if piece == "$$" else f"; a {piece} within it is written twice"
            problems.add(
                "unterminated",
                f"this {what} does not end",
                Span(match.start(), match.end()),
                f"close it with {piece}{twice}",
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


def _blanked(text: str, span: Span) -> str:
    """The text up to the statement's end, all before it as spaces."""
    return " " * span.start + text[span.start : span.end]


def _parser_of(text: str) -> Lark:
    """The parser a statement is for."""
    if patterns.is_pattern(text):
        return patterns.parser("pattern")
    return patterns.parser("match_recognize") if patterns.is_recognize(text) else _parser()


def _parse_statement(source: SourceText, span: Span, problems: Problems) -> Statement | None:
    text = source.text[span.start : span.end]
    if patterns.is_pattern(text) or patterns.is_recognize(text):
        return patterns.parse_statement(source, span, problems)
    try:
        parsed = _parser().parse(_blanked(source.text, span))
    except UnexpectedInput as error:
        _report(error, source, span, problems)
        return None
    statement: tree.Statement = _Builder().transform(parsed)
    return statement


def _parser() -> Lark:
    return parser(Path(__file__).with_name("xsql.lark"))


# --- errors -------------------------------------------------------------------


def _report(error: UnexpectedInput, source: SourceText, span: Span, problems: Problems) -> None:
    hint = error.match_examples(
        _read_example, MISTAKES, token_type_match_fallback=True, use_accepts=False
    )
    if hint is None:
        first = next(_written(source, span)).group().split()[0].upper()
        hint = f"the form is {FORMS.get(first, FORMS['SELECT'])}"
    if isinstance(error, UnexpectedCharacters):
        at = error.pos_in_stream or 0
        char = source.text[at]
        if char == "[":
            hint = "strings stand in single quotes, names in double quotes"
        elif char in _INSTEAD:
            hint = f"write {_INSTEAD[char]}"
        problems.add("syntax", f"{char!r} has no meaning here", Span(at, at + 1), hint)
        return
    if not isinstance(error, UnexpectedToken):
        problems.add("syntax", "the statement ends too early", _end_of(source, span), hint)
        return
    token = error.token
    possible = error.accepts or error.expected
    expected = sorted({TOKEN_NAMES.get(name, name) for name in possible})
    wanted = ", ".join(expected[:-1]) + (" or " if len(expected) > 1 else "") + expected[-1]
    if token.type == "$END":
        problems.add(
            "syntax",
            f"the statement ends too early; expected {wanted}",
            _end_of(source, span),
            hint,
        )
        return
    keywords = [name for name in possible if name not in TOKEN_NAMES]
    start = token.start_pos or 0
    written = source.text[span.start : start]
    unit = re.search(r"(?i)\bINTERVAL\s+'[^']*'\s+(\w+)\s*$", written)
    if unit is not None:
        hint = "units are ms, seconds, minutes, hours, days and weeks; a month has no fixed length"
        place = Span(span.start + unit.start(1), span.start + unit.end(1))
        problems.add("unknown-unit", f"there is no unit {unit[1]} of an interval", place, hint)
        return
    # A keyword that is misspelt may have been read as a new name, as FRM in SELECT a FRM R.
    before = re.search(r"(\w{3,})\s+$", written)
    if before is not None and (near := _close(before[1], keywords)):
        place = Span(span.start + before.start(1), span.start + before.end(1))
        said = f"{before[1]!r} is unexpected; expected {wanted}"
        problems.add("syntax", said, place, f"did you mean {near}?")
        return
    close = _close(str(token), keywords)
    if token == "(" and (library := library_call(source.text, start)):
        problems.add("syntax", library.message, library.span, library.hint)
        return
    # A keyword may be the beginning of a word.
    word = re.compile(r"\w*").match(source.text, start)
    end = max(token.end_pos or start + 1, 0 if word is None else word.end())
    problems.add(
        "syntax",
        f"{source.text[start:end]!r} is unexpected; expected {wanted}",
        Span(start, end),
        f"did you mean {close}?" if close and len(token) > 2 else hint,
    )


def _close(word: str, keywords: list[str]) -> str | None:
    """The keyword that a word is nearly; None if it is one."""
    near = difflib.get_close_matches(word.upper(), keywords, n=1, cutoff=0.7)
    return near[0] if near and near[0] != word.upper() else None


_INSTEAD = {"&": "AND", "!": "NOT, and <> for not equal"}


def _read_example(text: str) -> Tree[Any]:
    read = _example(text)
    if isinstance(read, UnexpectedInput):
        raise read.with_traceback(None)
    return read


@functools.cache
def _example(text: str) -> Tree[Any] | UnexpectedInput:
    try:
        return _parser().parse(text)
    except UnexpectedInput as error:
        return error


def _end_of(source: SourceText, span: Span) -> Span:
    """The place of the last thing written in a statement, comments aside."""
    *_, last = _written(source, span)
    end = last.start() + len(last.group().rstrip())
    return Span(end - 1, end)


def _written(source: SourceText, span: Span) -> Iterator[re.Match[str]]:
    """The pieces of a statement that are neither space nor comments."""
    for match in _PIECE.finditer(source.text, span.start, span.end):
        if not match.group().isspace() and not match.group().startswith(("--", "/*")):
            yield match


# --- tree building ------------------------------------------------------------


@v_args(meta=True)
class _Builder(WindowBuilder):
    """Makes the nodes of `tree`, one method a rule of the grammar."""

    def name(self, meta: Meta, c: list[Token]) -> s.Name:
        text = str(c[0])
        if c[0].type == "QUOTED_NAME":
            text = text[1:-1].replace(text[0] * 2, text[0])
        return s.Name(text, token_span(c[0]))

    # definitions
    def create_stream(self, meta: Meta, c: list[Any]) -> tree.CreateStream:
        mode, name, *columns, settings = _mode(c)
        return tree.CreateStream(name, tuple(columns), span_of(meta), settings or (), mode=mode)

    def create_table(self, meta: Meta, c: list[Any]) -> tree.CreateStream:
        mode, name, *columns, settings = _mode(c)
        return tree.CreateStream(name, tuple(columns), span_of(meta), settings or (), True, mode)

    def settings(self, meta: Meta, c: list[Any]) -> tuple[tree.OptionValue, ...]:
        return tuple(c)

    def setting(self, meta: Meta, c: list[Any]) -> tree.OptionValue:
        name, written = c
        value: str | int = str(written)
        if written.type == "INTEGER":
            value = whole_number(written)
        elif written.type == "STRING":
            value = str(written)[1:-1].replace("''", "'")
        return tree.OptionValue(name, value, span_of(meta))

    def create_as(self, meta: Meta, c: list[Any]) -> tree.CreateStreamAs:
        mode, name, query = _mode(c)
        return tree.CreateStreamAs(name, query, span_of(meta), mode)

    def create_apas(self, meta: Meta, c: list[Any]) -> tree.CreateStreamApas:
        mode, name, text = _mode(c)
        return tree.CreateStreamApas(name, _within(text), span_of(meta), mode)

    def drop_stream(self, meta: Meta, c: list[Any]) -> tree.DropStream:
        return tree.DropStream(c[1], span_of(meta), "if" if c[0] else "")

    def column(self, meta: Meta, c: list[Any]) -> tree.ColumnDefinition:
        return tree.ColumnDefinition(c[0], c[1], c[2] is not False, span_of(meta))

    def not_null(self, meta: Meta, c: list[Any]) -> bool:
        return False

    def may_be_null(self, meta: Meta, c: list[Any]) -> bool:
        return True

    # queries and their management
    def register_query(self, meta: Meta, c: list[Any]) -> tree.RegisterQuery:
        mode, name, query = _mode(c)
        return tree.RegisterQuery(name, query, span_of(meta), mode)

    def register_apas(self, meta: Meta, c: list[Any]) -> tree.RegisterApas:
        mode, name, text = _mode(c)
        return tree.RegisterApas(name, _within(text), span_of(meta), mode)

    def drop_query(self, meta: Meta, c: list[Any]) -> tree.DropQuery:
        return tree.DropQuery(c[1], span_of(meta), "if" if c[0] else "")

    def describe(self, meta: Meta, c: list[Any]) -> tree.Describe:
        return tree.Describe(c[0], False, span_of(meta))

    def show_create(self, meta: Meta, c: list[Any]) -> tree.Describe:
        return tree.Describe(c[0], True, span_of(meta))

    def show(self, meta: Meta, c: list[Any]) -> tree.Show:
        return tree.Show(str(c[0]).lower(), span_of(meta))

    def explain(self, meta: Meta, c: list[Any]) -> tree.Explain:
        return tree.Explain(c[0], span_of(meta))

    def select(self, meta: Meta, c: list[Any]) -> tree.Select:
        sources = tuple(part for part in c if isinstance(part, tree.FromPart))
        clauses = {part[0]: part[1] for part in c if isinstance(part, tuple) and part}
        return tree.Select(
            clauses["items"],
            sources,
            clauses.get("where"),
            clauses.get("group_by", ()),
            clauses.get("having"),
            clauses.get("windows", ()),
            clauses.get("options", ()),
            span_of(meta),
            clauses.get("order_by", ()),
            clauses.get("limit"),
            clauses.get("qualify"),
            any(isinstance(part, Token) for part in c),
        )

    def union(self, meta: Meta, c: list[Any]) -> tree.UnionClause:
        return tree.UnionClause(c[0], c[2], span_of(meta), c[1] is None)

    def items(self, meta: Meta, c: list[Any]) -> tuple[str, tuple[tree.SelectItem, ...]]:
        return ("items", tuple(c))

    def every_column(self, meta: Meta, c: list[Any]) -> tree.SelectItem:
        return tree.SelectItem(s.Reference((), span_of(meta), everything=True), None, span_of(meta))

    def item(self, meta: Meta, c: list[Any]) -> tree.SelectItem:
        return tree.SelectItem(c[0], c[1], span_of(meta))

    def from_item(self, meta: Meta, c: list[Any]) -> tree.FromItem:
        stream, as_of, alias = c
        return tree.FromItem(stream, alias, span_of(meta), as_of=as_of)

    def with_query(self, meta: Meta, c: list[Any]) -> tree.With:
        return tree.With(tuple(c[:-1]), c[-1], span_of(meta))

    def common(self, meta: Meta, c: list[Any]) -> tree.Common:
        return tree.Common(c[0], c[1], span_of(meta))

    def derived_item(self, meta: Meta, c: list[Any]) -> tree.FromItem:
        query, alias = c
        alias = alias or s.Name("subquery", span_of(meta))
        hidden = s.Name(f"({alias.text})", alias.span)
        return tree.FromItem(hidden, alias, span_of(meta), query=query)

    def windowed_item(self, meta: Meta, c: list[Any]) -> tree.FromItem:
        (stream, call, partition), alias = c
        return tree.FromItem(stream, alias, span_of(meta), call, partition)

    def windowing(
        self, meta: Meta, c: list[Any]
    ) -> tuple[s.Name, s.FunctionCall, tuple[s.Expression, ...]]:
        function, stream, partition, time, *lengths = c
        return stream, s.FunctionCall(function, (time, *lengths), span_of(meta)), partition

    def partition(self, meta: Meta, c: list[Any]) -> tuple[s.Expression, ...]:
        return tuple(c)

    def qualify(self, meta: Meta, c: list[Any]) -> tuple[str, Any]:
        return ("qualify", c[0])

    def over(self, meta: Meta, c: list[Any]) -> tree.OverCall:
        function, distinct, *arguments, where, keys, order, frame = c
        call = s.FunctionCall(
            function,
            tuple(argument for argument in arguments if argument is not None),
            span_of(meta),
            distinct=distinct is not None,
            where=None if where is None else where[1],
        )
        return self._over(call, keys, order, frame, meta)

    def over_star(self, meta: Meta, c: list[Any]) -> tree.OverCall:
        function, _, where, keys, order, frame = c
        call = s.FunctionCall(
            function, (), span_of(meta), star=True, where=None if where is None else where[1]
        )
        return self._over(call, keys, order, frame, meta)

    def _over(
        self, call: s.FunctionCall, keys: Any, order: Any, frame: Any, meta: Meta
    ) -> tree.OverCall:
        ordered = () if order is None else order[1]
        return tree.OverCall(call, keys or (), ordered, frame, span_of(meta))

    def over_keys(self, meta: Meta, c: list[Any]) -> tuple[s.Expression, ...]:
        return tuple(c)

    def rows_frame(self, meta: Meta, c: list[Any]) -> tree.FrameClause:
        return tree.FrameClause("rows", c[0], span_of(meta))

    def range_frame(self, meta: Meta, c: list[Any]) -> tree.FrameClause:
        return tree.FrameClause("range", c[0], span_of(meta))

    def frame_start(self, meta: Meta, c: list[Any]) -> s.Expression | None:
        return c[0] if c else None

    def current_row(self, meta: Meta, c: list[Any]) -> s.Expression:
        return s.Constant(0, span_of(meta))

    def order_by(self, meta: Meta, c: list[Any]) -> tuple[str, Any]:
        return ("order_by", tuple(c))

    def order_key(self, meta: Meta, c: list[Any]) -> tree.OrderItem:
        expression, direction, nulls = c
        descending = direction is not None and direction.type == "DESC"
        return tree.OrderItem(expression, descending, nulls and nulls.type == "FIRST")

    def limit(self, meta: Meta, c: list[Token]) -> tuple[str, Any]:
        return ("limit", (whole_number(c[0]), span_of(meta)))

    def join_kind(self, meta: Meta, c: list[Token | None]) -> str:
        return "INNER" if c[-1] is None else str(c[-1]).upper()

    def join(self, meta: Meta, c: list[Any]) -> tree.JoinClause:
        left, kind, right, (condition, using) = c
        return tree.JoinClause(left, right, kind, condition, using, span_of(meta))

    def asof_join(self, meta: Meta, c: list[Any]) -> tree.JoinClause:
        left, outer, _, right, (condition, using) = c
        kind = "ASOF" if outer is None else "LEFT_ASOF"
        return tree.JoinClause(left, right, kind, condition, using, span_of(meta))

    def cross_join(self, meta: Meta, c: list[Any]) -> tree.JoinClause:
        return tree.JoinClause(c[0], c[1], "CROSS", None, (), span_of(meta))

    def on(self, meta: Meta, c: list[Any]) -> tuple[s.Expression, tuple[s.Name, ...]]:
        return c[0], ()

    def using(self, meta: Meta, c: list[s.Name]) -> tuple[None, tuple[s.Name, ...]]:
        return None, tuple(c)

    def exists(self, meta: Meta, c: list[Any]) -> tree.Exists:
        return tree.Exists(c[0], span_of(meta))

    def in_query(self, meta: Meta, c: list[Any]) -> tree.InQuery:
        return tree.InQuery(c[0], c[2], c[1] is not None, span_of(meta))

    def where(self, meta: Meta, c: list[Any]) -> tuple[str, Any]:
        return ("where", c[0])

    def group_by(self, meta: Meta, c: list[Any]) -> tuple[str, Any]:
        return ("group_by", tuple(c))

    def having(self, meta: Meta, c: list[Any]) -> tuple[str, Any]:
        return ("having", c[0])

    def windows(self, meta: Meta, c: list[Any]) -> tuple[str, Any]:
        return ("windows", tuple(c))

    def options(self, meta: Meta, c: list[Token]) -> tuple[str, Any]:
        return ("options", tuple(token_name(token) for token in c))

    # names in expressions
    def qualified(self, meta: Meta, c: list[s.Name]) -> s.Reference:
        return s.Reference((c[0], c[1]), span_of(meta))

    def qualified_all(self, meta: Meta, c: list[Any]) -> s.Reference:
        return s.Reference((c[0],), span_of(meta), everything=True)

    def unqualified(self, meta: Meta, c: list[s.Name]) -> s.Reference:
        return s.Reference((c[0],), span_of(meta))


def _mode(c: list[Any]) -> list[Any]:
    """The mode of a statement in place of OR REPLACE and IF NOT EXISTS, and what follows them."""
    replacing, unless, *rest = c
    return ["replace" if replacing else "unless" if unless else "", *rest]


def _within(text: Token) -> Span:
    """The place of what stands between $$."""
    return Span((text.start_pos or 0) + 2, (text.end_pos or 0) - 2)
