"""Proves the grouping unit: each result is in its group or delivered, once and in order; a drain
gives each group as it came to be (P9)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value

from seustream.hdl.grouping import GroupingUnit
from seustream.hdl.layouts import Layouts
from tests.formal.harness import (
    Case,
    Specification,
    altered,
    anything,
    before,
    check,
    constant,
    drive,
    hold,
    narrowed,
    proof,
    small,
)

QUERIES, PLACES, WAITING = 2, 2, 8
COUNT_BITS = 2
FULL = (1 << COUNT_BITS) - 1
NARROW = {"QUERY_BITS": 1, "GROUP_COUNT_BITS": COUNT_BITS}
STEPS = 3
"""Cycles that a group takes in a drain besides those of its parts."""
FLUSHED = 12
"""Cycles until a drain begins to give groups, at most, if its output is taken."""


class GroupsCount(Specification):
    """Any results come, and are drained at any time. The definition adds a result to its group in
    the cycle in which it is taken; any one result among any others is followed. Results come until
    some cycle, or at any time."""

    def __init__(self, fault: tuple[tuple[str, str], ...], until: int) -> None:
        super().__init__()
        self.fault, self.until = fault, until

    @contextlib.contextmanager
    def setting(self) -> Iterator[None]:
        with narrowed(NARROW, {}):
            yield

    def describe(self, m: Module) -> None:
        config = small(
            attribute_width=1, timestamp_width=2, sequence_width=2, queries=QUERIES, groups=PLACES
        )
        layouts = Layouts(config)
        unit = altered(GroupingUnit, *self.fault, _WAITING=WAITING)(config)
        m.submodules.unit = unit
        drive(m, unit, "found", "results", "drain", "clear")
        found, results, member = unit.found, unit.results, unit.member
        m.d.comb += [
            found.valid.eq(anything(m, 1, "found")),
            found.payload.as_value().eq(anything(m, layouts.result.size, "result")),
            results.ready.eq(anything(m, 1, "ready")),
        ]
        takes = found.valid & found.ready
        self.assume(m, found.payload.queries != 0)
        if self.until:
            clock = Signal(range(self.until + 1))
            with m.If(clock != self.until):
                m.d.sync += clock.eq(clock + 1)
            self.assume(m, ~found.valid | (clock != self.until))

        # A drain goes on until it is done. Groups are cleared only when nothing else is to do.
        drain, clear = anything(m, 1, "drain"), anything(m, 1, "clear")
        m.d.comb += [unit.drain.eq(drain), unit.clear.eq(clear)]
        self.assume(m, ~before(m, unit.drain & ~unit.drained) | drain)
        self.assume(m, ~clear | (unit.idle & ~found.valid & ~drain))

        # By the definition: the group at each place, and what is left of a result.
        group = Array(Signal(layouts.group, name=f"group{place}") for place in range(PLACES))
        live = Array(Signal(name=f"live{place}") for place in range(PLACES))
        first = Array(Signal(layouts.timestamp, name=f"first{p}") for p in range(PLACES))
        oldest = Array(Signal(layouts.timestamp, name=f"oldest{p}") for p in range(PLACES))
        begun, count = Signal(1), Signal(2)  # the place of the first, and how many there are
        place = (member.query ^ member.key)[:1]
        its, there = group[place], live[place]
        is_its = (its.query == member.query) & (its.key == member.key)
        mine = member.grouped & found.payload.queries.bit_select(member.query, 1)
        adds = mine & (~there | (is_its & (its.count != FULL)))
        left = found.payload.queries & ~Mux(adds, 1 << member.query, 0)[:QUERIES]
        newest, eldest = found.payload.newest, found.payload.oldest
        with m.If(takes & adds):
            value = member.value
            m.d.sync += [
                live[place].eq(1),
                its.query.eq(member.query),
                its.key.eq(member.key),
                its.count.eq(Mux(there, its.count + 1, 1)),
                its.total.eq(Mux(there, its.total + value, value)),
                its.least.eq(Mux(there & (its.least < value), its.least, value)),
                its.greatest.eq(Mux(there & (its.greatest > value), its.greatest, value)),
                first[place].eq(Mux(there & ~_before(newest, first[place]), first[place], newest)),
                oldest[place].eq(
                    Mux(there & ~_before(eldest, oldest[place]), oldest[place], eldest)
                ),
            ]
            with m.If(~there):
                m.d.sync += count.eq(count + 1)
                with m.If(count == 0):
                    m.d.sync += begun.eq(place)

        # The output: results of some query, in order, and parts of groups, after all of them.
        taken, leaving, come, parts = (
            Signal(6, name=n) for n in ("taken", "leaving", "come", "parts")
        )
        out = results.payload
        comes = results.valid & ~before(m, results.valid & ~results.ready)
        is_part = out.queries == 0
        m.d.sync += [
            taken.eq(taken + takes),
            leaving.eq(leaving + (takes & (left != 0))),
            come.eq(come + (comes & ~is_part)),
        ]
        self.claim(m, ~(comes & ~is_part) | (come != leaving))
        self.claim(m, ~unit.idle | (come == leaving))
        followed = constant(m, 4, "followed")
        here = takes & (taken == followed)
        known, is_left, at = Signal(), hold(m, left, here), hold(m, leaving, here)
        as_it_was = hold(m, found.payload.as_value(), here)
        m.d.sync += known.eq(known | here)
        wanted = out.shape()(as_it_was)
        is_it = known & (is_left != 0) & (at == come)
        with m.If(comes & ~is_part & is_it):
            self.claim(m, out.queries == is_left)
            self.claim(m, out.carries == wanted.carries)
            self.claim(m, (out.newest == wanted.newest) & (out.oldest == wanted.oldest))
            self.claim(m, out.sequences.as_value() == wanted.sequences.as_value())

        # Each group, as its parts give it, in the order in which the groups began.
        each = layouts.group_parts
        which = begun ^ (parts >= each)
        size = len(out.sequences.as_value())
        words: list[Value] = [
            Cat(group[which].as_value(), Signal(each * size))[part * size :][:size]
            for part in range(each)
        ]
        part = Mux(parts >= each, parts - each, parts)[: (each - 1).bit_length()]
        with m.If(comes & is_part):
            self.claim(m, drain & (come == leaving) & (parts < count * each))
            self.claim(m, out.sequences.as_value() == Array(words)[part])
            self.claim(m, (out.newest == first[which]) & (out.oldest == oldest[which]))
            self.claim(m, out.carries.all())
        given = parts + (comes & is_part)
        m.d.sync += parts.eq(given)
        with m.If(unit.drained):
            self.claim(m, drain & (come == leaving) & (given == count * each))
        with m.If(unit.drained | clear):
            m.d.sync += [parts.eq(0), count.eq(0), Cat(*live).eq(0)]

        # A waiting output does not change; a drain ends.
        waits = before(m, results.valid & ~results.ready)
        as_offered = out.as_value()
        self.claim(m, ~waits | (results.valid & (as_offered == before(m, as_offered))))
        lasts = Signal(8)
        with m.If(~drain | unit.drained):
            m.d.sync += lasts.eq(0)
        with m.Elif(results.ready):
            m.d.sync += lasts.eq(lasts + 1)
        self.claim(m, lasts <= WAITING + FLUSHED + PLACES * (each + STEPS))

        self.reach(m, unit.drained & (count == 2) & (leaving != 0))
        self.reach(m, comes & ~is_part & is_it & (is_left != as_it_was[:QUERIES]))
        # The place has another group; a group is full.
        self.reach(m, takes & mine & there & ~is_its & (followed == 1) & here)
        self.reach(m, takes & mine & is_its & there & (its.count == FULL))
        self.reach(m, takes & (taken == 10))
        self.reach(m, unit.drained & (come == 3) & (group[0].count == FULL) & live[0])
        # There are groups after a drain, and after a clear.
        drained, cleared = Signal(), Signal()
        m.d.sync += [
            drained.eq(drained | unit.drained),
            cleared.eq(cleared | (clear & count.any())),
        ]
        self.reach(m, drained & comes & is_part)
        self.reach(m, cleared & unit.drained & (given == each))


def _before(one: Value, other: Value) -> Value:
    """Compares numbers that wrap around."""
    return (one - other)[len(one) - 1]


def counts(*fault: tuple[str, str], until: int = 0) -> object:
    return lambda: GroupsCount(fault, until)


FAULTS = {
    "another-three-ago": ("alike(placed, counted)", "alike(placed, met)"),
    "sum-of-before-the-last": ("summed_1.eq(alike(met, counted))", "summed_1.eq(0)"),
    "one-too-many": ("(1 << GROUP_COUNT_BITS) - 2)", "(1 << GROUP_COUNT_BITS) - 1)"),
    "no-room": ("(self._used < _WAITING - 2)", "(self._used < _WAITING)"),
    "drained-too-soon": ("drains & ~room & (self._used == 0)", "drains & ~room"),
    "lost-to-the-others": ("~was_added | done.several", "~was_added"),
}


@pytest.mark.parametrize(
    "case",
    [
        proof("grouping", counts(), "search", 15, campaign=False),
        # A complete drain of what comes in four cycles.
        proof("grouping", counts(), "search", 20, limit=3600),
        proof("grouping-drain", counts(until=7), "search", 26, limit=3600),
        proof("grouping", counts(), "meet", 36),
        *(proof(name, counts(fault), "search", 18, "FAIL") for name, fault in FAULTS.items()),
        proof(
            "drained-twice",
            counts(
                ("[self._groups.eq(0), forgets.eq(self.clear)]", "forgets.eq(self.clear)"), until=7
            ),
            "search",
            26,
            "FAIL",
        ),
        proof(
            "a-part-left-out",
            counts(("left.eq(-1),", "left.eq((1 << parts - 1) - 1),")),
            "search",
            18,
            "FAIL",
        ),
    ],
)
def test_grouping(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
