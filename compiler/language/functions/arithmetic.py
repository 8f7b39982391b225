"""Operators: arithmetic, concatenation, XOR, IS DISTINCT FROM, LIKE.

Integers are computed in 64 bits. Decimals are computed exactly and keep Spark's digits; `/` keeps six
after the point, or those of the dividend if there are more. `/` of integers is real division.
"""

from __future__ import annotations

import datetime
import functools
import math
import operator
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from seustream.compiler.language.exact import (
    WIDE,
    bounded,
    capped,
    fitted,
    interval,
    milliseconds,
    number,
    quotient,
    truncated,
)
from seustream.compiler.language.functions.columns import (
    all_ascii,
    check_durations,
    check_moments,
    constant,
    nonzero,
)
from seustream.compiler.language.registry import (
    ANY,
    CONDITION,
    INTEGER,
    MOMENT,
    REAL_NUMBER,
    SPAN,
    TEXT,
    ArgumentKind,
    ScalarFunction,
    Signature,
)
from seustream.compiler.language.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTERVAL,
    NULL,
    TIMESTAMP,
    VARCHAR,
    Kind,
    Type,
    digits,
)

Span = datetime.timedelta

DECIMAL = ArgumentKind("a number", lambda of: of.is_decimal, NULL)
EXACT = ArgumentKind("a number", lambda of: of.is_decimal or of.is_integer, NULL)
WHOLE = ArgumentKind(
    "an integer", lambda of: of.is_integer or of.kind is Kind.INTERVAL, BIGINT
)  # an interval beside an integer counts as milliseconds
FACTOR = ArgumentKind("a number", lambda of: of.is_numeric, NULL)
SHOWN = ArgumentKind(
    "a text", lambda of: of.kind not in (Kind.LIST, Kind.BOOLEAN), VARCHAR
)  # conditions are not concatenated: || was OR in PATTERN
ANY_SHOWN = ArgumentKind("a text", lambda of: of.kind is not Kind.LIST, VARCHAR)

OVERFLOW = "integer overflow"
DECIMAL_OVERFLOW = "decimal overflow"
ZERO = "division by zero"

_Digits = Callable[[int, int, int, int], tuple[int, int]]


def _decimals(rule: _Digits) -> Callable[[Sequence[Type]], Type | None]:
    """Computes the result type of two exact numbers from their precisions and scales (p, s, q, r).
    A NULL takes the width of the other operand."""

    def result(types: Sequence[Type]) -> Type | None:
        a, b = types
        a, b = (b if a.is_unknown else a), (a if b.is_unknown else b)
        return None if a.is_unknown else capped(*rule(*digits(a), *digits(b)))

    return result


def _sum_digits(p: int, s: int, q: int, r: int) -> tuple[int, int]:
    scale = max(s, r)
    return max(p - s, q - r) + scale + 1, scale


def _product_digits(p: int, s: int, q: int, r: int) -> tuple[int, int]:
    return p + q + 1, s + r


def _quotient_digits(p: int, s: int, q: int, r: int) -> tuple[int, int]:
    scale = max(6, s)
    return p - s + r + scale, scale


def _remainder_digits(p: int, s: int, q: int, r: int) -> tuple[int, int]:
    scale = max(s, r)
    return max(min(p - s, q - r) + scale, 1), scale


# --- rows ---------------------------------------------------------------------


def _in_decimals(
    compute: Callable[[Decimal, Decimal], Decimal],
) -> Callable[[Type, Decimal | int, Decimal | int], Decimal | None]:
    def row(to: Type, a: Decimal | int, b: Decimal | int) -> Decimal | None:
        return fitted(compute(Decimal(a), Decimal(b)), to)

    return row


def _quotient(to: Type, a: Decimal | int, b: Decimal | int) -> Decimal | None:
    return quotient(a, b, to)


def _divide(a: float, b: float) -> float | None:
    return number(a / b) if b else None


