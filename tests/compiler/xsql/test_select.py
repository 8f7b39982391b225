"""One SELECT: its sources, conditions and groups, bound and typed."""

from __future__ import annotations

import pyarrow as pa
import pytest

from seustream.compiler.errors import CompileError
from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import BIGINT, DATE, DOUBLE, VARCHAR, Kind, Type
from seustream.compiler.pipeline import compile_text
from seustream.engine.graph import GraphRun
from seustream.engine.stream.errors import EngineError
from tests.compiler.xsql.analysed import query
from tests.compiler.xsql.problems import STREAMS, reported


def test_names_are_case_insensitive_and_shown_as_defined() -> None:
    q = query("SELECT r.A, X.D FROM r, s AS x WHERE R.A = x.d WINDOW 1")
    assert [source.stream.name for source in q.sources] == ["R", "S"]
    assert x.show(q.where) == "r.a = x.d"
    assert [item.name for item in q.items] == ["A", "D"]


def test_self_join() -> None:
    q = query("SELECT x.a, y.a FROM R AS x, R AS y WHERE x.a < y.b WINDOW 1")
    assert [source.stream.name for source in q.sources] == ["R", "R"]
    assert [column.source for column in (q.where.left, q.where.right)] == [0, 1]  # type: ignore[union-attr]


def test_a_query_without_condition() -> None:
    assert query("SELECT R.a FROM R, S WINDOW 1").where == x.TRUE


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


def test_a_failed_operand_is_reported_once() -> None:
    text = "SELECT nope + 1 FROM R WHERE NOT (abs(nothing) * 2 BETWEEN 1 AND 5) WINDOW 1"
    assert [r.text for r in reported(STREAMS + text)] == ["nope", "nothing"]


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("SELECT a FROM R ORDER BY count(*)", "count"),
        ("SELECT a FROM R ORDER BY a, 1 + sum(a) FILTER (WHERE b > 3) DESC LIMIT 2", "sum"),
        ("SELECT a FROM R ORDER BY max(a) LIMIT 2 EMIT CHANGES", "max"),
        ("SELECT DISTINCT a FROM R ORDER BY count(*) WINDOW UNBOUNDED", "count"),
        ("SELECT a FROM R UNION ALL SELECT b FROM R ORDER BY count(DISTINCT a) LIMIT 3", "count"),
        ("SELECT a FROM R QUALIFY count(*) > 3", "count"),
        ("SELECT row_number() OVER (ORDER BY ts) AS n FROM R QUALIFY n > 3 AND min(a) IS NULL", "min"),
        ("SELECT x.a FROM R x, R y WHERE x.a = y.a ORDER BY count(*) WINDOW 5", "count"),
    ],
)  # fmt: skip
def test_an_aggregate_in_an_order_or_qualify_needs_groups(text: str, at: str) -> None:
    (problem,) = reported(STREAMS + text)
    assert (problem.kind, problem.text) == ("aggregate-here", at)
    assert "OVER (PARTITION BY k)" in problem.hint


LISTS = (
    STREAMS + "CREATE STREAM L AS SELECT a, array_agg(b) AS l FROM R GROUP BY a, TUMBLE(ts, 2);\n"
)


@pytest.mark.parametrize(
    ("select", "at", "said"),
    [
        ("SELECT array_agg(b) AS l FROM R GROUP BY a, TUMBLE(ts, 2) ORDER BY l", "l", "ORDER BY"),
        ("SELECT l, count(*) AS n FROM L GROUP BY l WINDOW UNBOUNDED", "l", "GROUP BY"),
        ("SELECT count(*) OVER (PARTITION BY l ORDER BY ts) AS n FROM L", "l", "PARTITION BY"),
        ("SELECT a FROM L WINDOW PARTITION BY l ROWS 1", "PARTITION BY l ROWS 1", "PARTITION BY"),
        ("SELECT rank() OVER (ORDER BY l) AS r FROM L", "l", "ORDER BY"),
        ("SELECT DISTINCT l FROM L ORDER BY l LIMIT 1 WINDOW UNBOUNDED", "l", "ORDER BY"),
        ("SELECT lag(l) OVER (ORDER BY ts) AS p FROM L", "lag(l) OVER (ORDER BY ts)", "lag"),
        ("SELECT first_value(l) OVER w AS p FROM L WINDOW w AS (ORDER BY ts)", "first_value(l) OVER w", ""),
        ("SELECT x.a FROM L x JOIN L y ON x.l = y.l WINDOW RANGE 1", "x.l = y.l", "not compared"),
        ("SELECT x.a FROM L x LEFT JOIN L y USING (l) WINDOW RANGE 1", "l", "not compared"),
        ("SELECT a FROM L WHERE l IN (SELECT l FROM L) WINDOW RANGE 1", "l IN (SELECT l FROM L)", ""),
        ("SELECT a FROM L WHERE l = l", "l = l", "not compared"),
        ("SELECT coalesce(l, l) AS m FROM L", "coalesce(l, l)", "coalesce takes no list"),
        ("SELECT CAST(l AS varchar) AS m FROM L", "CAST(l AS varchar)", "cannot become"),
        ("SELECT count(DISTINCT l) AS n FROM L WINDOW 1", "count(DISTINCT l)", "no list"),
        ("SELECT l LIKE 'x' AS m FROM L", "l", "LIKE"),
    ],
)  # fmt: skip
def test_a_list_is_no_key(select: str, at: str, said: str) -> None:
    (problem,) = reported(LISTS + select)
    assert problem.text == at
    assert said in problem.message
    assert "string_agg" in problem.hint


