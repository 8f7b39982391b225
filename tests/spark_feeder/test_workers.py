"""Workers of Spark: what they keep out of garbage collection, and what they import."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from seustream.cosim.bridge.protocol import PLAIN
from seustream.spark_feeder.bridged import bridged
from seustream.spark_feeder.connection import Connection
from seustream.spark_feeder.source import NAME
from seustream.spark_feeder.workers import SET_BY_SPARK
from tests.cosim.bridge.serving import bridge, compiled, streams
from tests.installed import installed
from tests.spark_feeder.feeding import frames, write

SETTLES = """
import gc, os, sys, types
from seustream.spark_feeder.workers import settle
os.environ |= {}
settle()
counts = [gc.get_freeze_count()]
kept = [[number] for number in range(1000)]
settle()
counts.append(gc.get_freeze_count())
sys.modules["another"] = types.ModuleType("another")
settle()
print(*counts, gc.get_freeze_count())
"""


def counts(environment: dict[str, str], folder: Path) -> list[int]:
    """Returns the objects out of collection: after a call, after another when there are 1,000 more,
    and after one when there is a module more, too."""
    done = installed(SETTLES.format(environment), folder)
    assert not done.returncode, done.stderr
    return [int(word) for word in done.stdout.split()]


def test_a_worker_settles_when_it_has_new_modules(tmp_path: Path) -> None:
    first, second, third = counts({"SPARK_REUSE_WORKER": "1"}, tmp_path)
    assert first == second > 0
    assert third > first + 900


def test_other_processes_are_left_alone(tmp_path: Path) -> None:
    assert len(set(counts({}, tmp_path))) == 1


def test_a_worker_that_moves_rows_imports_no_compiler(tmp_path: Path) -> None:
    """Each worker imports the data source anew, and many tasks take less time than the compiler's
    import."""
    text = "import sys, seustream.spark_feeder.source; print(*sys.modules)"
    done = installed(text, tmp_path)
    assert not done.returncode, done.stderr
    found = set(done.stdout.split())
    assert "seustream.cosim.bridge.client" in found
    heavy = ("seustream.compiler.pipeline", "seustream.engine.assembly", "lark", "amaranth")
    assert not found & set(heavy)


def environment(spark: SparkSession) -> set[str]:
    manager = spark._jsparkSession.sessionState().dataSourceManager()
    return set(manager.lookupDataSource(NAME).dataSourceCls().envVars())


def test_queries_that_start_together_add_nothing_to_the_environment_that_they_share(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The JVM has no lock on it: variables that two queries add at once can make the source useless."""
    other = spark.newSession()
    write(tmp_path / "in", streams(10, 1), 1)
    sources = frames(other, compiled(), tmp_path / "in")
    with bridge(tmp_path / "journal") as (_, url):
        at = bridged(compiled(), sources, Connection((url,)))
        at.load(PLAIN, fresh=True)
        before = environment(other)
        places = {"checkpointLocation": str(tmp_path / "state")}
        query = at.results("pairs").writeStream.format("noop").options(**places).start()
        query.processAllAvailable()
        query.stop()
    assert environment(other) == before >= set(SET_BY_SPARK)
