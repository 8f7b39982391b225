"""What EXPLAIN and the trace say of patterns, and their pictures."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from engine.pattern.explain import STAGES, as_text, facts
from engine.pattern.nfa import Numbering
from engine.pattern.picture import picture
from engine.pattern.trace import trace
from tests.engine.pattern.generate import query_of
from tests.engine.pattern.running import events_of

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
