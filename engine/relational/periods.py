"""GROUP BY TUMBLE, HOP and SESSION: a row for each group of each window, once the window is
over."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from seustream.compiler.logical import program as logical
from seustream.engine.relational.cohort import PeriodCohort, PeriodState
from seustream.engine.stream.faults import QueryFaults, fault_report, restore
from seustream.engine.stream.merge import END_OF_STREAM
from seustream.engine.stream.operator import BEGIN_OF_TIME, Answer, Operator
from seustream.engine.stream.schema import stream_schema
from seustream.engine.stream.snapshot import Snapshot, unpack


class PeriodOperator:
    """Answers a query that groups by windows of time. It remembers the rows of windows that are not
    over: their times, their keys and the arguments of the aggregates; in a cohort, with those of
    others."""

    def __init__(self, node: logical.PeriodGroups, faults: QueryFaults) -> None:
        self.node, self.faults = node, {node.name: faults}
        (self.stream,) = node.inputs
        self.inputs = (self.stream.name,)
        self.state = PeriodState(node, faults)
        self.cohort = PeriodCohort(self.state)

    def push(self, input: str, rows: pa.Table) -> None:
        if rows.num_rows:
            self.state.coming.append(rows)
            self.cohort.stir(self.state)
            self.advance(input, rows.column("ts")[-1].as_py() - 1)

    def advance(self, input: str, watermark: int) -> None:
        if watermark > self.state.watermark:
            self.state.watermark = watermark
            self.cohort.stir(self.state)

    @property
    def watermark(self) -> int:
        return self.state.watermark

    def outputs(self) -> Iterator[Answer]:
        state = self.state
        if state.stirred:
            self.cohort.bring_forward(state)
        found, state.results = state.results, None
        if found is not None and found.num_rows:
            yield self.node.name, found

    def leave(self) -> None:
        """Takes its rows out of its cohort, which goes on without it."""
        self.cohort.leave(self.state)

    def snapshot(self) -> bytes:
        state, schema = self.state, stream_schema(self.stream)
        ended = state.watermark == END_OF_STREAM
        promise = None if state.watermark == BEGIN_OF_TIME or ended else state.watermark + 1
        plain = {
            "text": self.node.text,
            "done": state.done,
            "told": state.told,
            "count": state.count,
            "inputs": {self.stream.name: {"promise": promise, "ended": ended}},
            "faults": fault_report(self.faults),
        }
        waiting = pa.concat_tables([schema.empty_table(), *state.coming])
        tables = {f"waiting {self.stream.name}": waiting, **self.cohort.tables(state)}
        # An earlier version would read groups as no rows.
        return Snapshot("groups", plain, tables, 2 if "groups" in tables else 1).pack()

    def restore(self, snapshot: bytes) -> None:
        """Restores the groups of a query of the same text; for another query they start afresh."""
        before, state = unpack(snapshot, "groups", 1, 2), self.state
        plain = before.plain
        if plain["text"] != self.node.text or not self.cohort.take_over(state, before.tables):
            return
        state.done, state.count, state.told = plain["done"], plain["count"], plain["told"]
        restore(self.faults, plain["faults"])
        name = self.stream.name
        known, waiting = plain["inputs"].get(name), before.tables.get(f"waiting {name}")
        if (
            known is not None
            and waiting is not None
            and waiting.schema == stream_schema(self.stream)
        ):
            self.push(name, waiting)
            if known["ended"]:
                self.advance(name, END_OF_STREAM)
            elif known["promise"] is not None:
                self.advance(name, known["promise"] - 1)


def hold_together(operators: Iterable[tuple[Hashable, PeriodOperator]]) -> None:
    """Makes cohorts of operators that differ only in their conditions. The first of each pair tells
    which streams come with the same watermarks. The operators have taken no rows yet."""
    alike: dict[Hashable, list[PeriodOperator]] = {}
    for place, operator in operators:
        if not operator.node.changes and not operator.state.numbered:
            alike.setdefault((place, *_form(operator.node)), []).append(operator)
    for some in alike.values():
        if len(some) > 1:
            cohort = PeriodCohort(*(operator.state for operator in some))
            for operator in some:
                operator.cohort = cohort


def held_together(operators: Mapping[str, Operator]) -> list[list[str]]:
    """Returns the names of operators that are in one cohort."""
    found: dict[PeriodCohort, list[str]] = {}
    for own, operator in operators.items():
        if isinstance(operator, PeriodOperator) and operator.cohort.several:
            found.setdefault(operator.cohort, []).append(own)
    return list(found.values())


def _form(node: logical.PeriodGroups) -> tuple[Any, ...]:
    """Returns the features that queries in one cohort have in common."""
    (stream,) = node.inputs
    types = tuple((column.type, column.nullable) for column in stream.columns)
    read = (node.columns, types, node.every, node.group_by)
    return (*read, node.items, node.having, node.order_by, node.limit)
