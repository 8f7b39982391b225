"""A host driver's state between two releases: enough to go on on another device, or another day.

    state = state_of(driver)
    driver = HostDriver(compilation, device)
    resume(driver, state)

goes on as the first driver would have: the same results in the same order. The compilation may be
another one over the same streams, which is how queries are exchanged while windows stay. A query
whose text is the same keeps its groups, a derived stream of the same columns its windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from engine.host.driver import HostDriver, Overflow, Report
from engine.host.grouping import Grouping
from engine.host.stages import PatternStage, Stage
from engine.host.stores import Stores, stream_schema


@dataclass(frozen=True, slots=True)
class StreamState:
    """One stream: rows the windows can still reach, rows that wait for other streams, the
    timestamp nothing comes before any more, and whether nothing comes at all; how many of its
    rows have been processed."""

    kept: pa.Table
    waiting: pa.Table
    promise: int | None = None
    ended: bool = False
    seen: int = 0


@dataclass(frozen=True, slots=True)
class GroupsState:
    """The members of an aggregated query, and the text it had."""

    text: str
    members: pa.Table


@dataclass(frozen=True, slots=True)
class BetweenState:
    """A pattern whose results queries read: its text, its operator's snapshot (plain values for
    JSON), and up to when its stream is complete."""

    text: str
    operator: dict[str, Any]
    bound: int


@dataclass(frozen=True, slots=True)
class DriverState:
    """Streams by name, the first timestamp that codes count from, and the report; groups by query;
    of each stage after the device its streams by name; patterns that are a stage, by name."""

    streams: dict[str, StreamState]
    first_tick: int | None = None
    report: dict[str, Any] = field(default_factory=dict)
    groups: dict[str, GroupsState] = field(default_factory=dict)
    stages: tuple[dict[str, StreamState], ...] = ()
    between: dict[str, BetweenState] = field(default_factory=dict)


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
            driver.seen[stream.name],
        )
    groups = {
        grouping.query.name: GroupsState(grouping.query.text, grouping.members(stores))
        for grouping, stores in _groupings(driver)
    }
    return DriverState(
        streams,
        driver.first_tick,
        asdict(driver.report),
        groups,
        tuple(_of_stage(stage) for stage in _stages(driver)),
        {
            stage.query.name: BetweenState(stage.query.text, stage.operator.snapshot(), stage.bound)
            for stage in _patterns(driver)
        },
    )


def _stages(driver: HostDriver) -> list[Stage]:
    return [stage for stage in driver.stages if isinstance(stage, Stage)]


def _patterns(driver: HostDriver) -> list[PatternStage]:
    return [stage for stage in driver.stages if isinstance(stage, PatternStage)]


def _of_stage(stage: Stage) -> dict[str, StreamState]:
    found = {}
    for stream in stage.streams:
        queue = stage.merger.by_name[stream.name]
        found[stream.name] = StreamState(
            stage.stores[stream.name].table,
            stage.merger.waiting_rows(stream.name, stage.schemas[stream.name]),
            queue.promise,
            queue.stopped,
            stage.seen[stream.name],
        )
    return found


def _groupings(driver: HostDriver) -> Iterator[tuple[Grouping, Stores]]:
    """Each aggregated query's groups where they are kept, with the stores its rows are in."""
    stages = _stages(driver)
    later = {name for stage in stages for name in stage.groupings}
    for name, grouping in driver.groupings.items():
        if name not in later:
            yield grouping, driver.stores
    for stage in stages:
        for grouping in stage.groupings.values():
            yield grouping, stage.stores


def resume(driver: HostDriver, state: DriverState) -> None:
    """Brings a new driver to the state; streams it does not know are left out."""
    known = {s.name: state.streams[s.name] for s in driver.streams if s.name in state.streams}
    driver.first_tick = state.first_tick
    driver.refill({name: stream.kept for name, stream in known.items()})
    driver.report = _report(driver, state.report)
    for stage in _stages(driver):
        _resume_stage(stage, _before(stage, state.stages))
    for pattern in _patterns(driver):
        kept = state.between.get(pattern.query.name)
        if kept is not None and kept.text == pattern.query.text:
            pattern.operator.restore(kept.operator)
            pattern.bound = kept.bound
    for grouping, _ in _groupings(driver):
        groups = state.groups.get(grouping.query.name)
        if groups is not None and groups.text == grouping.query.text:
            grouping.restore(groups.members)
    for name, stream in known.items():
        driver.seen[name] = stream.seen
        driver.merger.by_name[name].late = driver.report.late.get(name, 0)
        driver.push(name, stream.waiting)
        if stream.promise is not None:
            driver.promise(name, stream.promise)
        if stream.ended:
            driver.end(name)


def _before(stage: Stage, stages: Sequence[dict[str, StreamState]]) -> dict[str, StreamState]:
    """What the stage was, wherever it stood: a swap may put stages before it, or take them away.
    Each reads a derived stream that none before it can read, so of the same queries it is its own."""
    names = {stream.name for stream in stage.streams}
    derived = {stream.name for stream in stage.streams if stream.defined_by is not None}

    def alike(one: dict[str, StreamState]) -> tuple[int, int, int]:
        return len(derived & one.keys()), len(names & one.keys()), -len(one.keys() - names)

    return max(stages, key=alike, default={})


def _resume_stage(stage: Stage, before: dict[str, StreamState]) -> None:
    """Streams with the columns they had; one that is defined anew begins anew."""
    known = {
        s.name: before[s.name]
        for s in stage.streams
        if s.name in before and before[s.name].waiting.schema.equals(stage.schemas[s.name])
    }
    stage.refill({name: stream.kept for name, stream in known.items()})
    for name, stream in known.items():
        stage.seen[name] = stream.seen
        stage.push(name, stream.waiting)
        if stream.promise is not None:
            stage.merger.boundary(name, stream.promise)
        if stream.ended:
            stage.merger.stop(name)


def _report(driver: HostDriver, counted: dict[str, Any]) -> Report:
    report = Report(**{**counted, "results": dict(driver.report.results)})
    for name in report.results:
        report.results[name] = counted.get("results", {}).get(name, 0)
    report.overflow = {n: Overflow(**one) for n, one in counted.get("overflow", {}).items()}
    return report
