"""The last results of a query: bounded by rows and bytes, and what is given up is counted."""

from __future__ import annotations

import pytest

from seustream.compiler.apas.tree import Node
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.tail import Tail
from seustream.engine.temporal.elements import insertion


def filled(count: int, rows: int = 10, size: int = 1 << 20, text: str = "") -> Tail:
    tail = Tail(1, Node("q"), rows, size)
    for number in range(count):
        tail.append(insertion(number, number + 1, number, text))
    return tail


def times(tail: Tail, start: int, rows: int = 100, size: int = 1 << 20) -> tuple[int, list[int]]:
    first, found = tail.read(start, rows, size)
    return first, [x.ts for x in found]


def test_the_last_rows_are_kept() -> None:
    tail = filled(25)
    assert (tail.first, tail.end, len(tail)) == (15, 25, 10)
    assert times(tail, 0) == (15, list(range(15, 25)))
    assert times(tail, 20) == (20, list(range(20, 25)))
    assert times(tail, 25) == (25, [])
    assert times(tail, 16, rows=3) == (16, [16, 17, 18])


def test_bytes_bound_it_too() -> None:
    tail = filled(50, rows=100, size=10_000, text="x" * 1000)
    assert 1 <= len(tail) < 10
    assert tail.end == 50
    assert tail.bytes <= 10_000
    whole = filled(3, size=1000, text="x" * 2000)
    assert (whole.first, whole.end, whole.bytes) == (3, 3, 0)


def test_an_answer_is_short_but_not_empty() -> None:
    tail = filled(10, text="x" * 1000)
    assert times(tail, 0, size=1) == (0, [0])
    assert len(times(tail, 0, size=5000)[1]) == 3


@pytest.mark.parametrize("start", [-1, 4])
def test_offsets_that_are_not_there(start: int) -> None:
    with pytest.raises(BridgeError) as caught:
        filled(3).read(start, 1, 1)
    assert caught.value.kind == "gap"
