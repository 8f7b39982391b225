"""Runs a query set of all three languages.

    run = GraphRun(compile_text(text), device)
    run.push("R", rows)                        # as they arrive; a column ts, then R's own
    run.promise("S", 4000)                     # nothing before this time comes on S any more
    for query, results in run.advance(): ...   # what is certain by now
    for query, results in run.finish(): ...    # all the rest

A query set is a graph: base streams enter at a gate each, which puts them in order and sets late rows
apart; every other node is an operator (`seustream.engine.stream.operator`), and derived streams are the edges.
The queries a device has are one operator, a device join; all others are a software join a level; a
pattern, an APAS query and a relational operation are an operator each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from seustream.compiler.apas.compile import Compiled
from seustream.compiler.catalogue import Stream
from seustream.compiler.language.faults import FaultError
from seustream.compiler.pattern import ir
from seustream.compiler.plan.levels import Node, definitions, level, levels, nodes, reads
from seustream.compiler.plan.logical import Operation, Program, Query
from seustream.compiler.plan.pipeline import Compilation
from seustream.engine.host.driver import DEVICE_JOIN, Counts, HostDriver
from seustream.engine.host.errors import EvaluationError, RowsRefused
from seustream.engine.host.stages import SOFTWARE_JOIN, SoftwareJoin
from seustream.engine.host.state import united
from seustream.engine.pattern import output
from seustream.engine.pattern.stream import PatternNode
from seustream.engine.relational import operator_of
from seustream.engine.stream.answers import result_schema
from seustream.engine.stream.evaluate import real_only
from seustream.engine.stream.faults import Lines, QueryFaults, located, told
from seustream.engine.stream.operator import BEGIN_OF_TIME, Answer, Operator
from seustream.engine.stream.schema import stream_schema
from seustream.engine.stream.snapshot import Snapshot, unpack
from seustream.engine.temporal.merge import Merger, OnLate
from seustream.engine.temporal.stream import TemporalNode
from seustream.hdl.device import Device

_ROWS_AT_ONCE = 1 << 18
"""Rows a gate lets through between two watermarks: many enough for columns, few enough for
memory."""


@dataclass(slots=True)
class Report:
    """The account of a run, for people: rows taken and late by base stream, results by query; by stream,
    rows a pattern could not take for want of a time, and rows an APAS query refused, why; the
    matcher of each pattern; by query and place, how many evaluations had no value, and the first
    row."""

    taken: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    results: dict[str, int] = field(default_factory=dict)
    untimed: dict[str, int] = field(default_factory=dict)
    refused: dict[str, dict[str, int]] = field(default_factory=dict)
    derived: dict[str, int] = field(default_factory=dict)
    engines: dict[str, str] = field(default_factory=dict)
    faults: dict[str, Lines] = field(default_factory=dict)
    join: Counts = field(default_factory=Counts)


@dataclass(frozen=True, slots=True)
class GateState:
    """A base stream: rows that wait, what it has promised, whether it has ended, and its counts."""

    waiting: pa.Table
    promise: int | None
    ended: bool
    taken: int = 0
    late: int = 0


@dataclass(frozen=True, slots=True)
class RunState:
    """Enough to go on on another device, or another day: gates by stream, the operators'
    snapshots by name, and counts of results."""

    gates: dict[str, GateState]
    operators: dict[str, bytes]
    results: dict[str, int]

    def rows(self) -> Iterator[tuple[str, pa.Table]]:
        """The rows of base streams that queries can still reach, or that wait, for a caller who
        saves what can be saved."""
        for name, gate in self.gates.items():
            yield name, gate.waiting
        joins = _base_joins(self.operators).values()
        for name, rows in united(None, DEVICE_JOIN, list(joins)).tables.items():
            what, _, stream = name.partition(" ")
            if what in ("kept", "waiting"):
                yield stream, rows


class GraphRun:
    """Runs the queries of one compilation.

    devices      one, several or None. What is compiled for a device that is not there, the engine
                 joins itself
    overflow     "software": rows that leave the device early are joined by the host;
                 "error": the run stops with a `WindowOverflow`
    slack        milliseconds a stream's timestamps may fall back before a tuple counts as late
    on_late      takes the late rows of a stream
    on_progress  takes how many rows have gone through
    slice_rows   how many tuples go through the device at a time
    engine       the matcher of patterns
    strict       the first fault of any query is an error, not only of one WITH (strict)
    """

    def __init__(
        self,
        compilation: Compilation,
        devices: Device | Sequence[Device] | None = None,
        overflow: str = "software",
        slack: int = 0,
        on_late: OnLate | None = None,
        on_progress: Callable[[int], None] | None = None,
        slice_rows: int = 8192,
        engine: str = "auto",
        strict: bool = False,
    ) -> None:
        if overflow not in ("software", "error"):
            raise ValueError(f"overflow = {overflow!r}: want 'software' or 'error'")
        self.compilation, self.slack = compilation, slack
        self.devices = as_tuple(devices)
        program = compilation.program
        self.streams = list(program.base)
        self.on_progress = on_progress
        self._schemas = {stream.name: stream_schema(stream) for stream in program.streams}
        self.gates = {s.name: Merger([s.name], slack, on_late) for s in self.streams}
        self.ended: set[str] = set()
        self.operators = _operators(compilation, self.devices, overflow, slice_rows, engine, strict)
        self.readers: dict[str, list[Operator]] = {name: [] for name in self._schemas}
        for operator in self.operators.values():
            for name in operator.inputs:
                self.readers[name].append(operator)
        self._defined: dict[str, str] = {}  # by the name of what defines it, a derived stream
        self._defines: dict[str, list[str]] = {name: [] for name in self.operators}
        for name, node in definitions(program).items():
            self._defined[f"{node.name}#" if isinstance(node, Compiled) else node.name] = name
            self._defines[self._answers_at(node)].append(name)
        self._taken: Counter[str] = Counter()
        self._late: Counter[str] = Counter()
        self._results = dict.fromkeys(program.names, 0)
        self._derived = dict.fromkeys(program.apas, 0)

    # --- streams in, results out ----------------------------------------------

    def push(self, stream: str, rows: pa.Table) -> None:
        """Takes rows in the order they arrive on one stream; raises `RowsRefused` for rows that
        are not of that stream, and takes none of them."""
        by_name = {s.name: s for s in self.streams}
        if stream not in by_name:
            raise RowsRefused(f"there is no stream {stream}", f"streams: {', '.join(by_name)}")
        if stream in self.ended:
            raise RowsRefused(f"stream {stream} has ended")
        rows = accepted(by_name[stream], rows)
        gate = self.gates[stream]
        before = gate.late.get(stream, 0)
        gate.push(stream, rows)
        self._taken[stream] += rows.num_rows - (gate.late.get(stream, 0) - before)

    def promise(self, stream: str, timestamp: int) -> None:
        """Nothing before this timestamp comes on the stream any more."""
        self.gates[stream].boundary(stream, timestamp)

    def end(self, stream: str) -> None:
        """Nothing more comes on the stream."""
        self.ended.add(stream)
        self.gates[stream].stop(stream)

    def advance(self) -> Iterator[Answer]:
        """The answers that are certain by now. To be iterated to its end."""
        for name, gate in self.gates.items():
            for part in gate.release(_ROWS_AT_ONCE):
                for operator in self.readers[name]:
                    operator.push(name, part.rows[0])
                if self.on_progress is not None:
                    self.on_progress(len(part))
            self._advance(name, gate.watermark)
        for own, operator in self.operators.items():
            try:
                for query, rows in operator.outputs():
                    yield from self._pass_on(query, rows)
            except FaultError as error:
                where = located(error.place, self.compilation.source)
                raise EvaluationError(f"{own}: {where}, {error.row}") from None
            for stream in self._defines[own]:
                self._advance(stream, operator.watermark)

    def finish(self) -> Iterator[Answer]:
        """Nothing more comes: the rest of the answers."""
        for stream in self.streams:
            self.end(stream.name)
        yield from self.advance()

    def _advance(self, stream: str, watermark: int) -> None:
        if watermark > BEGIN_OF_TIME:
            for operator in self.readers[stream]:
                operator.advance(stream, watermark)

    def _pass_on(self, query: str, rows: pa.Table) -> Iterator[Answer]:
        """A definition's rows to those that read them, a query's results to the caller."""
        stream = self._defined.get(query)
        if stream is None:
            self._results[query] += rows.num_rows
            yield query, rows
            return
        if stream in self._derived:
            self._derived[stream] += rows.num_rows
        rows = pa.Table.from_arrays(rows.columns, names=self._schemas[stream].names)
        rows = rows.cast(self._schemas[stream])
        for operator in self.readers[stream]:
            operator.push(stream, rows)

    def _answers_at(self, node: Node) -> str:
        """The name of the operator that answers a query."""
        if not isinstance(node, Query):
            return _own_name(node)
        return next(
            name
            for name, operator in self.operators.items()
            if isinstance(operator, HostDriver | SoftwareJoin)
            and any(query.name == node.name for query in operator.queries)
        )

    # --- what is known of it ----------------------------------------------------

    @property
    def waiting(self) -> dict[str, int]:
        """Rows of base streams that wait, for their own stream's order or for other streams."""
        found = Counter({name: sum(gate.waiting.values()) for name, gate in self.gates.items()})
        # Operators that read a base stream wait at the same moment.
        waiting = Counter[str]()
        for operator in self.operators.values():
            if isinstance(operator, HostDriver | SoftwareJoin):
                waiting |= Counter(operator.merger.waiting)
        return {name: count + waiting[name] for name, count in found.items()}

    @property
    def promises(self) -> dict[str, int]:
        """By base stream, the timestamp before which nothing comes any more, where it is known."""
        known = {name: gate.by_name[name].promise for name, gate in self.gates.items()}
        return {name: promise for name, promise in known.items() if promise is not None}

    @property
    def report(self) -> Report:
        report = Report(
            {name: count for name, count in self._taken.items() if count},
            {name: late for name in self.gates if (late := self._late_of(name))},
            dict(self._results),
            derived=dict(self._derived),
        )
        for operator in self.operators.values():
            report.faults |= told(operator.faults)
            if isinstance(operator, HostDriver):
                report.join.add(operator.counts)
            elif isinstance(operator, PatternNode):
                report.engines[operator.query.name] = operator.operator.engine
                if bad := operator.operator.stats.bad_events:
                    report.untimed[operator.inputs[0]] = bad
            elif isinstance(operator, TemporalNode):
                for stream, reasons in operator.run.reasons.items():
                    report.refused[stream] = dict(reasons)
        return report

    def _late_of(self, stream: str) -> int:
        return self._late[stream] + self.gates[stream].late.get(stream, 0)

    # --- state ------------------------------------------------------------------

    def state(self) -> RunState:
        """Between two calls of `advance` that were iterated to their end."""
        gates = {}
        for name, gate in self.gates.items():
            queue = gate.by_name[name]
            waiting = gate.waiting_rows(name, self._schemas[name])
            gates[name] = GateState(
                waiting, queue.promise, queue.stopped, self._taken[name], self._late_of(name)
            )
        snapshots = {name: operator.snapshot() for name, operator in self.operators.items()}
        return RunState(gates, snapshots, dict(self._results))

    def resume(self, state: RunState) -> None:
        """Goes on where a run was, of one that has taken nothing yet: the same results in the same
        order. The queries may be others over the same streams: windows stay, a query whose text is
        the same keeps its groups, a derived stream of the same columns its windows."""
        base = _base_joins(state.operators)
        now = {name for name in self.operators if _base_kind(name) is not None}
        moved = len(base) > 1 or base.keys() != now
        for name, operator in self.operators.items():
            if (kind := _base_kind(name)) is not None and moved:
                everything = united(base.get(name), kind, list(base.values()))
                snapshot = everything.pack() if base else None
            else:
                snapshot = _before(name, operator, state.operators)
            if snapshot is not None:
                operator.restore(snapshot)
        for name, gate in state.gates.items():
            if name not in self.gates:
                continue
            self._taken[name], self._late[name] = gate.taken, gate.late
            self.gates[name].push(name, gate.waiting)
            if gate.promise is not None:
                self.promise(name, gate.promise)
            if gate.ended:
                self.end(name)
        for query in self._results:
            self._results[query] = state.results.get(query, 0)


