"""The shared buffer by itself: references, pruning, extraction. The number in a test's name is that
of the acceptance statement."""

from __future__ import annotations

import random

import pytest

from seustream.engine.pattern.buffer import BufferEntry, SharedBuffer
from seustream.engine.pattern.errors import InternalError
from seustream.engine.pattern.event import BEGIN_OF_TIME, Event
from seustream.engine.pattern.meaning import Meaning
from seustream.engine.pattern.nfa import Nfa
from seustream.engine.pattern.planner import supports
from tests.engine.pattern.generate import Generator, query_of
from tests.engine.pattern.running import between


def test_39_references_add_up_after_every_event() -> None:
    """Live runs and edges with a target hold references; `check` adds them up."""
    checked = 0
    for seed in range(120):
        generator = Generator(random.Random(seed))
        query = generator.query()
        if supports(query)["nfa"] is not None:
            continue
        nfa = Nfa(Meaning(query))
        old = BEGIN_OF_TIME
        events = generator.events(20)
        for now in range(30):
            nfa.advance(between(events, old, now), old, now)
            nfa.check()
            checked += len(nfa.buffer)
            old = now
    assert checked > 500


def test_39_counting_alone_leaks() -> None:
    """b follows a@4 and keeps the dead run's edge to a@0; only pruning frees it."""
    nfa = Nfa(Meaning(query_of("PATTERN A; B; C WITHIN 5 ms RETURN *")))
    events = [Event(0, 0, "A"), Event(4, 1, "A"), Event(5, 2, "B")]
    nfa.advance(events, BEGIN_OF_TIME, 5)
    assert len(nfa.buffer.pages["a"]) == 1  # a@0 left when the watermark passed its window
    assert [e.event.ts for e in nfa.buffer.pages["a"].values()] == [4]
    again = Nfa(Meaning(query_of("PATTERN A; B; C WITHIN 5 ms RETURN *")))
    again.advance(events, BEGIN_OF_TIME, 4)
    for event in events:
        if event.ts == 5:
            again.on_event(event)
    (b,) = again.buffer.pages["b"].values()
    assert {edge.target.event.ts for edge in b.edges if edge.target} == {0, 4}
    again.advance([], 5, 7)
    assert {edge.target.event.ts for edge in b.edges if edge.target} == {4}
    assert [e.event.ts for e in again.buffer.pages["a"].values()] == [4]
    again.check()


def test_40_a_long_chain_is_released_without_recursion() -> None:
    buffer = SharedBuffer()
    entry: BufferEntry | None = None
    for number in range(100_000):
        entry = buffer.put("a", Event(number, number, "A"), (1,), entry)
    assert entry is not None
    buffer.lock(entry)
    assert len(buffer) == 100_000
    buffer.release(entry)
    assert len(buffer) == 0
    assert buffer.pages == {}


def test_40_a_long_group_is_extracted_without_recursion() -> None:
    buffer = SharedBuffer()
    entry: BufferEntry | None = None
    for number in range(20_000):
        entry = buffer.put("a", Event(number, number, "A"), (1,), entry)
    assert entry is not None
    (path,) = buffer.extract(entry, (1,))
    assert [event.seq for _, event in path] == list(range(20_000))


def test_41_a_dead_predecessor_is_refused() -> None:
    buffer = SharedBuffer()
    first = buffer.put("a", Event(1, 0, "A"), (1,), None)
    buffer.lock(first)
    buffer.release(first)
    with pytest.raises(InternalError, match="no longer"):
        buffer.put("b", Event(2, 1, "B"), (1, 0), first)


def test_released_too_often() -> None:
    buffer = SharedBuffer()
    first = buffer.put("a", Event(1, 0, "A"), (1,), None)
    buffer.lock(first)
    buffer.release(first)
    with pytest.raises(InternalError, match="too often"):
        buffer.release(first)


def test_equal_rows_have_entries_of_their_own() -> None:
    buffer = SharedBuffer()
    one = buffer.put("a", Event(1, 0, "A", {"x": 1}), (1,), None)
    other = buffer.put("a", Event(1, 1, "A", {"x": 1}), (2,), None)
    assert one is not other
    assert len(buffer) == 2