def _real_product(a: float, b: float) -> float | None:
    return number(a * b)


def _integer_quotient(a: int, b: int) -> int | None:
    return bounded(truncated(a, b)) if b else None


def _whole_quotient(a: float | Decimal, b: float | Decimal) -> int | None:
    """Returns the quotient of any two numbers, rounded towards zero and computed exactly."""
    if not b or not math.isfinite(a):
        return None
    return bounded(math.trunc(Fraction(a) / Fraction(b))) if math.isfinite(b) else 0


def _remainder(a: int, b: int) -> int | None:
    return a - truncated(a, b) * b if b else None


def _real_remainder(a: float, b: float) -> float | None:
    return math.fmod(a, b) if b and math.isfinite(a) else None


def _exact_remainder(to: Type, a: Decimal | int, b: Decimal | int) -> Decimal | None:
    return fitted(WIDE.remainder(Decimal(a), Decimal(b)), to) if b else None


def _moved(by: int) -> Callable[[datetime.datetime, Span], datetime.datetime | None]:
    def row(moment: datetime.datetime, span: Span) -> datetime.datetime | None:
        try:
            return moment + by * span
        except OverflowError:
            return None

    return row


def _between(a: datetime.datetime, b: datetime.datetime) -> Span | None:
    return interval(milliseconds(a - b))


def _spans(compute: Callable[[int, int], int]) -> Callable[[Span, Span], Span | None]:
    def row(a: Span, b: Span) -> Span | None:
        return interval(compute(milliseconds(a), milliseconds(b)))

    return row


def _times(span: Span, by: float | Decimal) -> Span | None:
    return _nearest(Fraction(milliseconds(span)) * Fraction(by)) if math.isfinite(by) else None


def _shared(span: Span, by: float | Decimal) -> Span | None:
    if not by:
        return None
    return _nearest(Fraction(milliseconds(span)) / Fraction(by)) if math.isfinite(by) else Span()


def _nearest(size: Fraction) -> Span | None:
    """Rounds to an interval of whole milliseconds; ties go to the longer one."""
    whole = math.floor(abs(size) + Fraction(1, 2))
    return interval(whole if size > 0 else -whole)


# --- columns ------------------------------------------------------------------


def _kernel(name: str) -> Callable[..., Any]:
    """Uses an Arrow function with the same result."""
    return lambda pc, *arguments: getattr(pc, name)(*arguments)


def _unless_zero(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Divides directly if no divisor is 0, which Arrow checks, else with NULL for 0."""

    def columns(pc: Any, a: Any, b: Any) -> Any:
        try:
            return compute(pc, a, b)
        except ValueError:
            return compute(pc, a, nonzero(pc, b))

    return columns


@_unless_zero
def _divided(pc: Any, a: Any, b: Any) -> Any:
    return pc.divide_checked(a, b)


@_unless_zero
def _integers_left(pc: Any, a: Any, b: Any) -> Any:
    return pc.subtract(a, pc.multiply(pc.divide_checked(a, b), b))


def _exact_kernel(name: str) -> Callable[..., Any]:
    """Uses Arrow's decimals, which have the same digits; Arrow refuses more than 38."""
    return lambda pc, to, a, b: getattr(pc, name)(a, b)


def _moments(name: str) -> Callable[..., Any]:
    return lambda pc, a, b: check_moments(pc, getattr(pc, name)(a, b))


def _durations(name: str) -> Callable[..., Any]:
    return lambda pc, *arguments: check_durations(pc, getattr(pc, name)(*arguments))


# --- LIKE ---------------------------------------------------------------------


@functools.lru_cache(maxsize=256)
def like_regex(pattern: str, escape: str = "") -> str | None:
    """Turns a LIKE pattern into a regular expression. Returns None if the escape character ends the
    pattern or precedes a character that needs no escape."""
    parts: list[str] = []
    letters = iter(pattern)
    for letter in letters:
        if letter == escape:
            escaped = next(letters, None)
            if escaped is None or escaped not in ("%", "_", escape):
                return None
            parts.append(re.escape(escaped))
        else:
            parts.append({"%": ".*", "_": "."}.get(letter) or re.escape(letter))
    return "".join(parts)


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str, escape: str) -> re.Pattern[str] | None:
    found = like_regex(pattern, escape)
    return None if found is None else re.compile(found, re.DOTALL)


