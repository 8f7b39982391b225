"""A PATTERN statement bound to the catalogue: its window, its elements, its defaults."""

from __future__ import annotations

import pytest

import seustream as ss
from seustream.compiler.errors import CompileError
from seustream.compiler.pattern.ir import Mode, Skip, Strategy
from seustream.compiler.pipeline import compile_text
from tests.compiler.pattern.queries import query


def test_06_within_may_be_missing_on_bounded_input() -> None:
    with pytest.raises(CompileError, match="P010"):
        query("PATTERN A; B RETURN *")
    assert query("PATTERN A; B RETURN *", bounded=True).window is None


@pytest.mark.parametrize(
    ("written", "window"),
    [
        ("1.5 min", 90_000),
        ("10 ms", 10),
        ("2 sec", 2_000),
        ("0.5 d", 43_200_000),
        ("1 Hours", 3_600_000),
    ],
)
def test_07_units(written: str, window: int) -> None:
    assert query(f"PATTERN A WITHIN {written} RETURN *").window == window


def test_07_half_a_millisecond() -> None:
    with pytest.raises(CompileError, match="P011"):
        query("PATTERN A WITHIN 0.5 ms RETURN *")


def test_08_at_least_three_ways() -> None:
    forms = [query(f"PATTERN A{q}; B WITHIN 1 s RETURN *").elements for q in ("^3", "{3}", "{3,}")]
    assert forms[0] == forms[1] == forms[2]
    assert (forms[0][0].least, forms[0][0].most) == (3, None)


def test_absences_of_one_type_need_no_names() -> None:
    found = query("PATTERN A; !N; B; !N; C WITHIN 1 s RETURN *")
    assert [e.negated for e in found.elements] == [False, True, False, True, False]


def test_defaults() -> None:
    found = query("PATTERN A; B WITHIN 1 s RETURN *")
    assert (found.strategy, found.mode, found.skip) == (Strategy.ANY, Mode.GROUP, Skip.NONE)
    assert (found.stream.name, found.type_column) == ("stock", "type")


def test_a_list_divides_no_stream() -> None:
    text = "CREATE STREAM R (a int); CREATE STREAM L AS SELECT 'x' AS type, array_agg(a) AS l FROM R GROUP BY TUMBLE(ts, 2);"
    with pytest.raises(CompileError, match="P015 a list is no key of PARTITION BY"):
        compile_text(f"{text} PATTERN x A FROM L PARTITION BY l WITHIN 1 s RETURN a.type")


WHOLE = "b.x > a.x OR a.x > c.x"
BESIDE = "b[i].x < a.x OR b[i].x > b[i-1].x"


@pytest.mark.parametrize(
    ("pattern", "condition", "using", "x", "want"),
    [
        ("A a; !B b; C c", WHOLE, "", [5, 9, 1], [(0,)]),
        ("A a; B b; C c", WHOLE, "USING NEXT", [5, 9, 4, 7], []),
        ("A a; B+ b; C c", BESIDE, "", [5, 3, 6, 1], []),
        ("A a; B+ b; C c", BESIDE, "USING NEXT", [5, 3, 6, 1], [(0,)]),
    ],
)
def test_a_condition_is_one_whatever_its_form(
    pattern: str, condition: str, using: str, x: list[int], want: list[tuple[int]]
) -> None:
    """What determines which events forbid a match, or are taken, is not split into parts about others."""
    types = ["A", *["B"] * (len(x) - 2), "C"]
    rows = {"ts": [*range(len(x))], "type": types, "x": x}
    for form in (f"NOT ({condition})", f"({condition}) IS FALSE"):
        text = f"PATTERN {pattern} FROM s WHERE {form} WITHIN 10 ms {using} RETURN a.ts"
        assert [row[:1] for row in ss.run(text, s=rows)["q0"].rows()] == want


def test_a_condition_is_split_where_its_parts_mean_the_same() -> None:
    where = "NOT (a.price > b.price OR a.price = b.price + 3)"
    q = query(f"PATTERN ANY a; ANY b FROM stock WHERE {where} WITHIN 10 ms RETURN *")
    assert [c.text for c in q.conjuncts] == ["a.price <= b.price", "a.price <> b.price + 3"]
