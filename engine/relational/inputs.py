"""The inputs of a relational operator: rows wait here until their place in the order is certain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from seustream.compiler.catalogue import Stream
from seustream.engine.stream.merge import Merger, Slice, never_late
from seustream.engine.stream.schema import stream_schema

SLICE_ROWS = 1 << 16
"""The most rows that an operator takes at a time."""


class Inputs:
    """Streams in one total order: by time, then in the order in which they are given."""

    def __init__(self, streams: Sequence[Stream]) -> None:
        self.streams = tuple(streams)
        self.names = tuple(stream.name for stream in streams)
        self.merger = Merger(self.names, on_late=never_late)
        self.push, self.advance = self.merger.push, self.merger.advance

    @property
    def watermark(self) -> int:
        """The time at or before which no row is released any more."""
        return self.merger.watermark

    def release(self) -> Iterator[Slice]:
        """Yields the rows whose place is certain, in order."""
        return self.merger.release(SLICE_ROWS)

    def plain(self) -> dict[str, Any]:
        """Returns the state of the streams, for the header of a snapshot."""
        return {
            name: {"promise": queue.promise, "ended": queue.stopped}
            for name, queue in self.merger.by_name.items()
        }

    def tables(self) -> dict[str, pa.Table]:
        """Returns the waiting rows, for a snapshot."""
        return {
            f"waiting {s.name}": self.merger.waiting_rows(s.name, stream_schema(s))
            for s in self.streams
        }

    def restore(self, plain: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        """Continues from the state of other inputs with the same names and columns."""
        for stream in self.streams:
            known, waiting = plain.get(stream.name), tables.get(f"waiting {stream.name}")
            if known is None or waiting is None or waiting.schema != stream_schema(stream):
                continue
            self.merger.push(stream.name, waiting)
            if known["promise"] is not None:
                self.merger.boundary(stream.name, known["promise"])
            if known["ended"]:
                self.merger.stop(stream.name)
