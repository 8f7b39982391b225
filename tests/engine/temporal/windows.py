"""A user's library: windows, an index of a join, indexes of aggregates. Tests also load it as a
file."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from seustream.compiler.apas.functions import Aggregate, AggregateIndex, BadArgument, Overload
from seustream.compiler.apas.streams import (
    Column,
    Ints,
    JoinIndex,
    Lifetimes,
    LiveWindow,
    Matching,
    WindowFunction,
)
from seustream.compiler.apas.types import BOOLEAN, DOUBLE, INTEGER

FOREVER = 2**63 - 1


class Until(WindowFunction):
    """A tuple lives as long as an attribute says."""

    names = ("stream", "length")
    takes = (INTEGER,)

    def ends(self, ts: Ints, te: Ints, *columns: Column, **constants: Any) -> Column:
        return ts + np.maximum(columns[0], 0)


class Tumbling(WindowFunction):
    """A tuple counts from the end of its stretch of `size` to the end of the next one."""

    names = ("stream", "size")
    takes = (INTEGER,)
    constants = ("size",)

    def check(self, **constants: Any) -> None:
        if constants["size"] < 1:
            raise BadArgument("the size is not positive")

    def open(self, **constants: Any) -> LiveWindow:
        return _Tumbling(constants["size"])


class _Tumbling(LiveWindow):
    def __init__(self, size: int) -> None:
        self.size = size

    def push(self, first: int, ts: Ints, te: Ints, *columns: Column) -> Lifetimes:
        begin = (ts // self.size + 1) * self.size
        return Lifetimes(np.arange(first, first + len(ts)), begin, begin + self.size)


class Last(WindowFunction):
    """The last n tuples: each lives until the n-th after it."""

    names = ("stream", "n")
    takes = (INTEGER,)
    constants = ("n",)

    def open(self, **constants: Any) -> LiveWindow:
        return _Last(constants["n"])


class _Last(LiveWindow):
    def __init__(self, n: int) -> None:
        self.n = n
        self.living: deque[tuple[int, int]] = deque()

    def push(self, first: int, ts: Ints, te: Ints, *columns: Column) -> Lifetimes:
        found = []
        for number, begin in enumerate(ts.tolist(), first):
            self.living.append((number, begin))
            if len(self.living) > self.n:
                found.append((*self.living.popleft(), begin))
        return _lifetimes(found)

    def finish(self) -> Lifetimes:
        return _lifetimes([(number, begin, FOREVER) for number, begin in self.living])


class Session(WindowFunction):
    """Tuples of one key less than `gap` apart live until the gap after the last of them is over."""

    names = ("stream", "key", "gap")
    takes = (INTEGER, INTEGER)
    constants = ("gap",)

    def open(self, **constants: Any) -> LiveWindow:
        return _Session(constants["gap"])


class _Session(LiveWindow):
    def __init__(self, gap: int) -> None:
        self.gap = gap
        self.open: dict[int, list[tuple[int, int]]] = {}

    def push(self, first: int, ts: Ints, te: Ints, *columns: Column) -> Lifetimes:
        found = []
        rows = zip(ts.tolist(), columns[0].tolist(), strict=True)
        for number, (begin, key) in enumerate(rows, first):
            session = self.open.setdefault(key, [])
            if session and session[-1][1] + self.gap <= begin:
                found += self._closed(session)
                session = self.open[key] = []
            session.append((number, begin))
        return _lifetimes(found)

    def advance(self, now: int) -> Lifetimes:
        over = [key for key, rows in self.open.items() if rows[-1][1] + self.gap <= now]
        return _lifetimes([one for key in over for one in self._closed(self.open.pop(key))])

    def finish(self) -> Lifetimes:
        return _lifetimes([one for rows in self.open.values() for one in self._closed(rows)])

    def _closed(self, rows: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
        return [(number, begin, rows[-1][1] + self.gap) for number, begin in rows]


def _lifetimes(found: list[tuple[int, int, int]]) -> Lifetimes:
    which, ts, te = np.array(found, np.int64).reshape(-1, 3).T
    return Lifetimes(which, ts, te)


class Near(Matching):
    """True if two places are no farther apart than the third value."""

    names = ("x", "y", "distance")
    overloads = (Overload((INTEGER, INTEGER, INTEGER), BOOLEAN),)
    sides = (1, 2)

    def call(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return (abs(values[0] - values[1]) <= values[2],)

    def index(self, side: int) -> JoinIndex:
        return _Points() if side == 0 else _Stretches()


class _Points(JoinIndex):
    """Points by coordinate; a lookup gives the points within a stretch."""

    def __init__(self) -> None:
        self.at: dict[int, set[int]] = {}
        self.where: dict[int, int] = {}

    def insert(self, numbers: Ints, *columns: Column) -> None:
        for number, x in zip(numbers.tolist(), columns[0].tolist(), strict=True):
            self.at.setdefault(x, set()).add(number)
            self.where[number] = x

    def delete(self, numbers: Ints) -> None:
        for number in numbers.tolist():
            self.at[self.where.pop(number)].discard(number)

    def candidates(self, *columns: Column) -> tuple[Ints, Ints]:
        rows = zip(columns[0].tolist(), columns[1].tolist(), strict=True)
        return _pairs(
            (place, number)
            for place, (y, distance) in enumerate(rows)
            for x in range(y - distance, y + distance + 1)
            for number in self.at.get(x, ())
        )


class _Stretches(JoinIndex):
    """Stretches by number; deleted ones are still given, which the contract allows."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, int]] = []

    def insert(self, numbers: Ints, *columns: Column) -> None:
        self.rows += zip(*(c.tolist() for c in (numbers, *columns)), strict=True)

    def delete(self, numbers: Ints) -> None:
        pass

    def candidates(self, *columns: Column) -> tuple[Ints, Ints]:
        return _pairs(
            (place, number)
            for place, x in enumerate(columns[0].tolist())
            for number, y, distance in self.rows
            if abs(x - y) <= distance
        )


