"""A query's results by offset, from 0: stable, and kept until every reader has trimmed them."""

from __future__ import annotations

from collections import deque

import pyarrow as pa

from seustream.cosim.bridge.errors import BridgeError

_SMALL = 4096
"""Tables with fewer rows are merged: many small ones cost more than their rows."""


class ResultLog:
    """Rows [first, end), which are only counted if `kept` is false. `readers` are the offsets up to
    which each has read; after a restart they are known before the results are. With `most`, only
    the last rows and bytes are kept, and their readers hold up nothing. `run` tells the
    registrations of a name apart."""

    def __init__(
        self,
        name: str,
        schema: pa.Schema,
        kept: bool = True,
        readers: dict[str, int] | None = None,
        most: tuple[int, int] | None = None,
        run: int = 1,
    ) -> None:
        self.name, self.schema, self.kept = name, schema, kept
        self.most, self.run = most, run
        self.first = self.end = self.bytes = 0
        self.readers = {} if readers is None else readers
        self._chunks: deque[pa.Table] = deque()

    def __len__(self) -> int:
        return self.end - self.first

    def append(self, rows: pa.Table) -> None:
        self.end += rows.num_rows
        if not self.kept:
            self.first = self.end
            return
        if self._chunks and self._chunks[-1].num_rows + rows.num_rows <= _SMALL:
            last = self._chunks.pop()
            self.bytes -= last.nbytes
            rows = pa.concat_tables([last, rows]).combine_chunks()
        self._chunks.append(rows)
        self.bytes += rows.nbytes
        self.drop()

    def read(self, start: int, end: int) -> pa.Table:
        """Returns rows [start, end); raises `BridgeError` for rows that are gone or not there yet."""
        if start < self.first:
            raise BridgeError(
                "trimmed",
                f"{self.name}: results {start:,} to {self.first:,} are gone",
                self._why_gone(),
            )
        if not start <= end <= self.end:
            raise BridgeError(
                "gap", f"{self.name}: no results {start:,} to {end:,} of {self.end:,}"
            )
        parts, at = [], self.first
        for chunk in self._chunks:
            low, high = max(start - at, 0), min(end - at, chunk.num_rows)
            if low < high:
                parts.append(chunk.slice(low, high - low))
            at += chunk.num_rows
            if at >= end:
                break
        return pa.concat_tables(parts) if parts else self.schema.empty_table()

    def _why_gone(self) -> str:
        if not self.kept:
            return "this query's results are not kept"
        return "they gave way to newer ones" if self.most else "a reader has trimmed them"

    def moves(self, reader: str, offset: int) -> bool:
        """Returns whether a trim advances a reader; raises `BridgeError` (gap) for rows that are
        not there."""
        if not 0 <= offset <= self.end:
            raise BridgeError(
                "gap", f"{self.name}: cannot trim to {offset:,}, there are {self.end:,} results"
            )
        return offset > self.readers.get(reader, -1)

    def trim(self, reader: str, offset: int) -> None:
        """Records that a reader has finished with the rows before the offset. Rows are kept for
        every reader that has ever trimmed."""
        if self.moves(reader, offset):
            self.readers[reader] = offset
        self.drop()

    def give_up(self) -> None:
        """Discards all rows; their offsets stay."""
        self._chunks.clear()
        self.first, self.bytes = self.end, 0

    def drop(self) -> None:
        """Discards what all readers have read, and any excess over `most`."""
        if self.most is not None:
            self._bound(*self.most)
            return
        offset = min(self.readers.values(), default=0)
        self._drop_before(offset)

    def _bound(self, rows: int, size: int) -> None:
        """Discards the oldest rows; at least one stays."""
        while self.bytes > size and len(self._chunks) > 1:
            self._drop_before(self.first + self._chunks[0].num_rows)
        if self.bytes > size and len(self) > 1:
            self._drop_before(self.end - max(len(self) * size // self.bytes, 1))
        self._drop_before(self.end - rows)

    def _drop_before(self, offset: int) -> None:
        while self._chunks and self.first < offset:
            chunk = self._chunks.popleft()
            self.bytes -= chunk.nbytes
            beyond = offset - self.first
            if beyond < chunk.num_rows:
                self._chunks.appendleft(chunk.slice(beyond))
                self.bytes += self._chunks[0].nbytes
            self.first += min(beyond, chunk.num_rows)

    # --- snapshots ------------------------------------------------------------

    @property
    def rows(self) -> pa.Table:
        """Returns all kept rows."""
        return pa.concat_tables(self._chunks) if self._chunks else self.schema.empty_table()

    def restore(self, first: int, end: int, rows: pa.Table) -> None:
        self.first, self.end = first, end
        self._chunks = deque([rows] if rows.num_rows else [])
        self.bytes = rows.nbytes if rows.num_rows else 0
