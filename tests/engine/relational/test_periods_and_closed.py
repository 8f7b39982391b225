"""TUMBLE, HOP and SESSION compared with DuckDB over the finite stream, and the moment at which each
row comes."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from seustream.compiler.pipeline import compile_text
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun
from tests.engine.relational.generate import (
    DEFINITIONS,
    asked,
    judged,
    r_stream,
    rows_of,
    s_stream,
    same,
)
from tests.engine.relational.running import at_once, in_pieces

PERIODS = (
    ("TUMBLE(ts, {size})", 1, 0),
    ("TUMBLE(ts, {size} ms, {offset} ms)", 1, 1),
    ("HOP(ts, {slide}, {size})", 0, 0),
    ("HOP(ts, INTERVAL '{slide}' MS, INTERVAL '{size} ms', {offset})", 0, 1),
    ("window(ts, '{size} ms', '{slide} ms')", 0, 0),
    ("window(ts, '{size} ms')", 1, 0),
    ("CUMULATE(ts, {slide}, {size}, {offset})", 0, 1),
    ("window(ts, '{size} ms', '{slide} ms', '{offset} ms')", 0, 1),
)
"""Spellings; for each, whether its slide is its size, and whether it has an offset."""


def windows(chance: random.Random, rows: str) -> tuple[str, str]:
    """Returns a window in X-SQL, and a query in DuckDB that gives the `rows` with the windows they
    are in."""
    if chance.random() < 0.3:
        gap = chance.choice([1, 2, 5, 20])
        return (
            chance.choice([f"SESSION(ts, {gap})", f"session_window(ts, '{gap} ms')"]),
            f"""SELECT * EXCLUDE (begins, session), min(ts) OVER w AS ws, max(ts) OVER w + {gap} AS we
            FROM (SELECT *, sum(begins) OVER (PARTITION BY KEYS ORDER BY rn) AS session FROM (
            SELECT *, coalesce((ts - lag(ts) OVER (PARTITION BY KEYS ORDER BY rn) >= {gap})::int, 1)
            AS begins FROM ({rows}))) WINDOW w AS (PARTITION BY KEYS, session)""",
        )
    form, tumbles, moved = chance.choice(PERIODS)
    size = chance.randint(1, 30)
    slide = size if tumbles else chance.randint(1, 40)
    offset = chance.randint(-50, 50) if moved else 0
    if form.startswith("CUMULATE"):
        slide = chance.randint(1, 9)
        size = slide * chance.randint(1, 4)
        begin = f"(w * {slide} + {offset})"
        return (
            form.format(size=size, slide=slide, offset=offset),
            f"""SELECT r.*, floor(w * {slide} / {size})::bigint * {size} + {offset} AS ws,
            {begin} + {slide} AS we FROM ({rows}) r JOIN (SELECT unnest(range(-2000, 2000)) AS w)
            ON r.ts < {begin} + {slide} AND floor(w * {slide} / {size}) = floor((r.ts - {offset}) / {size})""",
        )
    begin = f"(w * {slide} + {offset})"
    return (
        form.format(size=size, slide=slide, offset=offset),
        f"""SELECT r.*, {begin} AS ws, {begin} + {size} AS we
        FROM ({rows}) r JOIN (SELECT unnest(range(-2000, 2000)) AS w)
        ON {begin} <= r.ts AND r.ts < {begin} + {size}""",
    )


def check(seed: int) -> None:
    """Checks one random query over one stream."""
    chance = random.Random(seed)
    rows = {"R": r_stream(chance, chance.randint(0, 70)), "S": s_stream(chance, 5)}
    keys = chance.sample(["a", "c"], chance.randint(0, 2))
    where = chance.choice(["", "WHERE b > -1", "WHERE a IS NOT NULL OR c = 'x'"])
    form, expanded = windows(chance, f"SELECT * FROM R {where}")
    expanded = expanded.replace("KEYS", ", ".join(keys) if keys else "1")
    measures = asked(chance)
    having = chance.choice(["", "HAVING count(*) > 1", "HAVING max(b) > 1 OR window_start > 20"])
    ours = [*keys, "window_start", "window_end", *(mine for mine, _ in measures)]
    listed = ", ".join(f"{e} AS c{n}" for n, e in enumerate(ours))
    groups = [*keys, form]
    chance.shuffle(groups)
    text = f"""{DEFINITIONS}REGISTER QUERY q AS
    SELECT {listed} FROM R {where} GROUP BY {", ".join(groups)} {having}"""
    print(f"seed {seed}\n{text}")
    theirs = ", ".join([*keys, "ws", "we", *(duck for _, duck in measures), "min(ts)", "we - 1"])
    by = ", ".join([*keys, "ws", "we"])
    want = judged(
        f"SELECT {theirs} FROM ({expanded}) GROUP BY {by} {having.replace('window_start', 'ws')}",
        R=rows["R"],
    )
    found = at_once(text, rows).get("q")
    same(rows_of(found), want)
    assert in_pieces(text, rows, seed).get("q") == found
    ends = [row[-1] for row in rows_of(found)]
    assert ends == sorted(ends)


@pytest.mark.parametrize("seed", range(40))
def test_groups_of_windows(seed: int) -> None:
    check(seed)


def check_first(seed: int) -> None:
    """Checks the first rows of each window."""
    chance = random.Random(seed)
    rows = {"R": r_stream(chance, 60), "S": s_stream(chance, 5)}
    form, expanded = windows(chance, "SELECT * FROM R")
    expanded = expanded.replace("KEYS", "a")
    nulls = chance.choice(["", " NULLS FIRST", " NULLS LAST"])
    down, limit = chance.choice(["", " ASC", " DESC"]), chance.randint(0, 3)
    text = f"""{DEFINITIONS}REGISTER QUERY q AS SELECT a, window_end AS e, count(*) AS n, max(c) AS m
    FROM R GROUP BY {form}, a ORDER BY m{down}{nulls}, count(*) DESC, a LIMIT {limit}"""
    print(f"seed {seed}\n{text}")
    order = f"m{down}{nulls or ' NULLS LAST'}, n DESC, a NULLS LAST"
    want = judged(
        f"""SELECT a, we, n, m, since, we - 1 FROM (SELECT a, ws, we, count(*) AS n, max(c) AS m,
        min(ts) AS since FROM ({expanded}) GROUP BY a, ws, we)
        QUALIFY row_number() OVER (PARTITION BY ws, we ORDER BY {order}) <= {limit}
        ORDER BY we, ws, {order}""",
        R=rows["R"],
    )
    found = at_once(text, rows).get("q")
    assert rows_of(found) == want
    assert in_pieces(text, rows, seed).get("q") == found


@pytest.mark.parametrize("seed", range(12))
def test_the_first_of_each_window(seed: int) -> None:
    check_first(seed)


def check_join(seed: int) -> None:
    """Checks windows over the results of a join, which another query gives."""
    chance = random.Random(seed)
    rows = {"R": r_stream(chance, 50), "S": s_stream(chance, 40)}
    form, expanded = windows(chance, "SELECT * FROM J")
    expanded = expanded.replace("KEYS", "a")
    joined = "FROM R, S WHERE R.a = S.k"
    window = chance.choice(["WINDOW RANGE 9", "WINDOW ROWS 4", "WINDOW RANGE 5, ROWS 3"])
    text = f"""{DEFINITIONS}
    REGISTER QUERY j AS SELECT a AS a, v AS v {joined} {window};
    REGISTER QUERY q AS SELECT a AS a, window_start AS s, sum(v) AS n {joined}
    GROUP BY a, {form.replace("(ts,", chance.choice(["(ts,", "(ts_newest,"]))} {window}"""
    print(f"seed {seed}\n{text}")
    found = at_once(text, rows)
    if "j" not in found:
        assert "q" not in found
        return
    j = found["j"].rename_columns(["a", "v", "oldest", "ts"])
    want = judged(
        f"SELECT a, ws, sum(v), min(oldest), we - 1 FROM ({expanded}) GROUP BY a, ws, we", J=j
    )
    same(rows_of(found.get("q")), want)
    assert in_pieces(text, rows, seed).get("q") == found.get("q")


@pytest.mark.parametrize("seed", range(10))
def test_over_joins(seed: int) -> None:
    check_join(seed)


@pytest.mark.parametrize(
    ("form", "ends"),
    [("TUMBLE(ts, 10)", lambda w: w), ("HOP(ts, 3, 10)", lambda w: w), ("SESSION(ts, 7)", None)],
)
@pytest.mark.parametrize("seed", range(3))
def test_a_row_comes_when_the_watermark_passes_the_end(form: str, ends: object, seed: int) -> None:
    """Neither earlier nor later: the watermark reaches the end of the window."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    rows = r_stream(chance, 60)
    text = f"""{DEFINITIONS}REGISTER QUERY q AS
    SELECT a, window_end AS e, count(*) AS n FROM R GROUP BY a, {form}"""
    want = rows_of(at_once(text, {"R": rows, "S": s_stream(chance, 1)})["q"])
    compilation = compile_text(text)
    run = GraphRun(compilation, GoldenDevice(compilation.options.config))
    run.end("S")
    found = []
    for now in range(-60, 400):
        due = [n for n, ts in enumerate(rows.column("ts").to_pylist()) if ts == now]
        run.push("R", rows.take(pa.array(due, pa.int64())))
        run.promise("R", now + 1)
        for _, some in run.advance():
            found += rows_of(some)
        assert found == [row for row in want if row[1] <= now + 1]


