"""Bridges for tests, in this process or in one of their own that can be killed; a query set with
known results; and clients that feed it."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.disk import Disk
from seustream.cosim.bridge.errors import KINDS, BridgeError
from seustream.cosim.bridge.limits import USUAL, Limits
from seustream.cosim.bridge.protocol import Commit, Stage, StagedPart, StageEnd, write
from seustream.cosim.bridge.service import IDLE, Service
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun
from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.device import Device
from tests.docs.blocks import ROOT

TINY = CONFIGURATIONS["tiny"]
TIMES = {"ts_oldest": "int64", "ts_newest": "int64"}
"""Columns that a query appends to those it selects."""
NAMES = ("pairs", "large")
"""Names of the queries in `QUERIES`."""
QUERIES = """
CREATE STREAM R (a int, b int);
CREATE STREAM S (d int, name varchar(9));
REGISTER QUERY pairs AS SELECT R.b, S.name FROM R, S WHERE R.a = S.d WINDOW RANGE 30;
REGISTER QUERY large AS SELECT R.a, R.b FROM R WHERE R.b > 800 WINDOW NOW;
"""
EVERYTHING = (
    QUERIES
    + """
CREATE STREAM J AS SELECT R.a, R.b, S.name FROM R, S WHERE R.a = S.d WINDOW RANGE 6;
REGISTER QUERY counts AS SELECT R.a, count(*), sum(R.b) FROM R GROUP BY R.a WINDOW ROWS 40;
REGISTER QUERY matched AS SELECT R.a, max(S.name), count(*) FROM R, S WHERE R.a = S.d GROUP BY R.a
    WINDOW RANGE 9, ROWS 12;
REGISTER QUERY again AS SELECT J.b, S.d FROM J, S WHERE J.a = S.d WINDOW RANGE 8;
REGISTER QUERY top AS SELECT J.name, max(J.b) FROM J GROUP BY J.name WINDOW RANGE 30;
REGISTER QUERY names AS PATTERN n1 x; n2 y; !n3 z FROM S TYPE BY name
    WHERE x.d <= y.d AND z.d = x.d WITHIN 60 ms RETURN x.ts, y.ts AS later, x.d;
REGISTER QUERY rises AS PATTERN n3 x; ANY y FROM J TYPE BY name PARTITION BY a
    WHERE y.b > x.b WITHIN 300 ms RETURN x.a, x.b, y.b AS b2;
CREATE STREAM P AS PATTERN n1 x; n2 y FROM S TYPE BY name WHERE x.d <= y.d WITHIN 60 ms RETURN x.d;
REGISTER QUERY after AS SELECT P.d, R.b FROM P, R WHERE P.d = R.a WINDOW RANGE 40, RANGE 40;
CREATE STREAM H AS APAS $$ where window.range($J, 12) select H[n = agg.count($J), most = agg.max($J.b)] $$;
CREATE STREAM K AS APAS $$ where window.range($P, 50), $P.d == $H.n select K[n = $H.n, most = $H.most] $$;
REGISTER QUERY heights AS SELECT H.most, H.te, R.a FROM H, R WHERE H.n = R.a WINDOW RANGE 20;
REGISTER QUERY steps AS PATTERN ANY x; ANY y FROM K WHERE y.most > x.most WITHIN 90 ms RETURN x.n, y.te;
"""
)
"""A join on the device, single streams, groups, derived streams, patterns, and APAS queries over
these and over each other: every kind of state."""
Rows = Counter[tuple[object, ...]]


def compiled(text: str = QUERIES) -> Compilation:
    return compile_text(text, "q.xsql", Options(config=TINY))


def streams(rows: int, seed: int) -> dict[str, pa.Table]:
    """Returns R and S, in the order of their timestamps; some join columns are NULL."""
    chance = np.random.default_rng(seed)

    def ts() -> pa.Array:
        return pa.array(np.sort(chance.integers(0, 4 * rows, rows)))

    key = [chance.integers(0, 8, rows).astype(np.int32) for _ in range(2)]
    r = {"a": pa.array(key[0], mask=chance.random(rows) < 0.05)}
    r["b"] = pa.array(chance.integers(0, 1000, rows).astype(np.int32))
    s = {"d": pa.array(key[1]), "name": pa.array([f"n{i % 7}" for i in range(rows)])}
    return {"R": pa.table({"ts": ts(), **r}), "S": pa.table({"ts": ts(), **s})}


def wanted(compilation: Compilation, rows: dict[str, pa.Table]) -> dict[str, Rows]:
    """Returns every query's results from one run in this process that sees all rows at once. Other
    tests compare such runs with other engines."""
    live = GraphRun(compilation, GoldenDevice(compilation.options.config))
    for name, table in rows.items():
        live.push(name, table)
    found: dict[str, Rows] = {name: Counter() for name in compilation.program.names}
    for name, results in live.finish():
        found[name] += multiset(results)
    return found


def multiset(rows: pa.Table) -> Rows:
    return Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True))


# --- bridges ------------------------------------------------------------------


@contextlib.contextmanager
def bridge(
    folder: Path,
    device: Device | None = None,
    limits: Limits = USUAL,
    token: str | None = None,
    tls: tuple[bytes, bytes] | None = None,
    libraries: Libraries | None = None,
    disk: Disk | None = None,
    idle: float = IDLE,
    client_ca: bytes | None = None,
) -> Iterator[tuple[Bridge, str]]:
    """Yields a bridge in this process, and its address."""
    made = Bridge(
        device or GoldenDevice(TINY), folder, "golden", limits, libraries=libraries, disk=disk
    )
    scheme = "grpc+tls" if tls else "grpc"
    service = Service(made, f"{scheme}://127.0.0.1:0", token, tls, idle, client_ca)
    try:
        yield made, f"{scheme}://127.0.0.1:{service.port}"
    finally:
        service.stop(grace=4)
        made.close()


def lasting_url() -> str:
    """Returns an address that a bridge can use again and again. A port assigned by the system may
    go to a client while the bridge is down: to one that only asks whether the bridge is back."""
    while True:
        port = random.randrange(20_000, 30_000)
        with contextlib.suppress(OSError), socket.socket() as asked:
            asked.bind(("127.0.0.1", port))
            return f"grpc://127.0.0.1:{port}"


class Process:
    """Runs `seustream serve` in a process that can be killed and started again at its address."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.options = folder, options
        self.url = lasting_url()
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "seustream", "serve", "--config", "tiny"]
        command += ["--backend", "golden"]
        command += ["--listen", self.url, "--journal", str(self.folder), *self.options]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if " on grpc" not in line:
            raise AssertionError(self.end()[1])
        self.url = line.split(" on ")[1].strip()

    def kill(self) -> None:
        """Ends the process with SIGKILL."""
        self.process.kill()
        self.end()

    def terminate(self) -> tuple[int, str]:
        """Ends the process with SIGTERM; returns its exit status and its output."""
        self.process.terminate()
        return self.end()

    def end(self) -> tuple[int, str]:
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said


