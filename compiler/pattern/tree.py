"""Statements of PATTERN and MATCH_RECOGNIZE: what was written, before any name is looked up. Their
expressions are those of all languages."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from seustream.compiler.errors import Span
from seustream.compiler.language.syntax import Expression, Name


@dataclass(frozen=True, slots=True)
class Quantifier:
    """`least` to `most` events, None for no maximum."""

    least: int
    most: int | None
    span: Span


@dataclass(frozen=True, slots=True)
class ElementClause:
    """One step of a sequence; `type` is None for ANY."""

    type: str | None
    quantifier: Quantifier | None
    alias: Name | None
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class ReturnItem:
    expression: Expression
    alias: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class Header:
    """The fate of the query: `verb` is register, create or explain."""

    verb: str
    name: Name | None
    span: Span


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
class Pattern:
    """A PATTERN statement; `strategy` is any, any_group, any_subsets, next or strict, and
    `skip` no_skip, skip_to_next or skip_past_last. `items` is None for `*`."""

    header: Header | None
    elements: tuple[ElementClause, ...]
    source: From | None
    partition: tuple[Name, ...]
    where: Expression | None
    within: Within | None
    strategy: tuple[str, Span] | None
    skip: str
    items: tuple[ReturnItem, ...] | None
    options: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A part of MATCH_RECOGNIZE this version does not run."""

    what: str
    span: Span


@dataclass(frozen=True, slots=True)
class Recognize:
    """A SELECT over MATCH_RECOGNIZE. `skip` is past_last, to_next, to_first or to_last."""

    header: Header | None
    columns: tuple[Name, ...] | None
    stream: Name
    partition: tuple[Name, ...]
    order: tuple[tuple[Name, str], ...]
    measures: tuple[ReturnItem, ...]
    skip: tuple[str, Name | None]
    elements: tuple[ElementClause, ...]
    within: Within | None
    definitions: tuple[tuple[Name, Expression], ...]
    unsupported: tuple[Unsupported, ...]
    options: tuple[Name, ...]
    span: Span


Statement = Pattern | Recognize
