"""Runs a job on a Spark standalone cluster with two workers on this machine, one of which is killed: at a
bridge, at two bridges that share the keys, and inside Spark."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from tests.cosim.bridge.serving import bridge, compiled, streams, wanted
from tests.docs.blocks import ROOT
from tests.spark_feeder.feeding import found, write

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java 17"),
]
NAMES = ["pairs", "large"]
JOB = """
import sys
from pathlib import Path
from seustream.spark_feeder.job import files, run, session
from tests.cosim.bridge.serving import compiled
from tests.spark_feeder.feeding import frames

folder, master, *urls = sys.argv[1:]
place = Path(folder)
spark = session(master)
sources = frames(spark, compiled(), place / "in")
run(compiled(), sources, files(place / "out"), bridge=tuple(urls), checkpoint=place / "state").wait(timeout=900)
print("executors", spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1)
spark.stop()
"""


@dataclass
class Cluster:
    """A master and two workers, each the leader of its own process group."""

    url: str
    processes: list[subprocess.Popen[bytes]]

    def kill_a_worker(self) -> None:
        """Kills a worker with its executors, at once."""
        os.killpg(self.processes[-1].pid, signal.SIGKILL)


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    script = Path(pyspark.__file__).parent / "bin" / "spark-class"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    where = ["--host", "127.0.0.1", "--webui-port", "0"]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    commands = [[f"{deploy}.master.Master", *where, "--port", str(port)]]
    small = ["--cores", "1", "--memory", "1g"]
    for number in range(2):
        work = ["--work-dir", str(folder / f"work{number}"), *small]
        commands.append([f"{deploy}.worker.Worker", *where, *work, url])
    made = Cluster(url, [])
    with contextlib.ExitStack() as stack:
        for command in commands:
            process = stack.enter_context(
                subprocess.Popen(
                    [str(script), *command],
                    env=environment,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            )
            stack.callback(process.terminate)
            made.processes.append(process)
            time.sleep(0.5)
        yield made


@pytest.mark.parametrize("bridges", [1, 2, 0])
def test_a_worker_is_killed_on_the_way(bridges: int, tmp_path: Path) -> None:
    """It is killed after the first micro-batch, with the tasks that feed the bridges; without a bridge,
    its shard goes on where its state is read."""
    rows, compilation = streams(800, 4), compiled()
    write(tmp_path / "in", rows, 8)
    log = tmp_path / "out" / NAMES[0] / "_spark_metadata"
    with contextlib.ExitStack() as stack:
        served = [
            stack.enter_context(bridge(tmp_path / f"journal{number}")) for number in range(bridges)
        ]
        master = stack.enter_context(cluster(tmp_path))
        job = subprocess.Popen(
            [
                *(sys.executable, "-c", JOB, str(tmp_path), master.url),
                *([url for _, url in served] or ["spark"]),
            ],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            until = time.monotonic() + 900
            while job.poll() is None and not (log / "0").exists() and time.monotonic() < until:
                time.sleep(0.1)
            done = len(list(log.glob("[0-9]")))
            if job.poll() is not None:
                raise AssertionError(f"the job ended by itself: {job.communicate()[1][-3000:]}")
            assert 0 < done < 8, f"{done} micro-batches of 8 are done: no time to kill a worker"
            master.kill_a_worker()
            out, errors = job.communicate(timeout=900)
        finally:
            job.kill()
        shares = [made.counts.rows for made, _ in served]
    assert job.returncode == 0, errors[-3000:]
    assert "executors 1" in out
    assert all(shares), "a bridge got no rows"
    assert found(tmp_path / "out", NAMES) == wanted(compilation, rows)
