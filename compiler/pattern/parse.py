"""Text of one statement to its syntax tree, for PATTERN and for MATCH_RECOGNIZE."""

from __future__ import annotations

import functools
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive, v_args

from compiler.errors import Problems, Source, Span
from compiler.pattern import tree
from compiler.xsql.tree import Name

_BLANK = r"(?:\s|--[^\n]*(?:\n|$))*"
_HEADER = rf"(?:REGISTER\s+QUERY\s+\w+\s+AS\s+|CREATE\s+STREAM\s+\w+\s+AS\s+|EXPLAIN\s+)?{_BLANK}"
_IS_PATTERN = re.compile(rf"{_BLANK}{_HEADER}PATTERN\b", re.IGNORECASE)
_IS_RECOGNIZE = re.compile(
    rf"{_BLANK}{_HEADER}SELECT\b[^;]*?\bFROM\s+\w+\s+MATCH_RECOGNIZE\b", re.IGNORECASE
)
_RETURN = re.compile(r"\bRETURN\b", re.IGNORECASE)
_NEXT_STATEMENT = re.compile(
    rf"{_BLANK}(?:(?:CREATE|DROP)\s+STREAM\b|(?:REGISTER|DROP)\s+QUERY\b"
    r"|SHOW\s+(?:STREAMS|QUERIES)\b|(?:EXPLAIN\s+)?SELECT\b[^;]*\bFROM\b|(?:EXPLAIN\s+)?PATTERN\b|$)",
    re.IGNORECASE,
)

FORM = (
    "PATTERN type alias; !type; type+ alias [FROM stream] [WHERE condition] WITHIN n unit"
    " [USING strategy] RETURN columns"
)
FORM_RECOGNIZE = (
    "SELECT * FROM stream MATCH_RECOGNIZE (ORDER BY ts MEASURES ... PATTERN (A B+) DEFINE ...)"
)


def is_pattern(code: str) -> bool:
    """Whether a statement is a PATTERN statement."""
    return _IS_PATTERN.match(code) is not None


def is_recognize(code: str) -> bool:
    """Whether a statement selects from MATCH_RECOGNIZE."""
    return _IS_RECOGNIZE.match(code) is not None


def goes_on(code: str, rest: str) -> bool:
    """Whether the semicolon between `code`, the statement so far, and `rest` separates elements
    of a sequence: those before RETURN do, unless a new statement follows."""
    if not is_pattern(code) or _RETURN.search(code):
        return False
    return _NEXT_STATEMENT.match(rest) is None


def parse_statement(source: Source, span: Span, problems: Problems) -> tree.Statement | None:
    """The statement at `span`; None if it is none, which is reported."""
    text = " " * span.start + source.text[span.start : span.end]
    kind = "pattern" if is_pattern(source.text[span.start : span.end]) else "match_recognize"
    try:
        parsed = parser(kind).parse(text)
    except UnexpectedInput as error:
        _report(error, source, span, problems, FORM if kind == "pattern" else FORM_RECOGNIZE)
        return None
    builder = _PatternBuilder(problems) if kind == "pattern" else _RecognizeBuilder(problems)
    statement: tree.Statement = builder.transform(parsed)
    return statement


@functools.cache
def parser(kind: str) -> Lark:
    here = Path(__file__)
    grammar = "".join(
        here.with_name(f"{name}.lark").read_text(encoding="utf-8") for name in (kind, "expressions")
    )
    return Lark(grammar, parser="lalr", propagate_positions=True, maybe_placeholders=True)


# --- errors -------------------------------------------------------------------

_TOKEN_NAMES = {
    "NAME": "a name",
    "COLUMN": "a name",
    "INT": "a number",
    "NUMBERLIT": "a number",
    "PERCENT": "a percentage",
    "PARAM": "a parameter",
    "STRING": "a string",
    "CMP": "a comparison",
    "SIGN": "'+' or '-'",
    "STAR": "'*'",
    "MUL": "'/'",
    "BANG": "'!'",
    "COMMA": "','",
    "LEFT": "'('",
    "LPAR": "'('",
    "RPAR": "')'",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "SEMICOLON": "';'",
    "CIRCUMFLEX": "'^'",
    "INDEX": "an index",
    "DOT": "'.'",
    "$END": "the end of the statement",
}


