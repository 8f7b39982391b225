"""AFTER MATCH: which matches count, once all matches that start at a row are known."""

from __future__ import annotations

import dataclasses
import random

import pytest

import seustream as ss
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Skip
from seustream.engine.pattern.event import Event, Ids, Match, key_of
from seustream.engine.pattern.found import Found
from tests.engine.pattern.generate import Generator, query_of
from tests.engine.pattern.oracle import Oracle
from tests.engine.pattern.running import events_of, named, operate
from tests.engine.pattern.stock import S_TEXT, S, query


def test_46_skip_past_last_event() -> None:
    q = query(S_TEXT.replace("RETURN", "AFTER MATCH SKIP PAST LAST EVENT RETURN"))
    assert named(S, [m.ids for m in operate(q, events_of(S))]) == {"a1 b1 c2 d1"}
    q = query(S_TEXT.replace("RETURN", "AFTER MATCH SKIP TO NEXT EVENT RETURN"))
    found = named(S, [m.ids for m in operate(q, events_of(S))])
    assert found == {"a1 b1 c2 d1", "a3 b1 c2 d1"}


def _counted(query: ir.PatternQuery, events: list[Event]) -> set[Ids]:
    """Returns the matches that count, by the definition."""
    by_id = {event.seq: event for event in events}
    found: dict[tuple[object, ...], list[tuple[tuple[int, int], tuple[int, Ids]]]] = {}
    for match, certain in (
        Oracle(dataclasses.replace(query, skip=Skip.NONE)).matches(events).items()
    ):
        start = by_id[next(ids[0] for ids in match if ids)]
        of_key = found.setdefault(key_of(start, query.partition), [])
        of_key.append((start.order, (certain, match)))
    counted = set()
    for matches in found.values():
        after = (-1, -1)
        for start, (_, match) in sorted(matches):
            if start > after:
                counted.add(match)
                last = next(ids[-1] for ids in reversed(match) if ids)
                after = start if query.skip is Skip.NEXT else by_id[last].order
    return counted


@pytest.mark.parametrize("skip", ["TO NEXT EVENT", "PAST LAST EVENT"])
def test_random_queries(skip: str) -> None:
    matches = 0
    for seed in range(250):
        chance = random.Random(seed)
        generator = Generator(chance)
        keys = chance.random() < 0.4
        text = generator.query(chance.choice(("", "NEXT", "ANY SUBSETS", "STRICT")), keys=keys).text
        if "WITHIN" not in text:
            continue
        query = query_of(text.replace(" RETURN", f" AFTER MATCH SKIP {skip} RETURN"))
        events = generator.events(24, keys=keys)
        cuts = sorted(chance.randint(0, 30) for _ in range(chance.choice((0, 2, 10))))
        found = operate(query, events, cuts=cuts)
        assert sorted(m.ids for m in found) == sorted(_counted(query, events)), (seed, query.text)
        matches += len(found)
    assert matches > 60


@pytest.mark.parametrize("text", ["A a; B b", "A a; (B b | C b2); B c"])
def test_one_match_from_each_start_becomes_an_object(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, matches = [0], Found.matches

    def counting(found: Found, query: ir.PatternQuery) -> list[Match]:
        made[0] += len(found)
        return matches(found, query)

    monkeypatch.setattr(Found, "matches", counting)
    text = f"PATTERN {text} FROM s WITHIN 1 d AFTER MATCH SKIP PAST LAST EVENT RETURN a.ts"
    rows = {"ts": [*range(90)], "type": [*"AAABBCBBB"] * 10, "x": [1] * 90}
    assert ss.run(text, s=rows)["q0"].rows()
    assert 10 < made[0] <= 60


@pytest.mark.parametrize("within", ["WITHIN 1 d", ""])
@pytest.mark.parametrize("pattern", ["A a; (B b | !C c)", "A a; B? b; !C c", "A a; (B b | C* c)"])
def test_of_ways_that_end_at_different_times_one_counts(pattern: str, within: str) -> None:
    """One of them is certain only at the end of the stream, whose time its matches do not have."""
    text = (
        f"PATTERN {pattern} FROM s {within} AFTER MATCH SKIP TO NEXT EVENT RETURN a.ts, b.ts AS b"
    )
    rows = {"ts": [0, 1], "type": ["A", "B"], "x": [1, 2]}
    assert [row[:2] for row in ss.run(text, s=rows)["q0"].rows()] == [(0, 1)]
