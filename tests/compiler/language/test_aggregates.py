"""Compares aggregates by insertion, removal and merging with recomputation, and with results worked
out by hand.

Random histories reveal a state that forgets or keeps too much; the naive results reveal a wrong
formula.
"""

from __future__ import annotations

import datetime
import functools
import math
import operator
import random
import statistics
from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from fractions import Fraction
from typing import Any

import pytest

from seustream.compiler.language import types as t
from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.registry import FAULT, AggregateFunction, choose
from seustream.compiler.language.types import Type

Row = tuple[Any, ...]

SECOND = datetime.timedelta(seconds=1)

_SHARE = t.decimal(3, 2)
VALUES: dict[Type, Callable[[random.Random], Any]] = {
    t.INT: lambda rng: rng.choice((0, 1, -1, 2**31 - 1, rng.randint(-100, 100))),
    t.BIGINT: lambda rng: rng.choice((2**63 - 1, -(2**63), 1, -1, rng.randint(-(2**62), 2**62))),
    t.DOUBLE: lambda rng: rng.choice(
        (0.1, 1e300, -1e300, 1e-300, 5e-324, -0.3, 1e16, rng.uniform(-1, 1))
    ),
    t.decimal(10, 2): lambda rng: Decimal(rng.randint(-(10**9), 10**9)).scaleb(-2),
    _SHARE: lambda rng: Decimal("0.35"),
    t.VARCHAR: lambda rng: rng.choice("abcdef"),
    t.BOOLEAN: lambda rng: rng.random() < 0.7,
    t.INTERVAL: lambda rng: rng.randint(-5, 5) * SECOND,
    t.DATE: lambda rng: datetime.date(2024, 1, rng.randint(1, 28)),
}


def forms() -> list[tuple[str, tuple[Type, ...]]]:
    """Returns every aggregate with each first type it takes; the type of a second parameter is
    fixed by the aggregate."""
    found = []
    for entry in AGGREGATES.values():
        for of in VALUES:
            seconds: Sequence[Type] = (t.VARCHAR,) if entry.name == "string_agg" else (t.INT,)
            seconds = (_SHARE,) if entry.name.startswith("quantile") else seconds
            types = (of, *seconds[: len(entry.parameters) - 1])
            if choose(entry.parameters, entry.result_type, types) is not None:
                found.append((entry.name, types))
    return found


def result(entry: AggregateFunction, types: Sequence[Type], state: Any) -> Any:
    chosen = choose(entry.parameters[: len(types)], entry.result_type, types)
    assert chosen is not None
    return entry.result(chosen.type, state) if entry.typed else entry.result(state)


def inserted(entry: AggregateFunction, rows: Sequence[Row]) -> Any:
    state = entry.init()
    for row in rows:
        state = entry.insert(state, *row)
    return state


def rows_of(
    rng: random.Random, entry: AggregateFunction, types: Sequence[Type], count: int
) -> list[Row]:
    chosen = choose(entry.parameters[: len(types)], entry.result_type, types)
    assert chosen is not None

    def value(of: Type, to: Type) -> Any:
        made = VALUES[of](rng)
        return float(made) if to == t.DOUBLE else made

    return [
        tuple(value(of, to) for of, to in zip(types, chosen.takes, strict=True))
        for _ in range(count)
    ]


# --- the naive results ------------------------------------------------------------


