"""Completes matches whose anchors are all bound: fills groups, looks for absences, computes D.

All of it works on columns, for many bindings at once. Only conditions that compare a member with
all earlier ones, or two groups, are evaluated one match at a time.
"""

from __future__ import annotations

import numpy as np

from seustream.compiler.language import expressions as x
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Class
from seustream.engine.pattern.columns import Array, Bools, Ints, holds
from seustream.engine.pattern.event import BEGIN_OF_TIME, END_OF_STREAM, Event
from seustream.engine.pattern.found import Found, GroupMembers, joined, pieces, runs
from seustream.engine.pattern.lists import Bindings, Lists
from seustream.engine.pattern.meaning import BoundCondition, Meaning

LIMIT = 1_000_000
"""The most rows of partial matches held at once."""

_TRIED_FIRST = 16
"""Events of a gap that are tried at first; then four times as many, where none forbids the match."""

Rows = dict[int, Array]
"""Positions in the list of each bound element, one row per binding."""


class TooManyMatches(Exception):
    """A search finds more matches than fit into one part: it has to be cut."""


class Completion:
    """Collects the matches of one epoch, old < D ≤ new. More than `most` of their events are too
    many, unless they are of one match. `dated`: matches that wait for the end of the stream come in
    the order of their last events."""

    def __init__(
        self,
        meaning: Meaning,
        lists: Lists,
        epoch: tuple[int, int] = (BEGIN_OF_TIME, END_OF_STREAM),
        limit: int = LIMIT,
        most: int | None = None,
        dated: bool = False,
    ) -> None:
        self._meaning = meaning
        self._query = meaning.query
        self._anchors = meaning.query.anchors
        self._conditions = {cls: meaning.of(cls) for cls in Class}
        self._lists = lists
        self._epoch = epoch
        self._limit = limit
        self._most = most
        self._dated = dated and self._query.ends_with_stream
        self._parts: list[Found] = []
        self._matches = self._size = 0

    def expect(self, matches: int) -> None:
        """Notes how many bindings of all anchors come next, before they are made."""
        conditions = any(self._conditions[of] for of in (Class.FIRST, Class.STEP, Class.GROUP))
        if self._query.kleene or self._meaning.forbidding or conditions:
            return
        self._within(self._matches + matches, self._size + matches * len(self._anchors))

    def _within(self, matches: int, size: int) -> None:
        if self._most is not None and size > self._most and matches > 1:
            raise TooManyMatches

    def found(self) -> Found | None:
        """Returns the matches in order, or None if there are none."""
        return joined(self._parts).sorted(self._query) if self._parts else None

    def _add(self, found: Found) -> None:
        self._parts.append(found)
        self._matches += len(found)
        self._size += found.events
        self._within(self._matches, self._size)

    def take(self, rows: Rows, size: int) -> None:
        """Completes bindings of all anchors: fills groups, looks for absences, computes D."""
        for piece in self._by_groups(rows, size):
            part = {e: r[piece] for e, r in rows.items()}
            self._finish(part, len(next(iter(part.values()))))

    def _by_groups(self, rows: Rows, size: int) -> list[slice]:
        """Cuts the bindings into pieces whose groups do not have too many rows."""
        most = np.zeros(size, np.int64)
        for element, of in enumerate(self._query.elements):
            if of.kleene:
                begin, end = self._gap(element, rows, None)
                most = np.maximum(most, end - begin)
        return pieces(most, self._limit) if most.any() else [slice(0, size)]

    def _finish(self, rows: Rows, size: int) -> None:
        groups: dict[int, GroupMembers] = {}
        for element, of in enumerate(self._query.elements):
            if not of.kleene:
                continue
            members = self._members(element, rows, size)
            groups[element] = members
            keep = members.counts >= (of.least or 1)
            if of.most is not None:
                keep &= members.counts <= of.most
            rows, groups, size = _kept(rows, groups, keep)
        for cls in (Class.FIRST, Class.STEP, Class.GROUP):
            for condition in self._conditions[cls]:
                if size:
                    keep = self._holds(condition, rows, groups, size)
                    rows, groups, size = _kept(rows, groups, keep)
        if not size:
            return
        determined = self._determined(rows, groups)
        old, new = self._epoch
        keep = (determined > old) & (determined <= new)
        keep &= self._allowed(rows, groups, size)
        if not keep.any():
            return
        lists = self._lists
        found = Found(
            lists.log,
            determined,
            {e: lists.rows[e][r] for e, r in rows.items()},
            {e: GroupMembers(m.counts, lists.rows[e][m.rows]) for e, m in groups.items()},
        )
        found = found if keep.all() else found.keep(keep)
        self._add(found.dated(self._query) if self._dated else found)

    def allowed(self, found: Found) -> Bools:
        """Returns which of these matches no event forbids."""
        place: dict[int, Ints] = {}
        for element, rows in enumerate(self._lists.rows):
            place[element] = np.empty(len(self._lists.log), np.int64)
            place[element][rows] = np.arange(len(rows))
        singles: Rows = {e: place[e][rows] for e, rows in found.singles.items()}
        groups = {e: GroupMembers(m.counts, place[e][m.rows]) for e, m in found.groups.items()}
        return self._allowed(singles, groups, len(found))

    def _allowed(self, rows: Rows, groups: dict[int, GroupMembers], size: int) -> Bools:
        keep = np.ones(size, bool)
        for element in self._meaning.forbidding:
            keep &= ~self._forbidden(element, rows, groups, size)
        return keep

    def _ends(self, rows: Rows, groups: dict[int, GroupMembers]) -> tuple[Array, Array]:
        """Returns the times of the first and the last event, in the layout of `Lists`."""
        lists = self._lists
        first, last = self._query.positives[0], self._query.positives[-1]
        begin = rows[first] if first in rows else groups[first].rows[groups[first].starts]
        end = rows[last] if last in rows else groups[last].rows[groups[last].ends - 1]
        return lists.T[first][begin], lists.T[last][end]

    def _determined(self, rows: Rows, groups: dict[int, GroupMembers]) -> Ints:
        begin, end = self._ends(rows, groups)
        anchor = self._anchors[0]
        shift = self._lists.shift[anchor]
        if not self._query.waits:
            found = end
        elif self._query.window is None:
            return np.full(len(begin), END_OF_STREAM)
        else:
            found = begin + self._query.window
        return found if shift is None else found - shift[rows[anchor]]

    def _gap(
        self, element: int, rows: Rows, groups: dict[int, GroupMembers] | None
    ) -> tuple[Ints, Ints]:
        """Returns the range of positions in an element's list that lie in its gap. Without groups,
        the gap is between anchors; with them, between the nearest positives on either side."""
        lists, window = self._lists, self._query.window
        beside = self._anchors if groups is None else self._query.positives
        before = [i for i in beside if i < element]
        after = [i for i in beside if i > element]

        def time(of: int, last: bool) -> Array:
            if of in rows:
                return lists.T[of][rows[of]]
            assert groups is not None
            members = groups[of]
            return lists.T[of][members.rows[members.ends - 1 if last else members.starts]]

        if before:
            first = time(before[-1], True) + 1
        elif window is None:
            first = lists.stretch_begin(time(beside[0], False))
        else:
            first = time(beside[-1], True) - window
        if after:
            last = time(after[0], False)
        elif window is None:
            last = lists.stretch_end(time(beside[0], False))
        else:
            last = time(beside[0], False) + window + 1
        times = lists.T[element]
        begin = np.searchsorted(times, first, "left")
        return begin, np.maximum(np.searchsorted(times, last, "left"), begin)

    def _members(self, element: int, rows: Rows, size: int) -> GroupMembers:
        begin, end = self._gap(element, rows, None)
        members = GroupMembers(end - begin, runs(begin, end - begin))
        for condition in self._conditions[Class.MEMBER]:
            if element in condition.conjunct.refs and len(members.rows):
                owner = members.owner
                at = {e: r[owner] for e, r in rows.items()}
                bindings = Bindings(self._lists, len(owner), at, {element: members.rows})
                true = holds(condition.prepared, bindings, self._meaning.faults)
                counts = np.bincount(owner[true], minlength=size).astype(np.int64)
                members = GroupMembers(counts, members.rows[true])
        return members

    def _holds(
        self, condition: BoundCondition, rows: Rows, groups: dict[int, GroupMembers], size: int
    ) -> Bools:
        """Returns whether a condition on complete groups is TRUE, for each match."""
        through = _goes_through(condition.conjunct.expression)
        if through is None:
            return self._one_by_one(condition, rows, groups, size)
        if not through:
            bindings = Bindings(self._lists, size, rows, groups=groups)
            return holds(condition.prepared, bindings, self._meaning.faults)
        (element,) = through
        members = groups[element]
        owner = members.owner
        index = np.arange(len(members.rows))
        if condition.conjunct.cls is Class.STEP:
            later = np.ones(len(index), bool)
            later[members.starts] = False
            index, owner = index[later], owner[later]
        at = {e: r[owner] for e, r in rows.items()}
        bindings = Bindings(
            self._lists,
            len(index),
            at,
            {element: members.rows[index]},
            {element: members.rows[index - 1]} if condition.conjunct.cls is Class.STEP else None,
            groups,
            owner,
        )
        true = holds(condition.prepared, bindings, self._meaning.faults)
        fails = np.bincount(owner[~true], minlength=size)
        none: Bools = fails == 0
        return none

    def _one_by_one(
        self, condition: BoundCondition, rows: Rows, groups: dict[int, GroupMembers], size: int
    ) -> Bools:
        """Tests conditions that compare a member with all earlier ones, or two groups."""
        found = np.zeros(size, bool)
        for number in range(size):
            found[number] = self._meaning.throughout(condition, self._events(rows, groups, number))
        return found

    def _events(
        self, rows: Rows, groups: dict[int, GroupMembers], number: int
    ) -> list[tuple[Event, ...]]:
        lists = self._lists
        whole: list[tuple[Event, ...]] = [()] * len(self._query.elements)
        for element, positions in rows.items():
            whole[element] = (lists.log.event(int(lists.rows[element][positions[number]])),)
        for element, members in groups.items():
            part = members.rows[members.starts[number] : members.ends[number]]
            whole[element] = tuple(lists.log.event(int(r)) for r in lists.rows[element][part])
        return whole

    def _forbidden(
        self, element: int, rows: Rows, groups: dict[int, GroupMembers], size: int
    ) -> Bools:
        """Returns which matches some event of a negated element forbids."""
        begin, end = self._gap(element, rows, groups)
        counts = end - begin
        conditions = [c for c in self._conditions[Class.NEGATED] if element in c.conjunct.refs]
        found: Bools = counts > 0
        if not conditions:
            return found
        found[:] = False
        open_, tried = counts.nonzero()[0], _TRIED_FIRST
        while len(open_):
            some = np.minimum(end[open_] - begin[open_], tried)
            for piece in pieces(some, self._limit):
                owner = np.repeat(open_[piece], some[piece])
                events = runs(begin[open_[piece]], some[piece])
                true = self._forbids(conditions, element, rows, groups, owner, events)
                found[owner[true]] = True
            begin[open_] += some
            open_ = open_[~found[open_] & (begin[open_] < end[open_])]
            tried *= 4
        return found

    def _forbids(
        self,
        conditions: list[BoundCondition],
        element: int,
        rows: Rows,
        groups: dict[int, GroupMembers],
        owner: Ints,
        events: Ints,
    ) -> Bools:
        """Returns which of these events forbid the match of their `owner`."""
        true = np.ones(len(events), bool)
        for condition in conditions:
            if _goes_through(condition.conjunct.expression) == ():
                at = {e: r[owner] for e, r in rows.items()} | {element: events}
                bindings = Bindings(self._lists, len(events), at, groups=groups, owner=owner)
                true &= holds(condition.prepared, bindings, self._meaning.faults)
            else:
                true &= self._forbids_members(condition, element, rows, groups, owner, events)
        return true

    def _forbids_members(
        self,
        condition: BoundCondition,
        element: int,
        rows: Rows,
        groups: dict[int, GroupMembers],
        owner: Array,
        events: Array,
    ) -> Bools:
        """Tests a condition between a forbidding event and every member of a group."""
        lists = self._lists
        found = np.zeros(len(events), bool)
        for number, (match, position) in enumerate(zip(owner, events, strict=True)):
            whole = self._events(rows, groups, int(match))
            whole[element] = (lists.log.event(int(lists.rows[element][position])),)
            found[number] = self._meaning.throughout(condition, whole)
        return found


