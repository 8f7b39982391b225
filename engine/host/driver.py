"""The device join: queries over base streams, joined by a device.

An operator (`seustream.engine.stream.operator`) that answers all queries of one device. Each slice
of the merged streams goes through: store rows -> encode -> device -> complete. Rows the device
cannot hold are joined by the engine's own join.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.logical.program import Query
from seustream.compiler.pipeline import Compilation
from seustream.compiler.plan.divide import Division
from seustream.compiler.plan.layout import Slot
from seustream.compiler.plan.normalise import Normalised
from seustream.engine.host.answers import (
    Blaming,
    StreamRows,
    fill_group,
    fill_group_of_stream,
    results_of_join,
)
from seustream.engine.host.complete import residual, without_repeats
from seustream.engine.host.defined import DefinedRows
from seustream.engine.host.encode import encode
from seustream.engine.host.errors import WindowOverflow
from seustream.engine.host.grouping import Grouping
from seustream.engine.host.join import Side, WindowJoin
from seustream.engine.host.partial import in_turn, rows_of_groups
from seustream.engine.host.rows import RowStore, leaves
from seustream.engine.host.stages import keeps_rows, retentions
from seustream.engine.host.state import JoinInputs
from seustream.engine.host.stores import Stores
from seustream.engine.stream.answers import as_rows
from seustream.engine.stream.evaluate import evaluate, holds
from seustream.engine.stream.failures import Failures
from seustream.engine.stream.faults import QueryFaults
from seustream.engine.stream.merge import (
    Merger,
    Slice,
    never_late,
    timestamps,
    whole,
)
from seustream.engine.stream.operator import Answer
from seustream.engine.stream.snapshot import Snapshot, unpack
from seustream.engine.stream.taken import taken
from seustream.hdl.config import MAX_ATTRIBUTES, DeviceConfig, depth_for
from seustream.hdl.device import Batch, Device, Results, Retention, UnitCycles

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

DEVICE_JOIN = "device join"
"""The operator's name in a graph, and the kind of its snapshot."""


@dataclass(slots=True)
class Overflow:
    """A window that needed more than the device has. `left_early` counts the tuples that left
    early. `needed`, `age` and `rank` are the most it needed, by cause: tuples at once, where its
    buffer was full; an age in ticks, or a number of later tuples, beyond the device's counters. 0
    means no such cause."""

    window: str
    left_early: int = 0
    needed: int = 0
    age: int = 0
    rank: int = 0

    def needs(self, config: DeviceConfig) -> list[str]:
        """Describes what was needed and what the device has, by cause."""
        found = []
        if self.needed:
            found.append(f"{self.needed:,} tuples, its buffer holds {config.capacity:,}")
        if self.age:
            found.append(
                f"a tuple {self.age:,} ticks old, {config.timestamp_width}-bit timestamps tell"
                f" {config.longest_range:,}"
            )
        if self.rank:
            found.append(
                f"a tuple {self.rank:,} before the last, {config.sequence_width}-bit sequence"
                f" numbers tell {config.longest_rows:,}"
            )
        return found

    def cures(self, config: DeviceConfig) -> list[str]:
        """Returns the least configurations that can meet the need as far as it is known, by cause; wider
        counters only where 64 bits are enough."""
        found = []
        if self.needed:
            found.append(f"depth {depth_for(self.needed)}")
        for member, most in (("timestamp_width", self.age), ("sequence_width", self.rank)):
            if most and most.bit_length() < 64:
                found.append(f"{member} {most.bit_length() + 1}")
        return found


@dataclass(slots=True)
class JoinCounts:
    """Counts of the join, for users: rows a device cannot take (NULL or out of range in a compared
    column), windows that needed more than the device has, and device results dropped as repeats or
    by the residual condition."""

    in_software: dict[str, int] = field(default_factory=dict)
    overflow: dict[str, Overflow] = field(default_factory=dict)
    repeats: int = 0
    residual: int = 0

    def add(self, other: JoinCounts) -> None:
        """Adds the counts of another device."""
        for stream, rows in other.in_software.items():
            self.in_software[stream] = self.in_software.get(stream, 0) + rows
        for stream, overflow in other.overflow.items():
            known = self.overflow.get(stream)
            if known is None or known.left_early < overflow.left_early:
                self.overflow[stream] = overflow
        self.repeats += other.repeats
        self.residual += other.residual


