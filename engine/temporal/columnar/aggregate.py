"""Aggregation on columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.apas import network as n
from seustream.compiler.apas.expressions import PartialAggregate
from seustream.compiler.apas.functions import Registered
from seustream.compiler.apas.types import DOUBLE, INTEGER
from seustream.compiler.language.faults import Faults
from seustream.compiler.language.registry import Fault
from seustream.compiler.language.types import Kind
from seustream.engine.stream import spans
from seustream.engine.stream.schema import arrow_type
from seustream.engine.temporal import library
from seustream.engine.temporal.aggregates.choose import choose
from seustream.engine.temporal.aggregates.index import ListIndex, Result, Values
from seustream.engine.temporal.columnar.batch import IntervalBatch, empty
from seustream.engine.temporal.columnar.evaluate import (
    Evaluator,
    as_numpy,
    holds,
    interval_of,
    mapped,
    only,
    taken,
)
from seustream.engine.temporal.columnar.join import keys_of
from seustream.engine.temporal.columnar.operators import Ints, Output
from seustream.engine.temporal.elements import EARLIEST, FOREVER

Mask = npt.NDArray[np.bool_]
Column = npt.NDArray[Any]


class ColumnarAggregate:
    """Computes all segments between two changes at once: each tuple counts for the span of segments
    it lives in. Segments are cut where a tuple starts; equal segments that touch within one cut are
    merged."""

    def __init__(self, node: n.AggregateNode, faults: Faults) -> None:
        self.node, self.faults = node, faults
        self.start = EARLIEST  # start of the results not given yet
        self.ts = self.te = np.empty(0, np.int64)
        self.values: list[list[pa.Array]] | None = None  # the arguments of each partial, by leaf

    @classmethod
    def can(cls, node: n.AggregateNode) -> bool:
        return node.side.key is None and all(map(_has_columns, node.partials))

    def process(self, inputs: Sequence[IntervalBatch], bound: int, last: bool) -> Output:
        (x,) = inputs
        kept = holds(self.node.side.guard, x.array, len(x), self.faults)
        kept = kept[x.te[kept] > x.ts[kept]]
        fresh = x.only(kept)
        new = _arguments(self.node, fresh, self.faults)
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
        reached, over = int(now.max(initial=self.start)), int(te.max(initial=EARLIEST))
        if reached < over <= bound:  # all have ended, and what is still to come starts later
            now = np.append(now, over)
        if len(now):
            out = self._segments(ts, te, values, now)
            self.start = int(now[-1])
        else:
            out = empty(self.node.leaves)
        left = np.flatnonzero(te > self.start)
        self.ts, self.te = ts[left], te[left]
        self.values = [[only(column, left) for column in each] for each in values]
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
        with self.faults.naming(interval_of((cuts[:-1], cuts[1:]))):
            finals = [
                column
                for partial, columns in zip(self.node.partials, values, strict=True)
                for column in self._final(partial, columns, lo, hi, live)
            ]
        some = np.flatnonzero(live)
        starts, ends = cuts[some], cuts[some + 1]
        finals = [only(column, some) for column in finals]
        call = np.searchsorted(now, ends)
        begins = np.ones(len(some), np.bool_)
        if len(some) > 1:
            same = (starts[1:] == ends[:-1]) & (call[1:] == call[:-1])
            for column in finals:
                same &= _equal_to_the_one_before(column)
            begins[1:] = ~same
        first = np.flatnonzero(begins)
        starts = starts[first]
        ends = ends[np.append(first[1:], len(some)) - 1] if len(some) else ends
        return _mapped(
            self.node, starts, ends, [only(column, first) for column in finals], self.faults
        )

    # --- the partials at each segment -----------------------------------------

    def _final(
        self, partial: PartialAggregate, columns: list[pa.Array], lo: Ints, hi: Ints, live: Ints
    ) -> list[pa.Array]:
        """Returns the leaves of a result at each segment. A tuple with a NULL among its values does
        not count."""
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
            found, known = spans.totals(as_numpy(column), lo, hi, n, mean=name == "avg")
            self._count(partial, ~(known | none))
            return pa.array(found, to, mask=~known)
        return _extreme(column, lo, hi, live, name == "max")

    def _count(self, partial: PartialAggregate, wrong: Mask) -> None:
        """Counts the segments whose sum does not fit."""
        if wrong.any():
            self.faults.add(partial.place, int(wrong.sum()), int(wrong.argmax()))


class IndexedAggregate:
    """Aggregates that need an index, tuple by tuple: those of users without `over`, those of the
    registry without a column form, and any aggregate of a time-table, whose rows end early."""

    def __init__(self, node: n.AggregateNode, in_order: bool, faults: Faults) -> None:
        self.node, self.faults = node, faults
        functions = [partial.aggregate for partial in node.partials]
        leaves = [len(group) for group in node.results]
        self._of = functions, leaves
        self.index = choose(functions, node.side.key is not None, in_order, leaves)
        self.table: dict[int, tuple[int, Values]] = {}  # by key, the end and the aggregated values
        self.reached: int | None = None
        self.over = EARLIEST  # where the last row ends
        self.bad_keys = 0

    def process(self, inputs: Sequence[IntervalBatch], bound: int, last: bool) -> Output:
        (x,) = inputs
        key = self.node.side.key
        keys = np.ones(len(x), np.int64) if key is None else keys_of(x, key)
        named = np.flatnonzero(keys > 0)
        named = named[holds(self.node.side.guard, x.take(named).array, len(named), self.faults)]
        arguments = [
            list(zip(*(column.to_pylist() for column in each), strict=True)) or [()] * len(named)
            for each in _arguments(self.node, x.take(named), self.faults)
        ]
        values = dict(zip(named.tolist(), zip(*arguments, strict=True), strict=True))
        out: list[Result] = []
        with library.calling(", ".join(partial.name for partial in self.node.partials)):
            for row, (ts, te, k) in enumerate(
                zip(x.ts.tolist(), x.te.tolist(), keys.tolist(), strict=True)
            ):
                out += self.index.reorganise(ts)
                if key is None:
                    self._change(values.get(row), ts, te)
                    self.over = max(self.over, te) if row in values else self.over
                else:
                    self._keyed(k, values.get(row), ts, te)
                self.reached = ts
            if key is not None:  # rows may have ended early
                self.over = max((end for end, of in self.table.values() if of), default=EARLIEST)
            if self.reached is not None and self.reached < self.over <= bound:
                out += self.index.reorganise(self.over)
                self.reached = self.over
            if last:
                out += self.index.reorganise(FOREVER)
        if self.reached is not None:
            now = self.reached
            bound = min(bound, now) if now < self.over else bound
            self.table = {k: row for k, row in self.table.items() if row[0] > now}
        return self._results(out), bound

    def save(self) -> Any:
        return (self.index.save(), self.table, self.reached, self.bad_keys, self.over)

    def load(self, saved: Any) -> None:
        index, self.table, self.reached, self.bad_keys, *over = saved
        self.over = over[0] if over else FOREVER  # a state of a release that did not keep it
        if isinstance(index, list):  # so may be a state of a release that knew no better structure
            self.index = ListIndex(*self._of)
        self.index.load(index)

    def _change(self, values: Values | None, ts: int, te: int, sign: int = 1) -> None:
        if values is not None and ts < te:
            self.index.change(values, ts, te, sign)

    def _keyed(self, key: int, values: Values | None, ts: int, te: int) -> None:
        """Takes a row of a time-table. It ends the row of its key or, if the key is negative, moves
        that row's end. `values` is None where the condition on the row does not hold."""
        self.bad_keys += key == 0
        end, before = self.table.get(abs(key), (ts, None))
        if end <= ts:
            before = None  # it has ended
        if key > 0:
            self._change(before, ts, end, -1)
            self._change(values, ts, te)
            self.table[key] = (ts if values is None else te, values or ())
        elif before is not None:
            self._change(before, min(te, end), max(te, end), 1 if te > end else -1)
            self.table[-key] = (te, before)

    def _results(self, found: list[Result]) -> IntervalBatch:
        starts, ends = (np.array([each[i] for each in found], np.int64) for i in (0, 1))
        of = [(p.place, type) for p in self.node.partials for type in p.bound.result.types]
        finals = []
        with self.faults.naming(interval_of((starts, ends))):
            for at, (place, type) in enumerate(of):
                column = [values[at] for _, _, values in found]
                for row, value in enumerate(column):
                    if isinstance(value, Fault):
                        self.faults.add(place, 1, row)
                        column[row] = None
                finals.append(pa.array(column, arrow_type(type)))
        return _mapped(self.node, starts, ends, finals, self.faults)


