"""Runs a short slice of the service's fuzzer."""

from __future__ import annotations

import pytest

from tests.cosim.bridge import storage
from tests.cosim.bridge.fuzz import case, journal, messages


@pytest.mark.parametrize("seed", range(8))
def test_damage_is_refused_or_harmless(seed: int) -> None:
    print(f"seed {seed}")
    case(seed)


def test_messages_without_a_socket() -> None:
    found = messages(0, 2000)
    assert {"answered", "malformed", "unknown", "gap", "conflict", "schema"} <= set(found)


def test_journals_with_several_kinds_of_damage() -> None:
    made = storage.run(12, 1)
    kinds = [journal(seed, made) for seed in range(100)]
    assert {"refused", "whole"} <= set(kinds)
