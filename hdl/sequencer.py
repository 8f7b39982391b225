"""Sequencer: admits raw tuples one after the other, each with its own view of the windows."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.config import DeviceConfig
from seustream.hdl.contexts import Contexts
from seustream.hdl.layouts import CONTEXT_BITS, OFFERS, STREAM_BITS, Layouts
from seustream.hdl.ports import Meter, RawOffers, RawProbes, TupleArrivals, TupleDone

_NEAR_BITS = 5
"""Most significant bits that must agree for two timestamps, or two sequence numbers, to count as near."""
_WAITING = 4
"""Raw tuples held here at once: three, and one that goes to the windows."""
_FLOWED = 5
"""Cycles after which the windows have processed what flowed past and report whether they are settled. `flow` goes low
a cycle earlier."""


class Sequencer(wiring.Component):
    """Processes each raw tuple in two phases. First it advances the clock and the counters, lets every window drop
    its dead tuples, and lets the tuple's own window make room. Then it stores the tuple, has every window record
    its view, and sends the tuple out as a probe. Meanwhile it begins with the next one, whose time the windows
    know by then. While all windows are `calm`, raw tuples flow: none waits for the windows to settle, and these
    drop their dead later. The last tuple that flowed is followed by a check of its own. Each tuple goes under a
    number of its own (`Contexts`).

    The windows are far away, so all signals to and from them are registered.

    latency     5 cycles from `selected` to the areas
    throughput  a raw tuple per cycle while they flow, otherwise one in 3 cycles if none has to wait

    selected        in: stream of raw tuples with their selection bits (`Layouts.selected`)
    stores          in, a bit per stream: its tuples are stored; held while raw tuples are here, as are the next two
    groups          in, per stream: number of the source that it shares its sequence numbers with
    destinations    in, per stream: where its tuples go as probes (`Layouts.destination`)
    windows         out, per window (`TupleArrivals`); `check` and `flow` come a cycle early. The oldest context is the
                    first of its epoch
    probes          out, per area (`RawProbes`): the raw tuple, as its view is recorded
    offers          out (`RawOffers`): the raw tuple, from the same cycle on
    snapshot        out: pulse, to the tuple fetch: keep a raw tuple
    context, raw    out: its context, and the tuple (`Layouts.context`), valid with `snapshot`
    sent            in, from the router: number of places that a tuple made by an area went to
    sent_context    in: its context, valid with `sent`
    done            in, per area and the output (`TupleDone`)
    taker           out: stream of the raw tuple in process
    taken_by        out: its sequence number
    taken, tick, dropped   out: pulses, to be counted
    idle            out: nothing was in flight a cycle ago, and nothing has come in
    meter           out (`Meter`): blocked while it waits for a context or the router
    clear           in: pulse: set clock and counters to 0
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
                "windows": Out(TupleArrivals(config)).array(n),
                "probes": Out(RawProbes(config)).array(n),
                "offers": Out(RawOffers(config)),
                "snapshot": Out(1),
                "context": Out(CONTEXT_BITS),
                "raw": Out(layouts.context),
                "sent": In(range(n + 2)),
                "sent_context": In(CONTEXT_BITS),
                "done": In(TupleDone()).array(n + 1),
                "taker": Out(STREAM_BITS),
                "taken_by": Out(layouts.sequence),
                "taken": Out(1),
                "tick": Out(1),
                "dropped": Out(1),
                "idle": Out(1),
                "meter": Out(Meter()),
                "clear": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n, layouts = self.config.streams, self.layouts
        # The next tuple is taken; a copy drives the wide registers, which are placed away from the windows.
        takes, takes_wide = Signal(name="takes"), Signal()
        coming, have = self._coming(m, takes_wide)
        # There is a next tuple, and its clock has been at the windows for one cycle, for two cycles.
        heard_once, heard = Signal(), Signal()
        m.d.sync += [heard_once.eq(have & ~takes_wide), heard.eq(heard_once & ~takes_wide)]
        counters = Signal(data.ArrayLayout(layouts.sequence, n), name="last_ones")
        tuple_ = Signal(layouts.selected)
        raw, then = tuple_.raw, coming.of
        counters_next = Signal.like(counters, name="next_ones")
        m.d.comb += [
            *(
                counters_next[s].eq(Mux(coming.moved[s], then.raw.sequence, counters[s]))
                for s in range(n)
            ),
            self.taker.eq(raw.stream),
            self.taken_by.eq(raw.sequence),
        ]
        # Context of the tuple in process, and whether there is one for a tuple in the next cycle.
        m.submodules.contexts = contexts = Contexts(self.config)
        ahead, numbered = contexts.number, contexts.numbered
        gives, gives_wide = contexts.gives, contexts.gives_wide
        offer = Signal(range(OFFERS))
        m.d.comb += [
            contexts.sent.eq(self.sent),
            contexts.sent_context.eq(self.sent_context),
            contexts.done.eq(Cat(each.commit for each in self.done)),
            contexts.done_contexts.as_value().eq(Cat(each.context for each in self.done)),
        ]
        # To the windows and the areas, a bit for each: the tuple is stored there; it goes there as a probe.
        store, probe = Signal(n, name="store"), Signal(n, name="probe")
        check, flow = Signal(name="check"), Signal(name="flow")
        for s, window in enumerate(self.windows):
            m.d.comb += [
                window.now.eq(then.raw.timestamp),
                window.counter.eq(counters_next[s]),
                window.wanted.eq(coming.wanted[s]),
                window.check.eq(check),
                window.flow.eq(flow),
                window.store.eq(store[s]),
                window.tuple.eq(self.raw.component),
                window.bits.eq(self.raw.bits),
                window.snapshot.eq(self.snapshot),
                window.context.eq(self.context),
                window.busy.eq(contexts.busy),
                window.oldest.eq(contexts.oldest),
            ]
        for area, probes in enumerate(self.probes):
            m.d.comb += [
                probes.push.eq(probe[area]),
                probes.pushed.context.eq(self.context),
                probes.pushed.stream.eq(self.raw.stream),
                probes.pushed.brought.bits.eq(self.raw.bits),
                probes.pushed.brought.attributes.eq(self.raw.component.attributes),
            ]
        leads, kept = Signal(n + 1, name="leads"), Signal(n, name="kept")
        settled = Signal()
        # A different reset value keeps synthesis from merging this copy with `settled`.
        settled_wide = Signal(name="settled_wide", init=1)
        # A check reaches the windows in the same cycle as this register.
        checked = Signal(name="checked")
        rests = Cat(window.rests for window in self.windows)
        passes = Cat(window.passes for window in self.windows)
        each_settled = passes | (rests & ~checked.replicate(n))
        m.d.sync += checked.eq(check)
        m.d.sync += [each.eq(each_settled.all()) for each in (settled, settled_wide)]
        # The tuple is to be probed (`sends`), may go once the windows are settled (`may`), and goes. The first two
        # are found a cycle ahead: after a tuple goes, their inputs do not change until the next one is judged.
        sends, to_send = Signal(name="sends"), Signal(name="to_send")
        may, goes = Signal(name="may", init=1), Signal(name="goes")
        may_wide, goes_wide = Signal(name="may_wide"), Signal()
        calm, rooms = Signal(), Signal(n)
        m.d.sync += [
            calm.eq(Cat(window.calm for window in self.windows).all()),
            rooms.eq(Cat(probes.room for probes in self.probes)),
        ]
        # `flows`: the next tuple flows. `lately`: one flowed recently. `owes`: what flowed is not followed by a check
        # yet. `closes`, `closing`: this check begins; it is in progress.
        flows, lately = Signal(name="flows"), Signal(_FLOWED)
        owes, closes, closing = Signal(name="owes"), Signal(name="closes"), Signal(name="closing")
        quiet = settled & ~lately.any()
        flows_on = Signal()
        m.d.comb += [to_send.eq(sends), flows.eq(have & coming.near & calm)]
        m.d.sync += sends.eq(Mux(flows_on, coming.sends, to_send))
        m.d.comb += check.eq(takes | closes)
        m.d.sync += [store.eq(0), self.snapshot.eq(0), probe.eq(0)]
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
                    self.meter.blocked.eq(settled_wide & ~may_wide),
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
                m.d.comb += [self.meter.blocked.eq(~may_wide), takes_wide.eq(goes_wide & flows)]
                with m.If(goes):
                    m.d.comb += takes.eq(flows)
                    with m.If(~flows):
                        m.next = "WAIT"
        flowing = fsm.ongoing("FLOW")
        m.d.comb += [
            flows_on.eq(takes & flows),
            flow.eq(flows_on | flowing | lately[:-1].any()),
        ]
        m.d.sync += lately.eq(Cat(flowing, lately))
        with m.If(takes | closes):
            m.d.sync += [owes.eq(flows_on), closing.eq(closes)]

        # For a tuple that flows, room is looked up in the cycle before it arrives, in which another may go. Both
        # outcomes are computed ahead and then selected. `granted` is a cycle late, because the router is far away
        # and has only just decided.
        offers = ~self.offers.emit | self.offers.granted
        its = coming.leads.as_value()
        free, free_after = (offers.bit_select((offer + by)[: len(offer)], 1) for by in range(2))
        flow_room = ~(its[:n] & ~rooms).any() & (~its[n] | Mux(gives & leads[n], free_after, free))
        room = ~(leads[:n] & ~rooms).any() & (~leads[n] | free)
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
                contexts.places.eq(sum(leads)),
                probe.eq(leads[:n]),
                offer.eq(offer + leads[n]),
            ]
        with m.If(goes_wide):
            m.d.sync += store.eq(kept)
        # Data for the windows, aligned with the pulses above.
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
                kept.eq(coming.wanted),
                leads.eq(coming.leads),
                counters.eq(counters_next),
                self.taken.eq(~then.raw.filler),
                self.tick.eq(~then.raw.filler & ~then.raw.admit),
                self.dropped.eq(then.raw.admit & ~then.admitted),
                tuple_.eq(then),
            ]
        with m.Elif(closes):
            m.d.sync += kept.eq(0)
        m.d.comb += self.meter.working.eq((~fsm.ongoing("WAIT") | have) & ~self.meter.blocked)
        for number in range(OFFERS):
            reference = self.offers.emitted[number]
            with m.If(self.offers.granted[number]):
                m.d.sync += self.offers.emit[number].eq(0)
            with m.If(gives_wide & leads[n] & (offer == number)):
                m.d.sync += [
                    self.offers.emit[number].eq(1),
                    reference.context.eq(ahead),
                    reference.tag.eq(raw.stream),
                    reference.stream.eq(raw.stream),
                    reference.carries.eq(1 << raw.stream),
                ]
        here = self.selected.valid | have
        follows = self.snapshot | store.any() | owes
        m.d.sync += self.idle.eq(fsm.ongoing("WAIT") & ~(here | follows | contexts.flies))
        with m.If(self.clear):
            m.d.sync += [counters.eq(0), tuple_.eq(0)]
        return m

    def _coming(self, m: Module, takes: Signal) -> tuple[data.View, Signal]:
        """Returns the next raw tuple, and whether there is one. Two entries are held here, so that `ready`
        to the selection unit comes from a register."""
        n, selected, destination = (
            self.config.streams,
            self.layouts.selected,
            self.layouts.destination,
        )
        coming = Signal(
            data.StructLayout(
                {
                    "of": selected,
                    "near": 1,  # in time to the tuple before, and in number to the one before of its stream
                    "moved": n,  # counters that it advances
                    "wanted": n,  # windows in which it is stored
                    "leads": destination,
                    "sends": 1,  # it has a destination, and was admitted
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
        # Last sequence numbers including the tuple that is here; registered every cycle.
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
        return coming, have

    def _attributes(self, m: Module, goes: Value) -> None:
        """Keeps the attributes of waiting tuples in a memory, for no decision depends on them. The registers that
        hold tuples also have an attributes field; it is never read, and synthesis removes it."""
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
