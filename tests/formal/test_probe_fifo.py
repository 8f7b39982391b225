"""Probe FIFO: in order a level, none lost or repeated by a rewind, no overflow (P2)."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.hdl import Array, Const, Module, Signal

from seustream.hdl.probe_fifo import IN_FLIGHT, ProbeFifo
from tests.formal.harness import (
    Case,
    Specification,
    altered,
    anything,
    before,
    build,
    check,
    constant,
    drive,
    inside,
    proof,
    small,
)

LATE = 5
"""Cycles from the router's look at `room` to the push (see `test_router`): three to the grant, one
on the way out of the router, one into the area."""


class ProbeFifoIsAFifo(Specification):
    """One probe is followed through the queue of one level, which is any level.

    The router pushes `LATE` cycles after it saw room; a loader takes what is available, and not in
    two cycles one after the other, but for what is rewound as it takes it; what is committed was
    taken, and is not rewound in the same cycle.
    """

    def __init__(self, make: type = ProbeFifo) -> None:
        super().__init__()
        self.make = make

    def describe(self, m: Module) -> None:
        config = small(streams=3, depth=2, probe_fifo_depth=1)
        fifo = self.make(config)
        made = build(m, "fifo", fifo)
        drive(m, fifo)
        level = constant(m, 1, "level")
        mine = constant(m, len(fifo.pushed.as_value()), "mine")
        this = anything(m, 1, "this")

        pushes, takes, commits = (
            wanted & (at == level)
            for wanted, at in (
                (fifo.push, fifo.push_level),
                (fifo.take, fifo.take_level),
                (fifo.commit, fifo.commit_level),
            )
        )
        end, taken, kept = (
            Array(inside(made, f"{name}_{n}") for n in range(2))[level]
            for name in ("end", "taken", "kept")
        )
        # The queue of the level, by the rules: how many are in it, and how many of them taken.
        size, read = Signal(5), Signal(5)
        seen = [fifo.room.bit_select(level, 1)]
        for _ in range(LATE):
            seen.append(before(m, seen[-1]))
        self.assume(m, ~pushes | seen[-1])
        self.assume(m, ~fifo.take | fifo.available.bit_select(fifo.take_level, 1))
        self.assume(m, ~(fifo.take & before(m, fifo.take & ~fifo.rewind)))
        self.assume(m, ~(fifo.rewind & fifo.commit))
        self.assume(m, ~commits | (read != 0))
        m.d.sync += size.eq(size + pushes - commits)
        with m.If(fifo.rewind):
            m.d.sync += read.eq(0)
        with m.Else():
            m.d.sync += read.eq(read + takes - commits)

        self.claim(m, size <= fifo.depth)
        self.claim(m, fifo.available.bit_select(level, 1) == before(m, read != size))
        self.claim(m, fifo.waiting.bit_select(level, 1) == before(m, size != 0))

        # Followed from its push on; `place` is how many are before it.
        followed, place = Signal(), Signal(5)
        begins = pushes & this & ~followed
        with m.If(begins):
            self.assume(m, fifo.pushed.as_value() == mine)
            m.d.sync += [followed.eq(1), place.eq(size - commits)]
        with m.Elif(followed & commits):
            m.d.sync += place.eq(place - 1)
            with m.If(place == 0):
                m.d.sync += followed.eq(0)
        its_turn = followed & takes & (read == place)
        with m.If(before(m, its_turn)):
            self.claim(m, fifo.reference.as_value() == mine)

        # Invariants, which make the claims provable by induction.
        stored = made.submodules.probes.read_port(domain="comb")
        bits = len(end) - 1
        m.d.comb += stored.addr.eq((kept + place)[:bits] + (level << bits))
        self.claim(m, ~followed | ((place < size) & (stored.data.as_value() == mine)))
        self.claim(m, (end - kept)[: bits + 1] == size)
        self.claim(m, (taken - kept)[: bits + 1] == read)
        self.claim(m, read <= size)
        # Room tells what was so a cycle ago, and each push after saw it.
        late = before(m, pushes)
        self.claim(m, ~seen[0] | (size <= config.probe_fifo_depth - 1 + late))
        for age in range(LATE):
            coming = sum(seen[age:LATE], Const(0))
            self.claim(m, size + coming <= fifo.depth)

        rewound = Signal()
        with m.If(fifo.rewind & (read != 0)):
            m.d.sync += rewound.eq(1)
        self.reach(m, its_turn & rewound & (place == 1))
        most = config.probe_fifo_depth + IN_FLIGHT - 1
        self.reach(m, size == most)
        self.reach(m, (size == most - 1) & pushes & commits)


def faulty(old: str, new: str) -> object:
    return lambda: ProbeFifoIsAFifo(altered(ProbeFifo, (old, new)))


@pytest.mark.parametrize(
    "case",
    [
        proof("fifo", ProbeFifoIsAFifo, "prove", 6, campaign=False),
        proof("fifo", ProbeFifoIsAFifo, "meet", 14),
        proof(
            "room-for-one-more",
            faulty("< self.config.probe", "<= 1 + self.config.probe"),
            "search",
            12,
            "FAIL",
        ),
        proof(
            "rewind-loses",
            faulty("taken[level].eq(kept[level])", "taken[level].eq(ends[level])"),
            "search",
            12,
            "FAIL",
            campaign=False,
        ),
        proof(
            "levels-share",
            faulty(
                "ends[self.push_level][:bits], self.push_level", "ends[self.push_level][:bits], 0"
            ),
            "search",
            12,
            "FAIL",
        ),
    ],
)
def test_probe_fifo(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
