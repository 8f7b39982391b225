"""A bridge under an even load for a long time: memory and latency stay where they were.

`python -m tests.cosim.bridge.soak --minutes 60 --rows 20000` feeds so many rows a second and reads every
result. It prints memory, waiting rows and latency twenty times, and fails if the last quarter has 5 %
more memory than the second, or twice its latency.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from seustream.cosim.bridge.client import BridgeClient
from tests.cosim.bridge.serving import NAMES, QUERIES, Process, compiled, feed_epoch

SAMPLES = 20


def epoch_of(number: int, rows: int) -> dict[str, pa.Table]:
    """The rows of an epoch, half of them in each stream; few join."""
    chance = np.random.default_rng(number)
    half = rows // 2
    ts = pa.array(np.sort(chance.integers(number * 1000, (number + 1) * 1000, half)))
    key = [chance.integers(0, 20_000, half).astype(np.int32) for _ in range(2)]
    names = pa.array(chance.integers(0, 7, half)).cast(pa.string())
    r = {"ts": ts, "a": pa.array(key[0]), "b": pa.array(key[1] % 1000)}
    return {"R": pa.table(r), "S": pa.table({"ts": ts, "d": pa.array(key[1]), "name": names})}


def resident(pid: int) -> int:
    """Bytes of memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096


def soak(seconds: float, rows: int, folder: Path) -> list[tuple[int, float]]:
    """Memory, and the median of the seconds from a commit to the end of its work, a sample each."""
    bridge = Process(folder / "journal")
    over = threading.Event()
    found: list[tuple[int, float]] = []

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
            while (now := time.monotonic() - begun) < seconds:
                at = time.monotonic()
                feed_epoch(client, number, epoch_of(number, rows))
                client.act("flush")
                took.append(time.monotonic() - at)
                number += 1
                if now > seconds * len(found) / SAMPLES:
                    found.append((resident(bridge.process.pid), statistics.median(took)))
                    memory, latency = found[-1]
                    said = f"{now:7.0f} s  {number * rows:12,} rows  {memory >> 20:6,} MB"
                    print(f"{said}  {1000 * latency:6.0f} ms an epoch", flush=True)
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
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = soak(60 * options.minutes, options.rows, Path(folder))
    second, last = found[SAMPLES // 4 : SAMPLES // 2], found[-SAMPLES // 4 :]
    memory = [statistics.median(one[0] for one in part) for part in (second, last)]
    latency = [statistics.median(one[1] for one in part) for part in (second, last)]
    print(f"memory {memory[1] / memory[0] - 1:+.1%}, latency {latency[1] / latency[0] - 1:+.1%}")
    return 1 if memory[1] > 1.05 * memory[0] or latency[1] > 2 * latency[0] else 0


if __name__ == "__main__":
    sys.exit(main())
