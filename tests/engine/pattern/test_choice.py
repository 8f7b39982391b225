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
    candidates,
    costs,
    sample,
)
from seustream.engine.pattern.event import END_OF_STREAM, Event
from seustream.engine.pattern.operator import PatternOperator
from tests.engine.pattern.generate import query_of
from tests.engine.pattern.oracle import Oracle

PAIRS = "PATTERN A; B; C WHERE b.x > a.x WITHIN 50 ms RETURN *"


AROUND = "PATTERN A; B+; C WHERE c.x {} a.x WITHIN 24 ms USING ANY SUBSETS RETURN *"
"""A group between two events that a condition compares, the only pattern with a choice."""


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
    ("text", "choice"),
    [
        (AROUND.format("="), ["compiled", "optiseq"]),
        (AROUND.format("+ b[1].x >"), ["optiseq"]),  # each subset is asked for, whatever the sample
        (AROUND.replace("c.x {} a.x", "b[i].x > b[i-1].x"), ["compiled"]),
        (AROUND.replace("A; B+; C", "B+; A; C").format("="), ["compiled"]),
        (PAIRS, ["columns"]),
        ("PATTERN A; B; C WHERE c.x = a.x WITHIN 50 ms USING NEXT RETURN *", ["columns"]),
    ],
)
def test_there_is_a_choice_for_groups_between_compared_events(text: str, choice: list[str]) -> None:
    query = query_of(text)
    assert candidates(query) == choice
    assert EngineChooser(query, "auto").open == (len(choice) > 1)
    assert not EngineChooser(query, choice[0]).open  # the query asks for this matcher


def seen(condition: str, rare: bool) -> dict[str, float]:
    """Returns the costs of an epoch in which the condition rarely holds, or mostly."""
    query = query_of(AROUND.format(condition))
    kinds = stream(2_000)
    events = [Event(e.ts, e.ts, e.type, {"x": e.ts if rare else 0}) for e in kinds]
    return costs(query, sample(query, of_events(events, {"x": INT}), len(events)))


def test_the_search_is_for_conditions_that_rarely_hold() -> None:
    """It then makes few subsets; the automaton has made them all before it sees the last event."""
    rarely, mostly = seen("=", rare=True), seen("=", rare=False)
    assert rarely["optiseq"] < rarely["compiled"]
    assert mostly["compiled"] < mostly["optiseq"] / MARGIN


def test_what_is_kept_counts_where_it_is_searched_again() -> None:
    query = query_of(AROUND.format("="))
    batch = of_events(stream(1), {"x": INT})
    alone = costs(query, sample(query, batch, 1))
    after = costs(query, sample(query, batch, 1, kept=1_000))
    assert after["compiled"] == alone["compiled"]
    assert after["optiseq"] > 2 * alone["optiseq"]


def test_a_matcher_gives_way_only_to_a_much_cheaper_one() -> None:
    chooser = EngineChooser(query_of(AROUND.format("=")), "auto")
    assert chooser.by_cost({"compiled": 100.0, "optiseq": 60.0}).engine == "compiled"
    assert chooser.by_cost({"compiled": 100.0, "optiseq": 100.0 / MARGIN}).engine == "optiseq"
    assert chooser.by_cost({"compiled": 60.0, "optiseq": 100.0}).engine == "optiseq"
    assert "estimated 100 µs an epoch; compiled 60 µs" in chooser.choice.why


def test_it_is_considered_anew_when_epochs_change() -> None:
    chooser = EngineChooser(query_of(AROUND.format("=")), "auto")
    assert chooser.due(1)
    assert not chooser.due(0)
    chooser.consider(of_events(stream(100), {"x": INT}), 100)
    assert not chooser.due(200)
    assert not chooser.due(50)
    assert chooser.due(201)
    chooser.consider(of_events(stream(201), {"x": INT}), 201)
    assert chooser.due(100)
    chooser.consider(of_events(stream(10), {"x": INT}), 10)
    assert not chooser.due(1)  # one short epoch is like another
    assert not chooser.due(100)
    assert chooser.due(130)


def test_a_stream_changes_its_matcher_and_loses_nothing() -> None:
    """The condition holds now and then at first, and later hardly ever. Each matcher alone, which other
    tests compare with the definition, finds the same."""
    query = query_of(AROUND.format("=").replace("24 ms", "50 ms"))
    chance = random.Random(4)
    events = [
        Event(ts, ts, chance.choice("AAACCCB"), {"x": ts if ts > 300 else chance.randint(0, 9)})
        for ts in range(700)
    ]
    operator = PatternOperator(query)
    found, engines = [], []
    for cut in (*range(0, 700, 100), *range(605, 630), END_OF_STREAM):
        for event in events:
            if operator.watermark < event.ts <= cut:
                operator.push(event)
        found += [match.ids for match in operator.advance(cut)]
        engines.append(operator.engine)
        operator._chooser.considered = ()  # so that it considers each epoch
    assert set(engines) == {"compiled", "optiseq"}
    assert len(found) == len(set(found)) > 0
    for engine in ("compiled", "optiseq"):
        alone = PatternOperator(query, engine)
        for event in events:
            alone.push(event)
        assert set(found) == {match.ids for match in alone.advance(END_OF_STREAM)}


def test_a_run_goes_on_after_another_matcher() -> None:
    """It was asked for there, or chosen by an earlier release."""
    query = query_of(AROUND.format("="))
    before, after, whole = PatternOperator(query, "nfa"), PatternOperator(query), Oracle(query)
    events = stream(40)
    for event in events[:20]:
        before.push(event)
    found = before.advance(events[19].ts)
    after.restore(before.snapshot())
    for event in events[20:]:
        after.push(event)
    found += after.advance(END_OF_STREAM)
    assert after.engine in COSTS
    assert {match.ids for match in found} == set(whole.matches(events))


def test_a_choice_for_an_empty_window_does_not_stay() -> None:
    """At the beginning and behind a gap, an epoch finds no event held, and looks cheap to a search
    that has nothing to search."""
    query = query_of(AROUND.format("<>"))
    operator, engines = PatternOperator(query), []
    for event in stream(400):
        operator.push(
            Event(event.ts + 1_000 * (event.ts >= 200), event.ts, event.type, event.attrs)
        )
        operator.advance(event.ts + 1_000 * (event.ts >= 200))
        engines.append(operator.engine)
    assert set(engines[100:200]) == set(engines[300:]) == {"compiled"}


def test_every_matcher_has_its_figures() -> None:
    assert set(COSTS) == {"compiled", "optiseq"}
    assert all(min(c.epoch, c.event, c.work) > 0 for c in COSTS.values())
