"""Functions OVER frames: each row once, with what it sees when it looks back.

Rows of a partition stand side by side in the order in which they came, those before among them that
later frames reach. New rows are points of `Aggregates`; each row counts at a run of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.logical import program as logical
from seustream.engine.host.aggregates import Aggregates
from seustream.engine.relational.inputs import Inputs
from seustream.engine.relational.measures import Measures
from seustream.engine.stream.answers import answer
from seustream.engine.stream.evaluate import Leaves, evaluate, holds
from seustream.engine.stream.faults import QueryFaults, fault_report, restore
from seustream.engine.stream.merge import timestamps
from seustream.engine.stream.operator import Answer
from seustream.engine.stream.schema import arrow_type, stream_schema
from seustream.engine.stream.snapshot import Snapshot, unpack

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_LAST = np.iinfo(np.int64).max


class OverOperator:
    """Answers a query with functions over frames. It remembers the rows whose time is not certain,
    and those that frames of later rows reach: their times, what the functions read of them, and their
    numbers in each partition."""

    def __init__(self, node: logical.OverRows, faults: QueryFaults) -> None:
        self.node, self.faults = node, {node.name: faults}
        self.input = Inputs(node.inputs)
        self.inputs = self.input.names
        self.push, self.advance = self.input.push, self.input.advance
        parts = [item.expression for item in node.items]
        parts += [] if node.qualify is None else [node.qualify]
        found = [e for part in parts for e in x.walk(part) if isinstance(e, logical.Over)]
        self.by_partition: dict[tuple[x.Expression, ...], list[logical.Over]] = {}
        for e in dict.fromkeys(found):
            self.by_partition.setdefault(e.partition, []).append(e)
        self.measures = {
            e: Measures(e.partition, [] if e.aggregate is None else [e.aggregate]) for e in found
        }
        read = [e for m in self.measures.values() for e in m.read]
        read += [a for e in found if e.aggregate is None for a in e.arguments]
        self.read = list(dict.fromkeys(read))
        fields = [(f"c{number}", arrow_type(e.type)) for number, e in enumerate(self.read)]
        numbers = [(f"n{number}", pa.int64()) for number in range(len(self.by_partition))]
        self.kept = pa.schema([("ts", pa.int64()), *fields, *numbers]).empty_table()
        self.waiting = stream_schema(node.inputs[0]).empty_table()  # their time may have more rows

    @property
    def watermark(self) -> int:
        return self.input.watermark

    def outputs(self) -> Iterator[Answer]:
        # Rows of one time see each other, in whichever slices they are released.
        self.waiting = pa.concat_tables([self.waiting, *(p.rows[0] for p in self.input.release())])
        count = int(np.searchsorted(timestamps(self.waiting), self.watermark, side="right"))
        if not count:
            return
        rows = self.waiting.slice(0, count).combine_chunks()
        self.waiting = self.waiting.take(pa.array(np.arange(count, self.waiting.num_rows)))
        found = self._answer(rows)
        if found.num_rows:
            yield self.node.name, found

    # --- state ----------------------------------------------------------------

    def snapshot(self) -> bytes:
        plain = {
            "text": self.node.text,
            "inputs": self.input.plain(),
            "faults": fault_report(self.faults),
        }
        tables = {"kept": self.kept, "uncertain": self.waiting}
        return Snapshot("over", plain, self.input.tables() | tables).pack()

    def restore(self, snapshot: bytes) -> None:
        """Goes on with the frames of a query of the same text; of another one they begin anew."""
        state = unpack(snapshot, "over")
        kept, waiting = state.tables["kept"], state.tables["uncertain"]
        mine = (self.node.text, self.kept.schema, self.waiting.schema)
        if (state.plain["text"], kept.schema, waiting.schema) != mine:
            return
        self.kept, self.waiting = kept, waiting
        self.input.restore(state.plain["inputs"], state.tables)
        restore(self.faults, state.plain["faults"])

    # --- rows -----------------------------------------------------------------

    def _answer(self, rows: pa.Table) -> pa.Table:
        """The results of new rows; the rows that later ones reach are kept."""
        node, faults, times = self.node, self.faults[self.node.name], timestamps(rows)
        seen: dict[x.Leaf, pa.Array] = {
            leaf: rows.column(place).combine_chunks()
            for place, leaf in enumerate(node.columns, start=1)
        }

        def reading(some: Ints | None = None) -> Leaves:
            if some is None:
                return seen.__getitem__
            taken = pa.array(some)
            return lambda leaf: seen[leaf].take(taken)

        with faults.naming(lambda row: f"the row at ts {times[row]}"):
            fresh = [evaluate(e, reading(), len(times), faults) for e in self.read]
        held = self.kept.num_rows
        values = {
            e: pa.concat_arrays([self.kept.column(place).combine_chunks(), new])
            for place, (e, new) in enumerate(zip(self.read, fresh, strict=True), start=1)
        }
        ts = np.concatenate((timestamps(self.kept), times))
        stays, numbers = np.zeros(len(ts), np.bool_), []
        before = len(self.read) + 1
        for place, (partition, overs) in enumerate(self.by_partition.items()):
            of = np.asarray(self.kept.column(before + place).combine_chunks())
            group = self.measures[overs[0]].groups([values[e] for e in partition], len(ts))
            part = _Partition(group, ts, held, of)
            for e in overs:
                seen[e] = self._computed(e, part, values)
                stays |= part.reached(e, self.watermark)
            numbers.append(part.numbers)
        some = np.arange(len(times))
        with faults.naming(lambda row: f"the row at ts {times[some[row]]}"):
            if node.qualify is not None:
                some = np.flatnonzero(holds(node.qualify, reading(), len(times), faults))
            leaf = reading(some)
            out = [evaluate(item.expression, leaf, len(some), faults) for item in node.items]
        taken = pa.array(np.flatnonzero(stays))
        kept = [pa.array(ts), *values.values(), *map(pa.array, numbers)]
        self.kept = pa.table([c.take(taken) for c in kept], schema=self.kept.schema)
        places = pa.array(some)
        oldest = rows.column(rows.num_columns - 1).take(places)
        return answer(node, [*out, oldest, rows.column(0).take(places)])

    def _computed(
        self, e: logical.Over, part: _Partition, values: dict[x.Expression, pa.Array]
    ) -> pa.Array:
        """The values of a function in the new rows."""
        if e.function == "row_number" and e.aggregate is None:
            return pa.array(part.numbers[part.held :])
        if e.aggregate is None:
            return values[e.arguments[0]].take(part.place(e))
        measures = self.measures[e]
        order = pa.array(part.order)
        lo, hi = part.spans(e.frame)
        spans = Aggregates(lo, hi, part.group, part.group[part.points])
        own = [values[argument].take(order) for argument in measures.read]
        faults = self.faults[self.node.name]
        with faults.naming(lambda point: f"the row at ts {part.ts[part.points[point]]}"):
            found = measures.of_points(own, part.points, spans, faults)[0, "a0"]
        return found.take(pa.array(part.point_of_row))


class _Partition:
    """Rows side by side by partition; the first `held` of them were there before."""

    def __init__(self, group: Ints, ts: Ints, held: int, numbers: Ints) -> None:
        self.held, count = held, len(group)
        self.order = np.argsort(group, kind="stable")
        self.group, self.ts = group[self.order], ts[self.order]
        places = np.arange(count)
        begins = np.ones(count, np.bool_)
        begins[1:] = self.group[1:] != self.group[:-1]
        self.start = np.maximum.accumulate(np.where(begins, places, 0))
        which = np.cumsum(begins) - 1
        self.end = np.append(np.flatnonzero(begins)[1:], count)[which]
        new = self.order >= held
        self.points = np.flatnonzero(new)
        self.before = np.concatenate(([0], np.cumsum(new)))
        self.point_of_row = np.empty(count - held, np.int64)
        self.point_of_row[self.order[self.points] - held] = np.arange(len(self.points))
        self.moments = np.unique(self.ts)
        self.rank = np.searchsorted(self.moments, self.ts)
        self.key = self._key(self.rank)
        # A new row's number follows that of the last one before.
        olds = np.bincount(which[~new], minlength=int(which[-1]) + 1)[which]
        last = self.start + olds - 1
        known = np.concatenate((numbers, np.zeros(count - held, np.int64)))[self.order]
        base = np.where(olds > 0, known[np.maximum(last, 0)], 0)
        mine = np.where(new, base + places - (self.start + olds) + 1, known)
        self.numbers = np.empty(count, np.int64)
        self.numbers[self.order] = mine

    def _key(self, rank: Ints) -> Ints:
        return self.group * (len(self.moments) + 1) + rank

    def spans(self, frame: logical.Frame) -> tuple[Ints, Ints]:
        """The points at which each row counts."""
        first, last = np.arange(len(self.order)), self.end
        if frame.by_time:
            first = np.searchsorted(self.key, self.key)  # rows of one time see each other
            if frame.size is not None:
                until = np.minimum(self.ts, _LAST - frame.size) + frame.size
                rank = np.searchsorted(self.moments, until, side="right")
                last = np.searchsorted(self.key, self._key(rank))
        elif frame.size is not None:
            last = np.minimum(first + frame.size + 1, last)
        return self.before[first], self.before[last]

    def place(self, e: logical.Over) -> pa.Array:
        """The place of the row whose value each new row sees, NULL where there is none."""
        at, frame = self.points, e.frame
        start = self.start[at]
        if e.function == "lag":
            found = at - e.offset
        elif e.function == "last_value":
            found = at
            if frame.by_time:
                found = np.searchsorted(self.key, self.key[at], side="right") - 1
        elif frame.size is None:
            found = start
        elif frame.by_time:
            since = np.maximum(self.ts[at], frame.size - _LAST) - frame.size
            key = self.group[at] * (len(self.moments) + 1) + np.searchsorted(self.moments, since)
            found = np.searchsorted(self.key, key)
        else:
            found = np.maximum(at - frame.size, start)
        there = (found >= start) & (found < len(self.order))
        rows = self.order[np.clip(found, 0, len(self.order) - 1)]
        return pa.array(rows[self.point_of_row], mask=~there[self.point_of_row])

    def reached(self, e: logical.Over, watermark: int) -> Bools:
        """The rows that frames of later rows reach, in the order in which they came."""
        size = 1 if e.function == "row_number" else e.frame.size
        if size is None:
            return np.ones(len(self.order), np.bool_)
        if e.frame.by_time:
            mine = self.ts > min(watermark - size, _LAST)
        else:
            mine = np.arange(len(self.order)) >= self.end - size
        found = np.empty(len(self.order), np.bool_)
        found[self.order] = mine
        return found
