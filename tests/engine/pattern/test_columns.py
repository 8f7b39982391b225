"""Expressions by the column against expressions one by one: values, NULL, faults, parts hoisted."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults, Place
from seustream.compiler.language.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTERVAL,
    TIME,
    TIMESTAMP,
    VARCHAR,
    decimal,
)
from seustream.engine.pattern.batch import needed, of_events, values
from seustream.engine.pattern.columns import Once, Prepared, holds, values_of
from seustream.engine.pattern.event import Event
from seustream.engine.pattern.leaves import evaluator
from seustream.engine.pattern.lists import Bindings, Lists
from tests.engine.pattern.generate import query_of

STREAM = Stream(
    "s",
    (
        Column("type", VARCHAR),
        Column("x", BIGINT),
        Column("y", DOUBLE),
        Column("k", VARCHAR),
        Column("d", decimal(9, 2)),
        Column("flag", BOOLEAN),
        Column("day", DATE),
        Column("at", TIMESTAMP),
        Column("clock", TIME),
        Column("took", INTERVAL),
    ),
)
BIG = (1 << 62) + 12345
VALUES: dict[str, tuple[Any, ...]] = {
    "x": (None, 0, 1, 2, -3, BIG, -BIG),
    "y": (None, 0.0, 1.5, -2.0, 1e308, float("inf")),
    "k": (None, "p", "Q", "qq", "a%"),
    "d": (None, Decimal("0.00"), Decimal("1.25"), Decimal("-9999999.99")),
    "flag": (None, True, False),
    "day": (None, datetime.date(2024, 2, 29), datetime.date(1970, 1, 1)),
    "at": (None, datetime.datetime(2024, 2, 29, 12, 30), datetime.datetime(1970, 1, 1)),
    "clock": (None, datetime.time(0), datetime.time(23, 59, 59, 999000)),
    "took": (None, datetime.timedelta(0), datetime.timedelta(minutes=5)),
}
EXPRESSIONS = [
    "a.x + b.x * 2 - 1 > 0",
    "a.x * b.x > 4611686018427387904",
    "-a.x < b.x",
    "a.x / b.x >= 1",
    "a.x DIV b.x >= 1",
    "a.y / b.y > a.x",
    "a.y * b.y = a.y",
    "NOT (a.y > b.y AND a.x IS NULL)",
    "a.y > 1 OR b.y IS NOT NULL",
    "a.x IN (1, b.x, NULL)",
    "NOT a.x IN (1, b.x)",
    "a.k = b.k",
    "a.k < b.k OR lower(a.k) = 'p'",
    "mod(a.x, b.x) = 1",
    "sqrt(a.y) > floor(b.y)",
    "abs(a.x) > ceil(b.y)",
    "length(a.k) = 1 AND upper(b.k) IN ('P', 'Q')",
    "a.ts < b.ts",
    "a.x > 0.5",
    "NULL IS NULL AND a.x = a.x",
    "a.x BETWEEN b.x AND 5",
    "a.y NOT BETWEEN 1 AND b.y",
    "a.k LIKE '_%' AND b.k NOT LIKE 'q!%' ESCAPE '!'",
    "a.k ILIKE b.k",
    "CAST(a.x AS double) > CAST(b.d AS double)",
    "CAST(a.k AS int) > 1 OR TRY_CAST(b.k AS int) IS NULL",
    "coalesce(a.x, b.x, 7) > 1",
    "round(a.y, 1) > b.x::real",
    "a.k || '-' || b.k LIKE 'p-%'",
    "a.at > TIMESTAMP '2000-01-01 00:00:00' OR b.day < DATE '2000-01-01'",
    "a.at - b.at < INTERVAL '5' MINUTE OR a.took + b.took > 7 min",
    "a.clock <= '12:00:00' XOR b.flag",
    "CASE WHEN b.x <> 0 THEN a.x / b.x ELSE 1 END > 0",
    "CASE a.k WHEN 'p' THEN b.y WHEN 'Q' THEN 2 END > 1",
    "a.flag AND NOT b.flag",
    "a.d * b.d > a.d / b.d",
    "a.k IS NOT DISTINCT FROM b.k",
    "greatest(a.x, b.x) = least(a.x, b.x)",
    "extract(year FROM a.at) = 2024 AND date_trunc('day', b.at) > DATE '2000-01-01'",
    "(b.x = 0 OR a.x / b.x > 1) AND 10 / b.x > a.y",
    "ln(a.y) > 0 OR sqrt(b.y) > 0",
]


def events_of(seed: int, number: int, stretch: int = 1) -> list[Event]:
    chance = random.Random(seed)
    return [
        Event(ts // stretch, ts, "A", {n: chance.choice(of) for n, of in VALUES.items()})
        for ts in range(number)
    ]


def pairs(events: list[Event], text: str) -> tuple[list[x.Expression], Lists, list[np.ndarray]]:
    query = query_of(f"PATTERN A a; A b WHERE {text} WITHIN 1 s RETURN *", stream=STREAM)
    every = np.arange(len(events))
    lists = Lists(query, of_events(events, needed(query)), [every, every])
    both = [(i, j) for i in every for j in every]
    sides = [np.array(side) for side in zip(*both, strict=True)]
    return [c.expression for c in query.conjuncts], lists, sides


@pytest.mark.parametrize("text", EXPRESSIONS)
@pytest.mark.parametrize("seed", range(3))
def test_columns_agree_with_single_values(text: str, seed: int) -> None:
    events = events_of(seed, 40)
    expressions, lists, (first, second) = pairs(events, text)
    for e in expressions:
        for part in x.walk(e):
            got, want = Faults(), dict[Place, int]()
            found = values(values_of(part, Bindings(lists, len(first), {0: first, 1: second}), got))
            noted: list[Place] = []
            one = evaluator(part, noted)
            for i, j, value in zip(first, second, found, strict=True):
                about = (x.show(part), events[i].attrs, events[j].attrs)
                assert one(([(events[i],), (events[j],)], (0, 0))) == value, about
                for place in noted:
                    want[place] = want.get(place, 0) + 1
                noted.clear()
            assert got.count == want, x.show(part)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_hoisted_parts_change_neither_values_nor_faults(text: str) -> None:
    events = events_of(9, 40)
    expressions, lists, (first, second) = pairs(events, text)
    for e in expressions:
        bindings = Bindings(lists, len(first), {0: first, 1: second})
        hoisted, whole = Faults(), Faults()
        assert (
            holds(Prepared(e), bindings, hoisted).tolist()
            == [value is True for value in values(values_of(e, bindings, whole))]
        )  # fmt: skip
        assert (hoisted.count, hoisted.first) == (whole.count, whole.first)


def test_a_part_about_one_event_is_hoisted_unless_it_faults() -> None:
    def hoists(text: str) -> list[tuple[str, bool]]:
        events = [Event(t, t, "A", {"x": t % 5, "y": 1.0 + t}) for t in range(40)]
        (e,), lists, (first, second) = pairs(events, text)
        bindings = Bindings(lists, len(first), {0: first, 1: second})
        return [(part.show(), bindings.hoists(part)) for part in Prepared(e).parts]

    assert hoists("a.x + 1 > b.y * 2 + 1") == [("a.x + 1", True), ("b.y * 2.0 + 1.0", True)] or (
        [of for _, of in hoists("a.x + 1 > b.y * 2 + 1")] == [True, True]
    )
    assert [of for _, of in hoists("a.y > 10 / b.x")] == [False]
    assert hoists("a.x > b.x") == []


def test_few_bindings_are_not_worth_a_whole_list() -> None:
    events = [Event(t, t, "A", {"x": t, "y": 1.0 + t}) for t in range(40)]
    (e,), lists, _ = pairs(events, "a.x > b.y * 2")
    few = Bindings(lists, 2, {0: np.array([1, 2]), 1: np.array([3, 4])})
    (part,) = Prepared(e).parts
    assert isinstance(part, Once)
    assert not few.hoists(part)
    assert holds(Prepared(e), few).tolist() == [False, False]


def test_the_first_fault_is_numbered_by_its_newest_event() -> None:
    events = [Event(t, 100 + t, "A", {"x": t - 2, "y": 1.0}) for t in range(5)]
    (e,), lists, _ = pairs(events, "a.y / b.x > 0")
    faults = Faults()
    at = {0: np.array([0, 0, 4]), 1: np.array([1, 2, 2])}
    holds(Prepared(e), Bindings(lists, 3, at), faults)
    ((place, count),) = faults.count.items()
    assert (place.reason, count, faults.first[place]) == ("division by zero", 2, 102)


# --- groups -------------------------------------------------------------------

AGGREGATES = [
    "count(b)",
    "count(b.x)",
    "sum(b.x)",
    "sum(b.y)",
    "avg(b.x)",
    "avg(b.y)",
    "min(b.y)",
    "max(b.x)",
    "min(b.k)",
    "max(b.at)",
    "sum(b.d)",
    "avg(b.d)",
    "sum(b.took)",
    "count(DISTINCT b.k)",
    "sum(b.x) FILTER (WHERE b.k <> 'p')",
    "count(b) FILTER (WHERE b.y > 1)",
    "sum(b.x - a.x)",
    "avg(b.y / a.x)",
    "string_agg(b.k, ',')",
    "array_agg(b.k)",
    "median(b.y)",
    "stddev_samp(b.y)",
    "var_pop(b.x)",
    "bool_or(b.flag)",
    "bool_and(b.y > 0)",
    "min_by(b.k, b.x)",
    "max_by(b.k, b.at)",
    "first(b.k || '!')",
    "approx_count_distinct(b.x)",
]


@pytest.mark.parametrize("text", AGGREGATES)
@pytest.mark.parametrize("seed", range(2))
def test_aggregates_over_groups_agree(text: str, seed: int) -> None:
    """By every matcher and output: found in columns, and event by event."""
    for got, want in both_ways(text, events_of(seed, 30, stretch=2)):
        assert got == want, text


def both_ways(text: str, events: list[Event]) -> Iterator[tuple[Any, Any]]:
    from seustream.engine.pattern.event import END_OF_STREAM
    from seustream.engine.pattern.operator import PatternOperator

    query = query_of(
        f"PATTERN A a; A+ b; A c WITHIN 4 ms RETURN a.x, {text} AS value", stream=STREAM
    )
    found = []
    for engine in ("columns", "optiseq"):
        operator = PatternOperator(query, engine)
        for event in events:
            operator.push(event)
        rows, _ = operator.advance_table(END_OF_STREAM)
        assert rows.num_rows
        counts = {(p.text, p.reason): n for p, n in operator.faults.count.items()}
        found.append((rows.to_pylist(), counts))
    yield found[0], found[1]


@pytest.mark.parametrize("seed", range(4))
def test_sums_of_reals_are_exact_whatever_their_size(seed: int) -> None:
    chance = random.Random(seed)
    sizes = (0, 3, 300) if seed % 2 else (0, 1, 2)
    events = [
        Event(t, t, "A", {"x": 0, "y": chance.uniform(-1, 1) * 10.0 ** chance.choice(sizes)})
        for t in range(60)
    ]
    for function in ("sum", "avg"):
        for got, want in both_ways(f"{function}(b.y)", events):
            assert got == want
