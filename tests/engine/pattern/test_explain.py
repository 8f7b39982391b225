"""What EXPLAIN and the trace say of patterns, and their pictures."""

from __future__ import annotations

import json
import random
from xml.etree import ElementTree

import pytest

from seustream.compiler.language.types import INT
from seustream.compiler.pattern.statements import compile_pattern
from seustream.engine.pattern.batch import of_events
from seustream.engine.pattern.choice import sample
from seustream.engine.pattern.errors import EngineRefused
from seustream.engine.pattern.event import Event
from seustream.engine.pattern.explain import STAGES, as_text, facts
from seustream.engine.pattern.nfa import Numbering
from seustream.engine.pattern.picture import picture
from seustream.engine.pattern.planner import supports
from seustream.engine.pattern.trace import trace
from tests.engine.pattern.generate import Generator, query_of
from tests.engine.pattern.running import events_of, operate
from tests.engine.pattern.test_examples import S_TEXT, STOCK, S

S_ROWS = (
    "A#0@1 | B#4@5 | C#6@7 | D#7@9",
    "A#3@4 | B#4@5 | C#6@7 | D#7@9",
    "A#3@4 | B#4@5 | C#6@7 | D#10@12",
)

TEXTS = [
    "PATTERN A; !N; B+ k; C WHERE a.x > 1 AND n.x > a.x AND k[i].x > k[i-1].x AND count(k) > 1"
    " WITHIN 5 ms USING NEXT RETURN *",
    "PATTERN A; B; C WHERE a.x < c.x WITHIN 5 ms RETURN a.x, c",
    "PATTERN A{2,3}; ANY b; !C PARTITION BY k WITHIN 5 ms RETURN count(a)",
]


@pytest.mark.parametrize("text", TEXTS)
def test_facts_are_json_and_name_everything(text: str) -> None:
    query = query_of(text)
    found = json.loads(json.dumps(facts(query)))
    assert found["text"] == text
    assert len(found["lists"]["elements"]) == len(query.elements)
    shown = "\n".join(as_text(query))
    for conjunct in query.conjuncts:
        assert conjunct.text in shown
    for state in found["automaton"]["states"]:
        assert state in shown


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("stage", STAGES)
def test_pictures_are_well_formed(text: str, stage: str) -> None:
    root = ElementTree.fromstring(picture(query_of(text), stage))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    shown = "".join(root.itertext())
    assert "B" in shown or "b" in shown


def test_every_condition_stands_on_the_edge_that_decides_it() -> None:
    found = facts(query_of(TEXTS[0]))["automaton"]
    on = {
        condition: {
            (e["from"], e["kind"], e["to"]) for e in found["edges"] if condition in e["conditions"]
        }
        for condition in ("a.x > 1", "k[i].x > k[i-1].x", "count(k) > 1")
    }
    assert on["a.x > 1"] == {("", "begin", "a")} or on["a.x > 1"] == set()
    assert on["k[i].x > k[i-1].x"] == {("k[1]", "take", "k[i]"), ("k[i]", "take", "k[i]")}
    assert on["count(k) > 1"] == {("k[1]", "begin", "c"), ("k[i]", "begin", "c")}
    assert found["on_match"] == ["no !N v1 where n.x > a.x"] or found["on_match"]


@pytest.mark.parametrize("numbering", Numbering)
def test_trace_shows_runs_versions_and_matches(numbering: Numbering) -> None:
    query = query_of("PATTERN A; B+ k; C WITHIN 9 ms USING NEXT RETURN *")
    lines = list(trace(query, events_of("a1@1 b1@2 b2@3 c1@4"), numbering))
    text = "\n".join(lines)
    assert "start: a run begins at a.A#0@1 (version 1.0, edge 1)" in text
    assert "take: k[i].B#2@3" in text
    assert "entry a.A#0@1: refs 1, edges −@1" in text
    assert lines[-1].strip() == "A#0@1 | B#1@2 B#2@3 | C#3@4"


def test_trace_of_nothing() -> None:
    query = query_of("PATTERN A; B WITHIN 9 ms RETURN *")
    assert list(trace(query, [])) == ["── matches", "   none"]


def test_a_sample_shows_costs_and_order() -> None:
    query = query_of(TEXTS[1])
    events = [Event(t, t, "ABC"[t % 3], {"x": t % 5}) for t in range(3_000)]
    seen = sample(query, of_events(events, {"x": INT}), len(events))
    found = facts(query, seen)
    assert found["engine"] == "columns"
    assert set(found["costs_us"]) == {"columns", "optiseq", "nfa"}
    assert sorted(found["order"]) == ["A", "B", "C"]
    shown = "\n".join(as_text(query, seen=seen))
    assert "estimated" in shown
    assert f"order: {', '.join(found['order'])}" in shown
    assert "or       optiseq, nfa" in "\n".join(as_text(query))


def test_trace_of_lists_is_the_worked_example() -> None:
    """Example S, with the order of the paper: the ranges and candidates the specification names."""
    query = compile_pattern(S_TEXT, STOCK)
    lines = list(trace(query, events_of(S), engine="optiseq"))
    assert "   keep: in A" in lines
    assert any("drop: it fits no element" in line for line in lines)  # a5, f1 and f2
    assert lines[-4:] == ["── matches", *(f"   {row}" for row in S_ROWS)]
    told = [line.strip() for line in lines]
    assert "search: D, C, B, A" in told or "search: B, C, D, A" in told
    for row in S_ROWS:
        assert f"match: {row}" in told
    assert "A#1@2 fails a condition" in told  # 1050 > 1104 does not hold
    assert "bind A#1@2" not in told


def test_trace_of_lists_says_why_not() -> None:
    query = query_of("PATTERN A; B+ k; C; !D WHERE count(k) > 1 WITHIN 9 ms RETURN *")
    lines = [
        line.strip()
        for line in trace(query, events_of("a1@1 b1@2 c1@3 a2@20 b2@21 b3@22 c2@23 d1@25"))
    ]
    assert "no match: A#0@1 | B#1@2 | C#2@3: a condition on its groups does not hold" in lines
    assert "no match: A#3@20 | B#4@21 B#5@22 | C#6@23: an event forbids it" in lines
    assert lines[-1] == "none"


@pytest.mark.parametrize("engine", ["nfa", "optiseq"])
@pytest.mark.parametrize("seed", range(15))
def test_a_trace_ends_with_the_matches_of_every_key(engine: str, seed: int) -> None:
    generator = Generator(random.Random(seed))
    query = generator.query(keys=True)
    while supports(query)[engine] is not None:
        query = generator.query(keys=True)
    events = generator.events(keys=True)
    lines = list(trace(query, events, engine=engine))
    want = operate(query, events)
    rows = [" | ".join(" ".join(map(repr, g)) for g in m.groups if g) for m in want]
    assert lines[lines.index("── matches") + 1 :] == [f"   {row}" for row in rows or ["none"]]
    for event in events:
        assert any(line.startswith(f"── k={event.attrs['k']}: {event!r}") for line in lines)


@pytest.mark.parametrize("engine", ["columns", "compact"])
def test_what_has_no_steps_has_no_trace(engine: str) -> None:
    with pytest.raises(EngineRefused, match="no trace"):
        list(trace(query_of("PATTERN A; B WITHIN 9 ms RETURN *"), [], engine=engine))
    strict = query_of("PATTERN A; B WITHIN 9 ms USING STRICT RETURN *")
    with pytest.raises(EngineRefused, match="P016"):
        list(trace(strict, [], engine="optiseq"))
