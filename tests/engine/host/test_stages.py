"""Queries over derived streams, compared with the same in one query or with DuckDB."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.pattern.statements import compile_pattern
from seustream.compiler.pipeline import compile_text
from seustream.engine.pattern.event import BEGIN_OF_TIME, END_OF_STREAM
from seustream.engine.pattern.operator import PatternOperator
from seustream.engine.pattern.stream import PatternNode
from tests.engine.host.test_grouping import R, S, answers, random_r, rows_of


def streams(seed: int, count: int = 80) -> dict[str, pa.Table]:
    chance = np.random.default_rng(seed)
    s = pa.table(
        {
            "ts": np.cumsum(chance.integers(0, 4, count)),
            "a": chance.integers(0, 4, count).astype(np.int32),
            "d": chance.integers(0, 9, count),
        }
    )
    return {"R": random_r(chance, count), "S": s}


@pytest.mark.parametrize(("pushes", "slice_rows"), [(1, 8192), (6, 5)])
@pytest.mark.parametrize("seed", range(4))
def test_a_filtered_stream_joins_like_the_filter_in_the_query(
    seed: int, pushes: int, slice_rows: int
) -> None:
    print(f"seed {seed}")
    text = f"""{R}{S}
    CREATE STREAM F AS SELECT a, b, c FROM R WHERE b > 0 WINDOW NOW;
    REGISTER QUERY through AS SELECT F.c, S.d FROM F, S WHERE F.a = S.a WINDOW RANGE 7;
    REGISTER QUERY straight AS SELECT R.c, S.d FROM R, S WHERE R.a = S.a AND b > 0 WINDOW RANGE 7;
    """
    found = answers(text, streams(seed), pushes, slice_rows)
    assert sorted(map(str, rows_of(found["through"]))) == sorted(
        map(str, rows_of(found["straight"]))
    )
    assert found["through"].num_rows > 20


@pytest.mark.parametrize("seed", range(4))
def test_a_join_a_group_and_a_join_again(seed: int) -> None:
    """Three levels; DuckDB computes each level from the rows of the one before."""
    print(f"seed {seed}")
    text = f"""{R}{S}
    CREATE STREAM J AS SELECT R.c, S.d, R.a FROM R, S WHERE R.a = S.a WINDOW RANGE 3;
    CREATE STREAM G AS SELECT c, max(d) AS top FROM J GROUP BY c HAVING max(d) > 4 WINDOW RANGE 9;
    REGISTER QUERY j AS SELECT J.c, J.d, J.a FROM J WINDOW NOW;
    REGISTER QUERY g AS SELECT G.c, G.top FROM G WINDOW NOW;
    REGISTER QUERY last AS SELECT G.c, G.top, S.d FROM G, S WHERE G.top < S.d WINDOW NOW, RANGE 4;
    """
    data = streams(seed)
    found = answers(text, data, 4, 9)
    with duckdb.connect() as connection:
        for name, rows in {**data, "g": found["g"], "j": found["j"]}.items():
            connection.register(name, rows.append_column("n", pa.array(range(rows.num_rows))))
        joined = connection.execute(
            "SELECT c, d, R.a, least(R.ts, S.ts), greatest(R.ts, S.ts) FROM R, S WHERE R.a = S.a"
            " AND abs(R.ts - S.ts) <= 3"
        ).fetchall()
        assert sorted(map(str, _times(found["j"]))) == sorted(
            str((c, d, a, newest)) for c, d, a, _, newest in joined
        )
        grouped = connection.execute(
            """SELECT * EXCLUDE (n) FROM (SELECT x.c, (SELECT max(y.d) FROM j y WHERE y.c = x.c AND y.n <= x.n
               AND y.ts_newest >= x.ts_newest - 9) AS top, x.ts_newest, x.n FROM j x)
               WHERE top > 4 ORDER BY n"""
        ).fetchall()
        assert _times(found["g"]) == grouped
        # A row of G meets the rows of S before it, and S comes first at equal times. When an S
        # arrives, NOW can hold only a G of the same time, and no S of that time follows that G.
        last = connection.execute(
            """SELECT g.c, g.top, S.d FROM g, S WHERE g.top < S.d
               AND S.ts BETWEEN g.ts_newest - 4 AND g.ts_newest"""
        ).fetchall()
        assert sorted(map(str, last)) == sorted(str(row[:3]) for row in rows_of(found["last"]))


def _times(table: pa.Table) -> list[tuple[object, ...]]:
    """Returns rows with only their newest time, which is the time of a derived tuple."""
    return [(*row[:-2], row[-1]) for row in rows_of(table)]


def test_a_self_join_of_a_derived_stream() -> None:
    text = (
        R
        + """CREATE STREAM F AS SELECT a, b FROM R WHERE b > 0 WINDOW NOW;
    SELECT x.b AS one, y.b AS other FROM F x, F y WHERE x.a = y.a AND x.b < y.b WINDOW UNBOUNDED;"""
    )
    r = pa.table(
        {"ts": [1, 2, 3, 4], "a": [1, 1, 2, 1], "b": [2.0, 3.0, 4.0, -1.0], "c": ["x"] * 4}
    )
    assert rows_of(answers(text, {"R": r})["q0"]) == [(2.0, 3.0, 1, 2)]


def test_definitions_nobody_reads_do_not_run() -> None:
    text = R + "CREATE STREAM F AS SELECT a FROM R WINDOW NOW; SELECT a FROM R WINDOW NOW;"
    assert [query.name for query in compile_text(text).program.queries] == ["q0"]


def test_a_stream_and_a_query_may_share_a_name() -> None:
    text = (
        R
        + """CREATE STREAM F AS SELECT a FROM R WHERE a = 1 WINDOW NOW;
    REGISTER QUERY F AS SELECT a FROM F WINDOW NOW;"""
    )
    r = pa.table({"ts": [1, 2], "a": [1, 2], "b": [0.0, 0.0], "c": ["x", "y"]})
    assert {name: rows_of(t) for name, t in answers(text, {"R": r}).items()} == {"F": [(1, 1, 1)]}


def test_nothing_comes_of_nothing() -> None:
    text = (
        R
        + """CREATE STREAM F AS SELECT a FROM R WINDOW NOW;
    SELECT count(*) AS n FROM F WINDOW NOW;"""
    )
    empty = random_r(np.random.default_rng(0), 0)
    assert answers(text, {"R": empty})["q0"].num_rows == 0


PATTERN = """
    CREATE STREAM J AS SELECT R.c, S.d, R.a FROM R, S WHERE R.a = S.a WINDOW RANGE 3;
    CREATE STREAM P AS PATTERN ANY x; ANY y FROM {} WHERE x.a = y.a AND y.d > x.d{}
    WITHIN 6 ms RETURN x.a, y.d;
    REGISTER QUERY p AS SELECT a, d FROM P WINDOW NOW;
    REGISTER QUERY j AS SELECT c, d, a FROM J WINDOW NOW;
    REGISTER QUERY joined AS SELECT P.d, R.c FROM P, R WHERE P.a = R.a WINDOW RANGE 4;
    REGISTER QUERY counted AS SELECT a, count(*) AS n FROM P GROUP BY a WINDOW RANGE 9;
