"""An APAS network a batch at a time, over Arrow tables.

    run = ColumnarRun(compiled, trees)
    run.push("I", rows)                 # ts, te, leaves in order, as `seustream.intervals` reads them
    for results in run.finish(): ...

Rows go through the gate first: what the feed would reject is rejected here, for the same reasons,
counted and kept. Each step takes all streams up to a time; memory is that of what lives in windows
and of one step. Nodes that have no columnar form (time-tables, aggregates of users) run tuple at a
time inside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.apas import network as n
from seustream.compiler.apas.compile import Compiled
from seustream.compiler.apas.tree import Node
from seustream.compiler.language.faults import FaultError, Faults
from seustream.compiler.language.types import Type
from seustream.engine.stream.errors import EngineError
from seustream.engine.stream.evaluate import real_only
from seustream.engine.stream.schema import arrow_type
from seustream.engine.temporal.columnar import operators as o
from seustream.engine.temporal.columnar.batch import IntervalBatch, concatenated, empty
from seustream.engine.temporal.columnar.lifetimes import ColumnarLifetimes
from seustream.engine.temporal.columnar.tuples import TupleOperator
from seustream.engine.temporal.elements import EARLIEST, FOREVER
from seustream.engine.temporal.saving import Unsavable, plain, restored

Ints = npt.NDArray[np.int64]


class NodeFailed(EngineError):
    """A tuple has no value in a node."""


class ColumnarRun:
    """One run of a query over whole streams; `step_rows` is about how many go through at a time."""

    def __init__(
        self,
        c: Compiled,
        trees: Mapping[str, Node],
        step_rows: int = 1 << 15,
        faults: Faults | None = None,
    ) -> None:
        self.faults = Faults() if faults is None else faults
        self.plan, self.tree, self.trees = c.network, c.tree, trees
        self.step_rows = step_rows
        self.promise = EARLIEST  # no later result begins before it
        self.operators: list[o.ColumnarOperator | None] = [
            _operator(node, self.faults) for node in c.network.nodes
        ]
        self.waiting: dict[str, list[IntervalBatch]] = {name: [] for name in c.network.sources}
        self.last: dict[str, tuple[int, int]] = {}
        self.accepted: Counter[str] = Counter()
        self.reasons: dict[str, Counter[str]] = {}
        self.rejected: dict[str, list[pa.Table]] = {}
        self.held: list[list[list[IntervalBatch]]] = [
            [[] for _ in node.edges] for node in c.network.nodes
        ]

    @property
    def bad_keys(self) -> int:
        """Tuples with a time-table's key 0."""
        return sum(op.bad_keys for op in self.operators if isinstance(op, TupleOperator))

    def push(self, stream: str, rows: pa.Table) -> None:
        """Rows of a stream in the order they come."""
        rows = self._gate(stream, rows)
        node = self.plan.nodes[self.plan.sources[stream]]
        assert isinstance(node, n.StreamNode)
        columns = tuple(
            _column(rows.column(".".join(path)), type)
            for path, (_, type) in zip(node.paths, node.leaves, strict=True)
        )
        self.accepted[stream] += rows.num_rows
        self.waiting[stream].append(IntervalBatch(_ints(rows, "ts"), _ints(rows, "te"), columns))

    def advance(self, now: int) -> Iterator[pa.Table]:
        """The results that are certain: no tuple of any stream before `now` comes any more. Iterate
        it to its end."""
        yield from self._steps(now)
        yield from self._results(self._step(self._taken(now), now, False))

    def finish(self) -> Iterator[pa.Table]:
        """All results; the streams end."""
        yield from self._steps(FOREVER)
        yield from self._results(self._step(self._taken(None), FOREVER, True))

    def save(self) -> Any:
        """The state between two calls, as plain values for JSON; raises `NodeFailed` for a state of
        a library's that no snapshot can hold."""
        whole = []
        for title, operator in zip(self.plan.titles, self.operators, strict=True):
            try:
                whole.append(plain(None if operator is None else operator.save()))
            except Unsavable as error:
                hint = (
                    "keep numbers, texts, columns, lists and dicts of them, or give `save`, `load`"
                )
                raise NodeFailed(f"node {title}: {error}", hint) from None
        sources = {name: [b.save() for b in batches] for name, batches in self.waiting.items()}
        held = [[[b.save() for b in one] for one in node] for node in self.held]
        gate = (self.last, dict(self.accepted), {n: dict(r) for n, r in self.reasons.items()})
        return {"nodes": whole, "waiting": plain(sources), "held": plain(held), "gate": plain(gate)}

    def load(self, saved: Any) -> None:
        """Goes on from a state, in a new run of the same query."""
        for operator, each in zip(self.operators, saved["nodes"], strict=True):
            if operator is not None:
                operator.load(restored(each))
        for name, batches in restored(saved["waiting"]).items():
            self.waiting[name] = [IntervalBatch.load(each) for each in batches]
        self.held = [
            [[IntervalBatch.load(each) for each in one] for one in node]
            for node in restored(saved["held"])
        ]
        self.last, accepted, reasons = restored(saved["gate"])
        self.accepted = Counter(accepted)
        self.reasons = {name: Counter(each) for name, each in reasons.items()}

    # --- steps ----------------------------------------------------------------

    def _steps(self, end: int) -> Iterator[pa.Table]:
        """Goes through what waits and starts before `end`, about `step_rows` at a time."""
        every = np.concatenate(
            [np.empty(0, np.int64), *(b.ts for batches in self.waiting.values() for b in batches)]
        )
        every = np.sort(every[every < end])
        for bound in np.unique(every[self.step_rows :: self.step_rows]).tolist():
            yield from self._results(self._step(self._taken(bound), bound, False))

    def _taken(self, bound: int | None) -> dict[str, IntervalBatch]:
        """Takes what starts before a bound, or all."""
        found = {}
        for name, batches in self.waiting.items():
            if not batches:
                continue
            whole = concatenated(batches)
            cut = len(whole) if bound is None else int(np.searchsorted(whole.ts, bound))
            found[name] = whole.take(slice(0, cut))
            self.waiting[name] = [whole.take(slice(cut, None))] if cut < len(whole) else []
        return found

    def _step(self, sources: dict[str, IntervalBatch], bound: int, last: bool) -> IntervalBatch:
        outputs: list[IntervalBatch] = []
        promises: list[int] = []
        for number, (node, operator) in enumerate(
            zip(self.plan.nodes, self.operators, strict=True)
        ):
            if isinstance(node, n.StreamNode):
                outputs.append(sources.get(node.stream, empty(node.leaves)))
                promises.append(bound)
                continue
            assert operator is not None
            mine = min(promises[edge.node] for edge in node.edges)
            inputs = []
            for source, edge in enumerate(node.edges):
                held = self.held[number][source]
                whole = concatenated([*held, outputs[edge.node].picked(edge.columns)])
                cut = len(whole) if last else int(np.searchsorted(whole.ts, mine))
                inputs.append(whole.take(slice(0, cut)))
                self.held[number][source] = [whole.take(slice(cut, None))]
            try:
                out, promise = operator.process(inputs, mine, last)
            except FaultError as error:
                raise NodeFailed(
                    f"node {self.plan.titles[number]}: {error}",
                    "without --strict it is NULL and counted",
                ) from error
            except (ArithmeticError, ValueError, TypeError, LookupError) as error:
                raise NodeFailed(
                    f"node {self.plan.titles[number]}: {error}",
                    "exclude such tuples with where, in a definition before this one",
                ) from error
            outputs.append(out)
            promises.append(promise)
        self.promise = promises[-1]
        return outputs[-1]

    def _results(self, batch: IntervalBatch) -> Iterator[pa.Table]:
        if not len(batch):
            return
        names = ["ts", "te", *(name for name, _ in self.plan.nodes[-1].leaves)]
        yield pa.table([batch.ts, batch.te, *batch.columns], names=names)

    # --- the gate -------------------------------------------------------------

    def _gate(self, stream: str, rows: pa.Table) -> pa.Table:
        """The rows the feed's gate accepts."""
        ts, te = _ints(rows, "ts"), _ints(rows, "te")
        interval = te < ts
        # Of the others a row is late if its key is below the greatest before it.
        good = np.flatnonzero(~interval)
        keys = np.stack((ts[good], te[good]), axis=1)
        if stream in self.last and len(keys):
            keys = np.concatenate((np.array([self.last[stream]], np.int64), keys))
        below = _below_an_earlier(keys)[len(keys) - len(good) :]
        late = np.zeros(len(ts), np.bool_)
        late[good[below]] = True
        accepted = ~interval & ~late
        if accepted.any():
            where = int(np.flatnonzero(accepted)[-1])
            self.last[stream] = (int(ts[where]), int(te[where]))
        if accepted.all():
            return rows
        reasons = np.where(interval, "interval", "late")[~accepted]
        self.reasons.setdefault(stream, Counter()).update(reasons.tolist())
        rejected = rows.filter(pa.array(~accepted))
        rejected = rejected.append_column("rejected", pa.array(reasons.tolist(), pa.string()))
        self.rejected.setdefault(stream, []).append(rejected)
        return rows.filter(pa.array(accepted))


