"""The operators of a graph: one for each part of the compilation that needs one, by a lasting
name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from seustream.compiler.apas.compile import Compiled
from seustream.compiler.catalogue import Stream
from seustream.compiler.errors import SourceText
from seustream.compiler.language.faults import FaultError
from seustream.compiler.logical.levels import Node, level, levels, nodes, reads
from seustream.compiler.logical.program import Operation, Program, Query
from seustream.compiler.pattern import ir
from seustream.compiler.pipeline import Compilation
from seustream.engine.changing import Change
from seustream.engine.host.answers import said_of
from seustream.engine.host.driver import DEVICE_JOIN, HostDriver
from seustream.engine.host.errors import WITHOUT, EvaluationError
from seustream.engine.host.stages import SoftwareJoin
from seustream.engine.meters import RunMeters
from seustream.engine.relational import operator_of
from seustream.engine.relational.periods import PeriodOperator, hold_together
from seustream.engine.runs import Report, late_of, software_join
from seustream.engine.stream.answers import result_schema
from seustream.engine.stream.failures import Failures
from seustream.engine.stream.faults import QueryFaults, located
from seustream.engine.stream.merge import OnLate
from seustream.engine.stream.operator import Operator
from seustream.hdl.device import Device

if TYPE_CHECKING:  # operators that a query set does not need are not imported
    from seustream.engine.pattern.stream import PatternNode
    from seustream.engine.temporal.stream import TemporalNode


def as_tuple(devices: Device | Sequence[Device] | None) -> tuple[Device, ...]:
    """Returns one device, several or none as a tuple."""
    if devices is None:
        return ()
    return tuple(devices) if isinstance(devices, Sequence) else (devices,)


def device_join(number: int) -> str:
    """Returns the name of the operator on a device, by its number from 0."""
    return f"{DEVICE_JOIN} {number + 1}" if number else DEVICE_JOIN


def answer_of(node: Node) -> str:
    """Returns the name under which a query's operator gives its results."""
    derived = isinstance(node, Compiled) and not node.asked
    return f"{node.name}#" if derived else node.name


def text_of(node: Node) -> str:
    return node.source.text.strip() if isinstance(node, Compiled) else node.text


def own_name(node: Operation | ir.MatchQuery | Compiled) -> str:
    """Returns the name of the operator of an operation, a pattern or an APAS query."""
    if isinstance(node, Operation):
        return f"operation {node.name}"
    if isinstance(node, ir.MatchQuery):
        return f"pattern {node.name}"
    return f"APAS {'query ' if node.asked else ''}{node.name}"


def operators(
    c: Compilation,
    devices: Sequence[Device],
    overflow: str,
    slice_rows: int,
    engine: str,
    strict: bool,
    failures: Failures,
    on_late: OnLate | None,
    living: bool,
) -> dict[str, Operator]:
    """Returns all operators by name, each after those whose results it reads."""
    program, at = c.program, levels(c.program)
    known: dict[str, Stream] = {stream.name: stream for stream in program.streams}
    found: list[tuple[int, str, Operator]] = []
    by_level: dict[int, list[Query]] = {}
    for query in program.queries:
        by_level.setdefault(level(query, at), []).append(query)
    read = {source.stream.name for query in by_level.get(0, ()) for source in query.sources}
    base = [stream.name for stream in program.base if stream.name in read]
    placed: set[str] = set()
    for number, (one, device) in enumerate(zip(c.devices, devices, strict=False)):
        join = HostDriver(one, device, overflow, slice_rows, strict, base, failures)
        placed |= {query.name for query in join.queries}
        found.append((0, device_join(number), join))
    for number, queries in by_level.items():
        rest = [query for query in queries if query.name not in placed]
        if rest:
            faults = {
                q.name: QueryFaults(q.last is None and (strict or q.strict), source=c.source)
                for q in rest
            }
            inputs = () if number else base
            software = SoftwareJoin(
                program.streams, rest, slice_rows, faults, inputs, failures, living
            )
            found.append((number, software_join(number), software))
    for operation in program.operations:
        own = QueryFaults(strict or operation.strict, source=c.source)
        found.append((level(operation, at), own_name(operation), operator_of(operation, own)))
    joins = [(own, one) for _, own, one in found if isinstance(one, HostDriver | SoftwareJoin)]
    made_by = {query.defines: own for own, one in joins for query in one.queries}
    hold_together(
        ((number, made_by.get(one.stream.name)), one)
        for number, _, one in found
        if isinstance(one, PeriodOperator)
    )
    if program.patterns:
        from seustream.engine.pattern.candidates import CandidatesNode
        from seustream.engine.pattern.stream import PatternNode
    if program.apas or program.asked_apas:
        from seustream.engine.temporal.stream import TemporalNode
    for pattern in program.patterns:
        own = QueryFaults(strict or pattern.strict, source=c.source)
        node: Operator
        if pattern.candidates is not None and not strict:
            assert isinstance(pattern, ir.PatternQuery)
            node = CandidatesNode(pattern, engine, own)
        else:
            node = PatternNode(pattern, engine, own)
        found.append((level(pattern, at), own_name(pattern), node))
    unclaimed = {stream.name for stream in program.base}  # a refused row is handed out once
    for compiled in (*program.apas.values(), *program.asked_apas):
        own = QueryFaults(strict or compiled.strict, source=compiled.source)
        temporal = TemporalNode(
            compiled, known, own, late_of(unclaimed & {*reads(compiled)}, on_late)
        )
        unclaimed -= {*reads(compiled)}
        found.append((level(compiled, at), own_name(compiled), temporal))
    return {name: operator for _, name, operator in sorted(found, key=lambda one: one[0])}


