"""A WJASIP, wherever it runs, behind the device contract: the host's additions to its ports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np

from seustream.compiler.wjasip.image import decode
from seustream.cosim.processor.bits import Column, Words, flatten, pack, unpack, words_of
from seustream.cosim.processor.groups import GroupReader
from seustream.hdl.config import MAX_ATTRIBUTES, MAX_STREAMS, DeviceConfig
from seustream.hdl.control_words import (
    Command,
    ControlOperation,
    Counter,
    Target,
    Verdict,
    load_commands,
    units,
)
from seustream.hdl.device import (
    NOT_IN_RESULT,
    Batch,
    HandedOver,
    Ints,
    LoadRefused,
    NotLoaded,
    Results,
    Status,
    Tables,
    UnitCycles,
    check_batch,
)

RESULTS, HANDED_OVER, TRACE = range(3)
"""The outputs of a processor that `Processor.take` returns."""

PATIENCE = 50_000_000
"""Cycles without a tuple in or out after which a device counts as stuck; a probe of the
deepest window takes far fewer."""


class Processor(Protocol):
    """The ports of a WJASIP, in rows of words."""

    def commands(self, rows: Words, patience: int) -> tuple[int, Words]:
        """Sends commands one after the other, up to one that is refused; returns how many were
        answered, and the last answer."""

    def run(self, raws: Words, patience: int) -> None:
        """Pushes raw tuples and drains."""

    def take(self, what: int, words: int) -> Words:
        """Returns the output since the last call, in rows."""

    def close(self) -> None: ...


class ProcessorDevice:
    """Device contract: `seustream.hdl.device.Device`. Drains after every batch.

    The processor counts time and sequence numbers in few bits. A batch is cut so that within one
    piece the remaining bits are known. If the clock leaps further than its counter can represent,
    a filler goes before the leap: every stored tuple is gone by then, and the leap may be of any
    length.

    by_rows   pairs are joined by rows if an image's programs have few of them, from the next `load` on;
              else every pair runs its program
    """

    def __init__(self, config: DeviceConfig, processor: Processor, by_rows: bool = True) -> None:
        from seustream.hdl.control import COMMAND, RESPONSE
        from seustream.hdl.layouts import Layouts

        self._config = config
        self._ports = processor
        self.by_rows = by_rows
        layouts = Layouts(config)
        self._fields = {
            "raw": flatten(layouts.raw),
            "result": flatten(layouts.result),
            "handed_over": flatten(layouts.handed_over),
            "command": flatten(COMMAND),
            "response": flatten(RESPONSE),
        }
        self._groups = GroupReader(config)
        self._tables: Tables | None = None
        self._now: int | None = None
        self._last = np.zeros(MAX_STREAMS, np.int64)

    @property
    def config(self) -> DeviceConfig:
        return self._config

    def close(self) -> None:
        """Closes the ports."""
        self._ports.close()

    # --- control --------------------------------------------------------------

    def load(self, image: bytes) -> None:
        tables = decode(image, self._config)
        if not self._config.groups:
            tables = replace(tables, grouped={})
        new = self._tables is None or self._tables.groups != tables.groups
        commands = [
            Command(ControlOperation.BEGIN),
            *load_commands(tables, self._config, self.by_rows),
            Command(ControlOperation.COMMIT, data=int(new)),
        ]
        try:
            self._ask(*commands)
        except LoadRefused:
            self._ask(Command(ControlOperation.ABORT))
            raise
        if new:
            self._last[:] = 0
        self._tables = tables

    def reset(self) -> None:
        self._ask(Command(ControlOperation.RESET))
        self._now = None
        self._last[:] = 0

    def status(self) -> Status:
        read = {
            counter: self._counter(counter)
            for counter in Counter
            if counter.name.lower() in Status.__dataclass_fields__ and counter < Counter.OCCUPANCY
        }
        counts = {counter.name.lower(): value for counter, value in read.items()}
        streams = 0 if self._tables is None else self._tables.streams
        occupancy = tuple(self._counter(Counter.OCCUPANCY + stream) for stream in range(streams))
        return Status(loaded=self._tables is not None, occupancy=occupancy, **counts)

    def counters(self) -> dict[str, int]:
        """Returns counters as in `seustream.hdl.device.Clocked`."""
        own = (Counter.CYCLES, Counter.HITS, Counter.STALLS, Counter.REWINDS)
        return {counter.name.lower(): self._counter(counter) for counter in own}

    def units(self) -> dict[str, UnitCycles]:
        """Returns units as in `seustream.hdl.device.Clocked`. Exact while nothing is in flight, as
        between two batches."""
        found = {}
        for number, name in enumerate(units(self._config)):
            at = Counter.CYCLES_OF_UNITS + 2 * number
            busy, blocked = self._counter(at), self._counter(at + 1)
            # Read last: any later cycles count as idle.
            starved = self._counter(Counter.CYCLES) - busy - blocked
            found[name] = UnitCycles(busy, starved, blocked)
        return found

    def _counter(self, counter: int) -> int:
        return self._ask(Command(ControlOperation.READ, address=counter))

    def send(self, *commands: Command) -> tuple[int, Verdict, int]:
        """Sends commands one after the other, up to one that is refused; returns how many were
        answered, and verdict and data of the last answer."""
        columns = {
            name: np.array([getattr(command, name) for command in commands], np.uint64)
            for name in ("operation", "target", "unit", "address", "data")
        }
        words = pack(self._fields["command"], columns, len(commands))
        answered, answer = self._ports.commands(words, PATIENCE)
        fields = unpack(self._fields["response"], answer[None, :])
        return answered, Verdict(int(fields["verdict"][0])), int(fields["data"][0])

    def _ask(self, *commands: Command) -> int:
        """Returns the data of the last answer; all commands must be answered with OK."""
        answered, verdict, data = self.send(*commands)
        if verdict is not Verdict.OK:
            command = commands[answered - 1]
            what = verdict.name.lower().replace("_", " ")
            raise LoadRefused(f"{command} was answered: {what}", *_place(command))
        return data

    # --- tuples ---------------------------------------------------------------

    def push(self, batch: Batch) -> Results:
        if self._tables is None:
            raise NotLoaded
        check_batch(batch, self._tables, self._config, self._now)
        return Results.concatenate(
            [self._piece(self._tables, piece) for piece in self._pieces(batch)]
        )

    def flush(self) -> Results:
        return Results()

    def _pieces(self, batch: Batch) -> Iterator[Batch]:
        """Yields pieces in which counters cannot wrap around."""
        longest = 1 << self._config.timestamp_width - 1
        most = 1 << self._config.sequence_width - 1
        start = 0
        while start < len(batch):
            first = int(batch.timestamp[start])
            # Numbers beyond 63 bits are never reached, so the sum may be capped there.
            reach = min(first + longest, int(np.iinfo(np.int64).max))
            stop = int(np.searchsorted(batch.timestamp, reach, side="right"))
            stop = min(max(stop, start + 1), start + most)
            yield batch.slice(start, stop)
            start = stop

    def _piece(self, tables: Tables, piece: Batch) -> Results:
        columns: dict[str, Column] = {
            "stream": piece.stream.astype(np.uint64),
            "admit": piece.admit.astype(np.uint64),
            "timestamp": piece.timestamp.astype(np.uint64),
            "sequence": piece.sequence.astype(np.uint64),
        }
        for attribute in range(MAX_ATTRIBUTES):
            columns[f"attributes.{attribute}"] = piece.attributes[:, attribute].astype(np.uint64)
        raws = pack(self._fields["raw"], columns, len(piece))
        if tables.grouped:
            raws = self._with_drains(tables, piece, columns, raws)
        longest = 1 << self._config.timestamp_width - 1
        if self._now is not None and int(piece.timestamp[0]) - self._now > longest:
            raws = np.concatenate((self._filler(columns, self._now + longest), raws))
        self._now = int(piece.timestamp[-1])
        groups = np.array(tables.groups)
        for group in set(tables.groups):
            of_group = np.flatnonzero(groups[piece.stream] == group)
            if of_group.size:
                self._last[: len(groups)][groups == group] = piece.sequence[of_group[-1]]
        self._ports.run(raws, PATIENCE)
        return self._collected(piece)

    def _with_drains(
        self, tables: Tables, piece: Batch, columns: dict[str, Column], raws: Words
    ) -> Words:
        """Inserts drains, so that groups leave before another period begins, before times wrap
        around, and at the end."""
        apart = 1 << self._config.timestamp_width - 2
        spans = (piece.timestamp - piece.timestamp[0]) // apart
        far = np.flatnonzero(spans[1:] != spans[:-1]) + 1
        cuts = np.append(np.union1d(tables.cuts(piece.timestamp), far), len(piece))
        drains = {
            name: columns[name][cuts - 1] for name in ("stream", "timestamp", "sequence")
        } | dict.fromkeys(("filler", "admit"), np.ones(len(cuts), np.uint64))
        return np.insert(raws, cuts, pack(self._fields["raw"], drains, len(cuts)), axis=0)

    def _filler(self, columns: dict[str, Column], now: int) -> Words:
        """Returns a filler that moves the clock as far as it can go, on behalf of the next tuple."""
        filler = {name: columns[name][:1] for name in ("stream", "sequence")}
        filler["timestamp"] = np.array([now & (1 << 64) - 1], np.uint64)
        filler["filler"] = np.ones(1, np.uint64)
        return pack(self._fields["raw"], filler, 1)

    def _collected(self, piece: Batch) -> Results:
        """Returns the output, with all bits of its numbers, in the order of the raw tuples."""
        fields = self._fields["result"]
        rows = self._ports.take(RESULTS, _port_words(fields))
        columns = unpack(fields, rows)
        parts = columns["queries"] == 0
        grouped = self._groups.read(
            {name: column[parts] for name, column in columns.items()}, self._time
        )
        columns, rows = {name: column[~parts] for name, column in columns.items()}, rows[~parts]
        n = self._config.streams
        sequences = np.full((len(rows), MAX_STREAMS), NOT_IN_RESULT, np.int64)
        for stream in range(n):
            carried = (columns["carries"] >> np.uint64(stream) & np.uint64(1)).astype(np.bool_)
            full = self._sequence(columns[f"sequences.{stream}"], np.full(len(rows), stream))
            sequences[carried, stream] = full[carried]
        arrived = self._arrivals(piece, sequences)
        order = np.argsort(arrived, kind="stable")

        fields = self._fields["handed_over"]
        rows = self._ports.take(HANDED_OVER, _port_words(fields))
        handed = unpack(fields, rows)
        left = handed["stream"].astype(np.int64)
        taker = handed["taker"].astype(np.int64)
        return Results(
            columns["queries"][order],
            self._time(columns["newest"])[order],
            self._time(columns["oldest"])[order],
            sequences[order],
            HandedOver(
                left,
                self._sequence(handed["sequence"], left),
                taker,
                self._sequence(handed["taken_by"], taker),
            ),
            grouped,
        )

    def _time(self, counted: Column) -> Ints:
        assert self._now is not None
        return _full(counted, np.int64(self._now), self._config.timestamp_width)

    def _sequence(self, counted: Column, streams: Ints) -> Ints:
        return _full(counted, self._last[streams], self._config.sequence_width)

    def _arrivals(self, piece: Batch, sequences: Ints) -> Ints:
        """Returns the row of each result's raw tuple: its latest component."""
        latest = np.full(len(sequences), -1, np.int64)
        for stream in range(self._config.streams):
            rows = np.flatnonzero(piece.stream == stream)
            if not rows.size:
                continue
            known = piece.sequence[rows]
            place = np.searchsorted(known, sequences[:, stream]).clip(max=len(known) - 1)
            here = known[place] == sequences[:, stream]
            latest = np.where(here, np.maximum(latest, rows[place]), latest)
        return latest


_OF_ALL = {Target.DESTINATION, Target.QUERIES, Target.TEST, Target.SET, Target.PART}
"""Tables that are not of an area."""


def _place(command: Command) -> tuple[int | None, str | None, int | None]:
    """Returns area, table and row that a command writes, as far as it writes any."""
    if command.operation != ControlOperation.WRITE:
        return None, None, None
    table = Target(command.target)
    area = None if table in _OF_ALL else command.unit
    return area, table.name.lower().replace("_", " "), command.address


def _full(counted: Column, newest: Ints | np.int64, width: int) -> Ints:
    """Completes numbers whose lowest bits are known and none of which exceeds `newest`."""
    behind = (newest.astype(np.uint64) - counted) & np.uint64((1 << width) - 1)
    full: Ints = newest - behind.astype(np.int64)
    return full


def _port_words(fields: dict[str, tuple[int, int]]) -> int:
    return words_of(max(at + bits for at, bits in fields.values()))