def _check_pattern(text: Any, pattern: Any, escape: Any = "") -> str | None:
    known = isinstance(pattern, str) and isinstance(escape, str) and len(escape) < 2
    if known and like_regex(pattern, escape) is None:
        return f"the pattern has a {escape} that stands before nothing it could escape"
    return None


def _like(text: str, pattern: str, escape: str = "") -> bool | None:
    if len(escape) > 1 or (compiled := _compiled(pattern, escape)) is None:
        return None
    return compiled.fullmatch(text) is not None


def _ilike(text: str, pattern: str, escape: str = "") -> bool | None:
    return _like(_small(text), _small(pattern), _small(escape))


def _small(text: str) -> str:
    """Returns the text in small letters, each for itself: `_` is one letter, and a Σ is a σ wherever
    it stands."""
    if text.isascii():
        return text.lower()
    return "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)


_PLAIN = re.compile(r"(%?)([^%_]*)(%?)", re.DOTALL)


def _matches(pc: Any, text: Any, pattern: str, escape: str) -> Any:
    if len(escape) > 1:
        raise ValueError("no escape character")
    plain = _PLAIN.fullmatch(pattern) if not escape or escape not in pattern else None
    if plain is not None and plain[2]:
        match bool(plain[1]), bool(plain[3]):
            case False, False:
                return pc.equal(text, pattern)
            case False, True:
                return pc.starts_with(text, plain[2])
            case True, False:
                return pc.ends_with(text, plain[2])
            case _:
                return pc.match_substring(text, plain[2])
    regex = like_regex(pattern, escape)
    if regex is None:
        raise ValueError("no such pattern")
    return pc.match_substring_regex(text, rf"(?s)\A(?:{regex})\z")


def _like_columns(pc: Any, text: Any, pattern: Any, escape: Any = None) -> Any:
    return _matches(pc, text, constant(pattern), "" if escape is None else constant(escape))


def _ilike_columns(pc: Any, text: Any, pattern: Any, escape: Any = None) -> Any:
    mark = "" if escape is None else _small(constant(escape))
    lower = pc.ascii_lower(all_ascii(pc, text))
    return _matches(pc, lower, _small(constant(pattern)), mark)


def _distinct(a: Any, b: Any) -> bool:
    return (a is None) != (b is None) or a != b


def _distinct_columns(pc: Any, a: Any, b: Any) -> Any:
    unlike = pc.fill_null(pc.not_equal(a, b), False)
    return pc.or_(unlike, pc.xor(pc.is_null(a), pc.is_null(b)))


# --- entries ------------------------------------------------------------------

_LIKE = (TEXT, TEXT, TEXT)

