"""Random cases whose chance comes from Hypothesis: one that fails is made as small as it can be.

    @random_cases(500)
    def test_joins(chance: random.Random) -> None:
        check(chance)

A generator draws from `chance` as from any `random.Random`; a campaign gives it `random.Random(seed)`.
Hypothesis has drawn the bytes behind it, evenly, and moves them towards zero as long as the test fails:
fewer rows, fewer parts, first choices. The cases are the same each time.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import hypothesis
from hypothesis import strategies as st

SIZE = 512
"""Bytes of a case, for 200 draws or so; further draws follow from them."""


class Chance(random.Random):
    """Derives its values from bytes. Zeros give the first choice, the least number, and in
    `random()` the greatest, which ends loops that go on with some probability."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self._content, self._at = content, 0

    def __repr__(self) -> str:
        return f'Chance(bytes.fromhex("{self._content.rstrip(bytes(1)).hex()}").ljust({SIZE}, bytes(1)))'

    def random(self) -> float:
        return 1 - (self.getrandbits(53) + 1) / (1 << 53)

    def getrandbits(self, k: int, /) -> int:
        size = -(-k // 8)
        taken = self._content[self._at : self._at + size]
        if len(taken) < size:
            return super().getrandbits(k)
        self._at += size
        return int.from_bytes(taken, "little") >> (size * 8 - k)

    def _randbelow(self, n: int) -> int:
        """Serves `choice`, `randint`, `shuffle` and others; without rejection, so that each takes
        as many bytes whatever they are."""
        bits = 16 if n < 1 << 8 else n.bit_length() + 16
        return self.getrandbits(bits) * n >> bits


CHANCES = st.binary(min_size=SIZE, max_size=SIZE).map(Chance)


def random_cases(count: int) -> Callable[[Callable[..., None]], Callable[..., Any]]:
    """Decorates a test, which then runs `count` times, each time with another `chance`."""

    def decorate(test: Callable[..., None]) -> Callable[..., Any]:
        settings = hypothesis.settings(
            max_examples=count,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        return settings(hypothesis.given(chance=CHANCES)(test))

    return decorate
