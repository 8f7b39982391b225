"""The same join from Spark to Spark: through a bridge, inside Spark, and as Spark's own joins.
Reading the same rows and dropping them sets the lower limit for everything that Spark feeds.

All ways read the same Parquet files and drop their results. Each has a process and a Spark session
of its own, which it has used for 100,000 rows before; the files of a stream are one micro-batch, or
twenty. The bridge runs the engine, as it does by default without a device. Spark's own stream-stream join keeps its state in memory or in
RocksDB; its batch join reads the same files without a stream. Processor time is that of this
process and all its descendants: Spark's JVM, its Python workers, the bridge.

The time of the stream processor is another figure: with the part `rtl`, fewer of the same tuples go
through the RTL in simulation, and its clock cycles are counted. At the clock of a board (`seustream
bench boards`) they give a time; the duration of the simulation does not.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import ctypes
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from seustream.commands.bench import FigureTable, Measurement, clocks
from seustream.compiler.pipeline import Compilation, compile_text
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.service import Service
from seustream.hdl.device import Device

TITLE = "spark: a windowed join through a bridge, inside Spark, and as Spark's own joins"
LONG = True
PARTS = ("small", "million", "ours", "rtl")
SHORT = {"PARTS": ("small", "rtl")}

ROWS = {"small": 100_000, "million": 1_000_000, "ours": 1_000_000}
RTL_ROWS = 20_000
WARM = 100_000
FILES = 20
KEYS = 1_000
WINDOW = 10_000  # milliseconds; a stream has a row every few
BEGIN = 1_000_000_000_000
"""The time of the first row. Spark's watermarks begin at 1970-01-01 00:00, so rows of that time
would be late."""
QUERIES = f"""
CREATE STREAM R (a int, b int);
CREATE STREAM S (d int, e int);
REGISTER QUERY pairs AS SELECT R.b, S.e FROM R, S WHERE R.a = S.d WINDOW RANGE {WINDOW};
"""
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
STORE = "spark.sql.streaming.stateStore.providerClass"
_STATE = "org.apache.spark.sql.execution.streaming.state."
READS, BATCH = "read alone", "Spark's batch join"
HEAD = ("rows", "micro-batches", "what", "seconds", "processor s", "rows/s", "results")


def measure(parts: Sequence[str] = ("million", "rtl")) -> Measurement:
    """Measures some parts. `ours` is `million` without Spark's own joins, which take minutes
    each."""
    rows: list[tuple[object, ...]] = []
    for part in parts:
        if part != "rtl":
            rows += _all(ROWS[part], own=part != "ours")
    more = [_alone(_rtl)] if "rtl" in parts else []
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    return Measurement(
        HEAD,
        rows,
        _ratios(rows),
        f"local[2], {KEYS:,} keys, windows of {WINDOW // 1000} s, {FILES} files, seed 2006; load {load}",
        tuple(more),
    )


def _alone(work: Callable[..., Any], *given: object) -> Any:
    """Calls a function in a process of its own, and so with a Spark session of its own."""
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, spawn) as pool:
        return pool.submit(work, *given).result()


def _ratios(rows: list[tuple[object, ...]]) -> dict[str, float]:
    """Returns the time of Spark's best streaming join over ours, and of the bridge over reading
    alone; by processor time too."""
    ratios: dict[str, float] = {}
    for count, batches in dict.fromkeys((row[0], row[1]) for row in rows):
        of = f"{count:,} rows, {batches} micro-batches"
        mine = {str(row[2]): row for row in rows if row[:2] == (count, batches)}
        own = [what for what in mine if what.startswith("Spark, ")]
        for name, column in (("wall", 3), ("processor", 4)):
            time = {what: float(str(row[column])) for what, row in mine.items()}
            for what in ("bridge", "inside Spark") if own else ():
                best = min(time[what] for what in own)
                ratios[f"{what} over Spark's best, {of}, {name} time"] = best / time[what]
            ratios[f"bridge over {READS}, {of}, {name} time"] = time["bridge"] / time[READS]
    return ratios


def _all(count: int, own: bool) -> list[tuple[object, ...]]:
    """Returns a row for each way and number of micro-batches, for so many tuples."""
    ways = [what for what in WAYS if own or not what.startswith("Spark")]
    rows = [row for what in ways for row in _alone(_way, what, count)]
    if len({row[-1] for row in rows if row[2] != READS}) > 1:
        raise AssertionError(f"the ways differ in results: {rows}")
    return sorted(rows, key=lambda row: int(row[1]))


def _way(what: str, count: int) -> list[tuple[object, ...]]:
    """Returns the rows of one way. It has used its session for fewer tuples before."""
    # Imported here, so that the other measurements do not need Spark.
    from seustream.spark_feeder.job import session

    spark, compilation, rows = session(), compile_text(QUERIES, "bench"), []
    each = (1,) if what == BATCH else (1, FILES)
    for tuples, batches in [(WARM, batches) for batches in each] + [(count, n) for n in each]:
        with tempfile.TemporaryDirectory() as name:
            place = Path(name)
            _write(place, tuples)
            used, began = processor_time(), time.perf_counter()
            results = WAYS[what](spark, compilation, place, batches)
            seconds = time.perf_counter() - began
            figures = (seconds, processor_time() - used, tuples / seconds)
            rows.append((tuples, batches, what, *figures, results))
    spark.stop()
    return rows[len(each) :]


def processor_time() -> float:
    """Returns the seconds of this process and all its descendants, including those that have ended.
    An orphan becomes a child of this process, which then waits for it."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    tree: dict[int, list[int]] = {}
    spent: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        tree.setdefault(int(fields[1]), []).append(int(path.parent.name))
        spent[int(path.parent.name)] = sum(map(int, fields[11:15]))
    total, waiting = 0, [os.getpid()]
    while waiting:
        one = waiting.pop()
        total += spent.get(one, 0)
        waiting += tree.get(one, ())
    return total / os.sysconf("SC_CLK_TCK")


