"""DuckDB as the judge of bound expressions: writes what the core bound as SQL, operator by
operator.

Intervals are bigints there, in milliseconds. A fault is NULL: TRY catches what DuckDB refuses in a
row, and a condition cuts off what it computes beyond a domain. `sql` raises `NotAsked` if DuckDB
has nothing of the same meaning, and if it computes a double by other means than the C library: such
functions may be asked by themselves, but not within a tree.
"""

from __future__ import annotations

from collections.abc import Callable

from seustream.compiler.language import expressions as x
from seustream.compiler.language.functions.texts import MAX_TEXT
from seustream.compiler.language.types import DOUBLE, Kind, Type, digits
from seustream.hdl.isa import Condition
from tests.language.spelling import (
    NotAsked,
    constant,
    double_text,
    from_text,
    read_decimal,
    to_text,
    type_name,
)


def sql(e: x.Expression) -> str:
    """Returns the expression as DuckDB's SQL."""
    match e:
        case x.ColumnReference():
            return f'"{e.name}"'
        case x.Literal():
            return constant(e.value, e.type)
        case x.Compare():
            return _compare(e)
        case x.And() | x.Or():
            joint = " AND " if isinstance(e, x.And) else " OR "
            return f"({joint.join(map(sql, e.terms))})"
        case x.Not():
            return f"(NOT {sql(e.term)})"
        case x.IsNull():
            return f"({sql(e.term)} IS {'NOT ' * e.negated}NULL)"
        case x.Case():
            whens = "".join(
                f" WHEN {sql(when)} THEN {converted(then, e.type)}" for when, then in e.branches
            )
            return f"(CASE{whens} ELSE {converted(e.otherwise, e.type)} END)"
        case x.Cast():
            return converted(e.term, e.type)
        case x.Call():
            return _call(e)
        case x.AggregateCall():
            return _aggregate(e)
    raise NotAsked(str(e))


def _compare(e: x.Compare) -> str:
    if e.of.is_decimal and (_narrows(e.left.type, e.of) or _narrows(e.right.type, e.of)):
        raise NotAsked("a decimal that 38 digits do not hold")
    sign = "<>" if e.condition is Condition.NE else e.condition.symbol
    return f"({converted(e.left, e.of)} {sign} {converted(e.right, e.of)})"


def _narrows(of: Type, to: Type) -> bool:
    if of.is_unknown or of == to:
        return False
    (p, s), (q, r) = digits(of), digits(to)
    return p - s > q - r


# --- conversions --------------------------------------------------------------


def converted(e: x.Expression, to: Type) -> str:
    """Returns the expression in another type, NULL if it has no value there."""
    text, of = sql(e), e.type
    if of.is_unknown:
        return f"NULL::{type_name(to)}"
    if of == to or to.is_unknown:
        return text
    if of.kind is Kind.INTERVAL or to.kind is Kind.INTERVAL:
        if to.is_text and to.length is None:
            return f"(({text})::VARCHAR || ' ms')"
        if not (of.is_numeric or to.is_numeric):
            raise NotAsked(f"{of} to {to}")
        if of.is_integer:
            return f"short({text})"
    if to.is_text:
        if of.is_inexact and _picks_a_zero(e):
            raise NotAsked("DuckDB takes any of the zeros")
        return to_text(text, of, to)
    if of.is_text:
        return from_text(text, to)
    name = type_name(to)
    if (of.is_inexact or of.is_decimal) and to.is_integer:
        return f"TRY_CAST(trunc({text}) AS {name})"
    if of.is_inexact and to.is_decimal:
        if digits(to)[1] > 15:
            raise NotAsked("many places of a double")
        return read_decimal(double_text(text, of), to)
    if of.is_decimal and to.is_inexact:
        return f"CAST(({text})::VARCHAR AS {name})"
    if to == DOUBLE or (of.is_integer and to.is_inexact):
        return f"({text})::{name}"
    if of.kind is Kind.DOUBLE and to.kind is Kind.REAL:
        large = f"abs({text}) >= 3.4028235677973366e38"
        past = f"(CASE WHEN {text} > 0 THEN 'inf' ELSE '-inf' END)::REAL"
        return f"(CASE WHEN {large} THEN {past} ELSE TRY_CAST({text} AS REAL) END)"
    if of.kind is Kind.BOOLEAN and to.is_decimal and digits(to)[0] == digits(to)[1]:
        raise NotAsked("DuckDB makes 1 of TRUE in the last place")
    if of.kind is Kind.TIME:
        raise NotAsked(f"{of} to {to}")
    if to.kind is Kind.TIME:
        return f"(date_trunc('millisecond', {text}))::TIME"
    return f"TRY_CAST({text} AS {name})"


