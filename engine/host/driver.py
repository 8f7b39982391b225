"""The host driver: streams of rows in, result rows out, a device doing the joins.

    driver = HostDriver(compile_text(text), device)
    driver.push("R", rows)                        # as they arrive; column ts, then R's own
    for query, results in driver.advance(): ...   # what is complete by now
    for query, results in driver.finish(): ...    # all the rest

Each slice of the merged streams goes through: store rows -> encode -> device -> complete. Rows
the device cannot hold are joined in `software`; single-stream queries are evaluated on arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from compiler.catalogue import TIME_COLUMN, Stream
from compiler.plan import expressions as x
from compiler.plan.divide import Division
from compiler.plan.normalise import Normalised
from compiler.plan.pipeline import Compilation
from engine.host.complete import project, residual, result_schema, without_repeats
from engine.host.encode import encode
from engine.host.errors import EvaluationError, Unsupported, WindowOverflow
from engine.host.evaluate import evaluate, holds
from engine.host.order import Merger, OnLate, Slice, timestamps
from engine.host.rows import RowStore
from engine.host.schema import arrow_type
from engine.host.software import Side, software_join
from hdl.config import MAX_ATTRIBUTES
from hdl.device import Batch, Device, Results, Retention

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Answer = tuple[str, pa.Table]

_ROWS_A_SLICE = 8192


@dataclass(slots=True)
class Overflow:
    """A window that needed more than its buffer: tuples that left early, most needed at once."""

    window: str
    left_early: int = 0
    needed: int = 0


@dataclass(slots=True)
class Report:
    """What a run did, for people. All count tuples or results.

    in_software are rows a device cannot take (NULL or out of range in a compared column);
    repeats and residual are device results that were dropped, and why."""

    taken: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    results: dict[str, int] = field(default_factory=dict)
    in_software: dict[str, int] = field(default_factory=dict)
    overflow: dict[str, Overflow] = field(default_factory=dict)
    repeats: int = 0
    residual: int = 0


def stream_schema(stream: Stream) -> pa.Schema:
    """The columns of a stream's rows."""
    fields = [pa.field(c.name, arrow_type(c.type)) for c in stream.columns]
    return pa.schema([pa.field("ts", pa.int64(), nullable=False), *fields])


