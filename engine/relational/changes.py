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
from seustream.engine.host.aggregates import Aggregates, Turns
from seustream.engine.host.answers import Blaming
from seustream.engine.host.grouping import OLDEST, Form
from seustream.engine.host.keys import KeyNumbers
from seustream.engine.host.rows import Rows, leaves
from seustream.engine.host.stores import Stores
from seustream.engine.relational.closed import ranks
from seustream.engine.relational.combinations import NEVER, NOTHING, Ints, TreeSources
from seustream.engine.relational.inputs import SLICE_ROWS, Inputs
from seustream.engine.relational.spans import JoinSpans, Moments, TupleSpans, spans_of
from seustream.engine.stream.answers import answer
from seustream.engine.stream.evaluate import evaluate, holds
from seustream.engine.stream.faults import QueryFaults, fault_report, restore
from seustream.engine.stream.merge import END_OF_STREAM, Slice, timestamps, whole
from seustream.engine.stream.operator import EARLIEST, Answer
from seustream.engine.stream.schema import arrow_type, stream_schema
from seustream.engine.stream.snapshot import Snapshot, unpack

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
        self.shown = np.empty(0, np.bool_)
        self.groups = _Groups(self.node) if self.node.aggregated else None
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
            time, place = leaf.departures(self.until)
            some = time < NEVER
            times.append(time[some])
            places.append(place[some])
        moments = Moments(np.concatenate(times), np.concatenate(places))
        if not len(moments.keys):
            return None
        with Blaming(self.query, self.own_faults):
            found = self._changes(moments)
        self.root.settle()
        self._trim(leaves_of)
        return found

    def _changes(self, moments: Moments) -> pa.Table:
        spans = self.root.step(moments, self.until)
        old = len(self.shown)
        fresh = self._where(spans.rows[old:])
        shown = np.concatenate((self.shown, fresh))
        self.shown = shown[spans.stays]
        came = np.flatnonzero(shown & (spans.begin > 0))
        left = np.flatnonzero(shown & (spans.end < NEVER))
        if self.groups is not None:
            came = came[np.lexsort((*_tuples(spans.rows[came]), spans.begin[came]))]
            rows = self._columns(spans.rows[came]), self.frame.oldest(spans.rows[came])
            place = np.cumsum(shown) - 1
            changed = self.groups.changes(
                rows,
                (place[came], spans.begin[came]),
                (place[left], spans.end[left]),
                self.own_faults,
            )
            changes = iter(list(changed))
            self.groups.keep(spans.stays[shown])
        else:
            changes = self._rows(spans.rows, came, left, spans.begin, spans.end)
        return self._answer(changes, moments)

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

    def _rows(self, rows: Ints, came: Ints, left: Ints, begin: Ints, end: Ints) -> Iterator[Change]:
        """Yields rows that come and go. Equal rows that do both at one moment are no change."""
        both = np.concatenate((left, came))
        number = np.concatenate((end[left], begin[came]))
        values = self._values(rows[left], Faults()), self._values(rows[came], self.own_faults)
        cells = [*values[0], *values[1]]
        plus = np.arange(len(both)) >= len(left)
        named = [(at, repr(of[:-1])) for at, of in zip(number.tolist(), cells, strict=True)]
        arriving, leaving = (
            Counter(one for one, sign in zip(named, plus.tolist(), strict=True) if sign is of)
            for of in (True, False)
        )
        same = {True: arriving & leaving, False: arriving & leaving}
        for place in np.lexsort((*_tuples(rows[both]), plus, number)).tolist():
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

    def _answer(self, changes: Iterator[Change], moments: Moments) -> pa.Table:
        found = list(changes)
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
            held = [store.index(of.rows[:, of.source]) for of in own]
            first = min((int(at.min()) for at in held if len(at)), default=len(store))
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
        kept = {f"kept {name}": self.stores[name].table for name in self.inputs}
        tables = self.rows.tables() | kept
        if self.groups is not None:
            tables["told"] = self.groups.table()
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
            self.groups.restore(state.tables["told"])
            if "order" in state.tables:
                self._put_in_order(self.groups, state.tables["order"])
        self.rows.restore(state.plain["inputs"], state.tables)
        restore(self.faults, state.plain["faults"])

    def _order(self, groups: _Groups) -> pa.Table:
        """Returns the members of groups in the order in which they came, each by the places of its
        tuples among those that are kept."""
        rows = self.root.present[self.shown][np.argsort(groups.members)]
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
        rows = self.root.present[self.shown]
        mine, known = np.lexsort((*_tuples(rows),)), np.lexsort((*_tuples(came),))
        if np.array_equal(rows[mine], came[known]):
            groups.renew(mine[np.argsort(known)])


