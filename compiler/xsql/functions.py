"""The functions X-SQL knows, and what they make of their arguments' types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compiler.language.types import BIGINT, DOUBLE, VARCHAR, Type, common

Result = Callable[[list[Type]], "Type | None"]


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function: how many arguments, what they are, and the result's type,
    None where an argument does not fit."""

    fewest: int
    most: int
    wants: str
    result: Result


def _numbers(result: Type | None = None) -> Result:
    def check(arguments: list[Type]) -> Type | None:
        if not all(argument.is_numeric or argument.is_unknown for argument in arguments):
            return None
        return result or _meet(arguments)

    return check


def _texts(result: Type) -> Result:
    def check(arguments: list[Type]) -> Type | None:
        ok = all(argument.is_text or argument.is_unknown for argument in arguments)
        return result if ok else None

    return check


def _meet(arguments: list[Type]) -> Type | None:
    met: Type | None = arguments[0]
    for argument in arguments[1:]:
        met = None if met is None else common(met, argument)
    return met


def _substring(arguments: list[Type]) -> Type | None:
    text, *numbers = arguments
    fits = text.is_text or text.is_unknown
    fits = fits and all(number.is_integer or number.is_unknown for number in numbers)
    return VARCHAR if fits else None


FUNCTIONS: dict[str, Function] = {
    "abs": Function(1, 1, "a number", _numbers()),
    "ceil": Function(1, 1, "a number", _numbers(DOUBLE)),
    "floor": Function(1, 1, "a number", _numbers(DOUBLE)),
    "round": Function(1, 1, "a number", _numbers(DOUBLE)),
    "sqrt": Function(1, 1, "a number", _numbers(DOUBLE)),
    "power": Function(2, 2, "two numbers", _numbers(DOUBLE)),
    "lower": Function(1, 1, "a text", _texts(VARCHAR)),
    "upper": Function(1, 1, "a text", _texts(VARCHAR)),
    "trim": Function(1, 1, "a text", _texts(VARCHAR)),
    "length": Function(1, 1, "a text", _texts(BIGINT)),
    "substr": Function(2, 3, "a text, the first position from 1, and a length", _substring),
    "coalesce": Function(1, 16, "values of one type", _meet),
    "nullif": Function(2, 2, "two values of one type", _meet),
    "greatest": Function(1, 16, "values of one type", _meet),
    "least": Function(1, 16, "values of one type", _meet),
}


def _summed(argument: Type) -> Type | None:
    if not (argument.is_numeric or argument.is_unknown):
        return None
    return BIGINT if argument.is_integer else DOUBLE


AGGREGATES: dict[str, Callable[[Type], Type | None]] = {
    "count": lambda argument: BIGINT,
    "sum": _summed,
    "avg": lambda argument: DOUBLE if argument.is_numeric or argument.is_unknown else None,
    "min": lambda argument: argument,
    "max": lambda argument: argument,
}
