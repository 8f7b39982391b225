"""kill -9 of the bridge, or of the client that feeds it, at random moments; the results must be
those of an undisturbed run. `python -m tests.cosim.bridge.kills --kills 50` is the campaign.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import BridgeError
from tests.cosim.bridge.serving import (
    EVERYTHING,
    Process,
    compiled,
    cut,
    feed_epoch,
    multiset,
    streams,
    wanted,
)
from tests.docs.blocks import ROOT

ROWS, EPOCHS = 3000, 25
KINDS = ("bridge", "client")


def feed(url: str, seed: int) -> None:
    """A client that goes on where the bridge says the last one came to."""
    epochs = cut(streams(ROWS, seed), EPOCHS)
    with BridgeClient(url, patience=60) as client:
        client.load(compiled(EVERYTHING))
        begin = int(client.status().get("writer_epoch", {}).get("w", -1)) + 1
        for epoch in range(begin, EPOCHS):
            while True:
                try:
                    feed_epoch(
                        client, epoch, epochs[epoch], attempt=f"-{os.getpid()}-{time.time_ns()}"
                    )
                    break
                except BridgeError as error:
                    # A stage dies with the bridge; what was staged may be known no more.
                    if error.kind not in ("unavailable", "stopping", "unknown"):
                        raise
                    time.sleep(0.05)
        client.end()


class Feeder:
    """`feed` in a process that can be killed and started again."""

    def __init__(self, url: str, seed: int) -> None:
        self.command = [sys.executable, "-m", "tests.cosim.bridge.kills", "--feed", url, str(seed)]
        self.start()

    def start(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(self.command, env=environment, cwd=ROOT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def case(seed: int, folder: Path, kind: str) -> int:
    """One run with a few kills; gives how many. Reads results while all that goes on."""
    chance = random.Random(seed)
    want = wanted(compiled(EVERYTHING), streams(ROWS, seed))
    bridge = Process(folder / "journal")
    feeder = Feeder(bridge.url, seed)
    done = threading.Event()
    kills = 0

    def killer() -> None:
        nonlocal kills
        for _ in range(chance.randint(1, 3)):
            if done.wait(chance.uniform(0.0, 2.5)):
                return
            if kind == "client":
                feeder.kill()
                feeder.start()
            else:
                bridge.kill()
                bridge.start()
            kills += 1

    thread = threading.Thread(target=killer)
    thread.start()
    try:
        with BridgeClient(bridge.url, patience=60) as client:
            found = {}
            for query in want:
                counted: Counter[tuple[object, ...]] = Counter()
                for rows in _read(client, query):
                    counted += multiset(rows)
                found[query] = counted
    finally:
        done.set()
        thread.join()
        feeder.process.kill()
        feeder.process.wait()
        bridge.terminate()
    for query, rows in want.items():
        missing, extra = rows - found[query], found[query] - rows
        assert not missing, f"seed {seed}, {kind}: {query} lacks {missing.total()} results"
        assert not extra, f"seed {seed}, {kind}: {query} has {extra.total()} results too many"
    return kills


def _read(client: BridgeClient, query: str):  # type: ignore[no-untyped-def]
    """All results; before the first query set is loaded there is nothing to read."""
    while True:
        try:
            client.latest(query)
            break
        except BridgeError as error:
            if error.kind != "no-session":
                raise
            time.sleep(0.02)
    yield from client.results(query)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--feed", nargs=2, metavar=("URL", "SEED"), help=argparse.SUPPRESS)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--first", type=int, default=1000)
    options = parser.parse_args()
    if options.feed:
        feed(options.feed[0], int(options.feed[1]))
        return
    kills: Counter[str] = Counter()
    seed = options.first
    while kills.total() < options.kills:
        kind = KINDS[seed % len(KINDS)]
        with tempfile.TemporaryDirectory() as folder:
            kills[kind] += case(seed, Path(folder), kind)
        print(f"seed {seed}: {kind}, results as without; kills so far {dict(kills)}", flush=True)
        seed += 1


if __name__ == "__main__":
    main()
