"""Compiled kernels compared with loops that define them, on random rows and random cuts.

Finds: a row lost when an index grows, is trimmed, or is rebuilt; a window cut wrong at either end;
a NULL that matches; a result that does not fit the output and is lost or repeated.
"""

from __future__ import annotations

import itertools
import operator
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from seustream.engine.kernels import native
from seustream.engine.kernels.native import Chains, Codes, Runs

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8] | None
Find = Callable[[int, Ints, Ints], tuple[int, int]]

OPS = (operator.lt, operator.eq, operator.gt, operator.ge, operator.le, operator.ne)


def all_pairs(find: Find, probes: int, room: int) -> list[tuple[int, int]]:
    """Returns all results of a search, however little room each call has."""
    found: list[tuple[int, int]] = []
    start = 0
    while start < probes:
        who, row = np.empty(room, np.int64), np.empty(room, np.int64)
        following, filled = find(start, who, row)
        if following == start:
            room *= 2
        found += zip(who[:filled].tolist(), row[:filled].tolist(), strict=True)
        start = following
    return found


@dataclass
class Rows:
    """Rows stored from `first` on: a key, another value, and which of them are NULL."""

    chance: np.random.Generator
    spread: int
    first: int
    key: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    other: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    there: npt.NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))

    def add(self, count: int, nulls: bool) -> tuple[Ints, Flags]:
        key = self.chance.integers(-self.spread, self.spread, count)
        there = (self.chance.random(count) > (0.2 if nulls else 0)).astype(np.uint8)
        self.key = np.concatenate((self.key, key))
        self.there = np.concatenate((self.there, there))
        self.other = np.concatenate((self.other, self.chance.integers(0, 9, count)))
        return key, there if nulls else None

    @property
    def end(self) -> int:
        return self.first + len(self.key)

    def drop(self, before: int) -> None:
        gone = before - self.first
        self.key, self.other, self.there = self.key[gone:], self.other[gone:], self.there[gone:]
        self.first = before


@dataclass
class Asked:
    """Probes over some rows, in the order of their arrival or not."""

    low: Ints
    high: Ints
    key: Ints
    there: Flags
    other: Ints
    op: int

    @classmethod
    def random(cls, rows: Rows, in_order: bool) -> Asked:
        chance = rows.chance
        count = int(chance.integers(0, 40))
        high = chance.integers(rows.first, rows.end + 1, count)
        if in_order:
            high.sort()
        low = np.maximum(rows.first, high - chance.integers(0, rows.end - rows.first + 2, count))
        there = (chance.random(count) > 0.1).astype(np.uint8)
        return cls(
            low,
            high,
            chance.integers(-rows.spread, rows.spread, count),
            there if chance.random() < 0.5 else None,
            chance.integers(0, 9, count),
            int(chance.integers(0, 6)),
        )

    def expected(self, rows: Rows, fits: Callable[[int, int], bool]) -> list[tuple[int, int]]:
        return [
            (probe, number)
            for probe in range(len(self.low))
            if self.there is None or self.there[probe]
            for number in range(int(self.low[probe]), int(self.high[probe]))
            if rows.there[number - rows.first]
            and fits(probe, number - rows.first)
            and OPS[self.op](rows.other[number - rows.first], self.other[probe])
        ]

    def rest(self, rows: Rows) -> native.Test:
        return self.op, rows.other, None, self.other, None


def random_rows(seed: int) -> tuple[np.random.Generator, Rows]:
    print(f"seed {seed}")
    chance = np.random.default_rng(seed)
    first = int(chance.choice((0, 0, 5, 1 << 40)))
    return chance, Rows(chance, int(chance.choice((1, 5, 400))), first)


@pytest.mark.parametrize("seed", range(40))
def test_chains(seed: int) -> None:
    chance, rows = random_rows(seed)
    chains, sizes = Chains(), (0, 1, 7, 300)
    chains.drop(rows.first)
    found = 0
    for _ in range(12):
        chains.append(*rows.add(int(chance.choice(sizes)), chance.random() < 0.5))
        asked = Asked.random(rows, chance.random() < 0.7)

        def find(start: int, who: Ints, row: Ints, asked: Asked = asked) -> tuple[int, int]:
            return chains.probe(
                asked.key, asked.there, start, asked.low, asked.high, rows.first,
                (asked.rest(rows),), who, row,
            )  # fmt: skip

        def fits(probe: int, place: int, asked: Asked = asked) -> bool:
            return bool(rows.key[place] == asked.key[probe])

        want = asked.expected(rows, fits)
        assert all_pairs(find, len(asked.low), int(chance.choice((1, 3, 5000)))) == want
        found += len(want)
        if chance.random() < 0.6:
            rows.drop(int(chance.integers(rows.first, rows.end + 1)))
            chains.drop(rows.first)
    assert found or rows.spread == 400


