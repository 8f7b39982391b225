"""EMIT CHANGES of ranks: when rows come, the changes among the rows of their partitions.

Where only the best rows of a partition count, rows that cannot be among them are dropped at once,
and the others as better ones come.
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
from seustream.compiler.logical import program as logical
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
        self.waiting = self.kept  # more rows of their time may come
        self.told: list[Cells | None] = []
        self.signs = None if node.signed is None else 1 + node.columns.index(node.signed)
        keys = {over.partition for over in self.overs}
        self.partition = next(iter(keys)) if len(keys) == 1 else ()
        # Expressions evaluated repeatedly count their faults once, when a row comes.
        self.counting = Faults()

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

    def _changes(self, fresh: pa.Table) -> Iterator[Change]:
        """Yields the changes that new rows make, one time after the other."""
        old = self.kept.num_rows
        rows = pa.concat_tables([self.kept, fresh]).combine_chunks()
        told = [*self.told, *[None] * fresh.num_rows]
        count, seen, ts = rows.num_rows, self._seen(rows), timestamps(rows)
        group = self._groups(self.partition, seen, count)
        counts = np.ones(count, np.bool_)
        if self.node.best is not None and old:
            counts[old:] = self._may_count(seen, count, old)
        touches, goes = counts, dict[int, int]()
        if self.signs is not None:
            goes = _pairs(rows, self.signs)
            touches = np.ones(count, np.bool_)
            counts[list(goes)] = False
        for time in np.unique(ts[old:][touches[old:]]).tolist():
            begin, end = old + np.searchsorted(ts[old:], (time, time + 1))
            touched = np.unique(group[begin:end][touches[begin:end]])
            gone = [goes[place] for place in range(begin, end) if place in goes]
            counts[gone] = False
            places = np.flatnonzero(counts[:end] & np.isin(group[:end], touched))
            new = begin + np.flatnonzero(counts[begin:end])
            yield from self._step(rows, places, new, gone, told, time)
        self._keep(rows, np.flatnonzero(counts), told)
        if self.node.best is not None:
            over, most = self.node.best
            rank = self._ranked(over, self._seen(self.kept), self.kept.num_rows)
            self._keep(self.kept, np.flatnonzero(rank <= most), self.told)

    def _step(
        self,
        rows: pa.Table,
        places: Ints,
        new: Ints,
        left: list[int],
        told: list[Cells | None],
        time: int,
    ) -> Iterator[Change]:
        """Yields the differences between the present results of some partitions and their last
        ones, including those of rows that left."""
        some = rows.take(pa.array(places))
        seen, before = self._seen(some), self.counting.total
        self._place(seen, len(places))
        every = np.arange(len(places))
        of, cells = self._results(some, seen, every, self.counting)
        if self.counting.total > before:
            fresh = np.flatnonzero(np.isin(places, new))
            own = self.faults[self.node.name]
            with own.naming(lambda _: f"the row at ts {time}"):
                self._results(some, seen, fresh, own)
        before_this = [*left, *places.tolist()]
        gone = [row for place in before_this if (row := told[place]) is not None]
        names = [[repr(row[:-1]) for row in side] for side in (gone, cells)]
        both = Counter(names[0]) & Counter(names[1])
        for comes, side, named in ((False, gone, names[0]), (True, cells, names[1])):
            same = both.copy()
            for row, name in zip(side, named, strict=True):
                if same[name]:
                    same[name] -= 1
                else:
                    yield comes, row, time
        for place in before_this:
            told[place] = None
        for place, row in zip(places[of].tolist(), cells, strict=True):
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

    def _keep(self, rows: pa.Table, places: Ints, told: list[Cells | None]) -> None:
        self.kept = rows.take(pa.array(places))
        self.told = [told[place] for place in places.tolist()]

    def _forget(self) -> None:
        """Drops partitions that are over."""
        if self.node.end is not None and self.watermark != END_OF_STREAM and self.kept.num_rows:
            over = self._is_over()
            if over.any():
                self._keep(self.kept, np.flatnonzero(~over), self.told)

    def snapshot(self) -> bytes:
        plain = {
            "text": self.node.text,
            "inputs": self.input.plain(),
            "faults": fault_report(self.faults),
        }
        tables = {"kept": self.kept, "uncertain": self.waiting}
        return Snapshot("rank changes", plain, self.input.tables() | tables).pack()

    def restore(self, snapshot: bytes) -> None:
        """Restores the rows of a query of the same text; their results are computed again."""
        state = unpack(snapshot, "rank changes")
        kept = state.tables["kept"]
        if state.plain["text"] != self.node.text or kept.schema != self.kept.schema:
            return
        self.kept, self.waiting = kept.combine_chunks(), state.tables["uncertain"]
        seen, count = self._seen(self.kept), kept.num_rows
        self._place(seen, count)
        of, cells = self._results(self.kept, seen, np.arange(count), Faults())
        known = dict(zip(of.tolist(), cells, strict=True))
        self.told = [known.get(place) for place in range(count)]
        self.input.restore(state.plain["inputs"], state.tables)
        restore(self.faults, state.plain["faults"])


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
