"""Rows that wait for the watermark: out of order, late, or without a time."""

from __future__ import annotations

import dataclasses
import random

import pytest

from seustream.engine.pattern.errors import LateEvent
from seustream.engine.pattern.event import END_OF_STREAM, Event
from seustream.engine.pattern.operator import PatternOperator
from tests.engine.pattern.generate import Generator, query_of
from tests.engine.pattern.queries import engines_for, event, ids, rows
from tests.engine.pattern.running import operate


@pytest.mark.parametrize("seed", range(10))
def test_31_order_of_arrival_does_not_matter(seed: int) -> None:
    chance = random.Random(seed)
    generator = Generator(chance)
    query = generator.query("ANY SUBSETS")
    events = generator.events(20)
    shuffled = list(events)
    chance.shuffle(shuffled)

    def found(given: list[Event]) -> list[list[tuple[int, int]]]:
        numbered = [dataclasses.replace(e, attrs={**e.attrs, "id": e.seq}) for e in given]
        matches = operate(query, numbered, cuts=(4, 8))
        return sorted(sorted((e.ts, e.attrs["id"]) for g in m.groups for e in g) for m in matches)

    assert found(shuffled) == found(events)


def test_32_a_late_event_is_dropped_and_counted() -> None:
    query = query_of("PATTERN A; B WITHIN 5 ms RETURN *")
    for engine in engines_for(query):
        operator = PatternOperator(query, engine)
        operator.push(event(3, "A"))
        operator.advance(3)
        operator.push(event(3, "A"))
        operator.push(event(1, "A"))
        operator.push(event(4, "B"))
        assert ids(operator.advance(4)) == {((0,), (3,))}
        assert operator.stats.late_dropped == 2


def test_32_or_refused() -> None:
    operator = PatternOperator(query_of("PATTERN A; B WITHIN 5 ms RETURN *"), late="error")
    operator.advance(3)
    with pytest.raises(LateEvent):
        operator.push(event(3, "A"))
    with pytest.raises(LateEvent):
        operator.push_table(rows([(2, "A")]))


@pytest.mark.parametrize("ts", [None, "7", 1.5, True, 1 << 62])
def test_33_no_time_is_counted(ts: object) -> None:
    operator = PatternOperator(query_of("PATTERN A; B WITHIN 5 ms RETURN *"))
    operator.push(Event(ts, 0, "A", {}))  # type: ignore[arg-type]
    operator.push(event(1, "A"))
    operator.push(event(2, "B"))
    assert len(operator.advance(END_OF_STREAM)) == 1
    assert operator.stats.bad_events == 1


def test_33_null_times_in_a_table() -> None:
    operator = PatternOperator(query_of("PATTERN A; B WITHIN 5 ms RETURN *"))
    operator.push_table(rows([(None, "A"), (1, "A"), (2, "B")]))
    table, times = operator.advance_table(END_OF_STREAM)
    assert (table.num_rows, times.tolist(), operator.stats.bad_events) == (1, [2], 1)


def test_33_events_before_all_time_leave_nothing_behind() -> None:
    """All rows of the first table are left out."""
    operator = PatternOperator(query_of("PATTERN A; B WITHIN 5 ms RETURN *"))
    operator.push_table(rows([(-(1 << 62), "A")]))
    operator.push_table(rows([(1, "A"), (2, "B")]))
    table, times = operator.advance_table(END_OF_STREAM)
    assert (table.num_rows, times.tolist(), operator.stats.bad_events) == (1, [2], 1)
