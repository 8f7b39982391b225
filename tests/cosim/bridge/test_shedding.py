"""Tests queries that give way, by a clock that the test sets."""

from __future__ import annotations

from seustream.compiler.language.options import QueryOptions
from seustream.cosim.bridge.shedding import Shedding

FIRM = QueryOptions(max_latency=200, priority=3)
QUERIES = {
    "firm": FIRM,
    "a": QueryOptions(priority=0),
    "b": QueryOptions(),
    "c": QueryOptions(),
    "d": QueryOptions(),
}


def test_half_of_the_lowest_priority_gives_way_at_a_time_and_comes_back_in_turn() -> None:
    shedding, shed = Shedding(), {}
    steps = []
    for now in range(0, 8_000, 500):
        shed = shedding.look(now, 900, QUERIES, shed)
        if not steps or steps[-1] != sorted(shed):
            steps.append(sorted(shed))
    assert steps == [["a"], ["a", "c", "d"], ["a", "b", "c", "d"]]
    assert shed["a"] == "rows wait for 900 ms, firm has max_latency 200 ms"
    assert shedding.missed == {"firm"}, "there is nobody left to give way, and it says so"
    steps = []
    for now in range(8_000, 40_000, 500):
        shed = shedding.look(now, 10, QUERIES, shed)
        if not steps or steps[-1] != (sorted(shed)):
            steps.append(sorted(shed))
    assert steps == [["a", "b", "c", "d"], ["a", "d"], ["a"], []]
    assert not shedding.missed


def test_nobody_gives_way_to_its_own_priority_or_while_rows_wait_for_less() -> None:
    equals = {"x": QueryOptions(max_latency=200, priority=1), "y": QueryOptions()}
    shedding = Shedding()
    assert shedding.look(0, 900, equals, {}) == {}
    assert shedding.missed == {"x"}
    assert shedding.look(0, 200, QUERIES, {}) == {}
    assert Shedding().look(0, 10**6, {"b": QueryOptions()}, {}) == {}


def test_a_return_that_does_not_last_is_tried_later_the_next_time() -> None:
    shedding = Shedding()
    queries = {"firm": FIRM, "a": QueryOptions()}
    returns, now = [], 0
    for _ in range(3):
        shed = shedding.look(now, 900, queries, {})
        assert shed
        begun = now
        while shed:
            now += 100
            shed = shedding.look(now, 0, queries, shed)
        returns.append(now - begun)
        now += 1_000
    assert returns[0] < returns[1] < returns[2]


def test_rows_that_wait_a_little_keep_queries_away_and_a_drop_forgets_them() -> None:
    shedding = Shedding()
    shed = shedding.look(0, 900, QUERIES, {})
    for now in range(1_000, 60_000, 1_000):
        assert shedding.look(now, 100, QUERIES, shed) == shed
    # Without a query that has a max_latency, no other has to give way any more.
    some = {name: of for name, of in QUERIES.items() if name != "firm"}
    assert shedding.look(60_000, 0, some, shed) == {}
