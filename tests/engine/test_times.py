"""Times of results have the type of the input's time."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from seustream.compiler.pipeline import compile_text
from seustream.cosim.golden import GoldenDevice
from seustream.engine.assembly import answer_schemas
from seustream.engine.graph import GraphRun, drive
from seustream.engine.times import INSTANT, UNKNOWN, Times

TEXT = """CREATE STREAM R (a int, kind varchar(1));
CREATE STREAM S (a int);
CREATE STREAM J AS SELECT R.a, R.kind, S.ts AS moment FROM R, S WHERE R.a = S.a WINDOW RANGE 1 min;
REGISTER QUERY pair AS SELECT R.ts, S.TimeStamp AS t, R.ts + 1 AS later FROM R, S WHERE R.a = S.a WINDOW RANGE 1 min;
REGISTER QUERY alone AS SELECT a, ts FROM R WINDOW NOW;
REGISTER QUERY sums AS SELECT count(*) AS n FROM S WINDOW UNBOUNDED;
REGISTER QUERY over AS SELECT a, moment FROM J WINDOW NOW;
REGISTER QUERY one AS SELECT a FROM R WINDOW NOW UNION ALL SELECT a + 1 FROM R WINDOW NOW;
REGISTER QUERY tumbling AS SELECT window_start AS since, window_end - 1 AS n FROM R GROUP BY TUMBLE(ts, 1 s);
REGISTER QUERY all_of AS SELECT a FROM R WINDOW NOW UNION ALL SELECT a FROM S WINDOW NOW;
CREATE STREAM M AS SELECT a, window_end AS e, count(*) AS n FROM R GROUP BY a, TUMBLE(ts, 1 s);
REGISTER QUERY ranked AS SELECT e, e + 1 AS more, rank() OVER (PARTITION BY e ORDER BY n) AS r FROM M;
REGISTER QUERY both AS SELECT M.e, R.ts AS t FROM M LEFT JOIN R ON M.a = R.a WINDOW RANGE 1 min;
REGISTER QUERY windowed AS SELECT window_start, window_end FROM TUMBLE(TABLE R, DESCRIPTOR(ts), 1 s);
REGISTER QUERY unlike AS SELECT e FROM M UNION ALL SELECT CAST(a AS bigint) FROM R;
REGISTER QUERY once AS SELECT DISTINCT ts AS t FROM R WINDOW RANGE 5;
REGISTER QUERY rise AS PATTERN X x; Y+ y FROM R TYPE BY kind WHERE y[i].a > x.a WITHIN 5 s RETURN x, y.ts AS times, y.a;
"""
BEGIN = 1767225600000
SECONDS, UTC_MS, NAIVE_US = pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.timestamp("us")


def types(**given: pa.DataType) -> dict[str, dict[str, str]]:
    """Returns the timestamp columns of each query."""
    program = compile_text(TEXT).program
    times = Times(program, given)
    found = {name: times.schema(name, s) for name, s in answer_schemas(program).items()}
    return {
        name: {f.name: str(f.type) for f in schema if "timestamp" in str(f.type)}
        for name, schema in found.items()
    }


def test_integers_stay_integers() -> None:
    assert not any(types(R=pa.int64(), S=pa.int32()).values())
    assert not any(types().values())


def test_a_column_that_is_a_time_has_its_streams_type() -> None:
    """A value computed from a time is a number; a query over both streams has integers."""
    zoned = "timestamp[ms, tz=UTC]"
    own = {"ts_oldest": zoned, "ts_newest": zoned}
    assert types(R=UTC_MS, S=pa.int64()) == {
        "pair": {"ts": zoned},
        "alone": {"ts": zoned, "ts_oldest": zoned, "ts_newest": zoned},
        "sums": {},
        "over": {},
        "one": {"ts_oldest": zoned, "ts_newest": zoned},
        "tumbling": {"since": zoned, "ts_oldest": zoned, "ts_newest": zoned},
        "ranked": {"e": zoned, **own},
        "both": {"e": zoned, "t": zoned, **own},
        "windowed": {"window_start": zoned, "window_end": zoned, **own},
        "unlike": own,
        "once": {"t": zoned, **own},
        "all_of": {},
        "rise": {"x_ts": zoned, "times": f"list<item: {zoned}>"},
    }


def test_a_stream_without_times_yet_decides_nothing() -> None:
    zoned = "timestamp[ms, tz=UTC]"
    for found in (types(R=UTC_MS), types(R=UTC_MS, S=UNKNOWN)):
        for name in ("pair", "over", "all_of"):
            assert found[name]["ts_oldest"] == found[name]["ts_newest"] == zoned
        assert "t" not in found["pair"], "a time of S alone"
    assert not any(types(R=UNKNOWN).values())


@pytest.mark.parametrize(
    ("r", "s", "both"),
    [
        (UTC_MS, UTC_MS, "timestamp[ms, tz=UTC]"),
        (UTC_MS, pa.timestamp("ms", "Asia/Tokyo"), "timestamp[ms, tz=UTC]"),
        (NAIVE_US, NAIVE_US, "timestamp[us]"),
        (NAIVE_US, UTC_MS, "timestamp[ms, tz=UTC]"),
        (SECONDS, SECONDS, "timestamp[ms]"),
        (NAIVE_US, SECONDS, "timestamp[ms]"),
    ],
)
def test_two_streams(r: pa.DataType, s: pa.DataType, both: str) -> None:
    found = types(R=r, S=s)
    assert {found["pair"][name] for name in ("ts_oldest", "ts_newest")} == {both}
    assert {found["over"][name] for name in ("ts_oldest", "ts_newest")} == {both}


def test_values() -> None:
    """Milliseconds of a run come out as the moments they stand for."""
    compiled = compile_text(TEXT)
    r = {"ts": [BEGIN, BEGIN + 1, BEGIN + 1500], "a": [1, 2, 3], "kind": ["X", "Y", "Y"]}
    tables = {"R": pa.table(r), "S": pa.table({"ts": [BEGIN + 250], "a": [1]})}
    run = GraphRun(compiled, GoldenDevice(compiled.options.config))
    times = Times(compiled.program, {"R": UTC_MS, "S": pa.timestamp("ns", "Asia/Tokyo")})
    found = {}
    for name, rows in drive(run, tables):
        kept = times.results(name, rows)
        assert kept.schema == times.schema(name, rows.schema)
        found[name] = kept.to_pylist()

    def at(milliseconds: int) -> datetime:
        return datetime.fromtimestamp((BEGIN + milliseconds) / 1000, UTC)

    (pair,) = found["pair"]
    assert pair == {
        "ts": at(0),
        "t": at(250),
        "later": BEGIN + 1,
        "ts_oldest": at(0),
        "ts_newest": at(250),
    }
    assert [row["times"] for row in found["rise"]] == [[at(1), at(1500)]]
    assert times.rows("S", tables["S"]).column("ts").type == pa.timestamp("ns", "Asia/Tokyo")


MOMENTS = """CREATE STREAM R (a int, t timestamp, u timestamp, kind varchar(1));
CREATE STREAM S (a int, v timestamp);
CREATE STREAM D AS SELECT a, t AS w, u FROM R;
CREATE STREAM P AS PATTERN X x; Y y FROM R TYPE BY kind WITHIN 5 s RETURN x.t AS began;
REGISTER QUERY own AS SELECT t, u, t + INTERVAL '1' DAY AS d, coalesce(t, TIMESTAMP '2026-01-05 08:00:00') AS c,
  coalesce(t, u) AS mixed, t = t AS same FROM R;
