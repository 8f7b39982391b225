"""Signatures that components share: what travels between them, and when it is valid.

Each is written from the side of the sender, which the component's docstring names. A component has such a port
as `Out` if it is that sender, otherwise as `In`.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from seustream.hdl.control_words import ADDRESS_BITS, DATA_BITS, TARGET_BITS, UNIT_BITS

WORD = ("valid", "target", "unit", "address", "data")
"""Members of the table bus that are valid for one cycle."""


class TableBus(wiring.Signature):
    """From the control unit to the tables of all other units.

    valid      out: a word for a table, whose checks it has passed; for one cycle. The unit addressed takes it
    target, unit, address, data   out: the word, as in its command (`COMMAND`); valid with `valid`
    half       out: the half of all tables that is in use, held; words go to the other one. It changes only while
               nothing is in flight
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "valid": Out(1),
                "target": Out(TARGET_BITS),
                "unit": Out(UNIT_BITS),
                "address": Out(ADDRESS_BITS),
                "data": Out(DATA_BITS),
                "half": Out(1),
            }
        )


def registered(m: Module, source: Any, sink: Any, *names: str) -> None:
    """Connects a sender's port to a receiver's, with a register behind what the sender drives: behind all of it,
    or behind the members named. What the receiver drives is connected directly."""
    ends = zip(source.signature.flatten(source), sink.signature.flatten(sink), strict=True)
    for (path, member, at_source), (_, _, at_sink) in ends:
        if member.flow is not Out:
            m.d.comb += at_source.eq(at_sink)
        elif not names or path[0] in names:
            m.d.sync += at_sink.eq(at_source)
        else:
            m.d.comb += at_sink.eq(at_source)