def _picks_a_zero(e: x.Expression) -> bool:
    """Returns whether zeros of both signs may meet in `greatest` or `least`."""
    return any(isinstance(p, x.Call) and p.function in ("greatest", "least") for p in x.walk(e))


# --- functions ----------------------------------------------------------------


def _real(text: str) -> str:
    """Returns a double, NULL for NaN."""
    return f"nn({text})"


MACROS = """
CREATE MACRO nn(v) AS CASE WHEN isnan(v) THEN NULL ELSE v END;
CREATE MACRO over(a, b) AS CASE WHEN b = 0 THEN NULL ELSE nn(a / b) END;
CREATE MACRO ms(t) AS (epoch_us(t) - ((epoch_us(t) % 1000) + 1000) % 1000) // 1000;
CREATE MACRO short(v) AS
    CASE WHEN v::HUGEINT BETWEEN -86399999913600000 AND 86399999999999999 THEN v::BIGINT END;
"""


def _within(text: str) -> str:
    """Returns a result of unbounded arithmetic as a bigint, NULL if it does not fit."""
    return f"TRY_CAST({text} AS BIGINT)"


def _moved(t: str, span: str, sign: str) -> str:
    moment = f"epoch_us({t})::HUGEINT {sign} ({span})::HUGEINT * 1000"
    first, last = "-62135596800000000", "253402300799999999"
    return f"(CASE WHEN {moment} BETWEEN {first} AND {last} THEN make_timestamp(({moment})::BIGINT) END)"


def _sums(sign: str) -> Callable[[x.Call, list[str]], str]:
    def spell(e: x.Call, a: list[str]) -> str:
        left, right = (of.kind for of in e.takes)
        if e.type.kind is Kind.TIMESTAMP:
            t, span = (a[1], a[0]) if left is Kind.INTERVAL else a
            return _moved(t, span, sign)
        if e.type.kind is Kind.INTERVAL:
            if left is Kind.TIMESTAMP:
                between = f"epoch_us({a[0]})::HUGEINT - epoch_us({a[1]})::HUGEINT"
                return f"(({between}) // 1000)::BIGINT"
            return f"short(({a[0]})::HUGEINT {sign} ({a[1]})::HUGEINT)"
        if e.type.kind is Kind.DOUBLE:
            return _real(f"({a[0]} {sign} {a[1]})")
        if e.type.is_decimal:
            return _decimals(e, a, sign)
        assert right is not Kind.INTERVAL
        return _within(f"({a[0]})::HUGEINT {sign} ({a[1]})::HUGEINT")

    return spell


def _decimals(e: x.Call, a: list[str], sign: str) -> str:
    """Computes with decimals if neither an operand nor the result is cut to 38 digits."""
    (p, s), (q, r) = (digits(of) for of in e.takes)
    need = p + q + 1 if sign == "*" else max(p - s, q - r) + max(s, r) + 1
    if need > 38:
        raise NotAsked("more than 38 digits")
    name = type_name(e.type)
    if sign == "*":
        return f"TRY(CAST({_in(a[0], e.takes[0], 0)} * {_in(a[1], e.takes[1], 0)} AS {name}))"
    return f"TRY(({a[0]})::{name} {sign} ({a[1]})::{name})"


def _in(text: str, of: Type, more: int) -> str:
    precision, scale = digits(of)
    # For two decimals of at most 18 digits DuckDB gives a product of at most 18.
    return f"({text})::DECIMAL({max(precision + more, 19)},{scale})"


def _product(e: x.Call, a: list[str]) -> str:
    if e.type.kind is Kind.INTERVAL:
        if not all(of.is_integer or of.kind is Kind.INTERVAL for of in e.takes):
            raise NotAsked("a fraction of an interval")
        product = f"TRY(({a[0]})::HUGEINT * ({a[1]})::HUGEINT)"
        return f"short({product})"
    if e.type.kind is Kind.DOUBLE:
        return _real(f"({a[0]} * {a[1]})")
    if e.type.is_decimal:
        return _decimals(e, a, "*")
    return _within(f"({a[0]})::HUGEINT * ({a[1]})::HUGEINT")


def _quotient(e: x.Call, a: list[str]) -> str:
    if e.type != DOUBLE:
        raise NotAsked("DuckDB divides in doubles")
    return f"over({a[0]}, {a[1]})"


