"""The time from which late queries are complete: the stated time is compared with a query that was
there from the beginning, over random rows."""

from __future__ import annotations

import random
import re

import pyarrow as pa
import pytest

from seustream.compiler.pipeline import Options, compile_text
from seustream.engine.completeness import BEGINNING, complete_from
from seustream.engine.graph import GraphRun

STREAMS = "CREATE STREAM R (a int); CREATE STREAM S (d int); CREATE TABLE T (k int);"
FORMS = {
    "SELECT a FROM R": "from 100",
    "SELECT R.a FROM R, S WHERE R.a = S.d WINDOW RANGE 20, RANGE 30": "from 130",
    "SELECT a, count(*) AS n FROM R GROUP BY a WINDOW RANGE 40": "from 140",
    "SELECT count(*) AS n FROM R GROUP BY TUMBLE(ts, 30 ms)": "from 149",
    "SELECT count(*) AS n FROM R GROUP BY HOP(ts, 10 ms, 30 ms)": "from 129",
    "SELECT a, sum(a) OVER (ORDER BY ts RANGE BETWEEN 25 PRECEDING AND CURRENT ROW) AS s FROM R": "from 125",
    "SELECT R.a FROM R LEFT JOIN S ON R.a = S.d WINDOW RANGE 20": "from 120",
    "SELECT R.a FROM R WINDOW RANGE 20 EMIT CHANGES": "from 121",
    "SELECT a FROM R UNION ALL SELECT d FROM S": "from 100",
    "PATTERN ANY x; ANY y FROM R WHERE x.a < y.a WITHIN 35 ms RETURN y.a, y.ts AS ts_newest": "from 135",
}

PAIRS = "FROM R, S WHERE R.a = S.d"
COUNTED = {
    f"SELECT a, d {PAIRS} WINDOW ROWS 7, ROWS 3": ("from 7 rows of R and 3 rows of S on", 106),
    f"SELECT a, d {PAIRS} WINDOW ROWS 3, RANGE 20": ("from 3 rows of R on, not before 120", 120),
    f"SELECT a, d {PAIRS} WINDOW RANGE 9, ROWS 30": ("from 30 rows of S on, not before 109", 129),
    f"SELECT a, d {PAIRS} WINDOW ROWS 12, NOW": ("from 12 rows of R on", 111),
    "SELECT x.a, y.a AS b FROM R x, R y WHERE x.a = y.a WINDOW ROWS 9, RANGE 5": (
        "from 9 rows of R on, not before 105", 108
    ),
    "SELECT a FROM R WINDOW ROWS 1": ("from 100", 100),
    "SELECT a, count(*) AS n FROM R GROUP BY a WINDOW ROWS 1": ("from 1 row of R on", 100),
    "SELECT R.a FROM R WINDOW ROWS 8 EMIT CHANGES": ("from 1 ms after 8 rows of R on", 108),
    f"SELECT count(*) AS n {PAIRS} GROUP BY TUMBLE(ts_newest, 30 ms) WINDOW ROWS 7, ROWS 3": (
        "from the first window after 7 rows of R and 3 rows of S on", 149
    ),
    f"SELECT count(*) AS n {PAIRS} GROUP BY TUMBLE(ts_newest, 30 ms) WINDOW ROWS 7, RANGE 25": (
        "from the first window after 7 rows of R on, not before 179", 179
    ),
    f"SELECT x.a, count(*) AS n FROM (SELECT a {PAIRS} WINDOW ROWS 40, ROWS 3) x GROUP BY x.a"
    " WINDOW RANGE 25": ("from 25 ms after 40 rows of R and 3 rows of S on", 164),
    "SELECT x.a, count(*) AS n FROM (SELECT a FROM R WHERE a > -1) x GROUP BY x.a WINDOW ROWS 9": (
        "from 9 rows of q on", 108
    ),
}  # fmt: skip
"""What is said where rows count, and the time at which they have come if there is one of each stream
every millisecond."""


