"""Window tests: a search tree by which the output finds the queries of a joined tuple, with few comparisons of its
ages and ranks.

By its windows, a query requires that the components of some streams are younger, or of lower rank, than a
limit. All limits on the same ages and ranks, the *view*, form a sorted list, of which a tuple satisfies all
from some place on; this place determines which queries remain. A test compares with two limits of a list at
once, so that the place among 80 limits is found by 4 tests. The queries of a tuple are those of its route tag
that remain after all lists, which are searched one after the other.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from seustream.hdl.device import Tables, Window, WindowKind

TEST_BITS, SET_BITS = 8, 8
"""Widths of the numbers of tests and of sets. Tables have at most queries times streams limits, 256, and a list
takes no more tests or sets than it has limits: a single tree for all queries always has room."""
KIND_BITS, THEN_BITS = 2, 2
STEP_BITS = max(TEST_BITS, SET_BITS)
_COUNTED = (WindowKind.RANGE, WindowKind.ROWS)


class Then(enum.IntEnum):
    """Continuations of a test."""

    TEST = 0  # another test
    SET = 1  # only the queries of a set remain; then its next test, or the end if that is test 0
    ALL = 2  # the end, with the queries that remain
    NONE = 3  # the end, without any query


@dataclass(frozen=True, slots=True)
class WindowStep:
    """A continuation, with the number of its test or set."""

    then: Then
    index: int = 0


_ALL, _NONE = WindowStep(Then.ALL), WindowStep(Then.NONE)


@dataclass(frozen=True, slots=True)
class WindowTest:
    """One comparison of a tuple with two limits. For each stream that it carries, `kinds` selects the value that must
    be less than a limit: the age for RANGE, the rank for ROWS, nothing for other kinds.

    limits   the lower one first
    steps    if all values are less than both limits; than the second only; than neither
    """

    kinds: tuple[WindowKind, ...]
    limits: tuple[int, int]
    steps: tuple[WindowStep, WindowStep, WindowStep]


@dataclass(frozen=True, slots=True)
class QuerySet:
    """Queries as a bit map, and the number of the test that follows; 0 for none."""

    queries: int
    next: int


@dataclass(slots=True)
class WindowTests:
    """The tests and sets of an image.

    tests   all tests; test 0 is for tuples whose queries require nothing
    sets    sets of queries
    first   route tag -> its first test, for tags with queries
    """

    tests: list[WindowTest]
    sets: list[QuerySet] = field(default_factory=list)
    first: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, tables: Tables, streams: int) -> WindowTests:
        """The tests of an image, for a device of so many streams. Route tags have trees of their own
        if there is room for all; otherwise one tree of all queries is reserved, for those without room to share."""
        queries = {
            tag: sum(1 << query for query in route.queries)
            for tag, route in sorted(tables.routes.items())
            if route.queries
        }
        # A raw tuple is always in the windows at its own arrival, unless they are ROWS 0.
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
        """Builds the tests; if `shared`, with a tree of all queries for tags without room. Otherwise returns None if
        there is no room for the tree of some tag."""
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
        """Adds a tree for these queries and returns its first test; None, and nothing is added, if there is no
        room."""
        before = len(self.tests), len(self.sets)
        lists = _lists(windows, queries)
        # From the last list to the first, because each leads to a later one.
        later: list[tuple[int, int]] = []  # the queries of a list, and its first test
        for kinds, limits in reversed(lists):
            of_list = sum(limits.values())
            left = [queries]  # queries that remain, by the number of violated limits
            for limit in sorted(limits):
                left.append(left[-1] & ~limits[limit])
            steps = [self._leaf(some, queries, later) for some in left]
            later.insert(0, (of_list, self._search(kinds, sorted(limits), steps)))
        if len(self.tests) > 1 << TEST_BITS or len(self.sets) > 1 << SET_BITS:
            del self.tests[before[0] :], self.sets[before[1] :]
            return None
        return later[0][1] if later else 0

    def _leaf(self, left: int, queries: int, later: Iterable[tuple[int, int]]) -> WindowStep:
        """The step at the end of a list: the queries that remain, and the next list with a limit of one of them."""
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
        """Adds the tests that search for a place among limits and returns the first; there is one more step than
        limits."""
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
                goes.append(steps[at] if part else _NONE)  # no place is between two equal limits
            at += part
        self.tests[number] = WindowTest(kinds, (low, high), (goes[0], goes[1], goes[2]))
        return number


def _has_newest(window: Window) -> bool:
    return window.kind is not WindowKind.ROWS or window.size > 0


def _thirds(count: int) -> tuple[int, int, int]:
    """Divides so many places into the three parts that a test distinguishes. The first parts are as large as the
    tests after it can distinguish anyway, so that few tests have only one limit."""
    if count == 2:
        return 1, 0, 1
    most = next(3**depth for depth in itertools.count() if 3 ** (depth + 1) >= count)
    first = min(most, count - 2)
    second = min(most, count - first - 1)
    return first, second, count - first - second


def _lists(
    windows: Sequence[tuple[Window, ...]], queries: int
) -> list[tuple[tuple[WindowKind, ...], dict[int, int]]]:
    """Lists, by view, each limit on it with the queries that have this limit."""
    lists: dict[tuple[WindowKind, ...], dict[int, int]] = {}
    for query, row in enumerate(windows):
        if queries >> query & 1:
            for window in {each for each in row if each.kind in _COUNTED}:
                kinds = tuple(each.kind if each == window else WindowKind.UNUSED for each in row)
                limit = window.size + (window.kind is WindowKind.RANGE)
                limits = lists.setdefault(kinds, {})
                limits[limit] = limits.get(limit, 0) | 1 << query
    return sorted(lists.items())
