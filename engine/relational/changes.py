"""EMIT CHANGES: a query as the changes of its result over the contents of its windows.

At each arrival, and at each time at which tuples leave a window of time, rows that are gone are
given out with `-` and new ones with `+`; a group whose row changes gives both. At the end of the
streams, time goes on until all windows of time are empty.

The changes of one moment are in the order of their tuples, or of the keys of their groups. This
order does not depend on when groups or combinations came, which a restart does not know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.language.types import BIGINT
from seustream.compiler.logical.joins import ChangeLog, JoinKind
from seustream.compiler.logical.windows import has_end
from seustream.engine.host.aggregates import Aggregates, Turns
from seustream.engine.host.answers import Blaming
from seustream.engine.host.grouping import OLDEST, SUMS, Form
from seustream.engine.host.keys import KeyNumbers
from seustream.engine.host.rows import Rows, leaves
from seustream.engine.host.sliding import HeldMembers, Sliding
from seustream.engine.host.stores import Stores
from seustream.engine.relational.closed import ranks
from seustream.engine.relational.combinations import NEVER, NOTHING, Ints, TreeSources
from seustream.engine.relational.inputs import SLICE_ROWS, Inputs
from seustream.engine.relational.spans import Changed, JoinSpans, Moments, TupleSpans, spans_of
from seustream.engine.stream.answers import answer
from seustream.engine.stream.evaluate import evaluate, holds
from seustream.engine.stream.faults import QueryFaults, fault_report, restore
from seustream.engine.stream.growing import Growing
from seustream.engine.stream.merge import END_OF_STREAM, Slice, timestamps, whole
from seustream.engine.stream.operator import EARLIEST, Answer
from seustream.engine.stream.schema import arrow_type, stream_schema
from seustream.engine.stream.snapshot import Snapshot, unpack
from seustream.engine.stream.taken import taken

_FEW = 4096
_ROWS = x.AggregateCall("count", (), (), BIGINT)
_AT_THE_END = NEVER - 1

Cells = tuple[Any, ...]
Change = tuple[int, bool, Cells]
"""The number of its moment, whether the row comes, and the row: its items and its oldest time."""


class ChangeOperator:
    """Answers a SELECT with EMIT CHANGES. It remembers the tuples in its windows, their joined
    combinations, and the row of each group."""

    def __init__(self, node: ChangeLog, faults: QueryFaults) -> None:
        self.node, self.faults = node, {node.name: faults}
        self.own_faults, self.query = faults, node.query
        self.rows = Inputs(node.inputs)
        self.inputs = self.rows.names
        self.push, self.advance = self.rows.push, self.rows.advance
        self._begin()

    def _begin(self) -> None:
        self.stores = Stores(self.node.inputs, dict.fromkeys(self.inputs, 1), {})
        self.frame = TreeSources(self.node.sources, self.stores)
        self.root = spans_of(self.node.tree, self.frame, self.own_faults)
        self.shown = Growing(np.bool_)
        """By place in the root, whether WHERE holds."""
        self.groups = groups_of(self.node) if self.node.aggregated else None
        self.until = EARLIEST

    @property
    def watermark(self) -> int:
        return self.rows.watermark

    def outputs(self) -> Iterator[Answer]:
        for part in self.rows.release():
            latest = max(int(timestamps(rows)[-1]) for rows in part.rows if rows.num_rows)
            yield from self._given(self._step(part, latest))
        now = self.rows.watermark
        if now >= EARLIEST:
            yield from self._given(self._step(None, _AT_THE_END if now == END_OF_STREAM else now))

    def _given(self, found: pa.Table | None) -> Iterator[Answer]:
        if found is not None and found.num_rows:
            yield self.node.name, found

    # --- a step ---------------------------------------------------------------

    def _step(self, part: Slice | None, until: int) -> pa.Table | None:
        """Advances the state to a time, including departures at that time."""
        self.until = max(until, self.until)
        leaves_of = [one for one in self.root.nodes() if isinstance(one, TupleSpans)]
        times, places = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        if part is not None:
            new = self.stores.add(part)
            for pushed in self.frame.partitions.values():
                pushed.add(new[pushed.stream])
            for name, at in new.items():
                times.append(self.stores[name].timestamp[at])
                places.append(self.stores[name].position[0][at])
            for leaf in leaves_of:
                name = self.node.sources[leaf.source].stream.name
                leaf.arrive(self.stores[name].first + new[name])
        else:
            for leaf in leaves_of:
                leaf.arrive(np.empty(0, np.int64))
        for leaf in leaves_of:
            time, place = leaf.depart(self.until)
            times.append(time)
            places.append(place)
        moments = Moments(np.concatenate(times), np.concatenate(places))
        if not len(moments.keys):
            return None
        with Blaming(self.query, self.own_faults):
            found = self._changes(moments)
        self._trim(leaves_of)
        return found

    def _changes(self, moments: Moments) -> pa.Table:
        root, groups = self.root, self.groups
        root.step(moments)
        rows, came, left = root.rows, root.came, root.left
        self.shown.append(self._where(rows[came.places]))
        came, left = (of.some(self.shown.view[of.places]) for of in (came, left))
        if groups is not None:
            groups.make_room(len(root.came.places))
        found = self._answer(self._differences(rows, came, left), moments)
        root.settle()
        if groups is not None and groups.stay and isinstance(root, TupleSpans):
            root.forget()  # they need no rows
        if root.shown.is_sparse:
            stays = root.compact()
            kept, self.shown = self.shown.view[stays], Growing(np.bool_)
            self.shown.append(kept)
            if groups is not None:
                groups.keep(stays, kept)
        return found

    def _differences(self, rows: Ints, came: Changed, left: Changed) -> list[Change]:
        """Returns the changes by what comes and leaves; `rows` has the tuples by place."""
        if self.groups is None:
            some = (rows[came.places], came.numbers), (rows[left.places], left.numbers)
            return list(self._rows(*some))
        order = np.lexsort((*_tuples(rows[came.places]), came.numbers))
        new = Changed(came.places[order], came.numbers[order])
        fresh = rows[new.places]
        columns = self._columns(fresh), self.frame.oldest(fresh)
        return list(self.groups.changes(columns, new, left, self.own_faults))

    def _where(self, rows: Ints) -> npt.NDArray[np.bool_]:
        found = np.zeros(len(rows), np.bool_)
        found[self.frame.where(self.node.where, rows, self.own_faults)] = True
        return found

    def _columns(self, rows: Ints) -> Rows:
        """Returns the columns that the SELECT list and the groups read."""
        query = self.query
        read = [item.expression for item in query.items[1:]] + list(query.group_by)
        read += [] if query.having is None else [query.having]
        return self.frame.columns(read, rows)

    def _rows(self, came: tuple[Ints, Ints], left: tuple[Ints, Ints]) -> Iterator[Change]:
        """Yields rows that come and go, given by their tuples and moments. Equal rows that do both at one
        moment are no change."""
        rows = np.concatenate((left[0], came[0]))
        number = np.concatenate((left[1], came[1]))
        values = self._values(left[0], Faults()), self._values(came[0], self.own_faults)
        cells = [*values[0], *values[1]]
        plus = np.arange(len(rows)) >= len(left[0])
        named = [(at, repr(of[:-1])) for at, of in zip(number.tolist(), cells, strict=True)]
        arriving, leaving = (
            Counter(one for one, sign in zip(named, plus.tolist(), strict=True) if sign is of)
            for of in (True, False)
        )
        same = {True: arriving & leaving, False: arriving & leaving}
        for place in np.lexsort((*_tuples(rows), plus, number)).tolist():
            sign = bool(plus[place])
            if same[sign][named[place]] > 0:
                same[sign][named[place]] -= 1
            else:
                yield named[place][0], sign, cells[place]

    def _values(self, rows: Ints, faults: Faults) -> list[Cells]:
        """Returns the items of rows, with their oldest times."""
        if not len(rows):
            return []
        leaf = leaves(self._columns(rows))
        items = [item.expression for item in self.node.items[1:]]
        with faults.naming(lambda row: self.frame.named(rows[row])):
            columns = [evaluate(e, leaf, len(rows), faults).to_pylist() for e in items]
        return list(zip(*columns, self.frame.oldest(rows).tolist(), strict=True))

    def _answer(self, found: list[Change], moments: Moments) -> pa.Table:
        schema = [arrow_type(item.expression.type) for item in self.node.items[1:]]
        columns = [
            pa.array([row[place] for _, _, row in found], of) for place, of in enumerate(schema)
        ]
        op = pa.array(["+" if comes else "-" for _, comes, _ in found], pa.string())
        oldest = pa.array([row[-1] for _, _, row in found], pa.int64())
        newest = pa.array(moments.time(np.array([at for at, _, _ in found], np.int64)))
        return answer(self.node, [op, *columns, oldest, newest])

    # --- memory and state -----------------------------------------------------

    def _trim(self, leaves_of: list[TupleSpans]) -> None:
        """Frees the rows before the first that is in a window, once they are the larger part."""
        for name in self.inputs:
            store = self.stores[name]
            own = [of for of in leaves_of if self.node.sources[of.source].stream.name == name]
            held = [of.first - store.first for of in own if of.first is not None]
            first = min(held, default=len(store))
            if 2 * first > len(store):
                for number, pushed in self.frame.partitions.items():
                    if self.node.sources[number].stream.name == name:
                        pushed.keep(np.arange(first, len(store)))
                store.drop_before(first)

    def snapshot(self) -> bytes:
        plain = {
            "text": self.node.text,
            "inputs": self.rows.plain(),
            "until": self.until,
            "faults": fault_report(self.faults),
        }
        stay = self.groups is not None and self.groups.stay
        kept = {
            f"kept {name}": store.table.slice(0, 0) if stay else store.table
            for name, store in self.stores.by_name.items()
        }
        tables = self.rows.tables() | kept
        if self.groups is not None:
            tables["told"] = self.groups.table()
            tables |= self.groups.states()
            if any(_comes_again(one) for one in self.root.nodes()):
                tables["order"] = self._order(self.groups)
        return Snapshot("changes", plain, tables).pack()

    def restore(self, snapshot: bytes) -> None:
        """Restores the tuples of a query of the same text; they are joined again."""
        state = unpack(snapshot, "changes")
        kept = {name: state.tables.get(f"kept {name}") for name in self.inputs}
        same = all(
            kept[of.name] is not None and kept[of.name].schema == stream_schema(of)  # type: ignore[union-attr]
            for of in self.node.inputs
        )
        if state.plain["text"] != self.node.text or not same:
            return
        self._begin()
        for part in whole(
            self.inputs, {n: t for n, t in kept.items() if t is not None}, SLICE_ROWS
        ):
            self._step(part, max(int(timestamps(t)[-1]) for t in part.rows if t.num_rows))
        self._step(None, state.plain["until"])
        if self.groups is not None:
            self.groups.restore(state.tables["told"], state.tables.get("states"))
            if "order" in state.tables:
                self._put_in_order(self.groups, state.tables["order"])
        self.rows.restore(state.plain["inputs"], state.tables)
        restore(self.faults, state.plain["faults"])

    def _order(self, groups: _Groups) -> pa.Table:
        """Returns the members of groups in the order in which they came, each by the places of its
        tuples among those that are kept."""
        places = np.flatnonzero(self.shown.view & self.root.shown.here)
        rows = self.root.rows[places[np.argsort(groups.members.view[places])]]
        columns = {}
        for source in range(rows.shape[1]):
            there = rows[:, source] != NOTHING
            place = np.where(there, self.frame.store(source).index(rows[:, source]), NOTHING)
            columns[f"s{source}"] = pa.array(place)
        return pa.table(columns)

    def _put_in_order(self, groups: _Groups, order: pa.Table) -> None:
        """Renumbers the members of groups. The sequence numbers of restored tuples are the places
        that they had."""
        came = np.column_stack([np.asarray(column) for column in order.columns])
        shown = np.flatnonzero(self.shown.view & self.root.shown.here)
        rows = self.root.rows[shown]
        mine, known = np.lexsort((*_tuples(rows),)), np.lexsort((*_tuples(came),))
        if np.array_equal(rows[mine], came[known]):
            groups.renew(shown[mine[np.argsort(known)]])


class _Groups:
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
        self.told: dict[int, Cells] = {}
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
    ) -> Iterator[Change]:
        """Yields the changes of groups whose members come, in this order with these rows and their
        oldest times, and leave. Both are given by their places among the members, and the numbers
        of their moments."""
        columns, oldest = rows
        count, leaf = len(oldest), leaves(columns)
        keys = [_one_zero(evaluate(e, leaf, count, faults)) for e in self.node.group_by]
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
        found = [evaluate(e, leaves(some), len(at), faults).to_pylist() for e in items]
        cells = zip(*found, since.to_pylist(), strict=True)
        for n, g, present, row in zip(
            number.tolist(), at.tolist(), there.tolist(), cells, strict=True
        ):
            before = self.told.get(g)
            if before is not None and present and before[:-1] == row[:-1]:
                continue
            if before is not None:
                yield n, False, self.told.pop(g)
            if present:
                self.told[g] = row
                yield n, True, row

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
        order = np.lexsort((who, ~leaving, when))
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
        return np.lexsort((*reversed(keys),))

    def keep(self, stays: Ints, shown: npt.NDArray[np.bool_]) -> None:
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
        keys, told = self.keys.values(before), self.told
        self._begin()
        group = self.keys.numbers(keys, len(before))
        self.aggregates.add(values, group)
        came, nothing = np.arange(len(places)), np.empty(0, np.int64)
        self.members.view[places] = came
        self.aggregates.at(Turns(came, nothing, nothing), Faults())
        now = dict(zip(before.tolist(), group.tolist(), strict=True))
        self.told = {now[of]: row for of, row in told.items()}

    def table(self) -> pa.Table:
        """Returns the row that each group gave last: its keys, then the row."""
        groups = np.array([*self.told], np.int64)
        keys = self.keys.values(groups)
        items = [arrow_type(item.expression.type) for item in self.node.items[1:]]
        rows = [
            pa.array([row[place] for row in self.told.values()], of)
            for place, of in enumerate([*items, pa.int64()])
        ]
        columns = [*keys, *rows]
        return pa.table(columns, names=[f"c{number}" for number in range(len(columns))])

    def states(self) -> dict[str, pa.Table]:
        """Returns the states of groups that need no members, by the names of tables."""
        return {}

    def restore(self, told: pa.Table, states: pa.Table | None) -> None:
        """Restores the rows from a table, and the states of groups that need no members."""
        keys = [told.column(n).combine_chunks() for n in range(len(self.node.group_by))]
        rows = zip(
            *(told.column(n).to_pylist() for n in range(len(keys), told.num_columns)), strict=True
        )
        groups = self.keys.numbers(keys, told.num_rows).tolist()
        self.told = dict(zip(groups, rows, strict=True))


class _LastingGroups(_Groups):
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
        order = np.lexsort((np.argsort(self._by_key(groups))[of], number))
        return number[order], at[order], [taken(one, order) for one in found]

    def keep(self, stays: Ints, shown: npt.NDArray[np.bool_]) -> None:
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


def groups_of(node: ChangeLog) -> _Groups:
    """Makes the groups of a query; of a source whose window never ends, those that keep no members."""
    groups = _Groups(node)
    if isinstance(node.tree, int) and not has_end(node.sources[0].window):
        return _LastingGroups(node) if groups.aggregates.can_fold else groups
    return groups


def _tuples(rows: Ints) -> Ints:
    """Returns the tuples of combinations as keys of a sort, the first source last, because it
    counts most."""
    return rows.T[::-1]


def _comes_again(node: TupleSpans | JoinSpans) -> bool:
    """Returns whether combinations may come later than their tuples: when a match leaves, or one
    that came before."""
    return isinstance(node, JoinSpans) and node.join.kind is not JoinKind.INNER


def _one_zero(keys: pa.Array) -> pa.Array:
    """Returns keys without -0.0: a group shows one zero, whichever came first."""
    if not pa.types.is_floating(keys.type):
        return keys
    return pc.add(keys, pa.scalar(0.0, keys.type))
