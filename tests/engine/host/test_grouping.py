"""GROUP BY over sliding windows, compared with DuckDB's windows and with a recomputation from
scratch.

The recomputation keeps everything and determines at each arrival, by definition, which members are
in the windows; it finds members that stay too long or leave too early, however the input is sliced.
DuckDB judges the values of the aggregates, with NULLs and types.
"""

from __future__ import annotations

import random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.pipeline import compile_text
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun
from seustream.engine.host.errors import EvaluationError
from seustream.engine.host.stages import SoftwareJoin

R = "CREATE STREAM R (a int, b double precision, c varchar(9));"
S = "CREATE STREAM S (a int, d bigint);"


def answers(
    text: str, streams: dict[str, pa.Table], pushes: int = 1, slice_rows: int = 8192
) -> dict[str, pa.Table]:
    """Returns all results; pushes the streams in this many parts."""
    compilation = compile_text(text)
    driver = GraphRun(compilation, GoldenDevice(compilation.options.config), slice_rows=slice_rows)
    found: dict[str, list[pa.Table]] = {q.name: [] for q in compilation.program.asked}
    for part in range(pushes):
        for name, rows in streams.items():
            cut = [rows.num_rows * p // pushes for p in (part, part + 1)]
            driver.push(name, rows.slice(cut[0], cut[1] - cut[0]))
        for name, rows in driver.advance():
            found[name].append(rows)
    for name, rows in driver.finish():
        found[name].append(rows)
    return {
        name: pa.concat_tables(parts) if parts else pa.table({}) for name, parts in found.items()
    }


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


def random_r(chance: np.random.Generator, count: int, distinct: bool = False) -> pa.Table:
    step = chance.integers(1 if distinct else 0, 4, count)
    return pa.table(
        {
            "ts": np.cumsum(step),
            "a": pa.array(
                chance.integers(0, 4, count).astype(np.int32), mask=chance.random(count) < 0.1
            ),
            "b": pa.array(chance.integers(-20, 20, count) / 4, mask=chance.random(count) < 0.1),
            "c": pa.array([f"w{i}" for i in chance.integers(0, 5, count)]),
        }
    )


SQL = """
SELECT a, count(*) OVER w, count(b) OVER w, sum(b) OVER w, avg(b) OVER w, min(b) OVER w, max(b) OVER w,
       sum(length(c)) OVER w, min(c) OVER w, max(c) OVER w, min(ts) OVER w, ts
FROM r WINDOW w AS (PARTITION BY a ORDER BY {order} {frame}) ORDER BY ts, n
"""
TEXT = (
    R
    + """
SELECT a, count(*) AS n, count(b) AS m, sum(b) AS s, avg(b) AS v, min(b) AS lo, max(b) AS hi,
       sum(length(c)) AS l, min(c) AS first, max(c) AS last
FROM R GROUP BY a WINDOW {window};
"""
)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [0, 5, 40])
def test_range_against_duckdb(seed: int, size: int) -> None:
    """All timestamps differ: SQL counts later tuples of the same time, which a stream has not seen
    yet."""
    print(f"seed {seed}")
    chance = np.random.default_rng(seed)
    r = random_r(chance, 300, distinct=True).append_column("n", pa.array(range(300)))
    sql = SQL.format(order="ts", frame=f"RANGE BETWEEN {size} PRECEDING AND CURRENT ROW")
    with duckdb.connect() as connection:
        connection.register("r", r)
        want = connection.execute(sql).fetchall()
    found = answers(
        TEXT.format(window=f"RANGE {size}"), {"R": r.drop(["n"])}, pushes=7, slice_rows=37
    )
    assert rows_of(found["q0"]) == want


@pytest.mark.parametrize("seed", range(4))
def test_unbounded_against_duckdb(seed: int) -> None:
    """With ties: the frame counts rows, as arrivals do."""
    print(f"seed {seed}")
    r = random_r(np.random.default_rng(seed), 200).append_column("n", pa.array(range(200)))
    sql = SQL.format(order="ts, n", frame="ROWS UNBOUNDED PRECEDING")
    with duckdb.connect() as connection:
        connection.register("r", r)
        want = connection.execute(sql).fetchall()
    found = answers(TEXT.format(window="UNBOUNDED"), {"R": r.drop(["n"])}, pushes=3, slice_rows=50)
    assert rows_of(found["q0"]) == want


