"""A session's state on disk, in one sealed file: JSON, preceded by the operators' snapshots and, as
Arrow streams, waiting rows and untrimmed results.

A session that starts from them continues as if it had never stopped.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from seustream.cosim.bridge.results import ResultLog
from seustream.cosim.bridge.sealed import Sealed, SealedWriter
from seustream.engine.runs import GateState, Lineages, RunState


def save(
    writer: SealedWriter, state: RunState, logs: dict[str, ResultLog], rest: dict[str, Any]
) -> dict[str, Any]:
    """Writes everything; `rest` is any JSON value. Returns where to find it."""
    files = _Writing(writer)
    data: dict[str, Any] = {
        "rest": rest,
        "counts": state.results,
        "gates": {
            name: {
                "waiting": files.put(one.waiting),
                "promise": one.promise,
                "ended": one.ended,
                "taken": one.taken,
                "late": one.late,
                "timeless": one.timeless,
                "highest": one.highest,
            }
            for name, one in state.gates.items()
        },
        "failed": state.failed,
        "lineages": None if state.lineages is None else asdict(state.lineages),
        "tables": {name: files.put(rows) for name, rows in state.tables.items()},
        "operators": {name: files.put_bytes(one) for name, one in state.operators.items()},
        "results": {
            name: {"first": log.first, "end": log.end, "rows": files.put(log.rows)}
            for name, log in logs.items()
        },
    }
    begin = writer.length
    writer.write(json.dumps(data).encode())
    return {"tables": files.places, "state": [begin, writer.length]}


@dataclass(frozen=True, slots=True)
class SavedState:
    """The queries' state; for each query's results the offsets of the first and past the last, and
    the rows; and the rest."""

    state: RunState
    results: dict[str, tuple[int, int, pa.Table]]
    rest: dict[str, Any]


def restore(sealed: Sealed) -> SavedState:
    """Returns the saved state."""
    begin, end = sealed.meta["state"]
    data, files = json.loads(bytes(sealed.payload[begin:end])), _Reading(sealed)
    state = RunState(
        {
            name: GateState(**{**one, "waiting": files.get(one["waiting"])})
            for name, one in data["gates"].items()
        },
        {name: files.bytes_of(number) for name, number in data["operators"].items()},
        data["counts"],
        data.get("failed", {}),
        {name: files.get(number) for name, number in data.get("tables", {}).items()},
        Lineages(**lineages) if (lineages := data.get("lineages")) else None,
    )
    results = {
        name: (one["first"], one["end"], files.get(one["rows"]))
        for name, one in data["results"].items()
    }
    return SavedState(state, results, data["rest"])


class _Writing:
    """Writes tables and operators' snapshots one after the other, by number."""

    def __init__(self, writer: SealedWriter) -> None:
        self.writer = writer
        self.places: list[tuple[int, int]] = []

    def put(self, rows: pa.Table) -> int:
        begin = self.writer.length
        with pa.ipc.new_stream(self.writer, rows.schema) as file:
            file.write_table(rows)
        self.places.append((begin, self.writer.length))
        return len(self.places) - 1

    def put_bytes(self, data: bytes) -> int:
        begin = self.writer.length
        self.writer.write(data)
        self.places.append((begin, self.writer.length))
        return len(self.places) - 1


class _Reading:
    """Reads them back."""

    def __init__(self, sealed: Sealed) -> None:
        self.sealed = sealed

    def bytes_of(self, number: int) -> bytes:
        """Returns a copy: data kept for long must not keep the whole file in memory."""
        begin, end = self.sealed.meta["tables"][number]
        return bytes(self.sealed.payload[begin:end])

    def get(self, number: int) -> pa.Table:
        return pa.ipc.open_stream(pa.py_buffer(self.bytes_of(number))).read_all()