ARITHMETIC: tuple[ScalarFunction, ...] = (
    ScalarFunction(
        "+", (INTEGER, INTEGER), BIGINT,
        row=lambda a, b: bounded(a + b), columns=_kernel("add_checked"),
        doc="The sum of numbers; a moment moved by an interval; the sum of intervals.",
        example="7 + 3", hidden=True, fault=OVERFLOW,
        overloads=(
            Signature(
                (EXACT, EXACT), _decimals(_sum_digits), _in_decimals(WIDE.add),
                _exact_kernel("add"), typed=True, fault=DECIMAL_OVERFLOW,
            ),
            Signature((REAL_NUMBER, REAL_NUMBER), DOUBLE, lambda a, b: number(a + b),
                     _kernel("add"), fault="no value"),
            Signature((MOMENT, SPAN), TIMESTAMP, _moved(1), _moments("add_checked"),
                     fault="timestamp overflow"),
            Signature((SPAN, MOMENT), TIMESTAMP, lambda a, b: _moved(1)(b, a),
                     _moments("add_checked"), fault="timestamp overflow"),
            Signature((SPAN, SPAN), INTERVAL, _spans(operator.add), _durations("add_checked"),
                     fault="interval overflow"),
            Signature((WHOLE, WHOLE), BIGINT, lambda a, b: bounded(a + b), _kernel("add_checked")),
        ),
    ),
    ScalarFunction(
        "-", (INTEGER, INTEGER), BIGINT,
        row=lambda a, b: bounded(a - b), columns=_kernel("subtract_checked"),
        doc="The difference of numbers, moments or intervals; a moment moved back by an interval.",
        example="7 - 3", hidden=True, fault=OVERFLOW,
        overloads=(
            Signature(
                (EXACT, EXACT), _decimals(_sum_digits), _in_decimals(WIDE.subtract),
                _exact_kernel("subtract"), typed=True, fault=DECIMAL_OVERFLOW,
            ),
            Signature((REAL_NUMBER, REAL_NUMBER), DOUBLE, lambda a, b: number(a - b),
                     _kernel("subtract"), fault="no value"),
            Signature((MOMENT, MOMENT), INTERVAL, _between, _kernel("subtract_checked")),
            Signature((MOMENT, SPAN), TIMESTAMP, _moved(-1), _moments("subtract_checked"),
                     fault="timestamp overflow"),
            Signature((SPAN, SPAN), INTERVAL, _spans(operator.sub),
                     _durations("subtract_checked"), fault="interval overflow"),
            Signature((WHOLE, WHOLE), BIGINT, lambda a, b: bounded(a - b),
                     _kernel("subtract_checked")),
        ),
    ),
    ScalarFunction(
        "*", (INTEGER, INTEGER), BIGINT,
        row=lambda a, b: bounded(a * b), columns=_kernel("multiply_checked"),
        doc="The product of numbers, or of an interval and an integer.",
        example="7 * 3", hidden=True, fault=OVERFLOW,
        overloads=(
            Signature(
                (EXACT, EXACT), _decimals(_product_digits), _in_decimals(WIDE.multiply),
                _exact_kernel("multiply"), typed=True, fault=DECIMAL_OVERFLOW,
            ),
            Signature((REAL_NUMBER, REAL_NUMBER), DOUBLE, _real_product, _kernel("multiply"),
                     fault="no value"),
            Signature((SPAN, INTEGER), INTERVAL, _times, _durations("multiply_checked"),
                     fault="interval overflow"),
            Signature((INTEGER, SPAN), INTERVAL, lambda a, b: _times(b, a),
                     _durations("multiply_checked"), fault="interval overflow"),
            Signature((SPAN, FACTOR), INTERVAL, _times, fault="interval overflow"),
            Signature((FACTOR, SPAN), INTERVAL, lambda a, b: _times(b, a),
                     fault="interval overflow"),
        ),
    ),
    ScalarFunction(
        "/", (DECIMAL, DECIMAL), _decimals(_quotient_digits),
        row=_quotient, typed=True,
        doc="Real division, of integers too; of decimals it is exact to six digits after the "
        "point, or to those of the dividend if it has more.",
        example="7 / 2", hidden=True, fault="division by zero or overflow",
        overloads=(
            Signature((DECIMAL, EXACT), _decimals(_quotient_digits), _quotient, typed=True),
            Signature((EXACT, DECIMAL), _decimals(_quotient_digits), _quotient, typed=True),
            Signature((REAL_NUMBER, REAL_NUMBER), DOUBLE, _divide, _divided, fault=ZERO),
            Signature((SPAN, FACTOR), INTERVAL, _shared),
        ),
    ),
    ScalarFunction(
        "DIV", (WHOLE, WHOLE), BIGINT,
        row=_integer_quotient, columns=_divided,
        doc="The quotient towards zero, as an integer.",
        example="-7 DIV 2", fault="division by zero or overflow", aliases=("div",),
        overloads=(
            Signature((EXACT, EXACT), BIGINT, _whole_quotient),
            Signature((REAL_NUMBER, REAL_NUMBER), BIGINT, _whole_quotient),
        ),
    ),
    ScalarFunction(
        "mod", (WHOLE, WHOLE), BIGINT,
        row=_remainder, columns=_integers_left,
        doc="The remainder of a division towards zero; it has the sign of the dividend.",
        example="mod(-7, 3)", fault=ZERO,
        overloads=(
            Signature((EXACT, EXACT), _decimals(_remainder_digits), _exact_remainder, typed=True),
            Signature((REAL_NUMBER, REAL_NUMBER), DOUBLE, _real_remainder,
                     fault="division by zero, no value"),
        ),
    ),
    ScalarFunction(
        "negate", (INTEGER,), BIGINT,
        row=lambda a: bounded(-a), columns=_kernel("negate_checked"),
        doc="The opposite of a number or an interval.",
        example="-(3)", hidden=True, fault=OVERFLOW,
        overloads=(
            Signature((DECIMAL,), lambda of: of[0], lambda a: WIDE.minus(a), _kernel("negate")),
            Signature((REAL_NUMBER,), DOUBLE, operator.neg, _kernel("negate")),
            Signature((SPAN,), INTERVAL, lambda a: interval(-milliseconds(a)),
                     _durations("negate_checked"), fault="interval overflow"),
        ),
    ),
    ScalarFunction(
        "||", (TEXT, TEXT), VARCHAR,
        row=operator.add,
        columns=lambda pc, a, b: pc.binary_join_element_wise(a, b, ""),
        doc="Two values as one text.", example="'ab' || 'cd'", hidden=True,
        overloads=tuple(
            Signature(sides, VARCHAR, operator.add,
                     lambda pc, a, b: pc.binary_join_element_wise(a, b, ""))
            for sides in ((SHOWN, SHOWN), (TEXT, ANY_SHOWN), (ANY_SHOWN, TEXT))
        ),
    ),
    ScalarFunction(
        "&", (INTEGER, INTEGER), BIGINT, row=operator.and_, columns=_kernel("bit_wise_and"),
        doc="The bits that are set in both integers.", example="6 & 3", hidden=True,
    ),
    ScalarFunction(
        "|", (INTEGER, INTEGER), BIGINT, row=operator.or_, columns=_kernel("bit_wise_or"),
        doc="The bits that are set in one of two integers or both.", example="6 | 3", hidden=True,
    ),
    ScalarFunction(
        "xor", (CONDITION, CONDITION), BOOLEAN,
        row=operator.ne, columns=_kernel("xor"),
        doc="Whether exactly one of two conditions holds.", example="TRUE XOR FALSE", hidden=True,
    ),
    ScalarFunction(
        "is_distinct", (ANY, ANY), BOOLEAN,
        row=_distinct, columns=_distinct_columns, strict=False,
        doc="Whether two values differ, where NULL is a value like any other.",
        example="1 IS DISTINCT FROM NULL", hidden=True,
    ),
    ScalarFunction(
        "like", _LIKE, BOOLEAN,
        row=_like, columns=_like_columns, optional=1,
        doc="Whether a text has the form of a pattern: % is any text, _ any character. There is "
        "no escape character unless ESCAPE names one.",
        example="'abc' LIKE 'a%'", hidden=True, fault="bad pattern",
        check=_check_pattern,
    ),
    ScalarFunction(
        "ilike", _LIKE, BOOLEAN,
        row=_ilike, columns=_ilike_columns, optional=1,
        doc="LIKE on the texts in lower case.",
        example="'ABC' ILIKE 'a%'", hidden=True, fault="bad pattern",
        check=_check_pattern,
    ),
)  # fmt: skip
