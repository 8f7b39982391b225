"""Expressions of a pattern: names to elements and attributes, types, folded constants.

before  `tree` expressions, names as written
after   `ir` expressions; a subtree of literals alone is one constant, computed exactly
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from compiler.catalogue import TIMESTAMP_NAMES, Stream
from compiler.errors import Problems, Span, suggest
from compiler.language.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    ERROR,
    NULL,
    VARCHAR,
    Kind,
    Type,
    read_time,
)
from compiler.pattern import ir, tree
from compiler.xsql.tree import Name

ParameterValue = int | float | str | bool | None

AGGREGATES = ("count", "sum", "avg", "min", "max")
FUNCTIONS: Mapping[str, tuple[tuple[str, ...], str]] = {
    # name: what its arguments are, what its value is
    "abs": (("number",), "same"),
    "ceil": (("number",), "double"),
    "floor": (("number",), "double"),
    "length": (("text",), "integer"),
    "lower": (("text",), "text"),
    "mod": (("number", "number"), "same"),
    "sqrt": (("number",), "double"),
    "upper": (("text",), "text"),
}
_LARGEST = (1 << 63) - 1
_EPOCH = datetime.date(1970, 1, 1)

Bound = tuple[ir.Expression, Fraction | None]


@dataclass
class Scope:
    """What the names of a query stand for."""

    elements: Sequence[ir.Element]
    aliases: Mapping[str, int]
    types: Mapping[str, Sequence[int]]
    stream: Stream
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)

    def attribute(self, name: str) -> tuple[str, Type] | None:
        """An attribute's folded name and its type."""
        column = self.stream.column(name)
        if column is None:
            return None
        own = any(c.name.lower() == name.lower() for c in self.stream.columns)
        if not own and name.lower() in TIMESTAMP_NAMES and not self.stream.unknown:
            return ir.TIME, BIGINT
        return column.name.lower(), column.type


