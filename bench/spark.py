"""The same join from Spark to Spark: through the bridge, and as Spark's own stream-stream join.

Both read the same Parquet files and drop their results, in one Spark session that each has used once
before. The bridge's device is the golden model, so this is what the software path costs. What the
processor would need is another figure: with the part `rtl` the same tuples, fewer of them, go through
the RTL in simulation, and its clock cycles are counted. At the clock of a board (`seustream
bench boards`) they are a time; how long the simulation took says nothing about it.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from seustream.commands.bench import FigureTable, Measurement, folder
from seustream.compiler.pipeline import Compilation, compile_text
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.service import Service
from seustream.cosim.golden import GoldenDevice
from seustream.hdl.device import Device

TITLE = "spark: a windowed join through the bridge and as Spark's own stream-stream join"
LONG = True
PARTS = ("small", "million", "rtl")

ROWS = {"small": 100_000, "million": 1_000_000}
RTL_ROWS = 20_000
WARM = 20_000
FILES = 10
KEYS = 1_000
WINDOW = 10_000  # milliseconds; a stream has a row every few
QUERIES = f"""
CREATE STREAM R (a int, b int);
CREATE STREAM S (d int, e int);
REGISTER QUERY pairs AS SELECT R.b, S.e FROM R, S WHERE R.a = S.d WINDOW RANGE {WINDOW};
"""


def measure(parts: Sequence[str] = ("million", "rtl")) -> Measurement:
    # Here, so that all other measurements go without Spark.
    from seustream.spark_feeder.job import session

    rows: list[tuple[object, ...]] = []
    ratios: dict[str, float] = {}
    more: list[FigureTable] = []
    compilation = compile_text(QUERIES, "bench")
    spark = session()
    _both(spark, compilation, WARM)
    for part in parts:
        if part == "rtl":
            more.append(_rtl(spark, compilation))
            continue
        count = ROWS[part]
        ours, theirs, results = _both(spark, compilation, count)
        rows.append((f"{count:,} rows, bridge", ours, count / ours, results))
        rows.append((f"{count:,} rows, Spark", theirs, count / theirs, results))
        ratios[f"bridge over Spark's own join, {count:,} rows"] = theirs / ours
    spark.stop()
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    return Measurement(
        ("what", "seconds", "rows/s", "results"),
        rows,
        ratios,
        f"local[2], {KEYS:,} keys, windows of {WINDOW // 1000} s, {FILES} files, seed 2006; golden model;"
        f" load {load}",
        tuple(more),
    )


def _both(spark: Any, compilation: Compilation, count: int) -> tuple[float, float, int]:
    """Seconds through the bridge, seconds of Spark's own, and how many results each gave."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        _write(place, count)
        device = GoldenDevice(compilation.options.config)
        ours, results = _through_bridge(spark, compilation, place, device)
        theirs = _sparks_own(spark, compilation, place)
    return ours, theirs, results


def _rtl(spark: Any, compilation: Compilation) -> FigureTable:
    """Cycles of the processor for the same streams, and what they are at placed clocks."""
    from seustream.cosim.verilated.device import VerilatedDevice

    device = VerilatedDevice(compilation.options.config)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        _write(place, RTL_ROWS)
        begun = device.cycles
        _through_bridge(spark, compilation, place, device)
        each = (device.cycles - begun) / RTL_ROWS
    rows: list[tuple[object, ...]] = [
        ("cycles a tuple", each),
        ("tuples/s for each MHz", 1e6 / each),
    ]
    rows += [(f"tuples/s at the {mhz:g} MHz of {one}", 1e6 * mhz / each) for one, mhz in _clocks()]
    return FigureTable(f"The RTL in simulation, {RTL_ROWS:,} rows", ("what", "figure"), rows)


def _clocks() -> list[tuple[str, float]]:
    """Of the boards that were built with the lanes and bits of the configuration here."""
    path = folder() / "results" / "boards.json"
    if not path.exists():
        return []
    built = json.loads(path.read_text(encoding="utf-8"))
    board, name, clock = (built["head"].index(c) for c in ("board", "configuration", "MHz asked"))
    return [(row[board], float(row[clock])) for row in built["rows"] if row[name] == "default3"]


def _write(folder: Path, count: int) -> None:
    """R and S in files, each as long as the other, a row every 20 milliseconds."""
    chance = np.random.default_rng(2006)
    for stream, columns in (("R", "ab"), ("S", "de")):
        (folder / stream).mkdir()
        for number in range(FILES):
            each = count // 2 // FILES
            ts = 20 * np.arange(number * each, (number + 1) * each)
            values = {c: chance.integers(0, KEYS, each).astype(np.int32) for c in columns}
            at = pa.array(ts).cast(pa.timestamp("ms", "UTC"))
            path = folder / stream / f"{number}.parquet"
            pq.write_table(pa.table({"ts": at, **values}), path)
            os.utime(path, (1e9 + number, 1e9 + number))


def _frames(spark: Any, compilation: Compilation, folder: Path) -> dict[str, Any]:
    from seustream.spark_feeder.inputs import InputSource, read

    return {
        stream.name: read(spark, InputSource.parse(f"parquet:{folder / stream.name}"), stream)
        for stream in compilation.streams
    }


def _through_bridge(
    spark: Any, compilation: Compilation, folder: Path, device: Device
) -> tuple[float, int]:
    from seustream.spark_feeder.job import nowhere, run

    bridge = Bridge(device, folder / "journal")
    service = Service(bridge, "grpc://127.0.0.1:0")
    began = time.perf_counter()
    url = f"grpc://127.0.0.1:{service.port}"
    counts = run(compilation, _frames(spark, compilation, folder), nowhere(), bridge=url).wait()
    seconds = time.perf_counter() - began
    service.shutdown()
    bridge.close()
    return seconds, counts.results["pairs"]


def _sparks_own(spark: Any, compilation: Compilation, folder: Path) -> float:
    """The same windows as a condition on event times, with watermarks that let state go."""
    began = time.perf_counter()
    frames = _frames(spark, compilation, folder)
    r = frames["R"].withColumnRenamed("ts", "tr").withWatermark("tr", "0 seconds")
    s = frames["S"].withColumnRenamed("ts", "t").withWatermark("t", "0 seconds")
    window = f"INTERVAL {WINDOW // 1000} SECONDS"
    joined = r.join(s, _condition(window), "inner").select("b", "e")
    query = joined.writeStream.format("noop").option("checkpointLocation", str(folder / "state"))
    query.trigger(availableNow=True).start().awaitTermination()
    return time.perf_counter() - began


def _condition(window: str) -> Any:
    from pyspark.sql.functions import expr

    return expr(f"a = d AND t BETWEEN tr - {window} AND tr + {window}")
