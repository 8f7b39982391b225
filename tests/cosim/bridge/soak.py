"""A bridge under an even load for a long time: memory and latency stay where they were.

`python -m tests.cosim.bridge.soak --minutes 60 --rows 20000` feeds so many rows a second and reads every
result. It prints memory, latency, the bridge's processor time, and what else the machine did twenty times, and fails
if the last quarter has 5 % more memory than the second, or twice its latency; `--record` adds it to the record of
campaigns. Latency is as good as the machine is quiet: the last column says so.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from seustream.cosim.bridge.client import BridgeClient
from tests import campaigns
from tests.cosim.bridge.serving import NAMES, QUERIES, Process, compiled, feed_epoch

SAMPLES = 20


def epoch_of(number: int, rows: int) -> dict[str, pa.Table]:
    """Returns the rows of an epoch, half of them in each stream; few join."""
    chance = np.random.default_rng(number)
    half = rows // 2
    ts = pa.array(np.sort(chance.integers(number * 1000, (number + 1) * 1000, half)))
    key = [chance.integers(0, 20_000, half).astype(np.int32) for _ in range(2)]
    names = pa.array(chance.integers(0, 7, half)).cast(pa.string())
    r = {"ts": ts, "a": pa.array(key[0]), "b": pa.array(key[1] % 1000)}
    return {"R": pa.table(r), "S": pa.table({"ts": ts, "d": pa.array(key[1]), "name": names})}


def resident(pid: int) -> int:
    """Returns the resident memory of a process, in bytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096


def processor(pid: int) -> float:
    """Returns the processor time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def busy() -> float:
    """Returns the processor time of all processes together, on all cores, in seconds."""
    user, nice, system, _, _, *interrupts = Path("/proc/stat").read_text().split()[1:8]
    return sum(map(int, (user, nice, system, *interrupts))) / os.sysconf("SC_CLK_TCK")


class Sample(NamedTuple):
    """A measurement: bytes of memory; median and 99th percentile of the seconds from a commit to
    the end of its work; seconds of processor time per epoch; the share of the machine that other
    processes had."""

    memory: int
    median: float
    p99: float
    processor: float
    others: float


def soak(seconds: float, rows: int, folder: Path) -> list[Sample]:
    """Puts a bridge under load; returns samples spread evenly over the time."""
    bridge = Process(folder / "journal")
    over = threading.Event()
    found: list[Sample] = []

    def read(name: str) -> None:
        with BridgeClient(bridge.url) as client:
            start = 0
            while not over.is_set():
                end = client.latest(name, start, 500)["end"]
                if end > start:
                    client.read(name, start, end)
                    client.trim(name, end, "soak")
                    start = end

    try:
        with BridgeClient(bridge.url) as client:
            client.load(compiled(QUERIES))
            readers = [threading.Thread(target=read, args=(name,)) for name in NAMES]
            for reader in readers:
                reader.start()
            begun, number, took = time.monotonic(), 0, []
            before = (begun, processor(bridge.process.pid), time.process_time(), busy())
            while (now := time.monotonic() - begun) < seconds:
                at = time.monotonic()
                feed_epoch(client, number, epoch_of(number, rows))
                client.act("flush")
                took.append(time.monotonic() - at)
                number += 1
                if now > seconds * len(found) / SAMPLES:
                    median, p99 = (float(np.quantile(took, share)) for share in (0.5, 0.99))
                    pid = bridge.process.pid
                    after = (time.monotonic(), processor(pid), time.process_time(), busy())
                    wall, own, client_own, every = (
                        b - a for a, b in zip(before, after, strict=True)
                    )
                    before = after
                    others = max(0.0, every - own - client_own) / (wall * (os.cpu_count() or 1))
                    found.append(Sample(resident(pid), median, p99, own / len(took), others))
                    said = f"{now:7.0f} s  {number * rows:12,} rows  {found[-1].memory >> 20:6,} MB"
                    times = f"{1000 * median:6.0f} ms an epoch, p99 {1000 * p99:6.0f} ms"
                    spent = f"{1000 * own / len(took):6.0f} ms of processor; others {others:4.0%}"
                    print(f"{said}  {times}  {spent}", flush=True)
                    took.clear()
                time.sleep(max(0.0, begun + number - time.monotonic()))
            over.set()
            for reader in readers:
                reader.join()
    finally:
        over.set()
        bridge.terminate()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rows", type=int, default=20_000, help="a second (%(default)s)")
    parser.add_argument("--record", action="store_true", help="put it into the record")
    options = parser.parse_args()
    options.first, options.seconds = 0, float("inf")
    work = campaigns.Work("soak", options, anew=True)
    with tempfile.TemporaryDirectory() as folder:
        found = soak(60 * options.minutes, options.rows, Path(folder))
    second, last = found[SAMPLES // 4 : SAMPLES // 2], found[-SAMPLES // 4 :]
    grown = {
        name: statistics.median(getattr(one, name) for one in last)
        / statistics.median(getattr(one, name) for one in second)
        for name in Sample._fields[:-1]
    }
    print(", ".join(f"{name} {ratio - 1:+.1%}" for name, ratio in grown.items()))
    work.count = round(options.minutes)
    work.found["rows a second"] = options.rows
    for name, ratio in grown.items():
        work.found[f"{name}, last quarter by second, in thousandths"] = round(1000 * ratio)
    work.found["others had at most, in thousandths"] = round(1000 * max(s.others for s in found))
    work.close()
    return 1 if grown["memory"] > 1.05 or max(grown["median"], grown["p99"]) > 2 else 0


if __name__ == "__main__":
    sys.exit(main())
