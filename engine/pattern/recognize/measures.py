"""Computes the columns of matches, for all matches at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.language.registry import FAULT
from seustream.compiler.pattern import ir, rows
from seustream.compiler.pattern.rows import Give
from seustream.engine.pattern.aggregates import over_groups
from seustream.engine.pattern.batch import values
from seustream.engine.pattern.columns import Bools, Ints, Once, values_of
from seustream.engine.pattern.found import GroupMembers, runs
from seustream.engine.pattern.leaves import Fold
from seustream.engine.pattern.recognize.log import RowLog
from seustream.engine.stream.evaluate import evaluate
from seustream.engine.stream.schema import arrow_type
from seustream.engine.stream.sorting import lexsort

_MATCH, _UNMATCHED = 0, 1
_LABEL, _EXCLUDED = 63, 64


@dataclass
class Matches:
    """The matches that the search found. `kind`, `number`, `start` and `count` are per match.
    `members` and `labels` are the rows of all matches, one match after the other, by position in
    the log."""

    kind: Ints
    number: Ints
    start: Ints
    count: Ints
    members: Ints
    labels: Ints

    @property
    def ends(self) -> Ints:
        return np.cumsum(self.count)

    @property
    def begins(self) -> Ints:
        return self.ends - self.count


@dataclass
class GivenRows:
    """The rows to give out. Each belongs to a match (`owner`) and is about a row of the log
    (`row`). `hand` is its present row among all `members`, or -1 where the match has none."""

    owner: Ints
    row: Ints
    hand: Ints

    def part(self, begin: int, end: int) -> GivenRows:
        return GivenRows(self.owner[begin:end], self.row[begin:end], self.hand[begin:end])


def given(found: Matches, give: Give, log: RowLog) -> GivenRows:
    """Returns the rows to give out for matches, in the order of their times."""
    ends = found.ends
    some = found.count > 0
    if give is Give.ONE:
        kept = np.flatnonzero(found.kind == _MATCH)
        hand = np.where(some, ends - 1, -1)[kept]
        last = (
            np.where(hand >= 0, found.members[hand], found.start[kept])
            if len(found.members)
            else found.start[kept]
        )
        return _ordered(GivenRows(kept, last, hand), log, found)
    flat = np.flatnonzero(found.labels & _EXCLUDED == 0)
    owner = np.repeat(np.arange(len(found.count)), found.count)[flat]
    empty = (found.kind == _MATCH) & ~some
    alone = np.zeros(len(some), bool) if give is Give.OMIT_EMPTY else empty
    if give is Give.UNMATCHED:
        alone = alone | (found.kind == _UNMATCHED)
    rest = np.flatnonzero(alone)
    results = GivenRows(
        np.concatenate([owner, rest]),
        np.concatenate([found.members[flat], found.start[rest]]),
        np.concatenate([flat, np.full(len(rest), -1, np.int64)]),
    )
    return _ordered(results, log, found)


def _ordered(of: GivenRows, log: RowLog, found: Matches) -> GivenRows:
    """Sorts rows by time; for the same row, matches come in the order in which they begin."""
    order = lexsort((found.start[of.owner], of.row))
    return GivenRows(of.owner[order], of.row[order], of.hand[order])


class MeasureColumns:
    """The columns of a query's matches over a log; faults are counted in `faults`."""

    def __init__(self, query: rows.RowQuery, log: RowLog, faults: Faults | None) -> None:
        self.query, self.log, self.faults = query, log, faults
        self.names = pa.array([name.upper() for name in query.variables], pa.string())

    def columns(self, found: Matches, of: GivenRows) -> Iterator[pa.Array]:
        """Yields the columns of the rows to give out."""
        at = _Hand(self, found, of)
        blank = found.kind[of.owner] == _UNMATCHED
        for output in self.query.outputs:
            assert not isinstance(output.expression, ir.Whole)
            value = at.value(output.expression)
            if blank.any() and not isinstance(output.expression, rows.Cell):
                value = pc.if_else(pa.array(blank), None, value)
            yield value