REGISTER QUERY derived AS SELECT w, u FROM D;
REGISTER QUERY joined AS SELECT greatest(R.t, S.v) AS g, S.v FROM R, S WHERE R.a = S.a WINDOW RANGE 5;
REGISTER QUERY sums AS SELECT a, max(t) AS last, min(u) AS low, array_agg(t) AS every, array_agg(u) AS each FROM R GROUP BY a WINDOW ROWS 5;
REGISTER QUERY tumbling AS SELECT window_end, max(t) AS last FROM R GROUP BY TUMBLE(ts, 1 s);
REGISTER QUERY over AS SELECT t, lag(t) OVER (ORDER BY ts) AS l, max(u) OVER (ORDER BY ts ROWS 2 PRECEDING) AS m FROM R;
REGISTER QUERY one AS SELECT t FROM R UNION ALL SELECT v FROM S;
REGISTER QUERY two AS SELECT t FROM R UNION ALL SELECT u FROM R;
REGISTER QUERY rise AS PATTERN X x; Y+ y FROM R TYPE BY kind WITHIN 5 s RETURN x, y.t AS ts_of, max(y.t) AS m, max(y.u) AS n;
REGISTER QUERY began AS SELECT began FROM P;
REGISTER QUERY rows AS SELECT * FROM R MATCH_RECOGNIZE (ORDER BY ts MEASURES LAST(y.t) AS l, FIRST(y.u) AS f,
  max(y.t) AS m PATTERN (x y+) WITHIN INTERVAL '5' SECOND DEFINE y AS y.a > x.a);
"""


def test_instants_are_what_is_computed_from_nothing_else() -> None:
    program = compile_text(MOMENTS).program
    times = Times(program, {}, {"R": ["t"], "S": ["v"]})
    found = {
        name: [
            field.name
            for field in times.zoned(name, schema)
            if "tz=UTC" in str(field.type) and "[us" in str(field.type)
        ]
        for name, schema in answer_schemas(program).items()
    }
    assert found == {
        "own": ["t", "d", "c"],
        "derived": ["w"],
        "joined": ["g", "v"],
        "sums": ["last", "every"],
        "tumbling": ["last"],
        "over": ["t", "l"],
        "one": ["t"],
        "two": [],
        "rise": ["x_t", "ts_of", "m"],
        "began": ["began"],
        "rows": ["l", "m"],
    }
    schema = answer_schemas(program)["own"]
    assert times.late("R", schema).field("t").type == INSTANT
    moment = datetime(2026, 1, 5, 8, 0, 0, 1)
    rows = pa.table(
        {"t": [moment], "u": [moment]}, schema=pa.schema([schema.field("t"), schema.field("u")])
    )
    kept = times.results("own", rows)
    assert kept.to_pylist() == [{"t": moment.replace(tzinfo=UTC), "u": moment}]
