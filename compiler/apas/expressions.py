"""APAS's leaves of expressions, and the steps that assign the values of expressions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from seustream.compiler.apas.functions import Aggregate, Bound, Registered
from seustream.compiler.apas.tree import Path
from seustream.compiler.apas.types import settled
from seustream.compiler.errors import Span
from seustream.compiler.language import expressions as x
from seustream.compiler.language.evaluate import compile_row
from seustream.compiler.language.expressions import Expression, Leaf
from seustream.compiler.language.faults import Place as FaultPlace
from seustream.compiler.language.types import Type

Place = tuple[str, Path]
"""A leaf: the structure that contains it (an input's name, the target's, or a temporary's number)
and its path there."""


@dataclass(frozen=True, slots=True)
class LeafRead(Leaf):
    """Reads a leaf of an attribute tree, or a time of a tuple."""

    place: Place
    type: Type

    def show(self) -> str:
        return show_place(self.place)


@dataclass(frozen=True, slots=True)
class Invoke(Leaf):
    """Calls a function of a library that gives one value. `before` fills the temporaries that it
    reads."""

    bound: Bound
    arguments: tuple[Expression, ...]
    before: tuple[Step, ...]
    type: Type
    name: str

    def show(self) -> str:
        return f"{self.name}({', '.join(map(x.show, self.arguments))})"


@dataclass(frozen=True, slots=True)
class Assign:
    """Assigns the value of an expression to one leaf."""

    place: Place
    value: Expression


@dataclass(frozen=True, slots=True)
class AssignTree:
    """Assigns the result of a function to all leaves of a structure."""

    structure: str
    paths: tuple[Path, ...]
    bound: Bound
    arguments: tuple[Expression, ...]
    before: tuple[Step, ...]
    name: str


Step = Assign | AssignTree


@dataclass(frozen=True, slots=True)
class PartialAggregate:
    """One aggregate call, which phase 1 computes into its structure."""

    structure: str
    bound: Bound
    arguments: tuple[Expression, ...]
    before: tuple[Step, ...]
    name: str
    at: Span | None = None

    @property
    def place(self) -> FaultPlace:
        """Returns where a result without a value is counted."""
        function = self.aggregate
        reason = function.entry.fault if isinstance(function, Registered) else "no value"
        shown = f"{self.name}({', '.join(map(x.show, self.arguments)) or '*'})"
        return FaultPlace(self.at, shown, reason)

    @property
    def aggregate(self) -> Aggregate:
        function = self.bound.function
        assert isinstance(function, Aggregate)
        return function


def written(step: Step) -> list[Place]:
    if isinstance(step, Assign):
        return [step.place]
    return [(step.structure, path) for path in step.paths]


def read_by(*what: Expression | Step | PartialAggregate) -> Iterator[Place]:
    """Yields every place that is read, including by the steps that fill temporaries."""
    waiting: list[Any] = list(what)
    while waiting:
        at = waiting.pop()
        match at:
            case LeafRead(place=place):
                yield place
            case Assign(value=value):
                waiting.append(value)
            case Invoke() | AssignTree() | PartialAggregate():
                waiting.extend(at.arguments)
                waiting.extend(at.before)
            case _:
                waiting.extend(x.children(at))


def needed(steps: Iterable[Step], wanted: Iterable[Place]) -> tuple[list[Step], set[Place]]:
    """Returns the steps on which the wanted places depend, and the places that they read from
    elsewhere."""
    live, kept = set(wanted), []
    for step in reversed(list(steps)):
        targets = written(step)
        if live.isdisjoint(targets):
            continue
        live.difference_update(targets)
        live.update(read_by(step))
        for before in getattr(step, "before", ()):
            live.difference_update(written(before))
        kept.append(step)
    return kept[::-1], live


def constant(e: Expression) -> Any:
    """Returns the value of an expression that reads nothing; None if it reads something or has no
    value."""
    if any(isinstance(part, Leaf) for part in x.walk(e)):
        return None

    def none(leaf: Leaf) -> Any:
        raise AssertionError(leaf)

    return compile_row(e, none)(())


def converted(e: Expression, to: Type) -> Expression:
    """Returns the expression converted to a type that accepts it implicitly."""
    if e.type == to:
        return e
    if isinstance(e, x.Literal) and (e.value is None or to == settled(e.type)):
        return replace(e, type=to)
    return x.Cast(e, to)


# --- as text ------------------------------------------------------------------


def show_place(place: Place) -> str:
    structure, path = place
    return ".".join((f"${structure}", *path))


def show_step(step: Step | PartialAggregate) -> str:
    if isinstance(step, Assign):
        return f"{show_place(step.place)} = {x.show(step.value)}"
    return f"${step.structure} = {step.name}({', '.join(map(x.show, step.arguments))})"
