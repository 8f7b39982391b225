"""Queries that begin late see the windows as they are: their results are compared with those of a
query that was there from the beginning, over random rows."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.cosim.bridge import snapshot
from seustream.cosim.bridge.sealed import SealedWriter, read_sealed
from seustream.cosim.golden import GoldenDevice
from seustream.engine.completeness import complete_from
from seustream.engine.graph import GraphRun
from seustream.engine.runs import RunState
from tests.cosim.bridge.simdisk import SimDisk

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
    seed = 22
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
    seed = 22
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


@pytest.mark.parametrize("lag", [0, 30])
@pytest.mark.parametrize("form", FORMS)
def test_a_query_in_place_of_another_of_its_kind_sees_what_is_kept(form: str, lag: int) -> None:
    """The other has shorter windows, or is the same."""
    seed = 22
    print(f"seed {seed}")
    chance = random.Random(seed)
    options = Options(devices=chance.choice([0, 1]))
    tables = {ts: rows(chance, ts) for ts in range(240)}
    other = re.sub(r"\b[2-5]\d\b", "11", form)
    before = compile_text(
        f"{STREAMS}{KEEPERS['join']}REGISTER QUERY q AS {other};", options=options
    )
    after = compile_text(f"DROP QUERY q; REGISTER QUERY q AS {form};", after=before)
    always, late = results(after, after, tables, lag), results(before, after, tables, lag)
    since = FORMS[form]
    known = [row for row in always if row["ts_newest"] >= since]
    assert known
    assert [row for row in late if row["ts_newest"] >= since] == known


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


@pytest.mark.parametrize("seed", range(4))
def test_rows_that_a_later_level_lets_wait_are_seen_once(seed: int) -> None:
    """A join of derived rows still waits for rows of R that the join of base streams has let in."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    derived = "CREATE STREAM D AS SELECT d FROM S LEFT JOIN T ON d = e WINDOW RANGE 9;"
    streams = f"{STREAMS} CREATE STREAM T (e int); {derived}"
    keep = "REGISTER QUERY k AS SELECT x.a FROM R x, R y WHERE x.a = y.b WINDOW RANGE 40;"
    keep += "REGISTER QUERY l AS SELECT R.a FROM R, D WHERE R.a = D.d WINDOW RANGE 40;"
    form = "SELECT x.a, y.b FROM R x LEFT JOIN R y ON x.a = y.b AND x.b = 1 WINDOW RANGE 20"
    before = compile_text(streams + keep, options=Options(devices=0))
    after = compile_text(f"REGISTER QUERY q AS {form};", after=before)
    tables = {ts: rows(chance, ts) for ts in range(200)}
    found = []
    for first in (after, before):
        run, given = run_of(first), []
        for ts, some in tables.items():
            if ts == BEGIN:
                list(run.advance())
                state, run = run.state(), run_of(after)
                run.resume(state)
            run.push("R", some["R"])
            if ts % 20 == 19:
                given += list(run.advance())
        given += list(run.finish())
        known = [row for name, one in given if name == "q" for row in one.to_pylist()]
        found.append([row for row in known if row["ts_newest"] >= BEGIN])
    assert found[0]
    assert found[1] == found[0]


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


@pytest.mark.parametrize("devices", [0, 1])
@pytest.mark.parametrize("lag", [0, 30])
@pytest.mark.parametrize(
    "beside", ["", "REGISTER QUERY l AS SELECT R.b FROM R, D WHERE R.b = D.d WINDOW RANGE 9;"]
)
@pytest.mark.parametrize(
    ("form", "reach"),
    [
        ("SELECT R.a, R.b FROM R, D WHERE R.a = D.d WINDOW RANGE 40, RANGE 5", 5),
        ("SELECT R.a, R.b FROM D, R WHERE R.a = D.d WINDOW NOW, RANGE 40", 0),
        ("SELECT R.a, count(*) AS n FROM D, R WHERE R.a = D.d GROUP BY R.a WINDOW RANGE 2, RANGE 40", 2),
    ],
)  # fmt: skip
def test_a_join_of_derived_rows_that_begins_late_sees_what_is_kept_of_others(
    form: str, reach: int, beside: str, lag: int, devices: int
) -> None:
    """A join of base streams keeps longer windows of R than joins of derived rows do."""
    seed = 22
    print(f"seed {seed}")
    chance = random.Random(seed)
    derived = "CREATE STREAM D AS SELECT d FROM S WHERE d > 0 WINDOW NOW; REGISTER QUERY dd AS SELECT d FROM D;"
    text, options = f"{STREAMS}{derived}{beside}{KEEPERS['join']}", Options(devices=devices)
    before = compile_text(text, options=options)
    after = compile_text(f"REGISTER QUERY q AS {form};", after=before)
    tables = {ts: rows(chance, ts) for ts in range(240)}
    always, late = results(after, after, tables, lag), results(before, after, tables, lag)
    known = [[row for row in some if row["ts_newest"] >= BEGIN + reach] for some in (always, late)]
    assert known[0]
    assert known[1] == known[0]


