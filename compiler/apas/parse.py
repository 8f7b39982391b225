"""Text to syntax tree. A syntax error ends the parse."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive, v_args

from compiler.apas import syntax as s
from compiler.apas.types import BOOLEAN, DOUBLE, INTEGER, STRING
from compiler.apas.values import HIGHEST
from compiler.errors import CompileError, Problem, Source, Span

MAX_NESTING = 200
"""Brackets, parentheses and operators within each other."""

_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}

_SHOWN = {
    "NAME": "a name",
    "INT": "a number",
    "STRING": "a text",
    "LSQB": "[",
    "RSQB": "]",
    "LPAR": "(",
    "RPAR": ")",
    "COMMA": ",",
    "SEMICOLON": ";",
    "EQUAL": "=",
    "DOLLAR": "$",
    "DOT": ".",
    "COMPARISON": "a comparison",
    "$END": "the end",
    "_SELECT": "select",
    "_WHERE": "where",
    "_FROM": "from",
}
_COVERED = {"DOUBLE", "DURATION", "TRUE", "FALSE", "SIGN", "FACTOR", "AND", "OR", "XOR", "NOT"}
"""Not named in a list of what could stand somewhere: where one of these can, a name or a
comparison can."""


class _Refused(Exception):
    def __init__(self, message: str, span: Span, hint: str | None = None) -> None:
        super().__init__(message)
        self.problem = Problem("Syntax", message, span, hint)


def parse(source: Source) -> s.Query:
    """The query, or `CompileError` with the syntax error."""
    half = re.search("[\ud800-\udfff]", source.text)
    if half is not None:
        raise CompileError(
            source,
            [Problem("Syntax", "half of a character", Span(*half.span()), "files are UTF-8")],
        )
    try:
        _check_brackets(source)
        query: s.Query = _Builder().transform(_parser().parse(source.text))
    except UnexpectedInput as error:
        raise CompileError(source, [_problem(source, error)]) from None
    except _Refused as refused:
        raise CompileError(source, [refused.problem]) from None
    except VisitError as error:
        if not isinstance(error.orig_exc, _Refused):
            raise
        raise CompileError(source, [error.orig_exc.problem]) from None
    return query


@functools.cache
def _parser() -> Lark:
    return Lark(
        Path(__file__).with_name("apas.lark").read_text(encoding="utf-8"),
        parser="lalr",
        start="query",
        propagate_positions=True,
        maybe_placeholders=False,
    )


def _check_brackets(source: Source) -> None:
    """Refuses what is nested too deep before a tree is made of it."""
    depth = 0
    for token in _parser().lex(source.text, dont_ignore=False):
        if token.type in ("LSQB", "LPAR"):
            depth += 1
            if depth > MAX_NESTING:
                raise _too_deep(_of(token))
        elif token.type in ("RSQB", "RPAR"):
            depth -= 1


def _too_deep(span: Span) -> _Refused:
    return _Refused(
        f"nested over {MAX_NESTING} levels", span, "compute parts of it in attributes of their own"
    )


def _problem(source: Source, error: UnexpectedInput) -> Problem:
    expected: set[str] = set()
    if isinstance(error, UnexpectedToken):
        expected = set(error.accepts or error.expected)
        token = error.token
        start = (token.start_pos or 0) if token.type != "$END" else len(source.text.rstrip())
        span = Span(start, max(token.end_pos or 0, start + 1))
        text = "the end of the text" if token.type == "$END" else f"{str(token)!r}"
        message = f"{text} cannot stand here"
    elif isinstance(error, UnexpectedCharacters):
        expected = set(error.allowed or ())
        start = error.pos_in_stream or 0
        span = Span(start, start + 1)
        message = f"{source.text[start]!r} begins nothing that can stand here"
    else:
        span = Span(len(source.text), len(source.text) + 1)
        message = "the text ends too early"
    return Problem("Syntax", message, span, _hint(expected, str(getattr(error, "token", ""))))


def _hint(expected: set[str], found: str) -> str | None:
    if found == "=" and "COMPARISON" in expected:
        return "equality is written =="
    if found == "==" and "EQUAL" in expected:
        return "an attribute is assigned with ="
    if found in ("<", ">", "<=", ">=", "==", "!="):
        return "comparisons cannot be chained; write a < b and b < c"
    names = sorted(_SHOWN.get(e, e.strip("_").lower()) for e in expected if e not in _COVERED)
    return f"expected: {', '.join(names)}" if names else None


def _of(token: Token) -> Span:
    return Span(token.start_pos or 0, token.end_pos or 0)


def _span(meta: Meta) -> Span:
    return Span(meta.start_pos, meta.end_pos)


def _names(tokens: list[Any]) -> s.Names:
    """The path that the leading tokens make."""
    parts = [t for t in tokens if isinstance(t, Token) and t.type == "NAME"]
    span = Span(parts[0].start_pos or 0, parts[-1].end_pos or 0)
    return s.Names(tuple(map(str, parts)), span)


def _deeper(span: Span, *inside: Any) -> int:
    depth = 1 + max((each.depth for each in inside), default=0)
    if depth > MAX_NESTING:
        raise _too_deep(span)
    return depth


def _inner_depth(item: s.Item) -> Any:
    if isinstance(item, s.Assignment):
        return item.value
    return item.level if isinstance(item, s.Inner) else item


@v_args(meta=True)
class _Builder(Transformer_NonRecursive[Token, Any]):
    """Makes the nodes of `syntax`, one method a rule of the grammar."""

    # queries
    def query(self, meta: Meta, c: list[Any]) -> s.Query:
        return s.Query(tuple(c[:-1]), c[-1])

    def conditional(self, meta: Meta, c: list[Any]) -> s.Subquery:
        where = c[0] if isinstance(c[0], tuple) and c[0][0] == "where" else ("where", ())
        name, items, span = c[-1]
        return s.Subquery(where[1], name, items, _span(meta), span)

    unconditional = conditional
    final = conditional

    def where(self, meta: Meta, c: list[Any]) -> tuple[str, tuple[s.Expression, ...]]:
        return "where", tuple(c)

    # targets: O[z[x = 1]], O.z[x = 1] and O.z.x = 1 become the same items of O
    def named(self, meta: Meta, c: list[Any]) -> tuple[s.Names, tuple[s.Item, ...], Span]:
        return _names(c), c[-1].items, _span(meta)

    def placed(self, meta: Meta, c: list[Any]) -> tuple[s.Names, tuple[s.Item, ...], Span]:
        root, rest = _root_and_rest(c[:-1])
        return root, (s.Inner(rest, c[-1], _span(meta)),), _span(meta)

    def assigned(self, meta: Meta, c: list[Any]) -> tuple[s.Names, tuple[s.Item, ...], Span]:
        root, rest = _root_and_rest(c[:-1])
        return root, (s.Assignment(rest, c[-1], _span(meta)),), _span(meta)

    def anonymous(self, meta: Meta, c: list[Any]) -> tuple[None, tuple[s.Item, ...], Span]:
        return None, c[0].items, _span(meta)

    # items
    def level(self, meta: Meta, c: list[Any]) -> s.Level:
        span = _span(meta)
        return s.Level(tuple(c), span, _deeper(span, *map(_inner_depth, c)))

    def item_value(self, meta: Meta, c: list[Any]) -> s.Assignment:
        return s.Assignment(_names(c[:-1]), c[-1], _span(meta))

    def item_level(self, meta: Meta, c: list[Any]) -> s.Inner:
        return s.Inner(_names(c[:-1]), c[-1], _span(meta))

    def copy_picks(self, meta: Meta, c: list[Any]) -> s.Copy:
        return s.Copy(_names(c[:-1]), True, c[-1], _span(meta))

    def copy_root(self, meta: Meta, c: list[Any]) -> s.Copy:
        return s.Copy(_names(c), True, (s.Names((), _span(meta)),), _span(meta))

    def copy_path(self, meta: Meta, c: list[Any]) -> s.Copy:
        return s.Copy(_names(c), False, (s.Names((), _span(meta)),), _span(meta))

    def inner(self, meta: Meta, c: list[Any]) -> tuple[s.Names, ...]:
        if isinstance(c[0], Token):
            return (s.Names((), _of(c[0])),)
        return tuple(pick for picks in c for pick in picks)

    def pick(self, meta: Meta, c: list[Any]) -> tuple[s.Names, ...]:
        under = _names(c[:-1])
        return tuple(s.Names((*under.parts, *pick.parts), _span(meta)) for pick in c[-1])

    def pick_all(self, meta: Meta, c: list[Any]) -> tuple[s.Names, ...]:
        return (s.Names(_names(c).parts, _span(meta)),)

    # expressions
    def _chain(self, meta: Meta, c: list[Any]) -> s.Expression:
        left: s.Expression = c[0]
        for operator, right in zip(c[1::2], c[2::2], strict=True):
            span = Span(left.span.start, right.span.end)
            depth = _deeper(span, left, right)
            name = str(operator).upper()
            left = s.Binary(name, left, right, span, _of(operator), depth)
        return left

    expr = xor = conj = cmp = sum = prod = _chain

    def prefix(self, meta: Meta, c: list[Any]) -> s.Expression:
        operator, argument = str(c[0]).upper(), c[1]
        span = _span(meta)
        if operator == "-" and isinstance(argument, s.Literal) and argument.type is INTEGER:
            return s.Literal(-int(argument.value), INTEGER, span)
        return s.Prefix(operator, argument, span, _deeper(span, argument))

    def parenthesised(self, meta: Meta, c: list[Any]) -> s.Expression:
        inside: s.Expression = c[0]
        return inside

    def path(self, meta: Meta, c: list[Any]) -> s.Relative:
        return s.Relative(_names(c), _span(meta))

    def root(self, meta: Meta, c: list[Any]) -> s.Rooted:
        return s.Rooted(_names(c), _span(meta))

    def call(self, meta: Meta, c: list[Any]) -> s.Call:
        arguments = tuple(a for a in c if isinstance(a, s.Argument))
        function = _names([t for t in c if isinstance(t, Token)])
        span = _span(meta)
        return s.Call(function, arguments, span, _deeper(span, *(a.value for a in arguments)))

    def argument(self, meta: Meta, c: list[Any]) -> s.Argument:
        return s.Argument(None, c[0], _span(meta))

    def labelled(self, meta: Meta, c: list[Any]) -> s.Argument:
        return s.Argument(str(c[0]), c[1], _span(meta))

    def literal(self, meta: Meta, c: list[Token]) -> s.Literal:
        token = c[0]
        text, span = str(token), _of(token)
        match token.type:
            case "INT":
                return s.Literal(int(text) if len(text) < 40 else 2**70, INTEGER, span)
            case "DURATION":
                number = text.rstrip("mshd")
                value = int(number) if len(number) < 40 else 2**70
                return s.Literal(value * _MILLISECONDS[text[len(number) :]], INTEGER, span)
            case "DOUBLE":
                return s.Literal(float(text), DOUBLE, span)
            case "STRING":
                return s.Literal(_unescaped(text[1:-1]), STRING, span)
            case _:
                return s.Literal(token.type == "TRUE", BOOLEAN, span)


def _root_and_rest(tokens: list[Any]) -> tuple[s.Names, s.Names]:
    return _names(tokens[:1]), _names(tokens[1:])


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), text)


def too_large(literal: s.Literal) -> bool:
    """Whether an INTEGER literal does not fit 64 bits."""
    if literal.type is not INTEGER or isinstance(literal.value, bool | str):
        return False
    return not -HIGHEST - 1 <= literal.value <= HIGHEST