@pytest.mark.parametrize("seed", range(6))
def test_rows_count_the_stream_not_the_group(seed: int) -> None:
    print(f"seed {seed}")
    r = random_r(np.random.default_rng(seed), 120)
    text = (
        R + "SELECT a, count(*) AS n, sum(b) AS s FROM R WHERE c <> 'w0' GROUP BY a WINDOW ROWS 9;"
    )
    data = r.to_pylist()
    want = []
    for i, row in enumerate(data):
        if row["c"] != "w0":
            live = [x for x in data[max(i - 8, 0) : i + 1] if x["a"] == row["a"] and x["c"] != "w0"]
            known = [x["b"] for x in live if x["b"] is not None]
            want.append(
                (row["a"], len(live), sum(known) if known else None, live[0]["ts"], row["ts"])
            )
    assert rows_of(answers(text, {"R": r}, pushes=4, slice_rows=11)["q0"]) == want


@pytest.mark.parametrize(
    "windows", ["RANGE 6", "RANGE 9, ROWS 4", "ROWS 3, RANGE 12", "UNBOUNDED, NOW"]
)
@pytest.mark.parametrize("seed", range(5))
def test_join_results_against_a_recomputation(windows: str, seed: int) -> None:
    print(f"seed {seed}")
    chance = np.random.default_rng(seed)
    r = random_r(chance, 60)
    s = pa.table(
        {
            "ts": np.cumsum(chance.integers(0, 4, 60)),
            "a": chance.integers(0, 4, 60).astype(np.int32),
            "d": chance.integers(0, 9, 60),
        }
    )
    text = f"""{R}{S} SELECT c, count(*) AS n, sum(d) AS s, max(b) AS m FROM R, S WHERE R.a = S.a
               GROUP BY c HAVING count(*) > 1 WINDOW {windows};"""
    want = _recomputed(r.to_pylist(), s.to_pylist(), windows)
    for pushes, slice_rows in ((1, 8192), (5, 7)):
        found = rows_of(answers(text, {"R": r, "S": s}, pushes, slice_rows)["q0"])
        assert sorted(found, key=str) == sorted(want, key=str)
        assert [row[-1] for row in found] == [row[-1] for row in want]


def _recomputed(r: list[Any], s: list[Any], windows: str) -> list[tuple[Any, ...]]:
    both = [w.split() for w in windows.split(", ")] * 2
    arrivals = sorted(
        [(row["ts"], 0, i) for i, row in enumerate(r)]
        + [(row["ts"], 1, i) for i, row in enumerate(s)]
    )
    want = []
    seen: tuple[list[int], list[int]] = ([], [])
    for now, stream, place in arrivals:
        seen[stream].append(place)

        def live(k: int, now: int = now) -> list[int]:
            kind, *size = both[k]
            if kind == "ROWS":
                return seen[k][-int(size[0]) :]
            oldest = -1 if kind == "UNBOUNDED" else now - (int(size[0]) if size else 0)
            return [i for i in seen[k] if (r, s)[k][i]["ts"] >= oldest]

        pairs = [(r[i], s[j], i, j) for i in live(0) for j in live(1) if r[i]["a"] == s[j]["a"]]
        new = [p for p in pairs if p[2 + stream] == place]
        for c in dict.fromkeys(p[0]["c"] for p in sorted(new, key=lambda p: p[2:])):
            mine = [p for p in pairs if p[0]["c"] == c]
            known = [p[0]["b"] for p in mine if p[0]["b"] is not None]
            if len(mine) > 1:
                oldest = min(min(p[0]["ts"], p[1]["ts"]) for p in mine)
                total = sum(p[1]["d"] for p in mine)
                want.append((c, len(mine), total, max(known, default=None), oldest, now))
    return want


