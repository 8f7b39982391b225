"""Matches in columns: for every element the rows of its events, all in one batch."""

from __future__ import annotations

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


@dataclass(slots=True)
class Found:
    """`singles` and `groups` are rows of `log`, by element; `determined` is the D of each match."""

    log: EventBatch
    determined: Ints
    singles: dict[int, Array]
    groups: dict[int, GroupMembers]

    def __len__(self) -> int:
        return len(self.determined)

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
        if len(self) < 2:
            return self
        counts, numbers, one = [], [], np.ones(len(self), np.int64)
        for element in query.positives:
            group = self.groups.get(element)
            counts.append(one if group is None else group.counts)
            numbers.append(self.log.seq[self.singles[element] if group is None else group.rows])
        order = np.empty(len(self), np.int64)
        native.ordered(self.determined, tuple(counts), tuple(numbers), order)
        return self.reorder(order)

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
