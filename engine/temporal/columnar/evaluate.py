"""APAS expressions over whole columns; values are those of `compiler.apas.values`, row by row.

Columns are numpy arrays: int64, float64, bool, and objects for STRING. A value that does not exist
in some row raises `NoValue`; `and` and `or` look at the right side only where the left leaves it
open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from compiler.apas import expressions as x
from compiler.apas import network as n
from compiler.apas.functions import Scalar
from compiler.apas.types import BOOLEAN, INTEGER, STRING, Type
from compiler.apas.values import NoValue, cast, operation
from engine.temporal.library import DTYPES, calling

Column = npt.NDArray[Any]
Columns = Sequence[Column]

_SIGN = np.int64(-(2**63))


class Evaluator:
    """Evaluates over the incoming columns; writes go to `out` by place."""

    def __init__(self, frame: n.Frame, columns: Columns, count: int) -> None:
        self.frame, self.columns, self.count = frame, columns, count
        self.out: dict[int, Column] = {}

    def value(self, e: x.Expression) -> Column:
        match e:
            case x.Constant(value=value, type=type):
                return np.full(self.count, value, DTYPES[type])
            case x.Read(place=place):
                at = self.frame.reads.get(place)
                return self.columns[at] if at is not None else self.out[self.frame.writes[place]]
            case x.Cast(argument=argument, type=type):
                return _cast(self.value(argument), argument.type, type)
            case x.Operate():
                return self._operate(e)
            case x.Invoke():
                self.steps(e.before)
                return self._call(e.name, e.bound.function, e.arguments, [e.type])[0]

    def steps(self, steps: Sequence[x.Step]) -> None:
        for step in steps:
            if isinstance(step, x.Assign):
                self.out[self.frame.writes[step.place]] = self.value(step.value)
                continue
            self.steps(step.before)
            types = step.bound.result.types
            found = self._call(step.name, step.bound.function, step.arguments, types)
            for path, column in zip(step.paths, found, strict=True):
                self.out[self.frame.writes[step.structure, path]] = column

    def _call(
        self,
        name: str,
        function: object,
        arguments: Sequence[x.Expression],
        types: Sequence[Type],
    ) -> list[Column]:
        assert isinstance(function, Scalar)
        values = [self.value(argument).tolist() for argument in arguments]
        with calling(name):
            rows = [function.call(row) for row in zip(*values, strict=True)]
        return [np.array([row[i] for row in rows], DTYPES[type]) for i, type in enumerate(types)]

    def _operate(self, e: x.Operate) -> Column:
        first = self.value(e.arguments[0])
        if e.ct is BOOLEAN and e.operator in ("AND", "OR"):
            return self._short(e, first)
        rest = [self.value(argument) for argument in e.arguments[1:]]
        if e.ct is INTEGER and e.operator in _CHECKED:
            return _CHECKED[e.operator](first, *rest)
        with np.errstate(all="ignore"):
            found: Column = _PLAIN[e.operator](first, *rest)
        return found.astype(DTYPES[e.type], copy=False)

    def _short(self, e: x.Operate, first: Column) -> Column:
        open_ones = first if e.operator == "AND" else ~first
        places = np.flatnonzero(open_ones)
        if len(places) == self.count:
            return self.value(e.arguments[1])
        found = first.copy()
        if len(places):
            inside = Evaluator(self.frame, [c[places] for c in self.columns], len(places))
            inside.out = {at: column[places] for at, column in self.out.items()}
            found[places] = inside.value(e.arguments[1])
        return found


def holds(filter: n.Filter, columns: Columns, count: int) -> npt.NDArray[np.int64]:
    """The rows for which all conditions hold; each is evaluated where those before it do."""
    left = np.arange(count)
    for condition in filter.conditions:
        some = columns if len(left) == count else [column[left] for column in columns]
        left = left[Evaluator(filter.frame, some, len(left)).value(condition)]
    return left


def mapped(map: n.Map, columns: Columns, count: int) -> list[Column]:
    """The result's columns, without ts and te."""
    evaluator = Evaluator(map.frame, columns, count)
    evaluator.steps(map.steps)
    return [evaluator.out[at] for at in range(2, map.width)]


def _cast(column: Column, source: Type, target: Type) -> Column:
    if target is STRING:
        function = cast(source, target)
        return np.array([function(value) for value in column.tolist()] or [], np.object_)
    return column.astype(DTYPES[target])


def _overflows(wrong: Column) -> None:
    if wrong.any():
        raise NoValue("an INTEGER does not fit 64 bits")


def _add(a: Column, b: Column) -> Column:
    with np.errstate(over="ignore"):
        found: Column = a + b
    _overflows(((a ^ found) & (b ^ found)) < 0)
    return found


def _subtract(a: Column, b: Column) -> Column:
    with np.errstate(over="ignore"):
        found: Column = a - b
    _overflows(((a ^ b) & (a ^ found)) < 0)
    return found


def _multiply(a: Column, b: Column) -> Column:
    about = np.abs(a.astype(np.float64) * b.astype(np.float64))
    if (about >= 2.0**62).any():
        return _row_by_row("*", a, b)
    found: Column = a * b
    return found


def _divide(a: Column, b: Column) -> Column:
    if (b == 0).any() or (a == _SIGN).any() or (b == _SIGN).any():
        return _row_by_row("/", a, b)
    quotient = np.abs(a) // np.abs(b)
    found: Column = np.where((a < 0) == (b < 0), quotient, -quotient)
    return found


def _negate(a: Column) -> Column:
    _overflows(a == _SIGN)
    found: Column = -a
    return found


def _row_by_row(name: str, a: Column, b: Column) -> Column:
    function = operation(name, INTEGER)
    rows = zip(a.tolist(), b.tolist(), strict=True)
    return np.array([function(left, right) for left, right in rows], np.int64)


_CHECKED: dict[str, Callable[..., Column]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "negate": _negate,
}

_PLAIN: Mapping[str, Callable[..., Any]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "negate": np.negative,
    "AND": np.bitwise_and,
    "OR": np.bitwise_or,
    "XOR": np.bitwise_xor,
    "NOT": np.invert,
}
