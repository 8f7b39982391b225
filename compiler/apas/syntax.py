"""Syntax trees of APAS queries: the nodes beyond the expressions of all languages."""

from __future__ import annotations

from dataclasses import dataclass

from seustream.compiler.errors import Span
from seustream.compiler.language.syntax import Expression, FunctionCall, Reference


@dataclass(frozen=True, slots=True)
class Names:
    """A dotted path."""

    parts: tuple[str, ...]
    span: Span

    def __str__(self) -> str:
        return ".".join(self.parts)


# --- what stands in brackets --------------------------------------------------


@dataclass(frozen=True, slots=True)
class Copy(Expression):
    """Copies children of a location into the target. `picks` are paths below the root, each of
    which is copied; the empty one is the root's own `[T]`."""

    root: Names
    absolute: bool
    picks: tuple[Names, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Level(Expression):
    items: tuple[Item, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Labelled(Expression):
    """`name = value` as an argument."""

    label: str
    value: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Assignment:
    """`path = value`."""

    path: Names
    value: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Inner:
    """`path [ … ]`."""

    path: Names
    level: Level
    span: Span


Item = Assignment | Inner | Level | Copy


# --- queries ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SelectBlock:
    """A select. `name` is None for an anonymous target. `items` are the contents of its brackets;
    the three spellings of one assignment are made equal."""

    where: tuple[Expression, ...]
    name: Names | None
    items: tuple[Item, ...]
    span: Span
    target_span: Span


@dataclass(frozen=True, slots=True)
class ApasQuery:
    definitions: tuple[SelectBlock, ...]
    final: SelectBlock


def names_of(e: Reference) -> Names:
    """Returns the path of a reference."""
    return Names(e.path, Span(e.parts[0].span.start, e.parts[-1].span.end))


def label_of(argument: Expression) -> tuple[str | None, Expression]:
    """Returns an argument's label, or None, and its value."""
    return (argument.label, argument.value) if isinstance(argument, Labelled) else (None, argument)


__all__ = [
    "ApasQuery",
    "Assignment",
    "Copy",
    "Expression",
    "FunctionCall",
    "Inner",
    "Item",
    "Labelled",
    "Level",
    "Names",
    "Reference",
    "SelectBlock",
    "label_of",
    "names_of",
]  # fmt: skip
