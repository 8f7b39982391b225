"""The operator contract: what the runner asks of everything that turns streams into streams.

1. An operator has named inputs, all known when it is made. Nothing is read yet.
2. `push(input, rows)` brings rows of one input, any number of them, in order of their time: a column
   `ts`, then the stream's own. No row is at or before that input's watermark.
3. `advance(input, watermark)` says that no row of the input at or before this time comes any more. A
   watermark never retreats; said again it changes nothing. No row follows `END_OF_STREAM`.
4. `outputs()` gives what is certain by now, by the name of the query it answers: each result once,
   whatever came between two calls. It is iterated to its end before any other call.
5. Once `outputs` has been iterated, no result that is still to come has a time at or before
   `watermark`, which never retreats.
6. How the input is cut into calls changes neither the results nor their order in time.
7. `snapshot()`, between two calls of `outputs`, has everything the operator remembers; a new one that
   `restore`s it goes on as the first would have. Of queries that changed, what is the same goes on.
8. Memory is bounded by what the watermarks allow: rows that no later row can meet are let go.

Times are integers in milliseconds. An operator uses no clock of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import pyarrow as pa

from seustream.engine.stream.faults import QueryFaults

FOREVER = 2**63 - 1
"""The end of what has no end; additions of times saturate at it."""

EARLIEST = -(2**63)
"""The first millisecond there is."""

BEGIN_OF_TIME = EARLIEST - 1
"""The watermark of an input of which nothing is known yet."""

Answer = tuple[str, pa.Table]
"""The name of a query, and some of its results; of one that defines a stream, rows of it."""


class Operator(Protocol):
    @property
    def inputs(self) -> tuple[str, ...]:
        """The streams it reads."""

    @property
    def faults(self) -> Mapping[str, QueryFaults]:
        """The faults of each of its queries, by the query's name."""

    @property
    def watermark(self) -> int:
        """The time at or before which no result comes any more."""

    def push(self, input: str, rows: pa.Table) -> None: ...
    def advance(self, input: str, watermark: int) -> None: ...
    def outputs(self) -> Iterator[Answer]: ...
    def snapshot(self) -> bytes: ...
    def restore(self, snapshot: bytes) -> None: ...
