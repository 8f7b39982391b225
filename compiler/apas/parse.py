"""Parses text to a syntax tree. A syntax error ends the parse."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.tree import Meta
from lark.visitors import v_args

from seustream.compiler.apas import syntax as s
from seustream.compiler.errors import CompileError, Problem, SourceText, Span
from seustream.compiler.language.parse import (
    MAX_NESTING,
    TOKEN_NAMES,
    ExpressionBuilder,
    parser,
    token_name,
)
from seustream.compiler.language.parse import span_of as _span
from seustream.compiler.language.parse import token_span as _of
from seustream.compiler.language.syntax import Expression, Name, Reference

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}

_SHOWN = {
    **TOKEN_NAMES,
    "LSQB": "[",
    "RSQB": "]",
    "LPAR": "(",
    "RPAR": ")",
    "COMMA": ",",
    "SEMICOLON": ";",
    "EQUAL": "=",
    "DOLLAR": "$",
    "DOT": ".",
    "T": "T",
    "WHEN": "WHEN",
    "END": "END",
    "SELECT": "select",
    "WHERE": "where",
    "FROM": "from",
    "$END": "the end",
}
"""Tokens named in a list of what could stand at a place. Wherever one of the others can stand, a
name or a comparison can too."""


class _Refused(Exception):
    def __init__(self, message: str, span: Span, hint: str | None = None) -> None:
        super().__init__(message)
        self.problem = Problem("Syntax", message, span, hint)


def parse(source: SourceText) -> s.ApasQuery:
    """Returns the query; raises `CompileError` for a syntax error."""
    half = re.search("[\ud800-\udfff]", source.text)
    if half is not None:
        raise CompileError(
            source,
            [Problem("Syntax", "half of a character", Span(*half.span()), "files are UTF-8")],
        )
    try:
        _check_brackets(source)
        query: s.ApasQuery = _ApasBuilder().transform(_parser().parse(source.text))
    except UnexpectedInput as error:
        raise CompileError(source, [_problem(source, error)]) from None
    except _Refused as refused:
        raise CompileError(source, [refused.problem]) from None
    return query


def _parser() -> Lark:
    return parser(Path(__file__).with_name("apas.lark"), "query")


def _check_brackets(source: SourceText) -> None:
    """Refuses brackets nested too deep before a tree is built from them."""
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


def _problem(source: SourceText, error: UnexpectedInput) -> Problem:
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
    if found == "==" and "EQUAL" in expected and "COMPARISON" not in expected:
        return "an attribute is assigned with ="
    names = sorted({_SHOWN[e] for e in expected if e in _SHOWN} - {"STRING"})
    shown = (name if name[0].isalpha() or "'" in name else f"'{name}'" for name in names)
    return f"expected {' or '.join(shown)}" if names else None


def _names(tokens: list[Any]) -> s.Names:
    """Returns the path that the leading tokens form."""
    parts = [t for t in tokens if isinstance(t, Token) and t.type == "NAME"]
    span = Span(parts[0].start_pos or 0, parts[-1].end_pos or 0)
    return s.Names(tuple(map(str, parts)), span)


@v_args(meta=True)
class _ApasBuilder(ExpressionBuilder):
    """Builds the nodes of `syntax`, one method per grammar rule."""

    def unquoted(self, token: Token) -> str:
        return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), str(token)[1:-1])

    # queries
    def query(self, meta: Meta, c: list[Any]) -> s.ApasQuery:
        return s.ApasQuery(tuple(c[:-1]), c[-1])

    def conditional(self, meta: Meta, c: list[Any]) -> s.SelectBlock:
        where = c[0] if isinstance(c[0], tuple) and c[0][0] == "where" else ("where", ())
        name, items, span = c[-1]
        return s.SelectBlock(where[1], name, items, _span(meta), span)

    unconditional = conditional
    final = conditional

    def where(self, meta: Meta, c: list[Any]) -> tuple[str, tuple[Expression, ...]]:
        return "where", tuple(c)

    # O[z[x = 1]], O.z[x = 1] and O.z.x = 1 become the same items of O
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
        return s.Level(tuple(c), _span(meta))

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
    def relative(self, meta: Meta, c: list[Any]) -> Reference:
        return Reference(_parts(c), _span(meta))

    def rooted(self, meta: Meta, c: list[Any]) -> Reference:
        return Reference(_parts(c), _span(meta), rooted=True)

    def function(self, meta: Meta, c: list[Any]) -> tuple[Name, ...]:
        return _parts(c)

    def labelled(self, meta: Meta, c: list[Any]) -> s.Labelled:
        return s.Labelled(str(c[0]), c[-1], _span(meta))


def _parts(tokens: list[Any]) -> tuple[Name, ...]:
    return tuple(token_name(t) for t in tokens if isinstance(t, Token) and t.type == "NAME")


def _root_and_rest(tokens: list[Any]) -> tuple[s.Names, s.Names]:
    return _names(tokens[:1]), _names(tokens[1:])
