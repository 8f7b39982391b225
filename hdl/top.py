"""WJASIP: the stream-join processor, which connects all of its parts."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.arbiter import RoundRobin
from seustream.hdl.area import JoinArea
from seustream.hdl.config import DeviceConfig
from seustream.hdl.control import COMMAND, RESPONSE, ControlUnit
from seustream.hdl.control_words import Target
from seustream.hdl.fetch import TupleFetch
from seustream.hdl.grouping import GroupingUnit
from seustream.hdl.layouts import STREAM_BITS, Layouts
from seustream.hdl.output import Output
from seustream.hdl.ports import WORD, registered
from seustream.hdl.replay import Replay
from seustream.hdl.router import Router
from seustream.hdl.selection import SelectionUnit
from seustream.hdl.sequencer import Sequencer

_STILL = 8
"""Consecutive cycles without anything in flight."""


class Wjasip(wiring.Component):
    """raw -> selection unit -> sequencer -> router <-> join areas; router -> output -> grouping unit -> results

    latency     the sum of its parts on the path: selection, window, fetch, scan, execution, output
    throughput  the slowest of: a raw tuple per cycle, or per 3 cycles while windows are not calm; in each area `lanes`
                pairs scanned or one indexed candidate per cycle, a probe per cycle, and a joined tuple per cycle, or
                per 8 cycles if a pair runs the program; a joined tuple per cycle for all areas together; a window test
                per cycle at the output

    commands, responses   in, out: streams of the control unit
    raw                   in: stream of raw tuples in arrival order. A filler advances the clock before a leap by
                          more than half the counter range; a filler that is admitted drains all groups formed
                          before it
    results               out: stream of delivered results; those of different raw tuples come in any order
    handed_over           out: stream of stored tuples that left early
    idle                  out: nothing is in flight
    executed, traces      out, with `trace`: per area, pulse and the instruction that is executed
    """

    def __init__(self, config: DeviceConfig, trace: bool = False) -> None:
        self.config, self.with_trace = config, trace
        self.layouts = layouts = Layouts(config)
        members = {
            "commands": In(stream.Signature(COMMAND)),
            "responses": Out(stream.Signature(RESPONSE)),
            "raw": In(stream.Signature(layouts.raw)),
            "results": Out(stream.Signature(layouts.result)),
            "handed_over": Out(stream.Signature(layouts.handed_over)),
            "idle": Out(1),
        }
        if trace:
            members["executed"] = Out(config.streams)
            members["traces"] = Out(data.ArrayLayout(layouts.trace, config.streams))
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        n = config.streams
        m.submodules.control = self._control = control = ControlUnit(config)
        m.submodules.selection = selection = SelectionUnit(config)
        m.submodules.sequencer = sequencer = Sequencer(config)
        m.submodules.router = router = Router(config)
        areas = [JoinArea(config, number) for number in range(n)]
        for number, area in enumerate(areas):
            m.submodules[f"area{number}"] = area
        m.submodules.fetch = fetch = TupleFetch(config, n + 2)
        m.submodules.output = output = Output(config)
        m.submodules.replay = replay = Replay(config)

        # Tables. Each area registers the bus itself; for the other parts it is registered here.
        wiring.connect(m, control.tables, *(area.tables for area in areas))
        for part in (selection, output):
            registered(m, control.tables, part.tables, *WORD)
        self._raw_tables(m, sequencer)

        # Raw tuples: selection unit, sequencer, areas and output.
        self._door(m, selection)
        wiring.connect(m, selection.selected, sequencer.selected)
        for number, area in enumerate(areas):
            wiring.connect(m, sequencer.windows[number], area.arrivals)
            wiring.connect(m, sequencer.probes[number], area.raw_probes)
        wiring.connect(m, sequencer.offers, router.raws)

        # Joined tuples: areas, router, areas and output.
        for number, area in enumerate(areas):
            wiring.connect(m, area.offer, router.offers[number])
            wiring.connect(m, router.probes[number], area.joined_probes)
        m.d.comb += [
            output.push.eq(router.output),
            output.pushed.eq(router.pushed),
            router.output_room.eq(output.room),
        ]
        self._group(m, output)

        # Tuples in flight are counted.
        for number, part in enumerate((*areas, output)):
            wiring.connect(m, part.done, sequencer.done[number])
        m.d.comb += [sequencer.sent.eq(router.sent), sequencer.sent_context.eq(router.context)]

        # Data of tuples: of the raw tuple, which is kept, and of those in the windows.
        m.d.comb += [
            fetch.remember.eq(sequencer.snapshot),
            fetch.context.eq(sequencer.context),
            fetch.raw.eq(sequencer.raw),
            fetch.whole_results.eq(output.whole),
        ]
        for number, area in enumerate(areas):
            wiring.connect(m, fetch.windows[number], area.reading)
        for number, part in enumerate((*areas, output, replay)):
            wiring.connect(m, part.fetch, fetch.requesters[number])

        # Replay: stored tuples are evaluated again by new tables.
        wiring.connect(m, replay.selection, selection.replayed)
        for number, area in enumerate(areas):
            wiring.connect(m, replay.windows[number], area.rewriting)
        m.d.comb += replay.start.eq(control.replay)
        m.d.sync += control.replaying.eq(replay.busy)
        keys, stored = Signal(self.layouts.attributes), replay.selection.attributes
        m.d.comb += [
            keys.eq(Mux(control.replaying, stored, sequencer.raw.component.attributes)),
            *(area.keys.eq(keys) for area in areas),
        ]

        # Host: commands, and tuples that leave early.
        wiring.connect(m, wiring.flipped(self.commands), control.commands)
        wiring.connect(m, control.responses, wiring.flipped(self.responses))
        m.d.comb += [
            selection.pause.eq(control.pause),
            *(part.clear.eq(control.clear) for part in (sequencer, *areas)),
        ]
        self._hand_over(m, areas, sequencer)
        m.d.comb += self.idle.eq(
            sequencer.idle
            & selection.idle
            & ~self.raw.valid
            & ~self.handed_over.valid
            & self._grouped
        )
        m.d.sync += control.quiet.eq(sequencer.idle & selection.idle)

        # Counters.
        m.d.comb += [
            control.events.taken.eq(sequencer.taken),
            control.events.ticks.eq(sequencer.tick),
            control.events.dropped.eq(sequencer.dropped),
            control.events.pairs.eq(sum(area.pairs for area in areas)),
            control.events.circulated.eq(router.circulated),
            control.events.delivered.eq(output.delivered),
            control.events.handed_over.eq(self.handed_over.valid & self.handed_over.ready),
            control.events.cycles.eq(1),
            control.events.hits.eq(sum(area.hits for area in areas)),
            control.events.stalls.eq(sum(area.stalled for area in areas)),
            control.events.rewinds.eq(sum(area.rewound for area in areas)),
        ]
        # Registers let the number in a window be placed beside the window.
        m.d.sync += [
            control.occupancy[number].eq(area.occupancy) for number, area in enumerate(areas)
        ]
        common = (selection, sequencer, router, fetch, output, *self._grouping)
        meters = [Cat(part.meter.working, part.meter.blocked) for part in common]
        m.d.sync += control.meters.eq(Cat(meters, (area.meters for area in areas)))
        if self.with_trace:
            for number, area in enumerate(areas):
                m.d.comb += self.executed[number].eq(area.executed)
                m.d.comb += self.traces[number].eq(area.trace)
        return m

    def _door(self, m: Module, selection: SelectionUnit) -> None:
        """Passes raw tuples to the selection unit. A filler that is admitted is a drain: raw tuples after it wait
        until nothing is in flight and the groups have left."""
        self._drain, self._drained = Signal(name="drain"), Signal(name="drained")
        if not self.config.groups:
            wiring.connect(m, wiring.flipped(self.raw), selection.raw)
            return
        raw, drains, draining = self.raw.payload, Signal(), Signal()
        m.d.comb += [
            drains.eq(raw.filler & raw.admit),
            selection.raw.payload.eq(raw),
            selection.raw.valid.eq(self.raw.valid & ~drains & ~draining),
            self.raw.ready.eq(selection.raw.ready & ~draining),
        ]
        with m.If(self.raw.valid & self.raw.ready & drains):
            m.d.sync += draining.eq(1)
        with m.Elif(self._drained):
            m.d.sync += draining.eq(0)
        # Require several consecutive idle cycles, because a tuple that has just gone in is not visible at once.
        still = Signal(range(_STILL + 1))
        with m.If(~draining | ~self._control.quiet):
            m.d.sync += still.eq(0)
        with m.Elif(still != _STILL):
            m.d.sync += still.eq(still + 1)
        m.d.comb += self._drain.eq(draining & (still == _STILL))
        self._draining = draining

    def _group(self, m: Module, output: Output) -> None:
        """Connects the results to the output port, through the grouping unit if there is one."""
        self._grouped = Signal(name="grouped", init=1)  # nothing waits there
        self._grouping: list[GroupingUnit] = []
        if not self.config.groups:
            wiring.connect(m, output.results, wiring.flipped(self.results))
            m.d.comb += self._grouped.eq(1)
            return
        m.submodules.grouping = grouping = GroupingUnit(self.config)
        wiring.connect(m, output.results, grouping.found)
        wiring.connect(m, grouping.results, wiring.flipped(self.results))
        m.d.comb += [
            grouping.member.eq(output.member),
            grouping.drain.eq(self._drain),
            grouping.clear.eq(self._control.clear),
            self._drained.eq(grouping.drained),
            self._grouped.eq(grouping.idle & ~self._draining),
        ]
        self._grouping.append(grouping)

    def _raw_tables(self, m: Module, sequencer: Sequencer) -> None:
        """Loads the sequencer's table of each stream, in two halves like all tables."""
        bus = self._control.tables
        for number in range(self.config.streams):
            route = data.StructLayout({"stores": 1, "group": STREAM_BITS})
            mine = bus.valid & (bus.target == Target.RAW_ROUTE) & (bus.unit == number)
            leads = bus.valid & (bus.target == Target.DESTINATION) & (bus.address == number)
            routes = [Signal(route, name=f"route_{number}_{h}") for h in range(2)]
            destinations = [
                Signal(self.layouts.destination, name=f"destination_{number}_{h}") for h in range(2)
            ]
            for h in range(2):
                with m.If(mine & (bus.half != h)):
                    m.d.sync += routes[h].eq(bus.data[: route.size])
                with m.If(leads & (bus.half != h)):
                    m.d.sync += destinations[h].eq(bus.data[: self.layouts.destination.size])
                with m.If(bus.half == h):
                    m.d.sync += [
                        sequencer.stores[number].eq(routes[h].stores),
                        sequencer.groups[number].eq(routes[h].group),
                        sequencer.destinations[number].eq(destinations[h]),
                    ]

    def _hand_over(self, m: Module, areas: list[JoinArea], sequencer: Sequencer) -> None:
        """Hands over the tuples that leave early, one window at a time; the raw tuple that displaces them waits."""
        m.submodules.leaving = turns = RoundRobin(len(areas))
        chosen, free = Signal(len(areas)), Signal()
        waits = Signal(len(areas))  # a cycle late, because the windows are far apart
        m.d.sync += waits.eq(Cat(area.leaving.valid for area in areas) & ~chosen)
        m.d.comb += [
            free.eq(~self.handed_over.valid),
            turns.requests.eq(waits & ~chosen),
            turns.enable.eq(free | ~chosen.any()),
        ]
        with m.If(turns.enable):
            m.d.sync += chosen.eq(turns.granted)
        handed = self.handed_over.payload
        with m.If(self.handed_over.ready):
            m.d.sync += self.handed_over.valid.eq(0)
        for number, area in enumerate(areas):
            m.d.comb += area.leaving.ready.eq(chosen[number] & free)
            with m.If(chosen[number] & free):
                m.d.sync += [
                    self.handed_over.valid.eq(1),
                    handed.stream.eq(number),
                    handed.sequence.eq(area.leaving.payload),
                    handed.taker.eq(sequencer.taker),
                    handed.taken_by.eq(sequencer.taken_by),
                ]
