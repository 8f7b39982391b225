"""Probe loader with its probe FIFO: the next probe is of the highest level, rewinds included.

On this rests that areas which wait for each other come to an end (`seustream.hdl.router`): what an area takes
up after it gave way must be what it gave way to.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.hdl import Array, Module

from seustream.hdl.loader import ProbeLoader
from seustream.hdl.probe_fifo import ProbeFifo
from tests.formal.harness import (
    Case,
    Specification,
    altered,
    before,
    build,
    check,
    drive,
    inside,
    proof,
    small,
)


class TheHighestLevelIsNext(Specification):
    """Two levels. Whoever pushes sees room, whoever commits has taken; all else comes as it likes."""

    def __init__(self, make: type = ProbeLoader) -> None:
        super().__init__()
        self.make = make

    def describe(self, m: Module) -> None:
        config = small(streams=3, depth=2, probe_fifo_depth=1)
        fifo, loader = ProbeFifo(config), self.make(config, 0)
        made = build(m, "fifo", fifo)
        build(m, "loader", loader)
        drive(m, fifo, "take", "take_level", "rewind")
        drive(m, loader, "available", "reference")
        m.d.comb += [
            loader.available.eq(fifo.available),
            loader.reference.eq(fifo.reference),
            fifo.take.eq(loader.take),
            fifo.take_level.eq(loader.level),
            fifo.rewind.eq(loader.flush),
        ]
        end, taken, kept = (
            [inside(made, f"{name}_{n}") for n in range(2)] for name in ("end", "taken", "kept")
        )
        self.assume(m, ~fifo.push | fifo.room.bit_select(fifo.push_level, 1))
        self.assume(m, ~(fifo.rewind & fifo.commit))
        at = fifo.commit_level
        self.assume(m, ~fifo.commit | (Array(taken)[at] != Array(kept)[at]))

        # Of the higher level there is none but what has just come.
        came = fifo.push & (fifo.push_level == 1)
        lately = before(m, came) | before(m, before(m, came))
        there = end[1] != taken[1]
        lower = loader.take & (loader.level == 0)
        self.claim(m, ~lower | ~there | lately)
        self.claim(m, ~loader.take | fifo.available.bit_select(loader.level, 1) | fifo.rewind)

        rewound = before(m, fifo.rewind)
        for _ in range(2):
            rewound = before(m, rewound)
        self.reach(m, lower & before(m, before(m, end[1] != kept[1])))
        self.reach(m, rewound & loader.take & (loader.level == 1) & (end[0] != taken[0]))


def hasty() -> Specification:
    return TheHighestLevelIsNext(
        altered(ProbeLoader, ("& ~self.flush & ~flushed_before):", "& ~self.flush):"))
    )


@pytest.mark.parametrize(
    "case",
    [
        proof("highest-next", TheHighestLevelIsNext, "search", 20, campaign=False),
        proof("highest-next", TheHighestLevelIsNext, "meet", 20),
        proof("hasty", hasty, "search", 20, "FAIL", campaign=False),
    ],
)
def test_loader(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
