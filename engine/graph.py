"""Runs a query set of all three languages.

    run = GraphRun(compile_text(text), device)
    run.push("R", rows)                        # as they arrive; a column ts, then R's own
    run.promise("S", 4000)                     # nothing before this time comes on S any more
    for query, results in run.advance(): ...   # what is certain by now
    for query, results in run.finish(): ...    # all the rest

A query set is a graph. Base streams enter at a gate each, which puts them in order and sets late
rows apart. Every other node is an operator (`seustream.engine.stream.operator`), and derived
streams are the edges. The queries of one device are one operator, a device join. All others are one
software join per level. Each pattern, APAS query and relational operation is an operator of its
own.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from seustream.compiler.logical.levels import Node, definitions, nodes, reads
from seustream.compiler.logical.program import Query
from seustream.compiler.pipeline import Compilation
from seustream.engine.assembly import (
    OperatorWork,
    add_counts,
    answer_of,
    as_tuple,
    exchange,
    operators,
    own_name,
    text_of,
)
from seustream.engine.beginning import bring, go_on, kept_rows, rows_of_tables, with_tables
from seustream.engine.changing import change_between
from seustream.engine.completeness import looks_back
from seustream.engine.host.driver import HostDriver
from seustream.engine.host.errors import RowsRefused
from seustream.engine.host.stages import SoftwareJoin
from seustream.engine.intake import Intake
from seustream.engine.lineage import continued, lineages_of
from seustream.engine.meters import CALLER, RunMeters
from seustream.engine.relational.periods import held_together
from seustream.engine.runs import (
    GateState,
    Report,
    RunState,
    base_kind,
    software_join,
)
from seustream.engine.stream.failures import Failures, reason
from seustream.engine.stream.faults import QueryFaults, fault_report
from seustream.engine.stream.merge import END_OF_STREAM, Merger, OnLate
from seustream.engine.stream.operator import BEGIN_OF_TIME, Answer
from seustream.engine.stream.schema import stream_schema, under
from seustream.hdl.device import Device

_UNMETERED = contextlib.nullcontext()
_LOOSE = 16
"""Operators, beside an eighth of all, that may come after the run has begun: they share nothing
with others."""
_ROWS_AT_ONCE = 1 << 18
"""Rows that a gate lets through between two watermarks: enough for columns to pay off, few enough
for memory."""


class GraphRun:
    """Runs the queries of one compilation.

    devices      one, several or None. The engine itself joins queries compiled for a device that is
                 not there
    overflow     "software": rows that leave the device early are joined by the host;
                 "error": the run stops with a `WindowOverflow`
    slack        milliseconds a stream's timestamps may fall back before a tuple counts as late; by
                 default as the streams themselves declare
    on_late      takes the late rows of a stream, and those an APAS query refuses
    on_progress  takes how many rows have gone through
    slice_rows   how many tuples go through the device at a time
    engine       the matcher of patterns
    strict       the first fault of any query is an error, not only of one WITH (strict)
    contained    a query that fails ends with those that read its results; else it ends the run
    living       queries may begin late: groups keep the rows of their windows for them, and the
                 run those of tables
    meters       counts rows, time and state of each operator
    """

    def __init__(
        self,
        compilation: Compilation,
        devices: Device | Sequence[Device] | None = None,
        overflow: str = "software",
        slack: int | None = None,
        on_late: OnLate | None = None,
        on_progress: Callable[[int], None] | None = None,
        slice_rows: int = 8192,
        engine: str = "auto",
        strict: bool = False,
        contained: bool = False,
        meters: RunMeters | None = None,
        living: bool = False,
    ) -> None:
        if overflow not in ("software", "error"):
            raise ValueError(f"overflow = {overflow!r}: want 'software' or 'error'")
        self.compilation, self.slack = compilation, slack
        self.devices, self._strict, self.meters = as_tuple(devices), strict, meters
        program = compilation.program
        self.streams = list(program.base)
        self.on_progress = on_progress
        self._intakes = {stream.name: Intake(stream) for stream in self.streams}
        self.gates = {
            s.name: Merger([s.name], s.out_of_orderness if slack is None else slack, on_late)
            for s in self.streams
        }
        self._tables: dict[str, list[pa.Table]] = {
            stream.name: [] for stream in self.streams if stream.table and living
        }
        self._stirred = set(self.gates)  # gates that may have new rows or watermarks
        self.ended: set[str] = set()
        self.failures = Failures(contained)
        self.operators = operators(
            compilation,
            self.devices,
            overflow,
            slice_rows,
            engine,
            strict,
            self.failures,
            on_late,
            living,
        )
        self._came = 0  # operators added since the run began
        self._connect()
        self._taken: Counter[str] = Counter()
        self._late: Counter[str] = Counter()
        self.timeless: Counter[str] = Counter()
        self._results = dict.fromkeys(program.names, 0)
        self._derived = dict.fromkeys(program.apas, 0)

    # --- streams in, results out ----------------------------------------------

    def push(self, stream: str, rows: pa.Table) -> None:
        """Takes rows in the order in which they arrive on one stream. Raises `RowsRefused` for rows
        that do not fit the stream, and takes none of them."""
        intake = self._intakes.get(stream)
        if intake is None:
            names = ", ".join(self._intakes)
            raise RowsRefused(f"there is no stream {stream}", f"streams: {names}")
        if stream in self.ended:
            raise RowsRefused(f"stream {stream} has ended")
        count = rows.num_rows
        rows, times = intake.take(rows)
        self.timeless[stream] += count - rows.num_rows
        self._stirred.add(stream)
        gate = self.gates[stream]
        before = gate.by_name[stream].late
        gate.push(stream, rows, times)
        late = gate.by_name[stream].late - before
        if late and intake.stream.late == "error":
            hint = f"it allows {gate.slack} ms of max_out_of_orderness, late = 'drop' leaves such rows out"
            behind = gate.by_name[stream].highest
            what = f"{late:,} late row{'s' * (late != 1)}, the stream had reached ts {behind}"
            error = RowsRefused(f"stream {stream}: {what}", hint)
            if not self.failures.contained:
                raise error
            for node in nodes(self.compilation.program):
                if stream in reads(node):
                    self.failures.why.setdefault(answer_of(node), reason(error))
        self._taken[stream] += rows.num_rows - late

    def promise(self, stream: str, timestamp: int) -> None:
        """Promises that nothing before this timestamp comes on the stream any more."""
        self._stirred.add(stream)
        self.gates[stream].boundary(stream, timestamp)

    def end(self, stream: str) -> None:
        """Ends the stream: nothing more comes on it."""
        self.ended.add(stream)
        self._stirred.add(stream)
        self.gates[stream].stop(stream)

    def advance(self) -> Iterator[Answer]:
        """Yields the answers that are certain by now. Must be iterated to its end."""
        for name, gate in [one for one in self.gates.items() if one[0] in self._stirred]:
            for part in gate.release(_ROWS_AT_ONCE):
                self._push(name, part.rows[0])
                if name in self._tables:
                    self._tables[name].append(part.rows[0])
                if self.on_progress is not None:
                    self.on_progress(len(part))
            self._advance(name, gate.watermark)
        self._stirred.clear()
        for own, operator in self.operators.items():
            if self.runs(own):
                with self.work[own]:
                    for query, rows in operator.outputs():
                        if self.meters is not None:
                            self.meters.rows_out[own] += rows.num_rows
                        yield from self._pass_on(query, rows)
            if self.failures.why:
                self._fail_readers(own)
            for stream in self.defines[own]:
                failed = answer_of(self.definitions[stream]) in self.failures
                self._advance(stream, END_OF_STREAM if failed else operator.watermark)
        if self.meters is not None:
            self.meters.step(self.operators)

    def finish(self) -> Iterator[Answer]:
        """Ends all streams and yields the rest of the answers."""
        for stream in self.streams:
            self.end(stream.name)
        yield from self.advance()

    def _advance(self, stream: str, watermark: int) -> None:
        if watermark > BEGIN_OF_TIME:
            for own in filter(self.runs, self.readers[stream]):
                with self.work[own]:
                    self.operators[own].advance(stream, watermark)

    def _push(self, stream: str, rows: pa.Table) -> None:
        for own in filter(self.runs, self.readers[stream]):
            with self.work[own]:
                if self.meters is not None:
                    self.meters.rows_in[own] += rows.num_rows
                self.operators[own].push(stream, rows)

    def _pass_on(self, query: str, rows: pa.Table) -> Iterator[Answer]:
        """Passes a definition's rows to their readers, and yields a query's results to the
        caller."""
        stream = self.defined.get(query)
        if stream is None:
            self._results[query] += rows.num_rows
            with _UNMETERED if self.meters is None else self.meters.inside(CALLER):
                yield query, rows
            return
        if stream in self._derived:
            self._derived[stream] += rows.num_rows
        self._push(stream, self.as_stream(stream, rows))

    def as_stream(self, stream: str, rows: pa.Table) -> pa.Table:
        """Returns a definition's results as rows of the stream."""
        return under(self.schemas[stream], rows)

    # --- failures ---------------------------------------------------------------

    def runs(self, own: str) -> bool:
        """Returns whether an operator still runs: with several queries it goes on without those
        that failed."""
        why = self.failures.why
        return not why or any(answer_of(node) not in why for node in self._answers[own])

    def _fail_readers(self, own: str) -> None:
        """Ends the readers of streams whose definition has failed, and their streams."""
        for node in self._answers[own]:
            why = self.failures.why.get(answer_of(node))
            stream = self.defined.get(answer_of(node))
            if why is None or stream is None:
                continue
            for other in nodes(self.compilation.program):
                if stream in reads(other):
                    said = why if why.startswith("stream ") else f"stream {stream}: {why}"
                    self.failures.why.setdefault(answer_of(other), said)

    @property
    def failed(self) -> dict[str, str]:
        """The reasons why queries whose results are asked for have failed."""
        return {name: why for name, why in self.failures.why.items() if name in self._results}

    def _connect(self) -> None:
        """Finds the queries each operator answers, and the readers and definition of each
        stream."""
        program = self.compilation.program
        self.schemas = {stream.name: stream_schema(stream) for stream in program.streams}
        self.readers: dict[str, list[str]] = {name: [] for name in self.schemas}
        for own, operator in self.operators.items():
            for name in operator.inputs:
                self.readers[name].append(own)
        self._joined = {
            query.name: name
            for name, operator in self.operators.items()
            if isinstance(operator, HostDriver | SoftwareJoin)
            for query in operator.queries
        }
        self._answers: dict[str, list[Node]] = {name: [] for name in self.operators}
        for node in nodes(program):
            self._answers[self.answers_at(node)].append(node)
        self.defined: dict[str, str] = {}  # derived streams, by the names of their definitions
        self.defines: dict[str, list[str]] = {name: [] for name in self.operators}
        self.definitions = definitions(program)
        for name, defining in self.definitions.items():
            self.defined[answer_of(defining)] = name
            self.defines[self.answers_at(defining)].append(name)
        source = self.compilation.source
        self.work = {
            own: OperatorWork(own, some, self.failures, self.meters, source)
            for own, some in self._answers.items()
        }

    def answers_at(self, node: Node) -> str:
        """Returns the name of the operator that answers a query."""
        return self._joined[node.name] if isinstance(node, Query) else own_name(node)

    def change(self, c: Compilation) -> bool:
        """Runs other queries from here on, between two calls of `advance` that were iterated to
        their end. It acts like `resume` in a run of `c`, but copies nothing. Returns False, and
        changes nothing, unless only queries of the engine change, over streams that other such
        queries read."""
        join = self.operators.get(software_join(0))
        if not isinstance(join, SoftwareJoin) or self.devices or not self.runs(software_join(0)):
            return False  # what is left of a failed join is unknown
        joined = [query.name for query in join.queries]
        change = change_between(self.compilation.program, c.program, joined)
        if change is None or self._came + len(change.come) > _LOOSE + len(self.operators) // 8:
            return False
        known, strict, source = join.faults, self._strict, c.source
        faults = {
            q.name: known.get(q.name) or QueryFaults(strict or q.strict, source=source)
            for q in change.queries
        }
        kept = with_tables(join.kept_rows(), self._table_rows()) if change.come else {}
        if not join.change(change.queries, faults):
            return False
        if self.meters is not None:  # one that leaves takes only its share
            for some in held_together(self.operators):
                self.meters.share(some)
        exchange(self.operators, change, strict, source)
        for one in faults.values():
            one.source = source
        for name in change.ended:
            self.failures.why.pop(name, None)
        self.compilation = c
        self._came += len(change.come)
        self._connect()
        self._results = {name: self._results.get(name, 0) for name in c.program.names}
        bring(self, {own_name(one) for one in change.come if looks_back(one)}, kept)
        self._stirred.update(self.gates)
        return True

    # --- what is known of it ----------------------------------------------------

    @property
    def waiting(self) -> dict[str, int]:
        """Rows of base streams that wait, for their own stream's order or for other streams."""
        found = Counter({name: sum(gate.waiting.values()) for name, gate in self.gates.items()})
        # Operators that read a base stream wait at the same moment, so they are not added up.
        waiting = Counter[str]()
        for operator in self.operators.values():
            if isinstance(operator, HostDriver | SoftwareJoin):
                waiting |= Counter(operator.merger.waiting)
        return {name: count + waiting[name] for name, count in found.items()}

    @property
    def promises(self) -> dict[str, int]:
        """The timestamp before which nothing comes any more, by base stream, where it is known."""
        known = {name: gate.by_name[name].promise for name, gate in self.gates.items()}
        return {name: promise for name, promise in known.items() if promise is not None}

    @property
    def passed(self) -> dict[str, int]:
        """The first time of which none of a base stream's rows has gone by, if it has brought
        rows."""
        tables = {stream.name for stream in self.streams if stream.table}
        found = {}
        for name, at in self.promises.items():
            highest = self.gates[name].by_name[name].highest
            if self._taken[name] and name not in tables:
                found[name] = at + (highest is None or highest >= at)
        return found

    def sources_of(self, query: str) -> set[str]:
        """Returns the base streams whose rows reach a query, directly or through derived
        streams."""
        known = {answer_of(node): node for node in nodes(self.compilation.program)}
        waiting = [known[query]] if query in known else []
        found: set[str] = set()
        while waiting:
            for name in reads(waiting.pop()):
                if name in self.definitions:
                    waiting.append(self.definitions[name])
                else:
                    found.add(name)
        return found

    def operators_of(self, queries: Iterable[str]) -> dict[str, list[str]]:
        """Returns the operators that some queries go through, in order, with the names of the
        results each gives them."""
        known = {node.name: node for node in nodes(self.compilation.program)}
        waiting = [known[name] for name in queries]
        found: dict[str, list[str]] = {}
        while waiting:
            node = waiting.pop()
            gives = found.setdefault(self.answers_at(node), [])
            if node.name not in gives:
                gives.append(node.name)
                waiting += [self.definitions[n] for n in reads(node) if n in self.definitions]
        return {own: found[own] for own in self.operators if own in found}

    def taken_of(self, query: str) -> int:
        """Returns how many rows of the query's base streams went through."""
        return sum(self._taken[name] for name in self.sources_of(query))

    def lag_of(self, query: str) -> int | None:
        """Returns by how many milliseconds the slowest of the query's base streams is behind the
        foremost; None where one has brought nothing yet."""
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
            timeless={name: count for name, count in self.timeless.items() if count},
            derived=dict(self._derived),
        )
        again = {q.name for q in self.compilation.program.queries if q.last is not None}
        for operator in self.operators.values():
            for name, places in fault_report(operator.faults).items():
                if name in again:  # counted by the pattern whose candidates it joins
                    continue
                mine = report.faults.setdefault(self._written(name), {})
                for place, (count, row) in places.items():
                    before, first = mine.get(place, (0, row))
                    mine[place] = (before + count, first)
            if isinstance(operator, HostDriver):
                report.join.add(operator.counts)
        add_counts(report, self.compilation.program, self.operators)
        return report

    def _written(self, name: str) -> str:
        """Returns the query or stream, as a user wrote it, to which the part `name` belongs."""
        hidden = {stream.name for stream in self.compilation.program.streams if "#" in stream.name}
        while name in hidden:
            name = name.rpartition("#")[0]
        return name

    def _late_of(self, stream: str) -> int:
        return self._late[stream] + self.gates[stream].late.get(stream, 0)

    # --- state ------------------------------------------------------------------

    def _table_rows(self) -> dict[str, pa.Table]:
        """Returns the rows of tables that gates have let through."""
        return {name: pa.concat_tables(some) for name, some in self._tables.items() if some}

    def _held(self, names: Iterable[str]) -> Counter[str]:
        """Returns how many rows of each stream are in the states of joins of base streams."""
        found = Counter[str]()
        for own in names:
            join = self.operators[own]
            if base_kind(own) is not None and isinstance(join, HostDriver | SoftwareJoin):
                rows = join.kept_rows()
                found |= Counter({name: some.total for name, some in rows.items()})
        return found

    def state(self) -> RunState:
        """Returns the state; call it between two calls of `advance` that were iterated to their
        end."""
        gates = {}
        for name, gate in self.gates.items():
            queue = gate.by_name[name]
            waiting = gate.waiting_rows(name, self.schemas[name])
            counts = self._taken[name], self._late_of(name), self.timeless[name]
            gates[name] = GateState(waiting, queue.promise, queue.stopped, *counts, queue.highest)
        snapshots = {}
        for own, operator in self.operators.items():
            if self.runs(own):
                # A library's state that cannot be saved is a failure of its query.
                with self.work[own]:
                    snapshots[own] = operator.snapshot()
            self._fail_readers(own)
        if self.meters is not None:
            self.meters.state.update({own: len(one) for own, one in snapshots.items()})
        texts = {answer_of(node): text_of(node) for node in nodes(self.compilation.program)}
        failed = {name: [texts[name], why] for name, why in self.failures.why.items()}
        tables, held = self._table_rows(), self._held(snapshots) if self._tables else Counter()
        tables = {name: rows for name, rows in tables.items() if held[name] < rows.num_rows}
        lineages = lineages_of(self.compilation.program)
        return RunState(gates, snapshots, dict(self._results), failed, tables, lineages)

    def resume(self, state: RunState) -> None:
        """Continues from the state of another run, in a run that has taken nothing yet: the same
        results in the same order. The queries may differ, over the same streams. Windows are kept;
        a query whose text is the same keeps its groups, a derived stream whose definition is the
        same its windows. A query that has failed stays failed as long as its text is the same. Texts
        are those of all streams on the way, too."""
        state = continued(state, self.compilation.program)
        for node in nodes(self.compilation.program):
            text, why = state.failed.get(answer_of(node), (None, ""))
            if text == text_of(node):
                self.failures.why[answer_of(node)] = why
        tables = {
            name: rows
            for name, rows in rows_of_tables(state, self.streams).items()
            if rows.schema.equals(self.schemas[name])
        }
        kept = kept_rows(state.operators, tables)
        late = go_on(self, self._answers, state.operators, kept, tables)
        self._tables |= {name: [rows] for name, rows in tables.items() if name in self._tables}
        for name, gate in state.gates.items():
            if name not in self.gates:
                continue
            self._taken[name], self._late[name] = gate.taken, gate.late
            self.timeless[name] = gate.timeless
            self.gates[name].push(name, gate.waiting)
            if gate.highest is not None:
                self.gates[name].by_name[name].highest = gate.highest
            if gate.promise is not None:
                self.promise(name, gate.promise)
            if gate.ended:
                self.end(name)
        for query in self._results:
            self._results[query] = state.results.get(query, 0)
        bring(self, late, kept)


def drive(
    run: GraphRun, tables: Mapping[str, pa.Table], at_once: int = _ROWS_AT_ONCE
) -> Iterator[Answer]:
    """Yields all answers of a run over complete streams. The stream that lags furthest behind goes
    on next, so that few rows wait."""
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
