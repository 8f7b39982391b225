"""Checks tests of windows against the definition: a query has a tuple that is in all of its
windows."""

from __future__ import annotations

import random

import pytest

from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.device import UNUSED, Route, Tables, Window, WindowKind
from seustream.hdl.window_tests import SET_BITS, TEST_BITS, Then, WindowTests

QUERIES = 64
RANGE, ROWS, UNBOUNDED = WindowKind.RANGE, WindowKind.ROWS, WindowKind.UNBOUNDED


def walk(
    tests: WindowTests, tag: int, queries: int, carries: int, ages: list[int], ranks: list[int]
) -> tuple[int, int]:
    """Returns the queries of a tuple, and in how many tests they are found."""
    number = tests.first[tag]
    for taken in range(1, 1 << TEST_BITS):
        test = tests.tests[number]
        low, high = test.limits
        assert low <= high

        def under(limit: int, kinds: tuple[WindowKind, ...] = test.kinds) -> bool:
            values = {RANGE: ages, ROWS: ranks}
            return all(
                kind not in values or not carries >> s & 1 or values[kind][s] < limit
                for s, kind in enumerate(kinds)
            )

        step = test.steps[0 if under(low) else 1 if under(high) else 2]
        number = step.index
        if step.then is Then.SET:
            queries &= tests.sets[step.index].queries
            number = tests.sets[step.index].next
            if not number:
                return queries, taken
        elif step.then is not Then.TEST:
            return queries if step.then is Then.ALL else 0, taken
    raise AssertionError("it never ends")


def tables(windows: list[tuple[Window, ...]], routes: dict[int, set[int]], raw: int = 0) -> Tables:
    """Returns tables whose first `raw` route tags are those of raw tuples."""
    return Tables(
        groups=tuple(range(raw)),
        selections=(),
        admission=(),
        areas=(),
        routes={tag: Route(queries=frozenset(some)) for tag, some in routes.items()},
        windows=tuple(windows),
    )


def by_definition(
    windows: list[tuple[Window, ...]],
    some: set[int],
    carries: int,
    ages: list[int],
    ranks: list[int],
) -> int:
    def has(query: int) -> bool:
        return all(
            not carries >> s & 1
            or (
                not (each.kind is RANGE and ages[s] > each.size)
                and not (each.kind is ROWS and ranks[s] >= each.size)
            )
            for s, each in enumerate(windows[query])
        )

    return sum(1 << query for query in some if has(query))


