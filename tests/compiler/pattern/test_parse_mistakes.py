"""Every mistake in a pattern, with its code and its place."""

from __future__ import annotations

import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.errors import CompileError
from seustream.compiler.language.types import INT, VARCHAR
from seustream.compiler.pattern.statements import compile_pattern
from tests.compiler.pattern.queries import T

S = Stream("s", (Column("type", VARCHAR), Column("x", INT), Column("name", VARCHAR)))

# code, statement; the offending text begins at `«`
PATTERNS = [
    ("P001", "PATTERN «;B FROM s RETURN *"),
    ("P001", "PATTERN A; B FROM s WITHIN 1 s RETURN *«, a"),
    ("P001", "PATTERN A FROM s WHERE a.x «b.x WITHIN 1 s RETURN *"),
    ("P001", "PATTERN A«- FROM s WITHIN 1 s RETURN *"),
    ("P001", "PATTERN A FROM s WITHIN 1 s RETURN a.x «§"),
    ("P001", "PATTERN A a FROM s WHERE «mine.middle(a.x) > 2 WITHIN 1 s RETURN *"),
    ("P002", "«PATTERN A WITHIN 1 s RETURN *"),
    ("P002", "PATTERN A FROM «r WITHIN 1 s RETURN *"),
    ("P002", "PATTERN A FROM «t WITHIN 1 s RETURN *"),
    ("P002", "PATTERN A FROM t TYPE BY «kind WITHIN 1 s RETURN *"),
    ("P002", "PATTERN A FROM s TYPE BY «nope WITHIN 1 s RETURN *"),
    ("P003", "PATTERN A FROM s WHERE a.«z > 1 WITHIN 1 s RETURN *"),
    ("P003", "PATTERN A FROM s PARTITION BY «z WITHIN 1 s RETURN *"),
    ("P003", "PATTERN A FROM s WITHIN 1 s RETURN a.«z"),
    ("P004", "PATTERN A v; B «v FROM s WITHIN 1 s RETURN *"),
    ("P005", "PATTERN A; A b FROM s WHERE «a.x > 1 WITHIN 1 s RETURN *"),
    ("P006", "PATTERN A FROM s WHERE «q.x > 1 WITHIN 1 s RETURN *"),
    ("P006", "PATTERN A FROM s WHERE «cube(a.x) > 1 WITHIN 1 s RETURN *"),
    ("P007", "«PATTERN !A; !B FROM s WITHIN 1 s RETURN *"),
    ("P008", "PATTERN A; !B«+; C FROM s WITHIN 1 s RETURN *"),
    ("P008", "PATTERN A; !B«{2}; C FROM s WITHIN 1 s RETURN *"),
    ("P009", "PATTERN A; B«{0} FROM s WITHIN 1 s RETURN *"),
    ("P009", "PATTERN A; B«{3,2} FROM s WITHIN 1 s RETURN *"),
    ("P010", "PATTERN A; B FROM s RETURN «*"),
    ("P010", "PATTERN A; B FROM s «WITHIN 0 s RETURN *"),
    ("P010", "PATTERN A; B FROM s «WITHIN -1 s RETURN *"),
    ("P011", "PATTERN A; B FROM s «WITHIN 1e999999999 s RETURN *"),
    ("P011", "PATTERN A; B FROM s WITHIN 3 «parsecs RETURN *"),
    ("P011", "PATTERN A; B FROM s «WITHIN 0.5 ms RETURN *"),
    ("P012", "PATTERN A; !B; !C; D FROM s WHERE «b.x > c.x WITHIN 1 s RETURN *"),
    ("P013", "PATTERN A; !B; C FROM s WITHIN 1 s RETURN «b.x"),
    ("P013", "PATTERN A; !B; C FROM s WITHIN 1 s RETURN «b"),
    ("P013", "PATTERN A; !B; C FROM s WHERE sum(«b.x) > 1 WITHIN 1 s RETURN *"),
    ("P014", "PATTERN A FROM s WHERE «a[1].x > 1 WITHIN 1 s RETURN *"),
    ("P014", "PATTERN A; B+ FROM s WHERE «b[0].x > 1 WITHIN 1 s RETURN *"),
    ("P014", "PATTERN A; B+ FROM s WHERE «b[i-1].x > last(b).x WITHIN 1 s RETURN *"),
    ("P014", "PATTERN A; B+ FROM s WHERE «b[..i-1].x > 1 WITHIN 1 s RETURN *"),
    ("P014", "PATTERN A; B+ FROM s WITHIN 1 s RETURN «b[i-1].x"),
    ("P014", "PATTERN A FROM s WHERE sum(«a.x) > 1 WITHIN 1 s RETURN *"),
    ("P014", "PATTERN A; B+; C; D+; E FROM s WHERE «b[i-1].x > d.x WITHIN 1 s RETURN *"),
    ("P015", "PATTERN A FROM s WHERE «a.x WITHIN 1 s RETURN *"),
    ("P015", "PATTERN A FROM s WHERE «a.x > 'z' WITHIN 1 s RETURN *"),
    ("P015", "PATTERN A FROM s WHERE «a.name + 1 > 2 WITHIN 1 s RETURN *"),
    ("P015", "PATTERN A FROM s WHERE «a > 2 WITHIN 1 s RETURN *"),
    ("P015", "PATTERN A FROM s WHERE NOT «a.x WITHIN 1 s RETURN *"),
    ("P015", "PATTERN A FROM s WHERE «lower(a.x) = 'q' WITHIN 1 s RETURN *"),
    ("P015", "PATTERN A FROM s WHERE «mod(a.x) = 1 WITHIN 1 s RETURN *"),
    ("P015", "PATTERN A; B+; C; D+; E FROM s WITHIN 1 s RETURN «b.x + d.x"),
    ("P016", "PATTERN A; B+; C+ FROM s WITHIN 1 s «RETURN *"),
    ("P016", "PATTERN A+ FROM s WITHIN 1 s USING «ANY GROUP RETURN *"),
    ("P016", "PATTERN A+; B; C+ FROM s WITHIN 1 s USING «ANY RETURN *"),
    ("P018", "PATTERN A FROM s WHERE a.x > «:k WITHIN 1 s RETURN *"),
    ("P019", "PATTERN A FROM s WHERE a.x «% 2 = 1 WITHIN 1 s RETURN *"),
    ("P020", "PATTERN A; B+ FROM s WHERE sum(«avg(b.x)) > 1 WITHIN 1 s RETURN *"),
]


