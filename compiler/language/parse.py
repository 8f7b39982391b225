"""Parses text to the syntax tree of expressions: the grammar that all languages share, and its
builder."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import lark
from lark import Lark, Token
from lark.exceptions import UnexpectedToken
from lark.lark import PostLex
from lark.lexer import PatternStr
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive, v_args

from seustream.compiler.errors import Problem, Span
from seustream.compiler.language import syntax as s

MAX_NESTING = 200
"""The most parentheses that may be open at once."""

TOKEN_NAMES = {
    "_FOR": "FOR",
    "_ARROW": "'=>'",
    "ARGUMENT": "the name of an argument",
    "OR_REPLACE": "OR REPLACE",
    "IF_NOT_EXISTS": "IF NOT EXISTS",
    "IF_EXISTS": "IF EXISTS",
    "NAME": "a name",
    "QUOTED_NAME": "a quoted name",
    "POSITION": "a name",
    "INTEGER": "a number",
    "DECIMAL": "a number",
    "PERCENTAGE": "a percentage",
    "PARAMETER": "a parameter",
    "STRING": "a string",
    "UNIT": "a unit of time",
    "COMPARISON": "a comparison",
    "BITWISE": "'&' or '|'",
    "SIGN": "'+' or '-'",
    "TIMES": "'/'",
    "COLUMN": "a name",
    "INDEX": "an index",
    "APAS_TEXT": "'$$'",
    "$END": "the end of the statement",
}
"""Names in messages of tokens that are neither one word nor one sign."""

_TRIMS = {"both": "trim", "leading": "ltrim", "trailing": "rtrim"}
_OPERATORS = {"!=": "<>", "≠": "<>", "==": "=", "≤": "<=", "≥": ">=", "×": "*"}


class Signs(PostLex):
    """Maps tokens to others: `{"AMPERSANDS": "AND"}`."""

    def __init__(self, meant: Mapping[str, str]) -> None:
        self.meant = meant
        self.always_accept = tuple(meant)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """Yields the tokens as the grammar knows them."""
        for token in stream:
            meant = self.meant.get(token.type)
            yield token if meant is None else Token.new_borrow_pos(meant, str(token), token)


@functools.cache
def parser(grammar: Path, start: str = "start", signs: Signs | None = None) -> Lark:
    """Returns the parser of a language: its grammar and the shared expressions; `signs` are
    alternative spellings of some tokens."""
    shared = Path(__file__).with_name("expressions.lark")
    text = shared.read_text(encoding="utf-8") + grammar.read_text(encoding="utf-8")
    key = (text, start, None if signs is None else signs.meant, lark.__version__, sys.version)
    name = f"{grammar.stem}-{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.tables"
    return _kept(
        _cache() / name,
        lambda: Lark(text, parser="lalr", start=start, propagate_positions=True, postlex=signs),
    )


def _cache() -> Path:
    """Returns the folder that caches grammar tables, which take a second to compute."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home) / "seustream"


def _kept(file: Path, make: Callable[[], Lark]) -> Lark:
    """Loads the parser from a file; builds it if there is none, and stores it there if possible."""
    # If the file is faulty for any reason, a newly built parser does as well.
    with contextlib.suppress(Exception), open(file, "rb") as tables:
        return Lark.load(tables)
    made = make()
    with contextlib.suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as fresh:
            made.save(fresh)
        os.replace(fresh.name, file)
    return made


def expected(grammar: Lark, error: UnexpectedToken) -> list[str]:
    """Returns what could be written at the place of an error: words, and signs in quotes."""
    return sorted({_shown(grammar, name) for name in error.accepts or error.expected})


def _shown(grammar: Lark, terminal: str) -> str:
    if terminal in TOKEN_NAMES:
        return TOKEN_NAMES[terminal]
    pattern = grammar.get_terminal(terminal).pattern
    if not isinstance(pattern, PatternStr):
        return terminal  # such as ANY, whose expression asks for the end of the word
    return pattern.value if pattern.value[0].isalpha() else f"'{pattern.value}'"


