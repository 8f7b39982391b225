"""EXPLAIN and the trace of patterns, and their pictures."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from seustream.compiler.explain import shown
from seustream.compiler.language.types import INT
from seustream.compiler.pattern.ir import MatchQuery
from seustream.engine.pattern.batch import of_events
from seustream.engine.pattern.choice import Sample, sample
from seustream.engine.pattern.event import Event
from seustream.engine.pattern.explain import STAGES, pattern
from tests.engine.pattern.explained import TEXTS, facts
from tests.engine.pattern.generate import query_of


def as_text(query: MatchQuery, seen: Sample | None = None) -> str:
    return shown(pattern(query, seen), "text")


@pytest.mark.parametrize("text", TEXTS)
def test_facts_are_json_and_name_everything(text: str) -> None:
    query = query_of(text)
    found = json.loads(json.dumps(facts(query)))
    assert found["text"] == text
    assert len(found["lists"]["elements"]) == len(query.elements)
    text = " ".join(as_text(query).split())
    for conjunct in query.conjuncts:
        assert conjunct.text in text
    for state in found["automaton"]["states"]:
        assert state in text


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("stage", STAGES)
def test_pictures_are_well_formed(text: str, stage: str) -> None:
    root = ElementTree.fromstring(shown(getattr(pattern(query_of(text)), stage).diagram, "svg"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    words = "".join(root.itertext())
    assert "B" in words or "b" in words


def test_a_sample_shows_costs_and_order() -> None:
    events = [Event(t, t, "ABC"[t % 3], {"x": t % 5}) for t in range(3_000)]
    batch = of_events(events, {"x": INT})
    query = query_of("PATTERN A; B+; C WHERE a.x < c.x WITHIN 9 ms USING ANY SUBSETS RETURN *")
    found = facts(query, sample(query, batch, len(events)))
    assert set(found["costs_us"]) == {"compiled", "optiseq"}
    assert "estimated" in as_text(query, sample(query, batch, len(events)))
    assert "or           optiseq, where" in as_text(query)
    # A search of columns has no alternative, but an order.
    query = query_of("PATTERN A; B; C WHERE a.x <> c.x WITHIN 5 ms RETURN a.x, c")
    seen = sample(query, batch, len(events))
    found, text = facts(query, seen), as_text(query, seen)
    assert found["engine"] == "columns"
    assert not found["costs_us"]
    assert sorted(found["lists"]["order"]) == ["A", "B", "C"]
    assert f"order  {', '.join(found['lists']['order'])}" in text
    assert "or           " not in text


@pytest.mark.parametrize(
    ("where", "order"),
    [
        ("a.x < c.x AND b.x < c.x", "C, B, A; always, without dead ends"),
        ("a.x < b.x AND a.x < c.x", "C, A, B; always, without dead ends"),
        ("a.x <> b.x", "chosen each epoch from the lists' lengths and sampled selectivities"),
    ],
)
def test_an_order_without_dead_ends_is_shown(where: str, order: str) -> None:
    query = query_of(f"PATTERN A; B; C WHERE {where} WITHIN 5 ms RETURN a.x, c")
    assert f"order  {order}" in as_text(query)
    assert facts(query)["lists"]["no_dead_ends"] is order.endswith("dead ends")
