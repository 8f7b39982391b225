"""The choice of the matcher for an epoch, by estimated cost."""

from __future__ import annotations

import random

import pytest

from seustream.compiler.language.types import INT
from seustream.engine.pattern.batch import of_events
from seustream.engine.pattern.choice import (
    COSTS,
    MARGIN,
    SAMPLED,
    EngineChooser,
    beginning,
    costs,
    sample,
)
from seustream.engine.pattern.event import END_OF_STREAM, Event
from seustream.engine.pattern.operator import PatternOperator
from tests.engine.pattern.generate import query_of
from tests.engine.pattern.oracle import Oracle

PAIRS = "PATTERN A; B; C WHERE b.x > a.x WITHIN 50 ms RETURN *"


SUMS = "PATTERN A; B; C WHERE b.x - a.x > 0 WITHIN 50 ms RETURN *"
"""A pattern without a comparison of one event with another."""


def stream(events: int, seed: int = 0) -> list[Event]:
    chance = random.Random(seed)
    return [
        Event(ts, ts, chance.choice("ABCD"), {"x": chance.randint(0, 9)}) for ts in range(events)
    ]


def test_the_sample_is_one_window_of_at_most_ten_thousand() -> None:
    batch = of_events(stream(400), {"x": INT})
    assert len(beginning(batch, 50)) == 51  # the window includes both ends
    assert len(beginning(batch, None)) == 400
    assert len(beginning(of_events(stream(SAMPLED + 5), {"x": INT}), None)) == SAMPLED


def test_what_a_sample_shows() -> None:
    query = query_of(PAIRS)
    events = stream(2_000)
    seen = sample(query, beginning(of_events(events, {"x": INT}), 1_000_000), len(events))
    for place, kind in enumerate("ABC"):
        assert seen.anchors.counts[place] == sum(e.type == kind for e in events)
    ((places, found),) = seen.anchors.selectivities
    firsts = [e for e in events if e.type == "A"]
    pairs = [(a, b) for a in firsts for b in events[a.ts + 1 : a.ts + 51] if b.type == "B"]
    assert places == (0, 1)
    assert found == pytest.approx(sum(b.attrs["x"] > a.attrs["x"] for a, b in pairs) / len(pairs))


def test_the_sample_of_a_part_stands_for_the_epoch() -> None:
    query = query_of(PAIRS)
    events = stream(4_000)
    part = beginning(of_events(events, {"x": INT}), 50 * 20)
    whole = sample(query, of_events(events, {"x": INT}), len(events)).anchors
    scaled = sample(query, part, len(events)).anchors
    assert scaled.span == pytest.approx(whole.span, rel=0.1)
    for a, b in zip(scaled.counts, whole.counts, strict=True):
        assert a == pytest.approx(b, rel=0.25)


@pytest.mark.parametrize(
    ("text", "events", "choice"),
    [
        (PAIRS, 50_000, "columns"),
        (PAIRS, 1, "columns"),
        ("PATTERN A; B+; C WITHIN 50 ms RETURN *", 1, "optiseq"),
        ("PATTERN A; B+; C WITHIN 50 ms RETURN *", 50_000, "columns"),
        ("PATTERN A; B WITHIN 50 ms USING NEXT RETURN *", 50_000, "columns"),
        ("PATTERN A; B WITHIN 50 ms USING NEXT RETURN *", 1, "nfa"),
        ("PATTERN A; B; C WITHIN 50 ms USING STRICT RETURN *", 50_000, "columns"),
        ("PATTERN A; B+ WITHIN 50 ms USING STRICT RETURN *", 50_000, "compiled"),
    ],
)
def test_long_epochs_are_the_columns_and_short_ones_only_where_events_are_compared(
    text: str, events: int, choice: str
) -> None:
    operator = PatternOperator(query_of(text))
    for event in stream(events):
        operator.push(event)
    operator.advance(events)
    assert operator.engine in choice.split(" or ")


def test_a_rare_first_element_makes_the_automaton_cheap() -> None:
    """One A, and long lists that only a search from the lists would go through."""
    query = query_of("PATTERN A; B; C WHERE b.x > a.x WITHIN 1 s USING ANY SUBSETS RETURN *")
    events = [Event(t, t, "A" if t == 0 else "BC"[t % 2], {"x": 1}) for t in range(400)]
    found = costs(query, sample(query, of_events(events, {"x": INT}), len(events)))
    assert found["nfa"] < found["optiseq"] * 2
    assert set(found) == {"columns", "optiseq", "nfa"}


