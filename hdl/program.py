"""Derives from a program, without running it, what a loader needs.

A probe tuple's route tag fixes its path through the program, but for JMPLI. So for each
tag one can say which factors matter: a pair in which none of them holds joins nothing. And
which must hold together: the program only ever combines factors by AND and OR, so what it
joins is a disjunction of conjunctions of them, if every selection is taken to hold.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from seustream.hdl import isa
from seustream.hdl.isa import Condition

# How often a comparison is thought to hold: of two factors a JOIN needs, the rarer decides
# which pairs are looked at closer.
_OFTEN = {
    Condition.FALSE: 0,
    Condition.EQ: 1,
    Condition.LT: 50,
    Condition.GT: 50,
    Condition.LE: 50,
    Condition.GE: 50,
    Condition.NE: 99,
    Condition.TRUE: 100,
}

Cover = frozenset[int] | None
"""Factors of which at least one holds wherever a register is 1; None: it can be 1 without."""

Term = frozenset[int]
"""Factors that hold together."""
Terms = frozenset[Term]
"""At least one of these does. None of them contains another."""
_NEVER: Terms = frozenset()
_ALWAYS: Terms = frozenset([frozenset()])
_MANY = 32
"""Terms of a register; more are weakened, for there could be thousands."""


class AreaProgram:
    """An area's program. Factors are its CMPs, counted from 0 in order of address."""

    def __init__(self, words: tuple[int, ...]) -> None:
        self.instructions = [isa.decode(word) for word in words]
        addresses = [a for a, i in enumerate(self.instructions) if isinstance(i, isa.Cmp)]
        self._factor = {address: number for number, address in enumerate(addresses)}
        compares = (i for i in self.instructions if isinstance(i, isa.Cmp))
        self._holds = [_OFTEN[Condition(compare.condition)] / 100 for compare in compares]

    def path(self, tag: int) -> Iterator[tuple[int, isa.Instruction]]:
        """Addresses and instructions a probe of this tag executes, if no JMPLI leaves."""
        address = 0
        while address < len(self.instructions):
            instruction = self.instructions[address]
            yield address, instruction
            address += 1
            if isinstance(instruction, isa.Jmp) or (
                isinstance(instruction, isa.Jmpct) and instruction.tag != tag
            ):
                address = instruction.address

    def joins(self, tag: int) -> bool:
        return any(isinstance(instruction, isa.Emit) for _, instruction in self.path(tag))

    def interest(self, tag: int) -> Cover:
        """Factors of which one at least holds in every pair this tag joins."""
        covers: dict[int, Cover] = dict.fromkeys(range(isa.REGISTERS), frozenset())
        for reads_more in (isa.WINDOW_SELECTION_REGISTERS, isa.PROBE_SELECTION_REGISTERS):
            covers.update(dict.fromkeys(reads_more))
        covers[isa.TRUE_REGISTER] = None
        passed: Cover = None  # what the last JMPLI let through
        found: Cover = frozenset()
        for address, instruction in self.path(tag):
            match instruction:
                case isa.Cmp(condition=condition, r=r):
                    never = condition == Condition.FALSE
                    covers[r] = frozenset() if never else frozenset((self._factor[address],))
                case isa.AndRegisters(a, b, r):
                    covers[r] = self._rarer(covers[a], covers[b])
                case isa.OrRegisters(a, b, r):
                    covers[r] = _either(covers[a], covers[b])
                case isa.Jmpli():
                    some: Cover = frozenset()
                    for register in isa.FACTOR_REGISTERS:
                        some = _either(some, covers[register])
                    passed = self._rarer(passed, some)
                case isa.Emit(r):
                    found = _either(found, self._rarer(covers[r], passed))
        return found

    def terms(self, tag: int, most: int) -> Terms:
        """Conjunctions of factors, at most so many, of which one holds in every pair this tag
        joins. Where there are more, some give way to what they have in common."""
        registers: dict[int, Terms] = dict.fromkeys(range(isa.REGISTERS), _NEVER)
        for may_hold in (isa.WINDOW_SELECTION_REGISTERS, isa.PROBE_SELECTION_REGISTERS):
            registers.update(dict.fromkeys(may_hold, _ALWAYS))
        registers[isa.TRUE_REGISTER] = _ALWAYS
        passed, found = _ALWAYS, _NEVER
        for address, instruction in self.path(tag):
            match instruction:
                case isa.Cmp(condition=Condition.FALSE, r=r):
                    registers[r] = _NEVER
                case isa.Cmp(condition=Condition.TRUE, r=r):
                    registers[r] = _ALWAYS
                case isa.Cmp(r=r):
                    registers[r] = frozenset([frozenset([self._factor[address]])])
                case isa.AndRegisters(a, b, r):
                    registers[r] = self._both(registers[a], registers[b])
                case isa.OrRegisters(a, b, r):
                    registers[r] = self._any(registers[a], registers[b])
                case isa.Jmpli():
                    some = self._any(*(registers[r] for r in isa.FACTOR_REGISTERS))
                    passed = self._both(passed, some)
                case isa.Emit(r):
                    found = self._any(found, self._both(registers[r], passed))
        return self._weaker(found, most)

    def _both(self, a: Terms, b: Terms) -> Terms:
        return self._weaker(_least({x | y for x in a for y in b}), _MANY)

    def _any(self, *terms: Terms) -> Terms:
        return self._weaker(_least(set().union(*terms)), _MANY)

    def _weaker(self, terms: Terms, most: int) -> Terms:
        """Two at a time are replaced by what they have in common, those first of which the
        most is left."""
        while len(terms) > most:
            pairs = itertools.combinations(sorted(terms, key=sorted), 2)
            a, b = min(pairs, key=lambda pair: self._share(pair[0] & pair[1]))
            terms = _least({*terms} - {a, b} | {a & b})
        return terms

    def _share(self, term: Term) -> float:
        """Of how many pairs all of these are thought to hold."""
        return math.prod(self._holds[factor] for factor in term)

    def _rarer(self, a: Cover, b: Cover) -> Cover:
        """Combines two covers of a conjunction: where both registers are 1, either serves."""
        return min((a, b), key=self._often)

    def _often(self, cover: Cover) -> float:
        if cover is None:
            return float("inf")
        compares = (self.instructions[a] for a, n in self._factor.items() if n in cover)
        return sum(_OFTEN[Condition(c.condition)] for c in compares if isinstance(c, isa.Cmp))


def _either(a: Cover, b: Cover) -> Cover:
    return None if a is None or b is None else a | b


def _least(terms: set[Term]) -> Terms:
    """Without those that contain another one: where they hold, that does."""
    kept: list[Term] = []
    for term in sorted(terms, key=len):
        if not any(other <= term for other in kept):
            kept.append(term)
    return frozenset(kept)
