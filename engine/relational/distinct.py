"""SELECT DISTINCT and UNION: give each row unless an equal one was given within a window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from seustream.compiler.logical import program as logical
from seustream.engine.relational.inputs import Inputs
from seustream.engine.stream.answers import answer
from seustream.engine.stream.faults import QueryFaults
from seustream.engine.stream.merge import timestamps
from seustream.engine.stream.operator import Answer
from seustream.engine.stream.snapshot import Snapshot, unpack
from seustream.hdl.device import WindowKind


class DistinctRows:
    """Gives each row of its input unless an equal one was given within the window. It remembers
    when each of these was given: the time, or with ROWS the number of the row."""

    def __init__(self, node: logical.Distinct, faults: QueryFaults) -> None:
        self.node, self.faults = node, {node.name: faults}
        self.input = Inputs(node.inputs)
        self.inputs = self.input.names
        self.push, self.advance = self.input.push, self.input.advance
        self.given: dict[tuple[Any, ...], int] = {}
        self.count = 0

    @property
    def watermark(self) -> int:
        return self.input.watermark

    def outputs(self) -> Iterator[Answer]:
        for part in self.input.release():
            (rows,) = part.rows
            times, *columns, oldest = rows.columns
            by_rows = self.node.window.kind is WindowKind.ROWS
            numbers = np.arange(self.count, self.count + rows.num_rows)
            clock = (numbers if by_rows else timestamps(rows)).tolist()
            self.count += rows.num_rows
            cells = zip(*(_comparable(column) for column in columns), strict=True)
            fresh = [self._is_new(key, now) for key, now in zip(cells, clock, strict=True)]
            self._forget(clock[-1])
            some = pa.array(np.flatnonzero(fresh))
            if len(some):
                found = [column.take(some) for column in (*columns, oldest, times)]
                yield self.node.name, answer(self.node, found)

    def _is_new(self, key: tuple[Any, ...], now: int) -> bool:
        before = self.given.get(key)
        if before is not None and self._within(before, now):
            return False
        self.given.pop(key, None)  # so that keys stay in the order they were given
        self.given[key] = now
        return True

    def _within(self, before: int, now: int) -> bool:
        window = self.node.window
        if window.kind is WindowKind.UNBOUNDED:
            return True
        last = now - before
        return last < window.size if window.kind is WindowKind.ROWS else last <= window.size

    def _forget(self, now: int) -> None:
        """Forgets rows that are out of the window, oldest first."""
        while self.given:
            key, before = next(iter(self.given.items()))
            if self._within(before, now):
                return
            del self.given[key]

    def snapshot(self) -> bytes:
        plain = {"text": self.node.text, "count": self.count, "inputs": self.input.plain()}

        schema = self.input.tables()[f"waiting {self.inputs[0]}"].schema
        columns = list(zip(*self.given, strict=True)) or [()] * len(self.node.items)
        names = [f"c{number}" for number in range(len(self.node.items))]
        cells = [
            pa.array(column, schema.field(number + 1).type) for number, column in enumerate(columns)
        ]
        given = pa.table([*cells, pa.array(self.given.values(), pa.int64())], names=[*names, "at"])
        return Snapshot("distinct", plain, self.input.tables() | {"given": given}).pack()

    def restore(self, snapshot: bytes) -> None:
        """Restores the rows of a query of the same text."""
        state = unpack(snapshot, "distinct")
        if state.plain["text"] != self.node.text:
            return
        self.count = state.plain["count"]
        *columns, at = state.tables["given"].columns
        keys = zip(*(_comparable(column) for column in columns), strict=True)
        self.given = dict(zip(keys, at.to_pylist(), strict=True))
        self.input.restore(state.plain["inputs"], state.tables)


def _comparable(column: pa.ChunkedArray) -> list[Any]:
    """Returns the values of a column, with lists as tuples."""
    values: list[Any] = column.to_pylist()
    if pa.types.is_list(column.type):
        return [None if value is None else tuple(value) for value in values]
    return values
