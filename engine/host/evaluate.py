"""Expressions over Arrow columns, with SQL's NULL.

`evaluate` computes any bound expression over rows; `holds` says where a condition is true,
`survivors` where several are.

Integer arithmetic is done in 64 bits and an overflow is an error. What has no value is NULL:
division by zero, and reals that are not a number. A cast makes of a real the nearest integer,
of two the even one, where `round` takes the one further from zero; of a text it makes the date
or time that the text would be after DATE or TIME. Positions of `substr` count from 1 and may
lie outside the text. LIKE has no escape character.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from compiler.language import expressions as x
from compiler.language.types import Kind, Type, read_time
from engine.host.errors import EvaluationError
from engine.stream.schema import arrow_type
from hdl.isa import Condition

Ints = npt.NDArray[np.int64]
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


_NO_VALUE = (pa.ArrowInvalid, pa.ArrowNotImplementedError)


def holds(condition: x.Expression, rows: Rows, count: int) -> npt.NDArray[np.bool_]:
    """Where the condition is true; neither false nor NULL."""
    value = evaluate(condition, rows, count)
    return np.asarray(pc.fill_null(value, False), dtype=np.bool_)


def survivors(
    conditions: Iterable[x.Expression],
    rows: Callable[[x.Expression, Ints], Rows],
    count: int,
) -> Ints:
    """Which of `count` rows all conditions hold for; `rows` gives the columns of some of them
    that a condition reads. A condition that has no value somewhere is tried again at the end:
    it is an error only if no other condition excludes that row."""
    left = np.arange(count)
    doubtful: list[x.Expression] = []
    for condition in conditions:
        try:
            left = left[holds(condition, rows(condition, left), len(left))]
        except EvaluationError:
            doubtful.append(condition)
    for condition in doubtful:
        left = left[holds(condition, rows(condition, left), len(left))]
    return left


def evaluate(e: x.Expression, rows: Rows, count: int) -> pa.Array:
    """The expression's value in each of `count` rows, in its own type."""
    try:
        return _Evaluator(rows, count).value(e)
    except _NO_VALUE as error:
        reason = str(error).splitlines()[0]
        raise EvaluationError(f"{x.show(e)}: {reason}") from None


class _Evaluator:
    def __init__(self, rows: Rows, count: int) -> None:
        self.rows, self.count = rows, count

    def value(self, e: x.Expression) -> pa.Array:
        if e.type.kind is Kind.NULL:
            return pa.nulls(self.count)
        match e:
            case x.Column():
                return self.rows[e.source, e.name]
            case x.Literal():
                return pa.repeat(pa.scalar(e.value, arrow_type(e.type)), self.count)
            case x.Arithmetic():
                return self._arithmetic(e)
            case x.Compare():
                if e.of.kind is Kind.NULL:
                    return pa.nulls(self.count, pa.bool_())
                left, right = self._as(e.left, e.of), self._as(e.right, e.of)
                return _COMPARE[e.condition](left, right)
            case x.And() | x.Or():
                return self._connective(e)
            case x.Not():
                return pc.invert(self.value(e.term))
            case x.IsNull():
                value = self.value(e.term)
                return pc.is_valid(value) if e.negated else pc.is_null(value)
            case x.Like():
                text = _cast(self.value(e.term), pa.string())
                value = pc.match_substring_regex(text, pattern=_like(e.pattern))
                return pc.invert(value) if e.negated else value
            case x.Cast():
                return self._cast(e)
            case x.Call():
                return _FUNCTIONS[e.function](self, e)
            case x.Aggregate():
                raise TypeError("an aggregate has no value in one row")

    def _connective(self, e: x.And | x.Or) -> pa.Array:
        """Of a term that has no value in some row only the rows matter that the other terms
        leave undecided."""
        is_and = isinstance(e, x.And)
        combine = pc.and_kleene if is_and else pc.or_kleene
        value = pa.repeat(pa.scalar(is_and), self.count)
        doubtful: list[x.Expression] = []
        for term in e.terms:
            try:
                value = combine(value, self.value(term))
            except _NO_VALUE:
                doubtful.append(term)
        for term in doubtful:
            decided = pc.fill_null(pc.equal(value, not is_and), False)
            mask = pc.invert(decided)
            index = pc.indices_nonzero(mask)
            rows = {
                (column.source, column.name): self.rows[column.source, column.name].take(index)
                for column in x.columns(term)
            }
            found = _Evaluator(rows, len(index)).value(term)
            nothing = pa.nulls(self.count, pa.bool_())
            value = combine(value, pc.replace_with_mask(nothing, mask, found))
        return value

    def _as(self, e: x.Expression, wanted: Type) -> pa.Array:
        return _cast(self.value(e), arrow_type(wanted))

    def _arithmetic(self, e: x.Arithmetic) -> pa.Array:
        left, right = self._as(e.left, e.type), self._as(e.right, e.type)
        if e.operator == "||":
            return pc.binary_join_element_wise(left, right, "")
        if e.operator in "/%":
            zero = pa.scalar(0, right.type)
            right = pc.if_else(pc.equal(right, zero), pa.scalar(None, right.type), right)
        value = _ARITHMETIC[e.operator](left, right)
        return value if e.type.is_integer else real_only(value)

    def _cast(self, e: x.Cast) -> pa.Array:
        value, to = self.value(e.term), arrow_type(e.type)
        if e.type.is_text:
            text = _shown(value)
            length = e.type.length
            return text if length is None else pc.utf8_slice_codeunits(text, 0, length)
        if e.type.kind in _TIMES and pa.types.is_string(value.type):
            return _read(value, e.type)
        if e.type.is_integer and pa.types.is_floating(value.type):
            value = pc.round(value, round_mode="half_to_even")
        cast = _cast(value, to)
        return real_only(cast) if pa.types.is_floating(to) else cast

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


