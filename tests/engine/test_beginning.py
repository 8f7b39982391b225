"""Queries that begin late see the windows as they are: their results are compared with those of a
query that was there from the beginning, over random rows."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.cosim.golden import GoldenDevice
from seustream.engine.completeness import complete_from
from seustream.engine.graph import GraphRun

STREAMS = "CREATE STREAM R (a int, b int); CREATE STREAM S (d int);"
BEGIN = 100
KEEPERS = {
    "join": "REGISTER QUERY k AS SELECT R.a FROM R, S WHERE R.a = S.d WINDOW RANGE 40;",
    "groups": "REGISTER QUERY k AS SELECT a, count(*) AS n FROM R GROUP BY a WINDOW RANGE 40;"
    "REGISTER QUERY l AS SELECT max(d) AS n FROM S WINDOW RANGE 40;",
}
FORMS = {
    "SELECT R.a FROM R, S WHERE R.a = S.d WINDOW RANGE 20, RANGE 30": BEGIN,
    "SELECT R.a, count(*) AS n, sum(d) AS s FROM R, S WHERE R.a = S.d GROUP BY R.a WINDOW RANGE 20, RANGE 30": BEGIN,
    "SELECT x.b, count(*) AS n FROM R x, R y, S WHERE x.a = y.a AND y.a = d AND x.b < y.b GROUP BY x.b WINDOW RANGE 9": BEGIN,
    "SELECT a, count(*) AS n FROM R GROUP BY a WINDOW RANGE 40": BEGIN,
    "SELECT a, count(*) AS n FROM R GROUP BY a WINDOW RANGE 41": BEGIN + 41,
    "SELECT a, count(*) AS n FROM R GROUP BY a WINDOW RANGE 40 EMIT CHANGES": BEGIN,
    "SELECT a, sum(b) AS n FROM R WHERE b > 1 GROUP BY a, TUMBLE(ts, 30 ms)": BEGIN,
    "SELECT count(*) AS n FROM R GROUP BY HOP(ts, 10 ms, 30 ms)": BEGIN,
    "SELECT count(*) AS n FROM R WINDOW RANGE 20 SLIDE 10": BEGIN,
    "SELECT count(*) AS n FROM R GROUP BY TUMBLE(ts, 50 ms)": BEGIN + 49,
    "SELECT a, sum(b) OVER (PARTITION BY a ORDER BY ts RANGE 25 PRECEDING) AS s FROM R WHERE b < 3": BEGIN,
    "SELECT a FROM R WHERE b = 2 QUALIFY count(*) OVER (ORDER BY ts RANGE 9 PRECEDING) > 1": BEGIN,
    "SELECT R.a, R.b, S.d FROM R LEFT JOIN S ON R.a = S.d AND R.b = 1 WINDOW RANGE 20": BEGIN,
    "SELECT R.a, S.d FROM R FULL JOIN S ON R.a = S.d AND b = 1 WINDOW RANGE 40": BEGIN,
    "SELECT a, b FROM R WHERE NOT EXISTS (SELECT * FROM S WHERE d = a) WINDOW RANGE 3": BEGIN,
    "SELECT R.a, S.d FROM R LEFT JOIN S ON R.a = S.d WINDOW RANGE 20, RANGE 41": BEGIN + 41,
    "SELECT R.a, count(d) AS n FROM R LEFT JOIN S ON a = d GROUP BY R.a WINDOW RANGE 20": BEGIN,
    "SELECT R.a, count(d) AS n FROM R LEFT JOIN S ON a = d GROUP BY R.a WINDOW RANGE 40": BEGIN + 80,
    "SELECT a, count(*) AS n FROM R GROUP BY a WINDOW RANGE 20 EMIT CHANGES": BEGIN,
    "PATTERN ANY x; ANY y FROM R WHERE x.a < y.a WITHIN 35 ms RETURN y.a, y.ts AS ts_newest": BEGIN,
}  # fmt: skip


def rows(chance: random.Random, ts: int) -> dict[str, pa.Table]:
    def some() -> pa.Array:
        return pa.array([chance.randrange(4)], pa.int32())

    return {
        "R": pa.table({"ts": [ts], "a": some(), "b": some()}),
        "S": pa.table({"ts": [ts], "d": some()}),
    }


def run_of(c: Compilation) -> GraphRun:
    device = GoldenDevice(c.options.config) if c.options.devices else None
    return GraphRun(c, device, living=True, slice_rows=16)


def results(
    before: Compilation, after: Compilation, tables: dict[int, dict[str, pa.Table]], lag: int = 0
) -> list[dict[str, Any]]:
    """Returns the results of q if a run of `before` goes on with `after`; S is this far behind
    R."""
    run, found = run_of(before), []
    for ts, some in tables.items():
        if ts == BEGIN:
            for stream in ("R", "S") if not lag else ():
                run.promise(stream, BEGIN)
            list(run.advance())
            late = run_of(after)
            late.resume(run.state())
            run = late
        run.push("R", some["R"])
        if ts >= lag:
            run.push("S", tables[ts - lag]["S"])
        if ts % 20 == 19:
            found += list(run.advance())
    found += list(run.finish())
    return [row for name, one in found if name == "q" for row in one.to_pylist()]


@pytest.mark.parametrize("devices", [0, 1])
@pytest.mark.parametrize("keeper", KEEPERS)
@pytest.mark.parametrize("form", FORMS)
def test_what_joins_and_groups_keep_is_seen_by_what_begins_late(
    form: str, keeper: str, devices: int
) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    tables = {ts: rows(chance, ts) for ts in range(240)}
    before = compile_text(STREAMS + KEEPERS[keeper], options=Options(devices=devices))
    after = compile_text(f"REGISTER QUERY q AS {form};", after=before)
    past = {"R": BEGIN, "S": BEGIN}
    (said,) = complete_from(after, ["q"], past, before.program.queries).values()
    since = FORMS[form]
    assert said == f"from {since}"
    always, late = results(after, after, tables), results(before, after, tables)

    def known(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row for row in found if row["ts_newest"] >= since]

    assert known(always)
    assert known(late) == known(always)


@pytest.mark.parametrize("keeper", KEEPERS)
@pytest.mark.parametrize("form", FORMS)
def test_rows_that_wait_for_another_stream_are_seen_once(form: str, keeper: str) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    devices, lag = chance.choice([0, 1]), chance.choice([1, 30])
    tables = {ts: rows(chance, ts) for ts in range(300)}
    before = compile_text(STREAMS + KEEPERS[keeper], options=Options(devices=devices))
    after = compile_text(f"REGISTER QUERY q AS {form};", after=before)
    since = FORMS[form]
    always, late = (results(one, after, tables, lag) for one in (after, before))
    found = [[row for row in some if row["ts_newest"] >= since] for some in (always, late)]
    assert found[0]
    assert found[1] == found[0]


def test_a_query_of_another_text_under_the_same_name_begins_anew() -> None:
    tables = {ts: rows(random.Random(ts), ts) for ts in range(200)}
    forms = ("LEFT JOIN S ON R.a = S.d", "LEFT JOIN S ON R.b = S.d")
    before, after = (
        compile_text(
            f"{STREAMS}{KEEPERS['join']}REGISTER QUERY q AS SELECT R.a, S.d FROM R {one} WINDOW RANGE 9"
        )
        for one in forms
    )
    always, late = results(after, after, tables), results(before, after, tables)
    assert [row for row in late if row["ts_newest"] >= BEGIN] == [
        row for row in always if row["ts_newest"] >= BEGIN
    ]


@pytest.mark.parametrize("device", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_streams_that_a_late_query_reads_may_be_far_behind(seed: int, device: bool) -> None:
    """Beside a join that has reached 5,000, a query begins over streams that begin at 0. Pairs of
    rows are the judge."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    streams = "".join(f"CREATE STREAM {name} (k int);" for name in "RSTU")
    old = "REGISTER QUERY old AS SELECT R.ts AS x, S.ts AS y FROM R, S WHERE R.k = S.k WINDOW RANGE 9;"
    new = "REGISTER QUERY new AS SELECT T.ts AS x, U.ts AS y FROM T, U WHERE T.k = U.k WINDOW RANGE 9;"
    mixed = "REGISTER QUERY mixed AS SELECT T.ts AS x, R.ts AS y FROM T, R WHERE T.k = R.k WINDOW RANGE 9;"
    options = Options(devices=1 if device else 0)
    before = compile_text(streams + old, options=options)
    after = compile_text(streams + old + new + mixed, options=options)

    def some(begin: int, end: int) -> list[tuple[int, int]]:
        times = sorted(chance.choices(range(begin, end), k=(end - begin) // 3))
        return [(ts, chance.randrange(4)) for ts in times]

    def table(rows: list[tuple[int, int]]) -> pa.Table:
        ts, k = zip(*rows, strict=True)
        return pa.table({"ts": ts, "k": pa.array(k, pa.int32())})

    first = {name: some(4_500, 5_000) for name in "RS"}
    rest = {name: some(5_000, 5_300) for name in "RS"} | {
        name: some(0, 300) + some(4_900, 5_300) for name in "TU"
    }

    run = run_of(before)
    found: list[tuple[str, pa.Table]] = []
    for name, rows in first.items():
        run.push(name, table(rows))
        run.promise(name, 5_000)
    found += list(run.advance())
    state = run.state()
    run = run_of(after)
    run.resume(state)
    for at in range(0, 5_300, 50):
        for name, rows in rest.items():
            if part := [row for row in rows if at <= row[0] < at + 50]:
                run.push(name, table(part))
        for name in "TU" if at < 5_000 else "RSTU":
            run.promise(name, at + 50)
        found += list(run.advance())
    found += list(run.finish())
    whole = {name: first.get(name, []) + rows for name, rows in rest.items()}

    def pairs(one: str, other: str) -> Counter[tuple[int, int]]:
        return Counter(
            (x, y) for x, k in whole[one] for y, of in whole[other] if k == of and abs(x - y) <= 9
        )

    def given(query: str) -> Counter[tuple[int, int]]:
        rows = [row for name, some in found if name == query for row in some.to_pylist()]
        return Counter((row["x"], row["y"]) for row in rows)

    assert given("old") == pairs("R", "S")
    assert given("new") == pairs("T", "U")
    wanted = pairs("T", "R")
    assert given("mixed") <= wanted
    # Of R only the rows that the windows of the other join held are there.
    assert given("mixed") >= Counter({xy: n for xy, n in wanted.items() if min(xy) >= 5_000})
    assert wanted
    assert pairs("T", "U")
    assert any(y < 5_000 for _, y in given("mixed"))


@pytest.mark.parametrize("devices", [0, 1])
@pytest.mark.parametrize("form", ["over", "changes", "join"])
def test_rows_that_waited_for_a_join_that_ends_come_to_a_query_that_begins(
    devices: int, form: str
) -> None:
    """One step drops the last join that waits for S, and begins a query of R."""
    late = {
        "over": "SELECT a, sum(b) OVER (ORDER BY ts RANGE 40 PRECEDING) AS s FROM R WHERE b < 3",
        "changes": "SELECT a, count(*) AS n FROM R WHERE b < 3 GROUP BY a WINDOW RANGE 40 EMIT CHANGES",
        "join": "SELECT J.a, count(*) AS n FROM J GROUP BY J.a, TUMBLE(ts, 9)",
    }[form]
    stays = "CREATE STREAM J AS SELECT x.a FROM R x, R y WHERE x.a = y.b WINDOW RANGE 40;"
    text = f"{STREAMS}{stays} REGISTER QUERY l AS SELECT J.a FROM J;"
    options = Options(devices=devices)
    before = compile_text(text + KEEPERS["join"], options=options)
    after = compile_text(f"DROP QUERY k; REGISTER QUERY q AS {late};", after=before)
    always = compile_text(f"{text}REGISTER QUERY q AS {late};", options=options)
    chance = random.Random(devices)
    tables = {ts: rows(chance, ts)["R"] for ts in range(2 * BEGIN)}
    run, whole = run_of(before), run_of(always)
    found: list[list[dict[str, Any]]] = [[], []]
    run.push("S", rows(chance, BEGIN - 9)["S"])
    for ts, some in tables.items():
        if ts == BEGIN:
            assert run.waiting["R"]
            state, run = run.state(), run_of(after)
            run.resume(state)
        for one, results in zip((run, whole), found, strict=True):
            one.push("R", some)
            results += [row for name, t in one.advance() if name == "q" for row in t.to_pylist()]
    for one, results in zip((run, whole), found, strict=True):
        results += [row for name, t in one.finish() if name == "q" for row in t.to_pylist()]
    want = [row for row in found[1] if row["ts_newest"] >= BEGIN]
    assert want
    assert [row for row in found[0] if row["ts_newest"] >= BEGIN] == want
