"""The instruction-level model of the WJASIP: executes the words of an image.

It stands between the golden model, which defines what a query set means, and the RTL, which defines
how it is executed. It reads a join area's program alone, never the factors and combinations behind
it. An error of the code generator therefore shows as a difference to the golden model, and an error
of the RTL as a difference to this one.

One probe tuple's program runs for all window tuples at once. That is exact because the program
counter cannot differ between them: JMPCT depends only on the probe's route tag, and the window
tuples that JMPLI sends to the last instruction merely stop taking part.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from seustream.compiler.wjasip.image import decode
from seustream.hdl import isa
from seustream.hdl.config import MAX_ATTRIBUTES, MAX_STREAMS, DeviceConfig
from seustream.hdl.device import (
    NOT_IN_RESULT,
    Batch,
    Grouped,
    Groups,
    HandedOver,
    NotLoaded,
    Results,
    Retention,
    Selection,
    Status,
    Tables,
    WindowKind,
    check_batch,
)
from seustream.hdl.isa import Condition

Trace = Callable[[int, int, int, isa.Instruction], None]
"""Called for each executed instruction: route tag of the probe, area, address, instruction."""

Bits = npt.NDArray[np.bool_]


class Probed(NamedTuple):
    """A probe tuple that has met a window: the sequence numbers of its parts, by stream; for each
    stored tuple its sequence number and the final factor registers, register 0 the lowest bit; and
    the tags of the joined tuples, each with the stored tuple's place among them."""

    tag: int
    area: int
    parts: dict[int, int]
    stored: list[int]
    factors: list[int]
    joined: list[tuple[int, int]]


_FACTORS, _WINDOW_BITS, _PROBE_BITS = (
    slice(registers.start, registers.stop)
    for registers in (
        isa.FACTOR_REGISTERS,
        isa.WINDOW_SELECTION_REGISTERS,
        isa.PROBE_SELECTION_REGISTERS,
    )
)
_SELECTIONS = np.arange(len(isa.WINDOW_SELECTION_REGISTERS))
_POWERS = 1 << np.arange(len(isa.FACTOR_REGISTERS))

# The same operators serve numbers and columns; attributes are unsigned in both.
_COMPARE: dict[int, Callable[[Any, Any], Any]] = {
    Condition.LT: operator.lt,
    Condition.EQ: operator.eq,
    Condition.GT: operator.gt,
    Condition.GE: operator.ge,
    Condition.LE: operator.le,
    Condition.NE: operator.ne,
    Condition.TRUE: lambda a, b: True,
    Condition.FALSE: lambda a, b: False,
}


class _Part(NamedTuple):
    """One raw tuple, in a window or as a component of a joined one."""

    sequence: int
    timestamp: int
    attributes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Probe:
    """A tuple on its way through the areas. `bits` are the selection bits of a raw tuple; a joined
    one has none, since its tag implies everything found true of its parts."""

    tag: int
    parts: dict[int, _Part]
    bits: int = 0


