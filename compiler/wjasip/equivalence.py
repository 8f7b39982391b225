"""Proves what a loader derives from an area's program.

For each route tag, a loader derives from a program the conditions under which a pair joins
(`AreaProgram.rows`), by which the processor decides, and masks that are less exact, by which the
lanes drop pairs before that (`interest_mask`, `term_masks`). Here the program is executed once more,
instruction by instruction and independently of the loader, on functions in place of bits.

Rows have to equal the program: the functions are decision diagrams, and equal functions are the same
diagram. So the comparison covers every outcome of the factors and every selection. Masks may let
more pairs through, but may lose none. A program has no NOT, so a pair joins most easily if all its
selections hold. That leaves functions of at most 16 factors, whose truth tables are numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Protocol

from seustream.hdl import isa
from seustream.hdl.isa import Condition
from seustream.hdl.program import JoinRow

NEVER, ALWAYS = 0, 1
"""The diagrams of the two constants."""
MOST = 1 << 17
"""The most diagrams of one route tag. The largest query sets need some hundreds."""


class TooIntricate(Exception):
    """The proof would need too many diagrams."""


class Functions(Protocol):
    """Functions of factors and selections, each a number. `NEVER` is the same in all."""

    always: int

    def variable(self, number: int) -> int:
        """Gives a factor; from 16 on, a selection bit as in `JoinRow`."""

    def both(self, a: int, b: int) -> int: ...

    def either(self, a: int, b: int) -> int: ...


class Diagrams:
    """Reduced ordered decision diagrams. A diagram is a number, and equal functions have the same
    one.

    `order` lists variables in the order in which diagrams test them; others follow as they appear.
    Diagrams of rows stay small if the variables of a row are adjacent.
    """

    always = ALWAYS

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


class TruthTables:
    """Truth tables over so many factors, all selections being true: bit n is the value for the factors
    whose bits are those of n."""

    def __init__(self, factors: int) -> None:
        self._variables = _truth_tables(factors)
        self.always = (1 << (1 << factors)) - 1

    def variable(self, number: int) -> int:
        return self._variables[number] if number < len(self._variables) else self.always

    def both(self, a: int, b: int) -> int:
        return a & b

    def either(self, a: int, b: int) -> int:
        return a | b


@functools.cache
def _truth_tables(variables: int) -> list[int]:
    always = (1 << (1 << variables)) - 1
    return [always // ((1 << (1 << n)) + 1) << (1 << n) for n in range(variables)]


def losing(
    program: Sequence[isa.Instruction], tag: int, interest: int | None, terms: Sequence[int]
) -> str | None:
    """Returns which of the masks, `interest` or `terms`, would drop a pair that the program joins for
    a route tag; None if neither would."""
    compares = [it for it in program if isinstance(it, isa.Cmp)]
    tables = TruthTables(len(compares))
    held = [_outcome(compare, number, tables) for number, compare in enumerate(compares)]
    held += [NEVER] * (len(isa.FACTOR_REGISTERS) - len(held))  # of factors that are not there
    joins = functools.reduce(tables.either, (it for _, it in _by_program(program, tag, tables)), 0)

    def of(mask: int) -> list[int]:
        return [outcome for number, outcome in enumerate(held) if mask >> number & 1]

    whole = (functools.reduce(tables.both, of(term), tables.always) for term in terms)
    if joins & ~functools.reduce(tables.either, whole, NEVER):
        return "terms"
    if interest is not None and joins & ~functools.reduce(tables.either, of(interest), NEVER):
        return "interest"
    return None


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
    program: Sequence[isa.Instruction], tag: int, functions: Functions
) -> Iterator[tuple[int, int]]:
    """Yields the same for each JOIN that a tag's probes reach and that ever joins."""
    factors = [address for address, it in enumerate(program) if isinstance(it, isa.Cmp)]
    selections = (*isa.WINDOW_SELECTION_REGISTERS, *isa.PROBE_SELECTION_REGISTERS)
    registers = [NEVER] * isa.REGISTERS
    for number, register in enumerate(selections, len(isa.FACTOR_REGISTERS)):
        registers[register] = functions.variable(number)
    registers[isa.TRUE_REGISTER] = runs = functions.always
    address = 0
    while address < len(program):
        at, address = address, address + 1
        match program[at]:
            case isa.Cmp(r=r) as compare:
                registers[r] = _outcome(compare, factors.index(at), functions)
            case isa.AndRegisters(a, b, r):
                registers[r] = functions.both(registers[a], registers[b])
            case isa.OrRegisters(a, b, r):
                registers[r] = functions.either(registers[a], registers[b])
            case isa.Jmp(to):
                address = to
            case isa.Jmpct(other, to) if other != tag:
                address = to
            case isa.Jmpli():
                some = NEVER
                for register in isa.FACTOR_REGISTERS:
                    some = functions.either(some, registers[register])
                runs = functions.both(runs, some)
            case isa.Emit(r, emitted):
                joins = functions.both(registers[r], runs)
                if joins != NEVER:
                    yield emitted, joins


def _outcome(compare: isa.Cmp, number: int, functions: Functions) -> int:
    match Condition(compare.condition):
        case Condition.FALSE:
            return NEVER
        case Condition.TRUE:
            return functions.always
    return functions.variable(number)
