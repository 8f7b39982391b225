"""The number of tuples that circulate in the device under each plan, on the eight-query example."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from seustream.commands.bench import Measurement, folder
from seustream.compiler.pipeline import Options, compile_text
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun

TITLE = "plans: joined tuples that circulate for the eight queries"

TUPLES = 1_500  # per stream
COLUMNS = {"R": "abc", "S": "de", "T": "fg"}


def measure() -> Measurement:
    text = (Path(folder()).parent / "examples" / "eight" / "eight.xsql").read_text()
    chance = np.random.default_rng(2006)
    streams = {}
    for name, columns in COLUMNS.items():
        ts = np.sort(chance.integers(0, TUPLES * 10, TUPLES))
        values = {c: pa.array(chance.integers(0, 100, TUPLES).astype(np.int32)) for c in columns}
        streams[name] = pa.table({"ts": pa.array(ts), **values})
    rows: list[tuple[object, ...]] = []
    circulated, compared = {}, {}
    for plan in ("thesis", "cost"):
        compilation = compile_text(text, options=Options(plan=plan))
        driver = GraphRun(compilation, GoldenDevice(compilation.options.config))
        for name, stream in streams.items():
            driver.push(name, stream)
        results = sum(found.num_rows for _, found in driver.finish())
        status = driver.devices[0].status()
        circulated[plan], compared[plan] = status.circulated, status.pairs
        tags = len(compilation.routes.tags)
        rows.append((plan, tags, status.circulated, status.pairs, results))
    return Measurement(
        ("plan", "route tags", "circulated", "pairs compared", "results"),
        rows,
        {
            "circulated, cost over thesis": circulated["cost"] / circulated["thesis"],
            "pairs compared, cost over thesis": compared["cost"] / compared["thesis"],
        },
        f"{3 * TUPLES:,} tuples, values 0-99, about ten ticks between tuples of a stream; seed 2006",
    )
