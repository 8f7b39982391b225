"""Spark brings tuples to a device and takes results back.

    from seustream.spark_feeder import files, run, session

    spark = session()
    job = run("q.xsql", {"R": r, "S": s}, files("out"), bridge="grpc://127.0.0.1:8815")
    job.wait()

source     the data source `seustream`, sink and source, for jobs of one's own
connection the bridges, and the access to them
inputs     streams from files, Kafka and the rate source, with the columns the bridge requires
job        whole jobs: a query set, its streams, the destination of results; restarts, the end
progress   the progress of a job, for the console and Spark's listeners
queries    query sets: their texts, the configuration of a bridge, the keys they go by
split      rows over several bridges by key
prefilter  the synopsis filter: tuples that can join nothing stay where they were read
sites_feed   streams into a join across sites, in blocks
types      columns in Arrow as the bridge and Spark name them
workers    what Spark's Python workers keep out of garbage collection
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seustream.spark_feeder.job import Job, console, files, nowhere, run, session

__all__ = ["Job", "console", "files", "nowhere", "run", "session"]


def __getattr__(name: str) -> Any:
    """Imports lazily: Spark's workers import `seustream.spark_feeder.source` each time anew, and
    need no job."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from seustream.spark_feeder import job

    return getattr(job, name)
