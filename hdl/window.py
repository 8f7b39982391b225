"""Window buffer: the stored tuples of one stream, as a ring."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Array, Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, enum, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.config import DeviceConfig
from seustream.hdl.layouts import CONTEXT_BITS, CONTEXTS, SELECTIONS, Layouts


class RangeKind(enum.Enum, shape=2):
    """Verdict of a tuple's age."""

    NONE = 0  # dead at once, unless its rank keeps it
    TICKS = 1  # dead beyond so many ticks
    FOREVER = 2


class WindowBuffer(wiring.Component):
    """A ring of `depth` tuples with eviction in order of arrival.

    The attributes are in banks, from which the factor array reads `lanes` tuples a cycle; in
    a cycle in which a component is fetched it reads nothing.
    Head and tail have one bit more than a slot, so that head - tail is the number stored.

    *Eviction.* With `check`, the two oldest tuples, always kept at hand, are looked at in
    two cycles; the dead leave. One that some window still reaches, but whose age or rank
    the counters could soon no longer tell, or that is one more than the window may keep
    (`capacity`) when a tuple is to be stored, leaves by `leaving`.
    *Contexts.* With `snapshot` the view of a raw tuple is kept under its context number:
    what is stored then, itself not yet. A slot is not written again while the oldest context
    in flight can see it: `settled` comes late instead, but only where the slots beyond the
    capacity are not enough for those that were stored meanwhile.

    latency     check: settled after 3 cycles, 5 more for each two that leave;
                fetch and row: data 3 cycles after the address
    throughput  one stored tuple, one fetch, one row a cycle

    now, counter     clock and last sequence number, held from `check` on
    check, wanted    pulse; whether a tuple is to be stored here, held
    settled          low from the cycle after `check` until all dead are gone and, if wanted,
                     there is room for one more
    store            pulse, with `tuple` and `bits`; only when settled; to be read two cycles later
    written          where it is stored, valid with `store`
    leaving          sequence number of a tuple that leaves early
    snapshot         pulse, with its `context`
    busy, oldest     are raw tuples in flight, and the context of the oldest; may be late
    context, tail, count   view of a context, for the probe loader
    fetch, fetching, fetched   whole tuple at a slot, now; between, the window reads for itself
    row, tuples      attributes of the tuples of a row of the banks, unless `fetching`
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
                "settled": Out(1, init=1),
                "store": In(1),
                "tuple": In(layouts.component),
                "bits": In(SELECTIONS),
                "written": Out(slot),
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
            row.eq(Mux(self.fetching, self.fetch[bank_bits:], self.row)),
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
        m.d.sync += [fetching.eq(self.fetching), bank_of.eq(self.fetch[:bank_bits])]
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
        tails = Array(Signal(pointer, name=f"tail_of_{c}") for c in range(CONTEXTS))
        counts = Array(Signal(pointer, name=f"count_of_{c}") for c in range(CONTEXTS))
        with m.If(self.snapshot):
            m.d.sync += [
                tails[self.snapshot_context].eq(self._tail),
                counts[self.snapshot_context].eq(self._stored_now),
            ]
        m.d.sync += [self.tail.eq(tails[self.context]), self.count.eq(counts[self.context])]
        # The first slot that may not be written: what the oldest context still sees.
        self._room = Signal()
        kept_from = Signal(pointer)
        with m.If(~self.snapshot):  # a view is not kept before the next cycle
            m.d.sync += kept_from.eq(Mux(self.busy, tails[self.oldest], self._tail))
        held = Signal(pointer)
        m.d.comb += held.eq(self._head - kept_from)
        # Registers: the oldest context only moves on, so they err towards waiting. What is stored
        # with `check` is counted by the time that it is asked for.
        m.d.sync += self._room.eq(held != self.config.depth)

    def _eviction(self, m: Module) -> None:
        layouts = self.layouts
        # The oldest tuple and the one after it, as far as known.
        oldest = [Signal(layouts.stamp, name=f"oldest{i}") for i in range(2)]
        known = Signal(range(3))
        leave = Signal(range(3))  # how many leave: decided in a cycle, done in the next
        left = Signal(range(3))
        m.d.sync += left.eq(leave)
        self._prefetch(m, oldest, known, left)
        # For two cycles after one has left, `full` is of before.
        full, lately = Signal(), Signal(2)
        m.d.sync += [
            full.eq(self._stored_now == self.config.capacity),
            lately.eq(Cat(leave != 0, lately)),
        ]

        dead, uncountable = Signal(2), Signal(2)
        ages = [Signal(layouts.timestamp, name=f"age{i}") for i in range(2)]
        ranks = [Signal(layouts.sequence, name=f"rank{i}") for i in range(2)]
        for i in range(2):
            m.d.sync += ages[i].eq(self.now - oldest[i].timestamp)
            m.d.sync += ranks[i].eq(self.counter - oldest[i].sequence)
            too_old = Signal(name=f"too_old{i}")
            with m.Switch(self.kind):
                with m.Case(RangeKind.NONE):
                    m.d.comb += too_old.eq(1)
                with m.Case(RangeKind.TICKS):
                    m.d.comb += too_old.eq(ages[i] > self.ticks)
            forever = self.kind == RangeKind.FOREVER
            gone = Signal(name=f"gone{i}")
            m.d.comb += gone.eq(too_old & (ranks[i] >= self.rows) & ~forever)
            m.d.sync += dead[i].eq(gone)
            m.d.sync += uncountable[i].eq(~gone & (ages[i][-1] | ranks[i][-1]))

        # The ages of both are of the same cycle, so it counts whether both were known then.
        both, both_aged = Signal(), Signal()
        m.d.sync += [both_aged.eq(known == 2), both.eq(both_aged)]
        some, room, alone = Signal(), Signal(), Signal()
        m.d.sync += alone.eq(self._stored_now == 1)  # nothing is stored while it is asked
        # One that has just left makes room, and one that leaves now.
        spare = ~full | lately.any() | (leave != 0)
        m.d.comb += [
            some.eq((self._head != self._tail) | self.store),
            room.eq(~self.wanted | (self._room & spare)),
        ]
        m.d.comb += self.leaving.payload.eq(oldest[0].sequence)
        with m.If(self.check):
            m.d.sync += self.settled.eq(0)
        with m.FSM():
            with m.State("SETTLED"):
                with m.If(self.check):
                    with m.If(~some):
                        m.next = "ROOM"
                    with m.Elif(known != 0):
                        m.next = "COMPARE"
                    with m.Else():
                        m.next = "AGE"
            with m.State("AGE"):
                with m.If(left == 0):
                    with m.If(~some):
                        m.next = "ROOM"
                    with m.Elif(known != 0):
                        m.next = "COMPARE"
            with m.State("COMPARE"):
                m.next = "DECIDE"
            with m.State("DECIDE"):
                done = Signal()
                with m.If(uncountable[0]):
                    m.next = "LEAVE"
                with m.Elif(dead[0] & both & dead[1]):
                    m.d.comb += leave.eq(2)
                    m.next = "AGE"
                with m.Elif(dead[0]):
                    m.d.comb += leave.eq(1)
                    # No more if the next one is known to stay.
                    last = both & ~uncountable[1]
                    m.d.comb += done.eq(last | alone)
                    with m.If(~done):
                        m.next = "AGE"
                with m.Else():
                    m.d.comb += done.eq(1)
                with m.If(done):
                    m.next = "ROOM"
                    with m.If(room):
                        m.d.sync += self.settled.eq(1)
                        m.next = "SETTLED"
            with m.State("ROOM"):
                with m.If(room):
                    m.d.sync += self.settled.eq(1)
                    m.next = "SETTLED"
                with m.Elif(full & (known != 0) & ~lately.any()):
                    m.next = "DISPLACE"
                with m.Else():
                    m.d.comb += self.blocked.eq(1)
            for name, after in (("LEAVE", "AGE"), ("DISPLACE", "ROOM")):
                with m.State(name):
                    m.d.comb += self.leaving.valid.eq(1)
                    m.d.comb += self.blocked.eq(~self.leaving.ready)
                    with m.If(self.leaving.ready):
                        m.d.comb += leave.eq(1)
                        m.next = after
        m.d.comb += self.working.eq(~self.settled & ~self.blocked)
        m.d.sync += [
            self._tail.eq(self._tail + left),
            self._head.eq(self._head + self.store),
            # The distance of the two, kept by itself: a difference would come late.
            self._stored_now.eq(self._stored_now + self.store - left),
        ]
        with m.If(self.clear):
            m.d.sync += [self._head.eq(0), self._tail.eq(0), self._stored_now.eq(0), left.eq(0)]

    def _prefetch(self, m: Module, oldest: list[Signal], known: Signal, left: Signal) -> None:
        """Keeps `oldest` filled, one read at a time."""
        slot_bits = self.layouts.slot_bits
        arriving = Signal()
        stay = Signal(range(3))
        m.d.comb += stay.eq(known - left)
        with m.If(left == 1):
            m.d.sync += oldest[0].eq(oldest[1])
        m.d.sync += known.eq(stay + arriving)
        next_slot = Signal(self.layouts.pointer_bits)
        m.d.comb += next_slot.eq(self._tail + known)
        lacks = Signal()
        m.d.sync += lacks.eq((known != 2) & (known != self._stored_now) & ~self.clear)
        m.d.comb += self._oldest_slot.eq(next_slot[:slot_bits])
        with m.FSM():
            with m.State("IDLE"):
                with m.If(lacks & (left == 0) & ~self.clear):
                    m.next = "READ"
            with m.State("READ"):
                with m.If(self.clear):
                    m.next = "IDLE"
                with m.Elif(~self.fetching):
                    m.next = "MEMORY"
            with m.State("MEMORY"):
                m.next = "TAKE"
                with m.If(self.clear):
                    m.next = "IDLE"
            with m.State("TAKE"):
                m.d.comb += arriving.eq(~self.clear)
                m.d.sync += lacks.eq(0)
                with m.Switch(stay):
                    for place in range(2):
                        with m.Case(place):
                            m.d.sync += [
                                oldest[place].timestamp.eq(self._stamp.timestamp),
                                oldest[place].sequence.eq(self._stamp.sequence),
                            ]
                m.next = "IDLE"
        with m.If(self.clear):
            m.d.sync += known.eq(0)
