"""Columns with NULLs, and the value of an expression for many bindings at once.

The meaning is that of `compiler.pattern.evaluate`, value for value: what has no value is NULL,
integers are exact, and a sum goes from left to right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from compiler.pattern import ir
from compiler.pattern.evaluate import FUNCTIONS

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

_SAFE = 1 << 31  # products and sums of smaller integers stay in range


@dataclass(frozen=True, slots=True)
class Column:
    """Values and where they are: `valid` None is everywhere. What stands where it is not valid
    is arbitrary, but a value."""

    values: Array
    valid: Bools | None = None

    def take(self, rows: Array) -> Column:
        return Column(self.values[rows], None if self.valid is None else self.valid[rows])

    def __len__(self) -> int:
        return len(self.values)


class Binding(Protocol):
    """What an expression reads: for each row the event of an element, or something of its
    group. `alone` may give the whole column of a subexpression about one single element,
    evaluated once an event instead of once a binding."""

    size: int

    def value(self, element: int, pick: ir.Pick, attribute: str) -> Column: ...
    def aggregate(self, e: ir.Aggregate) -> Column: ...
    def alone(self, e: ir.Expression) -> Column | None: ...


def holds(e: ir.Expression, binding: Binding) -> Bools:
    """Where a condition is TRUE."""
    found = evaluate(e, binding)
    values = found.values.astype(bool, copy=False)
    return values if found.valid is None else values & found.valid


def evaluate(e: ir.Expression, binding: Binding) -> Column:
    match e:
        case ir.Constant(value):
            return _constant(value, binding.size)
        case ir.Value(element, pick, attribute):
            return binding.value(element, pick, attribute)
        case ir.Aggregate():
            return binding.aggregate(e)
    once = binding.alone(e)
    if once is not None:
        return once
    match e:
        case ir.Minus(operand):
            inner = evaluate(operand, binding)
            if inner.values.dtype.kind == "f":
                return Column(-inner.values, inner.valid)
            zero = Column(np.zeros(len(inner), np.int64))
            return _whole(np.subtract, zero, inner)
        case ir.Arithmetic(operator, left, right):
            a, b = evaluate(left, binding), evaluate(right, binding)
            if operator == "/":
                return _quotient(a, b)
            of = {"+": np.add, "-": np.subtract, "*": np.multiply}[operator]
            return _whole(of, a, b) if e.type.is_integer else _real(of, a, b)
        case ir.Comparison(operator, left, right):
            return _comparison(operator, evaluate(left, binding), evaluate(right, binding))
        case ir.InList(operand, items):
            return _in_list(evaluate(operand, binding), [evaluate(i, binding) for i in items])
        case ir.IsNull(operand):
            inner = evaluate(operand, binding)
            if inner.valid is None:
                return Column(np.zeros(len(inner), bool))
            return Column(~inner.valid)
        case ir.Not(operand):
            inner = evaluate(operand, binding)
            return Column(~inner.values.astype(bool, copy=False), inner.valid)
        case ir.Connective(operator, operands):
            return _connective(operator == "OR", [evaluate(o, binding) for o in operands])
        case ir.Call(function, arguments):
            return _call(function, [evaluate(a, binding) for a in arguments], e.type.is_text)
    raise AssertionError(e)


def _constant(value: object, size: int) -> Column:
    if value is None:
        return Column(np.zeros(size), np.zeros(size, bool))
    if isinstance(value, str):
        found = np.empty(size, object)
        found[:] = value
        return Column(found)
    return Column(np.full(size, value))


def both(a: Column, b: Column) -> Bools | None:
    if a.valid is None:
        return b.valid
    return a.valid if b.valid is None else a.valid & b.valid


def without_nan(values: Array, valid: Bools | None) -> Column:
    """NaN is no value."""
    nan = np.isnan(values)
    if not nan.any():
        return Column(values, valid)
    return Column(values, ~nan if valid is None else valid & ~nan)


def _real(of: Callable[..., Any], a: Column, b: Column) -> Column:
    with np.errstate(all="ignore"):
        values = of(
            a.values.astype(np.float64, copy=False), b.values.astype(np.float64, copy=False)
        )
    return without_nan(values, both(a, b))


def _quotient(a: Column, b: Column) -> Column:
    x, y = (c.values.astype(np.float64, copy=False) for c in (a, b))
    zero = y == 0
    with np.errstate(all="ignore"):
        values = x / np.where(zero, 1.0, y)
    valid = both(a, b)
    if zero.any():
        valid = ~zero if valid is None else valid & ~zero
    return without_nan(values, valid)


def _whole(of: Callable[..., Any], a: Column, b: Column) -> Column:
    """Integers, exactly; out of range is NULL. (A NULL literal comes as a real.)"""
    x, y = (c.values.astype(np.int64, copy=False) for c in (a, b))
    valid = both(a, b)
    if not len(x) or (_largest(x) < _SAFE and _largest(y) < _SAFE):
        return Column(of(x, y), valid)
    exact = of(x.astype(object), y.astype(object))
    inside = np.array([-(1 << 63) <= v < 1 << 63 for v in exact], bool)
    values = np.where(inside, exact, 0).astype(np.int64)
    return Column(values, inside if valid is None else valid & inside)


def _largest(values: Ints) -> int:
    return max(abs(int(values.min())), abs(int(values.max())))


_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def _comparison(operator: str, a: Column, b: Column) -> Column:
    x, y = a.values, b.values
    if x.dtype == object or y.dtype == object:
        return _by_value(_COMPARE[operator], a, b)
    if "f" in (x.dtype.kind, y.dtype.kind):
        x, y = x.astype(np.float64, copy=False), y.astype(np.float64, copy=False)
    return Column(_COMPARE[operator](x, y), both(a, b))


def _by_value(of: Callable[[Array, Array], Array], a: Column, b: Column) -> Column:
    """Texts: compared only where both are."""
    valid = both(a, b)
    found = np.zeros(len(a), bool)
    where = slice(None) if valid is None else valid
    found[where] = of(a.values[where], b.values[where])
    return Column(found, valid)


def _in_list(operand: Column, items: list[Column]) -> Column:
    found = np.zeros(len(operand), bool)
    unknown = np.zeros(len(operand), bool)
    for item in items:
        same = _comparison("=", operand, item)
        known = np.ones(len(found), bool) if same.valid is None else same.valid
        found |= same.values.astype(bool) & known
        unknown |= ~known
    valid = found | ~unknown
    if operand.valid is not None:
        valid &= operand.valid
    return Column(found, valid)


def _connective(decisive: bool, operands: list[Column]) -> Column:
    decided = np.zeros(len(operands[0]), bool)
    unknown = np.zeros(len(operands[0]), bool)
    for operand in operands:
        values = operand.values.astype(bool, copy=False)
        says = values if decisive else ~values
        if operand.valid is not None:
            unknown |= ~operand.valid
            says = says & operand.valid
        decided |= says
    return Column(decided if decisive else ~decided, decided | ~unknown)


def _call(function: str, arguments: list[Column], text: bool) -> Column:
    """Functions are applied value by value: they are rare, and their meaning stands once."""
    of = FUNCTIONS[function]
    valid = np.ones(len(arguments[0]), bool)
    for argument in arguments:
        if argument.valid is not None:
            valid &= argument.valid
    rows = zip(*(argument.values.tolist() for argument in arguments), strict=True)
    results = [of(*row) if ok else None for row, ok in zip(rows, valid.tolist(), strict=True)]
    return column_of(results, text)


def column_of(values: list[Any], text: bool = False) -> Column:
    """A column of plain values, None for NULL."""
    valid = np.array([value is not None for value in values], bool)
    if text or any(isinstance(value, str) for value in values):
        found = np.empty(len(values), object)
        found[:] = values
        return Column(found, None if valid.all() else valid)
    filled = [0 if value is None else value for value in values]
    if any(isinstance(value, float) for value in filled):
        array: Array = np.array(filled, np.float64)
    elif filled and all(isinstance(v, bool) for v, ok in zip(filled, valid, strict=True) if ok):
        array = np.array(filled, bool)
    else:
        array = np.array(filled, np.int64)
    return Column(array, None if valid.all() else valid)
