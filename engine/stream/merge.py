"""The synchroniser on columns: takes Arrow tables, yields slices of one total order.

    merger = Merger(["R", "S"])
    merger.push("R", rows)              # as they arrive; a column ts, then R's own
    merger.boundary("S", 4000)          # nothing later on S starts before 4000
    for part in merger.release(8192): ...
    merger.stop("S")                    # S no longer holds the others back

Order is by timestamp, then stream in the order of the names, then arrival. A tuple is released as
soon as nothing can precede it any more.

A stream promises that its timestamps fall back by no more than `slack` behind the highest so far,
and not below a boundary. Rows that keep the promise are put in order. Rows that break it are late:
they are counted and handed to `on_late`, never dropped silently.

Waiting rows are held in a few sorted runs per stream. Where many wait, a row is copied a bounded number of
times, however many releases it waits for; memory is proportional to the rows that wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.engine.kernels import native
from seustream.engine.stream.operator import EARLIEST, FOREVER
from seustream.engine.stream.taken import rows_taken

Ints = npt.NDArray[np.int64]
OnLate = Callable[[str, pa.Table], None]

END_OF_STREAM = FOREVER
"""The watermark after which nothing comes."""

_LONG = 1 << 16
"""Runs of this many rows are not joined to others."""

_DISTANCE = (1 << 64) - 1
"""No two times are further from each other."""

_FEW, _TIMES = 256, 16
"""So many waiting rows are joined with any that come, or so many times as many as come."""

_SHORT = 4
"""Up to this many runs are not joined, since they may be released together before that pays off."""


class Slice:
    """Consecutive tuples of the total order: per stream its rows in order, with timestamps and
    all other columns, and the stream of each tuple. `stream` may be None where all are of one
    stream."""

    __slots__ = ("_stream", "rows")

    def __init__(self, rows: tuple[pa.Table, ...], stream: Ints | None = None) -> None:
        self.rows, self._stream = rows, stream

    def __len__(self) -> int:
        return sum([rows.num_rows for rows in self.rows])

    @property
    def stream(self) -> Ints:
        """The stream of each tuple."""
        if self._stream is None:
            own = [number for number, rows in enumerate(self.rows) if rows.num_rows]
            self._stream = np.full(len(self), own[0] if own else 0)
        return self._stream

    def part(self, start: int, stop: int) -> Slice:
        """Returns some of the tuples, in the same order."""
        if self._stream is None:
            return Slice(tuple([rows.slice(start, stop - start) for rows in self.rows]))
        many = len(self.rows)
        own = self._stream[start:stop]
        before = np.bincount(self._stream[:start], minlength=many).tolist()
        counts = np.bincount(own, minlength=many).tolist()
        rows = zip(self.rows, before, counts, strict=True)
        return Slice(tuple([of.slice(first, count) for of, first, count in rows]), own)

    def narrowed(self, names: Sequence[str], own: Sequence[str]) -> Slice:
        """Returns a slice of the streams `names` as a slice of `own` only; the others have no rows
        in it."""
        if len(own) == len(names):
            return self
        places = [names.index(name) for name in own]
        rows = tuple([self.rows[place] for place in places])
        if self._stream is None:
            return Slice(rows)
        number = np.full(len(names), -1, np.int64)
        number[places] = np.arange(len(own))
        return Slice(rows, number[self._stream])


class _Run:
    """Rows in order, from `first` to `last`. `floor` is the least timestamp that this run or any
    later one can have; `size` counts the rows in its buffers, waiting or not."""

    __slots__ = ("count", "first", "floor", "last", "rows", "size")

    def __init__(
        self, rows: pa.Table, first: int, last: int, floor: int, size: int | None = None
    ) -> None:
        self.rows, self.first, self.last, self.floor = rows, first, last, floor
        self.count = int(rows.num_rows)
        self.size = self.count if size is None else size


@dataclass(slots=True)
class _Queue:
    """The rows that have arrived on one stream and are not released yet."""

    name: str
    runs: list[_Run] = field(default_factory=list)
    highest: int | None = None
    promise: int | None = None
    stopped: bool = False
    late: int = 0


class Merger:
    """Merges the streams of the given names, in that order."""

    def __init__(self, names: Sequence[str], slack: int = 0, on_late: OnLate | None = None) -> None:
        if slack < 0:
            raise ValueError(f"slack = {slack}: want 0 or more")
        self.queues = [_Queue(name) for name in names]
        self.by_name = {queue.name: queue for queue in self.queues}
        self.slack, self.on_late = slack, on_late

    @property
    def late(self) -> dict[str, int]:
        return {queue.name: queue.late for queue in self.queues if queue.late}

    @property
    def waiting(self) -> dict[str, int]:
        """The number of waiting tuples, by stream."""
        return {q.name: sum(run.count for run in q.runs) for q in self.queues}

    @property
    def bound(self) -> tuple[int, int] | None:
        """The (timestamp, stream number) before which nothing is still to come; None while a stream
        has promised nothing, or when all have stopped."""
        least: tuple[int, int] | None = None
        for number, queue in enumerate(self.queues):
            if queue.stopped:
                continue
            if queue.promise is None:
                return None
            if least is None or queue.promise < least[0]:
                least = queue.promise, number
        return least

    @property
    def watermark(self) -> int:
        """The time at or before which nothing is released any more."""
        if len(self.queues) == 1:
            (queue,) = self.queues
            if queue.stopped:
                return END_OF_STREAM
            return (EARLIEST if queue.promise is None else queue.promise) - 1
        bound = self.bound
        if bound is not None:
            return bound[0] - 1
        ended = all(queue.stopped for queue in self.queues)
        return END_OF_STREAM if ended else EARLIEST - 1

    def advance(self, name: str, watermark: int) -> None:
        """Takes a stream's watermark: nothing at or before it comes any more; `END_OF_STREAM` ends
        it."""
        if watermark == END_OF_STREAM:
            self.stop(name)
        elif watermark >= EARLIEST:
            self.boundary(name, watermark + 1)

    def waiting_rows(self, name: str, schema: pa.Schema) -> pa.Table:
        """Returns the waiting tuples of a stream, by timestamp and arrival."""
        rows = pa.concat_tables(
            [schema.empty_table(), *(run.rows for run in self.by_name[name].runs)]
        )
        return _in_order([rows])[0]

    def push(self, name: str, rows: pa.Table, times: native.TimesOf | None = None) -> None:
        """Takes rows of one stream in the order in which they arrive, with their times if these are
        known."""
        queue = self.by_name[name]
        if not rows.num_rows:
            return
        first, last, ordered = times or native.times(rows.column("ts").__arrow_c_stream__())
        promise, known = queue.promise, queue.highest
        floor = EARLIEST if promise is None else promise
        if known is None:
            known = first
        if ordered and first >= known and first >= floor:
            # The usual case: it needs no comparison of each row with the highest before it.
            queue.highest = last
            self._promise(queue, last - self.slack)
            queue.runs.append(_Run(rows, first, last, floor))
            if len(queue.runs) > _SHORT:
                _join_short(queue.runs)
            return
        flags = np.zeros(rows.num_rows, np.uint8)
        # Only a boundary promises more than the highest timestamp does.
        times_of = rows.column("ts").__arrow_c_stream__()
        queue.highest, late = native.late(times_of, known, min(self.slack, _DISTANCE), floor, flags)
        self._promise(queue, queue.highest - self.slack)
        if late:
            queue.late += late
            is_late = flags.astype(bool)
            if self.on_late is not None:
                self.on_late(name, rows.filter(pa.array(is_late)))
            rows = rows.filter(pa.array(~is_late))
        if rows.num_rows:
            _join_few(queue.runs, rows, floor)
            _join_short(queue.runs)

    def boundary(self, name: str, t: int) -> None:
        """Promises that nothing later on this stream starts before t. A weaker promise than the
        stream's present one changes nothing."""
        self._promise(self.by_name[name], t)

    def stop(self, name: str) -> None:
        """Ends a stream: nothing more comes on it, or none of it matters. It no longer holds the
        others back."""
        self.by_name[name].stopped = True

    def release(self, most: int) -> Iterator[Slice]:
        """Yields all tuples that nothing can precede any more, in slices of at most `most`."""
        return self._of_one(most) if len(self.queues) == 1 else self._of_several(most)

    def _of_several(self, most: int) -> Iterator[Slice]:
        bound = self.bound
        if bound is None and not all(queue.stopped for queue in self.queues):
            return
        parts = [
            _take(queue.runs, i, bound) if queue.runs else None
            for i, queue in enumerate(self.queues)
        ]
        some = [part for part in parts if part is not None]
        if not some:
            return
        sizes = [0 if part is None else part.num_rows for part in parts]
        of = np.repeat(np.arange(len(parts)), sizes)
        if len(some) > 1:
            # A stable sort keeps equal timestamps in stream order, and each stream in its own
            # order.
            ts = np.concatenate([timestamps(part) for part in some])
            of = of[np.argsort(ts, kind="stable")]
        taken = [0] * len(parts)
        for start in range(0, len(of), most):
            mine = of[start : start + most]
            counts = np.bincount(mine, minlength=len(parts)).tolist()
            pieces = []
            for index, part in enumerate(parts):
                if part is None:
                    pieces.append(_EMPTY)
                elif counts[index] == part.num_rows:
                    pieces.append(part)
                else:
                    pieces.append(part.slice(taken[index], counts[index]))
                taken[index] += counts[index]
            yield Slice(tuple(pieces), mine if len(some) > 1 else None)

    def _of_one(self, most: int) -> Iterator[Slice]:
        """Releases a single stream, which needs no merging."""
        queue = self.queues[0]
        if not queue.runs or (queue.promise is None and not queue.stopped):
            return
        rows = _take(queue.runs, 0, None if queue.stopped else (queue.promise or 0, 0))
        if rows is None:
            return
        if rows.num_rows <= most:
            yield Slice((rows,))
            return
        for start in range(0, rows.num_rows, most):
            yield Slice((rows.slice(start, most),))

    def _promise(self, queue: _Queue, t: int) -> None:
        if queue.promise is None or queue.promise < t:
            queue.promise = max(t, EARLIEST)


