"""Flink SQL as judge of windows, frames and joins: `python -m tests.system.flink_check --cases N`.

Both sides are asked the very same text over the same rows: groups of TUMBLE, HOP, CUMULATE and SESSION, Top-N of
windows, OVER, interval joins with outer sides, joins of windows, the first row of each key. Rows have distinct even
seconds and gaps are odd: in Flink rows exactly a gap apart are one session, here they are two. Needs Java 17,
`javac` and Maven, which fetches Flink from Maven Central.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.pipeline import compile_text
from seustream.engine.graph import GraphRun, drive
from tests.engine.pattern.flink_check import Asked, ask_flink

STREAMS = """CREATE STREAM t (id int, x int, kind varchar); CREATE STREAM r (id int, x int);
CREATE STREAM s (id int, x int); REGISTER QUERY q AS """
MEASURES = (
    "count(*)", "sum(x)", "min(x)", "max(id)", "count(DISTINCT x)", "sum(x) FILTER (WHERE id > 4)",
    "avg(CAST(x AS double))",
)  # fmt: skip


@dataclass
class StatementAsked(Asked):
    rows: pa.Table


def seconds(count: int) -> str:
    return f"INTERVAL '{count}' SECOND"


def windows(chance: random.Random, grow: bool = True) -> str:
    """Returns a table function with windows of t."""
    size, most = chance.choice((2, 4, 10)), chance.randint(1, 3)
    of, sizes = "TABLE t, DESCRIPTOR(ts)", f"{seconds(size)}, {seconds(size * most)}"
    forms = (f"TUMBLE({of}, {seconds(size)})", f"HOP({of}, {sizes})", f"CUMULATE({of}, {sizes})")
    return f"TABLE({chance.choice(forms[: 2 + grow])})"


def measures(chance: random.Random, over: str = "") -> str:
    some = [m for m in MEASURES if not over or ("DISTINCT" not in m and "FILTER" not in m)]
    found = chance.sample(some, chance.randint(1, 3))
    return ", ".join(f"{form}{over} AS m{n}" for n, form in enumerate(found))


def statement(chance: random.Random) -> str:
    key = chance.choice(("", "kind, "))
    own = "window_start, window_end"
    match chance.choice(
        (
            "group",
            "group",
            "again",
            "within",
            "joined",
            "session",
            "over",
            "join",
            "top",
            "best",
            "both",
            "first",
        )
    ):
        case "group":
            having = chance.choice(("", " HAVING count(*) > 1"))
            return f"SELECT {key}{own}, {measures(chance)} FROM {windows(chance)} GROUP BY {key}{own}{having}"
        case "again":
            counted = f"SELECT kind, {own}, count(*) AS c, sum(x) AS y FROM {windows(chance)} GROUP BY kind, {own}"
            more = chance.choice(("", ", c"))
            return f"SELECT {own}{more}, max(c) AS m, sum(y) AS s FROM ({counted}) AS g GROUP BY {own}{more}"
        case "within":
            size, least = seconds(chance.choice((2, 4, 10))), chance.randint(0, 2)
            rows = f"SELECT kind, x, id, {own} FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), {size})) WHERE x >= {least}"
            return f"SELECT {key}{own}, {measures(chance)} FROM ({rows}) AS g GROUP BY {key}{own}"
        case "joined":
            size = seconds(chance.choice((4, 10)))
            one, other = (f"TABLE(TUMBLE(TABLE {n}, DESCRIPTOR(ts), {size}))" for n in "rs")
            return f"""SELECT a.window_start, a.window_end, count(*) AS n, sum(b.id) AS m FROM (SELECT * FROM {one}) AS a
                JOIN (SELECT * FROM {other}) AS b ON a.x = b.x AND a.window_start = b.window_start
                AND a.window_end = b.window_end GROUP BY a.window_start, a.window_end"""
        case "session":
            partition = "PARTITION BY kind" if key else ""
            of = f"TABLE t {partition}, DESCRIPTOR(ts), {seconds(chance.choice((3, 5, 9)))}"
            return f"SELECT {key}{own}, {measures(chance)} FROM TABLE(SESSION({of})) GROUP BY {key}{own}"
        case "over":
            frame = chance.choice(
                (
                    f"RANGE BETWEEN {seconds(chance.choice((2, 4, 9)))} PRECEDING AND CURRENT ROW",
                    f"ROWS BETWEEN {chance.randint(1, 4)} PRECEDING AND CURRENT ROW",
                )
            )
            partition = chance.choice(("", "PARTITION BY kind "))
            return (
                f"SELECT id, {measures(chance, f' OVER ({partition}ORDER BY ts {frame})')} FROM t"
            )
        case "join":
            kind = chance.choice(("", "LEFT ", "RIGHT ", "FULL OUTER "))
            low, high = seconds(chance.randint(0, 6)), seconds(chance.randint(0, 6))
            bounds = f"s.ts BETWEEN r.ts - {low} AND r.ts + {high}"
            return f"SELECT r.id AS i, s.id AS j, s.x AS y FROM r {kind}JOIN s ON r.x = s.x AND {bounds}"
        case "top":
            ranked = f"row_number() OVER (PARTITION BY {own} ORDER BY x DESC, id) AS n"
            most = chance.randint(1, 3)
            return f"""SELECT id, x, n, window_end FROM (SELECT *, {ranked} FROM {windows(chance, False)}) AS w
                WHERE n <= {most}"""
        case "best":
            counted = (
                f"SELECT kind, {own}, count(*) AS c FROM {windows(chance)} GROUP BY kind, {own}"
            )
            ranked = f"row_number() OVER (PARTITION BY {own} ORDER BY c DESC, kind) AS n"
            return f"SELECT kind, c, n, window_end FROM (SELECT *, {ranked} FROM ({counted}) AS g) AS w WHERE n <= 1"
        case "both":
            size = seconds(chance.choice((4, 10)))
            one, other = (f"TABLE(TUMBLE(TABLE {n}, DESCRIPTOR(ts), {size}))" for n in "rs")
            kind = chance.choice(("", "LEFT "))
            return f"""SELECT a.id AS i, b.id AS j, a.window_end AS w_end FROM (SELECT * FROM {one}) AS a
                {kind}JOIN (SELECT * FROM {other}) AS b ON a.x = b.x AND a.window_start = b.window_start
                AND a.window_end = b.window_end"""
    return """SELECT kind, id, x FROM (SELECT *, row_number() OVER (PARTITION BY kind ORDER BY ts) AS n FROM t)
        AS w WHERE n = 1"""


def drawn(number: int, seed: int) -> StatementAsked:
    chance = random.Random(f"{seed} {number}")
    text, now, rows = " ".join(statement(chance).split()), 0, []
    for place in range(chance.randint(5, 30)):
        now += 2000 * chance.choice((1, 1, 2, 3))
        rows.append((now, place, chance.choice((None, 0, 1, 2, 3)), chance.choice("AABBC")))
    if "row_number" in text:  # the place of NULL in an order is another question
        rows = [(ts, n, 7 if x is None else x, kind) for ts, n, x, kind in rows]
    lines = [f"V {ts} {kind} {'-' if x is None else x}" for ts, _, x, kind in rows]
    columns = [list(column) for column in zip(*rows, strict=True)]
    types = (pa.int64(), pa.int32(), pa.int32(), pa.string())
    cells = [pa.array(cell, of) for cell, of in zip(columns, types, strict=True)]
    table = pa.table(cells, names=["ts", "id", "x", "kind"])
    return StatementAsked(number, text, [f"SQL {number}", text, *lines, "END"], table)


def answered(case: StatementAsked) -> Counter[str]:
    run = GraphRun(compile_text(STREAMS + case.text))
    tables = {"t": case.rows}
    for name, kind in (("r", "A"), ("s", "B")):
        tables[name] = case.rows.filter(pc.equal(case.rows["kind"], kind)).drop_columns("kind")
    read = {stream.name: tables[stream.name] for stream in run.streams}
    rows = [row for _, table in drive(run, read) for row in table.to_pylist()]
    return Counter(
        "R " + " ".join("null" if cell is None else str(cell) for cell in [*row.values()][:-2])
        for row in rows
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=150)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    cases = [drawn(number, options.seed) for number in range(options.cases)]
    theirs, rows, wrong = ask_flink(cases), 0, 0
    for case in cases:
        ours, other = answered(case), Counter(theirs[case.number])
        rows += ours.total()
        if ours != other:
            wrong += 1
            print(
                f"case {case.number} of seed {options.seed}: {case.text}\n{case.rows.to_pylist()}"
            )
            print(f"  ours only {sorted((ours - other).elements())}")
            print(f"  Flink only {sorted((other - ours).elements())}")
    print(f"{len(cases)} cases of seed {options.seed}, {rows} rows, {wrong} differ")
    return 1 if wrong or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
