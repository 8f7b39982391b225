"""ASOF joins and joins with tables, compared with DuckDB over the whole streams."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from seustream.compiler.pipeline import compile_text
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun
from tests.compiler.xsql.relations import DEFINITIONS
from tests.engine.relational.generate import judged, rows_of
from tests.engine.relational.running import at_once, in_pieces


def stream(chance: random.Random, other: str, most: int = 40) -> pa.Table:
    ts = sorted(chance.randint(0, 40) for _ in range(chance.randint(0, most)))
    columns = {
        name: pa.array([chance.choice([None, 0, 1, 2]) for _ in ts], pa.int32())
        for name in ("a", other)
    }
    return pa.table({"ts": pa.array(ts, pa.int64()), **columns})


def table(chance: random.Random) -> pa.Table:
    keys = [chance.choice([None, 0, 1, 2, 3]) for _ in range(chance.randint(0, 6))]
    names = [chance.choice(["x", "y", None]) for _ in keys]
    return pa.table({"a": pa.array(keys, pa.int32()), "n": pa.array(names, pa.string())})


def streams(chance: random.Random) -> dict[str, pa.Table]:
    return {"R": stream(chance, "b"), "S": stream(chance, "d"), "t": table(chance)}


def check_asof(seed: int) -> int:
    chance = random.Random(seed)
    rows = streams(chance)
    terms = [chance.choice(("y.ts <= x.ts", "x.ts > y.ts", "y.ts < x.ts + 4", "x.ts - 3 >= y.ts"))]
    terms += ["x.a = y.a"] * (chance.random() < 0.8)
    terms += ["y.d > 0"] * (chance.random() < 0.3)
    terms += ["x.b <> 1"] * (chance.random() < 0.2)
    age = chance.choice(
        ("x.ts - y.ts <= 6", "y.ts >= x.ts - 2", "x.ts < y.ts + 1", "y.ts + 9 > x.ts")
    )
    terms += [age] * (chance.random() < 0.4)
    chance.shuffle(terms)
    on, outer = " AND ".join(terms), chance.choice(("", "LEFT "))
    items, times = "x.a AS p, x.b AS q, y.d AS r", "x.ts, y.ts"
    more = chance.choice(("", "", " WHERE y.d IS NULL OR y.d < 2", " LEFT JOIN t ON t.a = y.d"))
    items += ", t.n AS n" * ("t.n" in more or " t " in more)
    theirs = f"(SELECT * FROM S y WHERE {on} ORDER BY y.ts DESC, y.rn DESC LIMIT 1) y"
    want = Counter(
        judged(
            f"SELECT {items}, least({times}), greatest({times})"
            f" FROM R x {outer or 'INNER '}JOIN LATERAL {theirs} ON TRUE{more}",
            **rows,
        )
    )
    select = f"SELECT {items} FROM R x {outer}ASOF JOIN S y ON {on}{more}"
    text = f"{DEFINITIONS}REGISTER QUERY q AS {select};\nCREATE STREAM d AS {select};\nREGISTER QUERY over AS SELECT p, ts AS at FROM d"
    print(f"seed {seed}\n{text}")
    for found in (at_once(text, rows), in_pieces(text, rows, seed)):
        assert Counter(rows_of(found.get("q"))) == want
        over = Counter(row[:2] for row in rows_of(found.get("over")))
        assert over == Counter((row[0], row[-1]) for row in want.elements())
    return want.total()


@pytest.mark.parametrize("seed", [*range(60), 1031, 1092, 1139])
def test_asof(seed: int) -> None:
    check_asof(seed)


def check_table(seed: int) -> int:
    chance = random.Random(seed)
    rows = streams(chance)
    text, items, times = chance.choice(
        (
            ("FROM R x JOIN t ON x.a = t.a", "x.b AS p, t.n AS q", "x.ts"),
            ("FROM t, R x WHERE x.a < t.a", "x.b AS p, t.a AS q", "x.ts"),
            ("FROM R x LEFT JOIN t ON x.a = t.a AND t.n = 'x'", "x.b AS p, t.n AS q", "x.ts"),
            ("FROM R x WHERE NOT EXISTS (SELECT * FROM t WHERE t.a = x.a)", "x.b AS p", "x.ts"),
            ("FROM R x WHERE x.a IN (SELECT a FROM t)", "x.b AS p", "x.ts"),
            (
                "FROM R x JOIN S y ON x.a = y.a AND abs(x.ts - y.ts) <= 5 JOIN t ON t.a = y.d",
                "x.b AS p, t.n AS q, y.d AS r",
                "x.ts, y.ts",
            ),
            (
                "FROM R x LEFT JOIN S y ON x.a = y.a AND abs(x.ts - y.ts) <= 5 LEFT JOIN t ON t.a = y.d",
                "x.b AS p, t.n AS q, y.d AS r",
                "x.ts, y.ts",
            ),
        )
    )
    query = f"{DEFINITIONS}REGISTER QUERY q AS SELECT {items} {text}"
    print(f"seed {seed}\n{query}")
    want = Counter(judged(f"SELECT {items}, least({times}), greatest({times}) {text}", **rows))
    for found in (at_once(query, rows), in_pieces(query, rows, seed)):
        assert Counter(rows_of(found.get("q"))) == want
    return want.total()


@pytest.mark.parametrize("seed", range(40))
def test_tables(seed: int) -> None:
    check_table(seed)


def run_of(select: str) -> GraphRun:
    compilation = compile_text(DEFINITIONS + select)
    return GraphRun(compilation, GoldenDevice(compilation.options.config))


def rows(**columns: list[int]) -> pa.Table:
    return pa.table(
        {n: pa.array(v, pa.int64() if n == "ts" else pa.int32()) for n, v in columns.items()}
    )


def came(run: GraphRun) -> list[tuple[Any, ...]]:
    return [row for _, part in run.advance() for row in rows_of(part)]


def test_an_asof_row_comes_once_the_watermark_has_passed_it() -> None:
    run = run_of("SELECT R.b, S.d FROM R LEFT ASOF JOIN S ON R.a = S.a AND R.ts >= S.ts")
    run.push("S", rows(ts=[1], a=[1], d=[10]))
    run.push("R", rows(ts=[5, 9], a=[1, 2], b=[7, 8]))
    run.promise("S", 5)
    assert came(run) == []
    run.push("S", rows(ts=[5], a=[1], d=[20]))
    assert came(run) == []
    run.promise("S", 6)
    assert came(run) == [(7, 20, 5, 5)]
    run.end("S")
    run.promise("R", 10)
    assert came(run) == [(8, None, 9, 9)]


def test_an_asof_join_keeps_one_row_a_key() -> None:
    run = run_of("SELECT R.b, S.d FROM R ASOF JOIN S ON R.a = S.a AND R.ts >= S.ts")
    (operator,) = [one for name, one in run.operators.items() if name.startswith("operation")]
    run.push("S", rows(ts=[0], a=[99], d=[0]))
    for now in range(1, 60):
        run.push(
            "S",
            rows(
                ts=[10 * now + n for n in range(10)],
                a=[n % 3 for n in range(10)],
                d=list(range(10)),
            ),
        )
        run.push("R", rows(ts=[10 * now + 9], a=[1], b=[now]))
        assert all(row[1] == 7 for row in came(run))
    assert len(operator.stores["S"]) < 40  # type: ignore[attr-defined]
    assert sum(len(kept) for kept in operator._kept()) < 30  # type: ignore[attr-defined]


def test_an_asof_join_keeps_no_row_that_is_too_old() -> None:
    """Keys are new all the time. A bound on the age lets go of those before it."""
    run = run_of(
        "SELECT R.b, S.d FROM R LEFT ASOF JOIN S ON R.a = S.a AND R.ts >= S.ts AND R.ts - S.ts <= 20"
    )
    (operator,) = [one for name, one in run.operators.items() if name.startswith("operation")]
    found = []
    for now in range(60):
        keys = [10 * now + n for n in range(10)]
        run.push("S", rows(ts=keys, a=keys, d=keys))
        run.push(
            "R", rows(ts=[10 * now + 9] * 2, a=[max(10 * now - 11, 0), 10 * now - 12], b=[0, 0])
        )
        found += came(run)
    assert found[-2:] == [(0, 569, 569, 589), (0, None, 589, 589)]
    assert sum(len(kept) for kept in operator._kept()) < 60  # type: ignore[attr-defined]


def test_rows_wait_for_the_whole_table() -> None:
    run = run_of("SELECT R.b, t.n FROM R LEFT JOIN t ON R.a = t.a")
    run.push("R", rows(ts=[5], a=[1], b=[7]))
    run.promise("R", 6)
    run.push("t", pa.table({"a": pa.array([2], pa.int32()), "n": ["two"]}))
    assert came(run) == []
    run.push("t", pa.table({"a": pa.array([1], pa.int32()), "n": ["one"]}))
    assert came(run) == []
    run.end("t")
    assert came(run) == [(7, "one", 5, 5)]
    run.push("R", rows(ts=[8], a=[3], b=[9]))
    run.promise("R", 9)
    assert came(run) == [(9, None, 8, 8)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("window", ["", "WINDOW RANGE 5", "WINDOW UNBOUNDED", "WINDOW ROWS 1"])
def test_rows_without_a_match_in_a_table_come_at_once(window: str, seed: int) -> None:
    """Their place among the others is that of their arrival, whatever the steps."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    rows = {"R": stream(chance, "b"), "t": table(chance)}
    text = f"SELECT R.b, t.n FROM R LEFT JOIN t ON t.a = R.a {window}"
    for one in (text, text.replace("R LEFT JOIN t", "t RIGHT JOIN R")):
        c = compile_text(f"{DEFINITIONS} REGISTER QUERY q AS {one};")
        found = []
        for size in (1, 3, 1000):
            run, answers = GraphRun(c), list[tuple[object, ...]]()
            run.push("t", rows["t"].append_column("ts", pa.nulls(len(rows["t"]), pa.int64())))
            run.end("t")
            for begin in range(0, len(rows["R"]), size):
                run.push("R", rows["R"].slice(begin, size))
                answers += [
                    tuple(r.values()) for _, part in run.advance() for r in part.to_pylist()
                ]
            answers += [tuple(r.values()) for _, part in run.finish() for r in part.to_pylist()]
            found.append(answers)
        assert found[0] == found[1] == found[2]
        assert [row[-1] for row in found[0]] == sorted(row[-1] for row in found[0])


def test_asof_at_both_ends_of_time() -> None:
    first, last = -(2**63), 2**63 - 1
    rows = {"R": pa.table({"ts": [first, 0, last], "a": pa.array([1, 2, 3], pa.int32())})}
    define = "CREATE STREAM R (a int);"

    def found(on: str) -> list[tuple[object, ...]]:
        text = (
            f"{define}REGISTER QUERY q AS SELECT x.a, y.a AS b FROM R x LEFT ASOF JOIN R y ON {on}"
        )
        got = [rows_of(of.get("q")) for of in (at_once(text, rows), in_pieces(text, rows, 1))]
        assert got[0] == got[1]
        return [row[:2] for row in got[0]]

    assert found("x.ts >= y.ts") == [(1, 1), (2, 2), (3, 3)]
    assert found("x.ts > y.ts") == [(1, None), (2, 1), (3, 2)]
    assert found("x.ts - 5 >= y.ts") == [(1, None), (2, 1), (3, 2)]