@pytest.mark.parametrize("windows", ["RANGE 6", "RANGE 9, ROWS 4", "ROWS 3, RANGE 12", "ROWS 1"])
@pytest.mark.parametrize("seed", range(4))
def test_one_arrival_is_one_instant_in_a_self_join(windows: str, seed: int) -> None:
    """A tuple that comes in both roles gives its group one row for everything it adds."""
    print(f"seed {seed}")
    r = random_r(np.random.default_rng(seed), 60)
    text = f"""{R} SELECT x.c AS c, count(*) AS n, sum(y.b) AS s FROM R x, R y WHERE x.a = y.a
               GROUP BY x.c WINDOW {windows};"""
    data, both = r.to_pylist(), [w.split() for w in windows.split(", ")] * 2
    want = []
    for place, row in enumerate(data):
        roles = []
        for kind, size in both[:2]:
            first = place + 1 - int(size) if kind == "ROWS" else 0
            since = row["ts"] - int(size) if kind == "RANGE" else 0
            roles.append([i for i in range(max(first, 0), place + 1) if data[i]["ts"] >= since])
        pairs = [(i, j) for i in roles[0] for j in roles[1] if data[i]["a"] == data[j]["a"]]
        pairs = [(i, j) for i, j in pairs if data[i]["a"] is not None]
        for c in dict.fromkeys(data[i]["c"] for i, j in pairs if place in (i, j)):
            mine = [(i, j) for i, j in pairs if data[i]["c"] == c]
            known = [data[j]["b"] for _, j in mine if data[j]["b"] is not None]
            oldest = min(data[min(pair)]["ts"] for pair in mine)
            want.append((c, len(mine), sum(known) if known else None, oldest, row["ts"]))
    for pushes, slice_rows in ((1, 8192), (5, 7)):
        found = rows_of(answers(text, {"R": r}, pushes, slice_rows)["q0"])
        assert sorted(found, key=str) == sorted(want, key=str)


def test_expressions_over_groups() -> None:
    text = (
        R
        + """SELECT upper(c) AS name, max(b) - min(b) AS gap, 2 * sum(a) + count(*) AS x
                  FROM R GROUP BY upper(c) HAVING max(b) > min(b) OR count(*) = 1 WINDOW UNBOUNDED;"""
    )
    r = pa.table(
        {
            "ts": [1, 2, 3, 4],
            "a": [1, 2, 3, 4],
            "b": [1.0, 2.0, 4.0, 2.0],
            "c": ["x", "X", "y", None],
        }
    )
    assert rows_of(answers(text, {"R": r})["q0"]) == [
        ("X", 0.0, 3, 1, 1), ("X", 1.0, 8, 1, 2), ("Y", 0.0, 7, 3, 3), (None, 0.0, 9, 4, 4),
    ]  # fmt: skip


def test_of_nothing_there_is_only_a_count() -> None:
    r = pa.table({"ts": [1], "a": pa.array([None], pa.int32()), "b": [float("nan")], "c": ["x"]})
    text = (
        R
        + "SELECT count(a) AS n, sum(a) AS s, avg(b) AS v, min(b) AS m, max(a) AS o FROM R WINDOW NOW;"
    )
    assert rows_of(answers(text, {"R": r})["q0"]) == [(0, None, None, None, None, 1, 1)]


def test_counts_alone() -> None:
    """Such a query reads no column."""
    r = random_r(np.random.default_rng(1), 9, distinct=True)
    found = answers(R + "SELECT count(*) AS n FROM R WINDOW ROWS 3;", {"R": r}, pushes=4)["q0"]
    assert [row[0] for row in rows_of(found)] == [1, 2, 3, 3, 3, 3, 3, 3, 3]


def test_types_of_extremes() -> None:
    text = """CREATE STREAM T (d date, t time, f boolean, r real);
    SELECT min(d) AS a, max(t) AS b, min(f) AS c, max(f) AS e, min(r) AS g FROM T WINDOW UNBOUNDED;"""
    t = pa.table({
        "ts": [1, 2],
        "d": pa.array([9, 3], pa.int32()).cast(pa.date32()),
        "t": pa.array([5, 6], pa.int32()).cast(pa.time32("ms")),
        "f": [True, False],
        "r": pa.array([1.5, 0.5], pa.float32()),
    })  # fmt: skip
    last = answers(text, {"T": t})["q0"].to_pylist()[-1]
    assert [str(v) for v in last.values()][:5] == [
        "1970-01-04",
        "00:00:00.006000",
        "False",
        "True",
        "0.5",
    ]