def _rtl() -> FigureTable:
    """Counts the processor's cycles for the same streams; converts them to rates at routed
    clocks."""
    from seustream.cosim.verilated.device import VerilatedDevice
    from seustream.spark_feeder.job import session

    spark, compilation = session(), compile_text(QUERIES, "bench")
    device = VerilatedDevice(compilation.options.config)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        _write(place, RTL_ROWS)
        begun = device.cycles
        _through_bridge(spark, compilation, place, 1, device)
        spark.stop()
    each = (device.cycles - begun) / RTL_ROWS
    rows: list[tuple[object, ...]] = [
        ("cycles a tuple", each),
        ("tuples/s for each MHz", 1e6 / each),
    ]
    rows += [
        (f"tuples/s at the {mhz:g} MHz of {one}", 1e6 * mhz / each)
        for one, mhz in clocks("default3")
    ]
    return FigureTable(f"The RTL in simulation, {RTL_ROWS:,} rows", ("what", "figure"), rows)


def _write(folder: Path, count: int) -> None:
    """Writes R and S to files, both equally long, with a row every 20 milliseconds."""
    chance = np.random.default_rng(2006)
    for stream, columns in (("R", "ab"), ("S", "de")):
        (folder / stream).mkdir()
        for number in range(FILES):
            each = count // 2 // FILES
            ts = 20 * np.arange(number * each, (number + 1) * each)
            values = {c: chance.integers(0, KEYS, each).astype(np.int32) for c in columns}
            at = pa.array(BEGIN + ts).cast(pa.timestamp("ms", "UTC"))
            path = folder / stream / f"{number}.parquet"
            pq.write_table(pa.table({"ts": at, **values}), path)
            os.utime(path, (1e9 + number, 1e9 + number))


def _frames(spark: Any, compilation: Compilation, folder: Path, batches: int) -> dict[str, Any]:
    from seustream.spark_feeder.inputs import InputSource, read

    files = None if batches == 1 else FILES // batches
    return {
        stream.name: read(
            spark, InputSource.parse(f"parquet:{folder / stream.name}"), stream, files
        )
        for stream in compilation.streams
    }


def _only_read(spark: Any, compilation: Compilation, folder: Path, batches: int) -> int:
    """Reads and drops both streams at once."""
    frames = _frames(spark, compilation, folder, batches)
    running = [
        rows.writeStream.format("noop")
        .option("checkpointLocation", str(folder / f"read-{name}-{batches}"))
        .trigger(availableNow=True)
        .start()
        for name, rows in frames.items()
    ]
    for query in running:
        query.awaitTermination()
    return 0


