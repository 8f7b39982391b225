"""kill -9 of the bridge, of Spark's driver and of its Python workers at random moments of a job; the
files must hold what an undisturbed run gives. `python -m tests.spark_feeder.kills --kills N`.

A job takes many kills: it goes on from one to the next, which costs less than to begin anew and
leaves more to go wrong.
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

from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import BridgeError
from tests import campaigns
from tests.cosim.bridge.serving import EVERYTHING, Process, compiled, streams, wanted
from tests.docs.blocks import ROOT
from tests.spark_feeder.feeding import found, write

ROWS, FILES = 9000, 120
KINDS = ("bridge", "driver", "worker")
MIX = ("bridge", "worker", "driver", "worker", "bridge")
"""Few drivers, because a driver takes a JVM with it, which takes longest to come back."""
EACH = 13
"""The number of kills of one job."""
_PATIENCE = 60.0
"""Seconds to wait for progress between two kills."""
KEPT = ("pairs", "matched", "top", "names")
"""Queries whose results are delivered: a join, its groups, the groups of a derived stream, a
pattern. The others run too, but reading one takes Spark more time than all of them take the
device."""


def job(folder: Path, url: str) -> None:
    """Runs the job, in whichever process, from its checkpoint to the end."""
    from seustream.cosim.bridge.protocol import Run
    from seustream.spark_feeder.job import SHORT, files, run, session
    from tests.spark_feeder.feeding import frames

    spark = session(**SHORT)
    compilation = compiled(EVERYTHING)
    sources = frames(spark, compilation, folder / "in")
    running = run(
        compilation,
        sources,
        files(folder / "out"),
        bridge=url,
        checkpoint=folder / "state",
        how=Run(keep=KEPT),
    )
    running.wait(timeout=1500)
    spark.stop()


class Driver:
    """Spark's driver with its JVM, in a process group that is killed at once."""

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
        """Returns the Python processes of Spark in the group; the JVM's command line names pyspark
        too, in its paths."""
        pids = []
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
                if b"\0-m\0pyspark." in words and os.getpgid(int(entry.name)) == self.process.pid:
                    pids.append(int(entry.name))
            except (OSError, ProcessLookupError):
                continue
        return pids


def case(seed: int, folder: Path, kinds: list[str], batches: int = FILES) -> Counter[str]:
    """Runs one job over this many batches with these kills, in this order, as many as time permits;
    returns how many of each there were."""
    chance = random.Random(seed)
    rows = streams(ROWS * batches // FILES, seed)
    write(folder / "in", rows, batches)
    bridge = Process(folder / "journal")
    driver = Driver(folder, bridge.url)
    kills: Counter[str] = Counter()
    try:
        for kind in kinds:
            # Sometimes kill while it is still starting after the last kill.
            if chance.random() < 0.8:
                _progress(bridge.url, driver)
            time.sleep(chance.uniform(0, 3))
            if driver.process.poll() is not None:
                break
            if kind == "bridge":
                bridge.kill()
                bridge.start()
            elif kind == "driver":
                driver.kill()
                driver.start()
            else:
                while not (workers := driver.workers()) and driver.process.poll() is None:
                    time.sleep(0.05)  # it is starting after the last kill
                if not workers:
                    break
                os.kill(chance.choice(workers), signal.SIGKILL)
            kills[kind] += 1
        assert driver.process.wait(1500) == 0, f"seed {seed}, {kinds}: the job failed"
    finally:
        if driver.process.poll() is None:
            driver.kill()
        bridge.terminate()
    got, want = found(folder / "out", list(KEPT)), wanted(compiled(EVERYTHING), rows)
    for query in KEPT:
        missing, extra = want[query] - got[query], got[query] - want[query]
        assert want[query], query
        assert not missing, f"seed {seed}, {kinds}: {query} lacks {missing.total()} results"
        assert not extra, f"seed {seed}, {kinds}: {query} has {extra.total()} results too many"
    return kills


def _progress(url: str, driver: Driver) -> None:
    """Waits until one more epoch is in than now."""
    until, before = time.monotonic() + _PATIENCE, _epochs(url)
    while time.monotonic() < until and driver.process.poll() is None:
        now = _epochs(url)
        if before is not None and now is not None and now > before:
            return
        before = now if before is None else before
        time.sleep(0.1)


def _epochs(url: str) -> int | None:
    """Returns how many epochs are in; None while the bridge does not answer."""
    try:
        with BridgeClient(url, patience=0) as client:
            return int(client.status().get("epochs_total", 0))
    except BridgeError:
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", nargs=2, metavar=("FOLDER", "URL"), help=argparse.SUPPRESS)
    parser.add_argument("--kills", type=int, default=50)
    campaigns.add_options(parser)
    options = parser.parse_args()
    if options.job:
        job(Path(options.job[0]), options.job[1])
        return
    work = campaigns.Work("spark kills", options)
    for seed in work.cases(1 << 30):
        if sum(work.found[kind] for kind in KINDS) >= options.kills:
            break
        kinds = [MIX[i % len(MIX)] for i in range(EACH)]
        random.Random(seed).shuffle(kinds)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            work.found += case(seed, Path(folder), kinds)
        print(f"seed {seed}: results as without; kills so far {dict(work.found)}", flush=True)
    work.close()


if __name__ == "__main__":
    main()
