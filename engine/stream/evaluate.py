"""THE evaluator: expressions over whole columns.

    column = evaluate(e, leaf, count, faults)

`leaf` gives the column of a leaf, an Arrow array of `count` rows without NaN. Constants stay Arrow
scalars for as long as they can. A node is one Arrow call where the registry has one with the same
value. Otherwise, or where Arrow refuses, it is the row reference for each distinct value.

**Faults** are looked for only where a result has more NULLs than an operand. They are masks of rows
until the expression is done. AND, OR and CASE remove from the masks of their operands the rows in
which these do not count (`seustream.compiler.language.faults`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.language import expressions as x
from seustream.compiler.language.convert import converter, may_lack_value
from seustream.compiler.language.evaluate import COMPARE, chosen, place_of, row_of
from seustream.compiler.language.expressions import Leaf
from seustream.compiler.language.faults import Faults, Place
from seustream.compiler.language.functions import FUNCTIONS
from seustream.compiler.language.registry import ScalarFunction, Signature
from seustream.compiler.language.types import Kind, Type
from seustream.engine.kernels import native
from seustream.engine.stream.convert import cast, convert, each_row
from seustream.engine.stream.schema import arrow_type
from seustream.hdl.isa import Condition

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Leaves = Callable[[Leaf], pa.Array]
Column = Any
"""An Arrow array, or an Arrow scalar that stands for `count` equal values."""

_COMPARE = {
    Condition.LT: pc.less,
    Condition.EQ: pc.equal,
    Condition.GT: pc.greater,
    Condition.GE: pc.greater_equal,
    Condition.LE: pc.less_equal,
    Condition.NE: pc.not_equal,
}

_REFUSED = (ValueError, NotImplementedError, TypeError)
"""The exceptions that Arrow and the registry's columns raise where only the row reference has a
value."""


def evaluate(e: x.Expression, leaf: Leaves, count: int, faults: Faults | None = None) -> pa.Array:
    """Returns the expression's value in each of `count` rows, in its own type."""
    if isinstance(e, Leaf):
        return leaf(e)
    work = _Evaluator(leaf, count, faults is not None)
    value = work.array(work.value(e))
    if work.found and faults is not None:
        _report(faults, work.found)
    return value


def holds(condition: x.Expression, leaf: Leaves, count: int, faults: Faults | None = None) -> Mask:
    """Returns where the condition is true; neither false nor NULL."""
    return _true(evaluate(condition, leaf, count, faults))


def survivors(
    conditions: Iterable[x.Expression],
    leaves: Callable[[x.Expression, Ints], Leaves],
    count: int,
    faults: Faults | None = None,
) -> Ints:
    """Returns the rows, of `count`, for which all conditions hold; `leaves` gives the columns that
    a condition reads, for some of the rows. Each condition is evaluated only in rows that are left.
    A fault counts unless another condition leaves the row out, because it is false or NULL."""
    left, those = np.arange(count), tuple(conditions)
    for number, condition in enumerate(those):
        work = _Evaluator(leaves(condition, left), len(left), faults is not None)
        value = work.array(work.value(condition))
        if faults is not None and work.found:
            return _survivors_counting(those[number:], leaves, left, count, faults)
        left = left[_true(value)]
    return left


def _survivors_counting(
    conditions: Iterable[x.Expression],
    leaves: Callable[[x.Expression, Ints], Leaves],
    left: Ints,
    whole: int,
    faults: Faults,
) -> Ints:
    """Returns the survivors of the rows `left` of the `whole`, counting faults. A row stays
    until a condition leaves it out that has no fault, or a second one does: only then do none of
    its faults count."""
    true = np.ones(whole, np.bool_)
    decider = np.full(whole, -1)  # the condition that is false in a row and has a fault there
    found: list[tuple[int, Place, Mask]] = []
    for number, condition in enumerate(conditions):
        work = _Evaluator(leaves(condition, left), len(left), True)
        value = work.array(work.value(condition))
        holds_ = _true(value)
        true[left] &= holds_
        faulty = np.zeros(len(left), np.bool_)
        for place, mask in work.found:
            faulty |= mask
            spread = np.zeros(whole, np.bool_)
            spread[left[mask]] = True
            found.append((number, place, spread))
        # NULL in a row with a fault may stem from it.
        false = np.where(faulty, _true(pc.invert(value)), ~holds_)
        gone = false & (~faulty | (decider[left] >= 0))
        decider[left[false & ~gone]] = number
        for _, _, spread in found:
            spread[left[gone]] = False
        left = left[~gone]
    counting = [
        (place, spread & ((decider < 0) | (decider == number))) for number, place, spread in found
    ]
    _report(faults, counting)
    return left[true[left]]


