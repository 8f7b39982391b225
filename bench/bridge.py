"""Rows per second through the bridge: against a bare Flight echo, and against the bare device.

The same rows go five ways. An echo sends batches there and back. The bridge's stage writes batches
to disk. A query that selects all rows of a stream sends them through journal, ordering and results
and back, without a join. A join on the golden model is the typical work of a bridge; finally, the
same host driver and device do that join without a bridge. The ratio to the bare device shows the
cost of the bridge, since both pay for the device; the ratios to the echo show the cost of the
bridge's wire, disk and ordering. Each figure is the median of several rounds, without start-up
time.
"""

from __future__ import annotations

import contextlib
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.flight as flight

import seustream as ss
from seustream.commands.bench import Measurement
from seustream.compiler.pipeline import compile_text
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.protocol import Commit, Stage, StagedPart
from seustream.cosim.bridge.service import Service
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun
from seustream.engine.stream.merge import Merger, Slice, timestamps

TITLE = "bridge: rows/s staged, joined and read back, against a Flight echo and the bare device"
PARTS = ("rows", "order", "memory", "latency")

Ints = npt.NDArray[np.int64]

BATCH = 10_000
ROWS = 1_000_000
ROUNDS, EPOCHS = 5, 10
ENDURED = 10_000_000
STREAMS = """
CREATE STREAM R (a int, b int, c int);
CREATE STREAM S (d int, e int, f int);
"""
JOIN = "REGISTER QUERY pairs AS SELECT R.b, S.e FROM R, S WHERE R.a = S.d WINDOW RANGE 1000;"
LIVE = "CREATE STREAM R (number bigint, k bigint);"
PROMPT = {
    "a filter": "SELECT number FROM R WHERE k >= 0",
    "a group": "SELECT number, count(*) FROM R GROUP BY k, number WINDOW RANGE 1000",
}
WARM, PROMPTLY = 2_000, 20_000
ALL = """
REGISTER QUERY r AS SELECT R.a, R.b, R.c FROM R WINDOW NOW;
REGISTER QUERY s AS SELECT S.d, S.e, S.f FROM S WINDOW NOW;
"""


def measure(wanted: Sequence[str] = PARTS) -> Measurement:
    rows: list[tuple[object, ...]] = []
    ratios: dict[str, float] = {}
    if "rows" in wanted:
        rates = _rates(
            {
                "Flight echo, there and back": _echo,
                "stage, on disk": _stage,
                "bridge, all rows out again": lambda: _through_bridge(ALL, ("r", "s")),
                "bridge, joined and read": lambda: _through_bridge(JOIN, ("pairs",)),
                "bare device, joined": _bare,
            }
        )
        rows += [(name, statistics.median(rate), "rows/s") for name, rate in rates.items()]
        echo, stage, through, joined, bare = rates.values()
        ratios["stage over echo"] = _ratio(stage, echo)
        ratios["bridge without a join over echo"] = _ratio(through, echo)
        ratios["bridge over bare device"] = _ratio(joined, bare)
    if "order" in wanted:
        batch, merged = _ordered(_sorted_batches), _ordered(_merged)
        for what, (seconds, back) in (("each batch sorted", batch), ("streams merged", merged)):
            rows.append((f"three uneven streams, {what}", ROWS / seconds, "rows/s"))
            rows.append(("of these after a later one", float(back), "rows"))
        ratios["seconds of merging a million rows"] = merged[0] * 1e6 / ROWS
    if "memory" in wanted:
        first, last = _endure()
        rows += [
            ("memory during a tenth", first, "MB"),
            (f"during the rest of {ENDURED:,} rows", last, "MB"),
        ]
        ratios["memory during the rest over that during a tenth"] = last / first
    if "latency" in wanted:
        for name, query in PROMPT.items():
            times = _latency(query)
            for share, what in ((0.5, "median"), (0.99, "p99"), (1.0, "slowest")):
                figure = float(np.quantile(times, share)) * 1e3
                rows.append((f"{name}, 1,000 rows/s, from push to read: {what}", figure, "ms"))
    return Measurement(
        ("what", "figure", "unit"),
        rows,
        ratios,
        f"batches of {BATCH:,}; golden model; client and bridge in one process; a batch's first row is its seed;"
        " latency: ten rows a hundred times a second, the bridge a process with the engine and a journal",
    )


Timed = Callable[[], contextlib.AbstractContextManager[Callable[[], None]]]
"""Prepares one way; entering it gives the function to time."""


