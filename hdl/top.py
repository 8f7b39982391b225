"""WJASIP: the stream-join processor, which connects all of its parts."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.arbiter import RoundRobin
from seustream.hdl.area import JoinArea
from seustream.hdl.config import DeviceConfig
from seustream.hdl.control import COMMAND, RESPONSE, ControlUnit
from seustream.hdl.control_words import Target
from seustream.hdl.fetch import TupleFetch
from seustream.hdl.grouping import GroupingUnit
from seustream.hdl.layouts import OFFERS, STREAM_BITS, Layouts
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
        # Requesters of the fetch: each area for its probes, the output, and the replay.
        m.submodules.fetch = fetch = TupleFetch(config, n + 2)
        m.submodules.output = output = Output(config)
        m.submodules.replay = replay = Replay(config)

        # Each area registers the broadcast signals itself; for the other parts they are registered here.
        wiring.connect(m, control.tables, *(area.tables for area in areas))
        for part in (selection, output):
            registered(m, control.tables, part.tables, *WORD)

        # Raw tuples: selection unit, sequencer, windows.
        self._door(m, selection)
        wiring.connect(m, selection.selected, sequencer.selected)
        self._raw_tables(m, sequencer)
        m.d.comb += [selection.pause.eq(control.pause), sequencer.clear.eq(control.clear)]
        keys = Signal(self.layouts.attributes)
        m.d.comb += keys.eq(Mux(control.replaying, replay.attributes, sequencer.tuple.attributes))
        for number, area in enumerate(areas):
            m.d.comb += [
                area.now.eq(sequencer.now),
                area.counter.eq(sequencer.counters[number]),
                area.check.eq(sequencer.check),
                area.wanted.eq(sequencer.wanted[number]),
                sequencer.rests[number].eq(area.rests),
                sequencer.passes[number].eq(area.passes),
                sequencer.calm[number].eq(area.calm),
                area.flow.eq(sequencer.flow),
                area.store.eq(sequencer.store[number]),
                area.tuple.eq(sequencer.tuple),
                area.keys.eq(keys),
                area.bits.eq(sequencer.bits),
                area.snapshot.eq(sequencer.snapshot),
                area.snapshot_context.eq(sequencer.context),
                area.busy.eq(sequencer.busy),
                area.oldest.eq(sequencer.oldest),
                area.clear.eq(control.clear),
                fetch.components[number].eq(area.fetched),
                area.coming.eq(fetch.coming[number]),
                area.fetching.eq(fetch.fetching[number]),
                area.whole.eq(fetch.whole[number]),
                area.fetch.eq(fetch.slots[number]),
                area.answering.eq(fetch.answering[number]),
                area.data.eq(fetch.fetched),
            ]
            wiring.connect(m, area.request, fetch.requests[number])
        m.d.comb += [
            fetch.remember.eq(sequencer.snapshot),
            fetch.context.eq(sequencer.context),
            fetch.raw.eq(sequencer.raw),
        ]

        # Joined tuples: areas, router, areas and output.
        for number, area in enumerate(areas):
            m.d.comb += [
                router.emit[number].eq(area.emit),
                router.emitted[number].eq(area.emitted),
                router.level[number].eq(area.level),
                router.destination[number].eq(area.destination),
                router.follows[number].eq(area.follows),
                router.follows_to[number].eq(area.follows_to),
                area.taking.eq(router.taking[number]),
                area.roomy.eq(router.roomy[number]),
                router.rooms[number].eq(area.room),
                area.push.eq(router.push[number]),
                area.push_level.eq(router.push_level),
                area.pushed.eq(router.pushed),
                area.push_raw.eq(sequencer.probe[number]),
                area.raw_pushed.context.eq(sequencer.context),
                area.raw_pushed.stream.eq(sequencer.raw.stream),
                area.raw_pushed.brought.bits.eq(sequencer.raw.bits),
                area.raw_pushed.brought.attributes.eq(sequencer.raw.component.attributes),
                sequencer.rooms[number].eq(area.room[0]),
                sequencer.done[number].eq(area.commit),
                sequencer.done_contexts[number].eq(area.committed),
            ]
        m.d.comb += [
            router.emit[n:].eq(sequencer.emit),
            *(router.emitted[n + i].eq(sequencer.emitted[i]) for i in range(OFFERS)),
            sequencer.granted.eq(router.granted[n:]),
            sequencer.sent.eq(router.sent),
            sequencer.sent_context.eq(router.context),
            router.output_room.eq(output.room),
            output.push.eq(router.output),
            output.pushed.eq(router.pushed),
            sequencer.done[n].eq(output.commit),
            sequencer.done_contexts[n].eq(output.context),
        ]
        wiring.connect(m, output.request, fetch.requests[n])
        m.d.comb += fetch.whole_results.eq(output.whole)
        self._group(m, output)
        m.d.comb += [output.response.eq(fetch.responses[n]), output.fetched.eq(fetch.fetched)]

        # Replay: stored tuples are evaluated again by new tables.
        wiring.connect(m, replay.request, fetch.requests[n + 1])
        m.d.sync += control.replaying.eq(replay.busy)
        m.d.comb += [
            replay.start.eq(control.replay),
            replay.response.eq(fetch.responses[n + 1]),
            replay.fetched.eq(fetch.fetched),
            selection.again.eq(replay.again),
            selection.stream.eq(replay.stream),
            selection.attributes.eq(replay.attributes),
            replay.known.eq(selection.known),
            replay.bits.eq(selection.bits),
        ]
        for number, area in enumerate(areas):
            # Registers let the pointers of a window be placed beside the window.
            m.d.sync += [
                replay.firsts[number].eq(area.first),
                replay.ends[number].eq(area.end),
                control.occupancy[number].eq(area.occupancy),
            ]
            m.d.comb += [
                area.rewrite.eq(replay.rewrite[number]),
                area.rewrite_slot.eq(replay.slot),
                area.rewrite_bits.eq(replay.rewritten),
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
        wiring.connect(m, wiring.flipped(self.commands), control.commands)
        wiring.connect(m, control.responses, wiring.flipped(self.responses))
        m.d.comb += [
            control.events.taken.eq(sequencer.taken),
            control.events.ticks.eq(sequencer.tick),
            control.events.dropped.eq(sequencer.dropped),
            control.events.pairs.eq(sum(area.pairs for area in areas)),
            control.events.circulated.eq(router.granted[:n].any()),
            control.events.delivered.eq(output.delivered),
            control.events.handed_over.eq(self.handed_over.valid & self.handed_over.ready),
            control.events.cycles.eq(1),
            control.events.hits.eq(sum(area.hits for area in areas)),
            control.events.stalls.eq(sum(area.stalled for area in areas)),
            control.events.rewinds.eq(sum(area.rewound for area in areas)),
        ]
        meters = [
            Cat(selection.working, selection.blocked),
            Cat(sequencer.working, sequencer.blocked),
            Cat(router.working, router.stuck),
            Cat(fetch.working, Const(0, 1)),
            Cat(output.working, output.blocked),
            *self._grouping_meters,
            *(area.meters for area in areas),
        ]
        m.d.sync += control.meters.eq(Cat(meters))
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
        self._grouping_meters: list[Value] = []
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
        self._grouping_meters.append(Cat(grouping.working, grouping.blocked))

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
