"""Short forms mean the same as the long forms."""

from __future__ import annotations

import pytest

from seustream.compiler.errors import CompileError
from seustream.compiler.logical import program as logical
from seustream.compiler.pipeline import compile_text

STREAMS = "CREATE STREAM R (a int, b int, n int); CREATE STREAM S (a int, d int);\n"


def plan(text: str) -> list[object]:
    """Returns the computation, independent of its spelling."""
    program = compile_text(STREAMS + text).program
    (asked,) = program.asked_relations
    found: list[object] = [[(item.name, item.expression) for item in asked.items]]
    if isinstance(asked, logical.Query):
        sources = [(source.alias, source.window) for source in asked.sources]
        return [*found, asked.group_by, asked.having, sources]
    assert isinstance(asked, logical.PeriodGroups)
    return [*found, asked.group_by, asked.having, asked.every, asked.order_by, asked.limit]


@pytest.mark.parametrize(
    ("short", "long"),
    [
        (
            "SELECT a + 1 AS x, count(*) AS c FROM R GROUP BY 1 WINDOW 5",
            "SELECT a + 1 AS x, count(*) AS c FROM R GROUP BY a + 1 WINDOW 5",
        ),
        (
            "SELECT a + 1 AS x, count(*) AS c FROM R GROUP BY x WINDOW 5",
            "SELECT a + 1 AS x, count(*) AS c FROM R GROUP BY a + 1 WINDOW 5",
        ),
        (  # a column takes precedence over an item of the same name
            "SELECT a AS b, max(n) AS c, b AS d FROM R GROUP BY b, 1 WINDOW 5",
            "SELECT a AS b, max(n) AS c, b AS d FROM R GROUP BY R.b, R.a WINDOW 5",
        ),
        ("SELECT a x, R.b y FROM R", "SELECT a AS x, R.b AS y FROM R"),
        ("SELECT *, a + b AS s FROM R", "SELECT a, b, n, a + b AS s FROM R"),
        ("SELECT *, 1 AS one FROM R, S WINDOW 5", "SELECT R.a, b, n, S.a, d, 1 AS one FROM R, S WINDOW 5"),
        (
            "SELECT HOP_START(ts, 1 s, 2 s) s, HOP_END(ts, 1 s, 2 s) e, count(*) c FROM R"
            " GROUP BY HOP(ts, 1 s, 2 s) HAVING HOP_END(ts, 1 s, 2 s) > 5",
            "SELECT window_start s, window_end e, count(*) c FROM R"
            " GROUP BY HOP(ts, 1 s, 2 s) HAVING window_end > 5",
        ),
        (
            "SELECT window, a, count(*) c FROM R GROUP BY window(ts, '1 minute'), 2",
            "SELECT window_start, window_end, a, count(*) c FROM R GROUP BY TUMBLE(ts, 1 minute), a",
        ),
        (
            "SELECT window(ts, '1 minute'), count(*) c FROM R GROUP BY window(ts, '1 minute')",
            "SELECT window_start, window_end, count(*) c FROM R GROUP BY TUMBLE(ts, 1 minute)",
        ),
        (
            "SELECT a, sum(b) t FROM R GROUP BY 1, TUMBLE(ts, 1 s) ORDER BY 2 DESC LIMIT 3",
            "SELECT a, sum(b) t FROM R GROUP BY a, TUMBLE(ts, 1 s) ORDER BY sum(b) DESC LIMIT 3",
        ),
        (
            "SELECT a, count(*) c FROM TABLE(TUMBLE(TABLE R, DESCRIPTOR(ts), 1 minute))"
            " GROUP BY a, window_start, window_end",
            "SELECT a, count(*) c FROM R GROUP BY a, TUMBLE(ts, 1 minute)",
        ),
    ],
)  # fmt: skip
def test_short_and_long(short: str, long: str) -> None:
    assert plan(short) == plan(long)


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("SELECT a FROM R GROUP BY 2 WINDOW 5", "has no item 2", "by their names"),
        ("SELECT a FROM R GROUP BY 0 WINDOW 5", "has no item 0", "by their names"),
        ("SELECT * FROM R GROUP BY 1 WINDOW 5", "* is several columns", "by their names"),
        (
            "SELECT TUMBLE_END(ts, 2 s) e FROM R GROUP BY TUMBLE(ts, 1 s)",
            "those of another window",
            "as GROUP BY has it",
        ),
        ("SELECT TUMBLE_END(ts, 2 s) e FROM R", "of no window", "GROUP BY TUMBLE"),
        (
            "SELECT window AS w FROM R GROUP BY window(ts, '1 s')",
            "is several columns",
            "leave the name out",
        ),
    ],
)
def test_what_is_refused(text: str, said: str, hint: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_text(STREAMS + text)
    problem = caught.value.problems[0]
    assert said in problem.message
    assert problem.hint is not None
    assert hint in problem.hint


def test_a_part_of_from_needs_no_name() -> None:
    assert plan("SELECT x FROM (SELECT a AS x FROM R WHERE b > 1) WHERE x > 2")
