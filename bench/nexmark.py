"""Nexmark: each query by itself, on one core, beside DuckDB, Flink SQL and Spark over the same
rows.

The generator of `examples/nexmark` draws 100,000 events with seed 7: persons, auctions and bids, of
which 46 in 50 are bids. A figure is the processor time of one run, from the text to the last
result. The number of events includes those of streams that a query does not read. DuckDB has one
thread and answers for the finite streams: it sees all rows at once and keeps no windows, so it is a
reference for the cost of the query itself, not a stream engine. Flink and Spark get the queries
that they can express in the same words (`bench/nexmark_engines`), and the numbers of results are
compared. `bench nexmark:seustream,flink` measures some of the engines. Flink needs Java 17 and
Maven, Spark the group `spark`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

import seustream as ss
from bench import nexmark_engines
from examples.nexmark.generate import streams
from seustream.commands.bench import Measurement
from tests.examples.test_nexmark import JUDGED

TITLE = "nexmark: its queries one by one, beside DuckDB, Flink SQL and Spark on the same rows"
LONG = True
PARTS = ("seustream", "flink", "spark")

EVENTS, SEED = 100_000, 7
_TEXT = Path(__file__).parents[1] / "examples" / "nexmark" / "nexmark.xsql"
_NEAR = {("q11", "Flink SQL"), ("q11", "Spark"), ("q12", "Spark")}
"""Results whose number may differ: in Flink, rows exactly one gap apart are one session, and Spark
lacks the windows that no later row closes."""


def alone(text: str, name: str) -> str:
    """Returns the query set with only one of its queries."""
    others = rf"REGISTER QUERY (?!{name} AS)[^;]*;"
    return re.sub(others, "", re.sub(r"--[^\n]*", "", text))


def measure(parts: Sequence[str] = PARTS) -> Measurement:
    tables = streams(EVENTS, SEED)
    named = {name: tables[name] for name in ("person", "auction", "bid")}
    flink = nexmark_engines.flink(named) if "flink" in parts else {}
    spark = nexmark_engines.spark(named) if "spark" in parts else {}
    rows: list[tuple[object, ...]] = []
    ratios = {}
    for name, found, took, judge in _ours(tables):
        others: list[object] = [took / judge]
        ratios[f"{name}: time beside DuckDB"] = took / judge
        for engine, figures in (("Flink SQL", flink), ("Spark", spark)):
            if name not in figures:
                others += [None, None]
                continue
            count, seconds = figures[name]
            if count != found and (name, engine) not in _NEAR:
                raise AssertionError(f"{name}: {engine} has {count} results, and here are {found}")
            others += [seconds, seconds / took]
            ratios[f"{name}: events a second over {engine}"] = seconds / took
        rows.append((name, found, round(EVENTS / took), took, judge, *others))
    return Measurement(
        (
            "query", "results", "events/s", "s", "DuckDB s", "beside DuckDB",
            "Flink s", "over Flink", "Spark s", "over Spark",
        ),
        rows,
        ratios,
        f"processor time, {EVENTS:,} events, seed {SEED}, the engine without a device; of Flink and Spark"
        " the second of two runs",
    )  # fmt: skip


def _ours(tables: dict[str, pa.Table]) -> list[tuple[str, int, float, float]]:
    """Returns for each query the number of results, and the seconds here and in DuckDB."""
    text, figures = _TEXT.read_text(encoding="utf-8"), []
    judge = duckdb.connect(config={"threads": 1})
    judge.execute("SET TimeZone = 'UTC'")
    for name, table in tables.items():
        judge.register(name, table.append_column("rn", pa.array(range(table.num_rows))))
    ss.run(alone(text, "q0"), streams=streams(100, SEED), devices=0)  # triggers late imports
    for name, sql in JUDGED.items():
        one = alone(text, name)
        used = {n: table for n, table in tables.items() if re.search(rf"\b{n}\b", one)}
        begun = time.process_time()
        found = ss.run(one, streams=used, devices=0)
        took = time.process_time() - begun
        begun = time.process_time()
        judge.execute(f"CREATE OR REPLACE TEMP TABLE found AS {sql}")
        figures.append((name, len(found[name]), took, time.process_time() - begun))
    return figures
