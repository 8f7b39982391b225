"""Events and matches: their identity and order, and that a JSON snapshot restores them."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pytest

from seustream.engine.pattern import state
from seustream.engine.pattern.event import Event, Match, key_of
from seustream.engine.pattern.skip import Skipper, Skipping
from tests.engine.pattern.stock import query


def test_equal_rows_are_two_events() -> None:
    one, other = Event(1, 0, "A", {"x": 1}), Event(1, 1, "A", {"x": 1})
    assert one != other
    assert len({one, other}) == 2
    assert sorted([other, one], key=lambda event: event.order) == [one, other]
    assert repr(one) == "A#0@1"


def test_keys_take_times_and_missing_attributes() -> None:
    assert key_of(Event(7, 0, "A", {"x": 1}), ["x", "ts", "none"]) == (1, 7, None)
    assert key_of(Event(7, 0, "A"), []) == ()


def test_matches_are_ordered_by_when_they_are_certain_then_by_their_events() -> None:
    a, b, c = (Event(n, n, "A") for n in range(3))
    first = Match(((a,), (), (b, c)), 9)
    assert (first.ids, first.first, first.last) == (((0,), (), (1, 2)), a, c)
    later, other = Match(((a,), (), (b,)), 10), Match(((b,), (), (c,)), 9)
    assert sorted([later, other, first], key=lambda match: match.order) == [first, other, later]
    assert (Match(((), (b,)), 1).first, Match(((b,), ()), 1).last) == (b, b)


VALUES: list[Any] = [
    None, 1, -(2**62), 1.5, float("inf"), "ü", True, Decimal("1.50"), [1, None],
    datetime.datetime(2024, 2, 29, 12, 0, 0, 5), datetime.date(1, 1, 1), datetime.time(23, 59),
    datetime.timedelta(days=-3, milliseconds=7),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back_from_json(value: Any) -> None:
    found = state.value_of(json.loads(json.dumps(state.value(value))))
    assert (found, type(found)) == (value, type(value))


def test_events_and_matches_that_wait_come_back() -> None:
    pattern = query("PATTERN A; B+ k WITHIN 10 ms AFTER MATCH SKIP PAST LAST EVENT RETURN *")
    events = [
        Event(n, n, kind, {"price": Decimal(n), "type": kind}) for n, kind in enumerate("ABBA")
    ]
    one = Skipper(pattern)
    one.offer(Match(((events[0],), (events[1], events[2])), 12))
    one.after = (-5, 3)
    key, skipping = (datetime.date(2024, 1, 1), None), Skipping(pattern)
    skipping.skippers[key] = one
    plain = json.loads(json.dumps(state.skipping(skipping)))
    ((again_key, again),) = state.skipping_of(pattern, plain).skippers.items()
    assert (again_key, again.after) == (key, one.after)
    ((start, match),) = again.waiting.items()
    assert start == (0, 0)
    assert (match.ids, match.D) == (((0,), (1, 2)), 12)
    assert [e.attrs for group in match.groups for e in group] == [e.attrs for e in events[:3]]
