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


@pytest.mark.parametrize("form", FORMS)
def test_results_from_then_on_are_those_of_a_query_that_was_there(form: str) -> None:
    seed = 22
    print(f"seed {seed}")
    chance = random.Random(seed)
    before = compile_text(STREAMS, options=Options(devices=0))
    after = compile_text(f"REGISTER QUERY q AS {form};", after=before)
    (said,) = complete_from(after, ["q"], {"R": 100, "S": 100}, ()).values()
    assert said == FORMS[form]
    since = int(said.split()[1])
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
        "from 7 rows of R on": "from 7 rows of R on",
    }.items():
        assert complete_from(c, ["q"], {"R": 100}, (), {"D": before}) == {"q": said}
    assert complete_from(c, ["q"], {"R": 100}, ()) == {"q": "from 150"}
