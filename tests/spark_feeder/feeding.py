"""Streams in files, in the order in which they were written, and results read from files."""

from __future__ import annotations

import bisect
import itertools
import json
import os
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from seustream.compiler.pipeline import Compilation
from seustream.spark_feeder.inputs import InputSource, read
from tests.cosim.bridge.serving import Rows, multiset

FIRST = 1_000_000_000
"""The time at which the first file was written; Spark reads files by age."""


def write(folder: Path, rows: dict[str, pa.Table], parts: int, whole_times: bool = False) -> None:
    """Writes each stream as a folder of Parquet files. With `whole_times` rows of one time are in
    one file: Spark has no order between the files of a batch."""
    for name, table in rows.items():
        (folder / name).mkdir(parents=True)
        cuts = [table.num_rows * part // parts for part in range(parts + 1)]
        if whole_times:
            ts = table["ts"].to_pylist()
            cuts[1:-1] = [bisect.bisect_left(ts, ts[cut]) for cut in cuts[1:-1]]
        for part, (start, end) in enumerate(itertools.pairwise(cuts)):
            path = folder / name / f"{part}.parquet"
            pq.write_table(table.slice(start, end - start), path)
            os.utime(path, (FIRST + part, FIRST + part))


def frames(
    spark: SparkSession, compilation: Compilation, folder: Path, files: int | None = 1
) -> dict[str, DataFrame]:
    """Returns the streams of a folder as frames, with this many files a batch."""
    return {
        stream.name: read(
            spark, InputSource.parse(f"parquet:{folder / stream.name}"), stream, files
        )
        for stream in compilation.streams
        if stream.defined_by is None
    }


def found(folder: Path, queries: list[str]) -> dict[str, Rows]:
    """Returns every query's results."""
    results: dict[str, Rows] = {}
    for query in queries:
        results[query] = Counter()
        for rows in committed(folder / query):
            results[query] += multiset(rows)
    return results


def committed(folder: Path) -> list[pa.Table]:
    """Returns what Spark has committed to files: its log names those that count; failed attempts
    left the others."""
    names = set()
    for log in (folder / "_spark_metadata").glob("*"):
        if log.name.isdigit() or log.name.endswith(".compact"):
            for line in log.read_text().splitlines()[1:]:
                names.add(Path(json.loads(line)["path"]).name)
    return [pq.read_table(path) for path in folder.glob("*.parquet") if path.name in names]