# --- clients ------------------------------------------------------------------


def feed_epoch(
    client: BridgeClient,
    epoch: int,
    rows: dict[str, pa.Table],
    writer: str = "w",
    attempt: str = "",
    commit: bool = True,
) -> list[StagedPart]:
    """Stages an epoch, a part for each stream, and commits it."""
    parts = []
    for number, (stream, table) in enumerate(rows.items()):
        stage = Stage(writer, stream, epoch, number, f"{writer}-{epoch}-{stream}{attempt}")
        with client.stage(stage) as part:
            part.write(table)
        assert part.staged is not None
        parts.append(part.staged)
    if commit:
        client.commit(Commit(writer, epoch, tuple(parts)))
    return parts


class Chunks:
    """Presents rows as a stage's reader does, without a socket."""

    def __init__(self, rows: pa.Table) -> None:
        said = StageEnd(rows.num_rows)
        self._chunks = [Chunk(batch, None) for batch in rows.to_batches()]
        self._chunks.append(Chunk(None, write(said)))

    def read_chunk(self) -> Chunk:
        return self._chunks.pop(0)


@dataclass(frozen=True)
class Chunk:
    data: pa.RecordBatch | None
    app_metadata: bytes | None


def stage_epoch(
    bridge: Bridge,
    epoch: int,
    rows: dict[str, pa.Table],
    attempt: str = "",
    commit: bool = True,
) -> Commit:
    """Does the same as `feed_epoch`, on a bridge in this process and without a socket."""
    parts = []
    for number, (stream, table) in enumerate(rows.items()):
        stage = Stage("w", stream, epoch, number, f"w-{epoch}-{stream}{attempt}")
        staged = bridge.stage(stage, Chunks(table))
        parts.append(StagedPart(staged.staging, staged.rows))
    message = Commit("w", epoch, tuple(parts))
    if commit:
        bridge.act("commit", write(message))
    return message


def cut(rows: dict[str, pa.Table], epochs: int) -> list[dict[str, pa.Table]]:
    """Cuts streams into this many epochs."""
    found = []
    for epoch in range(epochs):
        part = {}
        for name, table in rows.items():
            start = table.num_rows * epoch // epochs
            part[name] = table.slice(start, table.num_rows * (epoch + 1) // epochs - start)
        found.append(part)
    return found


def results(client: BridgeClient, queries: Sequence[str]) -> dict[str, Rows]:
    """Returns all results of a session whose input has ended."""
    return {q: sum((multiset(t) for t in client.results(q)), Counter()) for q in queries}


def kind_of(caught: pytest.ExceptionInfo[BridgeError]) -> str:
    return caught.value.kind


def goes_on(client: BridgeClient) -> None:
    """Asserts that the session is as it was, whatever was sent before."""
    rows = streams(50, 3)
    feed_epoch(client, 0, rows, attempt="last")
    client.end()
    assert results(client, NAMES) == wanted(compiled(), rows)


def refused(call: Callable[[], object]) -> BridgeError:
    """Returns the error of a call, which must be of a known kind and reveal no internals."""
    with pytest.raises(BridgeError) as caught:
        call()
    assert caught.value.kind in KINDS
    assert "Traceback" not in str(caught.value)
    return caught.value
