"""Streams out of a real Kafka broker: `python -m tests.spark_feeder.kafka_check`, or `nox -s kafka`.

Maven fetches the broker and Spark's connector from Maven Central. Two topics of several partitions are
filled in two halves; a job reads the first, is stopped, and goes on from its checkpoint with the second.
The files must hold what the same rows give without Kafka, Spark and bridge. Needs Java 17 and Maven.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.protocol import Run
from seustream.spark_feeder.inputs import InputSource, read
from seustream.spark_feeder.job import SHORT, Job, files, run, session
from tests.cosim.bridge.serving import bridge, compiled, streams, wanted
from tests.docs.blocks import ROOT
from tests.spark_feeder.feeding import found

HERE = Path(__file__).parent / "kafka"
ROWS = 600
PARTITIONS = 3
SLACK = 4 * ROWS
"""Each partition is read at its own pace, so a row may come as late as a whole half."""
_BROKER = f"""
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{{controller}}
listeners=PLAINTEXT://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller}}
advertised.listeners=PLAINTEXT://127.0.0.1:{{port}}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={{folder}}
num.partitions={PARTITIONS}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


def jars(what: str, into: Path) -> Path:
    """Fetches `broker` or `connector` with its dependencies."""
    fetch = ["mvn", "-q", "-B", "-f", str(HERE / f"{what}.xml")]
    fetch += ["dependency:copy-dependencies", "-DincludeScope=runtime"]
    folder = into / what
    subprocess.run([*fetch, f"-DoutputDirectory={folder}"], check=True)
    return folder


def _free() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def broker(classes: Path, folder: Path) -> Iterator[str]:
    """Starts a single node; yields its address."""
    port = _free()
    config = folder / "server.properties"
    config.write_text(_BROKER.format(port=port, controller=_free(), folder=folder / "log"))
    java = ["java", "-XX:+UseSerialGC", "-Xmx512m", "-cp", f"{classes}/*"]
    made = ["kafka.tools.StorageTool", "format", "-t", _identity(), "-c", str(config)]
    subprocess.run([*java, *made], check=True, stdout=subprocess.DEVNULL)
    with subprocess.Popen([*java, "kafka.Kafka", str(config)]) as process:
        try:
            until = time.monotonic() + 120
            while not _answers(port):
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError("the broker does not start")
                time.sleep(0.2)
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(60)


def _identity() -> str:
    """Returns the id of a cluster as Kafka spells it: 22 letters of base 64."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def _answers(port: int) -> bool:
    with socket.socket() as one:
        one.settimeout(1)
        return one.connect_ex(("127.0.0.1", port)) == 0


def fill(spark: SparkSession, server: str, rows: dict[str, pa.Table]) -> None:
    """Writes each stream's rows as JSON into a topic of its name, over all partitions."""
    for name, table in rows.items():
        frame = spark.createDataFrame(table.to_pylist(), schema=_SCHEMAS[name])
        message = f.to_json(f.struct(*frame.columns)).alias("value")
        kafka = frame.repartition(PARTITIONS).select(message).write.format("kafka")
        kafka.option("kafka.bootstrap.servers", server).option("topic", f"topic-{name}").save()


_SCHEMAS = {"R": "ts long, a int, b int", "S": "ts long, d int, name string"}


def frames(spark: SparkSession, server: str) -> dict[str, DataFrame]:
    return {
        stream.name: read(spark, InputSource.parse(f"kafka:{server}/topic-{stream.name}"), stream)
        for stream in compiled().streams
    }


def read_all(job: Job, client: BridgeClient, rows: int) -> None:
    """Waits until this many rows are in; most of them wait for others that may still be older."""
    until = time.monotonic() + 300
    while True:
        status = client.status()
        counts = [sum(status[n].values()) for n in ("rows_total", "late_total", "rows_held")]
        if sum(counts) >= rows:
            return
        if time.monotonic() > until:
            raise RuntimeError(f"{status} after 300 seconds")
        job.look()
        time.sleep(0.2)


def check(scratch: Path, seed: int) -> int:
    """Returns the number of results; raises `AssertionError` if they are wrong."""
    rows, compilation = streams(ROWS, seed), compiled()
    half = {name: table.num_rows // 2 for name, table in rows.items()}
    connector = sorted(
        str(path) for path in jars("connector", scratch).glob("*.jar") if _wanted(path)
    )
    (scratch / "broker-state").mkdir()
    with (
        broker(jars("broker", scratch), scratch / "broker-state") as server,
        bridge(scratch / "journal") as (_, url),
        BridgeClient(url) as client,
    ):
        spark = session(**{**SHORT, "spark.jars": ",".join(connector)})
        fill(spark, server, {name: table.slice(0, half[name]) for name, table in rows.items()})
        for part in range(2):
            job = run(
                compilation,
                frames(spark, server),
                files(scratch / "out"),
                bridge=url,
                checkpoint=scratch / "state",
                bounded=False,
                how=Run(slack=SLACK),
            )
            if part == 0:
                read_all(job, client, sum(half.values()))
                job.stop()
                fill(spark, server, {name: table.slice(half[name]) for name, table in rows.items()})
            else:
                read_all(job, client, 2 * ROWS)
                counts = job.finish()
        spark.stop()
        assert not any(counts.late.values()), f"late rows {counts.late}"
        assert client.status()["rows_total"] == {"R": ROWS, "S": ROWS}
    got, want = found(scratch / "out", ["pairs", "large"]), wanted(compilation, rows)
    assert got == want, {name: (want[name] - got[name], got[name] - want[name]) for name in want}
    return sum(one.total() for one in want.values())


def _wanted(jar: Path) -> bool:
    """Returns whether Spark lacks the jar."""
    return jar.name.startswith(("spark-", "kafka-clients", "commons-pool2"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=2006)
    options = parser.parse_args()
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            print(
                f"{program} is not there; Kafka needs Java 17, and Maven to fetch it",
                file=sys.stderr,
            )
            return 2
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
    )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        results = check(Path(scratch), options.seed)
    print(
        f"seed {options.seed}: {2 * ROWS} rows from Kafka in two jobs, {results} results as without"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