TABLE = "CREATE TABLE t (k int, n int); CREATE STREAM R (a int, b int); CREATE STREAM S (d int);"
OF_TABLE = {
    "none": "",
    "join": "REGISTER QUERY k AS SELECT R.a, n FROM R, t WHERE a = k;",
    "left": "REGISTER QUERY k AS SELECT R.a, n FROM R LEFT JOIN t ON a = k;",
    "exists": "REGISTER QUERY k AS SELECT d FROM S WHERE EXISTS (SELECT * FROM t WHERE k = d);",
    "groups": "REGISTER QUERY k AS SELECT n, count(*) AS c FROM S, t WHERE d = k GROUP BY n WINDOW RANGE 40;",
    "changes": "REGISTER QUERY k AS SELECT R.a, n FROM R LEFT JOIN t ON a = k WINDOW RANGE 20 EMIT CHANGES;",
    "select": "REGISTER QUERY k AS SELECT a FROM R WHERE b > 1;",
}  # fmt: skip
LATE_OF_TABLE = {
    "SELECT R.a, b, n FROM R, t WHERE a = k": 0,
    "SELECT R.a, b, n FROM R LEFT JOIN t ON a = k": 0,
    "SELECT R.a, b, n FROM R LEFT JOIN t ON a = k AND b < n": 0,
    "SELECT a, b FROM R WHERE EXISTS (SELECT * FROM t WHERE k = a)": 0,
    "SELECT a, b FROM R WHERE NOT EXISTS (SELECT * FROM t WHERE k = a)": 0,
    "SELECT R.a, d, n FROM R, S, t WHERE a = d AND a = k WINDOW RANGE 20, RANGE 20": 20,
    "SELECT n, sum(b) AS s FROM R, t WHERE a = k GROUP BY n, TUMBLE(ts, 20 ms)": 19,
    "SELECT n, count(*) AS c FROM R, t WHERE a = k GROUP BY n WINDOW RANGE 20": 20,
    "SELECT n, count(*) AS c FROM R LEFT JOIN t ON a = k GROUP BY n WINDOW RANGE 20": 20,
    "SELECT R.a, n FROM R LEFT JOIN t ON a = k WINDOW RANGE 20 EMIT CHANGES": 21,
    "SELECT J.a, n FROM (SELECT R.a FROM R, S WHERE a = d WINDOW RANGE 9) J, t WHERE J.a = k": 9,
    "SELECT J.a, n FROM (SELECT R.a FROM R, S WHERE a = d WINDOW RANGE 9) J LEFT JOIN t ON J.a = k": 9,
}  # fmt: skip


def _next(run: GraphRun, c: Compilation) -> GraphRun:
    """Returns the run that goes on with other queries, as `connect` and a bridge do."""
    if not run.devices and run.change(c):
        return run
    after = run_of(c)
    after.resume(snapshot_of(run.state()))
    return after


def snapshot_of(state: RunState) -> RunState:
    """Returns the state as a journal gives it back."""
    path, disk = Path("/state"), SimDisk()
    writer = SealedWriter(disk.open(path, fresh=True))
    writer.seal("snapshot", snapshot.save(writer, state, {}, {}))
    return snapshot.restore(read_sealed(disk, path, "snapshot")).state


@pytest.mark.parametrize("devices", [0, 1])
@pytest.mark.parametrize("keeper", OF_TABLE)
@pytest.mark.parametrize("form", LATE_OF_TABLE)
def test_rows_of_a_table_are_there_for_a_query_that_begins_late(
    form: str, keeper: str, devices: int
) -> None:
    """Compares with the query that was there from the beginning, whatever other queries kept, also
    where none has read the table for a while."""
    seed = 22
    print(f"seed {seed}")
    chance, options = random.Random(seed), Options(devices=devices)
    before = compile_text(TABLE + OF_TABLE[keeper], options=options)
    register = f"REGISTER QUERY q AS {form};"
    changes = [
        [register],
        ["REGISTER QUERY q AS SELECT S.d, n FROM S LEFT JOIN t ON d = k;", register.replace("QUERY", "OR REPLACE QUERY", 1)],
        [register, "DROP QUERY q;", register],
    ]  # fmt: skip
    if keeper != "none":
        changes.append(["DROP QUERY k;", register])
        changes.append([f"DROP QUERY k; {register}"])
    texts = chance.choice(changes)
    steps = [*sorted(chance.sample(range(40, BEGIN), len(texts) - 1)), BEGIN]
    print(texts, steps)
    of_table = {"k": [0, 1, 1, 3], "n": [chance.randrange(4) for _ in range(4)]}
    table = pa.table({name: pa.array(some, pa.int32()) for name, some in of_table.items()})
    tables = {ts: rows(chance, ts) for ts in range(200)}
    came = chance.choice([0, 0, 30])  # when the whole table is there
    begun = chance.choice([0, 0, 110])  # when S has its first row
    c, run = before, run_of(before)
    whole = run_of(compile_text(TABLE + register, options=options))
    found: list[list[dict[str, Any]]] = [[], []]

    def given(one: GraphRun, last: bool = False) -> list[dict[str, Any]]:
        answers = list(one.finish() if last else one.advance())
        return [row for name, some in answers if name == "q" for row in some.to_pylist()]

    for ts, some in tables.items():
        for at, text in zip(steps, texts, strict=True):
            if at == ts:
                c = compile_text(text, after=c)
                found[0] += given(run)
                run = _next(run, c)
        for number, one in enumerate((run, whole)):
            if ts == came:
                one.push("t", table.slice(0, 1))
                one.push("t", table.slice(1))
                one.end("t")
            one.push("R", some["R"])
            if ts >= begun:
                one.push("S", some["S"])
            if ts % 20 == 19:
                found[number] += given(one)
    since = BEGIN + 1 + LATE_OF_TABLE[form]
    known = []
    for results, one in zip(found, (run, whole), strict=True):
        results += given(one, last=True)
        known.append([row for row in results if row["ts_newest"] >= since])
    assert known[1]
    assert known[0] == known[1]


