"""Code generation: turns an area's combinations into a program.

The program compares first (CMP, one factor per register), exits at once if nothing holds (JMPLI),
and then has one group for each pre-tag: a JMPCT over it, JOINs in it.

There are two styles. `thesis` follows the thesis word for word: all ANDs in front, and a register
that a CMP sets to 1 if some combination needs no factor. The other, used by the cost plan, puts the
ANDs into their group, so that the next group can reuse the scratch registers, and takes register 63
for 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby

from seustream.compiler.plan.limits import within
from seustream.hdl import isa
from seustream.hdl.config import DeviceConfig
from seustream.hdl.device import Area, Combination, Factor, Tables
from seustream.hdl.isa import Instruction


def generate(area: Area, thesis: bool, config: DeviceConfig, name: str) -> tuple[Instruction, ...]:
    """Generates the program of one area; `name` is for errors."""
    compares: list[Instruction] = [_compare(f, r) for r, f in enumerate(area.factors)]
    unconditional = any(not row.factors for row in area.combinations)
    true = isa.TRUE_REGISTER
    if unconditional and thesis:
        true = len(compares)
        within("factors in an area", true + 1, config.factors, f"area {name}, one of them true")
        compares.append(isa.Cmp(0, 0, 0, isa.Condition.TRUE, true))
    if not unconditional or thesis:
        compares.append(isa.Jmpli())
    groups = [
        (tag, list(rows)) for tag, rows in groupby(area.combinations, key=lambda row: row.pre_tag)
    ]
    scratch = _Scratch(config, name)
    front: list[Instruction] = []
    if thesis:
        for row in sorted(area.combinations, key=lambda row: row.post_tag):
            front += scratch.conjunction(_registers(row, true))
    program = [*compares, *front]
    for tag, rows in groups:
        body: list[Instruction] = []
        if not thesis:
            scratch = _Scratch(config, name)
        for row in rows:
            registers = _registers(row, true)
            body += scratch.conjunction(registers)
            body.append(isa.Emit(scratch.holding(registers), row.post_tag))
        program.append(isa.Jmpct(tag, _address(len(program) + 1 + len(body), config, name)))
        program += body
    program.append(isa.Nop())
    within("instructions", len(program), config.instructions, f"area {name}")
    return tuple(program)


def _address(address: int, config: DeviceConfig, name: str) -> int:
    # The program is too long exactly when a jump over its last group no longer fits.
    within("instructions", address + 1, config.instructions, f"area {name}")
    return address


def _compare(factor: Factor, register: int) -> isa.Cmp:
    return isa.Cmp(
        factor.window_attribute,
        factor.probe_stream,
        factor.probe_attribute,
        factor.condition,
        register,
    )


def _registers(row: Combination, true: int) -> tuple[int, ...]:
    """Returns the registers that must be 1 for a combination."""
    needed = (
        *sorted(row.factors),
        *(isa.WINDOW_SELECTION_REGISTERS[bit] for bit in sorted(row.window_selections)),
        *(isa.PROBE_SELECTION_REGISTERS[bit] for bit in sorted(row.probe_selections)),
    )
    return needed or (true,)


class _Scratch:
    """Tracks scratch registers and the conjunctions they hold."""

    def __init__(self, config: DeviceConfig, name: str) -> None:
        self.most, self.name = config.scratch_registers, name
        self.held: dict[tuple[int, ...], int] = {}

    def holding(self, registers: tuple[int, ...]) -> int:
        return registers[0] if len(registers) == 1 else self.held[registers]

    def conjunction(self, registers: tuple[int, ...]) -> Iterable[Instruction]:
        """Yields the ANDs still missing to hold this conjunction; common prefixes are shared."""
        for length in range(2, len(registers) + 1):
            part = registers[:length]
            if part not in self.held:
                within("scratch registers", len(self.held) + 1, self.most, f"area {self.name}")
                register = isa.SCRATCH_REGISTERS[len(self.held)]
                left = self.holding(registers[: length - 1])
                self.held[part] = register
                yield isa.AndRegisters(left, registers[length - 1], register)


def with_programs(
    tables: Tables, thesis: bool, config: DeviceConfig, names: tuple[str, ...]
) -> tuple[Tables, tuple[tuple[Instruction, ...], ...]]:
    """Adds every area's program to the tables; also returns the programs as instructions."""
    programs = tuple(
        generate(area, thesis, config, name) for area, name in zip(tables.areas, names, strict=True)
    )
    areas = tuple(
        replace(area, program=tuple(i.encode() for i in program))
        for area, program in zip(tables.areas, programs, strict=True)
    )
    return replace(tables, areas=areas), programs