class _Groups:
    """The present members of groups, and the row that each group gave last."""

    def __init__(self, node: ChangeLog) -> None:
        self.node = node
        self.form = Form(node.query)
        self.told: dict[int, Cells] = {}
        self._begin()

    def _begin(self) -> None:
        of = self.form
        self.keys = KeyNumbers([arrow_type(e.type) for e in self.node.group_by])
        self.aggregates = Aggregates(
            [*of.aggregates, OLDEST, _ROWS],
            [*of.numbers, (len(of.arguments),), ()],
            [*(e.type for e in of.arguments), BIGINT],
            ordered=False,
        )
        self.members = np.empty(0, np.int64)
        """The present members, by their numbers in the order in which all came."""

    def changes(
        self,
        rows: tuple[Rows, Ints],
        come: tuple[Ints, Ints],
        leave: tuple[Ints, Ints],
        faults: Faults,
    ) -> Iterator[Change]:
        """Yields the changes of groups whose members come, in this order with these rows and their
        oldest times, and leave. Both are given by their places among the members, and the numbers
        of their moments."""
        (columns, oldest), (new, begin), (left, end) = rows, come, leave
        count, first = len(begin), len(self.aggregates)
        leaf = leaves(columns)
        keys = [_one_zero(evaluate(e, leaf, count, faults)) for e in self.node.group_by]
        values = [evaluate(e, leaf, count, faults) for e in self.form.arguments]
        group = self.keys.numbers(keys, count)
        self.aggregates.add([*values, pa.array(oldest)], group)
        self.members = np.concatenate((self.members, np.empty(count, np.int64)))
        self.members[new] = first + np.arange(count)
        who = np.concatenate((self.members[new], self.members[left]))
        when, leaving = np.concatenate((begin, end)), np.arange(len(who)) >= count
        order = np.lexsort((who, ~leaving, when))
        events = np.where(leaving, ~who, who)[order]
        groups, of = np.unique(self.aggregates.groups(who), return_inverse=True)
        ranked = self._by_key(groups)
        span = len(groups) + 1
        points = np.unique(when * span + np.argsort(ranked)[of])
        number, at = points // span, groups[ranked[points % span]]
        until = np.searchsorted(when[order], number, side="right")
        *found, since, size = self.aggregates.at(Turns(events, until, at), faults)
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

    def _by_key(self, groups: Ints) -> Ints:
        """Returns the places of groups in the order of their keys."""
        if len(groups) < 2:
            return np.arange(len(groups))
        keys = [ranks(column, False, False) for column in self.keys.values(groups)]
        return np.lexsort((*reversed(keys),))

    def keep(self, stays: npt.NDArray[np.bool_]) -> None:
        """Forgets the members that have left; rebuilds the state from the others once most have
        left."""
        self.members = self.members[stays]
        if len(self.aggregates) > 2 * len(self.members) + _FEW:
            self.renew(np.argsort(self.members))

    def renew(self, order: Ints) -> None:
        """Rebuilds the state from the members, which are numbered anew in this order."""
        members = self.members[order]
        values = [
            self.aggregates.values(number, members) for number in range(len(self.aggregates.types))
        ]
        before = self.aggregates.groups(members)
        keys, told = self.keys.values(before), self.told
        self._begin()
        group = self.keys.numbers(keys, len(before))
        self.aggregates.add(values, group)
        came, nothing = np.arange(len(order)), np.empty(0, np.int64)
        self.members = np.argsort(order)
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

    def restore(self, told: pa.Table) -> None:
        """Restores the rows from a table."""
        keys = [told.column(n).combine_chunks() for n in range(len(self.node.group_by))]
        rows = zip(
            *(told.column(n).to_pylist() for n in range(len(keys), told.num_columns)), strict=True
        )
        groups = self.keys.numbers(keys, told.num_rows).tolist()
        self.told = dict(zip(groups, rows, strict=True))


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
