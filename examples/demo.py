"""The whole way, watched: queries are compiled, a simulated FPGA is built and put on a socket, Spark
feeds it and takes the results back, and an SQL engine that nobody here wrote checks each of them.

    nox -s demo
    python examples/demo.py --backend golden --examples network      # without the RTL

Exits with 0 if every query gave exactly the rows DuckDB computes from the same tuples.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from seustream.commands.feed import need_spark
from seustream.compiler.pipeline import Compilation, compile_text
from seustream.errors import UserError
from seustream.spark_feeder import Job, files, run, session
from seustream.spark_feeder.inputs import InputSource, read
from seustream.spark_feeder.job import SHORT
from seustream.spark_feeder.progress import FeedCounts

HERE = Path(__file__).resolve().parent
TUPLES = {"eight": 300, "network": 3000}
BATCHES = 4
FIRST = 1_000_000_000
"""The time the first file was written, as far as Spark knows; it reads them by age."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description="The whole way, from Spark through the FPGA and back."
    )
    parser.add_argument("--backend", choices=("verilated", "iss", "golden"), default="verilated")
    parser.add_argument("--examples", nargs="+", choices=TUPLES, default=list(TUPLES))
    parser.add_argument("--tuples", type=int, help="of each stream (default: some hundreds)")
    parser.add_argument("--seed", type=int, default=2006)
    options = parser.parse_args()
    try:
        need_spark()
    except UserError as error:
        print(f"demo: {error}; {error.hint}", file=sys.stderr)
        return 2
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="seustream-demo-") as folder:
        bridge = Bridge(options.backend)
        try:
            bridge.wait()
            say("starting Spark")
            spark = session(**SHORT)
            for name in options.examples:
                wrong += example(name, spark, bridge, Path(folder) / name, options)
            spark.stop()
        finally:
            bridge.stop()
    print("\n".join(wrong) if wrong else "\nEvery result is DuckDB's, and none is missing.")
    return 1 if wrong else 0


class Bridge:
    """`seustream serve` in a process of its own; the RTL is built when first served."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        if backend == "verilated":
            say("building the simulated FPGA (a minute or two, once)")
        command = [sys.executable, "-m", "seustream", "serve", "--backend", backend]
        self.process = subprocess.Popen(
            [*command, "--listen", "grpc://127.0.0.1:0"], stdout=subprocess.PIPE, text=True
        )
        self.url = ""

    def wait(self) -> None:
        """Until it serves."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if " on grpc" not in line:
            raise SystemExit(self.process.wait() or 1)
        self.url = line.split(" on ")[1].strip()
        say(line.strip())

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)


def example(
    name: str, spark: object, bridge: Bridge, folder: Path, options: argparse.Namespace
) -> list[str]:
    """One example from its text to its verified results; what is wrong, in lines."""
    text = (HERE / name / f"{name}.xsql").read_text(encoding="utf-8")
    compilation = compile_text(text, f"{name}.xsql")
    streams = module(HERE / name / "generate.py").streams(
        options.tuples or TUPLES[name], options.seed
    )
    instructions = sum(map(len, compilation.programs))
    print(
        f"\n── {name}: {len(compilation.program.queries)} queries over {len(streams)} streams,"
        f" {instructions} instructions, {len(compilation.image):,} bytes"
    )
    write(streams, folder / "in")
    sources = {
        stream.name: read(spark, InputSource.parse(f"parquet:{folder}/in/{stream.name}"), stream, 1)  # type: ignore[arg-type]
        for stream in compilation.streams
    }
    began = time.perf_counter()
    job = run(compilation, sources, files(folder / "out"), bridge=bridge.url)
    counts = watch(job)
    seconds = time.perf_counter() - began
    wrong = verify(name, compilation, streams, folder / "out")
    report(counts, seconds, bridge.backend)
    job.connection.client().forget()
    return wrong


def watch(job: Job) -> FeedCounts:
    """The counts as they grow."""
    last = ""

    def show(counts: FeedCounts, seconds: float) -> None:
        nonlocal last
        line = counts.line(seconds)
        if line.partition("s  ")[2] != last:
            print(line, flush=True)
            last = line.partition("s  ")[2]

    return job.wait(show)


def report(counts: FeedCounts, seconds: float, backend: str) -> None:
    rows = sum(counts.rows.values())
    print(
        f"{rows:,} tuples in {counts.epochs} epochs, {sum(counts.results.values()):,} results in"
        f" {seconds:.1f} s: {rows / seconds:,.0f} tuples/s from Spark to Spark"
    )
    if "cycles" in counts.device:
        taken = max(counts.device["taken"], 1)
        each = counts.device["cycles"] / taken
        print(
            f"{counts.device['cycles']:,} cycles of the processor, {each:,.0f} a tuple:"
            f" {1e6 / each:,.0f} tuples/s for each MHz of its clock ({backend})"
        )


# --- tuples and their judge -----------------------------------------------------


def write(streams: dict[str, pa.Table], folder: Path) -> None:
    """Each stream as a folder of files, as if they had been written one after the other."""
    for name, rows in streams.items():
        (folder / name).mkdir(parents=True)
        for part in range(BATCHES):
            start = rows.num_rows * part // BATCHES
            path = folder / name / f"{part}.parquet"
            pq.write_table(rows.slice(start, rows.num_rows * (part + 1) // BATCHES - start), path)
            os.utime(path, (FIRST + part, FIRST + part))


def verify(
    name: str, compilation: Compilation, streams: dict[str, pa.Table], folder: Path
) -> list[str]:
    """Every query's rows against DuckDB's, as bags."""
    judge = module(HERE / "judge.py")
    judged = judge.JUDGED[name]
    wrong = []
    print("query      results  verified")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for stream, rows in streams.items():
            connection.register(f"{stream}_rows", rows)
            ts = "ts" if pa.types.is_integer(rows.schema.field("ts").type) else "epoch_ms(ts)"
            connection.execute(
                f"CREATE TABLE {stream} AS SELECT * REPLACE ({ts} AS ts) FROM {stream}_rows"
            )
        for query in compilation.program.queries:
            want = f"wanted_{query.name}"
            connection.execute(f"CREATE TABLE {want} AS {judged[query.name]}")
            got = judge.in_milliseconds(connection, f"'{folder / query.name}/*.parquet'", want)
            (count,) = connection.sql(f"SELECT count(*) FROM {want}").fetchall()[0]
            lines = []
            for what, one, other in (("missing", want, got), ("too many", got, want)):
                differ = connection.sql(f"FROM {one} EXCEPT ALL FROM {other}").fetchall()
                lines += [f"{name} {query.name}, {what}: {row}" for row in differ[:3]]
            print(f"{query.name:<8} {count:>9,}  {'✗' if lines else '✓'}")
            wrong += lines
    return wrong


def module(path: Path) -> ModuleType:
    """An example's own script."""
    spec = importlib.util.spec_from_file_location(f"example_{path.parent.name}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def say(what: str) -> None:
    print(what, flush=True)


if __name__ == "__main__":
    sys.exit(main())
