"""The warning about unbounded state."""

from __future__ import annotations

import pytest

from seustream.compiler.explain import explain
from seustream.compiler.logical.endless import endless
from seustream.compiler.pipeline import compile_text

STREAMS = (
    "CREATE STREAM R (a int, b int); CREATE STREAM S (a int, d int); CREATE TABLE t (a int);\n"
)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT R.a FROM R, S WHERE R.a = S.a WINDOW UNBOUNDED, RANGE 5", ["all rows of R"]),
        ("SELECT R.a FROM R LEFT JOIN S ON R.a = S.a WINDOW 3, UNBOUNDED", ["all rows of S"]),
        ("SELECT R.a FROM R JOIN t ON R.a = t.a WINDOW RANGE 5", []),
        ("SELECT R.a FROM R ASOF JOIN S ON R.a = S.a AND R.ts >= S.ts", []),
        ("SELECT a, count(*) FROM R GROUP BY a WINDOW UNBOUNDED", ["all groups of R"]),
        ("SELECT a, count(*), median(a) FROM R GROUP BY a WINDOW UNBOUNDED", ["all rows of R"]),
        ("SELECT a, count(*) FROM R GROUP BY a WINDOW PARTITION BY a ROWS 1", []),
        ("SELECT DISTINCT a FROM R WINDOW UNBOUNDED", ["every different row"]),
        ("SELECT a FROM R WHERE a > 1 WINDOW UNBOUNDED", []),
        ("SELECT a FROM R ORDER BY b", ["every row"]),
        ("SELECT * FROM (SELECT *, rank() OVER (ORDER BY b) AS r FROM R) t WHERE r < 5", ["best 4"]),
        ("SELECT a, rank() OVER (PARTITION BY window_end ORDER BY b) r FROM TUMBLE(TABLE R, DESCRIPTOR(ts), 5 s)", []),
    ],
)  # fmt: skip
def test_the_warning(query: str, why: list[str]) -> None:
    found = list(endless(compile_text(f"{STREAMS}REGISTER QUERY q AS {query}").program))
    assert [name for name, _ in found] == ["q"] * len(why)
    assert all(part in said for part, (_, said) in zip(why, found, strict=True))


def test_explain_has_it() -> None:
    c = compile_text(f"{STREAMS}SELECT a FROM R ORDER BY b")
    assert "Warning: state without bound" in explain(c, None, "text")
