"""The graph of a query set that uses all languages."""

from __future__ import annotations

import pytest

from seustream.compiler.explain import explain
from seustream.compiler.pipeline import compile_text

TEXT = """
CREATE STREAM R (a int, b int); CREATE STREAM S (d int, e int);
CREATE STREAM T (k varchar(9), e int);
CREATE STREAM J AS SELECT R.a, R.b, S.e FROM R, S WHERE R.a = S.d WINDOW RANGE 5 s;
CREATE STREAM F AS APAS $$ where $J.b > 3 select [b = $J.b] $$;
REGISTER QUERY alarms AS SELECT F.b, count(*) FROM F GROUP BY F.b WINDOW RANGE 1 min;
REGISTER QUERY both AS SELECT a FROM J WHERE b > 2 UNION ALL SELECT d FROM S;
REGISTER QUERY rises AS PATTERN up x; down y FROM T TYPE BY k WITHIN 9 ms RETURN x.e;
"""
BOTH = """\
both: union all
├─ both#1: select where J.b > 2
│  └─ J: join {}
└─ both#2: select
   └─ stream S"""


def test_results_stand_above_what_they_are_made_of() -> None:
    alarms, both = (
        """\
alarms: select and group by F.b
└─ F: APAS [RANGE 1 min]
   └─ J: join where R.a = S.d
      ├─ stream R [RANGE 5 s]
      └─ stream S [RANGE 5 s]""",
        BOTH.format("as above"),
    )
    rises = "rises: pattern\n└─ stream T"
    assert explain(compile_text(TEXT), "graph", "text") == "\n".join((alarms, both, rises))


def test_one_query() -> None:
    found = explain(compile_text(TEXT), "graph", "text", "BOTH")
    whole = "where R.a = S.d\n│     ├─ stream R [RANGE 5 s]\n│     └─ stream S [RANGE 5 s]"
    assert found == BOTH.format(whole)


@pytest.mark.parametrize("query", ["both", "both#2"])
def test_parts_of_an_operation_have_the_stages_of_queries(query: str) -> None:
    found = explain(compile_text(TEXT), "predicate", "text", query)
    assert ("both#1" in found, "both#2" in found) == (query == "both", True)


def test_a_query_set_without_queries() -> None:
    assert explain(compile_text("CREATE STREAM R (a int)"), "graph", "text") == "no queries"
