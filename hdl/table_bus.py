"""Table bus: carries the words that the control unit writes to the tables of all other units."""

from __future__ import annotations

from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from seustream.hdl.control_words import ADDRESS_BITS


def write_signature() -> wiring.Signature:
    """Signature of the bus: a checked word for a table with its address, valid for one cycle; the unit addressed
    takes it."""
    return wiring.Signature(
        {"valid": Out(1), "target": Out(4), "unit": Out(2), "address": Out(ADDRESS_BITS),
         "data": Out(64)}
    )  # fmt: skip
