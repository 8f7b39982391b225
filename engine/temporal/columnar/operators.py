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

from compiler.apas import network as n
from compiler.apas.expressions import Partial
from compiler.apas.functions import Aggregate as AggregateFunction
from compiler.apas.functions import Average, Count, Greatest, Least, Sum
from compiler.apas.streams import JoinIndex
from compiler.apas.values import NoValue
from engine.temporal import library
from engine.temporal.columnar import spans
from engine.temporal.columnar.batch import Batch, concatenated, empty
from engine.temporal.columnar.evaluate import Column, Evaluator, holds, mapped
from engine.temporal.elements import EARLIEST, FOREVER
from engine.temporal.library import DTYPES

Ints = npt.NDArray[np.int64]
Output = tuple[Batch, int]


class Operator(Protocol):
    def process(self, inputs: Sequence[Batch], bound: int, last: bool) -> Output:
        """`last` says that nothing comes any more; `bound` is then past all time."""

    def save(self) -> Any:
        """What it remembers between two calls, in what `saving` takes."""

    def load(self, saved: Any) -> None:
        """Goes on from what was remembered."""


class Stateless:
    """Remembers nothing."""

    def save(self) -> Any:
        return None

    def load(self, saved: Any) -> None:
        """There is nothing to."""


class SetEnd(Stateless):
    """te := ts + size, as far as there is time."""

    def __init__(self, node: n.SetEnd) -> None:
        self.size = node.size

    def process(self, inputs: Sequence[Batch], bound: int, last: bool) -> Output:
        (x,) = inputs
        if self.size is None:
            te = np.full(len(x), FOREVER)
        else:
            room = FOREVER - self.size
            te = np.where(x.ts > room, FOREVER, np.minimum(x.ts, room) + self.size)
        return Batch(x.ts, te, x.columns), bound


class Merge(Stateless):
    """The order (ts, te, input, arrival)."""

    def process(self, inputs: Sequence[Batch], bound: int, last: bool) -> Output:
        both = concatenated(inputs)
        return both.take(np.lexsort((both.te, both.ts))), bound


class Select(Stateless):
    def __init__(self, node: n.Select) -> None:
        self.filter, self.map = node.filter, node.map

    def process(self, inputs: Sequence[Batch], bound: int, last: bool) -> Output:
        (x,) = inputs
        kept = holds(self.filter, x.array, len(x))
        if len(kept) < len(x):
            x = x.take(kept)
        return Batch(x.ts, x.te, tuple(mapped(self.map, x.array, len(x)))), bound


