"""Functions OVER frames, compared with DuckDB, which joins each row with the rows of its frame."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from seustream.compiler.pipeline import compile_text
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun
from tests.engine.relational.generate import (
    AGGREGATES,
    DEFINITIONS,
    judged,
    r_stream,
    rows_of,
    s_stream,
    same,
)
from tests.engine.relational.running import at_once, in_pieces


def frame(chance: random.Random) -> tuple[str, str]:
    """Returns a frame in X-SQL, and a condition that row f is in the frame of row r; k numbers the
    rows of their partition."""
    size = chance.choice([0, 1, 3, 10])
    rows, span = f"{size} PRECEDING", chance.choice([f"{size}", f"INTERVAL '{size}' MS"])
    return chance.choice(
        [
            (f"ROWS {rows}", f"f.k BETWEEN r.k - {size} AND r.k"),
            (f"ROWS BETWEEN {rows} AND CURRENT ROW", f"f.k BETWEEN r.k - {size} AND r.k"),
            (
                f"RANGE BETWEEN {span} PRECEDING AND CURRENT ROW",
                f"f.ts BETWEEN r.ts - {size} AND r.ts",
            ),
            ("", "f.ts <= r.ts"),
            ("RANGE UNBOUNDED PRECEDING", "f.ts <= r.ts"),
            ("ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "f.k <= r.k"),
        ]
    )


def check(seed: int) -> None:
    """Checks a random query with functions over several frames."""
    chance = random.Random(seed)
    rows = {"R": r_stream(chance, chance.randint(1, 60)), "S": s_stream(chance, 3)}
    where = chance.choice(["", "WHERE b > -1"])
    items, selects = [], []
    for number in range(chance.randint(1, 3)):
        keys = chance.sample(["a", "c"], chance.randint(0, 2))
        ours, inside = frame(chance)
        over = f"{'PARTITION BY ' + ', '.join(keys) if keys else ''} ORDER BY ts {ours}"
        mine, theirs = chance.choice(AGGREGATES)
        names = {"a": "a", "b": "b", "c": "c", "rn": "rn"}
        items.append(f"{mine.format(**names)} OVER ({over}) AS f{number}")
        names = {key: f"f.{key}" for key in names}
        equal = " AND ".join(f"f.{k} IS NOT DISTINCT FROM r.{k}" for k in keys) or "true"
        part = f"PARTITION BY {', '.join(keys)}" if keys else ""
        numbered = f"(SELECT *, row_number() OVER ({part} ORDER BY rn) AS k FROM W)"
        selects.append(
            f"""(SELECT r.rn, {theirs.format(**names)} AS f FROM {numbered} r, {numbered} f
            WHERE {equal} AND {inside} GROUP BY r.rn) AS t{number}"""
        )
    qualify = chance.choice(["", "QUALIFY count(*) OVER (PARTITION BY c ORDER BY ts) > 2"])
    text = f"""{DEFINITIONS}REGISTER QUERY q AS
    SELECT a + 1 AS x, {", ".join(items)} FROM R {where} {qualify}"""
    print(f"seed {seed}\n{text}")
    listed = ", ".join(f"t{n}.f" for n in range(len(items)))
    joined = " ".join(f"JOIN {one} ON t{n}.rn = W.rn" for n, one in enumerate(selects))
    some = "SELECT *, count(*) OVER (PARTITION BY c ORDER BY ts) AS q FROM W"
    want = judged(
        f"""WITH W AS (SELECT * FROM R {where})
        SELECT W.a + 1, {listed}, W.ts, W.ts FROM ({some}) W {joined}
        {"WHERE W.q > 2" if qualify else ""} ORDER BY W.rn""",
        R=rows["R"],
    )
    found = at_once(text, rows).get("q")
    same(rows_of(found), want)
    assert [row[-1] for row in rows_of(found)] == [row[-1] for row in want]
    assert in_pieces(text, rows, seed).get("q") == found


@pytest.mark.parametrize("seed", range(24))
def test_aggregates(seed: int) -> None:
    check(seed)


def check_places(seed: int) -> None:
    """Checks row_number, lag, first_value and last_value against all pairs of rows."""
    chance = random.Random(seed)
    rows = {"R": r_stream(chance, 60), "S": s_stream(chance, 3)}
    key, (ours, inside) = chance.choice(["a", "c"]), frame(chance)
    over = f"OVER (PARTITION BY {key} ORDER BY ts {ours})"
    text = f"""{DEFINITIONS}REGISTER QUERY q AS SELECT row_number() {over} AS n, lag(a) {over} AS l,
    lag(c, 3) {over} AS m, first_value(b) {over} AS f, last_value(a) {over} AS e FROM R"""
    print(f"seed {seed}\n{text}")
    pairs = f"""WITH W AS (SELECT *, row_number() OVER (PARTITION BY {key} ORDER BY rn) AS k FROM R)
    SELECT r.rn, f.rn, r.k FROM W r JOIN W f ON f.{key} IS NOT DISTINCT FROM r.{key} AND {inside}
    ORDER BY r.rn, f.rn"""
    data, seen = rows["R"].to_pylist(), dict[int, list[int]]()
    numbers: dict[int, int] = {}
    for row, other, number in judged(pairs, R=rows["R"]):
        seen.setdefault(row, []).append(other)
        numbers[row] = number
    want = []
    for place, row in enumerate(data):
        before = [one for one in data[:place] if one[key] == row[key]]
        lag = before[-1]["a"] if before else None
        third = before[-3]["c"] if len(before) > 2 else None
        first, last = (data[seen[place][end]] for end in (0, -1))
        want.append((numbers[place], lag, third, first["b"], last["a"], row["ts"], row["ts"]))
    found = at_once(text, rows)["q"]
    assert rows_of(found) == want
    assert in_pieces(text, rows, seed)["q"] == found


@pytest.mark.parametrize("seed", range(16))
def test_places(seed: int) -> None:
    check_places(seed)


def test_over_a_join() -> None:
    """Orders by the time of the newest component."""
    chance = random.Random(5)
    rows = {"R": r_stream(chance, 50), "S": s_stream(chance, 40)}
    joined = "FROM R, S WHERE R.a = S.k"
    text = f"""{DEFINITIONS}
    REGISTER QUERY j AS SELECT a AS a, v AS v {joined} WINDOW RANGE 9;
    REGISTER QUERY q AS SELECT a AS a, v AS v,
    sum(v) OVER (PARTITION BY a ORDER BY ts_newest RANGE 20 PRECEDING) AS s {joined} WINDOW RANGE 9"""
    found = at_once(text, rows)
    want = judged(
        """SELECT a, v, sum(v) OVER (PARTITION BY a ORDER BY ts RANGE BETWEEN 20 PRECEDING AND CURRENT ROW),
        oldest, ts FROM J ORDER BY rn""",
        J=found["j"].rename_columns(["a", "v", "oldest", "ts"]),
    )
    assert len(want) > 20
    assert rows_of(found["q"]) == want
    assert in_pieces(text, rows, 1) == found


def test_a_row_comes_once_its_time_is_certain() -> None:
    """A later row of the same time is in a RANGE too."""
    text = f"""{DEFINITIONS}REGISTER QUERY q AS
    SELECT a, count(*) OVER (ORDER BY ts RANGE 5 PRECEDING) AS n FROM R"""
    compilation = compile_text(text)
    run = GraphRun(compilation, GoldenDevice(compilation.options.config))

    def came(*ts: int) -> list[tuple[object, ...]]:
        columns = {"a": list(ts), "b": [0.0] * len(ts), "c": [""] * len(ts)}
        run.push("R", pa.table({"ts": pa.array(ts, pa.int64()), **columns}))
        return [row[:2] for _, table in run.advance() for row in rows_of(table)]

    assert came(1, 3) == [(1, 1)]
    assert came(3, 8) == [(3, 3), (3, 3)]
    assert came(9) == [(8, 3)]
    assert [row[:2] for _, table in run.finish() for row in rows_of(table)] == [(9, 2)]


def test_what_no_frame_reaches_is_let_go() -> None:
    text = f"""{DEFINITIONS}REGISTER QUERY q AS SELECT row_number() OVER (PARTITION BY a ORDER BY ts) AS n,
    lag(b, 2) OVER (PARTITION BY a ORDER BY ts) AS l, sum(b) OVER (ORDER BY ts RANGE 3 PRECEDING) AS s
    FROM R"""
    compilation = compile_text(text)
    run = GraphRun(compilation, GoldenDevice(compilation.options.config))
    (operator,) = [one for name, one in run.operators.items() if name.startswith("operation")]
    for number in range(20):
        ts = [number * 10 + n for n in range(10)]
        columns = {"a": [n % 3 for n in ts], "b": [1.0] * 10, "c": [""] * 10}
        run.push("R", pa.table({"ts": ts, **columns}))
        for _ in run.advance():
            pass
        assert operator.live <= 3 + 9 + 4  # type: ignore[attr-defined]


def test_lag_has_a_value_where_no_row_is() -> None:
    text = f"""{DEFINITIONS}REGISTER QUERY q AS
    SELECT a, lag(a, 2, -1) OVER (PARTITION BY c ORDER BY ts ROWS UNBOUNDED PRECEDING) AS n FROM R"""
    rows = {"R": r_stream(random.Random(11), 50)}
    sql = "SELECT a, lag(a, 2, -1) OVER (PARTITION BY c ORDER BY rn), ts, ts FROM R ORDER BY rn"
    assert rows_of(at_once(text, rows)["q"]) == judged(sql, R=rows["R"])
    assert rows_of(in_pieces(text, rows, 4)["q"]) == judged(sql, R=rows["R"])