def _below_an_earlier(keys: Ints) -> npt.NDArray[np.bool_]:
    """Returns which keys (ts, te) are below the greatest before them. Most streams come in order."""
    ts, te = keys[:, 0], keys[:, 1]
    if ((ts[1:] > ts[:-1]) | ((ts[1:] == ts[:-1]) & (te[1:] >= te[:-1]))).all():
        return np.zeros(len(keys), np.bool_)
    rank = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    found: npt.NDArray[np.bool_] = rank < np.maximum.accumulate(rank)
    return found


def _operator(node: n.Node, faults: Faults) -> o.ColumnarOperator | None:
    match node:
        case n.StreamNode():
            return None
        case n.SetEndNode():
            return o.ColumnarSetEnd(node)
        case n.LifetimesNode():
            return ColumnarLifetimes(node, faults)
        case n.MergeNode():
            return o.ColumnarMerge()
        case n.SelectNode():
            return o.ColumnarSelect(node, faults)
        case n.JoinNode() if node.left.key is None and node.right.key is None:
            return o.ColumnarJoin(node, faults)
        case n.AggregateNode() if o.ColumnarAggregate.can(node):
            return o.ColumnarAggregate(node, faults)
        case _:
            return TupleOperator(node, faults)


def _ints(rows: pa.Table, name: str) -> Ints:
    return np.asarray(rows.column(name).combine_chunks(), dtype=np.int64)


def _column(column: pa.ChunkedArray, of: Type) -> pa.Array:
    """A column in its type; NaN is NULL."""
    wanted = arrow_type(of)
    found = column.combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        found = found.chunk(0) if found.num_chunks else pa.array([], found.type)
    found = found if found.type == wanted else found.cast(wanted)
    return real_only(found) if of.is_inexact else found
