"""The registry of functions: that every entry is whole, and edges that the table of cases leaves out.

What the functions mean is in `tests/language/cases.txt`; that columns and rows agree on it in
`tests/engine/stream/test_evaluate.py`.
"""

from __future__ import annotations

import datetime
import math
import re
from decimal import Decimal
from typing import Any

import pytest

from seustream.compiler.errors import Problems
from seustream.compiler.language import expressions as x
from seustream.compiler.language import types as t
from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.evaluate import compile_row
from seustream.compiler.language.exact import capped
from seustream.compiler.language.expressions import Leaf
from seustream.compiler.language.faults import Faults
from seustream.compiler.language.functions import FUNCTIONS
from seustream.compiler.language.functions.texts import MAX_TEXT
from seustream.compiler.language.registry import AggregateFunction, ScalarFunction
from seustream.compiler.language.types import Type
from tests.compiler.language.plain import bind

MIDNIGHT = datetime.datetime(2024, 2, 29)


def no_leaf(leaf: Leaf) -> Any:
    raise AssertionError(leaf)


def value(text: str) -> Any:
    """The value of an expression over no columns, which has no fault."""
    bound = bind(text)
    assert not isinstance(bound, Problems), [problem.message for problem in bound.found]
    faults = Faults()
    found = compile_row(bound, no_leaf, faults)(None)
    assert not faults.total, text
    return found


def fault(text: str) -> str:
    """What the one fault of an expression is."""
    bound = bind(text)
    assert not isinstance(bound, Problems), [problem.message for problem in bound.found]
    faults = Faults()
    assert compile_row(bound, no_leaf, faults)(None) is None
    (place,) = faults.count
    assert place.at is not None
    return place.reason


def refused(text: str) -> str:
    """What is wrong with an expression."""
    bound = bind(text)
    assert isinstance(bound, Problems)
    return bound.found[0].message


# --- entries --------------------------------------------------------------------

ENTRIES = [*FUNCTIONS.values(), *AGGREGATES.values()]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_an_entry_has_a_line_of_documentation(entry: ScalarFunction | AggregateFunction) -> None:
    assert re.fullmatch(r"\S[^\n]*\.", entry.doc)


def test_a_name_means_one_thing() -> None:
    names = [name for entry in ENTRIES for name in (entry.name, *entry.aliases)]
    assert len(names) == len(set(names))
    assert [name for name in names if name != name.lower()] == ["DIV"]


@pytest.mark.parametrize("entry", FUNCTIONS.values(), ids=lambda entry: entry.name)
def test_an_example_has_a_value(entry: ScalarFunction) -> None:
    bound = bind(entry.example)
    assert not isinstance(bound, Problems), [problem.message for problem in bound.found]
    calls = {part.function for part in x.walk(bound) if isinstance(part, x.Call)}
    folded = {"+", "-", "*", "/", "negate"}  # operations of constants are done by the binder
    assert entry.name in calls | folded
    assert value(entry.example) is not None


COLUMNS = {"x": t.DOUBLE, "y": t.INT, "name": t.VARCHAR}


@pytest.mark.parametrize("entry", AGGREGATES.values(), ids=lambda entry: entry.name)
def test_an_example_is_an_aggregate(entry: AggregateFunction) -> None:
    bound = bind(entry.example, COLUMNS, aggregates=True)
    assert isinstance(bound, x.AggregateCall)
    assert bound.function == entry.name


@pytest.mark.parametrize("entry", FUNCTIONS.values(), ids=lambda entry: entry.name)
def test_hidden_entries_cannot_be_called(entry: ScalarFunction) -> None:
    if entry.hidden and entry.name.isidentifier():
        assert f"no function {entry.name}" in refused(f"{entry.name}(1, 2)")


def test_what_can_fault_says_how() -> None:
    reasons = {entry.fault for entry in FUNCTIONS.values()}
    assert {"integer overflow", "division by zero", "outside its domain"} <= reasons
    for entry in FUNCTIONS.values():
        for reason in (entry.fault, *(own.fault for own in entry.overloads)):
            assert reason is None or len(reason.split()) <= 5


# --- result types ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("precision", "scale", "wanted"),
    [
        (10, 2, t.decimal(10, 2)),
        (38, 38, t.decimal(38, 38)),
        (40, 10, t.decimal(38, 8)),
        (60, 10, t.decimal(38, 6)),
        (77, 4, t.decimal(38, 4)),
    ],
)
def test_digits_are_capped(precision: int, scale: int, wanted: Type) -> None:
    assert capped(precision, scale) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a + b", t.decimal(13, 4)),
        ("a * b", t.decimal(17, 6)),
        ("a / b", t.decimal(18, 6)),
        ("b / a", t.decimal(10, 6)),
        ("mod(a, b)", t.decimal(6, 4)),
        ("a + i", t.decimal(13, 2)),
        ("i / a", t.decimal(18, 6)),
        ("a DIV b", t.BIGINT),
        ("a + x", t.DOUBLE),
        ("-a", t.decimal(10, 2)),
        ("abs(a)", t.decimal(10, 2)),
        ("ceil(a)", t.decimal(9, 0)),
        ("round(a)", t.decimal(9, 0)),
        ("i + s", t.BIGINT),
        ("abs(s)", t.BIGINT),
        ("sign(i)", t.DOUBLE),
        ("least(s, i)", t.INT),
        ("coalesce(a, i)", t.decimal(12, 2)),
        ("r + r", t.DOUBLE),
        ("r * x", t.DOUBLE),
        ("r / r", t.DOUBLE),
        ("ts - ts", t.INTERVAL),
        ("ts + g", t.TIMESTAMP),
        ("g * i", t.INTERVAL),
        ("g / 2", t.INTERVAL),
        ("g + i", t.BIGINT),
    ],
)
def test_types_of_results(text: str, wanted: Type) -> None:
    columns = {
        "a": t.decimal(10, 2), "b": t.decimal(6, 4), "i": t.INT, "s": t.SMALLINT, "x": t.DOUBLE,
        "r": t.REAL, "ts": t.TIMESTAMP, "g": t.INTERVAL,
    }  # fmt: skip
    bound = bind(text, columns)
    assert not isinstance(bound, Problems)
    assert bound.type == wanted


