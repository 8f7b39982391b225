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
from seustream.engine.host.links import JoinLink, ways_of
from seustream.engine.kernels import native
from seustream.engine.relational.combinations import Bools, Combinations, Ints, TreeSources
from seustream.engine.stream.evaluate import evaluate
from seustream.engine.stream.numbers import comparable, converted, has_numbers, numbers, together
from seustream.hdl.isa import Condition

_MANY = 1024
"""A side is large from this many combinations on."""


class Comparisons:
    """The conditions of a join that compare its sides, and the keys of the combinations that it
    keeps. Keys are computed once for each combination."""

    def __init__(self, join: TreeJoin, frame: TreeSources) -> None:
        self.frame, self.conjuncts = frame, x.conjuncts(join.condition)
        self.equalities = list(equalities(join))
        found = [_link(e, join) for e in self.conjuncts]
        self.links = [link for link in found if link is not None]
        self.choice, self.ways = ways_of(self.conjuncts, lambda e: _link(e, join))
        self.codes = native.Codes()
        self.keys: list[tuple[Ints, Bools] | None] = [None, None]
        """By side, numbers that are equal where the equalities hold, and which combinations have
        any; None if there are no equalities, or if one has a fault."""

    # --- keys -----------------------------------------------------------------

    def follow(self, sides: tuple[Combinations, Combinations], known: list[int]) -> None:
        """Takes the combinations of a step, of which the first `known` were kept by the last."""
        if self.codes.count() > 4096 + 4 * sum(map(len, sides)):
            # Most of them belong to no row any more.
            self.codes, self.keys = native.Codes(), [None, None]
        self.keys = [self._keyed(side, of, known[side]) for side, of in enumerate(sides)]

    def keep(self, side: int, stay: Bools) -> None:
        """Forgets the keys of combinations that are not kept."""
        keys = self.keys[side]
        if keys is not None:
            self.keys[side] = keys[0][stay], keys[1][stay]

    def _keyed(self, side: int, of: Combinations, known: int) -> tuple[Ints, Bools] | None:
        """Returns the keys of a side, of which the first `known` are those of the last step."""
        by = [pair[side] for pair in self.equalities if has_numbers(pair[side].type)]
        if not by:
            return None
        had = self.keys[side]
        if had is None or len(had[0]) != known:
            had = np.empty(0, np.int64), np.empty(0, np.bool_)
        doubts = Faults()
        new = of.rows[len(had[0]) :]
        columns = [numbers(self._value(e, new, doubts), self.codes) for e in by]
        if doubts.total:
            return None
        found, flags = together(columns, self.codes)
        valid = np.ones(len(found), np.bool_) if flags is None else flags != 0
        return np.concatenate((had[0], found)), np.concatenate((had[1], valid))

    def narrowed(self, some: Ints, others: Ints) -> tuple[Ints, Ints]:
        """Leaves out most combinations of a large side whose keys none of a small side has."""
        left, right = self.keys
        if left is None or right is None:
            return some, others
        (ours, have), (theirs, exist) = left, right
        if len(others) > max(_MANY, 4 * len(some)):
            return some, others[_may_meet(theirs[others], exist[others], ours[some], have[some])]
        if len(some) > max(_MANY, 4 * len(others)):
            return some[_may_meet(ours[some], have[some], theirs[others], exist[others])], others
        return some, others

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
                found.append((int(link.op), *theirs, *ours))
            return found

        tests: list[native.Test] = []
        for link in self.links:
            if (one := tested([link])) is not None:
                tests += one
                rest.remove(link.conjunct)
        some = [tested(way) for way in self.ways]
        ways = [way for way in some if way is not None]
        if self.choice is None or len(ways) < len(some):
            return tests, [[]], tuple(rest)
        rest.remove(self.choice)
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


def _may_meet(keys: Ints, valid: Bools, few: Ints, have: Bools) -> Bools:
    """Returns which keys may be among a few others: all that are, and a quarter of those that are
    not at most, by a hash of theirs."""
    bits = max(12, (4 * len(few)).bit_length())

    def places(numbers: Ints) -> Ints:
        mixed = numbers.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        return (mixed >> np.uint64(64 - bits)).view(np.int64)

    there = np.zeros(1 << bits, np.bool_)
    there[places(few[have])] = True
    return valid & there[places(keys)]
