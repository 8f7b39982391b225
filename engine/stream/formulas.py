"""Conditions over rows of two sides as formulas, for a kernel that computes them for blocks of pairs.

    mod(R.x + S.y, 5000) = 1        columns R.x and S.y, then + , mod, =

What reads one side only becomes a column of numbers, whatever it is. Only what reads both sides has to
be made of steps, and only integers of 64 bits, doubles and conditions have any. Times and texts can
be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from seustream.compiler.language import expressions as x
from seustream.compiler.language.convert import may_lack_value
from seustream.compiler.language.types import BIGINT, BOOLEAN, DOUBLE, REAL, Type
from seustream.engine.stream.numbers import Ints, Key, has_numbers, is_ordered
from seustream.hdl.isa import Condition


class FormulaStep(IntEnum):
    """The operations of the kernel, in its order (`Step` in `formula.h`)."""

    REAL = 0  # what a number of a double stands for
    WIDENED = 1  # an integer as a double
    PLUS = 2
    MINUS = 3
    TIMES = 4
    QUOTIENT = 5
    REST = 6
    OPPOSITE = 7
    MAGNITUDE = 8
    LEAST = 9
    GREATEST = 10
    BITS_OF_BOTH = 11
    BITS_OF_ANY = 12
    REAL_PLUS = 13
    REAL_MINUS = 14
    REAL_TIMES = 15
    REAL_QUOTIENT = 16
    REAL_OPPOSITE = 17
    REAL_MAGNITUDE = 18
    ROOT = 19
    REAL_LEAST = 20
    REAL_GREATEST = 21
    LESS = 22
    EQUAL = 23
    GREATER = 24
    AT_LEAST = 25
    AT_MOST = 26
    UNLIKE = 27
    REAL_LESS = 28
    REAL_EQUAL = 29
    REAL_GREATER = 30
    REAL_AT_LEAST = 31
    REAL_AT_MOST = 32
    REAL_UNLIKE = 33
    BOTH = 34
    ANY = 35
    NEGATION = 36
    MISSING = 37
    THERE = 38
    FIRST_THERE = 39
    EITHER = 40  # two values between which a choice is made: the first where a condition holds
    CHOICE = 41


_WHOLE = {
    "+": FormulaStep.PLUS,
    "-": FormulaStep.MINUS,
    "*": FormulaStep.TIMES,
    "DIV": FormulaStep.QUOTIENT,
    "mod": FormulaStep.REST,
    "negate": FormulaStep.OPPOSITE,
    "abs": FormulaStep.MAGNITUDE,
    "least": FormulaStep.LEAST,
    "greatest": FormulaStep.GREATEST,
    "&": FormulaStep.BITS_OF_BOTH,
    "|": FormulaStep.BITS_OF_ANY,
}
_REAL = {
    "+": FormulaStep.REAL_PLUS,
    "-": FormulaStep.REAL_MINUS,
    "*": FormulaStep.REAL_TIMES,
    "/": FormulaStep.REAL_QUOTIENT,
    "negate": FormulaStep.REAL_OPPOSITE,
    "abs": FormulaStep.REAL_MAGNITUDE,
    "sqrt": FormulaStep.ROOT,
    "least": FormulaStep.REAL_LEAST,
    "greatest": FormulaStep.REAL_GREATEST,
}
_COMPARE = {
    Condition.LT: (FormulaStep.LESS, FormulaStep.REAL_LESS),
    Condition.EQ: (FormulaStep.EQUAL, FormulaStep.REAL_EQUAL),
    Condition.GT: (FormulaStep.GREATER, FormulaStep.REAL_GREATER),
    Condition.GE: (FormulaStep.AT_LEAST, FormulaStep.REAL_AT_LEAST),
    Condition.LE: (FormulaStep.AT_MOST, FormulaStep.REAL_AT_MOST),
    Condition.NE: (FormulaStep.UNLIKE, FormulaStep.REAL_UNLIKE),
}


@dataclass(frozen=True, slots=True)
class Formula:
    """A condition as the steps of the kernel, over columns of one side's rows and of another's."""

    condition: x.Expression
    theirs: tuple[Key, ...]
    ours: tuple[Key, ...]
    steps: Ints


Reads = Callable[[x.Expression], frozenset[int]]


def formula_of(
    condition: x.Expression, theirs: frozenset[int], reads: Reads = x.sources
) -> Formula | None:
    """Returns the formula of a condition over rows of the sources `theirs` and of others, or None if
    the kernel lacks one of its steps. `reads` gives the sources that an expression reads."""
    made = _Formula(theirs, reads)
    try:
        made.condition(condition)
    except _NoStep:
        return None
    return made.finished(condition) if made.steps else None


class _NoStep(Exception):
    """The kernel has no step for an expression."""


@dataclass(slots=True)
class _Formula:
    """Collects columns and steps. A value is named by the side whose column it is and the column's
    number, or by the number of its step."""

    theirs: frozenset[int]
    reads: Reads
    columns: dict[bool, dict[Key, int]] = field(default_factory=lambda: {True: {}, False: {}})
    steps: list[tuple[FormulaStep, _Value, _Value]] = field(default_factory=list)
    known: dict[tuple[FormulaStep, _Value, _Value], _Value] = field(default_factory=dict)

    def finished(self, condition: x.Expression) -> Formula:
        theirs, ours = tuple(self.columns[True]), tuple(self.columns[False])
        first = {True: 0, False: len(theirs), None: len(theirs) + len(ours)}
        steps = [
            (int(step), first[a.side] + a.number, first[b.side] + b.number)
            for step, a, b in self.steps
        ]
        return Formula(condition, theirs, ours, np.array(steps, np.int64).reshape(-1))

    def _step(self, step: FormulaStep, a: _Value, b: _Value | None = None) -> _Value:
        made = (step, a, a if b is None else b)
        if made not in self.known:
            self.known[made] = _Value(None, len(self.steps))
            self.steps.append(made)
        return self.known[made]

    def _column(self, e: x.Expression, of: Type) -> _Value:
        """Adds a column of the numbers of what reads one side."""
        reads = self.reads(e)
        theirs = bool(reads) and reads <= self.theirs
        columns = self.columns[theirs]
        return _Value(theirs, columns.setdefault((e, of), len(columns)))

    def _is_column(self, e: x.Expression) -> bool:
        reads = self.reads(e)
        return reads <= self.theirs or not reads & self.theirs

    def condition(self, e: x.Expression) -> _Value:
        if self._is_column(e):
            return self._column(e, BOOLEAN)
        match e:
            case x.Compare():
                return self._compared(e)
            case x.And():
                return self._folded(FormulaStep.BOTH, [self.condition(term) for term in e.terms])
            case x.Or():
                return self._folded(FormulaStep.ANY, [self.condition(term) for term in e.terms])
            case x.Not():
                return self._step(FormulaStep.NEGATION, self.condition(e.term))
            case x.IsNull():
                term = self._operand(e.term, e.term.type)
                return self._step(FormulaStep.THERE if e.negated else FormulaStep.MISSING, term)
            case x.Call(function="xor", takes=(_, _)):
                first, second = (self.condition(one) for one in e.arguments)
                return self._step(FormulaStep.UNLIKE, first, second)
            case x.Case() | x.Call(function="coalesce"):
                return self._chosen(e)
        raise _NoStep

    def _compared(self, e: x.Compare) -> _Value:
        steps = _COMPARE.get(e.condition)
        if steps is None or may_lack_value(e.left.type, e.of) or may_lack_value(e.right.type, e.of):
            raise _NoStep
        whole, real = steps
        if self._is_column(e.left) and self._is_column(e.right):  # numbers compare like reals
            by_value = e.condition in (Condition.EQ, Condition.NE)
            if not (has_numbers(e.of) if by_value else is_ordered(e.of)):
                raise _NoStep
            return self._step(whole, self._column(e.left, e.of), self._column(e.right, e.of))
        step = real if e.of == DOUBLE else whole
        return self._step(step, self._operand(e.left, e.of), self._operand(e.right, e.of))

    def _operand(self, e: x.Expression, to: Type) -> _Value:
        """Returns the value of an expression as one of a type: a double, or a number."""
        if to == BOOLEAN:
            if e.type != to:
                raise _NoStep
            return self.condition(e)
        if not is_ordered(to) or may_lack_value(e.type, to):
            raise _NoStep
        if self._is_column(e):
            column = self._column(e, to)
            return self._step(FormulaStep.REAL, column) if to == DOUBLE else column
        match e:
            case x.Case() | x.Call(function="coalesce"):
                value = self._chosen(e)
            case x.Call() if e.takes and all(one == e.type for one in e.takes):
                value = self._called(e)
            case _:
                raise _NoStep
        if e.type == to or (e.type.is_integer and to == BIGINT):
            return value
        if to == DOUBLE and e.type.is_integer:
            return self._step(FormulaStep.WIDENED, value)
        if to == DOUBLE and e.type == REAL:
            return self._step(FormulaStep.REAL, value)
        raise _NoStep

    def _chosen(self, e: x.Case | x.Call) -> _Value:
        """Returns the value of the first branch whose condition holds, or the first that is there. The
        kernel computes all of them; if one has no value it gives up, even if it is not chosen."""
        if isinstance(e, x.Call):
            values = [self._operand(one, e.type) for one in e.arguments]
            return self._folded(FormulaStep.FIRST_THERE, values)
        found = self._operand(e.otherwise, e.type)
        for condition, value in reversed(e.branches):
            either = self._step(FormulaStep.EITHER, self._operand(value, e.type), found)
            found = self._step(FormulaStep.CHOICE, self.condition(condition), either)
        return found

    def _called(self, e: x.Call) -> _Value:
        if e.type == DOUBLE:
            step = _REAL.get(e.function)
        elif e.type == BIGINT or e.function in ("least", "greatest"):
            step = _WHOLE.get(e.function)
        else:
            step = None
        if step is None or e.type == BOOLEAN:
            raise _NoStep
        values = [self._operand(one, e.type) for one in e.arguments]
        if len(values) == 1 and e.function in ("least", "greatest"):
            return values[0]
        return self._step(step, values[0]) if len(values) == 1 else self._folded(step, values)

    def _folded(self, step: FormulaStep, values: list[_Value]) -> _Value:
        found = values[0]
        for value in values[1:]:
            found = self._step(step, found, value)
        return found


@dataclass(frozen=True, slots=True)
class _Value:
    """A column of theirs (True) or of ours (False), or a step (None)."""

    side: bool | None
    number: int
