"""Random programs that a loader takes, and what they mean for one pair, instruction by instruction."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from seustream.hdl import isa
from seustream.hdl.config import DeviceConfig
from seustream.hdl.isa import Condition


def random_program(
    chance: random.Random, most: int, factors: int = 16, plain: bool = False
) -> list[isa.Instruction]:
    """A leading run of CMPs, then anything with jumps forward, CMPs too, and a NOP at the end.
    A plain one reads only what it wrote."""
    leading = chance.randrange(min(factors, most // 2) + 1)
    code: list[isa.Instruction] = [_cmp(chance, factors) for _ in range(leading)]
    length = chance.randrange(leading, most)
    compares = leading
    written = [*isa.SCRATCH_REGISTERS[:3], *range(factors)]

    def register() -> int:
        if plain:
            return chance.choice(written[: 3 + max(leading, 1)])
        anything = chance.choice(range(isa.REGISTERS))
        return chance.choice([*written[: 3 + max(leading, 1)], 63, 32, 33, 48, anything])

    while len(code) < length:
        at = len(code)
        kinds = [
            isa.AndRegisters,
            isa.OrRegisters,
            isa.Emit,
            isa.Emit,
            isa.Jmpct,
            isa.Jmpli,
            isa.Jmp,
            isa.Nop,
            isa.Cmp,
        ]
        kind = chance.choices(kinds, [4, 4, 4, 4, 3, 2, 1, 1, 2])[0]
        if kind in (isa.AndRegisters, isa.OrRegisters):
            code.append(kind(register(), register(), chance.choice(written[:3])))
        elif kind is isa.Emit:
            code.append(isa.Emit(register(), chance.randrange(8)))
        elif kind is isa.Jmpct:
            code.append(isa.Jmpct(chance.randrange(3), chance.randrange(at + 1, length + 1)))
        elif kind is isa.Jmp:
            code.append(isa.Jmp(chance.randrange(at + 1, min(at + 4, length) + 1)))
        elif kind is isa.Cmp and compares < factors:
            code.append(_cmp(chance, factors))
            compares += 1
        elif kind is not isa.Cmp:
            code.append(kind())
    return [*code, isa.Nop()]


def _cmp(chance: random.Random, factors: int) -> isa.Cmp:
    condition = Condition(chance.randrange(8))
    return isa.Cmp(
        chance.randrange(4), chance.randrange(4), chance.randrange(4), condition,
        chance.randrange(factors),
    )  # fmt: skip


def execute(
    program: Sequence[isa.Instruction],
    tag: int,
    outcome: Callable[[int, isa.Cmp], bool],
    window_bits: int = 0,
    probe_bits: int = 0,
) -> tuple[list[int], list[tuple[int, int]]]:
    """One pair: the addresses executed, and (address, route tag) of what is joined. `outcome`
    says whether a CMP, the n-th of the program, holds."""
    number = [sum(isa.Cmp is type(i) for i in program[:at]) for at in range(len(program))]
    registers = [False] * isa.REGISTERS
    for bits, group in (
        (window_bits, isa.WINDOW_SELECTION_REGISTERS),
        (probe_bits, isa.PROBE_SELECTION_REGISTERS),
    ):
        for bit, register in enumerate(group):
            registers[register] = bool(bits >> bit & 1)
    registers[isa.TRUE_REGISTER] = True
    executed, joined = [], []
    at, last = 0, len(program) - 1
    while at <= last:
        instruction = program[at]
        executed.append(at)
        following = at + 1
        match instruction:
            case isa.AndRegisters(a, b, r):
                registers[r] = registers[a] and registers[b]
            case isa.OrRegisters(a, b, r):
                registers[r] = registers[a] or registers[b]
            case isa.Cmp(r=r):
                registers[r] = outcome(number[at], instruction)
            case isa.Jmpct(other, to):
                following = following if tag == other else to
            case isa.Jmp(to):
                following = to
            case isa.Jmpli():
                if not any(registers[register] for register in isa.FACTOR_REGISTERS):
                    following = last
            case isa.Emit(r, post):
                if registers[r]:
                    joined.append((at, post))
        at = following
    return executed, joined


def joins(
    program: Sequence[isa.Instruction],
    tag: int,
    variables: Sequence[int],
    always: Sequence[int] = (),
) -> list[tuple[int, int]]:
    """Returns the route tag and the truth table of each JOIN that a tag's probes reach. Bit n says
    whether it joins if the variables are the bits of n. A variable is a factor, or from 16 on a
    selection bit, as in `AreaProgram.rows`. All others are 0, or 1 if listed in `always`."""
    number = {at: n for n, at in enumerate(a for a, i in enumerate(program) if type(i) is isa.Cmp)}
    every = (1 << (1 << len(variables))) - 1
    value = truth_tables(variables) | dict.fromkeys(always, every)
    selections = (*isa.WINDOW_SELECTION_REGISTERS, *isa.PROBE_SELECTION_REGISTERS)
    registers = [0] * isa.REGISTERS
    for n, register in enumerate(selections, 16):
        registers[register] = value.get(n, 0)
    registers[isa.TRUE_REGISTER] = runs = every
    found, at = [], 0
    while at < len(program):
        following = at + 1
        match program[at]:
            case isa.Cmp(condition=condition, r=r):
                fixed = {Condition.TRUE: every, Condition.FALSE: 0}
                registers[r] = fixed.get(condition, value.get(number[at], 0))
            case isa.AndRegisters(a, b, r):
                registers[r] = registers[a] & registers[b]
            case isa.OrRegisters(a, b, r):
                registers[r] = registers[a] | registers[b]
            case isa.Jmpct(other, to) if other != tag:
                following = to
            case isa.Jmp(to):
                following = to
            case isa.Jmpli():
                some = 0
                for register in isa.FACTOR_REGISTERS:
                    some |= registers[register]
                runs &= some
            case isa.Emit(r, post):
                found.append((post, registers[r] & runs))
        at = following
    return found


def truth_tables(variables: Sequence[int]) -> dict[int, int]:
    """Returns the truth table of each variable: bit n is the bit of the variable in n."""
    every, tables = (1 << (1 << len(variables))) - 1, {}
    for place, variable in enumerate(variables):
        half = 1 << place
        tables[variable] = every // ((1 << half) + 1) << half
    return tables


def read(program: Sequence[isa.Instruction]) -> list[int]:
    """Returns the variables that a program may depend on."""
    selections = (*isa.WINDOW_SELECTION_REGISTERS, *isa.PROBE_SELECTION_REGISTERS)
    used: set[int] = set()
    for it in program:
        if isinstance(it, (isa.AndRegisters, isa.OrRegisters)):
            used |= {it.a, it.b}
        elif isinstance(it, isa.Emit):
            used.add(it.r)
    compares = [it for it in program if isinstance(it, isa.Cmp)]
    fixed = (Condition.TRUE, Condition.FALSE)
    factors = [n for n, it in enumerate(compares) if it.condition not in fixed]
    return factors + [n for n, register in enumerate(selections, 16) if register in used]


def places_of(attributes: list[int], config: DeviceConfig) -> list[dict[str, int]]:
    """Of factors by their window attributes: which comparator each comes to, and in which turn. A
    comparator does one in a turn, and serves only attributes of its kind."""
    kinds = min(4, config.comparators)
    taken: set[tuple[int, int]] = set()
    places: list[dict[str, int]] = []
    for attribute in attributes:
        its = range(attribute % kinds, config.comparators, kinds)
        place = next((t, c) for t in range(16) for c in its if (t, c) not in taken)
        taken.add(place)
        places.append({"comparator": place[1], "turn": place[0]})
    return places


def probes_compared(last_turn: int) -> int:
    """Probes whose comparisons a comparator keeps at once, where a row takes so many turns and one more: it
    has room for 32 comparisons."""
    turns = next(power for power in (1, 2, 4, 8, 16) if last_turn < power)
    return 32 // turns
