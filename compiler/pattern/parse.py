"""Parses the text of one statement to its syntax tree, for PATTERN and for MATCH_RECOGNIZE."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.tree import Meta
from lark.visitors import v_args

from seustream.compiler.errors import Problems, SourceText, Span
from seustream.compiler.language import parse as language
from seustream.compiler.language import syntax as s
from seustream.compiler.language.elsewhere import INSTEAD
from seustream.compiler.language.parse import ExpressionBuilder, span_of, token_name, token_span
from seustream.compiler.pattern import tree

_BLANK = r"(?:\s|--[^\n]*(?:\n|$)|/\*(?s:.*?)\*/)*"
_NAME = r"(?:\w+|\"(?:[^\"]|\"\")+\"|`(?:[^`]|``)+`)"
_OR_REPLACE = r"(?:OR\s+REPLACE\s+)?"
_MADE = (
    rf"(?:REGISTER\s+{_OR_REPLACE}QUERY|CREATE\s+{_OR_REPLACE}STREAM)\s+(?:IF\s+NOT\s+EXISTS\s+)?"
)
_HEADER = rf"(?:{_MADE}{_NAME}\s+AS\s+|EXPLAIN\s+)?{_BLANK}"
_IS_PATTERN = re.compile(rf"{_BLANK}{_HEADER}PATTERN\b", re.IGNORECASE)
_IS_RECOGNIZE = re.compile(
    rf"{_BLANK}{_HEADER}SELECT\b[^;]*?\bFROM\s+{_NAME}\s+MATCH_RECOGNIZE\b", re.IGNORECASE
)
_RETURN = re.compile(r"\bRETURN\b", re.IGNORECASE)
_NEXT_STATEMENT = re.compile(
    rf"{_BLANK}(?:(?:CREATE\s+{_OR_REPLACE}|DROP\s+)(?:STREAM|TABLE)\b"
    rf"|(?:REGISTER\s+{_OR_REPLACE}|DROP\s+)QUERY\b"
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


_SIGNS = language.Signs({"BANG": "NOT", "AMPERSANDS": "AND"})


def is_pattern(code: str) -> bool:
    """Returns whether a statement is a PATTERN statement."""
    return _IS_PATTERN.match(code) is not None


def is_recognize(code: str) -> bool:
    """Returns whether a statement selects from MATCH_RECOGNIZE."""
    return _IS_RECOGNIZE.match(code) is not None


def goes_on(code: str, rest: str) -> bool:
    """Returns whether the semicolon between `code`, the statement so far, and `rest` separates
    elements of a sequence. It does before RETURN, unless a new statement follows."""
    if not is_pattern(code) or _RETURN.search(code):
        return False
    return _NEXT_STATEMENT.match(rest) is None


def parse_statement(source: SourceText, span: Span, problems: Problems) -> tree.Statement | None:
    """Returns the statement at `span`; reports a syntax error and returns None."""
    text = " " * span.start + source.text[span.start : span.end]
    kind = "pattern" if is_pattern(source.text[span.start : span.end]) else "match_recognize"
    try:
        parsed = parser(kind).parse(text)
    except UnexpectedInput as error:
        _report(error, source, span, problems, kind)
        return None
    builder = _PatternBuilder(problems) if kind == "pattern" else _RecognizeBuilder(problems)
    statement: tree.Statement = builder.transform(parsed)
    return statement


def parser(kind: str) -> Lark:
    """Returns the parser of `pattern` or `match_recognize` statements."""
    signs = _SIGNS if kind == "pattern" else None
    return language.parser(Path(__file__).with_name(f"{kind}.lark"), signs=signs)


# --- errors -------------------------------------------------------------------

_BEHIND = "define a stream, CREATE STREAM m AS SELECT * FROM ... MATCH_RECOGNIZE (...), and select from it"
_CLAUSE = re.compile(
    r"\)\s*(WHERE|UNION|WINDOW|GROUP|HAVING|QUALIFY|ORDER|LIMIT|JOIN)\s+$", re.IGNORECASE
)
_SUBQUERY = re.compile(r"\(\s*SELECT\b[^()]*$", re.IGNORECASE)
_INSTEAD = {"&": "write AND", "!": "write NOT", "|": "write OR"}


def _report(
    error: UnexpectedInput, source: SourceText, span: Span, problems: Problems, kind: str
) -> None:
    hint = f"the form is {FORM if kind == 'pattern' else FORM_RECOGNIZE}"
    if isinstance(error, UnexpectedCharacters):
        at = error.pos_in_stream or 0
        char = source.text[at]
        if (wrong := language.no_number(source.text, at)) is not None:
            problems.add("P001", f"P001 {wrong.message}", wrong.span, wrong.hint)
            return
        hint = _INSTEAD.get(char, hint)
        problems.add("P001", f"P001 {char!r} has no meaning here", Span(at, at + 1), hint)
        return
    if not isinstance(error, UnexpectedToken):
        problems.add("P001", "P001 the statement ends too early", _end(source, span), hint)
        return
    token = error.token
    wanted = language.listed(language.expected(parser(kind), error))
    if token.type == "$END":
        text = f"P001 the statement ends too early; expected {wanted}"
        problems.add("P001", text, _end(source, span), hint)
        return
    start = token.start_pos or 0
    so_far = source.text[span.start : token.end_pos or start]
    possible = {*(error.accepts or error.expected)}
    selecting = "FROM" in possible and "MATCH_RECOGNIZE" not in so_far.upper()
    selecting = selecting or re.search(r"(?i)\bFROM\s*\($", so_far) is not None
    if kind == "match_recognize" and (selecting or "$END" in possible):
        # A clause that cannot stand behind the parenthesis may have been read as the matches' name.
        clause = _CLAUSE.search(so_far, 0, start - span.start)
        if clause is not None:
            start, token = span.start + clause.start(1), Token("NAME", clause[1])
        hint = _BEHIND
    elif _SUBQUERY.search(so_far):
        hint = INSTEAD["exists"]
    if token == "(" and (library := language.library_call(source.text, start)):
        problems.add("P001", f"P001 {library.message}", library.span, library.hint)
        return
    text = f"P001 {str(token)!r} is unexpected; expected {wanted}"
    hint = _INSTEAD.get(str(token), hint)
    problems.add("P001", text, Span(start, start + len(token)), hint)


def _end(source: SourceText, span: Span) -> Span:
    end = len(source.text[: span.end].rstrip())
    return Span(end - 1, end)


# --- tree building ------------------------------------------------------------


def _names(c: list[Any]) -> tuple[s.Name, ...]:
    return tuple(
        token_name(token) for token in c if token is not None and token.type in ("NAME", "COLUMN")
    )


@v_args(meta=True)
class _ClauseBuilder(ExpressionBuilder):
    """Builds the nodes of the rules that both grammars have."""

    def any_number(self, meta: Meta, c: list[Token]) -> tree.Quantifier:
        return tree.Quantifier(0, None, span_of(meta))

    def options(self, meta: Meta, c: list[Any]) -> tuple[s.Option, ...]:
        return tuple(part for part in c if isinstance(part, s.Option))

    def __init__(self, problems: Problems) -> None:
        super().__init__()
        self._problems = problems

    def register(self, meta: Meta, c: list[Any]) -> tree.Header:
        return self._header("register", meta, c)

    def create(self, meta: Meta, c: list[Any]) -> tree.Header:
        return self._header("create", meta, c)

    def _header(self, verb: str, meta: Meta, c: list[Any]) -> tree.Header:
        replacing, unless, name = c
        mode = "replace" if replacing else "unless" if unless else ""
        return tree.Header(verb, token_name(name), span_of(meta), mode)

    def explain(self, meta: Meta, c: list[Token]) -> tree.Header:
        return tree.Header("explain", None, span_of(meta))

    def item(self, meta: Meta, c: list[Any]) -> tree.ReturnItem:
        return tree.ReturnItem(c[0], None if c[1] is None else token_name(c[1]), span_of(meta))

    def partition(self, meta: Meta, c: list[Token]) -> tuple[str, tuple[s.Name, ...]]:
        return ("partition", _names(c))

    def ranged(self, meta: Meta, c: list[Any]) -> tree.Quantifier:
        most = None if c[2] is None else int(c[2])
        return tree.Quantifier(int(c[0]), most, span_of(meta))

    def one_or_more(self, meta: Meta, c: list[Token]) -> tree.Quantifier:
        if str(c[0]) != "+":
            self._problems.add(
                "P001",
                f"P001 {str(c[0])!r} is no quantifier",
                token_span(c[0]),
                "a closure is written +, *, {k}, {k,} or {k,m}",
            )
        return tree.Quantifier(1, None, span_of(meta))

    def at_least(self, meta: Meta, c: list[Token]) -> tree.Quantifier:
        return tree.Quantifier(int(c[0]), None, span_of(meta))

    def reference(self, meta: Meta, c: list[Any]) -> s.Reference:
        name, index, attribute = c
        parts = tuple(token_name(token) for token in (name, attribute) if token is not None)
        inside = None if index is None else re.sub(r"\s", "", str(index)[1:-1])
        return s.Reference(parts, span_of(meta), inside)


@v_args(meta=True)
class _PatternBuilder(_ClauseBuilder):
    def start(self, meta: Meta, c: list[Any]) -> tree.Pattern:
        header, elements, source, partition, where, within, strategy, after, output, options = c
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
            options or (),
            span_of(meta),
        )

    def source(self, meta: Meta, c: list[Any]) -> tree.From:
        return tree.From(token_name(c[0]), None if c[1] is None else token_name(c[1]))

    def sequence(self, meta: Meta, c: list[Any]) -> tuple[tree.ElementClause | tree.OneOf, ...]:
        return tuple(c)

    def _element(self, meta: Meta, c: list[Any], negated: bool) -> tree.ElementClause | tree.OneOf:
        types, quantifier, alias = c
        optional = isinstance(quantifier, Token)
        if types and isinstance(types[0], tuple):
            if not negated and alias is None and (quantifier is None or optional):
                return tree.OneOf((*types, ()) if optional else types)
            hint = "name and count the elements within; (A | B) of types alone may have both"
            text = "P001 a choice of sequences is no element"
            self._problems.add("P001", text, span_of(meta), hint)
            types = ()
        return tree.ElementClause(
            types,
            None if optional else quantifier,
            None if alias is None else token_name(alias),
            negated,
            span_of(meta),
            optional,
        )

    def positive(self, meta: Meta, c: list[Any]) -> tree.ElementClause | tree.OneOf:
        return self._element(meta, c, False)

    def optional(self, meta: Meta, c: list[Token]) -> Token:
        return c[0]

    def negated(self, meta: Meta, c: list[Any]) -> tree.ElementClause | tree.OneOf:
        if str(c[0]) != "!":
            text = f"P001 {str(c[0])!r} is unexpected here"
            self._problems.add("P001", text, token_span(c[0]), "an absence is written !A")
        return self._element(meta, c[1:], True)

    def event_type(self, meta: Meta, c: list[Any]) -> tuple[Any, ...]:
        """Returns the types, or the sequences to choose from if they are more than types."""
        if isinstance(c[0], Token):
            return () if c[0].type == "ANY" else (token_name(c[0]).text,)
        bare = [way[0] for way in c if len(way) == 1 and isinstance(way[0], tree.ElementClause)]
        plain = all(
            len(one.types) == 1 and not (one.quantifier or one.alias or one.negated or one.optional)
            for one in bare
        )
        if len(bare) == len(c) and plain:
            return tuple(one.types[0] for one in bare)
        return tuple(c)

    def where(self, meta: Meta, c: list[Any]) -> s.Expression:
        return c[0]  # type: ignore[no-any-return]  # lark gives Any

    def within(self, meta: Meta, c: list[Token]) -> tree.Within:
        sign, number, unit = c
        size = language.fraction(number)
        negative = sign is not None and str(sign) == "-"
        return tree.Within(-size if negative else size, token_name(unit), span_of(meta))

    def using(self, meta: Meta, c: list[Any]) -> tuple[str, Span]:
        return c[0]  # type: ignore[no-any-return]  # lark gives Any

    def any(self, meta: Meta, c: list[Any]) -> tuple[str, Span]:
        return ("any", span_of(meta))

    def any_group(self, meta: Meta, c: list[Any]) -> tuple[str, Span]:
        return ("any_group", span_of(meta))

    def any_subsets(self, meta: Meta, c: list[Any]) -> tuple[str, Span]:
        return ("any_subsets", span_of(meta))

    def next(self, meta: Meta, c: list[Any]) -> tuple[str, Span]:
        return ("next", span_of(meta))

    def strict(self, meta: Meta, c: list[Any]) -> tuple[str, Span]:
        return ("strict", span_of(meta))

    def no_skip(self, meta: Meta, c: list[Any]) -> str:
        return "no_skip"

    def skip_to_next(self, meta: Meta, c: list[Any]) -> str:
        return "skip_to_next"

    def skip_past_last(self, meta: Meta, c: list[Any]) -> str:
        return "skip_past_last"

    def everything(self, meta: Meta, c: list[Any]) -> None:
        return None

    def items(self, meta: Meta, c: list[Any]) -> tuple[tree.ReturnItem, ...]:
        return tuple(part for part in c if isinstance(part, tree.ReturnItem))


@v_args(meta=True)
class _RecognizeBuilder(_ClauseBuilder):
    def start(self, meta: Meta, c: list[Any]) -> tree.Recognize:
        header, (columns, selected), stream, *clauses, alias, options = c
        partition, order, measures, rows, after, *rest = clauses
        pattern, within, subsets, define = rest
        return tree.Recognize(
            header,
            columns,
            selected,
            token_name(stream),
            () if partition is None else partition[1],
            order or (),
            measures or (),
            rows or ("one_row", span_of(meta)),
            after or ("past_last", None),
            pattern,
            within,
            subsets or (),
            define or (),
            options or (),
            span_of(meta),
            None if alias is None else token_name(alias),
        )

    def everything(self, meta: Meta, c: list[Any]) -> tuple[None, Span]:
        return None, span_of(meta)

    def columns(self, meta: Meta, c: list[Any]) -> tuple[tuple[tree.Selected, ...], Span]:
        return tuple(part for part in c if isinstance(part, tree.Selected)), span_of(meta)

    def column(self, meta: Meta, c: list[Token | None]) -> tree.Selected:
        name, attribute, alias = (None if one is None else token_name(one) for one in c)
        assert name is not None
        of = None if attribute is None else name
        return tree.Selected(attribute or name, alias, of)

    def order(self, meta: Meta, c: list[Any]) -> tuple[tuple[s.Name, str], ...]:
        found: list[tuple[s.Name, str]] = []
        for token in c:
            if token is None or token.type == "COMMA":
                continue
            if token.type in ("ASC", "DESC"):
                found[-1] = (found[-1][0], str(token).lower())
            else:
                found.append((token_name(token), "asc"))
        return tuple(found)

    def measures(self, meta: Meta, c: list[Any]) -> tuple[tree.ReturnItem, ...]:
        return tuple(part for part in c if isinstance(part, tree.ReturnItem))

    def one_row(self, meta: Meta, c: list[Any]) -> tuple[str, Span]:
        return "one_row", span_of(meta)

    def all_rows(self, meta: Meta, c: list[Any]) -> tuple[str, Span]:
        return "all_rows", span_of(meta)

    def omit_empty(self, meta: Meta, c: list[Any]) -> tuple[str, Span]:
        return "omit_empty", span_of(meta)

    def unmatched(self, meta: Meta, c: list[Any]) -> tuple[str, Span]:
        return "unmatched", span_of(meta)

    def past_last(self, meta: Meta, c: list[Any]) -> tuple[str, s.Name | None]:
        return ("past_last", None)

    def to_next(self, meta: Meta, c: list[Any]) -> tuple[str, s.Name | None]:
        return ("to_next", None)

    def to_first(self, meta: Meta, c: list[Token]) -> tuple[str, s.Name | None]:
        return ("to_first", token_name(c[0]))

    def to_last(self, meta: Meta, c: list[Token]) -> tuple[str, s.Name | None]:
        return ("to_last", token_name(c[0]))

    def alternatives(self, meta: Meta, c: list[Any]) -> tree.RowPart:
        return c[0] if len(c) == 1 else tree.RowPart("choice", tuple(c), span_of(meta))

    def sequence(self, meta: Meta, c: list[Any]) -> tree.RowPart:
        return c[0] if len(c) == 1 else tree.RowPart("sequence", tuple(c), span_of(meta))

    def factor(self, meta: Meta, c: list[Any]) -> tree.RowPart:
        part, quantifier, reluctant = c
        if quantifier is None:
            return part  # type: ignore[no-any-return]  # lark gives Any
        rarely, span = reluctant is not None, span_of(meta)
        return tree.RowPart("repeat", (part,), span, quantifier=quantifier, reluctant=rarely)

    def one(self, meta: Meta, c: list[Token]) -> tree.RowPart:
        return tree.RowPart("one", (), span_of(meta), token_name(c[0]))

    def group(self, meta: Meta, c: list[Any]) -> tree.RowPart:
        return c[0]  # type: ignore[no-any-return]  # lark gives Any

    def exclusion(self, meta: Meta, c: list[Any]) -> tree.RowPart:
        return tree.RowPart("exclusion", tuple(c), span_of(meta))

    def permutation(self, meta: Meta, c: list[Any]) -> tree.RowPart:
        parts = tuple(part for part in c if isinstance(part, tree.RowPart))
        return tree.RowPart("permutation", parts, span_of(meta))

    def anchor_first(self, meta: Meta, c: list[Any]) -> tree.RowPart:
        return tree.RowPart("first", (), span_of(meta))

    def anchor_last(self, meta: Meta, c: list[Any]) -> tree.RowPart:
        return tree.RowPart("last", (), span_of(meta))

    def optional(self, meta: Meta, c: list[Token]) -> tree.Quantifier:
        return tree.Quantifier(0, 1, span_of(meta))

    def exactly(self, meta: Meta, c: list[Token]) -> tree.Quantifier:
        return tree.Quantifier(int(c[0]), int(c[0]), span_of(meta))

    def at_most(self, meta: Meta, c: list[Token]) -> tree.Quantifier:
        return tree.Quantifier(0, int(c[1]), span_of(meta))

    def within(self, meta: Meta, c: list[Token]) -> tree.Within:
        text = str(c[0]).strip("'")
        try:
            size = language.fraction(Token("DECIMAL", text))
        except (ValueError, ZeroDivisionError):
            self._problems.add(
                "P011", f"P011 {c[0]} is no number", token_span(c[0]), "INTERVAL '10' MINUTE"
            )
            size = Fraction(1)
        return tree.Within(size, token_name(c[1]), span_of(meta))

    def subsets(self, meta: Meta, c: list[Any]) -> tuple[Any, ...]:
        return tuple(part for part in c if isinstance(part, tuple))

    def subset(self, meta: Meta, c: list[Token]) -> tuple[s.Name, tuple[s.Name, ...]]:
        return token_name(c[0]), _names(c[1:])

    def define(self, meta: Meta, c: list[Any]) -> tuple[tuple[s.Name, s.Expression], ...]:
        return tuple(part for part in c if isinstance(part, tuple))

    def definition(self, meta: Meta, c: list[Any]) -> tuple[s.Name, s.Expression]:
        return (token_name(c[0]), c[1])

    def rows_of(self, meta: Meta, c: list[Token]) -> s.Reference:
        return s.Reference((token_name(c[0]),), span_of(meta), everything=True)

    def semantics(self, meta: Meta, c: list[Any]) -> tree.Semantics:
        word, *call = c
        return self._semantics(word, self.call(meta, [*call, None]))

    def semantics_star(self, meta: Meta, c: list[Any]) -> tree.Semantics:
        only = None if c[3] is None else c[3][1]
        return self._semantics(c[0], s.FunctionCall(c[1], (), span_of(meta), star=True, where=only))

    def _semantics(self, word: Token, call: s.FunctionCall) -> tree.Semantics:
        return tree.Semantics(call, str(word).lower() == "final", token_span(word))
