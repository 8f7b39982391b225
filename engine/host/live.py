"""A whole query set on streams that go on: the host driver with its device, and the patterns.

    live = Live(compilation, device)
    live.push("R", rows)
    for name, rows in live.advance(): ...

`state` and `resume` are as for the driver alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from compiler.plan.logical import Program
from compiler.plan.pipeline import Compilation
from engine.host.complete import result_schema
from engine.host.driver import Answer, HostDriver, accepted
from engine.host.state import DriverState, resume, state_of
from engine.pattern import output
from engine.pattern.event import BEGIN_OF_TIME, END_OF_STREAM
from engine.pattern.live import LivePatterns, PatternsState
from engine.temporal.merge import OnLate
from hdl.device import Device


@dataclass(frozen=True, slots=True)
class LiveState:
    driver: DriverState
    patterns: PatternsState


def answer_schemas(program: Program) -> dict[str, pa.Schema]:
    """The columns of everything whose results are asked for, by name."""
    found = {query.name: result_schema(query) for query in program.asked}
    fed = set(program.feeds.values())
    found |= {
        query.name: output.schema(query) for query in program.patterns if query.name not in fed
    }
    return found


def streams_read(program: Program) -> set[str]:
    """The base streams that queries and patterns read: each must come from somewhere."""
    read = [source.stream for query in program.queries for source in query.sources]
    read += [pattern.stream for pattern in program.patterns]
    return {stream.name for stream in read if stream.defined_by is None}


class Live:
    """Options are those of `HostDriver`."""

    def __init__(
        self,
        compilation: Compilation,
        device: Device,
        overflow: str = "software",
        slack: int = 0,
        on_late: OnLate | None = None,
    ) -> None:
        self.compilation = compilation
        self.driver = HostDriver(compilation, device, overflow, slack, on_late)
        self.patterns = LivePatterns(compilation.program, slack)
        self.streams = {stream.name: stream for stream in self.driver.streams}

    def push(self, stream: str, rows: pa.Table) -> None:
        self.driver.push(stream, rows)
        if stream in self.patterns.mergers:
            self.patterns.push(stream, accepted(self.streams[stream], rows))

    def promise(self, stream: str, timestamp: int) -> None:
        self.driver.promise(stream, timestamp)
        self.patterns.promise(stream, timestamp)

    def end(self, stream: str) -> None:
        self.driver.end(stream)
        self.patterns.end(stream)

    def advance(self) -> Iterator[Answer]:
        """The answers that are certain by now. To be iterated to its end."""
        over = self.driver.ended >= self.streams.keys()
        for name, rows in self.driver.finish() if over else self.driver.advance():
            if name in self.patterns.feeds:
                self.patterns.feed(name, rows)
            else:
                yield name, rows
        yield from self.patterns.advance(END_OF_STREAM if over else self._complete())

    def _complete(self) -> int:
        """Up to when all results of queries are known."""
        reached = self.driver.reached
        return BEGIN_OF_TIME if reached is None else max(reached - 1, BEGIN_OF_TIME)

    def state(self) -> LiveState:
        """Between two calls of `advance`."""
        return LiveState(state_of(self.driver), self.patterns.state())

    def resume(self, state: LiveState) -> None:
        """Of one that has taken nothing yet."""
        resume(self.driver, state.driver)
        self.patterns.resume(state.patterns)
