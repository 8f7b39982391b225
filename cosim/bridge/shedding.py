"""Decides which queries give way when the machine is overloaded.

before  rows wait for 900 ms; `alarm` has max_latency = '200 ms' and priority 3, `daily` priority 1
after   `daily` is shed: no row reaches it any more, until waiting times have been short for a while

The criterion is how long the oldest committed rows have waited to be processed, since this is what shedding
can reduce. Queries give way to one that exceeds its max_latency if their priority is lower than its own: half
of those of the lowest priority at a time, the latest first. They return in the opposite order, half of the
highest priority at a time, after rows have waited less than a quarter of every max_latency for some seconds.
After a return that did not last, this period doubles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seustream.compiler.language.options import QueryOptions

_PATIENCE, _MOST_PATIENCE = 5_000, 600_000
"""Milliseconds of low load before queries come back."""
_STEP = 1_000
"""Milliseconds until a step has taken effect."""


@dataclass(slots=True)
class Shedding:
    """Decides at each look; times are milliseconds of one clock."""

    patience: int = _PATIENCE
    settled: int = 0
    calm_since: int | None = None
    returned: int | None = None
    missed: frozenset[str] = frozenset()
    """Queries over their max_latency to which no query can give way."""

    def look(
        self,
        now: int,
        behind: int,
        queries: Mapping[str, QueryOptions],
        shed: Mapping[str, str],
    ) -> dict[str, str]:
        """Returns the queries that give way from now on, and why; all are in their order of
        registration."""
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
    """Returns half of the queries of the lowest or highest priority; the latest registered go first
    and return last."""
    priorities = [of.priority for of in queries.values()]
    if not priorities:
        return []
    level = min(priorities) if lowest else max(priorities)
    names = [name for name, of in queries.items() if of.priority == level]
    many = (len(names) + 1) // 2
    return names[-many:] if lowest else names[:many]
