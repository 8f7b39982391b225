"""An APAS query as an operator of the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.apas.compile import Compiled
from seustream.compiler.apas.tree import RESERVED, Node
from seustream.compiler.catalogue import Stream
from seustream.compiler.xsql.intervals import END, leaves, tree_of
from seustream.engine.stream.faults import QueryFaults, restore, told
from seustream.engine.stream.merge import END_OF_STREAM
from seustream.engine.stream.operator import BEGIN_OF_TIME, Answer
from seustream.engine.stream.schema import arrow_type
from seustream.engine.stream.snapshot import Snapshot, unpack
from seustream.engine.temporal.columnar.run import ColumnarRun
from seustream.engine.temporal.elements import FOREVER


class TemporalNode:
    """An APAS query over streams of points, or of intervals where a stream has a column te. Its
    results are rows of the stream it defines: the begin is the time, the end a column, NULL where
    it never ends. They go by the name of the query and a #, since another query may have the name
    of that stream. Of a query that is asked for, they are tuples as `result_schema` has them.

    Rows of one time are taken in the order of their ends, so that the order in which they arrive
    does not matter."""

    def __init__(
        self, c: Compiled, streams: Mapping[str, Stream], faults: QueryFaults | None = None
    ) -> None:
        own = QueryFaults() if faults is None else faults
        self.compiled, self.faults = c, {c.name: own}
        self.streams = {name: streams[name] for name in c.network.sources}
        self.inputs = tuple(self.streams)
        trees = {name: tree_of(s) for name, s in self.streams.items()}
        self.run = ColumnarRun(c, trees, faults=own)
        self._waiting: dict[str, list[pa.Table]] = {name: [] for name in self.inputs}
        self._marks = dict.fromkeys(self.inputs, BEGIN_OF_TIME)
        self._watermark = BEGIN_OF_TIME
        self._reached = BEGIN_OF_TIME  # up to where the inputs have been run

    @property
    def watermark(self) -> int:
        return self._watermark

    def push(self, input: str, rows: pa.Table) -> None:
        self._waiting[input].append(rows)

    def advance(self, input: str, watermark: int) -> None:
        self._marks[input] = max(self._marks[input], watermark)

    def outputs(self) -> Iterator[Answer]:
        mark = min(self._marks.values())
        if mark <= self._reached:
            return
        for name in self.inputs:
            rows = self._released(name, mark)
            if rows is not None:
                self.run.push(name, _intervals(self.streams[name], rows))
        self._reached = mark
        last = mark == END_OF_STREAM
        found = list(self.run.finish() if last else self.run.advance(mark + 1))
        self._watermark = END_OF_STREAM if last else self.run.promise - 1
        if found:
            results = pa.concat_tables(found)
            if self.compiled.asked:
                yield self.compiled.name, results.cast(result_schema(self.compiled.tree))
            else:
                yield f"{self.compiled.name}#", _rows(results)

    def _released(self, name: str, mark: int) -> pa.Table | None:
        """The rows up to a time that have not been taken yet."""
        if not self._waiting[name]:
            return None
        rows = pa.concat_tables(self._waiting[name])
        cut = int(np.searchsorted(rows["ts"].to_numpy(), mark, "right"))
        self._waiting[name] = [rows.slice(cut)] if cut < rows.num_rows else []
        return rows.slice(0, cut) if cut else None

    def snapshot(self) -> bytes:
        tables = {
            f"waiting {name}": pa.concat_tables(parts)
            for name, parts in self._waiting.items()
            if parts
        }
        plain = {
            "text": self.compiled.source.text.strip(),
            "run": self.run.save(),
            "promise": self.run.promise,
            "watermark": self._watermark,
            "reached": self._reached,
            "marks": self._marks,
            "faults": told(self.faults),
        }
        return Snapshot("temporal", plain, tables).pack()

    def restore(self, snapshot: bytes) -> None:
        """Of another text it begins anew."""
        state = unpack(snapshot, "temporal")
        if state.plain["text"] != self.compiled.source.text.strip():
            return
        self.run.load(state.plain["run"])
        self.run.promise = state.plain["promise"]
        for name in self.inputs:
            if (waiting := state.tables.get(f"waiting {name}")) is not None:
                self._waiting[name] = [waiting]
        self._reached, self._watermark = state.plain["reached"], state.plain["watermark"]
        self._marks |= state.plain["marks"]
        restore(self.faults, state.plain["faults"])


def result_schema(tree: Node) -> pa.Schema:
    """The columns of the results of a query that is asked for: ts, te, and its leaves by path."""
    times = [pa.field(name, pa.int64(), nullable=False) for name in RESERVED]
    leaves = [
        pa.field(".".join(path), arrow_type(type))
        for path, type in zip(tree.paths, tree.types, strict=True)
    ]
    return pa.schema([*times, *leaves])


def _intervals(stream: Stream, rows: pa.Table) -> pa.Table:
    """Rows of a stream as tuples that hold from ts to te, by (ts, te); of points, te is ts. Of the
    results of another APAS query, those without an end hold for ever."""
    begin = rows["ts"]
    ends = next((c for c in stream.columns if c.name == END and c.type.is_integer), None)
    never = pa.scalar(FOREVER) if stream.intervals else begin
    end = begin if ends is None else pc.coalesce(rows[END].cast(pa.int64()), never)
    types = tree_of(stream).types
    columns = [
        rows[column.name].cast(arrow_type(type))
        for column, type in zip(leaves(stream), types, strict=True)
    ]
    names = ["ts", "te", *(column.name for column in leaves(stream))]
    table = pa.table([begin, end, *columns], names=names)
    order = np.lexsort((table["te"].to_numpy(), table["ts"].to_numpy()))
    return table.take(pa.array(order))


def _rows(results: pa.Table) -> pa.Table:
    """Results in the order of their begin, with their end."""
    end = pc.if_else(pc.equal(results["te"], FOREVER), pa.scalar(None, pa.int64()), results["te"])
    table = results.set_column(1, "te", end)
    return table.take(pa.array(np.argsort(table["ts"].to_numpy(), kind="stable")))
