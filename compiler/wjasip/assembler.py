"""Assembler and disassembler: programs as people write and read them.

    CMP 1,R2,=,3     window attribute 1 against attribute 2 of stream R, into register 3
    JMPCT 9,22       ; a comment

A probe attribute is the stream's name and one digit, the attribute's number; a point separates them
if the name itself ends in a digit, as in `R#2.0`.
"""

from __future__ import annotations

from collections.abc import Sequence

from seustream.hdl import isa
from seustream.hdl.isa import Condition, Instruction

_BY_MNEMONIC = {kind.MNEMONIC: kind for kind in isa.INSTRUCTIONS}
_CONDITIONS = {condition.symbol: condition for condition in Condition} | {"!=": Condition.NE}


class AssemblyError(ValueError):
    """A line that is not an instruction; `line` counts from 1."""

    def __init__(self, line: int, text: str, reason: str) -> None:
        self.line = line
        super().__init__(f"line {line}: {text.strip()!r}: {reason}")


def show(instruction: Instruction, streams: Sequence[str]) -> str:
    """Returns one instruction as text, with streams by name."""
    if isinstance(instruction, isa.Cmp):
        names = [*streams, *(f"stream{n}_" for n in range(len(streams), 4))]
        name = names[instruction.probe_stream]
        probe = f"{name}{'.' if name[-1].isdigit() else ''}{instruction.probe_attribute}"
        symbol = Condition(instruction.condition).symbol
        return f"CMP {instruction.window_attribute},{probe},{symbol},{instruction.r}"
    return str(instruction)


def disassemble(words: Sequence[int], streams: Sequence[str]) -> str:
    """Returns a program's text, one instruction per line; `assemble` reads it back."""
    return "\n".join(show(isa.decode(word), streams) for word in words)


def assemble(text: str, streams: Sequence[str]) -> tuple[int, ...]:
    """Returns the words of a program's text; raises `AssemblyError`."""
    words = []
    for number, line in enumerate(text.splitlines(), start=1):
        code = line.split(";")[0].strip()
        if code:
            try:
                words.append(_instruction(code, streams).encode())
            except ValueError as error:
                raise AssemblyError(number, line, str(error)) from None
    return tuple(words)


def _instruction(code: str, streams: Sequence[str]) -> Instruction:
    mnemonic, _, rest = code.partition(" ")
    kind = _BY_MNEMONIC.get(mnemonic.upper())
    if kind is None:
        raise ValueError(f"unknown instruction; known: {', '.join(sorted(_BY_MNEMONIC))}")
    operands = [part.strip() for part in rest.split(",")] if rest.strip() else []
    if kind is isa.Cmp:
        return _compare(operands, streams)
    members = [part for part in kind.LAYOUT if isinstance(part, tuple)]
    if len(operands) != len(members):
        raise ValueError(f"{mnemonic} takes {len(members)} operands, not {len(operands)}")
    return kind(*(_number(operand) for operand in operands))


def _compare(operands: list[str], streams: Sequence[str]) -> Instruction:
    if len(operands) != 4:
        raise ValueError(f"CMP takes 4 operands, not {len(operands)}")
    window, probe, symbol, register = operands
    stream, attribute = probe[:-1].removesuffix("."), probe[-1:]
    if not (attribute.isascii() and attribute.isdecimal()):
        raise ValueError(
            f"{probe!r} has no number of an attribute behind the stream, as {streams[0]}0 has"
        )
    if stream not in streams:
        raise ValueError(f"unknown stream {stream!r}; known: {', '.join(streams)}")
    if symbol not in _CONDITIONS:
        raise ValueError(f"unknown condition {symbol!r}; known: {' '.join(_CONDITIONS)}")
    return isa.Cmp(
        _number(window),
        list(streams).index(stream),
        _number(attribute),
        _CONDITIONS[symbol],
        _number(register),
    )


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f"{text!r} is no number")
    return int(text)
