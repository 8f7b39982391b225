"""Statements of PATTERN and MATCH_RECOGNIZE as written, before any name is looked up. Their
expressions are those of all languages."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from seustream.compiler.errors import Span
from seustream.compiler.language.syntax import Expression, FunctionCall, Name, Option


@dataclass(frozen=True, slots=True)
class Quantifier:
    """`least` to `most` events, None for no maximum."""

    least: int
    most: int | None
    span: Span


@dataclass(frozen=True, slots=True)
class ElementClause:
    """One step of a sequence: an event of one of some types, or of any type if it lists none."""

    types: tuple[str, ...]
    quantifier: Quantifier | None
    alias: Name | None
    negated: bool
    span: Span
    optional: bool = False


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of several sequences; includes the empty one if none is required."""

    ways: tuple[tuple[ElementClause | OneOf, ...], ...]


@dataclass(frozen=True, slots=True)
class ReturnItem:
    expression: Expression
    alias: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class Header:
    """The purpose of the query: `verb` is register, create or explain, `mode` "replace" (OR
    REPLACE), "unless" (IF NOT EXISTS) or empty."""

    verb: str
    name: Name | None
    span: Span
    mode: str = ""


class Headed:
    """A statement that may have a header."""

    __slots__ = ()
    header: Header | None
    span: Span

    @property
    def name(self) -> Name | None:
        """Returns the name that the header gives."""
        return None if self.header is None else self.header.name

    @property
    def mode(self) -> str:
        """Returns the mode that the header gives."""
        return "" if self.header is None else self.header.mode

    @property
    def creates(self) -> bool:
        """Returns whether the statement defines a stream."""
        return self.header is not None and self.header.verb == "create"

    @property
    def body(self) -> Span:
        """Returns the place of the statement without its header."""
        return self.span if self.header is None else Span(self.header.span.end, self.span.end)


@dataclass(frozen=True, slots=True)
class From:
    stream: Name
    type_by: Name | None


@dataclass(frozen=True, slots=True)
class Within:
    size: Fraction
    unit: Name
    span: Span


@dataclass(frozen=True, slots=True)
class Pattern(Headed):
    """A PATTERN statement; `strategy` is any, any_group, any_subsets, next or strict, and
    `skip` no_skip, skip_to_next or skip_past_last. `items` is None for `*`."""

    header: Header | None
    sequence: tuple[ElementClause | OneOf, ...]
    source: From | None
    partition: tuple[Name, ...]
    where: Expression | None
    within: Within | None
    strategy: tuple[str, Span] | None
    skip: str
    items: tuple[ReturnItem, ...] | None
    options: tuple[Option, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class RowPart:
    """A part of a row pattern. `kind` is one, sequence, choice, repeat, exclusion, permutation,
    first or last (anchors). Only one row has a `name`, and only a repeat has the last two members."""

    kind: str
    parts: tuple[RowPart, ...]
    span: Span
    name: Name | None = None
    quantifier: Quantifier | None = None
    reluctant: bool = False


@dataclass(frozen=True, slots=True)
class Semantics(Expression):
    """RUNNING or FINAL before a call."""

    call: FunctionCall
    final: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Selected:
    """A column after SELECT, its name in the result, and the name before its dot."""

    column: Name
    alias: Name | None
    of: Name | None = None


@dataclass(frozen=True, slots=True)
class Recognize(Headed):
    """A SELECT over MATCH_RECOGNIZE. `columns` is None for `*`, `selected` their place. `skip` is
    past_last, to_next, to_first or to_last, `rows` one_row, all_rows, omit_empty or unmatched."""

    header: Header | None
    columns: tuple[Selected, ...] | None
    selected: Span
    stream: Name
    partition: tuple[Name, ...]
    order: tuple[tuple[Name, str], ...]
    measures: tuple[ReturnItem, ...]
    rows: tuple[str, Span]
    skip: tuple[str, Name | None]
    pattern: RowPart
    within: Within | None
    subsets: tuple[tuple[Name, tuple[Name, ...]], ...]
    definitions: tuple[tuple[Name, Expression], ...]
    options: tuple[Option, ...]
    span: Span
    alias: Name | None = None


Statement = Pattern | Recognize
