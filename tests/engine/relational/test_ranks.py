"""Ranks within whole partitions, ORDER BY and LIMIT, compared with DuckDB over the ended
streams."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

from seustream.compiler.logical import program as logical
from seustream.compiler.pipeline import compile_text
from seustream.engine.graph import GraphRun
from seustream.engine.relational import slots
from tests.engine.relational.generate import (
    DEFINITIONS,
    judged,
    r_stream,
    rows_of,
    s_stream,
    same,
)
from tests.engine.relational.running import at_once, in_pieces

RANKS = ("row_number", "rank", "dense_rank")


@pytest.fixture(autouse=True)
def _places_are_soon_given_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "FEW", 2)


def order(chance: random.Random) -> str:
    """Returns some sort keys that both dialects accept."""
    ways = ("", " DESC", " NULLS FIRST", " DESC NULLS FIRST", " ASC NULLS LAST")
    keys = chance.sample(["a", "b", "c", "b + a"], chance.randint(1, 2))
    return ", ".join(key + chance.choice(ways) for key in keys)


def check(seed: int) -> None:
    """Checks a random query that ranks: with a bound in an outer query, in QUALIFY, or without one;
    or ORDER BY with LIMIT."""
    chance = random.Random(seed)
    rows = {"R": r_stream(chance, chance.randint(1, 60))}
    keys = chance.choice(["", "PARTITION BY a", "PARTITION BY a, c"])
    by, most, rank = order(chance), chance.randint(0, 3), chance.choice(RANKS)
    # DuckDB breaks ties of row_number arbitrarily.
    ties = ", rn" if rank == "row_number" else ""
    ours, theirs = (
        f"{rank}() OVER ({keys} ORDER BY {by})",
        f"{rank}() OVER ({keys} ORDER BY {by}{ties})",
    )
    shape = chance.choice(["plain", "outer", "qualify", "order", "time"])
    if shape == "plain":
        mine, other = (
            f"SELECT a, {ours} AS n FROM R",
            f"SELECT a, {theirs}, ts, ts FROM R ORDER BY rn",
        )
    elif shape == "outer":
        mine = f"SELECT b, n FROM (SELECT *, {ours} AS n FROM R) t WHERE n <= {most} AND b > -1"
        other = f"SELECT b, n, ts, ts FROM (SELECT *, {theirs} AS n FROM R) WHERE n <= {most} AND b > -1"
        other += " ORDER BY rn"
    elif shape == "qualify":
        mine = f"SELECT b, c FROM R WHERE b > -1 QUALIFY {ours} < {most}"
        other = f"SELECT b, c, ts, ts FROM R WHERE b > -1 QUALIFY {theirs} < {most} ORDER BY rn"
    elif shape == "order":
        limit = chance.choice(["", f"LIMIT {most}"])
        mine = f"SELECT b, a + 1 AS x FROM R ORDER BY {by} {limit}"
        other = f"SELECT b, a + 1, ts, ts FROM R ORDER BY {by}, rn {limit}"
    else:
        mine = f"SELECT a, {rank}() OVER ({keys} ORDER BY ts) AS n FROM R LIMIT {most * 9}"
        ties = ", rn" if rank == "row_number" else ""
        other = f"""SELECT a, {rank}() OVER ({keys} ORDER BY ts{ties}), ts, ts FROM R ORDER BY rn
        LIMIT {most * 9}"""
    text = f"{DEFINITIONS}REGISTER QUERY q AS {mine}"
    print(f"seed {seed}\n{text}")
    found = at_once(text, rows).get("q")
    assert rows_of(found) == judged(other, R=rows["R"])
    assert in_pieces(text, rows, seed).get("q") == found


def check_windows(seed: int) -> None:
    """Checks ranks within windows: of rows, and of the groups of windows."""
    chance = random.Random(seed)
    rows = {"R": r_stream(chance, chance.randint(1, 60))}
    size, most = chance.choice([2, 5, 9]), chance.randint(1, 3)
    slide = chance.choice([size, max(size // 2, 1), size])
    windows = f"HOP(TABLE R, DESCRIPTOR(ts), {slide}, {size})"
    own = "PARTITION BY window_start, window_end"
    spread = f"""(SELECT R.*, s.s AS window_start, s.s + {size} AS window_end FROM R
    JOIN range(-200, 900) AS s(s) ON s.s % {slide} = 0 AND s.s <= R.ts AND R.ts < s.s + {size})"""
    if chance.random() < 0.5:
        by, rank = order(chance), chance.choice(RANKS)
        ties = ", rn" if rank == "row_number" else ""
        mine = f"""SELECT a, window_end AS e, n FROM
        (SELECT *, {rank}() OVER ({own} ORDER BY {by}) AS n FROM {windows}) t WHERE n <= {most}"""
        other = f"""SELECT a, window_end, n, ts, ts FROM
        (SELECT *, {rank}() OVER ({own} ORDER BY {by}{ties}) AS n FROM {spread}) WHERE n <= {most}"""
    else:
        groups = "SELECT a, window_start, window_end, count(*) AS n"
        mine = f"""SELECT a, window_end AS e, n, r FROM (SELECT *, rank() OVER ({own} ORDER BY n DESC) AS r
        FROM ({groups} FROM {windows} GROUP BY a, window_start, window_end) g) t WHERE r <= {most}"""
        other = f"""SELECT a, window_end, n, r, window_end - 1, window_end - 1 FROM
        (SELECT *, rank() OVER ({own} ORDER BY n DESC) AS r
        FROM ({groups} FROM {spread} GROUP BY a, window_start, window_end)) WHERE r <= {most}"""
    text = f"{DEFINITIONS}REGISTER QUERY q AS {mine}"
    print(f"seed {seed}\n{text}")
    found = at_once(text, rows).get("q")
    same(rows_of(found), judged(other, R=rows["R"]))
    same(rows_of(in_pieces(text, rows, seed).get("q")), rows_of(found))


def check_whole(seed: int) -> None:
    """Checks functions of whole partitions beside ranks, in any order, including functions that
    look ahead in time."""
    chance = random.Random(seed)
    rows = {"R": r_stream(chance, chance.randint(0, 60))}
    keys, by = chance.choice(["", "PARTITION BY a", "PARTITION BY a, c"]), order(chance)
    away, parts = chance.randint(0, 3), chance.randint(1, 5)
    shift = f"{chance.choice(['lag', 'lead'])}({chance.choice(['b', 'c', 'ts'])}, {away})"
    asked = [f"ntile({parts})", "cume_dist()", "percent_rank()", shift, "rank()", "lead(a, 1, -7)"]
    functions = chance.sample(asked, chance.randint(1, 4))
    ties = ", rn"
    if chance.random() < 0.4:
        functions = [f"lead({chance.choice('ab')})", f"lead(c, {away})", "lead(a, 2, -1)"]
        by, ties = "ts", ", rn"
    named = chance.random() < 0.5
    window = f"({keys} ORDER BY {by})"
    ours = ", ".join(
        f"{f} OVER {'w' if named else window} AS f{n}" for n, f in enumerate(functions)
    )
    untied = ("cume_dist", "percent_rank", "rank")
    theirs = ", ".join(
        f"{f} OVER ({keys} ORDER BY {by}{'' if f.startswith(untied) else ties})" for f in functions
    )
    if chance.random() < 0.5:
        of_all = ("sum(b)", "count(DISTINCT c)", "max(c) FILTER (WHERE a > 1)", "count(*)")
        whole = [f"{f} OVER ({chance.choice(['', 'PARTITION BY c'])})" for f in of_all]
        ours += "".join(f", {f} AS w{n}" for n, f in enumerate(whole))
        theirs += "".join(f", {f}" for f in whole)
    clause = f"WINDOW w AS {window}" if named else ""
    text = f"{DEFINITIONS}REGISTER QUERY q AS SELECT b, {ours} FROM R {clause}"
    print(f"seed {seed}\n{text}")
    found = at_once(text, rows).get("q")
    same(rows_of(found), judged(f"SELECT b, {theirs}, ts, ts FROM R", R=rows["R"]))
    same(rows_of(in_pieces(text, rows, seed).get("q")), rows_of(found))


FRAMES = (
    ("sum(b) OVER ({} ORDER BY ts ROWS 1 PRECEDING)", "sum(b) OVER ({} ORDER BY rn ROWS 1 PRECEDING)"),
    ("count(*) OVER ({} ORDER BY ts RANGE 3 PRECEDING)",
     "count(*) OVER ({} ORDER BY ts RANGE BETWEEN 3 PRECEDING AND CURRENT ROW)"),
    ("max(a) OVER ({} ORDER BY ts)", "max(a) OVER ({} ORDER BY ts)"),
    ("first_value(a) OVER ({} ORDER BY ts ROWS 2 PRECEDING)",
     "first_value(a) OVER ({} ORDER BY rn ROWS 2 PRECEDING)"),
    ("last_value(b) OVER ({} ORDER BY ts ROWS 2 PRECEDING)",
     "last_value(b) OVER ({} ORDER BY rn ROWS 2 PRECEDING)"),
    ("lag(a, 2) OVER ({} ORDER BY ts)", "lag(a, 2) OVER ({} ORDER BY rn)"),
    ("row_number() OVER ({} ORDER BY ts)", "row_number() OVER ({} ORDER BY rn)"),
)  # fmt: skip
WHOLES = (
    ("rank() OVER ({} ORDER BY b DESC)", "rank() OVER ({} ORDER BY b DESC)"),
    ("row_number() OVER ({} ORDER BY a)", "row_number() OVER ({} ORDER BY a, rn)"),
    ("count(*) OVER ({})", "count(*) OVER ({})"),
    ("lead(a) OVER ({} ORDER BY ts)", "lead(a) OVER ({} ORDER BY rn)"),
)
"""Functions of frames and of whole partitions, in X-SQL and in DuckDB's SQL."""


