"""A search in parts gives the matches of the whole search, in the same order."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from seustream.engine.pattern.batch import needed, of_events
from seustream.engine.pattern.boxes import SearchBox, cuts, whole
from seustream.engine.pattern.event import BEGIN_OF_TIME, END_OF_STREAM, Event, Match
from seustream.engine.pattern.found import Found
from seustream.engine.pattern.meaning import Meaning
from seustream.engine.pattern.planner import supports
from seustream.engine.pattern.vector import ColumnSearch
from tests.engine.pattern.generate import query_of
from tests.engine.pattern.running import operate

SINGLE = "PATTERN A a; B b; C c WHERE a.x <= c.x WITHIN 60 ms USING ANY RETURN *"
QUERIES = [
    SINGLE,
    "PATTERN A a; B b; C c WITHIN 60 ms USING ANY RETURN *",
    "PATTERN A a; B b PARTITION BY k WITHIN 60 ms USING ANY RETURN *",
    "PATTERN A a; !D d; B b WHERE d.x = a.x WITHIN 60 ms USING ANY RETURN *",
    "PATTERN A a; B b; !C c WITHIN 9 ms USING ANY RETURN *",
    "PATTERN A a; B b; !D d WHERE d.x = b.x USING ANY RETURN *",
    "PATTERN A+ a; B b; C c WITHIN 60 ms USING ANY GROUP RETURN *",
    "PATTERN A+ a; B b; C c PARTITION BY k WHERE a[i].x < b.x + 3 WITHIN 60 ms USING ANY GROUP RETURN *",
    "PATTERN A+ a; B b; C c; !D d WITHIN 30 ms USING ANY GROUP RETURN *",
    "PATTERN A a; B+ b; C c; D d WITHIN 60 ms USING ANY GROUP RETURN *",
    "PATTERN A a; B b; C+ c USING ANY GROUP RETURN *",
    "PATTERN A a; B+ b; C c WITHIN 10 ms USING ANY SUBSETS RETURN *",
    "PATTERN A+ a; B b; !D d; C{2,3} c WITHIN 9 ms USING ANY SUBSETS RETURN *",
    "PATTERN A{2} a; B+ b PARTITION BY k WITHIN 9 ms USING ANY SUBSETS RETURN *",
    "PATTERN A a; B+ b; C c WHERE b[i].x >= a.x WITHIN 10 ms USING ANY SUBSETS RETURN *",
    "PATTERN A a; B+ b; C c WITHIN 60 ms USING NEXT RETURN *",
]


def events(chance: random.Random, count: int) -> list[Event]:
    """Returns events of which several often have the same time."""
    times = sorted(chance.randrange(count) for _ in range(count))
    return [
        Event(ts, seq, kind := chance.choice("AABBCCD"),
              {"type": kind, "x": chance.randrange(4), "y": None, "k": chance.choice(("p", "q"))})
        for seq, ts in enumerate(times)
    ]  # fmt: skip


def shown(matches: Sequence[Match]) -> list[object]:
    return [(match.D, match.ids) for match in matches]


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("seed", range(3))
def test_parts_are_the_whole_in_order(seed: int, text: str) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    query, given = query_of(text, bounded=True), events(chance, 40)
    step = chance.choice([(), (7, 20)])
    for engine in [name for name, reason in supports(query).items() if reason is None]:
        want = operate(query, given, engine, step)
        assert want
        for part in (3, 50):
            assert shown(operate(query, given, engine, step, part)) == shown(want), (engine, part)


def parts_of(text: str, given: Sequence[Event], most: int) -> list[Found]:
    query = query_of(text, bounded=True)
    search = ColumnSearch(Meaning(query), most=most)
    batch = of_events(given, needed(query))
    return [*search.parts(batch, BEGIN_OF_TIME, END_OF_STREAM)]


def test_no_part_is_larger_than_asked_for() -> None:
    given = events(random.Random(1), 60)
    found = parts_of(SINGLE, given, 30)
    assert len(found) > 10
    assert max(part.events for part in found) <= 30
    grouped = parts_of(QUERIES[6], given, 30)
    assert all(part.events <= 30 or len(part) == 1 for part in grouped)


def test_matches_by_arrival_are_not_cut_by_time() -> None:
    """Where events arrive in another order than that of their times, matches of one time come in
    the order of arrivals, so that they are ordered together."""
    chance, query = random.Random(2), query_of(SINGLE, bounded=True)
    times = list(range(40))
    chance.shuffle(times)
    given = sorted(
        (Event(ts, seq, one.type, one.attrs)
         for seq, (ts, one) in enumerate(zip(times, events(chance, 40), strict=True))),
        key=lambda event: event.order,
    )  # fmt: skip
    assert len(parts_of(SINGLE, given, 3)) == 1
    for engine in ("columns", "compiled", "optiseq"):
        found = shown(operate(query, sorted(given, key=lambda e: e.seq), engine, part=3))
        assert found == sorted(found)


def test_a_box_is_halved_where_the_order_divides_it() -> None:
    times = np.array([1, 2, 2, 3, 5, 5, 6])
    rows = [np.array([0, 1, 2]), np.array([3]), np.array([4, 5, 6])]
    query = query_of(QUERIES[1], bounded=True)
    box = whole(query, times, (2, 6))
    assert box == SearchBox(((0, 7), (0, 7), (3, 7)), (2, 6))
    by_end = box.halves(cuts(query, False), times, rows)
    assert [one.spans[2] for one in by_end] == [(3, 6), (6, 7)], "not between events of one time"
    by_first = by_end[0].halves(cuts(query, False), times, rows)
    assert [one.spans[0] for one in by_first] == [(0, 1), (1, 7)]
    assert not SearchBox(((0, 1), (3, 4), (4, 5)), (2, 6)).halves(cuts(query, False), times, rows)


def test_elements_from_the_first_group_on_do_not_divide() -> None:
    assert cuts(query_of(QUERIES[6], bounded=True), False) == [("times", 1)]
    assert cuts(query_of(QUERIES[8], bounded=True), False) == []
    assert cuts(query_of(QUERIES[9], bounded=True), False) == [("times", 2), ("rows", 0)]
    waits = query_of(QUERIES[5], bounded=True)
    assert cuts(waits, False) == [("rows", 0), ("rows", 1)]
    assert cuts(waits, True) == [("times", 1), ("rows", 0), ("rows", 1)]
