"""Dewey numbers: the versions of an edge that a run may follow."""

from __future__ import annotations

import pytest

from seustream.engine.pattern.versions import compatible


@pytest.mark.parametrize(
    ("v", "w", "expected"),
    [
        ((2, 0, 0), (1, 0), False),
        ((1, 1, 0), (1, 1), True),
        ((1, 1), (1, 0), True),
        ((1, 0), (1, 1), False),
        ((1, 0), (1, 0), True),
        ((1,), (1, 0), False),
    ],
)
def test_15_compatible(v: tuple[int, ...], w: tuple[int, ...], expected: bool) -> None:
    assert compatible(v, w) is expected
