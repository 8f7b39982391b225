"""Hashing: which bucket of an equality index an attribute value belongs to.

A Toeplitz hash: bit j of the bucket is the parity of the value and the seed shifted right by j. Of
seeds drawn at random, two different values share a bucket as seldom as buckets are many, whatever
the values; so streams whose keys meet in one bucket are made only by who knows the seed.
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
    """The seed that is loaded with these tables: drawn anew for other programs, the same for the
    same, so that every run takes the same cycles. Values that follow each other, the commonest
    keys, never share a bucket while they are no more than there are buckets."""
    words = repr([area.program for area in tables.areas]).encode()
    chance = random.Random(hashlib.sha256(words).digest())
    bits = config.bucket_bits
    lowest = min(bits, config.attribute_width)
    while True:
        seed = chance.getrandbits(seed_bits(config))
        if _rank([seed >> bit & (1 << bits) - 1 for bit in range(lowest)]) == lowest:
            return seed


def bucket_of(values: npt.NDArray[np.int64], seed: int, bits: int) -> npt.NDArray[np.int64]:
    """The buckets of many values."""
    found = np.zeros_like(values)
    for bit in range(bits):
        parity = values & np.int64(seed >> bit & 0xFFFFFFFF)
        for shift in (16, 8, 4, 2, 1):
            parity = parity ^ parity >> shift
        found |= (parity & 1) << bit
    return found


def _rank(rows: list[int]) -> int:
    """Counts how many of these are independent, as vectors of bits."""
    independent: list[int] = []
    for row in rows:
        for other in independent:
            row = min(row, row ^ other)
        if row:
            independent.append(row)
    return len(independent)
