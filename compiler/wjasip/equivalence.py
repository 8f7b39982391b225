"""Proves that the rows of an area join what its program joins.

For each route tag, a loader derives from a program the conditions under which a pair joins
(`AreaProgram.rows`), and the processor then decides by these rows. Here the program is executed
once more, instruction by instruction and independently of the loader, on decision diagrams in place
of bits. Equal functions are the same diagram, so the comparison covers every outcome of the factors
and every selection.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seustream.hdl import isa
from seustream.hdl.isa import Condition
from seustream.hdl.program import JoinRow

NEVER, ALWAYS = 0, 1
"""The diagrams of the two constants."""
MOST = 1 << 17
"""The most diagrams of one route tag. The largest query sets need some hundreds."""


class TooIntricate(Exception):
    """The proof would need too many diagrams."""


class Diagrams:
    """Reduced ordered decision diagrams. A diagram is a number, and equal functions have the same
    one.

    `order` lists variables in the order in which diagrams test them; others follow as they appear.
    Diagrams of rows stay small if the variables of a row are adjacent.
    """

    def __init__(self, order: Sequence[int], most: int = MOST) -> None:
        self._most = most
        self._place: dict[int, int] = {}
        for variable in order:
            self._place.setdefault(variable, len(self._place))
        # By diagram: the place of the variable it tests, and the diagrams for its values 0 and 1.
        self._nodes: list[tuple[int, int, int]] = [(1 << 30, 0, 0), (1 << 30, 1, 1)]
        self._numbers: dict[tuple[int, int, int], int] = {}
        self._known: dict[tuple[bool, int, int], int] = {}

    def variable(self, number: int) -> int:
        place = self._place.setdefault(number, len(self._place))
        return self._node(place, NEVER, ALWAYS)

    def both(self, a: int, b: int) -> int:
        return self._combined(True, a, b)

    def either(self, a: int, b: int) -> int:
        return self._combined(False, a, b)

    def _node(self, place: int, low: int, high: int) -> int:
        if low == high:
            return low
        node = place, low, high
        number = self._numbers.get(node)
        if number is None:
            if len(self._nodes) == self._most:
                raise TooIntricate
            number = self._numbers[node] = len(self._nodes)
            self._nodes.append(node)
        return number

    def _combined(self, conjunction: bool, a: int, b: int) -> int:
        if a > b:
            a, b = b, a
        if a == b:
            return a
        if a <= ALWAYS:
            return (b if a == ALWAYS else NEVER) if conjunction else (ALWAYS if a == ALWAYS else b)
        key = conjunction, a, b
        found = self._known.get(key)
        if found is None:
            (place, low, high), (other, other_low, other_high) = self._nodes[a], self._nodes[b]
            if place > other:
                place, low, high, other_low, other_high = other, a, a, other_low, other_high
            elif place < other:
                other_low = other_high = b
            found = self._known[key] = self._node(
                place,
                self._combined(conjunction, low, other_low),
                self._combined(conjunction, high, other_high),
            )
        return found


def join_alike(
    program: Sequence[isa.Instruction], tag: int, rows: Sequence[JoinRow], most: int = MOST
) -> bool:
    """Returns whether the rows join what the program joins for a route tag: JOIN by JOIN the same
    pairs, as the same route tags, in the same order. Raises TooIntricate if that takes more than
    `most` diagrams."""
    diagrams = Diagrams([need for row in rows for need in sorted(row.needs)], most)
    return list(_by_rows(rows, diagrams)) == list(_by_program(program, tag, diagrams))


def _by_rows(rows: Sequence[JoinRow], diagrams: Diagrams) -> Iterator[tuple[int, int]]:
    """Yields the route tag of each JOIN and the condition under which it joins."""
    tag, when = 0, NEVER
    for row in rows:
        if row.first and when != NEVER:
            yield tag, when
            when = NEVER
        holds = ALWAYS
        for need in sorted(row.needs, reverse=True):
            holds = diagrams.both(diagrams.variable(need), holds)
        tag, when = row.tag, diagrams.either(when, holds)
    if when != NEVER:
        yield tag, when


def _by_program(
    program: Sequence[isa.Instruction], tag: int, diagrams: Diagrams
) -> Iterator[tuple[int, int]]:
    """Yields the same for each JOIN that a tag's probes reach and that ever joins."""
    factors = [address for address, it in enumerate(program) if isinstance(it, isa.Cmp)]
    selections = (*isa.WINDOW_SELECTION_REGISTERS, *isa.PROBE_SELECTION_REGISTERS)
    registers = [NEVER] * isa.REGISTERS
    for number, register in enumerate(selections, len(isa.FACTOR_REGISTERS)):
        registers[register] = diagrams.variable(number)
    registers[isa.TRUE_REGISTER] = runs = ALWAYS
    address = 0
    while address < len(program):
        at, address = address, address + 1
        match program[at]:
            case isa.Cmp(condition=condition, r=r):
                fixed = {Condition.FALSE: NEVER, Condition.TRUE: ALWAYS}.get(Condition(condition))
                variable = diagrams.variable(factors.index(at))
                registers[r] = variable if fixed is None else fixed
            case isa.AndRegisters(a, b, r):
                registers[r] = diagrams.both(registers[a], registers[b])
            case isa.OrRegisters(a, b, r):
                registers[r] = diagrams.either(registers[a], registers[b])
            case isa.Jmp(to):
                address = to
            case isa.Jmpct(other, to) if other != tag:
                address = to
            case isa.Jmpli():
                some = NEVER
                for register in isa.FACTOR_REGISTERS:
                    some = diagrams.either(some, registers[register])
                runs = diagrams.both(runs, some)
            case isa.Emit(r, emitted):
                joins = diagrams.both(registers[r], runs)
                if joins != NEVER:
                    yield emitted, joins
