"""Query search: finds the queries of a route tag that have a joined tuple in their windows."""

from __future__ import annotations

import itertools

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import Target
from seustream.hdl.device import WindowKind
from seustream.hdl.layouts import Layouts
from seustream.hdl.ports import TableBus
from seustream.hdl.window_tests import SET_BITS, TEST_BITS, Then

PLACES = 32
"""Tuples held at once."""
PLACE_BITS = ceil_log2(PLACES)
_RING = 8


class QuerySearch(wiring.Component):
    """Runs joined tuples through the tests of `seustream.hdl.window_tests`. They circulate in a ring, one
    test per round, and finish in any order.

    latency     11 cycles for a tuple of one test, 8 more for each further test
    throughput  a test per cycle

    tables           in: table bus (`TableBus`)
    came             in: pulse with a tuple; it takes the place after that of the one before, which must be free
    keys             in: the streams that it carries, and their ages and ranks
    test             in: the first test for the queries that its route tag leads to
    queries          in: these queries, a cycle after `came`
    found, place     out: pulse: the queries of the tuple at this place are known
    some             out: there are any; valid with `found`
    read, left       in, out: a place, and the queries found there; held from `found` on
    working          out: there is a tuple in the ring
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        n = config.streams
        super().__init__(
            {
                "tables": In(TableBus()),
                "came": In(1),
                "keys": In(
                    data.StructLayout(
                        {
                            "carries": n,
                            "ages": data.ArrayLayout(layouts.timestamp, n),
                            "ranks": data.ArrayLayout(layouts.sequence, n),
                        }
                    )
                ),
                "queries": In(config.queries),
                "test": In(TEST_BITS),
                "found": Out(1),
                "place": Out(PLACE_BITS),
                "some": Out(1),
                "read": In(PLACE_BITS),
                "left": Out(config.queries),
                "working": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layouts = self.layouts
        end, begun = Signal(PLACE_BITS + 1), Signal(PLACE_BITS + 1)
        came, before = Signal(), Signal(PLACE_BITS)  # a cycle ago
        m.d.sync += [came.eq(self.came), before.eq(end[:-1]), end.eq(end + self.came)]
        keys, firsts = (
            self._kept(m, name, content, self.came, end[:-1])
            for name, content in (("keys_kept", self.keys), ("firsts", self.test))
        )
        queries = self._kept(m, "queries_kept", self.queries, came, before)

        # The ring. A tuple that comes round has priority over a new one.
        item = data.StructLayout({"place": PLACE_BITS, "first": 1, "test": TEST_BITS})
        valid = Signal(_RING)
        items = [Signal(item, name=f"item{stage}") for stage in range(_RING)]
        m.d.sync += [later.eq(former) for former, later in itertools.pairwise(items)]
        back, onward, new = Signal(), Signal(TEST_BITS), Signal()
        m.d.comb += [new.eq(begun != end), firsts.addr.eq(begun[:-1])]
        m.d.sync += valid.eq(Cat(back | new, valid))
        with m.If(back):
            m.d.sync += [
                items[0].place.eq(items[-1].place),
                items[0].first.eq(0),
                items[0].test.eq(onward),
            ]
        with m.Else():
            m.d.sync += [
                items[0].place.eq(begun[:-1]),
                items[0].first.eq(1),
                items[0].test.eq(firsts.data),
                begun.eq(begun + new),
            ]
        m.d.sync += self.working.eq(valid.any() | new)

        # Stages 0 and 1: read the test, and the keys that it compares.
        bus = self.tables
        parts = Signal(data.ArrayLayout(64, 2))  # the last two PARTs
        with m.If(bus.valid & (bus.target == Target.PART)):
            m.d.sync += [parts[0].eq(bus.data), parts[1].eq(parts[0])]
        m.submodules.tests = tests = memory.Memory(
            shape=layouts.window_test, depth=2 << TEST_BITS, init=[]
        )
        write, read = tests.write_port(), tests.read_port()
        m.d.comb += [
            write.addr.eq(Cat(bus.address[:TEST_BITS], ~self.tables.half)),
            Cat(write.data.steps, write.data.kinds).eq(bus.data),
            write.data.low.eq(parts[0]),
            write.data.high.eq(parts[1]),
            write.en.eq(bus.valid & (bus.target == Target.TEST)),
            read.addr.eq(Cat(items[0].test, self.tables.half)),
            read.en.eq(1),
            keys.addr.eq(items[1].place),
        ]
        test, key = Signal(layouts.window_test), Signal(self.keys.shape())
        m.d.sync += [test.eq(read.data), key.eq(keys.data)]

        # Stages 2 to 4: select age or rank of each stream; compare with the limits; select the step.
        steps = [Signal(test.steps.shape(), name=f"steps{stage}") for stage in range(2)]
        low, high = Signal(layouts.limit), Signal(layouts.limit)
        m.d.sync += [low.eq(test.low), high.eq(test.high)]
        m.d.sync += [steps[0].eq(test.steps), steps[1].eq(steps[0])]
        under_low, under_high = Signal(self.config.streams), Signal(self.config.streams)
        for s in range(self.config.streams):
            by_rank = test.kinds[s] == WindowKind.ROWS
            by_age = test.kinds[s] == WindowKind.RANGE
            value = Signal(layouts.limit, name=f"value_{s}")
            free = Signal(name=f"free_{s}")
            m.d.sync += [
                value.eq(Mux(by_rank, key.ranks[s], key.ages[s])),
                free.eq(~key.carries[s] | ~(by_rank | by_age)),
                under_low[s].eq(free | (value < low)),
                under_high[s].eq(free | (value < high)),
            ]
        step, leads = Signal(layouts.step), Signal(layouts.step)
        m.d.sync += [
            step.eq(
                Mux(under_low.all(), steps[1][0], Mux(under_high.all(), steps[1][1], steps[1][2]))
            ),
            leads.eq(step),
        ]

        # Stages 5 and 6: the queries that remain after this step, and the next test.
        m.submodules.sets = sets = memory.Memory(
            shape=layouts.query_set, depth=2 << SET_BITS, init=[]
        )
        write, read = sets.write_port(), sets.read_port()
        m.d.comb += [
            write.addr.eq(Cat(bus.address[:SET_BITS], ~self.tables.half)),
            write.data.queries.eq(bus.data),
            write.data.next.eq(parts[0]),
            write.data.goes.eq(parts[0] != 0),
            write.en.eq(bus.valid & (bus.target == Target.SET)),
            read.addr.eq(Cat(step.index[:SET_BITS], self.tables.half)),
            read.en.eq(1),
        ]
        mask, goes_on = Signal(self.config.queries), Signal()
        by_set = leads.then == Then.SET
        m.d.sync += [
            mask.eq(Mux(by_set, read.data.queries, (leads.then != Then.NONE).replicate(len(mask)))),
            onward.eq(Mux(by_set, read.data.next, leads.index)),
            goes_on.eq((leads.then == Then.TEST) | (by_set & read.data.goes)),
        ]

        # Stages 7 and 8: mask the queries that remained so far.
        m.submodules.found_kept = kept = memory.Memory(
            shape=self.config.queries, depth=PLACES, init=[]
        )
        write, before, out = kept.write_port(), *(kept.read_port(domain="comb") for _ in range(2))
        passes, ended, place = Signal(), Signal(), Signal(PLACE_BITS)
        left = Signal(self.config.queries)
        m.d.comb += [
            back.eq(valid[-1] & goes_on),
            queries.addr.eq(items[-1].place),
            before.addr.eq(items[-1].place),
            write.addr.eq(place),
            write.data.eq(left),
            write.en.eq(passes),
            out.addr.eq(self.read),
            self.left.eq(out.data),
        ]
        m.d.sync += [
            passes.eq(valid[-1]),
            ended.eq(valid[-1] & ~goes_on),
            place.eq(items[-1].place),
            left.eq(Mux(items[-1].first, queries.data, before.data) & mask),
            self.found.eq(ended),
            self.place.eq(place),
            self.some.eq(left.any()),
        ]
        return m

    def _kept(
        self, m: Module, name: str, content: Signal, comes: Value, place: Value
    ) -> memory.ReadPort:
        """Keeps a value per tuple, at its place; returns the read port."""
        m.submodules[name] = kept = memory.Memory(shape=content.shape(), depth=PLACES, init=[])
        write = kept.write_port()
        m.d.comb += [write.addr.eq(place), write.data.eq(content), write.en.eq(comes)]
        return kept.read_port(domain="comb")