@pytest.mark.parametrize("seed", range(40))
def test_runs(seed: int) -> None:
    chance, rows = random_rows(1000 + seed)
    runs, sizes = Runs(), (0, 1, 63, 64, 700, 2500)
    runs.drop(rows.first)
    for _ in range(8):
        runs.append(*rows.add(int(chance.choice(sizes)), chance.random() < 0.5))
        asked = Asked.random(rows, chance.random() < 0.5)
        greatest = asked.key + chance.integers(-2, 2 + rows.spread // 8, len(asked.key))

        def find(
            start: int, who: Ints, row: Ints, asked: Asked = asked, greatest: Ints = greatest
        ) -> tuple[int, int]:
            return runs.probe(
                asked.key, greatest, asked.there, start, asked.low, asked.high, rows.first,
                (asked.rest(rows),), who, row,
            )  # fmt: skip

        def fits(probe: int, place: int, asked: Asked = asked, greatest: Ints = greatest) -> bool:
            return bool(asked.key[probe] <= rows.key[place] <= greatest[probe])

        assert all_pairs(find, len(asked.low), 64) == asked.expected(rows, fits)
        if chance.random() < 0.6:
            rows.drop(int(chance.integers(rows.first, rows.end + 1)))
            runs.drop(rows.first)


@pytest.mark.parametrize("seed", range(4))
def test_long_runs(seed: int) -> None:
    """Runs of 262,144 rows, which hold their values, over rows that leave in between."""
    chance, rows = random_rows(1500 + seed)
    rows.spread = 1 << 40
    runs, sizes = Runs(), chance.permutation([100, 70_000, 200_000, 300_000])
    runs.drop(rows.first)
    for size in sizes:
        runs.append(*rows.add(int(size), chance.random() < 0.5))
        middle = chance.choice(rows.key, 5)
        least, greatest = middle - (1 << 34), middle + (1 << 34)
        low = chance.integers(rows.first, rows.first + 300, 5)
        who, row = np.empty(100_000, np.int64), np.empty(100_000, np.int64)
        stop, filled = runs.probe(
            least, greatest, None, 0, low, np.full(5, rows.end), rows.first, (), who, row
        )
        assert stop == 5
        for probe in range(5):
            here = (rows.key >= least[probe]) & (rows.key <= greatest[probe]) & (rows.there != 0)
            want = np.flatnonzero(here) + rows.first
            assert np.array_equal(row[:filled][who[:filled] == probe], want[want >= low[probe]])
        rows.drop(rows.first + int(chance.integers(0, len(rows.key) // 3)))
        runs.drop(rows.first)


@pytest.mark.parametrize("seed", range(8))
def test_chains_of_many_keys(seed: int) -> None:
    """Tables of more keys than a small one has, while keys come and go. In half of them, keys of more than 32 bits
    come later; keys that differ in the higher bits alone are asked for in all."""
    chance, rows = random_rows(1600 + seed)
    rows.spread = int(chance.choice((3_000, 200_000, 1 << 62)))
    chains = Chains()
    chains.drop(rows.first)
    for step, size in enumerate(chance.permutation([10, 3_000, 40_000, 90_000, 20_000, 60_000])):
        if seed % 2 and step == 3:
            rows.spread = 1 << 33
        chains.append(*rows.add(int(size), chance.random() < 0.5))
        keys = np.tile(chance.choice(rows.key, 50), 2)
        keys[50:] ^= 1 << 32
        below = chance.integers(rows.first, rows.end + 1, 100)
        found = np.empty(100, np.int64)
        chains.latest(keys, None, below, found)
        for key, limit, at in zip(keys, below, found, strict=True):
            there = (rows.key[: limit - rows.first] == key) & (
                rows.there[: limit - rows.first] != 0
            )
            assert at == (rows.first + np.flatnonzero(there)[-1] if there.any() else -1)
        rows.drop(rows.first + int(chance.integers(0, len(rows.key))))
        chains.drop(rows.first)


@pytest.mark.parametrize("seed", range(60))
def test_scan(seed: int) -> None:
    """Tests with one comparison, with two, with none."""
    chance, rows = random_rows(2000 + seed)
    rows.add(int(chance.choice((3, 256, 257, 900))), True)
    asked = Asked.random(rows, False)
    op = seed % 6
    tests: list[native.Test] = [(op, rows.key, rows.there, asked.key, asked.there)]
    tests += [asked.rest(rows)] if seed % 4 else []

    def find(start: int, who: Ints, row: Ints) -> tuple[int, int]:
        return native.scan(start, asked.low, asked.high, rows.first, tuple(tests), who, row)

    def fits(probe: int, place: int) -> bool:
        return bool(OPS[op](rows.key[place], asked.key[probe]))

    if not seed % 4:
        asked.op, asked.other = 3, np.zeros(len(asked.low), np.int64)
    assert all_pairs(find, len(asked.low), 64) == asked.expected(rows, fits)
    windows = np.clip(asked.high - asked.low, 0, None)
    tests.clear()
    assert len(all_pairs(find, len(asked.low), 64)) == int(windows.sum())


@pytest.mark.parametrize("seed", range(20))
def test_places(seed: int) -> None:
    print(f"seed {seed}")
    chance = np.random.default_rng(seed)
    among = np.sort(chance.integers(0, 50, int(chance.integers(0, 60))))
    numbers = np.append(
        chance.integers(-3, 55, 40), [np.iinfo(np.int64).min, np.iinfo(np.int64).max]
    )
    base = int(chance.choice([0, -7, np.iinfo(np.int64).min, np.iinfo(np.int64).max - 60]))
    above = among.astype(np.uint32)
    for wanted in (numbers, np.sort(numbers)):
        for after, side in ((False, "left"), (True, "right")):
            out = np.empty(len(wanted), np.int64)
            native.places(among, None, wanted, after, out)
            assert out.tolist() == np.searchsorted(among, wanted, side).tolist()
            native.places(above, base, wanted, after, out)
            assert out.tolist() == np.searchsorted(among + base, wanted, side).tolist()


@pytest.mark.parametrize("seed", range(10))
def test_codes(seed: int) -> None:
    print(f"seed {seed}")
    chance = np.random.default_rng(seed)
    codes, known = Codes(), dict[bytes, int]()
    for _ in range(5):
        texts = [
            b"\0" * int(chance.integers(0, 3)) + b"abcdefghijklmnop"[: chance.integers(0, 17)]
            + str(chance.integers(0, 60)).encode()
            for _ in range(int(chance.integers(0, 120)))
        ]  # fmt: skip
        column = pa.array([text.decode() for text in texts], pa.string())
        both = pa.chunked_array([column.slice(0, 3), column.slice(3)])
        unknown = both.filter(pa.array([t not in known for t in texts], pa.bool_()))
        assert codes.among(both.__arrow_c_stream__()) is any(text in known for text in texts)
        assert not codes.among(unknown.__arrow_c_stream__())
        out = np.empty(len(texts), np.int64)
        native.numbers(*column.__arrow_c_array__(), codes, out, None)
        assert out.tolist() == [known.setdefault(text, len(known)) for text in texts]
    assert codes.count() == len(known)


def test_what_would_read_past_an_end_is_refused() -> None:
    eight, none = np.zeros(8, np.int64), np.empty(0, np.int64)
    chains = Chains()
    chains.append(eight, None)
    who = np.empty(8, np.int64)
    with pytest.raises(RuntimeError, match="not stored"):
        chains.probe(eight, None, 0, eight, eight + 9, 0, (), who, who)
    with pytest.raises(ValueError, match="items"):
        chains.probe(none, None, 0, eight, eight + 1, 0, (), who, who)
    with pytest.raises(ValueError, match="items"):
        native.scan(0, eight, eight + 9, 0, ((0, eight, None, eight, None),), who, who)
    with pytest.raises(RuntimeError, match="before"):
        native.scan(0, eight, eight + 9, 1, (), who, who)
    with pytest.raises(TypeError, match="bytes"):
        chains.append(eight.astype(np.int32), None)
    with pytest.raises(RuntimeError, match="no such"):
        native.scan(0, eight, eight + 1, 0, ((6, eight, None, eight, None),), who, who)
    column = pa.array([1, 2, 3])
    with pytest.raises(ValueError, match="2 items"):
        native.numbers(*column.__arrow_c_array__(), Codes(), np.empty(2, np.int64), None)
    with pytest.raises(RuntimeError, match="other lengths"):
        native.keys((column.__arrow_c_array__(),), Codes(), np.empty(4, np.int64))
    rows = pa.table([column], names=["a"])
    with pytest.raises(RuntimeError, match="no such column"):
        native.sound(rows.__arrow_c_stream__(), np.array([1, 0, 0, -1, 1, 0]))
    stream = rows.column(0).__arrow_c_stream__()
    native.times(stream)
    with pytest.raises(RuntimeError, match="no rows"):
        native.times(stream)
    with pytest.raises(RuntimeError, match="want l"):
        native.times(pa.chunked_array([[1.5]]).__arrow_c_stream__())


@pytest.mark.parametrize("seed", range(40))
def test_sequences(seed: int) -> None:
    """Finds matches that end with the newest events, while events are forgotten; compared with all
    combinations."""
    print(f"seed {seed}")
    chance = np.random.default_rng(seed)
    count, window = int(chance.integers(1, 5)), int(chance.integers(1, 30))
    parents = hung(chance, count)
    links = [
        (int(chance.integers(0, 6)), one, int(chance.integers(0, 2)), other, int(chance.integers(0, 2)))
        for one, other in itertools.permutations(range(count), 2)
        if chance.random() < (0.7 if parents[one] == other else 0.1)
    ]  # fmt: skip
    kernel = native.Sequence()
    flat = np.array(in_both_directions(links, parents), np.int64).reshape(-1)
    kernel.configure(np.array(parents), flat, 2, window)
    kept: list[list[tuple[int, int, tuple[int | None, ...]]]] = [[] for _ in range(count)]
    now = number = 0
    for _ in range(int(chance.integers(1, 60))):
        first, added, events = number, [0] * count, []
        for _ in range(int(chance.integers(0, 6))):
            now += int(chance.integers(0, 4))
            values = tuple(
                int(chance.integers(0, 4)) if chance.random() < 0.9 else None for _ in range(2)
            )
            fits = chance.random(count) < (0.3 if seed % 3 else 1 / count)
            events.append((now, values, fits))
            for element in fits.nonzero()[0]:
                kept[element].append((now, number, values))
                added[element] += 1
            number += 1
        columns = []
        for i in range(2):
            flags = np.array([values[i] is not None for _, values, _ in events], np.uint8)
            every = flags.all() and seed % 2
            numbers = np.array([values[i] or 0 for _, values, _ in events], np.int64)
            columns.append((numbers, None if every else flags))
        places = tuple(
            np.array([at for at, event in enumerate(events) if event[2][e]], np.int64)
            for e in range(count)
        )
        times = np.array([event[0] for event in events], np.int64)
        kernel.append(first, times, tuple(columns), places)
        expected = {
            tuple(event[1] for event in events)
            for events in itertools.product(*kept[:-1], kept[-1][len(kept[-1]) - added[-1] :])
            if all(one[0] < two[0] for one, two in itertools.pairwise(events))
            and events[0][0] >= events[-1][0] - window
            and all(
                None not in (sides := (events[one][2][own], events[other][2][its]))
                and OPS[op](*sides)
                for op, one, own, other, its in links
            )
        }
        rows = found_by(kernel, first, count)
        assert len(rows) == len(expected)
        assert set(map(tuple, rows)) == expected
        if len(rows) > 1:
            assert kernel.search(first, 1 << 30, len(rows) - 1) is None
        assert expected <= {()} or count == 1 or kernel.search(first, 0, 1 << 20) is None
        kernel.forget(now - window)
        kept = [[event for event in some if event[0] >= now - window] for some in kept]


def hung(chance: np.random.Generator, count: int) -> list[int]:
    """Returns for each element the one on which it hangs, in a random tree without crossing edges."""
    parents = [-1] * count

    def hang(root: int, low: int, high: int) -> None:
        for begin, end in ((low, root), (root + 1, high)):
            while begin < end:
                until = int(chance.integers(begin, end)) + 1
                child = int(chance.integers(begin, until))
                parents[child] = root
                hang(child, begin, until)
                begin = until

    hang(count - 1, 0, count)
    return parents


MIRRORED = (2, 1, 0, 4, 3, 5)
"""By operator, the one that means the same with the sides exchanged."""

Link = tuple[int, int, int, int, int]


def in_both_directions(links: list[Link], parents: list[int]) -> list[Link]:
    """Returns the links as the kernel wants them: from what hangs to what it hangs on, and back if
    that is earlier."""
    found = []
    for link in links:
        op, one, own, other, its = link
        back = MIRRORED[op], other, its, one, own
        if parents[other] == one:
            link, back = back, link
        found.append(link)
        if parents[link[1]] == link[3] < link[1]:
            found.append(back)
    return found


def found_by(kernel: native.Sequence, first: int, count: int) -> list[list[int]]:
    """Returns the matches that end with one of the newest events, from a number on."""
    matches = kernel.search(first, 1 << 30, 1 << 20)
    assert matches is not None
    rows = np.empty((count, matches), np.int64)
    kernel.take(rows, 0)
    return rows.T.tolist()


@pytest.mark.parametrize("seed", range(24))
def test_sequences_of_many_events(seed: int) -> None:
    """Windows of thousands of events, which are kept in order by value."""
    print(f"seed {seed}")
    chance = np.random.default_rng(seed)
    count, window = int(chance.integers(2, 5)), int(chance.integers(1_000, 5_000))
    parents = hung(chance, count)
    wide, spread = chance.choice([100, 300, 2_000]), 30
    columns = [wide, spread]
    links: list[Link] = []
    for one, other in enumerate(parents[:-1]):
        links.append((1, one, 0, other, 0))
        if chance.random() < 0.7:
            links.append((int(chance.choice([0, 2, 3, 4])), one, 1, other, 1))
    kernel = native.Sequence()
    flat = np.array(in_both_directions(links, parents), np.int64).reshape(-1)
    assert kernel.configure(np.array(parents), flat, 2, window)
    numbers: list[Ints] = [np.empty(0, np.int64)] * count
    times: list[Ints] = [np.empty(0, np.int64)] * count
    values: list[Ints] = [np.empty((2, 0), np.int64)] * count
    now = first = 0
    both = 0.0 if seed % 2 else 0.1  # the share of events that fit other elements, too
    for _ in range(5):
        size = int(chance.integers(500, 2_000))
        fresh = np.sort(chance.integers(now + 1, now + 2_000, size))
        now, element, fits = now + 2_000, chance.integers(0, count, size), list[Ints]()
        given = np.array([chance.integers(0, most, size) for most in columns])
        for e in range(count):
            own = (element == e) | (chance.random(size) < both)
            fits.append(own.nonzero()[0])
            numbers[e] = np.concatenate((numbers[e], first + fits[e]))
            times[e] = np.concatenate((times[e], fresh[own]))
            values[e] = np.concatenate((values[e], given[:, own]), axis=1)
        kernel.append(first, fresh, tuple((column, None) for column in given), tuple(fits))
        begin, first = first, first + size
        if chance.random() < 0.3:
            continue  # it catches up later
        expected = joined(times, values, parents, links, window, len(fits[-1]))
        expected = np.stack([numbers[e][expected[:, e]] for e in range(count)], axis=1)
        found = np.array(found_by(kernel, begin, count), np.int64).reshape(-1, count)
        assert len(found) == len(expected)
        assert np.array_equal(found[np.lexsort(found.T)], expected[np.lexsort(expected.T)])
        kernel.forget(now + 1 - window)


def test_sequences_of_very_many_events() -> None:
    """A window of so many events that they are numbered in 32 bits, and numbers beyond those."""
    chance = np.random.default_rng(11)
    size, first = 300_000, (1 << 32) - 100_000
    values = np.stack([chance.integers(0, 10_000, size), chance.integers(0, 1_000, size)])
    kernel = native.Sequence()
    links = np.array([1, 0, 0, 1, 0, 2, 0, 1, 1, 1], np.int64)  # a.0 = b.0 and a.1 > b.1
    kernel.configure(np.array([1, -1]), links, 2, 2 * size)
    times = np.arange(size)
    none = np.empty(0, np.int64)
    kernel.append(first, times, tuple((column, None) for column in values), (times, none))
    kernel.search(first, 1 << 40, 1 << 20)
    for now in (size, size + 100):
        kernel.forget(now - size)
        ends = np.stack([chance.integers(0, 10_000, 100), chance.integers(0, 1_000, 100)])
        begin, later = first + now, now + np.arange(100)
        columns = tuple((column, None) for column in ends)
        kernel.append(begin, later, columns, (none, np.arange(100)))
        found = np.array(found_by(kernel, begin, 2), np.int64)
        there = values[:, now - size :]
        who, which = ((there[0] == ends[0][:, None]) & (there[1] > ends[1][:, None])).nonzero()
        expected = np.stack([first + now - size + which, begin + who], axis=1)
        assert len(expected) > 100
        assert np.array_equal(found[np.lexsort(found.T)], expected[np.lexsort(expected.T)])


def joined(
    times: list[Ints],
    values: list[Ints],
    parents: list[int],
    links: list[Link],
    window: int,
    ends: int,
) -> Ints:
    """Returns the matches that end with one of the last events, one element bound after the other
    by comparing each partial match with each event."""
    last = len(times) - 1
    bound = {last: np.arange(len(times[-1]) - ends, len(times[-1]))}
    while len(bound) <= last:
        element = next(e for e in range(last) if e not in bound and parents[e] in bound)
        fits = times[element] >= times[-1][bound[last]][:, None] - window
        for other, rows in bound.items():
            before, after = times[element], times[other][rows][:, None]
            fits &= before < after if element < other else before > after
        for op, one, own, other, its in links:
            if element == one and other in bound:
                fits &= OPS[op](values[one][own], values[other][its][bound[other]][:, None])
            elif element == other and one in bound:
                fits &= OPS[op](values[one][own][bound[one]][:, None], values[other][its])
        who, found = fits.nonzero()
        bound = {e: rows[who] for e, rows in bound.items()} | {element: found}
    return np.stack([bound[e] for e in range(last + 1)], axis=1)


@pytest.mark.parametrize(
    ("parents", "links"),
    [
        ([1, 0, -1], []),  # in a circle
        ([3, 3, 0, -1], []),  # crosswise: 0 to 2, 1 to 3
        ([2, 5, -1], []),
        ([2, 2, -1], [(6, 0, 0, 2, 0)]),
        ([2, 2, -1], [(0, 0, 0, 2, 1)]),
        ([2, 2, -1], [(0, 0, 0, 0, 0)]),
    ],
)
def test_trees_that_are_none(parents: list[int], links: list[Link]) -> None:
    with pytest.raises(RuntimeError):
        native.Sequence().configure(np.array(parents), np.array(links, np.int64).reshape(-1), 1, 5)


def test_events_that_are_none() -> None:
    kernel, one = native.Sequence(), np.arange(1)
    kernel.configure(np.array([1, -1]), np.empty(0, np.int64), 1, 5)
    kernel.append(7, one, ((one, None),), (one, one))
    with pytest.raises(RuntimeError, match="do not follow"):
        kernel.append(9, one, ((one, None),), (one, one))
    with pytest.raises(RuntimeError, match="not there"):
        kernel.append(8, one, ((one, None),), (one + 1, one))
    with pytest.raises(RuntimeError, match="another sequence"):
        kernel.append(8, one, (), (one, one))
    with pytest.raises(RuntimeError, match="another sequence"):
        kernel.append(8, one, ((one, None),), (one,))


@pytest.mark.parametrize("seed", range(40))
def test_matches_are_ordered_by_their_events(seed: int) -> None:
    chance = random.Random(seed)
    stages, most = chance.choice([1, 2, 3]), chance.choice([1, 2, 4])
    spread = chance.choice([1, 2, 5, 1000])
    matches = [
        (
            chance.randrange(chance.choice([1, 3])),
            [
                [chance.randrange(spread) for _ in range(chance.randint(0, most))]
                for _ in range(stages)
            ],
        )
        for _ in range(chance.choice([0, 1, 5, 50, 2000]))
    ]
    counts = tuple(np.array([len(each[s]) for _, each in matches], np.int64) for s in range(stages))
    numbers = tuple(
        np.array([n for _, each in matches for n in each[s]], np.int64) for s in range(stages)
    )
    order = np.empty(len(matches), np.int64)
    native.ordered(np.array([d for d, _ in matches], np.int64), counts, numbers, order)
    assert sorted(order.tolist()) == [*range(len(matches))]
    assert [matches[one] for one in order] == sorted(matches)


@pytest.mark.parametrize("seed", range(20))
def test_matches_are_taken_in_order_once_they_are_certain(seed: int) -> None:
    """A match of one or more events of a group, then another. Numbers are not in the order of
    time, and each event counts from those that are gone."""
    chance = random.Random(seed)
    kernel = native.Subsets()
    kernel.configure(np.array([0, 0, 0, 1, 1, 1, 1, 0, 1, 0], np.int64), 2, -1)
    count = chance.randint(2, 18)
    fits = [chance.choice([1, 1, 1, 2, 3]) for _ in range(count)]
    first, gone = chance.choice([0, 7]), 0
    events = range(first, first + count)
    numbers = chance.sample(range(1000), count)
    if first:  # events before these are of no match
        none = np.zeros(first, np.int64)
        assert kernel.advance(none, np.arange(first), none, 0, 1) == -1
        gone = first
    given = np.zeros(count, np.int64), np.array(events), np.array(fits, np.int64)
    assert kernel.advance(*given, 0, 1 << 62) == -1
    expected = [
        (last, [list(group), [last]])
        for last in events
        if fits[last - first] & 2
        for size in range(1, count)
        for group in itertools.combinations(
            [e for e in range(first, last) if fits[e - first] & 1], size
        )
    ]
    expected.sort(key=lambda one: (one[0], [[numbers[e - first] for e in of] for of in one[1]]))
    found = []
    for to in (first + count // 2, first + count):
        certain = kernel.certain(to)
        determined, stages = kernel.take(to, np.array(numbers, np.int64), gone, False)
        sizes = [np.frombuffer(of, np.int64) for of, _ in stages]
        rows = [iter(np.frombuffer(of, np.int64).tolist()) for _, of in stages]
        for match, when in enumerate(np.frombuffer(determined, np.int64).tolist()):
            assert when <= to
            found.append(
                (
                    when,
                    [
                        [e + gone for e in itertools.islice(own, int(of[match]))]
                        for of, own in zip(sizes, rows, strict=True)
                    ],
                )
            )
        assert len(determined) == 8 * certain
    assert found == expected
    assert kernel.certain(first + count) == 0


@pytest.mark.parametrize("seed", range(20))
def test_subsets_come_in_order_part_by_part(seed: int) -> None:
    """Groups of two keys before a last event, several of which have one time."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    kernel, within = native.Subsets(), chance.choice([2, 4, 99])
    kernel.configure(np.array([0, 0, 0, 1, 1, 1, 1, 0, 1, 0], np.int64), 2, within)
    count, part = chance.randint(2, 14), chance.choice([1, 5, 30])
    keys = [chance.randrange(2) for _ in range(count)]
    times = sorted(chance.randrange(8) for _ in range(count))
    fits = [chance.choice([1, 1, 1, 2, 3]) for _ in range(count)]
    expected = [
        (times[last], [*group, last])
        for last in range(count)
        if fits[last] & 2
        for size in range(1, count)
        for group in itertools.combinations(
            [e for e in range(last) if fits[e] & 1 and keys[e] == keys[last]], size
        )
        if times[group[-1]] < times[last] <= times[group[0]] + within
    ]
    # A group that is the beginning of another comes first: its end is that of a stage.
    expected.sort(key=lambda one: (one[0], one[1][:-1], one[1][-1]))
    given = [np.array(one, np.int64) for one in (keys, times, fits)]
    found, at = list[tuple[int, list[int]]](), 0
    while at >= 0:
        at = kernel.advance(given[0], given[1], given[2], at, part)
        determined, stages = kernel.take(99, np.arange(count), 0, True)
        (sizes, group), (_, last) = [[np.frombuffer(of, np.int64) for of in one] for one in stages]
        assert len(group) + len(last) < part + count
        rest = iter(group.tolist())
        for when, size, end in zip(np.frombuffer(determined, np.int64), sizes, last, strict=True):
            found.append((int(when), [*itertools.islice(rest, int(size)), int(end)]))
    assert found == expected


def test_a_match_of_an_event_without_a_number_is_refused() -> None:
    kernel = native.Subsets()
    kernel.configure(np.array([0, 0, 0, 1, 1], np.int64), 1, -1)
    kernel.advance(np.zeros(2, np.int64), np.arange(2), np.ones(2, np.int64), 0, 99)
    for short, gone in ((1, 0), (2, 1)):
        with pytest.raises(RuntimeError, match="without a number"):
            kernel.take(2, np.zeros(short, np.int64), gone, True)
    assert kernel.certain(2) == 3


@pytest.mark.parametrize("seed", range(8))
def test_times_of_pieces(seed: int) -> None:
    print(f"seed {seed}")
    chance = np.random.default_rng(seed)
    for _ in range(50):
        times = chance.integers(-9, 9, int(chance.integers(1, 9)))
        if chance.random() < 0.6:
            times.sort()
        cuts = np.sort(chance.integers(0, len(times) + 1, 3))
        pieces = [pa.array(part) for part in np.split(times, cuts)]
        found = native.times(pa.chunked_array(pieces).__arrow_c_stream__())
        wanted = (times[0], times[-1], bool((times[1:] >= times[:-1]).all()))
        assert found == wanted
        rows = pa.table({"ts": times}).slice(len(times) // 3)
        _, _, told = native.sound(rows.__arrow_c_stream__(), np.array([0, 0, 1, -1, 1, 0])) or (
            0,
            0,
            0,
        )
        assert told == native.times(rows.column("ts").__arrow_c_stream__())
    batch = pa.record_batch({"ts": times[:0]})
    empty = pa.RecordBatchReader.from_batches(batch.schema, [batch])
    none = native.sound(empty.__arrow_c_stream__(), np.empty(0, np.int64))
    assert none is not None
    assert none[2] is None


@pytest.mark.parametrize("seed", range(8))
def test_keys_of_several_columns(seed: int) -> None:
    print(f"seed {seed}")
    chance, codes, known = random.Random(seed), native.Codes(), dict[tuple[object, ...], int]()
    choices: list[tuple[pa.DataType, list[object]]] = [
        (pa.string(), ["", "a", "ab", "b", None]),
        (pa.string(), ["b", "", "ab", None]),
        (pa.float64(), [0.0, -0.0, 1.5, None]),
        (pa.int16(), [0, 1, 256, None]),
        (pa.bool_(), [True, False, None]),
        (pa.decimal128(30, 2), [Decimal("1.00"), Decimal(10**20), None]),
        (pa.null(), [None]),
    ]
    for _ in range(4):
        cells = [[chance.choice(some) for _ in range(40)] for _, some in choices]
        columns = [
            pa.array([None, *mine], of).slice(1)
            for (of, _), mine in zip(choices, cells, strict=True)
        ]
        out = np.empty(40, np.int64)
        native.keys(tuple(one.__arrow_c_array__() for one in columns), codes, out)
        rows = zip(*cells, strict=True)
        assert out.tolist() == [known.setdefault(row, len(known)) for row in rows]


@pytest.mark.parametrize("seed", range(8))
def test_rows_between_two_bounds(seed: int) -> None:
    print(f"seed {seed}")
    chance = np.random.default_rng(seed)
    for _ in range(30):
        values = chance.integers(-5, 6, int(chance.integers(0, 40)))
        flags = (chance.random(len(values)) < 0.8).astype(np.uint8)
        low, high = chance.integers(-6, 7, 2).tolist()
        rows = np.empty(len(values), np.int32)
        for known in (None, flags):
            count = native.inside(values, known, low, high, rows)
            fits = (values >= low) & (values <= high) & (True if known is None else known != 0)
            assert rows[:count].tolist() == np.flatnonzero(fits).tolist()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_real(dtype: str) -> None:
    values = np.arange(40, dtype=dtype)
    values[[3, 30]] = np.nan
    values[5:7] = np.inf, -np.inf
    data = pa.py_buffer(values)
    for begin in range(40):
        for count in range(40 - begin):
            wanted = not np.isnan(values[begin : begin + count]).any()
            assert native.real(data, begin, count, values.itemsize) is wanted
    with pytest.raises(ValueError, match="want"):
        native.real(data, 1, 40, values.itemsize)


@pytest.mark.parametrize("seed", range(12))
def test_intervals(seed: int) -> None:
    """Open and single-valued intervals, empty ones and equal ones; NULLs and limits of the type;
    few rows and many."""
    print(f"seed {seed}")
    chance = np.random.default_rng(seed)
    ends = np.array([-(2**63), 2**63 - 1])
    count, reach = int(chance.integers(0, 90)), int(chance.choice([0, 3, 30]))
    low = chance.integers(-20, 20, count)
    high = low + chance.integers(-2, reach + 1, count)
    low = np.where(chance.random(count) < 0.2, chance.choice(ends, count), low)
    high = np.where(chance.random(count) < 0.2, chance.choice(ends, count), high)
    kernel = native.Intervals()
    kernel.configure(low, high)
    for rows in (0, 1, 7, 400):
        values = chance.integers(-25, 25, rows)
        if rows:
            values[chance.integers(0, rows, 2)] = chance.choice(ends)
        there = (chance.random(rows) < 0.9).astype(np.uint8)
        flags = there if chance.random() < 0.5 else None
        known = there.astype(np.bool_) if flags is not None else np.ones(rows, np.bool_)
        fits = [
            np.flatnonzero((values >= a) & (values <= b) & known)
            for a, b in zip(low, high, strict=True)
        ]
        found, pairs = kernel.find(values, flags)
        assert found == sum(len(some) > 0 for some in fits)
        numbers, counts = np.empty(found, np.int64), np.empty(found, np.int64)
        out = np.empty(pairs, np.int32)
        kernel.take(numbers, counts, out)
        assert numbers.tolist() == [n for n, some in enumerate(fits) if len(some)]
        assert counts.tolist() == [len(fits[n]) for n in numbers]
        listed = [fits[n] for n in numbers if len(fits[n]) < rows]
        assert out.tolist() == [row for some in listed for row in some.tolist()]


def test_intervals_refuse_short_arrays() -> None:
    kernel = native.Intervals()
    with pytest.raises(ValueError, match="want 2"):
        kernel.configure(np.array([1, 2]), np.array([3]))
    kernel.configure(np.array([1, 2]), np.array([3, 3]))
    with pytest.raises(ValueError, match="want 3"):
        kernel.find(np.array([1, 2, 9]), np.ones(2, np.uint8))
    one, two = np.empty(1, np.int64), np.empty(2, np.int64)
    for short in ((one, two, 3), (two, one, 3), (two, two, 2)):
        found = kernel.find(np.array([1, 2, 9]), None)
        assert found == (2, 3)
        with pytest.raises(ValueError, match="want"):
            kernel.take(*short[:2], np.empty(short[2], np.int32))


@pytest.mark.parametrize("seed", range(20))
def test_rows_apart(seed: int) -> None:
    """A row has a flag unless one with its key has had one at most `reach` before."""
    chance = np.random.default_rng(seed)
    order = dict[int, int]()  # keys by their first row
    keys = np.array(
        [order.setdefault(key, len(order)) for key in chance.integers(0, 5, 60).tolist()]
    )
    clock = np.sort(chance.integers(-40, 40, 60))
    if chance.random() < 0.5:
        clock[0], clock[-1] = -(2**63), 2**63 - 1
    reach = int(chance.choice(np.array([0, 2, 19, 2**63 - 1, 2**64 - 1], np.uint64)))
    last, given, want = np.zeros(5, np.int64), dict[int, int](), []
    for key, now in zip(keys.tolist(), clock.tolist(), strict=True):
        want.append(key not in given or now - given[key] > reach)
        if want[-1]:
            given[key] = now
    found, cut = np.empty(60, np.uint8), int(chance.integers(0, 61))
    known = len({*keys[:cut].tolist()})
    count = native.apart(keys[:cut], clock[:cut], reach, last, 0, found[:cut])
    count += native.apart(keys[cut:], clock[cut:], reach, last, known, found[cut:])
    assert found.tolist() == want
    assert count == sum(want)
    assert {key: at for key, at in enumerate(last.tolist()) if key in given} == given


def test_rows_apart_of_a_key_that_is_not_there() -> None:
    one = np.zeros(1, np.int64)
    for key, known in ((-1, 0), (1, 1), (0, -1)):
        with pytest.raises(RuntimeError, match="not there"):
            native.apart(one + key, one, 1, one.copy(), known, np.empty(1, np.uint8))


@pytest.mark.parametrize("seed", range(20))
def test_last_rows_of_keys(seed: int) -> None:
    chance = random.Random(seed)
    size, of = chance.choice([1, 1, 2, 3, 50]), native.LastOfKeys()
    of.configure(size)
    last, came = dict[int, list[int]](), 0
    for _ in range(20):
        keys = [chance.randint(0, 6) for _ in range(chance.randint(0, 9))]
        numbers = [came + 3 * n for n in range(len(keys))]
        came += 3 * len(keys)
        want = []
        for key, number in zip(keys, numbers, strict=True):
            mine = last.setdefault(key, [])
            mine.append(number)
            want.append(mine.pop(0) if len(mine) > size else -1)
        out = np.empty(len(keys), np.int64)
        of.add(np.array(keys, np.int64), np.array(numbers, np.int64), out)
        assert out.tolist() == want
        held = np.empty(of.count(), np.int64), np.empty(of.count(), np.int64)
        of.held(*held)
        pairs = [(key, number) for key, mine in sorted(last.items()) for number in mine]
        assert list(zip(*(each.tolist() for each in held), strict=True)) == pairs
