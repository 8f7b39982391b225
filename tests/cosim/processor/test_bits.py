"""Tests the conversion of columns to rows of 32-bit words and back, against Python's integers."""

from __future__ import annotations

import random

import numpy as np
import pytest

from seustream.cosim.processor.bits import flatten, pack, unpack, words_of
from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.layouts import Layouts


@pytest.mark.parametrize("seed", range(20))
def test_fields_are_where_their_layout_has_them(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    fields, at = {}, 0
    for number in range(chance.randint(1, 12)):
        bits = chance.choice([1, 2, 7, 8, 31, 32, 33, 63, 64])
        fields[f"f{number}"] = (at, bits)
        at += bits + chance.choice([0, 0, 3])
    rows = [
        {name: chance.getrandbits(bits) for name, (_, bits) in fields.items()} for _ in range(6)
    ]
    left_out = chance.choice(sorted(fields))
    columns = {
        name: np.array([row[name] for row in rows], np.uint64)
        for name in fields
        if name != left_out
    }
    packed = pack(fields, columns, len(rows))
    width = max(begin + bits for begin, bits in fields.values())
    assert packed.shape == (6, words_of(width))
    for row, words in zip(rows, packed, strict=True):
        whole = sum(row[name] << begin for name, (begin, _) in fields.items() if name != left_out)
        assert [int(word) for word in words] == [
            whole >> 32 * n & 0xFFFFFFFF for n in range(words_of(width))
        ]
    back = unpack(fields, packed)
    for name in fields:
        assert back[name].tolist() == [0 if name == left_out else row[name] for row in rows]


def test_a_column_never_reaches_beyond_its_bits() -> None:
    packed = pack({"a": (0, 4), "b": (4, 4)}, {"a": np.array([-1]).astype(np.uint64)}, 1)
    assert packed.tolist() == [[15]]


def test_words_of_a_payload() -> None:
    assert [words_of(bits) for bits in (1, 32, 33, 64, 65, 200)] == [1, 1, 2, 2, 3, 7]


def test_leaves_of_a_layout_do_not_overlap_and_fill_it() -> None:
    raw = Layouts(CONFIGURATIONS["tiny"]).raw
    fields = flatten(raw)
    taken = [bit for at, bits in fields.values() for bit in range(at, at + bits)]
    assert sorted(taken) == list(range(raw.size))
    assert {"stream", "timestamp", "attributes.0"} <= set(fields)
