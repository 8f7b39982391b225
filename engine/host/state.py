"""A host driver's state between two releases: enough to go on on another device, or another day.

    state = state_of(driver)
    driver = HostDriver(compilation, device)
    resume(driver, state)

goes on as the first driver would have: the same results in the same order. The compilation may be
another one over the same streams, which is how queries are exchanged while windows stay.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from engine.host.driver import HostDriver, Overflow, Report
from engine.host.stores import stream_schema


@dataclass(frozen=True, slots=True)
class StreamState:
    """One stream: rows the windows can still reach, rows that wait for other streams, the
    timestamp nothing comes before any more, and whether nothing comes at all."""

    kept: pa.Table
    waiting: pa.Table
    promise: int | None = None
    ended: bool = False


@dataclass(frozen=True, slots=True)
class DriverState:
    """Streams by name, the first timestamp that codes count from, and the report."""

    streams: dict[str, StreamState]
    first_tick: int | None = None
    report: dict[str, Any] = field(default_factory=dict)


def state_of(driver: HostDriver) -> DriverState:
    """The state of a driver whose `advance` was iterated to its end."""
    streams = {}
    for stream in driver.streams:
        queue = driver.merger.by_name[stream.name]
        streams[stream.name] = StreamState(
            driver.stores[stream.name].table,
            driver.merger.waiting_rows(stream.name, stream_schema(stream)),
            queue.promise,
            stream.name in driver.ended,
        )
    return DriverState(streams, driver.first_tick, asdict(driver.report))


def resume(driver: HostDriver, state: DriverState) -> None:
    """Brings a new driver to the state; streams it does not know are left out."""
    known = {s.name: state.streams[s.name] for s in driver.streams if s.name in state.streams}
    driver.first_tick = state.first_tick
    driver.refill({name: stream.kept for name, stream in known.items()})
    driver.report = _report(driver, state.report)
    for name, stream in known.items():
        driver.merger.by_name[name].late = driver.report.late.get(name, 0)
        driver.push(name, stream.waiting)
        if stream.promise is not None:
            driver.promise(name, stream.promise)
        if stream.ended:
            driver.end(name)


def _report(driver: HostDriver, counted: dict[str, Any]) -> Report:
    report = Report(**{**counted, "results": dict(driver.report.results)})
    for name in report.results:
        report.results[name] = counted.get("results", {}).get(name, 0)
    report.overflow = {n: Overflow(**one) for n, one in counted.get("overflow", {}).items()}
    return report