class Join:
    """New rows of each side meet all rows of the other that are stored or new; a pair is one
    wherever lifetimes overlap. What comes of it is put in the order of the order buffer."""

    def __init__(self, node: n.Join) -> None:
        self.node = node
        self.guards = (node.left.guard, node.right.guard)
        self.terms = ([a for a, _ in node.terms], [b for _, b in node.terms])
        self.stored: list[Batch] | None = None
        self.order: list[Ints] = [np.empty(0, np.int64), np.empty(0, np.int64)]
        self.arrived = 0
        self.indexes: list[JoinIndex] = []
        if node.index is not None:
            with library.calling(node.index.name):
                self.indexes = [
                    node.index.function.index(side ^ node.index.place) for side in (0, 1)
                ]

    def process(self, inputs: Sequence[Batch], bound: int, last: bool) -> Output:
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
            mine = rank[: len(inputs[0])] if i == 0 else rank[len(inputs[0]) :]
            kept = holds(self.guards[i], x.array, len(x))
            kept = kept[x.te[kept] > x.ts[kept]]  # an instant meets nothing
            sides.append(concatenated([old[i], x.take(kept)]))
            orders.append(np.concatenate((self.order[i], mine[kept])))
            fresh.append(len(old[i]))
        if self.indexes:
            left, right = self._served(sides, orders, fresh)
        else:
            left, right = self._pairs(sides, fresh)
        a, b = sides[0].take(left), sides[1].take(right)
        ts, te = np.maximum(a.ts, b.ts), np.minimum(a.te, b.te)
        live = np.flatnonzero(ts < te)
        pairs = Batch(
            ts[live], te[live], (*(c[live] for c in a.columns), *(c[live] for c in b.columns))
        )
        of_left, of_right = orders[0][left[live]], orders[1][right[live]]
        held = holds(self.node.residual, pairs.array, len(pairs))
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
            columns = mapped(self.node.map, pairs.array, len(pairs))
            pairs = Batch(pairs.ts, pairs.te, tuple(columns))
        return pairs, bound

    def save(self) -> Any:
        stored = None if self.stored is None else [side.array for side in self.stored]
        return (stored, self.order, self.arrived)

    def load(self, saved: Any) -> None:
        stored, self.order, self.arrived = saved
        self.stored = None if stored is None else [Batch.of(array) for array in stored]
        if self.stored is not None:
            for place, index in enumerate(self.indexes):
                self._insert(index, self.order[place], self._indexed(place, self.stored[place]))

    # --- by a library's index -------------------------------------------------

    @property
    def _index_name(self) -> str:
        return self.node.index.name if self.node.index is not None else ""

    def _served(
        self, sides: list[Batch], orders: list[Ints], fresh: list[int]
    ) -> tuple[Ints, Ints]:
        """Places of pairs that may match of which one at least is new, as the index finds them."""
        new = [side.take(slice(cut, None)) for side, cut in zip(sides, fresh, strict=True)]
        columns = [self._indexed(place, batch) for place, batch in enumerate(new)]
        self._insert(self.indexes[1], orders[1][fresh[1] :], columns[1])
        at, right = self._candidates(1, orders[1], columns[0], len(new[0]))
        other, left = self._candidates(0, orders[0], columns[1], len(new[1]))
        self._insert(self.indexes[0], orders[0][fresh[0] :], columns[0])
        lefts = np.concatenate((at + fresh[0], left))
        rights = np.concatenate((right, other + fresh[1]))
        lefts, rights = np.unique(np.stack((lefts, rights)), axis=1)
        codes = self._codes(sides)
        equal = np.flatnonzero((codes[0][lefts] == codes[1][rights]) & (codes[0][lefts] >= 0))
        return lefts[equal], rights[equal]

    def _indexed(self, side: int, batch: Batch) -> list[Column]:
        assert self.node.index is not None
        arguments = self.node.index.left if side == 0 else self.node.index.right
        return [
            Evaluator(each.frame, batch.array, len(batch)).value(each.conditions[0])
            for each in arguments
        ]

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

    def _pairs(self, sides: list[Batch], fresh: list[int]) -> tuple[Ints, Ints]:
        """Places of pairs with equal terms of which one at least is new, by sorting one side."""
        codes = self._codes(sides)
        new_left = _matches(codes[0], codes[1], fresh[0], 0)
        new_right = _matches(codes[0][: fresh[0]], codes[1], 0, fresh[1])
        return (
            np.concatenate((new_left[0], new_right[0])),
            np.concatenate((new_left[1], new_right[1])),
        )

    def _codes(self, sides: list[Batch]) -> tuple[Ints, Ints]:
        """A number for each row's terms, equal where all terms are; -1 where a NaN is."""
        counts = [len(side) for side in sides]
        code = np.zeros(sum(counts), np.int64)
        nan = np.zeros(sum(counts), np.bool_)
        for number in range(len(self.terms[0])):
            parts = []
            for i, side in enumerate(sides):
                term = self.terms[i][number]
                evaluator = Evaluator(term.frame, side.array, len(side))
                parts.append(evaluator.value(term.conditions[0]))
            both = np.concatenate(parts)
            if both.dtype == np.float64:
                nan |= np.isnan(both)
                both = both + 0.0  # -0.0 equals 0.0
            distinct, inverse = np.unique(both, return_inverse=True)
            code = np.unique(code * max(len(distinct), 1) + inverse, return_inverse=True)[1]
        code = np.where(nan, -1, code)
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


