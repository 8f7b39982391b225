"""AFTER MATCH: which matches count, once all matches that start at a row are known."""

from __future__ import annotations

import pytest

import seustream as ss
from tests.engine.pattern.running import events_of, named, operate
from tests.engine.pattern.stock import S_TEXT, S, query


def test_46_skip_past_last_event() -> None:
    q = query(S_TEXT.replace("RETURN", "AFTER MATCH SKIP PAST LAST EVENT RETURN"))
    assert named(S, [m.ids for m in operate(q, events_of(S))]) == {"a1 b1 c2 d1"}
    q = query(S_TEXT.replace("RETURN", "AFTER MATCH SKIP TO NEXT EVENT RETURN"))
    found = named(S, [m.ids for m in operate(q, events_of(S))])
    assert found == {"a1 b1 c2 d1", "a3 b1 c2 d1"}


@pytest.mark.parametrize("within", ["WITHIN 1 d", ""])
@pytest.mark.parametrize("pattern", ["A a; (B b | !C c)", "A a; B? b; !C c", "A a; (B b | C* c)"])
def test_of_ways_that_end_at_different_times_one_counts(pattern: str, within: str) -> None:
    """One of them is certain only at the end of the stream, whose time its matches do not have."""
    text = (
        f"PATTERN {pattern} FROM s {within} AFTER MATCH SKIP TO NEXT EVENT RETURN a.ts, b.ts AS b"
    )
    rows = {"ts": [0, 1], "type": ["A", "B"], "x": [1, 2]}
    assert [row[:2] for row in ss.run(text, s=rows)["q0"].rows()] == [(0, 1)]
