"""Arrival order: several streams merged by timestamp, late tuples set apart.

A stream promises that its timestamps fall back by no more than `slack` behind the highest seen.
What keeps the promise is put in order; what breaks it is late: counted and handed to `on_late`,
never dropped silently. A tuple is released when no earlier one can still come on any open stream.
Order is by timestamp, then stream position in the catalogue, then arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
OnLate = Callable[[str, pa.Table], None]


@dataclass(frozen=True, slots=True)
class Slice:
    """Consecutive tuples of the total order: the stream of each, and per stream its rows in
    order. Timestamps and everything else are in the rows."""

    stream: Ints
    rows: tuple[pa.Table, ...]

    def __len__(self) -> int:
        return len(self.stream)


@dataclass(slots=True)
class _Queue:
    """What has arrived on one stream and is not yet released."""

    name: str
    waiting: list[pa.Table] = field(default_factory=list)
    highest: int | None = None
    ended: bool = False
    late: int = 0


class Merger:
    """Merges the streams of the given names, in catalogue order."""

    def __init__(self, names: Sequence[str], slack: int = 0, on_late: OnLate | None = None) -> None:
        if slack < 0:
            raise ValueError(f"slack = {slack}: want 0 or more")
        self.queues = [_Queue(name) for name in names]
        self.by_name = {queue.name: queue for queue in self.queues}
        self.slack, self.on_late = slack, on_late

    @property
    def late(self) -> dict[str, int]:
        return {queue.name: queue.late for queue in self.queues if queue.late}

    def push(self, name: str, rows: pa.Table) -> None:
        """Takes rows of one stream in the order they arrive."""
        queue = self.by_name[name]
        if not rows.num_rows:
            return
        ts = timestamps(rows)
        highest = np.maximum.accumulate(ts)
        if queue.highest is not None:
            highest = np.maximum(highest, queue.highest)
        before = np.concatenate(([ts[0] if queue.highest is None else queue.highest], highest[:-1]))
        # How far it fell back fits 64 bits without a sign, whatever the two timestamps are.
        late = (ts < before) & (before.view(np.uint64) - ts.view(np.uint64) > self.slack)
        queue.highest = int(highest[-1])
        if late.any():
            queue.late += int(late.sum())
            if self.on_late is not None:
                self.on_late(name, rows.filter(pa.array(late)))
            rows = rows.filter(pa.array(~late))
        if rows.num_rows:
            queue.waiting.append(rows)

    def end(self, name: str) -> None:
        """Nothing more comes on this stream, or none of it matters; it no longer holds the
        others back."""
        self.by_name[name].ended = True

    def release(self, most: int) -> Iterator[Slice]:
        """All tuples that can no longer be preceded, in slices of at most `most`."""
        open_queues = [queue for queue in self.queues if not queue.ended]
        if not self.queues or any(queue.highest is None for queue in open_queues):
            return
        promised = [q.highest - self.slack for q in open_queues if q.highest is not None]
        bound = max(min(promised), _EARLIEST) if promised else None
        parts = [self._take(queue, bound) for queue in self.queues]
        ts = np.concatenate([timestamps(part) if part else _NONE for part in parts])
        of = np.concatenate(
            [np.full(part.num_rows if part else 0, i, np.int64) for i, part in enumerate(parts)]
        )
        # A stable sort keeps equal timestamps in stream order, and a stream in its own.
        of = of[np.argsort(ts, kind="stable")]
        taken = [0] * len(parts)
        for start in range(0, len(of), most):
            mine = of[start : start + most]
            counts = np.bincount(mine, minlength=len(parts))
            rows = []
            for index, part in enumerate(parts):
                count = int(counts[index])
                rows.append(part.slice(taken[index], count) if part else _EMPTY)
                taken[index] += count
            yield Slice(mine, tuple(rows))

    def _take(self, queue: _Queue, bound: int | None) -> pa.Table | None:
        """The stream's waiting rows below the bound, in order."""
        if not queue.waiting:
            return None
        rows = pa.concat_tables(queue.waiting)
        ts = timestamps(rows)
        if np.any(ts[1:] < ts[:-1]):
            order = np.argsort(ts, kind="stable")
            rows, ts = rows.take(pa.array(order)), ts[order]
        cut = len(ts) if bound is None else int(np.searchsorted(ts, bound, side="left"))
        queue.waiting = [rows.slice(cut)] if cut < len(ts) else []
        return rows.slice(0, cut)


_EARLIEST = np.iinfo(np.int64).min
_NONE = np.empty(0, np.int64)
_EMPTY = pa.table({"ts": pa.array([], pa.int64())})


def timestamps(rows: pa.Table) -> Ints:
    return np.asarray(rows.column("ts").combine_chunks(), dtype=np.int64)
