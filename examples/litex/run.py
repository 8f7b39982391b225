"""Runs a query on the LiteX system in simulation: Verilog of the core, LiteX around it, Verilator,
and a host that loads the query and pushes tuples over the system's bus.

    pip install "seustream[rtl]" litex
    python examples/litex/run.py

Exits with 0 if the rows are those that a nested loop over the same tuples finds.
"""

from __future__ import annotations

import hashlib
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import host
import pyarrow as pa
import soc

from seustream.compiler.pipeline import Options, compile_text
from seustream.cosim.boards.build import BoardKind, library
from seustream.cosim.boards.simulated import SimulatedBoard
from seustream.cosim.export import core
from seustream.cosim.processor.device import ProcessorDevice
from seustream.cosim.verilated.build import cache
from seustream.engine.graph import GraphRun, drive
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig

CONFIG = CONFIGURATIONS["tiny"]
QUERY = """\
CREATE STREAM R (a int, b int);
CREATE STREAM S (a int, b int);
SELECT R.b AS r, S.b AS s FROM R, S WHERE R.a = S.a AND R.b > S.b WINDOW RANGE 20;
"""
SEED, ROWS = 23, 200


def note(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def system(config: DeviceConfig) -> tuple[Path, dict[str, Any]]:
    """Builds the library of the simulated system; returns it with LiteX's map of the system."""
    with tempfile.TemporaryDirectory() as folder:
        verilog = Path(folder) / "seustream.v"
        verilog.write_text(core.axi(config))
        text, found = soc.simulated(verilog)
    # LiteX writes the time of day in comments, which must not change the hash.
    lines = [line for line in text.splitlines() if not line.startswith("//")]
    name = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:32]
    return library(text, BoardKind.BYTES, cache() / f"litex-{name}", note), found


def device(config: DeviceConfig) -> ProcessorDevice:
    """Returns the core in the system, behind the device contract."""
    built, found = system(config)
    return host.device(SimulatedBoard(built), found, config)


def tuples(chance: random.Random) -> dict[str, list[tuple[int, int, int]]]:
    """Returns the rows of each stream: time, a, b."""
    return {
        name: [(3 * i, chance.randrange(20), chance.randrange(100)) for i in range(ROWS)]
        for name in ("R", "S")
    }


def answers(processor: ProcessorDevice, rows: dict[str, list[tuple[int, int, int]]]) -> list[Any]:
    """Returns the rows of the query, as computed by the core."""
    run = GraphRun(compile_text(QUERY, options=Options(config=processor.config)), processor)
    tables = {
        name: pa.table(
            {
                "ts": pa.array([row[0] for row in each], pa.int64()),
                "a": pa.array([row[1] for row in each], pa.int32()),
                "b": pa.array([row[2] for row in each], pa.int32()),
            }
        )
        for name, each in rows.items()
    }
    return [(row["r"], row["s"]) for _, part in drive(run, tables) for row in part.to_pylist()]


def main() -> int:
    processor = device(CONFIG)
    rows = tuples(random.Random(SEED))
    found = answers(processor, rows)
    want = [
        (r[2], s[2])
        for r in rows["R"]
        for s in rows["S"]
        if abs(r[0] - s[0]) <= 20 and r[1] == s[1] and r[2] > s[2]
    ]
    status = processor.status()
    print(f"{status.taken} tuples into the core, {status.delivered} results out of it")
    print(f"{len(found)} rows, {'as' if sorted(found) == sorted(want) else 'not as'} expected")
    return int(sorted(found) != sorted(want))


if __name__ == "__main__":
    sys.exit(main())
