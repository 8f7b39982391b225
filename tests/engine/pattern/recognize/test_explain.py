"""EXPLAIN for MATCH_RECOGNIZE."""

from __future__ import annotations

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import INT
from seustream.compiler.pattern.ir import MatchQuery
from seustream.compiler.pattern.statements import compile_pattern
from seustream.engine.pattern.explain import as_text, facts
from seustream.engine.pattern.picture import picture

S = Stream("s", (Column("x", INT),))


def query(pattern: str, define: str) -> MatchQuery:
    text = f"SELECT * FROM s MATCH_RECOGNIZE (ORDER BY ts PATTERN ({pattern}) DEFINE {define})"
    return compile_pattern(text, S, bounded=True)


def test_the_automaton_has_the_ways_in_the_order_of_preference() -> None:
    of = facts(query("A+? (B | C{2})", "B AS B.x > 1"))["automaton"]
    assert of["states"] == ["A", "B", "C", "C:2", "match"]
    ways = [(edge["from"], edge["to"]) for edge in of["edges"]]
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
    assert [(one["mentions"], one["class"]) for one in found] == [
        (["A"], "once a row"),
        (["B"], "once a row (1), compared by the search (1)"),
        (["C"], "evaluated on each way"),
        (["D"], "once a row"),
    ]


def test_text_and_picture() -> None:
    one = query("A{1,3} B", "A AS A.x > 1")
    text = "\n".join(as_text(one))
    assert "one row per match, window unbounded" in text
    assert "once a row" in text
    assert "A:3" in "\n".join(as_text(one, "automaton"))
    assert picture(one, "automaton").startswith("<svg")
    assert facts(query("A{100}", "A AS TRUE"))["automaton"]["states"] == ["match"]
