"""Matches in columns: for every element the rows of its events, all in one batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from seustream.compiler.pattern import ir
from seustream.engine.kernels import native
from seustream.engine.pattern.batch import EventBatch
from seustream.engine.pattern.columns import Array, Bools, Ints
from seustream.engine.pattern.event import Event, Match


@dataclass(slots=True)
class GroupMembers:
    """The groups of one element: `counts` per match, and their rows, one group after the other."""

    counts: Ints
    rows: Array

    @property
    def ends(self) -> Ints:
        return np.cumsum(self.counts)

    @property
    def starts(self) -> Ints:
        return self.ends - self.counts

    @property
    def owner(self) -> Ints:
        """The match that each row belongs to."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def keep(self, matches: Bools) -> GroupMembers:
        return GroupMembers(self.counts[matches], self.rows[np.repeat(matches, self.counts)])

    def reorder(self, order: Array) -> GroupMembers:
        counts = self.counts[order]
        return GroupMembers(counts, self.rows[runs(self.starts[order], counts)])


def runs(starts: Array, counts: Array) -> Ints:
    """Returns the consecutive numbers from each start, as many as its count."""
    total = int(counts.sum())
    ends = np.cumsum(counts)
    offsets: Ints = np.repeat(starts - (ends - counts), counts)
    return offsets + np.arange(total, dtype=np.int64)


def pieces(counts: Ints, limit: int) -> list[slice]:
    """Returns consecutive slices whose counts add up to no more than the limit, or that hold one
    count."""
    ends = np.cumsum(counts)
    found, begin = [], 0
    while begin < len(counts):
        done = int(ends[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(ends, done + limit, "right")), begin + 1)
        found.append(slice(begin, end))
        begin = end
    return found


@dataclass(slots=True)
class Found:
    """`singles` and `groups` are rows of `log`, by element; `determined` is the D of each match."""

    log: EventBatch
    determined: Ints
    singles: dict[int, Array]
    groups: dict[int, GroupMembers]

    def __len__(self) -> int:
        return len(self.determined)

    @property
    def events(self) -> int:
        """The number of events of all matches together."""
        members = sum(len(group.rows) for group in self.groups.values())
        return len(self) * len(self.singles) + members

    def keep(self, matches: Bools) -> Found:
        return Found(
            self.log,
            self.determined[matches],
            {e: rows[matches] for e, rows in self.singles.items()},
            {e: members.keep(matches) for e, members in self.groups.items()},
        )

    def reorder(self, order: Array) -> Found:
        return Found(
            self.log,
            self.determined[order],
            {e: rows[order] for e, rows in self.singles.items()},
            {e: members.reorder(order) for e, members in self.groups.items()},
        )

    def sorted(self, query: ir.PatternQuery) -> Found:
        """Returns the matches in the order they are given out: by D, then by the events of each
        element."""
        return self if len(self) < 2 else self.reorder(self.order(query))

    def order(self, query: ir.PatternQuery) -> Ints:
        """Returns the places of the matches in the order they are given out."""
        counts, numbers, one = [], [], np.ones(len(self), np.int64)
        for element in query.positives:
            group = self.groups.get(element)
            counts.append(one if group is None else group.counts)
            numbers.append(self.log.seq[self.singles[element] if group is None else group.rows])
        order = np.empty(len(self), np.int64)
        native.ordered(self.determined, tuple(counts), tuple(numbers), order)
        return order

    def dated(self, query: ir.PatternQuery) -> Found:
        """Returns the matches with the times of their last events as D."""
        last = query.positives[-1]
        group = self.groups.get(last)
        rows = self.singles[last] if group is None else group.rows[group.ends - 1]
        return dataclasses.replace(self, determined=self.log.ts[rows])

    def part(self, begin: int, end: int) -> Found:
        """Returns the matches from `begin` to `end`, without the end."""
        groups = {}
        for element, members in self.groups.items():
            bounds = np.concatenate([[0], members.ends])
            rows = members.rows[bounds[begin] : bounds[min(end, len(self))]]
            groups[element] = GroupMembers(members.counts[begin:end], rows)
        singles = {e: rows[begin:end] for e, rows in self.singles.items()}
        return Found(self.log, self.determined[begin:end], singles, groups)

    def parts(self, events: int) -> Iterator[Found]:
        """Yields the matches in parts, in order: each has so many events, or is one match."""
        if self.events <= events:
            yield self
            return
        size = np.full(len(self), len(self.singles), np.int64)
        for members in self.groups.values():
            size += members.counts
        for piece in pieces(size, events):
            yield self.part(piece.start, piece.stop)

    def equal(self, first: int, second: int) -> bool:
        """Returns whether two places have the same match."""
        a, b = self.part(first, first + 1), self.part(second, second + 1)
        return all(a.singles[e] == b.singles[e] for e in a.singles) and all(
            np.array_equal(a.groups[e].rows, b.groups[e].rows) for e in a.groups
        )

    def firsts(self, query: ir.PatternQuery) -> Found:
        """Returns the first match from each start, of matches in the order they are given out."""
        first = query.positives[0]
        group = self.groups.get(first)
        starts = self.singles[first] if group is None else group.rows[group.starts]
        return self.reorder(np.sort(np.unique(starts, return_index=True)[1]))

    def matches(self, query: ir.PatternQuery) -> list[Match]:
        """Returns the matches as objects."""
        events: dict[int, Event] = {}

        def event(row: int) -> Event:
            if row not in events:
                events[row] = self.log.event(row)
            return events[row]

        columns: list[list[tuple[Event, ...]]] = []
        for element in range(len(query.elements)):
            if element in self.singles:
                columns.append([(event(row),) for row in self.singles[element].tolist()])
            elif element in self.groups:
                members = self.groups[element]
                rows = members.rows.tolist()
                spans = zip(members.starts.tolist(), members.ends.tolist(), strict=True)
                columns.append([tuple(map(event, rows[a:b])) for a, b in spans])
            else:
                columns.append([()] * len(self))
        cells = zip(*columns, strict=True)
        return [Match(groups, d) for groups, d in zip(cells, self.determined.tolist(), strict=True)]


def joined(parts: list[Found]) -> Found:
    """Joins several parts over one log."""
    first = parts[0]
    return Found(
        first.log,
        np.concatenate([part.determined for part in parts]),
        {e: np.concatenate([p.singles[e] for p in parts]) for e in first.singles},
        {
            e: GroupMembers(
                np.concatenate([p.groups[e].counts for p in parts]),
                np.concatenate([p.groups[e].rows for p in parts]),
            )
            for e in first.groups
        },
    )


def together(parts: Iterable[Found]) -> Found | None:
    """Joins the parts of a search, or returns None if there are none."""
    found = [*parts]
    return found[0] if len(found) == 1 else joined(found) if found else None
