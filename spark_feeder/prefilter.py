"""The synopsis filter in a Spark job: tuples that can join nothing stay where they were read.

One Spark query reads all streams, in micro-batches. The tasks of each batch report to the driver, for the
columns that others need, which keys occurred in which stretch of time: the synopses. Once every stream
that a row needs has passed its window, a task decides the row with the synopses of all streams: what
may join goes to the bridge, the rest is dropped. Rows that have to wait are written to the checkpoint,
and are part of the next batch.

    batch b   state-(b-1), held-(b-1), rows  →  state-b, held-b, epoch b at the bridge

A batch that is run again begins with the files of the previous one and therefore repeats its work; the
bridge takes an epoch once. When bounded sources have been read, one more batch decides what still waits.
"""

from __future__ import annotations

import json
import math
import shutil
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as f

from seustream.compiler.pipeline import Compilation
from seustream.engine.sites.needs import Needs, needs
from seustream.engine.sites.prefilter import SavedPrefilter, SynopsisFilter, places
from seustream.engine.stream.schema import stream_schema
from seustream.spark_feeder.errors import FeedError, as_feed_errors
from seustream.spark_feeder.sites_feed import of_stream, together
from seustream.spark_feeder.types import for_bridge, spark_schema
from seustream.spark_feeder.workers import settle

BITS = 1 << 14
_SEEN = "stream string, column string, stretch bigint, place bigint, rows bigint, bytes bigint"
"""The columns of the tasks' reports: a key's place, or, without a column, the number of rows."""

Put = Callable[[str, DataFrame, str, int], None]
"""Writes a stream's rows to the bridge: stream, rows, writer, epoch."""


def needed(compilation: Compilation, streaming: Collection[str]) -> Needs:
    """Returns what tuples of the streaming frames need to meet. Raises `FeedError` if that drops
    nothing."""
    found = needs(compilation.program).among(streaming)
    if not found.ways:
        raise FeedError(
            "the synopsis filter has nothing to do: every stream is needed whole",
            "it needs joins that equate columns, and windows that do not count tuples",
        )
    return found


