"""Raw routes: tables that say where the raw tuples of a stream go."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import Target
from seustream.hdl.layouts import STREAM_BITS, Layouts
from seustream.hdl.ports import TableBus


class RawRoutes(wiring.Component):
    """Keeps the route of each stream, in two halves like all tables.

    latency     1 cycle from a word to its place, 1 more from there, or from `half`, to the outputs
    throughput  a word per cycle

    tables         in (`TableBus`)
    stores         out, a bit per stream: its tuples are stored; held while raw tuples are here, as all outputs are
    groups         out, per stream: number of the source that it shares its sequence numbers with
    destinations   out, per stream: where its tuples go as probes (`Layouts.destination`)
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        n = config.streams
        super().__init__(
            {
                "tables": In(TableBus()),
                "stores": Out(n),
                "groups": Out(data.ArrayLayout(STREAM_BITS, n)),
                "destinations": Out(data.ArrayLayout(layouts.destination, n)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus, to = self.tables, self.layouts.destination
        route = data.StructLayout({"stores": 1, "group": STREAM_BITS})
        for number in range(self.config.streams):
            mine = bus.valid & (bus.target == Target.RAW_ROUTE) & (bus.unit == number)
            leads = bus.valid & (bus.target == Target.DESTINATION) & (bus.address == number)
            routes = [Signal(route, name=f"route_{number}_{h}") for h in range(2)]
            destinations = [Signal(to, name=f"destination_{number}_{h}") for h in range(2)]
            for h in range(2):
                with m.If(mine & (bus.half != h)):
                    m.d.sync += routes[h].eq(bus.data[: route.size])
                with m.If(leads & (bus.half != h)):
                    m.d.sync += destinations[h].eq(bus.data[: to.size])
                with m.If(bus.half == h):
                    m.d.sync += [
                        self.stores[number].eq(routes[h].stores),
                        self.groups[number].eq(routes[h].group),
                        self.destinations[number].eq(destinations[h]),
                    ]
        return m