@dataclass
class _Hand:
    """The rows to give out, in the form that measures read."""

    of: MeasureColumns
    found: Matches
    results: GivenRows

    def __post_init__(self) -> None:
        owner, hand = self.results.owner, self.results.hand
        self.begin, self.end = self.found.begins[owner], self.found.ends[owner]
        self.upto = np.where(hand < 0, self.begin, hand + 1)
        self._inside: dict[int, tuple[Ints, Ints]] = {}

    def value(self, e: x.Expression) -> pa.Array:
        count, faults = len(self.results.row), Faults()
        value = evaluate(e, self.leaf, count, None if self.of.faults is None else faults)
        self._count(faults, self.results.row)
        return value

    def _count(self, found: Faults, at: Ints) -> None:
        if self.of.faults is not None:
            for place, count in found.count.items():
                row = int(at[found.first[place]])
                self.of.faults.add(place, count, self.of.log.arrival(row))

    def leaf(self, e: x.Leaf) -> pa.Array:
        match e:
            case rows.Cell():
                return self.of.log.cells(e.attribute, self.results.row)
            case rows.MatchNumber():
                return pa.array(self.found.number[self.results.owner])
            case rows.At():
                return self._at(e)
            case rows.RowAggregate():
                return self._aggregate(e)
        raise AssertionError(e)

    def _rows_of(self, among: int) -> tuple[Ints, Ints]:
        """Returns the members matched to some variables, and how many of them precede each
        member."""
        if among not in self._inside:
            inside = (among >> (self.found.labels & _LABEL) & 1).astype(bool)
            counts = np.concatenate([[0], np.cumsum(inside)])
            self._inside[among] = np.flatnonzero(inside), counts
        return self._inside[among]

    def _at(self, e: rows.At) -> pa.Array:
        mine, counts = self._rows_of(e.among)
        low, high = counts[self.begin], counts[self.end if e.final else self.upto]
        place = low + e.back if e.first else high - 1 - e.back
        there = (place >= low) & (place < high)
        flat: Ints = np.full(len(place), -1, np.int64)
        flat[there] = mine[place[there]]
        row: Ints = np.full(len(place), -1, np.int64)
        row[there] = self.found.members[flat[there]]
        if e.offset:
            row = self.of.log.step(row, e.offset)
        index = flat + e.offset
        beside = there & (index >= self.begin) & (index < self.end)
        members = _MatchMembers(self.of, self.found, np.where(beside, index, -1), row)
        present = row >= 0
        return self.of.log.values(
            e.part, row, lambda leaf, _: members.some(present, leaf), self.of.faults
        )

    def _aggregate(self, e: rows.RowAggregate) -> pa.Array:
        mine, counts = self._rows_of(e.among)
        if not e.final and self.of.query.give is not Give.ONE:
            return self._running(e, mine, counts)
        # One value per match, the same for all its rows.
        owners, which = np.unique(self.results.owner, return_inverse=True)
        low, high = counts[self.found.begins[owners]], counts[self.found.ends[owners]]
        flat = mine[runs(low, high - low)]
        members = _MatchMembers(self.of, self.found, flat, self.found.members[flat])
        grouped = GroupMembers(high - low, flat)
        value = over_groups(e, members, grouped, self.of.faults)
        return value.take(pa.array(which))

    def _running(self, e: rows.RowAggregate, mine: Ints, counts: Ints) -> pa.Array:
        """Aggregates row by row: the value after each row of a match."""
        fold, entry = Fold(e), Fold(e).entry
        members = _MatchMembers(self.of, self.found, mine, self.found.members[mine])
        given = [values(values_of(a, members, self.of.faults)) for a in fold.arguments]
        where = e.aggregate.where
        only = None if where is None else values(values_of(where, members, self.of.faults))
        found: dict[tuple[int, int], object] = {}
        hands = list(zip(self.results.owner.tolist(), counts[self.upto].tolist(), strict=True))
        of, at, state = -1, 0, entry.init()
        seen: set[tuple[object, ...]] = set()
        for match, upto in sorted(set(hands)):
            if match != of:
                of, at, state, seen = (
                    match,
                    int(counts[self.found.begins[match]]),
                    entry.init(),
                    set(),
                )
            for member in range(at, upto):
                row = tuple(column[member] for column in given)
                skipped = only is not None and only[member] is not True
                if None in row or skipped or (e.aggregate.distinct and row in seen):
                    continue
                seen.add(row)
                state = entry.insert(state, *row)
            at = upto
            value = entry.result(e.type, state) if entry.typed else entry.result(state)
            if value is FAULT:
                value = None
                if self.of.faults is not None:
                    arrival = self.of.log.arrival(int(self.found.members[mine[max(upto - 1, 0)]]))
                    self.of.faults.add(fold.place, 1, arrival)
            found[match, upto] = list(value) if isinstance(value, list) else value
        return pa.array([found[pair] for pair in hands], arrow_type(e.type))


class _MatchMembers:
    """Rows of matches as bindings of an aggregate. `flat` is the place of each among all members,
    or -1 for a row beside its match; `row` is its position in the log."""

    def __init__(self, of: MeasureColumns, found: Matches, flat: Ints, row: Ints) -> None:
        self.size = len(row)
        self.faults: Faults | None = None
        self._of, self._found, self._flat, self._row = of, found, flat, row

    def kept(self, rows: Bools) -> _MatchMembers:
        return _MatchMembers(self._of, self._found, self._flat[rows], self._row[rows])

    def some(self, rows: Bools, e: x.Leaf) -> pa.Array:
        """Returns the column of a leaf for some of the rows."""
        return self.kept(rows).leaf(e)

    def leaf(self, e: x.Leaf) -> pa.Array:
        if isinstance(e, rows.Cell):
            return self._of.log.cells(e.attribute, self._row)
        if isinstance(e, rows.MatchNumber):
            owner = np.searchsorted(self._found.ends, self._flat, "right")
            return pa.array(self._found.number[owner])
        labels = self._found.labels[self._flat] & _LABEL
        return self._of.names.take(pa.array(labels, mask=self._flat < 0))

    def hoists(self, part: Once) -> bool:
        return False

    def arrival(self, row: int) -> int:
        return self._of.log.arrival(int(self._row[row]))
