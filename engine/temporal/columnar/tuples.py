"""Nodes that have no columnar form, tuple at a time inside a columnar network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from seustream.compiler.apas import network as n
from seustream.compiler.language.faults import Faults
from seustream.engine.stream.schema import arrow_type
from seustream.engine.temporal.aggregates.choose import choose
from seustream.engine.temporal.columnar.batch import IntervalBatch, empty
from seustream.engine.temporal.elements import STOP, ElementKind, StreamElement, boundary
from seustream.engine.temporal.library import LibraryFailed
from seustream.engine.temporal.operators import (
    ElementAggregate,
    ElementJoin,
    ElementOperator,
    Profile,
)


class TupleOperator:
    """A join or aggregation of the reference, fed from batches."""

    def __init__(self, node: n.Node, faults: Faults) -> None:
        self.leaves = node.leaves
        profile = Profile(derived_boundaries=False, faults=faults)
        self.operator: ElementOperator
        if isinstance(node, n.JoinNode):
            self.operator = ElementJoin(node, 0, profile, _failed)
        else:
            assert isinstance(node, n.AggregateNode)
            functions = [partial.aggregate for partial in node.partials]
            leaves = [len(group) for group in node.results]
            index = choose(functions, node.side.key is not None, False, leaves=leaves)
            self.operator = ElementAggregate(node, 0, profile, _failed, index)
        self.out: list[StreamElement] = []
        self.operator.emit = self.out.append
        self.reached: int | None = None

    @property
    def bad_keys(self) -> int:
        return self.operator.bad_keys

    def save(self) -> Any:
        return (self.operator.save(), self.reached)

    def load(self, saved: Any) -> None:
        operator, self.reached = saved
        self.operator.load(operator)

    def process(
        self, inputs: Sequence[IntervalBatch], bound: int, last: bool
    ) -> tuple[IntervalBatch, int]:
        sync = self.operator.sync
        for source, batch in enumerate(inputs):
            for ts, te, *values in batch.elements():
                assert isinstance(ts, int)
                assert isinstance(te, int)
                sync.put(source, StreamElement(ElementKind.INSERTION, ts, te, tuple(values)))
        aggregates = isinstance(self.operator, ElementAggregate)
        for source in range(len(inputs)):
            if last:
                sync.put(source, STOP)
            elif not aggregates:
                # A mark for the other side. It would cut an aggregate's intervals at the step.
                sync.put(source, boundary(bound))
        if aggregates:
            # The interval that runs began no earlier than the last tuple.
            (batch,) = inputs
            self.reached = int(batch.ts[-1]) if len(batch) else self.reached
            bound = bound if self.reached is None else min(bound, self.reached)
        rows = [x for x in self.out if x.kind is ElementKind.INSERTION]
        self.out.clear()
        if not rows:
            return empty(self.leaves), bound
        columns = zip(*(x.values for x in rows), strict=True)
        typed = tuple(
            pa.array(column, arrow_type(of))
            for column, (_, of) in zip(columns, self.leaves, strict=True)
        )
        ts = np.array([x.ts for x in rows], np.int64)
        te = np.array([x.te for x in rows], np.int64)
        return IntervalBatch(ts, te, typed), bound


def _failed(number: int, x: StreamElement, text: str) -> None:
    raise LibraryFailed(f"{text.strip().splitlines()[-1]} in {x!r}")
