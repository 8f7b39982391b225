"""The whole way, step by step: compiles queries, builds a simulated FPGA and serves it on a socket,
lets Spark feed it and take the results back, and has an independent SQL engine check each result.
Then a million rows go the same way through the engine, and through Spark's own stream-stream join.

    nox -s demo
    python examples/demo.py --backend golden --examples network --rows 20000      # without the RTL

Exits with 0 if every query gave exactly the rows that DuckDB computes from the same tuples.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import itertools
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from seustream.commands.bench import clocks
from seustream.commands.common import table
from seustream.commands.feed import need_spark
from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.service import Service
from seustream.devices import device as made_device
from seustream.errors import UserError
from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.device import Device
from seustream.spark_feeder import files, run, session
from seustream.spark_feeder.inputs import InputSource, read

HERE = Path(__file__).resolve().parent
TUPLES = {"eight": 300, "network": 3000}
ROWS = 1_000_000
BATCHES = 4
FIRST = 1_000_000_000
"""The modification time of the first file. Spark reads files by age."""
CONFIG = CONFIGURATIONS["default3"]
"""The processor of the demo: three streams; it is placed and routed for two boards."""
STEPS = {"Verilog": 0.0, "C++": 0.25, "compiling": 0.4}
"""The steps of a build, and the share of its time that passes before each."""
NEXT = """
What to try next:
  seustream sql                                  # ask by hand: streams, queries, EXPLAIN
  seustream explain examples/network/network.xsql --devices 1  # what runs where, and why
  python examples/generate.py network --tuples 3000 -o data  # rows of your own size
  the tutorial, docs/tutorial.md; a board, docs/how-to/put-it-on-a-board.md"""


def next_steps() -> str:
    """Returns what to try next. The environment of nox, which has the commands, ends with the demo."""
    activate = Path(sys.prefix) / "bin" / "activate"
    if "NOX_CURRENT_SESSION" not in os.environ or not activate.is_file():
        return NEXT
    at = os.path.relpath(activate) if activate.is_relative_to(Path.cwd()) else activate
    first, rest = NEXT.split(":\n", 1)
    return f"{first}:\n  . {at}   # first: the commands are there\n{rest}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description="The whole way, from Spark through the FPGA and back."
    )
    parser.add_argument("--backend", choices=("verilated", "iss", "golden"), default="verilated")
    parser.add_argument("--examples", nargs="+", choices=TUPLES, default=list(TUPLES))
    parser.add_argument("--tuples", type=int, help="of each stream (default: some hundreds)")
    parser.add_argument("--rows", type=int, default=ROWS, help="through the engine; 0: none")
    parser.add_argument("--seed", type=int, default=2006)
    options = parser.parse_args()
    try:
        need_spark()
    except UserError as error:
        print(f"demo: {error}; {error.hint}", file=sys.stderr)
        return 2
    wrong: list[str] = []
    runs: list[Run] = []
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="seustream-demo-")))
        say("Building the processor as a simulated FPGA, once, while Spark starts")
        building = Building(options.backend)
        spark = quiet_session(folder / "spark.log")
        stack.callback(spark.stop)
        device = building.wait()
        stack.callback(getattr(device, "close", lambda: None))
        for name in options.examples:
            case = Case.made(name, options.tuples or TUPLES[name], options.seed, folder / name)
            runs.append(case.through(spark, options.backend, device))
            wrong += case.verified()
        if options.rows and "network" in options.examples:
            own_join(spark, case.folder / "in", case.folder / "spark")  # a warm-up, as for ours
            flows = options.rows * 10 // 15
            case = Case.made("network", flows, options.seed, folder / "many", devices=0)
            runs.append(case.through(spark, "engine", None))
            wrong += case.verified()
            alone = case.only("named", folder / "alone")
            runs.append(alone.through(spark, "engine", None))
            seconds = own_join(spark, case.folder / "in", case.folder / "spark")
            wrong += same(alone.folder / "out" / "named", case.folder / "spark")
            runs.append(Run("named", "Spark's join", alone.count, runs[-1].results, seconds))
    report(runs)
    print("\n".join(wrong) if wrong else "\nEvery result is DuckDB's, and none is missing.")
    print(next_steps())
    return 1 if wrong else 0


# --- the simulated FPGA, and Spark ------------------------------------------------


class Building:
    """Makes the device in a thread of its own, and shows a progress bar on a terminal."""

    def __init__(self, backend: str) -> None:
        self._made: Device | None = None
        self._failure: BaseException | None = None
        self._backend = backend
        self._thread = threading.Thread(target=self._make, name="build")
        self._thread.start()

    def wait(self) -> Device:
        self._thread.join()
        if self._failure is not None:
            raise SystemExit(f"demo: {self._failure}")
        assert self._made is not None
        return self._made

    def _make(self) -> None:
        columns = (TextColumn("  {task.description}"), BarColumn(), TimeElapsedColumn())
        console = Console(stderr=True)
        with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
            task = bar.add_task("Verilog", total=1.0)

            def note(what: str) -> None:
                step, share = progress(what)
                bar.update(task, description=step, completed=share)

            try:
                self._made = simulated(self._backend, note)
                bar.update(task, description="built", completed=1.0)
            except Exception as error:
                self._failure = error


def progress(note: str) -> tuple[str, float]:
    """Returns the step that a note of the build names, and how much of the whole build is done by
    then."""
    found = re.search(r": (Verilog|C\+\+|compiling)(?: (\d+) of (\d+))?$", note)
    if found is None:
        return note, 0.0
    step, done, of = found.groups()
    share = STEPS[step]
    return step, share + (1 - share) * int(done) / int(of) if of else share


def simulated(backend: str, note: Callable[[str], None]) -> Device:
    if backend == "verilated":
        from seustream.cosim.verilated.device import VerilatedDevice

        return VerilatedDevice(CONFIG, note=note)
    with made_device(backend, CONFIG) as device:
        return device


def quiet_session(log: Path) -> Any:
    """Returns a Spark session whose JVM writes to a log file instead of the terminal."""
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("w") as file:
        os.dup2(file.fileno(), 2)
        try:
            return session(**{"spark.driver.memory": "2g"})
        finally:
            os.dup2(kept, 2)
            os.close(kept)


class Watched:
    """A device that measures the wall-clock time it spends at work."""

    def __init__(self, device: Device) -> None:
        self._device, self.seconds = device, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def push(self, batch: Any) -> Any:
        with self._timed():
            return self._device.push(batch)

    def flush(self) -> Any:
        with self._timed():
            return self._device.flush()

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - began


# --- one example --------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """One run of the rows: its seconds in all, those of the bridge, and those of the device within
    the bridge."""

    name: str
    by: str
    rows: int
    results: int
    seconds: float
    bridge: float | None = None
    device: float | None = None
    cycles: int | None = None


@dataclass(frozen=True)
class Case:
    """A query set, with its streams as files."""

    name: str
    compilation: Compilation
    streams: dict[str, pa.Table]
    folder: Path

    @classmethod
    def made(cls, name: str, tuples: int, seed: int, folder: Path, devices: int = 1) -> Case:
        text = (HERE / name / f"{name}.xsql").read_text(encoding="utf-8")
        c = compile_text(text, f"{name}.xsql", Options(CONFIG, devices=devices))
        streams = module(HERE / name / "generate.py").streams(tuples, seed)
        write(streams, folder / "in")
        return cls(name, c, streams, folder)

    def only(self, query: str, folder: Path) -> Case:
        """Returns the same rows under one query of the set, which reads some of the streams."""
        text = (HERE / self.name / f"{self.name}.xsql").read_text(encoding="utf-8")
        before, _, rest = text.partition(f"REGISTER QUERY {query} ")
        creates = "".join(re.findall(r"CREATE STREAM .*?;", before, re.DOTALL))
        mine = f"{creates}REGISTER QUERY {query} {rest.partition(';')[0]};"
        c = compile_text(mine, query, Options(CONFIG, devices=0))
        read = {s for s in self.streams if re.search(rf"\b{s}\b", rest.partition(";")[0])}
        folder.mkdir()
        (folder / "in").symlink_to(self.folder / "in")
        return Case(query, c, {s: t for s, t in self.streams.items() if s in read}, folder)

    @property
    def count(self) -> int:
        return sum(table.num_rows for table in self.streams.values())

    def through(self, spark: Any, by: str, device: Device | None) -> Run:
        """Runs the rows from Spark through the bridge and back into files."""
        c = self.compilation
        says = f"{len(c.program.queries)} queries over {len(self.streams)} streams"
        say(f"\n── {self.name}, by the {by}: {says}, {self.count:,} rows")
        watched = None if device is None else Watched(device)
        devices: Any = () if watched is None else (watched,)
        bridge = Bridge(devices, self.folder / "journal", by, config=CONFIG)
        service = Service(bridge, "grpc://127.0.0.1:0")
        url = f"grpc://127.0.0.1:{service.port}"
        cycles = getattr(device, "cycles", 0)
        try:
            sources = {
                name: read(
                    spark,
                    InputSource.parse(f"parquet:{self.folder}/in/{name}"),
                    {x.name: x for x in c.streams}[name],
                    1,
                )
                for name in self.streams
            }
            began = time.perf_counter()
            job = run(c, sources, files(self.folder / "out"), bridge=url)
            counts = job.wait()
            seconds = time.perf_counter() - began
            busy = job.connection.client().status()["busy_seconds_total"]
        finally:
            service.shutdown()
            bridge.close()
        return Run(
            self.name, by, sum(counts.rows.values()), sum(counts.results.values()), seconds, busy,
            None if watched is None else watched.seconds,
            getattr(device, "cycles", 0) - cycles or None,
        )  # fmt: skip

    def verified(self) -> list[str]:
        return verify(self.name, self.compilation, self.streams, self.folder / "out")


def own_join(spark: Any, inputs: Path, out: Path) -> float:
    """Runs the query `named` as Spark's own stream-stream join, into files; returns the seconds it
    took."""
    from pyspark.sql.functions import expr

    began = time.perf_counter()
    frames = {}
    for name in ("dns", "flow"):
        schema = spark.read.parquet(str(inputs / name)).schema
        one = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        rows = one.parquet(str(inputs / name))
        timed = rows.withColumn(f"{name}_ts", rows.ts.cast("timestamp"))
        frames[name] = timed.drop("ts").withWatermark(f"{name}_ts", "0 seconds")
    met = expr(
        "client = src AND answer = dst AND dns_ts BETWEEN flow_ts - INTERVAL 30 SECONDS AND flow_ts"
    )
    columns = ("src", "name", "dst", "port", "bytes / packets AS bytes_a_packet",
               "dns_ts AS ts_oldest", "flow_ts AS ts_newest")  # fmt: skip
    joined = frames["dns"].join(frames["flow"], met, "inner").selectExpr(*columns)
    writer = joined.writeStream.format("parquet").option("checkpointLocation", f"{out}-state")
    writer.trigger(availableNow=True).start(str(out)).awaitTermination()
    return time.perf_counter() - began


def same(ours: Path, theirs: Path) -> list[str]:
    """Returns rows that only one of two folders has."""
    columns = "src, name, dst, port, round(bytes_a_packet, 6), epoch_us(ts_oldest) // 1000, epoch_us(ts_newest) // 1000"
    one, other = (f"SELECT {columns} FROM '{path}/*.parquet'" for path in (ours, theirs))
    with duckdb.connect() as connection:
        differ = connection.sql(
            f"({one} EXCEPT ALL {other}) UNION ALL ({other} EXCEPT ALL {one}) LIMIT 3"
        ).fetchall()
    return [f"named, not in both: {row}" for row in differ]


# --- figures --------------------------------------------------------------------------


def report(runs: list[Run]) -> None:
    """Prints the runs side by side, where the time went, and what a board would reach."""
    print("\nFrom Spark to Spark\n")
    print(
        table(
            [
                (r.name, r.by, r.rows, r.results, f"{r.seconds:.1f} s", round(r.rows / r.seconds))
                for r in runs
            ],
            ("queries", "joined by", "rows", "results", "time", "rows/s"),
        )
    )
    print("\nWhere the time went\n")
    parts = []
    for r in runs:
        if r.bridge is not None:
            device = r.device or 0.0
            share = (r.seconds - r.bridge, r.bridge - device, device)
            parts.append((r.name, r.by, *(f"{s:.1f} s" for s in share[: 3 if r.device else 2])))
    print(
        table(
            [(*p, "–")[:5] for p in parts],
            ("queries", "joined by", "Spark, socket", "bridge", "device"),
        )
    )
    for r in runs:
        if r.cycles is not None:
            each = r.cycles / max(r.rows, 1)
            rates = (
                f"{1e6 * mhz / each:,.0f} at the {mhz:g} MHz of {b}"
                for b, mhz in clocks(CONFIG.name)
            )
            print(
                f"\n{r.name}: {r.cycles:,} cycles of the processor, {each:,.0f} a row."
                f" Rows a second: {', '.join(rates)}."
            )
    for one, other in itertools.pairwise(runs):
        if (one.name, one.rows) != (other.name, other.rows):
            continue
        print(
            f"\n{one.name} over {one.rows:,} rows: {other.by} took {other.seconds / one.seconds:.1f}"
            f" times as long as the {one.by} behind the bridge."
        )


# --- tuples and their judge -----------------------------------------------------


def write(streams: dict[str, pa.Table], folder: Path) -> None:
    """Writes each stream as a folder of files, dated as if written one after the other."""
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
    """Compares every query's rows with DuckDB's, as bags."""
    judge = module(HERE / "judge.py")
    judged = judge.JUDGED[name]
    wrong = []
    print("query      results  verified")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for stream, rows in streams.items():
            connection.register(f"{stream}_rows", rows)
            ts = (
                "ts"
                if pa.types.is_integer(rows.schema.field("ts").type)
                else "epoch_us(ts) // 1000"
            )
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
    """Imports an example's own script."""
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
