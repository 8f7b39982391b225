"""USING NEXT and USING STRICT on columns, compared with the automaton and the definition, at
lengths that the random cases of `test_differential` lack."""

from __future__ import annotations

import random

import pytest

from seustream.engine.pattern.event import Event
from seustream.engine.pattern.planner import supports
from tests.engine.pattern.generate import query_of
from tests.engine.pattern.oracle import Oracle
from tests.engine.pattern.running import operate, with_columns, with_nfa

TEXTS = [
    "PATTERN A; B; C WITHIN 60 ms USING NEXT RETURN *",
    "PATTERN A; B; C WHERE b.x > a.x AND c.x < b.x WITHIN 60 ms USING NEXT RETURN *",
    "PATTERN A; B; C WHERE a.x + b.x = c.x + 7 WITHIN 300 ms USING NEXT RETURN *",
    "PATTERN A; !D; B; !C c2; C c3 WHERE c2.x > a.x WITHIN 60 ms USING NEXT RETURN *",
    "PATTERN A; B; !D WHERE d.x > b.x WITHIN 30 ms USING NEXT RETURN *",
    "PATTERN A a; A b; A c WHERE c.x > 8 AND b.x > a.x WITHIN 60 ms USING NEXT RETURN *",
    "PATTERN A; B WITHIN 60 ms USING STRICT RETURN *",
    "PATTERN A; ANY b; C WHERE b.x > a.x WITHIN 3 ms USING STRICT RETURN *",
    "PATTERN !D; A a; A b; !C WHERE c.x > b.x AND a.x < 9 WITHIN 3 ms USING STRICT RETURN *",
]


def stream(seed: int, events: int) -> list[Event]:
    chance = random.Random(seed)
    ts, found = 0, []
    for seq in range(events):
        ts += chance.choice((0, 1, 1, 2))
        attrs = {"x": chance.randint(0, 9), "k": chance.choice((None, "p", "q"))}
        found.append(Event(ts, seq, chance.choice("AABBCD"), attrs))
    return found


@pytest.mark.parametrize("text", TEXTS)
def test_as_the_automaton(text: str) -> None:
    query = query_of(text)
    assert supports(query)["columns"] is None
    events = stream(1, 1_500)
    cuts = (7, 8, 300, 301, 900)
    want = [match.ids for match in with_nfa(query, events, cuts)]
    assert want
    for limit in (3, 100, 1_000_000):
        assert [match.ids for match in with_columns(query, events, cuts, limit=limit)] == want


@pytest.mark.parametrize("text", TEXTS)
def test_as_the_definition_by_key(text: str) -> None:
    before = " WHERE" if " WHERE" in text else " WITHIN"
    events = stream(2, 60)
    for one in (text, text.replace(before, f" PARTITION BY k{before}")):
        query = query_of(one)
        want = set(Oracle(query).matches(events))
        assert {m.ids for m in operate(query, events, "columns", (5, 30))} == want


def test_the_next_event_is_of_the_same_key() -> None:
    """Holds even if events of different keys are adjacent in time."""
    query = query_of("PATTERN A; B PARTITION BY k WITHIN 9 ms USING STRICT RETURN *")
    for keys, found in (("pq", 0), ("pp", 1)):
        events = [Event(i, i, "AB"[i], {"k": key}) for i, key in enumerate(keys)]
        assert len(operate(query, events, "columns")) == found
