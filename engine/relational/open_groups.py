"""Groups of windows that are not over, each as the state of its aggregates.

    rows                      (1, x, 5) (2, x, 7) (3, y, 1)
    groups, TUMBLE(ts, 10)    x: 12, y: 1

A *pane* is a span of time in which all rows are in the same windows: of TUMBLE the window, of HOP and CUMULATE a part of
several. A group has the rows of a pane that have equal keys; in a cohort, those of one query. When a window is over, the
groups of its panes that have equal keys are added up. For EMIT CHANGES each group is of one window, and a row in several
windows is in as many groups.

Of the rows, those are kept that an aggregate may give or compare, such as the least; none for counts and sums.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.logical import program as logical
from seustream.engine.host.aggregates import Aggregates, AtPoints
from seustream.engine.host.keys import KeyNumbers
from seustream.engine.host.sliding import STATES
from seustream.engine.relational.measures import Measures
from seustream.engine.relational.slots import Slots
from seustream.engine.relational.times import numbers
from seustream.engine.stream.growing import Growing
from seustream.engine.stream.nearby import Nearby

Ints = npt.NDArray[np.int64]

_FEW = 4096
"""Members and texts that may be kept beyond twice the number needed."""
_PANES = 1024
"""Panes in a window from which on rows are kept instead."""
_NOTHING = np.empty(0, np.int64)
_PANE, _BEGAN, _SINCE, _STATE, _GROUP = "pane", "began", "since", "state", "group"
"""Columns of the tables that hold groups and members."""


def folds(every: logical.Periodic | logical.Sessions, measures: Measures) -> bool:
    """Returns whether groups need few of their rows, and panes are worth a state."""
    if isinstance(every, logical.Sessions) or not measures.can_fold:
        return False
    panes = every.size // _width(every)
    return panes <= (1 if every.by_rows else _PANES)


def _width(every: logical.Periodic) -> int:
    return every.slide if every.cumulates else math.gcd(every.size, every.slide)


class OpenGroups(Slots):
    """Groups by number. Of `several` queries, each group has the number of its query. With `by_window`, groups are of
    windows instead of panes."""

    def __init__(
        self, measures: Measures, every: logical.Periodic, several: bool, by_window: bool
    ) -> None:
        self.measures, self.every = measures, every
        self.several, self.by_window = several, by_window
        self.waiting: list[pa.Table] = []
        """Rows that are not in their groups yet."""
        types = [field for _, field in measures.fields]
        self._key_types, self._types = types[: len(measures.keys)], types[len(measures.keys) :]
        self._begin()

    def _begin(self) -> None:
        super().__init__()
        self._keys = KeyNumbers([pa.int64(), *[pa.int64()] * self.several, *self._key_types])
        self.aggregates = self.measures.begun(ordered=True)
        self._began = Nearby()
        self._since = Growing()
        self._folded = 0
        """The number of members that were needed when that was last found out."""
        self._entered = 0
        """The number of members so far."""

    # --- groups ---------------------------------------------------------------

    def places(self, some: Sequence[int] | None) -> Ints:
        """Returns the groups of some queries, of all if None is given."""
        found = np.flatnonzero(self.here)
        if some is None or not self.several:
            return found
        whose = self.whose(found)
        assert whose is not None
        return found[np.isin(whose, some)]

    def whose(self, groups: Ints) -> Ints | None:
        """Returns the numbers of the queries of some groups; None with a single query."""
        return np.asarray(self._keys.column(1, groups)) if self.several else None

    def keys(self, groups: Ints) -> list[pa.Array]:
        """Returns the keys of some groups."""
        found = range(1 + self.several, len(self._keys.types))
        return [self._keys.column(number, groups) for number in found]

    def began(self, groups: Ints) -> Ints:
        """Returns the times of the first rows of some groups."""
        return self._began[groups]

    def since(self, groups: Ints) -> Ints:
        """Returns the oldest times in some groups."""
        found: Ints = self._since.view[groups]
        return found

    def windows(self, groups: Ints) -> tuple[Ints, Ints]:
        """Returns the numbers of the first and the last window that some groups are in."""
        pane = np.asarray(self._keys.column(0, groups))
        if self.by_window:
            return pane, pane
        first, last = numbers(self.every, pane * _width(self.every) + self.every.offset)
        return first, last

    @property
    def is_whole(self) -> bool:
        """Returns whether no window has several panes."""
        every = self.every
        return self.by_window or (every.size == every.slide and not every.cumulates)

    # --- members --------------------------------------------------------------

    def add(self, rows: pa.Table, whose: Ints | None) -> None:
        """Adds rows to the groups of their panes."""
        times, oldest, *values = (column.combine_chunks() for column in rows.columns)
        ts = np.asarray(times)
        pane = (ts - self.every.offset) // _width(self.every)
        keys, own = values[: len(self._key_types)], values[len(self._key_types) :]
        group = self.numbers(pane, whose, keys, ts, np.asarray(oldest))
        self.enter(own, group, _NOTHING, _NOTHING)

    def numbers(
        self, pane: Ints, whose: Ints | None, keys: Sequence[pa.Array], ts: Ints, oldest: Ints
    ) -> Ints:
        """Returns the numbers of the groups of rows in panes, or windows, at times, in order for each query. Makes
        groups that are new."""
        known = len(self)
        owners = [] if whose is None else [pa.array(whose)]
        group = self._keys.numbers([pa.array(pane), *owners, *keys], len(pane))
        if len(self._keys) > known:
            # New groups are numbered in the order of their first rows.
            most = np.maximum.accumulate(group)
            first = np.flatnonzero(group > np.maximum(np.append(-1, most[:-1]), known - 1))
            self.take(len(first))
            self._began.append(ts[first])
            self._since.append(oldest[first])
        if not np.array_equal(ts, oldest):  # without older times, the first is the oldest
            np.minimum.at(self._since.view, group, oldest)
        return group

    def enter(self, values: Sequence[pa.Array], group: Ints, until: Ints, at: Ints) -> list[AtPoints]:
        """Adds members to groups; returns the aggregates at points, each after this many of them, and of a group."""
        members = self.aggregates
        first, count = members.kernel.base() + len(members), len(group)
        self._entered += count
        members.add(values, group)
        found = members.results(members.kernel.found(first + np.arange(count), until, at))
        if len(members) > 2 * self._folded + _FEW:
            self._folded = members.fold()
            if members.kernel.distinct() > 2 * self._folded + _FEW:  # texts that no member has any more
                self._renew()
        return found

    def until(self, now: int) -> pa.Table | None:
        """Takes the rows up to a time out of those that wait, if there are any."""
        due = list[pa.Table]()
        while self.waiting:
            rows = self.waiting[0]
            count = int(np.searchsorted(np.asarray(rows.column(0)), now, side="right"))
            if count:
                due.append(rows.slice(0, count))
            if count < rows.num_rows:
                self.waiting[0] = rows.slice(count)
                break
            del self.waiting[0]
        return pa.concat_tables(due) if due else None

    def merged(self, source: Ints, target: Ints) -> Aggregates:
        """Returns aggregates of groups by `target`, each of the rows of the groups in `source` beside it."""
        own, found = self.aggregates, self.measures.begun(ordered=True)
        # Members that are kept are in all groups that theirs is in.
        member_of = own.groups(np.arange(len(own)))
        order = np.argsort(source, kind="stable")
        low, high = (np.searchsorted(source[order], member_of, side) for side in ("left", "right"))
        copies = high - low
        member = np.repeat(np.arange(len(member_of)), copies)
        at = np.repeat(low - np.cumsum(copies) + copies, copies) + np.arange(len(member))
        values = [own.values(number, member) for number in range(len(own.types))]
        found.add(values, target[order][at])
        found.results(found.kernel.found(np.arange(len(member)), _NOTHING, _NOTHING))
        found.kernel.pour(own.kernel, source, target)
        return found

    # --- memory and state -----------------------------------------------------

    def trim(self) -> None:
        """Forgets groups that have left, and the texts of their members, once this is worth while."""
        if 3 * self.left > len(self) and max(self.left, self._entered) > _FEW:
            self._renew()

    def _renew(self) -> None:
        """Starts over with the groups that are here, which get other numbers."""
        groups, members = self._tables(self.places(None))
        self._begin()
        self._fill(groups, members)

    def tables(self, number: int) -> dict[str, pa.Table]:
        """Returns the groups of a query, and their members."""
        groups, members = self._tables(self.places([number]))
        if self.several:
            groups = groups.drop_columns(["whose"])
        return {"groups": groups, "members": members}

    def fill(self, tables: Mapping[str, pa.Table], number: int) -> bool:
        """Adds the groups of a query that has none. Returns whether these were tables of such groups."""
        groups, members = tables["groups"], tables["members"]
        if [groups.schema, members.schema] != [self._schema(False), self._member_schema()]:
            return False
        if self.several:
            owner = pa.array(np.full(groups.num_rows, number))
            groups = groups.add_column(1, "whose", owner)
        self._fill(groups, members)
        return True

    def _tables(self, groups: Ints) -> tuple[pa.Table, pa.Table]:
        own = self.aggregates
        of = own.groups(np.arange(len(own)))
        number = np.full(len(self), -1)
        number[groups] = np.arange(len(groups))
        places = np.flatnonzero(number[of] >= 0)
        columns = [
            *self._keys.values(groups),
            pa.array(self.began(groups)),
            pa.array(self.since(groups)),
            own.states(groups),
        ]
        kept = [own.values(argument, places) for argument in range(len(own.types))]
        members = [pa.array(number[of[places]]), *kept]
        return (
            pa.table(columns, schema=self._schema(self.several)),
            pa.table(members, schema=self._member_schema()),
        )

    def _fill(self, groups: pa.Table, members: pa.Table) -> None:
        pane, *keys, began, since, states = (one.combine_chunks() for one in groups.columns)
        whose = np.asarray(keys.pop(0)) if self.several else None
        number = self.numbers(np.asarray(pane), whose, keys, np.asarray(began), np.asarray(since))
        of, *values = (one.combine_chunks() for one in members.columns)
        own = self.aggregates
        first = own.kernel.base() + len(own)
        own.add(values, number[np.asarray(of)])
        own.results(own.kernel.found(first + np.arange(len(of)), _NOTHING, _NOTHING))
        own.resume(number, states)
        self._folded = len(own)

    def _schema(self, several: bool) -> pa.Schema:
        keys = [(f"g{number}", of) for number, of in enumerate(self._key_types)]
        numbered = [(_PANE, pa.int64()), *[("whose", pa.int64())] * several]
        times = [(_BEGAN, pa.int64()), (_SINCE, pa.int64())]
        return pa.schema([*numbered, *keys, *times, (_STATE, STATES)])

    def _member_schema(self) -> pa.Schema:
        values = [(f"a{number}", of) for number, of in enumerate(self._types)]
        return pa.schema([(_GROUP, pa.int64()), *values])
