"""EMIT CHANGES of ranks: when rows come, the changes among the rows of their partitions.

Where only the best rows of a partition count, rows that cannot be among them are dropped at once,
and the others as better ones come.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.catalogue import TIME_COLUMN
from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.logical import program as logical
from seustream.engine.relational.held import KeyedRows
from seustream.engine.relational.pool import Ordered
from seustream.engine.relational.ranks import Ints, RankOperator
from seustream.engine.stream.answers import answer
from seustream.engine.stream.evaluate import evaluate, holds
from seustream.engine.stream.faults import QueryFaults, fault_report, restore
from seustream.engine.stream.merge import END_OF_STREAM, timestamps
from seustream.engine.stream.operator import Answer
from seustream.engine.stream.schema import arrow_type
from seustream.engine.stream.snapshot import Snapshot, unpack

Cells = tuple[Any, ...]
Change = tuple[bool, Cells, int]
"""True for a row that comes and False for one that goes; its items and its oldest time; and
when."""

_AT_A_TIME = 512
"""New rows that are tested together for a place among the best, before the best are found again."""


class RankChangeOperator(RankOperator):
    """Answers a query that ranks its rows with EMIT CHANGES. It remembers the rows that count, in
    the order in which they came, and the result that each of them gave last."""

    node: logical.RankChanges

    def __init__(self, node: logical.RankChanges, faults: QueryFaults) -> None:
        super().__init__(node, faults)
        self.waiting = self.kept.store.schema.empty_table()  # more rows of their time may come
        self.told: list[Cells | None] = []  # by place
        self.signs = None if node.signed is None else 1 + node.columns.index(node.signed)
        if self.signs is not None and any(map(_reads_time, self.partition)):
            # A row that goes may be in another partition than the row that it removes.
            self.partition, self.kept = (), KeyedRows(self.kept.store.schema, ())
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
            found = [change for some in _slices(rows) for change in self._changes(some)]
            if found:
                yield self.node.name, self._rows(found)
        self._forget()

    def _rows(self, found: list[Change]) -> pa.Table:
        types = [arrow_type(item.expression.type) for item in self.node.items[1:]]
        columns = [pa.array([row[n] for _, row, _ in found], of) for n, of in enumerate(types)]
        op = pa.array(["+" if comes else "-" for comes, _, _ in found], pa.string())
        oldest = pa.array([row[-1] for _, row, _ in found], pa.int64())
        return answer(
            self.node, [op, *columns, oldest, pa.array([at for *_, at in found], pa.int64())]
        )

    # --- a step ---------------------------------------------------------------

    def _changes(self, fresh: pa.Table) -> list[Change]:
        """Returns the changes that new rows make, one time after the other. Only rows of their partitions
        are looked at, and partitions change on their own: those that change for the first time in this
        step are looked at together, then those that do for the second time, and so on."""
        mine = self._numbered(fresh, self.counting)
        places = self.kept.of(np.unique(mine))
        old, count = len(places), len(places) + fresh.num_rows
        rows = pa.concat_tables([self.kept.table(places), fresh]).combine_chunks()
        told = [*(self.told[place] for place in places.tolist()), *[None] * fresh.num_rows]
        seen, ts = self._seen(rows), timestamps(rows)
        numbers = np.concatenate((self.kept.groups(places), mine))
        _, group = np.unique(numbers, return_inverse=True)
        counts = np.ones(count, np.bool_)
        if self.node.best is not None and old:
            counts[old:] = self._may_count(seen, count, old)
        touches, goes = counts.copy(), dict[int, int]()
        if self.signs is not None:
            goes = _pairs(rows, self.signs)
            touches = np.ones(count, np.bool_)
            counts[list(goes)] = False
        said: list[_Said] = []
        for some in _turns(group[old:], ts[old:], touches[old:]):
            new = old + some
            # Up to the time of its turn, each partition has the rows that have come.
            until = np.zeros(int(group.max()) + 1, np.int64)
            until[group[new]] = old + np.searchsorted(ts[old:], ts[new], side="right")
            gone = {place: goes[place] for place in new.tolist() if place in goes}
            counts[[*gone.values()]] = False
            present = np.flatnonzero(counts & (np.arange(count) < until[group]))
            time = np.zeros(len(until), np.int64)
            time[group[new]] = ts[new]
            said += self._turn(rows, present, new[counts[new]], gone, told, time[group])
        self._keep_best(places, rows, numbers, counts, told)
        return list(_differences(said))

    def _turn(
        self,
        rows: pa.Table,
        places: Ints,
        new: Ints,
        left: dict[int, int],
        told: list[Cells | None],
        when: Ints,
    ) -> Iterator[_Said]:
        """Yields the last results of some partitions, including those of rows that left, and their present
        ones. `left` has the rows that left by the rows that removed them, and `when` a time by row."""
        some = rows.take(pa.array(places))
        seen, before = self._seen(some), self.counting.total
        self._place(seen, len(places))
        of, cells = self._results(some, seen, np.arange(len(places)), self.counting)
        if self.counting.total > before:
            fresh = np.flatnonzero(np.isin(places, new))
            own = self.faults[self.node.name]
            with own.naming(lambda row: f"the row at ts {when[places[fresh[row]]]}"):
                self._results(some, seen, fresh, own)
        gone = [(int(when[by]), (by, place)) for by, place in left.items()]
        gone += [(int(when[place]), (len(told), place)) for place in places.tolist()]
        for time, order in gone:
            if (row := told[order[1]]) is not None:
                yield _Said(time, False, order, row)
                told[order[1]] = None
        for place, row in zip(places[of].tolist(), cells, strict=True):
            yield _Said(int(when[place]), True, (0, place), row)
            told[place] = row

    def _results(
        self, rows: pa.Table, seen: dict[x.Leaf, pa.Array], some: Ints, faults: Faults
    ) -> tuple[Ints, list[Cells]]:
        """Returns those of some rows for which QUALIFY holds, and their cells."""
        of = {leaf: column.take(pa.array(some)) for leaf, column in seen.items()}
        if self.node.qualify is not None:
            kept = np.flatnonzero(holds(self.node.qualify, of.__getitem__, len(some), faults))
            of = {leaf: column.take(pa.array(kept)) for leaf, column in of.items()}
            some = some[kept]
        items = [item.expression for item in self.node.items[1:]]
        columns = [evaluate(e, of.__getitem__, len(some), faults).to_pylist() for e in items]
        oldest = rows.column(rows.num_columns - 1).take(pa.array(some)).to_pylist()
        return some, list(zip(*columns, oldest, strict=True))

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

    def _may_count(
        self, seen: dict[x.Leaf, pa.Array], count: int, old: int
    ) -> npt.NDArray[np.bool_]:
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

    def _keep_best(
        self,
        places: Ints,
        rows: pa.Table,
        numbers: Ints,
        counts: npt.NDArray[np.bool_],
        told: list[Cells | None],
    ) -> None:
        """Keeps those of some whole partitions that count. The first of the rows are kept at `places`;
        `numbers` are those of all their partitions."""
        some = np.flatnonzero(counts)
        if self.node.best is not None:
            over, most = self.node.best
            best = rows.take(pa.array(some))
            some = some[self._ranked(over, self._seen(best), len(some)) <= most]
        stays = np.zeros(len(counts), np.bool_)
        stays[some] = True
        old = len(places)
        for place, one in zip(places.tolist(), told[:old], strict=True):
            self.told[place] = one
        new = old + np.flatnonzero(stays[old:])
        added = rows.take(pa.array(new))
        self.told += [told[place] for place in new.tolist()]
        self._note_ends(added, self.kept.add_to(numbers[new], added))
        self._drop(places[~stays[:old]])

    def _compact(self) -> None:
        stays, self.ends = self.kept.compact(), Ordered()
        self.told = [self.told[place] for place in stays.tolist()]
        every = np.arange(len(stays))
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
        self._place(seen, count)
        of, cells = self._results(kept, seen, np.arange(count), Faults())
        known = dict(zip(of.tolist(), cells, strict=True))
        self.told = [known.get(place) for place in range(count)]
        numbers = self._numbered(kept, Faults())
        self._note_ends(kept, self.kept.add_to(numbers, kept))
        self.input.restore(state.plain["inputs"], state.tables)
        restore(self.faults, state.plain["faults"])


def _reads_time(e: x.Expression) -> bool:
    return any(column.name == TIME_COLUMN.name for column in x.columns(e))


class _Said(NamedTuple):
    """A row that a partition gave before or gives now, at a time; `order` among those of one kind."""

    time: int
    comes: bool
    order: tuple[int, int]
    row: Cells


def _turns(group: Ints, time: Ints, touches: npt.NDArray[np.bool_]) -> Iterator[Ints]:
    """Yields new rows, those of each group's first time, then those of each group's second, and so on. A
    time at which no row of a group touches it is none of its times."""
    order = np.lexsort((time, group))
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


def _differences(said: list[_Said]) -> Iterator[Change]:
    """Yields what has gone at each time, then what has come. Equal rows that do both are no change."""
    said.sort(key=lambda one: (one.time, one.comes, one.order))
    for time, some in itertools.groupby(said, key=lambda one: one.time):
        sides = list(some)
        names = [repr(one.row[:-1]) for one in sides]
        gone = Counter(name for one, name in zip(sides, names, strict=True) if not one.comes)
        both = gone & Counter(name for one, name in zip(sides, names, strict=True) if one.comes)
        same = {True: both.copy(), False: both}
        for one, name in zip(sides, names, strict=True):
            if same[one.comes][name]:
                same[one.comes][name] -= 1
            else:
                yield one.comes, one.row, time


def _pairs(rows: pa.Table, signs: int) -> dict[int, int]:
    """Returns for each row that goes the row it removes: the first that is equal apart from its
    times."""
    names = [name for n, name in enumerate(rows.column_names[:-1]) if n not in (0, signs)]
    known: dict[str, list[int]] = {}
    found = {}
    cells = zip(rows.column(signs).to_pylist(), rows.select(names).to_pylist(), strict=True)
    for place, (sign, row) in enumerate(cells):
        same = known.setdefault(repr(row), [])
        if sign == "+":
            same.append(place)
        elif same:
            found[place] = same.pop(0)
    return found


def _slices(rows: pa.Table) -> Iterator[pa.Table]:
    """Yields the rows in parts; rows of one time stay together."""
    ts, begin = timestamps(rows), 0
    while begin < len(ts):
        last = ts[min(begin + _AT_A_TIME, len(ts)) - 1]
        end = int(np.searchsorted(ts, last, side="right"))
        yield rows.slice(begin, end - begin)
        begin = end
