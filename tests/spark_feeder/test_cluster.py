"""The same job on a Spark standalone cluster with two workers on this machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
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
spark = session(master)
sources = frames(spark, compiled(), Path(folder) / "in")
run(compiled(), sources, files(Path(folder) / "out"), bridge=tuple(urls)).wait(timeout=900)
print("executors", spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1)
spark.stop()
"""


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A master and two workers; gives the master's address."""
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
    with contextlib.ExitStack() as stack:
        for command in commands:
            process = stack.enter_context(
                subprocess.Popen(
                    [str(script), *command],
                    env=environment,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
            stack.callback(process.terminate)
            time.sleep(0.5)
        yield url


@pytest.mark.parametrize("bridges", [1, 2])
def test_a_cluster_of_two_workers(bridges: int, tmp_path: Path) -> None:
    rows, compilation = streams(600, 4), compiled()
    write(tmp_path / "in", rows, 3)
    with contextlib.ExitStack() as stack:
        urls = [
            stack.enter_context(bridge(tmp_path / f"journal{number}"))[1]
            for number in range(bridges)
        ]
        master = stack.enter_context(cluster(tmp_path))
        done = subprocess.run(
            [sys.executable, "-c", JOB, str(tmp_path), master, *urls],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=900,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "executors 2" in done.stdout
    assert found(tmp_path / "out", NAMES) == wanted(compilation, rows)