def _rates(ways: dict[str, Timed]) -> dict[str, list[float]]:
    """Measures the rows per second of each way, in rounds, so that other load on the machine
    affects all ways."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, ready in ways.items():
            with ready() as run:
                began = time.perf_counter()
                run()
                found[name].append(ROWS / (time.perf_counter() - began))
    return found


def _ratio(ours: list[float], theirs: list[float]) -> float:
    """Returns the median of the ratios of the rounds."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def _streams(rows: int, begin: int = 0) -> dict[str, pa.Table]:
    """Returns R and S, together `rows` rows, with windows of about 1,000 tuples each."""
    chance = np.random.default_rng(begin)
    half = rows // 2
    found = {}
    for name, columns in (("R", "abc"), ("S", "def")):
        values = {c: chance.integers(0, 100_000, half).astype(np.int32) for c in columns}
        found[name] = pa.table({"ts": np.arange(begin, begin + half), **values})
    return found


def _epoch(streams: dict[str, pa.Table], number: int) -> dict[str, pa.Table]:
    return {
        name: table.slice(table.num_rows * number // EPOCHS, table.num_rows // EPOCHS)
        for name, table in streams.items()
    }


# --- the five ways --------------------------------------------------------------


class _Echo(flight.FlightServerBase):
    def do_exchange(self, context, descriptor, reader, writer) -> None:
        writer.begin(reader.schema)
        for chunk in reader:
            writer.write_batch(chunk.data)


@contextlib.contextmanager
def _echo() -> Iterator[Callable[[], None]]:
    rows = pa.concat_tables(t.rename_columns(list("tabc")) for t in _streams(ROWS).values())
    with (
        _Echo("grpc://127.0.0.1:0") as server,
        flight.connect(f"grpc://127.0.0.1:{server.port}") as client,
    ):

        def run() -> None:
            writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(b""))
            with writer:
                writer.begin(rows.schema)
                for batch in rows.to_batches(max_chunksize=BATCH):
                    writer.write_batch(batch)
                    reader.read_chunk()
                writer.done_writing()

        yield run


class _Served:
    """A bridge in this process, with the queries loaded."""

    def __init__(self, queries: str = JOIN) -> None:
        self.folder = tempfile.TemporaryDirectory()
        compilation = compile_text(STREAMS + queries, "bench")
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

    def stage(self, epoch: int, rows: dict[str, pa.Table]) -> tuple[StagedPart, ...]:
        parts = []
        for number, (name, table) in enumerate(rows.items()):
            stage = self.client.stage(Stage("w", name, epoch, number, f"{epoch}-{name}"))
            with stage as part:
                part.write(table, most=BATCH)
            assert part.staged is not None
            parts.append(part.staged)
        return tuple(parts)


@contextlib.contextmanager
def _stage() -> Iterator[Callable[[], None]]:
    streams = _streams(ROWS)
    with _Served() as served:
        yield lambda: _drop(served.stage(0, streams))


def _drop(parts: tuple[StagedPart, ...]) -> None:
    """Does nothing: the parts wait for a commit that never comes."""


@contextlib.contextmanager
def _through_bridge(queries: str, names: tuple[str, ...]) -> Iterator[Callable[[], None]]:
    """Sends epochs; reads and trims results while the next epoch is on its way."""
    streams = _streams(ROWS)
    with _Served(queries) as served:

        def run() -> None:
            at = dict.fromkeys(names, 0)
            for epoch in range(EPOCHS):
                part = _epoch(streams, epoch)
                served.client.commit(Commit("w", epoch, served.stage(epoch, part)))
                at = {name: _read(served.client, name, start) for name, start in at.items()}
            served.client.end()
            for name, start in at.items():
                for _ in served.client.results(name, start):
                    pass

        yield run


def _read(client: BridgeClient, query: str, at: int) -> int:
    """Reads the results so far and trims them."""
    end = int(client.latest(query, at)["end"])
    client.read(query, at, end)
    client.trim(query, end)
    return end


@contextlib.contextmanager
def _bare() -> Iterator[Callable[[], None]]:
    compilation = compile_text(STREAMS + JOIN, "bench")
    streams = _streams(ROWS)
    driver = GraphRun(compilation, GoldenDevice(compilation.options.config))

    def run() -> None:
        for epoch in range(EPOCHS):
            for name, table in _epoch(streams, epoch).items():
                driver.push(name, table)
            for _ in driver.advance():
                pass
        for _ in driver.finish():
            pass

    yield run


# --- order --------------------------------------------------------------------

PACES = (1, 2, 5)
"""Rows per millisecond of three streams over the same time; each sends as fast as it can."""


