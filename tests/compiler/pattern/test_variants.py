"""Variants of a sequence: which exist, what conditions become in each, and which are refused."""

from __future__ import annotations

import re

import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.errors import CompileError
from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.registry import AggregateFunction
from seustream.compiler.language.types import INT, VARCHAR
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.statements import compile_pattern

STREAM = Stream("s", (Column("type", VARCHAR), Column("x", INT)))


def query(text: str, how: str = "ANY SUBSETS") -> ir.PatternQuery:
    found = compile_pattern(f"PATTERN {text} WITHIN 9 ms USING {how} RETURN *", STREAM)
    assert isinstance(found, ir.PatternQuery)
    return found


def ways(text: str, how: str = "ANY SUBSETS") -> list[str]:
    return ["; ".join(map(str, way.elements)) for way in query(text, how).variants]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("A; B?; C", ["A; B; C", "A; C"]),
        ("A; B*; C", ["A; B+; C", "A; C"]),
        ("A; B{0,2}; C", ["A; B{1,2}; C", "A; C"]),
        ("(A+ | B)", ["A+", "B"]),
        ("(A; B | C)?; D", ["A; B; D", "C; D", "D"]),
        ("(A | B)? x; C", ["(A | B) x; C", "C"]),
        ("((A x | A y)? | B); C", ["A x; C", "A y; C", "C", "B; C"]),
        ("A?; B?", ["A; B", "A", "B"]),
        ("A; (!B | C)?", ["A; C", "A"]),
    ],
)
def test_ways(text: str, want: list[str]) -> None:
    assert ways(text) == want


def test_a_group_that_may_be_empty_and_is_the_largest_is_an_absence() -> None:
    assert ways("A; B*; C", "ANY") == ["A; B+; C", "A; !B; C"]
    with_group, without = query("A; B*; C WHERE b.x = a.x AND count(b) <> 1", "ANY").variants
    assert [c.cls.value for c in with_group.conjuncts] == ["member", "group"]
    assert [c.cls.value for c in without.conjuncts] == ["negated"]


@pytest.mark.parametrize(
    ("condition", "applies"),
    [
        ("b.x = a.x", None),
        ("NOT b.x + 1 > a.x", None),
        ("coalesce(b.x, NULL) > 1", None),
        ("CASE WHEN a.x > 1 THEN b.x ELSE NULL END > 1", None),
        ("(b.x = a.x OR c.x = a.x)", [(0, 1)]),
        ("coalesce(b.x, c.x) = 1", [(1,)]),
        ("b.x > a.x OR FALSE", None),
        ("(CASE WHEN b.x > 3 THEN a.x END) > 100", None),
        ("(CASE WHEN b.x > 3 THEN a.x ELSE c.x END) > 100", [(0, 1)]),
        ("coalesce(b.x > a.x, b.x < 3)", None),
        ("greatest(b.x, NULL) > a.x", None),
        ("greatest(b.x, c.x) > a.x", [(0, 1)]),
        ("NOT (b.x < a.x AND (b.x IS NULL OR a.x > 100))", None),
        ("NOT (b.x < a.x AND a.x > 100)", [(0,)]),
        ("b.x IS NULL", None),
        ("b.x IS NOT NULL", "never"),
        ("b.x IS DISTINCT FROM NULL", "never"),
    ],
)
def test_what_a_condition_says_without_an_element(condition: str, applies: object) -> None:
    """The second variant has only A and C."""
    found = query(f"A; B? b; C WHERE {condition}").variants
    if applies == "never":
        assert ["; ".join(map(str, way.elements)) for way in found] == ["A; B; C"]
        return
    assert [c.refs for c in found[1].conjuncts] == (applies or [])


@pytest.mark.parametrize("entry", AGGREGATES.values(), ids=[*AGGREGATES])
def test_an_aggregate_of_a_missing_group_is_that_of_no_rows(entry: AggregateFunction) -> None:
    call = entry.example.replace("*", "b")
    for name in ("x", "y", "name"):
        call = re.sub(rf"\b{name}\b", "b.type" if name == "name" else "b.x", call)
    way = query(f"A a; B* b; C c WHERE {call} IS NOT NULL").variants
    counts = entry.name in ("count", "approx_count_distinct")
    assert ["; ".join(map(str, one.elements)) for one in way] == ["A; B+; C", "A; C"][: 1 + counts]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("P001", "PATTERN A; «(B | C+) b; D"),
        ("P001", "PATTERN A; «!(B | C+); D"),
        ("P004", "PATTERN A; (B b | C «b)"),
        ("P007", "«PATTERN !A; (!B)?"),
        ("P008", "PATTERN A; «!B?; C"),
        ("P016", "«PATTERN A?; B?; C?; D?; ANY? e; ANY? f; ANY? g; A h"),
        ("P016", "«PATTERN (B* b | C* c); A"),
    ],
)
def test_mistakes(code: str, text: str) -> None:
    where = text.index("«")
    with pytest.raises(CompileError) as error:
        compile_pattern(f"{text.replace('«', '')} WITHIN 1 s RETURN *", STREAM)
    (problem,) = error.value.problems
    assert (problem.kind, problem.span.start) == (code, where), str(error.value)
