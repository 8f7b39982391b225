"""The search of ordered lists: its order, and the candidates it examines."""

from __future__ import annotations

from seustream.engine.pattern.event import BEGIN_OF_TIME
from seustream.engine.pattern.meaning import Meaning
from seustream.engine.pattern.optiseq import OptiSeq
from tests.engine.pattern.running import events_of
from tests.engine.pattern.stock import S_TEXT, S, query


def test_13_plan_and_levels() -> None:
    matcher = OptiSeq(Meaning(query(S_TEXT)), "paper", tighten=False)
    events = events_of(S)
    found = [*matcher.advance(events, BEGIN_OF_TIME, 20)]
    assert len(found) == 3
    assert matcher.order == (1, 2, 3, 0)
    assert matcher.levels == [3, 2, 5]


def test_13_tightening_spares_a_candidate() -> None:
    matcher = OptiSeq(Meaning(query(S_TEXT)), "paper", tighten=True)
    assert len([*matcher.advance(events_of(S), BEGIN_OF_TIME, 20)]) == 3
    # For b1 the search never touches c3; the range of b2 contains it.
    assert matcher.levels == [2, 2, 5]
