"""The results of a query, by the moment at which they come."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.pipeline import compile_text
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun

STREAMS = "CREATE STREAM R (a int, b int); CREATE STREAM S (a int, d int NOT NULL);\n"


def rows(*pairs: tuple[int, int]) -> pa.Table:
    ts, a = zip(*pairs, strict=True)
    nothing = pa.array([0] * len(ts), pa.int32())
    cells = [pa.array(ts, pa.int64()), pa.array(a, pa.int32()), nothing]
    return pa.table(cells, names=["ts", "a", "n"])


R = rows((1, 1), (3, 2), (5, 3), (20, 1)).rename_columns(["ts", "a", "b"])
S = rows((2, 1), (6, 7), (9, 3), (30, 5)).rename_columns(["ts", "a", "d"])


def moments(select: str) -> dict[int, list[tuple[object, ...]]]:
    """Returns the new results once everything up to a time has arrived, and nothing later; at 99
    the streams have ended."""
    compilation = compile_text(STREAMS + select)
    run, found = GraphRun(compilation, GoldenDevice(compilation.options.config)), {}
    for now in range(1, 40):
        for name, table in {"R": R, "S": S}.items():
            run.push(name, table.filter(pc.equal(table["ts"], now)))
            run.promise(name, now + 1)
        if new := [tuple(row.values()) for _, part in run.advance() for row in part.to_pylist()]:
            found[now] = new
    if last := [tuple(row.values()) for _, part in run.finish() for row in part.to_pylist()]:
        found[99] = last
    return found