@pytest.mark.parametrize("form", [*FORMS, *COUNTED])
def test_results_from_then_on_are_those_of_a_query_that_was_there(form: str) -> None:
    seed = 22
    print(f"seed {seed}")
    chance = random.Random(seed)
    before = compile_text(STREAMS, options=Options(devices=0))
    after = compile_text(f"REGISTER QUERY q AS {form};", after=before)
    (said,) = complete_from(after, ["q"], {"R": 100, "S": 100}, ()).values()
    wanted, since = COUNTED.get(form) or (FORMS[form], int(FORMS[form].split()[1]))
    assert said == wanted
    late, always = GraphRun(after), GraphRun(after)
    found: dict[int, list[object]] = {0: [], 1: []}
    for ts in range(300):
        for stream, column in (("R", "a"), ("S", "d")):
            rows = pa.table({"ts": [ts], column: [chance.randrange(4)]})
            for number, run in enumerate((always, late)):
                if number == 0 or ts >= 100:
                    run.push(stream, rows)
    for number, run in enumerate((always, late)):
        for _, rows in run.finish():
            found[number] += [r for r in rows.to_pylist() if r["ts_newest"] >= since]
    assert found[0], "there is something to compare"
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("SELECT a, count(*) FROM R GROUP BY a WINDOW ROWS 7", "from 7 rows of R on"),
        ("SELECT a, count(*) FROM R GROUP BY a WINDOW UNBOUNDED", "never: .*"),
        (
            "SELECT count(*) FROM R GROUP BY SESSION(ts, 5 ms)",
            "sessions that begin at 105 or later",
        ),
        ("SELECT d FROM S", BEGINNING),
        ("SELECT d FROM S JOIN T ON d = k WINDOW NOW", BEGINNING),
        (
            "SELECT DISTINCT a FROM R WINDOW RANGE 5",
            "rows that were given before 100 may come again",
        ),
        ("APAS $$ select [$R[T]] $$", "what began before 100 is missing"),
    ],
)
def test_what_no_time_can_say(form: str, said: str) -> None:
    c = compile_text(f"{STREAMS}REGISTER QUERY q AS {form};", options=Options(devices=0))
    assert re.fullmatch(said, complete_from(c, ["q"], {"R": 100}, ())["q"])


@pytest.mark.parametrize(
    ("form", "said"),
    [
        (f"SELECT a, d {PAIRS} WINDOW ROWS 1, UNBOUNDED", "rows of S .* missing from UNBOUNDED"),
        (f"SELECT a, d {PAIRS} WINDOW UNBOUNDED, ROWS 1", "rows of R .* missing from UNBOUNDED"),
        (
            f"SELECT count(*) AS n {PAIRS} GROUP BY TUMBLE(ts_newest, 9 ms) WINDOW ROWS 1, UNBOUNDED",
            "rows of S .* missing from UNBOUNDED",
        ),
        (
            "SELECT x.n, count(*) AS m FROM (SELECT count(*) AS n FROM R GROUP BY SESSION(ts, 5 ms)) x"
            " GROUP BY x.n WINDOW UNBOUNDED",
            "rows of .* missing from UNBOUNDED",
        ),
        (
            "SELECT n, sum(n) OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s"
            " FROM (SELECT count(*) AS n FROM R GROUP BY SESSION(ts, 5 ms)) x",
            "rows that came before are not counted",
        ),
    ],
)
def test_what_is_never_complete_is_said_before_what_else_is_missing(form: str, said: str) -> None:
    c = compile_text(f"{STREAMS}REGISTER QUERY q AS {form};", options=Options(devices=0))
    found = complete_from(c, ["q"], {"R": 100, "S": 100}, ())["q"]
    assert re.fullmatch(f"never: {said}", found), found


def test_rows_of_a_stream_count_from_where_it_is_complete() -> None:
    texts = {
        "RANGE 50": "from 4 rows of D since 150 on",
        "ROWS 7, RANGE 20": "from 4 rows of D since 7 rows of R (120 at the earliest) on",
        "ROWS 7": "from 4 rows of D since 7 rows of R and 7 rows of S on",
    }
    for window, said in texts.items():
        text = f"{STREAMS}CREATE STREAM D AS SELECT R.a {PAIRS} WINDOW {window};"
        query = "REGISTER QUERY q AS SELECT a, count(*) AS n FROM D GROUP BY a WINDOW ROWS 4"
        c = compile_text(text + query, options=Options(devices=0))
        assert complete_from(c, ["q"], {"R": 100, "S": 100}, ()) == {"q": said}


def test_windows_that_a_join_keeps_are_shared() -> None:
    kept = "REGISTER QUERY k AS SELECT R.a FROM R, S WHERE R.a = S.d WINDOW RANGE 20;"
    c = compile_text(
        f"{STREAMS}{kept}REGISTER QUERY small AS SELECT a, count(*) FROM R GROUP BY a WINDOW RANGE 20;"
        "REGISTER QUERY large AS SELECT a, count(*) FROM R GROUP BY a WINDOW RANGE 21;",
        options=Options(devices=0),
    )
    joins = [query for query in c.program.queries if query.name == "k"]
    assert complete_from(c, ["small", "large"], {"R": 100, "S": 90}, joins) == {
        "small": "from 100",
        "large": "from 121",
    }


def test_a_stream_that_was_defined_before_goes_on() -> None:
    text = STREAMS + "CREATE STREAM D AS SELECT R.a FROM R, S WHERE R.a = S.d WINDOW RANGE 50;"
    c = compile_text(text + "REGISTER QUERY q AS SELECT a FROM D", options=Options(devices=0))
    for before, said in {
        BEGINNING: "from 100",
        "from 60": "from 100",
        "from 160": "from 160",
        "from 7 rows of R on": "from 7 rows of R on, not before 100",
        "from 7 rows of R on, not before 160": "from 7 rows of R on, not before 160",
        "matches that begin before 60 are missing": "matches that begin before 60 are missing",
    }.items():
        assert complete_from(c, ["q"], {"R": 100}, (), {"D": before}) == {"q": said}
    assert complete_from(c, ["q"], {"R": 100}, ()) == {"q": "from 150"}
