"""AFTER MATCH: which matches count, once all matches that start at a row are known."""

from __future__ import annotations

from tests.engine.pattern.running import events_of, named, operate
from tests.engine.pattern.stock import S_TEXT, S, query


def test_46_skip_past_last_event() -> None:
    q = query(S_TEXT.replace("RETURN", "AFTER MATCH SKIP PAST LAST EVENT RETURN"))
    assert named(S, [m.ids for m in operate(q, events_of(S))]) == {"a1 b1 c2 d1"}
    q = query(S_TEXT.replace("RETURN", "AFTER MATCH SKIP TO NEXT EVENT RETURN"))
    found = named(S, [m.ids for m in operate(q, events_of(S))])
    assert found == {"a1 b1 c2 d1", "a3 b1 c2 d1"}