def _ordered(order: Callable[[list[tuple[str, pa.Table]]], Iterator[Ints]]) -> tuple[float, int]:
    """Orders a million rows of three streams. Returns the seconds it takes, the median of the
    rounds, and the number of rows that still follow a later one."""
    each = ROWS // len(PACES)
    streams = {
        f"s{number}": pa.table({"ts": np.arange(each) // pace, "x": np.arange(each)})
        for number, pace in enumerate(PACES)
    }
    size = 20_000
    arrivals = [
        (name, table.slice(start, size))
        for start in range(0, each, size)
        for name, table in streams.items()
    ]
    seconds, back = [], 0
    for _ in range(ROUNDS):
        began = time.perf_counter()
        released = list(order(arrivals))
        seconds.append(time.perf_counter() - began)
        ts = np.concatenate(released)
        assert len(ts) == each * len(PACES)
        back = int((ts < np.maximum.accumulate(ts)).sum())
    return statistics.median(seconds), back


def _sorted_batches(arrivals: list[tuple[str, pa.Table]]) -> Iterator[Ints]:
    """Orders as a single micro-batch can: one batch of each stream, sorted together."""
    for start in range(0, len(arrivals), len(PACES)):
        rows = pa.concat_tables([table for _, table in arrivals[start : start + len(PACES)]])
        order = np.argsort(timestamps(rows), kind="stable")
        yield timestamps(rows.take(pa.array(order)))


def _merged(arrivals: list[tuple[str, pa.Table]]) -> Iterator[Ints]:
    """Orders as the bridge does: a row passes only when no earlier one can still arrive."""
    merger = Merger([f"s{number}" for number in range(len(PACES))])
    for name, table in arrivals:
        merger.push(name, table)
        yield from map(_times, merger.release(8192))
    for name in merger.by_name:
        merger.stop(name)
    yield from map(_times, merger.release(8192))


def _times(part: Slice) -> Ints:
    """Returns the times of a slice's rows, in the order of the slice."""
    found = np.empty(len(part), np.int64)
    for number, rows in enumerate(part.rows):
        if rows.num_rows:
            found[part.stream == number] = timestamps(rows)
    return found


# --- latency ---------------------------------------------------------------------


def _latency(query: str) -> npt.NDArray[np.float64]:
    """Returns the seconds from the push of each of some rows, ten a hundred times a second, until its result is
    read. The bridge is a process of its own and keeps a journal."""
    took = list[npt.NDArray[np.float64]]()
    with (
        tempfile.TemporaryDirectory() as folder,
        _serve(folder) as url,
        ss.connect(url) as con,
        BridgeClient(url) as reader,
    ):
        con.sql(f"{LIVE} REGISTER QUERY q AS {query};")
        sent = np.full(WARM + PROMPTLY, np.inf)

        def read() -> None:
            at, until = 0, len(sent)
            while at < until:
                end = reader.latest("q", at, 1000)["end"]
                numbers = np.asarray(reader.read("q", at, end).column("number"))
                took.append(time.monotonic() - sent[numbers])
                at = end

        thread = threading.Thread(target=read)
        thread.start()
        begun = time.monotonic()
        for first in range(0, len(sent), 10):
            time.sleep(max(0.0, begun + first / 1000 - time.monotonic()))
            numbers = np.arange(first, first + 10)
            rows = pa.table({"ts": numbers, "number": numbers, "k": numbers % 100})
            sent[first : first + 10] = time.monotonic()
            con.push("R", rows)
            con.watermark("R", first + 9)
        thread.join()
    return np.concatenate(took)[WARM:]


@contextlib.contextmanager
def _serve(folder: str) -> Iterator[str]:
    command = [
        sys.executable,
        "-m",
        "seustream",
        "serve",
        "--journal",
        folder,
        "--listen",
        "grpc://127.0.0.1:0",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield next(
                word for word in process.stdout.readline().split() if word.startswith("grpc://")
            )
        finally:
            process.terminate()


# --- memory ---------------------------------------------------------------------


def _endure() -> tuple[float, float]:
    """Returns the peak memory of this process during the first tenth of the rows, and during the
    rest, with a reader that keeps up."""
    epochs, at = 100, 0
    each = ENDURED // epochs
    first = rest = 0.0
    with _Served() as served:
        for epoch in range(epochs):
            rows = _streams(each, epoch * each // 2)
            served.client.commit(Commit("w", epoch, served.stage(epoch, rows)))
            at = _read(served.client, "pairs", at)
            if epoch < epochs // 10:
                first = max(first, _resident())
            else:
                rest = max(rest, _resident())
        served.client.end()
        for rows_left in served.client.results("pairs", at):
            at += rows_left.num_rows
    return first, max(rest, _resident())


def _resident() -> float:
    """Returns the present memory in MB; it may include what other measurements needed before, but
    not twice."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / (1 << 20)
