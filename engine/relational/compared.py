"""The comparisons between the two sides of a join, as numbers.

Keys are the values of all equalities, which lead to partners; a kernel makes the other comparisons
for pairs. What has a fault in some row is neither: the whole condition decides where faults count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.logical.joins import TreeJoin, visible
from seustream.engine.host.links import JoinLink, between
from seustream.engine.kernels import native
from seustream.engine.relational.combinations import Ints, TreeSources
from seustream.engine.relational.keyed import Keyed
from seustream.engine.stream.evaluate import evaluate
from seustream.engine.stream.numbers import (
    Key,
    Numbers,
    all_of,
    converted,
    has_numbers,
    numbers,
    picked,
    together,
)
from seustream.hdl.isa import Condition

_MANY = 1024
"""A side is large from this many combinations on."""


class _Keys:
    """The keys of one side, by place: equal where all equalities hold; none where one lacks a value."""

    def __init__(self) -> None:
        self.of = Keyed()
        self.in_doubt = False
        """Whether some equality has a fault in some combination."""

    def __len__(self) -> int:
        return len(self.of)

    @property
    def are_known(self) -> bool:
        return bool(len(self)) and not self.in_doubt

    def append(self, keys: Numbers, doubtful: bool = False) -> None:
        self.of.append(keys)
        self.in_doubt |= doubtful

    def keep(self, stays: Ints) -> None:
        before, doubtful = self.of, self.in_doubt
        self.of, self.in_doubt = Keyed(), False
        if not doubtful:  # else all are computed anew, perhaps without the row that has the fault
            self.append(before.at(stays))


@dataclass(frozen=True, slots=True)
class PairTests:
    """The tests of a pair: it must meet all `tests`, those in one of the `ways`, and all `others`. Some of the
    others have formulas. A condition with faults is among the others and has none: all conditions
    decide in which pairs they count."""

    tests: list[native.Test]
    ways: list[list[native.Test]]
    formulas: dict[x.Expression, native.PairFormula]
    others: tuple[x.Expression, ...]

    def by(self, way: list[native.Test], probes: Ints) -> tuple[native.Test, ...]:
        """Returns the tests in one way, for some probes."""
        return tuple(
            (op, values, flags, *picked((ours, valid), probes))
            for op, values, flags, ours, valid in (*self.tests, *way)
        )

    def formulas_for(self, probes: Ints) -> tuple[native.PairFormula, ...]:
        return tuple(
            (steps, theirs, tuple(picked(column, probes) for column in ours))
            for steps, theirs, ours in self.formulas.values()
        )

    def without_formulas(self) -> PairTests:
        """Returns the same without formulas, for pairs in which one has no value."""
        return replace(self, formulas={})

    @property
    def unknown(self) -> tuple[x.Expression, ...]:
        """The others without a formula."""
        return tuple(e for e in self.others if e not in self.formulas)


class Comparisons:
    """The conditions of a join that compare its sides, and the keys of the combinations that it
    keeps. Keys are computed once for each combination."""

    def __init__(self, join: TreeJoin, frame: TreeSources) -> None:
        self.frame, self.conjuncts = frame, x.conjuncts(join.condition)
        self.equalities = list(equalities(join))
        sides = frozenset(visible(join.left)), frozenset(visible(join.right))
        self.search = between(self.conjuncts, *sides)
        self._by = [pair for pair in self.equalities if has_numbers(pair[0].type)]
        self._are_all = len(self._by) == len(self.equalities)
        self.codes = native.Codes()
        self.keys = (_Keys(), _Keys())

    # --- keys -----------------------------------------------------------------

    def follow(self, sides: tuple[Ints, Ints]) -> None:
        """Takes the keys of combinations that are new at the end of a side."""
        for side, (keys, rows) in enumerate(zip(self.keys, sides, strict=True)):
            new = rows[len(keys) :]
            if self._by and len(new):
                doubts = Faults()
                keys.append(self._keys_of(side, new, doubts), bool(doubts.total))

    def keys_of(self, side: int, rows: Ints) -> Numbers:
        """Returns the keys of combinations of a side. What has a fault equals nothing, and without an
        equality all are equal."""
        if self.equalities and self._are_all:
            return self._keys_of(side, rows, Faults())
        flags = np.full(len(rows), not self.equalities, np.uint8)
        return np.zeros(len(rows), np.int64), flags

    def _keys_of(self, side: int, rows: Ints, doubts: Faults) -> Numbers:
        columns = [numbers(self._value(e[side], rows, doubts), self.codes) for e in self._by]
        return together(columns, self.codes)

    def keep(self, side: int, stays: Ints) -> None:
        """Forgets the keys of combinations other than these, which get the places from 0 up."""
        if len(self.keys[side]):
            self.keys[side].keep(stays)

    @property
    def is_crowded(self) -> bool:
        """Returns whether most of the texts that have codes belong to no combination any more."""
        return self.codes.count() > 4096 + 4 * sum(map(len, self.keys))

    def begin(self) -> None:
        """Forgets all keys; `follow` computes them anew."""
        self.codes, self.keys = native.Codes(), (_Keys(), _Keys())

    def partners(self, side: int, others: Ints) -> Ints | None:
        """Returns the places on a side that have the keys of some combinations on the other, in order;
        None if that is not known, or not worth the search."""
        mine, theirs = self.keys[side], self.keys[1 - side]
        if not mine.are_known or not theirs.are_known or len(mine) < max(_MANY, 4 * len(others)):
            return None
        return mine.of.places(theirs.of.distinct(others))

    def known(self, some: Ints, others: Ints) -> tuple[Ints, Ints] | None:
        """Returns numbers as `equal` does, for combinations at these places of the left and the right
        side, if their keys are known and no equality lacks numbers."""
        if not all(keys.are_known for keys in self.keys) or not self._are_all:
            return None
        sides = [keys.of.at(at) for keys, at in zip(self.keys, (some, others), strict=True)]
        values = np.concatenate([values for values, _ in sides])
        found = np.asarray(pa.array(values).dictionary_encode().indices).astype(np.int64)
        if any(flags is not None for _, flags in sides):
            valid = [np.ones(len(of), np.uint8) if flags is None else flags for of, flags in sides]
            found = np.where(np.concatenate(valid), found, -1)
        return found[: len(some)], found[len(some) :]

    def equal(self, left: Ints, right: Ints, doubtful: bool = False) -> tuple[Ints, Ints] | None:
        """Returns numbers that are equal where all equalities hold, -1 where one has NULL; None if
        there is no equality. Equalities with faults are included only if `doubtful`."""
        found: Ints | None = None
        valid = np.ones(len(left) + len(right), np.bool_)
        for mine, theirs in self.equalities:
            doubts = Faults()
            values = [
                self._value(mine, left, doubts),
                self._value(theirs, right, doubts),
            ]
            if doubts.total and not doubtful:
                continue  # the whole condition decides in which pairs they count
            indices = pa.concat_arrays(values).dictionary_encode().indices.fill_null(-1)
            one = np.asarray(indices).astype(np.int64)
            valid &= one >= 0
            one = np.maximum(one, 0)
            if found is None:
                found = one
            else:
                found = np.unique(found * (one.max(initial=0) + 1) + one, return_inverse=True)[1]
        if found is None:
            return None
        found = np.where(valid, found, -1)
        return found[: len(left)], found[len(left) :]

    # --- pairs ----------------------------------------------------------------

    def tests(self, left: Ints, right: Ints) -> PairTests:
        """Returns how the conditions are tested for pairs of some combinations."""
        codes, rest = native.Codes(), list(self.conjuncts)

        def column(key: Key, rows: Ints) -> Numbers | None:
            doubts = Faults()
            value = self._value(converted(key), rows, doubts)
            return None if doubts.total else numbers(value, codes)

        def tested(links: Iterable[JoinLink]) -> list[native.Test] | None:
            found: list[native.Test] = []
            for link in links:
                theirs, ours = (
                    column((e, link.of), rows)
                    for e, rows in ((link.theirs, right), (link.ours, left))
                )
                if theirs is None or ours is None:
                    return None
                found.append((int(link.op), *theirs, *link.compared(ours)))
            return found

        tests: list[native.Test] = []
        for link in self.search.links:
            if (one := tested([link])) is not None:
                tests += one
                if link.apart is None:
                    rest.remove(link.conjunct)
        ways: list[list[native.Test]] = [[]]
        if (choice := self.search.choice) is not None:
            some = [tested(way) for way in choice.ways]
            known = [way for way in some if way is not None]
            if len(known) == len(some):
                ways = known
                if choice.exact:
                    rest.remove(choice.condition)
        formulas: dict[x.Expression, native.PairFormula] = {}
        for formula in self.search.formulas:
            if formula.condition not in rest:
                continue
            theirs_ = all_of([column(key, right) for key in formula.theirs])
            ours_ = all_of([column(key, left) for key in formula.ours])
            if theirs_ is not None and ours_ is not None:
                formulas[formula.condition] = formula.steps, theirs_, ours_
        return PairTests(tests, ways, formulas, tuple(rest))

    def _value(self, e: x.Expression, rows: Ints, doubts: Faults) -> pa.Array:
        value = evaluate(e, self.frame.leaves(e, rows), len(rows), doubts)
        if pa.types.is_floating(value.type):
            value = pc.add(value, pa.scalar(0.0, value.type))  # -0.0 equals 0.0
        return value


def equalities(join: TreeJoin) -> Iterator[tuple[x.Expression, x.Expression]]:
    """Yields pairs of expressions, left and right, that are equal wherever the sides match."""
    left, right = frozenset(visible(join.left)), frozenset(visible(join.right))
    for e in x.conjuncts(join.condition):
        if not (isinstance(e, x.Compare) and e.condition is Condition.EQ):
            continue
        sides = [
            side if side.type == e.of else x.Cast(side, e.of, quiet=True)
            for side in (e.left, e.right)
        ]
        for mine, theirs in (sides, sides[::-1]):
            reads = x.sources(mine), x.sources(theirs)
            if all(reads) and reads[0] <= left and reads[1] <= right:
                yield mine, theirs
