"""Loops over rows, compiled. All arrays are contiguous; `Ints` are 64-bit integers, `Flags` bytes that
are 0 where a value is NULL, and None where none is.

Stored rows are numbered as they came, from 0, or from n on where `drop(n)` comes first; `drop(n)` lets go
of the rows before n. A search takes

    start, low, high, base, rest, who, row

Probe i meets the rows from low[i] up to, but without, high[i], and among them those for which every
comparison of `rest` is true: `(op, theirs, their_flags, ours, our_flags)` stands for `theirs op ours`,
with one value for each row from `base` on and one for each probe; `op` is the number of a `Condition`.
Pairs go into `who` (the probe) and `row` (the row's number), in the order of the probes and for each in
the order of the rows, from probe `start` on for as many whole probes as there is room for. A search
gives the first probe there was no room for, and how many pairs it found.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8] | None
Test = tuple[int, Ints, Flags, Ints, Flags]

class Chains:
    """Rows by key. A search costs what it finds."""

    def append(self, keys: Ints, flags: Flags, /) -> None: ...
    def drop(self, before: int, /) -> None: ...
    def probe(
        self,
        keys: Ints,
        flags: Flags,
        start: int,
        low: Ints,
        high: Ints,
        base: int,
        rest: tuple[Test, ...],
        who: Ints,
        row: Ints,
        /,
    ) -> tuple[int, int]:
        """Rows whose key is that of the probe."""

class Runs:
    """Rows by value. A search costs what it finds, and the logarithm of the window squared."""

    def append(self, values: Ints, flags: Flags, /) -> None: ...
    def drop(self, before: int, /) -> None: ...
    def probe(
        self,
        least: Ints,
        greatest: Ints,
        flags: Flags,
        start: int,
        low: Ints,
        high: Ints,
        base: int,
        rest: tuple[Test, ...],
        who: Ints,
        row: Ints,
        /,
    ) -> tuple[int, int]:
        """Rows whose value is between two of the probe, both included."""

class Codes:
    """A number for each distinct string of bytes, from 0 on."""

    def of_texts(self, offsets: Ints, data: npt.NDArray[np.uint8], out: Ints, /) -> None: ...
    def of_values(self, data: npt.NDArray[np.uint8], width: int, out: Ints, /) -> None: ...
    def count(self) -> int: ...

def scan(
    start: int,
    low: Ints,
    high: Ints,
    base: int,
    rest: tuple[Test, ...],
    who: Ints,
    row: Ints,
    /,
) -> tuple[int, int]:
    """A search that looks at every row of every window, a block at a time."""

def places(sorted: Ints, numbers: Ints, after: bool, out: Ints, /) -> None:
    """Like `numpy.searchsorted`, in linear time where the numbers do not fall."""
