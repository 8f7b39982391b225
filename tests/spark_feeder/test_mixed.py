"""Query sets that mix the three languages, fed by Spark; `tests.system.mixed` runs them in other
ways."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.system.mixed import check_spark


def test_spark_gives_the_results_of_one_run(spark: SparkSession, tmp_path: Path) -> None:
    assert check_spark([5, 9, 12, 13, 14], tmp_path, spark)["results"] > 50