def never_late(stream: str, rows: pa.Table) -> None:
    """Raises, for a stream that is in order: a late row is a bug in the engine and must not be lost
    silently."""
    raise AssertionError(f"stream {stream}: {rows.num_rows} rows at or before the watermark")


def whole(names: Sequence[str], rows: Mapping[str, pa.Table], most: int) -> Iterator[Slice]:
    """Yields complete streams, each in order, as slices of one total order."""
    merger = Merger(names)
    for name in names:
        if name in rows:
            merger.push(name, rows[name])
        merger.stop(name)
    yield from merger.release(most)


def timestamps(rows: pa.Table) -> Ints:
    """Returns the times of rows; those of one chunk are not copied."""
    ts = rows.column("ts")
    whole = ts.chunk(0) if ts.num_chunks == 1 else ts.combine_chunks()
    times: Ints = whole.to_numpy().astype(np.int64, copy=False)
    return times


def _take(runs: list[_Run], stream: int, bound: tuple[int, int] | None) -> pa.Table | None:
    """Removes and returns the rows of a stream that are within the bound, in order."""
    after = bound is None or stream <= bound[1]
    parts, keep = [], []
    for index, run in enumerate(runs):
        if bound is not None and run.floor > bound[0]:
            keep += runs[index:]
            break
        cut = run.count if bound is None else _place(run, bound[0], after)
        if cut == run.count:
            parts.append(run.rows)
        elif cut:
            parts.append(run.rows.slice(0, cut))
            keep.append(_rest(run, cut))
        else:
            keep.append(run)
    runs[:] = keep
    return _joined(parts) if parts else None


