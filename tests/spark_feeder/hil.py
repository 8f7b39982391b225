"""The differential suite through Spark and the bridge: random query sets on random streams, fed from
files by Spark, joined on the RTL, results out of files against DuckDB.

`python -m tests.spark_feeder.hil --cases N`, or `nox -s hil`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from seustream.compiler.errors import CompileError
from seustream.compiler.pipeline import Compilation
from seustream.cosim.bridge.protocol import Run
from seustream.engine.intake import accepted
from seustream.engine.stream.answers import result_schema
from seustream.hdl.config import CONFIGURATIONS
from seustream.spark_feeder.job import SHORT, files, run, session
from tests.cosim.bridge.serving import bridge
from tests.spark_feeder.feeding import committed, frames, write
from tests.system import oracle
from tests.system.differential import DEVICES, compile_case
from tests.system.generate import Case, generate


def run_case(spark: SparkSession, seed: int, device: str = "verilated") -> int:
    """Runs one case; returns the number of results, -1 if the query set does not fit a device.
    Raises `AssertionError` if Spark's files are not what DuckDB computes."""
    case = generate(seed)
    try:
        compilation = compile_case(case, case.plan)
    except CompileError as error:
        if any(problem.kind != "limit" for problem in error.problems):
            raise
        return -1
    oracle.load(case)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        made = DEVICES[device](CONFIGURATIONS[case.config])
        with bridge(folder / "journal", made) as (_, url):
            feed(spark, case, compilation, folder, url)
        return sum(compare(case, query, compilation, folder) for query in range(len(case.queries)))


def feed(spark: SparkSession, case: Case, compilation: Compilation, folder: Path, url: str) -> None:
    """Feeds arrivals in their order, in three batches."""
    rows = {stream.name: _typed(case, compilation, stream.name) for stream in case.streams}
    write(folder / "in", rows, 3)
    sources = frames(spark, compilation, folder / "in")
    job = run(
        compilation,
        sources,
        files(folder / "out"),
        bridge=url,
        how=Run(slack=case.slack, late=True),
    )
    counts = job.wait(timeout=600)
    assert not any(counts.late.values()), f"seed {case.seed}: late rows {counts.late}"


def _typed(case: Case, compilation: Compilation, name: str) -> pa.Table:
    """Returns a stream's arrivals with its own types, times of day as in Spark's files."""
    (found,) = (stream for stream in compilation.streams if stream.name == name)
    (given,) = (stream for stream in case.streams if stream.name == name)
    rows = accepted(found, given.arrivals)
    for place, field in enumerate(rows.schema):
        if pa.types.is_time(field.type):
            rows = rows.set_column(place, field.name, rows.column(place).cast(pa.time64("us")))
    return rows


def compare(case: Case, number: int, compilation: Compilation, folder: Path) -> int:
    query, compiled = case.queries[number], compilation.program.queries[number]
    schema = result_schema(compiled)
    want = oracle.expected(query, schema)
    found: Counter[tuple[object, ...]] = Counter()
    for rows in committed(folder / "out" / query.name):
        found += oracle.multiset(rows, schema)
    missing, extra = want - found, found - want
    assert found == want, (
        f"seed {case.seed}, query {query.name}: {missing.total()} missing, {extra.total()} too"
        f" many\n{case.text}\n{list(missing)[:3]}\n{list(extra)[:3]}"
    )
    return found.total()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--first", type=int, default=42_000)
    parser.add_argument("--device", choices=DEVICES, default="verilated")
    options = parser.parse_args()
    spark = session(**SHORT)
    total = 0
    for seed in range(options.first, options.first + options.cases):
        results = run_case(spark, seed, options.device)
        total += max(results, 0)
        fits = f"{results} results" if results >= 0 else "does not fit"
        print(f"seed {seed}: {fits}", flush=True)
    spark.stop()
    print(f"{options.cases} cases, {total} results, all of them DuckDB's")
    return 0


if __name__ == "__main__":
    sys.exit(main())
