"""UNION ALL: merges the rows of several streams into one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from seustream.compiler.logical import program as logical
from seustream.engine.relational.inputs import Inputs
from seustream.engine.stream.answers import answer
from seustream.engine.stream.faults import QueryFaults
from seustream.engine.stream.operator import Answer
from seustream.engine.stream.snapshot import Snapshot, unpack


class UnionOperator:
    """Merges its inputs by time, then by input. It remembers only the rows that wait for the
    watermark of another input."""

    def __init__(self, node: logical.UnionAll, faults: QueryFaults) -> None:
        self.node, self.faults = node, {node.name: faults}
        self.rows = Inputs(node.inputs)
        self.inputs = self.rows.names
        self.push, self.advance = self.rows.push, self.rows.advance

    @property
    def watermark(self) -> int:
        return self.rows.watermark

    def outputs(self) -> Iterator[Answer]:
        for part in self.rows.release():
            # Row i of the slice is the next one of its own stream.
            starts = np.cumsum([0, *(rows.num_rows for rows in part.rows)])[:-1]
            places = np.empty(len(part), np.int64)
            for stream, start in enumerate(starts):
                mine = part.stream == stream
                places[mine] = start + np.arange(mine.sum())
            some = [rows for rows in part.rows if rows.num_rows]
            names = some[0].column_names
            merged = pa.concat_tables([rows.rename_columns(names) for rows in some]).take(places)
            newest, *columns, oldest = merged.columns
            yield self.node.name, answer(self.node, [*columns, oldest, newest])

    def snapshot(self) -> bytes:
        return Snapshot("union", {"inputs": self.rows.plain()}, self.rows.tables()).pack()

    def restore(self, snapshot: bytes) -> None:
        state = unpack(snapshot, "union")
        self.rows.restore(state.plain["inputs"], state.tables)