@dataclass
class PrefilterState:
    """The filter's state after a batch: synopses, how far each stream is, what was saved."""

    synopses: SynopsisFilter
    batch: int = -1
    limits: dict[str, float] = field(default_factory=dict)
    ended: bool = False

    # --- files -----------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Saves the state atomically."""
        arrays: dict[str, Any] = {}
        columns = []
        for number, ((stream, column), keys) in enumerate(self.synopses.keys.items()):
            stretches = sorted(keys.row_of)
            rows = [keys.row_of[stretch] for stretch in stretches]
            columns.append([stream, column])
            arrays[f"stretches{number}"] = np.array(stretches, np.int64)
            arrays[f"bits{number}"] = np.packbits(keys.matrix[rows], axis=1)
            arrays[f"first{number}"] = keys.first
        known = {
            "batch": self.batch,
            "ended": self.ended,
            "columns": columns,
            "limits": self.limits,
            "boundaries": {n: s.boundary for n, s in self.synopses.streams.items()},
            "saved": {n: asdict(s.saved) for n, s in self.synopses.streams.items()},
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        with partial.open("wb") as file:
            np.savez(file, known=np.array(json.dumps(known)), **arrays)
        partial.replace(path)

    def load(self, path: Path) -> None:
        with np.load(path) as found:
            known = json.loads(str(found["known"]))
            self.batch, self.ended = known["batch"], known["ended"]
            self.limits = known["limits"]
            for number, (stream, column) in enumerate(known["columns"]):
                keys = self.synopses.keys[stream, column]
                bits = np.unpackbits(found[f"bits{number}"], axis=1).astype(np.bool_)
                for stretch, row in zip(found[f"stretches{number}"].tolist(), bits, strict=True):
                    at = np.flatnonzero(row)
                    keys.add(at, np.full(len(at), stretch * keys.stretch, np.int64))
                keys.first = found[f"first{number}"]
        for name, stream in self.synopses.streams.items():
            stream.boundary = known["boundaries"][name]
            stream.saved = SavedPrefilter(**known["saved"][name])


class Prefilter:
    """The filter of one job. `folder` is its part of the checkpoint. `slack` and `lag` are the
    bridge's: how far timestamps may fall back, and how far a silent stream may stay behind."""

    def __init__(
        self,
        compilation: Compilation,
        frames: Mapping[str, DataFrame],
        folder: Path,
        put: Put,
        *,
        slack: int = 0,
        lag: int | None = None,
        bits: int = BITS,
    ) -> None:
        self.needs = needed(compilation, frames)
        self.frames, self.folder, self.put = dict(frames), folder, put
        self.slack, self.lag, self.bits = slack, lag, bits
        self.schemas = {
            s.name: spark_schema(stream_schema(s)) for s in compilation.streams if s.name in frames
        }
        self.spark: SparkSession = next(iter(self.frames.values())).sparkSession
        self.state = self._state(self._last())
        self._turn = threading.Lock()  # batches run in a thread of Spark's
        self._half: int | None = None
        self._closed = False

    @property
    def saved(self) -> dict[str, SavedPrefilter]:
        return self.state.synopses.saved

    @property
    def ended(self) -> bool:
        """Returns whether an earlier run had read everything and begun to decide the rest; what has
        reached the sources since is not part of this job."""
        return self._ending.exists()

    @property
    def _ending(self) -> Path:
        return self.folder / "ending"

    def rows(self) -> DataFrame:
        """Returns all streams as one frame: each row's stream, and its columns."""
        return together(self.frames)

    # --- batches ------------------------------------------------------------------------

    def take(self, batch: DataFrame, number: int) -> None:
        """Processes a micro-batch; for Spark's foreachBatch."""
        with self._turn:
            if self._closed:
                raise FeedError(f"batch {number} came after the end of the streams")
            # From the file: a failed attempt may have changed the state in memory.
            self.state = self._state(number - 1)
            batch.persist()
            try:
                new = {name: of_stream(batch, name) for name in self.frames}
                self._note(new)
                self._half = number
                self._decide(new, number, self._writer(batch))
                self._half = None
            finally:
                batch.unpersist()

    def close(self, patience: float) -> bool:
        """Lets no further batch begin. Returns whether the current one ended within `patience`
        seconds; raises `FeedError` if it failed with some of it at the bridge, where its epoch is
        then taken."""
        if not self._turn.acquire(timeout=patience):
            return False
        try:
            if self._half is not None:
                raise FeedError(
                    f"batch {self._half} is half done", "let it be run again before the end"
                )
            self._closed = True
            return True
        finally:
            self._turn.release()

    def finish(self) -> None:
        """Decides the waiting rows, since nothing more comes."""
        self.state = self._state(self._last())
        if self.state.ended or self.state.batch < 0:
            return
        self._ending.touch()
        for stream in self.frames:
            self.state.synopses.end(stream)
        self.state.ended = True
        self._decide({}, self.state.batch + 1, (self.folder / "writer").read_text())

    def _writer(self, batch: DataFrame) -> str:
        """Names the writer for the bridge: the Spark query, whose identity is in its checkpoint."""
        path = self.folder / "writer"
        if not path.exists():
            name = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(str(name))
        return path.read_text()

    def _note(self, new: Mapping[str, DataFrame]) -> None:
        """Adds the synopses of new rows, and the progress of their streams."""
        synopses = self.state.synopses
        stretch = {key: keys.stretch for key, keys in synopses.keys.items()}
        told = [
            rows.mapInArrow(_tell(name, stretch, self.bits), _SEEN) for name, rows in new.items()
        ]
        whole = told[0]
        for other in told[1:]:
            whole = whole.union(other)
        found = whole.toArrow()
        for stream, column, at, place, count, size in zip(
            *(found.column(name).to_pylist() for name in found.column_names), strict=True
        ):
            if column is not None:
                keys = synopses.keys[stream, column]
                keys.add(np.array([place]), np.array([at * keys.stretch]))
                continue
            # A report on several rows: `stretch` is their latest time.
            saved = synopses.streams[stream].saved
            saved.tuples += count
            saved.bytes += size
            synopses.promise(stream, at - self.slack)
        if self.lag is not None:
            foremost = max(stream.boundary for stream in synopses.streams.values())
            for stream in self.frames:
                synopses.promise(stream, foremost - self.lag)

    def _decide(self, new: Mapping[str, DataFrame], number: int, writer: str) -> None:
        """Sends on what may join, keeps what has to wait, and proceeds to the next batch."""
        synopses, folder = self.state.synopses, self.folder / f"held-{number}"
        shutil.rmtree(folder, ignore_errors=True)
        limits = {name: synopses.limit(name) for name in self.frames}
        for name in self.frames:
            parts = [new[name]] if name in new else []
            before = self.folder / f"held-{number - 1}" / name
            if before.exists():
                parts.append(self.spark.read.schema(self.schemas[name]).parquet(str(before)))
            if not parts:
                parts = [self.spark.createDataFrame([], self.schemas[name])]
            rows = parts[0] if len(parts) == 1 else parts[0].union(parts[1])
            if limits[name] != math.inf:
                # Waiting rows are forwarded by their time, or the bridge would take them for late.
                waiting = rows.where(f.col("ts") >= f.lit(limits[name]))
                waiting.write.parquet(str(folder / name))
                rows = rows.where(f.col("ts") < f.lit(limits[name]))
            whole, kept = Observation(), Observation()
            rows = rows.observe(whole, f.count(f.lit(1)).alias("rows"))
            late = self.state.limits.get(name, -math.inf)
            may_join = _may_join(synopses, name, late)
            rows = rows.mapInArrow(may_join, self.schemas[name])
            rows = rows.observe(kept, f.count(f.lit(1)).alias("rows"))
            self.put(name, rows, f"{writer}-{name}", number)
            dropped = whole.get["rows"] - kept.get["rows"]
            saved = synopses.streams[name].saved
            saved.dropped += dropped
            saved.dropped_bytes += round(saved.bytes * dropped / max(saved.tuples, 1))
        self.state.limits = limits
        synopses.forget(lambda name: limits[name])
        self.state.batch = number
        self.state.save(self.folder / f"state-{number}.npz")
        for old in (self.folder / f"state-{number - 2}.npz", self.folder / f"held-{number - 2}"):
            shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)

    # --- where it goes on ------------------------------------------------------------------

    def _last(self) -> int:
        """Returns the latest batch whose files are complete."""
        numbers = (int(path.stem.partition("-")[2]) for path in self.folder.glob("state-*.npz"))
        return max(numbers, default=-1)

    def _state(self, batch: int) -> PrefilterState:
        """Returns the state after a batch, which need not be the last: one may be run again."""
        made = PrefilterState(SynopsisFilter(self.needs, list(self.frames), self.bits, self.slack))
        if batch >= 0:
            path = self.folder / f"state-{batch}.npz"
            if not path.exists():
                raise FeedError(
                    f"{path} is missing, which the next batch begins with",
                    "the checkpoint is of a job without the filter, or damaged: begin a new one",
                )
            made.load(path)
        return made


