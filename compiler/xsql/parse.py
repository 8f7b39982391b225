"""Splits a text into statements and parses these into syntax trees.

A file is first cut at its semicolons, then every statement is parsed by itself, so that a mistake
in one does not hide those in the next. Everything around the statement is blanked out, not cut off,
so positions are those of the file. PATTERN statements, whose elements are separated by semicolons,
and MATCH_RECOGNIZE have parsers of their own.
"""

from __future__ import annotations

import re
from typing import Any

from lark import Lark, Token
from lark.exceptions import UnexpectedInput
from lark.tree import Meta
from lark.visitors import v_args

from seustream.compiler.errors import Problems, SourceText, Span
from seustream.compiler.language import syntax as s
from seustream.compiler.language.parse import span_of, token_name, whole_number
from seustream.compiler.pattern import parse as patterns
from seustream.compiler.pattern import tree as pattern_tree
from seustream.compiler.xsql import tree
from seustream.compiler.xsql.clauses import WindowBuilder
from seustream.compiler.xsql.lengths import in_order
from seustream.compiler.xsql.mistakes import report, sql_parser
from seustream.compiler.xsql.statements import durations, split

_BEFORE_UNITS = ("INTEGER", "DECIMAL", "STRING")

Statement = tree.Statement | pattern_tree.Statement


def parse(source: SourceText, problems: Problems, start: int = 0) -> list[Statement]:
    """Returns every statement of a text, from `start` on, that could be parsed; reports the others."""
    statements: list[Statement] = []
    plain, until = durations(source.text, problems, start)
    if until:
        source = SourceText(plain, source.name)
    half = re.compile("[\ud800-\udfff]").search(source.text, start)
    if half is not None:
        problems.add("not-text", "half of a character", Span(*half.span()), "files are UTF-8")
    for span in split(source.text, problems, start):
        statement = _parse_statement(source, span, problems)
        if statement is not None:
            statements.append(statement)
    return statements


def tokens(source: SourceText) -> list[tuple[str, str, int, int]]:
    """Returns every token of a text: terminal, text, line, column. A statement with a character
    that begins no token is listed up to that character; `parse` reports it."""
    found = []
    for span in split(source.text, Problems()):
        try:
            lexer = _parser_of(source.text[span.start : span.end])
            before = ""
            for token in lexer.lex(_blanked(source.text, span), dont_ignore=False):
                line, column = source.position(token.start_pos or 0)
                # A word that is also a unit is a unit only after a number.
                unit = token.type == "UNIT" and before not in _BEFORE_UNITS
                before = "NAME" if unit else token.type
                found.append((before, str(token), line, column))
        except UnexpectedInput:
            continue
    return found


def _blanked(text: str, span: Span) -> str:
    """Returns the text up to the statement's end, with everything before it as spaces."""
    return " " * span.start + text[span.start : span.end]


def _parser_of(text: str) -> Lark:
    """Returns the parser for a statement."""
    if patterns.is_pattern(text):
        return patterns.parser("pattern")
    return patterns.parser("match_recognize") if patterns.is_recognize(text) else sql_parser()


def _parse_statement(source: SourceText, span: Span, problems: Problems) -> Statement | None:
    text = source.text[span.start : span.end]
    if patterns.is_pattern(text) or patterns.is_recognize(text):
        return patterns.parse_statement(source, span, problems)
    try:
        parsed = sql_parser().parse(_blanked(source.text, span))
    except UnexpectedInput as error:
        report(error, source, span, problems)
        return None
    statement: tree.Statement = _Builder().transform(parsed)
    return statement


# --- tree building ------------------------------------------------------------


