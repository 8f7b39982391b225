"""Tests a session's state on disk: restoring gives what was saved."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from seustream.cosim.bridge import snapshot
from seustream.cosim.bridge.results import ResultLog
from seustream.cosim.bridge.sealed import SealedWriter, read_sealed
from seustream.engine.runs import GateState, RunState
from tests.cosim.bridge.simdisk import SimDisk

PATH = Path("/snapshot")
ROWS = pa.table(
    {
        "ts": pa.array([1, 2, None], pa.int64()),
        "name": pa.array(["a", None, "ü"]),
        "amount": pa.array([None, 1, 2], pa.decimal128(9, 2)),
    }
)


def again(state: RunState, logs: dict[str, ResultLog], rest: dict[str, object]) -> object:
    disk = SimDisk()
    writer = SealedWriter(disk.open(PATH, fresh=True))
    writer.seal("snapshot", snapshot.save(writer, state, logs, rest))
    return snapshot.restore(read_sealed(disk, PATH, "snapshot"))


def test_what_is_restored_is_what_was_saved() -> None:
    gates = {
        "R": GateState(ROWS, 7, False, 3, 1),
        "S": GateState(ROWS.slice(0, 0), None, True),
    }
    operators = {"join": bytes(range(256)) * 1000, "": b""}
    failed = {"bad": ["SELECT 1", "it broke"]}
    state = RunState(gates, operators, {"q": 5}, failed, {"t": ROWS})
    log = ResultLog("q", ROWS.schema)
    for _ in range(3):
        log.append(ROWS)
    log.readers["r"] = 2
    log.trim("r", 2)
    rest = {"epoch": 3, "text": "\N{SNOWMAN}", "none": None}
    found = again(state, {"q": log, "none": ResultLog("none", ROWS.schema)}, rest)
    assert isinstance(found, snapshot.SavedState)
    assert found.rest == rest
    assert found.state == state
    first, end, rows = found.results["q"]
    assert (first, end) == (2, 9)
    assert rows.equals(pa.concat_tables([ROWS] * 3).slice(2))
    assert found.results["none"][:2] == (0, 0)
    assert found.results["none"][2].schema == ROWS.schema


def test_an_operators_state_does_not_hold_the_file() -> None:
    """A state that is kept for a failed query must not keep all the others in memory."""
    state = RunState({}, {"a": b"x" * 10, "b": b"y" * 10}, {})
    found = again(state, {}, {})
    assert isinstance(found, snapshot.SavedState)
    assert all(type(one) is bytes for one in found.state.operators.values())