def _place(run: _Run, t: int, after: bool) -> int:
    if run.last < t or (after and run.last == t):
        return run.count
    if run.first > t:
        return 0
    return int(timestamps(run.rows).searchsorted(t, side="right" if after else "left"))


def _rest(run: _Run, cut: int) -> _Run:
    """Returns the part of a run that still waits. Releases the buffers once most of their rows are
    released."""
    rows, size = run.rows.slice(cut), run.size
    if 2 * rows.num_rows < size:
        rows, size = _copied(rows), rows.num_rows
    return _Run(rows, rows.column("ts")[0].as_py(), run.last, run.floor, size)


def _join_short(runs: list[_Run]) -> None:
    """Joins runs at the end like the digits of a binary counter, so that few remain and a row is
    copied once for each doubling."""
    while len(runs) > _SHORT and runs[-1].count >= runs[-2].count and runs[-1].size < _LONG:
        last, before = runs.pop(), runs.pop()
        rows = _joined([before.rows, last.rows])
        first, latest = min(before.first, last.first), max(before.last, last.last)
        runs.append(_Run(rows, first, latest, before.floor))


def _join_few(runs: list[_Run], rows: pa.Table, floor: int) -> None:
    """Adds rows in any order as one run, with those before that are few: the next release then finds one
    run. A row is copied here at most `_FEW` times, or `_TIMES` times by large steps of one size."""
    few, parts = max(_FEW, _TIMES * rows.num_rows), [rows]
    while runs and runs[-1].count <= few:
        run = runs.pop()
        few -= run.count
        parts.append(run.rows)
        floor = run.floor
    parts.reverse()
    whole, ts = _in_order(parts)
    runs.append(_Run(whole, int(ts[0]), int(ts[-1]), floor))


def _joined(parts: list[pa.Table]) -> pa.Table:
    """Joins sorted parts, given in the order of arrival, into one."""
    return parts[0] if len(parts) == 1 else _in_order(parts)[0]


def _in_order(parts: list[pa.Table]) -> tuple[pa.Table, Ints]:
    """Returns the rows of parts, given in the order of arrival, as one table in order, and its times."""
    each = [timestamps(rows) for rows in parts]
    ts = each[0] if len(each) == 1 else np.concatenate(each)
    rows = parts[0] if len(parts) == 1 else pa.concat_tables(parts)
    if (ts[1:] < ts[:-1]).any():
        order = np.argsort(ts, kind="stable")
        return rows_taken(rows, order), ts[order]
    return rows if len(parts) == 1 else rows.combine_chunks(), ts


def _copied(rows: pa.Table) -> pa.Table:
    return rows_taken(rows, np.arange(rows.num_rows))


_EMPTY = pa.table({"ts": pa.array([], pa.int64())})