def _report(
    error: UnexpectedInput, source: Source, span: Span, problems: Problems, form: str
) -> None:
    hint = f"the form is {form}"
    if isinstance(error, UnexpectedCharacters):
        at = error.pos_in_stream or 0
        char = source.text[at]
        problems.add("P001", f"P001 {char!r} has no meaning here", Span(at, at + 1), hint)
        return
    if not isinstance(error, UnexpectedToken):
        problems.add("P001", "P001 the statement ends too early", _end(source, span), hint)
        return
    token = error.token
    expected = sorted({_TOKEN_NAMES.get(n, n) for n in error.accepts or error.expected})
    wanted = ", ".join(expected[:-1]) + (" or " if len(expected) > 1 else "") + expected[-1]
    if token.type == "$END":
        text = f"P001 the statement ends too early; expected {wanted}"
        problems.add("P001", text, _end(source, span), hint)
        return
    start = token.start_pos or 0
    text = f"P001 {str(token)!r} is unexpected; expected {wanted}"
    problems.add("P001", text, Span(start, token.end_pos or start + 1), hint)


def _end(source: Source, span: Span) -> Span:
    end = len(source.text[: span.end].rstrip())
    return Span(end - 1, end)


# --- tree building ------------------------------------------------------------


def _span(meta: Meta) -> Span:
    return Span(meta.start_pos, meta.end_pos) if not meta.empty else Span(0, 0)


def _at(token: Token) -> Span:
    return Span(token.start_pos or 0, token.end_pos or 0)


def _name(token: Token) -> Name:
    return Name(str(token), _at(token))


def _names(c: list[Any]) -> tuple[Name, ...]:
    return tuple(
        _name(token) for token in c if token is not None and token.type in ("NAME", "COLUMN")
    )


_OPERATORS = {"≤": "<=", "≥": ">=", "≠": "<>", "!=": "<>", "==": "="}


@v_args(meta=True)
class _Builder(Transformer_NonRecursive[Token, Any]):
    """The rules both grammars have."""

    def __init__(self, problems: Problems) -> None:
        super().__init__()
        self._problems = problems

    def register(self, meta: Meta, c: list[Token]) -> tree.Header:
        return tree.Header("register", _name(c[0]), _span(meta))

    def create(self, meta: Meta, c: list[Token]) -> tree.Header:
        return tree.Header("create", _name(c[0]), _span(meta))

    def explain(self, meta: Meta, c: list[Token]) -> tree.Header:
        return tree.Header("explain", None, _span(meta))

    def item(self, meta: Meta, c: list[Any]) -> tree.Item:
        return tree.Item(c[0], None if c[1] is None else _name(c[1]), _span(meta))

    def partition(self, meta: Meta, c: list[Token]) -> tuple[str, tuple[Name, ...]]:
        return ("partition", _names(c))

    def between(self, meta: Meta, c: list[Any]) -> tree.Quantifier:
        most = None if c[2] is None else int(c[2])
        return tree.Quantifier(int(c[0]), most, _span(meta))

    def one_or_more(self, meta: Meta, c: list[Token]) -> tree.Quantifier:
        if str(c[0]) != "+":
            self._problems.add(
                "P001",
                f"P001 {str(c[0])!r} is no quantifier",
                _at(c[0]),
                "a closure is written +, {k}, {k,} or {k,m}",
            )
        return tree.Quantifier(1, None, _span(meta))

    def at_least(self, meta: Meta, c: list[Token]) -> tree.Quantifier:
        return tree.Quantifier(int(c[0]), None, _span(meta))

    # expressions
    def expr(self, meta: Meta, c: list[Any]) -> tree.Expression:
        return tree.Connective("OR", tuple(c), _span(meta))

    def and_(self, meta: Meta, c: list[Any]) -> tree.Expression:
        return tree.Connective("AND", tuple(c), _span(meta))

    def negation(self, meta: Meta, c: list[Any]) -> tree.Not:
        return tree.Not(c[-1], _span(meta))

    def comparison(self, meta: Meta, c: list[Any]) -> tree.Comparison:
        operator = _OPERATORS.get(str(c[1]), str(c[1]))
        return tree.Comparison(operator, c[0], c[2], _span(meta))

    def in_list(self, meta: Meta, c: list[Any]) -> tree.InList:
        return tree.InList(c[0], tuple(c[2:]), c[1] is not None, _span(meta))

    def is_null(self, meta: Meta, c: list[Any]) -> tree.IsNull:
        return tree.IsNull(c[0], c[1] is not None, _span(meta))

    def arithmetic(self, meta: Meta, c: list[Any]) -> tree.Arithmetic:
        operator = "*" if str(c[1]) == "×" else str(c[1])
        return tree.Arithmetic(operator, c[0], c[2], _at(c[1]), _span(meta))

    def signed(self, meta: Meta, c: list[Any]) -> tree.Expression:
        return tree.Signed(str(c[0]), c[1], _span(meta))

    def percent(self, meta: Meta, c: list[Token]) -> tree.Expression:
        text = str(c[0])[:-1]
        if text.startswith(":"):
            return tree.Parameter(text[1:], True, _span(meta))
        return tree.Literal(Fraction(text) / 100, _span(meta))

    def number(self, meta: Meta, c: list[Token]) -> tree.Literal:
        return tree.Literal(Fraction(str(c[0])), _span(meta))

    def integer(self, meta: Meta, c: list[Token]) -> tree.Literal:
        return tree.Literal(int(c[0]) if len(c[0]) < 400 else 10**400, _span(meta))

    def string(self, meta: Meta, c: list[Token]) -> tree.Literal:
        return tree.Literal(str(c[0])[1:-1].replace("''", "'"), _span(meta))

    def true(self, meta: Meta, c: list[Token]) -> tree.Literal:
        return tree.Literal(True, _span(meta))

    def false(self, meta: Meta, c: list[Token]) -> tree.Literal:
        return tree.Literal(False, _span(meta))

    def null(self, meta: Meta, c: list[Token]) -> tree.Literal:
        return tree.Literal(None, _span(meta))

    def parameter(self, meta: Meta, c: list[Token]) -> tree.Parameter:
        return tree.Parameter(str(c[0])[1:], False, _span(meta))

    def parenthesised(self, meta: Meta, c: list[Any]) -> tree.Expression:
        # The parser's children are untyped.
        return c[0]  # type: ignore[no-any-return]  # lark gives Any

    def call(self, meta: Meta, c: list[Any]) -> tree.Call:
        attribute = None if c[-1] is None else _name(c[-1])
        arguments = tuple(argument for argument in c[1:-1] if argument is not None)
        return tree.Call(_name(c[0]), arguments, attribute, _span(meta))

    def reference(self, meta: Meta, c: list[Any]) -> tree.Reference:
        index = None if c[1] is None else re.sub(r"\s", "", str(c[1])[1:-1])
        attribute = None if c[2] is None else _name(c[2])
        return tree.Reference(_name(c[0]), index, attribute, _span(meta))


