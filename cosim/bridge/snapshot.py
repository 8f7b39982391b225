"""A session's state on disk: JSON, and before it the rows as Arrow streams; one sealed file.

Rows are those the windows can still reach, those that wait for other streams, members of groups,
and the results that readers have not trimmed. A session that starts from them goes on as if it had
never stopped.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cosim.bridge.results import ResultLog
from cosim.bridge.sealed import Sealed, SealedWriter
from engine.host.live import LiveState
from engine.host.state import BetweenState, DriverState, GroupsState, StreamState
from engine.pattern.live import PatternsState, PatternState, WaitingState


def save(
    writer: SealedWriter, state: LiveState, logs: dict[str, ResultLog], rest: dict[str, Any]
) -> dict[str, Any]:
    """Writes everything; `rest` is whatever JSON can say. Gives where to find it."""
    files = _Writing(writer)
    driver, patterns = state.driver, state.patterns
    data: dict[str, Any] = {
        "rest": rest,
        "report": driver.report,
        "first_tick": driver.first_tick,
        "streams": files.put_streams(driver.streams),
        "stages": [files.put_streams(stage) for stage in driver.stages],
        "groups": {
            name: {"text": one.text, "members": files.put(one.members)}
            for name, one in driver.groups.items()
        },
        "between": {
            name: {"text": one.text, "operator": one.operator, "bound": one.bound}
            for name, one in driver.between.items()
        },
        "pattern_streams": {
            name: {"waiting": files.put(one.waiting), "promise": one.promise, "ended": one.ended}
            for name, one in patterns.streams.items()
        },
        "patterns": {
            name: {"text": one.text, "operator": one.operator}
            for name, one in patterns.patterns.items()
        },
        "results": {
            name: {"first": log.first, "end": log.end, "rows": files.put(log.rows)}
            for name, log in logs.items()
        },
    }
    begin = writer.length
    writer.write(json.dumps(data).encode())
    return {"tables": files.places, "state": [begin, writer.length]}


@dataclass(frozen=True, slots=True)
class Saved:
    """The queries' state; of each query's results the offsets of the first and past the last, and
    the rows; and the rest."""

    state: LiveState
    results: dict[str, tuple[int, int, pa.Table]]
    rest: dict[str, Any]


def restore(sealed: Sealed) -> Saved:
    """What was saved."""
    begin, end = sealed.meta["state"]
    data, files = json.loads(bytes(sealed.payload[begin:end])), _Reading(sealed)
    driver = DriverState(
        files.streams(data["streams"]),
        data["first_tick"],
        data["report"],
        {
            name: GroupsState(one["text"], files.get(one["members"]))
            for name, one in data["groups"].items()
        },
        tuple(files.streams(stage) for stage in data["stages"]),
        {
            name: BetweenState(one["text"], one["operator"], one["bound"])
            for name, one in data["between"].items()
        },
    )
    patterns = PatternsState(
        {
            name: WaitingState(files.get(one["waiting"]), one["promise"], one["ended"])
            for name, one in data["pattern_streams"].items()
        },
        {
            name: PatternState(one["text"], one["operator"])
            for name, one in data["patterns"].items()
        },
    )
    results = {
        name: (one["first"], one["end"], files.get(one["rows"]))
        for name, one in data["results"].items()
    }
    return Saved(LiveState(driver, patterns), results, data["rest"])


class _Writing:
    """Tables one after the other, by number."""

    def __init__(self, writer: SealedWriter) -> None:
        self.writer = writer
        self.places: list[tuple[int, int]] = []

    def put(self, rows: pa.Table) -> int:
        begin = self.writer.length
        with pa.ipc.new_stream(self.writer, rows.schema) as file:
            file.write_table(rows)
        self.places.append((begin, self.writer.length))
        return len(self.places) - 1

    def put_streams(self, streams: dict[str, StreamState]) -> dict[str, Any]:
        return {
            name: {
                "kept": self.put(one.kept),
                "waiting": self.put(one.waiting),
                "promise": one.promise,
                "ended": one.ended,
                "seen": one.seen,
            }
            for name, one in streams.items()
        }


class _Reading:
    """The tables again."""

    def __init__(self, sealed: Sealed) -> None:
        self.sealed = sealed

    def get(self, number: int) -> pa.Table:
        begin, end = self.sealed.meta["tables"][number]
        # A copy: one table that is kept for long must not hold all the others.
        data = pa.py_buffer(bytes(self.sealed.payload[begin:end]))
        return pa.ipc.open_stream(data).read_all()

    def streams(self, data: dict[str, Any]) -> dict[str, StreamState]:
        return {
            name: StreamState(
                self.get(one["kept"]),
                self.get(one["waiting"]),
                one["promise"],
                one["ended"],
                one["seen"],
            )
            for name, one in data.items()
        }
