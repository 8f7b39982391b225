"""SELECT DISTINCT and UNION: give each row unless an equal one was given within a window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.logical import program as logical
from seustream.engine.host.keys import KeyNumbers
from seustream.engine.kernels import native
from seustream.engine.relational.inputs import Inputs
from seustream.engine.stream.answers import answer
from seustream.engine.stream.faults import QueryFaults
from seustream.engine.stream.growing import Growing
from seustream.engine.stream.merge import timestamps
from seustream.engine.stream.operator import EARLIEST, Answer
from seustream.engine.stream.schema import stream_schema
from seustream.engine.stream.snapshot import Snapshot, unpack
from seustream.engine.stream.taken import taken
from seustream.hdl.device import WindowKind

Ints = npt.NDArray[np.int64]


_FEW = 4096
"""Rows that may be remembered beyond twice the number within the window."""
_ANY = (1 << 64) - 1
"""More than the distance of any two times."""


class DistinctRows:
    """Gives each row of its input unless an equal one was given within the window. It remembers
    when each of these was given: the time, or with ROWS the number of the row."""

    def __init__(self, node: logical.Distinct, faults: QueryFaults) -> None:
        self.node, self.faults = node, {node.name: faults}
        self.input = Inputs(node.inputs)
        self.inputs = self.input.names
        self.push, self.advance = self.input.push, self.input.advance
        self.count = 0
        self.now = EARLIEST
        window = node.window
        reaches = {WindowKind.ROWS: window.size - 1, WindowKind.RANGE: window.size}
        self.reach = reaches.get(window.kind, _ANY)
        types = [of.type for of in stream_schema(node.inputs[0])][1:-1]
        self._remember([pa.array([], of) for of in types], np.empty(0, np.int64))

    def _remember(self, columns: Sequence[pa.Array], given: Ints) -> None:
        """Remembers only these distinct rows, and when they were given."""
        self.keys = KeyNumbers([column.type for column in columns])
        self.given = Growing()  # by key
        self.keys.numbers(columns, len(given))
        self.given.append(given)
        self.enough = 2 * len(given) + _FEW

    @property
    def watermark(self) -> int:
        return self.input.watermark

    def outputs(self) -> Iterator[Answer]:
        for part in self.input.release():
            (rows,) = part.rows
            times, *columns, oldest = [column.combine_chunks() for column in rows.columns]
            some = np.flatnonzero(self._fresh(columns, timestamps(rows)))
            if len(some):
                found = [taken(column, some) for column in (*columns, oldest, times)]
                yield self.node.name, answer(self.node, found)

    def _fresh(self, columns: Sequence[pa.Array], ts: Ints) -> npt.NDArray[np.uint8]:
        """Returns the flags of new rows that are given."""
        clock = ts
        if self.node.window.kind is WindowKind.ROWS:
            clock = np.arange(self.count, self.count + len(ts))
        self.count += len(ts)
        keys, fresh = self.keys.numbers(columns, len(ts)), np.empty(len(ts), np.uint8)
        known = len(self.given)
        self.given.append(np.zeros(len(self.keys) - known, np.int64))
        native.apart(keys, np.ascontiguousarray(clock), self.reach, self.given.view, known, fresh)
        self.now = int(clock[-1])
        if len(self.keys) > self.enough:
            self._remember(*self._within())
        return fresh

    def _within(self) -> tuple[list[pa.Array], Ints]:
        """Returns the rows given within the window, and when."""
        given = self.given.view
        age = np.int64(self.now).view(np.uint64) - given.view(np.uint64)
        some = np.flatnonzero(age <= self.reach)
        some = some[np.argsort(given[some], kind="stable")]
        return self.keys.values(some), given[some]

    def snapshot(self) -> bytes:
        plain = {"text": self.node.text, "count": self.count, "inputs": self.input.plain()}
        columns, given = self._within()
        names = [f"c{number}" for number in range(len(columns))]
        table = pa.table([*columns, pa.array(given)], names=[*names, "at"])
        return Snapshot("distinct", plain, self.input.tables() | {"given": table}).pack()

    def restore(self, snapshot: bytes) -> None:
        """Restores the rows of a query of the same text."""
        state = unpack(snapshot, "distinct")
        if state.plain["text"] != self.node.text:
            return
        self.count = state.plain["count"]
        *columns, at = [column.combine_chunks() for column in state.tables["given"].columns]
        given = np.asarray(at, dtype=np.int64)
        self._remember(columns, given)
        self.now = int(given.max(initial=EARLIEST))
        self.input.restore(state.plain["inputs"], state.tables)
