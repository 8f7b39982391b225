"""Meters of a run, for EXPLAIN ANALYZE and the shares of queries: rows, time and state at each operator."""

from __future__ import annotations

import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from seustream.engine.stream.operator import Operator

CALLER = ""
"""Stands for what is not spent in any operator."""


class RunMeters:
    """Counts by operator. Time is that of the operator alone, without those that read its results; state is the bytes of its
    last snapshot, or with `looks` the most it had, looked at after 1, 2, 4 … steps."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter, looks: bool = True) -> None:
        self.looks = looks
        self.rows_in, self.rows_out = Counter[str](), Counter[str]()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.state = Counter[str]()
        self._clock, self._inside, self._last, self._steps = clock, [CALLER], clock(), 0

    @contextlib.contextmanager
    def inside(self, own: str) -> Iterator[None]:
        """Time meanwhile is this operator's."""
        self.enter(own)
        try:
            yield
        finally:
            self.leave()

    def enter(self, own: str) -> None:
        """Time from here on is this operator's."""
        self._switch()
        self._inside.append(own)

    def leave(self) -> None:
        """Time from here on is that of what was entered before."""
        self._switch()
        self._inside.pop()

    def _switch(self) -> None:
        now = self._clock()
        self.seconds[self._inside[-1]] += now - self._last
        self._last = now

    def share(self, owns: Sequence[str]) -> None:
        """Divides among some operators what one of them did for all."""
        self.seconds.update(dict.fromkeys(owns, sum(self.seconds[own] for own in owns) / len(owns)))

    def step(self, operators: Mapping[str, Operator]) -> None:
        """Looks at the state of all operators, at ever longer intervals."""
        self._steps += 1
        if self.looks and self._steps & (self._steps - 1) == 0:
            with self.inside(CALLER):
                for own, operator in operators.items():
                    self.state[own] = max(self.state[own], len(operator.snapshot()))
