"""Grouping unit: counts and sums the results of groups instead of delivering them."""

from __future__ import annotations

import itertools

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import DeviceConfig
from seustream.hdl.layouts import GROUP_COUNT_BITS, QUERY_BITS, Layouts
from seustream.hdl.ports import Meter

_WAITING = 16
"""Results in the unit, including one that may still arrive in the cycle in which `ready` goes low."""


class GroupingUnit(wiring.Component):
    """Adds a result to its group, whose table entry is selected by a hash of query and key, and delivers it to its
    other queries. A result that finds another group there, or its own group full, passes unchanged. A drain outputs
    the groups in the order in which they began. Each leaves as several results of no query: their sequence numbers
    are the bits of the group (`Layouts.group`), their times those of its first result and of its oldest component.

    latency     7 cycles
    throughput  a result per cycle; in a drain, a group in `Layouts.group_parts` cycles plus 3

    found, member   in: stream of results; how each is grouped, valid with it
    results         out: stream of results to deliver, and of groups
    drain, drained  in, held: output all groups as soon as nothing waits; out: pulse: all are out
    clear           in: pulse: discard all groups
    idle            out: nothing waits, and no group is being output
    meter            out (`Meter`): the unit is busy; a result waits to be taken
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
                "meter": Out(Meter()),
            }
        )
        width = config.attribute_width
        # Which group owns an entry, and its sums so far.
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
        self._groups = Signal(bits + 1, name="groups")  # number of groups
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
        """Takes results, adds them to their groups, and passes them on in order."""
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

        # Pipeline stages: hash; table read; owner compared; sums updated; done, a cycle ago.
        stage = data.StructLayout(
            {
                "valid": 1,
                "mine": 1,  # the result is grouped
                "several": 1,  # it has other queries, too
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
        # Forwarding registers: the entries as the results ahead leave them. An entry is written when its result
        # is done, and is forwarded from here until the memory returns it. `ago`: how many stages ahead a result of
        # the same bucket is, found a cycle earlier.
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

        # Whose group is there; a free entry becomes that of this result.
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

        # The sums with this result, unless the group is full.
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

        # Then each result leaves, in order, for the queries that remain.
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
        """Outputs all groups, one after the other, or discards them."""
        layouts, parts = self.layouts, self.layouts.group_parts
        size = len(self._out.sequences.as_value())
        at, place = Signal(self._bits + 1, name="drained_at"), self._listed.data
        first, oldest = Signal(layouts.timestamp), Signal(layouts.timestamp)
        words = Signal(parts * size)
        left = Signal(parts)  # a bit for each part still to be output
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
        # A result taken in the last cycle with room is counted in the next one.
        m.d.sync += [
            room.eq(~drains & ~sweeps & (self._used < _WAITING - 2)),
            empty.eq(drains & ~room & (self._used == 0)),
        ]
        with m.FSM() as fsm:
            # A reset clears the registers but not the memory, so the entries are swept.
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
            self.meter.blocked.eq(~free),
            self.meter.working.eq(~self.idle & free),
        ]


def _bucket(member: data.View, bits: int) -> Value:
    """Hashes a group to its table entry: query and key, folded by XOR."""
    key = member.key
    folded: Value = member.query
    for begin in range(0, len(key), bits):
        folded = folded ^ key[begin : begin + bits]
    return folded[:bits]


def _before(one: Value, other: Value) -> Value:
    """Compares serial numbers, which wrap around and are less than half their range apart."""
    return (one - other)[len(one) - 1]