"""


@pytest.mark.parametrize(("pushes", "slice_rows"), [(1, 8192), (7, 3)])
@pytest.mark.parametrize("absent", [False, True])
@pytest.mark.parametrize("source", ["S", "J"])
@pytest.mark.parametrize("seed", range(2))
def test_queries_over_a_pattern(
    seed: int, source: str, absent: bool, pushes: int, slice_rows: int
) -> None:
    """Equals a run in which the pattern's matches are an input stream, however the rows come; with
    an absence at the end, a match is known one window after its last event."""
    print(f"seed {seed}")
    sequence = PATTERN.replace("ANY y FROM", "ANY y; !ANY z FROM") if absent else PATTERN
    end = " AND z.d > 7" if absent else ""
    data = streams(seed, 60)
    found = answers(R + S + sequence.format(source, end), data, pushes, slice_rows)

    rows = data["S"]
    columns = "a int, d bigint"
    if source == "J":
        *values, _, newest = found["j"].columns
        rows = pa.table([newest, *values], names=["ts", "c", "d", "a"])
        columns = "c varchar, d int, a int"
    stream = compile_text(f"CREATE STREAM {source} ({columns});").streams[0]
    text = f"PATTERN ANY x; ANY y{'; !ANY z' if absent else ''} FROM {source} WHERE x.a = y.a"
    text += f" AND y.d > x.d{end} WITHIN 6 ms RETURN x.a, y.d"
    operator = PatternOperator(compile_pattern(text, stream))
    operator.push_table(rows.select(["ts", *(c.name for c in stream.columns)]))
    matches, times = operator.advance_table(END_OF_STREAM)
    want = sorted(zip(*matches.to_pydict().values(), times.tolist(), times.tolist(), strict=True))
    assert sorted(rows_of(found["p"])) == want
    assert len(want) > 5

    given = pa.table({"ts": times, "a": matches["a"], "d": matches["d"]})
    again = PATTERN[PATTERN.index("    REGISTER QUERY joined") :]
    text = f"{R}{S} CREATE STREAM P (a int, d bigint);{again}"
    alone = answers(text, {"R": data["R"], "P": given.sort_by("ts")})
    for name in ("joined", "counted"):
        ours, theirs = (sorted(map(str, rows_of(one[name]))) for one in (found, alone))
        assert len(ours) == len(theirs) > 5
        if name == "joined":  # at equal times another order gives other counts in between
            assert ours == theirs


def test_a_pattern_promises_what_it_can() -> None:
    """A match of a pattern that ends in an absence has the time of the window's end; its readers
    wait no longer than that."""
    known = compile_text(S).streams[0]
    query = compile_pattern("PATTERN ANY x; !ANY y FROM S WITHIN 5 ms RETURN x.a", known)
    node = PatternNode(replace(query, defines="P"))
    assert node.watermark == BEGIN_OF_TIME
    for ts in (3, -1 << 62):
        node.push("S", pa.table({"ts": [ts], "a": pa.array([7], pa.int32()), "d": [1]}))
    assert node.operator.stats.bad_events == 1
    node.advance("S", 7)
    assert list(node.outputs()) == []
    assert node.watermark == 7
    node.advance("S", 8)
    ((name, rows),) = node.outputs()
    assert (name, rows.to_pylist()) == ("q0", [{"ts": 8, "a": 7}])
    assert node.watermark == 8
