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

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from seustream.compiler.apas.compile import Compiled
from seustream.compiler.catalogue import Stream
from seustream.compiler.language.faults import FaultError
from seustream.compiler.logical.levels import Node, definitions, level, levels, nodes, reads
from seustream.compiler.logical.program import Operation, Program, Query
from seustream.compiler.pattern import ir
from seustream.compiler.pipeline import Compilation
from seustream.engine.host.driver import DEVICE_JOIN, HostDriver
from seustream.engine.host.errors import EvaluationError, RowsRefused
from seustream.engine.host.stages import SoftwareJoin
from seustream.engine.host.state import united
from seustream.engine.pattern import output
from seustream.engine.pattern.stream import PatternNode
from seustream.engine.relational import operator_of
from seustream.engine.runs import (
    GateState,
    Report,
    RunState,
    base_joins,
    base_kind,
    before,
    late_of,
    software_join,
)
from seustream.engine.stream.answers import result_schema
from seustream.engine.stream.evaluate import real_only
from seustream.engine.stream.failures import Failures
from seustream.engine.stream.faults import QueryFaults, fault_report, located
from seustream.engine.stream.merge import END_OF_STREAM, Merger, OnLate
from seustream.engine.stream.operator import BEGIN_OF_TIME, Answer, Operator
from seustream.engine.stream.schema import TABLE_TIME, stream_schema
from seustream.engine.temporal.stream import TemporalNode
from seustream.engine.temporal.stream import result_schema as temporal_schema
from seustream.hdl.device import Device

_ROWS_AT_ONCE = 1 << 18
"""Rows a gate lets through between two watermarks: many enough for columns, few enough for
memory."""


