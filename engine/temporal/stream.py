"""An APAS query as an operator of the graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.apas import network as n
from seustream.compiler.apas.compile import Compiled
from seustream.compiler.apas.tree import RESERVED, Node
from seustream.compiler.catalogue import Stream
from seustream.compiler.language.faults import FaultError, Faults
from seustream.compiler.xsql.intervals import END
from seustream.engine.stream.errors import EngineError
from seustream.engine.stream.faults import QueryFaults, fault_report, restore
from seustream.engine.stream.merge import END_OF_STREAM, OnLate
from seustream.engine.stream.operator import BEGIN_OF_TIME, Answer
from seustream.engine.stream.schema import arrow_type
from seustream.engine.stream.snapshot import Snapshot, unpack
from seustream.engine.stream.sorting import lexsort
from seustream.engine.temporal.columnar import operators as o
from seustream.engine.temporal.columnar.aggregate import ColumnarAggregate, IndexedAggregate
from seustream.engine.temporal.columnar.batch import IntervalBatch, concatenated, empty
from seustream.engine.temporal.columnar.join import ColumnarJoin
from seustream.engine.temporal.columnar.lifetimes import ColumnarLifetimes
from seustream.engine.temporal.elements import FOREVER
from seustream.engine.temporal.saving import Unsavable, plain, restored

_STEP_ROWS = 1 << 15
_VERSION = 2


class NodeFailed(EngineError):
    """A tuple has no value in a node."""


class TemporalNode:
    """An APAS query over streams of points, or of intervals where a stream has a column te. Its
    results are rows of the stream it defines: the begin is the time and the end a column, NULL
    where the row never ends. They are given under the name of the query and a #, since another
    query may have the name of that stream. Results of a query that is asked for are tuples in the
    form of `result_schema`.

    Rows of one time are taken in the order of their ends, so that their order of arrival does not
    matter. A row that ends before it begins is refused, counted and handed to `on_refused`. Inside,
    a network of operators is run in steps of about `step_rows` rows. Memory holds the rows that
    live in windows, and one step. `on_output` takes the output of each node.
    """

    def __init__(
        self,
        c: Compiled,
        streams: Mapping[str, Stream],
        faults: QueryFaults | None = None,
        on_refused: OnLate | None = None,
        step_rows: int = _STEP_ROWS,
        on_output: Callable[[int, IntervalBatch], None] | None = None,
    ) -> None:
        own = QueryFaults() if faults is None else faults
        self.compiled, self.faults, self.plan = c, {c.name: own}, c.network
        self.streams = {name: streams[name] for name in c.network.sources}
        self.inputs = tuple(self.streams)
        self.step_rows, self.on_refused, self.on_output = step_rows, on_refused, on_output
        self.refused: Counter[str] = Counter()
        self.operators = [_operator(node, self.plan, own) for node in self.plan.nodes]
        self._held: list[list[IntervalBatch]] = [
            [empty(self.plan.nodes[edge.node].leaves).picked(edge.columns) for edge in node.edges]
            for node in self.plan.nodes
        ]
        self._waiting: dict[str, list[pa.Table]] = {name: [] for name in self.inputs}
        self._marks = dict.fromkeys(self.inputs, BEGIN_OF_TIME)
        self._watermark = BEGIN_OF_TIME
        self._reached = BEGIN_OF_TIME  # the time up to which the inputs have been run

    @property
    def watermark(self) -> int:
        return self._watermark

    @property
    def bad_keys(self) -> int:
        """The number of tuples with a time-table's key 0."""
        return sum(getattr(operator, "bad_keys", 0) for operator in self.operators)

    def push(self, input: str, rows: pa.Table) -> None:
        self._waiting[input].append(rows)

    def advance(self, input: str, watermark: int) -> None:
        self._marks[input] = max(self._marks[input], watermark)

    def outputs(self) -> Iterator[Answer]:
        mark = min(self._marks.values())
        if mark <= self._reached:
            return
        sources = {name: self._released(name, mark) for name in self.inputs}
        self._reached, last = mark, mark == END_OF_STREAM
        end = FOREVER if last else mark + 1
        every = np.sort(np.concatenate([batch.ts for batch in sources.values()]), kind="stable")
        bounds = [*np.unique(every[self.step_rows :: self.step_rows]).tolist(), end]
        places = {
            name: list(pairwise([0, *np.searchsorted(b.ts, bounds[:-1]).tolist(), len(b)]))
            for name, b in sources.items()
        }
        found = []
        for number, bound in enumerate(bounds):
            parts = {name: b.take(slice(*places[name][number])) for name, b in sources.items()}
            found.append(self._step(parts, bound, last and number == len(bounds) - 1))
        results = concatenated(found)
        if last:
            self._watermark = END_OF_STREAM
        if len(results):
            names = [*RESERVED, *(name for name, _ in self.plan.nodes[-1].leaves)]
            table = pa.table([results.ts, results.te, *results.columns], names=names)
            if self.compiled.asked:
                yield self.compiled.name, table.cast(result_schema(self.compiled.tree))
            else:
                yield f"{self.compiled.name}#", _rows(table)

    def _released(self, name: str, mark: int) -> IntervalBatch:
        """Returns the rows up to a time that have not been taken yet, by (ts, te)."""
        node = self.plan.nodes[self.plan.sources[name]]
        assert isinstance(node, n.StreamNode)
        if not self._waiting[name]:
            return empty(node.leaves)
        rows = pa.concat_tables(self._waiting[name])
        cut = int(np.searchsorted(rows["ts"].to_numpy(), mark, "right"))
        self._waiting[name] = [rows.slice(cut)] if cut < rows.num_rows else []
        rows = rows.slice(0, cut)
        stream = self.streams[name]
        ends = next((c for c in stream.columns if c.name == END and c.type.is_integer), None)
        ts = te = rows["ts"].to_numpy()
        if ends is not None:
            # Without an end, a row of a base stream is a point, and a result of a query never ends.
            none = rows["ts"] if stream.defined_by is None else pa.scalar(FOREVER)
            te = pc.coalesce(rows[END].cast(pa.int64()), none).to_numpy()
        batch = IntervalBatch(
            ts,
            te,
            tuple(
                rows[".".join(path)].cast(arrow_type(type)).combine_chunks()
                for path, (_, type) in zip(node.paths, node.leaves, strict=True)
            ),
        )
        wrong = te < ts
        if wrong.any():
            self.refused[name] += int(wrong.sum())
            if self.on_refused is not None:
                self.on_refused(name, rows.filter(pa.array(wrong)))
        in_order = (ts[1:] > ts[:-1]) | ((ts[1:] == ts[:-1]) & (te[1:] >= te[:-1]))
        if in_order.all() and not wrong.any():
            return batch
        order = lexsort((te, ts))
        return batch.take(order[~wrong[order]])

    def _step(self, sources: dict[str, IntervalBatch], bound: int, last: bool) -> IntervalBatch:
        """Returns the results of everything that starts before a bound."""
        outputs: list[IntervalBatch] = []
        promises: list[int] = []
        for number, (node, operator) in enumerate(
            zip(self.plan.nodes, self.operators, strict=True)
        ):
            if operator is None:
                assert isinstance(node, n.StreamNode)
                self._gives(number, sources[node.stream], outputs)
                promises.append(bound)
                continue
            mine = min(promises[edge.node] for edge in node.edges)
            inputs = []
            for source, edge in enumerate(node.edges):
                held = self._held[number][source]
                whole = outputs[edge.node].picked(edge.columns)
                if len(held):
                    whole = concatenated([held, whole])
                cut = len(whole) if last else int(np.searchsorted(whole.ts, mine))
                if cut < len(whole) or len(held):
                    self._held[number][source] = whole.take(slice(cut, None))
                inputs.append(whole if cut == len(whole) else whole.take(slice(0, cut)))
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
            self._gives(number, out, outputs)
            promises.append(promise)
        self._watermark = promises[-1] - 1
        return outputs[-1]

    def _gives(self, number: int, out: IntervalBatch, outputs: list[IntervalBatch]) -> None:
        outputs.append(out)
        if self.on_output is not None and len(out):
            self.on_output(number, out)

    def snapshot(self) -> bytes:
        """Packs the state; raises `NodeFailed` if a library's state cannot be saved."""
        tables = {
            f"waiting {name}": pa.concat_tables(parts)
            for name, parts in self._waiting.items()
            if parts
        }
        state = {
            "text": self.compiled.source.text.strip(),
            "operators": [self._saved(number) for number in range(len(self.operators))],
            "held": plain([[batch.save() for batch in node] for node in self._held]),
            "refused": self.refused,
            "watermark": self._watermark,
            "reached": self._reached,
            "marks": self._marks,
            "faults": fault_report(self.faults),
        }
        return Snapshot("temporal", state, tables, _VERSION).pack()

    def _saved(self, number: int) -> Any:
        operator = self.operators[number]
        try:
            return plain(None if operator is None else operator.save())
        except Unsavable as error:
            raise NodeFailed(
                f"node {self.plan.titles[number]}: {error}",
                "keep numbers, texts, columns, lists and dicts of them, or give `save`, `load`",
            ) from None

    def restore(self, snapshot: bytes) -> None:
        """Restores a snapshot; with the snapshot of another query text the node starts afresh."""
        state = unpack(snapshot, "temporal", _VERSION)
        if state.plain["text"] != self.compiled.source.text.strip():
            return
        for operator, each in zip(self.operators, state.plain["operators"], strict=True):
            if operator is not None:
                operator.load(restored(each))
        self._held = [
            [IntervalBatch.load(each) for each in node] for node in restored(state.plain["held"])
        ]
        for name in self.inputs:
            if (waiting := state.tables.get(f"waiting {name}")) is not None:
                self._waiting[name] = [waiting]
        self.refused = Counter(state.plain["refused"])
        self._reached, self._watermark = state.plain["reached"], state.plain["watermark"]
        self._marks |= state.plain["marks"]
        restore(self.faults, state.plain["faults"])


