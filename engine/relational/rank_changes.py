"""EMIT CHANGES of ranks: when rows come, the changes among the rows of their partitions.

Where only the best rows of a partition count, rows that cannot be among them are dropped at once,
and the others as better ones come.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.catalogue import TIME_COLUMN
from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.logical import program as logical
from seustream.engine.host.keys import KeyNumbers
from seustream.engine.relational.held import KeyedRows
from seustream.engine.relational.leaders import Leaders, Ranked, bound_of
from seustream.engine.relational.pool import Ordered
from seustream.engine.relational.ranks import Ints, RankOperator
from seustream.engine.relational.told import (
    NOWHERE,
    Bools,
    Columns,
    RowNumbers,
    Signed,
    Telling,
    ToldRows,
    item_types,
)
from seustream.engine.stream.evaluate import evaluate, holds
from seustream.engine.stream.faults import QueryFaults, fault_report, restore
from seustream.engine.stream.merge import END_OF_STREAM, timestamps
from seustream.engine.stream.operator import Answer
from seustream.engine.stream.snapshot import Snapshot, unpack
from seustream.engine.stream.sorting import lexsort

_AT_A_TIME = 512
"""New rows that are tested together for a place among the best, before the best are found again."""


class _Partitions(NamedTuple):
    """Whole partitions: their rows, the first of which are kept at `places`, the numbers of all their
    partitions, and the same from 0 up. `counts` has those that may be shown, `touches` those that change
    their partition, and `goes` the row that each removes, or `NOWHERE`."""

    places: Ints
    rows: pa.Table
    seen: dict[x.Leaf, pa.Array]
    numbers: Ints
    group: Ints
    counts: Bools
    touches: Bools
    goes: Ints


class RankChangeOperator(RankOperator):
    """Answers a query that ranks its rows with EMIT CHANGES. It remembers the rows that count, in
    the order in which they came, and the result that each of them gave last."""

    node: logical.RankChanges

    def __init__(self, node: logical.RankChanges, faults: QueryFaults) -> None:
        super().__init__(node, faults)
        self.waiting = self.kept.store.schema.empty_table()  # more rows of their time may come
        self.told = ToldRows(item_types(node))  # by place
        self.signs = None if node.signed is None else 1 + node.columns.index(node.signed)
        if self.signs is not None and any(map(_reads_time, self.partition)):
            # A row that goes may be in another partition than the row that it removes.
            self.partition, self.kept = (), KeyedRows(self.kept.store.schema, ())
        bound = bound_of(node)
        self.bound = bound if bound and bound.over.partition == self.partition else None
        """Set if the first rows of each partition are shown, as they are."""
        # Expressions evaluated repeatedly count their faults once, when a row comes.
        self.counting = Faults()

    @property
    def _by_partition(self) -> bool:
        return True

    @property
    def watermark(self) -> int:
        return self.input.watermark

    def outputs(self) -> Iterator[Answer]:
        self.waiting = pa.concat_tables([self.waiting, *(p.rows[0] for p in self.input.release())])
        count = int(np.searchsorted(timestamps(self.waiting), self.watermark, side="right"))
        if count:
            rows = self.waiting.slice(0, count).combine_chunks()
            self.waiting = self.waiting.take(pa.array(np.arange(count, self.waiting.num_rows)))
            self._count_faults(rows)
            found = [self._changes(some) for some in _slices(rows)]
            if any(len(of.moment) for of in found):
                changes = [of.answer(self.node, of.moment) for of in found]
                yield self.node.name, pa.concat_tables(changes).combine_chunks()
        self._forget()

    # --- a step ---------------------------------------------------------------

    def _changes(self, fresh: pa.Table) -> Signed:
        """Returns the changes that new rows make, one time after the other. Only rows of their partitions
        are looked at."""
        some = self._partitions(fresh)
        return self._results_changes(some) if self.bound is None else self._first_changes(some)

    def _partitions(self, fresh: pa.Table) -> _Partitions:
        """Returns whole partitions: those of new rows."""
        mine = self._numbered(fresh, self.counting)
        places = self.kept.of(np.unique(mine))
        old, count = len(places), len(places) + fresh.num_rows
        rows = pa.concat_tables([self.kept.table(places), fresh]).combine_chunks()
        seen = self._seen(rows)
        numbers = np.concatenate((self.kept.groups(places), mine))
        _, group = np.unique(numbers, return_inverse=True)
        counts = np.ones(count, np.bool_)
        if self.node.best is not None and old:
            counts[old:] = self._may_count(seen, count, old)
        touches, goes = counts.copy(), np.full(count, NOWHERE)
        if self.signs is not None:
            goes = _pairs(rows, self.signs)
            touches = np.ones(count, np.bool_)
            counts[goes != NOWHERE] = False
        return _Partitions(places, rows, seen, numbers, group, counts, touches, goes)

    def _results_changes(self, of: _Partitions) -> Signed:
        """Returns the changes among all results. Partitions change on their own: those that change for the
        first time in this step are looked at together, then those that do for the second time, and so on."""
        places, rows, group, counts, goes = of.places, of.rows, of.group, of.counts, of.goes
        old, count, ts = len(places), rows.num_rows, timestamps(rows)
        told = Telling(self.told, places, count - old)
        for some in _turns(group[old:], ts[old:], of.touches[old:]):
            new = old + some
            # Up to the time of its turn, each partition has the rows that have come.
            until = np.zeros(int(group.max()) + 1, np.int64)
            until[group[new]] = old + np.searchsorted(ts[old:], ts[new], side="right")
            by = new[goes[new] != NOWHERE]
            counts[goes[by]] = False
            present = np.flatnonzero(counts & (np.arange(count) < until[group]))
            time = np.zeros(len(until), np.int64)
            time[group[new]] = ts[new]
            told.go(ts[by], by, goes[by])
            self._turn(rows, present, new[counts[new]], told, time[group])
        changes = told.changes()
        best = np.flatnonzero(counts)
        if self.node.best is not None:
            over, most = self.node.best
            mine = self._seen(rows.take(pa.array(best)))
            best = best[self._ranked(over, mine, len(best)) <= most]
        self._keep_some(of, best, told)
        return changes

    def _first_changes(self, of: _Partitions) -> Signed:
        """Returns the changes among the first rows of each partition, whose results do not depend on their
        rank: these are computed once for each row."""
        assert self.bound is not None
        ts, every = timestamps(of.rows), np.arange(of.rows.num_rows)
        numbers, before = RowNumbers(item_types(self.node)), self.counting.total
        result, oldest = self._numbered_results(of, every, numbers, self.counting)
        doubtful = self.counting.total > before
        leaders = Leaders(self.bound, self._ranking(of, result), self.signs is None)
        leaders.begin(range(len(of.places)))
        self._lead(of, leaders)
        if doubtful:
            own, at_once = self.faults[self.node.name], np.array(sorted(leaders.at_once), np.int64)
            with own.naming(lambda row: f"the row at ts {ts[at_once[row]]}"):
                self._numbered_results(of, at_once, numbers, own)
        self._keep_some(of, leaders.present(), None)
        moment, first, row = np.array(leaders.goes + leaders.comes, np.int64).reshape(-1, 3).T
        comes = np.arange(len(row)) >= len(leaders.goes)
        order = lexsort((row, first, comes, moment))
        some = row[order]
        return Signed(moment[order], comes[order], numbers.columns(result[some], oldest[some]))

    def _ranking(self, of: _Partitions, result: Ints) -> Ranked:
        """Returns the places of rows in the order of all; `result` has the numbers of their results."""
        assert self.bound is not None
        group, order = self._ordered(self.bound.over, of.seen, len(result))
        begins = self._begins(self.bound.over, of.seen, group, order)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        last = (np.append(np.flatnonzero(begins)[1:], len(order)) - 1)[np.cumsum(begins) - 1]
        columns = of.group, place, result, order, last
        return Ranked(*(one.tolist() for one in columns))

    def _lead(self, of: _Partitions, leaders: Leaders) -> None:
        """Finds what new rows change, one time after the other."""
        ts, old = timestamps(of.rows).tolist(), len(of.places)
        counts, touches, goes = (one.tolist() for one in (of.counts, of.touches, of.goes))
        for time, some in itertools.groupby(range(old, len(ts)), ts.__getitem__):
            new = list(some)
            go = {by: goes[by] for by in new if goes[by] != NOWHERE}
            over = set(go.values())
            come = [row for row in new if counts[row] and row not in over]
            leaders.step(time, {leaders.rows.group[row] for row in new if touches[row]}, go, come)

    def _numbered_results(
        self, of: _Partitions, some: Ints, numbers: RowNumbers, faults: Faults
    ) -> tuple[Ints, Ints]:
        """Returns the numbers of the results of some rows, and the times of their oldest components."""
        seen = {leaf: column.take(pa.array(some)) for leaf, column in of.seen.items()}
        *items, oldest = self._items(of.rows, seen, some, faults)
        return numbers.of(items, len(some)), np.asarray(oldest, dtype=np.int64)

    def _turn(self, rows: pa.Table, places: Ints, new: Ints, told: Telling, when: Ints) -> None:
        """Tells the present results of some partitions, and that their last ones go; `when` has a time by
        row."""
        some = rows.take(pa.array(places))
        seen, before = self._seen(some), self.counting.total
        self._place(seen, len(places))
        of, found = self._results(some, seen, np.arange(len(places)), self.counting)
        if self.counting.total > before:
            fresh = np.flatnonzero(np.isin(places, new))
            own = self.faults[self.node.name]
            with own.naming(lambda row: f"the row at ts {when[places[fresh[row]]]}"):
                self._results(some, seen, fresh, own)
        told.go(when[places], np.full(len(places), len(when)), places)
        told.come(when[places[of]], places[of], found)

    def _results(
        self, rows: pa.Table, seen: dict[x.Leaf, pa.Array], some: Ints, faults: Faults
    ) -> tuple[Ints, Columns]:
        """Returns those of some rows for which QUALIFY holds, and their results."""
        of = {leaf: column.take(pa.array(some)) for leaf, column in seen.items()}
        if self.node.qualify is not None:
            kept = np.flatnonzero(holds(self.node.qualify, of.__getitem__, len(some), faults))
            of = {leaf: column.take(pa.array(kept)) for leaf, column in of.items()}
            some = some[kept]
        return some, self._items(rows, of, some, faults)

    def _items(
        self, rows: pa.Table, seen: dict[x.Leaf, pa.Array], some: Ints, faults: Faults
    ) -> Columns:
        """Returns the results of some rows, whose columns are seen."""
        items = [item.expression for item in self.node.items[1:]]
        columns = [evaluate(e, seen.__getitem__, len(some), faults) for e in items]
        oldest = rows.column(rows.num_columns - 1).combine_chunks().take(pa.array(some))
        return [*columns, oldest]

    def _count_faults(self, rows: pa.Table) -> None:
        """Evaluates the operands of the functions in new rows, to count their faults."""
        if self.signs is not None:
            rows = rows.filter(pc.equal(rows.column(self.signs), "+"))
        seen, times, own = self._seen(rows), timestamps(rows), self.faults[self.node.name]
        read = [e for of in self.overs for e in (*of.partition, *of.arguments)]
        read += [key.expression for of in self.overs for key in of.order]
        with own.naming(lambda row: f"the row at ts {times[row]}"):
            for e in dict.fromkeys(read):
                evaluate(e, seen.__getitem__, len(times), own)

    def _may_count(self, seen: dict[x.Leaf, pa.Array], count: int, old: int) -> Bools:
        """Returns which rows from `old` on can be among the best, judged only by the earlier
        rows."""
        assert self.node.best is not None
        over, most = self.node.best
        group, order = self._ordered(over, seen, count)
        known = order < old
        if over.function == "row_number":
            better: Ints = np.cumsum(known) - known
        else:  # a rank exceeds the number of better values
            value = np.cumsum(self._begins(over, seen, group, order)) - 1
            there = np.bincount(value, known) > 0
            better = (np.cumsum(there) - there)[value]
        mine = group[order]
        better = better - better[np.searchsorted(mine, mine)]
        found = np.empty(count, np.bool_)
        found[order] = better < most
        return found[old:]

    # --- memory and state -----------------------------------------------------

    def _keep_some(self, of: _Partitions, some: Ints, told: Telling | None) -> None:
        """Keeps only some rows of whole partitions, with the results they gave last, where these are kept."""
        stays = np.zeros(of.rows.num_rows, np.bool_)
        stays[some] = True
        old = len(of.places)
        new = old + np.flatnonzero(stays[old:])
        added = of.rows.take(pa.array(new))
        at = self.kept.add_to(of.numbers[new], added)
        self._note_ends(added, at)
        if told is not None:
            told.note(np.concatenate((np.arange(old), new)), np.concatenate((of.places, at)))
        self._drop(of.places[~stays[:old]])

    def _drop(self, places: Ints) -> None:
        self.told.forget(places)
        super()._drop(places)

    def _compact(self) -> None:
        stays, self.ends = self.kept.compact(), Ordered()
        every = np.arange(len(stays))
        self.told.renumber(stays, every)
        self._note_ends(self.kept.table(every), every)

    def _forget(self) -> None:
        """Drops partitions that are over."""
        if self.node.end is not None and self.watermark != END_OF_STREAM:
            over = self.ends.take(self.watermark + 2)
            self._drop(over[self.kept.here[over]])

    def snapshot(self) -> bytes:
        plain = {
            "text": self.node.text,
            "inputs": self.input.plain(),
            "faults": fault_report(self.faults),
        }
        kept = self.kept.table(self.kept.places(None))
        tables = {"kept": kept, "uncertain": self.waiting}
        return Snapshot("rank changes", plain, self.input.tables() | tables).pack()

    def restore(self, snapshot: bytes) -> None:
        """Restores the rows of a query of the same text; their results are computed again."""
        state = unpack(snapshot, "rank changes")
        kept = state.tables["kept"]
        if state.plain["text"] != self.node.text or kept.schema != self.waiting.schema:
            return
        self.waiting = state.tables["uncertain"]
        kept = kept.combine_chunks()
        seen, count = self._seen(kept), kept.num_rows
        if self.bound is None:
            self._place(seen, count)
            self.told.add(*self._results(kept, seen, np.arange(count), Faults()))
        numbers = self._numbered(kept, Faults())
        self._note_ends(kept, self.kept.add_to(numbers, kept))
        self.input.restore(state.plain["inputs"], state.tables)
        restore(self.faults, state.plain["faults"])


def _reads_time(e: x.Expression) -> bool:
    return any(column.name == TIME_COLUMN.name for column in x.columns(e))


def _turns(group: Ints, time: Ints, touches: Bools) -> Iterator[Ints]:
    """Yields new rows, those of each group's first time, then those of each group's second, and so on. A
    time at which no row of a group touches it is none of its times."""
    order = lexsort((time, group))
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (np.diff(group[order]) != 0) | (np.diff(time[order]) != 0)
    moment = np.cumsum(begins) - 1
    touched = np.bincount(moment, touches[order]) > 0
    first = np.searchsorted(group[order], group[order[begins]])
    of_group = moment[first]  # the first moment of each moment's group
    turn = np.cumsum(touched) - 1
    turn -= (turn - touched + 1)[of_group]
    number = np.empty(len(order), np.int64)
    number[order] = np.where(touched, turn, -1)[moment]
    for one in range(int(number.max(initial=-1)) + 1):
        yield np.flatnonzero(number == one)


def _pairs(rows: pa.Table, signs: int) -> Ints:
    """Returns for each row that goes the row it removes: the first that is equal apart from its times,
    and still there. `NOWHERE` for all others."""
    names = [name for n, name in enumerate(rows.column_names[:-1]) if n not in (0, signs)]
    cells = [rows.column(name).combine_chunks() for name in names]
    content = KeyNumbers([one.type for one in cells]).numbers(cells, rows.num_rows)
    goes = np.asarray(pc.equal(rows.column(signs), "-").combine_chunks())
    order = np.argsort(content, kind="stable")
    # Of equal rows, those that go when none is there remove nothing: their balance is below any before.
    mine, step = content[order], np.where(goes[order], -1, 1)
    first = np.searchsorted(mine, mine)
    level = np.cumsum(step)
    level -= (level - step)[first]
    deep = 2 * (len(order) + 1) * mine  # each content is far below the ones before
    least = np.minimum.accumulate(np.minimum(level, 0) - deep)
    before = np.append(0, least[:-1])
    before[first == np.arange(len(order))] = -deep[first == np.arange(len(order))]
    removes = goes[order] & (level - deep >= before)
    found = np.full(rows.num_rows, NOWHERE)
    counts = np.bincount(mine[removes], minlength=int(mine.max(initial=-1)) + 1)
    comes = ~goes[order]
    rank = np.cumsum(comes) - comes
    rank -= rank[first]
    found[order[removes]] = order[comes & (rank < counts[mine])]
    return found


def _slices(rows: pa.Table) -> Iterator[pa.Table]:
    """Yields the rows in parts; rows of one time stay together."""
    ts, begin = timestamps(rows), 0
    while begin < len(ts):
        last = ts[min(begin + _AT_A_TIME, len(ts)) - 1]
        end = int(np.searchsorted(ts, last, side="right"))
        yield rows.slice(begin, end - begin)
        begin = end