def _arguments(node: n.AggregateNode, x: IntervalBatch, faults: Faults) -> list[list[pa.Array]]:
    """Returns the arguments of each partial aggregate for the tuples."""
    evaluator, found = Evaluator(node.frame, x.array, len(x), faults), []
    with faults.naming(interval_of(x.array)):
        for partial in node.partials:
            evaluator.steps(partial.before)
            found.append([evaluator.value(argument) for argument in partial.arguments])
    return found


def _mapped(
    node: n.AggregateNode, starts: Ints, ends: Ints, finals: Sequence[pa.Array], faults: Faults
) -> IntervalBatch:
    """Returns the tuples of segments whose partial results are `finals`."""
    array: list[Any] = [starts, ends] + [starts] * (node.width - 2)
    places = [place for group in node.results for place in group]
    for place, column in zip(places, finals, strict=True):
        array[place] = column
    return IntervalBatch(starts, ends, tuple(mapped(node.map, array, len(starts), faults)))


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
    """Returns whether each row but the first equals the one before it; NULL equals NULL."""
    a, b = column.slice(1), column.slice(0, len(column) - 1)
    equal = np.asarray(pc.fill_null(pc.equal(a, b), False))
    if column.null_count:
        equal = equal | (np.asarray(a.is_null()) & np.asarray(b.is_null()))
    found: Mask = equal
    return found


def _extreme(column: pa.Array, lo: Ints, hi: Ints, live: Ints, greatest: bool) -> pa.Array:
    """Returns the least or greatest value at each segment, NULL where none counts."""
    n, none = len(live), live == 0
    of = column.type
    if pa.types.is_floating(of) or pa.types.is_int64(of):
        return pa.array(spans.extremes(np.asarray(column), lo, hi, n, greatest), of, mask=none)
    # Other types go by their rank among the distinct values.
    distinct = pc.unique(column)
    order = pc.sort_indices(distinct)
    if not len(distinct):
        return pa.nulls(n, of)
    rank = np.empty(len(distinct), np.int64)
    rank[np.asarray(order)] = np.arange(len(distinct))
    ranks = rank[np.asarray(column.dictionary_encode().indices)]
    found = np.where(none, 0, spans.extremes(ranks, lo, hi, n, greatest))
    return distinct.take(order).take(pa.array(found, mask=none))