def as_tuple(devices: Device | Sequence[Device] | None) -> tuple[Device, ...]:
    """One device, several or none, as several."""
    if devices is None:
        return ()
    return tuple(devices) if isinstance(devices, Sequence) else (devices,)


def _device_join(number: int) -> str:
    """The name of the operator on a device, by its number from 0."""
    return f"{DEVICE_JOIN} {number + 1}" if number else DEVICE_JOIN


def _software_join(number: int) -> str:
    """The name of the operator that joins without a device, by its level."""
    return f"{SOFTWARE_JOIN} {number}"


def _base_kind(name: str) -> str | None:
    """The kind of an operator that joins base streams, by its name; None for all others."""
    if name.startswith(DEVICE_JOIN):
        return DEVICE_JOIN
    return SOFTWARE_JOIN if name == _software_join(0) else None


def _own_name(node: Operation | ir.Query | Compiled) -> str:
    """The name of the operator of an operation, a pattern or an APAS query."""
    if isinstance(node, Operation):
        return f"operation {node.name}"
    return f"{'pattern' if isinstance(node, ir.Query) else 'APAS'} {node.name}"


def _operators(
    c: Compilation,
    devices: Sequence[Device],
    overflow: str,
    slice_rows: int,
    engine: str,
    strict: bool,
) -> dict[str, Operator]:
    """All operators by name, each after those whose results it reads."""
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
        join = HostDriver(one, device, overflow, slice_rows, strict, base)
        placed |= {query.name for query in join.queries}
        found.append((0, _device_join(number), join))
    for number, queries in by_level.items():
        rest = [query for query in queries if query.name not in placed]
        if rest:
            faults = {q.name: QueryFaults(strict or q.strict, source=c.source) for q in rest}
            inputs = () if number else base
            software = SoftwareJoin(program.streams, rest, slice_rows, faults, inputs)
            found.append((number, _software_join(number), software))
    for operation in program.operations:
        own = QueryFaults(strict or operation.strict, source=c.source)
        found.append((level(operation, at), _own_name(operation), operator_of(operation, own)))
    for pattern in program.patterns:
        node = PatternNode(pattern, engine, QueryFaults(strict, source=c.source))
        found.append((level(pattern, at), _own_name(pattern), node))
    for compiled in program.apas.values():
        temporal = TemporalNode(compiled, known, QueryFaults(strict, source=compiled.source))
        found.append((level(compiled, at), _own_name(compiled), temporal))
    return {name: operator for _, name, operator in sorted(found, key=lambda one: one[0])}


