"""Grouping unit: results of groups, counted and summed instead of delivered."""

from __future__ import annotations

import itertools

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import DeviceConfig
from seustream.hdl.layouts import GROUP_COUNT_BITS, QUERY_BITS, Layouts

_WAITING = 16
"""Results in the unit; one may come in the cycle in which there are too many."""


class GroupingUnit(wiring.Component):
    """Adds a result to its group, whose place is the hash of query and key, and delivers it to its other queries. A
    result that finds another group there, or its own one full, goes on as it came. A drain gives the groups in the order
    in which they began: of each some results of no query, whose sequence numbers are its bits (`Layouts.group`),
    and whose times those of the first result and of the oldest component.

    latency     7 cycles
    throughput  a result a cycle; of a drain a group in `Layouts.group_parts` cycles and 3 more

    found, member   results, and beside each how it is grouped
    results         those that are delivered, and groups
    drain, drained  held: give all groups as soon as nothing waits; pulse: all are given
    clear           pulse: forget all groups
    idle            nothing waits, and no group is on its way out
    working, blocked   it is busy; a result waits to be taken
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        super().__init__(
            {
                "found": In(stream.Signature(layouts.result)),
                "member": In(layouts.member),
                "results": Out(stream.Signature(layouts.result)),
                "drain": In(1),
                "drained": Out(1),
                "clear": In(1),
                "idle": Out(1),
                "working": Out(1),
                "blocked": Out(1),
            }
        )
        width = config.attribute_width
        # Which group is at a place, and what it has come to.
        self.owner = data.StructLayout({"live": 1, "query": QUERY_BITS, "key": width})
        self.sums = data.StructLayout(
            {
                "full": 1,
                "count": GROUP_COUNT_BITS,
                "total": width + GROUP_COUNT_BITS,
                "least": width,
                "greatest": width,
                "first": layouts.timestamp,
                "oldest": layouts.timestamp,
            }
        )
        self.entry = data.StructLayout({"owner": self.owner, "sums": self.sums})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._bits = bits = ceil_log2(self.config.groups)
        m.submodules.table = table = memory.Memory(
            shape=self.entry, depth=self.config.groups, init=[]
        )
        self._write, self._read = table.write_port(), table.read_port()
        m.submodules.begun = begun = memory.Memory(shape=bits, depth=self.config.groups, init=[])
        self._list, self._listed = begun.write_port(), begun.read_port()
        self._groups = Signal(bits + 1, name="groups")  # how many there are
        self._used = Signal(range(_WAITING + 1), name="used")
        self._out, self._full = Signal(self.layouts.result, name="out"), Signal(name="full")
        free = Signal()
        m.d.comb += [
            free.eq(~self._full | self.results.ready),
            self.results.valid.eq(self._full),
            self.results.payload.eq(self._out),
        ]
        self._add(m, free)
        self._drain(m, free)
        return m

    def _add(self, m: Module, free: Signal) -> None:
        """Results come, are added to their groups, and go on in order."""
        layouts, found, bits = self.layouts, self.found.payload, self._bits
        item = data.StructLayout({"result": layouts.result, "query": QUERY_BITS})
        m.submodules.waiting = waiting = memory.Memory(shape=item, depth=_WAITING, init=[])
        keep, head = waiting.write_port(), waiting.read_port(domain="comb")
        end, first = (Signal(range(_WAITING), name=name) for name in ("end", "first"))
        takes, gone = Signal(), Signal()
        m.d.comb += [
            takes.eq(self.found.valid & self.found.ready),
            keep.addr.eq(end),
            keep.data.result.eq(found),
            keep.data.query.eq(self.member.query),
            keep.en.eq(takes),
            head.addr.eq(first),
        ]
        m.d.sync += [
            self._used.eq(self._used + takes - gone),
            end.eq(end + takes),
            first.eq(first + gone),
        ]

        # Stages: its place; the table; whose group is there; with it; done, a cycle ago.
        stage = data.StructLayout(
            {
                "valid": 1,
                "mine": 1,  # it is grouped
                "several": 1,  # it is of other queries, too
                "member": layouts.member,
                "newest": layouts.timestamp,
                "oldest": layouts.timestamp,
                "at": range(_WAITING),
                "bucket": bits,
            }
        )
        stages = [Signal(stage, name=f"stage{number}") for number in range(5)]
        placed, read, met, counted, done = stages
        m.d.sync += [later.eq(former) for former, later in itertools.pairwise(stages)]
        queries = found.queries
        m.d.sync += [
            placed.valid.eq(takes),
            placed.mine.eq(self.member.grouped & queries.bit_select(self.member.query, 1)),
            placed.several.eq((queries & (queries - 1)).any()),
            placed.member.eq(self.member),
            placed.newest.eq(found.newest),
            placed.oldest.eq(found.oldest),
            placed.at.eq(end),
            placed.bucket.eq(_bucket(self.member, bits)),
        ]
        # What stands at a place after a result: it is written when that is done, and comes from here until it can
        # be read. By how many results ago that was, found out a cycle before.
        owners = [Signal(self.owner, name=f"owner{number}") for number in range(3)]
        sums = [Signal(self.sums, name=f"sums{number}") for number in range(2)]
        ago = {number: Signal(name=f"ago{number}") for number in (2, 3, 4)}

        def alike(later: data.View, earlier: data.View) -> Value:
            return earlier.valid & (later.bucket == earlier.bucket)

        owner, its = Signal(self.owner), met.member
        old_owner, old, older = Signal(self.owner), Signal(self.sums), Signal(self.sums)
        entry = self._read.data
        owned_1, summed_1, summed_2 = (Signal(name=n) for n in ("owned_1", "summed_1", "summed_2"))
        m.d.sync += [
            ago[2].eq(alike(placed, met)),
            ago[3].eq(alike(placed, counted)),
            ago[4].eq(alike(placed, done)),
            owned_1.eq(alike(read, met)),
            summed_2.eq(alike(read, counted)),
            summed_1.eq(alike(met, counted)),
        ]
        m.d.sync += [
            old_owner.eq(entry.owner),
            older.eq(entry.sums),
        ]
        for number in (4, 3, 2):
            with m.If(ago[number]):
                m.d.sync += old_owner.eq(owners[number - 2])
        for number in (4, 3):
            with m.If(ago[number]):
                m.d.sync += older.eq(sums[number - 3])
        m.d.sync += old.eq(Mux(summed_2, sums[0], older))

        # Whose group is there: nobody's becomes its own.
        m.d.comb += owner.eq(Mux(owned_1, owners[0], old_owner))
        fresh, goes = Signal(), Signal()
        is_its = (owner.key == its.key) & (owner.query == its.query)
        m.d.sync += [
            fresh.eq(~owner.live),
            goes.eq(met.valid & met.mine & (~owner.live | is_its)),
            owners[0].eq(owner),
            owners[1].eq(owners[0]),
            owners[2].eq(owners[1]),
        ]
        with m.If(met.mine & ~owner.live):
            m.d.sync += [
                owners[0].live.eq(1),
                owners[0].query.eq(its.query),
                owners[0].key.eq(its.key),
            ]

        # What it comes to with this result, unless it is full.
        so_far, more, added = Signal(self.sums), Signal(self.sums), Signal()
        value, newest, oldest = counted.member.value, counted.newest, counted.oldest
        m.d.comb += [
            so_far.eq(Mux(summed_1, sums[0], old)),
            added.eq(goes & (fresh | ~so_far.full)),
            more.count.eq(Mux(fresh, 1, so_far.count + 1)),
            more.full.eq(~fresh & (so_far.count == (1 << GROUP_COUNT_BITS) - 2)),
            more.total.eq(Mux(fresh, value, so_far.total + value)),
            more.least.eq(Mux(fresh | (value < so_far.least), value, so_far.least)),
            more.greatest.eq(Mux(fresh | (value > so_far.greatest), value, so_far.greatest)),
            more.first.eq(Mux(fresh | _before(newest, so_far.first), newest, so_far.first)),
            more.oldest.eq(Mux(fresh | _before(oldest, so_far.oldest), oldest, so_far.oldest)),
        ]
        was_added, begins = Signal(), Signal()
        m.d.sync += [
            sums[0].eq(Mux(added, more, so_far)),
            sums[1].eq(sums[0]),
            was_added.eq(added),
            begins.eq(goes & fresh),
        ]
        m.d.comb += [
            self._read.addr.eq(placed.bucket),
            self._read.en.eq(1),
            self._write.addr.eq(done.bucket),
            self._write.data.owner.eq(owners[1]),
            self._write.data.sums.eq(sums[0]),
            self._write.en.eq(was_added),
            self._list.addr.eq(self._groups[:bits]),
            self._list.data.eq(done.bucket),
            self._list.en.eq(begins),
        ]
        with m.If(begins):
            m.d.sync += self._groups.eq(self._groups + 1)

        # Then each leaves, in turn, for the queries that are left.
        known, added_at, leaves = (Signal(_WAITING, name=n) for n in ("known", "added", "leaves"))
        at, left = Signal(_WAITING), Signal(_WAITING)
        m.d.comb += [
            at.bit_select(done.at, 1).eq(done.valid),
            left.bit_select(first, 1).eq(gone),
            gone.eq(known.bit_select(first, 1) & (free | ~leaves.bit_select(first, 1))),
        ]
        m.d.sync += known.eq((known | at) & ~left)
        with m.If(done.valid):
            m.d.sync += [
                added_at.bit_select(done.at, 1).eq(was_added),
                leaves.bit_select(done.at, 1).eq(~was_added | done.several),
            ]
        own = Mux(added_at.bit_select(first, 1), 1 << head.data.query, 0)[: len(queries)]
        with m.If(free):
            m.d.sync += [
                self._full.eq(gone & leaves.bit_select(first, 1)),
                self._out.eq(head.data.result),
                self._out.queries.eq(head.data.result.queries & ~own),
            ]

    def _drain(self, m: Module, free: Signal) -> None:
        """Gives all groups, one after the other, or forgets them."""
        layouts, parts = self.layouts, self.layouts.group_parts
        size = len(self._out.sequences.as_value())
        at, place = Signal(self._bits + 1, name="drained_at"), self._listed.data
        first, oldest = Signal(layouts.timestamp), Signal(layouts.timestamp)
        words = Signal(parts * size)
        left = Signal(parts)  # a bit for each that is to be given
        drains, forgets, empty = Signal(), Signal(), Signal()
        room, sweeps = Signal(), Signal()
        with m.If(self.clear):
            m.d.sync += forgets.eq(1)
        m.d.comb += [
            drains.eq(self.drain | forgets | self.clear),
            self.found.ready.eq(room),
            self._listed.addr.eq(at),
            self._listed.en.eq(1),
        ]
        # What is taken in the last cycle with room is counted in the next one.
        m.d.sync += [
            room.eq(~drains & ~sweeps & (self._used < _WAITING - 2)),
            empty.eq(drains & ~room & (self._used == 0)),
        ]
        with m.FSM() as fsm:
            # A reset of the registers leaves in the memory what was there.
            with m.State("SWEEP"):
                m.d.comb += [
                    sweeps.eq(1),
                    self._write.addr.eq(at),
                    self._write.data.owner.live.eq(0),
                    self._write.en.eq(1),
                ]
                m.d.sync += at.eq(at + 1)
                with m.If(at == self.config.groups - 1):
                    m.next = "ADD"
            with m.State("ADD"):
                m.d.sync += at.eq(0)
                with m.If(drains & empty):
                    m.next = "NEXT"
            with m.State("NEXT"):
                m.next = "PLACE"
                with m.If(at == self._groups):
                    m.d.sync += [self._groups.eq(0), forgets.eq(self.clear)]
                    m.d.comb += self.drained.eq(~forgets)
                    m.next = "ADD"
            with m.State("PLACE"):
                m.d.comb += self._read.addr.eq(place)
                m.next = "READ"
            with m.State("READ"):
                owner, sums = self._read.data.owner, self._read.data.sums
                m.d.sync += [
                    words.eq(
                        Cat(
                            owner.query,
                            owner.key,
                            sums.count,
                            sums.total,
                            sums.least,
                            sums.greatest,
                        )
                    ),
                    first.eq(sums.first),
                    oldest.eq(sums.oldest),
                    left.eq(-1),
                ]
                m.d.comb += [
                    self._write.addr.eq(place),
                    self._write.data.owner.live.eq(0),
                    self._write.en.eq(1),
                ]
                m.next = "GIVE"
            with m.State("GIVE"):
                with m.If(free & ~forgets):
                    m.d.sync += [
                        self._full.eq(1),
                        self._out.queries.eq(0),
                        self._out.carries.eq(-1),
                        self._out.newest.eq(first),
                        self._out.oldest.eq(oldest),
                        self._out.sequences.eq(words[:size]),
                        words.eq(words >> size),
                        left.eq(left >> 1),
                    ]
                with m.If(forgets | (free & (left == 1))):
                    m.d.sync += at.eq(at + 1)
                    m.next = "NEXT"
        m.d.comb += [
            self.idle.eq((self._used == 0) & ~self._full & fsm.ongoing("ADD") & ~forgets),
            self.blocked.eq(~free),
            self.working.eq(~self.idle & free),
        ]


def _bucket(member: data.View, bits: int) -> Value:
    """The place of a group: query and key, folded."""
    key = member.key
    folded: Value = member.query
    for begin in range(0, len(key), bits):
        folded = folded ^ key[begin : begin + bits]
    return folded[:bits]


def _before(one: Value, other: Value) -> Value:
    """The order of numbers that go round, less than half a round apart."""
    return (one - other)[len(one) - 1]
