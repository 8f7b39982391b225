"""One shard of a query set with a key: its part of every stream in, its results out.

Spark calls a shard once per micro-batch, with the rows of its keys and what every task saw of each
stream, so a shard knows what the streams have brought to all shards. Its results are certain as
early, and its rows late by the same rule, as at a bridge that gets the same micro-batches (decision
0021).

A shard's state after a micro-batch is its *base*, the snapshot of a run, and a *log* of the
micro-batches since. A run that is still in memory continues; any other is rebuilt from both.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from seustream.compiler.logical.levels import nodes
from seustream.compiler.pipeline import Compilation
from seustream.engine.assembly import text_of
from seustream.engine.graph import GraphRun
from seustream.engine.runs import GateState, Lineages, RunState
from seustream.engine.stream.faults import Lines
from seustream.engine.stream.merge import timestamps
from seustream.engine.stream.snapshot import Snapshot, unpack
from seustream.spark_feeder.errors import FeedError

_RUN, _BATCH = "run", "micro-batch"


@dataclass(frozen=True, slots=True)
class KeyedGraph:
    """The queries that a shard runs; sent to Spark's workers as it is.

    compilation  the query and what it reads, nothing else
    answer       the name of the query, or of a stream whose late rows are asked for
    whole        streams whose rows are all in their first micro-batch
    slack, lag, strict   as for a run at a bridge
    late         whether late rows are the answer
    """

    compilation: Compilation
    answer: str
    whole: frozenset[str] = frozenset()
    slack: int | None = None
    lag: int | None = None
    strict: bool = False
    late: bool = False

    @property
    def digest(self) -> str:
        """Returns a digest that differs between graphs whose states are incompatible."""
        program = self.compilation.program
        said = [repr(stream) for stream in program.streams]
        said += [text_of(node) for node in nodes(program)]
        said += [f"{self.answer} {sorted(self.whole)} {self.slack} {self.lag} {self.late}"]
        return hashlib.blake2b("\n".join(said).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class ShardPart:
    """A shard's share of what one task of a micro-batch brings of a stream: the greatest time of
    all rows of the task, and some of the shard's rows. Parts are ordered by task, then by number."""

    stream: str
    task: int
    number: int
    highest: int | None
    rows: bytes | None


@dataclass(slots=True)
class MicroBatch:
    """The rows of each stream by time, with ties in the order of the parts; and the greatest time
    of the stream's rows in all shards, None if there are none."""

    rows: dict[str, pa.Table] = field(default_factory=dict)
    highest: dict[str, int | None] = field(default_factory=dict)

    @classmethod
    def of(cls, parts: Iterable[ShardPart]) -> MicroBatch:
        batch, found = cls(), dict[str, list[pa.Table]]()
        for part in sorted(parts, key=lambda part: (part.task, part.number)):
            tops = [
                top for top in (batch.highest.get(part.stream), part.highest) if top is not None
            ]
            batch.highest[part.stream] = max(tops, default=None)
            if part.rows is not None:
                found.setdefault(part.stream, []).append(read(part.rows))
        for stream, tables in found.items():
            rows = pa.concat_tables(tables)
            if not rows.column("ts").null_count:  # else it is refused
                ts = timestamps(rows)
                if np.any(ts[1:] < ts[:-1]):
                    rows = rows.take(pa.array(np.argsort(ts, kind="stable")))
            batch.rows[stream] = rows
        return batch

    def pack(self) -> bytes:
        return Snapshot(_BATCH, {"highest": self.highest}, self.rows).pack()

    @classmethod
    def unpack(cls, data: bytes) -> MicroBatch:
        found = unpack(data, _BATCH)
        return cls(dict(found.tables), found.plain["highest"])


@dataclass(slots=True)
class ShardCounts:
    """Counts of one call: rows taken and late by stream, evaluations without a value by place."""

    taken: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    faults: Lines = field(default_factory=dict)


