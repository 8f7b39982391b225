"""The program of a row pattern tries alternatives in the order of preference, and decides
conditions as soon as it can."""

from __future__ import annotations

from tests.engine.pattern.recognize.explained import facts, query


def test_the_automaton_has_the_ways_in_the_order_of_preference() -> None:
    of = facts(query("A+? (B | C{2})", "B AS B.x > 1"))["automaton"]
    assert of["states"] == ["A", "B", "C", "C:2", "match"]
    ways = [(edge["source"], edge["target"]) for edge in of["edges"]]
    assert ways == [
        ("", "A"),
        ("A", "B"),
        ("A", "C"),
        ("A", "A"),
        ("B", "match"),
        ("C", "C:2"),
        ("C:2", "match"),
    ]
    assert [edge["conditions"] for edge in of["edges"]][1] == ["B.x > 1"]


def test_conditions_say_when_they_are_decided() -> None:
    found = facts(
        query(
            "A B C D",
            "A AS A.x > PREV(A.x), B AS B.x > A.x AND B.x > 2, C AS sum(A.x) > 1,"
            " D AS LAST(D.x, 0) < 10",
        )
    )["conditions"]
    assert [(one["mentions"], one["decided"]) for one in found] == [
        (["A"], "once a row"),
        (["B"], "once a row (1), compared by the search (1)"),
        (["C"], "evaluated on each way"),
        (["D"], "once a row"),
    ]
