"""Registers of the control port. Each has 32 bits; an address without a register answers SLVERR.

A host writes DATA_LOW and DATA_HIGH, then COMMAND, waits until STATUS shows that nothing is pending, and
reads ANSWER. `seustream.hdl.control_words` defines the commands; a READ returns a counter.
"""

from __future__ import annotations

from dataclasses import dataclass

from seustream.hdl.control_words import (
    ADDRESS_BITS,
    OPERATION_BITS,
    TARGET_BITS,
    UNIT_BITS,
    Command,
)

MAGIC = 0x53455531
"""`SEU1`; the digit is the version of this map."""
ADDRESS_WIDTH = 12
"""Address width of the port: 4 KB, the least that an AXI interconnect assigns."""


@dataclass(frozen=True, slots=True)
class Bits:
    name: str
    low: int
    width: int
    about: str


@dataclass(frozen=True, slots=True)
class AxiRegister:
    """A register of the port.

    access  r, w or rw, by the host
    """

    name: str
    offset: int
    access: str
    about: str
    bits: tuple[Bits, ...] = ()


def _in_turn(*bits: tuple[str, int, str]) -> tuple[Bits, ...]:
    """Places bit fields one above the other."""
    low, found = 0, []
    for name, width, about in bits:
        found.append(Bits(name, low, width, about))
        low += width
    return tuple(found)


REGISTERS = (
    AxiRegister("ID", 0x00, "r", f"0x{MAGIC:08x}: it is this core, with this map"),
    AxiRegister("VERSION", 0x04, "r", "digest of the processor's sources"),
    AxiRegister("CONFIG", 0x08, "r", "digest of the configuration's parameters"),
    AxiRegister(
        "STATUS",
        0x0C,
        "r",
        "what goes on",
        _in_turn(
            ("IDLE", 1, "nothing is in flight in the processor"),
            ("PENDING", 1, "a command is not answered yet"),
        ),
    ),
    AxiRegister("DATA_LOW", 0x10, "rw", "data of the next command, bits 31 to 0"),
    AxiRegister("DATA_HIGH", 0x14, "rw", "data of the next command, bits 63 to 32"),
    AxiRegister(
        "COMMAND",
        0x18,
        "w",
        "sends a command; SLVERR while one is pending, or if not all 32 bits are written",
        _in_turn(
            ("OPERATION", OPERATION_BITS, "what to do"),
            ("TARGET", TARGET_BITS, "of a WRITE: which table"),
            ("UNIT", UNIT_BITS, "of a WRITE: of which area or stream"),
            ("ADDRESS", ADDRESS_BITS, "of a WRITE: where in it; of a READ: which counter"),
        ),
    ),
    AxiRegister(
        "ANSWER",
        0x1C,
        "r",
        "what became of the last command",
        (Bits("VERDICT", 0, 4, "0: done; else why it was refused"),),
    ),
    AxiRegister("ANSWER_LOW", 0x20, "r", "data of the answer, bits 31 to 0"),
    AxiRegister("ANSWER_HIGH", 0x24, "r", "data of the answer, bits 63 to 32"),
    AxiRegister(
        "MALFORMED", 0x28, "r", "records of unknown kind or wrong length, dropped at the door"
    ),
)
"""Registers in the order of their offsets."""


def words(command: Command) -> tuple[int, int, int]:
    """Encodes a command as a host writes it, into COMMAND, DATA_LOW and DATA_HIGH."""
    parts = {bits.name: bits for register in REGISTERS for bits in register.bits}
    head = sum(
        int(getattr(command, name.lower())) << parts[name].low
        for name in ("OPERATION", "TARGET", "UNIT", "ADDRESS")
    )
    return head, command.data & 0xFFFFFFFF, command.data >> 32
