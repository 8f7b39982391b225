"""Shared by all tests: Spark that starts in half the time."""

from __future__ import annotations

import os

from tests.spark_feeder.archive import OPTIONS

# Here, not in a fixture: code that tests type as a reader would starts its own Spark.
os.environ.setdefault("SPARK_SUBMIT_OPTS", OPTIONS)