def _whole_quotient(e: x.Call, a: list[str]) -> str:
    if not all(of.is_integer for of in e.takes):
        raise NotAsked("DIV of fractions")
    return _within(f"(CASE WHEN {a[1]} <> 0 THEN ({a[0]})::HUGEINT // ({a[1]})::HUGEINT END)")


def _remainder(e: x.Call, a: list[str]) -> str:
    if e.type.is_decimal:
        (p, s), (q, r) = (digits(of) for of in e.takes)
        scale = max(s, r)
        if max(p - s, q - r) + scale > 38:
            raise NotAsked("more than 38 digits")
        wide = f"DECIMAL(38,{scale})"
        left, right = f"({a[0]})::{wide}", f"({a[1]})::{wide}"
        return f"(CASE WHEN {right} <> 0 THEN ({left} % {right})::{type_name(e.type)} END)"
    if e.type.kind is Kind.DOUBLE:
        raise NotAsked("DuckDB's remainder of doubles is not exact")
    wide = f"({a[0]})::HUGEINT % ({a[1]})::HUGEINT"
    return f"(CASE WHEN {a[1]} <> 0 THEN {wide} END)::BIGINT"


def _negated(e: x.Call, a: list[str]) -> str:
    if e.type.kind is Kind.INTERVAL:
        return f"short(-({a[0]})::HUGEINT)"
    return _within(f"-(({a[0]})::HUGEINT)") if e.type.is_integer else f"(-({a[0]}))"


def _without_sign(e: x.Call, a: list[str]) -> str:
    if e.type.kind is Kind.INTERVAL:
        return f"short(abs(({a[0]})::HUGEINT))"
    return _within(f"abs(({a[0]})::HUGEINT)") if e.type.is_integer else f"abs({a[0]})"


def _to_whole(name: str) -> Callable[[x.Call, list[str]], str]:
    def spell(e: x.Call, a: list[str]) -> str:
        if e.type.is_integer:
            return a[0]
        if e.type.is_decimal and digits(e.takes[0])[0] == 38 and name != "trunc":
            raise NotAsked("a digit more than 38")
        found = f"{name}({_in(a[0], e.takes[0], 1)})" if e.type.is_decimal else f"{name}({a[0]})"
        if name == "trunc" and e.type.is_decimal:
            found = f"trunc({a[0]})"
        return f"TRY_CAST({found} AS {type_name(e.type)})" if e.type.is_decimal else found

    return spell


def _rounded(e: x.Call, a: list[str]) -> str:
    if len(a) == 1:
        return _to_whole("round")(e, a)
    raise NotAsked("DuckDB rounds what stands behind the digits")


def _same(name: str) -> Callable[[x.Call, list[str]], str]:
    return lambda e, a: f"{name}({', '.join(a)})"


def _domain(name: str, condition: str) -> Callable[[x.Call, list[str]], str]:
    def spell(e: x.Call, a: list[str]) -> str:
        found = _real(f"{name}({', '.join(a)})")
        return f"(CASE WHEN {condition.format(*a)} THEN {found} END)"

    return spell


def _sliced(e: x.Call, a: list[str]) -> str:
    if len(a) == 2:
        most = f"CASE WHEN {a[1]} > {MAX_TEXT} THEN {MAX_TEXT} ELSE {a[1]} END"
        first = f"CASE WHEN {a[1]} = 0 THEN 1 WHEN {a[1]} < -{MAX_TEXT} THEN 1 ELSE {most} END"
        return f"substr({a[0]}, {first})"
    raise NotAsked("positions before the text")


def _few(text: str) -> str:
    """Returns a number of letters, limited to the range that DuckDB takes."""
    return f"(CASE WHEN {text} < 0 THEN 0 WHEN {text} > {MAX_TEXT} THEN {MAX_TEXT} ELSE {text} END)::INTEGER"


def _padded(name: str) -> Callable[[x.Call, list[str]], str]:
    def spell(e: x.Call, a: list[str]) -> str:
        letters = a[2] if len(a) > 2 else "' '"
        cut = f"left({a[0]}, {_few(a[1])})"
        padded = f"TRY({name}({a[0]}, {_few(a[1])}, {letters}))"
        found = f"CASE WHEN {letters} = '' THEN {cut} ELSE {padded} END"
        return f"(CASE WHEN {a[1]} <= {MAX_TEXT} THEN {found} END)"

    return spell


