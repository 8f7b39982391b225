"""Compares the thesis's table 4.3, the program of S's area, with ours.

The rows are as printed, mistakes included. Each erratum of the specification (section 7) is a test
of one difference. With the errata corrected, the table equals our program word for word, except for
one instruction that the thesis omits.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from seustream.hdl import isa
from seustream.hdl.isa import Instruction, decode
from tests.compiler.plan.eight import compiled_eight


class Row(NamedTuple):
    """An address, a mnemonic with operands, and the machine code."""

    address: int
    mnemonic: str
    code: str


PRINTED = [
    Row(0, "CMP 00,0000,001,000000", "0011,0001,0000,1000,0000"),
    Row(1, "CMP 01,1000,001,000001", "0011,0110,0000,1000,0010"),
    Row(2, "CMP 01,0001,010,000010", "0011,0100,0101,0000,0100"),
    Row(3, "CMP 01,0010,001,000011", "0011,0100,1000,1000,0110"),
    Row(4, "JMPLI", "0001,0000,0000,0000,0000"),
    Row(5, "OR 000000,000001,010000", "1100,0000,0000,0101,0000"),
    Row(6, "OR 000000,000011,010001", "1100,0000,0000,1101,0000"),
    Row(7, "JMPCT 00000000,0000001100", "0100,0000,0000,0000,1100"),
    Row(8, "JOIN 000000,00000100", "0010,0000,0000,0001,0000"),
    Row(9, "JOIN 000010,00001110", "0010,0000,1000,0011,1000"),
    Row(10, "JOIN 000011,00010000", "0010,0000,1100,0100,0000"),
    Row(11, "JOIN 010001,00010010", "0010,0100,0100,0100,1000"),
    Row(12, "JMPCT 00000010,0000010010", "0100,0000,1000,0001,0010"),
    Row(13, "JOIN 000001,00000111", "0010,0000,0100,0001,1100"),
    Row(14, "JOIN 000001,00001011", "0010,0000,0100,0010,1100"),
    Row(15, "JOIN 000100,00010101", "0010,0001,0000,0101,0100"),
    Row(16, "JOIN 000000,00011011", "0010,0000,0000,0110,1100"),
    Row(17, "JOIN 000100,00100001", "0010,0001,0000,1000,0100"),
    Row(18, "JOIN 000001,00100111", "0010,0000,0100,1001,1100"),
    Row(19, "JMPCT 00001001,0000001101", "0100,0010,0100,0000,1101"),
    Row(20, "JOIN 010000,00001010", "0010,0100,0000,0010,1000"),
    Row(21, "JMPCT 00010111,0000010111", "0100,0101,1100,0001,0111"),
    Row(22, "JOIN 000000,00011000", "0010,0000,0000,0110,0000"),
    Row(23, "JMPCT 00011101,0000011001", "0100,0111,0100,0001,1001"),
    Row(24, "JOIN 000000,00011110", "0010,0000,0000,0111,1000"),
    Row(25, "JMPCT 00001001,0000001101", "0100,0010,0100,0000,1101"),
    Row(26, "JOIN 010000,00010100", "0010,0100,0000,0101,0000"),
    Row(27, "JMPCT 00101001,0000011101", "0100,1010,0100,0001,1101"),
    Row(28, "JOIN 010000,00101010", "0010,0100,0000,1010,1000"),
    Row(29, "NOP", "0000,0000,0000,0000,0000"),
]

OURS = tuple(decode(word) for word in compiled_eight("thesis").tables.areas[1].program)
ADDED = 4
"""The address of the one instruction that the thesis lacks."""

# The corrected instructions, by the thesis's addresses.
RIGHT: dict[int, Instruction] = {
    5: isa.AndRegisters(0, 1, 16),
    6: isa.AndRegisters(0, 3, 17),
    12: isa.Jmpct(2, 19),
    16: isa.Emit(1, 27),
    19: isa.Jmpct(9, 21),
    24: isa.Emit(1, 30),
    25: isa.Jmpct(35, 27),
    26: isa.Emit(17, 36),
}


def coded(row: int) -> Instruction:
    return decode(int(PRINTED[row].code.replace(",", ""), 2))


def meant(row: int) -> Instruction:
    """Returns the instruction that a row's mnemonic names."""
    name, _, operands = PRINTED[row].mnemonic.partition(" ")
    kind = next(kind for kind in isa.INSTRUCTIONS if name == kind.MNEMONIC)
    bits = operands.replace(",", "")
    values, fields = [], [part for part in kind.LAYOUT if isinstance(part, tuple)]
    for _, width in fields:
        values.append(int(bits[:width], 2))
        bits = bits[width:]
    assert bits == ""
    return kind(*values)


