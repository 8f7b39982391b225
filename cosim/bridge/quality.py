"""Quality of service: how long each query takes from the arrival of rows to its results, which share of
rows it gives back, and how far its streams are apart.

A result is as old as the epoch in which its newest row was committed. After a restart only what arrives
from then on is measured.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pyarrow as pa

_SAMPLES = 4096
"""Results, or epochs, of which the times are kept: the last ones."""


class Quality:
    """`arrived` is called when an epoch is in, `delivered` when results are there; both with the time of
    one clock in seconds. Not thread-safe: callers hold the session's lock."""

    def __init__(self) -> None:
        self._highest: deque[int] = deque(maxlen=_SAMPLES)
        self._when: deque[float] = deque(maxlen=_SAMPLES)
        self._times: dict[str, deque[float]] = {}
        self._before: dict[str, int] = {}
        self._results: dict[str, int] = {}

    def arrived(self, highest: int | None, now: float) -> None:
        """An epoch whose latest row has this timestamp; without rows, none."""
        if highest is None:
            return
        if self._highest:
            highest = max(highest, self._highest[-1])
        self._highest.append(highest)
        self._when.append(now)

    def delivered(self, query: str, rows: pa.Table, now: float) -> None:
        """Results of a query."""
        self._results[query] = self._results.get(query, 0) + rows.num_rows
        name = next((n for n in ("ts_newest", "ts") if n in rows.column_names), None)
        if not self._highest or not rows.num_rows:
            return
        if name is None:
            ages = np.array([now - self._when[-1]])
        else:
            newest = rows.column(name).to_numpy()[-_SAMPLES:]
            place = np.searchsorted(np.array(self._highest), newest, side="left")
            ages = now - np.array(self._when)[np.minimum(place, len(self._when) - 1)]
        self._times.setdefault(query, deque(maxlen=_SAMPLES)).extend(ages.tolist())

    def begun(self, query: str, taken: int) -> None:
        """A query begins now, when its streams have brought so many rows."""
        self.forget(query)
        self._before[query] = taken

    def forget(self, query: str) -> None:
        for known in (self._times, self._before, self._results):
            known.pop(query, None)

    def of(self, query: str, taken: int) -> dict[str, Any]:
        """Milliseconds from arrival to result, of which half or one in a hundred take longer, and
        results for each row its streams brought, which are `taken` by now; None where nothing is known
        yet."""
        times = self._times.get(query)
        p50, p99 = np.percentile(times, (50, 99)) * 1000 if times else (None, None)
        taken -= self._before.get(query, 0)
        return {
            "p50_ms": None if p50 is None else round(float(p50), 3),
            "p99_ms": None if p99 is None else round(float(p99), 3),
            "selectivity": round(self._results.get(query, 0) / taken, 6) if taken > 0 else None,
        }
