"""The operator contract: the runner's requirements on everything that turns streams into streams.

1. An operator has named inputs, all known when it is made. Nothing is read yet.
2. `push(input, rows)` brings rows of one input, any number of them, in order of their time: a column
   `ts`, then the stream's own. No row is at or before that input's watermark.
3. `advance(input, watermark)` says that no row of the input at or before this time comes any more. A
   watermark never retreats; repeating it changes nothing. No row follows `END_OF_STREAM`.
4. `outputs()` gives the results that are certain by now, by the name of the query they answer: each
   result once, whatever calls came in between. It is iterated to its end before any other call.
5. Once `outputs` has been iterated, no result that is still to come has a time at or before
   `watermark`, which never retreats.
6. How the input is cut into calls changes neither the results nor their order in time.
7. `snapshot()`, between two calls of `outputs`, holds everything the operator remembers. A new one
   that `restore`s it goes on as the first would have. If queries changed, unchanged parts go on.
8. Memory is bounded by the watermarks: rows that no later row can meet are dropped.

Times are integers in milliseconds. An operator uses no clock of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import pyarrow as pa

from seustream.engine.stream.faults import QueryFaults

FOREVER = 2**63 - 1
"""The end of an endless span; additions of times saturate at it."""

EARLIEST = -(2**63)
"""The earliest millisecond that can be represented."""

BEGIN_OF_TIME = EARLIEST - 1
"""The watermark of an input about which nothing is known yet."""

Answer = tuple[str, pa.Table]
"""The name of a query and some of its results, or rows of the stream that it defines."""


class Operator(Protocol):
    @property
    def inputs(self) -> tuple[str, ...]:
        """The streams that the operator reads."""

    @property
    def faults(self) -> Mapping[str, QueryFaults]:
        """The faults of each of the operator's queries, by the query's name."""

    @property
    def watermark(self) -> int:
        """The time at or before which no result comes any more."""

    def push(self, input: str, rows: pa.Table) -> None: ...
    def advance(self, input: str, watermark: int) -> None: ...
    def outputs(self) -> Iterator[Answer]: ...
    def snapshot(self) -> bytes: ...
    def restore(self, snapshot: bytes) -> None: ...
