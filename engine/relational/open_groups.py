"""Groups of windows that are not over, each as the state of its aggregates.

    rows                      (1, x, 5) (2, x, 7) (3, y, 1)
    groups, TUMBLE(ts, 10)    x: 12, y: 1

Of the rows, those are kept that an aggregate may give or compare, such as the least; none for counts and sums. In a
cohort, a group has the rows of one query.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.logical import program as logical
from seustream.engine.host.aggregates import Aggregates, AtPoints
from seustream.engine.host.keys import KeyNumbers, firsts
from seustream.engine.host.sliding import STATES
from seustream.engine.kernels import native
from seustream.engine.relational.held import OpenSessions, ReadRows
from seustream.engine.relational.measures import Measures
from seustream.engine.relational.slots import Slots
from seustream.engine.relational.times import numbers, spread
from seustream.engine.stream.growing import Growing
from seustream.engine.stream.nearby import Nearby
from seustream.engine.stream.numbers import as_column, order_of

Ints = npt.NDArray[np.int64]

_FEW = 4096
"""Members and groups that may be kept beyond those needed."""
_PANES = 1024
"""The most panes of a window; where there are more, rows are kept."""
_SPARSE = 16
"""Numbers are found by place where they are less than this many times as many."""
_NOTHING = np.empty(0, np.int64)
_WHOSE = "whose"


class OpenGroups(Slots, ABC):
    """Groups by number; those of `several` queries have the number of theirs. The *mark* of a row says which of the
    groups of its keys it belongs to."""

    def __init__(self, measures: Measures, several: bool, later: bool) -> None:
        self.measures, self.several = measures, several
        self.later = later
        """Set if rows enter their groups when they are asked for, not when they come."""
        self.waiting: list[ReadRows] = []
        """Rows that are not in their groups yet."""
        types = [field for _, field in measures.fields]
        self.key_types, self._types = types[: len(measures.keys)], types[len(measures.keys) :]
        self._begin()

    def _begin(self) -> None:
        super().__init__()
        self.aggregates = self.measures.begun(ordered=True)
        self._began = Nearby()
        self._since: Growing | None = None
        """The oldest time in each group; None while these are the times at which they began."""
        self._folded = 0
        """The number of members that were needed when that was last found out."""
        self._entered = 0
        """The number of members so far."""

    # --- groups ---------------------------------------------------------------

    @abstractmethod
    def _numbered(self, mark: Ints, whose: Ints | None, keys: Sequence[pa.Array]) -> Ints:
        """Returns the numbers of the groups of rows. New ones come in the order of their first rows."""

    @abstractmethod
    def marks(self, groups: Ints) -> Ints:
        """Returns a mark by which each of some groups is found."""

    @abstractmethod
    def of_times(self, ts: Ints) -> Ints:
        """Returns the marks of rows at some times."""

    @abstractmethod
    def keys(self, groups: Ints) -> list[pa.Array]:
        """Returns the keys of some groups."""

    @abstractmethod
    def whose(self, groups: Ints) -> Ints | None:
        """Returns the numbers of the queries of some groups; None with a single query."""

    def places(self, some: Sequence[int] | None) -> Ints:
        """Returns the groups of some queries, of all if None is given."""
        found = np.flatnonzero(self.here)
        whose = self.whose(found)
        return found if some is None or whose is None else found[np.isin(whose, some)]

    def began(self, groups: Ints) -> Ints:
        """Returns the times of the first rows of some groups."""
        return self._began[groups]

    def since(self, groups: Ints) -> Ints:
        """Returns the oldest times in some groups."""
        if self._since is None:
            return self.began(groups)
        found: Ints = self._since.view[groups]
        return found

    # --- members --------------------------------------------------------------

    def take_in(self, rows: ReadRows) -> None:
        """Takes rows, those of each query in the order of their times."""
        if self.later:
            self.waiting.append(rows)
            return
        keys, own = self.parted(rows.values)
        oldest = np.asarray(rows.oldest)
        group = self.numbers(self.of_times(rows.times), rows.whose, keys, rows.times, oldest)
        self.age(group, oldest)
        self.enter(own, group, _NOTHING, _NOTHING)

    def parted(self, values: list[pa.Array]) -> tuple[list[pa.Array], list[pa.Array]]:
        """Returns the keys of rows, and the arguments of aggregates."""
        return values[: len(self.key_types)], values[len(self.key_types) :]

    def until(self, now: int) -> ReadRows | None:
        """Takes the rows up to a time out of those that wait, if there are any."""
        due = list[ReadRows]()
        while self.waiting:
            rows = self.waiting[0]
            count = int(np.searchsorted(rows.times, now, side="right"))
            if count:
                due.append(rows.part(0, count))
            if count < len(rows.times):
                self.waiting[0] = rows.part(count, len(rows.times))
                break
            del self.waiting[0]
        return ReadRows.together(due) if due else None

    def numbers(
        self, mark: Ints, whose: Ints | None, keys: Sequence[pa.Array], ts: Ints, oldest: Ints
    ) -> Ints:
        """Returns the numbers of the groups of rows, and makes those that are new."""
        if self._since is None and not np.array_equal(ts, oldest):
            self._since = Growing()
            self._since.append(self._began[:])
        group = self._numbered(mark, whose, keys)
        first = firsts(group, len(self))
        if len(first):
            self.take(len(first))
            self._began.append(ts[first])
            if self._since is not None:
                self._since.append(oldest[first])
        return group

    def age(self, group: Ints, oldest: Ints) -> None:
        """Makes groups as old as rows that are in them."""
        if self._since is not None:
            np.minimum.at(self._since.view, group, oldest)

    def enter(
        self, values: Sequence[pa.Array], group: Ints, until: Ints, at: Ints
    ) -> list[AtPoints]:
        """Adds members to groups; returns the aggregates at points, each after this many of them, and of a group."""
        own, count = self.aggregates, len(group)
        self._entered += count
        found = own.enter(values, group, until, at)
        if len(own) > 2 * self._folded + _FEW:
            self._folded = own.fold()
        return found

    # --- memory and state -----------------------------------------------------

    def trim(self) -> None:
        """Forgets groups that have left, and what they counted once, when this is worth while."""
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
            groups = groups.drop_columns([_WHOSE])
        return {"groups": groups, "members": members}

    def fill(self, tables: Mapping[str, pa.Table], number: int) -> bool:
        """Adds the groups of a query that has none. Returns whether these were tables of such groups."""
        groups, members = tables["groups"], tables["members"]
        if [groups.schema, members.schema] != self._schemas(several=False):
            return False
        if self.several:
            owner = pa.array(np.full(groups.num_rows, number))
            groups = groups.append_column(pa.field(_WHOSE, pa.int64()), owner)
        self._fill(groups, members)
        return True

    def _tables(self, groups: Ints) -> tuple[pa.Table, pa.Table]:
        own = self.aggregates
        of = own.groups(np.arange(len(own)))
        number = np.full(len(self), -1)
        number[groups] = np.arange(len(groups))
        places = np.flatnonzero(number[of] >= 0)
        times = (self.marks(groups), self.began(groups), self.since(groups))
        columns = [*map(pa.array, times), own.states(groups), *self.keys(groups)]
        if self.several:
            columns.append(pa.array(self.whose(groups)))
        values = [own.values(argument, places) for argument in range(len(self._types))]
        of_groups, of_members = self._schemas(self.several)
        return (
            pa.table(columns, schema=of_groups),
            pa.table([pa.array(number[of[places]]), *values], schema=of_members),
        )

    def _fill(self, groups: pa.Table, members: pa.Table) -> None:
        mark, began, since, states, *keys = (one.combine_chunks() for one in groups.columns)
        whose = np.asarray(keys.pop()) if self.several else None
        number = self.numbers(np.asarray(mark), whose, keys, np.asarray(began), np.asarray(since))
        of, *values = (one.combine_chunks() for one in members.columns)
        self.aggregates.enter(values, number[np.asarray(of)], _NOTHING, _NOTHING)
        self.aggregates.resume(number, states)
        self._folded = len(self.aggregates)

    def _schemas(self, several: bool) -> list[pa.Schema]:
        """Returns the columns of groups, and those of their members."""
        times = [(name, pa.int64()) for name in ("mark", "began", "since")]
        keys = [(f"g{number}", of) for number, of in enumerate(self.key_types)]
        owner = [(_WHOSE, pa.int64())] * several
        values = [(f"a{number}", of) for number, of in enumerate(self._types)]
        return [
            pa.schema([*times, ("states", STATES), *keys, *owner]),
            pa.schema([("group", pa.int64()), *values]),
        ]


class PaneGroups(OpenGroups):
    """Groups of panes. A *pane* is a span of time in which all rows are in the same windows: of TUMBLE the window, of
    HOP and CUMULATE a part of several. When a window is over, the groups of its panes that have equal keys are added
    up. If rows are taken `later`, each pane is a window, and a row is in as many as it has windows."""

    def __init__(
        self, measures: Measures, every: logical.Periodic, several: bool, later: bool
    ) -> None:
        self.every = every
        super().__init__(measures, several, later)

    def _begin(self) -> None:
        super()._begin()
        self._keys = KeyNumbers([*self.key_types, *[pa.int64()] * self.several])
        self._key_of, self._pane_of = Nearby(), Nearby()
        self._spells = native.Spells()
        self._pairs = KeyNumbers([pa.int64(), pa.int64()])

    @property
    def is_whole(self) -> bool:
        """Returns whether no window has several panes."""
        return self.later or not self._overlaps

    @property
    def _overlaps(self) -> bool:
        return self.every.size != self.every.slide or self.every.cumulates

    def windows(self, groups: Ints) -> tuple[Ints, Ints]:
        """Returns the numbers of the first and the last window that some groups are in."""
        pane = self.marks(groups)
        if self.later:
            return pane, pane
        first, last = numbers(self.every, pane * _width(self.every) + self.every.offset)
        return first, last

    def merged(self, panes: Ints, first: Ints, last: Ints) -> MergedGroups:
        """Returns groups of windows: of each pane's group those from the first to the last, together with the groups of
        equal keys in the other panes."""
        of, window = spread(first, last)
        source, low = panes[of], int(first.min())
        target, one = _numbers((window - low) * len(self._keys) + self._key_of[source])
        own, found = self.aggregates, self.measures.begun(ordered=True)
        # Members that are kept are in all groups that theirs is in.
        member_of = own.groups(np.arange(len(own)))
        order = order_of(source)
        copies = np.bincount(source, minlength=len(self))
        begins = np.cumsum(copies) - copies
        member, at = spread(begins[member_of], begins[member_of] + copies[member_of] - 1)
        values = [own.values(number, member) for number in range(len(own.types))]
        found.enter(values, target[order][at], _NOTHING, _NOTHING)
        found.kernel.pour(own.kernel, source, target)
        began, since = (
            _least(times, target, len(one)) for times in (self.began(source), self.since(source))
        )
        return MergedGroups(source[one], window[one], began, since, found)

    def of_times(self, ts: Ints) -> Ints:
        found: Ints = (ts - self.every.offset) // _width(self.every)
        return found

    def marks(self, groups: Ints) -> Ints:
        return self._pane_of[groups]

    def keys(self, groups: Ints) -> list[pa.Array]:
        own = self._key_of[groups]
        return [self._keys.column(number, own) for number in range(len(self.key_types))]

    def whose(self, groups: Ints) -> Ints | None:
        if not self.several:
            return None
        return np.asarray(self._keys.column(len(self.key_types), self._key_of[groups]))

    def _numbered(self, mark: Ints, whose: Ints | None, keys: Sequence[pa.Array]) -> Ints:
        owners = [] if whose is None else [as_column(whose)]
        key = self._keys.numbers([*keys, *owners], len(mark))
        if self.later and self._overlaps:  # the windows of a row come before the first of the next
            group = self._pairs.numbers([as_column(key), as_column(mark)], len(mark))
        else:
            group = np.empty(len(mark), np.int64)
            self._spells.add(key, mark, group)
        first = firsts(group, len(self))
        if len(first):
            self._key_of.append(key[first])
            self._pane_of.append(mark[first])
        return group


class MergedGroups(NamedTuple):
    """Groups of windows that have several panes: for each the group of one of its panes, its window, the time of its first
    row, and the oldest; and their aggregates, numbered in this order."""

    one: Ints
    window: Ints
    began: Ints
    since: Ints
    aggregates: Aggregates


class SessionGroups(OpenGroups):
    """Groups of sessions; the mark is a time."""

    def __init__(self, measures: Measures, gap: int, several: bool, later: bool) -> None:
        self.gap = gap
        super().__init__(measures, several, later)

    def _begin(self) -> None:
        super()._begin()
        self.sessions = OpenSessions(self.gap, self.key_types, self.several)

    def of_times(self, ts: Ints) -> Ints:
        return ts

    def marks(self, groups: Ints) -> Ints:
        return self.sessions.latest(groups)

    def keys(self, groups: Ints) -> list[pa.Array]:
        return self.sessions.keys(groups)[: len(self.key_types)]

    def whose(self, groups: Ints) -> Ints | None:
        return np.asarray(self.sessions.keys(groups)[-1]) if self.several else None

    def _numbered(self, mark: Ints, whose: Ints | None, keys: Sequence[pa.Array]) -> Ints:
        return self.sessions.numbers(keys, mark, whose)


def groups_for(
    measures: Measures, every: logical.Periodic | logical.Sessions, several: bool, later: bool
) -> PaneGroups | SessionGroups | None:
    """Makes groups; None if they need all their rows, or panes are not worth a state."""
    if not measures.can_fold:
        return None
    if isinstance(every, logical.Sessions):
        return SessionGroups(measures, every.gap, several, later)
    panes = every.size // _width(every)
    if panes > (1 if every.by_rows else _PANES):
        return None
    return PaneGroups(measures, every, several, later)


def _numbers(keys: Ints) -> tuple[Ints, Ints]:
    """Numbers keys from 0 up, which are not negative. Returns the number of each, and the place of one of each number."""
    most = int(keys.max()) + 1
    if most > _SPARSE * len(keys):
        _, place, number = np.unique(keys, return_index=True, return_inverse=True)
        return number, place
    found = np.full(most, -1)
    found[keys] = np.arange(len(keys))
    place = found[found >= 0]
    found[found >= 0] = np.arange(len(place))
    return found[keys], place


def _least(times: Ints, group: Ints, count: int) -> Ints:
    """Returns the least time of each group."""
    found = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(found, group, times)
    return found


def _width(every: logical.Periodic) -> int:
    return every.slide if every.cumulates else math.gcd(every.size, every.slide)
