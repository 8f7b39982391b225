"""Sequencer: a raw tuple is stored and sent once, and a context is used again only when nothing
of it is in flight (P7, P1); what `test_window` takes for granted of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.hdl import Array, Cat, Module, Mux, Signal

from seustream.hdl.sequencer import Sequencer
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
    in_state,
    inside,
    proof,
    small,
)

CONTEXT_BITS, CONTEXTS = 1, 2
SMALL = (
    (
        "from seustream.hdl.layouts import CONTEXT_BITS, CONTEXTS, SELECTIONS, STREAM_BITS, Layouts",
        "from seustream.hdl.layouts import SELECTIONS, STREAM_BITS, Layouts\n\n"
        f"CONTEXT_BITS, CONTEXTS = {CONTEXT_BITS}, {CONTEXTS}\n",
    ),
)
"""Fewer contexts than a build has."""


class SequencerSends(Specification):
    """Any tables. One context is followed, any; what is in flight of it is counted.

    The router counts a raw tuple some time after it was granted, and a joined one a cycle after,
    in which the probe it came from may be done. A tuple in flight may become any number of tuples
    before it is done.
    """

    def __init__(self, *fault: tuple[str, str]) -> None:
        super().__init__()
        self.make = altered(Sequencer, *SMALL, *fault)

    def describe(self, m: Module) -> None:
        n = 2
        config = small(streams=n, attribute_width=1, timestamp_width=4, sequence_width=4)
        unit = self.make(config)
        made = build(m, "unit", unit)
        drive(m, unit, "selected", "groups", "stores", "destinations", "settled", "granted",
              "sent", "sent_context", "done", "done_contexts", "clear")  # fmt: skip
        for name in ("groups", "stores", "destinations"):
            whole = getattr(unit, name)
            whole = getattr(whole, "as_value", lambda whole=whole: whole)()
            m.d.comb += whole.eq(constant(m, len(whole), name))
        size = len(unit.selected.payload.as_value())
        payload, valid = anything(m, size, "payload"), anything(m, 1, "valid")
        m.d.comb += [unit.selected.valid.eq(valid), unit.selected.payload.as_value().eq(payload)]
        came = unit.selected.payload
        self.assume(m, came.raw.stream < n)
        self.assume(m, ~(came.raw.filler & came.admitted))
        comes = valid & unit.selected.ready
        takes, goes = inside(made, "takes"), inside(made, "goes")
        # The one that waits, the one dealt with, and the one that went to the windows.
        coming, tuple_, gone = (
            type(came)(came.shape(), Signal(size, name=name)) for name in ("next", "tuple", "gone")
        )
        have, some, deals = Signal(), Signal(), Signal()
        with m.If(takes):
            m.d.sync += [tuple_.as_value().eq(coming.as_value()), some.eq(1), have.eq(0)]
        with m.If(comes):
            m.d.sync += [coming.as_value().eq(payload), have.eq(1)]
        with m.If(goes):
            m.d.sync += gone.as_value().eq(tuple_.as_value())
        with m.If(takes | goes):
            m.d.sync += deals.eq(takes)
        self.claim(m, ~takes | (have & (~deals | goes)))
        self.claim(m, ~goes | deals)
        raw = tuple_.raw
        keeps, leads = Signal(n), Signal(len(unit.destination.as_value()))
        kept, led = Signal.like(keeps), Signal.like(leads)
        for what, its_keeps, its_leads in ((tuple_, keeps, leads), (gone, kept, led)):
            with m.If(what.admitted):
                m.d.comb += [
                    its_keeps.eq(unit.stores & (1 << what.raw.stream)),
                    its_leads.eq(Array(d.as_value() for d in unit.destinations)[what.raw.stream]),
                ]

        # A window that was told to look is not settled in the next cycle, then some time it is,
        # and stays so (see `test_window`).
        settled = anything(m, n, "settled")
        m.d.comb += unit.settled.eq(settled)
        self.assume(m, ~before(m, unit.check) | (settled == 0))
        self.assume(m, before(m, unit.check) | ((before(m, settled) & ~settled) == 0))

        # What is in flight of the context followed: raw tuples first wait for the router, then to
        # be counted.
        context = constant(m, CONTEXT_BITS, "followed")
        flying = Signal(4)
        counting, counted_context, counted_places = Signal(), Signal(CONTEXT_BITS), Signal(2)
        granted = anything(m, 1, "granted") & unit.emit & ~counting
        m.d.comb += unit.granted.eq(granted)
        own = counting & anything(m, 1, "own")
        with m.If(granted):
            m.d.sync += [
                counting.eq(1),
                counted_context.eq(unit.emitted.context),
                counted_places.eq(sum(unit.destination.as_value())),
            ]
        with m.Elif(own):
            m.d.sync += counting.eq(0)
        other, places = anything(m, CONTEXT_BITS, "whose"), anything(m, 2, "places")
        its = unit.emit & (unit.emitted.context == context)
        counting_it = counting & (counted_context == context)
        self.assume(m, (other != context) | (flying != 0) | (places == 0))
        # Of the other contexts, too, only what is in flight is sent on.
        active, ahead = inside(made, "active"), inside(made, "ahead")
        self.assume(m, active.bit_select(other, 1) | (places == 0))
        self.assume(m, ~(unit.emit & (unit.emitted.context == other)) | (places == 0))
        self.assume(m, ~(counting & (counted_context == other)) | (places == 0))
        sent = Mux(own, counted_places, places)
        whose = Mux(own, counted_context, other)
        m.d.comb += [unit.sent.eq(before(m, sent)), unit.sent_context.eq(before(m, whose))]
        done = []
        for i in range(n + 1):
            pulse, of = anything(m, 1, f"done{i}"), anything(m, CONTEXT_BITS, f"whose{i}")
            m.d.comb += [unit.done[i].eq(pulse), unit.done_contexts[i].eq(of)]
            done.append(pulse & (of == context))
        less, more = Signal(3), Signal(3)
        m.d.comb += [less.eq(sum(done)), more.eq(Mux(whose == context, sent, 0))]
        self.assume(m, (less <= flying) & (flying + more - less < 14))
        m.d.sync += flying.eq(flying + more - less)

        flew = (flying != 0) | counting_it
        flies = flew | its
        self.claim(m, ~(unit.snapshot & (unit.context == context) & flew))
        behind = (context - unit.oldest)[:CONTEXT_BITS] <= (unit.context - unit.oldest)[
            :CONTEXT_BITS
        ]
        self.claim(m, ~flies | (unit.busy & behind))
        self.claim(m, ~unit.idle | ~(flies | unit.emit | unit.store.any() | unit.snapshot))

        # Once it is stored where it should be and seen, both at once, while the next is taken.
        leaves = unit.store.any() | unit.snapshot
        went = before(m, goes)
        self.claim(m, leaves == (went & ((kept != 0) | (led != 0))))
        # Nothing is stored before every window has dropped its dead.
        self.claim(m, ~goes | (settled.all() & ~unit.check))
        with m.If(leaves):
            self.claim(m, unit.store == kept)
            self.claim(m, unit.snapshot == (led != 0))
            component = unit.tuple
            self.claim(m, component.timestamp == gone.raw.timestamp)
            self.claim(m, component.sequence == gone.raw.sequence)
            self.claim(m, component.attributes.as_value() == gone.raw.attributes.as_value())
            self.claim(m, unit.bits == gone.bits)
        with m.If(unit.snapshot):
            self.claim(m, unit.raw.stream == gone.raw.stream)
            self.claim(m, unit.raw.bits == gone.bits)
            self.claim(m, unit.raw.component.as_value() == unit.tuple.as_value())
            self.claim(m, unit.raw.counters.as_value() == before(m, unit.counters.as_value()))
        with m.If(some):
            self.claim(m, unit.now == raw.timestamp)
            self.claim(m, (unit.taker == raw.stream) & (unit.taken_by == raw.sequence))
            self.claim(m, unit.wanted == keeps)
        self.claim(m, unit.check == before(m, takes))
        self.claim(m, unit.taken == (unit.check & ~raw.filler))
        self.claim(m, unit.tick == (unit.check & ~raw.filler & ~raw.admit))
        self.claim(m, unit.dropped == (unit.check & raw.admit & ~tuple_.admitted))
        # Then sent once where it leads to.
        begins = unit.emit & ~before(m, unit.emit)
        self.claim(m, begins == unit.snapshot)
        with m.If(begins):
            self.claim(m, unit.emitted.context == unit.context)
            self.claim(m, unit.emitted.tag == gone.raw.stream)
            self.claim(m, unit.emitted.carries == 1 << gone.raw.stream)
            self.claim(m, unit.destination.as_value() == led)
        waits = before(m, unit.emit & ~granted)
        what = Cat(unit.emitted.as_value(), unit.destination.as_value())
        self.claim(m, ~waits | (unit.emit & (what == before(m, what))))
        self.claim(m, ~before(m, granted) | ~unit.emit)

        # Invariants.
        for number in range(CONTEXTS):
            place = (number - unit.oldest)[:CONTEXT_BITS]
            used = (ahead - unit.oldest)[:CONTEXT_BITS]
            full = (ahead == unit.oldest) & unit.busy
            self.claim(m, active[number] == (full | (place < used)))
        self.claim(m, ~unit.busy | (ahead == (unit.context + 1)[:CONTEXT_BITS]))
        counted = Array(inside(made, f"in_flight_{c}") for c in range(CONTEXTS))[context]
        # What was sent is counted three cycles after the grant, what is done four.
        less_late, more_late = Signal(5), Signal(4)
        lately = [before(m, less)]
        for _ in range(2):
            lately.append(before(m, lately[-1]))
        m.d.comb += [
            less_late.eq(sum(lately)),
            more_late.eq(before(m, more) + before(m, before(m, more))),
        ]
        self.claim(m, counted + more_late == flying + less_late)
        self.claim(m, ~its | ~flew)
        self.claim(m, ~counting_it | (flying == 0))
        self.claim(m, ~(its | counting_it) | (less_late == 0) & (more_late == 0))
        # A raw tuple waits for the router, or to be counted, or is on its way to be, or is counted
        # now: one of them.
        unsent, finished = inside(made, "unsent"), inside(made, "finished")
        for number in range(CONTEXTS):
            where = Cat(
                unit.emit & (unit.emitted.context == number),
                counting & (counted_context == number),
                before(m, own) & (unit.sent_context == number),
                before(m, before(m, own)) & (before(m, unit.sent_context) == number),
            )
            self.claim(m, unsent[number] == where.any())
            self.claim(m, (where & (where - 1)[:4]) == 0)
            self.claim(m, ~unsent[number] | active[number])
            self.claim(m, ~(finished[number] & active[number]) | ~unsent[number])
        # Told by a register that a context is finished, nothing of it has come since.
        its_end = (finished & active).bit_select(context, 1)
        self.claim(m, ~its_end | ~(flies | (more_late != 0)))
        self.claim(m, ~unit.emit | (unit.emitted.context == unit.context))
        self.claim(m, ~unit.emit | (unit.destination.as_value() != 0))
        self.claim(m, ~counting | (counted_places != 0))
        self.claim(m, ~some | (inside(made, "tuple_") == tuple_.as_value()))
        self.claim(m, have == inside(made, "have"))
        self.claim(m, ~have | (inside(made, "coming") == coming.as_value()))
        settling = in_state(made, "SETTLE")
        self.claim(m, deals == (in_state(made, "CHECK") | settling))
        self.claim(m, ~deals | some)
        self.claim(m, in_state(made, "CHECK") == unit.check)
        its_leads = inside(made, "leads")
        self.claim(m, ~(some & tuple_.admitted) | (its_leads == leads))
        self.claim(m, ~(settling & inside(made, "free")) | ~active.bit_select(ahead, 1))

        self.reach(m, unit.snapshot & flew & (unit.context != context))
        self.reach(m, unit.snapshot & its & (keeps != 0))
        self.reach(m, takes & ~goes & some & (flying == 2))
        self.reach(m, unit.snapshot & unit.store.any() & unit.check)


def sends(*fault: tuple[str, str]) -> object:
    return lambda: SequencerSends(*fault)


@pytest.mark.parametrize(
    "case",
    [
        proof("sequencer", sends(), "prove", 8, campaign=False),
        proof("sequencer", sends(), "meet", 16),
        proof(
            "freed-while-sent",
            sends(("~unsent[number] & (count == 0)", "(count == 0)")),
            "search",
            16,
            "FAIL",
        ),
        proof(
            "done-too-soon",
            sends(("for stage in range(3):", "for stage in range(1):")),
            "search",
            16,
            "FAIL",
        ),
        proof(
            "stores-unsettled",
            sends(("m.If(self.settled.all())", "m.If(self.settled.any())")),
            "search",
            12,
            "FAIL",
        ),
        proof(
            "of-the-next",
            sends(("self.tuple.eq(self.raw.component)", "self.tuple.sequence.eq(raw.sequence)")),
            "search",
            12,
            "FAIL",
        ),
        proof("context-twice", sends(("~active.bit_select(ahead, 1)", "1")), "search", 16, "FAIL"),
    ],
)
def test_sequencer(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
