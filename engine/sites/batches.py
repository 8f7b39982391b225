"""Micro-batches as blocks, with numbers that a batch run again gets again.

A feeder that fails in the middle of a batch runs it once more. Sites ignore a block they had
before, which they tell by its number; so the numbers are written down, by batch, stream and closing
time, before any block goes out.

    numbers = BlockNumbers(path)
    for block in blocks_of_batch(join, numbers, batch, tables, unit=1000):
        cluster.submit(block)
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from engine.sites.errors import MultiJoinError
from engine.sites.model import BlockRows, Join, Row
from engine.sites.where import at_source, carried


class BlockNumbers:
    """The numbers given so far, in a file of one JSON array a line: batch, stream, closing time,
    number. A last line without an end was being written when the power went, and is dropped:
    nothing had been sent under it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.given: dict[tuple[int, int, int], int] = {}
        self.next: dict[int, int] = {}
        self.ends: dict[int, list[tuple[int, int]]] = {}
        if path.exists():
            whole = path.read_bytes()
            end = whole.rfind(b"\n") + 1
            if end < len(whole):
                with path.open("r+b") as file:
                    file.truncate(end)
            for place, line in enumerate(whole[:end].splitlines(), start=1):
                self._take(place, line)

    def _take(self, place: int, line: bytes) -> None:
        try:
            batch, stream, tau, no = json.loads(line)
            expected = self.next.get(stream, 0)
        except (ValueError, TypeError):
            batch, stream, tau, no, expected = 0, 0, 0, -1, 0
        if no != expected:
            raise MultiJoinError(
                f"{self.path}:{place}: not the next block number",
                "the file is written by one feeder alone; start a new one with new sites",
            )
        self._give(batch, stream, tau, no)

    def latest(self, stream: int, before: int) -> float:
        """When the last block of a stream closed, of the batches before one."""
        ends = self.ends.get(stream, [])
        return next((tau for batch, tau in reversed(ends) if batch < before), -math.inf)

    def _give(self, batch: int, stream: int, tau: int, no: int) -> None:
        self.given[batch, stream, tau] = no
        self.next[stream] = no + 1
        ends = self.ends.setdefault(stream, [])
        if ends and ends[-1][0] == batch:
            ends[-1] = batch, max(ends[-1][1], tau)
        else:
            ends.append((batch, tau))

    def of(self, batch: int, blocks: list[tuple[int, int]]) -> list[int]:
        """Numbers of a batch's blocks, each by stream and closing time; new ones are on disk when
        this returns."""
        lines = []
        for stream, tau in blocks:
            if (batch, stream, tau) not in self.given:
                no = self.next.get(stream, 0)
                self._give(batch, stream, tau, no)
                lines.append(json.dumps([batch, stream, tau, no]) + "\n")
        if lines:
            with self.path.open("a") as file:
                file.write("".join(lines))
                file.flush()
                os.fsync(file.fileno())
        return [self.given[batch, stream, tau] for stream, tau in blocks]


def blocks_of_batch(
    join: Join, numbers: BlockNumbers, batch: int, tables: Mapping[int, pa.Table], unit: int
) -> list[BlockRows]:
    """A batch's rows, by stream, as blocks of `unit` ticks each that close at the unit's end; in
    the order of their closing times, then streams. Rows go with their place in their table, and
    what conditions read of them."""
    if unit < 1:
        raise ValueError(f"unit = {unit}: want 1 tick or more")
    rows: dict[tuple[int, int], list[Row]] = {}
    for stream, table in tables.items():
        ts = np.asarray(table.column("ts").combine_chunks(), dtype=np.int64)
        columns = [table.column(name).to_pylist() for name in join.streams[stream].columns]
        # What comes after its time is part of the first block after those that have gone.
        closing = np.maximum(-(-ts // unit) * unit, numbers.latest(stream, batch))
        closing = closing.astype(np.int64)
        payloads, left = carried(join, stream, table), set(at_source(join, stream, table))
        for place, (t, tau) in enumerate(zip(ts.tolist(), closing.tolist(), strict=True)):
            keys = tuple(column[place] for column in columns)
            block = rows.setdefault((tau, stream), [])
            if place in left:
                block.append(Row(keys, t, payloads[place]))
    order = sorted(rows)
    given = numbers.of(batch, [(stream, tau) for tau, stream in order])
    return [
        BlockRows(stream, tau, tuple(rows[tau, stream]), no)
        for (tau, stream), no in zip(order, given, strict=True)
    ]
