"""Runs a seeded slice of the campaign of disk faults; `nox -s storage` runs all of it."""

from __future__ import annotations

import functools
import random
from collections import Counter

import pytest

from tests.cosim.bridge import storage
from tests.cosim.bridge.simdisk import FAULTS

EPOCHS = 30


@functools.cache
def made() -> storage.Run:
    return storage.run(EPOCHS, 1)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_call_goes_wrong_and_nothing_is_lost_or_repeated(fault: str) -> None:
    """Covers three epochs, one of them with a snapshot, and a fault in any of their calls."""
    chance = random.Random(fault)
    snapshots = [n for n in range(EPOCHS) if storage.calls_of(made(), n) > 26]
    assert snapshots
    for epoch in (0, snapshots[0], chance.randrange(EPOCHS)):
        calls = storage.calls_of(made(), epoch)
        for call in sorted(chance.sample(range(calls), 4)):
            storage.call_case(made(), epoch, call, fault, chance.randrange(1 << 30))


def test_flipped_bits_are_made_good_or_named() -> None:
    chance, found = random.Random(3), Counter[str]()
    for path, data in storage.files_of(made()).items():
        for at in chance.sample(range(len(data)), min(len(data), 12)):
            changed = storage.flipped(data, at, chance.randrange(8))
            found[storage.damage_case(made(), path, changed, at, chance.random() < 0.02)] += 1
    assert found["healed"] > 20
    assert found["refused"] > 100


def test_files_that_are_cut_or_gone_are_made_good_or_named() -> None:
    chance, found = random.Random(4), Counter[str]()
    for path, data in storage.files_of(made()).items():
        for at in chance.sample(range(0, len(data), 64), min(len(data) // 64 + 1, 5)):
            found[storage.damage_case(made(), path, data[:at], at, False)] += 1
        found[storage.damage_case(made(), path, b"", 0, True)] += 1
    assert found["healed"] > 5
    assert found["refused"] > 50