def _base_joins(snapshots: Mapping[str, bytes]) -> dict[str, Snapshot]:
    """The states of the operators that join base streams."""
    kinds = {name: _base_kind(name) for name in snapshots}
    return {name: unpack(snapshots[name], kind) for name, kind in kinds.items() if kind is not None}


def _before(name: str, operator: Operator, snapshots: Mapping[str, bytes]) -> bytes | None:
    """Returns an operator's snapshot from before. New queries may put levels before a software join, or take them away."""
    if not isinstance(operator, SoftwareJoin) or _base_kind(name) is not None:
        return snapshots.get(name)
    joins = [
        one
        for key, one in snapshots.items()
        if key.startswith(SOFTWARE_JOIN) and _base_kind(key) is None
    ]
    return max(joins, key=operator.alike, default=None)


def drive(
    run: GraphRun, tables: Mapping[str, pa.Table], at_once: int = _ROWS_AT_ONCE
) -> Iterator[Answer]:
    """All answers of a run over streams that are all there. The stream that lags behind the others
    goes on next, so that what waits is bounded."""
    places = dict.fromkeys(tables, 0)
    while places:
        known = run.promises
        name = min(places, key=lambda stream: known.get(stream, BEGIN_OF_TIME))
        place = places[name]
        run.push(name, tables[name].slice(place, at_once))
        places[name] = place + at_once
        if places[name] >= tables[name].num_rows:
            del places[name]
            run.end(name)
        yield from run.advance()
    yield from run.finish()


