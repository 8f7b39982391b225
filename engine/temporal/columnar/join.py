"""The join on columns."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.apas import network as n
from seustream.compiler.apas.expressions import LeafRead
from seustream.compiler.apas.streams import JoinIndex
from seustream.compiler.language.faults import Faults
from seustream.engine.temporal import library
from seustream.engine.temporal.columnar.batch import IntervalBatch, concatenated
from seustream.engine.temporal.columnar.evaluate import Evaluator, as_numpy, holds, mapped, taken
from seustream.engine.temporal.columnar.operators import Ints, Output
from seustream.engine.temporal.elements import FOREVER

Column = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
_Side = tuple[IntervalBatch, Ints, Ints, Bools]


class ColumnarJoin:
    """New rows of each side meet all rows of the other that are stored or new; a pair is one
    wherever lifetimes overlap. What comes of it is put in the order of the order buffer.

    A row of a time-table holds until the next one of its key has come; one that ends it early is
    stored with the values it had, and meets nothing by itself."""

    def __init__(self, node: n.JoinNode, faults: Faults) -> None:
        self.node, self.faults = node, faults
        self.sides = (node.left, node.right)
        self.terms = ([a for a, _ in node.terms], [b for _, b in node.terms])
        self.stored: list[IntervalBatch] | None = None
        self.order: list[Ints] = [np.empty(0, np.int64), np.empty(0, np.int64)]
        self.arrived = self.bad_keys = 0
        self.quiet = Faults()  # terms of stored rows are evaluated again and again
        self.indexes: list[JoinIndex] = []
        if node.index is not None:
            with library.calling(node.index.name):
                self.indexes = [
                    node.index.function.index(side ^ node.index.place) for side in (0, 1)
                ]

    def process(self, inputs: Sequence[IntervalBatch], bound: int, last: bool) -> Output:
        # The place of every row in the synchronised order: it says which of a pair came last.
        ts = np.concatenate([x.ts for x in inputs])
        te = np.concatenate([x.te for x in inputs])
        rank = np.empty(len(ts), np.int64)
        rank[np.lexsort((te, ts))] = np.arange(len(ts))
        rank += self.arrived
        self.arrived += len(ts)
        old = self.stored or [x.take(slice(0, 0)) for x in inputs]
        found = [
            (self._added if side.key is None else self._versions)(i, old[i], x, mine)
            for i, (side, x, mine) in enumerate(
                zip(self.sides, inputs, np.split(rank, [len(inputs[0])]), strict=True)
            )
        ]
        sides, orders, until, mute = (list(each) for each in zip(*found, strict=True))
        fresh = [len(each) for each in old]
        if self.indexes:
            left, right = self._served(sides, orders, fresh)
        else:
            left, right = self._pairs(sides, fresh)
        ts = np.maximum(sides[0].ts[left], sides[1].ts[right])
        te = np.minimum(sides[0].te[left], sides[1].te[right])
        live = np.flatnonzero(ts < te)
        if any(side.key is not None for side in self.sides):
            live = live[_met(orders, until, mute, left[live], right[live])]
        a, b = sides[0].take(left[live]), sides[1].take(right[live])
        pairs = IntervalBatch(ts[live], te[live], (*a.columns, *b.columns))
        of_left, of_right = orders[0][left[live]], orders[1][right[live]]
        held = holds(self.node.residual, pairs.array, len(pairs), self.faults)
        pairs, of_left, of_right = pairs.take(held), of_left[held], of_right[held]
        probe, stored = np.maximum(of_left, of_right), np.minimum(of_left, of_right)
        pairs = pairs.take(np.lexsort((stored, probe, pairs.te, pairs.ts)))
        stay = [
            (side.te > bound) & (each == FOREVER) for side, each in zip(sides, until, strict=True)
        ]
        for index, order, kept in zip(self.indexes, orders, stay, strict=False):
            gone = order[~kept]
            if len(gone):
                with library.calling(self._index_name):
                    index.delete(gone)
        self.stored = [
            side.take(np.flatnonzero(kept)) for side, kept in zip(sides, stay, strict=True)
        ]
        self.order = [order[kept] for order, kept in zip(orders, stay, strict=True)]
        if self.node.map is not None:
            columns = mapped(self.node.map, pairs.array, len(pairs), self.faults)
            pairs = IntervalBatch(pairs.ts, pairs.te, tuple(columns))
        return pairs, bound

    # --- rows to be met -------------------------------------------------------
    # Of each: its place in the order, up to which place it is met, and whether it meets nothing
    # that came before it.

    def _added(self, i: int, old: IntervalBatch, x: IntervalBatch, rank: Ints) -> _Side:
        kept = self._guarded(i, x)
        kept = kept[x.te[kept] > x.ts[kept]]  # an instant meets nothing
        order = np.concatenate((self.order[i], rank[kept]))
        every = np.full(len(order), FOREVER)
        return concatenated([old, x.take(kept)]), order, every, np.zeros(len(order), np.bool_)

    def _versions(self, i: int, old: IntervalBatch, x: IntervalBatch, rank: Ints) -> _Side:
        key = self.sides[i].key
        assert key is not None
        named = np.flatnonzero(keys_of(x, key) > 0)
        good = np.zeros(len(x), np.bool_)
        good[named[self._guarded(i, x.take(named))]] = True
        order, ts, te = self.order[i].tolist(), old.ts.tolist(), old.te.tolist()
        until, mute = [FOREVER] * len(old), [False] * len(old)
        sources = list(range(len(old)))
        known = dict(zip(keys_of(old, key).tolist(), order, strict=True))
        rows = (
            x.ts.tolist(),
            x.te.tolist(),
            keys_of(x, key).tolist(),
            good.tolist(),
            rank.tolist(),
        )
        for row, (begin, end, k, fits, place) in enumerate(zip(*rows, strict=True)):
            before = known.get(abs(k))
            at = None if before is None else bisect_left(order, before)
            if at is not None and te[at] <= begin:
                at = None  # it has ended
            self.bad_keys += k == 0
            if k == 0 or (k < 0 and at is None):
                continue
            if at is not None:
                until[at] = place
            if k > 0 and not fits:
                known.pop(k, None)
                continue
            known[abs(k)] = place
            order.append(place)
            ts.append(begin)
            te.append(end)
            until.append(FOREVER)
            mute.append(k < 0)
            sources.append(len(old) + row if at is None or k > 0 else sources[at])
        values = concatenated([old, x]).take(np.array(sources, np.int64)).columns
        side = IntervalBatch(np.array(ts, np.int64), np.array(te, np.int64), values)
        return side, np.array(order, np.int64), np.array(until, np.int64), np.array(mute, np.bool_)

    def _guarded(self, i: int, x: IntervalBatch) -> Ints:
        """The rows that satisfy the condition on their side. The terms are evaluated for their
        faults alone."""
        for term in self.terms[i]:
            if not isinstance(term.conditions[0], LeafRead):
                Evaluator(term.frame, x.array, len(x), self.faults).value(term.conditions[0])
        return holds(self.sides[i].guard, x.array, len(x), self.faults)

    def save(self) -> Any:
        stored = None if self.stored is None else [side.save() for side in self.stored]
        return (stored, self.order, self.arrived, self.bad_keys)

    def load(self, saved: Any) -> None:
        stored, self.order, self.arrived, self.bad_keys = saved
        self.stored = None if stored is None else [IntervalBatch.load(each) for each in stored]
        if self.stored is not None:
            for place, index in enumerate(self.indexes):
                rows, columns = self._indexed(place, self.stored[place])
                self._insert(index, self.order[place][rows], columns)

    # --- by a library's index -------------------------------------------------

    @property
    def _index_name(self) -> str:
        return self.node.index.name if self.node.index is not None else ""

    def _served(
        self, sides: list[IntervalBatch], orders: list[Ints], fresh: list[int]
    ) -> tuple[Ints, Ints]:
        """Places of pairs that may match of which one at least is new, as the index finds them."""
        new = [side.take(slice(cut, None)) for side, cut in zip(sides, fresh, strict=True)]
        (mine, columns), (its, others) = (self._indexed(i, batch) for i, batch in enumerate(new))
        self._insert(self.indexes[1], orders[1][fresh[1] :][its], others)
        at, right = self._candidates(1, orders[1], columns, len(mine))
        other, left = self._candidates(0, orders[0], others, len(its))
        self._insert(self.indexes[0], orders[0][fresh[0] :][mine], columns)
        lefts = np.concatenate((mine[at] + fresh[0], left))
        rights = np.concatenate((right, its[other] + fresh[1]))
        lefts, rights = np.unique(np.stack((lefts, rights)), axis=1)
        codes = self._codes(sides)
        equal = np.flatnonzero((codes[0][lefts] == codes[1][rights]) & (codes[0][lefts] >= 0))
        return lefts[equal], rights[equal]

    def _indexed(self, side: int, batch: IntervalBatch) -> tuple[Ints, list[Column]]:
        """The rows without NULL, which alone match anything, and what the index takes of them."""
        assert self.node.index is not None
        arguments = self.node.index.left if side == 0 else self.node.index.right
        columns = [
            Evaluator(each.frame, batch.array, len(batch), self.faults).value(each.conditions[0])
            for each in arguments
        ]
        whole = np.ones(len(batch), np.bool_)
        for column in columns:
            if column.null_count:
                whole &= np.asarray(column.is_valid())
        rows = np.flatnonzero(whole)
        if len(rows) < len(batch):
            columns = [taken(column, rows) for column in columns]
        return rows, [as_numpy(column) for column in columns]

    def _insert(self, index: JoinIndex, numbers: Ints, columns: list[Column]) -> None:
        if len(numbers):
            with library.calling(self._index_name):
                index.insert(numbers, *columns)

    def _candidates(
        self, side: int, numbers: Ints, columns: list[Column], count: int
    ) -> tuple[Ints, Ints]:
        """Places of probes, and for each the place of a row of the side; what was deleted there
        is passed over."""
        if not count or not len(numbers):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        probes, found = library.candidates(self._index_name, self.indexes[side], columns)
        if len(probes) and not (int(probes.min()) >= 0 and int(probes.max()) < count):
            raise library.LibraryFailed(f"{self._index_name}: a place outside the {count} asked")
        at = np.minimum(np.searchsorted(numbers, found), len(numbers) - 1)
        known = np.flatnonzero(numbers[at] == found)
        return probes[known], at[known]

    # --- by sorting -----------------------------------------------------------

    def _pairs(self, sides: list[IntervalBatch], fresh: list[int]) -> tuple[Ints, Ints]:
        """Places of pairs with equal terms of which one at least is new, by sorting one side."""
        codes = self._codes(sides)
        new_left = _matches(codes[0], codes[1], fresh[0], 0)
        new_right = _matches(codes[0][: fresh[0]], codes[1], 0, fresh[1])
        return (
            np.concatenate((new_left[0], new_right[0])),
            np.concatenate((new_left[1], new_right[1])),
        )

    def _codes(self, sides: list[IntervalBatch]) -> tuple[Ints, Ints]:
        """A number for each row's terms, equal where all terms are; -1 where one is NULL."""
        counts = [len(side) for side in sides]
        code = np.zeros(sum(counts), np.int64)
        null = np.zeros(sum(counts), np.bool_)
        for number in range(len(self.terms[0])):
            parts = []
            for i, side in enumerate(sides):
                term = self.terms[i][number]
                evaluator = Evaluator(term.frame, side.array, len(side), self.quiet)
                parts.append(evaluator.value(term.conditions[0]))
            both = pa.concat_arrays(parts)
            if pa.types.is_floating(both.type):
                both = pc.add(both, 0.0)  # -0.0 equals 0.0
            encoded = both.dictionary_encode()
            indices = encoded.indices
            if indices.null_count:
                null |= np.asarray(indices.is_null())
                indices = indices.fill_null(0)
            size = max(len(encoded.dictionary), 1)
            code = code * size + np.asarray(indices)
            if number + 1 < len(self.terms[0]):
                code = np.unique(code, return_inverse=True)[1]
        code = np.where(null, -1, code)
        return code[: counts[0]], code[counts[0] :]


