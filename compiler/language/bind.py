"""The binder: turns written expressions into bound, typed ones, in all languages.

A language defines what a name means in a `scope.Scope`; everything above names is here. Constants
alone are bound in `constants`, names of types in `typenames`. Types are inferred from the leaves up.
A text constant beside a date, time, timestamp or interval is read as a value of that type. A constant
with a point is exact until it meets an inexact operand, and operations on constants alone are computed
exactly and rounded once.

    before  syntax   price * (1 + 5%) > :limit
    after   bound    Compare(GT, Call("*", (Value(price), Literal(1.05))), Literal(100.0))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from seustream.compiler.errors import Span, suggest
from seustream.compiler.language import expressions as x
from seustream.compiler.language import syntax as s
from seustream.compiler.language import types as t
from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.constants import (
    ConstantBinder,
    as_times,
    beside_times,
    exact_beside,
    folded,
    in_milliseconds,
)
from seustream.compiler.language.elsewhere import INSTEAD
from seustream.compiler.language.functions import FUNCTIONS
from seustream.compiler.language.overloads import (
    CONVERT,
    LISTS,
    expanded_parameters,
    instead,
    signatures,
)
from seustream.compiler.language.registry import (
    AggregateFunction,
    Chosen,
    choose,
)
from seustream.compiler.language.scope import FAILED, ParameterValue, Scope
from seustream.compiler.language.typenames import bind_type
from seustream.compiler.language.types import Kind, Type
from seustream.hdl.isa import Condition

MAX_DEPTH = 150
"""The deepest nesting of operators; every pass recurses into them."""

_CONDITIONS = {c.symbol: c for c in Condition}
_NAMES = {name: entry.name for entry in FUNCTIONS.values() for name in (entry.name, *entry.aliases)}
_AGGREGATE_NAMES = {
    name: entry.name for entry in AGGREGATES.values() for name in (entry.name, *entry.aliases)
}
_ANY_NUMBER = 1_000
_CAST_TARGETS = tuple({of.kind: of for of in t.NAMES.values()}.values())


@dataclass
class Binder(ConstantBinder):
    """Binds the expressions of one place; problems are reported, not raised. With `bars`, || of two
    conditions is OR."""

    bars: bool = False
    depth: int = field(default=0, init=False)
    too_deep: bool = field(default=False, init=False)
    aggregating: str | None = field(default=None, init=False)  # whose argument is being bound

    # --- entry points ---------------------------------------------------------

    def value(self, e: s.Expression) -> x.Expression:
        """Binds any value."""
        if self.depth >= MAX_DEPTH and not isinstance(e, (s.Reference, s.Constant)):
            if self.too_deep:
                return FAILED  # the first report is enough
            self.too_deep = True
            return self.fail(
                "too-deep",
                f"more than {MAX_DEPTH} operators stand within each other here",
                e.span,
                "write the condition flatter",
            )
        self.depth += 1
        try:
            return self._value(e)
        finally:
            self.depth -= 1

    def condition(self, e: s.Expression) -> x.Expression:
        """Binds a condition."""
        bound = self.value(e)
        if bound.type.kind is Kind.ERROR:
            return bound
        if bound.type.kind not in (Kind.BOOLEAN, Kind.NULL):
            return self.fail(
                "type-mismatch",
                f"a condition is wanted here, this is {bound.type}",
                e.span,
                "compare it with something",
            )
        return x.condition(bound)

    def key(self, e: s.Expression, what: str) -> x.Expression:
        """Binds a value by which rows are ordered or divided."""
        bound = self.value(e)
        if bound.type.kind is not Kind.LIST:
            return bound
        return self.fail("type-mismatch", f"a list is no key of {what}", e.span, LISTS)

    def _value(self, e: s.Expression) -> x.Expression:
        match e:
            case s.Reference():
                return self.scope.reference(e, self)
            case s.Constant():
                return self._literal(e.value, e.span)
            case s.Typed():
                return self._typed(e)
            case s.Quantity():
                return self._interval(f"{float(e.number):f} {e.unit.text}", e.span)
            case s.Placeholder():
                return self._parameter(e)
            case s.OperatorCall():
                return self._operation(e)
            case s.ComparisonChain():
                return self._comparison(e)
            case s.Connective(operator="XOR"):
                terms = [self.condition(operand) for operand in e.operands]
                bound = terms[0]
                for term in terms[1:]:
                    bound = self._choose("xor", (bound, term), e.span, e.span)
                return bound
            case s.Connective():
                connected = tuple(self.condition(operand) for operand in e.operands)
                return x.And(connected) if e.operator == "AND" else x.Or(connected)
            case s.Negation():
                return x.Not(self.condition(e.operand))
            case s.Between():
                return self._between(e)
            case s.InList():
                return self._in_list(e)
            case s.NullTest():
                operand = self.condition(e.operand) if e.condition else self.value(e.operand)
                return x.IsNull(operand, e.negated)
            case s.IsDistinct():
                sides = (self.value(e.left), self.value(e.right))
                found = self._choose("is_distinct", sides, e.span, e.span, shown="IS DISTINCT FROM")
                return x.Not(x.condition(found)) if e.negated else found
            case s.Like():
                return self._like(e)
            case s.CaseWhen():
                return self._case(e)
            case s.FunctionCall():
                found_here = self.scope.call(e, self)
                return self._call(e) if found_here is None else found_here
            case s.TypeCast():
                return self._cast(e)
            case _:
                return self.scope.special(e, self)

    # --- operators ------------------------------------------------------------

    def _operation(self, e: s.OperatorCall) -> x.Expression:
        operands = tuple(self.value(operand) for operand in e.operands)
        if e.operator == "%":
            hint = "38% is 0.38, with the digits touching the sign; a remainder is mod(x, y)"
            return self.fail("percent", "% stands after a number or a parameter", e.at, hint)
        if any(operand.type.kind is Kind.ERROR for operand in operands):
            return FAILED
        if self.bars and e.operator == "||" and all(o.type == t.BOOLEAN for o in operands):
            return x.Or(tuple(map(x.condition, operands)))
        value = folded(e.operator, operands)
        if value is not None:
            return value
        if len(operands) == 1 and e.operator == "+":
            return self.plus(operands[0], e)
        name = "negate" if len(operands) == 1 else e.operator
        return self._choose(name, operands, e.at, e.span, shown=e.operator)

    def plus(self, operand: x.Expression, e: s.OperatorCall) -> x.Expression:
        """Binds the sign +, which changes nothing but accepts the same operands as the sign -."""
        signed = self._choose("negate", (operand,), e.at, e.span, shown="+")
        return operand if signed is not FAILED else FAILED

    def _comparison(self, e: s.ComparisonChain) -> x.Expression:
        if len(e.operators) > 1:
            if any(isinstance(o, s.OperatorCall) and o.operator == "||" for o in e.operands):
                hint = "|| makes one text of two, and binds before a comparison; write OR"
                return self.fail("type-mismatch", "comparisons do not chain", e.span, hint)
            a, b, c = (_text(operand) for operand in e.operands[:3])
            first, second = e.operators[:2]
            return self.fail(
                "type-mismatch",
                "comparisons do not chain",
                e.span,
                f"write {a} {first} {b} AND {b} {second} {c}",
            )
        left, right = (self.value(operand) for operand in e.operands)
        return self.compare(_CONDITIONS[e.operators[0]], left, right, e.span)

    def compare(
        self, condition: Condition, left: x.Expression, right: x.Expression, span: Span
    ) -> x.Expression:
        """Compares two bound values."""
        if Kind.ERROR in (left.type.kind, right.type.kind):
            return FAILED
        left, right = self._beside(left, right.type, span), self._beside(right, left.type, span)
        left, right = in_milliseconds(exact_beside((left, right)))
        if Kind.LIST in (left.type.kind, right.type.kind):
            return self.fail("type-mismatch", "lists are not compared", span, LISTS)
        met = t.common(left.type, right.type)
        if met is None:
            return self.fail(
                "type-mismatch",
                f"{left.type} cannot be compared with {right.type}",
                span,
                _converted(left, right),
            )
        if met.kind is Kind.ERROR:
            return FAILED
        return x.Compare(condition, left, right, met, span=span)

    def _beside(self, e: x.Expression, other: Type, span: Span) -> x.Expression:
        """Reads a text constant beside a date, time, timestamp or interval as one."""
        if isinstance(e, x.Literal) and isinstance(e.value, str) and other.is_time:
            return self._read(e.value, other, span)
        return e

    def _between(self, e: s.Between) -> x.Expression:
        operand, low, high = self.value(e.operand), self.value(e.low), self.value(e.high)
        first, second = (Condition.LT, Condition.GT) if e.negated else (Condition.GE, Condition.LE)
        terms = (
            self.compare(first, operand, low, e.low.span),
            self.compare(second, operand, high, e.high.span),
        )
        if FAILED in terms:
            return FAILED
        return x.Or(terms) if e.negated else x.And(terms)

    def _in_list(self, e: s.InList) -> x.Expression:
        operand = self.value(e.operand)
        condition = Condition.NE if e.negated else Condition.EQ
        terms = tuple(
            self.compare(condition, operand, self.value(item), item.span) for item in e.items
        )
        if FAILED in terms:
            return FAILED
        if len(terms) == 1:
            return terms[0]
        return x.And(terms) if e.negated else x.Or(terms)

    def _like(self, e: s.Like) -> x.Expression:
        written = (e.operand, e.pattern, *(() if e.escape is None else (e.escape,)))
        operands = tuple(self.value(operand) for operand in written)
        if not (operands[0].type.is_text or operands[0].type.is_unknown):
            return self.fail(
                "type-mismatch",
                f"{e.function.upper()} wants a text, not {operands[0].type}",
                e.operand.span,
                LISTS
                if operands[0].type.kind is Kind.LIST
                else "convert it with CAST(... AS varchar)",
            )
        if len(operands) > 2 and not _single(operands[2]):
            return self.fail(
                "type-mismatch", "ESCAPE takes one character", written[2].span, "such as ESCAPE '!'"
            )
        found = self._choose(e.function, operands, e.span, e.span, shown=e.function.upper())
        if found is FAILED:
            return FAILED
        return x.Not(x.condition(found)) if e.negated else found

    def _case(self, e: s.CaseWhen) -> x.Expression:
        conditions: list[x.Expression] = []
        operand = None if e.operand is None else self.value(e.operand)
        for when, _ in e.branches:
            if operand is None:
                conditions.append(self.condition(when))
            else:
                conditions.append(self.compare(Condition.EQ, operand, self.value(when), when.span))
        written = [then for _, then in e.branches]
        values = [self.value(then) for then in written]
        values.append(x.Literal(None, t.NULL) if e.otherwise is None else self.value(e.otherwise))
        return self.case(conditions, values, e.span)

    def case(
        self, conditions: Sequence[x.Expression], values: Sequence[x.Expression], span: Span
    ) -> x.Expression:
        """Builds CASE over bound conditions; the last value is that of ELSE."""
        if FAILED in (*conditions, *values):
            return FAILED
        values = exact_beside(values)
        time = next((value.type for value in values if value.type.is_time), t.NULL)
        values = tuple(self._beside(value, time, span) for value in values)
        if FAILED in values:
            return FAILED
        met = t.meet(value.type for value in values)
        if met is None:
            kinds = " and ".join(dict.fromkeys(str(v.type) for v in values if v.type != t.NULL))
            return self.fail("type-mismatch", f"the branches of CASE are {kinds}", span, CONVERT)
        return x.Case(tuple(zip(conditions, values[:-1], strict=True)), values[-1], met)

    def _cast(self, e: s.TypeCast) -> x.Expression:
        operand = self.value(e.operand)
        to = bind_type(e.to, self.problems, self.scope.codes, rounds=True)
        if Kind.ERROR in (operand.type.kind, to.kind):
            return FAILED
        if not t.castable(operand.type, to):
            can = [other.kind.value for other in _CAST_TARGETS if t.castable(operand.type, other)]
            hint = f"it can become {', '.join(can)}" if can else LISTS
            if operand.type.is_integer and to.is_time:
                hint = f"timestamp_millis(...) makes a timestamp of milliseconds; {hint}"
            return self.fail("type-mismatch", f"{operand.type} cannot become {to}", e.span, hint)
        return x.Cast(operand, to, e.quiet, e.span)

    # --- functions ------------------------------------------------------------

    def _call(self, e: s.FunctionCall) -> x.Expression:
        name = e.name.lower()
        if name in _AGGREGATE_NAMES:
            return self.aggregate(e, AGGREGATES[_AGGREGATE_NAMES[name]])
        if e.distinct or e.where is not None:
            what = "DISTINCT" if e.distinct else "FILTER"
            return self.fail(
                "type-mismatch", f"{name} is no aggregate, it takes no {what}", e.at,
                "aggregates of rows do, such as count(DISTINCT x)",
            )  # fmt: skip
        if e.attribute is not None:
            return self.fail(
                "type-mismatch", f"{e.name}(...) has no attributes", e.attribute.span, None
            )
        if e.extracts and name == "exists":
            return self.fail("syntax", "a subquery stands in a SELECT", e.span, INSTEAD[name])
        if e.extracts and name != "extract":
            return self.fail(
                "syntax",
                f"{name} takes no FROM",
                e.at,
                "extract(year FROM t), substring(x FROM 2), trim('a' FROM x)",
            )
        if name == "if" and len(e.arguments) == 3:
            condition, *values = e.arguments
            return self.case([self.condition(condition)], list(map(self.value, values)), e.span)
        entry = FUNCTIONS.get(_NAMES.get(name, ""))
        if entry is None or (entry.hidden and name == entry.name.lower()):
            known = [n for n, of in _NAMES.items() if not FUNCTIONS[of].hidden or n != of]
            known += [*_AGGREGATE_NAMES, *self.scope.functions]
            return self.fail(
                "unknown-function",
                f"there is no function {e.name}",
                e.at,
                INSTEAD.get(name) or suggest(name, known, "functions"),
            )
        arguments = [self.value(argument) for argument in e.arguments]
        if any(argument.type.kind is Kind.ERROR for argument in arguments):
            return FAILED
        counts = [len(overload.parameters) for overload in entry.overloads]
        fewest = min([entry.fewest, *counts])
        most = max([_ANY_NUMBER if entry.most is None else entry.most, *counts])
        if not fewest <= len(arguments) <= most or e.star:
            many = str(fewest) if fewest == most else f"{fewest} or more"
            many = f"{fewest} to {most}" if fewest < most < _ANY_NUMBER else many
            return self.fail(
                "type-mismatch",
                f"{name} wants {entry.wants}, got {'*' if e.star else len(arguments)}",
                e.span,
                f"give it {many} argument{'s' * (most > 1)}",
            )
        return self._choose(entry.name, tuple(arguments), e.at, e.span, shown=name)

    def _choose(
        self,
        name: str,
        arguments: tuple[x.Expression, ...],
        at: Span,
        span: Span,
        shown: str | None = None,
    ) -> x.Expression:
        """Resolves a function or operator over bound arguments, by the first signature that fits."""
        if any(argument.type.kind is Kind.ERROR for argument in arguments):
            return FAILED
        if any(argument.type.kind is Kind.LIST for argument in arguments):
            return self.fail("type-mismatch", f"{shown or name} takes no list", span, LISTS)
        entry = FUNCTIONS[name]
        if name == "-":
            arguments = in_milliseconds(arguments)
        forms = [exact_beside(arguments), as_times(arguments)]
        if all(parameter.takes is None for parameter in entry.parameters):  # values of one type
            forms.insert(1, beside_times(arguments))
        for given in forms:
            types = [argument.type for argument in given]
            for number, (parameters, result) in enumerate(signatures(entry)):
                expanded = expanded_parameters(entry, parameters, len(given))
                chosen = None if expanded is None else choose(expanded, result, types)
                if chosen is not None:
                    call = x.Call(name, tuple(given), chosen.takes, chosen.type, number, at)
                    return self._checked(call, shown or name, span)
        wants = entry.wants
        if entry.hidden:
            texts = len(arguments) > 1 and {p.name for p in entry.parameters} == {"a text"}
            wants = "texts" if texts else wants
            wants = "numbers" if name in "+-*/DIV" else wants
        kinds = " and ".join(str(argument.type) for argument in arguments)
        listed = ", ".join(str(argument.type) for argument in arguments)
        infix = len(arguments) == 2 and entry.hidden
        got = f"these are {kinds}" if infix else f"not {listed}"
        hint = instead(name, [argument.type for argument in arguments])
        return self.fail("type-mismatch", f"{shown or name} wants {wants}, {got}", span, hint)

    def _checked(self, e: x.Call, shown: str, span: Span) -> x.Expression:
        """Returns the call if its constants are valid there."""
        entry = FUNCTIONS[e.function]
        check = entry.overloads[e.overload - 1].check if e.overload else entry.check
        if check is None:
            return e
        constants = [a.value if isinstance(a, x.Literal) else ... for a in e.arguments]
        wrong = check(*constants)
        if wrong is None:
            return e
        return self.fail("type-mismatch", f"{shown}: {wrong}", span, f"such as {entry.example}")

    def aggregate(self, e: s.FunctionCall, entry: AggregateFunction) -> x.Expression:
        """Binds an aggregate over rows, if this place has rows."""
        name = e.name.lower()
        if self.aggregating is not None or self.scope.aggregates is not True:
            place = f"the argument of {self.aggregating}" if self.aggregating else self.scope.within
            hint = self.scope.aggregates if isinstance(self.scope.aggregates, str) else None
            return self.fail(
                "aggregate-here",
                f"{name} cannot stand in {place}",
                e.span,
                hint if hint and not self.aggregating else "aggregates do not nest",
            )
        if e.star:
            if name != "count":
                return self.fail(
                    "type-mismatch", f"{name} wants one argument", e.span, f"write {name}(column)"
                )
            return x.AggregateCall("count", (), (), t.BIGINT, where=self._filter(e), at=e.at)
        fewest = len(entry.parameters) - entry.optional
        # count without arguments is written count(*), which is handled above.
        if not max(fewest, 1) <= len(e.arguments) <= len(entry.parameters):
            forms = "count(*) or count(column)" if name == "count" else entry.example
            many = "one argument" if len(entry.parameters) == 1 else f"{fewest} arguments"
            return self.fail("type-mismatch", f"{name} wants {many}", e.span, f"write {forms}")
        self.aggregating = name
        arguments = tuple(self.value(argument) for argument in e.arguments)
        self.aggregating = None
        where = self._filter(e)
        if FAILED in arguments:
            return FAILED
        parameters = entry.parameters[: len(arguments)]
        if any(argument.type.kind is Kind.LIST for argument in arguments):
            return self.fail("type-mismatch", f"{name} takes no list", e.span, LISTS)
        chosen = choose(parameters, entry.result_type, [argument.type for argument in arguments])
        if chosen is None:
            kinds = ", ".join(str(argument.type) for argument in arguments)
            wants = ", ".join(parameter.name for parameter in parameters)
            return self.fail("type-mismatch", f"{name} wants {wants}, not {kinds}", e.span, CONVERT)
        return x.AggregateCall(
            entry.name, arguments, chosen.takes, chosen.type, e.distinct, where, e.at
        )

    def _filter(self, e: s.FunctionCall) -> x.Expression | None:
        if e.where is None:
            return None
        self.aggregating, before = f"FILTER of {e.name}", self.aggregating
        found = self.condition(e.where)
        self.aggregating = before
        return found


def _single(e: x.Expression) -> bool:
    return isinstance(e, x.Literal) and isinstance(e.value, str) and len(e.value) == 1


def _converted(left: x.Expression, right: x.Expression) -> str:
    """Returns the hint for two values that cannot be compared."""
    for number, other in ((left, right), (right, left)):
        if number.type.is_integer and _is_timestamp(other):
            return f"timestamp_millis({x.show(number)}) is the timestamp of so many milliseconds"
    return CONVERT


def _is_timestamp(e: x.Expression) -> bool:
    """Returns whether a value is a timestamp, or a text that reads as one."""
    if isinstance(e, x.Literal) and isinstance(e.value, str):
        return t.read_time(e.value, Kind.TIMESTAMP) is not None
    return e.type.kind is Kind.TIMESTAMP


def _text(e: s.Expression) -> str:
    """Shows a short operand as written, for a hint."""
    return str(e) if isinstance(e, s.Reference) else str(getattr(e, "value", "..."))


__all__ = ["FAILED", "MAX_DEPTH", "Binder", "Chosen", "ParameterValue", "Scope"]
