"""kill -9 of the bridge, or of the client that feeds it, at random moments, or other queries beside its
own, again and again; the results must be those of an undisturbed run. `python -m tests.cosim.bridge.kills
--kills 50` is the campaign of kills, `--swaps 50` that of swaps. Most bridges and clients of a campaign are forked
with their imports done, so that more of the time goes into what is killed.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import BridgeError
from tests import campaigns
from tests.cosim.bridge.nursery import Forked, forked
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

ROWS, EPOCHS = 3000, 25
KINDS = ("bridge", "client")
KILLS, COLD = 25, 21
"""Kills in one run of the campaign, as many as it has time for; one run in `COLD` has cold bridges,
and three kills."""
SWAPS = 20
"""Swaps in one run, as many as it has time for."""
MORE = EVERYTHING + "REGISTER QUERY more AS SELECT S.d, S.name FROM S WHERE S.d > 3 WINDOW NOW;"


def feed(url: str, seed: int) -> None:
    """Feeds a bridge as a client that resumes where the bridge says the last one got to."""
    epochs = cut(streams(ROWS, seed), EPOCHS)
    with BridgeClient(url, patience=300) as client:
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
                    # A stage dies with the bridge, which may not know afterwards what was staged.
                    if error.kind not in ("unavailable", "stopping", "unknown"):
                        raise
                    time.sleep(0.05)
        client.end()


class Feeder:
    """Runs `feed` in a process that can be killed and started again."""

    def __init__(self, url: str, seed: int) -> None:
        self.arguments = (url, seed)
        self.start()

    def start(self) -> None:
        self.process = forked(feed, *self.arguments)

    def kill(self) -> None:
        self.process.kill()
        self.process.join()


def case(
    seed: int,
    folder: Path,
    kind: str,
    recovered: list[float] | None = None,
    kills_at_most: int = 3,
    cold: bool = True,
) -> int:
    """Runs once with kills, or swaps, while results are read; returns the number of kills or swaps.
    `recovered` collects the seconds from each start of the bridge until its whole journal is
    processed. A `cold` bridge does its imports at each start."""
    chance = random.Random(seed)
    want = wanted(compiled(EVERYTHING), streams(ROWS, seed))
    bridge = Process(folder / "journal") if cold else Forked(folder / "journal")
    feeder = Feeder(bridge.url, seed)
    done = threading.Event()
    kills = 0

    def killer() -> None:
        nonlocal kills
        for _ in range(kills_at_most):
            if done.wait(chance.uniform(0.0, 2.5 if cold else 0.8)):
                return
            if kind == "client":
                feeder.kill()
                feeder.start()
            else:
                bridge.kill()
                begun = time.monotonic()
                bridge.start()
                with BridgeClient(bridge.url, patience=300) as other:
                    while not _replayed(other):
                        time.sleep(0.02)
                if recovered is not None:
                    recovered.append(time.monotonic() - begun)
            kills += 1

    def swapper() -> None:
        nonlocal kills
        sets = [compiled(MORE), compiled(EVERYTHING)]
        with BridgeClient(bridge.url, patience=300) as other:
            while not _is_loaded(other):
                time.sleep(0.02)
            for number in range(SWAPS):
                if done.wait(chance.uniform(0.0, 0.02)):
                    return
                other.swap(sets[number % 2])
                kills += 1

    pool = ThreadPoolExecutor(1)
    running = pool.submit(swapper if kind == "swap" else killer)
    try:
        with BridgeClient(bridge.url, patience=300) as client:
            found = {}
            for query in want:
                counted: Counter[tuple[object, ...]] = Counter()
                for rows in _read(client, query):
                    counted += multiset(rows)
                found[query] = counted
    finally:
        done.set()
        pool.shutdown()
        feeder.kill()
        bridge.terminate()
    running.result()
    for query, rows in want.items():
        missing, extra = rows - found[query], found[query] - rows
        assert not missing, f"seed {seed}, {kind}: {query} lacks {missing.total()} results"
        assert not extra, f"seed {seed}, {kind}: {query} has {extra.total()} results too many"
    return kills


def _replayed(client: BridgeClient) -> bool:
    """Returns whether a restarted bridge has caught up with its journal."""
    try:
        client.act("flush", patience=0)
    except BridgeError as error:
        return error.kind == "no-session"
    return True


def _is_loaded(client: BridgeClient) -> bool:
    return client.health()["session"] is not None


def _read(client: BridgeClient, query: str):  # type: ignore[no-untyped-def]
    """Yields all results; waits for the first query set, because before it there is nothing to
    read."""
    while not _is_loaded(client):
        time.sleep(0.02)
    yield from client.results(query)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--swaps", type=int, default=0, help="so many swaps, and no kills")
    campaigns.add_options(parser)
    options = parser.parse_args()
    kinds = ("swap",) if options.swaps else KINDS
    work = campaigns.Work("swaps" if options.swaps else "kills", options)
    recovered: list[float] = []
    for seed in work.cases(1 << 30):
        if sum(work.found[kind] for kind in kinds) >= (options.swaps or options.kills):
            break
        kind = kinds[seed % len(kinds)]
        with tempfile.TemporaryDirectory() as folder:
            before = len(recovered)
            cold = seed % COLD == 0
            work.found[kind] += case(
                seed, Path(folder), kind, recovered, 3 if cold else KILLS, cold
            )
        for took in recovered[before:]:
            work.found[f"restarts within {math.ceil(took)} s"] += 1
        print(f"seed {seed}: {kind}, results as without; so far {dict(work.found)}", flush=True)
    work.close()
    recovered.sort()
    if recovered:
        last = recovered[-max(len(recovered) // 100, 1)]
        print(
            f"{len(recovered)} restarts: p50 {recovered[len(recovered) // 2]:.2f} s, p99 {last:.2f} s"
        )


if __name__ == "__main__":
    main()
