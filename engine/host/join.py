"""The engine's join of one query, over row stores.

Each new row is joined with the contents of the other sources' windows at its arrival, one source
after the other. A condition between two sources decides how partners are found: an equality by key,
an order in a large window by value, everything else by a scan of the window. Conditions that no
kernel handles are evaluated as written, for every combination that is left.

Where a device does most of the work, only combinations with at least one row of the host's are
kept. A row is the host's if its window in the device had no more room for it (hand-over), or if it
could not enter the device at all.

**Faults.** An expression without a value in some row counts only in combinations that no other
condition excludes. While such a row is held, the condition is not a link: it is evaluated on whole
combinations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.engine.host.bands import band_of
from seustream.engine.host.indexed import IndexedRows, Wanted
from seustream.engine.host.links import JoinLink, Search, searches, selections
from seustream.engine.host.rows import IN_DEVICE, RowStore, leaves, reach_back
from seustream.engine.kernels import native
from seustream.engine.stream.evaluate import Leaves, evaluate, holds, survivors
from seustream.engine.stream.nearby import Nearby
from seustream.engine.stream.numbers import (
    Key,
    Numbers,
    all_hold,
    all_of,
    converted,
    numbers,
    together,
)
from seustream.engine.stream.sorting import lexsort
from seustream.hdl.device import Window, WindowKind
from seustream.hdl.isa import Condition

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

Find = Callable[[int, Ints, Ints], tuple[int, int]]
"""A search by a kernel: takes the probe to start from and the arrays to fill; returns the next
probe and how many pairs it filled in."""

_MOST_PAIRS = 1 << 20
"""The most combinations at once; beyond these, fewer arrivals are searched at a time."""
_NONE_WANTED: Mapping[int, Sequence[Wanted]] = {}
_LARGE = 8192
"""Rows of a window from which a search by value pays off; with bounds on both sides, a sixteenth of
that."""


@dataclass(frozen=True, slots=True)
class Side:
    """One stream of a query's FROM list: its rows, the copy of them it uses, its window, its
    name."""

    store: RowStore
    copy: int
    window: Window
    alias: str

    @property
    def position(self) -> Nearby:
        return self.store.position[self.copy]

    @property
    def left(self) -> Ints:
        return self.store.left[self.copy]


def combination(sides: list[Side], sequences: Ints) -> str:
    """Describes a combination of rows to users, by their times."""
    places = [side.store.index(at) for side, at in zip(sides, sequences, strict=True)]
    times = [side.store.timestamp[at] for side, at in zip(sides, places, strict=True)]
    return ", ".join(f"{side.alias} at ts {ts}" for side, ts in zip(sides, times, strict=True))


class _TooMany(Exception):
    """More combinations than `_MOST_PAIRS`, from more than one arrival."""


@dataclass(slots=True)
class _Arrivals:
    """Rows that arrive on one source: their positions, and the range of places [low, high) that
    they see of each other source."""

    when: Ints
    low: list[Ints]
    high: list[Ints]


@dataclass(slots=True)
class _Partial:
    """Combinations so far, in the order of their arrivals: the number of each one's arrival, and
    per bound source the place of its row. `ours`: the combination has a row of the host's."""

    arrival: Ints
    places: dict[int, Ints]
    ours: Bools | None

    def pick(self, index: Ints | Bools) -> _Partial:
        return _Partial(
            self.arrival[index],
            {source: places[index] for source, places in self.places.items()},
            None if self.ours is None else self.ours[index],
        )


