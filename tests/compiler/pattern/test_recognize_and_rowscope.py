"""MATCH_RECOGNIZE: the meaning of its clauses, and every mistake in them."""

from __future__ import annotations

import itertools

import pytest

from seustream.compiler.errors import CompileError
from seustream.compiler.pattern import rows
from seustream.compiler.pattern.statements import compile_pattern
from tests.compiler.pattern.queries import T

RECOGNIZE = "SELECT * FROM t MATCH_RECOGNIZE ({})"
ROWS = [
    ("P017", "«PATTERN (A B) DEFINE A AS TRUE"),
    ("P017", "ORDER BY «price PATTERN (A B) DEFINE A AS TRUE"),
    ("P017", "ORDER BY «ts DESC PATTERN (A B) DEFINE A AS TRUE"),
    ("P017", "ORDER BY ts, «price PATTERN (A B) DEFINE A AS TRUE"),
    ("P017", "ORDER BY ts ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A «{- B -})"),
    ("P017", "ORDER BY ts PATTERN («PERMUTE(A, B, C, D, E, F, G))"),
    ("P017", "ORDER BY ts PATTERN («A{30000} B)"),
    ("P017", "ORDER BY ts PATTERN (A B) DEFINE A AS «A[1].price > 1"),
    ("P009", "ORDER BY ts PATTERN (A«{3,2} B) DEFINE A AS TRUE"),
    ("P009", "ORDER BY ts PATTERN (A«{0} B) DEFINE A AS TRUE"),
    ("P006", "ORDER BY ts PATTERN (A B) DEFINE «Q AS TRUE"),
    ("P006", "ORDER BY ts PATTERN (A B) SUBSET U = (A, «Q) DEFINE A AS TRUE"),
    ("P006", "ORDER BY ts PATTERN (A B) SUBSET U = (A, B) DEFINE «U AS TRUE"),
    ("P006", "ORDER BY ts AFTER MATCH SKIP TO LAST «Q PATTERN (A B) DEFINE A AS TRUE"),
    ("P006", "ORDER BY ts PATTERN (A B) DEFINE A AS CLASSIFIER(«Q) = 'B'"),
    ("P004", "ORDER BY ts PATTERN (A B) SUBSET «B = (A, B) DEFINE A AS TRUE"),
    ("P004", "ORDER BY ts PATTERN (A B) DEFINE A AS TRUE, «A AS FALSE"),
    ("P004", "PARTITION BY price ORDER BY ts MEASURES A.ts AS «price PATTERN (A B)"),
    ("P003", "ORDER BY ts PATTERN (A B) DEFINE A AS A.«q > 1"),
    ("P014", "ORDER BY ts PATTERN (A B) DEFINE B AS «sum(A.price + B.price) > 1"),
    ("P014", "ORDER BY ts PATTERN (A B) DEFINE B AS «sum(1) > 1"),
    ("P015", "ORDER BY ts PATTERN (A+ B) DEFINE B AS «count(DISTINCT A.*) > 1"),
    ("P015", "ORDER BY ts PATTERN (A+ B) DEFINE B AS «count(DISTINCT A) > 1"),
    ("P015", "ORDER BY ts PATTERN (A B) DEFINE B AS «FINAL LAST(A.price) > 1"),
    ("P015", "ORDER BY ts PATTERN (A B) DEFINE B AS «FINAL count(DISTINCT A.price) > 1"),
    ("P015", "ORDER BY ts MEASURES «FINAL LAST(DISTINCT A.price) AS p PATTERN (A B)"),
    ("P015", "ORDER BY ts PATTERN (A B) DEFINE B AS «RUNNING PREV(A.price) > 1"),
    ("P015", "ORDER BY ts PATTERN (A B) DEFINE B AS PREV(«A.price + B.price) > 1"),
    ("P015", "ORDER BY ts PATTERN (A B) DEFINE B AS PREV(«1) > 1"),
    ("P015", "ORDER BY ts PATTERN (A B) DEFINE B AS PREV(B.price, «B.price) > 1"),
    ("P015", "ORDER BY ts PATTERN (A B) DEFINE B AS MATCH_NUMBER(1) > 1"),
    ("P015", "ORDER BY ts PATTERN (A B) DEFINE B AS «A > 1"),
    ("P020", "ORDER BY ts PATTERN (A B) DEFINE B AS sum(«PREV(A.price)) > 1"),
    ("P020", "ORDER BY ts PATTERN (A B) DEFINE B AS FIRST(«PREV(A.price)) > 1"),
]


