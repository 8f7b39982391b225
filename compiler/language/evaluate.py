"""The row reference: evaluates an expression one row at a time.

    value = compile_row(e, leaf, faults)
    value(row)

An expression becomes closures over whatever a language uses as a row. This is the oracle for the
column evaluator, which falls back on it, and the evaluator for a language that has one row at a time.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, TypeVar

from seustream.compiler.language import expressions as x
from seustream.compiler.language.convert import converter, may_lack_value
from seustream.compiler.language.expressions import Leaf, Value
from seustream.compiler.language.faults import Faults, Place
from seustream.compiler.language.functions import FUNCTIONS
from seustream.compiler.language.registry import ScalarFunction, Signature
from seustream.compiler.language.types import Type
from seustream.hdl.isa import Condition

B = TypeVar("B")
Row = Callable[[B], Any]

COMPARE: dict[Condition, Callable[[Any, Any], bool]] = {
    Condition.LT: operator.lt,
    Condition.EQ: operator.eq,
    Condition.GT: operator.gt,
    Condition.GE: operator.ge,
    Condition.LE: operator.le,
    Condition.NE: operator.ne,
}


def convert(value: Value, of: Type, to: Type) -> Any:
    """Returns the value in another type, None if it has no value there."""
    change = converter(of, to)
    return value if change is None or value is None else change(value)


def chosen(e: x.Call) -> ScalarFunction | Signature:
    """Returns the implementations of the overload to which a call was bound."""
    entry = FUNCTIONS[e.function]
    return entry.overloads[e.overload - 1] if e.overload else entry


def row_of(e: x.Call) -> Callable[..., Any]:
    """Returns the row reference of a call, over values of the parameter types."""
    chosen_one = chosen(e)
    if chosen_one.typed:
        return functools.partial(chosen_one.row, e.type)
    return chosen_one.row


def fault_of(e: x.Call) -> str:
    """Returns the name of a call's fault."""
    entry = FUNCTIONS[e.function]
    own = entry.overloads[e.overload - 1].fault if e.overload else None
    return own or entry.fault


def place_of(e: x.Expression) -> Place:
    """Returns where a fault of a call, a cast or a CASE is counted."""
    match e:
        case x.Call():
            return Place(e.at, x.show(e), fault_of(e))
        case x.Cast():
            return Place(e.at, x.show(e), f"no {e.type}")
        case _:
            return Place(None, x.show(e), f"no {e.type}")


def compile_row(
    e: x.Expression, leaf: Callable[[Leaf], Callable[[B], Value]], faults: Faults | None = None
) -> Callable[[B], Value]:
    """Compiles an expression to a function from a row to its value. `leaf` returns a reader for
    each leaf; rows are numbered for `faults` in the order of evaluation."""
    found: list[Place] = []
    value = compile_noting(e, leaf, found)
    if faults is None:
        return _forgetting(value, found)
    counted, number = faults, 0

    def evaluate(row: B) -> Value:
        nonlocal number
        found.clear()
        result: Value = value(row)
        at, number = number, number + 1
        for place in found:
            counted.add(place, 1, at)
        return result

    return evaluate


def compile_noting(
    e: x.Expression, leaf: Callable[[Leaf], Callable[[B], Value]], found: list[Place]
) -> Callable[[B], Value]:
    """Compiles the same function, but appends the places of faults to `found` instead of counting
    them; the caller that empties the list knows the row."""
    return _Compiler(leaf, found).compile(e)


def _forgetting(value: Row[B], found: list[Place]) -> Callable[[B], Value]:
    def evaluate(row: B) -> Value:
        result: Value = value(row)
        if found:
            found.clear()
        return result

    return evaluate