def _report(faults: Faults, found: Iterable[tuple[Place, Mask]]) -> None:
    """Counts the faults, starting with the one that has the earliest row."""
    counts = [(int(mask.argmax()), place, int(mask.sum())) for place, mask in found if mask.any()]
    for first, place, rows in sorted(counts, key=lambda each: each[0]):
        faults.add(place, rows, first)


def _true(value: pa.Array) -> Mask:
    if value.null_count:
        value = pc.fill_null(value, False)
    return np.asarray(value, dtype=np.bool_)


@functools.lru_cache(maxsize=1024)
def _cached_scalar(value: x.Value, of: Type) -> pa.Scalar:
    return pa.scalar(value, arrow_type(of))


def _scalar(value: x.Value, of: Type) -> pa.Scalar:
    """Returns a constant; equal ones are made once, except zeros, which may differ in sign."""
    return _cached_scalar(value, of) if value else pa.scalar(value, arrow_type(of))


class _Evaluator:
    __slots__ = ("count", "counting", "found", "leaf")

    def __init__(self, leaf: Leaves, count: int, counting: bool) -> None:
        self.leaf, self.count, self.counting = leaf, count, counting
        self.found: list[tuple[Place, Mask]] = []

    def array(self, value: Column) -> pa.Array:
        """Returns the column as an array."""
        if not isinstance(value, pa.Scalar):
            return value
        return pa.repeat(value, self.count) if value.is_valid else pa.nulls(self.count, value.type)

    def value(self, e: x.Expression) -> Column:
        """Returns the column of an expression."""
        handler = _HANDLERS.get(type(e))
        if handler is None:
            assert isinstance(e, Leaf)
            return self.leaf(e)
        column: Column = handler(self, e)
        return column

    def operand(self, e: x.Expression, to: Type) -> Column:
        """Returns an operand, converted to type `to`."""
        value = self.value(e)
        return value if e.type == to else self.converted(value, e.type, to)

    def converted(self, value: Column, of: Type, to: Type) -> Column:
        if to.kind is Kind.NULL:
            return value
        if isinstance(value, pa.Scalar):
            change = converter(of, to)
            known = value.as_py()
            return _scalar(known if change is None or known is None else change(known), to)
        if of.is_unknown:
            return pa.scalar(None, arrow_type(to))
        return convert(value, of, to)

    # --- conditions -----------------------------------------------------------

    def literal(self, e: x.Literal) -> Column:
        return _scalar(e.value, e.type)

    def compare(self, e: x.Compare) -> Column:
        if e.of.kind is Kind.NULL:
            return pa.scalar(None, pa.bool_())
        if may_lack_value(e.left.type, e.of) or may_lack_value(e.right.type, e.of):
            sides = self.value(e.left), self.value(e.right)
            return self._by_rows(COMPARE[e.condition], sides, pa.bool_())
        left, right = self.operand(e.left, e.of), self.operand(e.right, e.of)
        return _COMPARE[e.condition](left, right)

    def connective(self, e: x.And | x.Or) -> Column:
        decisive = isinstance(e, x.Or)
        combine = pc.or_kleene if decisive else pc.and_kleene
        starts: list[int] = []
        values: list[Column] = []
        for term in e.terms:
            starts.append(len(self.found))
            values.append(self.value(term))
        result = functools.reduce(combine, values)
        if len(self.found) > starts[0]:
            self._undecided(starts, values, decisive)
        return result

    def _undecided(self, starts: list[int], values: list[Column], decisive: bool) -> None:
        """Removes from an operand's faults the rows that another operand decides."""
        ends = [*starts[1:], len(self.found)]
        decides = [self._is(value, decisive) for value in values]
        deciding = np.sum(decides, axis=0)
        for start, end, own in zip(starts, ends, decides, strict=True):
            if end > start:
                self._keep(start, end, deciding == own)

    def _is(self, value: Column, wanted: bool) -> Mask:
        """Returns where a condition is true, or with `wanted` false where it is false."""
        array = self.array(value)
        return _true(array if wanted else pc.invert(array))

    def _keep(self, start: int, end: int, rows: Mask) -> None:
        """Keeps, of the faults found from `start` to `end`, only those in these rows."""
        self.found[start:end] = [(place, mask & rows) for place, mask in self.found[start:end]]

    def negation(self, e: x.Not) -> Column:
        return pc.invert(self.value(e.term))

    def is_null(self, e: x.IsNull) -> Column:
        value = self.value(e.term)
        if isinstance(value, pa.Scalar):
            return pa.scalar(value.is_valid is e.negated)
        return pc.is_valid(value) if e.negated else pc.is_null(value)

    # --- CASE -----------------------------------------------------------------

    def case(self, e: x.Case) -> Column:
        before = len(self.found)
        whens: list[Column] = []
        thens: list[Column] = []
        ends: list[int] = []
        for when, then in e.branches:
            whens.append(self.value(when))
            ends.append(len(self.found))
            thens.append(self._branch(e, then))
            ends.append(len(self.found))
        result = self._branch(e, e.otherwise)
        ends.append(len(self.found))
        if len(self.found) > before:
            self._reached(before, ends, whens)
        for condition, value in zip(reversed(whens), reversed(thens), strict=True):
            if isinstance(condition, pa.Scalar):
                result = value if condition.as_py() else result
                continue
            if condition.null_count:
                condition = pc.fill_null(condition, False)
            result = pc.if_else(condition, value, result)
        return result

    def _branch(self, e: x.Case, then: x.Expression) -> Column:
        given = self.value(then)
        value = given if then.type == e.type else self.converted(given, then.type, e.type)
        if self.counting and may_lack_value(then.type, e.type):
            self._note(e, value, (given,))
        return value

    def _reached(self, before: int, ends: list[int], whens: list[Column]) -> None:
        """Keeps the faults of each condition where no earlier one is true, and those of each value
        where it is taken. `ends` are the places after each condition and value, and after ELSE."""
        left = np.ones(self.count, np.bool_)
        start = before
        for number, when in enumerate(whens):
            true = self._is(when, True)
            middle, end = ends[2 * number], ends[2 * number + 1]
            self._keep(start, middle, left)
            self._keep(middle, end, left & true)
            left &= ~true
            start = end
        self._keep(start, ends[-1], left)

    # --- calls ----------------------------------------------------------------

    def cast(self, e: x.Cast) -> Column:
        given = self.value(e.term)
        value = given if e.term.type == e.type else self.converted(given, e.term.type, e.type)
        if self.counting and not e.quiet:
            self._note(e, value, (given,))
        return value

    def call(self, e: x.Call) -> Column:
        entry = FUNCTIONS[e.function]
        if entry.lazy:
            return self._lazy_call(e)
        given = [self.value(argument) for argument in e.arguments]
        arguments = [
            value if of.type == to else self.converted(value, of.type, to)
            for value, of, to in zip(given, e.arguments, e.takes, strict=True)
        ]
        result = self._computed(e, arguments)
        if self.counting:
            if entry.strict:
                self._note(e, result, given)
            elif any(
                may_lack_value(of.type, to) for of, to in zip(e.arguments, e.takes, strict=True)
            ):
                self._note_lost(e, given, arguments)
        return result

    def _lazy_call(self, e: x.Call) -> Column:
        """Evaluates the arguments up to the first one that has a value in each row."""
        open_rows = np.ones(self.count, np.bool_)
        lost = np.zeros(self.count, np.bool_)
        arguments: list[Column] = []
        for argument, to in zip(e.arguments, e.takes, strict=True):
            start = len(self.found)
            given = self.value(argument)
            value = given if argument.type == to else self.converted(given, argument.type, to)
            arguments.append(value)
            if len(self.found) > start:
                self._keep(start, len(self.found), open_rows)
            if value.is_valid if isinstance(value, pa.Scalar) else not value.null_count:
                break
            nulls = _null(self.array(value))
            if self.counting and may_lack_value(argument.type, to):
                lost |= open_rows & nulls & ~_null(self.array(given))
            open_rows &= nulls
        self._found(e, lost)
        return self._computed(e, arguments)

    def _by_rows(
        self, compute: Callable[..., Any], arguments: Sequence[Column], to: pa.DataType
    ) -> Column:
        if all(isinstance(argument, pa.Scalar) for argument in arguments):
            values = [argument.as_py() for argument in arguments]
            return pa.scalar(None if None in values else compute(*values), to)
        return each_row(compute, arguments, to, strict=True)

    def _computed(self, e: x.Call, arguments: Sequence[Column]) -> Column:
        strict, implementation = FUNCTIONS[e.function].strict, chosen(e)
        constants = [a for a in arguments if isinstance(a, pa.Scalar)]
        if strict and not all(a.is_valid for a in constants):
            return pa.scalar(None, arrow_type(e.type))
        if len(constants) == len(arguments):
            return _scalar(row_of(e)(*(a.as_py() for a in constants)), e.type)
        if implementation.columns is not None:
            try:
                return _whole(implementation, e.type, arguments, strict)
            except _REFUSED:
                pass
        return each_row(row_of(e), arguments, arrow_type(e.type), strict)

    # --- faults ---------------------------------------------------------------

    def _note(self, e: x.Expression, value: Column, operands: Sequence[Column]) -> None:
        """Notes the rows that have no value although all operands have one."""
        if isinstance(value, pa.Scalar):
            nulls = 0 if value.is_valid else self.count
        else:
            nulls = value.null_count
        if not nulls:
            return
        arrays = []
        for operand in operands:
            if isinstance(operand, pa.Scalar):
                if not operand.is_valid:
                    return
            else:
                if operand.null_count == nulls:
                    return
                arrays.append(operand)
        mask = _null(self.array(value))
        for operand in arrays:
            if operand.null_count:
                mask &= ~_null(operand)
        self._found(e, mask)

    def _note_lost(self, e: x.Call, given: list[Column], arguments: list[Column]) -> None:
        """Notes the rows in which an argument lost its value in conversion."""
        mask = np.zeros(self.count, np.bool_)
        for before, after in zip(given, arguments, strict=True):
            mask |= _null(self.array(after)) & ~_null(self.array(before))
        self._found(e, mask)

    def _found(self, e: x.Expression, mask: Mask) -> None:
        if mask.any():
            self.found.append((place_of(e), mask))


