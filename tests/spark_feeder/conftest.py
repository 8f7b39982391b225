"""One Spark for all tests of a worker, because a JVM takes seconds and memory."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from seustream.spark_feeder.job import SHORT, session
from tests.docs.blocks import ROOT


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17")
    # Spark's Python workers import our rooms, wherever the tests were started from.
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    os.environ["PYTHONPATH"] = path
    made = session(**{**SHORT, "spark.driver.memory": "1g"})
    yield made
    made.stop()
