"""Matchers for a query, and short forms of events and matches."""

from __future__ import annotations

import pyarrow as pa

from seustream.compiler.pattern import ir
from seustream.engine.pattern.event import Event, Match
from seustream.engine.pattern.planner import supports

ENGINES = ("columns", "compiled", "optiseq", "nfa", "compact")


def engines_for(query: ir.PatternQuery) -> list[str]:
    return [name for name in ENGINES if supports(query)[name] is None]


def event(ts: int, kind: str | None, **attrs: object) -> Event:
    return Event(ts, 0, kind, {"type": kind, **attrs})


def ids(matches: list[Match]) -> set[object]:
    return {match.ids for match in matches}


def rows(given: list[tuple[int | None, str]]) -> pa.Table:
    return pa.table(
        {
            "ts": pa.array([ts for ts, _ in given], pa.int64()),
            "type": [kind for _, kind in given],
            "x": pa.array([1] * len(given), pa.int32()),
            "y": pa.nulls(len(given), pa.float64()),
            "k": pa.nulls(len(given), pa.string()),
        }
    )
