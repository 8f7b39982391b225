"""Derives from a program, without running it, what the tables of an area need.

Except for JMPLI, a probe tuple's route tag fixes its path through the program. For each tag the factors that
matter are therefore known: a pair in which none of them holds joins nothing. So are the factors that must hold
together: the program only combines factors by AND and OR, so if every selection is assumed to hold, its
join condition is a disjunction of conjunctions of factors. With the selections included, this is everything
that the program does (`AreaProgram.rows`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from seustream.hdl import isa
from seustream.hdl.isa import Condition

# Assumed percentage of pairs for which a comparison holds: of two factors that a JOIN needs, the rarer one
# decides which pairs are executed.
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
"""Factors of which at least one holds whenever a register is 1; None: it can be 1 without any."""

Term = frozenset[int]
"""Factors that hold together."""
Terms = frozenset[Term]
"""Terms at least one of which holds. No term contains another."""
_NEVER: Terms = frozenset()
_ALWAYS: Terms = frozenset([frozenset()])
_MANY = 32
"""Limit of the terms of a register; beyond it they are weakened, for there could be thousands."""
_FACTORS = len(isa.FACTOR_REGISTERS)
_SELECTED = (*isa.WINDOW_SELECTION_REGISTERS, *isa.PROBE_SELECTION_REGISTERS)


@dataclass(frozen=True, slots=True)
class JoinRow:
    """A conjunction under which a pair joins: factors by number; from 16 on, the selection bits of the
    window tuple, then those of the probe. `first` marks the first row of a JOIN."""

    needs: Term
    tag: int
    first: bool


class _TooManyRows(Exception):
    """There are more rows than allowed."""


class AreaProgram:
    """An area's program. Its factors are its CMPs, numbered from 0 in order of address."""

    def __init__(self, words: tuple[int, ...]) -> None:
        self.instructions = [isa.decode(word) for word in words]
        addresses = [a for a, i in enumerate(self.instructions) if isinstance(i, isa.Cmp)]
        self._factor = {address: number for number, address in enumerate(addresses)}
        self.compares = [i for i in self.instructions if isinstance(i, isa.Cmp)]
        self._holds = [_OFTEN[Condition(compare.condition)] / 100 for compare in self.compares]
        self._apart = {i.tag for i in self.instructions if isinstance(i, isa.Jmpct)}
        self._covers: dict[int | None, Cover] = {}
        self._terms: dict[tuple[int | None, int], Terms] = {}

    def path(self, tag: int) -> Iterator[tuple[int, isa.Instruction]]:
        """Yields the addresses and instructions that a probe of this tag executes, if no JMPLI jumps."""
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

    def _alike(self, tag: int) -> int | None:
        """Returns the same for tags with the same path: few of all tags have one of their own."""
        return tag if tag in self._apart else None

    def interest(self, tag: int) -> Cover:
        """Finds factors at least one of which holds in every pair that this tag joins."""
        key = self._alike(tag)
        if key not in self._covers:
            self._covers[key] = self._interest(tag)
        return self._covers[key]

    def _interest(self, tag: int) -> Cover:
        covers: dict[int, Cover] = dict.fromkeys(range(isa.REGISTERS), frozenset())
        for reads_more in (isa.WINDOW_SELECTION_REGISTERS, isa.PROBE_SELECTION_REGISTERS):
            covers.update(dict.fromkeys(reads_more))
        covers[isa.TRUE_REGISTER] = None
        passed: Cover = None  # cover of the pairs that no JMPLI so far has dropped
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
        """Finds at most `most` conjunctions of factors, one of which holds in every pair that this tag
        joins. If there are more, some are replaced by their common factors."""
        key = self._alike(tag), most
        if key not in self._terms:
            self._terms[key] = self._conjunctions(tag, most)
        return self._terms[key]

    def _conjunctions(self, tag: int, most: int) -> Terms:
        may_hold = dict.fromkeys(_SELECTED, _ALWAYS)
        found = _NEVER
        for _, terms in self._joined(tag, may_hold, lambda terms: self._weaker(terms, _MANY)):
            found = self._weaker(_least({*found, *terms}), _MANY)
        return self._weaker(found, most)

    def rows(self, tag: int, most: int) -> list[JoinRow] | None:
        """Lists a row for each conjunction of each JOIN of this tag, in order: together exactly what the program
        joins. A JOIN takes part once, if the pair has everything that one of its rows needs. Returns None if
        there are more than `most` rows."""

        def bound(terms: Terms) -> Terms:
            if len(terms) > most:
                raise _TooManyRows
            return terms

        selected = {r: frozenset([frozenset([n])]) for n, r in enumerate(_SELECTED, _FACTORS)}
        try:
            joined = list(self._joined(tag, selected, bound))
        except _TooManyRows:
            return None
        rows = [
            JoinRow(term, emitted, number == 0)
            for emitted, terms in joined
            for number, term in enumerate(sorted(terms, key=sorted))
        ]
        return rows if len(rows) <= most else None

    def _joined(
        self, tag: int, selected: dict[int, Terms], bound: Callable[[Terms], Terms]
    ) -> Iterator[tuple[int, Terms]]:
        """Yields route tag and conjunctions of each JOIN on a tag's path. `bound` is applied to every combination."""

        def both(a: Terms, b: Terms) -> Terms:
            return bound(_least({x | y for x in a for y in b}))

        def either(*terms: Terms) -> Terms:
            return bound(_least(set().union(*terms)))

        registers = dict.fromkeys(range(isa.REGISTERS), _NEVER) | selected
        registers[isa.TRUE_REGISTER] = _ALWAYS
        passed = _ALWAYS
        for address, instruction in self.path(tag):
            match instruction:
                case isa.Cmp(condition=Condition.FALSE, r=r):
                    registers[r] = _NEVER
                case isa.Cmp(condition=Condition.TRUE, r=r):
                    registers[r] = _ALWAYS
                case isa.Cmp(r=r):
                    registers[r] = frozenset([frozenset([self._factor[address]])])
                case isa.AndRegisters(a, b, r):
                    registers[r] = both(registers[a], registers[b])
                case isa.OrRegisters(a, b, r):
                    registers[r] = either(registers[a], registers[b])
                case isa.Jmpli():
                    passed = both(passed, either(*(registers[r] for r in isa.FACTOR_REGISTERS)))
                case isa.Emit(r, emitted):
                    yield emitted, both(registers[r], passed)

    def _weaker(self, terms: Terms, most: int) -> Terms:
        """Replaces two terms at a time by their common factors until at most `most` are left, first the two whose
        common factors hold least often."""
        while len(terms) > most:
            pairs = itertools.combinations(sorted(terms, key=sorted), 2)
            a, b = min(pairs, key=lambda pair: self._share(pair[0] & pair[1]))
            terms = _least({*terms} - {a, b} | {a & b})
        return terms

    def _share(self, term: Term) -> float:
        """Estimates the share of pairs in which all factors of a term hold."""
        return math.prod(self._holds[factor] for factor in term)

    def _rarer(self, a: Cover, b: Cover) -> Cover:
        """Combines the covers of a conjunction: if both registers are 1, either cover serves."""
        return min((a, b), key=self._often)

    def _often(self, cover: Cover) -> float:
        if cover is None:
            return float("inf")
        return sum(_OFTEN[Condition(self.compares[factor].condition)] for factor in cover)


def _either(a: Cover, b: Cover) -> Cover:
    return None if a is None or b is None else a | b


def _least(terms: set[Term]) -> Terms:
    """Drops terms that contain another one: whenever they hold, the other does."""
    kept: list[Term] = []
    for term in sorted(terms, key=len):
        if not any(other <= term for other in kept):
            kept.append(term)
    return frozenset(kept)
