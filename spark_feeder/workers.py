"""Python workers of Spark: what they keep out of garbage collection, and their environment."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SET_BY_SPARK = (
    "SPARK_LOCAL_DIRS",
    "SPARK_AUTH_SOCKET_TIMEOUT",
    "SPARK_BUFFER_SIZE",
    "SPARK_PYTHON_RUNTIME",
)
"""The variables that Spark sets in the environment of a data source whenever a query of it starts."""
_modules = 0
"""The number of modules there were when the worker last settled."""


def settle() -> None:
    """Exempts what a worker has by now, which is mostly imported modules, from garbage collection.
    Every task calls it. Spark collects all of a worker's garbage after each task, and to look
    through what is imported takes longer than a task with few rows."""
    global _modules
    if "SPARK_REUSE_WORKER" not in os.environ:  # Spark sets it for its workers alone
        return
    if len(sys.modules) != _modules:
        gc.collect()
        gc.freeze()
        _modules = len(sys.modules)


def prepare(spark: SparkSession, source: str) -> None:
    """Adds the variables that Spark sets to the environment of a registered data source, before its
    queries start.

    These share the environment, a map of the JVM without a lock. Two that start together and both
    add a variable can leave the map with a wrong size, and then no task of the source can be read
    (`java.io.OptionalDataException`), however often it is tried. A variable that is there only
    gets its value again."""
    manager = spark._jsparkSession.sessionState().dataSourceManager()
    environment = manager.lookupDataSource(source).dataSourceCls().envVars()
    for name in SET_BY_SPARK:
        environment.putIfAbsent(name, "")