@pytest.mark.parametrize(("code", "inside"), ROWS)
def test_05_match_recognize(code: str, inside: str) -> None:
    statement = RECOGNIZE.format(inside)
    at = 0 if inside.startswith("«PATTERN") else statement.find("«")
    with pytest.raises(CompileError) as error:
        compile_pattern(statement.replace("«", ""), T, bounded=True)
    found = {(problem.kind, problem.span.start) for problem in error.value.problems}
    assert (code, at) in found or at < 0, str(error.value)
    assert code in {kind for kind, _ in found}


@pytest.mark.parametrize("header", ["", "CREATE STREAM m AS "])
def test_a_match_without_columns_is_refused(header: str) -> None:
    text = f"{header}SELECT «* FROM t MATCH_RECOGNIZE (ORDER BY ts PATTERN (A))"
    with pytest.raises(CompileError) as error:
        compile_pattern(text.replace("«", ""), T, bounded=True)
    (problem,) = error.value.problems
    assert (problem.kind, problem.span.start) == ("P003", text.index("«"))
    assert "MEASURES" in str(problem.hint)
    rows_of = "ORDER BY ts ALL ROWS PER MATCH PATTERN (A)"
    compile_pattern(RECOGNIZE.format(rows_of), T, bounded=True)


@pytest.mark.parametrize(("alias", "good"), [("AS m", "m"), ('"my m"', '"My M"'), ("", "T")])
def test_columns_are_qualified_by_the_name_of_the_matches(alias: str, good: str) -> None:
    inside = "ORDER BY ts MEASURES A.price AS p PATTERN (A)"
    text = f"SELECT {{}}.p, p FROM t MATCH_RECOGNIZE ({inside}) {alias}"
    compile_pattern(text.format(good), T, bounded=True)
    with pytest.raises(CompileError) as error:
        compile_pattern(text.format("x"), T, bounded=True)
    (problem,) = error.value.problems
    assert (problem.kind, problem.span.start) == ("P006", 7)
    assert f"{good.strip(chr(34)).lower()}.p" in str(problem.hint).lower()


def row_query(inside: str) -> rows.RowQuery:
    found = compile_pattern(RECOGNIZE.format(f"PARTITION BY kind {inside}"), T, bounded=True)
    assert isinstance(found, rows.RowQuery)
    return found


def test_a_row_pattern_is_what_is_written() -> None:
    found = row_query("ORDER BY ts PATTERN (^ A (B | C)+? {- A -}{2,3} $) DEFINE A AS TRUE")
    assert found.variables == ("A", "B", "C")
    one = rows.One
    assert found.pattern == rows.RowSequence(
        (
            rows.Anchor.FIRST,
            one(0),
            rows.Repeat(rows.RowChoice((one(1), one(2))), 1, None, True),
            rows.Repeat(one(0, True), 2, 3),
            rows.Anchor.LAST,
        )
    )


def test_permute_is_every_order_the_written_one_first() -> None:
    found = row_query("ORDER BY ts PATTERN (PERMUTE(A, B, C)) DEFINE A AS TRUE").pattern
    assert isinstance(found, rows.RowChoice)
    orders = [tuple(rows.variables(part)) for part in found.parts]
    assert orders[0] == (0, 1, 2)
    assert sorted(orders) == sorted(itertools.permutations(range(3)))


def test_names_are_the_last_row_of_a_variable_or_the_row_at_hand() -> None:
    found = row_query(
        "ORDER BY ts MEASURES A.price AS a, LAST(A.price, 2) AS b, PREV(price) AS c,"
        " FINAL FIRST(U.price) AS d PATTERN (A B) SUBSET U = (A, B) DEFINE B AS TRUE"
    )
    at = [output.expression for output in found.outputs]
    shapes = [(e.among, e.first, e.back, e.offset, e.final) for e in at if isinstance(e, rows.At)]
    assert shapes == [
        (0b01, False, 0, 0, False), (0b01, False, 2, 0, False), (0b11, False, 0, -1, False),
        (0b11, True, 0, 0, True),
    ]  # fmt: skip
