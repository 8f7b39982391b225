"""Expressions over Arrow columns, with SQL's NULL.

`evaluate` computes any bound expression over rows; `holds` says where a condition is true.
Integer arithmetic is done in 64 bits and an overflow is an error, division by zero is NULL.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from compiler.plan import expressions as x
from compiler.plan.types import Type
from engine.host.errors import EvaluationError
from engine.host.schema import arrow_type
from hdl.isa import Condition

Rows = Mapping[tuple[int, str], pa.Array]
"""Columns by (source, name)."""

_COMPARE = {
    Condition.LT: pc.less,
    Condition.EQ: pc.equal,
    Condition.GT: pc.greater,
    Condition.GE: pc.greater_equal,
    Condition.LE: pc.less_equal,
    Condition.NE: pc.not_equal,
}


def holds(condition: x.Expression, rows: Rows, count: int) -> npt.NDArray[np.bool_]:
    """Where the condition is true; neither false nor NULL."""
    value = evaluate(condition, rows, count)
    return np.asarray(pc.fill_null(value, False), dtype=np.bool_)


def evaluate(e: x.Expression, rows: Rows, count: int) -> pa.Array:
    """The expression's value in each of `count` rows, in its own type."""
    try:
        return _Evaluator(rows, count).value(e)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise EvaluationError(f"{x.show(e)}: {reason}") from None


class _Evaluator:
    def __init__(self, rows: Rows, count: int) -> None:
        self.rows, self.count = rows, count

    def value(self, e: x.Expression) -> pa.Array:
        match e:
            case x.Column():
                return self.rows[e.source, e.name]
            case x.Literal():
                return pa.repeat(pa.scalar(e.value, arrow_type(e.type)), self.count)
            case x.Arithmetic():
                return self._arithmetic(e)
            case x.Compare():
                left, right = self._as(e.left, e.of), self._as(e.right, e.of)
                return _COMPARE[e.condition](left, right)
            case x.And():
                return functools.reduce(pc.and_kleene, map(self.value, e.terms))
            case x.Or():
                return functools.reduce(pc.or_kleene, map(self.value, e.terms))
            case x.Not():
                return pc.invert(self.value(e.term))
            case x.IsNull():
                value = self.value(e.term)
                return pc.is_valid(value) if e.negated else pc.is_null(value)
            case x.Like():
                value = pc.match_like(_cast(self.value(e.term), pa.string()), e.pattern)
                return pc.invert(value) if e.negated else value
            case x.Cast():
                return self._cast(e)
            case x.Call():
                return _FUNCTIONS[e.function](self, e)
            case x.Aggregate():
                raise TypeError("an aggregate has no value in one row")

    def _as(self, e: x.Expression, wanted: Type) -> pa.Array:
        value = self.value(e)
        if wanted.is_unknown:
            return value
        to = arrow_type(wanted)
        return value if value.type == to else _cast(value, to)

    def _arithmetic(self, e: x.Arithmetic) -> pa.Array:
        left, right = self._as(e.left, e.type), self._as(e.right, e.type)
        match e.operator:
            case "+":
                return pc.add_checked(left, right)
            case "-":
                return pc.subtract_checked(left, right)
            case "*":
                return pc.multiply_checked(left, right)
            case "||":
                return pc.binary_join_element_wise(left, right, "")
        zero = pa.scalar(0, right.type)
        divisor = pc.if_else(pc.equal(right, zero), pa.scalar(None, right.type), right)
        quotient = pc.divide_checked(left, divisor)
        if e.operator == "/":
            return quotient
        if e.type.is_integer:
            return pc.subtract(left, pc.multiply(quotient, divisor))
        whole = pc.trunc(quotient)
        return pc.subtract(left, pc.multiply(whole, divisor))

    def _cast(self, e: x.Cast) -> pa.Array:
        value = self.value(e.term)
        to = arrow_type(e.type)
        if e.type.is_text and pa.types.is_boolean(value.type):
            return pc.if_else(value, "true", "false")
        if e.type.is_integer and pa.types.is_floating(value.type):
            value = pc.round(value, round_mode="half_to_even")
        cast = _cast(value, to)
        if e.type.length is not None:
            cast = pc.utf8_slice_codeunits(cast, 0, e.type.length)
        return cast

    # --- functions ------------------------------------------------------------

    def number(self, e: x.Call, index: int = 0) -> pa.Array:
        return _cast(self.value(e.arguments[index]), pa.float64())

    def text(self, e: x.Call) -> pa.Array:
        return _cast(self.value(e.arguments[0]), pa.string())

    def substring(self, e: x.Call) -> pa.Array:
        """Positions differ by row, which Arrow's slice does not take."""
        parts = [self.value(argument).to_pylist() for argument in e.arguments]
        cut: list[str | None] = []
        for row in zip(*parts, strict=True):
            if any(value is None for value in row):
                cut.append(None)
                continue
            text, first = row[0], row[1] - 1
            stop = len(text) if len(row) == 2 else first + max(row[2], 0)
            cut.append(text[max(first, 0) : max(stop, 0)])
        return pa.array(cut, pa.string())

    def same_type(self, e: x.Call) -> list[pa.Array]:
        return [self._as(argument, e.type) for argument in e.arguments]

    def null_if(self, e: x.Call) -> pa.Array:
        left, right = self.same_type(e)
        same = pc.fill_null(pc.equal(left, right), False)
        return pc.if_else(same, pa.scalar(None, left.type), left)


def _cast(value: pa.Array, to: pa.DataType) -> pa.Array:
    if value.type == to:
        return value
    # A large integer has no exact double; the nearest is what SQL compares with.
    return pc.cast(value, to, safe=not pa.types.is_floating(to))


def _least_or_greatest(pick: Callable[..., pa.Array]) -> Callable[[_Evaluator, x.Call], pa.Array]:
    def compute(self: _Evaluator, e: x.Call) -> pa.Array:
        return pick(*self.same_type(e), skip_nulls=True)

    return compute


_FUNCTIONS: dict[str, Callable[[_Evaluator, x.Call], pa.Array]] = {
    "abs": lambda self, e: pc.abs_checked(self.value(e.arguments[0])),
    "ceil": lambda self, e: pc.ceil(self.number(e)),
    "floor": lambda self, e: pc.floor(self.number(e)),
    "round": lambda self, e: pc.round(self.number(e), round_mode="half_towards_infinity"),
    "sqrt": lambda self, e: _real_only(pc.sqrt(self.number(e))),
    "power": lambda self, e: _real_only(pc.power(self.number(e), self.number(e, 1))),
    "lower": lambda self, e: pc.utf8_lower(self.text(e)),
    "upper": lambda self, e: pc.utf8_upper(self.text(e)),
    "trim": lambda self, e: pc.utf8_trim(self.text(e), characters=" "),
    "length": lambda self, e: pc.utf8_length(self.text(e)).cast(pa.int64()),
    "substr": _Evaluator.substring,
    "coalesce": lambda self, e: pc.coalesce(*self.same_type(e)),
    "nullif": _Evaluator.null_if,
    "greatest": _least_or_greatest(pc.max_element_wise),
    "least": _least_or_greatest(pc.min_element_wise),
}


def _real_only(value: pa.Array) -> pa.Array:
    """NaN is NULL, as everywhere."""
    return pc.if_else(pc.is_nan(value), pa.scalar(None, value.type), value)