def listed(written: Sequence[str]) -> str:
    """Joins alternatives: `a, b or c`."""
    *before, last = written
    return f"{', '.join(before)} or {last}" if before else last


def span_of(meta: Meta) -> Span:
    return Span(meta.start_pos, meta.end_pos) if not meta.empty else Span(0, 0)


def token_span(token: Token) -> Span:
    return Span(token.start_pos or 0, token.end_pos or 0)


def token_name(token: Token) -> s.Name:
    """Returns the name in a token, without the quotes around it."""
    text = str(token)
    if text[0] in '"`':
        text = text[1:-1].replace(text[0] * 2, text[0])
    return s.Name(text, token_span(token))


def whole_number(token: Token) -> int:
    """Returns the value of an integer token. Python refuses to convert very long digit strings, so
    a number beyond every range replaces them."""
    return int(token) if len(token) < 400 else 10**400


def fraction(token: Token) -> Fraction:
    """Returns the exact value. Writing out an exponent beyond all doubles would take for ever."""
    text = str(token)
    _, _, exponent = text.lower().partition("e")
    if exponent and abs(int(exponent)) > 400:
        return Fraction(0) if exponent.startswith("-") else Fraction(10) ** 400
    return Fraction(text if not text.endswith(".") else text[:-1])


@v_args(meta=True)
class ExpressionBuilder(Transformer_NonRecursive[Token, Any]):
    """Builds the nodes of `syntax`, one method per rule of the shared grammar. A language's builder
    adds its own rules, among them `reference` and `function`, and the quoting of its strings."""

    def unquoted(self, token: Token) -> str:
        return str(token)[1:-1].replace("''", "'")

    def option(self, meta: Meta, c: list[Any]) -> s.Option:
        name, *_, written = c
        value: str | int | None = None if written is None else str(written)
        if written is not None and written.type == "INTEGER":
            value = whole_number(written)
        elif written is not None and written.type == "STRING":
            value = self.unquoted(written)
        return s.Option(token_name(name), value, span_of(meta))

    def _connective(self, operator: str, meta: Meta, c: list[Any]) -> s.Connective:
        return s.Connective(operator, tuple(c), span_of(meta))

    def expression(self, meta: Meta, c: list[Any]) -> s.Connective:
        return self._connective("OR", meta, c)

    def xor_expression(self, meta: Meta, c: list[Any]) -> s.Connective:
        return self._connective("XOR", meta, c)

    def and_expression(self, meta: Meta, c: list[Any]) -> s.Connective:
        return self._connective("AND", meta, c)

    def negation(self, meta: Meta, c: list[Any]) -> s.Negation:
        return s.Negation(c[-1], span_of(meta))

    def comparator(self, meta: Meta, c: list[Token]) -> str:
        return _OPERATORS.get(str(c[0]), str(c[0]))

    def comparison(self, meta: Meta, c: list[Any]) -> s.ComparisonChain:
        return s.ComparisonChain(tuple(c[1::2]), tuple(c[::2]), span_of(meta))

    def between(self, meta: Meta, c: list[Any]) -> s.Between:
        return s.Between(c[0], c[2], c[3], c[1] is not None, span_of(meta))

    def in_list(self, meta: Meta, c: list[Any]) -> s.InList:
        return s.InList(c[0], tuple(c[2:]), c[1] is not None, span_of(meta))

    def is_null(self, meta: Meta, c: list[Any]) -> s.NullTest:
        return s.NullTest(c[0], c[1] is not None, span_of(meta))

    def is_truth(self, meta: Meta, c: list[Any]) -> s.IsDistinct:
        truth = s.Constant(c[2].type == "TRUE", token_span(c[2]))
        return s.IsDistinct(c[0], truth, c[1] is None, span_of(meta))

    def is_unknown(self, meta: Meta, c: list[Any]) -> s.NullTest:
        return s.NullTest(c[0], c[1] is not None, span_of(meta), condition=True)

    def is_distinct(self, meta: Meta, c: list[Any]) -> s.IsDistinct:
        return s.IsDistinct(c[0], c[2], c[1] is not None, span_of(meta))

    def like(self, meta: Meta, c: list[Any]) -> s.Like:
        operand, negated, function, pattern, escape = c
        name = str(function).lower()
        return s.Like(name, operand, pattern, escape, negated is not None, span_of(meta))

    def arithmetic(self, meta: Meta, c: list[Any]) -> s.OperatorCall:
        operator = _OPERATORS.get(str(c[1]), str(c[1]).upper())
        return s.OperatorCall(operator, (c[0], c[2]), token_span(c[1]), span_of(meta))

    def signed(self, meta: Meta, c: list[Any]) -> s.OperatorCall:
        return s.OperatorCall(str(c[0]), (c[1],), token_span(c[0]), span_of(meta))

    def cast_postfix(self, meta: Meta, c: list[Any]) -> s.TypeCast:
        return s.TypeCast(c[0], c[1], False, span_of(meta))

    def cast(self, meta: Meta, c: list[Any]) -> s.TypeCast:
        return s.TypeCast(c[1], c[2], c[0].type == "TRY_CAST", span_of(meta))

    def integer(self, meta: Meta, c: list[Token]) -> s.Constant:
        return s.Constant(whole_number(c[0]), span_of(meta))

    def decimal(self, meta: Meta, c: list[Token]) -> s.Constant:
        return s.Constant(fraction(c[0]), span_of(meta))

    def quantity(self, meta: Meta, c: list[Token]) -> s.Quantity:
        return s.Quantity(fraction(c[0]), token_name(c[1]), span_of(meta))

    def percentage(self, meta: Meta, c: list[Token]) -> s.Expression:
        text = str(c[0])[:-1]
        if text.startswith(":"):
            return s.Placeholder(text[1:], True, span_of(meta))
        return s.Constant(Fraction(text) / 100, span_of(meta))

    def parameter(self, meta: Meta, c: list[Token]) -> s.Placeholder:
        return s.Placeholder(str(c[0])[1:], False, span_of(meta))

    def string(self, meta: Meta, c: list[Token]) -> s.Constant:
        return s.Constant(self.unquoted(c[0]), span_of(meta))

    def true(self, meta: Meta, c: list[Token]) -> s.Constant:
        return s.Constant(True, span_of(meta))

    def false(self, meta: Meta, c: list[Token]) -> s.Constant:
        return s.Constant(False, span_of(meta))

    def null(self, meta: Meta, c: list[Token]) -> s.Constant:
        return s.Constant(None, span_of(meta))

    def typed(self, meta: Meta, c: list[Token]) -> s.Typed:
        name, value, unit = c
        text = self.unquoted(value) if value.type == "STRING" else str(value)
        return s.Typed(
            token_name(name), text, None if unit is None else token_name(unit), span_of(meta)
        )

    def when(self, meta: Meta, c: list[Any]) -> tuple[s.Expression, s.Expression]:
        return c[0], c[1]

    def case(self, meta: Meta, c: list[Any]) -> s.CaseWhen:
        return s.CaseWhen(c[0], tuple(c[1:-1]), c[-1], span_of(meta))

    def call_from(self, meta: Meta, c: list[Any]) -> s.FunctionCall:
        """Builds `extract(year FROM t)`, `substring(x FROM 2 FOR 3)` and `trim(LEADING 'a' FROM
        x)`; the binder refuses other functions."""
        (function,), first, *rest = c
        name, given = function.text.lower(), tuple(e for e in rest if e is not None)
        if name in ("substring", "substr"):
            return s.FunctionCall((function,), (first, *given), span_of(meta))
        if name == "trim":
            side = first.type.text.lower() if isinstance(first, s.Typed) else "both"
            if isinstance(first, s.Typed):
                first = s.Constant(first.text, first.span)
            trim = s.Name(_TRIMS.get(side, "trim"), function.span)
            return s.FunctionCall(
                (trim,), (*given, first), span_of(meta), extracts=side not in _TRIMS
            )
        if isinstance(first, s.Reference):
            first = s.Constant(str(first).lower(), first.span)
        return s.FunctionCall((function,), (first, *given), span_of(meta), extracts=True)

    def position_in(self, meta: Meta, c: list[Any]) -> s.FunctionCall:
        return s.FunctionCall((token_name(c[0]),), tuple(c[1:]), span_of(meta))

    def position(self, meta: Meta, c: list[Any]) -> s.FunctionCall:
        given = tuple(argument for argument in c[1:] if argument is not None)
        return s.FunctionCall((token_name(c[0]),), given, span_of(meta))

    def filter(self, meta: Meta, c: list[Any]) -> tuple[str, s.Expression]:
        return "filter", c[0]

    def call(self, meta: Meta, c: list[Any]) -> s.FunctionCall:
        function, distinct, *arguments, where, attribute = c
        return s.FunctionCall(
            function,
            tuple(argument for argument in arguments if argument is not None),
            span_of(meta),
            distinct=distinct is not None,
            where=None if where is None else where[1],
            attribute=None if attribute is None else token_name(attribute),
        )

    def call_star(self, meta: Meta, c: list[Any]) -> s.FunctionCall:
        where = None if c[2] is None else c[2][1]
        return s.FunctionCall(c[0], (), span_of(meta), star=True, where=where)

    def type(self, meta: Meta, c: list[Any]) -> s.TypeName:
        first, second, *numbers = c
        text = str(first) + (f" {second}" if second is not None else "")
        arguments = tuple(whole_number(number) for number in numbers if number is not None)
        return s.TypeName(text.lower(), arguments, span_of(meta))

    def parenthesised(self, meta: Meta, c: list[Any]) -> s.Expression:
        # The parser's children are untyped.
        return c[0]  # type: ignore[no-any-return]  # lark gives Any

    def argument(self, meta: Meta, c: list[Any]) -> s.Expression:
        return c[0]  # type: ignore[no-any-return]  # lark gives Any

    def function(self, meta: Meta, c: list[Token]) -> tuple[s.Name, ...]:
        return tuple(token_name(token) for token in c)