def _met(
    orders: Sequence[Ints], until: Sequence[Ints], mute: Sequence[Bools], left: Ints, right: Ints
) -> Bools:
    """Returns which pairs meet: the later row of two comes while the other still holds, and does
    not only move an end."""
    a, b = orders[0][left], orders[1][right]
    silent = np.where(a > b, mute[0][left], mute[1][right])
    found: Bools = (a < until[1][right]) & (b < until[0][left]) & ~silent
    return found


def keys_of(x: IntervalBatch, key: int) -> Ints:
    """The keys of a time-table; 0 stands for none, and so does NULL."""
    return np.asarray(x.array[key].fill_null(0), dtype=np.int64)


def _matches(left: Ints, right: Ints, from_left: int, from_right: int) -> tuple[Ints, Ints]:
    """All pairs of equal codes from these places on."""
    mine = np.arange(from_right, len(right))
    order = mine[np.argsort(right[mine], kind="stable")]
    codes = right[order]
    probes = np.arange(from_left, len(left))
    first = np.searchsorted(codes, left[probes], side="left")
    count = np.searchsorted(codes, left[probes], side="right") - first
    count = np.where(left[probes] < 0, 0, count)
    who = np.repeat(probes, count)
    offset = np.arange(len(who)) - np.repeat(np.cumsum(count) - count, count)
    return who, order[np.repeat(first, count) + offset]
