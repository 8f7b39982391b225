"""Compile time of 1, 8 and 64 queries, with and without shared parts."""

from __future__ import annotations

import time

from seustream.commands.bench import Measurement
from seustream.compiler.pipeline import Options, compile_text

TITLE = "compile: time for 1, 8 and 64 queries"

STREAMS = """
CREATE STREAM R (a int, b int, c int);
CREATE STREAM S (d int, e int);
CREATE STREAM T (f int, g int);
"""
CONDITIONS = (
    "R, S WHERE R.a = S.d",
    "R, S, T WHERE R.a = S.d AND S.e = T.f",
    "S, T WHERE S.e = T.f",
    "R, S WHERE R.b > S.e",
    "R, S WHERE R.a = S.d OR R.c = S.e",
    "R, S WHERE R.a = S.d AND R.c = S.e",
    "R, S, T WHERE R.a = S.d OR S.e = T.f",
    "R, S, T WHERE (R.c = S.e OR S.e = T.f) AND R.a = S.d",
)


def measure() -> Measurement:
    compile_text(queries(1))  # a process reads the grammar once
    rows: list[tuple[object, ...]] = []
    best: dict[int, float] = {}
    for count in (1, 8, 64):
        for plan in ("cost", "thesis"):
            if plan == "thesis" and count == 64:
                continue  # 64 queries without shared tags need more than 256
            seconds = []
            for _ in range(5):
                began = time.perf_counter()
                found = compile_text(queries(count), options=Options(plan=plan))
                seconds.append(time.perf_counter() - began)
            milliseconds = min(seconds) * 1000
            if plan == "cost":
                best[count] = milliseconds
            rows.append((count, plan, milliseconds, len(found.routes.tags), len(found.image)))
    return Measurement(
        ("queries", "plan", "ms", "route tags", "image bytes"),
        rows,
        {
            "64 queries over 1": best[64] / best[1],
            "8 queries over 1": best[8] / best[1],
        },
        "best of 5; the eight thesis queries, repeated with other windows",
    )


def queries(count: int) -> str:
    """Returns a query set of any size: the eight queries, repeated with other windows."""
    selects = [
        f"SELECT * FROM {CONDITIONS[i % 8]} WINDOW RANGE {100 * (1 + i // 8)};"
        for i in range(count)
    ]
    return STREAMS + "\n".join(selects)
