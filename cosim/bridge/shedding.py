"""Decides which queries give way when the load is more than the machine carries.

before  rows wait for 900 ms; `alarm` has max_latency = '200 ms' and priority 3, `daily` priority 1
after   `daily` is shed: no row reaches it any more, until rows have waited little for a while

What counts is how long the oldest committed rows have waited to be processed: this is what giving way can
mend. Queries give way to one that is over its max_latency if their priority is lower than its own: of the lowest
priority half at a time, the latest first. They come back the other way round, half of the highest priority at
a time, after rows have waited less than a quarter of every max_latency for some seconds; after a
return that did not last it takes twice as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seustream.compiler.language.options import QueryOptions

_PATIENCE, _MOST_PATIENCE = 5_000, 600_000
"""Milliseconds of calm before queries come back."""
_STEP = 1_000
"""Milliseconds until a step has had its effect."""


@dataclass(slots=True)
class Shedding:
    """Decides at each look; times are milliseconds of one clock."""

    patience: int = _PATIENCE
    settled: int = 0
    calm_since: int | None = None
    returned: int | None = None
    missed: frozenset[str] = frozenset()
    """Queries over their max_latency to which none can give way."""

    def look(
        self,
        now: int,
        behind: int,
        queries: Mapping[str, QueryOptions],
        shed: Mapping[str, str],
    ) -> dict[str, str]:
        """The queries that give way from now on, of all in their order of registration, and why."""
        running = {name: of for name, of in queries.items() if name not in shed}
        limits = {name: of.max_latency for name, of in running.items() if of.max_latency}
        over = [name for name, limit in limits.items() if behind > limit]
        if not over:
            self.missed = frozenset()
            return self._bring_back(now, behind, min(limits.values(), default=None), queries, shed)
        self.calm_since = None
        if self.returned is not None:
            soon = now - self.returned < 2 * self.patience
            self.patience = min(2 * self.patience, _MOST_PATIENCE) if soon else _PATIENCE
            self.returned = None
        first = max(over, key=lambda name: running[name].priority)
        lower = {n: of for n, of in running.items() if of.priority < running[first].priority}
        self.missed = frozenset() if lower else frozenset(over)
        if not lower or now < self.settled:
            return dict(shed)
        self.settled = now + _STEP
        why = f"rows wait for {behind:,} ms, {first} has max_latency {limits[first]:,} ms"
        return {**shed, **dict.fromkeys(_half(lower, lowest=True), why)}

    def _bring_back(
        self,
        now: int,
        behind: int,
        tightest: int | None,
        queries: Mapping[str, QueryOptions],
        shed: Mapping[str, str],
    ) -> dict[str, str]:
        if not shed or (tightest is not None and 4 * behind > tightest):
            self.calm_since = None
            return dict(shed)
        if self.calm_since is None:
            self.calm_since = now
        if now - self.calm_since < self.patience and tightest is not None:
            return dict(shed)
        self.calm_since, self.returned = now, now
        back = _half({name: queries[name] for name in queries if name in shed}, lowest=False)
        return {name: why for name, why in shed.items() if name not in back and name in queries}


def _half(queries: Mapping[str, QueryOptions], lowest: bool) -> list[str]:
    """Half of those of the lowest or highest priority, the latest registered first to go and last to return."""
    priorities = [of.priority for of in queries.values()]
    if not priorities:
        return []
    level = min(priorities) if lowest else max(priorities)
    names = [name for name, of in queries.items() if of.priority == level]
    many = (len(names) + 1) // 2
    return names[-many:] if lowest else names[:many]
