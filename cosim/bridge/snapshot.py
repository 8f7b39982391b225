"""A session's state on disk: `state.json`, and the rows as Arrow files beside it.

Rows are those the windows can still reach, those that wait for other streams, members of groups,
and the results that readers have not trimmed. A session that starts from them goes on as if it had
never stopped.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from cosim.bridge.results import ResultLog
from engine.host.live import LiveState
from engine.host.state import BetweenState, DriverState, GroupsState, StreamState
from engine.pattern.live import PatternsState, PatternState, WaitingState


def save(folder: Path, state: LiveState, logs: dict[str, ResultLog], rest: dict[str, Any]) -> None:
    """Writes everything into a folder; `rest` is whatever JSON can say."""
    files = _Files(folder)
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
    (folder / "state.json").write_text(json.dumps(data), encoding="utf-8")


def rest_of(folder: Path) -> dict[str, Any]:
    """What was saved as `rest`."""
    return dict(_state(folder)["rest"])


def restore(folder: Path) -> tuple[LiveState, dict[str, tuple[int, int, pa.Table]]]:
    """The queries' state; of each query's results the offsets of the first and past the last,
    and the rows."""
    data, files = _state(folder), _Files(folder)
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
    return LiveState(driver, patterns), results


class _Files:
    """Tables in a folder, by number."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0

    def put(self, rows: pa.Table) -> int:
        number, self.count = self.count, self.count + 1
        with pa.ipc.new_file(str(self.folder / f"{number}.arrow"), rows.schema) as file:
            file.write_table(rows)
        return number

    def get(self, number: int) -> pa.Table:
        # Into memory: the next snapshot deletes the file.
        data = (self.folder / f"{number}.arrow").read_bytes()
        return pa.ipc.open_file(pa.py_buffer(data)).read_all()

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


def _state(folder: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((folder / "state.json").read_text(encoding="utf-8"))
    return data