@pytest.mark.parametrize("seed", range(40))
def test_random_windows(seed: int) -> None:
    chance = random.Random(seed)
    n = chance.randint(2, 4)
    sizes = [chance.randrange(100) for _ in range(chance.choice([1, 3, 8, 200]))]
    kinds = chance.choice([[RANGE], [ROWS], [RANGE, ROWS], [RANGE, ROWS, UNBOUNDED]])
    alike = chance.random() < 0.3

    def row() -> tuple[Window, ...]:
        each = [Window(chance.choice(kinds), chance.choice(sizes)) for _ in range(n)]
        return tuple(each[:1] * n if alike else each)

    windows = [row() for _ in range(chance.choice([1, 2, 5, QUERIES]))]
    tags = chance.sample(range(256), chance.choice([1, 4, 60]))
    numbers = range(len(windows))
    routes = {
        tag: set(
            chance.sample(numbers, chance.choice([1, 1, (len(windows) + 1) // 2, len(windows)]))
        )
        for tag in tags
    }
    tests = WindowTests.of(tables(windows, routes), n)
    _has_room(tests)
    near = [value for size in sizes for value in (size - 1, size, size + 1) if value >= 0]
    for _ in range(300):
        tag = chance.choice(tags)
        carries = chance.randrange(1, 1 << n)
        ages, ranks = ([chance.choice(near) for _ in range(n)] for _ in range(2))
        queries = sum(1 << query for query in routes[tag])
        found, _ = walk(tests, tag, queries, carries, ages, ranks)
        assert found == by_definition(windows, routes[tag], carries, ages, ranks)


def _has_room(tests: WindowTests) -> None:
    assert len(tests.tests) <= 1 << TEST_BITS
    assert len(tests.sets) <= 1 << SET_BITS


@pytest.mark.parametrize("kinds", [(RANGE,), (ROWS,), (RANGE, ROWS)])
@pytest.mark.parametrize("own", [False, True])
def test_the_most_limits_that_there_can_be_have_room(
    kinds: tuple[WindowKind, ...], own: bool
) -> None:
    """64 queries over four streams have no two windows of the same size. A tag is for all of them,
    or there are also many tags for some of them each, which cannot all have tests of their own."""
    chance = random.Random(1)
    drawn = iter(chance.sample(range(1000), QUERIES * 4))
    windows = [
        tuple(Window(kinds[(query + s) % len(kinds)], next(drawn)) for s in range(4))
        for query in range(QUERIES)
    ]
    routes = {7: set(range(QUERIES))}
    if own:
        routes |= {tag: set(chance.sample(range(QUERIES), 20)) for tag in range(20, 90)}
    tests = WindowTests.of(tables(windows, routes), 4)
    _has_room(tests)
    assert set(tests.first) == set(routes)
    for _ in range(500):
        tag = chance.choice(list(routes))
        ages, ranks = ([chance.randrange(1002) for _ in range(4)] for _ in range(2))
        queries = sum(1 << query for query in routes[tag])
        found, _ = walk(tests, tag, queries, 15, ages, ranks)
        assert found == by_definition(windows, routes[tag], 15, ages, ranks)


@pytest.mark.parametrize(
    ("sizes", "most"), [(1, 1), (2, 1), (3, 2), (8, 2), (9, 3), (26, 3), (27, 4), (64, 4)]
)
def test_a_test_finds_one_of_three(sizes: int, most: int) -> None:
    """Therefore a tuple's queries are found in four looks among 64 windows; two windows take one
    look."""
    windows = [(Window(ROWS, 16 * (n + 1)),) * 2 for n in range(sizes)]
    tests = WindowTests.of(tables(windows, {5: set(range(sizes))}), 2)
    looks = {
        walk(tests, 5, (1 << sizes) - 1, 3, [0, 0], [0, rank])[1] for rank in range(16 * sizes + 1)
    }
    assert max(looks) == most
    # No test has one limit where it could have two; the first test is that of the queries without
    # windows.
    assert len(tests.tests) == 1 + -(-sizes // 2)


def test_what_asks_nothing_takes_one_look() -> None:
    tests = WindowTests.of(tables([(Window(UNBOUNDED), UNUSED)], {3: {0}, 4: set()}), 3)
    assert tests.first == {3: 0}
    assert walk(tests, 3, 1, 3, [9, 9], [9, 9]) == (1, 1)
    assert tests.sets == []


def test_streams_with_the_same_window_are_looked_at_together() -> None:
    windows = [(Window(RANGE, 9), Window(RANGE, 9), Window(ROWS, 9))]
    tests = WindowTests.of(tables(windows, {3: {0}}), 4)
    assert [test.kinds for test in tests.tests[1:]] == [
        (RANGE, RANGE, WindowKind.UNUSED, WindowKind.UNUSED),
        (WindowKind.UNUSED, WindowKind.UNUSED, ROWS, WindowKind.UNUSED),
    ]
    assert [test.limits for test in tests.tests[1:]] == [(10, 10), (9, 9)]


def test_a_test_has_the_widest_limit() -> None:
    config = CONFIGURATIONS["default"]
    windows = [(Window(RANGE, config.longest_range), Window(ROWS, config.longest_rows))]
    tests = WindowTests.of(tables(windows, {3: {0}}), 2)
    limits = [limit for test in tests.tests for limit in test.limits]
    assert max(limits) == 1 << config.timestamp_width - 1


def test_a_raw_tuple_is_in_every_window_that_has_its_newest() -> None:
    windows = [(Window(RANGE, 0), UNUSED), (Window(ROWS, 1), UNUSED), (Window(ROWS, 0), UNUSED)]
    found = WindowTests.of(tables(windows, {0: {0, 1}}, raw=2), 2)
    assert (found.first, len(found.tests)) == ({0: 0}, 1)
    found = WindowTests.of(tables(windows, {0: {0, 1, 2}}, raw=2), 2)
    assert found.first[0] != 0
