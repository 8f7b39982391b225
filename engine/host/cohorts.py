"""Groups of queries that differ only in their conditions, updated together.

When an arrival changes the groups of a thousand queries, everything is done once: keys, arguments,
windows, aggregates, HAVING and the SELECT list are those of one grouping in which the query is a
part of the key.

**Faults.** An expression that has a fault is evaluated for each query as written, which counts the
fault where it belongs. A query that fails on it has no results, and the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.language.faults import Faults
from seustream.compiler.logical.program import Query
from seustream.engine.host.candidates import Answers, Candidates, Share
from seustream.engine.host.grouping import Columns, Grouping, Points
from seustream.engine.host.sliding import joined
from seustream.engine.stream.answers import no_results
from seustream.engine.stream.numbers import as_column, order_of
from seustream.engine.stream.taken import taken

Ints = npt.NDArray[np.int64]

_AT_ONCE = 1 << 17
"""The most members that are taken in together."""


def grouped(
    rows: Candidates,
    grouping: Grouping,
    shares: Sequence[Share],
    skips: Callable[[Query], bool],
) -> Answers:
    """Yields the results of queries whose groups are held together. A query that fails in one part
    has none in the next."""
    for part in _parts(rows, shares):
        left = [share for share in part if not skips(share[0].query)]
        if left:
            yield from _Pass(rows, grouping, left).answers()


class _Pass:
    """Members of several queries that are taken in together. `whose` holds the number of each one's
    query."""

    def __init__(self, rows: Candidates, grouping: Grouping, shares: Sequence[Share]) -> None:
        self.rows, self.grouping = rows, grouping
        self.queries = {grouping.numbers[one.query.name]: one for one, _ in shares}
        self.index = np.concatenate([found for _, found in shares]).astype(np.int64)
        counts = [len(found) for _, found in shares]
        self.whose = np.repeat(np.array([*self.queries], np.int64), counts)
        self.arrivals, self.new, order = rows.arrive(grouping.form, self.index)
        if order is not None:
            self.index, self.whose = self.index[order], self.whose[order]

    def answers(self) -> Answers:
        form, doubts = self.grouping.form, Faults()
        keys, values = form.values(self.new.rows, len(self.index), doubts)
        if doubts.total:
            found: dict[int, _Values] = {}
            for number, places in _by_number(self.whose):
                yield self.queries[number], self._evaluated(number, places, found)
            if not found:
                return
            keys, values = self._narrowed(found)
        keys.insert(0, as_column(self.whose))
        points, who = self.grouping.enter(self.arrivals, self.new, keys, values)
        del points.keys[0]
        whose = self.whose if who is None else self.whose[who]
        parts = [*_by_number(whose)]
        if not any(one.lost is not None and one.lost.any() for one in points.found):
            doubts, order = Faults(), np.concatenate([places for _, places in parts])
            table, kept = form.results(points.some(order), doubts)
            if not doubts.total:
                numbers = [number for number, _ in parts]
                left = whose[order] if kept is None else whose[order][kept]
                cuts = np.searchsorted(left, [*numbers, numbers[-1] + 1]).tolist()
                for number, begin, end in zip(numbers, cuts[:-1], cuts[1:], strict=True):
                    yield self.queries[number], table.slice(begin, end - begin)
                return
        for number, places in parts:
            yield self.queries[number], self._results(number, points.some(places))

    def _evaluated(
        self, number: int, places: Ints, found: dict[int, _Values]
    ) -> Callable[[], pa.Table]:
        """Returns a function that evaluates the keys and arguments of one query's members as
        written."""
        one = self.queries[number]

        def evaluated() -> pa.Table:
            rows = {leaf: taken(column, places) for leaf, column in self.new.rows.items()}
            with one.faults.naming(lambda row: self.rows.name(int(self.index[places[row]]))):
                form = self.grouping.form_of(one.query)
                found[number] = places, *form.values(rows, len(places), one.faults)
            return no_results(one.query)

        return evaluated

    def _narrowed(self, found: dict[int, _Values]) -> tuple[Columns, Columns]:
        """Returns the keys and arguments of the members that were evaluated query by query; the
        other members are left out."""
        places = np.concatenate([some for some, _, _ in found.values()])
        order = np.argsort(places)
        kept = places[order]
        self.index, self.whose, self.new = self.index[kept], self.whose[kept], self.new.some(kept)
        keys, values = (
            [taken(column, order) for column in joined(some)]
            for some in zip(*((keys, values) for _, keys, values in found.values()), strict=True)
        )
        return keys, values

    def _results(self, number: int, points: Points) -> Callable[[], pa.Table]:
        one = self.queries[number]
        return lambda: self.grouping.form_of(one.query).results(points, one.faults)[0]


_Values = tuple[Ints, Columns, Columns]
"""The places of members, their keys and arguments."""


def _by_number(whose: Ints) -> Iterator[tuple[int, Ints]]:
    """Yields each number with its places."""
    order = order_of(whose)
    some, begin = np.unique(whose[order], return_index=True)
    yield from zip(some.tolist(), np.split(order, begin[1:]), strict=True)


def _parts(rows: Candidates, shares: Sequence[Share]) -> Iterator[Sequence[Share]]:
    """Splits the shares into parts small enough to take in together; a part holds the same arrivals
    of all queries."""
    total = sum(len(found) for _, found in shares)
    if total <= _AT_ONCE:
        if total:
            yield shares
        return
    wanted = np.zeros(len(rows), np.int64)
    for _, found in shares:
        wanted[found] += 1
    ends = np.searchsorted(np.cumsum(wanted), np.arange(_AT_ONCE, total, _AT_ONCE))
    ends = np.unique([*rows.beginnings(ends), len(rows)])
    cuts = [np.searchsorted(found, [0, *ends]).tolist() for _, found in shares]
    for number in range(len(ends)):
        part = [
            (member, found[at[number] : at[number + 1]])
            for (member, found), at in zip(shares, cuts, strict=True)
            if at[number] < at[number + 1]
        ]
        if part:
            yield part