def test_flinks_table_functions() -> None:
    text = f"""{DEFINITIONS}
    REGISTER QUERY t AS SELECT window_start, window_end, a, sum(b) AS s
    FROM TUMBLE(TABLE R, DESCRIPTOR(ts), INTERVAL '10' MS) GROUP BY window_start, window_end, a;
    REGISTER QUERY t2 AS SELECT window_start, window_end, a, sum(b) AS s FROM R GROUP BY TUMBLE(ts, 10), a;
    REGISTER QUERY h AS SELECT window.start AS x, max(r.b) AS s
    FROM HOP(TABLE R, DESCRIPTOR(TimeStamp), INTERVAL '2' MS, INTERVAL '10' MS) AS r
    GROUP BY window.end, window.start;
    REGISTER QUERY h2 AS SELECT window_start AS x, max(b) AS s FROM R GROUP BY HOP(R.ts, 2, 10);
    REGISTER QUERY s AS SELECT window_end AS x, a, count(*) AS s
    FROM SESSION(TABLE R PARTITION BY a, DESCRIPTOR(ts), INTERVAL '5' MS) GROUP BY a, window_start, window_end;
    REGISTER QUERY s2 AS SELECT window_end AS x, a, count(*) AS s FROM R GROUP BY SESSION(ts, 5), a;
    """
    chance = random.Random(1)
    found = at_once(text, {"R": r_stream(chance, 80), "S": s_stream(chance, 1)})
    for one in ("t", "h", "s"):
        assert found[one].num_rows > 5
        assert rows_of(found[one]) == rows_of(found[f"{one}2"])