class _Compiler:
    def __init__(self, leaf: Callable[[Leaf], Callable[[Any], Value]], found: list[Place]) -> None:
        self.leaf, self.found = leaf, found

    def compile(self, e: x.Expression) -> Row[Any]:
        match e:
            case x.Literal():
                constant = e.value
                return lambda row: constant
            case x.Compare():
                return self._compare(e)
            case x.And() | x.Or():
                return self._connective(e)
            case x.Not():
                term = self.compile(e.term)
                return lambda row: None if (value := term(row)) is None else not value
            case x.IsNull():
                term, negated = self.compile(e.term), e.negated
                return lambda row: (term(row) is None) is not negated
            case x.Case():
                return self._case(e)
            case x.Call():
                return self._call(e)
            case x.Cast():
                return self._cast(e)
            case x.AggregateCall():
                raise TypeError("an aggregate has no value in one row")
            case _:
                return self.leaf(e)

    def _compare(self, e: x.Compare) -> Row[Any]:
        # Exact numbers are compared without conversion.
        exact = e.of.is_decimal
        left, right = (
            self.compile(side) if exact else self._as(side, e.of) for side in (e.left, e.right)
        )
        compare = COMPARE[e.condition]

        def evaluate(row: Any) -> bool | None:
            a, b = left(row), right(row)
            return None if a is None or b is None else compare(a, b)

        return evaluate

    def _as(self, e: x.Expression, to: Type) -> Row[Any]:
        """Returns an operand converted to the type that the operation takes."""
        value, change = self.compile(e), converter(e.type, to)
        if change is None:
            return value
        changed = change
        return lambda row: None if (found := value(row)) is None else changed(found)

    def _connective(self, e: x.And | x.Or) -> Row[Any]:
        """Compiles AND or OR. A fault within an operand counts unless another operand decides."""
        terms, decisive = [self.compile(term) for term in e.terms], isinstance(e, x.Or)
        found = self.found

        def evaluate(row: Any) -> bool | None:
            before = len(found)
            value: bool | None = not decisive
            decided: list[Place] | None = None  # the faults of the one operand that decides
            for term in terms:
                start = len(found)
                each: bool | None = term(row)
                if each is None:
                    value = None
                elif each is decisive:
                    if decided is not None or len(found) == start:
                        del found[before:]
                        return decisive
                    decided = found[start:]
            if decided is None:
                return value
            found[before:] = decided
            return decisive

        return evaluate

    def _case(self, e: x.Case) -> Row[Any]:
        branches = [(self.compile(when), self._branch(e, then)) for when, then in e.branches]
        otherwise = self._branch(e, e.otherwise)

        def evaluate(row: Any) -> Any:
            for when, then in branches:
                if when(row):
                    return then(row)
            return otherwise(row)

        return evaluate

    def _branch(self, e: x.Case, value: x.Expression) -> Row[Any]:
        return self._counted(self.compile(value), converter(value.type, e.type), place_of(e))

    def _cast(self, e: x.Cast) -> Row[Any]:
        place = None if e.quiet else place_of(e)
        return self._counted(self.compile(e.term), converter(e.term.type, e.type), place)

    def _counted(
        self, value: Row[Any], change: Callable[[Any], Any] | None, place: Place | None
    ) -> Row[Any]:
        """Compiles a conversion whose failure is a fault."""
        if change is None:
            return value
        changed, found = change, self.found

        def evaluate(row: Any) -> Any:
            given = value(row)
            if given is None:
                return None
            result = changed(given)
            if result is None and place is not None:
                found.append(place)
            return result

        return evaluate

    def _call(self, e: x.Call) -> Row[Any]:
        entry, compute, place, found = FUNCTIONS[e.function], row_of(e), place_of(e), self.found
        quiet = entry.quiet
        if entry.lazy:
            return self._lazy_call(e, place)
        if any(may_lack_value(a.type, to) for a, to in zip(e.arguments, e.takes, strict=True)):
            return self._lossy_call(e, compute, place)
        arguments = [self._as(a, to) for a, to in zip(e.arguments, e.takes, strict=True)]

        def evaluate(row: Any) -> Any:
            values = [argument(row) for argument in arguments]
            if None in values:
                return None
            result = compute(*values)
            if result is None and not quiet:
                found.append(place)
            return result

        def evaluate_nulls(row: Any) -> Any:
            result = compute(*[argument(row) for argument in arguments])
            if result is None and not quiet:
                found.append(place)
            return result

        return evaluate if entry.strict else evaluate_nulls

    def _lazy_call(self, e: x.Call, place: Place) -> Row[Any]:
        """Compiles a call that evaluates its arguments up to the first one that has a value."""
        pairs = zip(e.arguments, e.takes, strict=True)
        arguments = [(self.compile(a), converter(a.type, to)) for a, to in pairs]
        found = self.found

        def evaluate(row: Any) -> Any:
            lost, result = False, None
            for argument, change in arguments:
                given = argument(row)
                if given is not None:
                    result = given if change is None else change(given)
                    if result is not None:
                        break
                    lost = True
            if lost:
                found.append(place)
            return result

        return evaluate

    def _lossy_call(self, e: x.Call, compute: Callable[..., Any], place: Place) -> Row[Any]:
        """Compiles a call with an argument whose conversion may fail, which is a fault of the call."""
        strict, quiet, found = FUNCTIONS[e.function].strict, FUNCTIONS[e.function].quiet, self.found
        arguments = [self.compile(argument) for argument in e.arguments]
        types = [(a.type, to) for a, to in zip(e.arguments, e.takes, strict=True)]

        def evaluate(row: Any) -> Any:
            given = [argument(row) for argument in arguments]
            if strict and None in given:
                return None
            values = [convert(value, *pair) for value, pair in zip(given, types, strict=True)]
            lost = any(v is None and g is not None for v, g in zip(values, given, strict=True))
            result = None if strict and lost else compute(*values)
            if lost or (result is None and not quiet):
                found.append(place)
            return result

        return evaluate
