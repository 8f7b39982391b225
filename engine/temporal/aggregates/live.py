"""Structures of one aggregate over the live tuples: added with their te, expired by it.

Without deletions every live tuple has begun, so the value from now on is a suffix over te.
"""

from __future__ import annotations

import bisect
import heapq
import operator
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from seustream.compiler.apas.functions import Aggregate, Registered, Saved

Values = tuple[Any, ...]


class Live(Protocol):
    def save(self) -> Any: ...

    def load(self, saved: Any) -> None: ...

    def add(self, te: int, v: Values) -> None: ...

    def expire(self, te: int) -> None:
        """Forgets the tuples that end at te; none ends earlier."""

    def final(self) -> Values:
        """Returns the aggregate; called only while some tuple lives."""


class RunningTotal(Saved):
    """Registry aggregates that can remove: the state of all tuples, and the tuples to remove at
    each te. O(1) per tuple, besides the caller's heap."""

    fixed = frozenset({"function"})

    def __init__(self, function: Registered) -> None:
        self.function = function
        self.state: Any = function.entry.init()
        self.ending: dict[int, list[Values]] = {}

    def add(self, te: int, v: Values) -> None:
        self.state = self.function.entry.insert(self.state, *v)
        self.ending.setdefault(te, []).append(v)

    def expire(self, te: int) -> None:
        remove = self.function.entry.remove
        assert remove is not None
        for v in self.ending.pop(te, ()):
            self.state = remove(self.state, *v)

    def final(self) -> Values:
        return (self.function.result(self.state),)


class Staircase(Saved):
    """min, max: values by te, strictly worsening. A new tuple removes those that it dominates."""

    fixed = frozenset({"greatest", "better"})

    def __init__(self, greatest: bool) -> None:
        self.greatest = greatest
        self.better: Callable[[Any, Any], bool] = operator.gt if greatest else operator.lt
        self.ends: list[int] = []
        self.values: list[Any] = []
        self.first = 0  # earlier ones have expired

    def add(self, te: int, v: Values) -> None:
        value = v[0]
        after = bisect.bisect_left(self.ends, te, self.first)
        if after < len(self.ends) and not self.better(value, self.values[after]):
            return  # one that lives as long is as good
        before = after
        if after < len(self.ends) and self.ends[after] == te:
            after += 1
        while before > self.first and not self.better(self.values[before - 1], value):
            before -= 1
        self.ends[before:after] = [te]
        self.values[before:after] = [value]

    def expire(self, te: int) -> None:
        while self.first < len(self.ends) and self.ends[self.first] <= te:
            self.first += 1
        if self.first > 64 and 2 * self.first > len(self.ends):
            del self.ends[: self.first], self.values[: self.first]
            self.first = 0

    def final(self) -> Values:
        return (self.values[self.first],)


class TwoStacks(Saved):
    """Any `merge`, where te never decreases: a queue whose aggregate is at hand. Amortised O(1). States are
    merged in the order in which tuples came."""

    fixed = frozenset({"function"})

    def __init__(self, function: Aggregate) -> None:
        self.function = function
        self.back: deque[tuple[int, Any]] = deque()
        self.all_back: Any = None
        self.front: list[tuple[int, Any]] = []  # each merged with those behind it

    def add(self, te: int, v: Values) -> None:
        state = self.function.init(v)
        self.all_back = (
            state if self.all_back is None else self.function.merge(self.all_back, state)
        )
        self.back.append((te, state))

    def expire(self, te: int) -> None:
        while True:
            if not self.front:
                if not self.back or self.back[0][0] > te:
                    return
                self._turn()
            while self.front and self.front[-1][0] <= te:
                self.front.pop()
            if self.front:
                return

    def _turn(self) -> None:
        merged: Any = None
        while self.back:
            te, state = self.back.pop()
            merged = state if merged is None else self.function.merge(state, merged)
            self.front.append((te, merged))
        self.all_back = None

    def final(self) -> Values:
        if not self.front:
            return self.function.final(self.all_back)
        front = self.front[-1][1]
        both = front if self.all_back is None else self.function.merge(front, self.all_back)
        return self.function.final(both)