class HostDriver(JoinInputs):
    """Answers the queries of a compilation that are on its device.

    inputs     base streams to keep time with, including those that only queries elsewhere read: all
               operators that answer such queries then see the same moments
    overflow   "software": rows that leave the device early are joined by the host;
               "error": the run stops with a `WindowOverflow`
    strict     the first fault of any query is an error, not only of one WITH (strict)
    slice_rows how many tuples go through the device at a time
    """

    def __init__(
        self,
        compilation: Compilation,
        device: Device,
        overflow: str = "software",
        slice_rows: int = 8192,
        strict: bool = False,
        inputs: Sequence[str] = (),
        failures: Failures | None = None,
    ) -> None:
        self.compilation, self.device = compilation, device
        self.overflow, self.slice_rows = overflow, slice_rows
        self.queries = tuple(one.division.query for one in compilation.device_queries)
        read = {source.stream.name for query in self.queries for source in query.sources}
        self.streams = [s for s in compilation.streams if s.name in read]
        own = tuple(stream.name for stream in self.streams)
        self.inputs = tuple(inputs) or own
        self.seen = dict.fromkeys(own, 0)  # tuples of each stream in earlier slices
        self.merger = Merger(self.inputs, on_late=never_late)
        self.slots = compilation.layout.slots
        copies = {name: sum(s.stream.name == name for s in self.slots) for name in own}
        self.stores = Stores(
            self.streams, copies, retentions(own, filter(keeps_rows, self.queries))
        )
        self.joins = [
            WindowJoin(
                x.conjuncts(one.division.query.where), self._sides(one.division), device=True
            )
            for one in compilation.device_queries
        ]
        self.groupings = {q.name: Grouping(q) for q in self.queries if q.aggregated}
        self.defined = DefinedRows(self.queries)
        source = compilation.source
        # Faults of candidates belong to their pattern, which looks at the rows again.
        self.faults = {
            q.name: QueryFaults(q.last is None and (strict or q.strict), source=source)
            for q in self.queries
        }
        self.failures = Failures() if failures is None else failures
        self.first_tick: int | None = None
        self.counts = JoinCounts()
        device.load(compilation.image)
        device.reset()  # sequence numbers start again from 0
        self.cycles_before: int | None = getattr(device, "cycles", None)
        """Those of a device with a clock, before the first tuple."""
        self.units: dict[str, UnitCycles] = {}
        """Those of a device that counts them, since the first tuple, when they were last read."""

    def read_units(self) -> None:
        """Reads what the units have done. The cycles that this takes count as those before the first tuple."""
        before = getattr(self.device, "cycles", None)
        self.units = getattr(self.device, "units", dict)()
        if before is not None and self.cycles_before is not None:
            after: int = getattr(self.device, "cycles")  # noqa: B009 (not every device has a clock)
            self.cycles_before += after - before

    # --- the operator contract ------------------------------------------------

    def outputs(self) -> Iterator[Answer]:
        for part in self._released(self.slice_rows):
            yield from self.defined.in_order(self._process(part))
        yield from self.defined.released(self.watermark)

    def snapshot(self) -> bytes:
        plain, tables = self._saved()
        plain |= {"first_tick": self.first_tick, "counts": asdict(self.counts)}
        return Snapshot(DEVICE_JOIN, plain, tables).pack()

    def restore(self, snapshot: bytes) -> None:
        """Leaves out streams that the queries no longer read. A query whose text is the same keeps
        its groups; another starts with the rows that its windows hold."""
        state = unpack(snapshot, DEVICE_JOIN)
        self.first_tick = state.plain.get("first_tick")
        known = state.plain["streams"]
        self.refill({name: state.tables[f"kept {name}"] for name in self.seen if name in known})
        counts = state.plain.get("counts", asdict(JoinCounts()))
        counts["overflow"] = {name: Overflow(**one) for name, one in counts["overflow"].items()}
        self.counts = JoinCounts(**counts)
        self._resume(state)
        for one in self.compilation.device_queries:
            query = one.division.query
            if query.aggregated and state.plain["groups"].get(query.name) != query.text:
                faults = QueryFaults(source=self.compilation.source)
                with self.failures.of(query.name):
                    self._fill(one.division, faults)

    def _fill(self, division: Division, faults: Faults) -> None:
        """Fills a group that begins now with the rows in its windows."""
        query = division.query
        grouping = self.groupings[query.name]
        if len(query.sources) > 1:
            fill_group(query, grouping, self._sides(division), faults)
            return
        (source,) = query.sources
        rows = self.stores[source.stream.name].table
        before = self.seen[source.stream.name] - rows.num_rows
        fill_group_of_stream(query, grouping, StreamRows(rows, before, source.alias), faults)

    def refill(self, rows: dict[str, pa.Table]) -> None:
        """Fills the windows with rows that were processed before, in their order; their results are
        already known."""
        for part in whole(tuple(self.seen), rows, self.slice_rows):
            self._enter(part)

    # --- one slice ------------------------------------------------------------

    def _process(self, part: Slice) -> Iterator[Answer]:
        """Stores and encodes a slice, lets the device join it, completes the results."""
        for stream, rows in zip(self.streams, part.rows, strict=True):
            self.seen[stream.name] += rows.num_rows
        yield from self._complete(part, *self._enter(part))
        self.stores.trim(self.slice_rows)

    def _enter(self, part: Slice) -> tuple[Results, list[Ints]]:
        """Enters a slice into row stores and device; returns the device's results and each slot's
        new places."""
        self._first_tick(part)
        places = self.stores.add(part)
        arrived = [places[slot.stream.name] for slot in self.slots]
        batch = self._batch(arrived)
        # Without hand-overs that a pipelined device still owes, the host does not know what to
        # join.
        results = Results.concatenate((self.device.push(batch), self.device.flush()))
        if len(results.handed_over):
            self._hand_over(results)
        return results, arrived

    def _first_tick(self, part: Slice) -> None:
        """Fixes the tick from which codes of timestamps count: that of the first tuple in the
        device."""
        if self.first_tick is None:
            begin = [
                int(timestamps(rows)[0])
                for rows, count in zip(part.rows, self.stores.copies, strict=True)
                if count and rows.num_rows
            ]
            self.first_tick = min(begin, default=None)

    def _batch(self, arrived: list[Ints]) -> Batch:
        """Returns a slice in the device's form: every slot's rows, in the total order. The device's
        time does not go back: rows before it are left to the host."""
        columns: list[tuple[Ints, ...]] = []
        attributes, admitted = [], []
        for number, (slot, places) in enumerate(zip(self.slots, arrived, strict=True)):
            if not len(places):
                continue
            store = self.stores[slot.stream.name]
            codes, usable = self._encode(number, places)
            times = np.maximum(store.timestamp[places], store.passed)
            usable &= store.timestamp[places] == times
            wanted = self._wanted(number, places)
            ours = places[wanted & ~usable]
            if len(ours):
                store.left[slot.copy][ours] = store.position[slot.copy][ours]
                counts = self.counts.in_software
                counts[slot.name] = counts.get(slot.name, 0) + len(ours)
            admitted.append(wanted & usable)
            attributes.append(codes)
            columns.append(
                (
                    np.full(len(places), number, np.int64),
                    times,
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
        """Returns attribute codes of a slot's new rows, and which rows have codes for all
        attributes."""
        slot = self.slots[number]
        names = self.compilation.requests.attributes[number]
        codes = np.zeros((len(places), MAX_ATTRIBUTES), np.uint32)
        usable = np.ones(len(places), np.bool_)
        for attribute, name in enumerate(names):
            encoding = self.compilation.layout.encodings[slot.stream.name, name]
            values = self._attribute(slot, name, places)
            codes[:, attribute], has = encode(values, encoding, self.first_tick or 0)
            usable &= has
        return codes, usable

    def _attribute(self, slot: Slot, name: str, places: Ints) -> pa.Array:
        """Returns an attribute of some rows: a column, or an expression of columns. Where it has no
        value, or a fault, it is NULL, and the row is left to the host, whose join counts what is a
        fault."""
        store = self.stores[slot.stream.name]
        e = self.compilation.layout.computed.get((slot.stream.name, name))
        if e is None:
            return store.columns({name}, places)[name]
        read = store.columns({column.name for column in x.columns(e)}, places)
        rows = {(0, column): values for column, values in read.items()}
        doubts = Faults()
        values = evaluate(e, leaves(rows), len(places), doubts)
        if not doubts.total:
            return values
        some = np.flatnonzero(np.asarray(values.is_valid()))
        return pc.if_else(_faulty(e, rows, some, len(places)), None, values)

    def _wanted(self, number: int, places: Ints) -> Bools:
        """Returns which new rows of a slot some query can use, as far as one row alone can tell."""
        wanted = np.zeros(len(places), np.bool_)
        store = self.stores[self.slots[number].stream.name]
        for one in self.compilation.device_queries:
            if number in one.division.slots:
                source = one.division.slots.index(number)
                wanted |= _door(one, source, store, places)
        return wanted

    # --- results --------------------------------------------------------------

    def _complete(self, part: Slice, results: Results, new: list[Ints]) -> Iterator[Answer]:
        """Turns device results and the host's own joins into result rows, query by query."""
        for number, one in enumerate(self.compilation.device_queries):
            query, slots = one.division.query, one.division.slots
            faults, grouping = self.faults[query.name], self.groupings.get(query.name)
            if query.name in self.failures:
                continue
            join = self.joins[number]
            sides = join.sides
            found = results.sequences[results.of(number)][:, list(slots)]
            unique = without_repeats(found)
            with self.failures.of(query.name), Blaming(query, faults):
                kept = residual(one.residual, sides, unique, faults)
                ours = join.results([new[slot] for slot in slots], faults)
                both = np.concatenate((kept, *ours))
                if len(slots) > 1:
                    answer = results_of_join(query, grouping, sides, both, faults)
                else:
                    answer = self._of_stream(query, part, both[:, 0], faults)
                groups = results.grouped.of(number)
                if len(groups):
                    partial = self.compilation.partials.of(number)
                    assert partial is not None
                    encodings = self.compilation.layout.encodings
                    counted = rows_of_groups(partial, one.division, encodings, groups)
                    answer = in_turn(answer, counted)
            if query.name in self.failures:
                continue
            self.counts.repeats += len(found) - len(unique)
            self.counts.residual += len(unique) - len(kept)
            if answer.num_rows:
                yield query.name, as_rows(query, answer)

    def _of_stream(self, query: Query, part: Slice, sequences: Ints, faults: Faults) -> pa.Table:
        """Returns results of a query over one stream, given its new rows by sequence number."""
        (source,) = query.sources
        name = source.stream.name
        rows = part.rows[list(self.seen).index(name)]
        store, before = self.stores[name], self.seen[name] - rows.num_rows
        index = np.sort(store.index(sequences)) - (len(store) - rows.num_rows)
        batch = StreamRows(rows, before, source.alias)
        return batch.answer(query, self.groupings.get(query.name), index, faults)

    def _sides(self, division: Division) -> list[Side]:
        return [
            Side(
                self.stores[source.stream.name], self.slots[slot].copy, source.window, source.alias
            )
            for slot, source in zip(division.slots, division.query.sources, strict=True)
        ]

    def _hand_over(self, results: Results) -> None:
        """Takes over rows that left the device early, from the arrival that displaced them."""
        handed = results.handed_over
        when, now = np.empty(len(handed), np.int64), np.empty(len(handed), np.int64)
        for number in np.unique(handed.taker):
            slot = self.slots[int(number)]
            store = self.stores[slot.stream.name]
            theirs = handed.taker == number
            takers = store.index(handed.taken_by[theirs])
            when[theirs], now[theirs] = store.position[slot.copy][takers], store.timestamp[takers]
        for number in np.unique(handed.stream):
            slot = self.slots[int(number)]
            store = self.stores[slot.stream.name]
            mine = handed.stream == number
            places = store.index(handed.sequence[mine])
            store.left[slot.copy][places] = when[mine]
            keep = self.compilation.tables.areas[int(number)].retention
            overflow = self.counts.overflow.setdefault(slot.name, Overflow(_describe(keep)))
            overflow.left_early += len(places)
            self._account(overflow, store, keep, places, when[mine], now[mine])
            if self.overflow == "error":
                raise self._overflow_error(slot.name, overflow, keep)

    def _account(
        self,
        overflow: Overflow,
        store: RowStore,
        keep: Retention,
        places: Ints,
        when: Ints,
        now: Ints,
    ) -> None:
        """Records why rows left early at positions `when`, times `now`: over a counter, or for lack
        of room."""
        config = self.device.config
        # Ages may need all 64 bits, so they are unsigned.
        age = now.view(np.uint64) - store.timestamp[places].view(np.uint64)
        # A row counts for all copies at once, in the first copy.
        last = store.position[0].search(when, after=True) - 1
        rank = last - places
        old, far = age > config.longest_range, rank > config.longest_rows
        overflow.age = max(overflow.age, int(age[old].max(initial=0)))
        overflow.rank = max(overflow.rank, int(rank[far].max(initial=0)))
        crowded = ~old & ~far
        if crowded.any():
            overflow.needed = max(overflow.needed, store.most_needed(keep, last[crowded]))

    def _overflow_error(self, slot: str, overflow: Overflow, keep: Retention) -> WindowOverflow:
        config = self.device.config
        if overflow.needed:
            # A window of ROWS will need all of them.
            overflow.needed = max(overflow.needed, keep.rows)
        ways = ["let the host join what does not fit (--overflow software)"]
        if keep.range is None:
            ways.insert(0, "a window that tuples leave")
        elif cures := overflow.cures(config):
            ways.insert(0, f"a configuration of at least {' and '.join(cures)}")
        return WindowOverflow(
            f"the window of stream {slot} ({overflow.window}) needs"
            f" {' and '.join(overflow.needs(config))}",
            "; or ".join(ways),
        )


_FEW_ROWS = 16
"""So many rows, of which one has a fault, are not divided further."""


def _faulty(
    e: x.Expression, columns: Mapping[tuple[int, str], pa.Array], rows: Ints, count: int
) -> Bools:
    """Returns which of `rows`, among `count` of them, have a fault, or stand close to one that has."""
    found = np.zeros(count, np.bool_)
    pieces = [rows]
    while pieces:
        piece = pieces.pop()
        doubts = Faults()
        evaluate(e, leaves({c: taken(of, piece) for c, of in columns.items()}), len(piece), doubts)
        if doubts.total and len(piece) <= _FEW_ROWS:
            found[piece] = True
        elif doubts.total:
            pieces += np.array_split(piece, 2)
    return found


def _door(one: Normalised, source: int, store: RowStore, places: Ints) -> Bools:
    """Returns which rows of one source can take part in a query. It tests the conditions on this
    row alone that the device does not decide, and NULLs in compared columns."""
    here = np.ones(len(places), np.bool_)
    for conjunct in x.conjuncts(one.division.query.where):
        reads = x.columns(conjunct)
        names = {column.name for column in reads if column.source == source}
        if not names:
            continue
        columns = store.columns(names, places)
        if isinstance(conjunct, x.Compare):
            for side in (conjunct.left, conjunct.right):
                if x.sources(side) == {source}:
                    doubts = Faults()
                    rows = {(source, name): column for name, column in columns.items()}
                    value = evaluate(side, leaves(rows), len(places), doubts)
                    if not doubts.total:  # else another condition may exclude that row
                        here &= np.asarray(value.is_valid())
        if conjunct in one.residual and {column.source for column in reads} == {source}:
            rows = {(source, name): column for name, column in columns.items()}
            doubts = Faults()
            fits = holds(conjunct, leaves(rows), len(places), doubts)
            if not doubts.total:  # else another condition may exclude that row
                here &= fits
    return here


def _describe(keep: Retention) -> str:
    if keep.range is None:
        return "UNBOUNDED"
    parts = [f"RANGE {keep.range}"] if keep.range >= 0 else []
    parts += [f"ROWS {keep.rows}"] if keep.rows else []
    return ", ".join(parts)