def _repeated(e: x.Call, a: list[str]) -> str:
    fits = f"length({a[0]})::HUGEINT * {a[1]} <= {MAX_TEXT}"
    return f"(CASE WHEN {fits} THEN repeat({a[0]}, {a[1]}) END)"


def _part(e: x.Call, a: list[str]) -> str:
    whole = f"CASE WHEN {a[2]} IN (1, -1) THEN {a[0]} ELSE '' END"
    part = f"split_part({a[0]}, {a[1]}, {a[2]})"
    known = f"{a[2]} <> 0 AND {a[0]} IS NOT NULL"
    return f"(CASE WHEN {known} THEN CASE WHEN {a[1]} = '' THEN {whole} ELSE {part} END END)"


def _field(e: x.Call, a: list[str]) -> str:
    field, of = e.arguments[0], e.takes[1]
    if not isinstance(field, x.Literal) or of.kind is Kind.INTERVAL:
        raise NotAsked("a field by row")
    name = str(field.value).lower()
    if name == "dow":
        return f"(extract(dow FROM {a[1]}) + 1)"
    if name == "epoch" and of.kind is Kind.TIMESTAMP:
        return f"(ms({a[1]}) - ((ms({a[1]}) % 1000) + 1000) % 1000) // 1000"
    if name not in ("year", "month", "day", "hour", "minute", "second", "isodow", "doy", "week"):
        raise NotAsked(name)
    return f"extract({name} FROM {a[1]})"


def _unit(e: x.Call, a: list[str]) -> str:
    unit = e.arguments[0]
    if not isinstance(unit, x.Literal):
        raise NotAsked("a unit by row")
    start = f"date_trunc('{unit.value}', {a[1]})"
    # The week of January 1 of the year 1 begins before that day.
    return f"(CASE WHEN {start} >= TIMESTAMP '0001-01-01' THEN {start} END)"


def _pattern(name: str) -> Callable[[x.Call, list[str]], str]:
    def spell(e: x.Call, a: list[str]) -> str:
        if len(a) > 2:
            raise NotAsked("what stands behind an escape")
        if name == "ILIKE":
            raise NotAsked("letters of which case has several")
        return f"({a[0]} {name} {a[1]})"

    return spell


def _globbed(e: x.Call, a: list[str]) -> str:
    if not (isinstance(e.arguments[1], x.Literal) and str(e.arguments[1].value).isascii()):
        raise NotAsked("bytes of a pattern")
    if "?" in str(e.arguments[1].value):
        raise NotAsked("one byte")
    return f"({a[0]} GLOB {a[1]})"


def _matched(e: x.Call, a: list[str]) -> str:
    if not isinstance(e.arguments[1], x.Literal):
        raise NotAsked("any text as a pattern")
    return f"regexp_matches({a[0]}, {a[1]})"


def _distinct(e: x.Call, a: list[str]) -> str:
    return f"({a[0]} IS DISTINCT FROM {a[1]})"


def _extreme(name: str) -> Callable[[x.Call, list[str]], str]:
    def spell(e: x.Call, a: list[str]) -> str:
        return f"{name}({', '.join(a)})"

    return spell


SPELLINGS: dict[str, Callable[[x.Call, list[str]], str]] = {
    "+": _sums("+"), "-": _sums("-"), "*": _product, "/": _quotient, "DIV": _whole_quotient,
    "mod": _remainder, "negate": _negated, "abs": _without_sign,
    "||": lambda e, a: f"({a[0]} || {a[1]})", "xor": lambda e, a: f"({a[0]} <> {a[1]})",
    "&": lambda e, a: f"({a[0]} & {a[1]})", "|": lambda e, a: f"({a[0]} | {a[1]})",
    "is_distinct": _distinct, "like": _pattern("LIKE"), "ilike": _pattern("ILIKE"),
    "glob": _globbed,
    "coalesce": _same("coalesce"), "nullif": _same("nullif"),
    "greatest": _extreme("greatest"), "least": _extreme("least"),
    "bit_count": _same("bit_count"), "ceil": _to_whole("ceil"), "floor": _to_whole("floor"), "trunc": _to_whole("trunc"),
    "round": _rounded, "sign": lambda e, a: f"sign({a[0]})::DOUBLE",
    "sqrt": _domain("sqrt", "{0} >= 0"), "pi": _same("pi"),
    "length": _same("length"), "substr": _sliced,
    "trim": _same("trim"), "ltrim": _same("ltrim"), "rtrim": _same("rtrim"),
    "lpad": _padded("lpad"), "rpad": _padded("rpad"),
    "replace": lambda e, a: f"replace({a[0]}, {a[1]}, {a[2] if len(a) > 2 else repr('')})",
    "position": lambda e, a: f"strpos({a[1]}, {a[0]})",
    "concat": lambda e, a: "(" + " || ".join(a) + ")", "concat_ws": _same("concat_ws"),
    "left": lambda e, a: f"left({a[0]}, {_few(a[1])})",
    "right": lambda e, a: f"right({a[0]}, {_few(a[1])})",
    "starts_with": _same("starts_with"), "ends_with": _same("ends_with"),
    "contains": _same("contains"), "split_part": _part,
    "repeat": _repeated, "translate": _same("translate"),
    "regexp_matches": _matched, "md5": _same("md5"), "extract": _field, "date_trunc": _unit,
    "epoch_ms": lambda e, a: f"ms({a[0]})",
}  # fmt: skip
"""Functions that DuckDB computes alike in every bit."""

