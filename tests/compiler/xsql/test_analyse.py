"""Statements applied in order: streams, queries, windows, result columns."""

from __future__ import annotations

import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.errors import CompileError
from seustream.compiler.language.types import BIGINT, DATE, DOUBLE, INT, REAL, Kind, Type
from seustream.compiler.logical import program as logical
from seustream.compiler.pipeline import compile_text
from tests.compiler.xsql.analysed import analysed
from tests.compiler.xsql.problems import STREAMS, Mistake, mistakes, reported


@pytest.mark.parametrize("mistake", mistakes("analyse"), ids=str)
def test_mistake(mistake: Mistake) -> None:
    assert reported(STREAMS + mistake.text) == [mistake.report(STREAMS.count("\n"))]


# --- streams ------------------------------------------------------------------


def test_created_streams_in_order() -> None:
    program = analysed("CREATE STREAM B (x real NOT NULL, y varchar(5)); CREATE STREAM A (d date);")
    assert program.streams == (
        Stream("B", (Column("x", REAL, False), Column("y", Type(Kind.VARCHAR, 5)))),
        Stream("A", (Column("d", DATE),)),
    )


def test_a_dropped_stream_makes_room_for_another() -> None:
    program = analysed(
        "CREATE STREAM R (a int); CREATE STREAM S (b int); DROP STREAM r; CREATE STREAM R (c real)"
    )
    assert [(s.name, s.columns[0].name) for s in program.streams] == [("S", "b"), ("R", "c")]


def test_a_stream_may_be_dropped_once_its_query_is() -> None:
    program = analysed(
        "CREATE STREAM R (a int); REGISTER QUERY late AS SELECT a FROM R WINDOW 1;"
        " DROP QUERY LATE; DROP STREAM R"
    )
    assert program == logical.Program()


def test_every_user_of_a_stream_is_named() -> None:
    text = (
        "CREATE STREAM R (a int); CREATE STREAM fast AS SELECT a FROM R WINDOW 1;"
        " SELECT a FROM R WINDOW 1; SELECT a FROM fast WINDOW 1; DROP STREAM R;"
        " DROP STREAM fast"
    )
    assert [report.message for report in reported(text)] == [
        "stream R is used by query q0, stream fast",
        "stream fast is used by query q1",
    ]


def test_a_derived_stream_has_the_columns_of_its_query() -> None:
    program = analysed(
        STREAMS + "CREATE STREAM x AS SELECT R.a, S.d AS other, R.a * 0.5 AS half, S.x FROM R, S"
        " WHERE R.a = S.d WINDOW 5 s, 3"
    )
    derived = program.streams[-1]
    assert derived.columns == (
        Column("a", INT),
        Column("other", INT),
        Column("half", DOUBLE),
        Column("x", REAL),
    )
    assert derived.defined_by is not None
    assert derived.defined_by.startswith("SELECT R.a")
    assert derived.defined_by.endswith("WINDOW 5 s, 3")
    assert program.queries == ()


def test_an_unnamed_expression_is_a_column_of_its_text() -> None:
    program = analysed(STREAMS + "CREATE STREAM x AS SELECT a * 0.5, 1.5 FROM R WINDOW 1")
    assert [column.name for column in program.streams[-1].columns] == ["a * 0.5", "1.5"]


@pytest.mark.parametrize("column", ["S.TimeStamp", "S.d AS ts"])
def test_a_derived_stream_has_its_own_time(column: str) -> None:
    text = f"CREATE STREAM x AS SELECT {column} FROM S WINDOW 1;"
    (found,) = reported(STREAMS + text)
    assert "the implicit time of every stream" in found.message


def test_a_derived_stream_can_be_queried() -> None:
    program = analysed(
        STREAMS + "CREATE STREAM x AS SELECT S.d FROM S WINDOW 1; SELECT d, ts FROM X WINDOW 1"
    )
    assert [item.expression.type for item in program.asked[0].items] == [INT, BIGINT]


# --- names --------------------------------------------------------------------


def test_queries_are_named_by_position() -> None:
    program = analysed(
        STREAMS + "SELECT a FROM R WINDOW 1; REGISTER QUERY late AS SELECT a FROM R WINDOW 1;"
        " SELECT b FROM R WINDOW 1"
    )
    assert [q.name for q in program.queries] == ["q0", "late", "q2"]


