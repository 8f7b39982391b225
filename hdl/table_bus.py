"""Table bus: by which the control unit writes the tables of all others."""

from __future__ import annotations

from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from seustream.hdl.control_words import ADDRESS_BITS


def write_signature() -> wiring.Signature:
    """A word for a table, checked and addressed; the unit it is for takes it."""
    return wiring.Signature(
        {"valid": Out(1), "target": Out(4), "unit": Out(2), "address": Out(ADDRESS_BITS),
         "data": Out(64)}
    )  # fmt: skip
