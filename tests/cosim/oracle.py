"""Defines what queries mean by trying every combination of tuples: section 2.1, nothing else.

No tables, no door, no expiry, no capacity: whatever a device gains by these must not show.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence

from seustream.hdl.device import Window, WindowKind
from tests.cosim.queries import Query, Raw, Row

HOLDS: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "=": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
    "<=": operator.le,
    "<>": operator.ne,
    "true": lambda a, b: True,
    "false": lambda a, b: False,
}


def expected(
    raws: Sequence[Raw], queries: Sequence[Query], groups: tuple[int, ...] = (0, 1, 2)
) -> list[Row]:
    """Returns the results of all queries, each once, in the order of the arrivals that made
    them."""
    rows: list[Row] = []
    for position, latest in enumerate(raws):
        if not latest.admit:
            continue
        so_far = raws[: position + 1]
        for number, query in enumerate(queries):
            if latest.stream not in query.windows:
                continue
            candidates = [
                [
                    raw
                    for raw in ([latest] if stream == latest.stream else so_far)
                    if raw.stream == stream
                    and raw.admit
                    and _in_window(raw, window, latest.timestamp, so_far, groups)
                    and _selected(raw, query)
                ]
                for stream, window in query.windows.items()
            ]
            for parts in itertools.product(*candidates):
                if _joins({part.stream: part for part in parts}, query):
                    rows.append(_row(number, parts))
    return rows


def _in_window(
    raw: Raw, window: Window, now: int, so_far: Sequence[Raw], groups: tuple[int, ...]
) -> bool:
    if window.kind is WindowKind.RANGE:
        return now - window.size <= raw.timestamp <= now
    if window.kind is WindowKind.ROWS:
        source = groups[raw.stream]
        arrived = list(dict.fromkeys(r.sequence for r in so_far if groups[r.stream] == source))
        return raw.sequence in arrived[max(0, len(arrived) - window.size) :]
    return True


def _selected(raw: Raw, query: Query) -> bool:
    where = query.where.get(raw.stream)
    if where is None:
        return True
    outcomes = [HOLDS[symbol](raw.attributes[a], c) for a, symbol, c in where.comparisons]
    return all(outcomes) if where.every else any(outcomes)


def _joins(parts: dict[int, Raw], query: Query) -> bool:
    return any(
        all(
            HOLDS[on.symbol](parts[on.x].attributes[on.a], parts[on.y].attributes[on.b])
            for on in term
        )
        for term in query.terms
    )


def _row(number: int, parts: Sequence[Raw]) -> Row:
    times = [part.timestamp for part in parts]
    sequences = {part.stream: part.sequence for part in parts}
    return number, max(times), min(times), tuple(sequences.get(s, -1) for s in range(4))