def _through_bridge(
    spark: Any, compilation: Compilation, folder: Path, batches: int, device: Device | None = None
) -> int:
    from seustream.spark_feeder.job import nowhere, run

    bridge = Bridge(device, folder / "journal", *(["engine"] if device is None else []))
    service = Service(bridge, "grpc://127.0.0.1:0")
    url = f"grpc://127.0.0.1:{service.port}"
    frames = _frames(spark, compilation, folder, batches)
    counts = run(compilation, frames, nowhere(), bridge=url).wait()
    service.shutdown()
    bridge.close()
    return counts.results["pairs"]


def _inside(spark: Any, compilation: Compilation, folder: Path, batches: int) -> int:
    from seustream.spark_feeder.job import nowhere, run

    frames = _frames(spark, compilation, folder, batches)
    return run(compilation, frames, nowhere(), bridge="spark").wait().results["pairs"]


def _in_memory(spark: Any, compilation: Compilation, folder: Path, batches: int) -> int:
    return _sparks_own(spark, compilation, folder, batches, "HDFSBackedStateStoreProvider")


def _in_rocksdb(spark: Any, compilation: Compilation, folder: Path, batches: int) -> int:
    return _sparks_own(spark, compilation, folder, batches, "RocksDBStateStoreProvider")


def _sparks_own(
    spark: Any, compilation: Compilation, folder: Path, batches: int, store: str
) -> int:
    """Joins with the same windows as a condition on event times, and watermarks that let state
    expire."""
    from pyspark.sql import functions as f

    spark.conf.set(STORE, _STATE + store)
    joined = _joined(_frames(spark, compilation, folder, batches), "0 seconds")
    counted = joined.observe("bench", f.count(f.lit(1)).alias("results"))
    query = counted.writeStream.format("noop")
    query = query.option("checkpointLocation", str(folder / f"state-{store}-{batches}"))
    running = query.trigger(availableNow=True).start()
    found: dict[int, int] = {}
    while running.isActive:
        _take(running, found)
        time.sleep(0.1)
    running.awaitTermination()
    _take(running, found)
    return sum(found.values())


def _take(running: Any, found: dict[int, int]) -> None:
    for progress in running.recentProgress:
        if "bench" in progress["observedMetrics"]:
            found[progress["batchId"]] = progress["observedMetrics"]["bench"]["results"]


def _batch_join(spark: Any, compilation: Compilation, folder: Path, batches: int) -> int:
    """Joins all rows at once, without a stream. Spark has no join for the window, so equal keys are
    compared in buckets of a window's length, which is its fastest way."""
    frames = {
        stream.name: spark.read.parquet(str(folder / stream.name)) for stream in compilation.streams
    }
    return int(_joined(frames, None).count())


def _joined(frames: dict[str, Any], delay: str | None) -> Any:
    from pyspark.sql import functions as f

    r, s = frames["R"].withColumnRenamed("ts", "tr"), frames["S"].withColumnRenamed("ts", "t")
    window = f"INTERVAL {WINDOW // 1000} SECONDS"
    inside = f"a = d AND t BETWEEN tr - {window} AND tr + {window}"
    if delay is not None:
        r, s = r.withWatermark("tr", delay), s.withWatermark("t", delay)
        return r.join(s, f.expr(inside), "inner").select("b", "e")
    bucket = f"CAST(floor(unix_millis({{}}) / {WINDOW}) AS BIGINT)"
    r = r.withColumn("own", f.expr(bucket.format("tr")))
    r = r.withColumn("near", f.explode(f.expr("array(own - 1, own, own + 1)")))
    s = s.withColumn("near", f.expr(bucket.format("t")))
    near = r["near"] == s["near"]
    return r.join(s, on=[near, f.expr(inside)], how="inner").select("b", "e")


WAYS: dict[str, Callable[[Any, Compilation, Path, int], int]] = {
    READS: _only_read,
    "bridge": _through_bridge,
    "inside Spark": _inside,
    "Spark, memory": _in_memory,
    "Spark, RocksDB": _in_rocksdb,
    BATCH: _batch_join,
}
"""What runs the same join; returns the number of results."""