class GraphRun:
    """Runs the queries of one compilation.

    devices      one, several or None. What is compiled for a device that is not there, the engine
                 joins itself
    overflow     "software": rows that leave the device early are joined by the host;
                 "error": the run stops with a `WindowOverflow`
    slack        milliseconds a stream's timestamps may fall back before a tuple counts as late; 0 is
                 what the streams themselves say
    on_late      takes the late rows of a stream, and those an APAS query refuses
    on_progress  takes how many rows have gone through
    slice_rows   how many tuples go through the device at a time
    engine       the matcher of patterns
    strict       the first fault of any query is an error, not only of one WITH (strict)
    contained    a query that fails ends with those that read its results; else it ends the run
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
        contained: bool = False,
    ) -> None:
        if overflow not in ("software", "error"):
            raise ValueError(f"overflow = {overflow!r}: want 'software' or 'error'")
        self.compilation, self.slack = compilation, slack
        self.devices, self._strict = as_tuple(devices), strict
        program = compilation.program
        self.streams = list(program.base)
        self.on_progress = on_progress
        self._schemas = {stream.name: stream_schema(stream) for stream in program.streams}
        self.gates = {
            s.name: Merger([s.name], slack or s.out_of_orderness, on_late) for s in self.streams
        }
        self.ended: set[str] = set()
        self.failures = Failures(contained)
        self.operators = _operators(
            compilation, self.devices, overflow, slice_rows, engine, strict, self.failures, on_late
        )
        self.readers: dict[str, list[str]] = {name: [] for name in self._schemas}
        for own, operator in self.operators.items():
            for name in operator.inputs:
                self.readers[name].append(own)
        self._find_answers()
        self._defined: dict[str, str] = {}  # by the name of what defines it, a derived stream
        self._defines: dict[str, list[str]] = {name: [] for name in self.operators}
        self._definitions = definitions(program)
        for name, node in self._definitions.items():
            self._defined[_answer_of(node)] = name
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
        if by_name[stream].late == "error" and gate.late.get(stream, 0) > before:
            hint = f"it allows {gate.slack} ms of max_out_of_orderness, late = 'drop' leaves such rows out"
            raise RowsRefused(f"stream {stream}: a late row", hint)
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
                self._push(name, part.rows[0])
                if self.on_progress is not None:
                    self.on_progress(len(part))
            self._advance(name, gate.watermark)
        for own, operator in self.operators.items():
            if self._runs(own):
                with self._contained(own):
                    for query, rows in operator.outputs():
                        yield from self._pass_on(query, rows)
            self._fail_readers(own)
            for stream in self._defines[own]:
                failed = _answer_of(self._definitions[stream]) in self.failures
                self._advance(stream, END_OF_STREAM if failed else operator.watermark)

    def finish(self) -> Iterator[Answer]:
        """Nothing more comes: the rest of the answers."""
        for stream in self.streams:
            self.end(stream.name)
        yield from self.advance()

    def _advance(self, stream: str, watermark: int) -> None:
        if watermark > BEGIN_OF_TIME:
            for own in filter(self._runs, self.readers[stream]):
                with self._contained(own):
                    self.operators[own].advance(stream, watermark)

    def _push(self, stream: str, rows: pa.Table) -> None:
        for own in filter(self._runs, self.readers[stream]):
            with self._contained(own):
                self.operators[own].push(stream, rows)

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
        self._push(stream, rows)

    # --- failures ---------------------------------------------------------------

    def _runs(self, own: str) -> bool:
        """Operators of several queries go on without those that failed."""
        alone = self._alone(own)
        return alone is None or alone not in self.failures

    def _alone(self, own: str) -> str | None:
        """The one query of an operator; one of several contains their failures itself."""
        shared = isinstance(self.operators[own], HostDriver | SoftwareJoin)
        return None if shared else _answer_of(self._answers[own][0])

    @contextlib.contextmanager
    def _contained(self, own: str) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            if (alone := self._alone(own)) is not None:
                stack.enter_context(self.failures.of(alone))
            try:
                yield
            except FaultError as error:
                where = located(error.place, self.compilation.source)
                raise EvaluationError(f"{own}: {where}, {error.row}") from None

    def _fail_readers(self, own: str) -> None:
        """Ends the readers of streams whose definition has failed, and their streams."""
        for node in self._answers[own] if self.failures.why else ():
            why = self.failures.why.get(_answer_of(node))
            stream = self._defined.get(_answer_of(node))
            if why is None or stream is None:
                continue
            for other in nodes(self.compilation.program):
                if stream in reads(other):
                    said = why if why.startswith("stream ") else f"stream {stream}: {why}"
                    self.failures.why.setdefault(_answer_of(other), said)

    @property
    def failed(self) -> dict[str, str]:
        """Why queries whose results are asked for have failed."""
        names = self._results
        return {name: why for name, why in self.failures.why.items() if name in names}

    def _find_answers(self) -> None:
        """Finds what each operator answers."""
        self._joined = {
            query.name: name
            for name, operator in self.operators.items()
            if isinstance(operator, HostDriver | SoftwareJoin)
            for query in operator.queries
        }
        self._answers: dict[str, list[Node]] = {name: [] for name in self.operators}
        for node in nodes(self.compilation.program):
            self._answers[self._answers_at(node)].append(node)

    def _answers_at(self, node: Node) -> str:
        """The name of the operator that answers a query."""
        return self._joined[node.name] if isinstance(node, Query) else _own_name(node)

    def change(self, c: Compilation) -> bool:
        """Runs other queries from here on, between two calls of `advance` that were iterated to their
        end; as `resume` in a run of `c` would, but nothing is copied. False, and nothing is changed,
        where more changes than queries of the engine over streams that others of them read."""
        join = self.operators.get(software_join(0))
        before, after = self.compilation.program, c.program
        if not isinstance(join, SoftwareJoin) or self.devices or before.streams != after.streams:
            return False
        mine = {query.name for query in join.queries}
        was = {query.name: query for query in before.queries}
        now = [query for query in after.queries if was.get(query.name) is not query]
        gone = was.keys() - {query.name for query in after.queries}
        rest = [n for n in nodes(before) if not isinstance(n, Query)]
        if (
            rest != [n for n in nodes(after) if not isinstance(n, Query)]
            or not mine >= gone | {query.name for query in now if query.name in was}
            or any(level(query, levels(after)) for query in now)
            or any(was[name].defines for name in gone)
            or any(query.defines for query in now)
        ):
            return False
        apart = was.keys() - mine
        queries = [query for query in after.queries if query.name not in apart]
        strict, source = self._strict, c.source
        faults = {
            q.name: join.faults.get(q.name) or QueryFaults(strict or q.strict, source=source)
            for q in queries
        }
        if not join.change(queries, faults):
            return False
        for one in faults.values():
            one.source = source
        for name in gone | {q.name for q in now if q.name in was and was[q.name].text != q.text}:
            self.failures.why.pop(name, None)
        self.compilation = c
        self._find_answers()
        self._results = {name: self._results.get(name, 0) for name in after.names}
        return True

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

    def sources_of(self, query: str) -> set[str]:
        """The base streams whose rows reach a query, through derived streams or by themselves."""
        known = {_answer_of(node): node for node in nodes(self.compilation.program)}
        waiting = [known[query]] if query in known else []
        found: set[str] = set()
        while waiting:
            for name in reads(waiting.pop()):
                if name in self._definitions:
                    waiting.append(self._definitions[name])
                else:
                    found.add(name)
        return found

    def taken_of(self, query: str) -> int:
        """Rows of these streams that went through."""
        return sum(self._taken[name] for name in self.sources_of(query))

    def lag_of(self, query: str) -> int | None:
        """Returns by how many milliseconds the slowest of these streams is behind the foremost; None where one
        has brought nothing yet."""
        live = self.sources_of(query) - self.ended
        promises = [self.promises.get(name) for name in live]
        known = [promise for promise in promises if promise is not None]
        if len(known) < len(promises) or not known:
            return None
        return max(known) - min(known)

    @property
    def report(self) -> Report:
        report = Report(
            {name: count for name, count in self._taken.items() if count},
            {name: late for name in self.gates if (late := self._late_of(name))},
            dict(self._results),
            derived=dict(self._derived),
        )
        for operator in self.operators.values():
            for name, places in fault_report(operator.faults).items():
                mine = report.faults.setdefault(self._written(name), {})
                for place, (count, row) in places.items():
                    before, first = mine.get(place, (0, row))
                    mine[place] = (before + count, first)
            if isinstance(operator, HostDriver):
                report.join.add(operator.counts)
            elif isinstance(operator, PatternNode):
                report.engines[operator.query.name] = operator.operator.engine
                if bad := operator.operator.stats.bad_events:
                    report.untimed[operator.inputs[0]] = bad
            elif isinstance(operator, TemporalNode):
                report.refused |= operator.refused
                if operator.bad_keys:
                    report.bad_keys[operator.compiled.name] = operator.bad_keys
        return report

    def _written(self, name: str) -> str:
        """The query or stream as one wrote it that a part of one belongs to."""
        hidden = {stream.name for stream in self.compilation.program.streams if "#" in stream.name}
        while name in hidden:
            name = name.rpartition("#")[0]
        return name

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
        snapshots = {}
        for own, operator in self.operators.items():
            if self._runs(own):
                # A library's state that no snapshot can hold is its query's failure.
                with self._contained(own):
                    snapshots[own] = operator.snapshot()
            self._fail_readers(own)
        texts = {_answer_of(node): _text_of(node) for node in nodes(self.compilation.program)}
        failed = {name: [texts[name], why] for name, why in self.failures.why.items()}
        return RunState(gates, snapshots, dict(self._results), failed)

    def resume(self, state: RunState) -> None:
        """Goes on where a run was, of one that has taken nothing yet: the same results in the same
        order. The queries may be others over the same streams: windows stay, a query whose text is
        the same keeps its groups, a derived stream of the same columns its windows. A query that
        has failed stays so as long as its text is the same."""
        for node in nodes(self.compilation.program):
            text, why = state.failed.get(_answer_of(node), (None, ""))
            if text == _text_of(node):
                self.failures.why[_answer_of(node)] = why
        base = base_joins(state.operators)
        now = {name for name in self.operators if base_kind(name) is not None}
        moved = len(base) > 1 or base.keys() != now
        for name, operator in self.operators.items():
            if (kind := base_kind(name)) is not None and moved:
                everything = united(base.get(name), kind, list(base.values()))
                snapshot = everything.pack() if base else None
            else:
                snapshot = before(name, operator, state.operators)
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


def _answer_of(node: Node) -> str:
    """The name its operator gives the results of a query."""
    derived = isinstance(node, Compiled) and not node.asked
    return f"{node.name}#" if derived else node.name


def _text_of(node: Node) -> str:
    return node.source.text.strip() if isinstance(node, Compiled) else node.text


def _own_name(node: Operation | ir.MatchQuery | Compiled) -> str:
    """The name of the operator of an operation, a pattern or an APAS query."""
    if isinstance(node, Operation):
        return f"operation {node.name}"
    if isinstance(node, ir.MatchQuery):
        return f"pattern {node.name}"
    return f"APAS {'query ' if node.asked else ''}{node.name}"


def _operators(
    c: Compilation,
    devices: Sequence[Device],
    overflow: str,
    slice_rows: int,
    engine: str,
    strict: bool,
    failures: Failures,
    on_late: OnLate | None,
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
        join = HostDriver(one, device, overflow, slice_rows, strict, base, failures)
        placed |= {query.name for query in join.queries}
        found.append((0, _device_join(number), join))
    for number, queries in by_level.items():
        rest = [query for query in queries if query.name not in placed]
        if rest:
            faults = {q.name: QueryFaults(strict or q.strict, source=c.source) for q in rest}
            inputs = () if number else base
            software = SoftwareJoin(program.streams, rest, slice_rows, faults, inputs, failures)
            found.append((number, software_join(number), software))
    for operation in program.operations:
        own = QueryFaults(strict or operation.strict, source=c.source)
        found.append((level(operation, at), _own_name(operation), operator_of(operation, own)))
    for pattern in program.patterns:
        node = PatternNode(pattern, engine, QueryFaults(strict or pattern.strict, source=c.source))
        found.append((level(pattern, at), _own_name(pattern), node))
    unclaimed = {stream.name for stream in program.base}  # a refused row is handed out once
    for compiled in (*program.apas.values(), *program.asked_apas):
        own = QueryFaults(strict, source=compiled.source)
        temporal = TemporalNode(
            compiled, known, own, late_of(unclaimed & {*reads(compiled)}, on_late)
        )
        unclaimed -= {*reads(compiled)}
        found.append((level(compiled, at), _own_name(compiled), temporal))
    return {name: operator for _, name, operator in sorted(found, key=lambda one: one[0])}


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
    """Rows with the stream's columns and types; NaN is NULL, as everywhere. Those of a table come before
    all time."""
    schema = stream_schema(stream)
    if stream.table:
        rows = rows.drop_columns([name for name in rows.column_names if name == "ts"])
        rows = rows.append_column("ts", pa.array(np.full(rows.num_rows, TABLE_TIME)))
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
    found |= {pattern.name: output.schema(pattern) for pattern in program.asked_patterns}
    return found | {query.name: temporal_schema(query.tree) for query in program.asked_apas}


def streams_read(program: Program) -> set[str]:
    """The base streams that queries read: each must come from somewhere."""
    base = {stream.name for stream in program.base}
    return {name for node in nodes(program) for name in reads(node)} & base
