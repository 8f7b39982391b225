"""The remarks beside the measured figures, and the processor time in them. Starts no Spark."""

from __future__ import annotations

import subprocess
import sys

from bench import spark

ROWS: list[tuple[object, ...]] = [
    (10, 1, spark.READS, 1.0, 2.0, 10.0, 0),
    (10, 1, "bridge", 2.0, 4.0, 5.0, 7),
    (10, 1, "inside Spark", 4.0, 8.0, 2.5, 7),
    (10, 1, "Spark, memory", 20.0, 30.0, 0.5, 7),
    (10, 1, "Spark, RocksDB", 10.0, 40.0, 1.0, 7),
    (10, 1, "Spark's batch join", 1.0, 1.0, 10.0, 7),
]


def test_ratios_are_to_the_best_streaming_join_by_each_kind_of_time() -> None:
    assert list(spark._ratios(ROWS).values()) == [5.0, 2.5, 2.0, 7.5, 3.75, 2.0]
    assert list(spark._ratios(ROWS[:3]).values()) == [2.0, 2.0]


def test_processor_time_has_that_of_processes_below() -> None:
    before = spark.processor_time()
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", busy], check=True)
    assert spark.processor_time() - before > 0.25
