"""The meaning of an expression, one binding at a time: three-valued, NULL as None.

Arithmetic is of float64, and of int64 as long as no operand is real and nothing is divided. What
has no value is NULL: a division by zero, an integer out of range, NaN, the root of a negative
number. This is the reference; the columnar evaluation of the engine must agree with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from compiler.pattern import ir
from compiler.pattern.ir import Pick


class Event(Protocol):
    """What an expression reads of an event; attributes are NULL where they are missing."""

    @property
    def ts(self) -> int: ...
    @property
    def attrs(self) -> Mapping[str, Any]: ...


Groups = Sequence[Sequence[Event]]
"""The events of each element; of a single one, one event."""

At = Sequence[int]
"""For each element, which member EACH means, from 0."""

Evaluator = Callable[[Groups, At], Any]

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


def evaluator(e: ir.Expression) -> Evaluator:
    """A function that gives the value of `e` for a binding."""
    match e:
        case ir.Constant(value):
            return lambda groups, at: value
        case ir.Value():
            return _value(e)
        case ir.Aggregate():
            return _aggregate(e)
        case ir.Minus(operand):
            inner = evaluator(operand)
            return lambda groups, at: _lifted(_minus, inner(groups, at))
        case ir.Arithmetic(operator, left, right):
            of = {"+": _plus, "-": _less, "*": _times, "/": _over}[operator]
            return _binary(of, evaluator(left), evaluator(right), e.type.is_integer)
        case ir.Comparison(operator, left, right):
            real = left.type.is_numeric and left.type.is_integer != right.type.is_integer
            return _comparison(COMPARISONS[operator], evaluator(left), evaluator(right), real)
        case ir.InList(operand, items):
            return _in_list(evaluator(operand), [evaluator(item) for item in items])
        case ir.IsNull(operand):
            inner = evaluator(operand)
            return lambda groups, at: inner(groups, at) is None
        case ir.Not(operand):
            inner = evaluator(operand)
            return lambda groups, at: _lifted(_not, inner(groups, at))
        case ir.Connective(operator, operands):
            return _connective(operator == "OR", [evaluator(operand) for operand in operands])
        case ir.Call(function, arguments):
            return _call(function, [evaluator(argument) for argument in arguments])


COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _value(e: ir.Value) -> Evaluator:
    element, name = e.element, e.attribute
    back = {Pick.ONE: None, Pick.FIRST: None, Pick.LAST: None, Pick.EACH: 0, Pick.PREVIOUS: 1}
    offset = back[e.pick]
    fixed = -1 if e.pick is Pick.LAST else 0
    if name == ir.TIME:
        if offset is None:
            return lambda groups, at: groups[element][fixed].ts
        return lambda groups, at: groups[element][at[element] - offset].ts
    if offset is None:
        return lambda groups, at: groups[element][fixed].attrs.get(name)
    return lambda groups, at: groups[element][at[element] - offset].attrs.get(name)


def aggregate(function: str, values: list[Any]) -> Any:
    """An aggregate of values that are not NULL."""
    result = _AGGREGATES[function](values)
    return _in_range(result) if isinstance(result, int) else _real(result)


def _aggregate(e: ir.Aggregate) -> Evaluator:
    element, before, name = e.element, e.before, e.attribute

    def value(groups: Groups, at: At) -> Any:
        events = groups[element][: at[element]] if before else groups[element]
        if name is None:
            return len(events)
        if name == ir.TIME:
            return aggregate(e.function, [event.ts for event in events])
        found = [event.attrs.get(name) for event in events]
        return aggregate(e.function, [v for v in found if v is not None])

    return value


def _sum(values: list[Any]) -> Any:
    """From left to right, one rounding a step: the built-in `sum` compensates in some versions
    of Python, and then differs from a sum over columns."""
    total = 0
    for value in values:
        total += value
    return total


_AGGREGATES: Mapping[str, Callable[[list[Any]], Any]] = {
    "count": len,
    "sum": lambda values: _sum(values) if values else None,
    "avg": lambda values: float(_sum(values)) / len(values) if values else None,
    "min": lambda values: min(values, default=None),
    "max": lambda values: max(values, default=None),
}


def _lifted(of: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else of(value)


def _minus(value: Any) -> Any:
    return _in_range(-value) if isinstance(value, int) else -value


def _not(value: bool) -> bool:
    return not value


def _plus(a: Any, b: Any) -> Any:
    return a + b


def _less(a: Any, b: Any) -> Any:
    return a - b


def _times(a: Any, b: Any) -> Any:
    return a * b


def _over(a: Any, b: Any) -> Any:
    return float(a) / float(b) if b else None


def _binary(
    of: Callable[[Any, Any], Any], left: Evaluator, right: Evaluator, whole: bool
) -> Evaluator:
    def exact(groups: Groups, at: At) -> Any:
        a, b = left(groups, at), right(groups, at)
        return None if a is None or b is None else _in_range(of(a, b))

    def real(groups: Groups, at: At) -> Any:
        a, b = left(groups, at), right(groups, at)
        return None if a is None or b is None else _real(of(float(a), float(b)))

    return exact if whole else real


def _in_range(value: Any) -> Any:
    return value if value is not None and _LEAST <= value <= _MOST else None


def _real(value: Any) -> Any:
    return value if value == value else None  # NaN is no value


def _comparison(
    of: Callable[[Any, Any], bool], left: Evaluator, right: Evaluator, real: bool
) -> Evaluator:
    def as_they_are(groups: Groups, at: At) -> bool | None:
        a, b = left(groups, at), right(groups, at)
        return None if a is None or b is None else of(a, b)

    def as_reals(groups: Groups, at: At) -> bool | None:
        a, b = left(groups, at), right(groups, at)
        return None if a is None or b is None else of(float(a), float(b))

    return as_reals if real else as_they_are


def _in_list(operand: Evaluator, items: list[Evaluator]) -> Evaluator:
    def value(groups: Groups, at: At) -> Any:
        found = operand(groups, at)
        if found is None:
            return None
        among = [item(groups, at) for item in items]
        if found in among:
            return True
        return None if None in among else False

    return value


def _connective(decisive: bool, operands: list[Evaluator]) -> Evaluator:
    def value(groups: Groups, at: At) -> Any:
        result: bool | None = not decisive
        for operand in operands:
            found = operand(groups, at)
            if found is decisive:
                return decisive
            if found is None:
                result = None
        return result

    return value


def _call(function: str, arguments: list[Evaluator]) -> Evaluator:
    of = FUNCTIONS[function]

    def value(groups: Groups, at: At) -> Any:
        values = [argument(groups, at) for argument in arguments]
        return None if None in values else of(*values)

    return value


def _modulo(a: Any, b: Any) -> Any:
    """The remainder with the sign of the dividend, as in SQL."""
    if not b:
        return None
    if isinstance(a, int) and isinstance(b, int):
        return int(math.copysign(1, a)) * (abs(a) % abs(b))
    return _real(math.fmod(a, b)) if math.isfinite(a) else None


def _rounded(of: Callable[[float], int]) -> Callable[[Any], float]:
    return lambda value: float(of(value)) if math.isfinite(value) else float(value)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": lambda value: _in_range(abs(value)) if isinstance(value, int) else abs(value),
    "ceil": _rounded(math.ceil),
    "floor": _rounded(math.floor),
    "length": len,
    "lower": str.lower,
    "mod": _modulo,
    "sqrt": lambda value: math.sqrt(value) if value >= 0 else None,
    "upper": str.upper,
}


def holds(e: ir.Expression) -> bool:
    """Whether a condition without variables is TRUE."""
    return evaluator(e)((), ()) is True
