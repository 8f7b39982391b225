"""Tests an ECPIX-5 as its PHY sees it, from reset on: four bits at each clock edge. Between them
and a session with a host is everything that a bitstream has, except that the processor answers at
once."""

from __future__ import annotations

import pytest

from seustream.hdl.boards.protocol import LinkCounter
from tests.cosim.boards.cable import Cable, mirror_at_pins
from tests.hdl.boards.test_mac_and_packets_and_network import (
    counted,
    mirrored,
    opened_processor,
)


@pytest.mark.parametrize(("share", "count"), [(0.0, 4_000), (0.001, 20_000)])
def test_four_million_tuples_a_second_through_the_pins(share: float, count: int) -> None:
    seed = 2
    print(f"seed {seed}")
    cable = Cable(mirror_at_pins(), share, seed)
    processor, session = opened_processor(cable)
    # Twice a million cycles of an oscillator that is as fast here as the processor.
    assert 0.016 < cable.now() < 0.03, "a PHY is held in reset, and has time to begin"
    before = cable.now()
    mirrored(processor, count, seed)
    reached = count / (cable.now() - before)
    print(f"{reached / 1e6:.2f} M tuples/s, {session.resent} times again, {cable.happened}")
    assert reached > 4e6
    assert counted(processor)[LinkCounter.BROKEN] <= cable.happened["damaged"]
    assert bool(session.resent) == any(cable.happened.values()) == bool(share)
    cable.close()
