"""A run of a device, tuple by tuple: what comes in, what is stored, what is executed, what comes out.

before  a text, rows of its streams, the name of a device
after   a story: one step per raw tuple, in the order in which the device took them, and the results

The golden, the instruction-level and the Verilated device give the same story, step by step: what is
stored, what is joined, what comes out. Only the last two report the executed instructions and the factor
bits of a pair, and only the last one cycles. The Verilated device executes only pairs that its comparators
let through, so it reports fewer. A moment of a step is an instruction of the instruction-level model, or a
clock cycle of the Verilated device in which an area executes.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from seustream.compiler.pipeline import Compilation
from seustream.compiler.plan.areas import factor_numbers
from seustream.compiler.wjasip.image import decode, encode
from seustream.devices import SIMULATED
from seustream.engine.assembly import answer_schemas, streams_read
from seustream.engine.graph import GraphRun, drive
from seustream.engine.times import Times
from seustream.errors import UserError
from seustream.frames import Rows
from seustream.hdl.config import DeviceConfig
from seustream.hdl.device import Batch, Device, Results, Status
from seustream.studio.rows import as_json, left_out, page_rows
from seustream.studio.trace import MOST_MOMENTS, Event, Join, SteppedProbe, StepTrace
from seustream.studio.wanted import check_wanted
from seustream.studio.waves import signals

_COUNTED = ("dropped", "ticks", "pairs", "circulated", "handed_over")
"""Counters whose increase a step reports."""


@dataclass(frozen=True, slots=True)
class MachineStep:
    """One raw tuple and everything that it caused.

    executed  route tag, area and address of each instruction, and how often, where the device tells
    moments   the same in its order: what is executed at once; the first `MOST_MOMENTS` of them
    cycle_of  the clock cycle of each moment, where the device has a clock
    probes    those the moments are of, in the order of their first
    joins     everything that is joined, what made a probe before what the probe finds
    results   of each: device number of the query, and sequence numbers by stream, -1 for no part
    left      of each tuple that had to leave its window early: stream and sequence number
    stored    tuples in each window after this one
    cycles    clock cycles it took, where the device has a clock; `clock` is the first of them
    units     of each unit the cycles it was busy, had nothing to do, and waited for another
    """

    stream: int
    ts: int
    sequence: int
    admitted: bool
    executed: list[tuple[int, int, int, int]]
    moments: list[list[Event]]
    cycle_of: list[int]
    probes: list[SteppedProbe]
    joins: list[Join]
    results: list[tuple[int, list[int]]]
    left: list[tuple[int, int]]
    stored: list[int]
    counted: dict[str, int]
    cycles: int | None
    clock: int | None
    units: dict[str, list[int]]


@dataclass
class SteppedDevice:
    """Wraps a device: pushes its tuples one at a time, and keeps the steps."""

    device: Device
    trace: StepTrace = field(default_factory=StepTrace)  # since the step began
    steps: list[MachineStep] = field(default_factory=list)

    @property
    def config(self) -> DeviceConfig:
        return self.device.config

    def load(self, image: bytes) -> None:
        # Each result is shown with the tuple that makes it, including those that would be counted.
        self._tables = replace(decode(image, self.config), grouped={})
        self.device.load(encode(self._tables, self.config))
        self._stored = [0] * self._tables.streams
        self._places: list[dict[int, int]] = [{} for _ in range(self._tables.streams)]

    def reset(self) -> None:
        self.device.reset()

    def flush(self) -> Results:
        return self.device.flush()

    def status(self) -> Status:
        return self.device.status()

    def push(self, batch: Batch) -> Results:
        return Results.concatenate([self._step(batch.slice(i, i + 1)) for i in range(len(batch))])

    def _step(self, one: Batch) -> Results:
        check_wanted()
        before, busy, clock = self.device.status(), self._units(), self._clock()
        self.trace.begin()
        found = Results.concatenate([self.device.push(one), self.device.flush()])
        cycles = self._clock()
        after = self.device.status()
        dropped = after.dropped - before.dropped
        self._note_place(one, stored=bool(one.admit[0]) and not dropped)
        if hasattr(self.device, "executed"):
            raw = int(one.stream[0]), int(one.sequence[0])
            self.trace.take(self.device.executed(), raw, self._places, clock or 0)
        trace, (record, queries) = self.trace, found.each()
        self.steps.append(
            MachineStep(
                int(one.stream[0]),
                int(one.timestamp[0]),
                int(one.sequence[0]),
                bool(one.admit[0]),
                [
                    (*at, n)
                    for at, n in Counter(e[:3] for now in trace.moments for e in now).items()
                ],
                trace.moments[:MOST_MOMENTS],
                trace.cycles[:MOST_MOMENTS],
                trace.kept_probes(),
                trace.joins,
                sorted(zip(queries.tolist(), found.sequences[record].tolist(), strict=True)),
                sorted(
                    zip(
                        found.handed_over.stream.tolist(),
                        found.handed_over.sequence.tolist(),
                        strict=True,
                    )
                ),
                list(after.occupancy),
                {name: getattr(after, name) - getattr(before, name) for name in _COUNTED},
                None if cycles is None or clock is None else cycles - clock,
                clock,
                self._spent(busy, 0 if cycles is None or clock is None else cycles - clock),
            )
        )
        return found

    def _spent(self, before: dict[str, tuple[int, int, int]], cycles: int) -> dict[str, list[int]]:
        """Returns the busy, idle and blocked cycles of each unit. Cycles in which the counters were
        read count as idle."""
        found = {}
        for name, counts in self._units().items():
            busy, _, blocked = (now - then for now, then in zip(counts, before[name], strict=True))
            found[name] = [busy, max(cycles - busy - blocked, 0), blocked]
        return found

    def _clock(self) -> int | None:
        return getattr(self.device, "cycles", None)

    def _units(self) -> dict[str, tuple[int, int, int]]:
        if not hasattr(self.device, "units"):
            return {}
        return {n: (one.busy, one.starved, one.blocked) for n, one in self.device.units().items()}

    def _note_place(self, one: Batch, stored: bool) -> None:
        """Counts what is stored, which gives the place of a tuple in its window."""
        stream = int(one.stream[0])
        if stored and self._tables.routes[stream].insert:
            self._places[stream][self._stored[stream] % self.config.depth] = int(one.sequence[0])
            self._stored[stream] += 1


def story(
    c: Compilation, rows: Mapping[str, Rows], backend: str, waves: bool = False
) -> dict[str, Any]:
    """Returns the steps of a run over these rows, with the rows themselves and the results, as
    JSON. With `waves`, the signals of the RTL are included."""
    if not c.device_queries:
        raise UserError(
            ["no query joins in the device"], hint="the machine shows joins of two streams or more"
        )
    used = streams_read(c.program) | set(rows)
    come = {
        stream.name: page_rows(stream, rows, "seustream run")
        for stream in c.program.base
        if stream.name in used
    }
    times = Times(c.program, {name: one.time for name, one in come.items()})
    found: dict[str, list[pa.Table]] = {
        name: [schema.empty_table()] for name, schema in answer_schemas(c.program).items()
    }
    with tempfile.TemporaryDirectory() as folder:
        fst = Path(folder) / "run.fst" if waves and backend == "verilated" else None
        with watched(backend, c.options.config, fst) as device:
            graph = GraphRun(c, (device,), contained=True)
            for name, table in drive(graph, {name: one.given for name, one in come.items()}):
                found[name].append(table)
            failed = dict(graph.failures.why)
        recorded = []
        if fst is not None and device.steps:
            first, last = device.steps[0], device.steps[-1]
            recorded = signals(fst, first.clock or 0, (last.clock or 0) + (last.cycles or 0))
    return {
        "backend": backend,
        "queries": [one.division.query.name for one in c.device_queries],
        "slots": [{"name": s.name, "stream": s.stream.name} for s in c.layout.slots],
        "program": [[str(i) for i in program] for program in c.programs],
        "tags": [sorted(tag.bound) for tag in c.routes.tags],
        "factors": [
            [number + 1 for number in factor_numbers(slot, c.routes)]
            for slot in range(len(c.programs))
        ],
        "rows": {name: as_json(times.rows(name, one.taken)) for name, one in come.items()},
        "left_out": left_out(c.program, come),
        "steps": [asdict(step) for step in device.steps],
        "counters": _counters(c, device.steps),
        "lanes": c.options.config.lanes,
        "waves": recorded,
        "results": {
            name: as_json(times.results(name, pa.concat_tables(parts)))
            for name, parts in found.items()
        },
        "failed": failed,
    }


def _counters(c: Compilation, steps: list[MachineStep]) -> dict[str, int]:
    """Returns counters of the run by the part of the compilation to which each belongs
    (`compiler.explain.provenance`): executions of an instruction, comparisons of a route tag's
    tuples with stored ones, results of a query."""
    found: Counter[str] = Counter()
    for step in steps:
        for tag, area, address, times in step.executed:
            found[f"instruction:{area}:{address}"] += times
            if address == 0:
                found[f"tag:{tag}"] += times
        for query, _ in step.results:
            found[f"query:{c.device_queries[query].division.query.name}"] += 1
    return dict(found)


@contextlib.contextmanager
def watched(
    backend: str, config: DeviceConfig, waves: Path | None = None
) -> Iterator[SteppedDevice]:
    """Opens a device that keeps its steps, for the duration of the context."""
    if backend == "golden":
        from seustream.cosim.golden import GoldenDevice

        trace = StepTrace()
        yield SteppedDevice(GoldenDevice(config, trace.joined), trace)
    elif backend == "iss":
        from seustream.cosim.iss import IssDevice

        trace = StepTrace()
        yield SteppedDevice(IssDevice(config, trace.instruction, trace.probed), trace)
    elif backend == "verilated":
        from seustream.cosim.verilated.device import VerilatedDevice

        made = VerilatedDevice(config, trace=True, waves=waves)
        try:
            yield SteppedDevice(made)
        finally:
            made.close()
    else:
        what = f"there is no device {backend!r} to watch"
        raise UserError([what], hint=f"choose from {', '.join(SIMULATED)}")
