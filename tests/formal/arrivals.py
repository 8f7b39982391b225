"""Drives a window buffer as a sequencer does, for the specifications of the window.

Time and sequence numbers wrap after 16, so every wrap is within reach.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from seustream.hdl.window import WindowBuffer
from tests.formal.harness import Specification, anything, before

CONTEXT_BITS, CONTEXTS = 2, 4
WIDTH = 4
HALF = 1 << WIDTH - 1
FLOWED, NEAR_BITS = 5, 2
LATE = 5
"""Most tuples that a build's sequencer stores after the last one that a window counted for the
`calm` that the sequencer saw."""


class Arrivals:
    """Drives a window as a sequencer does. It shows a raw tuple for three cycles, takes it and signals that,
    learns a cycle late that the window is settled, then tells it, through registers, what to store and which
    view to keep, while it may take the next. The window learns a cycle late what is in flight.

    While the window is calm, which is also known a cycle late, raw tuples near the previous one flow: they
    need not be shown before, and none waits for the window. A while after the last of them, when
    nothing is there, it checks once more. With a margin of few slots it lets none flow while that many
    are not yet counted when the window reports that it is calm; with `LATE` it never waits for that.

    A step of the clock is at most half of its range (a filler comes where it would be
    more), one of the counter at most 1, and 1 for a stored tuple. Contexts retire in order, at any time.
    """

    def __init__(self, spec: Specification, m: Module, window: WindowBuffer, margin: int) -> None:
        self.now, self.counter = Signal(WIDTH), Signal(WIDTH)
        step, bump = anything(m, WIDTH, "step"), anything(m, 1, "bump")
        arrives, others = anything(m, 1, "arrives"), anything(m, 1, "others")
        stores, sends = anything(m, 1, "stores"), anything(m, 1, "sends")
        # The next raw tuple: whether it is there, and shown for at least one cycle, for two.
        self.have, self.heard_once, self.heard = Signal(), Signal(), Signal()
        next_stores = Signal()
        self.step, self.bump = Signal(WIDTH), Signal()
        retires = anything(m, 1, "retires")
        self.clear = anything(m, 1, "clear")
        self.check, self.settling, self.stores = Signal(), Signal(), Signal()
        self.store, self.snapshot = Signal(), Signal()
        bits = CONTEXT_BITS
        self.context, self.next, self.oldest = Signal(bits), Signal(bits), Signal(bits)
        self.active = Signal(bits + 1)
        self.viewed = Signal(bits + 1)  # those of them whose view is kept
        m.d.comb += self.viewed.eq(self.active - self.snapshot)
        self.busy = self.active != 0
        # The tuple dealt with flows; one did so lately; a check must follow.
        self.flowing, self.lately, self.owes = Signal(), Signal(FLOWED), Signal()
        self.closing = Signal()
        self.cleared = Signal(init=1)  # nothing was taken since
        self.quiet = ~(
            self.settling | self.store | self.busy | before(m, self.busy) | self.have | self.owes
        )
        self.settled = window.arrivals.passes | (window.arrivals.rests & ~self.check)
        self.was_settled = before(m, self.settled)

        self.shown = Cat(
            (self.now + self.step)[:WIDTH], (self.counter + self.bump)[:WIDTH], next_stores
        )
        near = self.cleared | (
            (self.shown[:WIDTH][-NEAR_BITS:] == self.now[-NEAR_BITS:])
            & (self.shown[WIDTH : 2 * WIDTH][-NEAR_BITS:] == self.counter[-NEAR_BITS:])
        )
        calm = (
            before(m, window.arrivals.calm)
            & anything(m, 1, "others_calm")
            & anything(m, 1, "no_filler")
        )
        recent = [self.store]
        for _ in range(LATE - 3):
            recent.append(before(m, recent[-1]))
        self.uncounted = Signal(range(LATE + 1))
        m.d.comb += self.uncounted.eq(sum(recent) + (self.settling & self.stores))
        flows = Signal()
        m.d.comb += flows.eq(self.have & near & calm & (self.uncounted < margin))

        goes = self.flowing | (self.settling & ~self.check & self.was_settled)
        goes = goes & others & (~sends | self.closing | (self.active != CONTEXTS))
        quiet = self.was_settled & ~self.lately.any() & anything(m, 1, "others_quiet")
        self.takes, self.closes = Signal(), Signal()
        m.d.comb += [
            self.takes.eq(
                self.have
                & Mux(
                    self.settling,
                    goes & (flows | (self.heard & ~self.flowing)),
                    flows | (self.heard & quiet),
                )
            ),
            self.closes.eq(~self.settling & self.owes & ~self.have & quiet),
        ]
        self.flows_on = self.takes & flows
        with m.If(~self.have | self.takes):
            m.d.sync += [
                self.have.eq(arrives),
                self.step.eq(step),
                self.bump.eq(bump),
                next_stores.eq(stores),
            ]
        m.d.sync += [
            self.heard_once.eq(self.have & ~self.takes),
            self.heard.eq(self.heard_once & ~self.takes),
        ]
        # Where there is none, the values of the one before are shown, or anything if none came
        # since a clear.
        any_other = anything(m, 2 * WIDTH + 1, "shown")
        still = Cat(self.now, self.counter, Const(0, 1))

        spec.assume(m, step <= HALF)
        spec.assume(m, ~stores | bump)
        spec.assume(m, ~self.clear | (self.quiet & ~arrives))
        m.d.comb += [
            window.arrivals.check.eq(self.check),
            window.arrivals.flow.eq(
                before(m, self.flows_on | self.flowing | self.lately[:-1].any())
            ),
            Cat(window.arrivals.now, window.arrivals.counter, window.arrivals.wanted).eq(
                Mux(self.have, self.shown, Mux(self.cleared, any_other, still))
            ),
            window.arrivals.store.eq(self.store),
            window.arrivals.snapshot.eq(self.snapshot),
            window.arrivals.context.eq(self.context),
            window.arrivals.busy.eq(before(m, self.busy)),
            window.arrivals.oldest.eq(before(m, self.oldest)),
            window.clear.eq(self.clear),
        ]
        # The tuple to be stored, while the next one is dealt with.
        self.tuple, self.bits = Signal(window.arrivals.tuple.shape()), Signal(16)
        m.d.comb += [window.arrivals.tuple.eq(self.tuple), window.arrivals.bits.eq(self.bits)]
        m.d.sync += [
            self.check.eq(self.takes | self.closes),
            self.lately.eq(Cat(self.flowing, self.lately)),
        ]
        with m.If(goes):
            m.d.sync += [
                self.tuple.timestamp.eq(self.now),
                self.tuple.sequence.eq(self.counter),
                self.tuple.attributes.eq(
                    anything(m, len(self.tuple.attributes.as_value()), "attributes")
                ),
                self.bits.eq(anything(m, 16, "bits")),
                self.settling.eq(0),
                self.flowing.eq(0),
                self.context.eq(self.next),
            ]
        with m.If(self.takes):
            m.d.sync += [
                self.now.eq(self.now + self.step),
                self.counter.eq(self.counter + self.bump),
                self.cleared.eq(0),
            ]
        with m.If(self.takes | self.closes):
            m.d.sync += [
                self.stores.eq(next_stores & self.takes),
                self.settling.eq(1),
                self.flowing.eq(self.flows_on),
                self.owes.eq(self.flows_on),
                self.closing.eq(self.closes),
            ]
        with m.If(self.clear):
            m.d.sync += self.cleared.eq(1)
        sent = goes & sends & ~self.closing
        m.d.sync += [self.store.eq(goes & self.stores), self.snapshot.eq(sent)]
        retired = (self.viewed != 0) & retires
        m.d.sync += [
            self.next.eq(self.next + sent),
            self.oldest.eq(self.oldest + retired),
            self.active.eq(self.active + sent - retired),
        ]
        spec.claim(m, (self.next - self.oldest)[:bits] == self.active[:bits])
        spec.claim(m, self.active <= CONTEXTS)
        spec.claim(m, ~self.snapshot | (self.active != 0))
        spec.claim(m, ~self.snapshot | (self.context == (self.next - 1)[:bits]))
        spec.claim(m, ~self.check | self.settling)
        spec.claim(m, ~(self.store | self.snapshot) | ~self.settling | self.check)

    def in_flight(self, context: Value) -> Value:
        """Returns whether the view of a context is kept and needed."""
        return (context - self.oldest)[:CONTEXT_BITS] < self.viewed
