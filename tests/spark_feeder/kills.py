"""kill -9 of the bridge, of Spark's driver and of its Python workers at random moments of a job; the
files must hold what an undisturbed run gives. `python -m tests.spark_feeder.kills --cases N`.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.cosim.bridge.serving import Process, compiled, streams, wanted
from tests.docs.blocks import ROOT
from tests.spark_feeder.feeding import found, write

ROWS, FILES = 2000, 8
KINDS = ("bridge", "driver", "worker")
NAMES = ["pairs", "large"]


def job(folder: Path, url: str) -> None:
    """The job, in whatever process: from its checkpoint on, to the end."""
    from spark_feeder.job import files, run, session
    from tests.spark_feeder.feeding import frames

    spark = session()
    compilation = compiled()
    sources = frames(spark, compilation, folder / "in")
    running = run(
        compilation, sources, files(folder / "out"), bridge=url, checkpoint=folder / "state"
    )
    running.wait(timeout=900)
    spark.stop()


class Driver:
    """Spark's driver with its JVM, in a process group that dies at once."""

    def __init__(self, folder: Path, url: str) -> None:
        self.command = [sys.executable, "-m", "tests.spark_feeder.kills", "--job", str(folder), url]
        self.start()

    def start(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            self.command, env=environment, cwd=ROOT, start_new_session=True
        )

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def workers(self) -> list[int]:
        """Python processes of Spark's in the group; the JVM names pyspark too, in its paths."""
        pids = []
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
                if b"\0-m\0pyspark." in words and os.getpgid(int(entry.name)) == self.process.pid:
                    pids.append(int(entry.name))
            except (OSError, ProcessLookupError):
                continue
        return pids


def case(seed: int, folder: Path, kind: str) -> int:
    """One job with a few kills; gives how many."""
    chance = random.Random(seed)
    rows = streams(ROWS, seed)
    write(folder / "in", rows, FILES)
    bridge = Process(folder / "journal")
    driver = Driver(folder, bridge.url)
    kills = 0
    try:
        for _ in range(chance.randint(1, 3)):
            until = time.monotonic() + chance.uniform(4, 25)
            while time.monotonic() < until and driver.process.poll() is None:
                time.sleep(0.05)
            if driver.process.poll() is not None:
                break
            if kind == "bridge":
                bridge.kill()
                bridge.start()
            elif kind == "driver":
                driver.kill()
                driver.start()
            elif workers := driver.workers():
                os.kill(chance.choice(workers), signal.SIGKILL)
            kills += 1
        assert driver.process.wait(900) == 0, f"seed {seed}, {kind}: the job failed"
    finally:
        if driver.process.poll() is None:
            driver.kill()
        bridge.terminate()
    got, want = found(folder / "out", NAMES), wanted(compiled(), rows)
    for query in NAMES:
        missing, extra = want[query] - got[query], got[query] - want[query]
        assert not missing, f"seed {seed}, {kind}: {query} lacks {missing.total()} results"
        assert not extra, f"seed {seed}, {kind}: {query} has {extra.total()} results too many"
    return kills


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", nargs=2, metavar=("FOLDER", "URL"), help=argparse.SUPPRESS)
    parser.add_argument("--cases", type=int, default=50)
    parser.add_argument("--first", type=int, default=2000)
    options = parser.parse_args()
    if options.job:
        job(Path(options.job[0]), options.job[1])
        return
    kills: Counter[str] = Counter()
    for seed in range(options.first, options.first + options.cases):
        kind = KINDS[seed % len(KINDS)]
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            kills[kind] += case(seed, Path(folder), kind)
        print(f"seed {seed}: {kind}, results as without; kills so far {dict(kills)}", flush=True)


if __name__ == "__main__":
    main()