def no_number(text: str, at: int) -> Problem | None:
    """Returns the problem with a number that letters follow, if one begins at this place."""
    word = _NO_NUMBER.match(text, at)
    if word is None:
        return None
    written = word.group()
    hint = "a number has digits, a point and an exponent; put a blank before a word"
    if re.fullmatch(r"0x[0-9a-f]+|0b[01]+|0o[0-7]+|\d[\d_]*\d", written, re.IGNORECASE):
        hint = f"write {int(written.replace('_', ''), 0 if written[1].isalpha() else 10)}"
    return Problem("syntax", f"{written!r} is no number", Span(at, word.end()), hint)


_NO_NUMBER = re.compile(r"\d[\w.]*[A-Za-z_]\w*")


def library_call(text: str, at: int) -> Problem | None:
    """Returns the problem with a call of an APAS library function, if one precedes the bracket at
    this place. In other languages a dot only joins a stream and its column."""
    before = _LIBRARY_CALL.search(text, 0, at)
    if before is None:
        return None
    library, name = before.groups()
    if library == "agg":
        hint = f"write {name}"
    elif (library, name) == ("util", "millis"):
        hint = "write epoch_ms"
    else:
        hint = "CREATE STREAM s AS APAS $$ ... $$ computes it, and this statement reads s"
    return Problem(
        "syntax",
        f"{library}.{name} is a function of a library, which APAS alone calls",
        Span(before.start(), at),
        hint,
    )


_LIBRARY_CALL = re.compile(r"\b([A-Za-z_]\w*)\s*\.\s*([A-Za-z_]\w*)\s*$")
