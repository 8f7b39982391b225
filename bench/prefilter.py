"""The synopsis filter before a device: the tuples it drops, the bytes it saves, and its cost per
tuple."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from seustream.commands.bench import Measurement
from seustream.compiler.pipeline import compile_text
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun
from seustream.engine.sites.needs import needs
from seustream.engine.sites.prefilter import SynopsisFilter

TITLE = "prefilter: tuples and bytes kept at their source, and what that costs a tuple"

TUPLES, BATCH = 20_000, 2_000
QUERY = (
    "CREATE STREAM R (a int, b int); CREATE STREAM S (d int, e int);"
    "SELECT * FROM R, S WHERE R.a = S.d WINDOW RANGE 1 second;"
)
KEYS = (100, 1_000, 10_000, 100_000)


def measure() -> Measurement:
    c = compile_text(QUERY)
    rows: list[tuple[object, ...]] = []
    ratios = {}
    for keys in KEYS:
        streams = _streams(keys)
        begun = time.process_time()
        synopses = SynopsisFilter(needs(c.program), list(streams))
        passed: dict[str, list[pa.Table]] = {name: [] for name in streams}
        for first in range(0, TUPLES, BATCH):
            for name, stream in streams.items():
                synopses.push(name, stream.slice(first, BATCH))
            for name, kept in synopses.release():
                passed[name].append(kept)
        for name in streams:
            synopses.end(name)
        for name, kept in synopses.release():
            passed[name].append(kept)
        spent = time.process_time() - begun
        whole, results = _run({name: [stream] for name, stream in streams.items()})
        after, same = _run(passed)
        assert results == same
        saved = list(synopses.saved.values())
        rows.append(
            (
                f"{keys:,}",
                f"{sum(s.dropped for s in saved) / sum(s.tuples for s in saved):.1%}",
                f"{sum(s.saved_bytes for s in saved) / sum(s.bytes for s in saved):.1%}",
                results,
                f"{spent / (2 * TUPLES) * 1e6:.2f}",
                f"{whole / (2 * TUPLES) * 1e6:.2f}",
                f"{after / (2 * TUPLES) * 1e6:.2f}",
            )
        )
        ratios[f"filter and device over device alone, {keys:,} keys"] = (spent + after) / whole
    return Measurement(
        (
            "keys",
            "tuples dropped",
            "bytes saved",
            "results, same without",
            "µs a tuple, filter",
            "device alone",
            "device behind it",
        ),
        rows,
        ratios,
        f"2 streams of {TUPLES:,} tuples, a tuple of each every ten ticks, window of 100 tuples; "
        f"batches of {BATCH:,}; bytes less those of the synopses; device: the golden model with host "
        "driver; the number of keys is the seed",
    )


def _streams(keys: int) -> dict[str, pa.Table]:
    chance = np.random.default_rng(keys)
    ts = np.arange(TUPLES) * 10
    return {
        name: pa.table(
            {
                "ts": pa.array(ts + place),
                **{
                    column: pa.array(chance.integers(0, keys, TUPLES).astype(np.int32))
                    for column in columns
                },
            }
        )
        for place, (name, columns) in enumerate({"R": "ab", "S": "de"}.items())
    }


def _run(given: dict[str, list[pa.Table]]) -> tuple[float, int]:
    """Returns the seconds and the number of results."""
    c = compile_text(QUERY)
    begun = time.process_time()
    driver = GraphRun(c, GoldenDevice(c.options.config))
    for name, parts in given.items():
        for part in parts:
            driver.push(name, part)
    results = sum(rows.num_rows for _, rows in driver.finish())
    return time.process_time() - begun, results