class FirstOnes(Completion):
    """Collects the first matches behind `after`, a single one, in the order they are given out: as
    many as may be held. `left` is whether there are more. It serves where nothing divides a search:
    it is repeated for each part."""

    def __init__(
        self,
        meaning: Meaning,
        lists: Lists,
        epoch: tuple[int, int],
        limit: int,
        most: int,
        dated: bool,
        after: Found | None,
    ) -> None:
        super().__init__(meaning, lists, epoch, limit, None, dated)
        self._after, self.left, self._first = after, False, most

    def found(self) -> Found | None:
        self._drop()
        return self._parts[0] if self._parts else None

    def _add(self, found: Found) -> None:
        self._parts.append(found)
        self._size += found.events
        if self._size > 2 * self._first:
            self._drop()

    def _drop(self) -> None:
        """Keeps only the first ones."""
        if not self._parts:
            return
        ones = joined(self._parts if self._after is None else [self._after, *self._parts])
        order = ones.order(self._query)
        if self._after is not None:
            # It is among those found, too: which of the two comes first is open.
            at = int((order == 0).nonzero()[0][0]) + 1
            if at < len(order) and ones.equal(0, int(order[at])):
                at += 1
            order = order[at:]
        ones = ones.reorder(order)
        first = next(ones.parts(self._first), ones)
        self.left = self.left or len(first) < len(ones)
        self._parts, self._size = [first] if len(first) else [], first.events


def _goes_through(e: x.Expression) -> tuple[int, ...] | None:
    """Returns the groups whose members a condition ranges over, or None where columns cannot
    evaluate it."""
    parts = list(ir.parts(e))
    if any(isinstance(part, ir.GroupAggregate) and part.before for part in parts):
        return None
    picks = (ir.Pick.EACH, ir.Pick.PREVIOUS)
    found = {p.element for p in parts if isinstance(p, ir.Value) and p.pick in picks}
    return tuple(found) if len(found) < 2 else None


def _kept(
    rows: Rows, groups: dict[int, GroupMembers], keep: Bools
) -> tuple[Rows, dict[int, GroupMembers], int]:
    if not keep.all():
        rows = {e: r[keep] for e, r in rows.items()}
        groups = {e: m.keep(keep) for e, m in groups.items()}
    return rows, groups, int(keep.sum())
