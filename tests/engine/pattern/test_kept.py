"""Kept events: the lists by element are places in the log, however events come and go."""

from __future__ import annotations

import random

import pytest

from seustream.compiler.language.types import INT
from seustream.engine.pattern.batch import of_events
from seustream.engine.pattern.event import END_OF_STREAM, Event
from seustream.engine.pattern.kept import KeptEvents
from seustream.engine.pattern.meaning import Meaning
from tests.engine.pattern.generate import query_of


@pytest.mark.parametrize("strategy", ["NEXT", "STRICT"])
def test_lists_are_places_of_what_is_kept(strategy: str) -> None:
    query = query_of(f"PATTERN A a; B b WHERE b.x > 1 WITHIN 30 ms USING {strategy} RETURN *")
    chance, kept, seen, now = random.Random(3), KeptEvents(Meaning(query)), [], 0
    for _ in range(400):
        some = []
        for _ in range(chance.choice((0, 1, 1, 2, 9))):
            now += chance.choice((0, 1, 2))
            some.append(Event(now, len(seen), chance.choice("ABC"), {"x": chance.randint(0, 3)}))
            seen.append(some[-1])
        kept.take(of_events(some, {"x": INT}))
        if chance.random() < 0.5:
            kept.expire(now)
            now += 1
        if chance.random() < 0.3:
            held = [] if kept.log is None else kept.log.rows()
            assert held == kept.events() == seen_of(seen, strategy)[kept.gone :]
            for element, fits in enumerate((is_a, is_b)):
                assert [held[row] for row in kept.rows[element].tolist()] == [*filter(fits, held)]
            assert kept.largest == max(map(len, kept.rows))
    assert 0 < len(kept) < 200
    kept.expire(END_OF_STREAM)
    assert not len(kept)


def seen_of(events: list[Event], strategy: str) -> list[Event]:
    return [e for e in events if strategy == "STRICT" or is_a(e) or is_b(e)]


def is_a(event: Event) -> bool:
    return event.type == "A"


def is_b(event: Event) -> bool:
    return event.type == "B" and event.attrs["x"] > 1