class WindowJoin:
    """Joins sources under some conditions. `device` keeps only results with a row of the host's.
    `wanted` holds constants, by source, that a row must meet to be in any result that is asked
    for."""

    def __init__(
        self,
        conjuncts: tuple[x.Expression, ...],
        sides: list[Side],
        device: bool = False,
        wanted: Mapping[int, Sequence[Wanted]] = _NONE_WANTED,
    ) -> None:
        self.sides, self.device, self.wanted = sides, device, wanted
        self.conjuncts = conjuncts
        numbers_ = range(len(sides))
        self.searches = [searches(self.conjuncts, number, len(sides)) for number in numbers_]
        self.chosen = [selections(self.conjuncts, number) for number in numbers_]
        self.repeats = len({id(side.store) for side in sides}) < len(sides)
        """Whether a stream is there several times. A result's place among those of one arrival is
        then not that of `results`."""
        self._at_once = 1 << 30  # arrivals
        self._room = 1 << 12  # pairs
        self._forget()

    def _forget(self) -> None:
        """Starts over with the rows in the stores."""
        self.codes = native.Codes()
        self.rows = [
            IndexedRows(side.store, number, chosen, self.codes, self.wanted.get(number, ()))
            for number, (side, chosen) in enumerate(zip(self.sides, self.chosen, strict=True))
        ]

    def in_doubt(self) -> bool:
        """Returns whether a condition has a fault in a row that is held. Among the conditions that
        may fault, this covers only those of one source and comparisons between two."""
        for rows in self.rows:
            rows.follow()
        read = (link for some in self.searches for search in some for link in search.all_links)
        return any(rows.in_doubt() for rows in self.rows) or any(
            not self.rows[source].is_certain((e, link.of))
            for link in read
            for e in (link.theirs, link.ours)
            for source in x.sources(e)
        )

    def results(self, new: list[Ints], faults: Faults) -> Iterator[Ints]:
        """Yields sequence numbers, by source, of the results that these arrivals complete, in
        order: by arrival, then by the components in the order of FROM. `new[i]` are the places, in
        its store, of the rows that have just arrived on source i. Each part has all results of its
        arrivals."""
        if self.device and not any(np.any(side.left != IN_DEVICE) for side in self.sides):
            return
        if self.codes.count() > 4096 + 4 * sum(len(side.store) for side in self.sides):
            self._forget()  # most codes belong to no row any more
        for rows in self.rows:
            rows.follow()
        # The copies of a tuple arrive as one, at the position of the first.
        positions = [
            side.store.position[0][places] for side, places in zip(self.sides, new, strict=True)
        ]
        order = np.concatenate(positions)  # sorted runs, which a stable sort merges
        order = np.unique(order) if self.repeats else np.sort(order, kind="stable")
        parts: list[Ints] = []
        start = count = 0
        while start < len(order):
            stop = min(start + self._at_once, len(order))
            some = new
            if stop - start < len(order):
                some = [
                    places[(when >= order[start]) & (when <= order[stop - 1])]
                    for places, when in zip(new, positions, strict=True)
                ]
            try:
                found = self._found(some, stop - start == 1, faults)
            except _TooMany:
                self._at_once = (stop - start) // 2
                continue
            parts.append(found)
            count += len(found)
            if count >= _MOST_PAIRS // 4:
                yield np.concatenate(parts)
                parts, count = [], 0
            if 4 * len(found) < _MOST_PAIRS and stop - start == self._at_once:
                self._at_once *= 2
            start = stop
        if count:
            yield np.concatenate(parts) if len(parts) > 1 else parts[0]

    def _found(self, new: list[Ints], single: bool, faults: Faults) -> Ints:
        """Returns all results of some arrivals."""
        doubtful: set[x.Expression] = set()
        parts = []
        for source, places in enumerate(new):
            if len(places):
                parts.append(self._of(source, places, single, doubtful))
        sequences = _in_order(parts, len(self.sides))
        unsure = [e for e in self.conjuncts if e in doubtful]
        if not unsure or not len(sequences):
            return sequences

        def columns(e: x.Expression, index: Ints) -> Leaves:
            return self._leaves(
                e, {i: self.sides[i].store.index(sequences[index, i]) for i in x.sources(e)}
            )

        with faults.naming(lambda row: combination(self.sides, sequences[row])):
            return sequences[survivors(unsure, columns, len(sequences), faults)]

    # --- one source's arrivals ------------------------------------------------

    def _of(
        self, source: int, places: Ints, single: bool, doubtful: set[x.Expression]
    ) -> tuple[Ints, Ints]:
        """Returns the results whose newest component is one of these rows: for each the position of
        the arrival, and its sequence numbers."""
        for rows in self.rows:
            doubtful.update(rows.in_doubt())
        admitted = self.rows[source].admitted
        if admitted is not None:
            places = places[admitted[places]]
        side = self.sides[source]
        when, now = side.position[places], side.store.timestamp[places]
        bounds = [
            _window(other, when, now) if number != source else (places, places)
            for number, other in enumerate(self.sides)
        ]
        arrivals = _Arrivals(when, [low for low, _ in bounds], [high for _, high in bounds])
        ours = side.left[places] <= when if self.device else None
        partial = _Partial(np.arange(len(places)), {source: places}, ours)
        order = [source]
        for number, search in enumerate(self.searches[source], 1):
            last = number == len(self.searches[source])
            partial = self._searched(search, partial, arrivals, last, single, doubtful)
            order.append(search.source)
        if self.device:
            assert partial.ours is not None
            partial = partial.pick(partial.ours)
        if len(partial.arrival) and now[0] < side.store.passed:
            partial = partial.pick(self._within(partial))
        if self.device or order[1:] != sorted(order[1:]):
            keys = [partial.places[i] for i in reversed(range(len(self.sides)))]
            partial = partial.pick(lexsort((*keys, partial.arrival)))
        found = np.empty((len(self.sides), len(partial.arrival)), np.int64)
        for number, side in enumerate(self.sides):
            np.add(partial.places[number], side.store.first, out=found[number])
        return when[partial.arrival], found.T

    def _within(self, partial: _Partial) -> Bools:
        """Returns which combinations are within their windows at the greatest of their times, which
        need not be that of the arrival."""
        times = [
            side.store.timestamp[partial.places[number]] for number, side in enumerate(self.sides)
        ]
        newest = np.maximum.reduce(times)
        kept = np.ones(len(newest), np.bool_)
        for side, own in zip(self.sides, times, strict=True):
            if side.window.kind is WindowKind.RANGE:
                kept &= own >= reach_back(newest, side.window.size)
        return kept

    def _searched(
        self,
        search: Search,
        partial: _Partial,
        arrivals: _Arrivals,
        last: bool,
        single: bool,
        doubtful: set[x.Expression],
    ) -> _Partial:
        """Extends combinations by one more source."""
        if not (self.device and last):
            return self._extended(search, partial, arrivals, False, single, doubtful)
        # A combination that has no row of the host's yet needs one here.
        assert partial.ours is not None
        parts = [
            self._extended(search, partial.pick(mask), arrivals, host, single, doubtful)
            for mask, host in ((partial.ours, False), (~partial.ours, True))
        ]
        return _Partial(
            np.concatenate([part.arrival for part in parts]),
            {s: np.concatenate([part.places[s] for part in parts]) for s in parts[0].places},
            np.concatenate([part.ours for part in parts if part.ours is not None]),
        )

    def _extended(
        self,
        search: Search,
        partial: _Partial,
        arrivals: _Arrivals,
        host: bool,
        single: bool,
        doubtful: set[x.Expression],
    ) -> _Partial:
        """Extends combinations by one more source; with `host`, only by rows of the host's."""
        source, side, rows = search.source, self.sides[search.source], self.rows[search.source]
        low, high = arrivals.low[source][partial.arrival], arrivals.high[source][partial.arrival]
        links, tests = self._compared(search.links, partial, rows, doubtful, by_key=True)
        if host:
            when = arrivals.when[partial.arrival]
            tests.append((int(Condition.LE), side.left, None, when, None))
            mine = np.flatnonzero(side.left != IN_DEVICE)
            first, end = (mine[0], mine[-1] + 1) if len(mine) else (0, 0)
            low, high = np.maximum(low, first), np.minimum(high, end)
        ways = self._ways(search, partial, rows, doubtful)
        formulas = self._formulas(search, partial, rows)
        others = tuple(e for e in search.others if e not in formulas)

        def pairs_by(formulas: tuple[native.PairFormula, ...]) -> list[tuple[Ints, Ints]]:
            return [
                self._pairs(rows, links + own, tests + mine, formulas, low, high, single)
                for own, mine in ways
            ]

        try:
            pairs = pairs_by(tuple(formulas.values()))
        except (
            ArithmeticError
        ):  # a formula has no value for a pair, which other conditions may exclude
            pairs, others = pairs_by(()), search.others
        who, found = pairs[0] if len(pairs) == 1 else _either(pairs, [mine for _, mine in ways])
        more = partial.pick(who)
        more.places[source] = found
        if more.ours is not None:
            more.ours = more.ours | (side.left[found] <= arrivals.when[more.arrival])
        return self._filtered(more, others, doubtful)

    def _compared(
        self,
        links: Iterable[JoinLink],
        partial: _Partial,
        rows: IndexedRows,
        doubtful: set[x.Expression],
        by_key: bool = False,
    ) -> tuple[list[tuple[JoinLink, Numbers]], list[native.Test]]:
        """Returns links that kernels can follow, with the values of the combinations, and their
        tests; the others are in doubt. Equalities need no test if partners are found `by_key`."""
        found: list[tuple[JoinLink, Numbers]] = []
        tests: list[native.Test] = []
        for link in links:
            ours, key = self._ours((link.ours, link.of), partial), (link.theirs, link.of)
            if ours is None or not rows.is_certain(key):
                doubtful.add(link.conjunct)
                continue
            bounds = link.compared(ours)
            found.append((link, bounds))
            if not (by_key and link.op is Condition.EQ):
                theirs = rows.column(key)
                assert theirs is not None
                tests.append((int(link.op), *theirs, *bounds))
        return found, tests

    def _formulas(
        self, search: Search, partial: _Partial, rows: IndexedRows
    ) -> dict[x.Expression, native.PairFormula]:
        """Returns the formulas of a search whose columns have no fault, by condition."""
        found = {}
        for formula in search.formulas:
            theirs = all_of([rows.column(key) for key in formula.theirs])
            ours = all_of([self._ours(key, partial) for key in formula.ours])
            if theirs is not None and ours is not None:
                found[formula.condition] = formula.steps, theirs, ours
        return found

    def _ways(
        self,
        search: Search,
        partial: _Partial,
        rows: IndexedRows,
        doubtful: set[x.Expression],
    ) -> list[tuple[list[tuple[JoinLink, Numbers]], list[native.Test]]]:
        """Returns the alternative links of a search, with their tests; one way without any if the
        search has none, or if one of them is in doubt."""
        if search.choice is None:
            return [([], [])]
        doubts: set[x.Expression] = set()
        ways = [self._compared(way, partial, rows, doubts) for way in search.choice.ways]
        if doubts:
            doubtful.add(search.choice.condition)
        return [([], [])] if doubts else ways

    # --- partners ---------------------------------------------------------------

    def _pairs(
        self,
        rows: IndexedRows,
        links: list[tuple[JoinLink, Numbers]],
        tests: list[native.Test],
        formulas: tuple[native.PairFormula, ...],
        low: Ints,
        high: Ints,
        single: bool,
    ) -> tuple[Ints, Ints]:
        """Returns pairs of a probe and a place that it finds."""
        base = rows.first
        low, high = low + base, high + base
        equal = [(link, ours) for link, ours in links if link.op is Condition.EQ]
        if equal:
            keys = tuple((link.theirs, link.of) for link, _ in equal)
            wanted, flags = together([ours for _, ours in equal], self.codes)
            rest = tuple(t for t in tests if t[0] != Condition.EQ)
            chains = rows.chains(keys)
            return self._all(
                lambda start, who, row: chains.probe(
                    wanted, flags, start, low, high, base, rest, who, row, formulas
                ),
                len(low),
                base,
                single,
            )
        width = int((high - low).sum()) // max(len(low), 1)
        band = band_of(links) if width >= _LARGE // 16 else None
        if band is not None and (band.closed or width >= _LARGE):
            runs = rows.runs(band.key)
            return self._all(
                lambda start, who, row: runs.probe(
                    band.least, band.greatest, band.flags, start, low, high, base,
                    tuple(tests), who, row, formulas,
                ),
                len(low),
                base,
                single,
            )  # fmt: skip
        tests.sort(key=lambda test: test[0] == Condition.NE)
        if rows.admitted is not None:
            tests.append(
                (
                    int(Condition.EQ),
                    rows.admitted.astype(np.int64),
                    None,
                    np.ones(len(low), np.int64),
                    None,
                )
            )
        return self._all(
            lambda start, who, row: native.scan(
                start, low, high, base, tuple(tests), who, row, formulas
            ),
            len(low),
            base,
            single,
        )

    def _all(self, find: Find, probes: int, base: int, single: bool) -> tuple[Ints, Ints]:
        """Returns all pairs that a search finds, as probes and places."""
        parts: list[tuple[Ints, Ints]] = []
        start = total = 0
        while start < probes:
            who, row = np.empty(self._room, np.int64), np.empty(self._room, np.int64)
            start, filled = find(start, who, row)
            parts.append((who[:filled], row[:filled]))
            total += filled
            if start < probes:
                if total + self._room > _MOST_PAIRS and not single:
                    raise _TooMany
                if self._room < _MOST_PAIRS or not filled:
                    self._room *= 2
        if len(parts) == 1:
            return parts[0][0], parts[0][1] - base
        none = np.empty(0, np.int64)
        return (
            np.concatenate([none, *(who for who, _ in parts)]),
            np.concatenate([none, *(row for _, row in parts)]) - base,
        )

    def _ours(self, key: Key, partial: _Partial) -> Numbers | None:
        """Returns the numbers of the other side in each combination, or None where it has a fault."""
        reads = x.sources(key[0])
        if len(reads) == 1:
            (source,) = reads
            return self.rows[source].at(key, partial.places[source])
        doubts = Faults()
        leaf = self._leaves(key[0], partial.places)
        values_ = evaluate(converted(key), leaf, len(partial.arrival), doubts)
        return None if doubts.total else numbers(values_, self.codes)

    # --- what no kernel knows -----------------------------------------------------

    def _leaves(self, e: x.Expression, places: dict[int, Ints]) -> Leaves:
        rows = {}
        for source in x.sources(e):
            names = {column.name for column in x.columns(e) if column.source == source}
            found = self.sides[source].store.columns(names, places[source])
            rows.update({(source, name): column for name, column in found.items()})
        return leaves(rows)

    def _filtered(
        self,
        partial: _Partial,
        conditions: tuple[x.Expression, ...],
        doubtful: set[x.Expression],
    ) -> _Partial:
        for e in conditions:
            doubts = Faults()
            leaf = self._leaves(e, partial.places)
            fits = holds(e, leaf, len(partial.arrival), doubts)
            if doubts.total:  # another condition may exclude that row
                doubtful.add(e)
            elif not fits.all():
                partial = partial.pick(fits)
        return partial


