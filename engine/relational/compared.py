"""The comparisons between the two sides of a join, as numbers.

Keys are the values of all equalities, which lead to partners; a kernel makes the other comparisons
for pairs. What has a fault in some row is neither: the whole condition decides where faults count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.logical.joins import TreeJoin, visible
from seustream.engine.host.links import JoinLink, apart, choice_of
from seustream.engine.kernels import native
from seustream.engine.relational.combinations import Ints, TreeSources
from seustream.engine.relational.keyed import Keyed
from seustream.engine.stream.evaluate import evaluate
from seustream.engine.stream.numbers import (
    Numbers,
    comparable,
    converted,
    has_numbers,
    numbers,
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


class Comparisons:
    """The conditions of a join that compare its sides, and the keys of the combinations that it
    keeps. Keys are computed once for each combination."""

    def __init__(self, join: TreeJoin, frame: TreeSources) -> None:
        self.frame, self.conjuncts = frame, x.conjuncts(join.condition)
        self.equalities = list(equalities(join))
        found = [_link(e, join) for e in self.conjuncts]
        self.links = [link for link in found if link is not None]
        self.choice = choice_of(self.conjuncts, lambda e: _link(e, join))
        if not self.equalities:
            left, right = frozenset(visible(join.left)), frozenset(visible(join.right))
            self.links += [link for e in self.conjuncts for link in apart(e, right, left)]
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

    def tests(
        self, left: Ints, right: Ints
    ) -> tuple[list[native.Test], list[list[native.Test]], tuple[x.Expression, ...]]:
        """Returns the comparisons of both sides, for the kernel: all of the first must hold, and
        all in one of the second; then the conditions beyond them. A condition with faults is among
        the latter: all conditions decide in which pairs they count."""
        codes, rest = native.Codes(), list(self.conjuncts)

        def tested(links: Iterable[JoinLink]) -> list[native.Test] | None:
            found: list[native.Test] = []
            for link in links:
                doubts = Faults()
                values = [
                    self._value(converted((e, link.of)), rows, doubts)
                    for e, rows in ((link.theirs, right), (link.ours, left))
                ]
                if doubts.total:
                    return None
                theirs, ours = (numbers(value, codes) for value in values)
                found.append((int(link.op), *theirs, *link.compared(ours)))
            return found

        tests: list[native.Test] = []
        for link in self.links:
            if (one := tested([link])) is not None:
                tests += one
                if link.apart is None:
                    rest.remove(link.conjunct)
        if self.choice is None:
            return tests, [[]], tuple(rest)
        some = [tested(way) for way in self.choice.ways]
        ways = [way for way in some if way is not None]
        if len(ways) < len(some):
            return tests, [[]], tuple(rest)
        if self.choice.exact:
            rest.remove(self.choice.condition)
        return tests, ways, tuple(rest)

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


def _link(e: x.Expression, join: TreeJoin) -> JoinLink | None:
    """Returns a comparison between the two sides that a kernel can make."""
    if not (isinstance(e, x.Compare) and comparable(e)):
        return None
    left, right = frozenset(visible(join.left)), frozenset(visible(join.right))
    for op, theirs, ours in (
        (e.condition, e.left, e.right),
        (e.condition.mirrored(), e.right, e.left),
    ):
        reads = x.sources(theirs), x.sources(ours)
        if all(reads) and reads[0] <= right and reads[1] <= left:
            return JoinLink(e, op, theirs, ours, e.of)
    return None
