"""Properties of patterns and row patterns, compared with their definitions."""

from __future__ import annotations

import itertools
import random

import pytest

from seustream.compiler.language import expressions as x
from seustream.compiler.pattern import ir, rows
from seustream.compiler.pattern.ir import Element
from seustream.compiler.pattern.statements import compile_pattern
from tests.compiler.pattern.queries import T, query


@pytest.mark.parametrize(
    ("element", "shown"),
    [
        (Element("a", ("A",)), "A"),
        (Element("x", ("A",)), "A x"),
        (Element("any", ()), "ANY any"),
        (Element("x", ("A", "B")), "(A | B) x"),
        (Element("n", ("N",), negated=True), "!N"),
        (Element("k", ("A",), least=1), "A+ k"),
        (Element("k", ("A",), least=0), "A* k"),
        (Element("k", ("A",), least=2, most=5), "A{2,5} k"),
        (Element("k", ("A",), least=2), "A{2,} k"),
    ],
)
def test_elements_are_shown_as_they_are_written(element: Element, shown: str) -> None:
    assert str(element) == shown
    assert element.kleene == (element.least is not None)
    assert element.single == (not element.negated and not element.kleene)


@pytest.mark.parametrize(
    ("text", "waits", "horizon"),
    [
        ("A; B", False, 1000),
        ("A; !B", True, 1000),
        ("!A; B; !C", True, 2000),
        ("A; B+ k", True, 1000),
        ("A+ k; B", False, 1000),
        ("!A; B; C+ l", True, 2000),
        ("A; B+ k USING NEXT", False, 1000),
        ("A; B+ k USING ANY SUBSETS", False, 1000),
    ],
)
def test_how_long_a_match_is_waited_for(text: str, waits: bool, horizon: int) -> None:
    sequence, _, strategy = text.partition(" USING")
    using = f" USING{strategy}" if strategy else ""
    found = query(f"PATTERN {sequence} WITHIN 1 s{using} RETURN *")
    assert (found.waits, found.horizon) == (waits, horizon)
    assert query(f"PATTERN {sequence}{using} RETURN *", bounded=True).horizon is None


def test_what_an_expression_mentions_also_within_aggregates() -> None:
    found = query(
        "PATTERN A; B+ k; C WHERE avg(k[..i-1].price) < k[i].price + a.volume AND c.price > 1"
        " WITHIN 1 s USING NEXT RETURN *"
    )
    by = {conjunct.text: conjunct.expression for conjunct in found.conjuncts}
    step, constant = by.values()
    assert ir.references(step) == (0, 1)
    assert {value.attribute for value in ir.values(step)} == {"price", "volume"}
    assert ir.references(constant) == (2,)
    assert "[..i-1]" in x.show(step)


def language(pattern: rows.RowPattern, most: int) -> set[tuple[int, ...]]:
    """By definition: returns the sequences of variables up to this length that a pattern without
    anchors matches."""
    match pattern:
        case rows.One():
            return {(pattern.variable,)}
        case rows.RowChoice():
            return set().union(*(language(part, most) for part in pattern.parts))
        case rows.Repeat():
            one, found, last = language(pattern.part, most), {()}, {()}
            every = {()} if pattern.least == 0 else set()
            for n in range(1, (most if pattern.most is None else pattern.most) + 1):
                last = {a + b for a in last for b in one if len(a + b) <= most}
                if n >= pattern.least:
                    every |= last
                found |= last
            return every
    found = {()}
    for part in rows.parts(pattern):
        found = {a + b for a in found for b in language(part, most) if len(a + b) <= most}
    return found


def random_pattern(chance: random.Random, depth: int) -> rows.RowPattern:
    if depth == 0 or chance.random() < 0.2:
        return rows.One(chance.randrange(3))
    parts = tuple(random_pattern(chance, depth - 1) for _ in range(chance.randint(1, 2)))
    match chance.randrange(3):
        case 0:
            return rows.RowSequence(parts)
        case 1:
            return rows.RowChoice(parts)
    least = chance.randint(0, 2)
    return rows.Repeat(parts[0], least, chance.choice([None, least + 1]))


def test_a_pattern_is_nullable_if_it_matches_no_rows() -> None:
    chance = random.Random(2)
    for _ in range(300):
        pattern = random_pattern(chance, 3)
        matched = language(pattern, 4)
        assert rows.nullable(pattern) == (() in matched), pattern
        assert {v for one in matched for v in one} <= set(rows.variables(pattern))
    assert rows.nullable(rows.RowSequence(()))
    assert rows.nullable(rows.Anchor.FIRST)
    for anchor, first in ((rows.Anchor.FIRST, True), (rows.Anchor.LAST, False)):
        repeated = rows.Repeat(anchor, 0, 1)
        assert rows.anchored(rows.RowSequence((rows.One(0), repeated))) == first


def test_the_fewest_rows_of_a_pattern_and_before_each_variable() -> None:
    chance = random.Random(3)
    for _ in range(300):
        pattern = random_pattern(chance, 3)
        matched = language(pattern, 5)
        if rows.fewest(pattern) <= 5:
            assert rows.fewest(pattern) == min(map(len, matched)), pattern
        before = rows.preceding(pattern)
        assert before.keys() == set(rows.variables(pattern))
        for variable, count in before.items():
            places = [one.index(variable) for one in matched if variable in one]
            assert min(places, default=count) >= count
            if rows.fewest(pattern) <= 2 and places:
                assert min(places) == count, pattern


def test_repetitions_count_as_often_as_they_are_written_out() -> None:
    one = rows.One(0)
    assert rows.steps(rows.Repeat(one, 0, 10)) == 10 * rows.steps(rows.Repeat(one, 0, 1))
    assert rows.steps(rows.Repeat(rows.Repeat(one, 9, 9), 9, 9)) > 81


def test_what_a_query_reads_is_found_in_conditions_and_columns() -> None:
    text = (
        "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES LAST(A.kind) AS k, sum(B.price) AS s"
        " PATTERN (A B) DEFINE B AS price > PREV(price))"
    )
    found = compile_pattern(text, T, bounded=True)
    assert isinstance(found, rows.RowQuery)
    assert {cell.attribute for cell in found.cells()} == {"kind", "price"}
    assert len(list(itertools.islice(found.leaves(), 9))) == 4
