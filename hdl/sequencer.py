"""Sequencer: brings raw tuples in, one after the other, each with its own view of the windows."""

from __future__ import annotations

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.config import DeviceConfig
from hdl.layouts import CONTEXT_BITS, CONTEXTS, SELECTIONS, STREAM_BITS, Layouts
from hdl.probe_fifo import IN_FLIGHT


class Sequencer(wiring.Component):
    """Per raw tuple: move the clock and the counters, let every window drop its dead, store
    the tuple, note what every window holds, send the tuple to be probed. Then comes the
    next; up to four are in flight, each under a context number of its own. A context is
    free again when nothing of it is in flight and all older ones are free.

    latency     7 cycles from `selected` to the router
    throughput  a raw tuple in 7 cycles, if none has to wait; it goes to the router meanwhile

    selected            raw tuples with their selection bits
    groups, stores, destinations   tables, per stream
    now, counters       the clock; last sequence numbers, by stream
    check, settled      windows: drop the dead; all are gone
    store, stored, storing, tuple, bits   the window to store in; done; its indexes can take one
    snapshot, context   windows: note what is stored, under this context
    remember, raw       tuple fetch: keep the raw tuple
    emit, emitted, destination, granted   the raw tuple to the router
    sent, sent_context  router: so many more in flight
    done, done_contexts per area, and the output: one less
    busy, oldest        contexts in flight
    taker, taken_by     the raw tuple now dealt with
    taken, tick, dropped   pulses, to be counted
    idle                nothing is in flight
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
                "settled": In(n),
                "store": Out(n),
                "stored": In(n),
                "storing": In(n),
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
                "clear": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n, layouts = self.config.streams, self.layouts
        active = Signal(CONTEXTS)
        unsent = Signal(CONTEXTS)  # of these, the raw tuple is not yet counted
        self._contexts(m, active, unsent)

        tuple_ = Signal(layouts.selected)
        raw = tuple_.raw
        m.d.comb += [
            self.now.eq(raw.timestamp),
            self.tuple.timestamp.eq(raw.timestamp),
            self.tuple.sequence.eq(raw.sequence),
            self.tuple.attributes.eq(raw.attributes),
            self.bits.eq(tuple_.bits),
            self.taker.eq(raw.stream),
            self.taken_by.eq(raw.sequence),
            self.raw.stream.eq(raw.stream),
            self.raw.bits.eq(tuple_.bits),
            self.raw.component.eq(self.tuple),
            self.raw.counters.eq(self.counters),
        ]
        mine = Signal(n)
        m.d.comb += mine.eq(1 << raw.stream)
        into = Signal(n)  # known by the time the windows have settled
        m.d.sync += into.eq(self.stores & mine)
        ready = self.settled.all() & self.storing.all()
        destination = Array(self.destinations[s] for s in range(n))[raw.stream]
        with m.FSM() as fsm:
            with m.State("WAIT"):
                m.d.comb += self.selected.ready.eq(~active.bit_select(self.context, 1))
                with m.If(self.selected.valid & self.selected.ready):
                    arriving = self.selected.payload
                    m.d.comb += [
                        self.check.eq(1),
                        self.taken.eq(~arriving.raw.filler),
                        self.tick.eq(~arriving.raw.filler & ~arriving.raw.admit),
                        self.dropped.eq(arriving.raw.admit & ~arriving.admitted),
                    ]
                    m.d.sync += tuple_.eq(arriving)
                    group = Array(self.groups[s] for s in range(n))[arriving.raw.stream]
                    for s in range(n):
                        with m.If(self.groups[s] == group):
                            m.d.sync += self.counters[s].eq(arriving.raw.sequence)
                    m.next = "SETTLE"
            with m.State("SETTLE"):
                with m.If(ready):
                    with m.If(~tuple_.admitted):
                        m.next = "WAIT"
                    with m.Elif(into.any()):
                        m.next = "STORE"
                    with m.Else():
                        m.next = "VIEW"
            with m.State("STORE"):
                m.d.comb += self.store.eq(into)
                with m.If((self.stored & into).any()):
                    m.next = "VIEW"
            with m.State("VIEW"):
                # If it has to be done again, the view is the same.
                m.d.comb += self.snapshot.eq(1)
                with m.If(~destination.as_value().any()):
                    m.next = "WAIT"
                with m.Elif(~self.emit):
                    m.d.sync += [
                        self.emit.eq(1),
                        self.emitted.context.eq(self.context),
                        self.emitted.tag.eq(raw.stream),
                        self.emitted.carries.eq(1 << raw.stream),
                        self.destination.eq(destination),
                        active.bit_select(self.context, 1).eq(1),
                        unsent.bit_select(self.context, 1).eq(1),
                        self.context.eq(self.context + 1),
                    ]
                    m.next = "WAIT"
        with m.If(self.granted):
            m.d.sync += self.emit.eq(0)
        m.d.comb += self.idle.eq(fsm.ongoing("WAIT") & ~self.selected.valid & ~self.busy)
        with m.If(self.clear):
            m.d.sync += [self.counters[s].eq(0) for s in range(n)]
            m.d.sync += tuple_.eq(0)
        return m

    def _contexts(self, m: Module, active: Signal, unsent: Signal) -> None:
        """How much of each context is in flight."""
        config = self.config
        most = (config.streams * self.layouts.levels * (config.probe_fifo_depth + IN_FLIGHT)
                + config.output_fifo_depth + IN_FLIGHT + config.streams)  # fmt: skip
        # Done is counted two cycles late, after what a probe sent last; that only keeps a
        # context longer.
        done, done_contexts = self.done, self.done_contexts
        for stage in range(2):
            later = Signal.like(done, name=f"done{stage}")
            later_contexts = Signal.like(done_contexts, name=f"done_contexts{stage}")
            m.d.sync += [later.eq(done), later_contexts.eq(done_contexts)]
            done, done_contexts = later, later_contexts
        oldest_done = Signal()
        for number in range(CONTEXTS):
            count = Signal(ceil_log2(most) + 2, name=f"in_flight_{number}")
            more = Mux(self.sent_context == number, self.sent, 0)
            less = sum(done[i] & (done_contexts[i] == number) for i in range(config.streams + 1))
            m.d.sync += count.eq(count + more - less)
            with m.If((self.sent != 0) & (self.sent_context == number)):
                m.d.sync += unsent[number].eq(0)
            with m.If(self.oldest == number):
                m.d.comb += oldest_done.eq(~unsent[number] & (count == 0))
        m.d.comb += self.busy.eq(active.bit_select(self.oldest, 1))
        with m.If(self.busy & oldest_done):
            m.d.sync += [
                active.bit_select(self.oldest, 1).eq(0),
                self.oldest.eq(self.oldest + 1),
            ]