class Aggregate:
    """All segments between two changes at once: each tuple counts for the span of segments it
    lives in. Segments are cut where a tuple starts, and touching equal ones of one cut are one."""

    KNOWN = (Count, Sum, Average, Least, Greatest)

    def __init__(self, node: n.Aggregate) -> None:
        self.node = node
        self.start = EARLIEST  # of what has not been told
        self.ts = self.te = np.empty(0, np.int64)
        self.values: list[list[Column]] | None = None  # what each partial takes, by leaf

    @classmethod
    def can(cls, node: n.Aggregate) -> bool:
        known = all(type(p.aggregate) in cls.KNOWN or p.aggregate.spans for p in node.partials)
        return known and node.side.key is None

    def process(self, inputs: Sequence[Batch], bound: int, last: bool) -> Output:
        (x,) = inputs
        kept = holds(self.node.side.guard, x.array, len(x))
        kept = kept[x.te[kept] > x.ts[kept]]
        fresh = x.take(kept)
        evaluator = Evaluator(self.node.frame, fresh.array, len(fresh))
        taken: list[list[Column]] = []
        for partial in self.node.partials:
            evaluator.steps(partial.before)
            taken.append([evaluator.value(argument) for argument in partial.arguments])
        ts = np.concatenate((self.ts, fresh.ts))
        te = np.concatenate((self.te, fresh.te))
        before = self.values or [[column[:0] for column in each] for each in taken]
        values = [
            [np.concatenate(both) for both in zip(old, new, strict=True)]
            for old, new in zip(before, taken, strict=True)
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
        self.values = [[column[stay] for column in each] for each in values]
        return out, self._promise(bound)

    def _promise(self, bound: int) -> int:
        return min(bound, self.start) if len(self.ts) else bound

    def save(self) -> Any:
        return (self.start, self.ts, self.te, self.values)

    def load(self, saved: Any) -> None:
        self.start, self.ts, self.te, self.values = saved

    def _segments(self, ts: Ints, te: Ints, values: list[list[Column]], now: Ints) -> Batch:
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
            for column in _final(partial, columns, lo, hi, live)
        ]
        some = np.flatnonzero(live)
        starts, ends = cuts[some], cuts[some + 1]
        finals = [column[some] for column in finals]
        call = np.searchsorted(now, ends)
        begins = np.ones(len(some), np.bool_)
        if len(some):
            same = (starts[1:] == ends[:-1]) & (call[1:] == call[:-1])
            for column in finals:
                equal = column[1:] == column[:-1]
                if column.dtype == np.float64:
                    equal |= np.isnan(column[1:]) & np.isnan(column[:-1])
                same &= equal.astype(np.bool_)
            begins[1:] = ~same
        first = np.flatnonzero(begins)
        starts = starts[first]
        ends = ends[np.append(first[1:], len(some)) - 1] if len(some) else ends
        array: list[Column] = [starts, ends] + [starts] * (self.node.width - 2)
        places = [place for group in self.node.results for place in group]
        for place, column in zip(places, finals, strict=True):
            array[place] = column[first]
        out = mapped(self.node.map, array, len(starts))
        return Batch(starts, ends, tuple(out))


def _final(partial: Partial, columns: list[Column], lo: Ints, hi: Ints, live: Ints) -> list[Column]:
    """The leaves of the result at each segment."""
    if not partial.aggregate.spans:
        return [_known(partial.aggregate, columns, lo, hi, live)]
    types = partial.bound.result.types
    with library.calling(partial.name):
        found = partial.aggregate.over(columns, lo, hi, len(live))
        leaves = [np.asarray(c, DTYPES[type]) for c, type in zip(found, types, strict=True)]
    if any(column.shape != live.shape for column in leaves):
        raise library.LibraryFailed(f"{partial.name}: want {len(live)} values in each column")
    return leaves


def _known(
    function: AggregateFunction, columns: list[Column], lo: Ints, hi: Ints, live: Ints
) -> Column:
    n = len(live)
    if isinstance(function, Count):
        return live
    (column,) = columns
    if isinstance(function, Average):
        return spans.sums(column, lo, hi, n) / np.maximum(live, 1)
    if isinstance(function, Sum):
        if column.dtype == np.float64:
            return spans.sums(column, lo, hi, n)
        found, wrong = spans.integer_sums(column, lo, hi, n)
        if wrong.any():
            raise NoValue("a sum does not fit 64 bits")
        return found
    greatest = isinstance(function, Greatest)
    if column.dtype != np.object_:
        return spans.extremes(column, lo, hi, n, greatest)
    distinct, ranks = np.unique(column, return_inverse=True)
    if not len(distinct):
        return np.full(n, "", np.object_)
    found = spans.extremes(ranks.astype(np.int64), lo, hi, n, greatest).astype(np.int64)
    kept: Column = distinct[np.where(live > 0, found, 0)]
    return kept
