"""Window buffer: the stored tuples of one stream, as a ring."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, enum, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import DeviceConfig
from seustream.hdl.layouts import CONTEXT_BITS, CONTEXTS, SELECTIONS, Layouts

_JUDGED, _AT_HAND = 3, 8
"""Oldest tuples that are looked at together, and how many wait to be."""
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
    are dead. While the window is settled three of them are judged by what comes next, so that with
    `check` the dead leave at once. One that some window still reaches, but whose age or rank
    the counters could soon no longer tell, or that is one more than the window may keep
    (`capacity`) when a tuple is to be stored, leaves by `leaving`.
    *Contexts.* With `snapshot` the view of a raw tuple is kept under its context number:
    what is stored then, itself not yet. A slot is not written again while the oldest context
    in flight can see it: `settled` comes late instead, but only where the slots beyond the
    capacity are not enough for those that were stored meanwhile.

    latency     check: settled in the same cycle, or 2 later for each two more that leave, while
                they are at hand: read are at most one a cycle;
                fetch and row: data 3 cycles after the address
    throughput  one stored tuple, one fetch, one row a cycle

    now, counter, wanted   of what is checked next, as it is two cycles before `check` and the cycle before:
                     clock, last sequence number, and whether a tuple is to be stored here
    check            pulse; only two cycles after the window was settled, or later
    flow             what is checked does not wait, and is stored whatever there is
    calm             some more may be checked and stored so: nothing leaves early, and there is room
    settled          low from `check` on until all dead are gone and, if wanted, there is room for
                     one more
    store            pulse, with `tuple` and `bits`, once after a `check` with `wanted` has settled, with
                     the next `check` at the latest; to be read two cycles later
    written          where it is stored, valid with `store`
    forget           pulse: retention has changed, and nothing is in flight
    leaving          sequence number of a tuple that leaves early
    snapshot         pulse, with its `context`
    busy, oldest     are raw tuples in flight, and the context of the oldest; may be late
    context, tail, count   view of a context, for the probe loader, 2 cycles later
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
                "settled": Out(1),
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
        view = data.StructLayout({"tail": pointer, "count": pointer})
        m.submodules.views = views = memory.Memory(shape=view, depth=CONTEXTS, init=[])
        write, asked, oldest = views.write_port(), *(views.read_port() for _ in "12")
        m.d.comb += [
            write.addr.eq(self.snapshot_context),
            write.data.tail.eq(self._tail),
            write.data.count.eq(self._stored_now),
            write.en.eq(self.snapshot),
            asked.addr.eq(self.context),
            oldest.addr.eq(self.oldest),
            *(port.en.eq(1) for port in (asked, oldest)),
        ]
        m.d.sync += [self.tail.eq(asked.data.tail), self.count.eq(asked.data.count)]
        # The first slot that may not be written: what the oldest context still sees.
        self._room = Signal()
        busy, tail = Signal(), Signal(pointer)
        kept_from = Signal(pointer)
        held = Signal(pointer)
        due = Signal()
        m.d.sync += [busy.eq(self.busy), tail.eq(self._tail), due.eq(self._due)]
        m.d.comb += kept_from.eq(Mux(busy, oldest.data.tail, tail))
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
        oldest = [Signal(entry, name=f"oldest{i}", reset_less=True) for i in range(_JUDGED)]
        known = Signal(range(_JUDGED + 1))
        # So many leave; they are gone from `oldest` a cycle later, for wide registers are not moved by
        # what is decided in that cycle.
        leave = Signal(range(_JUDGED))
        gone_now = Signal(range(_JUDGED))
        m.d.sync += gone_now.eq(leave)
        self._prefetch(m, oldest, known, gone_now)

        # What they are judged by: that of the check that is not settled yet, else of the next. Each by registers
        # of its own, for twelve differences do not fit in one place; one begins with ones and one keeps all
        # the other way round, so that synthesis does not make one of them.
        nows, counters = (
            [
                Signal(one.shape(), name=f"judged_{name}{i}", init=i and (1 << len(one)) - 1)
                for i in range(_JUDGED)
            ]
            for name, one in (("now", self.now), ("counter", self.counter))
        )

        def judge_by(now: Value, counter: Value) -> list[object]:
            return [
                one.eq(~value if i == 2 else value)
                for kept, value in ((nows, now), (counters, counter))
                for i, one in enumerate(kept)
            ]

        wanted = Signal(name="judged_wanted")
        past, counter_past = Signal.like(self.now), Signal.like(self.counter)
        m.d.sync += [past.eq(self.now), counter_past.eq(self.counter)]
        with m.If(self.settled):
            m.d.sync += judge_by(self.now, self.counter)
            m.d.sync += wanted.eq(self.wanted)
        # One that flows past meanwhile: what was stored since must not be judged by one before it.
        with m.Elif(self.check):
            m.d.sync += judge_by(past, counter_past)
        with m.If(self.check & self.flow):
            m.d.sync += wanted.eq(0)

        # Of each that is at hand whether it is dead; whether it stays, or there is none; whether some window
        # reaches it, but half of what is counted has passed; of the cycle before.
        dead, stays_at, late = (Signal(_JUDGED, name=name) for name in ("dead", "stays_at", "late"))
        full = Signal()
        judged = Signal()
        stored = (self._stored_now + self._due)[: layouts.pointer_bits]
        # Where some leave it is no longer; while there is no room nothing else is stored.
        m.d.sync += full.eq((stored == self.config.capacity) & (leave == 0))
        # Whether it is one of the first few numbers, without the sum.
        few, least = ~self._stored_now[3:].any(), self._stored_now[:3] + self._due
        verdicts = []
        for i, (it, now, counter) in enumerate(zip(oldest, nows, counters, strict=True)):
            now, counter = (~one if i == 2 else one for one in (now, counter))
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
            here = known > i
            verdicts.append((here & is_dead, here & ~is_dead & ~half, here & ~is_dead & half))
            if i == 0:
                young_now = ~(age[-_YOUNG_BITS:].any() | rank[-_YOUNG_BITS:].any())
        # Who comes next is in the place of who leaves, and of who has left. Where one leaves by `leaving` all
        # are judged anew, so that what comes from outside is not in their way.
        goes, far, nearer = Signal(range(_JUDGED)), Signal(_JUDGED), Signal(_JUDGED)
        m.d.comb += [
            far.eq(Cat(judged & (goes + gone_now == by) for by in range(_JUDGED))),
            nearer.eq(Cat(judged & (goes == by) for by in range(_JUDGED))),
        ]
        for number, verdict in enumerate((dead, stays_at, late)):
            for i in range(_JUDGED):
                those = [far[by] & verdicts[i + by][number] for by in range(_JUDGED - i)]
                if verdict is stays_at:
                    those += [nearer[by] & few & (least == i + by) for by in range(_JUDGED)]
                m.d.sync += verdict[i].eq(Cat(those).any())
        # Who comes after another is younger still.
        young = Signal()
        with m.If(self._stored_now == 0):
            m.d.sync += young.eq(1)
        with m.Elif(known != 0):
            m.d.sync += young.eq(young_now)
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
            room_now.eq(~wanted | self.flow | (self._room & (~full | dead[0]))),
            self.leaving.payload.eq(oldest[0].sequence),
        ]
        settles = Signal()
        with m.FSM() as fsm:
            for name in ("SETTLED", "JUDGE"):
                with m.State(name):
                    judges = self.check if name == "SETTLED" else 1
                    m.d.comb += self.settled.eq(~judges if name == "SETTLED" else 0)
                    with m.If(judges):
                        m.next = "JUDGE"
                        m.d.comb += [goes.eq(gone), leave.eq(gone), settles.eq(stays & room_now)]
                        m.d.comb += self.settled.eq(settles)
                        with m.If(settles):
                            m.next = "SETTLED"
                        with m.Elif(stays):
                            m.next = "ROOM"
                        with m.Elif(late[0]):
                            m.next = "LEAVE"
            with m.State("ROOM"):
                m.d.comb += self.blocked.eq(~room & ~full)
                m.d.comb += settles.eq(room)
                with m.If(room):
                    m.next = "SETTLED"
                with m.Elif(full & (known != 0)):
                    m.next = "DISPLACE"
            # Who takes it is far, and many registers wait to hear that one leaves: it does a cycle later.
            for name, after in (("LEAVE", "LEFT"), ("DISPLACE", "DISPLACED")):
                with m.State(name):
                    m.d.comb += self.leaving.valid.eq(1)
                    m.d.comb += self.blocked.eq(~self.leaving.ready)
                    with m.If(self.leaving.ready):
                        m.next = after
            with m.State("LEFT"):
                m.d.comb += leave.eq(1)
                m.next = "JUDGE"
            with m.State("DISPLACED"):
                m.d.comb += [leave.eq(1), settles.eq(self._room)]
                m.next = "ROOM"
                with m.If(settles):
                    m.next = "SETTLED"
        m.d.comb += judged.eq(fsm.ongoing("SETTLED") | fsm.ongoing("JUDGE"))
        falls_due = settles & wanted & ~self.flow
        m.d.sync += self._falls_due.eq(falls_due)
        with m.If(settles):
            m.d.sync += self._due.eq(falls_due)
        with m.Elif(self.store | self.clear):
            m.d.sync += self._due.eq(0)
        looks = self.check | ~fsm.ongoing("SETTLED")
        m.d.comb += self.working.eq(looks & ~self.blocked)
        m.d.sync += [
            self._tail.eq(
                Array((self._tail + by)[: layouts.pointer_bits] for by in range(_JUDGED))[leave]
            ),
            self._head.eq(self._head + self.store),
            # The distance of the two, kept by itself: a difference would come late.
            self._stored_now.eq(
                Array(
                    (self._stored_now + self.store - by)[: layouts.pointer_bits]
                    for by in range(_JUDGED)
                )[leave]
            ),
        ]
        with m.If(self.clear):
            m.d.sync += [self._head.eq(0), self._tail.eq(0), self._stored_now.eq(0)]

    def _prefetch(self, m: Module, oldest: list[Signal], known: Signal, leave: Signal) -> None:
        """Keeps `oldest` filled from a queue, and the queue from the memory."""
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
            ahead.eq(ahead + asks - leave),
        ]
        m.submodules.at_hand = at_hand = memory.Memory(
            shape=oldest[0].shape(), depth=_AT_HAND, init=[]
        )
        write, read = at_hand.write_port(), at_hand.read_port(domain="comb")
        put, got = (Signal(bits + 1, name=name) for name in ("put", "got"))
        arriving = Signal()
        m.d.comb += [
            arriving.eq((got != put) & (known - leave != _JUDGED)),
            write.addr.eq(put[:-1]),
            write.en.eq(on_its_way[-1]),
            write.data.timestamp.eq(self.fetched.timestamp),
            write.data.sequence.eq(self.fetched.sequence),
            write.data.dead_at.eq(self.fetched.timestamp + self.ticks + 1),
            write.data.dead_from.eq(self.fetched.sequence + self.rows),
            read.addr.eq(got[:-1]),
        ]
        m.d.sync += [put.eq(put + on_its_way[-1]), got.eq(got + arriving)]
        for number, it in enumerate(oldest):
            for gone in range(_JUDGED):
                with m.If((leave == gone) & (number + gone == known)):
                    m.d.sync += it.eq(read.data)
                if 0 < gone < _JUDGED - number:
                    with m.Elif(leave == gone):
                        m.d.sync += it.eq(oldest[number + gone])
        m.d.sync += known.eq(known - leave + arriving)
        with m.If(self.clear | self.forget):
            m.d.sync += [
                Cat(on_its_way, ahead, known, put, got).eq(0),
                asked.eq(Mux(self.clear, 0, self._tail)),
            ]