def accepted(stream: Stream, rows: pa.Table) -> pa.Table:
    """Rows with the stream's columns and types; NaN is NULL, as everywhere."""
    schema = stream_schema(stream)
    columns = []
    for want in schema:
        where = f"stream {stream.name}, column {want.name}"
        if rows.schema.get_field_index(want.name) < 0:
            raise RowsRefused(f"{where}: want one, the rows have {', '.join(rows.column_names)}")
        found = rows.column(want.name)
        if want.name == "ts" and not pa.types.is_integer(found.type) and rows.num_rows:
            raise RowsRefused(f"{where}: {found.type}, want integers, in milliseconds")
        try:
            column = found.cast(want.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise RowsRefused(f"{where}: {error}", f"it takes {want.type}") from None
        if pa.types.is_floating(want.type):
            column = real_only(column)
        if column.null_count and not want.nullable:
            raise RowsRefused(f"{where}: NULL, where none may be")
        columns.append(column)
    return pa.table(columns, schema=schema)


def answer_schemas(program: Program) -> dict[str, pa.Schema]:
    """The columns of everything whose results are asked for, by name."""
    found = {q.name: result_schema(q) for q in program.asked_relations}
    return found | {pattern.name: output.schema(pattern) for pattern in program.asked_patterns}


def streams_read(program: Program) -> set[str]:
    """The base streams that queries read: each must come from somewhere."""
    base = {stream.name for stream in program.base}
    return {name for node in nodes(program) for name in reads(node)} & base
