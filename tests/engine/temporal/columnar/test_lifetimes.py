"""Windows of libraries on columns: the lifetimes they give, when they give them, and faulty
libraries."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from seustream.compiler.apas.functions import BadArgument
from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.apas.streams import NONE, Lifetimes, LiveWindow, WindowFunction
from seustream.compiler.apas.types import INTEGER
from seustream.engine.temporal.columnar.lifetimes import ColumnarLifetimes
from seustream.engine.temporal.elements import FOREVER, ElementKind, StreamElement
from seustream.engine.temporal.stream import NodeFailed
from tests.engine.temporal.reference.elements import insertion, moment
from tests.engine.temporal.running import PRODUCT, Run, compiled, node, results_of
from tests.engine.temporal.userwindows import (
    CATALOGUE,
    LIBRARIES,
    QUERIES,
    columnar,
    reference,
    streams_of,
    table,
)


def expected(kind: str, stream: list[StreamElement]) -> list[tuple[int, int]]:
    """Returns the lifetimes by the definition of each window."""
    begins = [x.ts for x in stream]
    if kind == "until":
        return [(x.ts, x.ts + max(x.values[1] - 1, 0)) for x in stream]  # type: ignore[operator]  # an INTEGER
    if kind == "tumbling":
        return [((t // 4 + 1) * 4, (t // 4 + 2) * 4) for t in begins]
    if kind == "last":
        return [(t, [*begins, *[FOREVER] * 3][i + 3]) for i, t in enumerate(begins)]
    found = []
    for x in stream:
        end = x.ts
        for y in stream:
            if y.values[0] == x.values[0] and y.ts >= end and y.ts < end + 3:
                end = y.ts
        found.append((x.ts, end + 3))
    return found


@pytest.mark.parametrize("kind", QUERIES)
@pytest.mark.parametrize("seed", range(12))
def test_windows_give_the_lifetimes_they_say(kind: str, seed: int) -> None:
    print(f"seed {seed}")
    streams = streams_of(random.Random(seed))
    lifetimes = expected(kind, streams["A"])
    want = Counter(
        (ts, te, *x.values, *((moment(ts), moment(te)) if kind == "until" else ()))
        for (ts, te), x in zip(lifetimes, streams["A"], strict=True)
    )
    for step_rows in (1, 6, 1000):
        found = columnar(QUERIES[kind], streams, step_rows)
        assert Counter(found) == want
        assert [row[:2] for row in found] == sorted(row[:2] for row in found)
    assert Counter(reference(QUERIES[kind], streams, PRODUCT)) == want


@pytest.mark.parametrize("kind", QUERIES)
def test_what_leaves_begins_before_the_promise(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a later tuple that begins with it and ends earlier would come after it."""
    process = ColumnarLifetimes.process
    steps = []

    def checked(self: Any, inputs: Any, bound: int, last: bool) -> Any:
        out, promise = process(self, inputs, bound, last)
        steps.append(len(out))
        assert last or (out.ts < promise).all()
        return out, promise

    monkeypatch.setattr(ColumnarLifetimes, "process", checked)
    for seed in range(4):
        columnar(QUERIES[kind], streams_of(random.Random(seed)), 1)
    assert sum(map(bool, steps)) > 4


def test_tuples_that_wait_hold_the_others_back() -> None:
    """Results come as soon as nothing earlier can come, and not sooner."""
    one = Run(
        compiled(QUERIES["last"].replace("n = 3", "n = 1"), CATALOGUE, libraries=LIBRARIES),
        CATALOGUE,
    )
    one.feed("A", insertion(1, 2, 1, 1))
    assert one.rows() == []
    one.feed("A", insertion(4, 5, 1, 2))
    assert one.rows() == [(1, 4, 1, 1)]
    one.feed("A", insertion(6, 7, 1, 3))
    assert one.rows() == [(1, 4, 1, 1), (4, 6, 1, 2)]
    marks = [x.ts for x in one.out if x.kind is ElementKind.BOUNDARY]
    assert marks == [1, 4, 6]
    assert one.finish() == [(1, 4, 1, 1), (4, 6, 1, 2), (6, FOREVER, 1, 3)]


class Broken(LiveWindow):
    def __init__(self, how: int) -> None:
        self.how = how

    def push(self, first: int, ts: Any, te: Any, *columns: Any) -> Lifetimes:
        which = np.arange(first, first + len(ts))
        match self.how:
            case 0:
                raise KeyError("x")
            case 1:
                return Lifetimes(which, ts - 1, te)
            case 2:
                return Lifetimes(which, ts, ts - 1)
            case 3:
                return Lifetimes(which + 1, ts, te)
            case 4:
                return Lifetimes(which, ts, te[:0])
            case 5:
                return Lifetimes(which, ts, te + 0.5)
            case _:
                return NONE


class Breaking(WindowFunction):
    names = ("stream", "how")
    takes = (INTEGER,)
    constants = ("how",)

    def check(self, **constants: Any) -> None:
        if constants["how"] > 6:
            raise BadArgument("there are seven ways")

    def open(self, **constants: Any) -> LiveWindow:
        return Broken(constants["how"])


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (0, r"bad.breaking\(how = 0\): KeyError: 'x' \(test_lifetimes.py:\d+\)"),
        (1, r"\[0, 3\) begins before its tuple, which begins at 1"),
        (2, r"\[1, 0\) ends before it begins"),
        (3, r"lifetime"),
        (4, r"numbers, begins and ends are 1, 1 and 0 values"),
        (5, r"want a column of integers, got float64 \(1,\)"),
        (6, r"no lifetime at the end"),
    ],
)
def test_a_library_at_fault_is_named(how: int, message: str) -> None:
    libraries = Libraries()
    libraries.register("bad", {"breaking": Breaking()})
    c = compiled(f"where bad.breaking($A, {how}) select [$A[T]]", CATALOGUE, libraries=libraries)
    one = node(c, CATALOGUE)
    with pytest.raises(NodeFailed, match=message):
        results_of(one, {"A": table([insertion(1, 3, 1, 1)])})
    live = Run(c, CATALOGUE)
    live.feed("A", insertion(1, 3, 1, 1))
    live.finish()
    (asked,) = live.asked[:1]
    assert asked[0] == "EXCEPTION"
    assert live.rows() == []
    assert live.network.skipped >= 1
