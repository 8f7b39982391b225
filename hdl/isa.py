"""Instructions of the WJASIP: 20 bits, most significant first.

| instruction       | encoding                         | effect                                        |
|-------------------|----------------------------------|-----------------------------------------------|
| AND a,b,r         | `10` a6 b6 r6                    | r <- a and b                                  |
| OR a,b,r          | `11` a6 b6 r6                    | r <- a or b                                   |
| JMPCT tag,addr    | `01` tag8 addr10                 | probe's route tag differs from tag: go to addr|
| CMP w,p,cc,r      | `0011` w2 p4 cc3 r6 `0`          | r <- probe attribute cc window attribute      |
| JOIN r,tag        | `0010` r6 tag8 `00`              | register r is 1: emit probe x window as `tag` |
| JMPLI             | `0001` and 16 zeros              | registers 0-15 all 0: go to last instruction  |
| JMP addr          | `00001` addr10 and 5 zeros       | go to addr                                    |
| NOP               | 20 zeros                         | nothing; as last instruction it ends the pair |

Each instruction is a dataclass whose `LAYOUT` lists its fields once; encoding,
decoding and the text form are all derived from that list.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, fields
from typing import ClassVar

WORD_BITS = 20
REGISTERS = 64
FACTOR_REGISTERS = range(0, 16)
SCRATCH_REGISTERS = range(16, 32)
WINDOW_SELECTION_REGISTERS = range(32, 48)
PROBE_SELECTION_REGISTERS = range(48, 63)
TRUE_REGISTER = 63


class Condition(enum.IntEnum):
    """Comparison codes; the operands are *probe cc window*, unsigned."""

    LT = 0
    EQ = 1
    GT = 2
    GE = 3
    LE = 4
    NE = 5
    TRUE = 6
    FALSE = 7

    @property
    def symbol(self) -> str:
        return _SYMBOLS[self]

    def mirrored(self) -> Condition:
        """The condition with its operands exchanged: `a cc b` is `b mirrored(cc) a`."""
        return _MIRRORED.get(self, self)

    def negated(self) -> Condition:
        """The condition that holds exactly where this one does not."""
        return _NEGATED[self]


_SYMBOLS = {
    Condition.LT: "<",
    Condition.EQ: "=",
    Condition.GT: ">",
    Condition.GE: ">=",
    Condition.LE: "<=",
    Condition.NE: "<>",
    Condition.TRUE: "true",
    Condition.FALSE: "false",
}
_MIRRORED = {
    Condition.LT: Condition.GT,
    Condition.GT: Condition.LT,
    Condition.GE: Condition.LE,
    Condition.LE: Condition.GE,
}
_NEGATED = {
    Condition.LT: Condition.GE,
    Condition.GE: Condition.LT,
    Condition.GT: Condition.LE,
    Condition.LE: Condition.GT,
    Condition.EQ: Condition.NE,
    Condition.NE: Condition.EQ,
    Condition.TRUE: Condition.FALSE,
    Condition.FALSE: Condition.TRUE,
}


class UndefinedWord(ValueError):
    """A word that encodes no instruction."""

    def __init__(self, word: int) -> None:
        super().__init__(f"word {word:05X} encodes no instruction")
        self.word = word


@dataclass(frozen=True, slots=True)
class Instruction:
    """Base class of all instructions. `LAYOUT` starts at the most significant bit:
    a string is a run of fixed bits, a pair is (member, width)."""

    MNEMONIC: ClassVar[str]
    LAYOUT: ClassVar[tuple[str | tuple[str, int], ...]]

    def __post_init__(self) -> None:
        for part in self.LAYOUT:
            if isinstance(part, tuple):
                name, width = part
                value = getattr(self, name)
                if not 0 <= value < 1 << width:
                    raise ValueError(f"{self.MNEMONIC}: {name} = {value} does not fit {width} bits")

    def encode(self) -> int:
        word = 0
        for part in self.LAYOUT:
            if isinstance(part, tuple):
                name, width = part
                word = word << width | int(getattr(self, name))
            else:
                word = word << len(part) | int(part, 2)
        return word

    @classmethod
    def match(cls, word: int) -> Instruction | None:
        """Decodes `word` as this instruction; None if a fixed bit differs."""
        position = WORD_BITS
        values: dict[str, int] = {}
        for part in cls.LAYOUT:
            width = part[1] if isinstance(part, tuple) else len(part)
            position -= width
            bits = word >> position & ((1 << width) - 1)
            if isinstance(part, tuple):
                values[part[0]] = bits
            elif bits != int(part, 2):
                return None
        return cls(**values)

    def __str__(self) -> str:
        operands = ",".join(self._operand(f.name) for f in fields(self))
        return f"{self.MNEMONIC} {operands}".rstrip()

    def _operand(self, name: str) -> str:
        return str(getattr(self, name))


@dataclass(frozen=True, slots=True)
class AndRegisters(Instruction):
    MNEMONIC = "AND"
    LAYOUT = ("10", ("a", 6), ("b", 6), ("r", 6))
    a: int
    b: int
    r: int


@dataclass(frozen=True, slots=True)
class OrRegisters(Instruction):
    MNEMONIC = "OR"
    LAYOUT = ("11", ("a", 6), ("b", 6), ("r", 6))
    a: int
    b: int
    r: int


@dataclass(frozen=True, slots=True)
class Jmpct(Instruction):
    MNEMONIC = "JMPCT"
    LAYOUT = ("01", ("tag", 8), ("address", 10))
    tag: int
    address: int


@dataclass(frozen=True, slots=True)
class Cmp(Instruction):
    MNEMONIC = "CMP"
    LAYOUT = (
        "0011",
        ("window_attribute", 2),
        ("probe_stream", 2),
        ("probe_attribute", 2),
        ("condition", 3),
        ("r", 6),
        "0",
    )
    window_attribute: int
    probe_stream: int
    probe_attribute: int
    condition: int
    r: int


@dataclass(frozen=True, slots=True)
class Emit(Instruction):
    MNEMONIC = "JOIN"
    LAYOUT = ("0010", ("r", 6), ("tag", 8), "00")
    r: int
    tag: int


@dataclass(frozen=True, slots=True)
class Jmpli(Instruction):
    MNEMONIC = "JMPLI"
    LAYOUT = ("0001", "0" * 16)


@dataclass(frozen=True, slots=True)
class Jmp(Instruction):
    MNEMONIC = "JMP"
    LAYOUT = ("00001", ("address", 10), "00000")
    address: int


@dataclass(frozen=True, slots=True)
class Nop(Instruction):
    MNEMONIC = "NOP"
    LAYOUT = ("0" * WORD_BITS,)


INSTRUCTIONS: tuple[type[Instruction], ...] = (
    AndRegisters,
    OrRegisters,
    Jmpct,
    Cmp,
    Emit,
    Jmpli,
    Jmp,
    Nop,
)


def decode(word: int) -> Instruction:
    """Returns the instruction that a word encodes; raises `UndefinedWord` if there is none."""
    if 0 <= word < 1 << WORD_BITS:
        for kind in INSTRUCTIONS:
            instruction = kind.match(word)
            if instruction is not None:
                return instruction
    raise UndefinedWord(word)
