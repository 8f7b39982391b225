"""EXPLAIN for MATCH_RECOGNIZE."""

from __future__ import annotations

from seustream.compiler.explain import shown
from seustream.engine.pattern.explain import pattern as shown_of
from tests.engine.pattern.recognize.explained import facts, query


def test_text_and_picture() -> None:
    one = query("A{1,3} B", "A AS A.x > 1")
    of = shown_of(one)
    text = shown(of, "text")
    assert "one row per match, window unbounded" in text
    assert "once a row" in text
    assert "A:3" in shown(of.automaton, "text")
    assert shown(of.automaton.diagram, "svg").startswith("<svg")
    assert facts(query("A{100}", "A AS TRUE"))["automaton"]["states"] == ["match"]
