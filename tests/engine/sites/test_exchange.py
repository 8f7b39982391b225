"""The exchange: the graph gives the same results over the rows that it passes on as over all
rows."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from seustream.compiler.pipeline import compile_text
from seustream.engine.graph import GraphRun, drive
from seustream.engine.sites.costs import UnitCosts
from seustream.engine.sites.exchange import plan_exchange
from seustream.engine.sites.query import blocks_of
from seustream.engine.sites.shared import SharedLayout
from tests.cosim.bridge.serving import Rows, multiset
from tests.engine.sites.network import LineFaults, SiteNetwork

STREAMS = "CREATE STREAM R (a int, b int NOT NULL, c varchar(9)); CREATE STREAM S (d int, e int); CREATE STREAM T (f int);"
JOINED = (
    "SELECT R.b, S.e FROM R, S WHERE R.a = S.d AND R.b < S.e WINDOW RANGE 4, RANGE 2",
    "SELECT * FROM R, S, T WHERE R.a = S.d AND S.e = T.f WINDOW RANGE 9",
    "SELECT R.a, count(*) AS n, max(S.e) AS m FROM R, S WHERE R.a = S.d GROUP BY R.a"
    " HAVING count(*) > 1 WINDOW RANGE 5",
    "SELECT x.b, y.b AS z FROM R x, R y WHERE x.a = y.a AND x.b <> y.b WINDOW RANGE 3",
    "SELECT d FROM S WHERE 12 / e > 3 WINDOW NOW",
    "SELECT R.b FROM R, S WHERE R.a = S.d AND 6 / (R.b - 2) > S.e WINDOW UNBOUNDED",
    "SELECT R.a FROM R, S WHERE R.ts = S.ts AND R.a = S.d WINDOW RANGE 3",
)
WHOLE = {
    "SELECT R.b, S.e FROM R, S WHERE R.a = S.d AND R.b <> 3 WINDOW PARTITION BY a ROWS 1, RANGE 9": "R S",
    "SELECT R.b, S.e FROM R, S WHERE R.a = S.d WINDOW ROWS 2": "R S",
    "SELECT R.b, S.e FROM R, S WHERE R.b < S.e WINDOW RANGE 2": "R S",
    "SELECT R.b FROM R WINDOW NOW": "R",
    "SELECT R.b, S.e FROM R LEFT JOIN S ON R.a = S.d WINDOW RANGE 5": "R S",
    "PATTERN ANY x; ANY y FROM S WHERE y.e > x.e WITHIN 5 ms RETURN x.d": "S",
}


def tables(chance: random.Random) -> dict[str, pa.Table]:
    def rows(**columns: pa.DataType) -> pa.Table:
        count = chance.randint(1, 25)
        ts = sorted(chance.randint(0, 20) for _ in range(count))
        made = {"ts": pa.array(ts, pa.int64())}
        for name, kind in columns.items():
            values = [chance.choice([*range(5), None if name != "b" else 7]) for _ in ts]
            made[name] = pa.array(values, pa.int32()).cast(kind)
        return pa.table(made)

    return {
        "R": rows(a=pa.int32(), b=pa.int32(), c=pa.string()),
        "S": rows(d=pa.int32(), e=pa.int32()),
        "T": rows(f=pa.int32()),
    }


def results(text: str, given: dict[str, pa.Table]) -> tuple[dict[str, Rows], object]:
    run = GraphRun(compile_text(text))
    found: dict[str, Rows] = {name: Rows() for name in run.compilation.program.names}
    for name, table in drive(run, given):
        found[name] += multiset(table)
    counted = {
        name: {place: count for place, (count, _) in places.items()}
        for name, places in run.report.faults.items()
    }
    return found, counted


def came(text: str, given: dict[str, pa.Table], seed: int) -> dict[str, pa.Table]:
    """Returns the rows that an exchange passes on if all streams are at sites, over a bad
    network."""
    plan = plan_exchange(compile_text(text).program, {name.lower() for name in given})
    nodes = len(plan.sites) + 1
    costs = UnitCosts.of([[0 if a == b else 1 + a + b for b in range(nodes)] for a in range(nodes)])
    network = SiteNetwork(
        SharedLayout(plan.sites, plan.joins, costs, nodes - 1), LineFaults(9, 0.1, 0.1), seed
    )
    for k, (site, stream) in enumerate(zip(plan.sites, plan.of, strict=True)):
        for block in blocks_of(site, k, given[stream.name], most=4):
            network.submit(block)
    network.run()
    return {name: given[name] for name in plan.whole} | plan.rows(network.results)


@pytest.mark.parametrize("seed", range(12))
def test_the_results_are_those_over_all_rows(seed: int) -> None:
    chance = random.Random(seed)
    given, queries = tables(chance), chance.sample(JOINED, 3)
    text = f"{STREAMS} CREATE STREAM near AS {JOINED[0]}; REGISTER QUERY q AS SELECT count(*) AS n"
    text += " FROM near GROUP BY near.b WINDOW RANGE 3;"
    text += " ".join(f"REGISTER QUERY q{n} AS {query};" for n, query in enumerate(queries))
    reduced = came(text, given, seed)
    for name, rows in reduced.items():
        assert rows.num_rows <= given[name].num_rows
    assert results(text, given | reduced) == results(text, given)


@pytest.mark.parametrize(("query", "whole"), WHOLE.items())
def test_streams_of_which_every_row_counts_come_whole(query: str, whole: str) -> None:
    """A stream also comes whole if it is joined with one that another query needs whole."""
    text = f"{STREAMS} REGISTER QUERY q AS {query}; REGISTER QUERY p AS {JOINED[0]};"
    plan = plan_exchange(compile_text(text).program, {"r", "s"})
    assert " ".join(sorted(plan.whole)) == whole
    assert all(why.startswith("query q: ") for why in plan.whole.values())
    assert len(plan.queries) == (whole != "R S")
    assert not plan_exchange(compile_text(text).program, {"r", "s"}, strict=True).queries