def test_a_name_that_is_taken_is_passed_over() -> None:
    program = analysed(
        STREAMS + "REGISTER QUERY Q1 AS SELECT a FROM R WINDOW 1; SELECT b FROM R WINDOW 1;"
        " DROP QUERY q1; SELECT s FROM R WINDOW 1"
    )
    assert [q.name for q in program.queries] == ["q2", "q1"]


def test_quoted_names_keep_their_case_and_may_be_keywords() -> None:
    program = analysed('CREATE STREAM "Select" ("From" int); SELECT "From" FROM "select" WINDOW 1')
    assert program.streams[0].name == "Select"
    assert program.queries[0].items[0].name == "From"


def test_requests() -> None:
    program = analysed(
        STREAMS + "SHOW STREAMS; REGISTER QUERY Late AS SELECT a FROM R WINDOW 1; EXPLAIN late;"
        " EXPLAIN SELECT b FROM R WINDOW 1; show queries"
    )
    assert [(r.verb, r.target) for r in program.requests] == [
        ("show", "streams"),
        ("explain", "Late"),
        ("explain", "q1"),
        ("show", "queries"),
    ]
    assert [q.name for q in program.queries] == ["Late", "q1"]


def test_a_query_keeps_its_text_and_place() -> None:
    text = STREAMS + "REGISTER QUERY late AS\n  SELECT a\n  FROM R WINDOW 1 ;"
    (late,) = analysed(text).queries
    assert late.text == "SELECT a\n  FROM R WINDOW 1"
    assert text[late.span.start : late.span.end] == f"REGISTER QUERY late AS\n  {late.text}"


# --- several problems ---------------------------------------------------------


def test_all_problems_of_a_file_are_reported_in_order() -> None:
    text = """\
CREATE STREAM R (a int, b strange, a int);
SELECT c, R.d FROM R WHERE a = 'x' AND nope(a) WINDOW 0;
SELEC a FROM R WINDOW 1;
CREATE STREAM S (a int, z real);
SELECT a FROM R, S, Q WINDOW 1, 2;
REGISTER QUERY ok AS SELECT R.a FROM R WINDOW 1;
DROP STREAM R;
SELECT a FROM R, S WINDOW RANGE -1;
SELECT 'never closed FROM R WINDOW 1;
SELECT more FROM nowhere;
"""
    assert [(r.kind, r.line, r.column, r.text) for r in reported(text)] == [
        ("unknown-type", 1, 27, "strange"),
        ("duplicate-name", 1, 36, "a"),
        ("unknown-column", 2, 8, "c"),
        ("unknown-column", 2, 13, "d"),
        ("type-mismatch", 2, 28, "a = 'x'"),
        ("unknown-function", 2, 40, "nope"),
        ("row-count", 2, 55, "0"),
        ("syntax", 3, 1, "SELEC"),
        ("ambiguous-column", 5, 8, "a"),
        ("unknown-stream", 5, 21, "Q"),
        ("window-count", 5, 30, "1, 2"),
        ("stream-in-use", 7, 13, "R"),
        ("ambiguous-column", 8, 8, "a"),
        ("negative-range", 8, 27, "RANGE -1"),
        ("unterminated", 9, 8, "'"),
    ]


def test_an_unknown_stream_hides_nothing_else() -> None:
    text = "SELECT R.zz, Q.any FROM R, Q WHERE R.a = Q.b AND 1 + R.s = 2 AND other WINDOW 5"
    found = [(r.kind, r.text) for r in reported(STREAMS + text)]
    assert ("unknown-stream", "Q") in found
    assert ("unknown-column", "zz") in found
    assert not [text for _, text in found if text in ("any", "other")]


def test_explain_of_a_query_dropped_later() -> None:
    text = "REGISTER QUERY k AS SELECT R.a FROM R WINDOW 1; EXPLAIN k; DROP QUERY k"
    assert [(r.kind, r.text) for r in reported(STREAMS + text)] == [("unknown-query", "EXPLAIN k")]


def test_show_answers_for_its_place() -> None:
    text = "SHOW STREAMS; CREATE STREAM Late (x int); SELECT x FROM Late WINDOW 1; SHOW QUERIES;"
    requests = compile_text(text, stop_after="tree").program.requests
    assert [r.lines for r in requests] == [(), ("query q0: SELECT x FROM Late WINDOW 1",)]


