"""Divides each condition into the part the device can evaluate and the rest.

before  R.a = S.d AND R.x > 1.5 AND R.note LIKE 'ab%'
after   device: R.a = S.d AND [R.x >= code]     residual, on the host: R.note LIKE 'ab%' ...

The device's condition is implied by the whole one, so no result is lost. A conjunct is
*exact* if the device decides it; all others stay with the host as residual.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction

from seustream.compiler.errors import Span
from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import Kind, Type
from seustream.compiler.logical.program import Program, Query
from seustream.compiler.plan.encoding import Codec, Encoding, as_compared, as_real
from seustream.compiler.plan.layout import Layout, uses_device
from seustream.hdl.isa import Condition


@dataclass(frozen=True, slots=True, order=True)
class Attribute:
    """A column of a slot's stream."""

    slot: int
    column: str


@dataclass(frozen=True, slots=True)
class JoinFactor:
    """`left condition right` over columns of two slots, the lower slot on the left."""

    left: Attribute
    condition: Condition
    right: Attribute
    text: str = field(compare=False)
    spans: tuple[Span, ...] = field(default=(), compare=False)  # where it is written


@dataclass(frozen=True, slots=True, order=True)
class Test:
    """Compares a column's code with a constant code."""

    column: str
    condition: Condition
    code: int


@dataclass(frozen=True, slots=True)
class SelectionTerm:
    """All or any of some tests on one slot's raw tuple: one selection bit."""

    slot: int
    every: bool
    tests: tuple[Test, ...]
    text: str = field(compare=False)
    spans: tuple[Span, ...] = field(default=(), compare=False)  # where it is written


Leaf = JoinFactor | SelectionTerm


@dataclass(frozen=True, slots=True)
class Every:
    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Any:
    parts: tuple[Formula, ...]


Formula = Leaf | Every | Any
ALWAYS = Every(())
_ALL_ON_THE_DEVICE: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class DividedConjunct:
    """One conjunct of a condition: the device's form of it, and what that leaves open."""

    condition: x.Expression
    device: Formula
    why: str | None

    @property
    def exact(self) -> bool:
        return self.why is None


@dataclass(frozen=True, slots=True)
class Division:
    """A query, where it runs and why; `slots` are those of its streams in FROM order."""

    query: Query
    slots: tuple[int, ...]
    on_device: bool
    why: str
    parts: tuple[DividedConjunct, ...]


def divide(
    program: Program, layout: Layout, software: Mapping[str, str] = _ALL_ON_THE_DEVICE
) -> tuple[Division, ...]:
    """Divides each query; `software` gives, by name, the reason for those that the device does not
    get."""
    return tuple(
        _divide(query, slots, layout, where, software.get(query.name))
        for query, slots, where in zip(
            program.queries, layout.of_query, layout.compared, strict=True
        )
    )


def _divide(
    query: Query, slots: tuple[int, ...], layout: Layout, where: x.Expression, why: str | None
) -> Division:
    if not uses_device(query):
        why = _no_join(query)
    if why is None:
        divider = _Divider(query, slots, layout)
        conjuncts = zip(x.conjuncts(query.where), x.conjuncts(where), strict=True)
        parts = tuple(divider.part(written, compared) for written, compared in conjuncts)
        what = "joins run" if len(slots) > 1 else "its selection runs"
        return Division(query, slots, True, f"{what} in the device", parts)
    return Division(query, (), False, why, ())


def _no_join(query: Query) -> str:
    if query.where == x.FALSE:
        return "its condition is never true"
    if any(source.stream.table for source in query.sources):
        return "it reads a table"
    if any(source.stream.defined_by is not None for source in query.sources):
        return "it reads a derived stream"
    return "one stream, no comparison with a constant to select by"


@dataclass
class _Divider:
    query: Query
    slots: tuple[int, ...]
    layout: Layout

    def part(self, written: x.Expression, compared: x.Expression) -> DividedConjunct:
        """Divides a conjunct, given as written and with computed attributes."""
        doubts: list[str] = []
        formula = self._formula(compared, doubts)
        return DividedConjunct(written, formula, doubts[0] if doubts else None)

    def _formula(self, e: x.Expression, doubts: list[str]) -> Formula:
        match e:
            case x.And():
                return every(tuple(self._formula(term, doubts) for term in e.terms))
            case x.Or():
                return _any(tuple(self._formula(term, doubts) for term in e.terms))
            case x.Compare(condition, x.ColumnReference() as left, x.ColumnReference() as right):
                return self._factor(condition, left, right, e, doubts)
            case x.Compare(condition, x.ColumnReference() as left, x.Literal() as right, of):
                return self._test(condition, left, right, of, e, doubts)
            case _:
                doubts.append(_why_not(e))
                return ALWAYS

    def _encoding(self, column: x.ColumnReference) -> Encoding | None:
        stream = self.query.sources[column.source].stream.name
        return self.layout.encodings.get((stream, column.name))

    def _factor(
        self,
        condition: Condition,
        left: x.ColumnReference,
        right: x.ColumnReference,
        written: x.Compare,
        doubts: list[str],
    ) -> Formula:
        if left.source == right.source:
            doubts.append("compares two columns of one stream")
            return ALWAYS
        encoding = self._encoding(left)
        if encoding is None:
            doubts.append(_no_code(left.type, right.type))
            return ALWAYS
        weakened = encoding.weakened(condition)
        if weakened is None:
            doubts.append(f"{left.type}: a {encoding.codec.value} decides no {condition.symbol}")
            return ALWAYS
        if not encoding.is_exact:
            doubts.append(_inexact(left.type, encoding))
        a = Attribute(self.slots[left.source], left.name)
        b = Attribute(self.slots[right.source], right.name)
        if b < a:
            a, b, weakened = b, a, weakened.mirrored()
        return JoinFactor(a, weakened, b, x.show(written), _spans(written))

    def _test(
        self,
        condition: Condition,
        column: x.ColumnReference,
        constant: x.Literal,
        of: Type,
        written: x.Compare,
        doubts: list[str],
    ) -> Formula:
        encoding = self._encoding(column)
        if encoding is None:
            doubts.append(_no_code(column.type, column.type))
            return ALWAYS
        test = _test(encoding, condition, as_compared(constant.value, of))
        if test is None:
            doubts.append(f"no code of {column.alias}.{column.name} decides {x.show(written)}")
            return ALWAYS
        condition, code, exact = test
        if not exact:
            doubts.append(
                f"{x.show(constant)} is no {column.type}"
                if encoding.is_exact
                else _inexact(column.type, encoding)
            )
        slot = self.slots[column.source]
        tests = (Test(column.name, condition, code),)
        return SelectionTerm(slot, True, tests, x.show(written), _spans(written))