class _Window:
    """A window buffer. The columns are twice as long as its capacity, so that the stored tuples
    stay one slice; they move to the front when the end is reached."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.sequence = np.zeros(2 * capacity, np.int64)
        self.timestamp = np.zeros(2 * capacity, np.int64)
        self.attributes = np.zeros((MAX_ATTRIBUTES, 2 * capacity), np.uint32)
        self.bits = np.zeros((len(_SELECTIONS), 2 * capacity), np.bool_)
        self.first = self.end = 0

    def __len__(self) -> int:
        return self.end - self.first

    @property
    def stored(self) -> slice:
        return slice(self.first, self.end)

    def part(self, position: int) -> _Part:
        return _Part(
            int(self.sequence[position]),
            int(self.timestamp[position]),
            tuple(self.attributes[:, position].tolist()),
        )

    def expire(self, retention: Retention, now: int, last: int) -> None:
        """Drops dead tuples. Age and rank both fall from the oldest tuple to the newest, so the
        dead are a prefix."""
        if retention.range is None:
            return
        while (
            self.first < self.end
            and now - int(self.timestamp[self.first]) > retention.range
            and last - int(self.sequence[self.first]) >= retention.rows
        ):
            self.first += 1

    def forget(self, config: DeviceConfig, now: int, last: int) -> list[int]:
        """Removes the tuples whose age or rank exceeds the counters; returns their sequence
        numbers. They are a prefix, as the dead are."""
        gone = []
        while self.first < self.end and (
            now - int(self.timestamp[self.first]) > config.longest_range
            or last - int(self.sequence[self.first]) > config.longest_rows
        ):
            gone.append(int(self.sequence[self.first]))
            self.first += 1
        return gone

    def insert(self, part: _Part, bits: int) -> int | None:
        """Stores a tuple; returns the sequence number of one that had to leave for it. The dead are
        gone by now, so a tuple that leaves a full buffer is alive."""
        pushed_out = None
        if len(self) == self.capacity:
            pushed_out = int(self.sequence[self.first])
            self.first += 1
        if self.end == 2 * self.capacity:
            n = len(self)
            for column in (self.sequence, self.timestamp, self.attributes, self.bits):
                column[..., :n] = column[..., self.stored]
            self.first, self.end = 0, n
        self.sequence[self.end], self.timestamp[self.end] = part.sequence, part.timestamp
        self.attributes[:, self.end] = part.attributes
        self.bits[:, self.end] = _spread(bits)
        self.end += 1
        return pushed_out


def _selected(selections: tuple[Selection, ...], attributes: tuple[int, ...]) -> int:
    """Returns the selection bits of a raw tuple."""
    bits = 0
    for index, selection in enumerate(selections):
        outcomes = (
            _COMPARE[c.condition](attributes[c.attribute], c.constant)
            for c in selection.comparisons
        )
        bits |= (all(outcomes) if selection.every else any(outcomes)) << index
    return bits


def _spread(bits: int) -> Bits:
    return (bits >> _SELECTIONS & 1).astype(np.bool_)


class IssDevice:
    """Executes programs, instruction by instruction.

    `trace`, if given, is called for every executed instruction, once per probe tuple; a probe of an
    empty window executes none. `probed` is called after the last of them.
    """

    def __init__(
        self,
        config: DeviceConfig,
        trace: Trace | None = None,
        probed: Callable[[Probed], None] | None = None,
    ) -> None:
        self._config = config
        self._trace, self._probed = trace, probed
        self._tables: Tables | None = None
        self._programs: list[list[isa.Instruction]] = []
        self._maps: list[int] = []  # for each result, its queries
        self._rows: list[tuple[int, ...]] = []  # newest, oldest, sequence numbers
        self._handed_over: list[tuple[int, int, int, int]] = []  # as the columns of HandedOver
        self._groups: dict[
            tuple[int, int, int], list[int]
        ] = {}  # by query, key and period, as Groups
        self.reset()

    def reset(self) -> None:
        self._now: int | None = None
        self._status = Status()
        self._empty()

    def _empty(self) -> None:
        """Empties all windows and forgets the sequence numbers of all sources."""
        streams = self._tables.streams if self._tables else 0
        self._windows = [_Window(self._config.capacity) for _ in range(streams)]
        self._last: dict[int, int] = {}

    @property
    def config(self) -> DeviceConfig:
        return self._config

    def load(self, image: bytes) -> None:
        tables = decode(image, self._config)
        if not self._config.groups:
            tables = dataclasses.replace(tables, grouped={})
        same_streams = self._tables is not None and tables.groups == self._tables.groups
        self._tables = tables
        self._programs = [[isa.decode(word) for word in area.program] for area in tables.areas]
        if not same_streams:
            self._empty()
        for window, selections in zip(self._windows, tables.selections, strict=True):
            for position in range(window.first, window.end):
                bits = _selected(selections, window.part(position).attributes)
                window.bits[:, position] = _spread(bits)

    def flush(self) -> Results:
        return Results()

    def status(self) -> Status:
        return dataclasses.replace(
            self._status,
            loaded=self._tables is not None,
            occupancy=tuple(len(window) for window in self._windows),
        )

    def push(self, batch: Batch) -> Results:
        if self._tables is None:
            raise NotLoaded
        check_batch(batch, self._tables, self._config, self._now)
        columns = (batch.stream, batch.timestamp, batch.sequence, batch.admit, batch.attributes)
        for stream, timestamp, sequence, admit, attributes in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            self._raw(self._tables, stream, _Part(sequence, timestamp, tuple(attributes)), admit)
        rows = np.array(self._rows, np.int64).reshape(-1, 2 + MAX_STREAMS)
        maps = np.array(self._maps, np.uint64)
        handed = np.array(self._handed_over, np.int64).reshape(-1, 4)
        groups = np.array(list(self._groups.values()), np.int64).reshape(-1, 8)
        self._maps, self._rows, self._handed_over, self._groups = [], [], [], {}
        return Results(
            maps, rows[:, 0], rows[:, 1], rows[:, 2:], HandedOver(*handed.T), Groups(*groups.T)
        )

    def _raw(self, tables: Tables, stream: int, part: _Part, admit: bool) -> None:
        """Processes one raw tuple: expires, inserts, then probes until nothing is in flight."""
        self._status.taken += 1
        group = tables.groups[stream]
        self._now = part.timestamp
        self._last[group] = max(part.sequence, self._last.get(group, part.sequence))
        for number, (window, area, source) in enumerate(
            zip(self._windows, tables.areas, tables.groups, strict=True)
        ):
            last = self._last.get(source, 0)
            window.expire(area.retention, self._now, last)
            for gone in window.forget(self._config, self._now, last):
                self._hand_over(number, gone, stream, part)
        if not admit:
            self._status.ticks += 1
            return
        bits = _selected(tables.selections[stream], part.attributes)
        if all(mask & ~bits for mask in tables.admission[stream]):
            self._status.dropped += 1
            return

        if tables.routes[stream].insert:
            pushed_out = self._windows[stream].insert(part, bits)
            if pushed_out is not None:
                self._hand_over(stream, pushed_out, stream, part)

        # Last in, first out, where the hardware has FIFOs: results of one raw tuple come
        # in any order, and a cross product needs far less room this way.
        in_flight = [_Probe(stream, {stream: part}, bits)]
        while in_flight:
            probe = in_flight.pop()
            route = tables.routes[probe.tag]
            fit = [
                query
                for query in route.queries
                if not tables.needs(query) & ~probe.bits
                and self._in_windows(tables, query, probe.parts)
            ]
            grouped = tables.grouped.get(probe.tag)
            if grouped is not None and grouped.query in fit:
                fit.remove(grouped.query)
                self._join_group(grouped, probe.parts)
            if fit:
                self._deliver(fit, probe.parts)
            for probed in sorted(route.probes):
                joined = self._execute(probed, probe)
                self._status.circulated += len(joined)
                in_flight.extend(joined)

    def _hand_over(self, area: int, sequence: int, taker: int, arrived: _Part) -> None:
        self._status.handed_over += 1
        self._handed_over.append((area, sequence, taker, arrived.sequence))

    def _execute(self, area: int, probe: _Probe) -> list[_Probe]:
        """Runs the area's program for the probe and every stored tuple; returns the joined tuples."""
        window = self._windows[area]
        stored = window.stored
        self._status.pairs += len(window)
        joined: list[_Probe] = []
        hits: list[tuple[int, int]] = []
        if not len(window):
            return joined

        registers = np.zeros((isa.REGISTERS, len(window)), np.bool_)
        registers[_WINDOW_BITS] = window.bits[:, stored]
        registers[_PROBE_BITS] = _spread(probe.bits)[: len(isa.PROBE_SELECTION_REGISTERS), None]
        registers[isa.TRUE_REGISTER] = True
        running = np.ones(len(window), np.bool_)

        program = self._programs[area]
        last = len(program) - 1
        address = 0
        while address <= last:
            instruction = program[address]
            if self._trace is not None:
                self._trace(probe.tag, area, address, instruction)
            address += 1
            match instruction:
                case isa.AndRegisters(a, b, r):
                    registers[r] = registers[a] & registers[b]
                case isa.OrRegisters(a, b, r):
                    registers[r] = registers[a] | registers[b]
                case isa.Cmp():
                    registers[instruction.r] = self._compare(instruction, probe, window)
                case isa.Jmpct(tag, target):
                    if probe.tag != tag:
                        address = target
                case isa.Jmp(target):
                    address = target
                case isa.Jmpli():
                    running &= registers[_FACTORS].any(axis=0)
                    if not running.any():
                        address = last
                case isa.Emit(r, tag):
                    for hit in np.flatnonzero(registers[r] & running).tolist():
                        parts = {**probe.parts, area: window.part(window.first + hit)}
                        joined.append(_Probe(tag, parts))
                        hits.append((tag, hit))
        if self._probed is not None:
            parts_of = {stream: part.sequence for stream, part in probe.parts.items()}
            bits = _POWERS @ registers[_FACTORS]
            told = window.sequence[stored].tolist(), bits.tolist()
            self._probed(Probed(probe.tag, area, parts_of, *told, hits))
        return joined

    def _compare(self, cmp: isa.Cmp, probe: _Probe, window: _Window) -> Bits | bool:
        part = probe.parts.get(cmp.probe_stream)
        if part is None:
            return cmp.condition == Condition.TRUE
        outcome: Bits | bool = _COMPARE[cmp.condition](
            part.attributes[cmp.probe_attribute],
            window.attributes[cmp.window_attribute, window.stored],
        )
        return outcome

    def _in_windows(self, tables: Tables, query: int, parts: dict[int, _Part]) -> bool:
        """Applies the output check now, at the arrival of the result's latest part."""
        assert self._now is not None
        for stream, part in parts.items():
            window = tables.windows[query][stream]
            if window.kind is WindowKind.RANGE and self._now - part.timestamp > window.size:
                return False
            rank = self._last[tables.groups[stream]] - part.sequence
            if window.kind is WindowKind.ROWS and rank >= window.size:
                return False
        return True

    def _join_group(self, grouped: Grouped, parts: dict[int, _Part]) -> None:
        """Adds a result to its group."""
        self._status.delivered += 1
        key, value = (
            0 if place is None else parts[place[0]].attributes[place[1]]
            for place in (grouped.key, grouped.value)
        )
        assert self._now is not None
        period = (self._now - grouped.offset) // grouped.period
        oldest = min(part.timestamp for part in parts.values())
        group = self._groups.setdefault(
            (grouped.query, key, period),
            [grouped.query, key, 0, 0, value, value, oldest, self._now],
        )
        group[2] += 1
        group[3] += value
        group[4] = min(group[4], value)
        group[5] = max(group[5], value)
        group[6] = min(group[6], oldest)

    def _deliver(self, queries: list[int], parts: dict[int, _Part]) -> None:
        self._status.delivered += len(queries)
        times = [part.timestamp for part in parts.values()]
        sequences = [NOT_IN_RESULT] * MAX_STREAMS
        for stream, part in parts.items():
            sequences[stream] = part.sequence
        self._maps.append(sum(1 << query for query in queries))
        self._rows.append((max(times), min(times), *sequences))
