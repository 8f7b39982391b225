"""Services of two streams, and runs over them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from seustream.compiler.pipeline import compile_text
from seustream.cosim.sites.process import Setup
from seustream.cosim.sites.run import SitesRun
from seustream.cosim.sites.service import SiteService
from seustream.engine.graph import GraphRun, drive
from seustream.engine.sites.costs import UnitCosts
from seustream.engine.sites.exchange import SiteExchange, plan_exchange
from seustream.engine.sites.shared import SharedLayout
from seustream.engine.times import TICKS, Tuples

TEXT = """
CREATE STREAM R (a int, b int);
CREATE STREAM S (d int, e int);
CREATE STREAM T (f int);
SELECT R.b, S.e FROM R, S WHERE R.a = S.d AND R.b + 1 > S.e WINDOW RANGE 10;
SELECT R.b, T.f FROM R, S, T WHERE R.a = S.d AND S.e = T.f WINDOW RANGE 10;
"""
ROWS = {
    "R": pa.table({"ts": [1, 2, 9], "a": pa.array([1, 2, 1], pa.int32()), "b": [5, 6, 7]}),
    "S": pa.table({"ts": [3, 4], "d": pa.array([1, 2], pa.int32()), "e": [5, 6]}),
    "T": pa.table({"ts": [5, 1, 6], "f": pa.array([6, 6, 5], pa.int32())}),
}
TIMES = {"R": pa.timestamp("ms", "UTC"), "S": TICKS}


def service(stream: str, token: str | None = None) -> SiteService:
    tuples = Tuples(ROWS[stream], TIMES[stream])
    return SiteService("grpc://127.0.0.1:0", {stream: lambda definition: tuples}, token)


def across() -> SiteExchange:
    return plan_exchange(compile_text(TEXT).program, {"r", "s"})


def setup(services: list[SiteService], **options: object) -> Setup:
    """Puts R and S at services, T and the query node here."""
    plan = across()
    where = {0: 1, 1: 2, 2: 0, 3: 0}
    costs = UnitCosts.of([[0 if where[a] == where[b] else 1 for b in where] for a in where])
    layout = SharedLayout(plan.sites, plan.joins, costs, 3, retry=200.0)
    addresses = (None, *(f"grpc://127.0.0.1:{one.port}" for one in services))
    return replace(Setup(layout, where, addresses, plan.of), **options)  # type: ignore[arg-type]


NAMES = {1: "site R at grpc://r", 2: "site S at grpc://s"}


def start(of: Setup) -> SitesRun:
    return SitesRun(of, NAMES, {"T": ROWS["T"]}, patience=0.5)


def results(run: SitesRun, slack: int = 0) -> list[list[tuple[object, ...]]]:
    """Returns the results of the queries over the rows that came through the exchange."""
    c = compile_text(TEXT)
    names = [query.name for query in c.program.queries]
    found: dict[str, list[tuple[object, ...]]] = {name: [] for name in names}
    for name, table in drive(GraphRun(c, slack=slack), {**ROWS, **across().rows(run.results)}):
        found[name] += zip(*(c.to_pylist() for c in table.columns), strict=True)
    return list(found.values())