class ShardRun:
    """Runs a shard's part in one process."""

    def __init__(
        self, graph: KeyedGraph, base: bytes | None = None, log: Sequence[bytes] = ()
    ) -> None:
        self.graph = graph
        self._late: list[pa.Table] = []
        self.run = GraphRun(
            graph.compilation,
            slack=graph.slack,
            on_late=self._take_late if graph.late else None,
            strict=graph.strict,
        )
        if base is not None:
            self.run.resume(_unpacked(base))
        for one in log:
            for _ in self.take(MicroBatch.unpack(one)):
                pass  # these were delivered
        self._seen = self._counted()

    def take(self, batch: MicroBatch) -> Iterator[pa.Table]:
        """Yields the results that a micro-batch makes certain. Must be iterated to its end."""
        for stream in self.run.streams:
            name = stream.name
            if name not in batch.highest:
                continue
            if name in self.run.ended:
                if batch.highest[name] is not None:
                    raise FeedError(f"conflict: stream {name} has ended (give another checkpoint)")
                continue
            if name in batch.rows:
                self.run.push(name, batch.rows[name])
            if (highest := batch.highest[name]) is not None:
                self.run.promise(name, highest - self.run.gates[name].slack)
            if name in self.graph.whole:
                self.run.end(name)
        if self.graph.lag is not None and (promises := self.run.promises):
            for stream in self.run.streams:
                self.run.promise(stream.name, max(promises.values()) - self.graph.lag)
        yield from self._answers(self.run.advance())

    def end(self) -> Iterator[pa.Table]:
        """Yields the remaining results, since nothing more comes."""
        yield from self._answers(self.run.finish())

    @property
    def ended(self) -> bool:
        return len(self.run.ended) == len(self.run.streams)

    def pack(self) -> bytes:
        """Packs the state as a base. Call it between two calls that were iterated to their end."""
        return _packed(self.run.state())

    def counts(self) -> ShardCounts:
        """Returns the counts since the last call."""
        now, before = self._counted(), self._seen
        self._seen = now
        faults = {
            place: (count - before.faults.get(place, (0, ""))[0], row)
            for place, (count, row) in now.faults.items()
        }
        return ShardCounts(
            now.taken - before.taken,
            now.late - before.late,
            {place: found for place, found in faults.items() if found[0]},
        )

    def _counted(self) -> ShardCounts:
        report = self.run.report
        faults = report.faults.get(self.graph.answer, {})
        return ShardCounts(Counter(report.taken), Counter(report.late), dict(faults))

    def _answers(self, answers: Iterable[tuple[str, pa.Table]]) -> Iterator[pa.Table]:
        for name, rows in answers:
            if name == self.graph.answer and not self.graph.late and rows.num_rows:
                yield rows
        late, self._late = self._late, []
        yield from late

    def _take_late(self, stream: str, rows: pa.Table) -> None:
        if stream == self.graph.answer:
            self._late.append(rows)


def write(rows: pa.Table | pa.RecordBatch) -> bytes:
    """Serialises rows as Spark carries them: one value."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as file:
        file.write(rows)
    return bytes(sink.getvalue())


def read(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(pa.py_buffer(data)).read_all()


def _packed(state: RunState) -> bytes:
    gates = {
        name: [gate.promise, gate.ended, gate.taken, gate.late]
        for name, gate in state.gates.items()
    }
    names = list(state.operators)
    snapshots = pa.array([state.operators[name] for name in names], pa.large_binary())
    tables = {f"gate {name}": gate.waiting for name, gate in state.gates.items()}
    tables["operators"] = pa.table({"name": pa.array(names, pa.string()), "snapshot": snapshots})
    plain = {"gates": gates, "results": state.results, "failed": state.failed}
    if state.lineages is not None:
        plain["lineages"] = asdict(state.lineages)
    return Snapshot(_RUN, plain, tables).pack()


def _unpacked(data: bytes) -> RunState:
    found = unpack(data, _RUN)
    gates: Mapping[str, list[Any]] = found.plain["gates"]
    operators = found.tables["operators"]
    return RunState(
        {name: GateState(found.tables[f"gate {name}"], *one) for name, one in gates.items()},
        dict(zip(operators["name"].to_pylist(), operators["snapshot"].to_pylist(), strict=True)),
        found.plain["results"],
        found.plain["failed"],
        lineages=Lineages(**lineages) if (lineages := found.plain.get("lineages")) else None,
    )
