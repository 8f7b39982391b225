"""Results named `ts`: the time of a row is the time of its stream, and no other column may have
that name."""

from __future__ import annotations

import pytest

from seustream.compiler.errors import CompileError
from seustream.compiler.pipeline import compile_text
from tests.compiler.xsql.relations import STREAMS, wrong


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ts, a FROM R",
        "SELECT R.ts, a FROM R WHERE b > 1",
        "SELECT a, TimeStamp FROM R",
        "SELECT a, ts FROM R UNION ALL SELECT d, ts FROM S",
        "SELECT a, ts FROM R UNION ALL SELECT d, ts FROM S UNION ALL SELECT e, ts FROM T",
        "SELECT a, ts, row_number() OVER (PARTITION BY a ORDER BY ts) AS n FROM R",
        "SELECT a, ts FROM R ORDER BY ts LIMIT 3",
    ],
)
def test_the_time_of_the_rows_is_no_column(query: str) -> None:
    text = f"{STREAMS}CREATE STREAM d AS {query}; SELECT * FROM d; SELECT ts FROM ({query}) AS t"
    program = compile_text(text, stop_after="tree").program
    (made,) = (one for one in program.streams if one.name == "d")
    assert "a" in [column.name for column in made.columns]
    assert not {"ts", "timestamp"} & {column.name.lower() for column in made.columns}
    assert made.is_time("ts")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ts FROM R",  # no column would be left
        "SELECT a, b AS ts FROM R",
        "SELECT R.a, R.ts FROM R JOIN S ON R.a = S.a WINDOW RANGE 5",
        "SELECT DISTINCT a, ts FROM R WINDOW UNBOUNDED",
        "SELECT a, ts FROM R UNION SELECT d, ts FROM S WINDOW RANGE 5",
        "SELECT a, ts FROM R UNION ALL SELECT a, d FROM S",
        "SELECT a, row_number() OVER (ORDER BY b) AS n, ts FROM R QUALIFY n < 3 EMIT CHANGES",
    ],
)
def test_another_column_is_not_called_so(query: str) -> None:
    for text in (f"CREATE STREAM d AS {query}", f"SELECT * FROM ({query}) AS t"):
        assert "ts is the implicit time of every stream" in [p.message for p in wrong(text)]


RANKS = """CREATE STREAM R (i int, a int);
CREATE STREAM top AS SELECT i, window_end AS we FROM TUMBLE(TABLE R, DESCRIPTOR(ts), 5)
    QUALIFY row_number() OVER ({}ORDER BY a DESC) <= 1 EMIT CHANGES;
REGISTER QUERY n AS SELECT we, count(*) AS n FROM top GROUP BY we"""


def test_a_rank_over_all_windows_changes_behind_the_end_of_its_own() -> None:
    with pytest.raises(CompileError, match="a query that aggregates needs a window"):
        compile_text(RANKS.format(""))
    compile_text(RANKS.format("PARTITION BY window_end "))