# --- edges ----------------------------------------------------------------------


@pytest.mark.parametrize("call", ["repeat('ab', {})", "lpad('a', {}, 'bc')", "rpad('a', {})"])
def test_a_text_has_an_end(call: str) -> None:
    assert fault(call.format(1 << 40)) == "text too long"
    assert len(value(call.format(1000))) in (1000, 2000)


def test_replacing_may_not_grow_without_end() -> None:
    half = f"repeat('a', {MAX_TEXT // 2})"
    assert fault(f"replace({half}, 'a', 'bcd')") == "text too long"
    assert value(f"length(replace({half}, 'a', 'b'))") == MAX_TEXT // 2
    assert value("replace('ab', '', 'x')") == "ab"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("extract(fortnight FROM TIMESTAMP '2024-02-29')", "fortnight"),
        ("extract(year FROM TIME '12:30:00')", "year"),
        ("date_trunc('dow', TIMESTAMP '2024-02-29')", "dow"),
        ("regexp_matches('a', '(')", "regular expression"),
        ("'a' LIKE 'a!' ESCAPE '!'", "escape"),
        ("'a' ILIKE '!a' ESCAPE '!'", "escape"),
    ],
)
def test_constants_that_mean_nothing_are_refused(text: str, word: str) -> None:
    assert word in refused(text)


def test_decimals_round_once_and_half_up() -> None:
    def divided(a: str, b: str) -> Any:
        return value(f"CAST('{a}' AS decimal(38,6)) / CAST('{b}' AS decimal(38,0))")

    assert divided("0.000001", "2") == Decimal("0.000001")
    assert divided("-0.000001", "2") == Decimal("-0.000001")
    assert divided("0.000001", "3") == Decimal("0.000000")
    assert str(divided("-0.000001", "3")) == "0.000000"  # no decimal has a sign of its own at 0
    assert fault("CAST('1' AS decimal(38,0)) / CAST('0' AS decimal(38,0))").startswith("division")
    top = "9" * 38
    assert fault(f"CAST('{top}' AS decimal(38,0)) * CAST('{top}' AS decimal(38,0))") == (
        "decimal overflow"
    )


def test_c_values_where_python_raises() -> None:
    assert value("exp(1000)") == math.inf
    assert value("power(0.0, -1)") == math.inf
    assert value("power(-10.0, 309)") == -math.inf
    assert value("power(-10.0, 310)") == math.inf
    assert fault("power(-8, 0.5)") == "outside its domain"
    assert value("round(CAST('inf' AS double))") == math.inf
    assert value("floor(-1e300)") == -1e300


def test_rounding_as_written() -> None:
    assert value("round(2.675, 2)") == 2.68
    assert value("round(0.49999999999999994)") == 0.0
    assert value("round(1e300, 400)") == 1e300
    assert value("round(1234.5, -2)") == 1200.0
    assert value("round(1e300, -500)") == 0.0
    assert value("round(55, -1)") == 60
    assert fault("round(9223372036854775807, -1)") == "integer overflow"
    assert value("round(5, -30)") == 0


def test_hash_is_that_of_spark() -> None:
    """Values that Spark gives for bigint, double, string, boolean and date."""
    assert value("hash(CAST(1 AS bigint))") == -1712319331
    assert value("hash('Spark')") == 228093765
    assert value("hash(NULL)") == 42
    assert value("hash(0.0)") == value("hash(-0.0)")
    assert value("hash(1, 'a')") != value("hash('a', 1)")


def test_formats_of_timestamps() -> None:
    def read(text: str, form: str) -> Any:
        return value(f"to_timestamp('{text}', '{form}')")

    assert read("29.02.2024", "dd.MM.yyyy") == MIDNIGHT
    assert read("29 Feb 24", "d MMM yy") == MIDNIGHT
    assert read("2024-02-29T12:30:05.25", "yyyy-MM-dd''T''HH:mm:ss.SS") == (
        datetime.datetime(2024, 2, 29, 12, 30, 5, 250_000)
    )
    assert read("12:05 am", "hh:mm a").hour == 0
    assert read("12:05 PM", "hh:mm a").hour == 12
    assert fault("to_timestamp('30.02.2024', 'dd.MM.yyyy')") == "no timestamp"
    assert fault("to_timestamp('2024', 'yyyy yyyy')") == "no timestamp"
    assert fault("to_timestamp('2024', 'QQ')") == "no timestamp"
    assert fault("to_timestamp('13:05 am', 'hh:mm a')") == "no timestamp"


def test_moments_end_with_the_calendar() -> None:
    assert fault("TIMESTAMP '9999-12-31' + 1 d") == "timestamp overflow"
    assert fault("TIMESTAMP '0001-01-01' - 1 ms") == "timestamp overflow"
    assert value("date_trunc('week', TIMESTAMP '0001-01-07')") == datetime.datetime(1, 1, 1)
