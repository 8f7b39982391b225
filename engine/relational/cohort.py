"""GROUP BY TUMBLE, HOP and SESSION of queries that differ only in conditions, updated together.

before  q1: … WHERE v = 1 GROUP BY k, TUMBLE(ts, 1 minute)    q2: the same WHERE v = 2
after   one set of rows; each has the number of its query, which is a part of its group

What is kept until no open window needs it are groups, where a group is the state of its aggregates (`OpenGroups`), and
rows where it is not: of aggregates that need all rows, such as a median. With EMIT CHANGES, groups are
given as they grow.

**Faults.** If an expression has a fault, each query is evaluated by itself, in its turn and as
written. The fault is counted where it belongs, and a query that fails on it fails alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.language.exact import HIGH
from seustream.compiler.language.faults import Faults, Place
from seustream.compiler.logical import program as logical
from seustream.engine.relational.closed import (
    Closed,
    WindowGroups,
    closed_periods,
    closed_sessions,
    ended,
    groups_of_panes,
    groups_of_rows,
    groups_of_sessions,
    rows_of_groups,
)
from seustream.engine.relational.growth import changes_of_groups, changes_of_rows
from seustream.engine.relational.held import (
    HeldRows,
    KeyedRows,
    NumberedRows,
    ReadRows,
    SessionRows,
)
from seustream.engine.relational.measures import Measures
from seustream.engine.relational.open_groups import (
    OpenGroups,
    PaneGroups,
    SessionGroups,
    groups_for,
)
from seustream.engine.relational.times import numbers
from seustream.engine.stream.answers import as_rows, result_schema
from seustream.engine.stream.evaluate import evaluate, holds
from seustream.engine.stream.faults import QueryFaults
from seustream.engine.stream.merge import timestamps
from seustream.engine.stream.numbers import as_column
from seustream.engine.stream.operator import BEGIN_OF_TIME, EARLIEST
from seustream.engine.stream.taken import taken

Held = PaneGroups | SessionGroups | HeldRows
"""Groups or rows of windows that are not over."""

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_NEVER = EARLIEST >> 1
"""The number of a window before all others."""

_KEYS = 2
"""The first column of a kept row that is a key."""

_FARTHEST = 1 << 61
"""Times beyond this, in either direction, have no windows: their ends and the spans between them
would not fit."""
_WINDOWS, _TOO_FAR = "the windows of groups", "a time beyond ±2^61 ms"


@dataclass(eq=False, slots=True)
class PeriodState:
    """A query and its progress."""

    node: logical.PeriodGroups
    faults: QueryFaults
    number: int = 0
    """Its place in the cohort."""

    coming: list[pa.Table] = field(default_factory=list)
    """Rows that are not read yet."""

    watermark: int = BEGIN_OF_TIME
    stirred: bool = False
    """Set when rows came, or the watermark rose."""

    alone: bool = False
    """Set when it is evaluated by itself, in its turn."""

    results: pa.Table | None = None
    """Rows ready to be given out."""

    done: int | None = None
    """The number of the last window whose groups were given."""

    quiet: int | None = None
    """The watermark before which no window of a kept row is over."""

    told: int = EARLIEST
    """The time up to which changes have been given."""

    count: int = 0
    """The number of rows so far, where windows are of rows."""

    _measures: Measures | None = None
    _schema: pa.Schema | None = None

    @property
    def computed(self) -> Measures:
        """The measures of the query, with the places in its own text."""
        if self._measures is None:
            node = self.node
            parts = [item.expression for item in node.items]
            parts += [key.expression for key in node.order_by]
            parts += [] if node.having is None else [node.having]
            self._measures = Measures(node.group_by, parts)
        return self._measures

    @property
    def numbered(self) -> bool:
        """Returns whether windows are of rows."""
        return isinstance(self.node.every, logical.Periodic) and self.node.every.by_rows

    @property
    def key_names(self) -> list[str]:
        """The columns of rows that are kept which are keys; before them are the time and the oldest."""
        names: list[str] = self.kept_schema.names[_KEYS : _KEYS + len(self.computed.keys)]
        return names

    @property
    def kept_schema(self) -> pa.Schema:
        """The columns of rows that are kept."""
        if self._schema is None:
            times = [("ts", pa.int64()), ("oldest", pa.int64())]
            self._schema = pa.schema([*times, *self.computed.fields])
        return self._schema


class PeriodCohort:
    """The groups, or the rows, of windows that are not over, for all members. Of rows these are their times, their keys
    and the arguments of the aggregates."""

    def __init__(self, *members: PeriodState) -> None:
        self.members = members
        for number, member in enumerate(members):
            member.number = number
        self.stirred: list[PeriodState] = []
        self.held: Held | None = None

    @property
    def several(self) -> bool:
        return len(self.members) > 1

    def stir(self, member: PeriodState) -> None:
        """Marks a member for which something came."""
        if not member.stirred:
            member.stirred = True
            self.stirred.append(member)

    def bring_forward(self, caller: PeriodState) -> None:
        """Advances the caller to its watermark, together with the members that have the same one,
        unless they have to go alone."""
        some = [caller]
        if len(self.stirred) > 1 and not caller.alone:
            now = caller.watermark
            some = [one for one in self.stirred if one.watermark == now and not one.alone]
        if not _Forward(self, some).take():
            for one in some:
                one.alone = True
            some = [caller]
            _Forward(self, some).take()
        for one in some:
            one.stirred = one.alone = False
        self.stirred = [one for one in self.stirred if one.stirred]

    def keep(self, rows: ReadRows) -> None:
        """Keeps more rows, those of each query in the order of their times."""
        if not len(rows.times):
            return
        held = self._begun()
        if isinstance(held, OpenGroups):
            held.take_in(rows)
            return
        table = rows.table(self.members[0].kept_schema)
        if isinstance(held, KeyedRows):
            keys = rows.values[: len(self.members[0].computed.keys)]
            held.add_to(held.numbers(keys, table.num_rows), table)
        else:
            held.add(table, rows.whose)

    def _begun(self) -> Held:
        """Returns what is kept, in which there may be nothing yet."""
        if self.held is None:
            member = self.members[0]
            node, schema, names = member.node, member.kept_schema, member.key_names
            groups = groups_for(member.computed, node.every, self.several, node.changes)
            if groups is not None:
                self.held = groups
            elif isinstance(node.every, logical.Sessions):
                self.held = SessionRows(schema, self.several, node.every.gap, names)
            elif node.changes:
                self.held = KeyedRows(schema, [schema.field(name).type for name in names])
            else:
                self.held = HeldRows(schema, self.several)
        return self.held

    def drop(self, places: Ints) -> None:
        """Drops groups, or rows, that are kept."""
        held = self.held
        assert held is not None
        held.leave(places)
        if isinstance(held, OpenGroups):
            held.trim()
        elif held.is_sparse:
            held.compact()

    def take_over(self, member: PeriodState, tables: Mapping[str, pa.Table]) -> bool:
        """Adds what was kept of a query of which there is nothing yet. Returns whether it fits the query."""
        rows, held = tables["kept"], self._begun()
        if rows.schema != member.kept_schema:
            return False
        if (
            isinstance(held, OpenGroups)
            and "groups" in tables
            and not held.fill(tables, member.number)
        ):
            return False
        whose = np.full(rows.num_rows, member.number) if self.several else None
        self.keep(ReadRows.of(rows, whose))
        return True

    def leave(self, member: PeriodState) -> None:
        """Drops the rows of a query that ends."""
        if self.held is not None and self.several:
            self.drop(self.held.places([member.number]))
        self.stirred = [one for one in self.stirred if one is not member]

    def tables(self, member: PeriodState) -> dict[str, pa.Table]:
        """Returns what is kept of one query."""
        held = self.held
        if isinstance(held, HeldRows):
            return {"kept": held.table(held.places([member.number]))}
        schema = member.kept_schema
        if held is None:
            return {"kept": schema.empty_table()}
        rows = [schema.empty_table(), *(one.table(schema) for one in held.waiting)]
        return {"kept": pa.concat_tables(rows), **held.tables(member.number)}


class _Passed(NamedTuple):
    """The consequences of a watermark: the groups of windows that are over, if there are any, made when they are asked
    for; the places of what leaves; the number of the last window that is over; and, where known, the watermark before
    which no window of what stays is over."""

    groups: Callable[[], WindowGroups] | None
    leaves: Ints
    done: int | None
    quiet: int | None


class _Forward:
    """Some members at one watermark. With several, nothing is done if anything has a fault."""

    def __init__(self, cohort: PeriodCohort, some: Sequence[PeriodState]) -> None:
        self.cohort, self.some = cohort, some
        self.lone = some[0] if len(some) == 1 else None
        speaker = self.lone or cohort.members[0]
        self.node, self.measures = speaker.node, speaker.computed
        self.faults: Faults = Faults() if self.lone is None else self.lone.faults
        self.now = some[0].watermark
        self.came = np.empty(0, np.int64)  # the times of new rows

    @property
    def doubted(self) -> bool:
        return self.lone is None and self.faults.total > 0

    def take(self) -> bool:
        """Advances the members; returns False if they have to go alone."""
        self._read()
        if not self.doubted:
            if self.lone is not None and self.lone.numbered:
                self.now = self.lone.count - 1
            if self.lone is not None and self.node.changes:
                self._grow(self.lone)
            if self._due():
                self._close()
        return not self.doubted

    # --- rows -----------------------------------------------------------------

    def _read(self) -> None:
        """Keeps the rows that have come."""
        coming = [rows for one in self.some for rows in one.coming]
        if not coming:
            return
        rows = (coming[0] if len(coming) == 1 else pa.concat_tables(coming)).combine_chunks()
        whose: Ints | None = None
        if self.cohort.several:
            counts = [sum([part.num_rows for part in one.coming]) for one in self.some]
            whose = np.repeat(np.array([one.number for one in self.some], np.int64), counts)
        fresh = self._evaluated(rows, whose)
        if self.doubted:
            return
        for one in self.some:
            one.coming.clear()
        self.cohort.keep(fresh)

    def _evaluated(self, rows: pa.Table, whose: Ints | None) -> ReadRows:
        """Returns new rows as they are kept, without those that do not count."""
        names = {leaf: rows.column(place) for place, leaf in enumerate(self.node.columns, start=1)}
        self.came = times = timestamps(rows)

        def leaf(e: x.Leaf) -> pa.Array:
            assert isinstance(e, x.ColumnReference)
            return names[e].combine_chunks()

        where: Ints | None = None
        with self.faults.naming(lambda row: f"the row at ts {times[row]}"):
            if not (self.lone is not None and self.lone.numbered):
                where = self._near(times)
            values = [evaluate(e, leaf, len(times), self.faults) for e in self.measures.read]
            if self.node.where != x.TRUE:
                where = np.flatnonzero(holds(self.node.where, leaf, len(times), self.faults))
        if self.lone is not None and self.lone.numbered:
            # Such rows have numbers instead of times; windows end at one of the rows that came
            # last.
            times = np.arange(self.lone.count, self.lone.count + len(times))
            self.lone.count += len(times)
        oldest = rows.column(rows.num_columns - 1).combine_chunks()
        if where is None or len(where) == len(times):
            return ReadRows(times, oldest, values, whose)
        oldest, *values = (taken(column, where) for column in (oldest, *values))
        return ReadRows(times[where], oldest, values, None if whose is None else whose[where])

    def _near(self, times: Ints) -> Ints | None:
        """Returns the places of times that can have windows, or None if all can; the others are faults."""
        every = self.node.every
        lasts = every.gap if isinstance(every, logical.Sessions) else every.size + every.offset
        farthest = min(_FARTHEST, HIGH - lasts)
        near: Bools = (times > -farthest) & (times < farthest)
        if near.all():
            return None
        far = np.flatnonzero(~near)
        self.faults.add(Place(self.node.span, _WINDOWS, _TOO_FAR), len(far), int(far[0]))
        return np.flatnonzero(near)

    # --- results --------------------------------------------------------------

    def _grow(self, lone: PeriodState) -> None:
        """Gives the changes since the last time, of the groups that have new rows."""
        held = self.cohort.held
        if isinstance(held, OpenGroups):
            rows = held.until(self.now)
            if rows is not None:
                lone.results = changes_of_groups(self.node, held, rows, lone.told, lone.faults)
        elif isinstance(held, NumberedRows) and self.now > lone.told:
            begin, end = (held.times.find(at, after=True) for at in (lone.told, self.now))
            places = held.of(np.unique(held.groups(np.arange(begin, end))))
            if len(places):
                kept, group = held.table(places), held.groups(places)
                span = lone.told, self.now
                lone.results = changes_of_rows(
                    self.node, self.measures, kept, group, span, lone.faults
                )
        lone.told = max(lone.told, self.now)

    def _due(self) -> bool:
        """Returns whether windows may be over."""
        held = self.cohort.held
        if held is None or len(held) == held.left:
            return False
        return any(one.quiet is None or self.now >= one.quiet for one in self.some)

    def _close(self) -> None:
        """Gives the groups of windows that are over, and drops what no other window needs."""
        held, some = self.cohort.held, self.some
        assert held is not None
        whose = [one.number for one in some] if len(some) < len(self.cohort.members) else None
        passed = self._passed(held, whose)
        if passed.groups is not None and not self.node.changes:
            self._tell(passed.groups())
            if self.doubted:
                if isinstance(held, SessionGroups | SessionRows):
                    held.sessions.put_back()
                return
        for one in some:
            one.quiet = passed.quiet
            if passed.done is not None:
                one.done = passed.done if one.done is None else max(passed.done, one.done)
        if len(passed.leaves):
            self.cohort.drop(passed.leaves)

    def _passed(self, held: Held, some: list[int] | None) -> _Passed:
        """Finds what is over, of some queries or all."""
        measures, every = self.measures, self.node.every
        if isinstance(held, SessionGroups | SessionRows):
            closed = held.sessions.over(self.now, some)
            places = held.of(closed) if isinstance(held, SessionRows) else closed

            def of_sessions() -> WindowGroups:
                if isinstance(held, SessionGroups):
                    return groups_of_sessions(held, measures, closed)
                session = held.groups(places)
                rows = closed_sessions(held.sessions.gap, held.times[places], session)
                return self._of_rows(held, places[rows.rows], rows)

            groups = of_sessions if len(closed) else None
            return _Passed(groups, places, None, held.sessions.quiet)
        assert isinstance(every, logical.Periodic)
        places = held.places(some)
        if not len(places):
            return _Passed(None, places, None, None)
        if isinstance(held, PaneGroups):
            windows = held.windows(places)
        else:
            windows = numbers(every, held.times[places])
        whose = held.whose(places)
        past = ended(every, windows, self._done(whose), self.now)

        def of_windows() -> WindowGroups:
            mine = places[past.some]
            if isinstance(held, PaneGroups):
                first, last = past.first[past.some], past.last[past.some]
                return groups_of_panes(held, measures, mine, first, last)
            keys = held.taken(mine, self.cohort.members[0].key_names)
            group = measures.groups(keys, len(mine), None if whose is None else whose[past.some])
            rows = closed_periods(every, past, group)
            return self._of_rows(held, places[rows.rows], rows)

        leaves = places[~past.stays]
        return _Passed(of_windows if len(past.some) else None, leaves, past.done, past.quiet)

    def _done(self, whose: Ints | None) -> Ints | int | None:
        """Returns the number of the last window that was given, by query if there are several."""
        if whose is None:
            return self.some[0].done
        known = np.full(len(self.cohort.members), _NEVER)
        for one in self.some:
            known[one.number] = _NEVER if one.done is None else one.done
        return known[whose]

    def _of_rows(self, held: HeldRows, places: Ints, closed: Closed) -> WindowGroups:
        """Returns the groups of rows. `places` are those of the rows of `closed`."""
        times, oldest, *values = held.taken(places, held.store.schema.names)
        whose = held.whose(places)
        return groups_of_rows(
            self.measures, closed, values, np.asarray(times), oldest, whose, self.faults
        )

    def _tell(self, groups: WindowGroups) -> None:
        """Gives each member the rows of its groups."""
        tables, owners = [result_schema(self.node).empty_table()], [np.empty(0, np.int64)]
        for found in rows_of_groups(self.node, self.measures, groups, self.faults):
            newest = found.end - 1
            if self.lone is not None and self.lone.numbered:
                newest = self.came[newest - (self.lone.count - len(self.came))]
            columns = [*found.columns, as_column(found.since), as_column(newest)]
            tables.append(pa.table(columns, schema=result_schema(self.node)))
            if found.whose is not None:
                owners.append(found.whose)
        if self.doubted:
            return
        table = pa.concat_tables(tables)
        if self.lone is not None:
            self.lone.results = as_rows(self.lone.node, table)
            return
        whose = np.concatenate(owners)
        cuts = np.searchsorted(whose, np.arange(len(self.cohort.members) + 1)).tolist()
        for one in self.some:
            begin, end = cuts[one.number], cuts[one.number + 1]
            if begin < end:
                one.results = as_rows(one.node, table.slice(begin, end - begin))
