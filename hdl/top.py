"""WJASIP: the stream-join processor, which connects all of its parts."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.area import JoinArea
from seustream.hdl.config import DeviceConfig
from seustream.hdl.control import COMMAND, RESPONSE, ControlUnit
from seustream.hdl.drain import RawDrain
from seustream.hdl.fetch import TupleFetch
from seustream.hdl.grouping import GroupingUnit
from seustream.hdl.hand_over import HandOver
from seustream.hdl.layouts import Layouts
from seustream.hdl.output import Output
from seustream.hdl.ports import WORD, registered
from seustream.hdl.raw_routes import RawRoutes
from seustream.hdl.replay import Replay
from seustream.hdl.router import Router
from seustream.hdl.selection import SelectionUnit
from seustream.hdl.sequencer import Sequencer


class Wjasip(wiring.Component):
    """raw -> selection unit -> sequencer -> router <-> join areas; router -> output -> grouping unit -> results

    latency     the sum of its parts on the path: selection, window, fetch, scan, execution, output
    throughput  the slowest of: a raw tuple per cycle, or per 3 cycles while windows are not calm; in each area `lanes`
                pairs scanned or one indexed candidate per cycle, a probe per cycle, and a joined tuple per cycle, or
                per 8 cycles if a pair runs the program; a joined tuple per cycle for all areas together; a window test
                per cycle at the output

    commands, responses   in, out: streams of the control unit (`COMMAND`, `RESPONSE`)
    raw                   in: stream of raw tuples in arrival order (`Layouts.raw`). A filler advances the clock before a leap by
                          more than half the counter range; a filler that is admitted drains all groups formed
                          before it
    results               out: stream of delivered results (`Layouts.result`); those of different raw tuples come in
                          any order
    handed_over           out: stream of stored tuples that left early (`Layouts.handed_over`)
    idle                  out: nothing is in flight
    executed              out, with `trace`, a bit per area: pulse: an instruction is executed
    traces                out, with `trace`, per area: which one (`Layouts.trace`), valid with its bit of `executed`
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
        m.submodules.control = control = ControlUnit(config)
        m.submodules.routes = routes = RawRoutes(config)
        m.submodules.selection = selection = SelectionUnit(config)
        m.submodules.sequencer = sequencer = Sequencer(config)
        m.submodules.router = router = Router(config)
        areas = [JoinArea(config, number) for number in range(n)]
        for number, area in enumerate(areas):
            m.submodules[f"area{number}"] = area
        m.submodules.fetch = fetch = TupleFetch(config, n + 2)
        m.submodules.output = output = Output(config)
        m.submodules.replay = replay = Replay(config)
        m.submodules.leaving = leaving = HandOver(config)

        # Tables. Each area registers the bus itself; for the other parts it is registered here.
        wiring.connect(m, control.tables, routes.tables, *(area.tables for area in areas))
        for part in (selection, output):
            registered(m, control.tables, part.tables, *WORD)
        m.d.comb += [
            sequencer.stores.eq(routes.stores),
            sequencer.groups.eq(routes.groups),
            sequencer.destinations.eq(routes.destinations),
        ]

        # Raw tuples: selection unit, sequencer, areas and output.
        raw, results = wiring.flipped(self.raw), wiring.flipped(self.results)
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

        # Results, through the grouping unit if there is one; its groups leave when raw tuples are kept back.
        units, grouped = [selection, sequencer, router, fetch, output], Signal(init=1)
        if config.groups:
            m.submodules.drain = drain = RawDrain(config)
            m.submodules.grouping = grouping = GroupingUnit(config)
            units.append(grouping)
            wiring.connect(m, raw, drain.coming)
            wiring.connect(m, drain.going, selection.raw)
            wiring.connect(m, output.results, grouping.found)
            wiring.connect(m, grouping.results, results)
            m.d.comb += [
                grouping.member.eq(output.member),
                grouping.clear.eq(control.clear),
                grouping.drain.eq(drain.drain),
                drain.quiet.eq(control.quiet),
                drain.drained.eq(grouping.drained),
                grouped.eq(grouping.idle & ~drain.draining),
            ]
        else:
            wiring.connect(m, raw, selection.raw)
            wiring.connect(m, output.results, results)
            m.d.comb += grouped.eq(1)

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
        for number, area in enumerate(areas):
            wiring.connect(m, area.leaving, leaving.leaving[number])
        wiring.connect(m, leaving.handed_over, wiring.flipped(self.handed_over))
        m.d.comb += [
            leaving.taker.eq(sequencer.taker),
            leaving.taken_by.eq(sequencer.taken_by),
        ]
        m.d.comb += self.idle.eq(
            sequencer.idle & selection.idle & ~self.raw.valid & ~self.handed_over.valid & grouped
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
        meters = [Cat(unit.meter.working, unit.meter.blocked) for unit in units]
        m.d.sync += control.meters.eq(Cat(meters, (area.meters for area in areas)))
        if self.with_trace:
            for number, area in enumerate(areas):
                m.d.comb += self.executed[number].eq(area.executed)
                m.d.comb += self.traces[number].eq(area.trace)
        return m
