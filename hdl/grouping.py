"""Grouping unit: results of groups, counted and summed instead of delivered."""

from __future__ import annotations

import itertools

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import DeviceConfig
from seustream.hdl.layouts import QUERY_BITS, Layouts

_WAITING = 16
"""Results in the unit; one may come in the cycle in which there are too many."""


class GroupingUnit(wiring.Component):
    """Adds a result to its group, whose place is the hash of query and key, and delivers it to its other queries. A
    result that finds another group there, or its own one full, goes on as it came. A drain gives the groups in the order
    in which they began: of each some results of no query, whose sequence numbers are its bits (`Layouts.group`),
    and whose times those of the first result and of the oldest component.

    latency     6 cycles
    throughput  a result a cycle; of a drain a group in `Layouts.group_parts` cycles and 3 more

    found, member   results, and beside each how it is grouped
    results         those that are delivered, and groups
    drain, drained  held: give all groups as soon as nothing waits; pulse: all are given
    clear           pulse: forget all groups
    idle            nothing waits, and no group is on its way out
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
            }
        )
        self.entry = data.StructLayout(
            {
                "live": 1,
                "group": layouts.group,
                "first": layouts.timestamp,
                "oldest": layouts.timestamp,
            }
        )

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

        # Stages: its place; the table; what it gives; whether that is its group, and with it; done, a cycle ago.
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
        stages = [Signal(stage, name=f"stage{number}") for number in range(3)]
        placed, read, met = stages
        done = [
            Signal(data.StructLayout({"of": stage, "added": 1, "entry": self.entry}), name=name)
            for name in ("done", "done_before")
        ]
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
        # What was written since it was read, or a cycle before it was, comes from here.
        met_last, met_before, same = Signal(), Signal(), Signal()
        old = Signal(self.entry)
        m.d.sync += [
            met_last.eq(met.valid & (placed.bucket == met.bucket)),
            met_before.eq(done[0].of.valid & (placed.bucket == done[0].of.bucket)),
            same.eq(met.valid & (read.bucket == met.bucket)),
            old.eq(Mux(met_last, done[0].entry, Mux(met_before, done[1].entry, self._read.data))),
        ]
        entry, grown, its = Signal(self.entry), Signal(self.entry), met.member
        m.d.comb += entry.eq(Mux(same, done[0].entry, old))
        group, more, fresh = entry.group, grown.group, ~entry.live
        is_its = (group.key == its.key) & (group.query == its.query) & ~group.count.all()
        added = met.valid & met.mine & (fresh | is_its)
        m.d.comb += [
            grown.live.eq(1),
            grown.first.eq(Mux(fresh | _before(met.newest, entry.first), met.newest, entry.first)),
            grown.oldest.eq(
                Mux(fresh | _before(met.oldest, entry.oldest), met.oldest, entry.oldest)
            ),
            more.query.eq(its.query),
            more.key.eq(its.key),
            more.count.eq(Mux(fresh, 1, group.count + 1)),
            more.total.eq(Mux(fresh, its.value, group.total + its.value)),
            more.least.eq(Mux(fresh | (its.value < group.least), its.value, group.least)),
            more.greatest.eq(Mux(fresh | (its.value > group.greatest), its.value, group.greatest)),
        ]
        m.d.sync += [
            done[0].of.eq(met),
            done[0].added.eq(added),
            done[0].entry.eq(Mux(added, grown, entry)),
            done[1].eq(done[0]),
        ]
        begins = Signal()
        m.d.sync += begins.eq(added & fresh)
        m.d.comb += [
            self._read.addr.eq(placed.bucket),
            self._read.en.eq(1),
            self._write.addr.eq(done[0].of.bucket),
            self._write.data.eq(done[0].entry),
            self._write.en.eq(done[0].added),
            self._list.addr.eq(self._groups[:bits]),
            self._list.data.eq(done[0].of.bucket),
            self._list.en.eq(begins),
        ]
        with m.If(begins):
            m.d.sync += self._groups.eq(self._groups + 1)

        # Then each leaves, in turn, for the queries that are left.
        known, added_at, leaves = (Signal(_WAITING, name=n) for n in ("known", "added", "leaves"))
        at, left = Signal(_WAITING), Signal(_WAITING)
        m.d.comb += [
            at.bit_select(done[0].of.at, 1).eq(done[0].of.valid),
            left.bit_select(first, 1).eq(gone),
            gone.eq(known.bit_select(first, 1) & (free | ~leaves.bit_select(first, 1))),
        ]
        m.d.sync += known.eq((known | at) & ~left)
        with m.If(done[0].of.valid):
            m.d.sync += [
                added_at.bit_select(done[0].of.at, 1).eq(done[0].added),
                leaves.bit_select(done[0].of.at, 1).eq(~done[0].added | done[0].of.several),
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
                    self._write.data.live.eq(0),
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
                entry = self._read.data
                m.d.sync += [
                    words.eq(entry.group),
                    first.eq(entry.first),
                    oldest.eq(entry.oldest),
                    left.eq(-1),
                ]
                m.d.comb += [
                    self._write.addr.eq(place),
                    self._write.data.live.eq(0),
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
        m.d.comb += self.idle.eq((self._used == 0) & ~self._full & fsm.ongoing("ADD") & ~forgets)


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
