"""A short digest of the rows that a writer sent, independent of their order and partitioning.

Spark repeats an epoch's rows, but a task that reads shuffled data reads it in another order, and
tasks may be partitioned differently. A content is therefore the sum of one hash per row, in two
lanes of 64 bits. That is enough to distinguish epochs by accident but not by intent; a client with
a token has no need to forge one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from seustream.engine.kernels import native


@dataclass(frozen=True, slots=True)
class Content:
    """The number of rows of one stream, and the sums of their hashes."""

    rows: int = 0
    sums: tuple[int, int] = (0, 0)

    def __add__(self, other: Content) -> Content:
        first, second = ((a + b) % (1 << 64) for a, b in zip(self.sums, other.sums, strict=True))
        return Content(self.rows + other.rows, (first, second))

    def __str__(self) -> str:
        return f"{self.rows:x}-{self.sums[0]:016x}{self.sums[1]:016x}"

    @classmethod
    def parse(cls, text: str) -> Content:
        rows, _, sums = text.partition("-")
        return cls(int(rows, 16), (int(sums[:16], 16), int(sums[16:], 16)))


def content_of(rows: pa.Table) -> Content:
    """Returns the content of rows with a stream's columns."""
    count, first, second = native.contents(rows.__arrow_c_stream__())
    return Content(count, (first, second))


def epoch_content(streams: Mapping[str, Content]) -> str:
    """Returns the content of an epoch's streams; one without rows does not contribute."""
    said = ",".join(f"{len(name)}:{name}={c}" for name, c in sorted(streams.items()) if c.rows)
    return hashlib.blake2b(said.encode(), digest_size=16).hexdigest()
