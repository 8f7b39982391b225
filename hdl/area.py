"""Join area: the window of one stream, and the pipeline that joins incoming probes with it."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, ResetInserter, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import ADDRESS_BITS, DATA_BITS, Target
from seustream.hdl.execution import ArrayExecution, SerialExecution
from seustream.hdl.hashing import seed_bits
from seustream.hdl.index import EqualityIndex
from seustream.hdl.layouts import TAG_BITS, Layouts
from seustream.hdl.loader import ProbeLoader
from seustream.hdl.ports import (
    Fetching,
    JoinedOffer,
    JoinedProbes,
    RawProbes,
    Rewriting,
    TableBus,
    TupleArrivals,
    TupleDone,
    WindowReading,
    registered,
)
from seustream.hdl.probe_fifo import ProbeFifo
from seustream.hdl.probe_queue import KNOWN
from seustream.hdl.scan import Scanner
from seustream.hdl.window import RangeKind, WindowBuffer


class JoinArea(wiring.Component):
    """probe FIFO -> probe loader -> scanner (window buffer, factor array, equality index)
    -> execution unit -> router

    Function, latency and throughput are those of its parts. All of them except the window buffer can be
    rolled back to the last probe that was finished (`rewind`), so that no probe ever blocks one that
    is nearer to the output.

    tables          in (`TableBus`); registered here, because areas are far from each other
    arrivals        in (`TupleArrivals`); `check`, `flow` and `oldest` are a cycle earlier than in the window buffer
    keys            in: attributes for the indexes (`Layouts.attributes`), valid with `arrivals.store` or a cycle after
                    `rewriting.rewrite`
    reading         in (`WindowReading`)
    fetch           out (`Fetching`): the data of probes
    rewriting       in (`Rewriting`); a cycle earlier than in the window buffer. The tuple is also indexed again
    raw_probes, joined_probes   in (`RawProbes`, `JoinedProbes`); a cycle earlier than in the probe FIFO
    offer           out (`JoinedOffer`)
    done            out (`TupleDone`): probes
    leaving         out: stream of sequence numbers of stored tuples that leave early
    clear           in: pulse: empty the window
    occupancy       out: number of tuples stored
    pairs           out: number of pairs that a probe was compared in, for one cycle when it is done, otherwise 0
    hits            out: pulse: a pair is taken for execution
    stalled         out: a joined tuple waits for the router
    rewound         out: pulse: a probe is left
    meters          out, of window buffer, loader, scanner and execution unit: the `Meter`, a cycle late
    executed        out: pulse: an instruction is executed
    trace           out: which one (`Layouts.trace`), valid with `executed`
    """

    def __init__(self, config: DeviceConfig, number: int) -> None:
        self.config, self.number = config, number
        self.layouts = layouts = Layouts(config)
        super().__init__(
            {
                "tables": In(TableBus()),
                "arrivals": In(TupleArrivals(config)),
                "keys": In(layouts.attributes),
                "reading": In(WindowReading(config)),
                "fetch": Out(Fetching(config)),
                "rewriting": In(Rewriting(config)),
                "raw_probes": In(RawProbes(config)),
                "joined_probes": In(JoinedProbes(config)),
                "offer": Out(JoinedOffer(config)),
                "done": Out(TupleDone()),
                "leaving": Out(stream.Signature(layouts.sequence)),
                "clear": In(1),
                "occupancy": Out(layouts.pointer_bits),
                "pairs": Out(layouts.pointer_bits),
                "hits": Out(1),
                "stalled": Out(1),
                "rewound": Out(1),
                "meters": Out(data.ArrayLayout(2, 4)),
                "executed": Out(1),
                "trace": Out(layouts.trace),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, layouts = self.config, self.layouts
        m.submodules.window = self._window = window = WindowBuffer(config)
        m.submodules.probes = probes = ProbeFifo(config)
        m.submodules.loader = loader = ProbeLoader(config, self.number)
        unit = ArrayExecution if config.lanes else SerialExecution
        m.submodules.execution = execution = unit(config, self.number)
        scanner = Scanner(config)
        rewind = execution.rewind
        m.submodules.scanner = ResetInserter(rewind)(scanner)

        # Broadcast signals are registered in each area, because the areas are far from each other.
        self._bus = bus = TableBus().create()
        self._half = bus.half
        # Copy for the block RAM, which lies elsewhere. A different reset value keeps synthesis from merging the two.
        self._half_read = Signal(init=1)
        m.d.sync += self._half_read.eq(self.tables.half)
        registered(m, wiring.flipped(self.tables), bus)
        # ... and a cycle later for the tables that are made of registers.
        self._address, self._data = Signal(ADDRESS_BITS), Signal(DATA_BITS)
        m.d.sync += [self._address.eq(self._bus.address), self._data.eq(self._bus.data)]
        self._retention(m)
        self._plans(m, scanner, loader)
        self._indexes(m, scanner, loader)

        # Raw tuples and the readers of the window.
        registered(m, wiring.flipped(self.arrivals), window.arrivals, "check", "flow", "oldest")
        registered(m, wiring.flipped(self.rewriting), window.rewriting)
        wiring.connect(m, wiring.flipped(self.reading), window.reading)
        wiring.connect(m, window.leaving, wiring.flipped(self.leaving))
        m.d.comb += [window.clear.eq(self.clear), self.occupancy.eq(window.occupancy)]

        # Sequencer and router to probe FIFO to loader.
        registered(m, wiring.flipped(self.raw_probes), probes.raw_probes)
        registered(m, wiring.flipped(self.joined_probes), probes.joined_probes)
        wiring.connect(m, loader.fetch, wiring.flipped(self.fetch))
        m.d.comb += [
            loader.available.eq(probes.available),
            probes.take.eq(loader.take),
            probes.take_level.eq(loader.level),
            loader.reference.eq(probes.reference),
            loader.brings.eq(probes.brings),
            loader.raw.eq(probes.raw),
            probes.give.eq(loader.give),
            probes.commit.eq(execution.commit),
            probes.commit_level.eq(execution.committed_level),
            probes.rewind.eq(rewind),
            loader.flush.eq(rewind),
            window.context.eq(loader.context),
            loader.tail.eq(window.tail),
            loader.count.eq(window.count),
            loader.factors.eq(execution.factors),
            loader.used.eq(execution.used),
            loader.last_turn.eq(execution.last_turn),
        ]

        # Loader to scanner; each probe is announced to the execution unit when the scanner takes it.
        wiring.connect(m, loader.staged, scanner.staged)
        probe = loader.staged.payload
        m.d.comb += [
            scanner.may_begin.eq(execution.may_enter),
            scanner.resume.eq(execution.resume),
            scanner.resume_slot.eq(execution.resume_slot),
            scanner.factors.eq(execution.factors),
            scanner.last_turn.eq(execution.last_turn),
            scanner.put.eq(loader.put),
            scanner.wait.eq(self.reading.coming),
            window.row.eq(scanner.row),
            scanner.tuples.eq(window.tuples),
            execution.entering.reference.eq(probe.reference),
            execution.entering.level.eq(probe.level),
            execution.entering.bits.eq(probe.bits),
            execution.entering.row.eq(probe.plan.row),
            execution.entering.rows.eq(probe.plan.rows),
            execution.resume_level.eq(probe.level),
            execution.resumed.eq(execution.enter),
        ]
        m.d.comb += execution.enter.eq(scanner.begin & ~rewind)
        m.d.comb += [loader.hold.eq(execution.hold), loader.freed.eq(scanner.freed)]

        # Scanner to execution unit to router.
        wiring.connect(m, scanner.pairs, execution.pairs)
        wiring.connect(m, execution.offer, wiring.flipped(self.offer))
        wiring.connect(m, bus, execution.tables)
        m.d.comb += [
            execution.attributes.eq(loader.attributes),
            execution.waiting.eq(probes.waiting),
            window.hit.eq(execution.hit),
            window.hit_take.eq(execution.hit_take),
            execution.hit_bits.eq(window.hit_bits),
            self.done.commit.eq(execution.commit),
            self.done.context.eq(execution.context),
            self.hits.eq(scanner.pairs.valid & scanner.pairs.ready & scanner.pairs.payload.some),
            self.stalled.eq(execution.stalled),
            self.rewound.eq(rewind),
            self.executed.eq(execution.executed),
            self.trace.eq(execution.trace),
        ]

        for number, unit in enumerate((window, loader, scanner, execution)):
            m.d.sync += self.meters[number].eq(Cat(unit.meter.working, unit.meter.blocked))

        # Number of pairs that each probe in flight was compared in.
        m.submodules.tallies = tallies = memory.Memory(
            shape=layouts.pointer_bits, depth=KNOWN, init=[]
        )
        write, read = tallies.write_port(), tallies.read_port(domain="comb")
        first, end = Signal(range(KNOWN)), Signal(range(KNOWN))
        # A probe is done long after the scanner is done with it, so these may be registered.
        ended, tally = Signal(), Signal(layouts.pointer_bits)
        m.d.sync += [ended.eq(scanner.ended & ~rewind), tally.eq(scanner.tally)]
        m.d.comb += [
            write.addr.eq(end),
            write.data.eq(tally),
            write.en.eq(ended),
            read.addr.eq(first),
        ]
        m.d.sync += self.pairs.eq(Mux(execution.commit, read.data, 0))
        m.d.sync += end.eq(end + ended)
        m.d.sync += first.eq(first + execution.commit)
        with m.If(rewind):
            m.d.sync += [first.eq(0), end.eq(0)]
        return m

    def _retention(self, m: Module) -> None:
        """Loads the retention of the window; in two halves, like all tables."""
        half_before = Signal()
        m.d.sync += [half_before.eq(self._half), self._window.forget.eq(self._half != half_before)]
        to_range, to_rows = self._mine(m, Target.RANGE), self._mine(m, Target.ROWS)
        for half in range(2):
            kind = Signal(RangeKind, name=f"kind_{half}")
            ticks = Signal(self.layouts.timestamp, name=f"ticks_{half}")
            rows = Signal(self.layouts.sequence, name=f"rows_{half}")
            with m.If(self._half != half):
                with m.If(to_range):
                    m.d.sync += [ticks.eq(self._data), kind.eq(self._address[:2])]
                with m.If(to_rows):
                    m.d.sync += rows.eq(self._data)
            with m.If(self._half == half):
                m.d.sync += [
                    self._window.kind.eq(kind),
                    self._window.ticks.eq(ticks),
                    self._window.rows.eq(rows),
                ]

    def _mine(self, m: Module, target: Target) -> Signal:
        """Returns a pulse: a word for this table of the area arrives, with `_address` and `_data`. For tables made
        of registers."""
        bus, mine = self._bus, Signal(name=f"to_{target.name.lower()}")
        m.d.sync += mine.eq(bus.valid & (bus.unit == self.number) & (bus.target == target))
        return mine

    def _plans(self, m: Module, scanner: Scanner, loader: ProbeLoader) -> None:
        """Adds the tables by route tag: what the loader does with a probe, and which of its pairs the scanner is
        to find."""
        bus, layouts = self._bus, self.layouts
        interest, plan = layouts.interest, layouts.probe_plan
        worth = scanner.worth
        for name, target, shape, begin, tag, its in (
            ("plans", Target.PROBE_PLAN, plan, interest.size, loader.tag, loader.plan),
            ("interests", Target.PROBE_PLAN, interest, 0, scanner.tag, worth.interest),
            ("terms", Target.TERMS, layouts.terms, 0, scanner.tag, worth.terms),
        ):
            if name != "plans" and not self.config.lanes:
                continue
            m.submodules[name] = table = memory.Memory(shape=shape, depth=2 << TAG_BITS, init=[])
            write, read = table.write_port(), table.read_port()
            m.d.comb += [
                write.addr.eq(Cat(bus.address[:TAG_BITS], ~self._half)),
                write.data.eq(bus.data[begin:][: shape.size]),
                write.en.eq(bus.valid & (bus.unit == self.number) & (bus.target == target)),
                read.addr.eq(Cat(tag, self._half_read)),
                read.en.eq(1),
                its.eq(read.data),
            ]

    def _indexes(self, m: Module, scanner: Scanner, loader: ProbeLoader) -> None:
        """Adds one equality index per indexed attribute; the scanner asks the one that its probe uses."""
        to_index, to_seed = self._mine(m, Target.INDEX), self._mine(m, Target.SEED)
        seed = Signal(seed_bits(self.config))
        for half in range(2):
            loaded = Signal.like(seed, name=f"seed_{half}")
            with m.If(to_seed & (self._half != half)):
                m.d.sync += loaded.eq(self._data)
            with m.If(self._half == half):
                m.d.sync += seed.eq(loaded)
        m.d.comb += loader.seed.eq(seed)
        window, rewriting = self._window, self._window.rewriting
        insert, slot = self.arrivals.store | rewriting.rewrite, Signal(self.layouts.slot_bits)
        m.d.sync += slot.eq(Mux(rewriting.rewrite, rewriting.slot, window.written))
        for number in range(self.config.indexes):
            m.submodules[f"index{number}"] = index = EqualityIndex(self.config)
            attribute = Signal(
                data.StructLayout({"number": 2, "used": 1}), name=f"indexed_{number}"
            )
            for half in range(2):
                loaded = Signal(attribute.shape(), name=f"indexed_{number}_{half}")
                with m.If(to_index & (self._address == number) & (self._half != half)):
                    m.d.sync += loaded.eq(self._data[: attribute.shape().size])
                with m.If(self._half == half):
                    m.d.sync += attribute.eq(loaded)
            m.d.sync += [
                index.key.eq(self.keys[attribute.number]),
                index.insert.eq(insert & attribute.used),
            ]
            m.d.comb += [index.seed.eq(seed), index.slot.eq(slot)]
            wiring.connect(m, scanner.lookups[number], index.lookup)
