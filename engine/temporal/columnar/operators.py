"""The operators on columns. Each step gives an operator all insertions up to a time.

    process(inputs, bound) -> output, promise

`inputs` hold, of each input, everything that starts before `bound` and was not given before;
`promise` says that nothing later in the output starts before it. Results and their order are those
of the operators tuple at a time without derived boundaries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.apas import network as n
from seustream.compiler.apas.expressions import LeafRead, PartialAggregate
from seustream.compiler.apas.functions import Registered
from seustream.compiler.apas.streams import JoinIndex
from seustream.compiler.apas.types import DOUBLE, INTEGER
from seustream.compiler.language.faults import Faults
from seustream.compiler.language.types import Kind
from seustream.engine.stream import spans
from seustream.engine.stream.schema import arrow_type
from seustream.engine.temporal import library
from seustream.engine.temporal.columnar.batch import IntervalBatch, concatenated, empty
from seustream.engine.temporal.columnar.evaluate import Evaluator, as_numpy, holds, mapped, taken
from seustream.engine.temporal.elements import EARLIEST, FOREVER

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Column = npt.NDArray[Any]
Output = tuple[IntervalBatch, int]


class ColumnarOperator(Protocol):
    def process(self, inputs: Sequence[IntervalBatch], bound: int, last: bool) -> Output:
        """`last` says that nothing comes any more; `bound` is then past all time."""

    def save(self) -> Any:
        """Returns what it remembers between two calls, in what `saving` takes."""

    def load(self, saved: Any) -> None:
        """Goes on from what was remembered."""


class Stateless:
    """Remembers nothing."""

    def save(self) -> Any:
        return None

    def load(self, saved: Any) -> None:
        """There is nothing to."""


class ColumnarSetEnd(Stateless):
    """te := ts + size, as far as there is time."""

    def __init__(self, node: n.SetEndNode) -> None:
        self.size = node.size

    def process(self, inputs: Sequence[IntervalBatch], bound: int, last: bool) -> Output:
        (x,) = inputs
        if self.size is None:
            te = np.full(len(x), FOREVER)
        else:
            room = FOREVER - self.size
            te = np.where(x.ts > room, FOREVER, np.minimum(x.ts, room) + self.size)
        return IntervalBatch(x.ts, te, x.columns), bound


class ColumnarMerge(Stateless):
    """The order (ts, te, input, arrival)."""

    def process(self, inputs: Sequence[IntervalBatch], bound: int, last: bool) -> Output:
        both = concatenated(inputs)
        return both.take(np.lexsort((both.te, both.ts))), bound


class ColumnarSelect(Stateless):
    def __init__(self, node: n.SelectNode, faults: Faults) -> None:
        self.filter, self.map, self.faults = node.filter, node.map, faults

    def process(self, inputs: Sequence[IntervalBatch], bound: int, last: bool) -> Output:
        (x,) = inputs
        kept = holds(self.filter, x.array, len(x), self.faults)
        if len(kept) < len(x):
            x = x.take(kept)
        return IntervalBatch(
            x.ts, x.te, tuple(mapped(self.map, x.array, len(x), self.faults))
        ), bound


class ColumnarJoin:
    """New rows of each side meet all rows of the other that are stored or new; a pair is one
    wherever lifetimes overlap. What comes of it is put in the order of the order buffer."""

    def __init__(self, node: n.JoinNode, faults: Faults) -> None:
        self.node, self.faults = node, faults
        self.guards = (node.left.guard, node.right.guard)
        self.terms = ([a for a, _ in node.terms], [b for _, b in node.terms])
        self.stored: list[IntervalBatch] | None = None
        self.order: list[Ints] = [np.empty(0, np.int64), np.empty(0, np.int64)]
        self.arrived = 0
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
        sides, orders, fresh = [], [], []
        for i, x in enumerate(inputs):
            self._count_faults(i, x)
            mine = rank[: len(inputs[0])] if i == 0 else rank[len(inputs[0]) :]
            kept = holds(self.guards[i], x.array, len(x), self.faults)
            kept = kept[x.te[kept] > x.ts[kept]]  # an instant meets nothing
            sides.append(concatenated([old[i], x.take(kept)]))
            orders.append(np.concatenate((self.order[i], mine[kept])))
            fresh.append(len(old[i]))
        if self.indexes:
            left, right = self._served(sides, orders, fresh)
        else:
            left, right = self._pairs(sides, fresh)
        ts = np.maximum(sides[0].ts[left], sides[1].ts[right])
        te = np.minimum(sides[0].te[left], sides[1].te[right])
        live = np.flatnonzero(ts < te)
        a, b = sides[0].take(left[live]), sides[1].take(right[live])
        pairs = IntervalBatch(ts[live], te[live], (*a.columns, *b.columns))
        of_left, of_right = orders[0][left[live]], orders[1][right[live]]
        held = holds(self.node.residual, pairs.array, len(pairs), self.faults)
        pairs, of_left, of_right = pairs.take(held), of_left[held], of_right[held]
        probe, stored = np.maximum(of_left, of_right), np.minimum(of_left, of_right)
        pairs = pairs.take(np.lexsort((stored, probe, pairs.te, pairs.ts)))
        stay = [np.flatnonzero(side.te > bound) for side in sides]
        for index, side, order in zip(self.indexes, sides, orders, strict=False):
            gone = order[side.te <= bound]
            if len(gone):
                with library.calling(self._index_name):
                    index.delete(gone)
        self.stored = [side.take(kept) for side, kept in zip(sides, stay, strict=True)]
        self.order = [order[kept] for order, kept in zip(orders, stay, strict=True)]
        if self.node.map is not None:
            columns = mapped(self.node.map, pairs.array, len(pairs), self.faults)
            pairs = IntervalBatch(pairs.ts, pairs.te, tuple(columns))
        return pairs, bound

    def _count_faults(self, side: int, new: IntervalBatch) -> None:
        """Evaluates the terms of rows that come, for their faults alone."""
        for term in self.terms[side]:
            if not isinstance(term.conditions[0], LeafRead):
                Evaluator(term.frame, new.array, len(new), self.faults).value(term.conditions[0])

    def save(self) -> Any:
        stored = None if self.stored is None else [side.save() for side in self.stored]
        return (stored, self.order, self.arrived)

    def load(self, saved: Any) -> None:
        stored, self.order, self.arrived = saved
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


class ColumnarAggregate:
    """All segments between two changes at once: each tuple counts for the span of segments it
    lives in. Segments are cut where a tuple starts, and touching equal ones of one cut are one."""

    def __init__(self, node: n.AggregateNode, faults: Faults) -> None:
        self.node, self.faults = node, faults
        self.start = EARLIEST  # of what has not been told
        self.ts = self.te = np.empty(0, np.int64)
        self.values: list[list[pa.Array]] | None = None  # what each partial takes, by leaf

    @classmethod
    def can(cls, node: n.AggregateNode) -> bool:
        return node.side.key is None and all(map(_has_columns, node.partials))

    def process(self, inputs: Sequence[IntervalBatch], bound: int, last: bool) -> Output:
        (x,) = inputs
        kept = holds(self.node.side.guard, x.array, len(x), self.faults)
        kept = kept[x.te[kept] > x.ts[kept]]
        fresh = x.take(kept)
        evaluator = Evaluator(self.node.frame, fresh.array, len(fresh), self.faults)
        new: list[list[pa.Array]] = []
        for partial in self.node.partials:
            evaluator.steps(partial.before)
            new.append([evaluator.value(argument) for argument in partial.arguments])
        ts = np.concatenate((self.ts, fresh.ts))
        te = np.concatenate((self.te, fresh.te))
        before = self.values or [[column.slice(0, 0) for column in each] for each in new]
        values = [
            [pa.concat_arrays(both) for both in zip(*each, strict=True)]
            for each in zip(before, new, strict=True)
        ]
        now = np.unique(x.ts)
        if last:
            now = np.append(now, FOREVER) if not len(now) or now[-1] != FOREVER else now
        if not len(now):
            self.ts, self.te, self.values = ts, te, values
            return empty(self.node.leaves), self._promise(bound)
        out = self._segments(ts, te, values, now)
        stay = te > now[-1]
        self.start = int(now[-1])
        self.ts, self.te = ts[stay], te[stay]
        left = np.flatnonzero(stay)
        self.values = [[taken(column, left) for column in each] for each in values]
        return out, self._promise(bound)

    def _promise(self, bound: int) -> int:
        return min(bound, self.start) if len(self.ts) else bound

    def save(self) -> Any:
        return (self.start, self.ts, self.te, self.values)

    def load(self, saved: Any) -> None:
        self.start, self.ts, self.te, self.values = saved

    def _segments(
        self, ts: Ints, te: Ints, values: list[list[pa.Array]], now: Ints
    ) -> IntervalBatch:
        end = int(now[-1])
        first_start = np.maximum(ts, self.start)
        cuts = np.unique(np.concatenate((now, te[te <= end], first_start[first_start < end])))
        cuts = cuts[cuts >= self.start]
        count = max(len(cuts) - 1, 0)
        lo = np.minimum(np.searchsorted(cuts, first_start), count)
        hi = np.maximum(np.searchsorted(cuts, np.minimum(te, end)), lo)
        live = spans.counts(lo, hi, count)
        finals = [
            column
            for partial, columns in zip(self.node.partials, values, strict=True)
            for column in self._final(partial, columns, lo, hi, live)
        ]
        some = np.flatnonzero(live)
        starts, ends = cuts[some], cuts[some + 1]
        finals = [taken(column, some) for column in finals]
        call = np.searchsorted(now, ends)
        begins = np.ones(len(some), np.bool_)
        if len(some):
            same = (starts[1:] == ends[:-1]) & (call[1:] == call[:-1])
            for column in finals:
                same &= _equal_to_the_one_before(column)
            begins[1:] = ~same
        first = np.flatnonzero(begins)
        starts = starts[first]
        ends = ends[np.append(first[1:], len(some)) - 1] if len(some) else ends
        array: list[Any] = [starts, ends] + [starts] * (self.node.width - 2)
        places = [place for group in self.node.results for place in group]
        for place, column in zip(places, finals, strict=True):
            array[place] = taken(column, first)
        out = mapped(self.node.map, array, len(starts), self.faults)
        return IntervalBatch(starts, ends, tuple(out))

    # --- the partials at each segment -----------------------------------------

    def _final(
        self, partial: PartialAggregate, columns: list[pa.Array], lo: Ints, hi: Ints, live: Ints
    ) -> list[pa.Array]:
        """The leaves of a result at each segment. A tuple with a NULL among its values does not
        count."""
        whole = np.ones(len(lo), np.bool_)
        for column in columns:
            if column.null_count:
                whole &= np.asarray(column.is_valid())
        if not whole.all():
            rows = np.flatnonzero(whole)
            lo, hi = lo[rows], hi[rows]
            columns = [taken(column, rows) for column in columns]
            live = spans.counts(lo, hi, len(live))
        function = partial.aggregate
        if isinstance(function, Registered):
            return [self._known(partial, function, columns, lo, hi, live)]
        types = partial.bound.result.types
        with library.calling(partial.name):
            found = function.over([as_numpy(c) for c in columns], lo, hi, len(live))
            leaves = [np.asarray(c) for c in found]
            if len(leaves) != len(types) or any(c.shape != live.shape for c in leaves):
                raise library.LibraryFailed(
                    f"{partial.name}: want {len(types)} columns of {len(live)} values"
                )
            none = live == 0
            return [
                pa.array(c, arrow_type(of), mask=none) for c, of in zip(leaves, types, strict=True)
            ]

    def _known(
        self,
        partial: PartialAggregate,
        function: Registered,
        columns: list[pa.Array],
        lo: Ints,
        hi: Ints,
        live: Ints,
    ) -> pa.Array:
        n, name, to = len(live), function.entry.name, arrow_type(function.of)
        if name == "count":
            return pa.array(live)
        (column,) = columns
        none = live == 0
        if name in ("sum", "avg"):
            found, wrong = _summed(as_numpy(column), lo, hi, n)
            self._count(partial, wrong & ~none)
            if name == "avg":
                found = _mean(found, live)
            return pa.array(found, to, mask=none | wrong)
        return _extreme(column, lo, hi, live, name == "max")

    def _count(self, partial: PartialAggregate, wrong: Mask) -> None:
        """Counts the segments whose sum does not fit."""
        if wrong.any():
            self.faults.add(partial.place, int(wrong.sum()), int(wrong.argmax()))


def _has_columns(partial: PartialAggregate) -> bool:
    function = partial.aggregate
    if not isinstance(function, Registered):
        return function.spans
    if function.distinct:
        return False
    of = partial.arguments[0].type if partial.arguments else INTEGER
    match function.entry.name:
        case "count":
            return True
        case "sum" | "avg":
            return of in (INTEGER, DOUBLE)
        case "min" | "max":
            return of.kind is not Kind.DECIMAL
        case _:
            return False


def _equal_to_the_one_before(column: pa.Array) -> Mask:
    """Of every row but the first; NULL is NULL."""
    a, b = column.slice(1), column.slice(0, len(column) - 1)
    equal = np.asarray(pc.fill_null(pc.equal(a, b), False))
    if column.null_count:
        equal = equal | (np.asarray(a.is_null()) & np.asarray(b.is_null()))
    found: Mask = equal
    return found


def _summed(values: Column, lo: Ints, hi: Ints, n: int) -> tuple[Column, Mask]:
    """Sums, and where there is none."""
    if values.dtype == np.float64:
        found = spans.sums(values, lo, hi, n)
        return found, np.isnan(found)
    return spans.integer_sums(values, lo, hi, n)


def _mean(sums: Column, live: Ints) -> Column:
    """Sums by counts, rounded once."""
    counts = np.maximum(live, 1)
    found: Column = sums / counts
    if sums.dtype == np.int64:
        large = np.flatnonzero(np.abs(sums) >= 2**53)
        for at in large.tolist():
            found[at] = int(sums[at]) / int(counts[at])
    return found


def _extreme(column: pa.Array, lo: Ints, hi: Ints, live: Ints, greatest: bool) -> pa.Array:
    """The least or greatest value at each segment, NULL where none counts."""
    n, none = len(live), live == 0
    of = column.type
    if pa.types.is_floating(of) or pa.types.is_int64(of):
        return pa.array(spans.extremes(np.asarray(column), lo, hi, n, greatest), of, mask=none)
    # Others by their rank among the distinct ones.
    distinct = pc.unique(column)
    order = pc.sort_indices(distinct)
    if not len(distinct):
        return pa.nulls(n, of)
    rank = np.empty(len(distinct), np.int64)
    rank[np.asarray(order)] = np.arange(len(distinct))
    ranks = rank[np.asarray(column.dictionary_encode().indices)]
    found = np.where(none, 0, spans.extremes(ranks, lo, hi, n, greatest))
    return distinct.take(order).take(pa.array(found, mask=none))
