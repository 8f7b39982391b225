"""Expressions: from names as written to columns of known type.

Type inference works from the leaves up. Integers meet in the wider of the two, an
integer and a real in double precision, texts in varchar; a string constant beside a
date, time or timestamp is read as one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from compiler.errors import Problems, Span, suggest
from compiler.language import expressions as x
from compiler.language import types as t
from compiler.language.types import Kind, Type
from compiler.plan.logical import Source
from compiler.xsql import tree
from compiler.xsql.functions import AGGREGATES, FUNCTIONS
from hdl.isa import Condition

MAX_DEPTH = 150
"""Of an expression; every pass recurses into it."""

_CONVERT = "convert with CAST(... AS ...)"
_FAILED = x.Literal(None, t.ERROR)
_CONDITIONS = {c.symbol: c for c in Condition}

_TYPE_NAMES: dict[str, Type] = {
    "int": t.INT,
    "integer": t.INT,
    "smallint": t.SMALLINT,
    "bigint": t.BIGINT,
    "real": t.REAL,
    "double precision": t.DOUBLE,
    "double": t.DOUBLE,
    "char": Type(Kind.CHAR, 1),
    "varchar": t.VARCHAR,
    "date": t.DATE,
    "time": t.TIME,
    "timestamp": t.TIMESTAMP,
    "boolean": t.BOOLEAN,
}


def bind_type(written: tree.TypeName, problems: Problems) -> Type:
    found = _TYPE_NAMES.get(written.text)
    if found is None:
        hint = suggest(written.text, _TYPE_NAMES, "types")
        problems.add("unknown-type", f"there is no type {written.text}", written.span, hint)
        return t.ERROR
    if written.length is None:
        return found
    if not found.is_text:
        problems.add("type-length", f"{found} takes no length", written.span, f"write {found}")
        return found
    if written.length < 1:
        problems.add(
            "type-length",
            f"a text of length {written.length} holds nothing",
            written.span,
            f"write {found.kind.value}(1) or more",
        )
    return Type(found.kind, written.length)


@dataclass
class Binder:
    """Binds the expressions of one query.

    `aggregates` says whether an aggregate may stand here; `within` where "here" is."""

    sources: tuple[Source, ...]
    problems: Problems
    aggregates: bool = False
    within: str = "WHERE"
    depth: int = field(default=0, init=False)
    too_deep: bool = field(default=False, init=False)

    # --- entry points ---------------------------------------------------------

    def value(self, e: tree.Expression) -> x.Expression:
        if self.depth >= MAX_DEPTH and not isinstance(e, (tree.ColumnName, tree.Constant)):
            if self.too_deep:
                return _FAILED  # the first says it all
            self.too_deep = True
            return self._fail(
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

    def _value(self, e: tree.Expression) -> x.Expression:
        match e:
            case tree.ColumnName():
                return self._column(e)
            case tree.AllOf():
                return self._fail(
                    "syntax", f"{e.qualifier.text}.* is no value", e.span, "it stands in SELECT"
                )
            case tree.Constant():
                return self._constant(e)
            case tree.Signed():
                return self._signed(e)
            case tree.Arithmetic():
                return self._arithmetic(e)
            case tree.Comparison():
                return self._compare(
                    _CONDITIONS[e.operator], self.value(e.left), self.value(e.right), e.span
                )
            case tree.Connective():
                terms = tuple(self.predicate(operand) for operand in e.operands)
                return x.And(terms) if e.operator == "AND" else x.Or(terms)
            case tree.Negation():
                return x.Not(self.predicate(e.operand))
            case tree.Between():
                return self._between(e)
            case tree.InList():
                return self._in_list(e)
            case tree.IsNull():
                return x.IsNull(self.value(e.operand), e.negated)
            case tree.Like():
                return self._like(e)
            case tree.Call():
                return self._call(e)
            case tree.Cast():
                return self._cast(e)

    def predicate(self, e: tree.Expression) -> x.Expression:
        """A condition; a boolean value b stands for b = TRUE."""
        bound = self.value(e)
        if bound.type.kind is Kind.ERROR:
            return bound
        if bound.type.kind not in (Kind.BOOLEAN, Kind.NULL):
            return self._fail(
                "type-mismatch",
                f"a condition is wanted here, this is {bound.type}",
                e.span,
                "compare it with something",
            )
        if isinstance(bound, x.Literal) and bound.value is not None:
            return bound
        if isinstance(bound, (x.Compare, x.And, x.Or, x.Not, x.IsNull, x.Like)):
            return bound
        return x.Compare(Condition.EQ, bound, x.TRUE, t.BOOLEAN)

    # --- leaves ---------------------------------------------------------------

    def _column(self, e: tree.ColumnName) -> x.Expression:
        if e.qualifier is not None:
            index = self.source(e.qualifier)
            return _FAILED if index is None else self._column_of(index, e.name, e.span)
        having = [
            i
            for i, source in enumerate(self.sources)
            if source.stream.column(e.name.text) and not source.stream.unknown
        ]
        if not having and any(source.stream.unknown for source in self.sources):
            return _FAILED
        if len(having) > 1:
            ways = " or ".join(f"{self.sources[i].alias}.{e.name.text}" for i in having)
            return self._fail(
                "ambiguous-column",
                f"column {e.name.text} is in {len(having)} streams",
                e.span,
                f"write {ways}",
            )
        if not having:
            known = [c.name for source in self.sources for c in source.stream.columns]
            return self._fail(
                "unknown-column",
                f"no stream of this query has a column {e.name.text}",
                e.span,
                suggest(e.name.text, known, "columns"),
            )
        return self._column_of(having[0], e.name, e.span)

    def source(self, name: tree.Name) -> int | None:
        """Position in FROM of the stream or alias called so."""
        for index, source in enumerate(self.sources):
            if source.alias.lower() == name.text.lower():
                return index
        known = [source.alias for source in self.sources]
        self.problems.add(
            "unknown-stream",
            f"{name.text} is not in FROM",
            name.span,
            suggest(name.text, known, "streams of this query"),
        )
        return None

    def _column_of(self, index: int, name: tree.Name, span: Span) -> x.Expression:
        source = self.sources[index]
        column = source.stream.column(name.text)
        if column is None:
            known = [c.name for c in source.stream.columns]
            return self._fail(
                "unknown-column",
                f"stream {source.stream.name} has no column {name.text}",
                name.span,
                suggest(name.text, known, "columns"),
            )
        return x.Column(index, column.name, column.type, column.nullable, source.alias)

    def _constant(self, e: tree.Constant) -> x.Expression:
        value = e.value
        if e.type_name is not None:
            return self._typed_constant(e.type_name, str(value), e.span)
        if value is None:
            return x.Literal(None, t.NULL)
        if isinstance(value, bool):
            return x.Literal(value, t.BOOLEAN)
        if isinstance(value, int):
            for kind in (Kind.INT, Kind.BIGINT):
                low, high = t.integer_range(kind)
                if low <= value <= high:
                    return x.Literal(value, Type(kind))
            return self._fail(
                "constant-range",
                "this number does not fit a bigint",
                e.span,
                "write it with a point",
            )
        if isinstance(value, float):
            if value in (float("inf"), float("-inf")):
                return self._fail(
                    "constant-range",
                    "this number does not fit a double precision",
                    e.span,
                    "the largest is about 1.8e308",
                )
            return x.Literal(value, t.DOUBLE)
        return x.Literal(value, t.VARCHAR)

    def _typed_constant(self, name: tree.Name, text: str, span: Span) -> x.Expression:
        kinds = {"date": t.DATE, "time": t.TIME, "timestamp": t.TIMESTAMP}
        to = kinds.get(name.text.lower())
        if to is None:
            return self._fail(
                "unknown-type",
                f"{name.text} '...' is no constant",
                span,
                suggest(name.text, ("DATE", "TIME", "TIMESTAMP"), "types of constants"),
            )
        return self._read_constant(text, to, span)

    def _read_constant(self, text: str, to: Type, span: Span) -> x.Expression:
        value = t.read_time(text, to.kind)
        if value is None:
            shape = {
                Kind.DATE: "2006-03-01",
                Kind.TIME: "12:30:00",
                Kind.TIMESTAMP: "2006-03-01 12:30:00",
            }[to.kind]
            return self._fail(
                "constant-range", f"'{text}' is not a {to}", span, f"write it as '{shape}'"
            )
        return x.Literal(value, to)

    # --- operators ------------------------------------------------------------

    def _signed(self, e: tree.Signed) -> x.Expression:
        operand = self.value(e.operand)
        if operand.type.is_unknown:
            return operand
        if not operand.type.is_numeric:
            return self._fail(
                "type-mismatch", f"{e.sign} wants a number, not {operand.type}", e.span, _CONVERT
            )
        if e.sign == "+":
            return operand
        # As in other arithmetic, integers in 64 bits: the smallest int has an opposite.
        kind = t.BIGINT if operand.type.is_integer else operand.type
        zero = x.Literal(0 if kind.is_integer else 0.0, kind)
        return x.Arithmetic("-", zero, operand, kind)

    def _arithmetic(self, e: tree.Arithmetic) -> x.Expression:
        left, right = self.value(e.left), self.value(e.right)
        if Kind.ERROR in (left.type.kind, right.type.kind):
            return _FAILED
        met = t.common(left.type, right.type)
        if e.operator == "||":
            fits, wants = met is not None and (met.is_text or met.is_unknown), "texts"
        else:
            fits, wants = met is not None and (met.is_numeric or met.is_unknown), "numbers"
        if not fits or met is None:
            return self._fail(
                "type-mismatch",
                f"{e.operator} wants {wants}, these are {left.type} and {right.type}",
                e.span,
                _CONVERT,
            )
        # Integers are computed in 64 bits, so that int + int does not overflow by surprise.
        kind = t.BIGINT if met.is_integer else t.DOUBLE if met.is_numeric else met
        return _folded(x.Arithmetic(e.operator, left, right, kind))

    def _compare(
        self, condition: Condition, left: x.Expression, right: x.Expression, span: Span
    ) -> x.Expression:
        if Kind.ERROR in (left.type.kind, right.type.kind):
            return _FAILED
        left, right = self._as_time(left, right.type, span), self._as_time(right, left.type, span)
        met = t.common(left.type, right.type)
        if met is None:
            return self._fail(
                "type-mismatch",
                f"{left.type} cannot be compared with {right.type}",
                span,
                _CONVERT,
            )
        return x.Compare(condition, left, right, met) if met.kind is not Kind.ERROR else _FAILED

    def _as_time(self, e: x.Expression, beside: Type, span: Span) -> x.Expression:
        """A string constant beside a date, time or timestamp is one; so is a date's midnight."""
        times = (Kind.DATE, Kind.TIME, Kind.TIMESTAMP)
        if isinstance(e, x.Literal) and isinstance(e.value, str) and beside.kind in times:
            return self._read_constant(e.value, beside, span)
        return e

    def _between(self, e: tree.Between) -> x.Expression:
        operand, low, high = self.value(e.operand), self.value(e.low), self.value(e.high)
        first, second = (Condition.LT, Condition.GT) if e.negated else (Condition.GE, Condition.LE)
        terms = (
            self._compare(first, operand, low, e.low.span),
            self._compare(second, operand, high, e.high.span),
        )
        return x.Or(terms) if e.negated else x.And(terms)

    def _in_list(self, e: tree.InList) -> x.Expression:
        operand = self.value(e.operand)
        condition = Condition.NE if e.negated else Condition.EQ
        terms = tuple(
            self._compare(condition, operand, self.value(item), item.span) for item in e.items
        )
        if len(terms) == 1:
            return terms[0]
        return x.And(terms) if e.negated else x.Or(terms)

    def _like(self, e: tree.Like) -> x.Expression:
        operand, pattern = self.value(e.operand), self.value(e.pattern)
        if not (operand.type.is_text or operand.type.is_unknown):
            return self._fail(
                "type-mismatch",
                f"LIKE wants a text, not {operand.type}",
                e.operand.span,
                "convert it with CAST(... AS varchar)",
            )
        if not (isinstance(pattern, x.Literal) and isinstance(pattern.value, str)):
            if pattern.type.kind is Kind.ERROR:
                return _FAILED
            return self._fail(
                "type-mismatch",
                "the pattern of LIKE is a string constant",
                e.pattern.span,
                "write it in single quotes, such as 'ab%'",
            )
        return x.Like(operand, pattern.value, e.negated)

    def _cast(self, e: tree.Cast) -> x.Expression:
        operand, to = self.value(e.operand), bind_type(e.to, self.problems)
        if Kind.ERROR in (operand.type.kind, to.kind):
            return _FAILED
        if not _castable(operand.type, to):
            can = [kind.value for kind in Kind if _castable(operand.type, Type(kind))]
            return self._fail(
                "type-mismatch",
                f"{operand.type} cannot become {to}",
                e.span,
                f"it can become {', '.join(can)}",
            )
        return x.Cast(operand, to)

    # --- functions ------------------------------------------------------------

    def _call(self, e: tree.Call) -> x.Expression:
        name = e.function.text.lower()
        if name in AGGREGATES:
            return self._aggregate(e, name)
        function = FUNCTIONS.get(name)
        if function is None:
            known = [*FUNCTIONS, *AGGREGATES]
            return self._fail(
                "unknown-function",
                f"there is no function {e.function.text}",
                e.function.span,
                suggest(name, known, "functions"),
            )
        arguments = [self.value(argument) for argument in e.arguments]
        if any(argument.type.kind is Kind.ERROR for argument in arguments):
            return _FAILED
        if not function.fewest <= len(arguments) <= function.most or e.star:
            many = f"{function.fewest} to {function.most}"
            many = many if function.fewest < function.most else str(function.most)
            return self._fail(
                "type-mismatch",
                f"{name} wants {function.wants}, got {'*' if e.star else len(arguments)}",
                e.span,
                f"give it {many} argument{'s' * (function.most > 1)}",
            )
        result = function.result([argument.type for argument in arguments])
        if result is None:
            got = ", ".join(str(argument.type) for argument in arguments)
            return self._fail(
                "type-mismatch", f"{name} wants {function.wants}, not {got}", e.span, _CONVERT
            )
        return x.Call(name, tuple(arguments), result)

    def _aggregate(self, e: tree.Call, name: str) -> x.Expression:
        if not self.aggregates:
            hint = {
                "WHERE": "conditions on aggregates stand in HAVING",
                "GROUP BY": "group by columns, aggregate in SELECT",
            }.get(self.within, "aggregates do not nest")
            return self._fail(
                "aggregate-here", f"{name} cannot stand in {self.within}", e.span, hint
            )
        if e.star and name == "count":
            return x.Aggregate(name, None, t.BIGINT)
        if len(e.arguments) != 1 or e.star:
            forms = "count(*) or count(column)" if name == "count" else f"{name}(column)"
            return self._fail(
                "type-mismatch", f"{name} wants one argument", e.span, f"write {forms}"
            )
        inner = Binder(self.sources, self.problems, within=f"the argument of {name}")
        argument = inner.value(e.arguments[0])
        if argument.type.kind is Kind.ERROR:
            return _FAILED
        result = AGGREGATES[name](argument.type)
        if result is None:
            return self._fail(
                "type-mismatch", f"{name} wants a number, not {argument.type}", e.span, _CONVERT
            )
        return x.Aggregate(name, argument, result)

    def _fail(self, kind: str, message: str, span: Span, hint: str) -> x.Expression:
        self.problems.add(kind, message, span, hint)
        return _FAILED


def _castable(of: Type, to: Type) -> bool:
    if of.is_unknown or of.kind is to.kind or to.is_text or of.is_text:
        return True
    if of.is_numeric:
        return to.is_numeric or (to.kind is Kind.BOOLEAN and of.is_integer)
    if of.kind is Kind.BOOLEAN:
        return to.is_integer
    return {of.kind, to.kind} == {Kind.DATE, Kind.TIMESTAMP}


def _folded(e: x.Arithmetic) -> x.Expression:
    """Arithmetic of two integer or two real constants, computed now where that is exact."""
    if not (isinstance(e.left, x.Literal) and isinstance(e.right, x.Literal)):
        return e
    a, b = e.left.value, e.right.value
    if type(a) is not int or type(b) is not int or e.operator not in ("+", "-", "*"):
        return e
    value = a + b if e.operator == "+" else a - b if e.operator == "-" else a * b
    low, high = t.integer_range(Kind.BIGINT)
    if not low <= value <= high:
        return e
    small = t.integer_range(Kind.INT)
    return x.Literal(value, t.INT if small[0] <= value <= small[1] else t.BIGINT)