def _spans(e: x.Compare) -> tuple[Span, ...]:
    return () if e.span is None else (e.span,)


_NARROW = {Kind.BOOLEAN: 1, Kind.SMALLINT: 16, Kind.INT: 32, Kind.REAL: 32, Kind.DATE: 32}
"""The bits of types that an attribute can hold."""


def _inexact(of: Type, encoding: Encoding) -> str:
    """Says why codes alone do not decide: the type is too wide, or the code is that of a wider type
    with which the column, or one compared with it, is compared somewhere."""
    if _NARROW.get(of.kind, 64) <= encoding.width:
        return f"{of} has the code of a wider type that it is compared with ({encoding})"
    return f"{of} is wider than an attribute ({encoding})"


def _no_code(left: Type, right: Type) -> str:
    if left.kind is not right.kind:
        return f"no code stands for both {left} and {right}"
    return f"{left} is wider than an attribute"


def _test(
    encoding: Encoding, condition: Condition, value: x.Value
) -> tuple[Condition, int, bool] | None:
    """Returns the condition and the constant on codes, and whether they decide; None if nothing
    follows."""
    decides = encoding.is_exact
    weakened: Condition | None = condition
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if encoding.codec is Codec.INTEGER and isinstance(value, datetime.datetime):
        return None  # beside a date
    if encoding.codec is Codec.INTEGER and isinstance(value, (float, Decimal)):
        if encoding.scale and isinstance(value, float):
            return None  # the column is compared as double precision
        # An integer, or a decimal in units of its last digit, is compared with a number between two
        # of them.
        scaled = Fraction(value) * 10**encoding.scale
        whole = math.floor(scaled)
        if whole != scaled:
            if condition in (Condition.EQ, Condition.NE):
                return None
            below = condition in (Condition.LT, Condition.LE)
            weakened, whole = (Condition.LE, whole) if below else (Condition.GE, whole + 1)
        encoding, value = replace(encoding, scale=0), whole
    elif encoding.codec is Codec.INTEGER_HASH and isinstance(value, Decimal):
        return None
    elif encoding.codec is Codec.INTEGER_HASH and isinstance(value, float) and abs(value) >= 2**53:
        return None  # several integers equal it as double precision
    elif encoding.codec is Codec.REAL and as_real(value) != value:
        # The constant itself is rounded, so only an order that includes equality remains valid.
        decides = False
        if condition in (Condition.EQ, Condition.NE):
            return None
        below = condition in (Condition.LT, Condition.LE)
        weakened = Condition.LE if below else Condition.GE
    if weakened is not None:
        weakened = encoding.weakened(weakened)
    code = encoding.code(value)
    return None if weakened is None or code is None else (weakened, code, decides)


def every(parts: tuple[Formula, ...]) -> Formula:
    flat: list[Formula] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, Every) else (part,))
    return flat[0] if len(flat) == 1 else Every(tuple(dict.fromkeys(flat)))


def _any(parts: tuple[Formula, ...]) -> Formula:
    if ALWAYS in parts:
        return ALWAYS
    slots = {part.slot if isinstance(part, SelectionTerm) else None for part in parts}
    if len(slots) == 1 and None not in slots:
        # Alternatives on one raw tuple are one selection bit, so they need not be multiplied out.
        terms = [part for part in parts if isinstance(part, SelectionTerm)]
        if all(len(term.tests) == 1 or not term.every for term in terms):
            tests = tuple(sorted({test for term in terms for test in term.tests}))
            spans = tuple(span for term in terms for span in term.spans)
            text = " OR ".join(t.text for t in terms)
            return SelectionTerm(terms[0].slot, False, tests, text, spans)
    unique = tuple(dict.fromkeys(parts))
    return unique[0] if len(unique) == 1 else Any(unique)


def _why_not(e: x.Expression) -> str:
    """Returns why a comparison is not the device's, by the first part that the device does not
    know."""
    if isinstance(e, x.IsNull):
        return "the device sees no NULL"
    for part in x.walk(e):
        match part:
            case x.Call(function="like" | "ilike"):
                return f"{part.function.upper()} is evaluated in software"
            case x.Call(function=function) if not function[0].isalpha() or function in _SIGNS:
                return "arithmetic is evaluated in software"
            case x.Call(function="is_distinct"):
                return "IS DISTINCT FROM is evaluated in software"
            case x.Call(function="xor"):
                return "XOR is evaluated in software"
            case x.Call():
                return f"function {part.function} is evaluated in software"
            case x.Cast():
                return f"{'TRY_' * part.quiet}CAST is evaluated in software"
            case x.Case():
                return "CASE is evaluated in software"
    return "evaluated in software"


_SIGNS = ("negate", "DIV")
