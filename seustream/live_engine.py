"""The queries of `connect` in this process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from seustream.api import aside
from seustream.compiler.pipeline import Compilation, Options
from seustream.cosim.bridge import protocol as p
from seustream.devices import ENGINE, device
from seustream.engine.analyze import analyzed, read_units
from seustream.engine.assembly import streams_read
from seustream.engine.graph import GraphRun
from seustream.engine.meters import RunMeters
from seustream.engine.runs import Report
from seustream.engine.stream.operator import Answer
from seustream.frames import tuples_of
from seustream.hdl.config import DeviceConfig
from seustream.hdl.device import Device
from seustream.live import LiveQueries


class EngineQueries(LiveQueries):
    """Runs queries in this process."""

    def __init__(self, backend: str, config: DeviceConfig, slack: int | None, strict: bool) -> None:
        super().__init__(Options(config, devices=0 if backend == ENGINE else 1))
        self._backend, self._slack, self._strict = backend, slack, strict
        self._stack = contextlib.ExitStack()
        self._device: Device | None = None
        self._run: GraphRun | None = None
        self._answers_due: Iterator[Answer] | None = None
        """The answers of a step that are not taken yet. They are before anything else happens."""
        self._late: dict[str, list[pa.Table]] = {}
        self._ended = set[str]()
        self._meters = RunMeters(looks=False)

    def _close(self) -> None:
        self._answers_due = None
        self._stack.close()

    def _install(self, c: Compilation, text: str, asked: Compilation) -> list[str]:
        read = streams_read(c.program)
        files = [
            s for s in c.program.base if s.path and s.name in read and s.name not in self._ended
        ]
        tables = [(s, tuples_of(s.name, Path(str(s.path)), s).rows) for s in files]
        if self._device is None and c.devices:
            made = device(self._backend, self._options.config)
            self._device = self._stack.enter_context(made)
        before = self._run
        if before is not None:  # what is certain is the result of these queries, not of others
            self._settle()
            ready = [*before.advance()]
            self._found += self._timed([*self._waiting(), *ready])
        if before is not None and self._device is None and before.change(c):
            after = before
        else:
            state = None if before is None else before.state()
            after = GraphRun(
                c,
                self._device,
                slack=self._slack,
                on_late=aside(self._late),
                strict=self._strict,
                contained=True,
                living=True,
                meters=self._meters,
            )
            if state is not None:
                after.resume(state)
        self._run = after
        self._ended &= {s.name for s in c.program.base}
        self._late |= {
            s.name: self._late.get(s.name, []) for s in c.program.base if s.late == "side"
        }
        for table, rows in tables:
            self._push(table.name, rows)
            self._end(table.name)
        wanted = [one.target for one in self._requests(asked) if one.verb == "analyze"]
        if wanted:
            read_units(after)
        return [*self._answers(asked), *analyzed(after, wanted)]

    def _catch_up(self) -> None:
        """Does nothing, since there are no other clients."""

    def _subscribe(self, query: str) -> None:
        """Does nothing, since results of all queries arrive anyway."""

    def _queries(self) -> list[dict[str, Any]]:
        if self._run is None:
            return []
        found, failed = self._run.report.results, self._run.failed
        return [
            {"name": name, "phase": "FAILED" if name in failed else "RUNNING", "results": count}
            for name, count in found.items()
        ]

    def _failures(self) -> dict[str, str]:
        failed = {} if self._run is None else self._run.failed
        return {
            name: f"query {name} has failed: {why.removeprefix(f'query {name}: ')}"
            for name, why in failed.items()
        }

    def _push(self, stream: str, rows: pa.Table) -> None:
        with self._lock:
            self._settle()
            if self._run is not None:
                self._run.push(stream, rows)

    def _end(self, stream: str) -> None:
        with self._lock:
            self._settle()
            if self._run is not None:
                self._ended.add(stream)
                self._run.end(stream)

    def _watermark(self, stream: str, timestamp: int) -> None:
        with self._lock:
            self._settle()
            if self._run is not None:
                self._run.promise(stream, timestamp)

    def _waiting(self) -> Iterator[tuple[str, pa.Table]]:
        for stream, late in self._late.items():
            if late:
                yield p.LATE + stream, pa.concat_tables(late)
                late.clear()

    def _end_all(self) -> None:
        with self._lock:
            self._settle()
            self._found += self._timed(self._waiting())
            if self._run is not None:
                self._answers_due = self._run.finish()

    def _more(self) -> bool:
        with self._lock:
            if self._answers_due is None and self._run is not None and not self._finished:
                self._answers_due = self._run.advance()
            return not self._goes_on()

    def _goes_on(self) -> bool:
        with self._lock:
            for answer in self._answers_due or ():
                self._found += self._timed([answer])
                return True
            self._answers_due = None
            # Late rows come behind: an error of the results loses none that wait.
            self._found += self._timed(self._waiting())
            return False

    def _settle(self) -> None:
        """Takes what is left of a step."""
        while self._answers_due is not None:
            self._goes_on()

    def _account(self) -> Report:
        return Report() if self._run is None else self._run.report
