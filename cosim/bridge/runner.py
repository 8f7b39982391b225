"""Applies a session's records: each in order through the host driver, results out.

Its only input is the records and the parts that they name, so a runner that takes the same records
again gives every result its old place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.catalogue import Stream
from seustream.compiler.errors import CompileError
from seustream.compiler.logical.program import Program
from seustream.compiler.pipeline import Compilation, without
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.loading import check_config, compile_load
from seustream.cosim.bridge.log import Record
from seustream.engine.assembly import answer_schemas
from seustream.engine.graph import GraphRun
from seustream.engine.meters import RunMeters
from seustream.engine.runs import RunState
from seustream.engine.stream.errors import EngineError
from seustream.engine.stream.merge import timestamps
from seustream.engine.stream.schema import stream_schema
from seustream.hdl.device import Device, LoadRefused

Answer = tuple[str, pa.Table]
Parts = Callable[[Record, str], list[pa.Table]]
"""Returns the rows that a record has of a stream, part by part."""


class Runner:
    """Runs a loaded query set, on devices or in the engine alone, without the `shed` queries.
    `parts` reads staged rows; `meters` are passed from one runner to the next. Raises `BridgeError`
    (refused) for a query set that cannot run here."""

    def __init__(
        self,
        devices: Sequence[Device],
        load: p.Load,
        parts: Parts,
        libraries: Libraries,
        shed: Collection[str] = (),
        meters: RunMeters | None = None,
    ) -> None:
        self.meters = meters or RunMeters(looks=False)
        self.devices, self.load, self.parts, self.libraries = devices, load, parts, libraries
        self.loaded = compile_load(load, len(devices), libraries)
        self.compilation = without(self.loaded, shed)
        self._late: list[Answer] = []
        self.run = self._run(self.compilation)

    @functools.cached_property
    def schemas(self) -> dict[str, pa.Schema]:
        """Returns the columns of everything that can be read, by name, including late rows if
        wanted."""
        found = answer_schemas(self.loaded.program)
        kept = [stream for stream in self.run.streams if self._keeps_late(stream)]
        found |= {p.LATE + stream.name: stream_schema(stream) for stream in kept}
        return found

    def apply(self, record: Record) -> Iterator[Answer]:
        """Applies one record, whose effect depends on the records before it alone. Must be iterated
        to its end."""
        match record["kind"]:
            case "epoch":
                self.run.timeless.update(record.get("timeless", {}))
                for stream in record["streams"]:
                    rows = self._rows_of(record, stream)
                    if rows is not None:
                        self.run.push(stream, rows)
                    highest = record["seen"].get(stream)
                    if highest is not None:
                        self.run.promise(stream, highest - self.run.gates[stream].slack)
                self._hold_back_no_longer()
            case "promise":
                self.run.promise(record["stream"], record["timestamp"])
                self._hold_back_no_longer()
            case "end":
                for stream in record["streams"]:
                    self.run.end(stream)
        late, self._late = self._late, []
        yield from late
        yield from self.run.advance()

    def _rows_of(self, record: Record, stream: str) -> pa.Table | None:
        """Returns an epoch's rows of one stream by timestamp. Rows are late because of earlier
        epochs, never because of how this one happened to be partitioned."""
        parts = self.parts(record, stream)
        if not parts:
            return None
        rows = pa.concat_tables(parts)
        ts = timestamps(rows)
        if np.any(ts[1:] < ts[:-1]):
            rows = rows.take(pa.array(np.argsort(ts, kind="stable")))
        return rows

    def _hold_back_no_longer(self) -> None:
        """Advances the promise of a stream that lags too far behind the foremost one."""
        if self.load.run.lag is None:
            return
        promises = self.run.promises.values()
        for stream in self.run.streams if promises else ():
            self.run.promise(stream.name, max(promises) - self.load.run.lag)

    # --- state ----------------------------------------------------------------

    def state(self) -> RunState:
        """Returns the state between two records."""
        return self.run.state()

    def change(self, load: p.Load, shed: Collection[str]) -> bool:
        """Continues with other queries in this runner, if that copies nothing; otherwise returns
        False."""
        loaded = compile_load(load, len(self.devices), self.libraries)
        compilation = without(loaded, shed)
        if len(self.devices) or not self.run.change(compilation):
            return False
        before, program = self.schemas, loaded.program
        made = before | self.fresh_schemas(program)
        late = {name for name in before if name.startswith(p.LATE)}
        self.schemas = {name: made[name] for name in (*program.names, *late)}
        self.load, self.loaded, self.compilation = load, loaded, compilation
        return True

    def fresh_schemas(self, program: Program) -> dict[str, pa.Schema]:
        """Returns the columns of another program's queries, except those that already run."""
        known = set(map(id, self.loaded.program.queries))
        some = replace(program, queries=tuple(q for q in program.queries if id(q) not in known))
        return answer_schemas(some)

    def swapped(self, load: p.Load, shed: Collection[str]) -> Runner:
        """Returns the runner of other queries that continues from here; this one is finished."""
        state = self.state()
        after = Runner(self.devices, load, self.parts, self.libraries, shed, self.meters)
        after.run.resume(state)
        return after

    def check_swap(self, load: p.Load, base: Iterable[Stream]) -> None:
        """Raises `BridgeError` (refused) for a load that cannot replace the latest one, whose base
        streams are given: that one may still wait to be processed."""
        compilation = compile_load(load, len(self.devices), self.libraries)
        check_config(compilation, self.devices)
        if load.run != self.load.run:
            raise BridgeError("refused", "a swap changes queries, not how they run")
        # Checked before the swap is in the journal: no session would get past a faulty record.
        _check_run(compilation.program, load.run)
        old = {stream.name: stream_schema(stream) for stream in base}
        for stream in compilation.streams:
            if stream.name in old and old[stream.name] != stream_schema(stream):
                raise BridgeError("refused", f"stream {stream.name} has other columns now")

    # --- inside ---------------------------------------------------------------

    def _run(self, compilation: Compilation) -> GraphRun:
        check_config(compilation, self.devices)
        run = self.load.run
        _check_run(compilation.program, run)
        try:
            return GraphRun(
                compilation,
                self.devices[: len(compilation.devices)],
                run.overflow,
                run.slack,
                self._take_late,
                strict=run.strict,
                contained=True,
                meters=self.meters,
                living=True,
            )
        except (CompileError, LoadRefused, ValueError, EngineError) as error:
            raise BridgeError("refused", str(error)) from None

    def _take_late(self, stream: str, rows: pa.Table) -> None:
        if p.LATE + stream in self.schemas:
            self._late.append((p.LATE + stream, rows))

    def _keeps_late(self, stream: Stream) -> bool:
        return self.load.run.late or stream.late == "side"


def check_queries(program: Program, run: p.Run) -> None:
    """Raises `BridgeError` (refused) for a query set without streams and queries, or with unsuitable
    options."""
    _check_run(program, run)
    known = program.names
    if not known and not program.streams:
        raise BridgeError("refused", "there are no queries in it")
    if foreign := sorted(set(run.keep or ()) - set(known)):
        raise BridgeError("refused", f"keep: there is no query {foreign[0]:.60}")


def _check_run(program: Program, run: p.Run) -> None:
    if run.lag is not None and run.lag < 0:
        raise BridgeError("refused", f"lag = {run.lag}: want 0 or more")
