"""The join on columns."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.apas import network as n
from seustream.compiler.apas.expressions import LeafRead
from seustream.compiler.apas.streams import JoinIndex
from seustream.compiler.language.faults import Faults
from seustream.engine.stream.sorting import lexsort
from seustream.engine.temporal import library
from seustream.engine.temporal.columnar.batch import IntervalBatch, concatenated
from seustream.engine.temporal.columnar.evaluate import (
    Evaluator,
    as_numpy,
    holds,
    interval_of,
    mapped,
    taken,
)
from seustream.engine.temporal.columnar.operators import Ints, Output
from seustream.engine.temporal.elements import FOREVER

Column = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
_Side = tuple[IntervalBatch, Ints, Ints, Bools]
_PAIRS_AT_ONCE = 1 << 20
_FEW_PAIRS = 4
"""Up to this many pairs per row, scanning is faster than sorting by lifetimes."""


class ColumnarJoin:
    """Joins new rows of each side with all stored and new rows of the other, wherever their
    lifetimes overlap. Results are put in the order of the order buffer.

    A row of a time-table holds until the next row of its key has come. A row that ends it early is
    stored with the values it had, and meets nothing by itself.
    """

    def __init__(self, node: n.JoinNode, faults: Faults) -> None:
        self.node, self.faults = node, faults
        self.sides = (node.left, node.right)
        self.terms = ([a for a, _ in node.terms], [b for _, b in node.terms])
        self.stored: list[IntervalBatch] | None = None
        self.order: list[Ints] = [np.empty(0, np.int64), np.empty(0, np.int64)]
        self.arrived = self.bad_keys = 0
        self.quiet = Faults()  # terms of stored rows are evaluated repeatedly
        self.indexes: list[JoinIndex] = []
        if node.index is not None:
            with library.calling(node.index.name):
                self.indexes = [
                    node.index.function.index(side ^ node.index.place) for side in (0, 1)
                ]

    def process(self, inputs: Sequence[IntervalBatch], bound: int, last: bool) -> Output:
        # The place of every row in the synchronised order tells which row of a pair came last.
        ts = np.concatenate([x.ts for x in inputs])
        te = np.concatenate([x.te for x in inputs])
        rank = np.empty(len(ts), np.int64)
        rank[lexsort((te, ts))] = np.arange(len(ts))
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
        parts = []
        for left, right in (self._served if self.indexes else self._pairs)(sides, orders, fresh):
            ts = np.maximum(sides[0].ts[left], sides[1].ts[right])
            te = np.minimum(sides[0].te[left], sides[1].te[right])
            live = np.flatnonzero(ts < te)
            if any(side.key is not None for side in self.sides):
                live = live[_met(orders, until, mute, left[live], right[live])]
            left, right = left[live], right[live]
            fields = (*sides[0].take(left).columns, *sides[1].take(right).columns)
            part = IntervalBatch(ts[live], te[live], fields)
            held = holds(self.node.residual, part.array, len(part), self.faults)
            parts.append((part.only(held), left[held], right[held]))
        pairs = concatenated([part for part, _, _ in parts])
        of_left = orders[0][np.concatenate([left for _, left, _ in parts])]
        of_right = orders[1][np.concatenate([right for _, _, right in parts])]
        probe, stored = np.maximum(of_left, of_right), np.minimum(of_left, of_right)
        pairs = pairs.take(lexsort((stored, probe, pairs.te, pairs.ts)))
        stay = [
            (side.te > bound) & (each == FOREVER) for side, each in zip(sides, until, strict=True)
        ]
        for index, order, kept in zip(self.indexes, orders, stay, strict=False):
            gone = order[~kept]
            if len(gone):
                with library.calling(self._index_name):
                    index.delete(gone)
        self.stored = [
            side.only(np.flatnonzero(kept)) for side, kept in zip(sides, stay, strict=True)
        ]
        self.order = [order[kept] for order, kept in zip(orders, stay, strict=True)]
        if self.node.map is not None:
            columns = mapped(self.node.map, pairs.array, len(pairs), self.faults)
            pairs = IntervalBatch(pairs.ts, pairs.te, tuple(columns))
        return pairs, bound

    # --- rows to be met -------------------------------------------------------
    # Each row has its place in the order, the place up to which it is met, and a mark if it meets
    # nothing that came before it.

    def _added(self, i: int, old: IntervalBatch, x: IntervalBatch, rank: Ints) -> _Side:
        kept = self._guarded(i, x)
        kept = kept[x.te[kept] > x.ts[kept]]  # an instant meets nothing
        order = np.concatenate((self.order[i], rank[kept]))
        every = np.full(len(order), FOREVER)
        new = x.only(kept)
        return (
            (concatenated([old, new]) if len(old) else new),
            order,
            every,
            np.zeros(len(order), np.bool_),
        )

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
        """Returns the rows that satisfy the condition on their side. The terms are evaluated only
        to count their faults."""
        with self.faults.naming(interval_of(x.array)):
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
    ) -> Iterator[tuple[Ints, Ints]]:
        """Yields the places of pairs that may match and have at least one new row, as the index
        finds them."""
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
        lefts, rights = lefts[equal], rights[equal]
        for begin in range(0, max(len(lefts), 1), _PAIRS_AT_ONCE):
            part = slice(begin, begin + _PAIRS_AT_ONCE)
            yield lefts[part], rights[part]

    def _indexed(self, side: int, batch: IntervalBatch) -> tuple[Ints, list[Column]]:
        """Returns the rows without NULL, as others match nothing, and the index's arguments for
        them."""
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
        """Returns places of probes, and for each the place of a row of the side; rows deleted there
        are skipped."""
        if not count or not len(numbers):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        probes, found = library.candidates(self._index_name, self.indexes[side], columns)
        if len(probes) and not (int(probes.min()) >= 0 and int(probes.max()) < count):
            raise library.LibraryFailed(f"{self._index_name}: a place outside the {count} asked")
        at = np.minimum(np.searchsorted(numbers, found), len(numbers) - 1)
        known = np.flatnonzero(numbers[at] == found)
        return probes[known], at[known]

    # --- by sorting -----------------------------------------------------------

    def _pairs(
        self, sides: list[IntervalBatch], orders: list[Ints], fresh: list[int]
    ) -> Iterator[tuple[Ints, Ints]]:
        """Yields the places of pairs with equal terms and at least one new row, by sorting one
        side. Parts are small enough for memory, however selective the join is."""
        codes = self._codes(sides)
        old = (codes[0][: fresh[0]], codes[1])
        new_left, new_right = (fresh[0], 0), (0, fresh[1])
        return _gathered(chain(_matches(sides, codes, new_left), _matches(sides, old, new_right)))

    def _codes(self, sides: list[IntervalBatch]) -> tuple[Ints, Ints]:
        """Returns a number for each row's terms, equal where all terms are; -1 where one is
        NULL."""
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
            if len(self.terms[0]) == 1 and pa.types.is_int64(both.type) and not both.null_count:
                values = np.asarray(both)
                if len(values) and values.min() >= 0:  # as good as codes
                    return values[: counts[0]], values[counts[0] :]
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
    """Returns which pairs meet: the later row comes while the earlier one still holds, and does
    more than move an end."""
    a, b = orders[0][left], orders[1][right]
    silent = np.where(a > b, mute[0][left], mute[1][right])
    found: Bools = (a < until[1][right]) & (b < until[0][left]) & ~silent
    return found


def keys_of(x: IntervalBatch, key: int) -> Ints:
    """Returns the keys of a time-table; 0 stands for no key, and so does NULL."""
    return np.asarray(x.array[key].fill_null(0), dtype=np.int64)


def _matches(
    sides: Sequence[IntervalBatch], codes: tuple[Ints, Ints], begin: tuple[int, int]
) -> Iterator[tuple[Ints, Ints]]:
    """Yields pairs of equal codes from these places on, including all whose lifetimes overlap, in
    parts of bounded size; at least one part."""
    probes = np.arange(begin[0], len(codes[0]))
    order = begin[1] + np.argsort(codes[1][begin[1] :], kind="stable")
    sought, found = codes[0][probes], codes[1][order]
    first = np.searchsorted(found, sought, side="left")
    count = np.searchsorted(found, sought, side="right") - first
    count = np.where(sought < 0, 0, count)
    if count.sum() > _FEW_PAIRS * (len(probes) + len(order)):
        order, first, count = _overlapping(sides, codes, probes, order)
    ends = np.cumsum(count)
    start = 0
    while True:
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + _PAIRS_AT_ONCE, "right")))
        part = slice(start, stop)
        offset = np.arange(int(count[part].sum()))
        offset -= np.repeat(ends[part] - count[part] - before, count[part])
        yield (
            np.repeat(probes[part], count[part]),
            order[np.repeat(first[part], count[part]) + offset],
        )
        if (start := stop) >= len(probes):
            return


def _gathered(parts: Iterable[tuple[Ints, Ints]]) -> Iterator[tuple[Ints, Ints]]:
    """Yields the parts, joining neighbours while they are small."""
    kept: list[tuple[Ints, Ints]] = []
    for part in parts:
        if kept and sum(len(left) for left, _ in (*kept, part)) > _PAIRS_AT_ONCE:
            yield _joined(kept)
            kept = []
        kept.append(part)
    yield _joined(kept)


def _joined(parts: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    left, right = zip(*parts, strict=True)
    return np.concatenate(left), np.concatenate(right)


def _overlapping(
    sides: Sequence[IntervalBatch], codes: tuple[Ints, Ints], probes: Ints, order: Ints
) -> tuple[Ints, Ints, Ints]:
    """Returns the right rows in an order in which those that a probe may overlap are neighbours,
    and for each probe the first of them and their number.

    The order is by code and begin. The rows that begin before the probe ends are a prefix of its
    code's rows, and so are those that all end before it begins.
    """
    order = order[lexsort((sides[1].ts[order], codes[1][order]))]
    found, sought = codes[1][order], codes[0][probes]
    last = _latest(found, sides[1].te[order])
    first = _below(found, last, sought, sides[0].ts[probes], equal=True)
    stop = _below(found, sides[1].ts[order], sought, sides[0].te[probes], equal=False)
    return order, first, np.where(sought < 0, 0, np.maximum(stop - first, 0))


def _latest(codes: Ints, te: Ints) -> Ints:
    """Returns the latest end so far within each code; the codes are sorted."""
    by_end = np.argsort(te, kind="stable")
    place = np.empty(len(te), np.int64)
    place[by_end] = np.arange(len(te))
    group = np.cumsum(np.diff(codes, prepend=codes[:1]) != 0) * len(te)
    latest = np.maximum.accumulate(place + group) - group
    ends: Ints = te[by_end[latest]]
    return ends


def _below(codes: Ints, times: Ints, sought: Ints, until: Ints, equal: bool) -> Ints:
    """Returns, for each pair (sought, until), how many of the sorted pairs (code, time) are less;
    with `equal`, equal ones count too."""
    # Among equal pairs, those that count come first.
    after = np.repeat([0, 1] if equal else [1, 0], [len(codes), len(sought)])
    keys = (after, np.concatenate((times, until)), np.concatenate((codes, sought)))
    place = lexsort(keys)
    seen = np.cumsum(place < len(codes))
    found = np.empty(len(place), np.int64)
    found[place] = seen
    below: Ints = found[len(codes) :]
    return below
