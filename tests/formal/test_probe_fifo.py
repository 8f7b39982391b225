"""Proves the probe FIFO: in order within a level, none lost or repeated by a rewind, no overflow
(P2)."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal

from seustream.hdl.probe_fifo import _RAW_IN_FLIGHT as RAW_IN_FLIGHT
from seustream.hdl.probe_fifo import ProbeFifo
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
RAW_LATE = 4
"""Cycles from the sequencer's look at `room` to the raw push: one to its register, one to the
permission to go on, one on the way out of the sequencer, one into the area."""
BROUGHT = 8
"""Places for what raw tuples bring: fewer than in a build, and, as there, fewer than a level has
for probes."""


class ProbeFifoIsAFifo(Specification):
    """One probe is followed through the queue of any one level: that of raw tuples, or one of the two
    of joined ones.

    The router pushes `LATE` cycles after it saw room, the sequencer `RAW_LATE`. A loader takes what
    is available, or what is rewound as it takes it; what it is given was taken before. What is committed
    was taken, and is not rewound in the same cycle.
    """

    def __init__(self, *faults: tuple[str, str]) -> None:
        super().__init__()
        self.make = altered(ProbeFifo, *faults, _BROUGHT=BROUGHT)

    def describe(self, m: Module) -> None:
        config = small(streams=4, depth=2, probe_fifo_depth=2, attribute_width=1)
        fifo = self.make(config)
        made = build(m, "fifo", fifo)
        drive(m, fifo)
        levels = fifo.layouts.levels
        level = constant(m, range(levels), "level")
        mine = constant(m, len(fifo.joined_probes.pushed.as_value()), "mine")
        my_raw = constant(m, fifo.raw_probes.pushed.shape(), "my_raw")
        this = anything(m, 1, "this")
        raw = level == 0
        self.assume(m, level < levels)
        # A joined tuple carries at least two streams.
        self.assume(
            m,
            ~fifo.joined_probes.push
            | ((fifo.joined_probes.level != 0) & (fifo.joined_probes.level < levels)),
        )

        takes, commits = (
            wanted & (at == level)
            for wanted, at in (
                (fifo.take, fifo.take_level),
                (fifo.commit, fifo.commit_level),
            )
        )
        pushes = Mux(
            raw, fifo.raw_probes.push, fifo.joined_probes.push & (fifo.joined_probes.level == level)
        )
        end, taken, kept = (
            Array(inside(made, f"{name}_{n}") for n in range(levels))[level]
            for name in ("end", "taken", "kept")
        )
        # The queue of the level, by the rules: how many probes are in it, how many of them are
        # taken, and how many of the oldest were taken once.
        size, read, known = Signal(5), Signal(5), Signal(5)
        seen = [fifo.joined_probes.room.bit_select(level, 1)]
        for _ in range(LATE):
            seen.append(before(m, seen[-1]))
        self.assume(m, ~pushes | Mux(raw, seen[RAW_LATE], seen[LATE]))
        there = Array(inside(made, f"end_{n}") != inside(made, f"taken_{n}") for n in range(levels))
        self.assume(m, ~fifo.take | there[fifo.take_level] | fifo.rewind)
        self.assume(m, ~fifo.take | (fifo.take_level < levels))
        self.assume(m, ~(fifo.rewind & fifo.commit))
        self.assume(m, ~commits | (read != 0))
        m.d.sync += size.eq(size + pushes - commits)
        with m.If(fifo.rewind):
            m.d.sync += read.eq(0)
        with m.Else():
            m.d.sync += read.eq(read + takes - commits)

        first_time = read == known
        takes_first = takes & first_time & ~fifo.rewind
        m.d.sync += known.eq(known + takes_first - commits)
        # What raw tuples brought, and how much of it a loader waits for.
        kept_brought, to_give = Signal(5), Signal(5)
        gives = raw & fifo.give
        self.assume(m, ~gives | (to_give != 0))
        m.d.sync += [
            kept_brought.eq(kept_brought + (raw & pushes) - gives),
            to_give.eq(to_give + (raw & takes_first) - gives),
        ]
        self.claim(m, size <= fifo.depth)
        self.claim(m, kept_brought <= BROUGHT)
        self.claim(m, to_give <= kept_brought)
        self.claim(m, read <= known)
        self.claim(m, known <= size)
        left = (size - read)[:5] != takes
        self.claim(m, fifo.available.bit_select(level, 1) == left)
        self.claim(m, fifo.waiting.bit_select(level, 1) == before(m, size != 0))

        # A probe is followed from its push on; `place` is the number of probes before it.
        followed, place = Signal(), Signal(5)
        begins = pushes & this & ~followed
        with m.If(begins):
            self.assume(m, raw | (fifo.joined_probes.pushed.as_value() == mine))
            self.assume(m, ~raw | (fifo.raw_probes.pushed == my_raw))
            m.d.sync += [followed.eq(1), place.eq(size - commits)]
        with m.Elif(followed & commits):
            m.d.sync += place.eq(place - 1)
            with m.If(place == 0):
                m.d.sync += followed.eq(0)
        its_turn = followed & takes & (read == place)
        # The probe taken stays until the next one is.
        reference, of_mine = fifo.reference, Signal()
        with m.If(fifo.take):
            m.d.sync += of_mine.eq(its_turn)
        with m.If(of_mine & ~raw):
            self.claim(m, reference.as_value() == mine)
        with m.If(of_mine & raw):
            self.claim(m, (reference.context == my_raw.context) & (reference.tag == my_raw.stream))
            self.claim(m, reference.stream == my_raw.stream)
            self.claim(m, reference.carries == 1 << my_raw.stream)
        # What a raw tuple brought is given once.
        brings = Signal()
        with m.If(fifo.take):
            m.d.sync += brings.eq(takes & raw & first_time)
        self.claim(m, ~raw | (fifo.brings == brings))
        to_come, before_it = (
            Signal(),
            Signal(5),
        )  # what the followed one brought, and what is before it
        with m.If(begins & raw):
            m.d.sync += [to_come.eq(1), before_it.eq(kept_brought - gives)]
        with m.Elif(gives):
            m.d.sync += before_it.eq(before_it - 1)
            with m.If(before_it == 0):
                m.d.sync += to_come.eq(0)
        its = gives & to_come & (before_it == 0)
        self.claim(m, ~its | (fifo.raw == my_raw.brought))

        # Invariants, which make the claims provable by induction.
        bits = len(end) - 1
        at = (kept + place)[:bits]
        raws, brought, probes = (
            getattr(made.submodules, name).read_port(domain="comb")
            for name in ("raws", "brought", "probes")
        )
        given = inside(made, "given")
        self.claim(m, inside(made, "after_given") == (given + 1)[: len(given)])
        m.d.comb += [
            raws.addr.eq(at),
            brought.addr.eq(given + before_it),
            probes.addr.eq(Cat(at, level - 1)),
        ]
        stored = Mux(
            raw,
            Cat(raws.data.context, raws.data.stream) == Cat(my_raw.context, my_raw.stream),
            probes.data.as_value() == mine,
        )
        self.claim(m, ~followed | ((place < size) & stored))
        self.claim(m, ~to_come | (raw & (before_it < kept_brought)))
        self.claim(m, ~to_come | (brought.data == my_raw.brought))
        lately = before(m, begins)
        first = to_come & (before_it == 0) & ~lately
        self.claim(m, ~first | (fifo.raw == my_raw.brought))
        self.claim(m, ~raw | ((inside(made, "fresh") - given)[: bits + 1] == to_give))
        self.claim(m, ~raw | ((end - given)[: bits + 1] == kept_brought))
        self.claim(m, ~raw | ((inside(made, "fresh") - kept)[: bits + 1] == known))
        self.claim(m, (end - kept)[: bits + 1] == size)
        self.claim(m, (taken - kept)[: bits + 1] == read)
        self.claim(m, read <= size)
        # `room` shows the state of the previous cycle, and each push after has seen it.
        late = before(m, pushes)
        at_most, places = config.probe_fifo_depth, fifo.depth
        wait, of_brought = kept_brought, BROUGHT - RAW_IN_FLIGHT
        self.claim(m, ~seen[0] | (size <= at_most - 1 + late))
        self.claim(m, ~(raw & seen[0]) | (wait <= of_brought - 1 + late))
        for age in range(LATE):
            coming = sum(seen[age:LATE], Const(0))
            raw_coming = sum(seen[age:RAW_LATE], Const(0))
            self.claim(m, size + Mux(raw, raw_coming, coming) <= places)
            self.claim(m, ~raw | (wait + raw_coming <= BROUGHT))

        rewound = Signal()
        with m.If(fifo.rewind & (read != 0)):
            m.d.sync += rewound.eq(1)
        on_the_way = Mux(raw, RAW_LATE, LATE) + 1
        most, most_wait = at_most + on_the_way, of_brought + RAW_LATE + 1
        self.claim(m, size <= most)
        for which in (raw, ~raw):
            self.reach(m, its_turn & rewound & (place == 1) & which)
            self.reach(m, (size == at_most) & which)
            self.reach(m, (size == most - 1) & pushes & commits & which)
        self.reach(m, its & before(m, gives))
        self.reach(m, raw & (wait == most_wait))
        self.reach(m, its_turn & raw & ~first_time)
        self.reach(m, its_turn & before(m, fifo.take & ~fifo.rewind & ~takes))


def faulty(old: str, new: str) -> object:
    return lambda: ProbeFifoIsAFifo((old, new))


@pytest.mark.parametrize(
    "case",
    [
        proof("fifo", ProbeFifoIsAFifo, "prove", 6, campaign=False),
        proof("fifo", ProbeFifoIsAFifo, "meet", 20),
        proof(
            "room-for-one-more",
            faulty("< self.config.probe_fifo_depth", "<= 1 + self.config.probe_fifo_depth"),
            "search",
            12,
            "FAIL",
        ),
        proof(
            "as-many-raw-as-joined",
            faulty("< _BROUGHT - _RAW_IN_FLIGHT", "< _BROUGHT"),
            "search",
            14,
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
            faulty("Cat(ends[pushed.level][:bits], at)", "ends[pushed.level][:bits]"),
            "search",
            12,
            "FAIL",
        ),
        proof(
            "given-late",
            faulty("read_brought.addr.eq(given_next)", "read_brought.addr.eq(given)"),
            "search",
            12,
            "FAIL",
        ),
        proof(
            "brought-again",
            faulty("self.brings.eq(of_raw & is_fresh)", "self.brings.eq(of_raw)"),
            "search",
            12,
            "FAIL",
        ),
        proof(
            "raw-over-joined",
            faulty("joined.eq(self.take_level != 0)", "joined.eq(0)"),
            "search",
            12,
            "FAIL",
        ),
    ],
)
def test_probe_fifo(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