def place_of(statement: str) -> tuple[str, int]:
    return statement.replace("«", ""), statement.index("«")


@pytest.mark.parametrize(("code", "statement"), PATTERNS)
def test_05_code_and_place(code: str, statement: str) -> None:
    text, at = place_of(statement)
    with pytest.raises(CompileError) as error:
        compile_pattern(text, S, T)
    found = {(problem.kind, problem.span.start) for problem in error.value.problems}
    if (code, at) not in found and "USING" not in text and code == "P016":
        at = 0  # without USING the problem covers the whole statement
    assert (code, at) in found, str(error.value)
    assert all(str(p.message).startswith(p.kind) for p in error.value.problems)


def test_all_mistakes_are_reported_together() -> None:
    text = "PATTERN A; !B+; C{0} FROM s WHERE q.x > 1 AND a.z > 1 WITHIN 3 parsecs RETURN b"
    with pytest.raises(CompileError) as error:
        compile_pattern(text, S, T)
    kinds = [problem.kind for problem in error.value.problems]
    assert kinds == ["P008", "P009", "P006", "P003", "P011", "P013"]


MATCHES = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS k PATTERN (A){})"


@pytest.mark.parametrize(
    "behind",
    [
        " «WHERE k > 1",
        " AS m «where k > 1",
        " «UNION ALL SELECT * FROM s",
        " «WINDOW NOW",
        " m «JOIN s ON m.k = s.x",
        " «ORDER BY k",
        "«, s",
    ],
)
def test_what_stands_behind_the_matches_is_for_a_stream_of_them(behind: str) -> None:
    text, at = place_of(MATCHES.format("") + behind)
    with pytest.raises(CompileError) as error:
        compile_pattern(text, S, T, bounded=True)
    (problem,) = error.value.problems
    assert (problem.kind, problem.span.start) == ("P001", at)
    assert str(problem.hint).startswith("define a stream")


def test_an_expression_of_a_match_is_for_a_stream_of_them() -> None:
    with pytest.raises(CompileError) as error:
        compile_pattern(MATCHES.format("").replace("*", "k + 1"), S, T, bounded=True)
    (problem,) = error.value.problems
    assert str(problem.hint).startswith("define a stream")


@pytest.mark.parametrize("rows", ["SELECT 1 FROM s", "SELECT a.x FROM s", "SELECT * FROM s"])
@pytest.mark.parametrize(
    "text",
    [
        "PATTERN A; B FROM s WHERE EXISTS ({}) WITHIN 1 s RETURN a.x",
        "PATTERN A; B FROM s WHERE NOT a.x IN ({}) WITHIN 1 s RETURN a.x",
        MATCHES.format(" DEFINE A AS EXISTS ({})"),
    ],
)
def test_a_subquery_is_for_a_select(text: str, rows: str) -> None:
    with pytest.raises(CompileError) as error:
        compile_pattern(text.format(rows), S, T, bounded=True)
    (problem, *_) = error.value.problems
    assert "CREATE STREAM j AS SELECT" in str(problem.hint)


@pytest.mark.parametrize(
    "text", ["PATTERN A FROM «k WITHIN 1 s RETURN *", MATCHES.replace("t M", "«k M").format("")]
)
def test_a_table_is_no_stream(text: str) -> None:
    text, at = place_of(text)
    table = Stream("k", (Column("type", VARCHAR), Column("price", INT)), table=True)
    with pytest.raises(CompileError) as error:
        compile_pattern(text, S, table, bounded=True)
    (problem, *_) = error.value.problems
    assert (problem.kind, problem.span.start) == ("P002", at)
    assert problem.message == "P002 k is a table, whose rows have no times"
    compile_pattern("PATTERN A WITHIN 1 s RETURN *", S, table)  # the one stream


@pytest.mark.parametrize("number", ["9999999999", "-1", "1.5", "A.price"])
def test_the_bound_of_a_number_of_rows_is_said(number: str) -> None:
    text = MATCHES.format("").replace("A.price AS", f"PREV(A.price, {number}) AS")
    with pytest.raises(CompileError, match=r"whole number from 0 to 2,147,483,647"):
        compile_pattern(text, S, T, bounded=True)


@pytest.mark.parametrize("length", ["1/0", "x", "1e999999999"])
def test_an_interval_that_is_none(length: str) -> None:
    with pytest.raises(CompileError, match="P011"):
        compile_pattern(MATCHES.format(f" WITHIN INTERVAL '{length}' SECOND"), S, T)


def test_each_has_a_hint_or_says_enough() -> None:
    """A problem has a hint unless its message already says what to write instead."""
    for code, statement in PATTERNS:
        with pytest.raises(CompileError) as error:
            compile_pattern(place_of(statement)[0], S, T)
        for problem in error.value.problems:
            assert problem.hint or problem.kind in ("P013", "P014", "P015", "P011"), (code, problem)
