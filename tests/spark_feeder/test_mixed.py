"""Query sets that mix the three languages, fed by Spark; `tests.system.mixed` has the other ways to run them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from seustream.spark_feeder.job import files, run
from tests.cosim.bridge.serving import bridge
from tests.spark_feeder.feeding import found, frames, write
from tests.system.mixed import at_once, case


@pytest.mark.parametrize("seed", [5, 9, 12])
def test_spark_gives_the_results_of_one_run(spark: SparkSession, seed: int, tmp_path: Path) -> None:
    print(f"seed {seed}")
    of = case(seed)
    compilation, names = of.compilation, list(of.compilation.program.names)
    write(tmp_path / "in", of.rows, 2)
    with bridge(tmp_path / "journal") as (_, url):
        job = run(
            compilation,
            frames(spark, compilation, tmp_path / "in"),
            files(tmp_path / "out"),
            bridge=url,
        )
        job.wait(timeout=240)
    want = at_once(of)
    assert sum(rows.total() for rows in want.values()) > 5
    assert found(tmp_path / "out", names) == want
