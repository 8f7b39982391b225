"""Aggregates over groups in columns equal those of the registry's states, event by event."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import pytest

from seustream.engine.pattern.event import Event
from tests.engine.pattern.events import STREAM, events_of
from tests.engine.pattern.generate import query_of

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
    """Compares every matcher and output: columns against single events."""
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


@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_beyond_the_doubles_is_infinite(sign: int) -> None:
    events = [Event(t, t, "A", {"x": 0, "y": sign * 1.7e308}) for t in range(6)]
    for text, value in (("sum(b.y)", sign * math.inf), ("avg(b.y)", sign * 1.7e308)):
        for (got, _), (want, _) in both_ways(text, events):
            assert got == want
            assert value in {row["value"] for row in got}


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
