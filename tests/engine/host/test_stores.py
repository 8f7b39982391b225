"""Row stores of several streams, filled in one total order and trimmed by the needs of the
windows."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import INT
from seustream.engine.host.stores import Stores
from seustream.engine.stream.merge import Slice
from seustream.engine.stream.schema import stream_schema
from seustream.hdl.device import Retention

STREAMS = [Stream(name, (Column("a", INT),)) for name in "RST"]


def part(order: list[tuple[int, int]]) -> Slice:
    """Returns a slice of (stream, timestamp) in order; `a` is the timestamp, too."""
    rows = []
    for number in range(len(STREAMS)):
        times = [ts for of, ts in order if of == number]
        rows.append(pa.table([times, times], schema=stream_schema(STREAMS[number])))
    return Slice(tuple(rows), np.array([of for of, _ in order], np.int64))


@pytest.mark.parametrize("copies", [(1, 1, 1), (1, 2, 0), (3, 1, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_rows_stand_in_the_order_of_all_streams(copies: tuple[int, ...], seed: int) -> None:
    """The copies of a stream's row are adjacent; by definition, positions go up one by one."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    stores = Stores(STREAMS, dict(zip("RST", copies, strict=True)), {})
    want: dict[str, list[list[int]]] = {s.name: [] for s in STREAMS}
    position = now = 0
    for _ in range(12):
        order = []
        for _ in range(chance.randint(0, 6)):
            now += chance.randint(0, 2)
            order.append((chance.randrange(3), now))
        before = {name: len(found) for name, found in want.items()}
        for of, _ in order:
            if copies[of]:
                want["RST"[of]].append(list(range(position, position + copies[of])))
            position += copies[of]
        places = stores.add(part(order))
        assert {name: mine.tolist() for name, mine in places.items()} == {
            name: list(range(before[name], len(want[name])))
            for name, of in zip("RST", copies, strict=True)
            if of
        }
    assert stores.position == position
    for name, of in zip("RST", copies, strict=True):
        found = [mine[:].tolist() for mine in stores[name].position]
        assert [list(row) for row in zip(*found, strict=True)] == (want[name] if of else [])


def test_rows_go_once_they_are_the_larger_part_and_no_window_reaches_them() -> None:
    keep = {"R": Retention(10, 0), "S": Retention(-1, 3), "T": Retention(None, 0)}
    stores = Stores(STREAMS, dict.fromkeys("RST", 1), keep)
    for ts in range(100):
        stores.add(part([(0, ts), (1, ts), (2, ts)]))
        before = {name: len(stores[name]) for name in "RST"}
        stores.trim(at_least=20)
        for name in "RST":
            assert len(stores[name]) in (before[name], *range(21))
    assert len(stores["T"]) == 100, "of an unbounded window every row is needed"
    assert 11 <= len(stores["R"]) <= 40
    assert 3 <= len(stores["S"]) <= 40
    for name, needed in (("R", 11), ("S", 3)):
        times = stores[name].timestamp[:].tolist()
        assert times == list(range(100 - len(times), 100))
        assert len(times) >= needed