@pytest.mark.parametrize(
    "select",
    [
        "SELECT l, l IS NULL AS none, CASE WHEN a = 1 THEN l END AS some FROM L",
        "SELECT DISTINCT l FROM L WINDOW UNBOUNDED",
        "SELECT l FROM L UNION SELECT l FROM L WINDOW UNBOUNDED",
        "SELECT lead(l) OVER (ORDER BY ts) AS next, lag(l) OVER (ORDER BY a) AS last FROM L",
    ],
)
def test_a_list_is_a_value(select: str) -> None:
    compile_text(LISTS + select)


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ("SELECT ALL a FROM R", "SELECT a FROM R"),
        ("SELECT a FROM R LIMIT ALL", "SELECT a FROM R"),
        ("SELECT a FROM R FETCH FIRST ROW ONLY", "SELECT a FROM R LIMIT 1"),
        ("SELECT a FROM R ORDER BY b FETCH NEXT ROWS ONLY", "SELECT a FROM R ORDER BY b LIMIT 1"),
        ("SELECT a FROM R WHERE (a > b) IS UNKNOWN", "SELECT a FROM R WHERE (a > b) IS NULL"),
        ("SELECT ok IS NOT UNKNOWN AS k FROM R", "SELECT (ok = TRUE) IS NOT NULL AS k FROM R"),
    ],
)
def test_other_forms(written: str, same: str) -> None:
    one, other = (
        compile_text(f"{STREAMS}REGISTER QUERY q AS {text}").program.relations
        for text in (written, same)
    )
    assert [(type(of), of.items) for of in one] == [(type(of), of.items) for of in other]
    assert [getattr(of, "where", None) for of in one] == [
        getattr(of, "where", None) for of in other
    ]
    assert [getattr(of, "best", None) for of in one] == [getattr(of, "best", None) for of in other]


def test_unknown_is_said_of_conditions() -> None:
    (problem,) = reported(f"{STREAMS}SELECT a IS UNKNOWN AS u FROM R")
    assert (problem.kind, problem.text) == ("type-mismatch", "a")


def test_a_window_name_stands_once() -> None:
    text = "CREATE STREAM R (a int); SELECT a, count(*) OVER w AS n FROM R WINDOW w AS (ORDER BY ts), w AS (ORDER BY ts ROWS 1 PRECEDING)"
    with pytest.raises(CompileError, match="w stands twice in WINDOW"):
        compile_text(text)


@pytest.mark.parametrize("inner", ["WINDOW RANGE 5 SLIDE 2", "WINDOW RANGE 5 EMIT CHANGES"])
def test_a_subquery_gives_no_changes(inner: str) -> None:
    text = f"CREATE STREAM R (a int); CREATE STREAM S (a int); SELECT a FROM R WHERE EXISTS (SELECT * FROM S {inner}) WINDOW RANGE 5"
    with pytest.raises(CompileError, match="gives changes, or groups at steps"):
        compile_text(text)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a / 0 AS x FROM R UNION ALL SELECT a FROM R",
        "SELECT a FROM R UNION ALL SELECT a / 0 FROM R",
        "SELECT a FROM (SELECT a / 0 AS a FROM R) AS u",
        "WITH c AS (SELECT a / 0 AS a FROM R) SELECT a FROM c",
        "SELECT DISTINCT a / 0 AS x FROM R ORDER BY x WINDOW UNBOUNDED",
        "SELECT a FROM R WHERE EXISTS (SELECT * FROM (SELECT a / 0 AS b FROM R) AS u WHERE b > 1) WINDOW UNBOUNDED",
    ],
)
@pytest.mark.parametrize("form", ["{}", "CREATE STREAM d AS {}; SELECT * FROM d WINDOW UNBOUNDED"])
def test_the_whole_query_is_strict(form: str, query: str) -> None:
    c = compile_text("CREATE STREAM R (a int); " + form.format(f"{query} WITH (strict)"))
    run = GraphRun(c)
    run.push("R", pa.table({"ts": [1], "a": pa.array([1], pa.int32())}))
    with pytest.raises(EngineError, match="division by zero"):
        list(run.finish())
