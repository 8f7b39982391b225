"""Ranks among whole partitions, and ORDER BY: rows wait until their partition is over.

A partition by the end of a window is over with the window, every other one at the end of the
stream. Where only the best rows of a partition count, the others are dropped as better ones come.
Rows that only look ahead wait for the later rows that they look at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.logical import program as logical
from seustream.engine.host.aggregates import Turns
from seustream.engine.host.keys import KeyNumbers
from seustream.engine.relational.closed import ranks
from seustream.engine.relational.held import KeyedRows
from seustream.engine.relational.inputs import Inputs
from seustream.engine.relational.measures import Measures
from seustream.engine.relational.pool import Ordered
from seustream.engine.stream.answers import answer
from seustream.engine.stream.evaluate import evaluate, holds
from seustream.engine.stream.faults import QueryFaults, fault_report, restore
from seustream.engine.stream.growing import Growing
from seustream.engine.stream.merge import END_OF_STREAM, timestamps
from seustream.engine.stream.operator import EARLIEST, Answer
from seustream.engine.stream.schema import arrow_type, stream_schema
from seustream.engine.stream.snapshot import Snapshot, unpack
from seustream.engine.stream.sorting import lexsort

Ints = npt.NDArray[np.int64]

_NONE = np.empty(0, np.int64)
_FEW = 4096
"""Rows that may be kept beyond twice the number that count."""


class RankOperator:
    """Answers a query that ranks whole partitions. It remembers the rows of partitions that are not
    over, and results of a stream whose place in time has not come yet."""

    def __init__(self, node: logical.RankedRows, faults: QueryFaults) -> None:
        self.node, self.faults = node, {node.name: faults}
        self.counting: Faults = faults
        self.input = Inputs(node.inputs)
        self.inputs = self.input.names
        self.push, self.advance = self.input.push, self.input.advance
        self.found: pa.Table | None = None
        # The number of rows so far, the numbers of the kept rows by place, and those of the rows
        # with results.
        self.came = 0
        self.numbers = Growing()
        self.of = np.empty(0, np.int64)
        self.trimmed = 0
        self.ends = Ordered()
        """The kept rows by the ends of their partitions."""
        parts = [item.expression for item in node.items]
        parts += [] if node.qualify is None else [node.qualify]
        found = [e for part in parts for e in x.walk(part) if isinstance(e, logical.Over)]
        self.overs = list(dict.fromkeys(found))
        keys = {over.partition for over in self.overs}
        self.partition = next(iter(keys)) if len(keys) == 1 and self._by_partition else ()
        types = [arrow_type(e.type) for e in self.partition]
        self.kept = KeyedRows(stream_schema(node.inputs[0]), types)

    @property
    def _by_partition(self) -> bool:
        """Returns whether rows are looked up by their partition."""
        return self.node.ahead is not None

    @property
    def watermark(self) -> int:
        first = self.kept.first_time
        return self.input.watermark if first is None else min(self.input.watermark, first - 1)

    def outputs(self) -> Iterator[Answer]:
        groups = [self._keep(part.rows[0]) for part in self.input.release()]
        over = self._over(np.unique(np.concatenate([_NONE, *groups])))
        if len(over):
            # Rows look ahead to others of their partition, some of which stay.
            read = over
            if self.node.ahead is not None:
                read = self.kept.of(np.unique(self.kept.groups(over)))
            found, some = self._answer(self.kept.table(read), np.searchsorted(read, over))
            self._add(found, self.numbers.view[read[some]])
            self._drop(over)
        elif self.node.best is not None and len(self.kept) > 2 * self.trimmed + _FEW:
            self._trim()
        if self.found is not None:
            yield from self._certain(self.found)

    def _keep(self, rows: pa.Table) -> Ints:
        """Keeps new rows; returns the numbers of their partitions."""
        count, groups = rows.num_rows, self._numbered(rows, Faults())
        self.numbers.append(self.came + np.arange(count))
        self.came += count
        self._note_ends(rows, self.kept.add_to(groups, rows))
        return groups

    def _numbered(self, rows: pa.Table, faults: Faults) -> Ints:
        """Returns the numbers of the partitions of rows, of those that are kept and of others."""
        seen, count = self._seen(rows), rows.num_rows
        keys = [evaluate(e, seen.__getitem__, count, faults) for e in self.partition]
        return self.kept.numbers(keys, count)

    def _note_ends(self, rows: pa.Table, places: Ints) -> None:
        if self.node.end is not None:
            end = rows.column(1 + self.node.columns.index(self.node.end))
            last = end.combine_chunks().fill_null(EARLIEST)
            self.ends.add(np.asarray(last, dtype=np.int64), places)

    def _over(self, groups: Ints) -> Ints:
        """Returns the places of the rows whose partitions are over, or that look no further ahead than to
        rows that have come: these first, in the order of the rows to which they look. Rows with
        these keys are new."""
        now, kept = self.input.watermark, self.kept
        over = kept.places(None) if now == END_OF_STREAM else np.unique(self.ends.take(now + 2))
        over = over[kept.here[over]]
        if self.node.ahead is None or not len(groups):
            return over
        # Their partitions are in the order in which rows come.
        places = kept.of(groups)
        group = kept.groups(places)
        order = np.argsort(group, kind="stable")
        ahead = np.arange(len(order)) + self.node.ahead
        some = np.flatnonzero(ahead < np.searchsorted(group[order], group[order], side="right"))
        decided, by = places[order[some]], places[order[ahead[some]]]
        decided = decided[np.argsort(by, kind="stable")]
        return np.concatenate([decided, np.setdiff1d(over, decided)])

    def _drop(self, places: Ints) -> None:
        """Drops rows, and their places once they are the larger part."""
        self.kept.leave(places)
        if self.kept.is_sparse:
            self._compact()

    def _compact(self) -> None:
        stays = self.kept.compact()
        numbers, self.numbers, self.ends = self.numbers.view[stays], Growing(), Ordered()
        self.numbers.append(numbers)
        every = np.arange(len(stays))
        self._note_ends(self.kept.table(every), every)

    def _certain(self, found: pa.Table) -> Iterator[Answer]:
        """Yields the results whose place has come: those of a stream go by time."""
        if self.node.defines is None:
            self.found, self.of = None, self.of[:0]
            yield self.node.name, found
            return
        time = timestamps(found)
        # Results of one time are in the order of their rows, whenever decided; sorted ones stay
        # sorted.
        order = lexsort((np.arange(len(time)) if self.node.order_by else self.of, time))
        ready = time[order] <= self.watermark
        self.found = found.take(pa.array(order[~ready])) if not ready.all() else None
        self.of = self.of[order[~ready]]
        if ready.any():
            yield self.node.name, found.take(pa.array(order[ready]))

    def _add(self, more: pa.Table, of: Ints) -> None:
        if more.num_rows:
            self.found = more if self.found is None else pa.concat_tables([self.found, more])
            self.of = np.append(self.of, of)

    # --- rows -----------------------------------------------------------------

    def _answer(self, rows: pa.Table, some: Ints) -> tuple[pa.Table, Ints]:
        """Returns the results of some rows, whose partitions are over as far as they look, and
        these rows."""
        node, faults, times = self.node, self.faults[self.node.name], timestamps(rows)
        seen = self._seen(rows)
        with faults.naming(lambda row: f"the row at ts {times[some[row]]}"):
            self._place(seen, len(times))
            seen = {leaf: column.take(pa.array(some)) for leaf, column in seen.items()}
            if node.qualify is not None:
                kept = np.flatnonzero(holds(node.qualify, seen.__getitem__, len(some), faults))
                seen = {leaf: column.take(pa.array(kept)) for leaf, column in seen.items()}
                some = some[kept]
            if node.order_by:
                keys = self._keys(node.order_by, seen, len(some))
                order = lexsort((*reversed(keys),))
                some = some[order]
                seen = {leaf: column.take(pa.array(order)) for leaf, column in seen.items()}
            read = seen.__getitem__
            out = [evaluate(item.expression, read, len(some), faults) for item in node.items]
        places = pa.array(some)
        oldest = rows.column(rows.num_columns - 1).take(places)
        return answer(node, [*out, oldest, rows.column(0).take(places)]), some

    def _place(self, seen: dict[x.Leaf, pa.Array], count: int) -> None:
        """Adds the values of the functions to those of the columns."""
        for over in self.overs:
            seen[over] = pa.array(self._placed(over, seen, count))

    def _seen(self, rows: pa.Table) -> dict[x.Leaf, pa.Array]:
        return {
            leaf: rows.column(place).combine_chunks()
            for place, leaf in enumerate(self.node.columns, start=1)
        }

    def _keys(
        self, order: Sequence[logical.OrderKey], seen: dict[x.Leaf, pa.Array], count: int
    ) -> list[Ints]:
        faults = self.counting
        return [
            ranks(
                evaluate(key.expression, seen.__getitem__, count, faults),
                key.descending,
                key.nulls_first,
            )
            for key in order
        ]

    def _ordered(
        self, over: logical.Over, seen: dict[x.Leaf, pa.Array], count: int
    ) -> tuple[Ints, Ints]:
        """Returns the partition of each row, and the rows by partition and order; equal ones by
        arrival."""
        group = self._groups(over.partition, seen, count)
        return group, lexsort((*reversed(self._keys(over.order, seen, count)), group))

    def _groups(
        self, partition: Sequence[x.Expression], seen: dict[x.Leaf, pa.Array], count: int
    ) -> Ints:
        keys = [evaluate(e, seen.__getitem__, count, self.counting) for e in partition]
        return KeyNumbers([arrow_type(e.type) for e in partition]).numbers(keys, count)

    def _placed(self, over: logical.Over, seen: dict[x.Leaf, pa.Array], count: int) -> pa.Array:
        """Returns the value of a function at each row."""
        if over.aggregate is not None:
            return self._aggregated(over, over.aggregate, seen, count)
        if over.function not in ("lag", "lead"):
            return pa.array(self._ranked(over, seen, count))
        value = evaluate(over.arguments[0], seen.__getitem__, count, self.counting)
        group, order = self._ordered(over, seen, count)
        away = np.arange(count) + (over.offset if over.function == "lead" else -over.offset)
        there = np.clip(away, 0, count - 1)
        known = (away == there) & (group[order][there] == group[order])
        found = np.empty(count, np.int64)
        found[order] = np.where(known, order[there], -1)
        return value.take(pa.array(found, mask=found < 0))

    def _aggregated(
        self, over: logical.Over, of: x.AggregateCall, seen: dict[x.Leaf, pa.Array], count: int
    ) -> pa.Array:
        """Aggregates over the whole partition of each row."""
        faults, measures = self.counting, Measures(over.partition, [of])
        values = [evaluate(e, seen.__getitem__, count, faults) for e in measures.read]
        group = measures.groups(values, count)
        _, first = np.unique(group, return_index=True)
        groups = np.arange(len(first))
        turns = Turns(np.arange(count), np.full(len(first), count), groups)
        with faults.naming(lambda point: f"the partition of row {first[point]}"):
            found = measures.of_points(values, first, group, turns, faults)
        return found[0, "a0"].take(pa.array(group))

    def _ranked(self, over: logical.Over, seen: dict[x.Leaf, pa.Array], count: int) -> Ints:
        """Returns the rank of each row in its partition, or its share of it."""
        group, order = self._ordered(over, seen, count)
        mine, begins = group[order], self._begins(over, seen, group, order)
        first = np.searchsorted(mine, mine)
        size = np.searchsorted(mine, mine, side="right") - first
        place = np.arange(count, dtype=np.int64) - first
        since = np.maximum.accumulate(np.where(begins, np.arange(count), 0))
        number = place + 1
        match over.function:
            case "rank":
                number = since - first + 1
            case "dense_rank":
                distinct = np.cumsum(begins)
                number = 1 + distinct - distinct.take(first)
            case "ntile":
                # Where the parts do not come out even, the first ones have one row more each.
                least, more = size // over.offset, size % over.offset
                large = more * (least + 1)
                rest = more + (place - large) // np.maximum(least, 1)
                number = 1 + np.where(place < large, place // (least + 1), rest)
            case "percent_rank":
                number = (since - first) / np.maximum(size - 1, 1)
            case "cume_dist":
                peers = np.append(np.flatnonzero(begins), count)
                number = (peers[np.cumsum(begins)] - first) / size
        found = np.empty(count, number.dtype)
        found[order] = number
        return found

    def _begins(
        self, over: logical.Over, seen: dict[x.Leaf, pa.Array], group: Ints, order: Ints
    ) -> npt.NDArray[np.bool_]:
        """Returns which rows, in order, differ from the one before."""
        mine, equal = group[order], np.ones(len(order), np.bool_)
        for key in self._keys(over.order, seen, len(order)):
            equal[1:] &= key[order][1:] == key[order][:-1]
        equal[1:] &= mine[1:] == mine[:-1]
        equal[:1] = False
        return ~equal

    def _trim(self) -> None:
        """Drops rows that are not among the best of their partition."""
        assert self.node.best is not None
        over, most = self.node.best
        places = self.kept.places(None)
        rank = self._ranked(over, self._seen(self.kept.table(places)), len(places))
        self.kept.leave(places[rank > most])
        self._compact()
        self.trimmed = len(self.kept)

    # --- state ----------------------------------------------------------------

    def snapshot(self) -> bytes:
        plain = {
            "text": self.node.text,
            "inputs": self.input.plain(),
            "faults": fault_report(self.faults),
            "came": self.came,
        }
        places = self.kept.places(None)
        tables = self.input.tables() | {
            "kept": self.kept.table(places),
            "numbers": pa.table({"of": self.numbers.view[places]}),
        }
        if self.found is not None:
            tables |= {"found": self.found, "places": pa.table({"of": self.of})}
        return Snapshot("ranks", plain, tables).pack()

    def restore(self, snapshot: bytes) -> None:
        """Restores the rows of a query of the same text."""
        state = unpack(snapshot, "ranks")
        kept = state.tables["kept"]
        if state.plain["text"] != self.node.text or kept.schema != self.kept.store.schema:
            return
        self.found = state.tables.get("found")
        self._keep(kept)
        self.came = state.plain.get("came", kept.num_rows)  # older snapshots have no numbers
        self.numbers = Growing()
        self.numbers.append(_numbers(state.tables.get("numbers"), kept.num_rows))
        if self.found is not None:
            self.of = _numbers(state.tables.get("places"), self.found.num_rows)
        self.input.restore(state.plain["inputs"], state.tables)
        restore(self.faults, state.plain["faults"])


def _numbers(kept: pa.Table | None, count: int) -> Ints:
    return np.arange(count) if kept is None else kept["of"].to_numpy()