@v_args(meta=True)
class _PatternBuilder(_Builder):
    def start(self, meta: Meta, c: list[Any]) -> tree.Pattern:
        header, elements, source, partition, where, within, strategy, after, output = c
        return tree.Pattern(
            header,
            elements,
            source,
            () if partition is None else partition[1],
            where,
            within,
            strategy,
            after or "no_skip",
            output,
            _span(meta),
        )

    def source(self, meta: Meta, c: list[Any]) -> tree.From:
        return tree.From(_name(c[0]), None if c[1] is None else _name(c[1]))

    def sequence(self, meta: Meta, c: list[Any]) -> tuple[tree.Element, ...]:
        return tuple(c)

    def _element(self, meta: Meta, c: list[Any], negated: bool) -> tree.Element:
        kind, quantifier, alias = c
        name = None if kind.type == "ANY" else str(kind)
        return tree.Element(
            name, quantifier, None if alias is None else _name(alias), negated, _span(meta)
        )

    def positive(self, meta: Meta, c: list[Any]) -> tree.Element:
        return self._element(meta, c, False)

    def negated(self, meta: Meta, c: list[Any]) -> tree.Element:
        return self._element(meta, c[1:], True)

    def type(self, meta: Meta, c: list[Token]) -> Token:
        return c[0]

    def where(self, meta: Meta, c: list[Any]) -> tree.Expression:
        return c[0]  # type: ignore[no-any-return]  # lark gives Any

    def within(self, meta: Meta, c: list[Token]) -> tree.Within:
        return tree.Within(Fraction(str(c[0])), _name(c[1]), _span(meta))

    def using(self, meta: Meta, c: list[Any]) -> tuple[str, Span]:
        return c[0]  # type: ignore[no-any-return]  # lark gives Any

    def any(self, meta: Meta, c: list[Any]) -> tuple[str, Span]:
        return ("any", _span(meta))

    def any_group(self, meta: Meta, c: list[Any]) -> tuple[str, Span]:
        return ("any_group", _span(meta))

    def any_subsets(self, meta: Meta, c: list[Any]) -> tuple[str, Span]:
        return ("any_subsets", _span(meta))

    def next(self, meta: Meta, c: list[Any]) -> tuple[str, Span]:
        return ("next", _span(meta))

    def strict(self, meta: Meta, c: list[Any]) -> tuple[str, Span]:
        return ("strict", _span(meta))

    def no_skip(self, meta: Meta, c: list[Any]) -> str:
        return "no_skip"

    def skip_to_next(self, meta: Meta, c: list[Any]) -> str:
        return "skip_to_next"

    def skip_past_last(self, meta: Meta, c: list[Any]) -> str:
        return "skip_past_last"

    def everything(self, meta: Meta, c: list[Any]) -> None:
        return None

    def items(self, meta: Meta, c: list[Any]) -> tuple[tree.Item, ...]:
        return tuple(part for part in c if isinstance(part, tree.Item))


