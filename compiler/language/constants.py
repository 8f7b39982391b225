"""Constants and parameters: their types, and exact computation of operations on constants alone."""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from seustream.compiler.errors import Problems, Span, suggest
from seustream.compiler.language import expressions as x
from seustream.compiler.language import syntax as s
from seustream.compiler.language import types as t
from seustream.compiler.language.elsewhere import INSTEAD
from seustream.compiler.language.scope import FAILED, ParameterValue, Scope
from seustream.compiler.language.typenames import report
from seustream.compiler.language.types import Kind, Type

_SHAPES = {
    Kind.DATE: "2006-03-01",
    Kind.TIME: "12:30:00",
    Kind.TIMESTAMP: "2006-03-01 12:30:00",
    Kind.INTERVAL: "1 hour 30 min",
}


@dataclass
class ConstantBinder:
    """Binds constants and parameters, the part of the binder that looks at no other expression."""

    scope: Scope
    problems: Problems

    def fail(self, kind: str, message: str, span: Span, hint: str | None) -> x.Expression:
        """Reports a problem under the language's code for its kind."""
        report(self.problems, self.scope.codes, kind, message, span, hint)
        return FAILED

    def _literal(self, value: int | Fraction | str | bool | None, span: Span) -> x.Expression:
        if isinstance(value, bool):
            return x.Literal(value, t.BOOLEAN)
        if isinstance(value, str):
            return x.Literal(value, t.VARCHAR)
        if value is None:
            return x.Literal(None, t.NULL)
        found = number(Fraction(value), isinstance(value, int))
        if found is not None:
            return found
        return self.fail(
            "constant-range",
            "this number fits no type",
            span,
            "a decimal has up to 38 digits, a double precision goes to about 1.8e308",
        )

    def _typed(self, e: s.Typed) -> x.Expression:
        to = t.NAMES.get(e.type.text.lower())
        if to is None or not to.is_time:
            elsewhere = INSTEAD.get(e.type.text.lower())
            known = ("DATE", "TIME", "TIMESTAMP", "INTERVAL")
            return self.fail(
                "unknown-type",
                f"{e.type.text} '...' is no constant"
                if elsewhere is None
                else f"there is no {e.type.text.upper()}",
                e.type.span,
                elsewhere or suggest(e.type.text, known, "types of constants"),
            )
        if e.unit is not None and to.kind is not Kind.INTERVAL:
            return self.fail(
                "constant-range", f"{to} takes no unit", e.unit.span, "only an INTERVAL has one"
            )
        return self._read(e.text + (f" {e.unit.text}" if e.unit is not None else ""), to, e.span)

    def _interval(self, text: str, span: Span) -> x.Expression:
        return self._read(text, t.INTERVAL, span)

    def _read(self, text: str, to: Type, span: Span) -> x.Expression:
        value = t.read_time(text, to.kind)
        if value is None:
            hint = f"write it as '{_SHAPES[to.kind]}'"
            return self.fail(
                "constant-range",
                f"'{text}' is not {'an' if to.kind is Kind.INTERVAL else 'a'} {to}",
                span,
                hint,
            )
        return x.Literal(value, to)

    def _parameter(self, e: s.Placeholder) -> x.Expression:
        if e.name not in self.scope.parameters:
            hint = (
                f'--param {e.name}=VALUE gives it one, in Python parameters={{"{e.name}": value}}'
            )
            return self.fail("no-parameter", f"parameter :{e.name} has no value", e.span, hint)
        value = self.scope.parameters[e.name]
        try:
            constant = _constant(value)
        except (ArithmeticError, ValueError):
            constant = None
        if constant is None:
            kind = "time with a zone" if isinstance(value, datetime.time) else type(value).__name__
            message = f"parameter :{e.name} ({kind}) is no constant"
            hint = "a number, text, truth value, None, or a date, time, datetime or timedelta"
            return self.fail("no-parameter", message, e.span, hint)
        if not e.percent:
            return constant if isinstance(constant, x.Literal) else self._literal(constant, e.span)
        if isinstance(constant, x.Literal):
            return self.fail("percent", f"% after :{e.name}, which is no number", e.span, None)
        return self._literal(Fraction(constant) / 100, e.span)


def _constant(value: object) -> x.Literal | int | Fraction | None:
    """Returns a constant, or the exact number; None if the value is no constant. Raises `ValueError`
    or `ArithmeticError` if no constant holds it."""
    match value:
        case bool():
            return x.Literal(value, t.BOOLEAN)
        case str():
            return x.Literal(value, t.VARCHAR)
        case numbers.Integral():
            return int(value)
        case float():
            exact = float(value)
            if exact in (float("inf"), float("-inf")):
                return x.Literal(exact, t.DOUBLE)
            return x.Literal(None, t.NULL) if exact != exact else Fraction(repr(exact))
        case Decimal():
            return x.Literal(None, t.NULL) if value.is_nan() else Fraction(value)
        case None:
            return x.Literal(None, t.NULL)
        case datetime.datetime() | datetime.date() | datetime.time() | datetime.timedelta():
            return x.Literal(None, t.NULL) if value != value else _time(value)
        case _:
            return None


