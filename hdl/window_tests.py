"""Window tests: how the output finds the queries of a joined tuple, with few looks at its ages and
ranks.

A query asks by its windows that the components of some streams are younger, or of lower rank, than a
limit. All limits on the same ages and ranks, the *view*, make a sorted list, of which a tuple keeps
those from some place on; so this place says which queries are left. A test compares with two limits
of a list at once, so that of 80 limits the place is found by 4 tests. The queries of a route tag are
those that all lists leave, one list after the other.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from seustream.hdl.device import Tables, Window, WindowKind

TEST_BITS, SET_BITS = 8, 8
"""Of any tables there are no more limits than queries times streams, 256, and a list takes no more
tests or sets than it has limits: one tree for all queries always has room."""
KIND_BITS, THEN_BITS = 2, 2
STEP_BITS = max(TEST_BITS, SET_BITS)
_COUNTED = (WindowKind.RANGE, WindowKind.ROWS)


class Then(enum.IntEnum):
    """Continuations of a test."""

    TEST = 0  # another test
    SET = 1  # only queries of a set are left; then its next test, or the end if that is test 0
    ALL = 2  # the end: the queries that are left
    NONE = 3  # the end: no query


@dataclass(frozen=True, slots=True)
class WindowStep:
    """A continuation, with the number of its test or set."""

    then: Then
    index: int = 0


_ALL, _NONE = WindowStep(Then.ALL), WindowStep(Then.NONE)


@dataclass(frozen=True, slots=True)
class WindowTest:
    """One look at a tuple. Of each stream that it carries, what `kinds` says is less than a limit: the
    age for RANGE, the rank for ROWS, for other kinds nothing is asked.

    limits   the lower one first
    steps    if all are less than both limits; than the second alone; than neither
    """

    kinds: tuple[WindowKind, ...]
    limits: tuple[int, int]
    steps: tuple[WindowStep, WindowStep, WindowStep]


@dataclass(frozen=True, slots=True)
class QuerySet:
    """Queries as a bit map, and the test that follows; 0 is none."""

    queries: int
    next: int


@dataclass(slots=True)
class WindowTests:
    """
    tests   test 0 is the one of tuples whose queries ask nothing
    sets    sets of queries
    first   route tag -> its first test, for tags with queries
    """

    tests: list[WindowTest]
    sets: list[QuerySet] = field(default_factory=list)
    first: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, tables: Tables, streams: int) -> WindowTests:
        """The tests of an image, for a device of so many streams. Route tags have trees of their own
        while there is room; the others share the one of all queries."""
        queries = {
            tag: sum(1 << query for query in route.queries)
            for tag, route in sorted(tables.routes.items())
            if route.queries
        }
        # A raw tuple is in the windows of its time.
        raw = [
            tag
            for tag in queries
            if tag < tables.streams
            and all(_has_newest(tables.windows[query][tag]) for query in tables.routes[tag].queries)
        ]
        for tag in raw:
            del queries[tag]
        windows = [
            (*row, *(Window(WindowKind.UNUSED),) * (streams - len(row))) for row in tables.windows
        ]
        found = cls._with(windows, queries, streams, shared=False)
        found = found or cls._with(windows, queries, streams, shared=True)
        assert found is not None, "one tree has room"
        found.first |= dict.fromkeys(raw, 0)
        return found

    @classmethod
    def _with(
        cls, windows: Sequence[tuple[Window, ...]], tags: dict[int, int], streams: int, shared: bool
    ) -> WindowTests | None:
        """Without a tree to share, None if there is no room for the tree of some tag."""
        nothing = WindowTest((WindowKind.UNUSED,) * streams, (0, 0), (_ALL, _NONE, _NONE))
        found = cls([nothing])
        roots: dict[int, int] = {}
        every = 0
        if shared:
            for queries in tags.values():
                every |= queries
            root = found._tree(windows, every)
            if root is None:
                return None
            roots[every] = root
        for tag, queries in tags.items():
            if queries not in roots:
                root = found._tree(windows, queries)
                if root is None and not shared:
                    return None
                roots[queries] = roots[every] if root is None else root
            found.first[tag] = roots[queries]
        return found

    def _tree(self, windows: Sequence[tuple[Window, ...]], queries: int) -> int | None:
        """The first test of these queries; None, and nothing is added, if there is no room."""
        before = len(self.tests), len(self.sets)
        lists = _lists(windows, queries)
        # From the last to the first, for each goes on with a later one.
        later: list[tuple[int, int]] = []  # the queries of a list, and its first test
        for kinds, limits in reversed(lists):
            of_list = sum(limits.values())
            left = [queries]  # after so many of its limits are broken
            for limit in sorted(limits):
                left.append(left[-1] & ~limits[limit])
            steps = [self._leaf(some, queries, later) for some in left]
            later.insert(0, (of_list, self._search(kinds, sorted(limits), steps)))
        if len(self.tests) > 1 << TEST_BITS or len(self.sets) > 1 << SET_BITS:
            del self.tests[before[0] :], self.sets[before[1] :]
            return None
        return later[0][1] if later else 0

    def _leaf(self, left: int, queries: int, later: Iterable[tuple[int, int]]) -> WindowStep:
        """The end of a list: what is left of the queries, and the next list that asks of one of them."""
        if not left:
            return _NONE
        follows = next((test for of_list, test in later if of_list & left), 0)
        if left == queries:
            return WindowStep(Then.TEST, follows) if follows else _ALL
        found = QuerySet(left, follows)
        if found not in self.sets:
            self.sets.append(found)
        return WindowStep(Then.SET, self.sets.index(found))

    def _search(
        self, kinds: tuple[WindowKind, ...], limits: Sequence[int], steps: Sequence[WindowStep]
    ) -> int:
        """The test that looks for a place among limits; there is a step more than there are of them."""
        first, second, _ = thirds = _thirds(len(steps))
        number = len(self.tests)
        low, high = limits[first - 1], limits[first + second - 1]
        self.tests.append(WindowTest(kinds, (low, high), (_NONE, _NONE, _NONE)))
        goes, at = [], 0
        for part in thirds:
            if part > 1:
                test = self._search(kinds, limits[at : at + part - 1], steps[at : at + part])
                goes.append(WindowStep(Then.TEST, test))
            else:
                goes.append(steps[at] if part else _NONE)  # nothing is between two equal limits
            at += part
        self.tests[number] = WindowTest(kinds, (low, high), (goes[0], goes[1], goes[2]))
        return number


def _has_newest(window: Window) -> bool:
    return window.kind is not WindowKind.ROWS or window.size > 0


def _thirds(count: int) -> tuple[int, int, int]:
    """Parts of so many places that a test tells apart. The first are as large as the tests after it
    can tell apart anyway, so that few tests are left with one limit."""
    if count == 2:
        return 1, 0, 1
    most = next(3**depth for depth in itertools.count() if 3 ** (depth + 1) >= count)
    first = min(most, count - 2)
    second = min(most, count - first - 1)
    return first, second, count - first - second


def _lists(
    windows: Sequence[tuple[Window, ...]], queries: int
) -> list[tuple[tuple[WindowKind, ...], dict[int, int]]]:
    """By view, each limit on it with the queries that ask it."""
    lists: dict[tuple[WindowKind, ...], dict[int, int]] = {}
    for query, row in enumerate(windows):
        if queries >> query & 1:
            for window in {each for each in row if each.kind in _COUNTED}:
                kinds = tuple(each.kind if each == window else WindowKind.UNUSED for each in row)
                limit = window.size + (window.kind is WindowKind.RANGE)
                limits = lists.setdefault(kinds, {})
                limits[limit] = limits.get(limit, 0) | 1 << query
    return sorted(lists.items())
