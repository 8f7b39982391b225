"""Tests the hash of the equality indexes: even for consecutive keys, seeded, and as hardware
computes it."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter

import numpy as np
import pytest

from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.device import Tables
from seustream.hdl.hashing import bucket_of, seed_bits, seed_of
from tests.cosim.queries import ROWS, On, Query, R, S, build

CONFIG = CONFIGURATIONS["default3"]


def tables_of(n: int) -> Tables:
    return build(
        [
            Query({R: ROWS(n), S: ROWS(n)}, ((On(R, attribute, "=", S, 0),),))
            for attribute in range(n)
        ]
    )


@pytest.mark.parametrize("name", ["default3", "thesis", "tiny"])
def test_keys_that_follow_each_other_share_no_bucket(name: str) -> None:
    config = CONFIGURATIONS[name]
    for n in range(1, 5):
        seed = seed_of(tables_of(n), config)
        assert seed < 1 << seed_bits(config)
        keys = np.arange(min(config.depth, 1 << config.attribute_width))
        found = bucket_of(keys, seed, config.bucket_bits)
        assert len({*found.tolist()}) == len(keys)
        assert found.max() < 1 << config.bucket_bits


def test_other_programs_have_other_seeds_and_the_same_the_same() -> None:
    seeds = [seed_of(tables_of(n), CONFIG) for n in range(1, 5)]
    assert len({*seeds}) == 4
    assert seeds == [seed_of(tables_of(n), CONFIG) for n in range(1, 5)]


@pytest.mark.parametrize("seed", range(4))
def test_a_bucket_is_the_parity_of_value_and_shifted_seed(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    its, bits = chance.getrandbits(42), 11
    keys = [chance.getrandbits(32) for _ in range(200)]
    for key, found in zip(keys, bucket_of(np.array(keys), its, bits).tolist(), strict=True):
        assert found == sum((key & its >> j).bit_count() % 2 << j for j in range(bits))


@pytest.mark.parametrize("seed", range(4))
def test_keys_that_share_a_bucket_of_one_seed_are_spread_by_others(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    its, other = chance.getrandbits(42), chance.getrandbits(42)
    keys = np.array([chance.getrandbits(32) for _ in range(400_000)])
    shared = keys[bucket_of(keys, its, 11) == 5]
    spread = Counter(bucket_of(shared, other, 11).tolist())
    assert len(shared) > 100
    assert max(spread.values()) < 12


def test_bits_of_a_configuration() -> None:
    deep = dataclasses.replace(CONFIG, depth=8192)
    assert (deep.bucket_bits, seed_bits(deep)) == (14, 45)
