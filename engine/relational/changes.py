"""EMIT CHANGES: a query as the changes of its result over the contents of its windows.

At each arrival, and at each time at which tuples leave a window of time, rows that are gone are
given out with `-` and new ones with `+`; a group whose row changes gives both. At the end of the
streams, time goes on until all windows of time are empty.

The changes of one moment are in the order of their tuples, or of the keys of their groups. This
order does not depend on when groups or combinations came, which a restart does not know.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.language.faults import Faults
from seustream.compiler.logical.joins import ChangeLog, JoinKind
from seustream.engine.host.answers import Blaming
from seustream.engine.host.rows import Rows, leaves
from seustream.engine.host.stores import Stores
from seustream.engine.relational.combinations import NEVER, NOTHING, Ints, TreeSources
from seustream.engine.relational.grouped import ChangedGroups, groups_of
from seustream.engine.relational.inputs import SLICE_ROWS, Inputs
from seustream.engine.relational.spans import Changed, JoinSpans, Moments, TupleSpans, spans_of
from seustream.engine.relational.told import RowNumbers, Signed, changing, item_types
from seustream.engine.stream.evaluate import evaluate
from seustream.engine.stream.faults import QueryFaults, fault_report, restore
from seustream.engine.stream.growing import Growing
from seustream.engine.stream.merge import END_OF_STREAM, Slice, timestamps, whole
from seustream.engine.stream.operator import EARLIEST, Answer
from seustream.engine.stream.schema import stream_schema
from seustream.engine.stream.snapshot import Snapshot, unpack
from seustream.engine.stream.sorting import lexsort

_AT_THE_END = NEVER - 1


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
        self.meets = Growing(np.bool_)
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
        self.meets.append(self._where(rows[came.places]))
        came, left = (of.some(self.meets.view[of.places]) for of in (came, left))
        if groups is not None:
            groups.make_room(len(root.came.places))
        found = self._differences(rows, came, left)
        root.settle()
        if groups is not None and groups.stay and isinstance(root, TupleSpans):
            root.forget()  # they need no rows
        if root.shown.is_sparse:
            stays = root.compact()
            kept, self.meets = self.meets.view[stays], Growing(np.bool_)
            self.meets.append(kept)
            if groups is not None:
                groups.keep(stays, kept)
        return found.answer(self.node, moments.time(found.moment))

    def _differences(self, rows: Ints, came: Changed, left: Changed) -> Signed:
        """Returns the changes by what comes and leaves; `rows` has the tuples by place."""
        if self.groups is None:
            some = (rows[came.places], came.numbers), (rows[left.places], left.numbers)
            return self._rows(*some)
        order = lexsort((*_tuples(rows[came.places]), came.numbers))
        new = Changed(came.places[order], came.numbers[order])
        fresh = rows[new.places]
        columns = self._columns(fresh), self.frame.oldest(fresh)
        return self.groups.changes(columns, new, left, self.own_faults)

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

    def _rows(self, came: tuple[Ints, Ints], left: tuple[Ints, Ints]) -> Signed:
        """Returns rows that come and go, given by their tuples and moments. Equal rows that do both at one
        moment are no change."""
        rows, moment = (np.concatenate(both) for both in zip(left, came, strict=True))
        numbers = RowNumbers(item_types(self.node))
        row = np.concatenate(
            (
                self._numbered(left[0], numbers, Faults()),
                self._numbered(came[0], numbers, self.own_faults),
            )
        )
        comes = np.arange(len(rows)) >= len(left[0])
        order = lexsort((*_tuples(rows), comes, moment))
        oldest = self.frame.oldest(rows)
        order = order[changing(row[order], oldest[order], moment[order], comes[order])]
        columns = numbers.columns(row[order], oldest[order])
        return Signed(moment[order], comes[order], columns)

    def _numbered(self, rows: Ints, numbers: RowNumbers, faults: Faults) -> Ints:
        if not len(rows):
            return np.empty(0, np.int64)
        leaf = leaves(self._columns(rows))
        items = [item.expression for item in self.node.items[1:]]
        with faults.naming(lambda row: self.frame.named(rows[row])):
            return numbers.of([evaluate(e, leaf, len(rows), faults) for e in items], len(rows))

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

    def _order(self, groups: ChangedGroups) -> pa.Table:
        """Returns the members of groups in the order in which they came, each by the places of its
        tuples among those that are kept."""
        places = np.flatnonzero(self.meets.view & self.root.shown.here)
        rows = self.root.rows[places[np.argsort(groups.members.view[places])]]
        columns = {}
        for source in range(rows.shape[1]):
            there = rows[:, source] != NOTHING
            place = np.where(there, self.frame.store(source).index(rows[:, source]), NOTHING)
            columns[f"s{source}"] = pa.array(place)
        return pa.table(columns)

    def _put_in_order(self, groups: ChangedGroups, order: pa.Table) -> None:
        """Renumbers the members of groups. The sequence numbers of restored tuples are the places
        that they had."""
        came = np.column_stack([np.asarray(column) for column in order.columns])
        shown = np.flatnonzero(self.meets.view & self.root.shown.here)
        rows = self.root.rows[shown]
        mine, known = lexsort((*_tuples(rows),)), lexsort((*_tuples(came),))
        if np.array_equal(rows[mine], came[known]):
            groups.renew(shown[mine[np.argsort(known)]])


def _tuples(rows: Ints) -> Ints:
    """Returns the tuples of combinations as keys of a sort, the first source last, because it
    counts most."""
    return rows.T[::-1]


def _comes_again(node: TupleSpans | JoinSpans) -> bool:
    """Returns whether combinations may come later than their tuples: when a match leaves, or one
    that came before."""
    return isinstance(node, JoinSpans) and node.join.kind is not JoinKind.INNER
