"""Structures of one aggregate over the tuples that live: added with their te, expired by it.

Without deletions every live tuple has begun, so the value from now on is a suffix over te.
"""

from __future__ import annotations

import bisect
import heapq
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from compiler.apas.functions import Aggregate, Greatest, Saved

Values = tuple[Any, ...]


class Live(Protocol):
    def save(self) -> Any: ...

    def load(self, saved: Any) -> None: ...

    def add(self, te: int, v: Values) -> None: ...

    def expire(self, te: int) -> None:
        """Forgets the tuples that end at te; none ends earlier."""

    def final(self) -> Values: ...


class RunningTotal(Saved):
    """count, sum, avg: the total of all, and what each te takes away. DOUBLE totals are
    compensated, and begin anew whenever nothing lives. O(1) beside the caller's heap."""

    fixed = frozenset({"function"})

    def __init__(self, function: Aggregate) -> None:
        self.function = function
        self.total: Any = None
        self.ending: dict[int, Any] = {}
        self.compensation = 0.0

    def check(self, te: int, v: Values) -> None:
        """Raises what `add` would, before anything is changed."""
        here, one = self.ending.get(te), self.function.init(v)
        if here is not None:
            self.function.merge(here, one)
        if self.total is not None:
            self.function.merge(self.total, one)

    def add(self, te: int, v: Values) -> None:
        here, one = self.ending.get(te), self.function.init(v)
        self.ending[te] = one if here is None else self.function.merge(here, one)
        if self.total is None:
            self.total, self.compensation = one, 0.0
        else:
            self.total = self._moved(self.total, one, 1)

    def expire(self, te: int) -> None:
        gone = self.ending.pop(te, None)
        if gone is None:
            return
        self.total = self._moved(self.total, gone, -1) if self.ending else None

    def final(self) -> Values:
        if isinstance(self.total, float):
            return self.function.final(self.total + self.compensation)
        if isinstance(self.total, tuple):
            return self.function.final((self.total[0] + self.compensation, *self.total[1:]))
        return self.function.final(self.total)

    def _moved(self, total: Any, by: Any, sign: int) -> Any:
        if isinstance(total, float):
            return self._float(total, sign * by)
        if isinstance(total, tuple):  # sum and count of an average
            return (self._float(total[0], sign * by[0]), total[1] + sign * by[1])
        return self.function.merge(total, sign * by)

    def _float(self, total: float, by: float) -> float:
        """Neumaier's sum: what the rounded total lost is kept beside it."""
        after = total + by
        if abs(total) >= abs(by):
            self.compensation += (total - after) + by
        else:
            self.compensation += (by - after) + total
        return after


class Staircase(Saved):
    """min, max: values by te, strictly worsening. A new tuple removes those it dominates."""

    fixed = frozenset({"function", "better"})

    def __init__(self, function: Aggregate) -> None:
        self.function = function
        self.better: Callable[[Any, Any], bool] = (
            (lambda a, b: a > b) if isinstance(function, Greatest) else (lambda a, b: a < b)
        )
        self.ends: list[int] = []
        self.values: list[Any] = []
        self.first = 0  # what is before is expired

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
        return self.function.final(self.values[self.first])


class TwoStacks(Saved):
    """Any `merge`, where te never falls: a queue whose aggregate is at hand. Amortised O(1)."""

    fixed = frozenset({"function"})

    def __init__(self, function: Aggregate) -> None:
        self.function = function
        self.back: deque[tuple[int, Any]] = deque()
        self.all_back: Any = None
        self.front: list[tuple[int, Any]] = []  # each with those behind it merged in

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


class MergeHeap(Saved):
    """Any `merge`, any te: a heap on te whose every node has the merged state of all below it.
    Adding and expiring mend the paths that changed, O(log k) merges."""

    fixed = frozenset({"function"})

    def __init__(self, function: Aggregate) -> None:
        self.function = function
        self.ends: list[int] = []
        self.states: list[Any] = []
        self.below: list[Any] = []

    def add(self, te: int, v: Values) -> None:
        at = len(self.ends)
        self.ends.append(te)
        self.states.append(self.function.init(v))
        self.below.append(None)
        while at and self.ends[(at - 1) // 2] > self.ends[at]:
            self._swap(at, (at - 1) // 2)
            self._mend(at)
            at = (at - 1) // 2
        self._mend_up(at)

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


class Ends(Saved):
    """When something ends, and how many tuples then: a heap of distinct te."""

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
