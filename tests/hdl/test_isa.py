"""Tests the instruction words against words worked out by hand: the listing of the worked
example."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from seustream.hdl import isa
from seustream.hdl.isa import (
    AndRegisters,
    Cmp,
    Condition,
    Emit,
    Instruction,
    Jmp,
    Jmpct,
    Jmpli,
    Nop,
    OrRegisters,
    UndefinedWord,
)

R, S, T = range(3)

LISTING: list[tuple[Instruction, int]] = [
    (Cmp(0, R, 0, Condition.EQ, 0), 0x30080),
    (Cmp(1, T, 0, Condition.EQ, 1), 0x36082),
    (Cmp(1, R, 1, Condition.GT, 2), 0x34504),
    (Cmp(1, R, 2, Condition.EQ, 3), 0x34886),
    (Cmp(0, R, 0, Condition.TRUE, 4), 0x30308),
    (Jmpli(), 0x10000),
    (AndRegisters(0, 1, 16), 0x80050),
    (AndRegisters(0, 3, 17), 0x800D1),
    (Jmpct(0, 13), 0x4000D),
    (Emit(0, 4), 0x20010),
    (Emit(2, 14), 0x20838),
    (Emit(3, 16), 0x20C40),
    (Emit(17, 18), 0x24448),
    (Jmpct(2, 20), 0x40814),
    (Emit(1, 7), 0x2041C),
    (Emit(1, 11), 0x2042C),
    (Emit(4, 21), 0x21054),
    (Emit(1, 27), 0x2046C),
    (Emit(4, 33), 0x21084),
    (Emit(1, 39), 0x2049C),
    (Jmpct(9, 22), 0x42416),
    (Emit(16, 10), 0x24028),
    (Jmpct(23, 24), 0x45C18),
    (Emit(0, 24), 0x20060),
    (Jmpct(29, 26), 0x4741A),
    (Emit(1, 30), 0x20478),
    (Jmpct(35, 28), 0x48C1C),
    (Emit(17, 36), 0x24490),
    (Jmpct(41, 30), 0x4A41E),
    (Emit(16, 42), 0x240A8),
    (Nop(), 0x00000),
]

# Not in the listing: every field at its largest, or one bit of each field.
BY_HAND: list[tuple[Instruction, int]] = [
    (AndRegisters(63, 63, 63), 0b10_111111_111111_111111),
    (OrRegisters(1, 2, 4), 0b11_000001_000010_000100),
    (Jmpct(255, 1023), 0b01_11111111_1111111111),
    (Jmp(1), 0b00001_0000000001_00000),
    (Jmp(1023), 0b00001_1111111111_00000),
    (Cmp(3, 3, 3, Condition.FALSE, 63), 0b0011_11_11_11_111_111111_0),
    (Cmp(2, 1, 2, Condition.NE, 15), 0b0011_10_01_10_101_001111_0),
    (Cmp(0, 0, 0, Condition.LT, 0), 0b0011_00_00_00_000_000000_0),
    (Cmp(0, 0, 0, Condition.GE, 0), 0b0011_00_00_00_011_000000_0),
    (Cmp(0, 0, 0, Condition.LE, 0), 0b0011_00_00_00_100_000000_0),
    (Emit(63, 255), 0b0010_111111_11111111_00),
]

UNDEFINED = {
    "NOP with a bit": 0b00000_000000000000001,
    "NOP with another": 0b00000_100000000000000,
    "JMP with a low bit": 0b00001_0000000001_00001,
    "JMPLI with a bit": 0b0001_0000000000000001,
    "JMPLI with another": 0b0001_1000000000000000,
    "CMP with its last bit": 0b0011_00_00_00_001_000000_1,
    "JOIN with its last bit": 0b0010_000000_00000100_01,
    "JOIN with the one before": 0b0010_000000_00000100_10,
    "a bit too many": 1 << 20,
    "a NOP of 40 bits": 1 << 39,
    "negative": -1,
}


@pytest.mark.parametrize(("instruction", "word"), LISTING + BY_HAND)
def test_words_worked_by_hand(instruction: Instruction, word: int) -> None:
    assert f"{instruction.encode():05X}" == f"{word:05X}"
    assert isa.decode(word) == instruction


@pytest.mark.parametrize("word", UNDEFINED.values(), ids=UNDEFINED)
def test_undefined_words_are_refused(word: int) -> None:
    with pytest.raises(UndefinedWord, match=f"{word:05X}") as caught:
        isa.decode(word)
    assert caught.value.word == word


def test_a_word_means_one_instruction_or_none() -> None:
    """Decodes all words that begin with 00, where the undefined ones are, and a sample of AND, OR
    and JMPCT, which use every bit."""
    seed = 20
    print(f"seed {seed}")
    chance = random.Random(seed)
    rest = [chance.randrange(1 << 18, 1 << 20) for _ in range(20_000)]
    defined = 0
    for word in [*range(1 << 18), *rest]:
        try:
            instruction = isa.decode(word)
        except UndefinedWord:
            assert word < 1 << 18
            continue
        assert instruction.encode() == word
        defined += word < 1 << 18
    comparisons, joins, jumps = 1 << 15, 1 << 14, 1 << 10
    assert defined == comparisons + joins + jumps + len([Jmpli, Nop])


@pytest.mark.parametrize("kind", isa.INSTRUCTIONS)
def test_a_layout_fills_the_word(kind: type[Instruction]) -> None:
    widths = [part[1] if isinstance(part, tuple) else len(part) for part in kind.LAYOUT]
    assert sum(widths) == isa.WORD_BITS


def test_the_operands_of_every_kind_are_told_apart() -> None:
    """Each operand changes bits of its own in the word."""
    for kind in isa.INSTRUCTIONS:
        members = [part for part in kind.LAYOUT if isinstance(part, tuple)]
        blank = {name: 0 for name, _ in members}
        base, seen = kind(**blank).encode(), 0
        for name, width in members:
            bits = kind(**{**blank, name: (1 << width) - 1}).encode() ^ base
            assert bits.bit_count() == width
            assert not bits & seen
            seen |= bits


@pytest.mark.parametrize(
    ("kind", "operands", "message"),
    [
        (AndRegisters, (64, 0, 16), "AND: a = 64 does not fit 6 bits"),
        (OrRegisters, (0, -1, 16), "OR: b = -1 does not fit 6 bits"),
        (Jmpct, (256, 0), "JMPCT: tag = 256 does not fit 8 bits"),
        (Jmp, (1024,), "JMP: address = 1024 does not fit 10 bits"),
        (Cmp, (4, 0, 0, 0, 0), "CMP: window_attribute = 4 does not fit 2 bits"),
        (Cmp, (0, 0, 0, 8, 0), "CMP: condition = 8 does not fit 3 bits"),
        (Emit, (0, 256), "JOIN: tag = 256 does not fit 8 bits"),
    ],
)
def test_operands_that_do_not_fit(
    kind: type[Instruction], operands: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        kind(*operands)


@pytest.mark.parametrize(
    ("instruction", "text"),
    [(AndRegisters(0, 1, 16), "AND 0,1,16"), (Jmpct(9, 22), "JMPCT 9,22"), (Nop(), "NOP")],
)
def test_text(instruction: Instruction, text: str) -> None:
    assert str(instruction) == text


def test_register_ranges_do_not_overlap() -> None:
    ranges = (
        isa.FACTOR_REGISTERS,
        isa.SCRATCH_REGISTERS,
        isa.WINDOW_SELECTION_REGISTERS,
        isa.PROBE_SELECTION_REGISTERS,
        range(isa.TRUE_REGISTER, isa.TRUE_REGISTER + 1),
    )
    assert [register for each in ranges for register in each] == list(range(isa.REGISTERS))


HOLDS: dict[Condition, Callable[[int, int], bool]] = {
    Condition.LT: lambda a, b: a < b,
    Condition.EQ: lambda a, b: a == b,
    Condition.GT: lambda a, b: a > b,
    Condition.GE: lambda a, b: a >= b,
    Condition.LE: lambda a, b: a <= b,
    Condition.NE: lambda a, b: a != b,
    Condition.TRUE: lambda a, b: True,
    Condition.FALSE: lambda a, b: False,
}


@pytest.mark.parametrize("condition", Condition)
def test_conditions_mirrored_and_negated(condition: Condition) -> None:
    assert len({each.symbol for each in Condition}) == len(Condition)
    for a in range(3):
        for b in range(3):
            holds = HOLDS[condition](a, b)
            assert HOLDS[condition.mirrored()](b, a) == holds
            assert HOLDS[condition.negated()](a, b) != holds
