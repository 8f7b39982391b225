"""Decodes an instruction word in hardware: the definitions of `isa`, as patterns and layouts."""

from __future__ import annotations

from amaranth.hdl import unsigned
from amaranth.lib import data

from seustream.hdl import isa


def _opcode(kind: type[isa.Instruction]) -> str:
    """The pattern of an instruction word: its fixed bits, and dashes for its members."""
    return "".join(p if isinstance(p, str) else "-" * p[1] for p in kind.LAYOUT)


def _fields(kind: type[isa.Instruction]) -> data.FlexibleLayout:
    """Layout of an instruction's members in its word."""
    fields, position = {}, isa.WORD_BITS
    for part in kind.LAYOUT:
        width = len(part) if isinstance(part, str) else part[1]
        position -= width
        if not isinstance(part, str):
            fields[part[0]] = data.Field(unsigned(width), position)
    return data.FlexibleLayout(isa.WORD_BITS, fields)


PATTERNS = {kind: _opcode(kind) for kind in isa.INSTRUCTIONS}
"""Pattern that the words of each kind match."""

FIELDS = {kind: _fields(kind) for kind in isa.INSTRUCTIONS}
"""Layout of the words of each kind."""
