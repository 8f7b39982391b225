"""What a trace of the RTL tells: by whom, with whom, in which cycle, and what was joined."""

from __future__ import annotations

from typing import Any

import numpy as np

from seustream.hdl import isa
from seustream.studio.told import MOST_PAIRS, Told

JOIN = isa.Emit(16, 9).encode()
NOP = 0
PLACES = [{0: 70, 1: 71}, {3: 90}, {0: 50}]
NAMES = ("order", "cycle", "tag", "area", "address", "slot", "word", "factors", "joins", "carries",
         "probe.0", "probe.1", "probe.2")  # fmt: skip


def columns(*rows: tuple[int, ...]) -> dict[str, Any]:
    return {name: np.array([row[n] for row in rows], np.uint64) for n, name in enumerate(NAMES)}


def test_a_pair_has_the_numbers_of_its_tuples() -> None:
    """Stream 1 sends 91; its probe meets both of area 0, and what joins goes on to area 2."""
    told = Told()
    told.trace(
        columns(
            (1, 2, 9, 2, 4, 0, NOP, 0b1, 0, 0b011, 1, 0, 0),
            (0, 1, 1, 0, 3, 0, JOIN, 0b10, 0, 0b010, 0, 0, 0),
            (1, 2, 1, 0, 3, 1, JOIN, 0b11, 1, 0b010, 0, 0, 0),
        ),
        (1, 91),
        PLACES,
        (1 << 32) - 3,
    )
    assert told.cycles == [(1 << 32) + 1, (1 << 32) + 2]  # the trace has 32 bits of it
    assert [p.parts for p in told.probes] == [[-1, 91, -1, -1], [71, 91, -1, -1]]
    assert [p.pairs for p in told.probes] == [[(70, 0b10), (71, 0b11)], [(50, 0b1)]]
    assert told.joins == [(1, 0, 9, (71, 91, -1, -1))]
    assert told.moments == [[(1, 0, 3, 0, 0, 70)], [(9, 2, 4, 1, 0, 50), (1, 0, 3, 0, 1, 71)]]


def test_a_probe_that_is_taken_up_again_joins_once() -> None:
    told = Told()
    again = (5, 9, 1, 0, 3, 1, JOIN, 1, 1, 0b010, 0, 0, 0)
    told.trace(columns(again, (7, 30, *again[2:])), (1, 91), PLACES, 0)
    assert len(told.joins) == len(told.probes) == 1
    assert len(told.moments) == 2


def test_the_newest_pairs_are_kept() -> None:
    told = Told()
    places = [{n: n for n in range(90)}, {}, {}]
    told.trace(
        columns(*((n, n, 1, 0, 3, n, NOP, n, 0, 2, 0, 0, 0) for n in range(90))), (1, 5), places, 0
    )
    ((first, _), *_, last) = told.probes[0].pairs
    assert (first, last) == (90 - MOST_PAIRS, (89, 89))
    assert told.kept_probes() == told.probes
    told.begin()
    assert not told.kept_probes()