def test_what_is_kept_counts_where_it_is_searched_again() -> None:
    query = query_of(PAIRS)
    batch = of_events(stream(1), {"x": INT})
    alone = costs(query, sample(query, batch, 1))
    after = costs(query, sample(query, batch, 1, kept=1_000))
    assert after["nfa"] == alone["nfa"]
    assert after["optiseq"] > 2 * alone["optiseq"]
    assert after["columns"] > alone["columns"]


def test_a_matcher_gives_way_only_to_a_much_cheaper_one() -> None:
    chooser = EngineChooser(query_of(SUMS), "auto")
    assert chooser.by_cost({"columns": 100.0, "nfa": 60.0}).engine == "columns"
    assert chooser.by_cost({"columns": 100.0, "nfa": 100.0 / MARGIN}).engine == "nfa"
    assert chooser.by_cost({"columns": 60.0, "nfa": 100.0}).engine == "nfa"
    assert "estimated 100 µs an epoch; columns 60 µs" in chooser.choice.why


def test_it_is_considered_anew_when_epochs_change() -> None:
    chooser = EngineChooser(query_of(SUMS), "auto")
    assert chooser.due(10)
    assert not chooser.due(0)
    chooser.consider(of_events(stream(10), {"x": INT}), 10)
    assert not chooser.due(20)
    assert not chooser.due(5)
    assert chooser.due(21)
    assert chooser.due(4)
    assert not EngineChooser(query_of(PAIRS), "nfa").due(10)  # the query asks for this matcher


def test_a_stream_changes_its_matcher_and_loses_nothing() -> None:
    query = query_of(SUMS.replace("50", "10"))
    events = stream(900)
    operator = PatternOperator(query)
    found, engines = [], []
    cuts = [*range(0, 30), 800, *range(801, 830), END_OF_STREAM]
    for event in events:
        operator.push(event)
    for cut in cuts:
        found += [match.ids for match in operator.advance(cut)]
        engines.append(operator.engine)
    assert engines[1] != "columns"
    assert engines[30] == "columns"
    assert engines[-2] != "columns"
    assert len(found) == len(set(found))
    assert set(found) == set(Oracle(query).matches(events))


@pytest.mark.parametrize("seed", [1, 2, 7, 10])
def test_a_choice_for_an_empty_window_does_not_stay(seed: int) -> None:
    """At the beginning and behind a gap, an epoch finds no event held, and looks cheap to a matcher
    that searches from one start after the other."""
    operator = PatternOperator(query_of("PATTERN A; B; C; D WITHIN 1000 ms RETURN *"))
    chance, engines = random.Random(seed), []
    for number in range(3_000):
        late = number >= 1_040  # the epoch before the gap has 16 events, all others have 64
        kind = chance.choice("ABCDEFGHIJKLMNOPQRST")
        operator.push(event := Event(10 * number + 60_000 * late, number, kind, {"x": 0}))
        if (number - 1_040 * late) % 64 == 63 or number == 1_039:
            operator.advance(event.ts)
            engines.append(operator.engine)
    assert (engines[14], engines[-1]) == ("columns", "columns")


def test_of_single_events_what_is_held_shows_the_work() -> None:
    """A single event looks cheap to a matcher that keeps a run for each subset."""
    query = query_of("PATTERN A; B+ b; C WITHIN 24 ms USING ANY SUBSETS RETURN count(b) AS n")
    operator, engines = PatternOperator(query), []
    for event in stream(200):
        operator.push(event)
        operator.advance(event.ts)
        engines.append(operator.engine)
    assert "nfa" not in engines[24:]
    nfa, best = operator.choice.costs["nfa"], min(operator.choice.costs.values())
    assert nfa > MARGIN * best


def test_every_matcher_has_its_figures() -> None:
    assert set(COSTS) == {"columns", "compiled", "optiseq", "nfa", "compact"}
    assert all(min(c.epoch, c.event, c.work) > 0 for c in COSTS.values())
