"""Control port: turns AXI4-Lite register accesses into commands of the processor."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.axi.registers import ADDRESS_WIDTH, MAGIC, REGISTERS
from seustream.hdl.boards.identity import config_digest, version
from seustream.hdl.config import DeviceConfig
from seustream.hdl.control import COMMAND, RESPONSE

OKAY, SLVERR = 0, 2


class AxiControl(wiring.Component):
    """Sends one command at a time: a write to COMMAND sends it, with the data in DATA_LOW and DATA_HIGH.

    latency     a write is answered 2 cycles after its address and data, a read 1 cycle after its address
    throughput  a write in 3 cycles, a read in 2

    s_axil_aw..., w..., b..., ar..., r...   the five channels of AXI4-Lite, as subordinate
    commands, responses   out, in: streams to and from the processor
    idle        in: nothing is in flight in the processor
    malformed   in: pulse: a record was dropped
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        super().__init__(
            {
                "s_axil_awaddr": In(ADDRESS_WIDTH),
                "s_axil_awprot": In(3),
                "s_axil_awvalid": In(1),
                "s_axil_awready": Out(1),
                "s_axil_wdata": In(32),
                "s_axil_wstrb": In(4),
                "s_axil_wvalid": In(1),
                "s_axil_wready": Out(1),
                "s_axil_bresp": Out(2),
                "s_axil_bvalid": Out(1),
                "s_axil_bready": In(1),
                "s_axil_araddr": In(ADDRESS_WIDTH),
                "s_axil_arprot": In(3),
                "s_axil_arvalid": In(1),
                "s_axil_arready": Out(1),
                "s_axil_rdata": Out(32),
                "s_axil_rresp": Out(2),
                "s_axil_rvalid": Out(1),
                "s_axil_rready": In(1),
                "commands": Out(stream.Signature(COMMAND)),
                "responses": In(stream.Signature(RESPONSE)),
                "idle": In(1),
                "malformed": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        low, high = Signal(32), Signal(32)
        pending, sent, send = Signal(), Signal(), Signal()
        head = Signal(len(Value.cast(self.commands.payload)) - 64)
        answer, malformed = Signal(RESPONSE), Signal(32)
        m.d.comb += [
            self.commands.payload.eq(Cat(head, low, high)),
            self.commands.valid.eq(pending & ~sent),
            self.responses.ready.eq(sent),
        ]
        m.d.sync += malformed.eq(malformed + self.malformed)
        with m.If(self.commands.valid & self.commands.ready):
            m.d.sync += sent.eq(1)
        with m.If(self.responses.valid & self.responses.ready):
            m.d.sync += [answer.eq(self.responses.payload), pending.eq(0), sent.eq(0)]

        # Writes: address and data may come in either order, and both wait until the previous response is taken.
        where, what, strobe = Signal(ADDRESS_WIDTH), Signal(32), Signal(4)
        has_where, has_what, write = Signal(), Signal(), Signal()
        m.d.comb += [
            self.s_axil_awready.eq(~has_where),
            self.s_axil_wready.eq(~has_what),
            write.eq(has_where & has_what & ~self.s_axil_bvalid),
        ]
        with m.If(self.s_axil_awvalid & self.s_axil_awready):
            m.d.sync += [where.eq(self.s_axil_awaddr), has_where.eq(1)]
        with m.If(self.s_axil_wvalid & self.s_axil_wready):
            m.d.sync += [what.eq(self.s_axil_wdata), strobe.eq(self.s_axil_wstrb), has_what.eq(1)]
        with m.If(self.s_axil_bready):
            m.d.sync += self.s_axil_bvalid.eq(0)
        with m.If(write):
            m.d.sync += [has_where.eq(0), has_what.eq(0)]
            m.d.sync += [self.s_axil_bvalid.eq(1), self.s_axil_bresp.eq(SLVERR)]
            with m.Switch(where[2:]):
                for name, held in (("DATA_LOW", low), ("DATA_HIGH", high)):
                    with m.Case(_OFFSETS[name] >> 2):
                        # The data of a pending command must not change.
                        with m.If(~pending):
                            m.d.sync += self.s_axil_bresp.eq(OKAY)
                            for byte in range(4):
                                part = slice(8 * byte, 8 * byte + 8)
                                kept = Mux(strobe[byte], what[part], held[part])
                                m.d.sync += held[part].eq(kept)
                with m.Case(_OFFSETS["COMMAND"] >> 2):
                    m.d.comb += send.eq(~pending & strobe.all())
        with m.If(send):
            m.d.sync += [head.eq(what), pending.eq(1), self.s_axil_bresp.eq(OKAY)]

        # Reads.
        values = {
            "ID": MAGIC,
            "VERSION": version(),
            "CONFIG": config_digest(self.config),
            "STATUS": Cat(self.idle, pending),
            "DATA_LOW": low,
            "DATA_HIGH": high,
            "ANSWER": answer.verdict,
            "ANSWER_LOW": answer.data[:32],
            "ANSWER_HIGH": answer.data[32:],
            "MALFORMED": malformed,
        }
        m.d.comb += self.s_axil_arready.eq(~self.s_axil_rvalid)
        with m.If(self.s_axil_rready):
            m.d.sync += self.s_axil_rvalid.eq(0)
        with m.If(self.s_axil_arvalid & self.s_axil_arready):
            m.d.sync += [self.s_axil_rvalid.eq(1), self.s_axil_rdata.eq(0)]
            m.d.sync += self.s_axil_rresp.eq(SLVERR)
            with m.Switch(self.s_axil_araddr[2:]):
                for name, value in values.items():
                    with m.Case(_OFFSETS[name] >> 2):
                        m.d.sync += [self.s_axil_rdata.eq(value), self.s_axil_rresp.eq(OKAY)]
        return m


_OFFSETS = {register.name: register.offset for register in REGISTERS}
