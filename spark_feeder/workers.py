"""Keeps what Python workers of Spark have from one task to the next out of garbage collection."""

from __future__ import annotations

import gc
import os
import sys

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
