"""Query sets that mix the three languages, fed by Spark; `tests.system.mixed` has the other ways to run them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.system.mixed import check


@pytest.mark.parametrize("seed", [5, 9, 12])
def test_spark_gives_the_results_of_one_run(spark: SparkSession, seed: int, tmp_path: Path) -> None:
    print(f"seed {seed}")
    of = check(seed, tmp_path, spark)
    assert of.counts["results"] > 5
