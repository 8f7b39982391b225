"""Runs a short slice of the fuzz campaign; `nox -s fuzz` runs many more cases."""

from __future__ import annotations

import pytest

from tests.system.fuzz import KINDS

SEEDS = 60


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_refused_or_harmless(kind: str) -> None:
    for seed in range(SEEDS):
        print(f"{kind}, seed {seed}")
        KINDS[kind](seed)
