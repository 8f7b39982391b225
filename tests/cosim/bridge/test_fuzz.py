"""A short slice of the service's fuzzer."""

from __future__ import annotations

import pytest

from tests.cosim.bridge.fuzz import case


@pytest.mark.parametrize("seed", range(12))
def test_damage_is_refused_or_harmless(seed: int) -> None:
    print(f"seed {seed}")
    case(seed)