# --- what tasks do -------------------------------------------------------------------------


def _tell(
    name: str, stretches: Mapping[tuple[str, str], int], bits: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns a function that turns rows into reports for the driver."""

    def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        for given in batches:
            if not given.num_rows:
                continue
            batch = for_bridge(given)
            if batch.column("ts").null_count:  # such a row is before and after no time
                with as_feed_errors():
                    raise FeedError(f"schema: stream {name}, column ts: NULL, where none may be")
            ts = np.asarray(batch.column("ts"), dtype=np.int64)
            told: list[tuple[object, ...]] = [
                (name, None, int(ts.max()), None, batch.num_rows, batch.nbytes)
            ]
            for (stream, column), stretch in stretches.items():
                if stream == name:
                    at = places(batch.column(column), bits)
                    seen = np.unique(np.stack((ts // stretch, at))[:, at >= 0], axis=1)
                    told += [(name, column, s, p, None, None) for s, p in seen.T.tolist()]
            kinds = [pa.string(), pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.int64()]
            columns = zip(*told, strict=True)
            yield pa.record_batch(
                [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)],
                names=["stream", "column", "stretch", "place", "rows", "bytes"],
            )

    return tell


def _may_join(
    synopses: SynopsisFilter, name: str, late: float
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns a function that keeps the rows that may join. Rows late for their stream pass: the
    bridge counts them."""

    def may_join(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        for given in batches:
            rows = pa.Table.from_batches([for_bridge(given)])
            ts = np.asarray(rows.column("ts").combine_chunks(), dtype=np.int64)
            kept = synopses.may_join(name, rows) | (ts < late)
            yield given.filter(pa.array(kept))

    return may_join
