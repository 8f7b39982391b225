"""A session's state on disk: `state.json`, and the rows as Arrow files beside it.

Rows are those the windows can still reach, those that wait for other streams, and the results
that readers have not trimmed. A session that starts from them goes on as if it had never stopped.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from cosim.bridge.results import ResultLog
from engine.host.state import DriverState, StreamState


def save(
    folder: Path, state: DriverState, logs: dict[str, ResultLog], rest: dict[str, Any]
) -> None:
    """Writes everything into a folder; `rest` is whatever JSON can say."""
    data: dict[str, Any] = {"rest": rest, "report": state.report, "streams": {}, "results": {}}
    data["first_tick"] = state.first_tick
    for number, (name, stream) in enumerate(state.streams.items()):
        _write(folder / f"kept-{number}.arrow", stream.kept)
        _write(folder / f"waiting-{number}.arrow", stream.waiting)
        data["streams"][name] = {"promise": stream.promise, "ended": stream.ended}
    for number, (name, log) in enumerate(logs.items()):
        _write(folder / f"results-{number}.arrow", log.rows)
        data["results"][name] = {"first": log.first, "end": log.end}
    (folder / "state.json").write_text(json.dumps(data), encoding="utf-8")


def rest_of(folder: Path) -> dict[str, Any]:
    """What was saved as `rest`."""
    return dict(_state(folder)["rest"])


def restore(folder: Path) -> tuple[DriverState, dict[str, tuple[int, int, pa.Table]]]:
    """The driver's state; of each query's results the offsets of the first and past the last,
    and the rows."""
    data = _state(folder)
    streams = {
        name: StreamState(
            _read(folder / f"kept-{number}.arrow"),
            _read(folder / f"waiting-{number}.arrow"),
            stream["promise"],
            stream["ended"],
        )
        for number, (name, stream) in enumerate(data["streams"].items())
    }
    results = {
        name: (one["first"], one["end"], _read(folder / f"results-{number}.arrow"))
        for number, (name, one) in enumerate(data["results"].items())
    }
    return DriverState(streams, data["first_tick"], data["report"]), results


def _state(folder: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((folder / "state.json").read_text(encoding="utf-8"))
    return data


def _write(path: Path, rows: pa.Table) -> None:
    with pa.ipc.new_file(str(path), rows.schema) as file:
        file.write_table(rows)


def _read(path: Path) -> pa.Table:
    # Into memory: the next snapshot deletes the file.
    return pa.ipc.open_file(pa.py_buffer(path.read_bytes())).read_all()