def _null(value: pa.Array) -> Mask:
    return np.array(value.is_null(), dtype=np.bool_)


def _whole(
    implementation: ScalarFunction | Signature, to: Type, arguments: Sequence[Column], strict: bool
) -> pa.Array:
    """Calls the column implementation of a registry entry."""
    assert implementation.columns is not None
    first = (pc, to) if implementation.typed else (pc,)
    value = implementation.columns(*first, *arguments)
    wanted = arrow_type(to)
    if value.type != wanted:
        value = cast(value, wanted)
    return real_only(value) if strict and to.is_inexact else value


def real_only(value: pa.Array) -> pa.Array:
    """Returns the column with NULL for NaN."""
    if not len(value):
        return value
    if native.real(value.buffers()[1], value.offset, len(value), value.type.bit_width // 8):
        return value
    return pc.if_else(pc.is_nan(value), None, value)


def _aggregate(work: _Evaluator, e: x.AggregateCall) -> Column:
    raise TypeError("an aggregate has no value in one row")


_HANDLERS: dict[type, Callable[[_Evaluator, Any], Column]] = {
    x.Literal: _Evaluator.literal,
    x.Compare: _Evaluator.compare,
    x.And: _Evaluator.connective,
    x.Or: _Evaluator.connective,
    x.Not: _Evaluator.negation,
    x.IsNull: _Evaluator.is_null,
    x.Case: _Evaluator.case,
    x.Call: _Evaluator.call,
    x.Cast: _Evaluator.cast,
    x.AggregateCall: _aggregate,
}
