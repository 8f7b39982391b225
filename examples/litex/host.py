"""The host of the LiteX system: presents the core as a device, through reads and writes of the
system's bus."""

from __future__ import annotations

import itertools
from typing import Any, Protocol

import numpy as np

from seustream.cosim.processor.bits import Words, flatten, pack, unpack
from seustream.cosim.processor.device import HANDED_OVER, RESULTS, ProcessorDevice
from seustream.hdl.axi.records import RecordKind, input_record, output_record
from seustream.hdl.axi.registers import MAGIC, REGISTERS, words
from seustream.hdl.boards.identity import config_digest
from seustream.hdl.config import MAX_ATTRIBUTES, DeviceConfig
from seustream.hdl.control import COMMAND, RESPONSE
from seustream.hdl.control_words import Command
from seustream.hdl.layouts import Layouts

WRITE, READ = 1, 2
"""Commands of a LiteX bridge: write or read so many words from an address on."""
MOST = 255
"""Most words of one command."""
_IDLE = 100_000
"""Steps of the line without a byte after which the system counts as stuck."""
_PENDING = 2


class WrongSystem(RuntimeError):
    """There is no core behind the line, or it is another one."""


class Line(Protocol):
    """A line that carries bytes to and from the system."""

    def put(self, data: bytes) -> None: ...

    def run(self, cycles: int) -> None: ...

    def take(self) -> bytes: ...

    def close(self) -> None: ...