def shown(text: str) -> list[list[str]]:
    return [list(request.lines) for request in compile_text(text).program.requests]


def test_what_is_there_is_replaced_or_left() -> None:
    text = """CREATE STREAM R (a int); CREATE STREAM IF NOT EXISTS r (b int); CREATE OR REPLACE STREAM S (d int);
    CREATE OR REPLACE STREAM S (e int NOT NULL) WITH (max_out_of_orderness = '5 s', late = 'error');
    REGISTER QUERY q AS SELECT a FROM R; REGISTER OR REPLACE QUERY Q AS SELECT e FROM S;
    REGISTER QUERY IF NOT EXISTS q AS SELECT a FROM R; DROP QUERY IF EXISTS p; DROP STREAM IF EXISTS T;
    CREATE TABLE t (k int) WITH (path = 't.csv'); CREATE STREAM D AS SELECT a FROM R;
    DESCRIBE R; DESCRIBE q; SHOW CREATE STREAM S; SHOW CREATE TABLE t; SHOW CREATE QUERY q; SHOW CREATE STREAM D"""
    assert shown(text) == [
        ["ts bigint NOT NULL", "a int"],
        ["e int"],
        ["CREATE STREAM S (e int NOT NULL) WITH (max_out_of_orderness = 5000, late = 'error')"],
        ["CREATE TABLE t (k int) WITH (path = 't.csv')"],
        ["REGISTER QUERY Q AS SELECT e FROM S"],
        ["CREATE STREAM D AS SELECT a FROM R"],
    ]


QUERIES = [
    "SELECT x FROM R",
    "APAS $$ from n[g = agg.count($R)]; select full[$n[T]] $$",
    "PATTERN A; B FROM R WITHIN 5 s RETURN a.x",
    "SELECT y FROM R MATCH_RECOGNIZE (ORDER BY ts MEASURES A.x AS y PATTERN (A) WITHIN INTERVAL '5' SECOND)",
]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("before", QUERIES)
@pytest.mark.parametrize(("verb", "kind"), [("CREATE", "STREAM"), ("REGISTER", "QUERY")])
def test_queries_of_all_languages_are_replaced_or_left(
    verb: str, kind: str, before: str, query: str
) -> None:
    text = f"CREATE STREAM R (type varchar, x int); {verb} {kind} m AS {before}; "
    replaced = shown(f"{text}{verb} OR REPLACE {kind} m AS {query}; SHOW CREATE {kind} m")
    assert replaced == [[f"{verb} {kind} m AS {query}"]]
    left = shown(f"{text}{verb} {kind} IF NOT EXISTS M AS {query}; SHOW CREATE {kind} m")
    assert left == [[f"{verb} {kind} m AS {before}"]]
    fresh = shown(f"{text}{verb} {kind} IF NOT EXISTS n AS {query}; SHOW CREATE {kind} n")
    assert fresh == [[f"{verb} {kind} n AS {query}"]]


def test_what_is_read_is_not_replaced() -> None:
    text = "CREATE STREAM R (a int); SELECT a FROM R; CREATE OR REPLACE STREAM R (b int)"
    assert [report.kind for report in reported(text)] == ["stream-in-use"]
    assert [
        r.kind for r in reported("CREATE STREAM R (a int) WITH (max_out_of_orderness = 'x')")
    ] == ["unknown-option"]
    assert [r.kind for r in reported("DESCRIBE nothing")] == ["unknown-stream"]


def test_all_that_reads_a_stream_is_named_where_it_is_dropped() -> None:
    text = (
        "CREATE STREAM R (a int); CREATE STREAM big AS SELECT a FROM R WHERE a > 1;"
        "REGISTER QUERY q AS SELECT a FROM R; REGISTER QUERY p AS PATTERN ANY x; ANY y FROM R WHERE y.a > x.a"
        " WITHIN 5 ms RETURN x.a; DROP STREAM R"
    )
    with pytest.raises(CompileError) as caught:
        compile_text(text)
    (problem,) = caught.value.problems
    assert problem.message == "stream R is used by query q, query p, stream big"
    assert problem.hint == "DROP QUERY q; DROP QUERY p; DROP STREAM big first"
    compile_text(
        text.replace(
            "DROP STREAM R", "DROP QUERY q; DROP QUERY p; DROP STREAM big; DROP STREAM R; "
        )
    )
