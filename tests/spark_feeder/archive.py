"""Starts Spark once and stores the classes it loaded, so that later starts take half as long.

    python -m tests.spark_feeder.archive

The suite starts Spark some forty times for jobs of seconds. Most of such a job is a JVM that loads,
verifies and compiles classes. Compiling little and mapping the classes from an archive takes a
third of the processor time. Spark also starts without the archive. Java ignores the archive of
another Java or Spark, and would warn in the output of a program.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ARCHIVE = Path(sys.prefix) / "spark.jsa"
_LITTLE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
OPTIONS = f"{_LITTLE} -XX:SharedArchiveFile={ARCHIVE} -Xlog:disable"
"""The value of SPARK_SUBMIT_OPTS."""

_JOB = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.createDataFrame([(1, "a", 0.5), (2, "b", 1.5)], "k int, t string, f double")
rows.write.parquet(sys.argv[1] + "/in")
rows.write.csv(sys.argv[1] + "/csv")
arriving = spark.readStream.schema(rows.schema).parquet(sys.argv[1] + "/in")
passed = arriving.mapInArrow(lambda batches: batches, rows.schema)
started = passed.writeStream.foreachBatch(lambda frame, epoch: frame.collect())
started.option("checkpointLocation", sys.argv[1] + "/at").trigger(availableNow=True).start().awaitTermination()
rows.join(spark.read.csv(sys.argv[1] + "/csv").withColumnRenamed("_c1", "t"), "t").groupBy("k").count().collect()
"""


def main() -> None:
    """Makes the archive, unless it exists or Java is missing."""
    if ARCHIVE.exists() or shutil.which("java") is None:
        return
    submit = Path(sys.executable).parent / "spark-submit"
    with tempfile.TemporaryDirectory(dir=ARCHIVE.parent) as place:
        script, made = Path(place) / "job.py", Path(place) / ARCHIVE.name
        script.write_text(_JOB)
        subprocess.run(
            [submit, script, place],
            env={
                **os.environ,
                "SPARK_SUBMIT_OPTS": f"{_LITTLE} -XX:ArchiveClassesAtExit={made}",
                "PYSPARK_PYTHON": sys.executable,
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        made.rename(ARCHIVE)


if __name__ == "__main__":
    main()
