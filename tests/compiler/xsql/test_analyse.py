"""Statements carried out in order: streams, queries, windows, result columns."""

from __future__ import annotations

import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.errors import Problems, SourceText
from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import BIGINT, DATE, DOUBLE, INT, REAL, VARCHAR, Kind, Type
from seustream.compiler.logical import program as logical
from seustream.compiler.pipeline import compile_text
from seustream.compiler.xsql.analyse import Analysis
from seustream.compiler.xsql.parse import parse
from seustream.hdl.device import Window, WindowKind
from tests.compiler.xsql.problems import STREAMS, Mistake, mistakes, reported


def analysed(text: str) -> logical.Program:
    source, problems = SourceText(text), Problems()
    program = Analysis(source, problems).run(parse(source, problems))
    assert problems.found == []
    return program


def query(text: str) -> logical.Query:
    """The one query of a text over the common streams."""
    (found,) = analysed(STREAMS + text).queries
    return found


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


def test_names_are_case_insensitive_and_shown_as_defined() -> None:
    q = query("SELECT r.A, X.D FROM r, s AS x WHERE R.A = x.d WINDOW 1")
    assert [source.stream.name for source in q.sources] == ["R", "S"]
    assert x.show(q.where) == "r.a = x.d"
    assert [item.name for item in q.items] == ["A", "D"]


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


# --- windows ------------------------------------------------------------------


def RANGE(size: int) -> Window:  # noqa: N802
    return Window(WindowKind.RANGE, size)


def ROWS(size: int) -> Window:  # noqa: N802
    return Window(WindowKind.ROWS, size)


UNBOUNDED = Window(WindowKind.UNBOUNDED)
UNITS = {
    1: ("ms", "millisecond", "milliseconds"),
    1_000: ("s", "second", "seconds"),
    60_000: ("min", "minute", "minutes"),
    3_600_000: ("h", "hour", "hours"),
    86_400_000: ("d", "day", "days"),
}


@pytest.mark.parametrize(
    ("unit", "ticks"), [(unit, ticks) for ticks, units in UNITS.items() for unit in units]
)
def test_unit(unit: str, ticks: int) -> None:
    for written in (f"RANGE 7 {unit}", f"7 {unit.upper()}"):
        assert query(f"SELECT a FROM R WINDOW {written}").sources[0].window == RANGE(7 * ticks)


@pytest.mark.parametrize(
    ("written", "window"),
    [
        ("100", ROWS(100)),
        ("ROWS 3", ROWS(3)),
        ("ROWS 9223372036854775807", ROWS((1 << 63) - 1)),
        ("RANGE 100", RANGE(100)),
        ("RANGE 0 s", RANGE(0)),
        ("NOW", RANGE(0)),
        ("UNBOUNDED", UNBOUNDED),
        ("1.5 s", RANGE(1500)),
        ("RANGE 2.0", RANGE(2)),
        # exact, though neither is as a float
        ("1.001 min", RANGE(60_060)),
        ("4.0351 h", RANGE(14_526_360)),
        ("RANGE 9223372036854775807", RANGE((1 << 63) - 1)),
        ("1e3 ms", RANGE(1000)),
    ],
)
def test_window(written: str, window: Window) -> None:
    assert query(f"SELECT a FROM R WINDOW {written}").sources[0].window == window


def test_thousandths_of_every_unit_are_whole() -> None:
    for thousandths in range(1, 1000, 7):
        window = f"{thousandths / 1000} s, 0.{thousandths:03} h"
        got = query(f"SELECT R.a FROM R, S WINDOW {window}")
        assert [source.window for source in got.sources] == [
            RANGE(thousandths),
            RANGE(thousandths * 3600),
        ]


def test_one_window_is_for_all_streams() -> None:
    q = query("SELECT R.a FROM R, S, R AS x WINDOW 5 s")
    assert [source.window for source in q.sources] == [RANGE(5000)] * 3


def test_windows_stand_in_the_order_of_from() -> None:
    q = query("SELECT R.a FROM S, R, R AS x, S AS y WINDOW NOW, 7, UNBOUNDED, RANGE 3")
    assert [(source.alias, source.window) for source in q.sources] == [
        ("S", RANGE(0)),
        ("R", ROWS(7)),
        ("x", UNBOUNDED),
        ("y", RANGE(3)),
    ]


# --- result columns -----------------------------------------------------------


