"""Functions OVER frames: each row once, with the rows it sees when it looks back.

Functions of one partition and frame share the rows that the frame holds. A row enters it when its
time is certain, together with all rows of this time; it leaves when later frames no longer reach
it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.language.types import BIGINT
from seustream.compiler.logical import program as logical
from seustream.engine.host.grouping import SUMS, arguments_of
from seustream.engine.host.keys import KeyNumbers
from seustream.engine.host.sliding import STATES, HeldMembers, Sliding
from seustream.engine.relational.inputs import Inputs
from seustream.engine.stream.answers import answer
from seustream.engine.stream.evaluate import Leaves, evaluate, holds
from seustream.engine.stream.faults import QueryFaults, fault_report, restore
from seustream.engine.stream.growing import Growing
from seustream.engine.stream.merge import timestamps
from seustream.engine.stream.numbers import order_of
from seustream.engine.stream.operator import Answer
from seustream.engine.stream.schema import arrow_type, stream_schema
from seustream.engine.stream.snapshot import Snapshot, unpack
from seustream.engine.stream.taken import rows_taken, taken

Ints = npt.NDArray[np.int64]

Exprs = tuple[x.Expression, ...]

_TIME = x.Literal(0, BIGINT)
_RANKS = ("row_number", "rank", "dense_rank")
_ROWS = x.AggregateCall("count", (), (), BIGINT)


class OverOperator:
    """Answers a query with functions over frames. It remembers the rows whose time is not certain,
    and the rows in its frames."""

    def __init__(self, node: logical.OverRows, faults: QueryFaults) -> None:
        self.node, self.faults = node, {node.name: faults}
        self.input = Inputs(node.inputs)
        self.inputs = self.input.names
        self.push, self.advance = self.input.push, self.input.advance
        parts = [item.expression for item in node.items]
        parts += [] if node.qualify is None else [node.qualify]
        found = [e for part in parts for e in x.walk(part) if isinstance(e, logical.Over)]
        self.overs = list(dict.fromkeys(found))
        self.frames: dict[tuple[Exprs, logical.Frame | None], _Frame] = {}
        for e in self.overs:
            key = (e.partition, _frame_of(e))
            self.frames.setdefault(key, _Frame(*key)).functions.append(e)
        for frame in self.frames.values():
            frame.begin()
        self.waiting = stream_schema(node.inputs[0]).empty_table()  # rows of their time may come

    @property
    def watermark(self) -> int:
        return self.input.watermark

    @property
    def live(self) -> int:
        """The number of rows in its frames, plus the number of partitions counted."""
        frames = self.frames.values()
        return sum(len(f.keys) if f.frame is None else f.sliding.live for f in frames)

    def outputs(self) -> Iterator[Answer]:
        # Rows of one time see each other, in whichever slices they are released.
        self.waiting = pa.concat_tables([self.waiting, *(p.rows[0] for p in self.input.release())])
        count = int(np.searchsorted(timestamps(self.waiting), self.watermark, side="right"))
        if not count:
            return
        rows = self.waiting.slice(0, count).combine_chunks()
        self.waiting = rows_taken(self.waiting, np.arange(count, self.waiting.num_rows))
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
        tables = {f"frame {n}": frame.rows() for n, frame in enumerate(self.frames.values())}
        tables["uncertain"] = self.waiting
        return Snapshot("over", plain, self.input.tables() | tables).pack()

    def restore(self, snapshot: bytes) -> None:
        """Restores the frames of a query of the same text; for another query they start afresh."""
        state = unpack(snapshot, "over")
        frames = [(f, state.tables.get(f"frame {n}")) for n, f in enumerate(self.frames.values())]
        waiting = state.tables["uncertain"]
        if state.plain["text"] != self.node.text or waiting.schema != self.waiting.schema:
            return
        if any(rows is None or not frame.fits(rows) for frame, rows in frames):
            return
        for frame, rows in frames:
            frame.fill(rows)
        self.waiting = waiting
        self.input.restore(state.plain["inputs"], state.tables)
        restore(self.faults, state.plain["faults"])

    # --- rows -----------------------------------------------------------------

    def _answer(self, rows: pa.Table) -> pa.Table:
        """Returns the results of new rows."""
        node, faults, times = self.node, self.faults[self.node.name], timestamps(rows)
        seen: dict[x.Leaf, pa.Array] = {
            leaf: rows.column(place).combine_chunks()
            for place, leaf in enumerate(node.columns, start=1)
        }

        def reading(some: Ints | None = None) -> Leaves:
            if some is None:
                return seen.__getitem__
            return lambda leaf: taken(seen[leaf], some)

        with faults.naming(lambda row: f"the row at ts {times[row]}"):
            for frame in self.frames.values():
                keys = [evaluate(e, reading(), len(times), faults) for e in frame.partition]
                values = [evaluate(e, reading(), len(times), faults) for e in frame.read]
                seen |= frame.add(keys, values, times, faults)
        some = np.arange(len(times))
        with faults.naming(lambda row: f"the row at ts {times[some[row]]}"):
            if node.qualify is not None:
                some = np.flatnonzero(holds(node.qualify, reading(), len(times), faults))
            leaf = reading(some)
            out = [evaluate(item.expression, leaf, len(some), faults) for item in node.items]
        oldest, newest = rows.column(rows.num_columns - 1), rows.column(0)
        return answer(node, [*out, taken(oldest.chunk(0), some), taken(newest.chunk(0), some)])


def _frame_of(e: logical.Over) -> logical.Frame | None:
    """Returns the frame that a function looks back on; None for ranks, which only count."""
    if e.aggregate is not None:
        return e.frame
    if e.function in _RANKS:
        return None
    if e.function == "lag":
        return logical.Frame(False, e.offset)
    return e.frame


class _Frame:
    """The functions of one partition and frame. `read` are their arguments."""

    def __init__(self, partition: Exprs, frame: logical.Frame | None) -> None:
        self.partition, self.frame = partition, frame
        self.functions: list[logical.Over] = []
        self.read: list[x.Expression] = []

    def begin(self) -> None:
        """Collects what the functions need, and starts without rows."""
        if self.frame is None:
            self.keys = KeyNumbers([arrow_type(e.type) for e in self.partition])
            self.counts, self.moments = Growing(), Growing()
            return
        aggregates, numbers, whole = [], [], set[int]()
        for e in self.functions:
            if e.aggregate is not None:
                aggregates.append(e.aggregate)
                numbers.append(tuple(map(self._number, arguments_of(e.aggregate))))
                continue
            function = "last" if e.function == "last_value" else "first"
            of = e.arguments[0]
            aggregates.append(x.AggregateCall(function, (of,), (of.type,), of.type))
            numbers.append((len(self.read),))
            whole.add(len(self.read))
            self.read.append(of)
        # One more aggregate counts the rows of the frame.
        aggregates.append(_ROWS)
        numbers.append(())
        size, by_time = self.frame.size, self.frame.by_time
        self.sliding = Sliding(
            [e.type for e in self.partition],
            aggregates,
            numbers,
            [e.type for e in self.read],
            clocks=1 if by_time and size is not None else 0,
            rows=None if by_time or size is None else size + 1,
            whole=frozenset(whole),
        )

    def _number(self, argument: x.Expression) -> int:
        known = [n for n, e in enumerate(self.read) if e == argument]
        if not known:
            self.read.append(argument)
        return known[0] if known else len(self.read) - 1

    def add(
        self, keys: list[pa.Array], values: list[pa.Array], times: Ints, faults: Faults
    ) -> dict[x.Leaf, pa.Array]:
        """Returns the values of the functions in new rows."""
        if self.frame is None:
            found_of = dict(zip(_RANKS, map(pa.array, self._counted(keys, times)), strict=True))
            return {e: found_of[e.function] for e in self.functions}
        arrival, clocks, ends = None, tuple[Ints, ...](), tuple[int, ...]()
        if self.frame.by_time:
            moments, arrival = np.unique(times, return_inverse=True)
            if self.frame.size is not None:
                clocks, ends = (moments,), (self.frame.size,)
        own = self.sliding.enter(keys, values, len(times), arrival, clocks, ends)
        who, points = own or (np.arange(len(times)),) * 2
        with faults.naming(lambda point: f"the row at ts {times[who[point]]}"):
            *found, rows = self.sliding.results(faults)
        got: dict[x.Leaf, pa.Array] = {}
        for e, values_of in zip(self.functions, found, strict=True):
            got[e] = taken(values_of, points)
            if e.function == "lag" and e.aggregate is None:
                there = taken(pc.greater(rows, e.offset), points)
                got[e] = pc.if_else(there, got[e], pa.scalar(None, got[e].type))
        return got

    def _counted(self, keys: list[pa.Array], times: Ints) -> tuple[Ints, Ints, Ints]:
        """Returns the number of each new row in its partition, the number of the first row of its
        time, and the number of distinct times up to its own. All rows of a time come together."""
        count = len(times)
        group = self.keys.numbers(keys, count)
        for counts in (self.counts, self.moments):
            counts.append(np.zeros(len(self.keys) - len(counts), np.int64))
        order = order_of(group)
        mine, when = group[order], times[order]
        first = np.searchsorted(mine, mine)
        begins = np.ones(count, np.bool_)
        begins[1:] = (mine[1:] != mine[:-1]) | (when[1:] != when[:-1])
        since = np.maximum.accumulate(np.where(begins, np.arange(count), 0))
        distinct = np.cumsum(begins)
        found = np.empty((3, count), np.int64)
        found[0, order] = self.counts.view[mine] + np.arange(count) - first + 1
        found[1, order] = self.counts.view[mine] + since - first + 1
        found[2, order] = self.moments.view[mine] + distinct - distinct[first] + 1
        np.maximum.at(self.counts.view, group, found[0])
        np.maximum.at(self.moments.view, group, found[2])
        return found[0], found[1], found[2]

    # --- state ----------------------------------------------------------------

    def schema(self) -> pa.Schema:
        """Returns the columns of `rows`: keys, arguments and when rows leave; for ranks, keys and
        counts."""
        parts = [self.partition, self.read, [_TIME] * self._ends()]
        fields = [
            (f"{name}{number}", arrow_type(e.type))
            for name, part in zip("kve", parts, strict=True)
            for number, e in enumerate(part)
        ]
        return pa.schema([*fields, ("live", pa.bool_())])

    def fits(self, rows: pa.Table) -> bool:
        """Returns whether a snapshot's rows are of such a frame."""
        own = [name for name in rows.column_names if name != SUMS]
        return bool(rows.schema.empty_table().select(own).schema.equals(self.schema()))

    def rows(self) -> pa.Table:
        """Returns the rows of this frame, for `fill`."""
        sums: pa.Array | None = None
        if self.frame is None:
            count = len(self.keys)
            counts = [pa.array(self.counts.view), pa.array(self.moments.view)]
            columns = [*self.keys.values(np.arange(count)), *counts]
        else:
            count, keys, values, ends, sums = self.sliding.held()
            columns = [*keys, *values, *map(pa.array, ends)]
        live = pa.array(np.ones(count, np.bool_))
        found = pa.table([*columns, live], schema=self.schema())
        return found if sums is None else found.append_column(SUMS, sums)

    def fill(self, rows: pa.Table) -> None:
        """Restores these rows."""
        sums: pa.Array | None = None
        if SUMS in rows.column_names:
            sums, rows = rows.column(SUMS).combine_chunks(), rows.drop_columns([SUMS])
        columns = [column.combine_chunks() for column in rows.columns[:-1]]
        keys, rest = columns[: len(self.partition)], columns[len(self.partition) :]
        if self.frame is None:
            self.keys.numbers(keys, rows.num_rows)
            self.counts.append(np.asarray(rest[0]))
            self.moments.append(np.asarray(rest[1]))
            return
        values, ends = rest[: len(self.read)], rest[len(self.read) :]
        if self.sliding.stays and sums is None:  # of an older snapshot
            sums = pa.nulls(rows.num_rows, STATES)
        until = [np.asarray(end) for end in ends]
        self.sliding.fill(HeldMembers(rows.num_rows, keys, values, until, sums))

    def _ends(self) -> int:
        return 2 if self.frame is None else self.sliding.clocks
