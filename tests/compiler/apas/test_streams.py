"""The optional parts of a library's window: ends alone make a window, however rows are cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from seustream.compiler.apas.functions import Saved
from seustream.compiler.apas.streams import NONE, JoinIndex, LiveWindow, Matching, WindowFunction


class Longer(WindowFunction):
    names, constants = ("stream", "by", "much"), ("much",)

    def ends(self, ts: Any, te: Any, *columns: Any, **constants: Any) -> Any:
        return te + columns[0] * constants["much"]


@pytest.mark.parametrize("step", [1, 3, 100])
def test_a_window_with_ends_alone_gives_each_tuple_its_own(step: int) -> None:
    window = Longer().open(much=10)
    ts, by = np.arange(10), np.arange(10) % 3
    found: list[tuple[int, int, int]] = []
    for first in range(0, 10, step):
        part = slice(first, first + step)
        new = window.push(first, ts[part], ts[part] + 1, by[part])
        found += zip(new.which.tolist(), new.ts.tolist(), new.te.tolist(), strict=True)
        assert window.advance(first) == NONE
        saved, window = window.save(), Longer().open(much=10)
        window.load(saved)
    assert window.finish() == NONE
    assert found == [(n, n, n + 1 + n % 3 * 10) for n in range(10)]


def test_what_a_class_leaves_open_is_not_implemented() -> None:
    nothing = np.empty(0, np.int64)
    for call in (
        lambda: WindowFunction().ends(nothing, nothing),
        lambda: LiveWindow().push(0, nothing, nothing),
        lambda: JoinIndex().candidates(nothing),
        lambda: JoinIndex().insert(nothing),
        lambda: JoinIndex().delete(nothing),
        lambda: Matching().index(0),
    ):
        with pytest.raises(NotImplementedError):
            call()
    WindowFunction().check()


def test_a_state_is_all_attributes_but_the_fixed_ones() -> None:
    class Counting(Saved):
        fixed = frozenset({"size"})

        def __init__(self, size: int) -> None:
            self.size, self.seen = size, [1, 2]

    one, other = Counting(3), Counting(4)
    one.seen = [7]
    other.load(one.save())
    assert (other.size, other.seen) == (4, [7])