def test_over_streams_derived_and_parts_of_a_union() -> None:
    """The results form a stream at the last instants of the windows."""
    text = f"""{DEFINITIONS}
    CREATE STREAM g AS SELECT a, window_end AS e, count(*) AS n FROM R GROUP BY a, TUMBLE(ts, 10);
    REGISTER QUERY top AS SELECT window_end AS e, max(n) AS n FROM g GROUP BY TUMBLE(ts, 20);
    REGISTER QUERY u AS SELECT e, n FROM g WHERE n > 1
    UNION ALL SELECT window_end, count(*) FROM R GROUP BY TUMBLE(ts, 20)"""
    chance = random.Random(2)
    rows = {"R": r_stream(chance, 80), "S": s_stream(chance, 1)}
    found = at_once(text, rows)
    r = rows["R"]
    groups = "SELECT a, floor(ts / 10)::bigint * 10 + 10 AS e, count(*) AS n FROM R GROUP BY 1, 2"
    wide = "ceil(e / 20)::bigint * 20"
    want = judged(f"SELECT {wide}, max(n) FROM ({groups}) GROUP BY 1 ORDER BY 1", R=r)
    assert [row[:2] for row in rows_of(found["top"])] == want
    want = judged(
        f"""SELECT e, n, e - 1 FROM ({groups}) WHERE n > 1 UNION ALL
        SELECT floor(ts / 20)::bigint * 20 + 20 AS e, count(*), e - 1 FROM R GROUP BY 1""",
        R=r,
    )
    same([(*row[:2], row[3]) for row in rows_of(found["u"])], want)
    for seed in range(3):
        assert in_pieces(text, rows, seed) == found


