"""The compiled automaton compared with its twins event by event, on longer streams of several keys,
under random epochs; `test_differential` compares with the definition."""

from __future__ import annotations

import json
import random

import pytest

from seustream.compiler.language.faults import Faults
from seustream.engine.pattern import keys
from seustream.engine.pattern.batch import needed, of_events
from seustream.engine.pattern.compiled import CompiledSearch
from seustream.engine.pattern.errors import EngineRefused, PatternBudgetExceeded
from seustream.engine.pattern.event import END_OF_STREAM, Event
from seustream.engine.pattern.meaning import Meaning
from seustream.engine.pattern.operator import PatternOperator
from seustream.engine.pattern.planner import supports
from tests.engine.pattern.generate import Generator, query_of
from tests.engine.pattern.oracle import Oracle
from tests.engine.pattern.running import operate

USING = ("ANY SUBSETS", "NEXT", "STRICT")


@pytest.mark.parametrize("spare", [1 << 12, -(1 << 30)])
def test_it_finds_what_its_twins_find(spare: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the operator it finds the same matches in the same order, also across a snapshot, and
    if it forgets keys at every step."""
    monkeypatch.setattr(keys, "_SPARE", spare)
    matches = 0
    for seed in range(40):
        chance = random.Random(seed)
        generator = Generator(chance)
        keyed = chance.random() < 0.5
        query = generator.query(chance.choice(USING), keys=keyed)
        events = generator.events(32, keys=keyed)
        chance.shuffle(events)
        cuts = sorted(chance.randint(0, 40) for _ in range(chance.choice((0, 2, 20))))
        plain = supports(query)["compact"] is None and query.kleene
        want = [m.ids for m in operate(query, events, "compact" if plain else "nfa", cuts)]
        about = f"seed {seed}: {query.text}"
        assert [m.ids for m in operate(query, events, "compiled", cuts)] == want, about
        assert _restored(query, events, cuts, chance) == want, about
        matches += len(want)
    assert matches > 50


def _restored(query: object, events: list[Event], cuts: list[int], chance: random.Random) -> list:
    """Returns the matches of an operator that is saved and restored between epochs."""
    operator = PatternOperator(query, "compiled")  # type: ignore[arg-type]
    for event in events:
        operator.push(event)
    found = []
    for cut in [*dict.fromkeys(cuts), END_OF_STREAM]:
        found += [m.ids for m in operator.advance(cut)]
        if chance.random() < 0.4:
            stored = json.loads(json.dumps(operator.snapshot()))
            operator = PatternOperator(query, "compiled")  # type: ignore[arg-type]
            operator.restore(stored)
    return found


def test_what_no_kernel_compares_is_asked_back_and_faults_are_counted() -> None:
    query = query_of(
        "PATTERN A a; B+ b; C c WHERE sum(b.x) > a.x AND c.x / b[1].x > 1 AND ln(c.x) > ln(a.x)"
        " WITHIN 9 ms USING NEXT RETURN *"
    )
    kinds = "ABBCABC"
    events = [
        Event(t, t, kind, {"x": value, "y": 1.0, "k": "p"})
        for t, (kind, value) in enumerate(zip(kinds, (1, 0, 2, 5, 0, 3, 4), strict=True))
    ]
    found = {}
    for engine in ("nfa", "compiled"):
        faults = Faults()
        operator = PatternOperator(query, engine, faults=faults)
        for event in events:
            operator.push(event)
        found[engine] = [m.ids for m in operator.advance(END_OF_STREAM)], faults.count
    assert found["nfa"] == found["compiled"]
    assert found["nfa"][1]


@pytest.mark.parametrize("using", ["NEXT", "ANY SUBSETS"])
def test_keys_without_runs_are_forgotten(using: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "_SPARE", 10)
    query = query_of(f"PATTERN A; B+ PARTITION BY k WITHIN 8 ms USING {using} RETURN *")
    search, found = CompiledSearch(Meaning(query)), 0
    for ts in range(300):
        event = Event(ts, ts, "AB"[ts % 2], {"k": f"key {ts // 2}"})
        matches = search.advance(of_events([event], needed(query)), ts - 1, ts)
        found += 0 if matches is None else len(matches)
        assert len(search._keys.known) < 40
    assert found == 150


@pytest.mark.parametrize("text", ["ANY{2} v", "A a; ANY+ v", "ANY+ v; A a"])
def test_keys_take_turns_at_one_time(text: str) -> None:
    """Events of a key at the end of a match are not neighbours among those of their time."""
    query = query_of(f"PATTERN {text} PARTITION BY k WITHIN 5 ms USING ANY SUBSETS RETURN *")
    chance = random.Random(text)
    found = 0
    for _ in range(60):
        times = sorted(chance.choices(range(4), k=9))
        events = [
            Event(ts, seq, "A", {"type": "A", "k": chance.choice("pqr")})
            for seq, ts in enumerate(times)
        ]
        got = [match.ids for match in operate(query, events, "compiled")]
        assert sorted(got) == sorted(Oracle(query).matches(events)), events
        found += len(got)
    assert found > 1_000


def test_runs_and_matches_have_limits() -> None:
    events = [Event(t, t, "A", {"x": 1}) for t in range(60)]
    subsets = query_of("PATTERN A+ a; B b WHERE a.x < b.x WITHIN 90 ms USING ANY SUBSETS RETURN *")
    operator = PatternOperator(subsets, "compiled", max_runs=50)
    for event in events[:20]:
        operator.push(event)
    with pytest.raises(PatternBudgetExceeded, match="more than 50 runs"):
        operator.advance(END_OF_STREAM)
    bursts = [Event(t // 2, t, "A", {"x": 1}) for t in range(60)]
    pairs = query_of("PATTERN A a; A b WHERE a.x = b.x WITHIN 90 ms USING ANY RETURN *")
    operator = PatternOperator(pairs, "compiled", max_matches=50)
    for event in bursts:
        operator.push(event)
    with pytest.raises(PatternBudgetExceeded, match="more than 50 matches"):
        operator.advance(END_OF_STREAM)


def test_largest_groups_are_refused() -> None:
    query = query_of("PATTERN A; B+; C WITHIN 9 ms RETURN *")
    with pytest.raises(EngineRefused, match="P016"):
        CompiledSearch(Meaning(query))


def test_a_group_of_more_states_than_bits_goes_to_the_automaton() -> None:
    query = query_of("PATTERN A{70,}; B WITHIN 200 ms USING ANY SUBSETS RETURN count(a) AS n")
    events = [Event(t, t, "B" if t == 70 else "A", {"x": 1}) for t in range(71)]
    strict = query_of("PATTERN A{70,}; B WITHIN 200 ms USING STRICT RETURN count(a) AS n")
    assert len(operate(strict, events, "compiled")) == 1
    assert [len(m.ids[0]) for m in operate(query, events, "compact")] == [70]
