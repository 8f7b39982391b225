"""A join over the streams of three sites, each a process with a device behind a bridge, apart as far as
this machine allows; messages are lost, repeated and late, the centre is killed and started again.

    python -m tests.system.sites [RUNS] [--seed N]

says which network it used and compares each run's results with the definition.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from seustream.compiler.pipeline import compile_text
from seustream.engine.sites.costs import UnitCosts
from seustream.engine.sites.layout import SiteLayout
from seustream.engine.sites.model import BlockRows, SiteRow
from seustream.engine.sites.query import join_of
from tests.cosim.sites.cluster import Cluster
from tests.docs.blocks import ROOT
from tests.engine.sites.oracle import answer, random_blocks
from tests.system.places import Places, apart

SITES, QUERY_NODE, CENTRE = 3, 3, 4
QUERY = """
CREATE STREAM R (a int, p int);
CREATE STREAM S (b int, q int);
CREATE STREAM T (c int);
SELECT * FROM R, S, T WHERE R.a = S.b AND S.b = T.c AND (R.p < S.q OR R.p > 7)
WINDOW RANGE 3, UNBOUNDED, RANGE 2;
"""
WINDOWS = [3, float("inf"), 2]


def run(seed: int, folder: Path, strategy: str = "planned") -> str:
    """Runs once; raises an error if the results are not exact. Returns which network it had."""
    chance = random.Random(seed)
    blocks = _with_values(chance, random_blocks(chance, SITES, units=10))
    near = [[0 if a == b else 1 if CENTRE in (a, b) else 5 for b in range(5)] for a in range(5)]
    layout = SiteLayout(
        join_of(compile_text(QUERY).program.queries[0]),
        UnitCosts.of(near),
        QUERY_NODE,
        candidates=(CENTRE, 0),
        retry=60.0,
        strategy=strategy,  # type: ignore[arg-type]
    )
    with contextlib.ExitStack() as stack:
        places = stack.enter_context(apart(5, loss=0.08, delay=0.02))
        urls = stack.enter_context(bridges(places, folder))
        of = {
            k: replace(place, module=("tests.cosim.sites.node", "--bridge", urls[k]))
            if k < SITES
            else place
            for k, place in places.of.items()
        }
        bad = {"loss": 0.08, "repeat": 0.08, "delay": places.delay}
        cluster = stack.enter_context(Cluster(layout, folder, places=of, **bad))
        third = len(blocks) // 3
        for number, block in enumerate(blocks):
            if number == third:
                cluster.kill(CENTRE)
            if number == 2 * third:
                cluster.start(CENTRE)
            cluster.submit(block)
        cluster.settle()
        found = sorted(result.tids for _, result in cluster.results())
        epochs = {cluster.state(k)["epoch"][0] for k in range(SITES)}
        incomplete = cluster.state(QUERY_NODE)["incomplete"]
    expected = [tids for tids in answer(WINDOWS, blocks) if _holds(blocks, tids)]
    assert found == expected, f"seed {seed}: {len(found)} results, {len(expected)} expected"
    assert found, f"seed {seed}: nothing to find"
    assert epochs != {1}, f"seed {seed}: nobody noticed that the centre was dead"
    assert not incomplete, f"seed {seed}"
    return places.what


def _with_values(chance: random.Random, blocks: list[BlockRows]) -> list[BlockRows]:
    """Numbers blocks, and gives their rows what the query's condition reads."""
    numbers = [0] * SITES
    found = []
    for block in blocks:
        rows = tuple(SiteRow(r.keys, r.t, (0, chance.randint(0, 9))) for r in block.rows)
        found.append(BlockRows(block.stream, block.tau, rows, numbers[block.stream]))
        numbers[block.stream] += 1
    return found


def _holds(blocks: list[BlockRows], tids: tuple[tuple[int, int, int], ...]) -> bool:
    by_id = {(block.stream, block.no): block for block in blocks}
    p, q = (by_id[k, no].rows[index].payload[1] for k, no, index in tids[:2])  # type: ignore[index]
    return bool(p < q or p > 7)


@contextlib.contextmanager
def bridges(places: Places, folder: Path) -> Iterator[list[str]]:
    """Runs a device behind a bridge where each site is, on a port of its own; yields their
    addresses."""
    served, urls = [], []
    try:
        for k in range(SITES):
            url = f"grpc://127.0.0.1:{18815 + k}" if places.before(k) else "grpc://127.0.0.1:0"
            command = [*places.before(k), sys.executable, "-m", "seustream", "serve"]
            command += ["--backend", "golden"]
            with (folder / f"bridge{k}.txt").open("w") as out:
                process = subprocess.Popen(
                    [*command, "--listen", url], cwd=ROOT, stdout=out, stderr=subprocess.DEVNULL
                )
            served.append(process)
        for k, process in enumerate(served):
            urls.append(_address(process, folder / f"bridge{k}.txt"))
        yield urls
    finally:
        for process in served:
            process.terminate()
            process.wait()


def _address(process: subprocess.Popen[bytes], said: Path) -> str:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        for word in said.read_text().split():
            if word.startswith("grpc://"):
                return word
        time.sleep(0.05)
    raise RuntimeError(f"a bridge did not start: {said.read_text()}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=int, nargs="?", default=10)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    for seed in range(arguments.seed, arguments.seed + arguments.runs):
        strategy = ("planned", "auto")[seed % 2]
        with tempfile.TemporaryDirectory() as folder:
            what = run(seed, Path(folder), strategy)
        print(f"seed {seed}, {strategy}: exact ({what})", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
