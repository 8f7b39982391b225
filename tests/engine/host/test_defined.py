"""Tests streams that joins define whose own streams are far behind: all pairs come, in order of
their times, whatever the steps and with the state saved in between. Pairs of rows are the judge."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

from seustream.compiler.pipeline import Options, compile_text
from seustream.engine.host.defined import DefinedRows
from tests.engine.test_beginning import run_of

_STREAMS = "CREATE STREAM R (r int); CREATE STREAM S (s int); CREATE STREAM T (t int);"
_OLD = "REGISTER QUERY old AS SELECT count(*) AS n FROM {} WINDOW RANGE 20 ms;"
_NEW = (
    "CREATE STREAM D AS SELECT R.ts AS x, S.ts AS y, r, s FROM R, S WHERE r <= s WINDOW RANGE 20 ms;"
    "REGISTER QUERY each AS SELECT x, y, r, s FROM D;"
    "REGISTER QUERY two AS SELECT sum(x + y) AS n FROM D WINDOW ROWS 2;"
    "REGISTER QUERY joined AS SELECT D.x, D.y, t FROM D, T WHERE r = t WINDOW RANGE 9 ms;"
)


def _rows(chance: random.Random, end: int) -> list[tuple[int, int]]:
    times = sorted(chance.choices(range(end), k=end // 4))
    return [(ts, chance.randrange(4)) for ts in times]


@pytest.mark.parametrize("devices", [0, 1])
@pytest.mark.parametrize("seed", range(8))
def test_a_stream_of_rows_that_lag(seed: int, devices: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    ahead, behind = ("R", "S") if seed % 2 else ("S", "R")
    options = Options(devices=devices)
    before = compile_text(_STREAMS + _OLD.format(ahead), options=options)
    after = compile_text(_STREAMS + _OLD.format(ahead) + _NEW, options=options)
    rows = {name: _rows(chance, 120) for name in "RST"}
    waiting = {name: [*some] for name, some in rows.items()}
    run, found = run_of(before), list[tuple[str, pa.Table]]()

    def push(name: str, count: int) -> None:
        some, waiting[name] = waiting[name][:count], waiting[name][count:]
        if some:
            ts, values = zip(*some, strict=True)
            run.push(name, pa.table({"ts": ts, name.lower(): pa.array(values, pa.int32())}))
            found.extend(run.advance())

    push(ahead, 20)
    held, names = 0, [behind, behind, "T"]
    for step in range(60):
        if step == 0 or chance.random() < 0.3:
            state, run = run.state(), run_of(after)
            run.resume(state)
        push(chance.choice(names), chance.choice([1, 2, 5]))
        held += sum(
            bool(join.defined.waiting()[0])
            for join in run.operators.values()
            if hasattr(join, "defined")
        )
        if len(waiting[behind]) <= 10:
            names = ["R", "S", "T"]
    for name in "RST":
        push(name, 1000)
    found += list(run.finish())
    assert held

    def given(query: str) -> list[dict[str, int]]:
        return [row for name, some in found if name == query for row in some.to_pylist()]

    pairs = Counter(
        (x, y, r, s) for x, r in rows["R"] for y, s in rows["S"] if abs(x - y) <= 20 and r <= s
    )
    each = [tuple(row[name] for name in ("x", "y", "r", "s")) for row in given("each")]
    assert Counter(each) <= pairs
    # What had left the window of the first query before the others began need not be there.
    least = rows[ahead][19][0] - 20
    assert Counter(each) >= Counter(
        {one: n for one, n in pairs.items() if one[ahead == "S"] >= least}
    )
    times = [max(x, y) for x, y, _, _ in each]
    assert times == sorted(times)
    sums = [x + y for x, y, _, _ in each]
    assert [row["n"] for row in given("two")] == [
        sum(sums[max(at - 1, 0) : at + 1]) for at in range(len(sums))
    ]
    assert Counter(
        tuple(row[name] for name in ("x", "y", "t")) for row in given("joined")
    ) == Counter(
        (x, y, t) for x, y, r, _ in each for z, t in rows["T"] if r == t and abs(max(x, y) - z) <= 9
    )


def test_rows_of_other_queries_wait_for_nothing() -> None:
    queries = compile_text(_STREAMS + _NEW, options=Options(devices=0)).program.queries
    held = DefinedRows(queries)

    def of(ts: list[int]) -> pa.Table:
        return pa.table({"ts": ts})

    answers = [("D", of([3, 6, 4])), ("each", of([9, 3])), ("D", of([3]))]
    (defining,) = [query.name for query in queries if query.defines == "D"]
    answers = [(defining if name == "D" else name, rows) for name, rows in answers]
    assert [name for name, _ in held.in_order(answers)] == ["each"]
    assert [rows["ts"].to_pylist() for _, rows in held.released(3)] == [[3, 3, 4]]
    assert not list(held.released(3))
    held.change([query for query in queries if query.name != "two"])
    assert held.waiting()[0]
    assert [rows["ts"].to_pylist() for _, rows in held.released(5)] == [[6]]
