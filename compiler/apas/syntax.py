"""Syntax trees of APAS queries. Every node has its place in the text."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.apas.types import Type
from compiler.errors import Span


@dataclass(frozen=True, slots=True)
class Names:
    """A dotted path."""

    parts: tuple[str, ...]
    span: Span

    def __str__(self) -> str:
        return ".".join(self.parts)


# --- expressions --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Literal:
    value: int | float | str | bool
    type: Type
    span: Span
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Relative:
    """`a.b`: in the nearest enclosing bracket."""

    path: Names
    span: Span
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Rooted:
    """`$S.a.b`."""

    path: Names
    span: Span
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Prefix:
    operator: str
    argument: Expression
    span: Span
    depth: int


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: Expression
    right: Expression
    span: Span
    operator_span: Span
    depth: int


@dataclass(frozen=True, slots=True)
class Call:
    function: Names
    arguments: tuple[Argument, ...]
    span: Span
    depth: int


Expression = Literal | Relative | Rooted | Prefix | Binary | Call

# --- what stands in brackets --------------------------------------------------


@dataclass(frozen=True, slots=True)
class Copy:
    """Children of a location into the target. `picks` are paths below the root, each of which is
    copied; the empty one is the root's own `[T]`."""

    root: Names
    absolute: bool
    picks: tuple[Names, ...]
    span: Span
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Level:
    items: tuple[Item, ...]
    span: Span
    depth: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """`path = value`."""

    path: Names
    value: Expression | Level
    span: Span


@dataclass(frozen=True, slots=True)
class Inner:
    """`path [ … ]`."""

    path: Names
    level: Level
    span: Span


Item = Assignment | Inner | Level | Copy


@dataclass(frozen=True, slots=True)
class Argument:
    label: str | None
    value: Expression | Copy | Level
    span: Span


# --- queries ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Subquery:
    """`name` is None of an anonymous target; `items` are what its brackets hold, the three
    spellings of one thing made equal."""

    where: tuple[Expression, ...]
    name: Names | None
    items: tuple[Item, ...]
    span: Span
    target_span: Span


@dataclass(frozen=True, slots=True)
class Query:
    definitions: tuple[Subquery, ...]
    final: Subquery
