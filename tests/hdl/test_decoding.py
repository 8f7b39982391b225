"""Tests patterns and fields against the words that `isa` encodes."""

from __future__ import annotations

import dataclasses
import random

import pytest

from seustream.hdl import isa
from seustream.hdl.decoding import FIELDS, PATTERNS


def _matches(pattern: str, word: int) -> bool:
    bits = f"{word:0{isa.WORD_BITS}b}"
    return all(want in ("-", bit) for want, bit in zip(pattern, bits, strict=True))


@pytest.mark.parametrize("kind", isa.INSTRUCTIONS)
def test_a_word_matches_its_kind_alone_and_has_its_members(kind: type[isa.Instruction]) -> None:
    chance = random.Random(1)
    widths = {part[0]: part[1] for part in kind.LAYOUT if not isinstance(part, str)}
    for _ in range(200):
        word = kind(**{name: chance.getrandbits(bits) for name, bits in widths.items()}).encode()
        assert [other for other in isa.INSTRUCTIONS if _matches(PATTERNS[other], word)] == [kind]
        members = FIELDS[kind].from_bits(word)
        assert {name: members[name] for name in widths} == dataclasses.asdict(isa.decode(word))


def test_a_word_matches_what_it_decodes_to() -> None:
    chance = random.Random(2)
    undefined = 0
    for _ in range(5_000):
        word = chance.getrandbits(isa.WORD_BITS)
        found = [kind for kind in isa.INSTRUCTIONS if _matches(PATTERNS[kind], word)]
        try:
            assert [type(isa.decode(word))] == found
        except ValueError:
            undefined += 1
            assert found == []
    assert undefined
