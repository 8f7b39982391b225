"""Meters of a run, for EXPLAIN ANALYZE and the shares of queries: rows, time and state per
operator."""

from __future__ import annotations

import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from seustream.engine.stream.operator import Operator

CALLER = ""
"""Stands for time that is not spent in any operator."""


class RunMeters:
    """Counts by operator. Time is the operator's own, without that of the readers of its results.
    State is the bytes of its last snapshot, or with `looks` the most it had, sampled after 1, 2, 4
    … steps."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter, looks: bool = True) -> None:
        self.looks = looks
        self.rows_in, self.rows_out = Counter[str](), Counter[str]()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.state = Counter[str]()
        self._clock, self._inside, self._last, self._steps = clock, [CALLER], clock(), 0

    @contextlib.contextmanager
    def inside(self, own: str) -> Iterator[None]:
        """Counts the time of the block as this operator's."""
        self.enter(own)
        try:
            yield
        finally:
            self.leave()

    def enter(self, own: str) -> None:
        """Counts time from here on as this operator's."""
        self._switch()
        self._inside.append(own)

    def leave(self) -> None:
        """Counts time from here on as that of the operator entered before."""
        self._switch()
        self._inside.pop()

    def _switch(self) -> None:
        now = self._clock()
        self.seconds[self._inside[-1]] += now - self._last
        self._last = now

    def share(self, owns: Sequence[str]) -> None:
        """Divides among some operators the time one of them spent for all."""
        self.seconds.update(dict.fromkeys(owns, sum(self.seconds[own] for own in owns) / len(owns)))

    def step(self, operators: Mapping[str, Operator]) -> None:
        """Samples the state of all operators, at ever longer intervals."""
        self._steps += 1
        if self.looks and self._steps & (self._steps - 1) == 0:
            with self.inside(CALLER):
                for own, operator in operators.items():
                    self.state[own] = max(self.state[own], len(operator.snapshot()))
