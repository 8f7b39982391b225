"""Window buffer: stores the tuples of one stream in a ring."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Array, Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, enum, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import DeviceConfig
from seustream.hdl.layouts import CONTEXT_BITS, CONTEXTS, SELECTIONS, Layouts
from seustream.hdl.ports import Meter, Rewriting, TupleArrivals, WindowReading

_JUDGED, _PLACES, _AT_HAND = 3, 4, 8
"""Oldest tuples that are decided on together, places (registers) for them, and depth of the queue behind the places."""
_MARGIN = 8
"""Raw tuples that may still arrive after `calm` was last seen high, plus one or two."""
_YOUNG_BITS = 3
"""Most significant bits of an age, all 0 in a young tuple: its age then stays below half the range, whatever
arrives in the meantime."""


class RangeKind(enum.Enum, shape=2):
    """Retention by age: the age at which a tuple is dead."""

    NONE = 0  # dead at once, unless its rank keeps it
    TICKS = 1  # dead when older than `ticks`
    FOREVER = 2


class WindowBuffer(wiring.Component):
    """Stores tuples in a ring of `depth` slots and evicts them in order of arrival.

    The attributes are in banks, from which the factor array reads `lanes` tuples per cycle; in
    a cycle in which attributes are fetched it reads nothing.
    Head and tail have one bit more than a slot number, so that head - tail is the number stored.

    *Eviction.* The oldest tuples are held in registers, with the clock and the sequence number from which on
    they are dead. While the window is settled, four of them are judged against the next raw tuple, in two cycles;
    on `check` the dead ones leave at once, at most two. A tuple leaves through `leaving` if some window still
    reaches it but the counters could soon no longer resolve its age or rank, or if it exceeds the `capacity` when
    another one is to be stored.
    *Contexts.* On `snapshot` the view of a raw tuple is recorded under its context number: the tuples stored
    so far, without the raw tuple itself. A slot is not overwritten while the oldest context in flight can still
    see it: the window settles later instead, but only when the slots beyond the capacity do not suffice for the
    tuples stored in the meantime.

    latency     check: settled in the same cycle if at most two tuples leave and none was found dead just
                before; otherwise 2 or more cycles later, because tuples are read one per cycle;
                fetch and row: data 3 cycles after the address
    throughput  one stored tuple, one fetch and one row per cycle

    arrivals     in (`TupleArrivals`). The window is not settled from `check` on until all dead tuples have left and, if one
                 is to be stored, there is room for it; after `flow` this may come a cycle late. A tuple can be read
                 two cycles after its `store`
    written      out: slot in which the tuple is stored, valid with `arrivals.store`
    forget       in: pulse: the retention has changed, and nothing is in flight
    leaving      out: stream of sequence numbers of tuples that leave early
    context      in: a context; it may be asked for from two cycles after its view was recorded
    tail, count  out: slot of the oldest tuple in its view, and number of tuples there, 2 cycles after `context`
    reading      in (`WindowReading`)
    row          in: number of a row of the banks
    tuples       out: attributes of the tuples of that row, 3 cycles later, except after `reading.whole`
    hit          in: a slot, valid with `hit_take`
    hit_take     in: read the selection bits at `hit`
    hit_bits     out: these bits, from the next cycle until the next `hit_take`
    rewriting    in (`Rewriting`): the new bits can be read two cycles later
    kind         in: kind of the retention (`RangeKind`), held
    ticks, rows  in: greatest age, and number of tuples that are kept whatever their age, held
    clear        in: pulse: empty the window
    occupancy    out: number of tuples stored, the distance of the pointers
    meter        out (`Meter`): blocked while a leaving tuple is not accepted yet, or no slot is free
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        self.banks = max(1, config.lanes)
        self.row_bits = layouts.slot_bits - (self.banks.bit_length() - 1)
        slot, pointer = layouts.slot_bits, layouts.pointer_bits
        super().__init__(
            {
                "arrivals": In(TupleArrivals(config)),
                "written": Out(slot),
                "forget": In(1),
                "leaving": Out(stream.Signature(layouts.sequence)),
                "context": In(CONTEXT_BITS),
                "tail": Out(slot),
                "count": Out(pointer),
                "reading": In(WindowReading(config)),
                "row": In(self.row_bits),
                "tuples": Out(data.ArrayLayout(layouts.attributes, self.banks)),
                "hit": In(slot),
                "hit_take": In(1),
                "hit_bits": Out(SELECTIONS),
                "rewriting": In(Rewriting(config)),
                "ticks": In(layouts.timestamp),
                "kind": In(RangeKind),
                "rows": In(layouts.sequence),
                "clear": In(1),
                "occupancy": Out(pointer),
                "meter": Out(Meter()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._head = Signal(self.layouts.pointer_bits)
        self._tail = Signal(self.layouts.pointer_bits)
        self._stored_now = Signal(self.layouts.pointer_bits)
        # One more tuple is to be stored; this became so in this cycle.
        self._due, self._falls_due = Signal(name="_due"), Signal(name="_falls_due")
        m.d.comb += [self.rewriting.first.eq(self._tail), self.rewriting.end.eq(self._head)]
        m.d.comb += self.occupancy.eq(self._stored_now)
        self._memories(m)
        self._contexts(m)
        self._eviction(m)
        return m

    def _memories(self, m: Module) -> None:
        layouts, depth = self.layouts, self.config.depth
        slot = self._head[: layouts.slot_bits]
        m.d.comb += self.written.eq(slot)
        self._oldest_slot = Signal(layouts.slot_bits)  # read for the eviction
        # Memory inputs are registered, because the block RAM is far from the requesters. No tuple is
        # read in the cycle after it was stored.
        store, place = Signal(), Signal(layouts.slot_bits)
        arrived = Signal(layouts.component, reset_less=True)
        m.d.sync += [store.eq(self.arrivals.store), place.eq(slot), arrived.eq(self.arrivals.tuple)]
        stamp_slot = Signal(layouts.slot_bits)
        row = Signal(self.row_bits)
        bank_bits = layouts.slot_bits - self.row_bits
        m.d.sync += [
            stamp_slot.eq(Mux(self.reading.fetching, self.reading.slot, self._oldest_slot)),
            row.eq(Mux(self.reading.whole, self.reading.slot[bank_bits:], self.row)),
        ]

        m.submodules.stamps = stamps = memory.Memory(shape=layouts.stamp, depth=depth, init=[])
        write, read = stamps.write_port(), stamps.read_port()
        m.d.comb += [
            write.addr.eq(place),
            write.data.timestamp.eq(arrived.timestamp),
            write.data.sequence.eq(arrived.sequence),
            write.en.eq(store),
            read.addr.eq(stamp_slot),
            read.en.eq(1),
        ]
        self._stamp = read.data
        m.d.sync += [
            self.reading.component.timestamp.eq(read.data.timestamp),
            self.reading.component.sequence.eq(read.data.sequence),
        ]

        m.submodules.selections = selections = memory.Memory(
            shape=unsigned(SELECTIONS), depth=depth, init=[]
        )
        write, read = selections.write_port(), selections.read_port()
        m.d.sync += [
            write.addr.eq(Mux(self.rewriting.rewrite, self.rewriting.slot, slot)),
            write.data.eq(Mux(self.rewriting.rewrite, self.rewriting.bits, self.arrivals.bits)),
            write.en.eq(self.arrivals.store | self.rewriting.rewrite),
        ]
        m.d.comb += [
            read.addr.eq(self.hit),
            read.en.eq(self.hit_take),
            self.hit_bits.eq(read.data),
        ]

        # The low bits of a slot select the bank, so that a row holds `banks` consecutive tuples. On a
        # fetch all banks but one output 0, and the outputs are ORed: a multiplexer of that width would
        # pull all banks to one place on the chip.
        fetching, bank_of = Signal(), Signal(bank_bits)
        m.d.sync += [fetching.eq(self.reading.whole), bank_of.eq(self.reading.slot[:bank_bits])]
        fetched = [self.tuples[bank].as_value() for bank in range(self.banks)]
        m.d.comb += self.reading.component.attributes.eq(reduce(or_, fetched))
        for bank in range(self.banks):
            m.submodules[f"bank{bank}"] = one = memory.Memory(
                shape=layouts.attributes, depth=depth // self.banks, init=[]
            )
            write, read = one.write_port(), one.read_port()
            m.d.comb += [
                write.addr.eq(place[bank_bits:]),
                write.data.eq(arrived.attributes),
                write.en.eq(store & (place[:bank_bits] == bank)),
                read.addr.eq(row),
                read.en.eq(1),
            ]
            other = Signal(name=f"other_than{bank}")
            m.d.sync += other.eq(fetching & (bank_of != bank))
            m.d.sync += self.tuples[bank].eq(Mux(other, 0, read.data))

    def _contexts(self, m: Module) -> None:
        pointer = self.layouts.pointer_bits
        view = data.StructLayout({"tail": pointer, "first": pointer, "count": pointer})
        m.submodules.views = views = memory.Memory(shape=view, depth=CONTEXTS, init=[])
        write, asked, oldest = views.write_port(), *(views.read_port() for _ in "12")
        # Registers before and after the memory let the counters be placed near the eviction, not near this memory.
        noted, context, note = Signal(view), Signal(CONTEXT_BITS), Signal()
        # If only their rank keeps tuples, no more than `rows` of them are alive; the view leaves out those that
        # are dead but have not left yet.
        ranks = self.rows[:pointer]
        ranked = Signal()
        m.d.sync += ranked.eq((self.kind == RangeKind.NONE) & ~self.rows[pointer - 1 :].any())
        more = ranked & (self._stored_now > ranks)
        m.d.sync += [
            noted.tail.eq(self._tail),
            noted.first.eq(Mux(more, self._head - ranks, self._tail)),
            noted.count.eq(Mux(more, ranks, self._stored_now)),
            context.eq(self.arrivals.context),
            note.eq(self.arrivals.snapshot),
        ]
        late_oldest = Signal(CONTEXT_BITS)
        m.d.sync += late_oldest.eq(self.arrivals.oldest)
        m.d.comb += [
            write.addr.eq(context),
            write.data.eq(noted),
            write.en.eq(note),
            asked.addr.eq(self.context),
            oldest.addr.eq(late_oldest),
            *(port.en.eq(1) for port in (asked, oldest)),
        ]
        m.d.sync += [self.tail.eq(asked.data.first), self.count.eq(asked.data.count)]
        # First slot that must not be overwritten: the oldest context still sees it.
        self._room = Signal()
        busy, tail = Signal(2), Signal(pointer)
        kept_from = Signal(pointer)
        held = Signal(pointer)
        due = Signal()
        m.d.sync += [busy.eq(Cat(self.arrivals.busy, busy)), tail.eq(noted.tail), due.eq(self._due)]
        m.d.comb += kept_from.eq(Mux(busy[-1], oldest.data.tail, tail))
        # Registers are safe: the oldest context only moves forward, so a stale value errs towards waiting.
        # A tuple that is due counts, too; `due` is of the same cycle as `held`.
        m.d.sync += held.eq(self._head - kept_from)
        depth, capacity = self.config.depth, self.config.capacity
        most = Array((depth, depth - 1, depth - 1, depth - 2))[Cat(due, self._falls_due)]
        m.d.sync += self._room.eq(held != most)
        # If only their rank keeps tuples, no more than `rows` of them are alive.
        self._spare, bounded = Signal(), Signal()
        m.d.sync += bounded.eq((self.kind == RangeKind.NONE) & (self.rows <= capacity))
        few = bounded | (self._stored_now <= capacity - _MARGIN)
        spare = (held < depth - _MARGIN) & few
        m.d.sync += self._spare.eq(spare if capacity > _MARGIN else 0)

    def _eviction(self, m: Module) -> None:
        layouts = self.layouts
        entry = data.StructLayout(
            {
                "timestamp": layouts.timestamp,
                "sequence": layouts.sequence,
                "dead_at": layouts.timestamp,  # clock from which on no window reaches its age
                "dead_from": layouts.sequence,  # sequence number from which on none reaches its rank
            }
        )
        # The oldest tuples are in a ring of places and stay in place until they leave: no wide register is
        # shifted, and each verdict stays beside its tuple.
        places = [Signal(entry, name=f"oldest{i}", reset_less=True) for i in range(_PLACES)]
        there = Signal(_PLACES)
        first_place = Signal(_PLACES, init=1)  # one-hot, the place of the oldest
        # Number of tuples that leave; tail and occupancy follow a cycle later.
        leave = Signal(range(_JUDGED))
        gone_now = Signal(range(_JUDGED))
        m.d.sync += gone_now.eq(leave)
        kept = Signal(_PLACES)
        m.d.comb += kept.eq(
            there
            & ~Mux(leave == 0, 0, first_place)
            & ~Mux(leave == 2, first_place.rotate_left(1), 0)
        )
        m.d.sync += first_place.eq(
            Array(first_place.rotate_left(by) for by in range(_JUDGED))[leave]
        )
        self._prefetch(m, places, there, first_place, kept, gone_now)

        # Clock and counter that the tuples are judged against: those of the check that is not settled yet, else
        # of the next one. Each place has its own copy, because so many subtractors do not fit in one spot. Two
        # copies reset to ones and two are stored inverted, so that synthesis does not merge them.
        nows, counters = (
            [
                Signal(one.shape(), name=f"judged_{name}{i}", init=(i & 1) * ((1 << len(one)) - 1))
                for i in range(_PLACES)
            ]
            for name, one in (("now", self.arrivals.now), ("counter", self.arrivals.counter))
        )
        wanted = Signal(name="judged_wanted")
        past, checked = (Signal.like(self.arrivals.now, name=name) for name in ("past", "checked"))
        counter_past, counter_checked = (
            Signal.like(self.arrivals.counter, name=name)
            for name in ("counter_past", "counter_checked")
        )
        m.d.sync += [past.eq(self.arrivals.now), counter_past.eq(self.arrivals.counter)]
        # This includes a tuple that flows past meanwhile: what was stored since must not be judged against an
        # earlier one.
        with m.If(self.arrivals.check):
            m.d.sync += [checked.eq(past), counter_checked.eq(counter_past)]
        # `by_next`: the tuples are about to be judged against the next check; `by_checked`: they were not, one and
        # two cycles ago; `fresh`: the check has just begun, and once more they are judged against the one after it.
        by_next, fresh = Signal(), Signal()
        by_checked = Signal(2)
        m.d.sync += by_checked.eq(Cat(~by_next, by_checked))
        for kept_by, value, earlier in (
            (nows, self.arrivals.now, checked),
            (counters, self.arrivals.counter, counter_checked),
        ):
            for i, one in enumerate(kept_by):
                its = Mux(by_next, value, earlier)
                m.d.sync += one.eq(~its if i & 2 else its)
        settled = Signal(name="settled")
        m.d.comb += settled.eq(self.arrivals.passes | (self.arrivals.rests & ~self.arrivals.check))
        with m.If(settled):
            m.d.sync += wanted.eq(self.arrivals.wanted)
        with m.If(self.arrivals.check & self.arrivals.flow):
            m.d.sync += wanted.eq(0)

        # Verdicts by place, of the cycle before: the tuple is dead; it stays; it is late (some window reaches it, but
        # half the counter range has passed); it is young. They are valid where `sure` is set.
        judging = Signal()
        sure = Signal(_PLACES)
        found_dead, found_half = Signal(_PLACES), Signal(_PLACES)
        found = {
            "dead": found_dead,
            "stays": ~found_dead & ~found_half,
            "late": ~found_dead & found_half,
        }
        is_young = Signal(_PLACES)
        m.d.sync += sure.eq(Mux((fresh & judging) | self.clear | self.forget, 0, kept))
        for i, (it, now, counter) in enumerate(zip(places, nows, counters, strict=True)):
            now, counter = (~one if i & 2 else one for one in (now, counter))
            age, rank = (
                (now - it.timestamp)[: layouts.timestamp],
                (counter - it.sequence)[: layouts.sequence],
            )
            in_time = (now - it.dead_at)[layouts.timestamp - 1]
            in_rank = (counter - it.dead_from)[layouts.sequence - 1]
            too_old = (self.kind == RangeKind.NONE) | (
                (self.kind == RangeKind.TICKS) & (age[-1] | ~in_time)
            )
            m.d.sync += [
                found_dead[i].eq(too_old & (rank[-1] | ~in_rank)),
                found_half[i].eq(age[-1] | rank[-1]),
                is_young[i].eq(~(age[-_YOUNG_BITS:].any() | rank[-_YOUNG_BITS:].any())),
            ]

        # The same verdicts for the three oldest tuples. Those that follow move up when some leave. After a tuple
        # leaves by `leaving` all are judged anew, which keeps the external handshake off this path. Verdicts of the
        # check before still say for the next one which tuples are dead, but not which stay.
        dead, stays_at, late = (Signal(_JUDGED, name=name) for name in ("dead", "stays_at", "late"))
        full = Signal()
        judges_on, goes = Signal(), Signal(range(_JUDGED))
        stored = self._stored_now
        # Bit j: exactly j tuples were stored or due a cycle ago, found without the sum. If some have left since, or
        # one has fallen due, this is not known yet.
        few_were, unchanged = Signal(_PLACES), (gone_now == 0) & ~self._falls_due
        low, still = stored[:3], (gone_now == 0) & ~stored[3:].any()
        for j in range(_PLACES):
            m.d.sync += few_were[j].eq(still & Mux(self._due, (low == j - 1) if j else 0, low == j))
        holds = ~(by_checked[1] & ~judging & ~self.arrivals.flow)
        for verdict, name in ((dead, "dead"), (stays_at, "stays"), (late, "late")):
            inside = Signal(_PLACES, name=f"from_first_{name}")
            for j in range(_PLACES):
                at = first_place.rotate_left(j)
                said = (at & sure & found[name]).any()
                if verdict is stays_at:
                    said = (said & holds) | (few_were[j] & unchanged)
                elif verdict is late:
                    said = said & holds
                m.d.comb += inside[j].eq(said)
            for i in range(_JUDGED):
                those = [(goes == by) & inside[i + by] for by in range(min(_JUDGED, _PLACES - i))]
                m.d.sync += verdict[i].eq(judges_on & Cat(those).any())
        # The window is no longer full when some leave; while there is no room nothing else is stored.
        fills = Array(stored == self.config.capacity + more for more in range(-1, _JUDGED))
        m.d.sync += full.eq(fills[1 + gone_now - self._due] & (leave == 0))
        # Tuples behind these are younger still.
        young = Signal()
        with m.If(stored == 0):
            m.d.sync += young.eq(1)
        with m.Elif(sure.any()):
            m.d.sync += young.eq((~sure | is_young).all())
        m.d.comb += self.arrivals.calm.eq(young & self._spare)

        # The dead tuples in front of the first that is not dead.
        gone, stays = Signal(range(_JUDGED)), Signal()
        m.d.comb += [
            gone.eq(Mux(dead[0], Mux(dead[1], 2, 1), 0)),
            stays.eq(Mux(dead[0], Mux(dead[1], stays_at[2], stays_at[1]), stays_at[0])),
        ]

        room, room_now = Signal(), Signal()
        m.d.comb += [
            room.eq(~wanted | self.arrivals.flow | (self._room & ~full)),
            # ... already in the cycle in which the dead leave.
            room_now.eq(~wanted | (self._room & (~full | dead[0]))),
            self.leaving.payload.eq(
                reduce(
                    or_,
                    (Mux(at, it.sequence, 0) for at, it in zip(first_place, places, strict=True)),
                )
            ),
        ]
        settles = Signal()
        taken = Signal(name="taken")
        with m.FSM() as fsm:
            for name in ("SETTLED", "JUDGE"):
                with m.State(name):
                    with m.If(self.arrivals.check if name == "SETTLED" else 1):
                        m.next = "JUDGE"
                        m.d.comb += [
                            goes.eq(gone),
                            leave.eq(gone),
                            settles.eq(stays & (room_now | self.arrivals.flow)),
                        ]
                        with m.If(settles):
                            m.next = "SETTLED"
                        with m.Elif(stays):
                            m.next = "ROOM"
                        with m.Elif(late[0]):
                            m.next = "LEAVE"
            with m.State("ROOM"):
                m.d.comb += settles.eq(room)
                with m.If(room):
                    m.next = "SETTLED"
                with m.Elif(full & (first_place & there).any()):
                    m.next = "DISPLACE"
            # The receiver is far away, and `leave` has a high fan-out: the tuple leaves a cycle after the handshake.
            with m.State("LEAVE"):
                m.d.comb += self.leaving.valid.eq(~taken)
                with m.If(taken):
                    m.d.comb += leave.eq(1)
                    m.next = "JUDGE"
            with m.State("DISPLACE"):
                m.d.comb += self.leaving.valid.eq(~taken)
                with m.If(taken):
                    m.d.comb += [leave.eq(1), settles.eq(self._room)]
                    m.next = "ROOM"
                    with m.If(settles):
                        m.next = "SETTLED"
        m.d.comb += [
            judging.eq(fsm.ongoing("JUDGE")),
            self.arrivals.rests.eq(fsm.ongoing("SETTLED")),
            judges_on.eq(self.arrivals.rests | judging),
            self.arrivals.passes.eq(judges_on & stays & room_now),
            by_next.eq(~(judging | fsm.ongoing("LEAVE"))),
        ]
        m.d.sync += taken.eq(self.leaving.valid & self.leaving.ready)
        waits = (fsm.ongoing("ROOM") & ~room & ~full) | (self.leaving.valid & ~self.leaving.ready)
        m.d.comb += self.meter.blocked.eq(waits)
        m.d.sync += fresh.eq(self.arrivals.rests)
        falls_due = settles & wanted & ~self.arrivals.flow
        m.d.sync += self._falls_due.eq(falls_due)
        with m.If(settles):
            m.d.sync += self._due.eq(falls_due)
        with m.Elif(self.arrivals.store | self.clear):
            m.d.sync += self._due.eq(0)
        looks = self.arrivals.check | ~self.arrivals.rests
        m.d.comb += self.meter.working.eq(looks & ~self.meter.blocked)
        pointer = self.layouts.pointer_bits
        changed = {by: (self._stored_now + by)[:pointer] for by in range(1 - _JUDGED, 2)}
        m.d.sync += [
            self._tail.eq(self._tail + gone_now),
            self._head.eq(self._head + self.arrivals.store),
            # Distance of the two, as a counter of its own: a subtraction would come late. So does `store`, which
            # therefore only selects.
            self._stored_now.eq(
                Mux(
                    self.arrivals.store,
                    Array(changed[1 - by] for by in range(_JUDGED))[gone_now],
                    Array(changed[-by] for by in range(_JUDGED))[gone_now],
                )
            ),
        ]
        with m.If(self.clear):
            m.d.sync += [self._head.eq(0), self._tail.eq(0), self._stored_now.eq(0)]

    def _prefetch(
        self,
        m: Module,
        places: list[Signal],
        there: Signal,
        first: Signal,
        kept: Signal,
        left: Signal,
    ) -> None:
        """Refills the places from a queue, and the queue from the memory."""
        pointer, bits = self.layouts.pointer_bits, ceil_log2(_AT_HAND)
        asked = Signal(pointer)  # the tuple to be read next
        ahead = Signal(bits + 1)  # tuples from the tail on that are at hand or being read
        asks = Signal()
        on_its_way = Signal(3)
        m.d.comb += [
            asks.eq(~self.reading.fetching & (asked != self._head) & ~ahead[-1]),
            self._oldest_slot.eq(asked[: self.layouts.slot_bits]),
        ]
        # Pipeline stages: address, memory, stamp.
        m.d.sync += [
            on_its_way.eq(Cat(asks, on_its_way[:-1])),
            asked.eq(asked + asks),
            ahead.eq(ahead + asks - left),
        ]
        m.submodules.at_hand = at_hand = memory.Memory(
            shape=places[0].shape(), depth=_AT_HAND, init=[]
        )
        write, read = at_hand.write_port(), at_hand.read_port(domain="comb")
        put, got = (Signal(bits + 1, name=name) for name in ("put", "got"))
        next_place = Signal(_PLACES, init=1)
        arrives_at = Signal(_PLACES)
        m.d.comb += [
            arrives_at.eq(Mux(got != put, next_place & ~there, 0)),
            write.addr.eq(put[:-1]),
            write.en.eq(on_its_way[-1]),
            write.data.timestamp.eq(self.reading.component.timestamp),
            write.data.sequence.eq(self.reading.component.sequence),
            write.data.dead_at.eq(self.reading.component.timestamp + self.ticks + 1),
            write.data.dead_from.eq(self.reading.component.sequence + self.rows),
            read.addr.eq(got[:-1]),
        ]
        for it, arrives in zip(places, arrives_at, strict=True):
            with m.If(arrives):
                m.d.sync += it.eq(read.data)
        m.d.sync += [
            put.eq(put + on_its_way[-1]),
            got.eq(got + arrives_at.any()),
            there.eq(kept | arrives_at),
        ]
        with m.If(arrives_at.any()):
            m.d.sync += next_place.eq(next_place.rotate_left(1))
        with m.If(self.clear | self.forget):
            m.d.sync += [
                Cat(on_its_way, ahead, put, got, there).eq(0),
                next_place.eq(first),
                asked.eq(Mux(self.clear, 0, self._tail)),
            ]
