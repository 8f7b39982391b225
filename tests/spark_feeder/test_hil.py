"""A short slice of hardware in the loop; `nox -s hil` runs more."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.spark_feeder.hil import run_case


@pytest.mark.parametrize("seed", [42_004])
def test_spark_and_the_rtl_agree_with_duckdb(spark: SparkSession, seed: int) -> None:
    print(f"seed {seed}")
    assert run_case(spark, seed) > 0