def test_a_sum_that_does_not_fit() -> None:
    text = S + "SELECT sum(d) AS s FROM S WINDOW UNBOUNDED;"
    s = pa.table({"ts": [1, 2], "a": [1, 1], "d": [2**62, 2**62]})
    assert [row[0] for row in rows_of(answers(text, {"S": s})["q0"])] == [2**62, None]
    error = r"query q0: sum overflow in sum\(S.d\) at 1:42, the group at ts 2"
    with pytest.raises(EvaluationError, match=error):
        answers(text.replace(";", " WITH (strict);").replace(" WITH (strict)", "", 1), {"S": s})


def test_a_sum_is_null_until_what_does_not_fit_has_left() -> None:
    text = S + "SELECT sum(d) AS s, avg(d) AS m FROM S WINDOW ROWS 2;"
    s = pa.table({"ts": [1, 2, 3, 4], "a": [1] * 4, "d": [2**62, 2**62, 1, 3]})
    found = [row[:2] for row in rows_of(answers(text, {"S": s})["q0"])]
    assert found == [(2**62, 2.0**62), (None, None), (2**62 + 1, 2.0**61), (4, 2.0)]


def test_what_left_the_window_no_longer_overflows_nor_spoils() -> None:
    text = S + "SELECT sum(d) AS s FROM S WINDOW RANGE 1;"
    s = pa.table({"ts": [1, 5, 9], "a": [1, 1, 1], "d": [2**62, 2**62, -(2**62)]})
    assert [row[0] for row in rows_of(answers(text, {"S": s})["q0"])] == [2**62, 2**62, -(2**62)]
    r = pa.table({"ts": [1, 5], "a": [1, 1], "b": [float("inf"), 2.0], "c": ["x", "x"]})
    found = answers(R + "SELECT sum(b) AS s FROM R WINDOW RANGE 1;", {"R": r})["q0"]
    assert [row[0] for row in rows_of(found)] == [float("inf"), 2.0]


def test_members_are_let_go() -> None:
    compilation = compile_text(R + "SELECT a, count(*) AS n FROM R GROUP BY a WINDOW RANGE 50;")
    driver = GraphRun(compilation, GoldenDevice(compilation.options.config), slice_rows=500)
    chance = random.Random(1)
    for start in range(0, 20_000, 500):
        ts = list(range(start, start + 500))
        a = [chance.randrange(9) for _ in ts]
        driver.push("R", pa.table({"ts": ts, "a": a, "b": [0.0] * 500, "c": ["x"] * 500}))
        list(driver.advance())
        join = driver.operators["software join 0"]
        assert isinstance(join, SoftwareJoin)
        assert join.groupings["q0"].live <= 52


@pytest.mark.parametrize("size", [2**63 - 1, 2**63 - 2, 2**62])
def test_a_window_of_more_rows_than_come_holds_all(size: int) -> None:
    rows = {"R": pa.table({"ts": range(5), "a": [1] * 5, "b": [1.0] * 5, "c": [""] * 5})}
    rows["S"] = rows["R"].select(["ts", "a"]).append_column("d", pa.array(range(5)))
    texts = (
        f"SELECT count(*) AS n FROM R WINDOW ROWS {size}",
        f"SELECT count(*) AS n FROM R, S WHERE R.a = S.a WINDOW ROWS {size}",
    )
    for text in texts:
        read = {name: of for name, of in rows.items() if f"{name}." in text or name == "R"}
        found, want = (
            answers(R + S + one, read, pushes=3)["q0"]
            for one in (text, text.replace(f"ROWS {size}", "UNBOUNDED"))
        )
        assert rows_of(found) == rows_of(want)


def test_members_leave_however_late_that_is() -> None:
    """Their ends may lie anywhere in 64 bits."""
    far = 2**62 - 1
    r = pa.table({"ts": [-(2**47), 1, far], "a": [0] * 3, "b": [1.0] * 3, "c": [""] * 3})
    s = pa.table({"ts": [0, 2], "a": [0, 0], "d": [0, 0]})
    text = f"SELECT count(*) AS n FROM R, S WHERE R.a = S.a WINDOW RANGE {2**62}, ROWS 127"
    found = rows_of(answers(R + S + text, {"R": r, "S": s})["q0"])
    assert [row[0] for row in found] == [1, 2, 4, 4]  # the oldest row of R has left