def exact(value: Any) -> Fraction:
    return (
        Fraction(value // datetime.timedelta(milliseconds=1))
        if isinstance(value, datetime.timedelta)
        else Fraction(value)
    )


def rounded(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def naive_sum(values: list[Any]) -> Any:
    total = sum(map(exact, values), Fraction(0))
    match values[0]:
        case float():
            return rounded(total)
        case datetime.timedelta():
            return int(total) * datetime.timedelta(milliseconds=1)
        case Decimal():
            return Decimal(total.numerator) / Decimal(total.denominator)
    return int(total) if -(2**63) <= total < 2**63 else FAULT


def naive_mean(values: list[Any]) -> Any:
    total, count = sum(map(exact, values), Fraction(0)), len(values)
    match values[0]:
        case datetime.timedelta():
            return int(total / count) * datetime.timedelta(milliseconds=1)
        case Decimal():
            scaled = total / count * 10**6
            whole = math.floor(abs(scaled) + Fraction(1, 2))
            return Decimal(whole if scaled >= 0 else -whole).scaleb(-6)
        case int() if not -(2**63) <= total < 2**63:
            return FAULT
    return rounded(total / count)


def naive_variance(sample: int, root: bool) -> Callable[[list[Any]], float | None]:
    def compute(values: list[Any]) -> float | None:
        if len(values) <= sample:
            return None
        mean = sum(map(Fraction, values), Fraction(0)) / len(values)
        squares = sum(((Fraction(v) - mean) ** 2 for v in values), Fraction(0))
        value = squares / (len(values) - sample)
        if not root:
            return rounded(value)
        with localcontext(prec=80, Emax=MAX_EMAX, Emin=MIN_EMIN):
            return rounded(Fraction((Decimal(value.numerator) / value.denominator).sqrt()))

    return compute


def apart(rows: list[Row], one: int, other: int) -> Fraction:
    """Returns the sum of the products of the distances from the means."""
    x, y = ([Fraction(row[at]) for row in rows] for at in (one, other))
    means = sum(x, Fraction(0)) / len(x), sum(y, Fraction(0)) / len(y)
    products = ((a - means[0]) * (b - means[1]) for a, b in zip(x, y, strict=True))
    return sum(products, Fraction(0))


def naive_covariance(sample: int) -> Callable[[list[Row]], float | None]:
    def compute(rows: list[Row]) -> float | None:
        few = len(rows) <= sample
        return None if few else rounded(apart(rows, 0, 1) / (len(rows) - sample))

    return compute


def naive_correlation(rows: list[Row]) -> float | None:
    both = apart(rows, 0, 0) * apart(rows, 1, 1)
    shared = apart(rows, 0, 1)
    return math.sqrt(rounded(shared**2 / both)) * (1 if shared > 0 else -1) if both else None


def naive_quantile(rows: list[Row]) -> float:
    """Interpolates linearly between the two values next to the place."""
    values, place = sorted(Fraction(row[0]) for row in rows), Fraction(rows[0][1]) * (len(rows) - 1)
    low, high = values[math.floor(place)], values[math.ceil(place)]
    return rounded(low * (math.floor(place) + 1 - place) + high * (place - math.floor(place)))


def naive_place(rows: list[Row]) -> Any:
    values = sorted(row[0] for row in rows)
    return next(v for n, v in enumerate(values, start=1) if n >= Fraction(rows[0][1]) * len(rows))


def naive_median(values: list[Any]) -> float:
    return rounded(Fraction(statistics.median(map(Fraction, values))))


NAIVE: dict[str, Callable[[list[Any]], Any]] = {
    "sum": naive_sum,
    "avg": naive_mean,
    "min": min,
    "max": max,
    "var_samp": naive_variance(1, False),
    "var_pop": naive_variance(0, False),
    "stddev_samp": naive_variance(1, True),
    "stddev_pop": naive_variance(0, True),
    "bool_and": all,
    "bool_or": any,
    "bit_and": lambda values: functools.reduce(operator.and_, values),
    "bit_or": lambda values: functools.reduce(operator.or_, values),
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "array_agg": list,
    "median": naive_median,
    "mode": lambda values: min(values, key=lambda value: (-values.count(value), value)),
}
KEYED: dict[str, Callable[[list[Row]], Any]] = {
    "min_by": lambda rows: min(rows, key=lambda row: row[1])[0],
    "max_by": lambda rows: max(rows, key=lambda row: row[1])[0],
    "covar_samp": naive_covariance(1),
    "covar_pop": naive_covariance(0),
    "corr": naive_correlation,
    "quantile_cont": naive_quantile,
    "quantile_disc": naive_place,
    "string_agg": lambda rows: rows[0][0] + "".join(sep + text for text, sep in rows[1:]),
}


def naive(entry: AggregateFunction, rows: list[Row]) -> Any:
    """Returns the result by its definition."""
    if entry.name == "count":
        return len(rows)
    if not rows:
        return None
    if entry.name in KEYED:
        return KEYED[entry.name](rows)
    return NAIVE[entry.name]([row[0] for row in rows])


CHECKED = [form for form in forms() if form[0] != "approx_count_distinct"]


def test_every_aggregate_is_checked() -> None:
    assert {name for name, _ in forms()} == set(AGGREGATES)
    assert {*NAIVE, *KEYED, "count", "approx_count_distinct"} == set(AGGREGATES)


@pytest.mark.parametrize(
    ("name", "types"),
    CHECKED,
    ids=lambda each: each if isinstance(each, str) else "-".join(map(str, each)),
)
def test_insert_remove_and_merge(name: str, types: tuple[Type, ...]) -> None:
    entry = AGGREGATES[name]
    rng = random.Random(f"{name} {types}")
    for _ in range(40):
        rows = rows_of(rng, entry, types, rng.choice((0, 1, 2, 3, 8, 25)))
        assert result(entry, types, inserted(entry, rows)) == naive(entry, rows)
        if entry.merge is not None:
            cut = rng.randint(0, len(rows))
            parts = inserted(entry, rows[:cut]), inserted(entry, rows[cut:])
            assert result(entry, types, entry.merge(*parts)) == naive(entry, rows)
        if entry.remove is not None:
            window, state = [], entry.init()
            for row in rows:
                state = entry.insert(state, *row)
                window.append(row)
                while window and rng.random() < 0.4:
                    state = entry.remove(state, *window.pop(rng.randrange(len(window))))
                assert result(entry, types, state) == naive(entry, window)
            for row in window:
                state = entry.remove(state, *row)
            assert result(entry, types, state) == naive(entry, [])


def test_what_can_be_removed() -> None:
    """The aggregate index removes from these; it recomputes the others."""
    assert {name for name, entry in AGGREGATES.items() if entry.remove is not None} == {
        "count", "sum", "avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop", "bool_and",
        "bool_or", "bit_and", "bit_or", "median", "mode", "approx_count_distinct", "covar_samp", "covar_pop", "corr",
        "quantile_cont", "quantile_disc",
    }  # fmt: skip
    assert all(entry.merge is not None for entry in AGGREGATES.values())


# --- by hand ----------------------------------------------------------------------


def of(name: str, kind: Type, *values: Any) -> Any:
    entry = AGGREGATES[name]
    return result(entry, (kind,), inserted(entry, [(value,) for value in values]))


def test_a_sum_past_64_bits_is_a_fault_until_the_rows_have_left() -> None:
    entry = AGGREGATES["sum"]
    state = inserted(entry, [(2**63 - 1,), (1,)])
    assert entry.result(t.BIGINT, state) is FAULT
    state = entry.remove(state, 1)
    assert entry.result(t.BIGINT, state) == 2**63 - 1
    assert of("avg", t.BIGINT, 2**63 - 1, 1) is FAULT


def test_sums_of_reals_are_exact() -> None:
    assert of("sum", t.DOUBLE, 0.1, 0.2, -0.3) == 2.7755575615628914e-17
    assert of("sum", t.DOUBLE, 1e300, 1.0, -1e300) == 1.0
    assert of("sum", t.DOUBLE, *[0.1] * 10) == 1.0
    assert of("sum", t.DOUBLE, 1.7e308, 1.7e308) == math.inf
    assert of("avg", t.DOUBLE, 1.7e308, 1.7e308) == 1.7e308


def test_infinite_rows() -> None:
    assert of("sum", t.DOUBLE, math.inf, 1.0) == math.inf
    assert of("avg", t.DOUBLE, -math.inf, 1.0) == -math.inf
    assert of("sum", t.DOUBLE, math.inf, -math.inf) is FAULT
    assert of("var_pop", t.DOUBLE, math.inf, 1.0) is FAULT
    assert of("median", t.DOUBLE, math.inf, 1.0) == math.inf
    assert of("median", t.DOUBLE, math.inf, -math.inf) is FAULT
    entry = AGGREGATES["sum"]
    state = entry.remove(inserted(entry, [(math.inf,), (2.5,)]), math.inf)
    assert entry.result(t.DOUBLE, state) == 2.5


def test_types_of_results() -> None:
    def type_of(name: str, *types: Type) -> Type:
        chosen = choose(AGGREGATES[name].parameters, AGGREGATES[name].result_type, types)
        assert chosen is not None
        return chosen.type

    assert type_of("sum", t.SMALLINT) == t.BIGINT
    assert type_of("sum", t.REAL) == t.DOUBLE
    assert type_of("sum", t.INTERVAL) == t.INTERVAL
    assert type_of("avg", t.BIGINT) == t.DOUBLE
    assert type_of("min", t.decimal(5, 2)) == t.decimal(5, 2)
    assert type_of("min_by", t.DATE, t.DOUBLE) == t.DATE
    assert type_of("array_agg", t.VARCHAR) == t.list_of(t.VARCHAR)
    assert type_of("median", t.INT) == t.DOUBLE


def test_ties_keep_the_row_that_came_first() -> None:
    rows = [("a", 1), ("b", 1), ("c", 0), ("d", 0)]
    for name, want in (("min_by", "c"), ("max_by", "a")):
        entry = AGGREGATES[name]
        assert entry.result(inserted(entry, rows)) == want


def test_count_of_rows() -> None:
    entry = AGGREGATES["count"]
    assert entry.result(inserted(entry, [(), (), ()])) == 3


@pytest.mark.parametrize("many", [0, 1, 10, 100, 1_000, 10_000, 50_000])
def test_about_how_many_are_distinct(many: int) -> None:
    entry = AGGREGATES["approx_count_distinct"]
    halves = [inserted(entry, [(n,) for n in range(start, many, 2)]) for start in (0, 1)]
    assert entry.merge is not None
    estimates = [
        entry.result(inserted(entry, [(n,) for n in range(many)] * (2 if many < 100 else 1))),
        entry.result(entry.merge(*halves)),
    ]
    assert estimates[0] == estimates[1]
    assert estimates[0] == pytest.approx(many, rel=0.05, abs=0)
    texts = entry.result(inserted(entry, [(f"t{n}",) for n in range(many)]))
    assert texts == pytest.approx(many, rel=0.05, abs=0)


def test_equal_numbers_of_any_type_are_one() -> None:
    entry = AGGREGATES["approx_count_distinct"]
    assert entry.result(inserted(entry, [(1,), (1.0,), (Decimal("1.0"),)])) == 1