def test_rows_of_a_table_that_was_made_anew_are_not_those_of_the_one_before() -> None:
    query = "REGISTER QUERY q AS SELECT R.a, n FROM R LEFT JOIN t ON a = k;"
    c = compile_text(TABLE + query, options=Options(devices=0))
    run = run_of(c)
    table = pa.table({name: pa.array([1], pa.int32()) for name in ("k", "n")})
    run.push("t", table)
    run.end("t")
    list(run.advance())
    for text in ("DROP QUERY q; DROP TABLE t;", "CREATE TABLE t (k int, n int);", query):
        c = compile_text(text, after=c)
        run = _next(run, c)
    run.push("R", pa.table({"ts": [5], "a": table["k"], "b": table["k"]}))
    found = [row for _, some in run.finish() for row in some.to_pylist()]
    assert [(row["a"], row["n"]) for row in found] == [(1, None)]


KINDS = {
    "select": "SELECT a FROM R",
    "join": "SELECT x.a FROM R x JOIN R y ON x.a = y.a WINDOW RANGE 5",
    "groups": "SELECT a, count(*) AS n FROM R GROUP BY a WINDOW RANGE 5",
    "outer": "SELECT x.a FROM R x LEFT JOIN R y ON x.a = y.a WINDOW RANGE 5",
    "changes": "SELECT a, count(*) AS n FROM R GROUP BY a WINDOW RANGE 5 EMIT CHANGES",
    "tumble": "SELECT count(*) AS n FROM R GROUP BY TUMBLE(ts, 2 ms)",
    "over": "SELECT sum(a) OVER (ORDER BY ts RANGE 3 PRECEDING) AS s FROM R",
    "ranks": "SELECT rank() OVER (ORDER BY a) AS s FROM R",
    "union": "SELECT a FROM R UNION ALL SELECT a FROM R",
    "distinct": "SELECT DISTINCT a FROM R WINDOW RANGE 2",
    "pattern": "PATTERN ANY x; ANY y FROM R WHERE x.a < y.a WITHIN 5 ms RETURN y.a, y.ts AS ts_newest",
    "recognize": "SELECT * FROM R MATCH_RECOGNIZE (ORDER BY ts MEASURES LAST(B.ts) AS ts_newest PATTERN (A B) WITHIN INTERVAL '1' SECOND DEFINE B AS B.a > A.a)",
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_query_of_another_kind_under_the_same_name_begins_anew(kind: str) -> None:
    """It goes on as one that begins when there has been no query of its name for a moment."""
    options = Options(devices=0)
    before = compile_text(f"{STREAMS}REGISTER QUERY q AS {KINDS[kind]};", options=options)
    for other, form in KINDS.items():
        if other == kind:
            continue
        print(other)
        found: list[list[dict[str, Any]]] = []
        for texts in (
            [f"REGISTER OR REPLACE QUERY q AS {form};"],
            ["DROP QUERY q;", f"REGISTER QUERY q AS {form};"],
        ):
            c, run = before, run_of(before)
            chance, results = random.Random(5), []
            for ts in range(20):
                if ts == 10:
                    list(run.advance())
                    for text in texts:
                        c = compile_text(text, after=c)
                        after = run_of(c)
                        after.resume(run.state())
                        run = after
                run.push("R", rows(chance, ts)["R"])
                results += list(run.advance()) if ts > 10 else []
            results += list(run.finish())
            known = [row for _, some in results for row in some.to_pylist()]
            found.append([row for row in known if row["ts_newest"] > 15])  # past all windows
        assert found[0]
        assert found[0] == found[1]
