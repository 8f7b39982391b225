"""The columnar synchroniser, compared with two others on random interleavings.

The definition in plain Python keeps everything it was ever given, so it reveals tuples that are
lost, doubled, released too early or too late, wrongly called late, or in another order. The
reference synchroniser (Algorithm 1) knows neither slack nor late tuples; on streams in order both
release the same at every step.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from seustream.engine.stream import merge
from seustream.engine.stream.merge import Merger, Slice, timestamps
from seustream.engine.stream.taken import Places, rows_taken
from seustream.engine.temporal.elements import StreamElement
from tests.engine.temporal.reference.elements import STOP, boundary, insertion
from tests.engine.temporal.reference.synchroniser import Synchroniser

Tuple = tuple[int, int, int]
"""Timestamp, stream, arrival in its stream."""

LOW, HIGH = -(2**63), 2**63 - 1


def rows(ts: list[int], first: int) -> pa.Table:
    ids = pa.array(range(first, first + len(ts)), pa.int64())
    return pa.table({"ts": pa.array(ts, pa.int64()), "id": ids})


@dataclass
class Definition:
    """The merge as its docstring states it, tuple by tuple."""

    streams: int
    slack: int
    waiting: list[Tuple] = field(default_factory=list)
    late: list[Tuple] = field(default_factory=list)
    released: list[Tuple] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.highest: list[int | None] = [None] * self.streams
        self.count = [0] * self.streams
        self.ended = [False] * self.streams
        self.promise: list[int | None] = [None] * self.streams

    def boundary(self, stream: int, t: int) -> None:
        promise = self.promise[stream]
        self.promise[stream] = t if promise is None else max(promise, t)

    def push(self, stream: int, ts: list[int]) -> None:
        for t in ts:
            highest = self.highest[stream]
            promise = self.promise[stream]
            late = promise is not None and t < promise
            (self.late if late else self.waiting).append((t, stream, self.count[stream]))
            self.count[stream] += 1
            self.highest[stream] = t if highest is None else max(t, highest)
            self.boundary(stream, max(t - self.slack, LOW))

    def release(self) -> list[Tuple]:
        bounds = [(p, i) for i, p in enumerate(self.promise) if not self.ended[i]]
        known = [(p, i) for p, i in bounds if p is not None]
        if len(known) < len(bounds):
            return []
        now = sorted(t for t in self.waiting if all(t[:2] <= bound for bound in known))
        self.waiting = [t for t in self.waiting if t not in now]
        self.released += now
        return now


class Run:
    """A merger and its definition, with the same input."""

    def __init__(self, streams: int, slack: int) -> None:
        self.names = [f"S{i}" for i in range(streams)]
        self.late: list[Tuple] = []
        self.merger = Merger(self.names, slack, self._late)
        self.want = Definition(streams, slack)

    def _late(self, name: str, found: pa.Table) -> None:
        self.late += self._tuples(self.names.index(name), found)

    def _tuples(self, stream: int, found: pa.Table) -> list[Tuple]:
        ids = found.column("id").to_pylist() if found.num_rows else []
        return [(t, stream, i) for t, i in zip(timestamps(found).tolist(), ids, strict=True)]

    def push(self, stream: int, ts: list[int]) -> None:
        first = self.want.count[stream]
        self.merger.push(self.names[stream], rows(ts, first))
        self.want.push(stream, ts)

    def boundary(self, stream: int, t: int) -> None:
        self.merger.boundary(self.names[stream], t)
        self.want.boundary(stream, t)

    def end(self, stream: int) -> None:
        self.merger.stop(self.names[stream])
        self.want.ended[stream] = True

    def release(self, most: int) -> None:
        want = self.want.release()
        slices = list(self.merger.release(most))
        assert [len(part) for part in slices] == [
            min(most, len(want) - start) for start in range(0, len(want), most)
        ]
        assert [t for part in slices for t in self.opened(part)] == want
        assert sum(self.merger.waiting.values()) == len(self.want.waiting)

    def opened(self, part: Slice) -> list[Tuple]:
        """Returns a slice as tuples: each stream gives its rows in turn."""
        mine = [iter(self._tuples(i, r)) for i, r in enumerate(part.rows)]
        found = [next(mine[stream]) for stream in part.stream.tolist()]
        assert all(next(rest, None) is None for rest in mine)
        return found

    def check_late(self) -> None:
        assert sorted(self.late) == sorted(self.want.late)
        counts = {name: sum(t[1] == i for t in self.late) for i, name in enumerate(self.names)}
        assert self.merger.late == {name: count for name, count in counts.items() if count}


@pytest.mark.parametrize("seed", range(120))
def test_random_interleavings(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    streams, slack = chance.randint(1, 4), chance.choice((0, 0, 1, 3, 10, 2**40))
    run = Run(streams, slack)
    now = [0] * streams
    jitter = chance.choice((0, 1, 4, 12))
    for _ in range(chance.randint(1, 60)):
        stream = chance.randrange(streams)
        action = chance.random()
        if action < 0.6 and not run.want.ended[stream]:
            ts = []
            for _ in range(chance.randint(0, 6)):
                now[stream] += chance.choice((0, 0, 1, 2, 9))
                ts.append(now[stream] - chance.randint(0, jitter))
            run.push(stream, ts)
        elif action < 0.65:
            run.end(stream)
        elif action < 0.75:
            now[stream] += chance.choice((-3, 0, 2, 20))
            run.boundary(stream, now[stream])
        else:
            run.release(chance.choice((1, 2, 5, 1000)))
    for stream in range(streams):
        run.end(stream)
    run.release(7)
    run.check_late()
    assert not run.want.waiting
    assert len(run.late) + len(run.want.released) == sum(run.want.count)


def test_the_random_cases_are_worth_running() -> None:
    """Late tuples, ties and tuples that wait all occur."""
    run = Run(2, 3)
    run.push(0, [5, 5, 9, 6, 5, 9])
    assert run.want.late == [(5, 0, 4)]
    run.push(1, [5, 7])
    run.release(2)
    assert run.want.released == []
    run.push(1, [10])
    run.release(2)
    assert run.want.released == [(5, 0, 0), (5, 0, 1), (5, 1, 0), (6, 0, 3)]
    assert len(run.want.waiting) == 4
    run.check_late()


class Recorder:
    """Records what the reference synchroniser releases."""

    def __init__(self) -> None:
        self.released: list[Tuple] = []

    def execute(self, source: int, x: StreamElement) -> None:
        number = x.values[0]
        assert isinstance(number, int)
        self.released.append((x.ts, source, number))

    def reorganise(self, now: int) -> None: ...
    def broadcast(self, source: int, x: StreamElement) -> None: ...
    def control(self, source: int, x: StreamElement) -> None: ...
    def end(self) -> None: ...


@pytest.mark.parametrize("seed", range(80))
def test_equals_the_reference_at_every_step(seed: int) -> None:
    """Interleaves pushes, boundaries and stops of streams in order."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    streams = chance.randint(1, 5)
    seen = Recorder()
    reference = Synchroniser(streams, seen)
    run = Run(streams, 0)
    now, stopped = [0] * streams, [False] * streams
    for _ in range(chance.randint(5, 60)):
        stream = chance.randrange(streams)
        if stopped[stream]:
            continue
        action = chance.random()
        if action < 0.7:
            for _ in range(chance.randint(1, 5)):
                now[stream] += chance.choice((0, 0, 1, 3, 8))
                number = run.want.count[stream]
                run.push(stream, [now[stream]])
                reference.put(stream, insertion(now[stream], now[stream], number))
        elif action < 0.9:
            now[stream] += chance.choice((0, 1, 15))
            run.boundary(stream, now[stream])
            reference.put(stream, boundary(now[stream]))
        else:
            run.end(stream)
            reference.put(stream, STOP)
            stopped[stream] = True
        run.release(3)
        assert run.want.released == seen.released
    for stream in range(streams):
        if not stopped[stream]:
            run.end(stream)
            reference.put(stream, STOP)
    run.release(3)
    assert run.want.released == seen.released


