"""The groups of EMIT CHANGES: their members and aggregates, and the row that each gave last."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.language.types import BIGINT
from seustream.compiler.logical.joins import ChangeLog
from seustream.compiler.logical.windows import has_end
from seustream.engine.host.aggregates import Aggregates, Turns
from seustream.engine.host.grouping import OLDEST, SUMS, Form
from seustream.engine.host.keys import KeyNumbers
from seustream.engine.host.rows import Rows, leaves
from seustream.engine.host.sliding import HeldMembers, Sliding
from seustream.engine.relational.closed import ranks
from seustream.engine.relational.combinations import Ints
from seustream.engine.relational.spans import Changed
from seustream.engine.relational.told import (
    NOWHERE,
    Bools,
    Columns,
    Signed,
    ToldRows,
    item_types,
    one_zero,
    signed,
)
from seustream.engine.stream.evaluate import evaluate, holds
from seustream.engine.stream.growing import Growing
from seustream.engine.stream.schema import arrow_type
from seustream.engine.stream.sorting import lexsort
from seustream.engine.stream.taken import taken

_FEW = 4096
_ROWS = x.AggregateCall("count", (), (), BIGINT)


class ChangedGroups:
    """The present members of groups, and the row that each group gave last."""

    stay = False
    """Set if no member leaves, so that none is needed."""

    def __init__(self, node: ChangeLog) -> None:
        self.node = node
        self.form = Form(node.query)
        of = self.form
        self._of = (
            [*of.aggregates, OLDEST, _ROWS],
            [*of.numbers, (len(of.arguments),), ()],
            [*(e.type for e in of.arguments), BIGINT],
        )
        self.told = ToldRows(item_types(node))
        self.members = Growing()
        """The present members by their places, as numbers in the order in which all came; what stands for
        others is arbitrary."""
        self.present = 0
        """How many are present."""
        self._begin()

    def _begin(self) -> None:
        self.keys = KeyNumbers([arrow_type(e.type) for e in self.node.group_by])
        self.aggregates = Aggregates(*self._of, ordered=False)

    def make_room(self, count: int) -> None:
        """Adds places for members."""
        self.members.append(np.full(count, -1))

    def changes(
        self,
        rows: tuple[Rows, Ints],
        come: Changed,
        leave: Changed,
        faults: Faults,
    ) -> Signed:
        """Returns the changes of groups whose members come, in this order with these rows and their
        oldest times, and leave. Both are given by their places among the members, and the numbers
        of their moments."""
        columns, oldest = rows
        count, leaf = len(oldest), leaves(columns)
        keys = [one_zero(evaluate(e, leaf, count, faults)) for e in self.node.group_by]
        values = [evaluate(e, leaf, count, faults) for e in self.form.arguments]
        number, at, found = self._points(keys, [*values, pa.array(oldest)], come, leave, faults)
        *found, since, size = found
        some = {(0, f"g{n}"): one for n, one in enumerate(self.keys.values(at))}
        some |= {(0, f"a{n}"): one for n, one in enumerate(found)}
        there = np.asarray(size) > 0
        if self.form.having is not None:
            kept = np.zeros(len(at), np.bool_)
            kept[np.flatnonzero(holds(self.form.having, leaves(some), len(at), faults))] = True
            there &= kept
        items = [item.expression for item in self.form.answers.items[1:]]
        row = [evaluate(e, leaves(some), len(at), faults) for e in items]
        return self._differing(number, at, there, [*row, since])

    def _differing(self, moment: Ints, at: Ints, there: Bools, rows: Columns) -> Signed:
        """Returns what changes where groups have these rows at some moments, in order; some have none."""
        told = self.told
        told.trim()
        groups, of = np.unique(at, return_inverse=True)
        # The row of each group, then those of this step, by group.
        *items, oldest = rows
        new = np.where(there, told.numbers.of(items, len(at)), NOWHERE)
        parts = told.last(groups), (new, np.asarray(oldest.fill_null(0), dtype=np.int64))
        row, since = (np.concatenate(both) for both in zip(*parts, strict=True))
        order = np.argsort(np.concatenate((np.arange(len(groups)), of)), kind="stable")
        begins = order < len(groups)
        # Equal rows stay what they are.
        changed = begins.copy()
        changed[1:] |= row[order][1:] != row[order][:-1]
        last = order[np.maximum.accumulate(np.where(changed, np.arange(len(order)), 0))]
        some = np.flatnonzero(changed & ~begins)
        goes, comes = np.full(len(at), NOWHERE), np.full(len(at), NOWHERE)
        place = np.where(row == NOWHERE, NOWHERE, np.arange(len(row)))
        point = order[some] - len(groups)
        goes[point], comes[point] = place[last[some - 1]], place[order[some]]
        ends = last[np.flatnonzero(np.append(begins, True))[1:] - 1]
        told.tell(groups, row[ends], since[ends])
        return signed(goes, comes, moment, lambda at: told.numbers.columns(row[at], since[at]))

    def _points(
        self,
        keys: list[pa.Array],
        values: list[pa.Array],
        come: Changed,
        leave: Changed,
        faults: Faults,
    ) -> tuple[Ints, Ints, list[pa.Array]]:
        """Returns, at each moment for each group that changes then, the moment, the group, and its
        aggregates."""
        (new, begin), (left, end) = come, leave
        count, first, members = len(begin), len(self.aggregates), self.members.view
        group = self.keys.numbers(keys, count)
        self.aggregates.add(values, group)
        members[new] = first + np.arange(count)
        who = np.concatenate((members[new], members[left]))
        when, leaving = np.concatenate((begin, end)), np.arange(len(who)) >= count
        self.present += count - len(left)
        order = lexsort((who, ~leaving, when))
        events = np.where(leaving, ~who, who)[order]
        groups, of = np.unique(self.aggregates.groups(who), return_inverse=True)
        ranked = self._by_key(groups)
        span = len(groups) + 1
        points = np.unique(when * span + np.argsort(ranked)[of])
        number, at = points // span, groups[ranked[points % span]]
        until = np.searchsorted(when[order], number, side="right")
        return number, at, self.aggregates.at(Turns(events, until, at), faults)

    def _by_key(self, groups: Ints) -> Ints:
        """Returns the places of groups in the order of their keys."""
        if len(groups) < 2:
            return np.arange(len(groups))
        keys = [ranks(column, False, False) for column in self.keys.values(groups)]
        return lexsort((*reversed(keys),))

    def keep(self, stays: Ints, shown: Bools) -> None:
        """Keeps only the members at these places, which get those from 0 up; `shown` tells by new place
        where there is one. Rebuilds the state from them once most have left."""
        kept, self.members = self.members.view[stays], Growing()
        self.members.append(kept)
        if len(self.aggregates) > 2 * self.present + _FEW:
            places = np.flatnonzero(shown)
            self.renew(places[np.argsort(kept[places])])

    def renew(self, places: Ints) -> None:
        """Rebuilds the state from the members at these places, which are numbered anew in this order."""
        members = self.members.view[places]
        values = [
            self.aggregates.values(number, members) for number in range(len(self.aggregates.types))
        ]
        before = self.aggregates.groups(members)
        keys = self.keys.values(before)
        self._begin()
        group = self.keys.numbers(keys, len(before))
        self.aggregates.add(values, group)
        came, nothing = np.arange(len(places)), np.empty(0, np.int64)
        self.members.view[places] = came
        self.aggregates.at(Turns(came, nothing, nothing), Faults())
        groups, first = np.unique(before, return_index=True)
        self.told.renumber(groups, group[first])

    def table(self) -> pa.Table:
        """Returns the row that each group gave last: its keys, then the row."""
        groups, rows = self.told.all()
        columns = [*self.keys.values(groups), *rows]
        return pa.table(columns, names=[f"c{number}" for number in range(len(columns))])

    def states(self) -> dict[str, pa.Table]:
        """Returns the states of groups that need no members, by the names of tables."""
        return {}

    def restore(self, told: pa.Table, states: pa.Table | None) -> None:
        """Restores the rows from a table, and the states of groups that need no members."""
        columns, keys = [one.combine_chunks() for one in told.columns], len(self.node.group_by)
        groups = self.keys.numbers(columns[:keys], told.num_rows)
        self.told.add(groups, columns[keys:])


class _LastingGroups(ChangedGroups):
    """Groups that no member leaves. They need no members."""

    stay = True

    def _begin(self) -> None:
        of = [e.type for e in self.node.group_by]
        self.sliding = Sliding(of, *self._of, clocks=0, ordered=False)
        self.keys, self.aggregates = self.sliding.keys, self.sliding.aggregates

    def make_room(self, count: int) -> None:
        pass

    def _points(
        self,
        keys: list[pa.Array],
        values: list[pa.Array],
        come: Changed,
        leave: Changed,
        faults: Faults,
    ) -> tuple[Ints, Ints, list[pa.Array]]:
        _, begin = come
        _, arrival = np.unique(begin, return_inverse=True)
        own = self.sliding.enter(keys, values, len(begin), arrival, (), ())
        found = self.sliding.results(faults)
        who = np.arange(len(begin)) if own is None else own[0]
        number, at = begin[who], self.keys.numbers([taken(key, who) for key in keys], len(who))
        groups, of = np.unique(at, return_inverse=True)
        order = lexsort((np.argsort(self._by_key(groups))[of], number))
        return number[order], at[order], [taken(one, order) for one in found]

    def keep(self, stays: Ints, shown: Bools) -> None:
        pass

    def states(self) -> dict[str, pa.Table]:
        _, keys, values, _, sums = self.sliding.held()
        columns = {f"c{n}": column for n, column in enumerate((*keys, *values))}
        return {"states": pa.table(columns | {SUMS: sums})}

    def restore(self, told: pa.Table, states: pa.Table | None) -> None:
        if states is not None:
            *columns, sums = [column.combine_chunks() for column in states.columns]
            count = len(self.node.group_by)
            held = HeldMembers(states.num_rows, columns[:count], columns[count:], [], sums)
            self.sliding.fill(held)
            self.keys, self.aggregates = self.sliding.keys, self.sliding.aggregates
        super().restore(told, None)


def groups_of(node: ChangeLog) -> ChangedGroups:
    """Makes the groups of a query; of a source whose window never ends, those that keep no members."""
    groups = ChangedGroups(node)
    if isinstance(node.tree, int) and not has_end(node.sources[0].window):
        return _LastingGroups(node) if groups.aggregates.can_fold else groups
    return groups
