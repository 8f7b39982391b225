"""Sequencer: brings raw tuples in, one after the other, each with its own view of the windows."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import DeviceConfig
from seustream.hdl.layouts import CONTEXT_BITS, EPOCH_BITS, OFFERS, SELECTIONS, STREAM_BITS, Layouts
from seustream.hdl.probe_fifo import IN_FLIGHT


class Sequencer(wiring.Component):
    """Per raw tuple: move the clock and the counters, let every window drop its dead and the
    tuple's own make room; then store the tuple, note what every window holds, send the tuple
    to be probed, and meanwhile begin with the next, whose time the windows know by then. Up to 64
    are in flight, each under a context number of its own. What is in flight is counted by epochs of
    four contexts that follow each other. An epoch is free again when nothing of it is in flight, no
    context of it is to be given, and all older ones are free. When nothing is in flight, the rest of
    an epoch is left out.

    The windows are far away: all that goes to them and comes from them does so by registers.

    latency     5 cycles from `selected` to the router
    throughput  a raw tuple in 2 cycles, if none has to wait; it goes to the router meanwhile

    selected            raw tuples with their selection bits
    groups, stores, destinations   tables, per stream
    now, counters, wanted   of the next raw tuple, from a cycle before its `check` on: the clock, the
                        last sequence numbers by stream, and which windows it is stored in
    check, settled      windows: drop the dead and make room for it, in the next cycle; it is so, low from
                        that cycle on
    store, tuple, bits  the window to store in, maybe in the cycle after the next one's `check`
    snapshot, context   windows: note what is stored, under this context
    raw                 tuple fetch: the raw tuple, with `snapshot`
    emit, emitted, destinations_of, taking, granted   raw tuples to the router, by two offers in turn
    sent, sent_context  router: so many more in flight, made by an area
    done, done_contexts per area, and the output: one less
    busy, oldest        contexts in flight, and the first of the oldest epoch
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
                "emit": Out(OFFERS),
                "emitted": Out(data.ArrayLayout(layouts.reference, OFFERS)),
                "destinations_of": Out(data.ArrayLayout(layouts.destination, OFFERS)),
                "taking": In(OFFERS),
                "granted": In(OFFERS),
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
        takes = Signal()
        coming, have, stays, moved = self._coming(m, takes)
        # There is one, and the windows have heard of it for a cycle.
        heard = Signal()
        m.d.sync += heard.eq(have & stays)
        counters = Signal(data.ArrayLayout(layouts.sequence, n), name="last_ones")
        tuple_ = Signal(layouts.selected)
        raw = tuple_.raw
        m.d.comb += [
            self.now.eq(coming.raw.timestamp),
            *(
                self.counters[s].eq(Mux(moved[s], coming.raw.sequence, counters[s]))
                for s in range(n)
            ),
            self.taker.eq(raw.stream),
            self.taken_by.eq(raw.sequence),
            self.tuple.eq(self.raw.component),
            self.bits.eq(self.raw.bits),
        ]
        # The context of the tuple that is dealt with, and whether it is free.
        ahead, free = Signal(CONTEXT_BITS, name="ahead"), Signal(name="free")
        gives = Signal()
        places = Signal(range(n + 2))  # where it goes to, with `snapshot`
        offer = Signal(range(OFFERS))
        self._contexts(m, ahead, free, gives, places)
        leads, kept = Signal(layouts.destination, name="leads"), Signal(n, name="kept")
        settled = Signal()
        m.d.sync += settled.eq(self.settled.all())
        # It goes to the router; it may go on, once all is settled; it does. The first two are known a cycle
        # ahead: after one goes, what they depend on stays as it is until the next one is judged.
        sends, to_send = Signal(name="sends"), Signal(name="to_send")
        may, room = Signal(name="may"), Signal(name="room")
        goes = Signal()
        m.d.comb += to_send.eq(sends)
        m.d.comb += room.eq((~self.emit | self.taking | self.granted).bit_select(offer, 1))
        m.d.sync += sends.eq(to_send)
        m.d.comb += self.check.eq(takes)
        m.d.sync += [self.store.eq(0), self.snapshot.eq(0)]
        m.d.sync += [self.taken.eq(0), self.tick.eq(0), self.dropped.eq(0)]
        with m.FSM() as fsm:
            with m.State("WAIT"):
                m.d.comb += takes.eq(heard)
                with m.If(takes):
                    m.next = "JUDGE"
            with m.State("JUDGE"):
                m.d.comb += to_send.eq(tuple_.admitted & leads.as_value().any())
                m.next = "SETTLE"
            with m.State("SETTLE"):
                m.d.comb += self.blocked.eq(settled & ~may)
                with m.If(goes):
                    m.d.comb += takes.eq(heard)
                    m.next = "WAIT"
                    with m.If(takes):
                        m.next = "JUDGE"
        settling = fsm.ongoing("JUDGE") | (fsm.ongoing("SETTLE") & ~goes)
        m.d.sync += may.eq((~to_send | (free & room)) & settling)
        m.d.comb += [goes.eq(settled & may), gives.eq(goes & sends)]
        with m.If(gives):
            m.d.sync += [
                self.snapshot.eq(1),
                self.context.eq(ahead),
                places.eq(sum(Cat(leads.areas, leads.output))),
                offer.eq(offer + 1),
            ]
        # What goes to the windows stays while the next one is looked at.
        with m.If(goes):
            m.d.sync += self.store.eq(kept)
            m.d.sync += [
                self.raw.stream.eq(raw.stream),
                self.raw.bits.eq(tuple_.bits),
                self.raw.component.timestamp.eq(raw.timestamp),
                self.raw.component.sequence.eq(raw.sequence),
                self.raw.component.attributes.eq(raw.attributes),
                self.raw.counters.eq(counters),
            ]
        with m.If(takes):
            m.d.sync += [
                kept.eq(self.wanted),
                leads.eq(Array(self.destinations[s] for s in range(n))[coming.raw.stream]),
                counters.eq(self.counters),
                self.taken.eq(~coming.raw.filler),
                self.tick.eq(~coming.raw.filler & ~coming.raw.admit),
                self.dropped.eq(coming.raw.admit & ~coming.admitted),
                tuple_.eq(coming),
            ]
        m.d.comb += self.working.eq((~fsm.ongoing("WAIT") | have) & ~self.blocked)
        for number in range(OFFERS):
            reference, leads_to = self.emitted[number], self.destinations_of[number]
            with m.If(self.granted[number]):
                m.d.sync += self.emit[number].eq(0)
            with m.If(gives & (offer == number)):
                m.d.sync += [
                    self.emit[number].eq(1),
                    reference.context.eq(ahead),
                    reference.tag.eq(raw.stream),
                    reference.carries.eq(1 << raw.stream),
                    leads_to.eq(leads),
                ]
        m.d.comb += self.idle.eq(
            fsm.ongoing("WAIT")
            & ~(self.selected.valid | have | self.busy | self.snapshot | self.store.any())
        )
        with m.If(self.clear):
            m.d.sync += [counters.eq(0), tuple_.eq(0)]
        return m

    def _coming(self, m: Module, takes: Signal) -> tuple[data.View, Signal, Signal, Signal]:
        """Returns the next raw tuple, whether there is one, and in the next cycle, and which counters it moves.
        Two wait here, so that a register says to the door whether to go on."""
        n = self.config.streams
        coming, after = (
            Signal(self.layouts.selected, name=name, reset_less=True)
            for name in ("coming", "after")
        )
        have, have_after = Signal(name="have"), Signal(name="have_after")
        stays = Signal(name="stays")
        moved = Signal(n, reset_less=True)
        loaded = Signal.like(coming, name="loaded")
        of = loaded.raw.stream
        group = Array(self.groups[s] for s in range(n))[of]
        m.d.comb += [
            self.selected.ready.eq(~have_after),
            stays.eq((have & ~takes) | have_after | self.selected.valid),
            loaded.eq(Mux(have_after, after, self.selected.payload)),
        ]
        with m.If(~have_after):
            m.d.sync += after.eq(self.selected.payload)
        m.d.sync += have.eq(stays)
        with m.If(~have | takes):
            m.d.sync += [
                have_after.eq(0),
                coming.eq(loaded),
                moved.eq(Cat(self.groups[s] == group for s in range(n))),
                self.wanted.eq(Mux(loaded.admitted, self.stores & (1 << of)[:n], 0)),
            ]
        with m.Elif(self.selected.valid):
            m.d.sync += have_after.eq(1)
        return coming, have, stays, moved

    def _contexts(
        self, m: Module, ahead: Signal, free: Signal, gives: Signal, places: Signal
    ) -> None:
        """Counts the tuples of each epoch that are in flight, and says which context is next."""
        config = self.config
        most = (config.streams * self.layouts.levels * (config.probe_fifo_depth + IN_FLIGHT)
                + config.output_fifo_depth + IN_FLIGHT + 2 * config.streams + 1)  # fmt: skip
        within = CONTEXT_BITS - EPOCH_BITS
        active = Signal(1 << EPOCH_BITS)
        oldest, epoch, open_ = Signal(EPOCH_BITS), ahead[within:], ahead[:within] != 0
        # Done is counted two cycles later than sent, after what a probe sent last; that only keeps
        # a context longer. A raw tuple is counted when it is offered to the router.
        sent, sent_context = Signal.like(self.sent), Signal.like(self.sent_context)
        m.d.sync += [sent.eq(self.sent), sent_context.eq(self.sent_context)]
        done, done_contexts = self.done, self.done_contexts
        for stage in range(3):
            later = Signal.like(done, name=f"done{stage}")
            later_contexts = Signal.like(done_contexts, name=f"done_contexts{stage}")
            m.d.sync += [later.eq(done), later_contexts.eq(done_contexts)]
            done, done_contexts = later, later_contexts
        finished = Signal(1 << EPOCH_BITS)
        for number in range(1 << EPOCH_BITS):
            count = Signal(ceil_log2(most) + 2, name=f"in_flight_{number}")
            more = Mux(sent_context[within:] == number, sent, 0)
            begins = Signal(name=f"begins_{number}")  # with `snapshot`, of a context of this epoch
            m.d.sync += begins.eq(gives & (epoch == number))
            less = sum(
                done[i] & (done_contexts[i][within:] == number) for i in range(config.streams + 1)
            )
            # A cycle later, all of it: a sum of so many would be a long way for one.
            change, began = (
                Signal(signed(len(count)), name=f"change_{number}"),
                Signal(name=f"began_{number}"),
            )
            m.d.sync += [change.eq(more + Mux(begins, places, 0) - less), began.eq(begins)]
            m.d.sync += count.eq(count + change)
            given = gives & (epoch == number)
            m.d.sync += finished[number].eq(
                active[number] & (count == 0) & ~began & ~begins & ~given
            )
        ends, skips = Signal(), Signal()
        m.d.comb += [
            self.busy.eq(active.bit_select(oldest, 1)),
            self.oldest.eq(Cat(Const(0, within), oldest)),
            ends.eq(self.busy & finished.bit_select(oldest, 1)),
            skips.eq(ends & open_ & (epoch == oldest)),
        ]
        m.d.comb += free.eq((open_ | ~active.bit_select(epoch, 1)) & ~skips)
        with m.If(gives):
            m.d.sync += [active.bit_select(epoch, 1).eq(1), ahead.eq(ahead + 1)]
        with m.Elif(skips):
            m.d.sync += ahead.eq(Cat(Const(0, within), (epoch + 1)[:EPOCH_BITS]))
        with m.If(ends & ~(open_ & (epoch == oldest))):
            m.d.sync += [active.bit_select(oldest, 1).eq(0), oldest.eq(oldest + 1)]
