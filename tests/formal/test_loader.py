"""Proves the probe loader with its probe FIFO: the next probe is of the highest level, rewinds included.

That areas which wait for each other come to an end rests on this (`seustream.hdl.router`): what
an area takes up after it gave way must be what it gave way to.
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
    """Two levels. A pusher has seen room, and what is committed was taken; everything else is
    free."""

    def __init__(self, make: type = ProbeLoader) -> None:
        super().__init__()
        self.make = make

    def describe(self, m: Module) -> None:
        config = small(streams=3, depth=2, probe_fifo_depth=1)
        fifo, loader = ProbeFifo(config), self.make(config, 0)
        made = build(m, "fifo", fifo)
        build(m, "loader", loader)
        drive(m, fifo, "take", "take_level", "give", "rewind")
        drive(m, loader, "available", "reference", "brings", "raw")
        m.d.comb += [
            loader.available.eq(fifo.available),
            loader.reference.eq(fifo.reference),
            loader.brings.eq(fifo.brings),
            loader.raw.eq(fifo.raw),
            fifo.take.eq(loader.take),
            fifo.take_level.eq(loader.level),
            fifo.give.eq(loader.give),
            fifo.rewind.eq(loader.flush),
        ]
        end, taken, kept = (
            [inside(made, f"{name}_{n}") for n in range(2)] for name in ("end", "taken", "kept")
        )
        # Raw tuples are of level 0, joined ones are not.
        self.assume(m, ~fifo.raw_probes.push | fifo.joined_probes.room[0])
        self.assume(
            m,
            ~fifo.joined_probes.push
            | (fifo.joined_probes.room[1] & (fifo.joined_probes.level == 1)),
        )
        self.assume(m, ~(fifo.rewind & fifo.commit))
        at = fifo.commit_level
        self.assume(m, ~fifo.commit | (Array(taken)[at] != Array(kept)[at]))

        # There is no probe of the higher level, except one that came in the cycle before.
        there = end[1] != taken[1]
        lower = loader.take & (loader.level == 0)
        self.claim(m, ~lower | ~there | before(m, fifo.joined_probes.push))
        for n in range(2):
            self.claim(m, ~loader.take | (loader.level != n) | (end[n] != taken[n]))

        # Invariants, which make the claims provable by induction.
        for n, pushes in enumerate((fifo.raw_probes.push, fifo.joined_probes.push)):
            bits = len(end[n])
            size, read = (end[n] - kept[n])[:bits], (taken[n] - kept[n])[:bits]
            self.claim(m, read <= size)
            self.claim(
                m,
                ~fifo.joined_probes.room[n] | (size < config.probe_fifo_depth + before(m, pushes)),
            )
            self.claim(m, size <= config.probe_fifo_depth + 1)

        rewound = before(m, before(m, fifo.rewind))
        self.reach(m, lower & before(m, end[1] != kept[1]))
        self.reach(m, lower & before(m, fifo.joined_probes.push))
        self.reach(m, rewound & loader.take & (loader.level == 1) & (end[0] != taken[0]))
        self.reach(m, loader.take & before(m, loader.take) & ~loader.flush)


def hasty() -> Specification:
    return TheHighestLevelIsNext(
        altered(ProbeLoader, ("self.available.any() & ~self.flush", "self.available.any()"))
    )


@pytest.mark.parametrize(
    "case",
    [
        proof("highest-next", TheHighestLevelIsNext, "search", 20, campaign=False),
        proof("highest-next", TheHighestLevelIsNext, "prove", 4),
        proof("highest-next", TheHighestLevelIsNext, "meet", 20),
        proof("hasty", hasty, "search", 20, "FAIL", campaign=False),
    ],
)
def test_loader(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
