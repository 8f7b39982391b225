"""Rows a second through the bridge: against a bare Flight echo, and against the bare device.

Four ways for the same rows. An echo sends batches there and back. The bridge's stage takes batches
to disk; epochs are staged, committed, joined by the golden model and read back; the same host driver
and device without a bridge between. What the device needs is the device's: the ratio against it says
what the bridge costs, the ratio of the stage to the echo what its wire and disk do.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight

from compiler.plan.pipeline import Compilation, compile_text
from cosim.bridge.client import BridgeClient
from cosim.bridge.protocol import Commit, Part, Stage
from cosim.bridge.service import Bridge, Service
from cosim.golden import GoldenDevice
from engine.host.driver import HostDriver
from seustream.commands.bench import Measurement

TITLE = "bridge: rows/s staged, joined and read back, against a Flight echo and the bare device"
PARTS = ("rows", "memory")

BATCH = 10_000
ROWS = 1_000_000
JOINED = 200_000
ENDURED = 10_000_000
QUERIES = """
CREATE STREAM R (a int, b int, c int);
CREATE STREAM S (d int, e int, f int);
REGISTER QUERY pairs AS SELECT R.b, S.e FROM R, S WHERE R.a = S.d WINDOW RANGE 1000;
"""


def measure(parts: list[str] | None = None) -> Measurement:
    wanted = parts or ["rows"]
    rows: list[tuple[object, ...]] = []
    ratios: dict[str, float] = {}
    if "rows" in wanted:
        rates = {
            "Flight echo": ROWS / _timed(_echo),
            "stage, on disk": ROWS / _timed(_stage),
            "bridge, joined and read": JOINED / _timed(_through_bridge),
            "bare device, joined": JOINED / _timed(_bare),
        }
        rows += [(name, rate, "rows/s") for name, rate in rates.items()]
        ratios["stage over echo"] = rates["stage, on disk"] / rates["Flight echo"]
        ratios["bridge over bare device"] = (
            rates["bridge, joined and read"] / rates["bare device, joined"]
        )
    if "memory" in wanted:
        first, last = _endure()
        rows += [("memory after a tenth", first, "MB"), (f"after {ENDURED:,} rows", last, "MB")]
        ratios["memory at the end over a tenth of the way"] = last / first
    return Measurement(
        ("what", "figure", "unit"),
        rows,
        ratios,
        f"batches of {BATCH:,}; golden model; client and bridge in one process",
    )


def _timed(run: Callable[[], None]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def _streams(rows: int, begin: int = 0) -> dict[str, pa.Table]:
    """R and S, together so many rows; windows of about 1,000 tuples each."""
    chance = np.random.default_rng(begin)
    half = rows // 2
    found = {}
    for name, columns in (("R", "abc"), ("S", "def")):
        values = {c: chance.integers(0, 100_000, half).astype(np.int32) for c in columns}
        found[name] = pa.table({"ts": np.arange(begin, begin + half), **values})
    return found


# --- the four ways --------------------------------------------------------------


class _Echo(flight.FlightServerBase):
    def do_exchange(self, context, descriptor, reader, writer) -> None:
        writer.begin(reader.schema)
        for chunk in reader:
            writer.write_batch(chunk.data)


def _echo() -> None:
    rows = pa.concat_tables(t.rename_columns(list("tabc")) for t in _streams(ROWS).values())
    with (
        _Echo("grpc://127.0.0.1:0") as server,
        flight.connect(f"grpc://127.0.0.1:{server.port}") as client,
    ):
        writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(b""))
        with writer:
            writer.begin(rows.schema)
            for batch in rows.to_batches(max_chunksize=BATCH):
                writer.write_batch(batch)
                reader.read_chunk()
            writer.done_writing()


class _Served:
    """A bridge in this process, loaded."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        compilation = _compiled()
        self.bridge = Bridge(GoldenDevice(compilation.options.config), Path(self.folder.name))
        self.service = Service(self.bridge, "grpc://127.0.0.1:0")
        self.client = BridgeClient(f"grpc://127.0.0.1:{self.service.port}")
        self.client.load(compilation)

    def __enter__(self) -> _Served:
        return self

    def __exit__(self, *error: object) -> None:
        self.client.close()
        self.service.shutdown()
        self.bridge.close()
        self.folder.cleanup()

    def stage(self, epoch: int, rows: dict[str, pa.Table]) -> tuple[Part, ...]:
        parts = []
        for number, (name, table) in enumerate(rows.items()):
            stage = self.client.stage(Stage("w", name, epoch, number, f"{epoch}-{name}"))
            with stage as part:
                part.write(table, most=BATCH)
            assert part.staged is not None
            parts.append(part.staged)
        return tuple(parts)


def _stage() -> None:
    with _Served() as served:
        served.stage(0, _streams(ROWS))


def _through_bridge() -> None:
    with _Served() as served:
        streams, epochs = _streams(JOINED), 10
        at = 0
        for epoch in range(epochs):
            part = {
                n: t.slice(t.num_rows * epoch // epochs, t.num_rows // epochs)
                for n, t in streams.items()
            }
            served.client.commit(Commit("w", epoch, served.stage(epoch, part)))
            at = _read(served.client, at)
        served.client.end()
        for rows in served.client.results("pairs", at):
            at += rows.num_rows


def _read(client: BridgeClient, at: int) -> int:
    """What there is of the results, given up once it is read."""
    end = int(client.latest("pairs", at)["end"])
    client.read("pairs", at, end)
    client.trim("pairs", end)
    return end


def _bare() -> None:
    compilation = _compiled()
    driver = HostDriver(compilation, GoldenDevice(compilation.options.config))
    for name, table in _streams(JOINED).items():
        driver.push(name, table)
    for _ in driver.finish():
        pass


def _compiled() -> Compilation:
    return compile_text(QUERIES, "bench")


# --- memory ---------------------------------------------------------------------


def _endure() -> tuple[float, float]:
    """The process's highest memory after a tenth of the rows, and after all of them, with a reader
    that keeps up."""
    epochs, at = 100, 0
    each = ENDURED // epochs
    first = 0.0
    with _Served() as served:
        for epoch in range(epochs):
            rows = _streams(each, epoch * each // 2)
            served.client.commit(Commit("w", epoch, served.stage(epoch, rows)))
            at = _read(served.client, at)
            if epoch == epochs // 10:
                first = _highest()
        served.client.end()
        for rows_left in served.client.results("pairs", at):
            at += rows_left.num_rows
    return first, _highest()


def _highest() -> float:
    """MB; Linux counts in kB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
