"""Typed expressions, and the steps that assign them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from compiler.apas.functions import Aggregate, Bound
from compiler.apas.tree import Path
from compiler.apas.types import BOOLEAN, STRING, Type
from compiler.apas.values import cast, operation

Place = tuple[str, Path]
"""A leaf: the structure it is in (an input's name, the target's, or a temporary's number) and its
path there."""


@dataclass(frozen=True, slots=True)
class Constant:
    value: Any
    type: Type


@dataclass(frozen=True, slots=True)
class Read:
    place: Place
    type: Type


@dataclass(frozen=True, slots=True)
class Cast:
    argument: Expression
    type: Type


@dataclass(frozen=True, slots=True)
class Operate:
    """An operator at its computation type."""

    operator: str
    ct: Type
    arguments: tuple[Expression, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Invoke:
    """A scalar function that gives one value. `before` fills the temporaries it reads."""

    bound: Bound
    arguments: tuple[Expression, ...]
    before: tuple[Step, ...]
    type: Type
    name: str


Expression = Constant | Read | Cast | Operate | Invoke


@dataclass(frozen=True, slots=True)
class Assign:
    """One leaf becomes the value of an expression."""

    place: Place
    value: Expression


@dataclass(frozen=True, slots=True)
class AssignTree:
    """All leaves of a structure become what a function gives."""

    structure: str
    paths: tuple[Path, ...]
    bound: Bound
    arguments: tuple[Expression, ...]
    before: tuple[Step, ...]
    name: str


Step = Assign | AssignTree


@dataclass(frozen=True, slots=True)
class Partial:
    """One aggregate call: phase 1 computes it into its structure."""

    structure: str
    bound: Bound
    arguments: tuple[Expression, ...]
    before: tuple[Step, ...]
    name: str

    @property
    def aggregate(self) -> Aggregate:
        function = self.bound.function
        assert isinstance(function, Aggregate)
        return function


def written(step: Step) -> list[Place]:
    if isinstance(step, Assign):
        return [step.place]
    return [(step.structure, path) for path in step.paths]


def read_by(*what: Expression | Step | Partial) -> Iterator[Place]:
    """Every place that is read, temporaries filled on the way included."""
    waiting: list[Any] = list(what)
    while waiting:
        at = waiting.pop()
        match at:
            case Read(place=place):
                yield place
            case Cast(argument=argument):
                waiting.append(argument)
            case Assign(value=value):
                waiting.append(value)
            case Operate(arguments=arguments):
                waiting.extend(arguments)
            case Invoke() | AssignTree() | Partial():
                waiting.extend(at.arguments)
                waiting.extend(at.before)
            case _:
                pass


def needed(steps: Iterable[Step], wanted: Iterable[Place]) -> tuple[list[Step], set[Place]]:
    """The steps that what is wanted depends on, and what they read from elsewhere."""
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
    """The value of an expression that reads nothing, None of any other; raises `NoValue`."""
    match e:
        case Constant(value=value):
            return value
        case Cast(argument=argument, type=type):
            value = constant(argument)
            return None if value is None else cast(argument.type, type)(value)
        case Operate(operator=name, ct=ct, arguments=arguments):
            values = [constant(argument) for argument in arguments]
            return None if None in values else operation(name, ct)(*values)
        case _:
            return None


def conjuncts(e: Expression) -> list[Expression]:
    """What has to hold, one by one, in order."""
    if isinstance(e, Operate) and e.operator == "AND" and e.ct is BOOLEAN:
        return [part for argument in e.arguments for part in conjuncts(argument)]
    return [e]


# --- as text ------------------------------------------------------------------


def show_place(place: Place) -> str:
    structure, path = place
    return ".".join((f"${structure}", *path))


def show(e: Expression) -> str:
    """Fully parenthesised, casts visible."""
    match e:
        case Constant(value=value, type=type):
            return repr(value) if type is STRING else str(value)
        case Read(place=place):
            return show_place(place)
        case Cast(argument=argument, type=type):
            return f"{type.value}({show(argument)})"
        case Operate(operator="negate", arguments=(argument,)):
            return f"-{show(argument)}"
        case Operate(operator=name, arguments=(argument,)):
            return f"{name} {show(argument)}"
        case Operate(operator=name, arguments=(left, right)):
            return f"({show(left)} {name} {show(right)})"
        case Invoke(name=name, arguments=arguments):
            return f"{name}({', '.join(map(show, arguments))})"
        case _:
            raise AssertionError(e)


def show_step(step: Step | Partial) -> str:
    if isinstance(step, Assign):
        return f"{show_place(step.place)} = {show(step.value)}"
    return f"${step.structure} = {step.name}({', '.join(map(show, step.arguments))})"