class HostDriver:
    """Runs the queries of one compilation on one device.

    overflow   "software": rows that leave a window buffer early are joined by the host;
               "error": the run stops with a `WindowOverflow`
    slack      milliseconds a stream's timestamps may fall back before a tuple counts as late
    on_late    takes the late rows of a stream
    """

    def __init__(
        self,
        compilation: Compilation,
        device: Device,
        overflow: str = "software",
        slack: int = 0,
        on_late: OnLate | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> None:
        self.compilation, self.device = compilation, device
        self.overflow, self.on_progress = overflow, on_progress
        for one in compilation.normalised:
            _refuse_unsupported(one.division)
        self.streams = [s for s in compilation.streams if s.defined_by is None]
        names = [stream.name for stream in self.streams]
        self.merger = Merger(names, slack, on_late)
        self.slots = compilation.layout.slots
        copies = {name: sum(s.stream.name == name for s in self.slots) for name in names}
        self.stores = {s.name: RowStore(stream_schema(s), copies[s.name]) for s in self.streams}
        self.keep = {name: Retention() for name in names}
        for name in names:
            self.keep[name] = Retention.over(
                window
                for row in compilation.tables.windows
                for slot, window in zip(self.slots, row, strict=True)
                if slot.stream.name == name
            )
        self.position = 0
        self.first_tick: int | None = None
        self.report = Report(results={q.name: 0 for q in compilation.program.queries})
        if self.slots:
            device.load(compilation.image)

    # --- streams in, results out ----------------------------------------------

    def push(self, stream: str, rows: pa.Table) -> None:
        """Takes rows in the order they arrive on one stream."""
        schema = stream_schema(next(s for s in self.streams if s.name == stream))
        self.merger.push(stream, rows.select(schema.names).cast(schema))
        self.report.late = self.merger.late

    def advance(self) -> Iterator[Answer]:
        """Processes what no earlier tuple can precede any more."""
        for part in self.merger.release(_ROWS_A_SLICE):
            yield from self._process(part)
            if self.on_progress is not None:
                self.on_progress(len(part))

    def finish(self) -> Iterator[Answer]:
        """Nothing more comes: processes the rest and drains the device."""
        for stream in self.streams:
            self.merger.end(stream.name)
        yield from self.advance()
        if self.slots:
            yield from self._complete(self.device.flush(), {})

    # --- one slice ------------------------------------------------------------

    def _process(self, part: Slice) -> Iterator[Answer]:
        """Stores and encodes a slice, lets the device join it, completes the results."""
        for stream, rows in zip(self.streams, part.rows, strict=True):
            if rows.num_rows:
                taken = self.report.taken
                taken[stream.name] = taken.get(stream.name, 0) + rows.num_rows
                yield from self._single_stream_queries(stream, rows)
        if not self.slots:
            return
        arrived = self._store(part)
        batch = self._batch(part, arrived)
        results = self.device.push(batch)
        new = dict(enumerate(arrived))
        yield from self._complete(results, new)
        yield from self._trim()

    def _single_stream_queries(self, stream: Stream, rows: pa.Table) -> Iterator[Answer]:
        for one in self.compilation.normalised:
            query = one.division.query
            if len(query.sources) != 1 or query.sources[0].stream.name != stream.name:
                continue
            columns = _columns(rows, stream)
            here = holds(query.where, columns, rows.num_rows)
            if here.any():
                kept = rows.filter(pa.array(here))
                columns = _columns(kept, stream)
                values = [evaluate(item.expression, columns, kept.num_rows) for item in query.items]
                ts = kept.column("ts").combine_chunks()
                answer = pa.table([*values, ts, ts], schema=result_schema(query))
                yield self._counted(query.name, answer)

    def _store(self, part: Slice) -> list[Ints]:
        """Adds the slice to the row stores. Gives each slot's new places."""
        copies = np.array([len(self.stores[s.name].position) for s in self.streams], np.int64)
        # Copies of a self-join's stream stand side by side in the total order.
        width = copies[part.stream]
        start = self.position + np.cumsum(width) - width
        self.position += int(width.sum())
        places: dict[str, Ints] = {}
        for index, (stream, rows) in enumerate(zip(self.streams, part.rows, strict=True)):
            store = self.stores[stream.name]
            if not copies[index]:
                continue
            mine = start[part.stream == index]
            before = len(store)
            if rows.num_rows:
                ordered = [mine + copy for copy in range(int(copies[index]))]
                store.append(rows, timestamps(rows), ordered)
                if self.first_tick is None:
                    self.first_tick = int(store.timestamp[before])
            places[stream.name] = np.arange(before, len(store))
        return [places[slot.stream.name] for slot in self.slots]

    def _batch(self, part: Slice, arrived: list[Ints]) -> Batch:
        """The slice as the device takes it: every slot's rows, in the total order."""
        columns: list[tuple[Ints, ...]] = []
        attributes, admitted = [], []
        for number, (slot, places) in enumerate(zip(self.slots, arrived, strict=True)):
            store = self.stores[slot.stream.name]
            codes, usable = self._encode(number, places)
            wanted = self._wanted(number, places)
            ours = places[wanted & ~usable]
            if len(ours):
                store.left[slot.copy][ours] = store.position[slot.copy][ours]
                counts = self.report.in_software
                counts[slot.name] = counts.get(slot.name, 0) + len(ours)
            admitted.append(wanted & usable)
            attributes.append(codes)
            columns.append(
                (
                    np.full(len(places), number, np.int64),
                    store.timestamp[places],
                    store.first + places,
                    store.position[slot.copy][places],
                )
            )
        stream, timestamp, sequence, position = (
            np.concatenate([column[i] for column in columns]) for i in range(4)
        )
        order = np.argsort(position)
        return Batch(
            stream[order].astype(np.uint8),
            timestamp[order],
            sequence[order],
            np.concatenate(admitted)[order],
            np.concatenate(attributes)[order],
        )

    def _encode(self, number: int, places: Ints) -> tuple[npt.NDArray[np.uint32], Bools]:
        """Attribute codes of a slot's new rows, and which rows have all of theirs."""
        slot = self.slots[number]
        names = self.compilation.requests.attributes[number]
        codes = np.zeros((len(places), MAX_ATTRIBUTES), np.uint32)
        usable = np.ones(len(places), np.bool_)
        columns = self.stores[slot.stream.name].columns(set(names), places)
        for attribute, name in enumerate(names):
            encoding = self.compilation.layout.encodings[slot.stream.name, name]
            codes[:, attribute], has = encode(columns[name], encoding, self.first_tick or 0)
            usable &= has
        return codes, usable

    def _wanted(self, number: int, places: Ints) -> Bools:
        """Which new rows of a slot some query can use, as far as one row alone can tell."""
        wanted = np.zeros(len(places), np.bool_)
        store = self.stores[self.slots[number].stream.name]
        for one in self.compilation.device_queries:
            if number in one.division.slots:
                source = one.division.slots.index(number)
                wanted |= _door(one, source, store, places)
        return wanted

    # --- results --------------------------------------------------------------

    def _complete(self, results: Results, new: dict[int, Ints]) -> Iterator[Answer]:
        """Device results and the host's own joins as result rows, query by query."""
        if len(results.handed_over):
            self._hand_over(results)
        for number, one in enumerate(self.compilation.device_queries):
            query, slots = one.division.query, one.division.slots
            sides = self._sides(one.division)
            found = results.sequences[results.query == number][:, list(slots)]
            unique = without_repeats(found)
            kept = residual(one.residual, sides, unique)
            self.report.repeats += len(found) - len(unique)
            self.report.residual += len(unique) - len(kept)
            if new:
                ours = software_join(query, sides, [new[slot] for slot in slots])
                kept = np.concatenate((kept, ours))
            if len(kept):
                yield self._counted(query.name, project(query, sides, kept))

    def _counted(self, name: str, answer: pa.Table) -> Answer:
        self.report.results[name] += answer.num_rows
        return name, answer

    def _sides(self, division: Division) -> list[Side]:
        return [
            Side(self.stores[source.stream.name], self.slots[slot].copy, source.window)
            for slot, source in zip(division.slots, division.query.sources, strict=True)
        ]

    def _hand_over(self, results: Results) -> None:
        """Rows that left their window buffer early are the host's from then on."""
        handed = results.handed_over
        for number in np.unique(handed.stream):
            slot = self.slots[int(number)]
            store = self.stores[slot.stream.name]
            mine = handed.stream == number
            places = store.index(handed.sequence[mine])
            takers = store.index(handed.taken_by[mine])
            store.left[slot.copy][places] = store.position[slot.copy][takers]
            keep = self.compilation.tables.areas[int(number)].retention
            overflow = self.report.overflow.setdefault(slot.name, Overflow(_describe(keep)))
            overflow.left_early += len(places)
            low = [store.first_needed(keep, int(store.timestamp[t])) for t in takers[[0, -1]]]
            most = max(int(t) + 1 - first for t, first in zip(takers[[0, -1]], low, strict=True))
            overflow.needed = max(overflow.needed, most)
            if self.overflow == "error":
                raise self._overflow_error(slot.name, overflow)

    def _overflow_error(self, slot: str, overflow: Overflow) -> WindowOverflow:
        depth = self.device.config.depth
        enough = 1 << max(overflow.needed - 1, 1).bit_length()
        devices = -(-overflow.needed // depth)
        return WindowOverflow(
            f"the window of stream {slot} ({overflow.window}) needs {overflow.needed} tuples, its"
            f" buffer holds {depth}",
            f"a configuration of depth {enough} or {devices} devices would do; or let the host join"
            " what does not fit (overflow in software)",
        )

    # --- memory ---------------------------------------------------------------

    def _trim(self) -> Iterator[Answer]:
        """Frees rows no window reaches, once they are the larger part of a store."""
        now = max((int(s.timestamp[-1]) for s in self.stores.values() if len(s)), default=0)
        for name, store in self.stores.items():
            first = store.first_needed(self.keep[name], now)
            if first > _ROWS_A_SLICE and first > len(store) // 2:
                # A pipelined device may still owe results that name these rows.
                yield from self._complete(self.device.flush(), {})
                store.drop_before(first)


def _door(one: Normalised, source: int, store: RowStore, places: Ints) -> Bools:
    """Which rows of one source can take part in a query: conditions on this row alone that the
    device does not decide, and no NULL in a compared column."""
    here = np.ones(len(places), np.bool_)
    for conjunct in x.conjuncts(one.division.query.where):
        reads = x.columns(conjunct)
        names = {column.name for column in reads if column.source == source}
        if not names:
            continue
        columns = store.columns(names, places)
        if isinstance(conjunct, x.Compare):
            for side in (conjunct.left, conjunct.right):
                if isinstance(side, x.Column) and side.source == source:
                    here &= np.asarray(columns[side.name].is_valid())
        if conjunct in one.residual and {column.source for column in reads} == {source}:
            rows = {(source, name): column for name, column in columns.items()}
            try:
                here &= holds(conjunct, rows, len(places))
            except EvaluationError:
                # Perhaps another condition excludes that row; the residual will tell.
                continue
    return here


def _columns(rows: pa.Table, stream: Stream) -> dict[tuple[int, str], pa.Array]:
    names = {column.name: column.name for column in stream.columns} | {TIME_COLUMN.name: "ts"}
    return {(0, name): rows.column(stored).combine_chunks() for name, stored in names.items()}


def _describe(keep: Retention) -> str:
    if keep.range is None:
        return "UNBOUNDED"
    parts = [f"RANGE {keep.range}"] if keep.range >= 0 else []
    parts += [f"ROWS {keep.rows}"] if keep.rows else []
    return ", ".join(parts)


def _refuse_unsupported(division: Division) -> None:
    query = division.query
    if any(source.stream.defined_by is not None for source in query.sources):
        raise Unsupported(
            f"query {query.name} reads a derived stream, which this version does not run",
            "write the derived stream's query into this one",
        )
    if query.aggregated:
        raise Unsupported(
            f"query {query.name} groups or aggregates, which this version does not run",
            "select the rows and aggregate its results",
        )