def check_ordered(seed: int) -> None:
    """Checks ORDER BY and LIMIT of a query with functions and QUALIFY, which they come after."""
    chance = random.Random(seed)
    rows = {"R": r_stream(chance, chance.randint(1, 40))}
    family = chance.choice([FRAMES, WHOLES, FRAMES + WHOLES])
    functions = chance.sample(family, chance.randint(1, 3))
    key = chance.choice(["", "a", "window_end"])
    mine, other = "TUMBLE(TABLE R, DESCRIPTOR(ts), 5)", "(floor(ts / 5)::bigint + 1) * 5"
    other = f"(SELECT *, {other} AS window_end FROM R)"
    own = f"PARTITION BY {key}" * bool(key)
    ours = [f.format(own) for f, _ in functions]
    theirs = [f.format(own) for _, f in functions]
    most = f"<= {chance.choice([1, 2, 4])}"
    asked = chance.choice(["", f"QUALIFY f0 {most}", f"QUALIFY {{}} {most} AND b > -1"])
    by = chance.choice(["", order(chance), "f0 DESC, b", "ts DESC", "-f0, ts"])
    limit = chance.choice(["LIMIT 1", "LIMIT 3", "LIMIT 9", "" if by else "LIMIT 5"])
    listed = [", ".join(f"{f} AS f{n}" for n, f in enumerate(of)) for of in (ours, theirs)]
    text = f"""{DEFINITIONS}REGISTER QUERY q AS SELECT b, ts, {listed[0]} FROM {mine} AS w
    {asked.format(ours[0])} {"ORDER BY" if by else ""} {by} {limit}"""
    print(f"seed {seed}\n{text}")
    want = judged(
        f"""SELECT b, ts, {listed[1]}, ts, ts FROM {other} {asked.format(theirs[0])}
        ORDER BY {f"{by}, rn" if by else "rn"} {limit}""",
        R=rows["R"],
    )
    found = at_once(text, rows).get("q")
    if by:
        assert rows_of(found) == want
    same(rows_of(found), want)
    same(rows_of(in_pieces(text, rows, seed).get("q")), want)