def _pairs(found: Any) -> tuple[Ints, Ints]:
    places, numbers = np.array(list(found), np.int64).reshape(-1, 2).T
    return places, numbers


class Middle(Aggregate):
    """The median of the live values, the lower of two, kept sorted."""

    overloads = (Overload((DOUBLE,), DOUBLE),)

    def init(self, v: tuple[Any, ...]) -> Any:
        return (v[0],)

    def add(self, state: Any, v: tuple[Any, ...]) -> Any:
        return tuple(sorted((*state, v[0])))

    def final(self, state: Any) -> tuple[Any, ...]:
        return (state[(len(state) - 1) // 2],)

    def index(self) -> AggregateIndex:
        return _Middle()


class _Middle(AggregateIndex):
    def __init__(self) -> None:
        self.living: list[tuple[float, int]] = []

    def add(self, te: int, v: tuple[Any, ...]) -> None:
        self.living = sorted([*self.living, (v[0], te)])

    def expire(self, te: int) -> None:
        self.living = [(value, end) for value, end in self.living if end > te]

    def final(self) -> tuple[Any, ...]:
        return (self.living[(len(self.living) - 1) // 2][0],)


class Spread(Middle):
    """The greatest value less the least, and the count, on whole columns."""

    spans = True

    def final(self, state: Any) -> tuple[Any, ...]:
        return (state[-1] - state[0],)

    def index(self) -> None:
        return None

    def over(self, arguments: Sequence[Any], first: Any, last: Any, points: int) -> list[Any]:
        low, high = np.full(points, np.inf), np.full(points, -np.inf)
        for value, a, b in zip(arguments[0], first, last, strict=True):
            low[a:b], high[a:b] = np.minimum(low[a:b], value), np.maximum(high[a:b], value)
        with np.errstate(invalid="ignore"):
            return [high - low]


LIBRARIES = {
    "mine": {
        "until": Until(),
        "tumbling": Tumbling(),
        "last": Last(),
        "session": Session(),
        "near": Near(),
        "middle": Middle(),
        "spread": Spread(),
    }
}