class Binder:
    """Binds the expressions of one clause; every problem is reported with its number."""

    def __init__(self, scope: Scope, problems: Problems, returns: bool = False) -> None:
        self.scope = scope
        self._problems = problems
        self._returns = returns
        self._inside: str | None = None  # the aggregate whose argument is being bound

    # --- doors ----------------------------------------------------------------

    def condition(self, e: tree.Expression) -> ir.Expression:
        """A condition; of any other type it is P015."""
        found = self.value(e)
        if found.type.kind not in (Kind.BOOLEAN, Kind.NULL, Kind.ERROR):
            self._wrong_type(f"a condition is wanted, this is {found.type}", e.span)
        return found

    def value(self, e: tree.Expression) -> ir.Expression:
        return self._bind(e)[0]

    def output(self, e: tree.Expression) -> ir.Expression | ir.Whole:
        """A column of RETURN, where a whole event may stand."""
        if isinstance(e, tree.Reference) and e.attribute is None:
            element = self._element(e.name)
            if element is None:
                return ir.Constant(None, ERROR)
            pick = self._pick(element, e.index, e.span)
            return ir.Whole(element, pick) if pick else ir.Constant(None, ERROR)
        if isinstance(e, tree.Call) and e.attribute is None and self._ends(e):
            found = self._end_of_group(e)
            return ir.Whole(*found) if found else ir.Constant(None, ERROR)
        return self.value(e)

    def _report(self, code: str, message: str, span: Span, hint: str | None = None) -> Bound:
        self._problems.add(code, f"{code} {message}", span, hint)
        return ir.Constant(None, ERROR), None

    def _wrong_type(self, message: str, span: Span, hint: str | None = None) -> Bound:
        return self._report("P015", message, span, hint)

    # --- expressions ----------------------------------------------------------

    def _bind(self, e: tree.Expression) -> Bound:
        match e:
            case tree.Literal():
                return self._literal(e.value)
            case tree.Parameter():
                return self._parameter(e)
            case tree.Reference():
                return self._reference(e), None
            case tree.Call():
                return self._call(e), None
            case tree.Signed():
                return self._signed(e)
            case tree.Arithmetic():
                return self._arithmetic(e)
            case tree.Comparison():
                left, right = self.value(e.left), self.value(e.right)
                left, right = self._alike(left, right, e)
                return ir.Comparison(e.operator, left, right, BOOLEAN), None
            case tree.InList():
                return self._in_list(e), None
            case tree.IsNull():
                inner: ir.Expression = ir.IsNull(self.value(e.operand), BOOLEAN)
                return (ir.Not(inner, BOOLEAN) if e.negated else inner), None
            case tree.Not():
                return ir.Not(self.condition(e.operand), BOOLEAN), None
            case tree.Connective():
                operands = tuple(self.condition(operand) for operand in e.operands)
                return ir.Connective(e.operator, operands, BOOLEAN), None

    def _literal(self, value: int | Fraction | str | bool | float | None) -> Bound:
        if isinstance(value, bool):
            return ir.Constant(value, BOOLEAN), None
        if isinstance(value, int):
            return _number(Fraction(value), integer=True)
        if isinstance(value, Fraction):
            return _number(value, integer=False)
        if isinstance(value, float):
            if value != value:
                return ir.Constant(None, NULL), None
            if value in (float("inf"), float("-inf")):
                return ir.Constant(value, DOUBLE), None
            return _number(Fraction(repr(value)), integer=False)
        return ir.Constant(value, NULL if value is None else VARCHAR), None

    def _parameter(self, e: tree.Parameter) -> Bound:
        if e.name not in self.scope.parameters:
            hint = f"--param {e.name}=VALUE gives it one"
            return self._report("P018", f"parameter :{e.name} has no value", e.span, hint)
        found, exact = self._literal(self.scope.parameters[e.name])
        if not e.percent:
            return found, exact
        if exact is None:
            return self._report("P019", f"% after :{e.name}, which is no number", e.span)
        return _number(exact / 100, integer=False)

    def _signed(self, e: tree.Signed) -> Bound:
        operand, exact = self._bind(e.operand)
        self._must_be_number(operand, e.operand)
        if e.sign == "+":
            return operand, exact
        if exact is not None:
            return _number(-exact, operand.type.is_integer)
        return ir.Minus(operand, operand.type), None

    def _arithmetic(self, e: tree.Arithmetic) -> Bound:
        left, a = self._bind(e.left)
        right, b = self._bind(e.right)
        if e.operator == "%":
            hint = "38% is 0.38, with the digits touching the sign; a remainder is mod(x, y)"
            return self._report("P019", "% stands after a number or a parameter", e.at, hint)
        self._must_be_number(left, e.left)
        self._must_be_number(right, e.right)
        integer = left.type.is_integer and right.type.is_integer and e.operator != "/"
        if a is not None and b is not None:
            if e.operator == "/":
                return _number(a / b, False) if b else (ir.Constant(None, DOUBLE), None)
            folded = a + b if e.operator == "+" else a - b if e.operator == "-" else a * b
            return _number(folded, integer)
        return ir.Arithmetic(e.operator, left, right, BIGINT if integer else DOUBLE), None

    def _must_be_number(self, found: ir.Expression, e: tree.Expression) -> None:
        if not (found.type.is_numeric or found.type.is_unknown):
            self._wrong_type(f"a number is wanted, this is {found.type}", e.span)

    def _in_list(self, e: tree.InList) -> ir.Expression:
        operand = self.value(e.operand)
        items = []
        for written in e.items:
            left, item = self._alike(operand, self.value(written), written)
            operand = left
            items.append(item)
        inner: ir.Expression = ir.InList(operand, tuple(items), BOOLEAN)
        return ir.Not(inner, BOOLEAN) if e.negated else inner

    def _alike(
        self, left: ir.Expression, right: ir.Expression, e: tree.Expression
    ) -> tuple[ir.Expression, ir.Expression]:
        """Two sides that can be compared; a text beside a date is read as one."""
        a, b = left.type, right.type
        if a.is_unknown or b.is_unknown or (a.is_numeric and b.is_numeric) or a.kind is b.kind:
            return left, right
        if a.is_text and b.is_text:
            return left, right
        for one, other in ((left, right), (right, left)):
            if isinstance(other, ir.Constant) and isinstance(other.value, str):
                ticks = _ticks(other.value, one.type.kind)
                if ticks is not None:
                    read = ir.Constant(ticks, one.type)
                    return (left, read) if one is left else (read, right)
        self._wrong_type(f"{a} and {b} cannot be compared", e.span)
        return left, right

    # --- references -----------------------------------------------------------

    def _element(self, name: Name) -> int | None:
        """The element a name stands for: an alias first, then a type used once."""
        folded = name.text.lower()
        if folded in self.scope.aliases:
            return self.scope.aliases[folded]
        places = self.scope.types.get(folded, ())
        if len(places) == 1:
            return places[0]
        if places:
            hint = f"give each its own name, such as {name.text} {folded}2"
            self._report("P005", f"{name.text} is {len(places)} elements", name.span, hint)
            return None
        known = [*self.scope.aliases, *self.scope.types]
        hint = suggest(name.text, known, "variables")
        self._report("P006", f"there is no variable {name.text}", name.span, hint)
        return None

    def _attribute(self, element: int, pick: ir.Pick, name: Name) -> ir.Expression:
        found = self.scope.attribute(name.text)
        if found is None:
            columns = [c.name for c in self.scope.stream.columns]
            hint = suggest(name.text, [*columns, ir.TIME], "attributes")
            text = f"stream {self.scope.stream.name} has no attribute {name.text}"
            return self._report("P003", text, name.span, hint)[0]
        return ir.Value(element, pick, found[0], found[1])

    def _pick(self, element: int, index: str | None, span: Span) -> ir.Pick | None:
        """Which events an index means; one that has no meaning here is P014."""
        of = self.scope.elements[element]
        if of.negated:
            where = "RETURN" if self._returns else self._inside
            if where is not None:
                self._report("P013", f"!{of.variable} has no event to show in {where}", span)
                return None
        if index is None:
            return ir.Pick.EACH if of.kleene else ir.Pick.ONE
        if not of.kleene:
            hint = f"{of.variable} is one event; a group is written {of.type or 'ANY'}+"
            self._report("P014", f"{of.variable} has no members to index", span, hint)
            return None
        picks = {"1": ir.Pick.FIRST, "i": ir.Pick.EACH, "i-1": ir.Pick.PREVIOUS}
        if index.lower() in picks and not (self._returns and index.lower() == "i-1"):
            return picks[index.lower()]
        hint = "an index is [1], [i], [i-1], or [..i-1] within an aggregate; last(v) is the last"
        self._report("P014", f"the index [{index}] has no meaning here", span, hint)
        return None

    def _reference(self, e: tree.Reference) -> ir.Expression:
        element = self._element(e.name)
        if element is None:
            return ir.Constant(None, ERROR)
        pick = self._pick(element, e.index, e.span)
        if pick is None:
            return ir.Constant(None, ERROR)
        if e.attribute is None:
            hint = f"name one of its attributes: {e.name.text}.{ir.TIME}"
            return self._wrong_type(f"{e.name.text} is a whole event", e.span, hint)[0]
        return self._attribute(element, pick, e.attribute)

    # --- calls ----------------------------------------------------------------

    def _call(self, e: tree.Call) -> ir.Expression:
        name = e.function.text.lower()
        if self._ends(e):
            if self._inside is not None:
                return self._nested(e)
            return self._end_value(e)
        if e.attribute is not None:
            return self._wrong_type(f"{e.function.text}(...) has no attributes", e.attribute.span)[
                0
            ]
        if name in AGGREGATES:
            return self._nested(e) if self._inside is not None else self._aggregate(e, name)
        if name not in FUNCTIONS:
            known = [*FUNCTIONS, *AGGREGATES, "first", "last"]
            hint = suggest(e.function.text, known, "functions")
            text = f"there is no function {e.function.text}"
            return self._report("P006", text, e.function.span, hint)[0]
        return self._function(e, name)

    def _nested(self, e: tree.Call) -> ir.Expression:
        text = f"{e.function.text} within {self._inside}"
        return self._report("P020", text, e.function.span, "an aggregate takes v.attribute")[0]

    def _function(self, e: tree.Call, name: str) -> ir.Expression:
        wanted, gives = FUNCTIONS[name]
        arguments = tuple(self.value(argument) for argument in e.arguments)
        if len(arguments) != len(wanted):
            plural = "s" if len(wanted) > 1 else ""
            text = f"{name} takes {len(wanted)} argument{plural}, not {len(arguments)}"
            return self._wrong_type(text, e.span)[0]
        for found, kind, written in zip(arguments, wanted, e.arguments, strict=True):
            fits = found.type.is_numeric if kind == "number" else found.type.is_text
            if not (fits or found.type.is_unknown):
                return self._wrong_type(
                    f"{name} takes a {kind}, this is {found.type}", written.span
                )[0]
        whole = all(found.type.is_integer for found in arguments)
        types = {"same": BIGINT if whole else DOUBLE, "double": DOUBLE, "integer": BIGINT}
        return ir.Call(name, arguments, types.get(gives, VARCHAR))

    def _ends(self, e: tree.Call) -> bool:
        """Whether it is first(v) or last(v), of a variable or of its attribute."""
        return (
            e.function.text.lower() in ("first", "last")
            and len(e.arguments) == 1
            and isinstance(e.arguments[0], tree.Reference)
        )

    def _end_of_group(self, e: tree.Call) -> tuple[int, ir.Pick] | None:
        written = e.arguments[0]
        assert isinstance(written, tree.Reference)
        element = self._element(written.name)
        name = e.function.text.lower()
        if element is None:
            return None
        of = self.scope.elements[element]
        if of.negated:
            where = "RETURN" if self._returns else name
            self._report("P013", f"!{of.variable} has no event to show in {where}", written.span)
            return None
        if written.index is not None or not of.kleene:
            what = "an index within" if written.index is not None else "a single event in"
            self._report("P014", f"{what} {name}()", written.span, f"{name} takes a Kleene group")
            return None
        return element, ir.Pick.FIRST if name == "first" else ir.Pick.LAST

    def _end_value(self, e: tree.Call) -> ir.Expression:
        found = self._end_of_group(e)
        written = e.arguments[0]
        assert isinstance(written, tree.Reference)
        attribute = e.attribute or written.attribute
        if found is None:
            return ir.Constant(None, ERROR)
        if attribute is None:
            hint = f"{e.function.text}({written.name.text}).{ir.TIME}"
            return self._wrong_type("this is a whole event", e.span, hint)[0]
        return self._attribute(*found, attribute)

    def _aggregate(self, e: tree.Call, name: str) -> ir.Expression:
        if len(e.arguments) != 1 or not isinstance(e.arguments[0], tree.Reference):
            self._inside = name
            for argument in e.arguments:  # for what is wrong inside
                self.value(argument)
            self._inside = None
            hint = f"{name}(v)" if name == "count" else f"{name}(v.attribute)"
            return self._wrong_type(f"{name} takes an attribute of a variable", e.span, hint)[0]
        written = e.arguments[0]
        element = self._element(written.name)
        if element is None:
            return ir.Constant(None, ERROR)
        of = self.scope.elements[element]
        if of.negated:
            return self._report("P013", f"!{of.variable} in {name}", written.span)[0]
        before = written.index == "..i-1"
        if (written.index is not None and not before) or (before and self._returns):
            hint = f"{name} goes over the whole group, or over [..i-1]"
            return self._report("P014", f"the index [{written.index}]", written.span, hint)[0]
        if not of.kleene:
            text = f"{of.variable} is one event, no group to aggregate"
            return self._report("P014", text, written.span)[0]
        if written.attribute is None:
            if name != "count":
                return self._wrong_type(f"{name} takes an attribute", written.span)[0]
            return ir.Aggregate(name, element, before, None, BIGINT)
        value = self._attribute(element, ir.Pick.EACH, written.attribute)
        if not isinstance(value, ir.Value):
            return value
        if name in ("sum", "avg") and not (value.type.is_numeric or value.type.is_unknown):
            return self._wrong_type(f"{name} of {value.type}", written.span)[0]
        types = {"count": BIGINT, "avg": DOUBLE}
        kind = types.get(name, value.type)
        if name == "sum":
            kind = BIGINT if value.type.is_integer else DOUBLE
        return ir.Aggregate(name, element, before, value.attribute, kind)


def _number(value: Fraction, integer: bool) -> Bound:
    if integer and -_LARGEST - 1 <= value <= _LARGEST:
        return ir.Constant(int(value), BIGINT), value
    try:
        return ir.Constant(float(value), DOUBLE), value
    except OverflowError:
        return ir.Constant(float("inf") if value > 0 else float("-inf"), DOUBLE), None


def _ticks(text: str, kind: Kind) -> int | None:
    """A date in days, a time in milliseconds, a timestamp in microseconds, from its text."""
    if kind not in (Kind.DATE, Kind.TIME, Kind.TIMESTAMP):
        return None
    found = read_time(text, kind)
    if isinstance(found, datetime.datetime):
        return round((found - datetime.datetime(1970, 1, 1)) / datetime.timedelta(microseconds=1))
    if isinstance(found, datetime.date):
        return (found - _EPOCH).days
    if isinstance(found, datetime.time):
        whole = (found.hour * 60 + found.minute) * 60 + found.second
        return whole * 1_000 + found.microsecond // 1_000
    return None