def moved(instruction: Instruction) -> Instruction:
    """Returns the instruction as it is in a program with one more instruction from address 4 on."""
    if isinstance(instruction, isa.Jmpct):
        return isa.Jmpct(instruction.tag, instruction.address + 1)
    return instruction


def ours(row: int) -> Instruction:
    return OURS[row if row < ADDED else row + 1]


# --- errata -------------------------------------------------------------------


def test_row_0_codes_another_probe_attribute_than_it_names() -> None:
    assert meant(0) == ours(0) == isa.Cmp(0, 0, 0, isa.Condition.EQ, 0)
    assert coded(0) == isa.Cmp(0, 1, 0, isa.Condition.EQ, 0)
    assert PRINTED[0].code.replace(",", "")[6:10] == "0100"


def test_rows_5_and_6_are_printed_or_where_and_is_asked_for() -> None:
    for row in (5, 6):
        assert isinstance(meant(row), isa.OrRegisters)
        assert PRINTED[row].code.startswith("11")
        assert isinstance(ours(row), isa.AndRegisters)
        assert f"{ours(row).encode():020b}".startswith("10")


def test_row_6_codes_register_16_and_names_17() -> None:
    assert coded(6) == isa.OrRegisters(0, 3, 16)
    assert meant(6) == isa.OrRegisters(0, 3, 17)
    assert ours(6) == isa.AndRegisters(0, 3, 17)


def test_row_12_jumps_into_its_own_group() -> None:
    """It jumps to 18, which still belongs to tag 2; 19 is past it."""
    assert coded(12) == isa.Jmpct(2, 18)
    assert isinstance(coded(18), isa.Emit)
    assert ours(12) == isa.Jmpct(2, 20)
    assert isinstance(OURS[20], isa.Jmpct)


def test_row_16_takes_the_register_of_factor_1_for_factor_2() -> None:
    assert coded(16) == isa.Emit(0, 27)
    assert ours(16) == isa.Emit(1, 27)
    assert OURS[1] == isa.Cmp(1, 2, 0, isa.Condition.EQ, 1)  # factor 2, S.e = T.f


def test_row_19_jumps_backwards() -> None:
    assert coded(19) == isa.Jmpct(9, 13)
    assert ours(19) == isa.Jmpct(9, 22)


def test_row_24_takes_the_register_of_factor_1_for_factor_2() -> None:
    assert coded(24) == isa.Emit(0, 30)
    assert ours(24) == isa.Emit(1, 30)


def test_row_25_repeats_row_19() -> None:
    """It names tag 9 instead of 35, and jumps backwards as well."""
    assert coded(25) == coded(19) == isa.Jmpct(9, 13)
    assert ours(25) == isa.Jmpct(35, 28)


def test_row_26_takes_another_conjunction_and_another_tag() -> None:
    """It joins factors 1 and 2 to tag 20; tag 35 needs 1 and 4, to tag 36."""
    assert coded(26) == isa.Emit(16, 20)
    assert ours(26) == isa.Emit(17, 36)
    assert (ours(5), ours(6)) == (isa.AndRegisters(0, 1, 16), isa.AndRegisters(0, 3, 17))


def test_no_instruction_sets_register_4() -> None:
    """Rows 15 and 17 read it as true; our program sets it, so JMPLI does not skip them."""
    written = {getattr(coded(row), "r", None) for row in range(8)}
    assert 4 not in written
    assert coded(15) == ours(15) == isa.Emit(4, 21)
    assert coded(17) == ours(17) == isa.Emit(4, 33)
    assert OURS[ADDED] == isa.Cmp(0, 0, 0, isa.Condition.TRUE, 4)
    assert OURS[ADDED + 1] == isa.Jmpli()


# --- and nothing else ---------------------------------------------------------


def test_mnemonic_and_code_differ_in_rows_0_and_6_alone() -> None:
    assert [row.address for row in PRINTED if meant(row.address) != coded(row.address)] == [0, 6]


@pytest.mark.parametrize("row", range(len(PRINTED)))
def test_put_right_the_table_is_our_program(row: int) -> None:
    assert PRINTED[row].address == row
    assert moved(RIGHT.get(row, meant(row))) == ours(row)
    if row in RIGHT:
        assert meant(row) != RIGHT[row]


def test_one_instruction_is_new() -> None:
    assert len(OURS) == len(PRINTED) + 1
    assert ADDED not in (row if row < ADDED else row + 1 for row in range(len(PRINTED)))