def test_a_fault_counts_once() -> None:
    """Holds also for a row in many windows."""
    text = f"{DEFINITIONS}REGISTER QUERY q AS SELECT sum(1 / a) AS s FROM R GROUP BY HOP(ts, 1, 50)"
    compilation = compile_text(text)
    run = GraphRun(compilation, GoldenDevice(compilation.options.config))
    rows = pa.table({"ts": [1, 2], "a": [0, 2], "b": [1.0, 1.0], "c": ["", ""]})
    run.push("R", rows)
    answers = [row for _, table in run.finish() for row in rows_of(table)]
    assert [row[0] for row in answers] == [None, *[0.5] * 50]
    ((place, (count, row)),) = run.report.faults["q"].items()
    assert "1 / R.a" in place
    assert (count, row) == (1, "the row at ts 1")


@pytest.mark.parametrize("form", ["TUMBLE(ts, 5)", "HOP(ts, 1, 3)", "SESSION(ts, 5)"])
@pytest.mark.parametrize("emit", ["", " EMIT CHANGES"])
@pytest.mark.parametrize("several", [False, True])
def test_a_time_too_far_for_windows_is_a_fault(form: str, emit: str, several: bool) -> None:
    """The end of such a window, and the span between two such times, do not fit 64 bits."""
    ask = f"SELECT a, window_end AS e, count(*) AS n FROM R WHERE a < {{}} GROUP BY a, {form}{emit}"
    text = DEFINITIONS + "".join(f"REGISTER QUERY q{n} AS {ask.format(9 - n)};\n" for n in (0, 1))
    compilation = compile_text(text if several else text.rpartition("REGISTER")[0])
    far = {"ts": [-(2**63) + 2, -(2**61), 1, 2**61, 2**63 - 3], "a": [4, 5, 6, 7, 8]}
    near = {"ts": [-(2**61) + 1, 1, 2**61 - 1], "a": [5, 6, 7]}
    counts = {}
    for name, times in (("far", far), ("near", near)):
        run = GraphRun(compilation, GoldenDevice(compilation.options.config))
        count = len(times["ts"])
        run.push("R", pa.table({**times, "b": [1.0] * count, "c": [""] * count}))
        found = [row for own, table in run.finish() if own == "q0" for row in rows_of(table)]
        counts[name] = sum(places for places, _ in run.report.faults.get("q0", {}).values())
        who = {row[1 if emit else 0] for row in found}
        assert who == ({6} if name == "far" else {5, 6, 7})
        if name == "far":
            ((place, (_, row)),) = run.report.faults["q0"].items()
            assert place.startswith("a time beyond")
            assert row == f"the row at ts {-(2**63) + 2}"
    assert counts == {"far": 4, "near": 0}


@pytest.mark.parametrize("kind", ["INNER", "LEFT", "RIGHT", "FULL"])
@pytest.mark.parametrize("groups_first", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_groups_by_the_window_of_a_join(kind: str, groups_first: bool, seed: int) -> None:
    """A row without a match has the time of its own side, anywhere in its window."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    r = r_stream(chance, 60)
    ask = """SELECT window_end AS e, count(*) AS n, count(g.m) AS some, sum(r.a) AS s
    FROM {} {} JOIN {} USING (window_end) GROUP BY window_end"""

    def joined(groups: str, rows: str) -> str:
        sides = (f"({groups}) g", f"({rows}) r")
        one, other = sides if groups_first else sides[::-1]
        return ask.format(one, kind, other)

    text = DEFINITIONS + joined(
        "SELECT window_end, count(*) AS m FROM R WHERE a > 1 GROUP BY TUMBLE(ts, 10) HAVING count(*) > 1",
        "SELECT a, window_end FROM TUMBLE(TABLE R, DESCRIPTOR(ts), 10) WHERE b < 2",
    )
    ends = "floor(ts / 10)::bigint * 10 + 10 AS window_end"
    want = judged(
        joined(
            f"SELECT {ends}, count(*) AS m FROM R WHERE a > 1 GROUP BY 1 HAVING count(*) > 1",
            f"SELECT a, {ends} FROM R WHERE b < 2",
        ),
        R=r,
    )
    found = at_once(text, {"R": r})
    same([row[:4] for row in rows_of(found["q0"])], want)
    assert in_pieces(text, {"R": r}, seed) == found