def _operator(node: n.Node, plan: n.Network, faults: Faults) -> o.ColumnarOperator | None:
    match node:
        case n.StreamNode():
            return None
        case n.SetEndNode():
            return o.ColumnarSetEnd(node)
        case n.LifetimesNode():
            return ColumnarLifetimes(node, faults)
        case n.MergeNode():
            return o.ColumnarMerge(node)
        case n.SelectNode():
            return o.ColumnarSelect(node, faults)
        case n.JoinNode():
            return ColumnarJoin(node, faults)
        case n.AggregateNode() if ColumnarAggregate.can(node):
            return ColumnarAggregate(node, faults)
        case n.AggregateNode():
            in_order = isinstance(plan.nodes[node.side.edge.node], n.SetEndNode)
            return IndexedAggregate(node, in_order, faults)


def result_schema(tree: Node) -> pa.Schema:
    """Returns the columns of a requested query's results: ts, te, and its leaves by path."""
    times = [pa.field(name, pa.int64(), nullable=False) for name in RESERVED]
    leaves = [
        pa.field(".".join(path), arrow_type(type))
        for path, type in zip(tree.paths, tree.types, strict=True)
    ]
    return pa.schema([*times, *leaves])


def _rows(results: pa.Table) -> pa.Table:
    """Returns results in the order of their begin, with their end."""
    end = pc.if_else(pc.equal(results["te"], FOREVER), pa.scalar(None, pa.int64()), results["te"])
    table = results.set_column(1, "te", end)
    return table.take(pa.array(np.argsort(table["ts"].to_numpy(), kind="stable")))
