"""Assembles and disassembles programs: the text reads back."""

from __future__ import annotations

import random

import pytest

from seustream.compiler.wjasip.assembler import AssemblyError, assemble, disassemble, show
from seustream.hdl import isa
from seustream.hdl.isa import Condition
from tests.compiler.plan.eight import compiled_eight

STREAMS = ("R", "S", "T", "U")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        # worked out by hand from the formats
        ("AND 0,1,16", 0b10_000000_000001_010000),
        ("OR 63,62,31", 0b11_111111_111110_011111),
        ("JMPCT 255,1023", 0b01_11111111_1111111111),
        ("CMP 3,U2,>=,15", 0b0011_11_1110_011_001111_0),
        ("CMP 0,R0,<,0", 0b0011_00_0000_000_000000_0),
        ("CMP 1,S1,<>,2", 0b0011_01_0101_101_000010_0),
        ("CMP 0,R0,true,4", 0x30308),
        ("CMP 0,T3,false,0", 0b0011_00_1011_111_000000_0),
        ("JOIN 17,36", 0b0010_010001_00100100_00),
        ("JMPLI", 0x10000),
        ("JMP 5", 0b00001_0000000101_00000),
        ("NOP", 0),
    ],
)
def test_instruction(text: str, word: int) -> None:
    assert assemble(text, STREAMS) == (word,)
    assert disassemble([word], STREAMS) == text


def test_space_comments_and_case() -> None:
    text = """
      ; a program
        cmp  0 , S0 , != , 1   ; not equal
    Jmpli
    \tjoin 1,9;done

    NOP"""
    assert disassemble(assemble(text, STREAMS), STREAMS) == "CMP 0,S0,<>,1\nJMPLI\nJOIN 1,9\nNOP"


def test_an_empty_text_is_an_empty_program() -> None:
    assert assemble("", STREAMS) == ()
    assert assemble("; nothing\n\n", STREAMS) == ()
    assert disassemble((), STREAMS) == ""


def random_instruction(chance: random.Random) -> isa.Instruction:
    kind = chance.choice(isa.INSTRUCTIONS)
    fields = [part for part in kind.LAYOUT if isinstance(part, tuple)]
    return kind(*(chance.randrange(1 << width) for _, width in fields))


def test_every_program_reads_back() -> None:
    chance = random.Random(41)
    for _ in range(100):
        words = tuple(random_instruction(chance).encode() for _ in range(30))
        assert assemble(disassemble(words, STREAMS), STREAMS) == words


@pytest.mark.parametrize("plan", ["cost", "thesis"])
def test_compiled_programs_read_back(plan: str) -> None:
    for area in compiled_eight(plan).tables.areas:
        text = disassemble(area.program, ("R", "S", "T"))
        assert assemble(text, ("R", "S", "T")) == area.program


@pytest.mark.parametrize("streams", [("R", "R#2"), ("A1", "A"), ("Ünit", "a b")])
def test_streams_by_any_name(streams: tuple[str, ...]) -> None:
    words = [isa.Cmp(0, s, a, Condition.EQ, 0).encode() for s in range(2) for a in range(4)]
    assert assemble(disassemble(words, streams), streams) == tuple(words)


def test_a_stream_that_is_not_there_is_shown_by_number() -> None:
    assert show(isa.Cmp(0, 3, 1, Condition.EQ, 0), ("R", "S")) == "CMP 0,stream3_1,=,0"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("MOV 1,2", "unknown instruction; known: AND, CMP, JMP, JMPCT, JMPLI, JOIN, NOP, OR"),
        ("ADD", "unknown instruction"),
        ("AND 1,2", "AND takes 3 operands, not 2"),
        ("AND", "AND takes 3 operands, not 0"),
        ("NOP 1", "NOP takes 0 operands, not 1"),
        ("JMPLI 5", "JMPLI takes 0 operands, not 1"),
        ("JOIN 1,2,3", "JOIN takes 2 operands, not 3"),
        ("AND 1,2,x", "'x' is no number"),
        ("AND 1,,2", "'' is no number"),
        ("AND 1,2,-3", "'-3' is no number"),
        ("AND 1,2,0x3", "'0x3' is no number"),
        ("AND 64,0,16", "AND: a = 64 does not fit 6 bits"),
        ("JOIN 1,256", "JOIN: tag = 256 does not fit 8 bits"),
        ("JMP 1024", "JMP: address = 1024 does not fit 10 bits"),
        ("JMPCT 1,1024", "JMPCT: address = 1024 does not fit 10 bits"),
        ("CMP 0,R0,=", "CMP takes 4 operands, not 3"),
        ("CMP 0,Q0,=,1", "unknown stream 'Q'; known: R, S, T, U"),
        ("CMP 0,0,=,1", "unknown stream ''"),
        ("CMP 0,,=,1", "'' has no number of an attribute behind the stream, as R0 has"),
        ("CMP 0,R,=,1", "'R' has no number of an attribute"),
        ("CMP 0,RS,=,1", "'RS' has no number of an attribute"),
        ("CMP 0,R\u0663,=,1", "'R\u0663' has no number of an attribute"),
        ("OR \u0663,1,16", "'\u0663' is no number"),
        ("CMP 0,R0,==,1", "unknown condition '=='; known: < = > >= <= <> true false !="),
        ("CMP 4,R0,=,1", "CMP: window_attribute = 4 does not fit 2 bits"),
        ("CMP 0,R4,=,1", "CMP: probe_attribute = 4 does not fit 2 bits"),
        ("CMP 0,R0,=,64", "CMP: r = 64 does not fit 6 bits"),
        ("CMP x,R0,=,1", "'x' is no number"),
    ],
)
def test_refused(line: str, reason: str) -> None:
    with pytest.raises(AssemblyError) as caught:
        assemble(f"NOP\n; two\n  {line} ; here\nNOP", STREAMS)
    assert caught.value.line == 3
    assert str(caught.value).startswith(f"line 3: {line + ' ; here'!r}: {reason}")


def test_a_word_that_is_no_instruction_is_not_shown() -> None:
    with pytest.raises(isa.UndefinedWord, match="word 00001"):
        disassemble([0, 1], STREAMS)
