"""Sequencer: a raw tuple is stored and sent once, and a context is used again only when nothing
of it is in flight (P7, P1); what `test_window` takes for granted of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.hdl import Array, Cat, Module, Mux, Signal

from hdl.sequencer import Sequencer
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
        "from hdl.layouts import CONTEXT_BITS, CONTEXTS, SELECTIONS, STREAM_BITS, Layouts",
        "from hdl.layouts import SELECTIONS, STREAM_BITS, Layouts\n\n"
        f"CONTEXT_BITS, CONTEXTS = {CONTEXT_BITS}, {CONTEXTS}\n",
    ),
)
"""Fewer contexts than a build has."""


class SequencerSends(Specification):
    """Any tables. One context is followed, any; what is in flight of it is counted.

    The router counts a raw tuple the cycle after it was granted. A tuple in flight may become
    any number of tuples before it is done.
    """

    def __init__(self, *fault: tuple[str, str]) -> None:
        super().__init__()
        self.make = altered(Sequencer, *SMALL, *fault)

    def describe(self, m: Module) -> None:
        n = 2
        config = small(streams=n, attribute_width=1, timestamp_width=4, sequence_width=4)
        unit = self.make(config)
        made = build(m, "unit", unit)
        drive(m, unit, "selected", "groups", "stores", "destinations", "stored", "granted", "sent",
              "sent_context", "done", "done_contexts", "clear")  # fmt: skip
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
        takes = valid & unit.selected.ready
        tuple_ = type(came)(came.shape(), Signal(size, name="tuple"))  # the one dealt with
        some = Signal()
        with m.If(takes):
            m.d.sync += [tuple_.as_value().eq(payload), some.eq(1)]
        raw = tuple_.raw
        stores = unit.stores.bit_select(raw.stream, 1)
        leads = Array(d.as_value() for d in unit.destinations)[raw.stream]

        # What is in flight of the context followed.
        context = constant(m, CONTEXT_BITS, "followed")
        flying = Signal(4)
        granted = anything(m, 1, "granted") & unit.emit
        m.d.comb += unit.granted.eq(granted)
        own = before(m, granted)
        other = anything(m, CONTEXT_BITS, "whose")
        places = Signal(2)
        m.d.comb += places.eq(anything(m, 2, "places"))
        self.assume(m, (other != context) | (flying != 0) | (places == 0))
        m.d.comb += [
            unit.sent.eq(Mux(own, sum(unit.destination.as_value()), places)),
            unit.sent_context.eq(Mux(own, unit.emitted.context, other)),
        ]
        done = []
        for i in range(n + 1):
            pulse, whose = anything(m, 1, f"done{i}"), anything(m, CONTEXT_BITS, f"whose{i}")
            m.d.comb += [unit.done[i].eq(pulse), unit.done_contexts[i].eq(whose)]
            done.append(pulse & (whose == context))
        less, more = Signal(3), Signal(3)
        m.d.comb += [less.eq(sum(done)), more.eq(Mux(unit.sent_context == context, unit.sent, 0))]
        self.assume(m, (less <= flying) & (flying + more - less < 14))
        m.d.sync += flying.eq(flying + more - less)
        # A window that was told to look is not settled in the next cycle (see `test_window`).
        self.assume(m, ~before(m, takes) | (unit.settled == 0))
        stored = anything(m, n, "stored") & unit.store
        m.d.comb += unit.stored.eq(stored)

        its = unit.emitted.context == context
        flies = (flying != 0) | (its & (unit.emit | own))
        self.claim(m, ~(unit.snapshot & (unit.context == context) & flies))
        behind = (context - unit.oldest)[:CONTEXT_BITS] < (unit.context - unit.oldest)[
            :CONTEXT_BITS
        ]
        self.claim(m, ~flies | (unit.busy & (behind | (unit.context == unit.oldest))))
        self.claim(m, ~unit.idle | ~(flies | unit.emit | own))

        # Stored once where it should be, seen, then sent once where it leads to.
        was_stored, was_sent = Signal(), Signal()
        begins = unit.emit & ~before(m, unit.emit)
        seen = Signal()
        with m.If(takes):
            m.d.sync += [was_stored.eq(0), was_sent.eq(0), seen.eq(0)]
            self.claim(m, ~some | ~tuple_.admitted | seen)
        with m.Else():
            m.d.sync += [was_stored.eq(was_stored | stored.any()), seen.eq(seen | unit.snapshot)]
        with m.If(unit.store.any()):
            self.claim(m, tuple_.admitted & stores & ~was_stored & ~seen)
            self.claim(m, unit.store == 1 << raw.stream)
        # Nothing is stored before every window has dropped its dead.
        ready = before(m, unit.settled.all() & unit.storing.all())
        self.claim(m, ~unit.store.any() | before(m, unit.store.any()) | ready)
        with m.If(unit.snapshot):
            self.claim(m, tuple_.admitted & (was_stored == stores))
            self.claim(m, unit.raw.stream == raw.stream)
            self.claim(m, unit.raw.bits == tuple_.bits)
        with m.If(some):
            component = unit.tuple
            self.claim(m, unit.now == raw.timestamp)
            self.claim(m, component.sequence == raw.sequence)
            self.claim(m, component.attributes.as_value() == raw.attributes.as_value())
            self.claim(m, (unit.taker == raw.stream) & (unit.taken_by == raw.sequence))
            self.claim(m, unit.bits == tuple_.bits)
        sends = Signal(3)  # raw tuples seen that lead somewhere, and were not sent yet
        last = before(m, unit.snapshot) & takes_none(m, unit)
        m.d.sync += sends.eq(sends + (last & before(m, leads != 0)) - begins)
        self.claim(m, ~begins | (before(m, unit.snapshot) & (unit.emitted.tag == raw.stream)))
        self.claim(m, ~begins | (unit.destination.as_value() == leads))
        self.claim(m, ~begins | (unit.emitted.carries == 1 << raw.stream))
        waits = before(m, unit.emit & ~granted)
        what = Cat(unit.emitted.as_value(), unit.destination.as_value())
        self.claim(m, ~waits | (unit.emit & (what == before(m, what))))
        self.claim(m, ~own | (what == before(m, what)))
        self.claim(m, (sends + (last & before(m, leads != 0)) - begins)[:3] == 0)

        # Invariants.
        active = inside(made, "active")
        for number in range(CONTEXTS):
            ahead = (number - unit.oldest)[:CONTEXT_BITS]
            used = (unit.context - unit.oldest)[:CONTEXT_BITS]
            full = (unit.context == unit.oldest) & unit.busy
            self.claim(m, active[number] == (full | (ahead < used)))
        counted = Array(inside(made, f"in_flight_{c}") for c in range(CONTEXTS))[context]
        self.claim(m, counted == flying + before(m, less))
        self.claim(m, ~unit.emit | ~its | (flying == 0))
        self.claim(m, ~some | (inside(made, "tuple_") == tuple_.as_value()))
        settling, viewing = in_state(made, "SETTLE"), in_state(made, "VIEW")
        storing = in_state(made, "STORE")
        self.claim(m, ~(settling | storing) | (some & ~was_stored & ~seen))
        self.claim(m, ~storing | (tuple_.admitted & stores))
        into = inside(made, "into")
        self.claim(m, ~settling | before(m, takes) | (into == Mux(stores, 1 << raw.stream, 0)))
        self.claim(m, ~storing | (into == 1 << raw.stream))
        self.claim(m, ~viewing | (some & tuple_.admitted & (was_stored == stores)))
        self.claim(m, settling | storing | viewing | ~some | ~tuple_.admitted | seen)
        working = settling | storing | viewing
        self.claim(m, ~working | ~active.bit_select(unit.context, 1))
        newest = (unit.context - 1)[:CONTEXT_BITS]
        sending = unit.emit | own
        self.claim(m, ~sending | (unit.busy & (unit.emitted.context == newest)))
        self.claim(m, ~(unit.emit & own))

        self.reach(m, unit.snapshot & unit.emit & flies & (unit.context != context))
        self.reach(m, begins & its & before(m, stores))
        self.reach(m, takes & was_stored & (flying == 2))


def takes_none(m: Module, unit: Sequencer) -> Signal:
    """Whether the view of the cycle before was the last: the sequencer goes on from it."""
    return ~unit.snapshot


def sends(*fault: tuple[str, str]) -> object:
    return lambda: SequencerSends(*fault)


@pytest.mark.parametrize(
    "case",
    [
        proof("sequencer", sends(), "bmc", 16),
        proof("sequencer", sends(), "prove", 5, campaign=False),
        proof("sequencer", sends(), "cover", 16),
        proof(
            "freed-while-sent",
            sends((" & oldest_done & ~sending", " & oldest_done")),
            "bmc",
            16,
            "FAIL",
        ),
        proof(
            "stores-unsettled",
            sends(("self.settled.all() & self.storing.all()", "self.settled.all()")),
            "bmc",
            12,
            "FAIL",
        ),
        proof(
            "context-twice", sends(("~active.bit_select(self.context, 1)", "1")), "bmc", 16, "FAIL"
        ),
    ],
)
def test_sequencer(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