@v_args(meta=True)
class _Builder(WindowBuilder):
    """Builds the nodes of `tree`, one method per grammar rule."""

    def name(self, meta: Meta, c: list[Token]) -> s.Name:
        return token_name(c[0])

    # definitions
    def create_stream(self, meta: Meta, c: list[Any]) -> tree.CreateStream:
        mode, name, *columns, bound, settings = _mode(c)
        given = (*(bound or ()), *(settings or ()))
        return tree.CreateStream(name, tuple(columns), span_of(meta), given, mode=mode)

    def time_bound(self, meta: Meta, c: list[Any]) -> tuple[s.Option, ...]:
        """Translates `WATERMARK FOR t AS t - INTERVAL '5' SECOND` to the equivalent options."""
        _, column, bound = c
        if isinstance(bound, s.OperatorCall) and bound.operator == "-" and len(bound.operands) == 2:
            bound, by = bound.operands
        else:
            by = s.Typed(column, "0 s", None, span_of(meta))
        length: str | int = "nothing"
        if isinstance(by, s.Typed):
            length = by.text if by.unit is None else f"{by.text} {by.unit.text}"
        elif isinstance(by, s.Quantity):
            length = f"{float(by.number):.6f} {by.unit.text}"
        elif isinstance(by, s.Constant) and isinstance(by.value, int):
            length = by.value
        if not isinstance(bound, s.Reference) or str(bound).lower() != column.text.lower():
            length = "nothing"
        at = span_of(meta)
        names = ("time", column.text), ("max_out_of_orderness", length)
        return tuple(s.Option(s.Name(name, at), value, at) for name, value in names)

    def create_table(self, meta: Meta, c: list[Any]) -> tree.CreateStream:
        mode, name, *columns, settings = _mode(c)
        return tree.CreateStream(name, tuple(columns), span_of(meta), settings or (), True, mode)

    def settings(self, meta: Meta, c: list[Any]) -> tuple[s.Option, ...]:
        return tuple(c)

    def create_as(self, meta: Meta, c: list[Any]) -> tree.CreateStreamAs:
        mode, name, query = _mode(c)
        return tree.CreateStreamAs(name, query, span_of(meta), mode)

    def create_apas(self, meta: Meta, c: list[Any]) -> tree.CreateStreamApas:
        mode, name, text, options = _mode(c)
        given = () if options is None else options[1]
        return tree.CreateStreamApas(name, _within(text), given, span_of(meta), mode)

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
        mode, name, text, options = _mode(c)
        given = () if options is None else options[1]
        return tree.RegisterApas(name, _within(text), given, span_of(meta), mode)

    def drop_query(self, meta: Meta, c: list[Any]) -> tree.DropQuery:
        return tree.DropQuery(c[1], span_of(meta), "if" if c[0] else "")

    def describe(self, meta: Meta, c: list[Any]) -> tree.Describe:
        return tree.Describe(c[0], False, span_of(meta))

    def show_create(self, meta: Meta, c: list[Any]) -> tree.Describe:
        return tree.Describe(c[0], True, span_of(meta))

    def show_create_query(self, meta: Meta, c: list[Any]) -> tree.Describe:
        return tree.Describe(c[0], True, span_of(meta), True)

    def show(self, meta: Meta, c: list[Any]) -> tree.Show:
        return tree.Show(str(c[0]).lower().replace("tables", "streams"), span_of(meta))

    def explain(self, meta: Meta, c: list[Any]) -> tree.Explain:
        return tree.Explain(c[1], span_of(meta), c[0] is not None)

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
            any(isinstance(part, Token) and part.type == "DISTINCT" for part in c),
            clauses.get("emit"),
            clauses.get("named_windows", ()),
        )

    def union(self, meta: Meta, c: list[Any]) -> tree.UnionClause:
        return tree.UnionClause(c[0], c[2], span_of(meta), c[1] is None or c[1].type == "DISTINCT")

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
        function, _, stream, partition, _, time, *lengths = c
        arguments = in_order(function[0].text, lengths)
        return stream, s.FunctionCall(function, (time, *arguments), span_of(meta)), partition

    def length(self, meta: Meta, c: list[Any]) -> tuple[str | None, s.Expression]:
        return c[0], c[1]

    def called(self, meta: Meta, c: list[Token]) -> str:
        return str(c[0]).lower()

    def partition(self, meta: Meta, c: list[Any]) -> tuple[s.Expression, ...]:
        return tuple(c)

    def qualify(self, meta: Meta, c: list[Any]) -> tuple[str, Any]:
        return ("qualify", c[0])

    def over(self, meta: Meta, c: list[Any]) -> tree.OverCall:
        function, distinct, *arguments, where, window = c
        call = s.FunctionCall(
            function,
            tuple(argument for argument in arguments if argument is not None),
            span_of(meta),
            distinct=distinct is not None,
            where=None if where is None else where[1],
        )
        return tree.OverCall(call, window, span_of(meta))

    def over_star(self, meta: Meta, c: list[Any]) -> tree.OverCall:
        function, _, where, window = c
        call = s.FunctionCall(
            function, (), span_of(meta), star=True, where=None if where is None else where[1]
        )
        return tree.OverCall(call, window, span_of(meta))

    def over_frame(self, meta: Meta, c: list[Any]) -> tree.OverWindow:
        keys, order, frame = c
        return tree.OverWindow(keys or (), () if order is None else order[1], frame)

    def named_window(self, meta: Meta, c: list[Any]) -> tuple[s.Name, tree.OverWindow]:
        return c[0], c[1]

    def named_windows(self, meta: Meta, c: list[Any]) -> tuple[str, Any]:
        return ("named_windows", tuple(c))

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

    def limit(self, meta: Meta, c: list[Token | None]) -> tuple[str, Any]:
        if c[-1] is None:  # FETCH FIRST ROW ONLY
            return ("limit", (1, span_of(meta)))
        return ("limit", None if c[-1].type == "ALL" else (whole_number(c[-1]), span_of(meta)))

    def join_kind(self, meta: Meta, c: list[Token | None]) -> str:
        return "INNER" if c[-1] is None else str(c[-1]).upper()

    def join(self, meta: Meta, c: list[Any]) -> tree.JoinClause:
        left, kind, right, (condition, using) = c
        return tree.JoinClause(left, right, kind, condition, using, span_of(meta))

    def asof_join(self, meta: Meta, c: list[Any]) -> tree.JoinClause:
        left, outer, _, right, (condition, using) = c
        kind = "ASOF" if outer is None else "LEFT_ASOF"
        return tree.JoinClause(left, right, kind, condition, using, span_of(meta))

    def asof_left_join(self, meta: Meta, c: list[Any]) -> tree.JoinClause:
        left, _, _, right, (condition, using) = c
        return tree.JoinClause(left, right, "LEFT_ASOF", condition, using, span_of(meta))

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

    def emit(self, meta: Meta, c: list[Any]) -> tuple[str, Span]:
        return ("emit", span_of(meta))

    def options(self, meta: Meta, c: list[s.Option]) -> tuple[str, Any]:
        return ("options", tuple(c))

    # names in expressions
    def qualified(self, meta: Meta, c: list[s.Name]) -> s.Reference:
        return s.Reference((c[0], c[1]), span_of(meta))

    def qualified_all(self, meta: Meta, c: list[Any]) -> s.Reference:
        return s.Reference((c[0],), span_of(meta), everything=True)

    def unqualified(self, meta: Meta, c: list[s.Name]) -> s.Reference:
        return s.Reference((c[0],), span_of(meta))


def _mode(c: list[Any]) -> list[Any]:
    """Replaces OR REPLACE and IF NOT EXISTS at the front by the mode of the statement."""
    replacing, unless, *rest = c
    return ["replace" if replacing else "unless" if unless else "", *rest]


def _within(text: Token) -> Span:
    """Returns the place of the text between $$."""
    return Span((text.start_pos or 0) + 2, (text.end_pos or 0) - 2)