@pytest.mark.parametrize("seed", range(30))
def test_at_the_ends_of_time(seed: int) -> None:
    """Here differences of timestamps do not fit 64 bits, nor do sums with the slack."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    slack = chance.choice((0, 1, 5, 2**53 + 1, 2**63 - 1, 2**64))
    run = Run(2, slack)
    near = [LOW, LOW + 1, LOW + 5, -(2**53) - 1, -1, 0, 2**53, 2**53 + 1, HIGH - 6, HIGH - 1, HIGH]
    for _ in range(12):
        ts = chance.choices(near, k=chance.randint(0, 4))
        run.push(chance.randrange(2), sorted(ts) if chance.random() < 0.7 else ts)
        run.release(3)
    run.end(0)
    run.end(1)
    run.release(3)
    run.check_late()
    assert not run.want.waiting


def test_one_tick_past_the_slack_is_late_however_large_the_timestamps() -> None:
    """As doubles, these timestamps are all equal."""
    run = Run(1, 10)
    run.push(0, [HIGH, HIGH - 10, HIGH - 11])
    assert run.want.late == [(HIGH - 11, 0, 2)]
    run.check_late()


def test_a_tuple_at_the_bound_waits_for_the_streams_before_its_own() -> None:
    """A stream that goes first may still bring another tuple with this timestamp."""
    run = Run(2, 0)
    run.push(1, [1])
    run.push(0, [1])
    run.release(9)
    assert run.want.released == [(1, 0, 0)]
    run.push(0, [1, 2])
    run.release(9)
    assert run.want.released == [(1, 0, 0), (1, 0, 1), (1, 1, 0)]


def test_a_boundary_lets_the_others_pass_and_is_a_promise() -> None:
    run = Run(2, 0)
    run.push(0, [3, 7])
    run.boundary(1, 7)
    run.release(9)
    assert run.want.released == [(3, 0, 0), (7, 0, 1)]
    run.push(1, [6, 7])
    assert run.want.late == [(6, 1, 0)]
    run.boundary(1, 2)  # an older boundary has no effect
    run.boundary(0, 8)
    run.release(9)
    assert run.want.released[-1] == (7, 1, 1)
    run.check_late()


def test_the_bound_is_the_least_promise() -> None:
    merger = Merger(["R", "S"], slack=2)
    assert merger.bound is None
    merger.push("R", rows([10], 0))
    assert merger.bound is None
    merger.boundary("S", 9)
    assert merger.bound == (8, 0)
    merger.boundary("R", 9)
    assert merger.bound == (9, 0)
    merger.stop("R")
    assert merger.bound == (9, 1)


def test_memory_is_proportional_to_what_waits() -> None:
    """Of a long push of which one tuple waits, only that tuple is held; and many short pushes are
    held in few runs."""
    merger = Merger(["R", "S"])
    merger.push("R", rows(list(range(50_000)), 0))
    merger.boundary("S", 49_999)
    assert sum(len(part) for part in merger.release(10_000)) == 50_000
    merger.push("R", rows(list(range(60_000, 110_000)), 0))
    merger.boundary("S", 109_998)
    assert sum(len(part) for part in merger.release(10_000)) == 49_999
    (run,) = merger.queues[0].runs
    assert run.rows.get_total_buffer_size() < 100
    for t in range(120_000, 121_000):
        merger.push("R", rows([t], 0))
    assert merger.waiting == {"R": 1001, "S": 0}
    assert len(merger.queues[0].runs) < 15


@pytest.mark.parametrize("size", [1, 50])
def test_a_row_that_waits_long_is_copied_a_bounded_number_of_times(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = []

    def counting(given: pa.Table, places: Places) -> pa.Table:
        copied.append(len(places))
        return rows_taken(given, places)

    monkeypatch.setattr(merge, "rows_taken", counting)
    merger, count = Merger(["R"], slack=1 << 20), 10_000
    for first in range(0, count, size):
        merger.push("R", rows([count - first - i for i in range(size)], first))
    assert sum(copied) < 300 * count  # each step would copy all before it: 10,000 / 2 for size 1
    assert merger.waiting == {"R": count}
    merger.stop("R")
    (found,) = merger.release(count)
    assert timestamps(found.rows[0]).tolist() == list(range(1, count + 1))


def test_a_stream_without_tuples_holds_the_others_back_until_it_ends() -> None:
    run = Run(3, 0)
    run.push(0, [1, 2, 3])
    run.push(2, [5])
    run.release(9)
    assert run.want.released == []
    run.end(1)
    run.release(9)
    assert run.want.released == [(1, 0, 0), (2, 0, 1), (3, 0, 2)]
    run.end(0)
    run.release(9)
    assert run.want.released[-1] == (5, 2, 0)


def test_nothing_at_all() -> None:
    assert list(Merger([]).release(5)) == []
    merger = Merger(["R", "S"])
    assert list(merger.release(5)) == []
    merger.push("R", rows([], 0))
    merger.stop("R")
    merger.stop("S")
    assert list(merger.release(5)) == []
    assert merger.late == {}


def test_late_rows_are_whole_rows() -> None:
    seen: list[tuple[str, pa.Table]] = []
    merger = Merger(["R"], 0, lambda name, found: seen.append((name, found)))
    late = pa.table({"ts": [3, 1, 2, 4], "t": ["x", "y", "z", None]})
    merger.push("R", late)
    assert [(name, found.to_pydict()) for name, found in seen] == [
        ("R", {"ts": [1, 2], "t": ["y", "z"]})
    ]
    merger.stop("R")
    (part,) = merger.release(9)
    assert part.rows[0].to_pydict() == {"ts": [3, 4], "t": ["x", None]}


def test_without_a_taker_late_rows_are_counted() -> None:
    merger = Merger(["R", "S"])
    merger.push("S", rows([2, 1, 0], 0))
    assert merger.late == {"S": 2}


def test_slices_of_one_release_are_made_of_one_bound() -> None:
    """Tuples that arrive while slices are being taken wait for the next release."""
    merger = Merger(["R"])
    merger.push("R", rows([1, 2, 3, 9], 0))
    slices = merger.release(1)
    assert len(next(slices)) == 1
    merger.push("R", rows([10, 11], 4))
    assert [timestamps(part.rows[0]).tolist() for part in slices] == [[2], [3], [9]]
    assert [timestamps(part.rows[0]).tolist() for part in merger.release(9)] == [[10, 11]]


def test_a_negative_slack_is_refused() -> None:
    with pytest.raises(ValueError, match="slack = -1: want 0 or more"):
        Merger(["R"], -1)
