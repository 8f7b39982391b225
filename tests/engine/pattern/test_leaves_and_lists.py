"""Leaves of expressions one by one and over lists of events: the same values and the same
faults."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults, Place
from seustream.compiler.language.types import REAL, VARCHAR
from seustream.engine.pattern.batch import values
from seustream.engine.pattern.columns import Once, Prepared, holds, values_of
from seustream.engine.pattern.event import END_OF_STREAM, Event
from seustream.engine.pattern.leaves import evaluator
from seustream.engine.pattern.lists import Bindings
from seustream.engine.pattern.operator import PatternOperator
from tests.engine.pattern.events import EXPRESSIONS, STREAM, events_of, pairs
from tests.engine.pattern.generate import query_of

REALS = Stream("s", (Column("type", VARCHAR), Column("r", REAL)))


@pytest.mark.parametrize("text", EXPRESSIONS)
@pytest.mark.parametrize("seed", range(3))
def test_columns_agree_with_single_values(text: str, seed: int) -> None:
    events = events_of(seed, 40)
    expressions, lists, (first, second) = pairs(events, text)
    for e in expressions:
        for part in x.walk(e):
            got, want = Faults(), dict[Place, int]()
            found = values(values_of(part, Bindings(lists, len(first), {0: first, 1: second}), got))
            noted: list[Place] = []
            one = evaluator(part, noted)
            for i, j, value in zip(first, second, found, strict=True):
                about = (x.show(part), events[i].attrs, events[j].attrs)
                assert one(([(events[i],), (events[j],)], (0, 0))) == value, about
                for place in noted:
                    want[place] = want.get(place, 0) + 1
                noted.clear()
            assert got.count == want, x.show(part)


def test_a_part_about_one_event_is_hoisted_unless_it_faults() -> None:
    def hoists(text: str) -> list[tuple[str, bool]]:
        events = [Event(t, t, "A", {"x": t % 5, "y": 1.0 + t}) for t in range(40)]
        (e,), lists, (first, second) = pairs(events, text)
        bindings = Bindings(lists, len(first), {0: first, 1: second})
        return [(part.show(), bindings.hoists(part)) for part in Prepared(e).parts]

    assert hoists("a.x + 1 > b.y * 2 + 1") == [("a.x + 1", True), ("b.y * 2.0 + 1.0", True)] or (
        [of for _, of in hoists("a.x + 1 > b.y * 2 + 1")] == [True, True]
    )
    assert [of for _, of in hoists("a.y > 10 / b.x")] == [False]
    assert hoists("a.x > b.x") == []


def test_few_bindings_are_not_worth_a_whole_list() -> None:
    events = [Event(t, t, "A", {"x": t, "y": 1.0 + t}) for t in range(40)]
    (e,), lists, _ = pairs(events, "a.x > b.y * 2")
    few = Bindings(lists, 2, {0: np.array([1, 2]), 1: np.array([3, 4])})
    (part,) = Prepared(e).parts
    assert isinstance(part, Once)
    assert not few.hoists(part)
    assert holds(Prepared(e), few).tolist() == [False, False]


@pytest.mark.parametrize("how", ["", "USING NEXT", "USING STRICT", "USING ANY SUBSETS"])
@pytest.mark.parametrize("seed", range(4))
def test_zero_is_one_key_whatever_its_sign(how: str, seed: int) -> None:
    """Compares matchers of lists with the one of single events."""
    chance = random.Random(seed)
    for stream, name in ((STREAM, "y"), (REALS, "r")):
        sought = "B a; A+ c; A d; !B e" if "SUBSETS" in how else "B a; A d"
        text = f"PATTERN {sought} PARTITION BY {name} WITHIN 6 ms {how} RETURN a.ts AS x, d.ts AS y"
        query = query_of(text, stream=stream)
        events = [
            Event(t, t, chance.choice("AAB"), {name: chance.choice((0.0, -0.0, 1.0, None))})
            for t in range(40)
        ]
        found = {}
        for engine in ("nfa", "compiled") if "SUBSETS" in how else ("nfa", "compiled", "columns"):
            operator = PatternOperator(query, engine)
            for event in events:
                operator.push(event)
            rows, _ = operator.advance_table(END_OF_STREAM)
            found[engine] = Counter(map(str, rows.to_pylist()))
        assert found["nfa"]
        assert all(one == found["nfa"] for one in found.values())