ALONE: dict[str, Callable[[x.Call, list[str]], str]] = {
    "cbrt": _domain("cbrt", "TRUE"), "exp": _domain("exp", "TRUE"),
    "ln": _domain("ln", "{0} > 0"), "log10": _domain("log10", "{0} > 0"),
    "log2": _domain("log2", "{0} > 0"),
    "sin": _domain("sin", "isfinite({0})"), "cos": _domain("cos", "isfinite({0})"),
    "tan": _domain("tan", "isfinite({0})"), "asin": _domain("asin", "abs({0}) <= 1"),
    "acos": _domain("acos", "abs({0}) <= 1"), "atan": _domain("atan", "TRUE"),
    "atan2": _domain("atan2", "TRUE"), "degrees": _domain("degrees", "TRUE"),
    "radians": _domain("radians", "TRUE"),
    "power": _domain("power", "TRUE"),
}  # fmt: skip
"""Functions whose values come near: allowed only at the root of a tree."""


def _call(e: x.Call, spellings: dict[str, Callable[[x.Call, list[str]], str]] = SPELLINGS) -> str:
    spell = spellings.get(e.function)
    if spell is None:
        raise NotAsked(e.function)
    if any(
        _narrows(a.type, to) for a, to in zip(e.arguments, e.takes, strict=True) if to.is_decimal
    ):
        raise NotAsked("a decimal that 38 digits do not hold")
    return spell(e, [converted(a, to) for a, to in zip(e.arguments, e.takes, strict=True)])


# --- aggregates ---------------------------------------------------------------

_AGGREGATES = {
    "count": "count({0})", "sum": "sum({0})", "min": "min({0})", "max": "max({0})",
    "bool_and": "bool_and({0})", "bool_or": "bool_or({0})",
    "bit_and": "bit_and({0})", "bit_or": "bit_or({0})", "first": "first({0})",
    "last": "last({0})", "min_by": "min_by({0}, {1})", "max_by": "max_by({0}, {1})",
    "string_agg": "string_agg({0}, {1})", "array_agg": "array_agg({0})",
}  # fmt: skip


def _aggregate(e: x.AggregateCall) -> str:
    if not e.arguments:
        return f"count(*) FILTER (WHERE {sql(e.where) if e.where is not None else 'TRUE'})"
    spelling = _AGGREGATES.get(e.function)
    if spelling is None or len(e.arguments) < spelling.count("{"):
        raise NotAsked(e.function)
    if e.function in ("string_agg", "array_agg", "first", "last") and e.distinct:
        raise NotAsked("an order of distinct values")
    if e.function == "sum" and not e.type.is_integer:
        raise NotAsked("a sum in another order")
    a = [converted(each, to) for each, to in zip(e.arguments, e.takes, strict=True)]
    conditions = [f"({each}) IS NOT NULL" for each in a]
    if e.where is not None:
        conditions.append(sql(e.where))
    text = ("DISTINCT " if e.distinct else "") + a[0]
    found = f"{spelling.format(text, *a[1:])} FILTER (WHERE {' AND '.join(conditions)})"
    return _within(found) if e.function == "sum" else found


def text_of(e: x.Expression) -> tuple[str, bool]:
    """Returns the expression as SQL, and whether its value is only near."""
    if isinstance(e, x.Call) and e.function in ALONE:
        if e.function in ("atan2", "power") and _picks_a_zero(e):
            raise NotAsked("DuckDB takes any of the zeros")
        return _call(e, ALONE), True
    return sql(e), False
