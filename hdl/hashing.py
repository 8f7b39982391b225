"""Hashing: maps an attribute value to a bucket of an equality index.

A Toeplitz hash: bit j of the bucket is the parity of the value ANDed with the seed shifted right by j. Over
random seeds, two different values share a bucket with a probability of one over the number of buckets,
whatever the values. Only someone who knows the seed can thus make streams whose keys all meet in one bucket.
"""

from __future__ import annotations

import hashlib
import random

import numpy as np
import numpy.typing as npt

from seustream.hdl.config import DeviceConfig
from seustream.hdl.device import Tables


def seed_bits(config: DeviceConfig) -> int:
    return config.attribute_width + config.bucket_bits - 1


def seed_of(tables: Tables, config: DeviceConfig) -> int:
    """The seed that is loaded with these tables. It depends only on the programs, so that every run with the
    same programs takes the same number of cycles. Consecutive values, the most common keys, never share a
    bucket while there are no more of them than buckets."""
    words = repr([area.program for area in tables.areas]).encode()
    chance = random.Random(hashlib.sha256(words).digest())
    bits = config.bucket_bits
    lowest = min(bits, config.attribute_width)
    while True:
        seed = chance.getrandbits(seed_bits(config))
        if _rank([seed >> bit & (1 << bits) - 1 for bit in range(lowest)]) == lowest:
            return seed


def bucket_of(values: npt.NDArray[np.int64], seed: int, bits: int) -> npt.NDArray[np.int64]:
    """Computes the buckets of many values."""
    found = np.zeros_like(values)
    for bit in range(bits):
        parity = values & np.int64(seed >> bit & 0xFFFFFFFF)
        for shift in (16, 8, 4, 2, 1):
            parity = parity ^ parity >> shift
        found |= (parity & 1) << bit
    return found


def _rank(rows: list[int]) -> int:
    """Counts the linearly independent rows, as vectors of bits."""
    independent: list[int] = []
    for row in rows:
        for other in independent:
            row = min(row, row ^ other)
        if row:
            independent.append(row)
    return len(independent)
