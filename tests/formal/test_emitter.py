"""Proves the emitter with the probe queue: whatever comes goes out once and in order, to where its
tag leads, and what is announced as the next one follows (P8, P1)."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.hdl import Array, Module, Mux, Signal

from seustream.hdl.decider import join_layout
from seustream.hdl.emitter import Emitter
from seustream.hdl.probe_queue import ProbeQueue, probe_layout
from tests.formal.harness import (
    Case,
    Specification,
    altered,
    anything,
    before,
    check,
    constant,
    proof,
    small,
)

# As in `test_execution`: 8 instructions and 2 route tags, so that the memories are small.
ADDRESS, TAG = {"ADDRESS_BITS": 3}, {"TAG_BITS": 1}
JOINS = {"join_layout": altered(join_layout, **ADDRESS, **TAG)}


class EmitterSendsAll(Specification):
    """The emitter with the probe queue, and no program. Joined tuples and ends come, together or not, in any
    order; any one of them is followed, and any one of the probes. Both memories are smaller than in a
    build, so that their places are soon used again.

    A probe's joined tuples come at the earliest three cycles after it was entered, and while there is
    room, late by `LATE` cycles; the router is as in `test_execution`.
    """

    WAITING, LATE, KNOWN = 16, 7, 4

    def __init__(
        self,
        emitter: tuple[tuple[str, str], ...] = (),
        probes: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__()
        self.emitter, self.probes = emitter, probes

    def describe(self, m: Module) -> None:
        config = small(streams=3, depth=2, factors=2, attribute_width=1)
        emitter = altered(Emitter, *self.emitter, **TAG, **JOINS, _WAITING=self.WAITING)(config)
        m.submodules.emitter = emitter
        shape = probe_layout(config)
        probes = altered(ProbeQueue, *self.probes, **ADDRESS, KNOWN=self.KNOWN)(config)
        m.submodules.probes = probes
        decided, rewind = probes.decided, emitter.rewind
        m.d.comb += [
            probes.sent.eq(emitter.ends),
            probes.left.slot.eq(emitter.emitting.slot),
            probes.left.pc.eq(emitter.emitting.pc),
            probes.rewind.eq(rewind),
            probes.commit.eq(emitter.commit),
            probes.resume_level.eq(probes.entering.level),
            probes.resumed.eq(probes.enter),
            emitter.higher.eq(anything(m, 1, "higher")),
        ]

        # Probes: how many were entered since the last rewind, decided, and done.
        entered, entered_n, decided_n, done = (Signal(5, name=f"count{i}") for i in range(4))
        which = constant(m, 5, "which")
        its, entering = Signal(shape), anything(m, shape, "entering")
        enters = anything(m, 1, "enters") & before(m, probes.may_enter)
        m.d.comb += [probes.enter.eq(enters & ~rewind), probes.entering.eq(entering)]
        m.d.comb += entered_n.eq(entered)
        known, soon = Signal(5), Signal(5)  # three cycles after it was entered
        m.d.comb += decided.eq(anything(m, 1, "decided") & (decided_n < known) & ~rewind)
        self.assume(m, entered != 31)
        with m.If(rewind):
            m.d.sync += [entered.eq(0), decided_n.eq(0), done.eq(0), soon.eq(0), known.eq(0)]
        with m.Else():
            m.d.sync += [
                entered.eq(entered + probes.enter),
                decided_n.eq(decided_n + decided),
                done.eq(done + emitter.ends),
                soon.eq(entered),
                known.eq(soon),
            ]
        with m.If(probes.enter & (entered == which)):
            m.d.sync += its.eq(entering)
        levels = Array(Signal(len(probes.level), name=f"level{i}") for i in range(self.KNOWN))
        number = (self.KNOWN - 1).bit_length()
        with m.If(probes.enter):
            m.d.sync += levels[entered[:number]].eq(entering.level)
        lately = before(m, rewind)
        there = ~lately & ~rewind & (known > which)
        self.claim(m, ~emitter.ends | (done < entered))
        self.claim(m, (entered - done)[:5] <= self.KNOWN)
        with m.If(there & (decided_n == which)):
            self.claim(m, probes.deciding == its)
        with m.If(there & (done == which)):
            self.claim(m, (probes.sending == its) & (probes.level == its.level))
        its_end = before(m, emitter.ends & (done == which))
        with m.If(its_end):
            self.claim(m, probes.commit & (probes.committed_level == its.level))
            self.claim(m, probes.context == its.reference.context)
        self.claim(m, probes.commit == before(m, emitter.ends))

        # Joined tuples and ends in order of arrival, and how many of both came and are done.
        came, out, ended = Signal(6), Signal(6), Signal(5)
        followed = constant(m, 6, "followed")
        found = anything(m, len(emitter.found.as_value()), "found")
        mine, mine_ends = Signal.like(emitter.found), Signal()
        its_ends = emitter.found.end
        seen = emitter.room
        for _ in range(self.LATE):
            seen = before(m, seen)
        comes = Signal()
        m.d.comb += [
            comes.eq(anything(m, 1, "comes") & seen & (ended < known) & ~lately & (came < 62)),
            emitter.came.eq(comes),
            emitter.found.as_value().eq(found),
            emitter.level.eq(levels[ended[:number]]),
        ]
        self.assume(m, ~comes | emitter.found.some | its_ends)
        with m.If(comes & emitter.found.some & (came == followed)):
            m.d.sync += [mine.eq(emitter.found), mine_ends.eq(0)]
        with m.Elif(comes & its_ends & (came + emitter.found.some == followed)):
            m.d.sync += mine_ends.eq(1)
        leads = [constant(m, 4, f"leads{tag}") for tag in range(2)]
        m.d.comb += emitter.leads.eq(before(m, Array(leads)[emitter.tag[:1]]))

        # The router.
        turn, granted = Signal(), Signal()
        gone, follows = granted | ~emitter.emit, emitter.follows
        there_is = Mux(
            turn,
            Mux(granted, follows[1], follows[0]),
            Mux(gone, follows[0], emitter.emit),
        )
        m.d.comb += [
            turn.eq(emitter.emit & emitter.roomy & anything(m, 1, "turn")),
            granted.eq(before(m, turn)),
            emitter.granted.eq(granted),
            emitter.roomy.eq(anything(m, 1, "roomy") & before(m, there_is)),
        ]
        self.claim(m, ~granted | (emitter.emit & ~rewind))
        with m.If(rewind):
            m.d.sync += [came.eq(0), out.eq(0), ended.eq(0)]
        with m.Else():
            m.d.sync += [
                came.eq(came + (comes & emitter.found.some) + (comes & its_ends)),
                out.eq(out + granted + emitter.ends),
                ended.eq(ended + (comes & its_ends)),
            ]
        self.claim(m, (out + granted + emitter.ends)[:6] <= came)
        self.claim(m, (came - out)[:6] <= 2 * (self.WAITING + 3 + 2))
        is_mine = out == followed
        with m.If((emitter.emit | rewind) & is_mine):
            sent = emitter.emitting
            self.claim(m, (sent.tag == mine.tag) & (sent.slot == mine.slot) & (sent.pc == mine.pc))
            self.claim(m, ~mine_ends)
        with m.If(emitter.emit & is_mine):
            self.claim(m, emitter.destination.as_value() == Array(leads)[mine.tag[:1]])
        with m.If(emitter.ends & ((out + granted)[:6] == followed)):
            self.claim(m, mine_ends)
        waits = before(m, emitter.emit & ~granted)
        self.claim(m, ~waits | emitter.emit | rewind)
        gave_up = before(m, emitter.emit & ~emitter.roomy & ~granted & emitter.higher)
        self.claim(m, ~rewind | gave_up)
        # What it announces of the next ones comes true.
        to, calm = [each.as_value() for each in emitter.follows_to], before(m, ~rewind)
        said = calm & before(m, gone & follows[0])
        leads_there = emitter.destination.as_value() == before(m, to[0])
        same_level = probes.level == before(m, probes.level)
        self.claim(m, ~said | (emitter.emit & leads_there & same_level))
        then = calm & before(m, gone & follows[1])
        self.claim(m, ~then | (follows[0] & (to[0] == before(m, to[1]))))
        still = calm & before(m, ~gone & follows[0])
        self.claim(m, ~still | (follows[0] & (to[0] == before(m, to[0]))))
        self.claim(m, ~(follows[1] & ~follows[0]))
        # It makes progress.
        idle = Signal(4)
        with m.If((came != out) & ~emitter.emit & ~emitter.ends & ~rewind):
            m.d.sync += idle.eq(idle + 1)
        with m.Else():
            m.d.sync += idle.eq(0)
        self.claim(m, idle <= 8)

        ends_before = before(m, emitter.ends & granted)
        self.reach(m, said & ends_before & is_mine & granted & emitter.ends)
        self.reach(m, said & before(m, emitter.ends & ~granted) & is_mine)
        self.reach(m, emitter.ends & (done == which) & (which == 2))
        self.reach(m, rewind & is_mine & (followed == 2))
        again = Signal()
        with m.If(rewind):
            m.d.sync += again.eq(1)
        self.reach(m, granted & is_mine & again & follows[1])


def sends(
    emitter: tuple[tuple[str, str], ...] = (), probes: tuple[tuple[str, str], ...] = ()
) -> object:
    return lambda: EmitterSendsAll(emitter, probes)


OTHER_LEVEL = sends(emitter=(("following.join.some & following.same", "following.join.some"),))
LEVEL_BEFORE = sends(emitter=(("same.eq(level == level_before)", "same.eq(self.level == level)"),))
END_LOST = sends(emitter=(("following.join.end | with_it", "following.join.end"),))
TOO_MANY = sends(emitter=(("_WAITING - _IN_FLIGHT)", "_WAITING - 1)"),))
OLD_DESTINATION = sends(emitter=(("write.data.to.eq(to)", "write.data.to.eq(self.leads)"),))
DECIDES_LATE = sends(probes=(("have.eq(have_after)", "have.eq(have_after & ~leaves)"),))


@pytest.mark.parametrize(
    "case",
    [
        proof("emitter", sends(), "search", 16, campaign=False),
        proof("emitter", sends(), "search", 18, limit=1800),
        proof("emitter", sends(), "meet", 34),
        proof("other-level-follows", OTHER_LEVEL, "search", 19, "FAIL", campaign=False),
        proof("level-of-another-follows", LEVEL_BEFORE, "search", 19, "FAIL"),
        proof("end-lost", END_LOST, "search", 19, "FAIL"),
        proof("too-many-joins", TOO_MANY, "search", 24, "FAIL"),
        proof("old-destination", OLD_DESTINATION, "search", 18, "FAIL"),
        proof("decides-late", DECIDES_LATE, "search", 10, "FAIL"),
    ],
)
def test_emitter(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