@pytest.mark.parametrize("seed", range(60))
def test_an_order_is_one_of_the_rows_that_functions_and_qualify_give(seed: int) -> None:
    check_ordered(seed)


@pytest.mark.parametrize(
    "rest",
    [
        "QUALIFY row_number() OVER (PARTITION BY window_end ORDER BY n DESC, a) <= 1 ORDER BY a, window_end",
        "ORDER BY place DESC, a DESC, 2 LIMIT 3",
        "ORDER BY sum(b) DESC, a, window_end LIMIT 4",
        "QUALIFY place <= 2 ORDER BY n DESC, window_end, a LIMIT 5",
    ],
)
@pytest.mark.parametrize("seed", range(2))
def test_an_order_of_ranked_groups(rest: str, seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    r = r_stream(chance, 80)
    ask = f"""SELECT a, window_end, count(*) AS n, rank() OVER (PARTITION BY window_end ORDER BY count(*) DESC, a) AS place
    FROM R GROUP BY a, {{}} {rest}"""
    text = DEFINITIONS + ask.format("TUMBLE(ts, 10)")
    found = at_once(text, {"R": r})
    ends = "(SELECT *, floor(ts / 10)::bigint * 10 + 10 AS window_end FROM R) AS R"
    want = judged(ask.format("window_end").replace("FROM R", f"FROM {ends}"), R=r)
    assert [row[:4] for row in rows_of(found["q0"])] == want
    assert in_pieces(text, {"R": r}, seed) == found


@pytest.mark.parametrize("join", ["", "LEFT"])
def test_an_order_around_frames_of_a_join(join: str) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    rows = {"R": r_stream(chance, 40), "S": s_stream(chance, 30)}
    joined = f"FROM R {join} JOIN S ON R.a = S.k"
    text = f"""{DEFINITIONS}
    REGISTER QUERY j AS SELECT a AS a, v AS v {joined} WINDOW RANGE 9;
    REGISTER QUERY q AS SELECT a AS a, v AS v,
    count(v) OVER (PARTITION BY a ORDER BY ts_newest RANGE 20 PRECEDING) AS n {joined}
    QUALIFY n > 1 ORDER BY v DESC, n, a LIMIT 9 WINDOW RANGE 9"""
    found = at_once(text, rows)
    want = judged(
        """SELECT a, v, count(v) OVER (PARTITION BY a ORDER BY ts RANGE BETWEEN 20 PRECEDING AND CURRENT ROW)
        AS n, oldest, ts FROM J QUALIFY n > 1 ORDER BY v DESC, n, a, rn LIMIT 9""",
        J=found["j"].rename_columns(["a", "v", "oldest", "ts"]),
    )
    assert [row[:3] for row in rows_of(found.get("q"))] == [row[:3] for row in want]
    assert in_pieces(text, rows, 1).get("q") == found.get("q")


@pytest.mark.parametrize("seed", range(20))
def test_whole_partitions(seed: int) -> None:
    check_whole(seed)


def test_a_row_that_looks_ahead_comes_with_the_row_it_looks_at() -> None:
    text = f"""{DEFINITIONS}REGISTER QUERY q AS SELECT a, lead(b) OVER (PARTITION BY c ORDER BY ts) AS n
    FROM R"""
    run = GraphRun(compile_text(text))

    def came(*rows: tuple[int, str]) -> list[tuple[object, ...]]:
        columns = {"a": [ts for ts, _ in rows], "b": [float(ts) for ts, _ in rows]}
        table = {"ts": columns["a"], **columns, "c": [c for _, c in rows]}
        run.push("R", pa.table(table))
        return [row[:2] for _, table in run.advance() for row in rows_of(table)]

    assert came((1, "x"), (2, "y")) == []
    assert came((3, "y")) == [(2, 3.0)]
    assert came((4, "y"), (5, "x")) == [(3, 4.0), (1, 5.0)]
    assert [row[:2] for _, table in run.finish() for row in rows_of(table)] == [
        (4, None),
        (5, None),
    ]


@pytest.mark.parametrize("ahead", [1, 2])
@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_that_look_ahead_is_that_of_any_steps(seed: int, ahead: int) -> None:
    text = f"""{DEFINITIONS}REGISTER QUERY q AS
    SELECT a, b, ts AS t, lead(b, {ahead}) OVER (PARTITION BY c ORDER BY ts) AS n FROM R"""
    rows = {"R": r_stream(random.Random(seed), 40), "S": s_stream(random.Random(seed), 1)}
    found = rows_of(at_once(text, rows)["q"])
    assert found != sorted(found, key=lambda row: row[2])
    for step in range(3):
        assert rows_of(in_pieces(text, rows, step)["q"]) == found


@pytest.mark.parametrize("seed", range(20))
def test_rows_of_a_time_stand_as_they_came_however_they_are_decided(seed: int) -> None:
    """Readers see them in this order, in any steps and across restarts."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    ts = sorted(chance.choices(range(6), k=25))
    columns = {name: [chance.randint(0, 3) for _ in ts] for name in "kv"}
    rows = {
        "R": pa.table(
            {"ts": ts, **columns},
            schema=pa.schema([("ts", pa.int64()), ("k", pa.int32()), ("v", pa.int32())]),
        )
    }
    text = f"""CREATE STREAM R (k int, v int);
    CREATE STREAM X AS SELECT k, v, lead(v, {chance.randint(1, 2)}) OVER (PARTITION BY k ORDER BY ts) AS n FROM R;
    REGISTER QUERY q AS SELECT k, v, n, row_number() OVER (ORDER BY ts) AS place FROM X"""
    found = rows_of(at_once(text, rows)["q"])
    assert [row[:2] for row in found] == list(zip(columns["k"], columns["v"], strict=True))
    assert rows_of(in_pieces(text, rows, seed)["q"]) == found


@pytest.mark.parametrize("seed", range(12))
def test_ranks(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", range(8))
def test_ranks_in_windows(seed: int) -> None:
    check_windows(seed)


def test_of_each_partition_only_the_best_rows_are_kept() -> None:
    text = f"""{DEFINITIONS}REGISTER QUERY q AS SELECT a, b FROM
    (SELECT *, row_number() OVER (PARTITION BY a ORDER BY b DESC) AS n FROM R) t WHERE n <= 2"""
    run = GraphRun(compile_text(text))
    (ranked,) = run.compilation.program.operations
    assert isinstance(ranked, logical.RankedRows)
    assert ranked.best is not None
    assert ranked.best[1] == 2
    rows = r_stream(random.Random(1), 20_000)
    for start in range(0, 20_000, 500):
        run.push("R", rows.slice(start, 500))
        assert list(run.advance()) == []
        (operator,) = [one for name, one in run.operators.items() if name.startswith("operation")]
        assert len(operator.kept.places(None)) < 6_000  # type: ignore[attr-defined]
    (answer,) = run.finish()
    assert answer[1].num_rows == 12


@pytest.mark.parametrize(
    "ahead",
    ["lead(b) OVER {} > -9", "ntile(2) OVER {} = 1"],
)
def test_a_condition_that_looks_ahead_sees_what_the_bound_leaves_out(ahead: str) -> None:
    """A rank bounds the kept rows unless another function in the same QUALIFY covers all rows."""
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    rows = r_stream(random.Random(seed), 4_500)  # some are released before the last piece
    asked = []
    for ties in ("", ", rn"):  # DuckDB breaks ties of row_number arbitrarily
        over = f"(PARTITION BY a ORDER BY b DESC{ties})"
        asked.append(f"row_number() OVER {over} <= 2 AND {ahead.format(over)}")
    text = f"{DEFINITIONS}REGISTER QUERY q AS SELECT a, b FROM R QUALIFY {asked[0]}"
    want = judged(f"SELECT a, b, ts, ts FROM R QUALIFY {asked[1]} ORDER BY rn", R=rows)
    assert len(want) > 3
    run = GraphRun(compile_text(text))
    for start in range(0, rows.num_rows, 500):
        run.push("R", rows.slice(start, 500))
        assert list(run.advance()) == []
    assert [row for _, table in run.finish() for row in rows_of(table)] == want


def test_a_rank_in_windows_comes_when_its_window_is_over() -> None:
    text = f"""{DEFINITIONS}REGISTER QUERY q AS SELECT a, row_number() OVER (PARTITION BY window_end
    ORDER BY a DESC) AS n FROM TUMBLE(TABLE R, DESCRIPTOR(ts), 10)"""
    run = GraphRun(compile_text(text))

    def came(*ts: int) -> list[tuple[object, ...]]:
        columns = {"a": list(ts), "b": [0.0] * len(ts), "c": [""] * len(ts)}
        run.push("R", pa.table({"ts": pa.array(ts, pa.int64()), **columns}))
        return [row[:2] for _, table in run.advance() for row in rows_of(table)]

    assert came(1, 3) == []
    assert came(9) == []
    assert came(12) == [(1, 3), (3, 2), (9, 1)]


def test_ends_of_windows_in_one_part_of_a_union_are_no_ends_of_windows() -> None:
    text = f"""{DEFINITIONS}REGISTER QUERY q AS SELECT u, rank() OVER (PARTITION BY u ORDER BY t) AS n
    FROM (SELECT window_end AS u, max(a) AS t FROM R GROUP BY TUMBLE(ts, 10)
          UNION ALL SELECT a AS u, a + ts AS t FROM R) AS w"""
    run, columns = GraphRun(compile_text(text)), {"a": [10, 10], "b": [0.0] * 2, "c": [""] * 2}
    for ts in ([1, 2], [31, 32]):
        run.push("R", pa.table({"ts": pa.array(ts, pa.int64()), **columns}))
        assert list(run.advance()) == []
    rows = [row for _, table in run.finish() for row in rows_of(table)]
    assert sorted(row[:2] for row in rows) == [(10, 1), (10, 2), (10, 3), (10, 4), (10, 5), (40, 1)]


def test_windows_in_all_parts_of_a_union_end_with_the_longest() -> None:
    rows_in = "SELECT a, window_end AS u FROM TUMBLE(TABLE R, DESCRIPTOR(ts), {})"
    text = f"""{DEFINITIONS}REGISTER QUERY q AS SELECT u, row_number() OVER (PARTITION BY u ORDER BY a) AS n
    FROM ({rows_in.format(10)} UNION ALL {rows_in.format(20)}) AS w"""
    run, found = GraphRun(compile_text(text)), list[tuple[object, ...]]()
    for ts in range(0, 60, 3):
        row = {"a": [60 - ts], "b": [0.0], "c": [""]}
        run.push("R", pa.table({"ts": pa.array([ts], pa.int64()), **row}))
        found += [row[:2] for _, table in run.advance() for row in rows_of(table)]
    assert found, "windows that are over come before the end"
    found += [row[:2] for _, table in run.finish() for row in rows_of(table)]
    of = Counter(end for ts in range(0, 60, 3) for end in (ts // 10 * 10 + 10, ts // 20 * 20 + 20))
    assert sorted(found) == sorted((end, n + 1) for end, count in of.items() for n in range(count))
