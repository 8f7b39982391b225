"""Quality of service: each query's latency from the arrival of rows to its results, the ratio of
results to rows, and the query's share of the work.

A result is as old as the epoch in which its newest row was committed. After a restart, only later
arrivals are measured.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.engine.analyze import cycles, seconds_of, through
from seustream.engine.graph import GraphRun

_SAMPLES = 4096
"""Results, or epochs, whose times are kept: the last ones."""
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of a histogram's buckets, in seconds; one more bucket is unbounded."""


class Histogram:
    """Counts ages by bucket, and adds them up."""

    def __init__(self) -> None:
        self.counts = np.zeros(len(BOUNDS) + 1, np.int64)
        self.sum = 0.0

    def add(self, ages: npt.NDArray[np.float64], times: npt.NDArray[np.int64]) -> None:
        """Adds each age with its multiplicity."""
        found = np.bincount(np.searchsorted(BOUNDS, ages), times, len(BOUNDS) + 1)
        self.counts = self.counts + found.astype(np.int64)  # a new array: copies stay as they are
        self.sum += float(ages @ times)


class Spending:
    """Sums the cost of operators by query, in equal parts for all queries that share an operator."""

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}
        self._spent: dict[str, float] = {}
        self._begun: dict[str, float] = {}
        self._total = 0.0

    def add(self, totals: Mapping[str, float], through: Mapping[str, Collection[str]]) -> None:
        """Takes each operator's total cost so far, and the queries that it served since the last
        call."""
        for own, queries in through.items():
            spent = totals.get(own, 0.0) - self._seen.get(own, 0.0)
            self._total += spent
            for query in queries:
                self._spent[query] = self._spent.get(query, 0.0) + spent / len(queries)
        self._seen |= totals

    def begin(self, query: str) -> None:
        self._spent.pop(query, None)
        self._begun[query] = self._total

    def share(self, query: str) -> float | None:
        """Returns a query's share of all cost since it began; None if that is zero."""
        total = self._total - self._begun.get(query, 0.0)
        return round(self._spent.get(query, 0.0) / total, 6) if total > 0 else None


class Quality:
    """Measures quality. Call `arrived` when an epoch is in and `delivered` when results are there,
    both with the time of one clock in seconds. Not thread-safe: callers hold the session's lock."""

    def __init__(self) -> None:
        self._highest: deque[int] = deque(maxlen=_SAMPLES)
        self._when: deque[float] = deque(maxlen=_SAMPLES)
        self._times: dict[str, deque[float]] = {}
        self.latency: dict[str, Histogram] = {}
        self._before: dict[str, int] = {}
        self._results: dict[str, int] = {}
        self._seconds, self._cycles = Spending(), Spending()
        self._state: dict[str, float] = {}

    def arrived(self, highest: int | None, now: float) -> None:
        """Records an epoch by the timestamp of its latest row; does nothing for one without rows."""
        if highest is None:
            return
        if self._highest:
            highest = max(highest, self._highest[-1])
        self._highest.append(highest)
        self._when.append(now)

    def delivered(self, query: str, rows: pa.Table, now: float) -> None:
        """Records results of a query."""
        self._results[query] = self._results.get(query, 0) + rows.num_rows
        name = next((n for n in ("ts_newest", "ts") if n in rows.column_names), None)
        if not self._highest or not rows.num_rows:
            return
        ages = now - np.array(self._when)
        if name is None:
            place = np.array([len(ages) - 1])
        else:
            newest = rows.column(name).to_numpy()
            place = np.searchsorted(np.array(self._highest), newest, side="left")
            place = np.minimum(place, len(ages) - 1)
        last = ages[place[-_SAMPLES:]].tolist()
        self._times.setdefault(query, deque(maxlen=_SAMPLES)).extend(last)
        times = np.bincount(place, minlength=len(ages))
        self.latency.setdefault(query, Histogram()).add(ages, times)

    def begun(self, query: str, taken: int) -> None:
        """Begins measuring a query whose streams have brought this many rows."""
        self.forget(query)
        self._before[query] = taken

    def worked(self, run: GraphRun) -> None:
        """Takes the work of a run's operators so far; also called before its queries change."""
        found, meters = through(run), run.meters
        assert meters is not None
        self._seconds.add(seconds_of(run), found)
        self._cycles.add(cycles(run), found)
        self._state.clear()
        for own, size in dict(meters.state).items():
            for query in found.get(own, ()):
                self._state[query] = self._state.get(query, 0.0) + size / len(found[own])

    def forget(self, query: str) -> None:
        self._seconds.begin(query)
        self._cycles.begin(query)
        for known in (self._times, self.latency, self._before, self._results, self._state):
            known.pop(query, None)

    def of(self, query: str, taken: int) -> dict[str, Any]:
        """Returns the milliseconds from arrival to result that half, or one in a hundred, exceed;
        the results per row that its streams brought, which are `taken` by now; its share of the
        operators' time and of the cycles of devices with a clock, since it began; and its part of
        the last snapshot's bytes. A value is None if it is not known yet."""
        times = self._times.get(query)
        p50, p99 = np.percentile(times, (50, 99)) * 1000 if times else (None, None)
        taken -= self._before.get(query, 0)
        return {
            "p50_ms": None if p50 is None else round(float(p50), 3),
            "p99_ms": None if p99 is None else round(float(p99), 3),
            "selectivity": round(self._results.get(query, 0) / taken, 6) if taken > 0 else None,
            "time_share": self._seconds.share(query),
            "cycle_share": self._cycles.share(query),
            "state_bytes": None if query not in self._state else round(self._state[query]),
        }
