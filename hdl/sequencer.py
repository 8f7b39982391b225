"""Sequencer: brings raw tuples in, one after the other, each with its own view of the windows."""

from __future__ import annotations

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import DeviceConfig
from seustream.hdl.layouts import CONTEXT_BITS, CONTEXTS, SELECTIONS, STREAM_BITS, Layouts
from seustream.hdl.probe_fifo import IN_FLIGHT


class Sequencer(wiring.Component):
    """Per raw tuple: move the clock and the counters, let every window drop its dead and the
    tuple's own make room; then store the tuple, note what every window holds, send the tuple
    to be probed, and meanwhile begin with the next. Up to sixteen are in flight, each under a
    context number of its own. A context is free again when nothing of it is in flight and all
    older ones are free.

    The windows are far away: all that goes to them and comes from them does so by registers.

    latency     6 cycles from `selected` to the router
    throughput  a raw tuple in 4 cycles, if none has to wait; it goes to the router meanwhile

    selected            raw tuples with their selection bits
    groups, stores, destinations   tables, per stream
    now, counters       the clock; last sequence numbers, by stream
    check, wanted, settled   windows: drop the dead; make room; it is so, low after `check`
    store, tuple, bits  the window to store in, maybe with the next one's `check`
    snapshot, context   windows: note what is stored, under this context
    raw                 tuple fetch: the raw tuple, with `snapshot`
    emit, emitted, destination, granted   the raw tuple to the router
    sent, sent_context  router: so many more in flight
    done, done_contexts per area, and the output: one less
    busy, oldest        contexts in flight
    taker, taken_by     the raw tuple now dealt with
    taken, tick, dropped   pulses, to be counted
    idle                nothing is in flight
    working, blocked    it is busy; it waits for a context or the router
    clear               pulse: clock and counters to 0
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        n = config.streams
        super().__init__(
            {
                "selected": In(stream.Signature(layouts.selected)),
                "groups": In(data.ArrayLayout(STREAM_BITS, n)),
                "stores": In(n),
                "destinations": In(data.ArrayLayout(layouts.destination, n)),
                "now": Out(layouts.timestamp),
                "counters": Out(data.ArrayLayout(layouts.sequence, n)),
                "check": Out(1),
                "wanted": Out(n),
                "settled": In(n),
                "store": Out(n),
                "tuple": Out(layouts.component),
                "bits": Out(SELECTIONS),
                "snapshot": Out(1),
                "context": Out(CONTEXT_BITS),
                "raw": Out(layouts.context),
                "emit": Out(1),
                "emitted": Out(layouts.reference),
                "destination": Out(layouts.destination),
                "granted": In(1),
                "sent": In(range(n + 2)),
                "sent_context": In(CONTEXT_BITS),
                "done": In(n + 1),
                "done_contexts": In(data.ArrayLayout(CONTEXT_BITS, n + 1)),
                "busy": Out(1),
                "oldest": Out(CONTEXT_BITS),
                "taker": Out(STREAM_BITS),
                "taken_by": Out(layouts.sequence),
                "taken": Out(1),
                "tick": Out(1),
                "dropped": Out(1),
                "idle": Out(1),
                "working": Out(1),
                "blocked": Out(1),
                "clear": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n, layouts = self.config.streams, self.layouts
        active = Signal(CONTEXTS)
        unsent = Signal(CONTEXTS)  # of these, the raw tuple is not yet counted
        self._contexts(m, active, unsent)

        # The next one waits here, so that the door hears from a register whether to go on.
        coming = Signal(layouts.selected, reset_less=True)
        have = Signal()
        m.d.comb += self.selected.ready.eq(~have)
        with m.If(~have):
            m.d.sync += [coming.eq(self.selected.payload), have.eq(self.selected.valid)]
        tuple_ = Signal(layouts.selected)
        raw = tuple_.raw
        m.d.comb += [
            self.now.eq(raw.timestamp),
            self.taker.eq(raw.stream),
            self.taken_by.eq(raw.sequence),
            self.tuple.eq(self.raw.component),
            self.bits.eq(self.raw.bits),
        ]
        # The context of the tuple that is dealt with, and whether it is free.
        ahead = Signal(CONTEXT_BITS)
        free = Signal()
        m.d.sync += free.eq(~active.bit_select(ahead, 1))
        leads = Signal(layouts.destination)
        takes = Signal()
        goes = Signal()
        m.d.sync += [self.check.eq(0), self.store.eq(0), self.snapshot.eq(0)]
        m.d.sync += [self.taken.eq(0), self.tick.eq(0), self.dropped.eq(0)]
        with m.FSM() as fsm:
            with m.State("WAIT"):
                m.d.comb += takes.eq(have)
                with m.If(have):
                    m.next = "CHECK"
            with m.State("CHECK"):
                m.next = "SETTLE"
            with m.State("SETTLE"):
                with m.If(self.settled.all()):
                    with m.If(~tuple_.admitted):
                        m.d.comb += goes.eq(1)
                    with m.Elif(~leads.as_value().any()):
                        m.d.comb += goes.eq(1)
                        m.d.sync += self.store.eq(self.wanted)
                    with m.Elif(free & ~self.emit):
                        m.d.comb += goes.eq(1)
                        m.d.sync += [
                            self.store.eq(self.wanted),
                            self.snapshot.eq(1),
                            self.context.eq(ahead),
                            self.emit.eq(1),
                            self.emitted.context.eq(ahead),
                            self.emitted.tag.eq(raw.stream),
                            self.emitted.carries.eq(1 << raw.stream),
                            self.destination.eq(leads),
                            active.bit_select(ahead, 1).eq(1),
                            unsent.bit_select(ahead, 1).eq(1),
                            ahead.eq(ahead + 1),
                        ]
                    with m.Else():
                        m.d.comb += self.blocked.eq(1)
                with m.If(goes):
                    m.d.comb += takes.eq(have)
                    m.next = "WAIT"
                    with m.If(have):
                        m.next = "CHECK"
        # What goes to the windows stays while the next one is looked at.
        with m.If(goes):
            m.d.sync += [
                self.raw.stream.eq(raw.stream),
                self.raw.bits.eq(tuple_.bits),
                self.raw.component.timestamp.eq(raw.timestamp),
                self.raw.component.sequence.eq(raw.sequence),
                self.raw.component.attributes.eq(raw.attributes),
                self.raw.counters.eq(self.counters),
            ]
        with m.If(takes):
            of = coming.raw.stream
            m.d.sync += [
                have.eq(0),
                self.check.eq(1),
                self.wanted.eq(Mux(coming.admitted, self.stores & (1 << of)[:n], 0)),
                leads.eq(Array(self.destinations[s] for s in range(n))[of]),
                self.taken.eq(~coming.raw.filler),
                self.tick.eq(~coming.raw.filler & ~coming.raw.admit),
                self.dropped.eq(coming.raw.admit & ~coming.admitted),
                tuple_.eq(coming),
            ]
            group = Array(self.groups[s] for s in range(n))[of]
            for s in range(n):
                with m.If(self.groups[s] == group):
                    m.d.sync += self.counters[s].eq(coming.raw.sequence)
        m.d.comb += self.working.eq((~fsm.ongoing("WAIT") | have) & ~self.blocked)
        with m.If(self.granted):
            m.d.sync += self.emit.eq(0)
        m.d.comb += self.idle.eq(
            fsm.ongoing("WAIT")
            & ~(self.selected.valid | have | self.busy | self.snapshot | self.store.any())
        )
        with m.If(self.clear):
            m.d.sync += [self.counters[s].eq(0) for s in range(n)]
            m.d.sync += tuple_.eq(0)
        return m

    def _contexts(self, m: Module, active: Signal, unsent: Signal) -> None:
        """Counts the tuples of each context that are in flight."""
        config = self.config
        most = (config.streams * self.layouts.levels * (config.probe_fifo_depth + IN_FLIGHT)
                + config.output_fifo_depth + IN_FLIGHT + config.streams)  # fmt: skip
        # Done is counted two cycles later than sent, after what a probe sent last; that only keeps
        # a context longer.
        sent, sent_context = Signal.like(self.sent), Signal.like(self.sent_context)
        m.d.sync += [sent.eq(self.sent), sent_context.eq(self.sent_context)]
        done, done_contexts = self.done, self.done_contexts
        for stage in range(3):
            later = Signal.like(done, name=f"done{stage}")
            later_contexts = Signal.like(done_contexts, name=f"done_contexts{stage}")
            m.d.sync += [later.eq(done), later_contexts.eq(done_contexts)]
            done, done_contexts = later, later_contexts
        finished = Signal(CONTEXTS)
        for number in range(CONTEXTS):
            count = Signal(ceil_log2(most) + 2, name=f"in_flight_{number}")
            more = Mux(sent_context == number, sent, 0)
            less = sum(done[i] & (done_contexts[i] == number) for i in range(config.streams + 1))
            m.d.sync += count.eq(count + more - less)
            with m.If((sent != 0) & (sent_context == number)):
                m.d.sync += unsent[number].eq(0)
            m.d.sync += finished[number].eq(active[number] & ~unsent[number] & (count == 0))
        m.d.comb += self.busy.eq(active.bit_select(self.oldest, 1))
        with m.If(self.busy & finished.bit_select(self.oldest, 1)):
            m.d.sync += [
                active.bit_select(self.oldest, 1).eq(0),
                self.oldest.eq(self.oldest + 1),
            ]