def _like(pattern: str) -> str:
    """As a regular expression. Arrow's own LIKE has an escape character and mistakes it."""
    parts = ({"%": ".*", "_": "."}.get(letter) or re.escape(letter) for letter in pattern)
    return rf"(?s)\A{''.join(parts)}\z"


_TIMES = (Kind.DATE, Kind.TIME, Kind.TIMESTAMP)


def _read(text: pa.Array, to: Type) -> pa.Array:
    """Texts as dates or times, read like the constants in a query."""
    distinct = text.dictionary_encode()
    values = []
    for each in distinct.dictionary.to_pylist():
        values.append(read_time(each, to.kind))
        if values[-1] is None:
            raise pa.ArrowInvalid(f"{each!r} is not a {to}")
    return pa.array(values, arrow_type(to)).take(distinct.indices)


def _shown(value: pa.Array) -> pa.Array:
    """Values as texts; of a fraction of a second only the digits that count."""
    if pa.types.is_boolean(value.type):
        return pc.if_else(value, "true", "false")
    text = _cast(value, pa.string())
    if pa.types.is_time(value.type) or pa.types.is_timestamp(value.type):
        return pc.replace_substring_regex(text, pattern=r"\.?0+$", replacement="")
    return text


def _remainder(left: pa.Array, right: pa.Array) -> pa.Array:
    """Of a division that truncates towards zero: it has the sign of the dividend."""
    if pa.types.is_integer(left.type):
        return pc.subtract(left, pc.multiply(pc.divide_checked(left, right), right))
    a, b = (np.asarray(pc.fill_null(side, np.nan)) for side in (left, right))
    with np.errstate(invalid="ignore"):
        return pa.array(np.fmod(a, b))


_ARITHMETIC: dict[str, Callable[[pa.Array, pa.Array], pa.Array]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
    "/": pc.divide_checked,
    "%": _remainder,
}


def _least_or_greatest(pick: Callable[..., pa.Array]) -> Callable[[_Evaluator, x.Call], pa.Array]:
    def compute(self: _Evaluator, e: x.Call) -> pa.Array:
        values = self.same_type(e)
        if e.type.kind is Kind.BOOLEAN:  # which Arrow does not order here
            numbers = [_cast(value, pa.int8()) for value in values]
            return _cast(pick(*numbers, skip_nulls=True), pa.bool_())
        return pick(*values, skip_nulls=True)

    return compute


_FUNCTIONS: dict[str, Callable[[_Evaluator, x.Call], pa.Array]] = {
    "abs": lambda self, e: pc.abs_checked(self.value(e.arguments[0])),
    "ceil": lambda self, e: pc.ceil(self.number(e)),
    "floor": lambda self, e: pc.floor(self.number(e)),
    "round": lambda self, e: pc.round(self.number(e), round_mode="half_towards_infinity"),
    "sqrt": lambda self, e: real_only(pc.sqrt(self.number(e))),
    "power": lambda self, e: real_only(pc.power(self.number(e), self.number(e, 1))),
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


def real_only(value: pa.Array) -> pa.Array:
    """NaN is NULL, as everywhere."""
    return pc.if_else(pc.is_nan(value), pa.scalar(None, value.type), value)
