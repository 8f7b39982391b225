"""The processor with the port names that AXI tools recognize."""

from __future__ import annotations

from amaranth.hdl import ClockDomain, ClockSignal, Module, ResetSignal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from seustream.hdl.axi.control import AxiControl
from seustream.hdl.axi.ports import RecordPorts
from seustream.hdl.config import DeviceConfig
from seustream.hdl.top import Wjasip


class AxiWjasip(wiring.Component):
    """s_axil <-> control <-> processor;  s_axis -> record ports <-> processor;  record ports -> m_axis

    latency     that of its parts
    throughput  the slowest of them; where raw tuples flow that is the input, with some beats per record

    aclk, aresetn   in: clock and reset of everything; the reset is synchronous and active low
    s_axil_...      registers, as in `seustream.hdl.axi.registers`
    s_axis_...      in: records, as in `seustream.hdl.axi.records`
    m_axis_...      out: records
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self._control, self._ports = AxiControl(config), RecordPorts(config)
        self._outside = {
            name: (part, member)
            for part in (self._control, self._ports)
            for name, member in part.signature.members.items()
            if name.startswith(("s_ax", "m_ax"))
        }
        members = {name: member for name, (_, member) in self._outside.items()}
        super().__init__({"aclk": In(1), "aresetn": In(1), **members})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.sync = ClockDomain()
        m.d.comb += [ClockSignal().eq(self.aclk), ResetSignal().eq(~self.aresetn)]
        m.submodules.control = control = self._control
        m.submodules.ports = ports = self._ports
        m.submodules.core = core = Wjasip(self.config)
        for name, (part, member) in self._outside.items():
            inner, outer = getattr(part, name), getattr(self, name)
            m.d.comb += inner.eq(outer) if member.flow is In else outer.eq(inner)
        wiring.connect(m, control.commands, core.commands)
        wiring.connect(m, core.responses, control.responses)
        wiring.connect(m, ports.raw, core.raw)
        wiring.connect(m, core.results, ports.results)
        wiring.connect(m, core.handed_over, ports.handed_over)
        # `idle` comes from all over the chip, and neither user needs it at once.
        idle = control.idle
        m.d.sync += idle.eq(core.idle)
        m.d.comb += [ports.idle.eq(idle), control.malformed.eq(ports.malformed)]
        return m
