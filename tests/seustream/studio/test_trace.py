"""The trace of the RTL: which probe met which tuple in which cycle, and the joins."""

from __future__ import annotations

from typing import Any

import numpy as np

from seustream.hdl import isa
from seustream.studio.trace import MOST_PAIRS, StepTrace

JOIN = isa.Emit(16, 9).encode()
NOP = 0
PLACES = [{0: 70, 1: 71}, {3: 90}, {0: 50}]
NAMES = ("order", "cycle", "tag", "area", "address", "slot", "word", "factors", "joins", "carries",
         "probe.0", "probe.1", "probe.2")  # fmt: skip


def columns(*rows: tuple[int, ...]) -> dict[str, Any]:
    return {name: np.array([row[n] for row in rows], np.uint64) for n, name in enumerate(NAMES)}


def test_a_pair_has_the_numbers_of_its_tuples() -> None:
    """Stream 1 sends tuple 91; its probe meets both tuples of area 0, and the join goes on to area
    2."""
    step = StepTrace()
    step.take(
        columns(
            (1, 2, 9, 2, 4, 0, NOP, 0b1, 0, 0b011, 1, 0, 0),
            (0, 1, 1, 0, 3, 0, JOIN, 0b10, 0, 0b010, 0, 0, 0),
            (1, 2, 1, 0, 3, 1, JOIN, 0b11, 1, 0b010, 0, 0, 0),
        ),
        (1, 91),
        PLACES,
        (1 << 32) - 3,
    )
    assert step.cycles == [(1 << 32) + 1, (1 << 32) + 2]  # the trace has only 32 bits of a cycle
    assert [p.parts for p in step.probes] == [[-1, 91, -1, -1], [71, 91, -1, -1]]
    assert [p.pairs for p in step.probes] == [[(70, 0b10), (71, 0b11)], [(50, 0b1)]]
    assert step.joins == [(1, 0, 9, (71, 91, -1, -1))]
    assert step.moments == [[(1, 0, 3, 0, 0, 70)], [(9, 2, 4, 1, 0, 50), (1, 0, 3, 0, 1, 71)]]


def test_a_probe_that_is_taken_up_again_joins_once() -> None:
    step = StepTrace()
    again = (5, 9, 1, 0, 3, 1, JOIN, 1, 1, 0b010, 0, 0, 0)
    step.take(columns(again, (7, 30, *again[2:])), (1, 91), PLACES, 0)
    assert len(step.joins) == len(step.probes) == 1
    assert len(step.moments) == 2


def test_the_newest_pairs_are_kept() -> None:
    step = StepTrace()
    places = [{n: n for n in range(90)}, {}, {}]
    step.take(
        columns(*((n, n, 1, 0, 3, n, NOP, n, 0, 2, 0, 0, 0) for n in range(90))), (1, 5), places, 0
    )
    ((first, _), *_, last) = step.probes[0].pairs
    assert (first, last) == (90 - MOST_PAIRS, (89, 89))
    assert step.kept_probes() == step.probes
    step.begin()
    assert not step.kept_probes()