def _time(value: ParameterValue) -> x.Literal | None:
    """Returns the constant of a time of Python's, in UTC and as fine as its type is."""
    match value:
        case datetime.datetime():
            zoned = value.tzinfo is not None
            moment = value.astimezone(datetime.UTC).replace(tzinfo=None) if zoned else value
            return x.Literal(moment, t.TIMESTAMP)
        case datetime.date():
            return x.Literal(value, t.DATE)
        case datetime.time(tzinfo=None):
            fine = value.microsecond // 1000 * 1000
            return x.Literal(value.replace(microsecond=fine), t.TIME)
        case datetime.timedelta():
            return x.Literal(value - value % datetime.timedelta(milliseconds=1), t.INTERVAL)
        case _:
            return None


def number(value: Fraction, integer: bool) -> x.Literal | None:
    """Returns a constant, or None if no type holds it."""
    if integer:
        whole = int(value)
        for kind in (Kind.INT, Kind.BIGINT):
            low, high = t.integer_range(kind)
            if low <= whole <= high:
                return x.Literal(whole, Type(kind), value)
        if abs(whole) >= 10**t.MAX_PRECISION:
            return None
        wide = t.decimal_of(Decimal(whole))
        return None if wide is None else x.Literal(Decimal(whole), wide, value)
    try:
        return x.Literal(float(value), t.DOUBLE, value)
    except OverflowError:
        return None


def folded(operator: str, operands: Sequence[x.Expression]) -> x.Literal | None:
    """Folds an operation on exact constants, computed exactly. Returns None if it cannot be folded,
    or if its value is left to evaluation, which counts the fault."""
    if not all(isinstance(o, x.Literal) and o.exact is not None for o in operands):
        return None
    values = [o.exact for o in operands if isinstance(o, x.Literal) and o.exact is not None]
    integers = all(o.type.is_integer for o in operands)
    if len(values) == 1:
        sign = {"-": -1, "+": 1}.get(operator)
        # 2^63 is not a bigint, but its negation is.
        whole = values[0].denominator == 1 and not operands[0].type.is_inexact
        return None if sign is None else number(sign * values[0], whole)
    if operator not in _EXACT or (operator == "/" and not values[1]):
        return None
    found = _EXACT[operator](*values)
    if not integers or operator == "/":
        return number(found, False)
    bound = number(found, True)
    return None if bound is None or bound.type.is_decimal else bound


_EXACT: Mapping[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}


def exact_beside(operands: Sequence[x.Expression]) -> tuple[x.Expression, ...]:
    """Turns constants with a point into decimals, if an operand is a decimal and none is inexact."""
    others = [o.type for o in operands if not _pointed(o)]
    if not any(of.is_decimal for of in others) or any(of.is_inexact for of in others):
        return tuple(operands)
    return tuple(
        _as_decimal(o) if isinstance(o, x.Literal) and _pointed(o) else o for o in operands
    )


def _pointed(e: x.Expression) -> bool:
    return isinstance(e, x.Literal) and e.exact is not None and e.type == t.DOUBLE


def _as_decimal(e: x.Literal) -> x.Literal:
    """Returns the constant as a decimal if 38 digits hold it."""
    assert e.exact is not None
    for places in range(t.MAX_PRECISION + 1):
        scaled = e.exact * 10**places
        if scaled.denominator == 1:
            value = Decimal(scaled.numerator).scaleb(-places)
            of = t.decimal_of(value)
            return e if of is None else x.Literal(value, of, e.exact)
    return e


def in_milliseconds(operands: Sequence[x.Expression]) -> tuple[x.Expression, ...]:
    """Brings row times to one unit: a timestamp beside a number of milliseconds is converted to
    milliseconds."""
    if not all(map(_is_time, operands)) or not any(e.type.is_integer for e in operands):
        return tuple(operands)
    return tuple(
        x.Call("epoch_ms", (e,), (t.TIMESTAMP,), t.BIGINT) if e.type == t.TIMESTAMP else e
        for e in operands
    )


def _is_time(e: x.Expression) -> bool:
    """Returns whether a value is the time of a row, or an offset from one."""
    if isinstance(e, x.Call) and e.function in ("+", "-"):
        return any(map(_is_time, e.arguments))
    return isinstance(e, x.ColumnReference) and e.timed


def beside_times(arguments: Sequence[x.Expression]) -> tuple[x.Expression, ...]:
    """Reads text constants as values of the first date, time, timestamp or interval among the others,
    where they are such values."""
    of = next((e.type for e in arguments if e.type.is_time), None)

    def read(e: x.Expression) -> x.Expression:
        if of is not None and isinstance(e, x.Literal) and isinstance(e.value, str):
            value = t.read_time(e.value, of.kind)
            return e if value is None else x.Literal(value, of)
        return e

    return tuple(map(read, arguments))


def as_times(arguments: Sequence[x.Expression]) -> tuple[x.Expression, ...]:
    """Reads text constants as timestamps or intervals, for a function that takes no texts there."""

    def read(e: x.Expression) -> x.Expression:
        if isinstance(e, x.Literal) and isinstance(e.value, str):
            for of in (t.TIMESTAMP, t.INTERVAL):
                value = t.read_time(e.value, of.kind)
                if value is not None:
                    return x.Literal(value, of)
        return e

    return tuple(map(read, arguments))
