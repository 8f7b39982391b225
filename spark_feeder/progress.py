"""The progress of a job.

Spark's own listeners see it too: a stream's query is called `stream R`, a query's results `query
q0`, late rows `late R`. Under `observedMetrics`, their progress has as `seustream` the `rows` of a
batch (rows in, results out, late rows) and its `first` and `last` timestamp.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from seustream.compiler.logical.program import RESULT_TIMES
from seustream.engine.sites.prefilter import SavedPrefilter

STREAM, QUERY, LATE_ROWS, ALL = "stream ", "query ", "late ", "streams"
OBSERVED = "seustream"


def observed(rows: DataFrame, name: str = OBSERVED) -> DataFrame:
    """Returns the same rows, counted batch by batch for Spark's listeners."""
    counts = [f.count(f.lit(1)).alias("rows")]
    time = next((name for name in ("ts", RESULT_TIMES[1]) if name in rows.columns), None)
    if time is not None:
        counts += [f.min(time).alias("first"), f.max(time).alias("last")]
    return rows.observe(name, *counts)


@dataclass(slots=True)
class FeedCounts:
    """The counts of the bridges; for several, their sums.

    rows, late      of each stream: processed, and late
    results         of each query
    waiting         rows committed and not yet processed
    device          what the device counted: taken, pairs, circulated, delivered, handed_over;
                    `cycles` if it has a clock, the maximum over all
    epochs          committed
    saved           by the synopsis filter, of each stream
    faults          of each query, by place: how many, and the first row
    """

    rows: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    results: dict[str, int] = field(default_factory=dict)
    waiting: int = 0
    epochs: int = 0
    device: dict[str, int] = field(default_factory=dict)
    saved: dict[str, SavedPrefilter] = field(default_factory=dict)
    faults: dict[str, dict[str, tuple[int, str]]] = field(default_factory=dict)

    def add(self, status: dict[str, Any]) -> None:
        """Adds the status of one bridge."""
        for member, name in (("rows", "rows_total"), ("late", "late_total")):
            _sum(getattr(self, member), status.get(name, {}))
        own = {
            q: n for q, n in status.get("results_total", {}).items() if not q.startswith("late.")
        }
        _sum(self.results, own)
        for query, lines in status.get("faults", {}).items():
            mine = self.faults.setdefault(query, {})
            for place, (count, row) in lines.items():
                before, first = mine.get(place, (0, row))
                mine[place] = (before + count, first)
        self.waiting += status.get("rows_waiting", 0)
        self.epochs = max(self.epochs, status.get("epochs_total", 0))
        for name, value in status.items():
            if name.startswith("device_") and name.endswith("_total"):
                what = name.removeprefix("device_").removesuffix("_total")
                before = self.device.get(what, 0)
                self.device[what] = max(before, value) if what == "cycles" else before + value

    def line(self, seconds: float) -> str:
        """Returns a line for a console."""
        rows = sum(self.rows.values())
        found = " ".join(f"{name} {count:,}" for name, count in self.results.items())
        late = f", {sum(self.late.values()):,} late" if any(self.late.values()) else ""
        return f"{seconds:5.1f} s  {rows:,} rows{late} → {found}"


def _sum(into: dict[str, int], more: dict[str, int]) -> None:
    for name, count in more.items():
        into[name] = into.get(name, 0) + count
