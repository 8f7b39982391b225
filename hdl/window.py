"""Window buffer: the stored tuples of one stream, as a ring."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Array, Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, enum, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import DeviceConfig
from seustream.hdl.layouts import CONTEXT_BITS, CONTEXTS, SELECTIONS, Layouts

_JUDGED, _PLACES, _AT_HAND = 3, 4, 8
"""Oldest tuples that are decided on together, places for such, and how many wait for a place."""
_MARGIN = 8
"""Raw tuples that may still come after `calm` was last seen high, and one or two more."""
_YOUNG_BITS = 3
"""Highest bits of an age, none of which is set in a young one: it stays below a half, whatever comes
meanwhile."""


class RangeKind(enum.Enum, shape=2):
    """Verdict of a tuple's age."""

    NONE = 0  # dead at once, unless its rank keeps it
    TICKS = 1  # dead beyond so many ticks
    FOREVER = 2


class WindowBuffer(wiring.Component):
    """A ring of `depth` tuples with eviction in order of arrival.

    The attributes are in banks, from which the factor array reads `lanes` tuples a cycle; in
    a cycle in which attributes are fetched it reads nothing.
    Head and tail have one bit more than a slot, so that head - tail is the number stored.

    *Eviction.* The oldest tuples are kept at hand, with the time and the number from which on they
    are dead. While the window is settled four of them are judged by what comes next, in two cycles, and with
    `check` those that are dead leave at once, two at most. One that some window still reaches, but whose age or rank
    the counters could soon no longer tell, or that is one more than the window may keep
    (`capacity`) when a tuple is to be stored, leaves by `leaving`.
    *Contexts.* With `snapshot` the view of a raw tuple is kept under its context number:
    what is stored then, itself not yet. A slot is not written again while the oldest context
    in flight can see it: `settled` comes late instead, but only where the slots beyond the
    capacity are not enough for those that were stored meanwhile.

    latency     check: settled in the same cycle, if two leave at most and none was found dead just before;
                else 2 or more cycles later: they are read one a cycle;
                fetch and row: data 3 cycles after the address
    throughput  one stored tuple, one fetch, one row a cycle

    now, counter, wanted   of what is checked next, as it is in the three cycles before `check`:
                     clock, last sequence number, and whether a tuple is to be stored here
    check            pulse; only two cycles after the window was settled, or later
    flow             what is checked does not wait, and is stored whatever there is
    calm             some more may be checked and stored so: nothing leaves early, and there is room
    rests, passes    from registers alone, for the listener is far: the window is settled when it passes, or when it rests
                     and there is no `check`. So it is not from `check` on until all dead are gone and, if wanted,
                     there is room for one more; what flows may be settled a cycle late
    store            pulse, with `tuple` and `bits`, once after a `check` with `wanted` has settled, with
                     the next `check` at the latest; to be read two cycles later
    written          where it is stored, valid with `store`
    forget           pulse: retention has changed, and nothing is in flight
    leaving          sequence number of a tuple that leaves early
    snapshot         pulse, with its `context`
    busy, oldest     are raw tuples in flight, and the context of the oldest; may be late
    context, tail, count   view of a context, for the probe loader, 2 cycles later; to be asked for two cycles
                     after it was noted
    fetch, fetching, whole, fetched   stamp of the tuple at a slot, now; between, the window reads for
                     itself; with `whole` its attributes, too
    row, tuples      attributes of the tuples of a row of the banks, unless `whole`
    hit, hit_take, hit_bits   selection bits at a slot, from the cycle after the pulse on
    rewrite          new selection bits for a stored tuple, to be read two cycles later
    ticks, kind, rows   retention, held
    clear            pulse: empty
    first, end, occupancy   tail, head and their distance
    working, blocked   tuples are looked at; one that leaves is not taken yet, or no slot is free
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        self.banks = max(1, config.lanes)
        self.row_bits = layouts.slot_bits - (self.banks.bit_length() - 1)
        slot, pointer = layouts.slot_bits, layouts.pointer_bits
        super().__init__(
            {
                "now": In(layouts.timestamp),
                "counter": In(layouts.sequence),
                "check": In(1),
                "wanted": In(1),
                "rests": Out(1),
                "passes": Out(1),
                "flow": In(1),
                "calm": Out(1),
                "store": In(1),
                "tuple": In(layouts.component),
                "bits": In(SELECTIONS),
                "written": Out(slot),
                "forget": In(1),
                "leaving": Out(stream.Signature(layouts.sequence)),
                "snapshot": In(1),
                "snapshot_context": In(CONTEXT_BITS),
                "busy": In(1),
                "oldest": In(CONTEXT_BITS),
                "context": In(CONTEXT_BITS),
                "tail": Out(slot),
                "count": Out(pointer),
                "fetch": In(slot),
                "fetching": In(1),
                "whole": In(1),
                "fetched": Out(layouts.component),
                "row": In(self.row_bits),
                "tuples": Out(data.ArrayLayout(layouts.attributes, self.banks)),
                "hit": In(slot),
                "hit_take": In(1),
                "hit_bits": Out(SELECTIONS),
                "rewrite": In(1),
                "rewrite_slot": In(slot),
                "rewrite_bits": In(SELECTIONS),
                "ticks": In(layouts.timestamp),
                "kind": In(RangeKind),
                "rows": In(layouts.sequence),
                "clear": In(1),
                "first": Out(pointer),
                "end": Out(pointer),
                "occupancy": Out(pointer),
                "working": Out(1),
                "blocked": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._head = Signal(self.layouts.pointer_bits)
        self._tail = Signal(self.layouts.pointer_bits)
        self._stored_now = Signal(self.layouts.pointer_bits)
        # One more is to be stored; it is since this cycle.
        self._due, self._falls_due = Signal(name="_due"), Signal(name="_falls_due")
        m.d.comb += [self.first.eq(self._tail), self.end.eq(self._head)]
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
        # What goes to a memory stands in a register before, for block RAM lies far from who asks. No
        # one reads a tuple in the cycle after it was stored.
        store, place = Signal(), Signal(layouts.slot_bits)
        arrived = Signal(layouts.component, reset_less=True)
        m.d.sync += [store.eq(self.store), place.eq(slot), arrived.eq(self.tuple)]
        stamp_slot = Signal(layouts.slot_bits)
        row = Signal(self.row_bits)
        bank_bits = layouts.slot_bits - self.row_bits
        m.d.sync += [
            stamp_slot.eq(Mux(self.fetching, self.fetch, self._oldest_slot)),
            row.eq(Mux(self.whole, self.fetch[bank_bits:], self.row)),
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
            self.fetched.timestamp.eq(read.data.timestamp),
            self.fetched.sequence.eq(read.data.sequence),
        ]

        m.submodules.selections = selections = memory.Memory(
            shape=unsigned(SELECTIONS), depth=depth, init=[]
        )
        write, read = selections.write_port(), selections.read_port()
        m.d.sync += [
            write.addr.eq(Mux(self.rewrite, self.rewrite_slot, slot)),
            write.data.eq(Mux(self.rewrite, self.rewrite_bits, self.bits)),
            write.en.eq(self.store | self.rewrite),
        ]
        m.d.comb += [
            read.addr.eq(self.hit),
            read.en.eq(self.hit_take),
            self.hit_bits.eq(read.data),
        ]

        # The bank is the low bits of the slot, so that a row is `banks` tuples in a row. Of a row
        # that is fetched only one bank keeps its tuple, so that they are joined by OR: a multiplexer
        # of that width draws all banks to one place.
        fetching, bank_of = Signal(), Signal(bank_bits)
        m.d.sync += [fetching.eq(self.whole), bank_of.eq(self.fetch[:bank_bits])]
        fetched = [self.tuples[bank].as_value() for bank in range(self.banks)]
        m.d.comb += self.fetched.attributes.eq(reduce(or_, fetched))
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
        # Written from registers, read by registers: what is counted here stays by who leaves, not by this memory.
        noted, context, note = Signal(view), Signal(CONTEXT_BITS), Signal()
        # Of tuples that only their rank keeps there are never more alive than there are ranks; who is dead, but
        # has not left yet, is not looked at.
        ranks = self.rows[:pointer]
        ranked = Signal()
        m.d.sync += ranked.eq((self.kind == RangeKind.NONE) & ~self.rows[pointer - 1 :].any())
        more = ranked & (self._stored_now > ranks)
        m.d.sync += [
            noted.tail.eq(self._tail),
            noted.first.eq(Mux(more, self._head - ranks, self._tail)),
            noted.count.eq(Mux(more, ranks, self._stored_now)),
            context.eq(self.snapshot_context),
            note.eq(self.snapshot),
        ]
        late_oldest = Signal(CONTEXT_BITS)
        m.d.sync += late_oldest.eq(self.oldest)
        m.d.comb += [
            write.addr.eq(context),
            write.data.eq(noted),
            write.en.eq(note),
            asked.addr.eq(self.context),
            oldest.addr.eq(late_oldest),
            *(port.en.eq(1) for port in (asked, oldest)),
        ]
        m.d.sync += [self.tail.eq(asked.data.first), self.count.eq(asked.data.count)]
        # The first slot that may not be written: what the oldest context still sees.
        self._room = Signal()
        busy, tail = Signal(2), Signal(pointer)
        kept_from = Signal(pointer)
        held = Signal(pointer)
        due = Signal()
        m.d.sync += [busy.eq(Cat(self.busy, busy)), tail.eq(noted.tail), due.eq(self._due)]
        m.d.comb += kept_from.eq(Mux(busy[-1], oldest.data.tail, tail))
        # Registers: the oldest context only moves on, so they err towards waiting. What is yet
        # to come is counted, and was when that many were held.
        m.d.sync += held.eq(self._head - kept_from)
        depth, capacity = self.config.depth, self.config.capacity
        most = Array((depth, depth - 1, depth - 1, depth - 2))[Cat(due, self._falls_due)]
        m.d.sync += self._room.eq(held != most)
        # Of tuples that only their rank keeps there are never more alive than there are ranks.
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
                "dead_at": layouts.timestamp,  # with its age, it is as old as no window reaches
                "dead_from": layouts.sequence,  # with its rank
            }
        )
        # The oldest lie in a ring of places, and stay where they are until they leave: wide registers are not
        # moved, and what was found out about one stays where it was found.
        places = [Signal(entry, name=f"oldest{i}", reset_less=True) for i in range(_PLACES)]
        there = Signal(_PLACES)
        first_place = Signal(_PLACES, init=1)  # of the oldest of all
        # So many leave; the tail and the number stored hear of it a cycle later.
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

        # What they are judged by: that of the check that is not settled yet, else of the next. Each by registers
        # of its own, for so many differences do not fit in one place; two begin with ones and two keep all
        # the other way round, so that synthesis does not make one of them.
        nows, counters = (
            [
                Signal(one.shape(), name=f"judged_{name}{i}", init=(i & 1) * ((1 << len(one)) - 1))
                for i in range(_PLACES)
            ]
            for name, one in (("now", self.now), ("counter", self.counter))
        )
        wanted = Signal(name="judged_wanted")
        past, checked = (Signal.like(self.now, name=name) for name in ("past", "checked"))
        counter_past, counter_checked = (
            Signal.like(self.counter, name=name) for name in ("counter_past", "counter_checked")
        )
        m.d.sync += [past.eq(self.now), counter_past.eq(self.counter)]
        # One that flows past meanwhile: what was stored since must not be judged by one before it.
        with m.If(self.check):
            m.d.sync += [checked.eq(past), counter_checked.eq(counter_past)]
        # It is about to be judged by the next one; that was not so two cycles ago; the check has just begun, and
        # they are judged by the one after it once more.
        by_next, fresh = Signal(), Signal()
        by_checked = Signal(2)
        m.d.sync += by_checked.eq(Cat(~by_next, by_checked))
        for kept_by, value, earlier in (
            (nows, self.now, checked),
            (counters, self.counter, counter_checked),
        ):
            for i, one in enumerate(kept_by):
                its = Mux(by_next, value, earlier)
                m.d.sync += one.eq(~its if i & 2 else its)
        settled = Signal(name="settled")
        m.d.comb += settled.eq(self.passes | (self.rests & ~self.check))
        with m.If(settled):
            m.d.sync += wanted.eq(self.wanted)
        with m.If(self.check & self.flow):
            m.d.sync += wanted.eq(0)

        # Of each in its place, whether it is dead; whether it stays; whether some window reaches it, but half of
        # what is counted has passed; whether it is young; of the cycle before. In `sure` it is known.
        judging = Signal()
        sure = Signal(_PLACES)
        found = {name: Signal(_PLACES, name=f"found_{name}") for name in ("dead", "stays", "late")}
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
            is_dead, half = Signal(name=f"is_dead{i}"), Signal(name=f"half{i}")
            m.d.comb += [is_dead.eq(too_old & (rank[-1] | ~in_rank)), half.eq(age[-1] | rank[-1])]
            m.d.sync += [
                found["dead"][i].eq(is_dead),
                found["stays"][i].eq(~is_dead & ~half),
                found["late"][i].eq(~is_dead & half),
                is_young[i].eq(~(age[-_YOUNG_BITS:].any() | rank[-_YOUNG_BITS:].any())),
            ]

        # The same of the oldest, the second and the third. Who comes next is in the place of who leaves. Where
        # one leaves by `leaving` all are looked at anew, so that what comes from outside is not in their way.
        # What was found by the check before says of the next one who is dead, but not who stays.
        dead, stays_at, late = (Signal(_JUDGED, name=name) for name in ("dead", "stays_at", "late"))
        full = Signal()
        judges_on, goes = Signal(), Signal(range(_JUDGED))
        stored = self._stored_now
        # Whether so many were stored or due a cycle ago, without the sum; where some have left since, or one has
        # fallen due, that is not known yet.
        few_were, unchanged = Signal(_PLACES), (gone_now == 0) & ~self._falls_due
        low, still = stored[:3], (gone_now == 0) & ~stored[3:].any()
        for j in range(_PLACES):
            m.d.sync += few_were[j].eq(still & Mux(self._due, (low == j - 1) if j else 0, low == j))
        holds = ~(by_checked[1] & ~judging & ~self.flow)
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
        # Where some leave it is no longer; while there is no room nothing else is stored.
        fills = Array(stored == self.config.capacity + more for more in range(-1, _JUDGED))
        m.d.sync += full.eq(fills[1 + gone_now - self._due] & (leave == 0))
        # Who comes after another is younger still.
        young = Signal()
        with m.If(stored == 0):
            m.d.sync += young.eq(1)
        with m.Elif(sure.any()):
            m.d.sync += young.eq((~sure | is_young).all())
        m.d.comb += self.calm.eq(young & self._spare)

        # Those before the first that is not dead.
        gone, stays = Signal(range(_JUDGED)), Signal()
        m.d.comb += [
            gone.eq(Mux(dead[0], Mux(dead[1], 2, 1), 0)),
            stays.eq(Mux(dead[0], Mux(dead[1], stays_at[2], stays_at[1]), stays_at[0])),
        ]

        room, room_now = Signal(), Signal()
        m.d.comb += [
            room.eq(~wanted | self.flow | (self._room & ~full)),
            # ... in the cycle in which they leave.
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
                    with m.If(self.check if name == "SETTLED" else 1):
                        m.next = "JUDGE"
                        m.d.comb += [
                            goes.eq(gone),
                            leave.eq(gone),
                            settles.eq(stays & (room_now | self.flow)),
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
            # Who takes it is far, and many registers wait to hear that one leaves: it does a cycle later.
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
            self.rests.eq(fsm.ongoing("SETTLED")),
            judges_on.eq(self.rests | judging),
            self.passes.eq(judges_on & stays & room_now),
            by_next.eq(~(judging | fsm.ongoing("LEAVE"))),
        ]
        m.d.sync += taken.eq(self.leaving.valid & self.leaving.ready)
        waits = (fsm.ongoing("ROOM") & ~room & ~full) | (self.leaving.valid & ~self.leaving.ready)
        m.d.comb += self.blocked.eq(waits)
        m.d.sync += fresh.eq(self.rests)
        falls_due = settles & wanted & ~self.flow
        m.d.sync += self._falls_due.eq(falls_due)
        with m.If(settles):
            m.d.sync += self._due.eq(falls_due)
        with m.Elif(self.store | self.clear):
            m.d.sync += self._due.eq(0)
        looks = self.check | ~self.rests
        m.d.comb += self.working.eq(looks & ~self.blocked)
        pointer = self.layouts.pointer_bits
        changed = {by: (self._stored_now + by)[:pointer] for by in range(1 - _JUDGED, 2)}
        m.d.sync += [
            self._tail.eq(self._tail + gone_now),
            self._head.eq(self._head + self.store),
            # The distance of the two, kept by itself: a difference would come late. So does `store`.
            self._stored_now.eq(
                Mux(
                    self.store,
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
        """Keeps the places filled from a queue, and the queue from the memory."""
        pointer, bits = self.layouts.pointer_bits, ceil_log2(_AT_HAND)
        asked = Signal(pointer)  # which is read next
        ahead = Signal(bits + 1)  # how many from the tail on are at hand, or on their way
        asks = Signal()
        on_its_way = Signal(3)
        m.d.comb += [
            asks.eq(~self.fetching & (asked != self._head) & ~ahead[-1]),
            self._oldest_slot.eq(asked[: self.layouts.slot_bits]),
        ]
        # Stages: address, memory, stamp.
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
            write.data.timestamp.eq(self.fetched.timestamp),
            write.data.sequence.eq(self.fetched.sequence),
            write.data.dead_at.eq(self.fetched.timestamp + self.ticks + 1),
            write.data.dead_from.eq(self.fetched.sequence + self.rows),
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