class LiveRows(Saved):
    """Registry aggregates of rows in order, any te: the tuples in the order in which they came. A result
    costs as much as there are."""

    fixed = frozenset({"function"})

    def __init__(self, function: Registered) -> None:
        self.function = function
        self.came = 0
        self.rows: dict[int, Values] = {}
        self.ending: dict[int, list[int]] = {}

    def add(self, te: int, v: Values) -> None:
        self.rows[self.came] = v
        self.ending.setdefault(te, []).append(self.came)
        self.came += 1

    def expire(self, te: int) -> None:
        for number in self.ending.pop(te, ()):
            del self.rows[number]

    def final(self) -> Values:
        function, rows = self.function, self.rows.values()
        state = function.entry.init()
        for v in dict.fromkeys(rows) if function.distinct else rows:
            state = function.entry.insert(state, *v)
        return (function.result(state),)


class MergeHeap(Saved):
    """Any `merge`, any te: a heap on te in which every node has the merged state of its subtree.
    Adding and expiring repair the paths that changed, with O(log k) merges."""

    fixed = frozenset({"function"})

    def __init__(self, function: Aggregate) -> None:
        self.function = function
        self.ends: list[int] = []
        self.states: list[Any] = []
        self.below: list[Any] = []

    def add(self, te: int, v: Values) -> None:
        at, state = len(self.ends), self.function.init(v)
        self.ends.append(te)
        self.states.append(state)
        self.below.append(state)
        while at and self.ends[(at - 1) // 2] > te:
            self._swap(at, (at - 1) // 2)
            self._mend(at)
            at = (at - 1) // 2
            self._mend(at)
        while at:
            at = (at - 1) // 2
            self.below[at] = self.function.merge(self.below[at], state)

    def expire(self, te: int) -> None:
        while self.ends and self.ends[0] <= te:
            last = len(self.ends) - 1
            self._swap(0, last)
            self.ends.pop()
            self.states.pop()
            self.below.pop()
            if last:
                self._mend_up((last - 1) // 2 if last > 1 else 0)
                self._sink()

    def final(self) -> Values:
        return self.function.final(self.below[0])

    def _sink(self) -> None:
        at, size = 0, len(self.ends)
        while True:
            least = min(
                (child for child in (2 * at + 1, 2 * at + 2) if child < size),
                key=lambda child: self.ends[child],
                default=at,
            )
            if least == at or self.ends[least] >= self.ends[at]:
                break
            self._swap(at, least)
            at = least
        self._mend_up(at)

    def _swap(self, a: int, b: int) -> None:
        self.ends[a], self.ends[b] = self.ends[b], self.ends[a]
        self.states[a], self.states[b] = self.states[b], self.states[a]

    def _mend(self, at: int) -> None:
        state = self.states[at]
        for child in (2 * at + 1, 2 * at + 2):
            if child < len(self.ends):
                state = self.function.merge(state, self.below[child])
        self.below[at] = state

    def _mend_up(self, at: int) -> None:
        if at < len(self.ends):
            self._mend(at)
        while at:
            at = (at - 1) // 2
            self._mend(at)


class LiveEnds(Saved):
    """The times at which tuples end, and how many at each: a heap of distinct te."""

    def __init__(self) -> None:
        self.heap: list[int] = []
        self.count: dict[int, int] = {}
        self.n = 0

    def add(self, te: int) -> None:
        if te not in self.count:
            heapq.heappush(self.heap, te)
            self.count[te] = 0
        self.count[te] += 1
        self.n += 1

    def pop(self) -> int:
        te = heapq.heappop(self.heap)
        self.n -= self.count.pop(te)
        return te