class Bus:
    """Words of 32 bits at addresses, over a line. A read takes effect after all earlier writes."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self._came = b""

    def write(self, address: int, *values: int) -> None:
        for first in range(0, len(values), MOST):
            part = values[first : first + MOST]
            self._begin(WRITE, len(part), address + 4 * first)
            self.line.put(b"".join(value.to_bytes(4, "big") for value in part))

    def read(self, address: int, count: int = 1) -> list[int]:
        found: list[int] = []
        for first in range(0, count, MOST):
            part = min(count - first, MOST)
            self._begin(READ, part, address + 4 * first)
            said = self._take(4 * part)
            found += (int.from_bytes(said[at : at + 4], "big") for at in range(0, 4 * part, 4))
        return found

    def _begin(self, command: int, count: int, address: int) -> None:
        self.line.put(bytes([command, count]) + (address >> 2).to_bytes(4, "big"))

    def _take(self, count: int) -> bytes:
        idle = 0
        while len(self._came) < count:
            self.line.run(32)
            came = self.line.take()
            self._came += came
            idle = 0 if came else idle + 1
            if idle > _IDLE:
                raise WrongSystem("the system does not answer")
        said, self._came = self._came[:count], self._came[count:]
        return said


class SystemProcessor:
    """The ports of the core: its commands go through its registers, its records through the memory.

    system  LiteX's map, as `soc.simulated` returns it
    """

    def __init__(self, bus: Bus, system: dict[str, Any], config: DeviceConfig) -> None:
        self._bus, self._config = bus, config
        self._csr = {name: each["addr"] for name, each in system["csr_registers"].items()}
        base = system["memories"]["core"]["base"]
        self._register = {register.name: base + register.offset for register in REGISTERS}
        memory = system["memories"]["main_ram"]
        # A quarter is for input, the rest for output.
        self._in, self._room = memory["base"], memory["size"] // 4
        self._out, self._space = memory["base"] + self._room, memory["size"] - self._room
        layouts = Layouts(config)
        self._raw = flatten(layouts.raw)
        self._fields = {RESULTS: flatten(layouts.result), HANDED_OVER: flatten(layouts.handed_over)}
        self._input, self._output = input_record(config), output_record(config)
        self._came: dict[int, list[np.ndarray[Any, Any]]] = {RESULTS: [], HANDED_OVER: []}
        self._marks = itertools.cycle(range(256))
        for name, want in (("ID", MAGIC), ("CONFIG", config_digest(config))):
            (found,) = bus.read(self._register[name])
            if found != want:
                raise WrongSystem(f"{name} of the core is {found:08x}, not {want:08x}")

    def close(self) -> None:
        self._bus.line.close()

    def commands(self, rows: Words, patience: int) -> tuple[int, Words]:
        """Sends commands one after the other, up to one that is refused; returns how many were
        answered, and the last answer."""
        columns = unpack(flatten(COMMAND), rows)
        answered, answer = 0, [0, 0, 0]
        for number in range(len(rows)):
            fields = {name: int(column[number]) for name, column in columns.items()}
            head, low, high = words(Command(**fields))
            self._bus.write(self._register["DATA_LOW"], low, high, head)
            while self._bus.read(self._register["STATUS"])[0] & _PENDING:
                pass
            answer = self._bus.read(self._register["ANSWER"], 3)
            answered += 1
            if answer[0]:
                break
        said = {"verdict": answer[0], "data": answer[1] | answer[2] << 32}
        named = {name: np.array([value], np.uint64) for name, value in said.items()}
        return answered, pack(flatten(RESPONSE), named, 1)[0]

    def run(self, raws: Words, patience: int) -> None:
        """Pushes raw tuples and drains."""
        at_once = self._room // self._input.bytes - 1  # and a mark
        for first in range(0, len(raws), at_once):
            self._batch(raws[first : first + at_once])

    def _batch(self, raws: Words) -> None:
        columns = unpack(self._raw, raws)
        rows = np.zeros(len(raws) + 1, self._input.dtype)
        tuples, mark = rows[:-1], next(self._marks)
        tuples["kind"] = RecordKind.TUPLE
        tuples["flags"] = columns["admit"] | columns["filler"] << np.uint64(1)
        for name in ("stream", "timestamp", "sequence"):
            tuples[name] = columns[name]
        for number in range(MAX_ATTRIBUTES):
            tuples["attributes"][:, number] = columns[f"attributes.{number}"]
        rows[-1]["kind"], rows[-1]["mark"] = RecordKind.MARK, mark
        sent = rows.view("<u4").tolist()
        self._bus.write(self._in, *sent)
        came = b""
        self._start("from_core", self._out, self._space)
        self._start("to_core", self._in, 4 * len(sent))
        # Output that does not fit waits in the core until the DMA is started again.
        while True:
            while not self._bus.read(self._csr["from_core_done"])[0]:
                pass
            (count,) = self._bus.read(self._csr["from_core_offset"])
            came += np.array(self._bus.read(self._out, count), "<u4").tobytes()
            whole = np.frombuffer(came, self._output.dtype, len(came) // self._output.bytes)
            if len(whole) and whole[-1]["kind"] == RecordKind.MARK:
                break
            self._start("from_core", self._out, self._space)
        assert whole[-1]["mark"] == mark
        self._came[RESULTS].append(whole[whole["kind"] == RecordKind.RESULT])
        self._came[HANDED_OVER].append(whole[whole["kind"] == RecordKind.HANDED_OVER])

    def _start(self, dma: str, base: int, length: int) -> None:
        self._bus.write(self._csr[f"{dma}_enable"], 0)
        self._bus.write(self._csr[f"{dma}_base"], 0, base)
        self._bus.write(self._csr[f"{dma}_length"], length)
        self._bus.write(self._csr[f"{dma}_enable"], 1)

    def take(self, what: int, words: int) -> Words:
        """Returns the output since the last call, in rows."""
        came, self._came[what] = self._came[what], []
        if not sum(map(len, came)):
            return np.zeros((0, words), np.uint32)
        rows = np.concatenate(came)
        if what == RESULTS:
            columns = {name: rows[name] for name in ("query", "carries", "newest", "oldest")}
            sequences = rows["sequences"].reshape(len(rows), -1)
            columns |= {
                f"sequences.{stream}": sequences[:, stream] for stream in range(sequences.shape[1])
            }
        else:
            columns = {name: rows[name] for name in ("stream", "taker")}
            columns |= {
                name: rows["sequences"][:, place]
                for place, name in enumerate(("sequence", "taken_by"))
            }
        given = {name: column.astype(np.uint64) for name, column in columns.items()}
        return pack(self._fields[what], given, len(rows))


def device(line: Line, system: dict[str, Any], config: DeviceConfig) -> ProcessorDevice:
    """Returns the core behind the device contract."""
    return ProcessorDevice(config, SystemProcessor(Bus(line), system, config))
