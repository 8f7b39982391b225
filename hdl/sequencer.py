"""Sequencer: brings raw tuples in, one after the other, each with its own view of the windows."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import DeviceConfig
from seustream.hdl.layouts import CONTEXT_BITS, EPOCH_BITS, OFFERS, SELECTIONS, STREAM_BITS, Layouts
from seustream.hdl.probe_fifo import IN_FLIGHT

_NEAR_BITS = 5
"""Highest bits in which times, and sequence numbers, agree that are near each other."""
_WAITING = 4
"""Raw tuples that are here at once: three, and one that goes to the windows."""
_FLOWED = 4
"""Cycles after which windows have dealt with what flowed past, and say whether they are settled."""


class Sequencer(wiring.Component):
    """Per raw tuple: move the clock and the counters, let every window drop its dead and the
    tuple's own make room; then store the tuple, note what every window holds, send the tuple
    to be probed, and meanwhile begin with the next, whose time the windows know by then. While all windows
    are `calm` raw tuples flow: none waits for the windows to settle, which drop their dead when they
    come to it. The last one is followed by a check of its own. Up to 128
    are in flight, each under a context number of its own. What is in flight is counted by epochs of
    eight contexts that follow each other. An epoch is free again when nothing of it is in flight, no
    context of it is to be given, and all older ones are free. When nothing is in flight, the rest of
    an epoch is left out.

    The windows are far away: all that goes to them and comes from them does so by registers.

    latency     5 cycles from `selected` to the areas
    throughput  a raw tuple a cycle while they flow, else in 2 cycles, if none has to wait

    selected            raw tuples with their selection bits
    groups, stores, destinations   tables, per stream
    now, counters, wanted   of the next raw tuple, from a cycle before its `check` on: the clock, the
                        last sequence numbers by stream, and which windows it is stored in
    check, settled      windows: drop the dead and make room for it, in the next cycle; it is so, low from
                        that cycle on
    calm, flow          windows: they have room for some more, and nothing is near the end of what its
                        counters tell; what is checked does not wait for them
    store, tuple, bits  the window to store in, maybe in the cycle after the next one's `check`
    snapshot, context   windows: note what is stored, under this context
    raw                 tuple fetch: the raw tuple, with `snapshot`
    probe               per area: the raw tuple goes there as a probe, with `snapshot`
    rooms               per area: there is room for one more; may be late by `IN_FLIGHT` of them
    emit, emitted, taking, granted   raw tuples that lead to the output to the router, by two offers in turn
    sent, sent_context  router: so many more in flight, made by an area
    done, done_contexts per area, and the output: one less
    busy, oldest        contexts were in flight a cycle ago; the first of the oldest epoch
    taker, taken_by     the raw tuple now dealt with
    taken, tick, dropped   pulses, to be counted
    idle                nothing was in flight a cycle ago, nor has anything come
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
                "calm": In(n),
                "flow": Out(1),
                "store": Out(n),
                "tuple": Out(layouts.component),
                "bits": Out(SELECTIONS),
                "snapshot": Out(1),
                "context": Out(CONTEXT_BITS),
                "raw": Out(layouts.context),
                "probe": Out(n),
                "rooms": In(n),
                "emit": Out(OFFERS),
                "emitted": Out(data.ArrayLayout(layouts.reference, OFFERS)),
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
        # What a tuple goes by, and again for wide registers and the windows, which lie apart.
        takes, takes_wide = Signal(name="takes"), Signal()
        coming, have, stays = self._coming(m, takes_wide)
        # There is one, and the windows have heard of it for a cycle.
        heard = Signal()
        m.d.sync += heard.eq(have & stays)
        counters = Signal(data.ArrayLayout(layouts.sequence, n), name="last_ones")
        tuple_ = Signal(layouts.selected)
        raw, then = tuple_.raw, coming.of
        m.d.comb += [
            self.now.eq(then.raw.timestamp),
            *(
                self.counters[s].eq(Mux(coming.moved[s], then.raw.sequence, counters[s]))
                for s in range(n)
            ),
            self.wanted.eq(coming.wanted),
            self.taker.eq(raw.stream),
            self.taken_by.eq(raw.sequence),
            self.tuple.eq(self.raw.component),
            self.bits.eq(self.raw.bits),
        ]
        # The context of the tuple that is dealt with; whether there is one for the tuple of the next cycle.
        ahead, numbered = Signal(CONTEXT_BITS, name="ahead"), Signal(name="numbered")
        gives, gives_wide = Signal(name="gives"), Signal(name="gives_wide")
        places = Signal(range(n + 2))  # where it goes to, with `snapshot`
        offer = Signal(range(OFFERS))
        flies = self._contexts(m, ahead, numbered, gives, gives_wide, places)
        leads, kept = Signal(n + 1, name="leads"), Signal(n, name="kept")
        settled = Signal()
        # Begun otherwise they stay registers of their own.
        settled_wide = Signal(name="settled_wide", init=1)
        m.d.sync += [each.eq(self.settled.all()) for each in (settled, settled_wide)]
        # It is to be probed; it may go on, once all is settled; it does. The first two are known a cycle
        # ahead: after one goes, what they depend on stays as it is until the next one is judged.
        sends, to_send = Signal(name="sends"), Signal(name="to_send")
        may, goes = Signal(name="may", init=1), Signal(name="goes")
        may_wide, goes_wide = Signal(name="may_wide"), Signal()
        calm, rooms = Signal(), Signal(n)
        m.d.sync += [calm.eq(self.calm.all()), rooms.eq(self.rooms)]
        # One flows; nothing did lately; what flowed is not followed by a check yet; this is that check.
        flows, lately = Signal(name="flows"), Signal(_FLOWED)
        owes, closes, closing = Signal(name="owes"), Signal(name="closes"), Signal(name="closing")
        quiet = settled & ~lately.any()
        flows_on = Signal()
        m.d.comb += [to_send.eq(sends), flows.eq(have & coming.near & calm)]
        m.d.sync += sends.eq(Mux(flows_on, coming.sends, to_send))
        m.d.comb += self.check.eq(takes_wide | closes)
        m.d.sync += [self.store.eq(0), self.snapshot.eq(0), self.probe.eq(0)]
        m.d.sync += [self.taken.eq(0), self.tick.eq(0), self.dropped.eq(0)]
        with m.FSM() as fsm:
            with m.State("WAIT"):
                m.d.comb += [
                    *(each.eq(flows | (heard & quiet)) for each in (takes, takes_wide)),
                    closes.eq(owes & ~have & quiet),
                ]
                with m.If(flows):
                    m.next = "FLOW"
                with m.Elif(takes | closes):
                    m.next = "JUDGE"
            with m.State("JUDGE"):
                m.d.comb += to_send.eq(tuple_.admitted & leads.any() & ~closing)
                m.next = "SETTLE"
            with m.State("SETTLE"):
                m.d.comb += [
                    self.blocked.eq(settled_wide & ~may_wide),
                    takes_wide.eq(goes_wide & (flows | heard)),
                ]
                with m.If(goes):
                    m.d.comb += takes.eq(flows | heard)
                    m.next = "WAIT"
                    with m.If(flows):
                        m.next = "FLOW"
                    with m.Elif(heard):
                        m.next = "JUDGE"
            with m.State("FLOW"):
                m.d.comb += [self.blocked.eq(~may_wide), takes_wide.eq(goes_wide & flows)]
                with m.If(goes):
                    m.d.comb += takes.eq(flows)
                    with m.If(~flows):
                        m.next = "WAIT"
        flowing = fsm.ongoing("FLOW")
        m.d.comb += [
            flows_on.eq(takes & flows),
            self.flow.eq((takes_wide & flows) | flowing | lately.any()),
        ]
        m.d.sync += lately.eq(Cat(flowing, lately))
        with m.If(takes | closes):
            m.d.sync += [owes.eq(flows_on), closing.eq(closes)]

        # One that flows is asked for in the cycle before it is here, in which another may go. Of both
        # all is known before it is known which it is.
        offers = ~self.emit | self.taking | self.granted
        its = coming.leads.as_value()
        flow_room = ~(its[:n] & ~rooms).any() & (~its[n] | offers.all())
        room = ~(leads[:n] & ~rooms).any() & (~leads[n] | offers.bit_select(offer, 1))
        settling = fsm.ongoing("JUDGE") | ((fsm.ongoing("SETTLE") | flowing) & ~goes)
        may_next = Mux(
            flows_on,
            ~coming.sends | (numbered & flow_room),
            (~to_send | (numbered & room)) & settling,
        )
        m.d.sync += [may.eq(may_next), may_wide.eq(may_next)]
        m.d.comb += [
            goes.eq((settled | flowing) & may),
            goes_wide.eq((settled_wide | flowing) & may_wide),
            gives.eq(goes & sends),
            gives_wide.eq(goes_wide & sends),
        ]
        with m.If(gives_wide):
            m.d.sync += [
                self.snapshot.eq(1),
                self.context.eq(ahead),
                places.eq(sum(leads)),
                self.probe.eq(leads[:n]),
                offer.eq(offer + leads[n]),
            ]
        with m.If(goes_wide):
            m.d.sync += self.store.eq(kept)
        # What goes to the windows, with the pulses of that cycle.
        m.d.sync += [
            self.raw.stream.eq(raw.stream),
            self.raw.bits.eq(tuple_.bits),
            self.raw.component.timestamp.eq(raw.timestamp),
            self.raw.component.sequence.eq(raw.sequence),
            self.raw.counters.eq(counters),
        ]
        self._attributes(m, goes_wide & ~closing)
        with m.If(takes_wide):
            m.d.sync += [
                kept.eq(self.wanted),
                leads.eq(coming.leads),
                counters.eq(self.counters),
                self.taken.eq(~then.raw.filler),
                self.tick.eq(~then.raw.filler & ~then.raw.admit),
                self.dropped.eq(then.raw.admit & ~then.admitted),
                tuple_.eq(then),
            ]
        with m.Elif(closes):
            m.d.sync += kept.eq(0)
        m.d.comb += self.working.eq((~fsm.ongoing("WAIT") | have) & ~self.blocked)
        for number in range(OFFERS):
            reference = self.emitted[number]
            with m.If(self.granted[number]):
                m.d.sync += self.emit[number].eq(0)
            with m.If(gives_wide & leads[n] & (offer == number)):
                m.d.sync += [
                    self.emit[number].eq(1),
                    reference.context.eq(ahead),
                    reference.tag.eq(raw.stream),
                    reference.stream.eq(raw.stream),
                    reference.carries.eq(1 << raw.stream),
                ]
        m.d.sync += self.idle.eq(
            fsm.ongoing("WAIT")
            & ~(self.selected.valid | have | flies | self.snapshot | self.store.any() | owes)
        )
        with m.If(self.clear):
            m.d.sync += [counters.eq(0), tuple_.eq(0)]
        return m

    def _coming(self, m: Module, takes: Signal) -> tuple[data.View, Signal, Signal]:
        """Returns the next raw tuple, whether there is one, and in the next cycle. Two wait here, so that a
        register says to the door whether to go on."""
        n, selected, destination = (
            self.config.streams,
            self.layouts.selected,
            self.layouts.destination,
        )
        coming = Signal(
            data.StructLayout(
                {
                    "of": selected,
                    "near": 1,  # in time to the one before, and in number to its stream's one before
                    "moved": n,  # which counters
                    "wanted": n,  # where it is stored
                    "leads": destination,
                    "sends": 1,  # it leads somewhere, and was admitted
                }
            ),
            name="coming",
            reset_less=True,
        )
        after = Signal(selected, name="after", reset_less=True)
        have, have_after = Signal(name="have"), Signal(name="have_after")
        stays = Signal(name="stays")
        loaded, there = Signal.like(after, name="loaded"), Signal(name="there")
        of = loaded.raw.stream
        group = Array(self.groups[s] for s in range(n))[of]
        moved = Cat(self.groups[s] == group for s in range(n))
        leads_to = Signal(destination)
        m.d.comb += leads_to.eq(Array(self.destinations[s] for s in range(n))[of])
        last = Array(Signal(_NEAR_BITS, name=f"last_{s}", reset_less=True) for s in range(n))
        time, number = (
            value[max(0, len(value) - _NEAR_BITS) :]
            for value in (loaded.raw.timestamp, loaded.raw.sequence)
        )
        before = coming.of.raw.timestamp
        # With the one that is here; after each they are taken over.
        now = Array(
            Mux(coming.moved[s], coming.of.raw.sequence[-len(number) :], last[s]) for s in range(n)
        )
        m.d.sync += [last[s].eq(now[s]) for s in range(n)]
        near = (time == before[len(before) - len(time) :]) & (number == now[of])
        m.d.comb += [
            self.selected.ready.eq(~have_after),
            there.eq(have_after | self.selected.valid),
            stays.eq((have & ~takes) | there),
            loaded.eq(Mux(have_after, after, self.selected.payload)),
        ]
        with m.If(~have_after):
            m.d.sync += after.eq(self.selected.payload)
        m.d.sync += have.eq(stays)
        with m.If((~have | takes) & there):
            m.d.sync += [
                have_after.eq(0),
                coming.of.eq(loaded),
                coming.near.eq(near & ~loaded.raw.filler),
                coming.moved.eq(moved),
                coming.wanted.eq(Mux(loaded.admitted, self.stores & (1 << of)[:n], 0)),
                coming.leads.eq(leads_to),
                coming.sends.eq(loaded.admitted & leads_to.as_value().any()),
            ]
        with m.Elif(~have | takes):
            m.d.sync += coming.wanted.eq(0)
        with m.Elif(self.selected.valid):
            m.d.sync += have_after.eq(1)
        return coming, have, stays

    def _attributes(self, m: Module, goes: Value) -> None:
        """Keeps the attributes of those that wait here, which go past all that is decided by. The registers of
        the rest of a tuple have a copy that goes unread, which synthesis leaves out."""
        m.submodules.attributes = kept = memory.Memory(
            shape=self.layouts.attributes, depth=_WAITING, init=[]
        )
        write, read = kept.write_port(), kept.read_port(domain="comb")
        put, got = (Signal(range(_WAITING), name=name) for name in ("put", "got"))
        m.d.comb += [
            write.addr.eq(put),
            write.data.eq(self.selected.payload.raw.attributes),
            write.en.eq(self.selected.valid & self.selected.ready),
            read.addr.eq(got),
        ]
        m.d.sync += [
            put.eq(put + write.en),
            got.eq(got + goes),
            self.raw.component.attributes.eq(read.data),
        ]

    def _contexts(
        self,
        m: Module,
        ahead: Signal,
        numbered: Signal,
        gives: Signal,
        gives_wide: Signal,
        places: Signal,
    ) -> Value:
        """Counts the tuples of each epoch that are in flight, and says which context is next. Returns
        whether any is in flight."""
        config = self.config
        most = (config.streams * self.layouts.levels * (config.probe_fifo_depth + IN_FLIGHT)
                + config.output_fifo_depth + IN_FLIGHT + 2 * config.streams + 1)  # fmt: skip
        within = CONTEXT_BITS - EPOCH_BITS
        active = Signal(1 << EPOCH_BITS)
        oldest, epoch, open_ = Signal(EPOCH_BITS), ahead[within:], ahead[:within] != 0
        here = Signal(1 << EPOCH_BITS, init=1, name="here")  # the same, decoded
        gave, was_here = Signal(name="gave"), Signal.like(here)  # of the cycle before
        m.d.sync += [gave.eq(gives_wide), was_here.eq(here)]
        # Done is counted two cycles later than sent, after what a probe sent last; that only keeps
        # a context longer. A raw tuple is counted when it goes.
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
            m.d.comb += begins.eq(gave & was_here[number])
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
            m.d.sync += finished[number].eq(active[number] & (count == 0) & ~began & ~begins)
        # That one is finished comes late: one was given meanwhile, or it is about the epoch before.
        of_oldest, moved, ends, skips = Signal(), Signal(), Signal(), Signal()
        late = moved | (gave & of_oldest)
        m.d.sync += [of_oldest.eq(epoch == oldest), self.busy.eq(active.any())]
        m.d.comb += [
            self.oldest.eq(Cat(Const(0, within), oldest)),
            ends.eq(finished.bit_select(oldest, 1) & ~late),
            skips.eq(ends & open_ & (epoch == oldest)),
        ]
        # Whether this context is free, and the next epoch. Where the rest of one is left out all others are.
        crosses, free, next_free = (
            ahead[:within].all(),
            Signal(name="free"),
            Signal(name="next_free"),
        )
        m.d.sync += [
            free.eq(Mux(gives, ~crosses | next_free, open_ | ~(active & here).any())),
            next_free.eq(~(active & here.rotate_left(1)).any()),
        ]
        m.d.comb += numbered.eq(Mux(gives, ~crosses | next_free, free))
        with m.If(Mux(gives, crosses, skips)):
            m.d.sync += here.eq(here.rotate_left(1))
        with m.If(gives):
            m.d.sync += ahead.eq(ahead + 1)
        with m.Elif(skips):
            m.d.sync += ahead.eq(Cat(Const(0, within), (epoch + 1)[:EPOCH_BITS]))
        ended, moves = Signal(1 << EPOCH_BITS), ends & ~(open_ & (epoch == oldest))
        m.d.sync += moved.eq(moves)
        with m.If(moves):
            m.d.comb += ended.eq(1 << oldest)
            m.d.sync += oldest.eq(oldest + 1)
        m.d.sync += active.eq((active & ~ended) | Mux(gives_wide, here, 0))
        return active.any()
