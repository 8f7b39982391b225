"""ASOF joins and joins with tables: the conditions they require."""

from __future__ import annotations

import pytest

from seustream.compiler.errors import CompileError
from seustream.compiler.pipeline import compile_text
from tests.compiler.xsql.relations import DEFINITIONS


@pytest.mark.parametrize(
    ("select", "kind"),
    [
        ("SELECT * FROM R ASOF JOIN S ON R.a = S.a", "asof"),
        ("SELECT * FROM R ASOF JOIN S ON R.a < S.a AND R.ts >= S.ts", "asof"),
        ("SELECT * FROM R ASOF JOIN (S JOIN R y ON S.a = y.a) ON R.ts >= S.ts", "asof"),
        ("SELECT * FROM R FULL JOIN S FOR SYSTEM_TIME AS OF R.ts ON R.a = S.a", "asof"),
        ("SELECT * FROM t", "table-alone"),
        ("SELECT * FROM t LEFT JOIN R ON t.a = R.a", "table-alone"),
        ("SELECT R.b FROM R FULL JOIN t ON t.a = R.a", "table-alone"),
        ("SELECT t.ts FROM R JOIN t ON t.a = R.a", "unknown-column"),
        ("SELECT R.b, S.d FROM R JOIN S ON R.a = S.a JOIN t ON t.a = R.a", "missing-window"),
        ("SELECT t.n, count(*) FROM R JOIN t ON t.a = R.a GROUP BY t.n", "missing-window"),
        ("CREATE TABLE u (ts int)", "duplicate-name"),
        ("CREATE TABLE u (k int) WITH (paht = 'u.csv')", "unknown-option"),
    ],
)  # fmt: skip
def test_lookups_that_say_too_little(select: str, kind: str) -> None:
    with pytest.raises(CompileError) as error:
        compile_text(DEFINITIONS + select)
    assert kind in [problem.kind for problem in error.value.problems]
