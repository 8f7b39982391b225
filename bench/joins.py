"""The engine's join on common workloads, beside DuckDB, both with one thread.

Each stream has one tuple per tick, and values are uniform; a RANGE window holds as many tuples of a
stream as it has ticks. The engine takes tuples in their order and gives results in their order.
DuckDB joins tables already loaded, as a batch; except for theta, it also expresses a window as an
equality of buckets of time, which is faster there. The numbers of results are compared and equal.
Figures are processor time and wall-clock time per tuple, of one run after a warm-up on a tenth of
the tuples; `gain` is DuckDB's processor time over ours. The data come from the seed 21. `parquet`
reads the streams from files and writes the results to one on both sides: the engine packs it as
`run` does, DuckDB by its defaults. `bench joins:W1` measures some of the rows anew.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from seustream.commands.bench import Measurement, measured_before
from seustream.compiler.pipeline import compile_text
from seustream.encoding import parquet_options
from seustream.engine.host.stages import SoftwareJoin
from seustream.engine.kernels import native
from seustream.engine.stream.faults import QueryFaults
from seustream.engine.stream.merge import END_OF_STREAM
from seustream.engine.stream.schema import stream_schema

TITLE = "joins: the engine's join on W1 to W4, theta and many results, beside DuckDB"
LONG = True

SLICE = 8192
"""Tuples at a time, as in `run`."""
PUSHED = 1 << 16


@dataclass(frozen=True, slots=True)
class Work:
    """A set of queries: the columns of the streams and the ranges of their values, or another column and what
    is added to it; the conditions, the ticks, the window in ticks, whether DuckDB's window is an equality
    of buckets, and the ticks between two tuples of a stream where this is not one."""

    streams: dict[str, dict[str, int | tuple[str, int]]]
    where: tuple[str, ...]
    count: int
    window: int
    bucketed: bool = True
    parquet: bool = False
    every: dict[str, int] = field(default_factory=dict)


_Streams = dict[str, dict[str, int | tuple[str, int]]]
_TWO: _Streams = {"R": {"a": 2_000, "b": 1_000}, "S": {"a": 2_000, "c": 1_000}}
_LARGE: _Streams = {"R": {"a": 100_000, "b": 1_000}, "S": {"a": 100_000, "c": 1_000}}
_THREE: _Streams = {
    "R": {"a": 2_000, "b": 9},
    "S": {"a": 2_000, "b": 2_000},
    "T": {"b": 2_000, "c": 9},
}
_BAND: _Streams = {"R": {"x": 200_000}, "S": {"y": 200_000}}
_COLUMNS: _Streams = {"R": {"x": 200_000}, "S": {"low": 199_900, "high": ("low", 100)}}
_AUCTIONS: _Streams = {
    "Person": {"id": 20},
    "Auction": {"id": 60, "seller": 20},
    "Bid": {"auction": 60, "price": 10_000},
}
_WIDE_BAND: _Streams = {"R": {"x": 10_000_000}, "S": {"y": 10_000_000}}
_BANDS = ("R.x BETWEEN S.y - 50 AND S.y + 50",)
_MANY: _Streams = {"R": {"a": 20, "b": 9}, "S": {"a": 20, "c": 9}}
_EIGHT: _Streams = {"R": {"a": 1_300, "b": 100}, "S": {"a": 1_300, "c": 100}}
_THETA: _Streams = {"R": {"x": 100_000, "u": 100}, "S": {"y": 100_000, "v": 100}}
_POINTS: _Streams = {"R": {"x": 10_000, "y": 10_000}, "S": {"x": 10_000, "y": 10_000}}
_DISTANCE = "(R.x - S.x) * (R.x - S.x) + (R.y - S.y) * (R.y - S.y) < 5000"
_CASE = "CASE WHEN R.x > S.y THEN mod(R.x + S.y, 2500) ELSE 0 END = 1"
_TEXT = "CAST(R.x + S.y AS VARCHAR(9)) = '100000'"

WORK = {
    "W1": Work(_TWO, ("R.a = S.a",), 500_000, 2_000),
    "W1 parquet": Work(_TWO, ("R.a = S.a",), 500_000, 2_000, parquet=True),
    "W1 large": Work(_LARGE, ("R.a = S.a",), 500_000, 100_000),
    "W1 one key": Work({"R": {"a": 1}, "S": {"a": 1}}, ("R.a = S.a",), 50_000, 1),
    "W2": Work(_THREE, ("R.a = S.a AND S.b = T.b",), 333_333, 2_000),
    "auctions": Work(
        _AUCTIONS,
        ("Bid.auction = Auction.id AND Auction.seller = Person.id",),
        500_000,
        1_000,
        every={"Person": 46, "Auction": 15},
    ),
    "W3": Work(_BAND, _BANDS, 500_000, 2_000),
    "W3 columns": Work(_COLUMNS, ("R.x BETWEEN S.low AND S.high",), 500_000, 2_000),
    "W3 large": Work(_WIDE_BAND, _BANDS, 250_000, 100_000),
    "W4": Work(_EIGHT, tuple(f"R.a = S.a AND R.b <> {i}" for i in range(8)), 100_000, 2_000),
    "theta": Work(_THETA, ("R.x + 98000 < S.y",), 100_000, 2_000, bucketed=False),
    "theta large": Work(_THETA, ("R.x - 99500 > S.y AND R.u <> S.v",), 50_000, 20_000, False),
    "theta formula": Work(_THETA, ("mod(R.x + S.y, 5000) = 1",), 20_000, 2_000, False),
    "theta distance": Work(_POINTS, (_DISTANCE,), 20_000, 2_000, False),
    "theta case": Work(_THETA, (_CASE,), 20_000, 2_000, False),
    "theta unknown": Work(_THETA, (_TEXT,), 5_000, 2_000, False),
    "100 results": Work(_MANY, ("R.a = S.a",), 50_000, 2_000),
}
PARTS = tuple(WORK)
HEAD = ("work", "engine", "tuples", "window", "results", "cpu us/tuple", "wall us/tuple", "gain")


def measure(parts: Sequence[str] = PARTS) -> Measurement:
    pa.set_cpu_count(1)
    rows = measured_before("joins", HEAD, lambda row: row[0] not in parts)
    for name in parts:
        work = WORK[name]
        streams = {stream: _stream(name, stream, work) for stream in work.streams}
        tuples = sum(rows.num_rows for rows in streams.values())
        figures = {}
        with tempfile.TemporaryDirectory() as scratch:
            for engine, run in (("engine", _engine), ("DuckDB", _duckdb)):
                few = {n: rows.slice(0, rows.num_rows // 10) for n, rows in streams.items()}
                run(few, work, scratch)
                cpu, wall = time.process_time(), time.perf_counter()
                found = run(streams, work, scratch)
                figures[engine] = (found, time.process_time() - cpu, time.perf_counter() - wall)
        if figures["engine"][0] != figures["DuckDB"][0]:
            raise AssertionError(f"{name}: {figures}")
        for engine, (found, cpu, wall) in figures.items():
            gain = figures["DuckDB"][1] / cpu
            each = (cpu / tuples * 1e6, wall / tuples * 1e6)
            rows.append((name, engine, tuples, work.window, found, *each, gain))
    rows.sort(key=lambda row: PARTS.index(str(row[0])))
    return Measurement(
        HEAD,
        rows,
        {**dict(_pairs(rows)), **_kernel()},
        f"one thread each, slices of {SLICE:,}, seed 21",
    )


def _pairs(rows: Sequence[tuple[object, ...]]) -> Iterator[tuple[str, float]]:
    """Returns the pairs of tuples per second that a theta join examines."""
    for name, engine, tuples, window, _, cpu, *_ in rows:
        if str(name).startswith("theta") and engine == "engine":
            each = int(str(tuples)) // 2
            seen = int(np.minimum(np.arange(each), int(str(window))).sum())
            taken = float(str(cpu)) * int(str(tuples)) / 1e6
            yield f"{name}, pairs a second", round(2 * seen / taken)


def _kernel() -> dict[str, float]:
    """Returns the tuples per second that the kernel alone takes in W1, and checks how many pairs it finds."""
    work, found = WORK["W1"], 0
    streams = {name: _stream("W1", name, work) for name in work.streams}
    r, s = (np.asarray(rows.column("a")).astype(np.int64) for rows in streams.values())
    rows_of_r, rows_of_s = native.Chains(), native.Chains()
    who, row = np.empty(1 << 18, np.int64), np.empty(1 << 18, np.int64)
    begun = time.process_time()
    for start in range(0, work.count, SLICE):
        ticks = np.arange(start, min(start + SLICE, work.count))
        some = slice(start, start + SLICE)
        rows_of_r.append(r[some], None)
        rows_of_s.append(s[some], None)
        low = np.maximum(ticks - work.window, 0)
        # A pair is found by the later one; of one tick, by the tuple of S.
        for chains, keys, high in ((rows_of_r, s, ticks + 1), (rows_of_s, r, ticks)):
            done, pairs = chains.probe(keys[some], None, 0, low, high, 0, (), who, row)
            if done != len(ticks):
                raise AssertionError(f"{done} of {len(ticks)} tuples have room for their pairs")
            found += pairs
            chains.drop(int(low[-1]))
    taken = time.process_time() - begun
    expected = _duckdb(streams, work, "")
    if found != expected:
        raise AssertionError(f"the kernel finds {found} pairs, DuckDB {expected}")
    return {"W1, tuples a second in the kernel alone": round(2 * work.count / taken)}


def _stream(name: str, stream: str, work: Work) -> pa.Table:
    chance = np.random.default_rng([21, *name.encode(), *stream.encode()])
    ticks = np.arange(0, work.count, work.every.get(stream, 1))
    values = dict[str, npt.NDArray[np.int32]]()
    for column, below in work.streams[stream].items():
        if isinstance(below, tuple):
            values[column] = values[below[0]] + np.int32(below[1])
        else:
            values[column] = chance.integers(0, below, len(ticks)).astype(np.int32)
    return pa.table({"ts": ticks, **values})


def _select(work: Work) -> str:
    return ", ".join(f"{s}.{column}" for s, columns in work.streams.items() for column in columns)


def _engine(streams: dict[str, pa.Table], work: Work, scratch: str) -> int:
    text = "".join(
        f"CREATE STREAM {name} ({', '.join(f'{column} int' for column in columns)});"
        for name, columns in work.streams.items()
    )
    for where in work.where:
        text += (
            f"SELECT {_select(work)} FROM {', '.join(work.streams)} WHERE {where}"
            f" WINDOW RANGE {work.window};"
        )
    program = compile_text(text, stop_after="predicate").program
    faults = {query.name: QueryFaults(False) for query in program.queries}
    join = SoftwareJoin(program.streams, program.queries, SLICE, faults)
    if work.parquet:
        streams = _read(streams, scratch)
    schemas = {stream.name: stream_schema(stream) for stream in program.streams}
    writer: pq.ParquetWriter | None = None
    found = 0
    for start in range(0, work.count, PUSHED):
        for name, rows in streams.items():
            each = work.every.get(name, 1)
            place, until = -(-start // each), -(-(start + PUSHED) // each)
            join.push(name, rows.slice(place, until - place).cast(schemas[name]))
            last = until >= rows.num_rows
            join.advance(name, END_OF_STREAM if last else start + PUSHED - 1)
        for _, results in join.outputs():
            found += results.num_rows
            if work.parquet:
                path = Path(scratch, "results.parquet")
                options = parquet_options(results.schema)
                writer = writer or pq.ParquetWriter(path, results.schema, **options)
                writer.write_table(results)
    if writer is not None:
        writer.close()
    return found


def _read(streams: dict[str, pa.Table], scratch: str) -> dict[str, pa.Table]:
    found = {}
    for name, rows in streams.items():
        path = Path(scratch, f"{name}-{rows.num_rows}.parquet")
        if not path.exists():
            pq.write_table(rows, path)
        found[name] = pq.read_table(path)
    return found


def _duckdb(streams: dict[str, pa.Table], work: Work, scratch: str) -> int:
    connection = duckdb.connect(config={"threads": 1})
    sources = list(streams)
    for name, rows in streams.items():
        if work.parquet:
            _read({name: rows}, scratch)
            path = Path(scratch, f"{name}-{rows.num_rows}.parquet")
            connection.sql(f"CREATE VIEW {name} AS FROM '{path}'")
        else:
            connection.register(name, rows)
    newest = f"greatest({', '.join(f'{name}.ts' for name in sources)})"
    size, found = work.window, 0
    for where in work.where:
        within = " AND ".join(f"{newest} - {name}.ts <= {size}" for name in sources)
        tables = ", ".join(sources)
        if work.bucketed:
            # Tuples within a window lie in the same bucket of its size, or in two adjacent ones.
            bucket, (first, *others) = size + 1, sources
            tables = f"(SELECT *, ts // {bucket} AS bucket FROM {first}) {first}"
            for name in others:
                near = f"[ts // {bucket} - 1, ts // {bucket}, ts // {bucket} + 1]"
                tables += f", (SELECT *, unnest({near}) AS bucket FROM {name}) {name}"
                within += f" AND {first}.bucket = {name}.bucket"
        query = f"SELECT {_select(work)}, least({', '.join(f'{n}.ts' for n in sources)}) AS oldest,"
        query += f" {newest} AS newest FROM {tables} WHERE {where} AND {within}"
        if work.parquet:
            path = Path(scratch, "theirs.parquet")
            (count,) = connection.execute(f"COPY ({query}) TO '{path}'").fetchone() or (0,)
            found += int(count)
        else:
            found += connection.sql(query).to_arrow_table().num_rows
    return found