@v_args(meta=True)
class _RecognizeBuilder(_Builder):
    def start(self, meta: Meta, c: list[Any]) -> tree.Recognize:
        header, columns, stream, partition, order, measures, rows, after, parts, within, define = c[
            :11
        ]
        unsupported = [part for part in parts if isinstance(part, tree.Unsupported)]
        if isinstance(rows, tree.Unsupported):
            unsupported.append(rows)
        return tree.Recognize(
            header,
            columns,
            _name(stream),
            () if partition is None else partition[1],
            order or (),
            measures or (),
            after or ("past_last", None),
            tuple(part for part in parts if isinstance(part, tree.Element)),
            within,
            define or (),
            tuple(unsupported),
            _span(meta),
        )

    def everything(self, meta: Meta, c: list[Any]) -> None:
        return None

    def columns(self, meta: Meta, c: list[Token]) -> tuple[Name, ...]:
        return _names(c)

    def order(self, meta: Meta, c: list[Any]) -> tuple[tuple[Name, str], ...]:
        found: list[tuple[Name, str]] = []
        for token in c:
            if token is None or token.type == "COMMA":
                continue
            if token.type == "ORDER":
                found[-1] = (found[-1][0], str(token).lower())
            else:
                found.append((_name(token), "asc"))
        return tuple(found)

    def measures(self, meta: Meta, c: list[Any]) -> tuple[tree.Item, ...]:
        return tuple(part for part in c if isinstance(part, tree.Item))

    def one_row(self, meta: Meta, c: list[Any]) -> None:
        return None

    def all_rows(self, meta: Meta, c: list[Any]) -> tree.Unsupported:
        return tree.Unsupported("ALL ROWS PER MATCH", _span(meta))

    def past_last(self, meta: Meta, c: list[Any]) -> tuple[str, Name | None]:
        return ("past_last", None)

    def to_next(self, meta: Meta, c: list[Any]) -> tuple[str, Name | None]:
        return ("to_next", None)

    def to_first(self, meta: Meta, c: list[Token]) -> tuple[str, Name | None]:
        return ("to_first", _name(c[0]))

    def to_last(self, meta: Meta, c: list[Token]) -> tuple[str, Name | None]:
        return ("to_last", _name(c[0]))

    def row_pattern(self, meta: Meta, c: list[Any]) -> list[Any]:
        return c

    def row_element(self, meta: Meta, c: list[Any]) -> tree.Element | tree.Unsupported:
        name, quantifier, reluctant = c
        if isinstance(quantifier, tree.Unsupported):
            return quantifier
        if reluctant is not None:
            return tree.Unsupported("a reluctant quantifier", _at(reluctant))
        return tree.Element(None, quantifier, _name(name), False, _span(meta))

    def unsupported(self, meta: Meta, c: list[Any]) -> tree.Unsupported:
        first = c[0]
        what = {"BAR": "alternation", "LEFT": "a group", "EXCLUDE": "exclusion"}
        return tree.Unsupported(what.get(first.type, "PERMUTE"), _at(first))

    def maybe_none(self, meta: Meta, c: list[Token]) -> tree.Unsupported:
        return tree.Unsupported(f"the quantifier {c[0]}", _at(c[0]))

    def exactly(self, meta: Meta, c: list[Token]) -> tree.Quantifier:
        return tree.Quantifier(int(c[0]), int(c[0]), _span(meta))

    def within(self, meta: Meta, c: list[Token]) -> tree.Within:
        text = str(c[0]).strip("'")
        try:
            size = Fraction(text)
        except ValueError:
            self._problems.add(
                "P011", f"P011 {c[0]} is no number", _at(c[0]), "INTERVAL '10' MINUTE"
            )
            size = Fraction(1)
        return tree.Within(size, _name(c[1]), _span(meta))

    def define(self, meta: Meta, c: list[Any]) -> tuple[tuple[Name, tree.Expression], ...]:
        return tuple(part for part in c if isinstance(part, tuple))

    def definition(self, meta: Meta, c: list[Any]) -> tuple[Name, tree.Expression]:
        return (_name(c[0]), c[1])