def _either(pairs: list[tuple[Ints, Ints]], tests: list[list[native.Test]]) -> tuple[Ints, Ints]:
    """Merges the pairs that each of some alternatives finds, each pair once, in order."""
    parts = []
    for number, (who, row) in enumerate(pairs):
        new = np.ones(len(who), np.bool_)
        for before in tests[:number]:
            new &= ~all_hold(before, who, row)
        parts.append((who[new], row[new]))
    who, row = (np.concatenate(side) for side in zip(*parts, strict=True))
    order = lexsort((row, who))
    return who[order], row[order]


def _in_order(parts: list[tuple[Ints, Ints]], width: int) -> Ints:
    """Merges the results of several sources' arrivals, each in order."""
    parts = [part for part in parts if len(part[0])]
    if not parts:
        return np.empty((0, width), np.int64)
    if len(parts) == 1:
        return parts[0][1]
    order = np.argsort(np.concatenate([when for when, _ in parts]), kind="stable")
    found = np.empty((width, len(order)), np.int64)
    for number in range(width):
        np.take(np.concatenate([some[:, number] for _, some in parts]), order, out=found[number])
    return found.T


def _window(side: Side, when: Ints, now: Ints) -> tuple[Ints, Ints]:
    """Returns the places [low, high) that a row arriving at position `when` and time `now` sees."""
    high = side.position.search(when)
    window = side.window
    if window.kind is WindowKind.RANGE:
        low = side.store.timestamp.search(reach_back(now, window.size))
    elif window.kind is WindowKind.ROWS:
        # The stream's own count at that moment; a row counts for all copies at once.
        low = side.store.position[0].search(when, after=True) - window.size
    else:
        low = np.zeros(len(when), np.int64)
    return np.minimum(np.maximum(low, 0), high), high