@pytest.mark.parametrize(
    ("items", "names"),
    [
        ("*", "a R_b R_s day hour moment ok d t_b x t_s long"),
        ("t.*", "d b x s long"),
        ("T.*, R.a", "d b x s long a"),
        ("a, R.b", "a b"),
        ("R.b, T.B, x", "R_b t_B x"),
        ("R.b, d AS B", "R_b B"),
        ("a, d AS Ts_Oldest2", "a Ts_Oldest2"),
        ("a AS x, d AS a", "x a"),
        ("R.ts, T.TimeStamp", "ts TimeStamp"),
        ("R.ts, T.ts", "R_ts t_ts"),
    ],
)
def test_result_columns(items: str, names: str) -> None:
    q = query(f"SELECT {items} FROM R, S AS t WINDOW 1")
    assert [item.name for item in q.items] == names.split()


def test_an_expression_is_called_by_its_text() -> None:
    q = query("SELECT a  +\n 1, abs( R.b ), 'it''s' FROM R WINDOW 1")
    assert [item.name for item in q.items] == ["a + 1", "abs( R.b )", "'it''s'"]


def test_self_join() -> None:
    q = query("SELECT x.a, y.a FROM R AS x, R AS y WHERE x.a < y.b WINDOW 1")
    assert [source.stream.name for source in q.sources] == ["R", "R"]
    assert [column.source for column in (q.where.left, q.where.right)] == [0, 1]  # type: ignore[union-attr]


def test_a_query_without_condition() -> None:
    assert query("SELECT R.a FROM R, S WINDOW 1").where == x.TRUE


# --- grouping -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "aggregated"),
    [
        ("SELECT a FROM R WINDOW 1", False),
        ("SELECT count(*) FROM R WINDOW 1", True),
        ("SELECT 1 + max(a) FROM R WINDOW 1", True),
        ("SELECT a FROM R GROUP BY a WINDOW 1", True),
        ("SELECT 1 AS one FROM R HAVING count(*) > 1 WINDOW 1", True),
        ("SELECT abs(a) FROM R WINDOW 1", False),
    ],
)
def test_which_queries_aggregate(text: str, aggregated: bool) -> None:
    assert query(text).aggregated is aggregated


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, count(*) FROM R GROUP BY R.A WINDOW 1",
        "SELECT a + b, (a + b) * 2 FROM R GROUP BY a + b WINDOW 1",
        "SELECT max(a + b) FROM R GROUP BY s WINDOW 1",
        "SELECT abs(a), 5 FROM R GROUP BY a HAVING a > 1 AND min(b) < 3 WINDOW 1",
        "SELECT lower(s) FROM R GROUP BY s, a HAVING a IS NULL OR s LIKE 'x%' WINDOW 1",
    ],
)
def test_what_is_grouped_may_stand_alone(text: str) -> None:
    q = query(text)
    assert q.aggregated
    assert all(not isinstance(e, x.AggregateCall) for e in q.group_by)


def test_grouping_is_typed() -> None:
    q = query("SELECT s, avg(a), sum(a) FROM R GROUP BY s, day HAVING count(*) > 2 WINDOW 1")
    assert [e.type for e in q.group_by] == [Type(Kind.VARCHAR, 20), DATE]
    assert [item.expression.type for item in q.items] == [Type(Kind.VARCHAR, 20), DOUBLE, BIGINT]
    assert isinstance(q.having, x.Compare)
    assert q.having.of == BIGINT
    assert VARCHAR.is_text


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


def test_every_hopeless_window_of_a_query_is_reported() -> None:
    text = "SELECT R.a FROM R, S, R AS x WINDOW 0, RANGE -1, 5 fortnights"
    assert [r.kind for r in reported(STREAMS + text)] == [
        "row-count",
        "negative-range",
        "unknown-unit",
    ]


def test_a_failed_operand_is_reported_once() -> None:
    text = "SELECT nope + 1 FROM R WHERE NOT (abs(nothing) * 2 BETWEEN 1 AND 5) WINDOW 1"
    assert [r.text for r in reported(STREAMS + text)] == ["nope", "nothing"]


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


def test_what_is_read_is_not_replaced() -> None:
    text = "CREATE STREAM R (a int); SELECT a FROM R; CREATE OR REPLACE STREAM R (b int)"
    assert "stream-in-use" in [report.kind for report in reported(text)]
    assert [
        r.kind for r in reported("CREATE STREAM R (a int) WITH (max_out_of_orderness = 'x')")
    ] == ["unknown-option"]
    assert [r.kind for r in reported("DESCRIBE nothing")] == ["unknown-stream"]