def exchange(
    operators: dict[str, Operator], change: Change, strict: bool, source: SourceText
) -> None:
    """Removes some operations and adds others, which share nothing with those that stay."""
    for operation in change.go:
        gone = operators.pop(own_name(operation))
        if isinstance(gone, PeriodOperator):
            gone.leave()
    for operation in change.come:
        own = QueryFaults(strict or operation.strict, source=source)
        operators[own_name(operation)] = operator_of(operation, own)


def add_counts(report: Report, program: Program, operators: Mapping[str, Operator]) -> None:
    """Adds to a report the counts that only patterns and APAS queries have."""
    for pattern in program.patterns:
        matcher = cast("PatternNode", operators[own_name(pattern)]).operator
        report.engines[pattern.name] = matcher.engine
        if bad := matcher.stats.bad_events:
            report.untimed[pattern.stream.name] = bad
    for compiled in (*program.apas.values(), *program.asked_apas):
        temporal = cast("TemporalNode", operators[own_name(compiled)])
        report.refused |= temporal.refused
        if temporal.bad_keys:
            report.bad_keys[compiled.name] = temporal.bad_keys


class OperatorWork:
    """The work of one operator. A failure fails all its queries; an operator of several contains a
    failure that it can attribute to one."""

    __slots__ = ("_failures", "_meters", "_own", "_queries", "_source", "_what")

    def __init__(
        self,
        own: str,
        answers: Iterable[Node],
        failures: Failures,
        meters: RunMeters | None,
        source: SourceText,
    ) -> None:
        nodes = list(answers)
        self._own, self._queries = own, [answer_of(node) for node in nodes]
        operation = next((node for node in nodes if isinstance(node, Operation)), None)
        self._what = own if operation is None else said_of(operation)
        self._failures, self._meters, self._source = failures, meters, source

    def __enter__(self) -> None:
        if self._meters is not None:
            self._meters.enter(self._own)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> bool:
        if self._meters is not None:
            self._meters.leave()
        if not isinstance(error, Exception):
            return False
        with self._failures.of(*self._queries):
            if isinstance(error, FaultError):
                where = located(error.place, self._source)
                raise EvaluationError(f"{self._what}: {where}, {error.row}", WITHOUT) from None
            raise error
        return True


def answer_schemas(program: Program) -> dict[str, pa.Schema]:
    """Returns the columns of everything whose results are asked for, by name."""
    found = {q.name: result_schema(q) for q in program.asked_relations}
    if program.asked_patterns:
        from seustream.engine.pattern import output

        found |= {pattern.name: output.schema(pattern) for pattern in program.asked_patterns}
    if program.asked_apas:
        from seustream.engine.temporal.stream import result_schema as temporal_schema

        found |= {query.name: temporal_schema(query.tree) for query in program.asked_apas}
    return found


def streams_read(program: Program) -> set[str]:
    """Returns the base streams that queries read: each of them needs a source."""
    base = {stream.name for stream in program.base}
    return {name for node in nodes(program) for name in reads(node)} & base
