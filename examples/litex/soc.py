"""A LiteX system with the core in it, without a CPU. A host reads and writes the bus over a line of
bytes. LiteX's DMA moves records from the system's memory to the core and its output back to the
memory.

    line <-> bus <-> memory, registers of the DMA, control port of the core
                     memory -> DMA -> s_axis, m_axis -> DMA -> memory

It needs LiteX; `run.py` simulates it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from litex.build.generic_platform import GenericPlatform, Pins
from litex.build.io import CRG
from litex.gen import LiteXModule
from litex.soc.cores.dma import WishboneDMAReader, WishboneDMAWriter
from litex.soc.cores.uart import UARTBone
from litex.soc.integration.export import get_csr_json
from litex.soc.integration.soc import SoCRegion
from litex.soc.integration.soc_core import SoCCore
from litex.soc.interconnect import axi, stream, wishbone
from migen import ClockSignal, Instance, ResetSignal, Signal

CLOCK = 100e6
MEMORY = 1 << 16
BEAT = 64
"""Width of the core's streams, in bits per beat."""


class Core(LiteXModule):
    """The module that `seustream verilog` writes.

    control       its registers
    sink, source  its records
    """

    def __init__(self, verilog: Path, platform: GenericPlatform) -> None:
        self.control = control = axi.AXILiteInterface(data_width=32, address_width=32)
        self.sink = sink = stream.Endpoint([("data", BEAT)])
        self.source = source = stream.Endpoint([("data", BEAT)])
        ports = {"i_aclk": ClockSignal(), "i_aresetn": ~ResetSignal()}
        for channel, theirs, ours in (
            ("aw", ("valid",), ("ready",)),
            ("w", ("valid", "data", "strb"), ("ready",)),
            ("b", ("ready",), ("valid", "resp")),
            ("ar", ("valid",), ("ready",)),
            ("r", ("ready",), ("valid", "resp", "data")),
        ):
            end = getattr(control, channel)
            ports |= {f"i_s_axil_{channel}{name}": getattr(end, name) for name in theirs}
            ports |= {f"o_s_axil_{channel}{name}": getattr(end, name) for name in ours}
        for channel in ("aw", "ar"):
            ports[f"i_s_axil_{channel}addr"] = getattr(control, channel).addr[:12]
            ports[f"i_s_axil_{channel}prot"] = 0
        for name in ("data", "valid", "last"):
            ports[f"i_s_axis_t{name}"] = getattr(sink, name)
            ports[f"o_m_axis_t{name}"] = getattr(source, name)
        ports |= {
            "i_s_axis_tkeep": (1 << BEAT // 8) - 1,
            "o_s_axis_tready": sink.ready,
            "o_m_axis_tkeep": Signal(BEAT // 8),
            "i_m_axis_tready": source.ready,
        }
        self.specials += Instance("seustream", **ports)
        platform.add_source(str(verilog))


class Line(LiteXModule):
    """The host's line, as UARTBone expects it: a byte in each direction, with valid and ready."""

    def __init__(self, platform: GenericPlatform) -> None:
        self.source = source = stream.Endpoint([("data", 8)])
        self.sink = sink = stream.Endpoint([("data", 8)])
        pin = {name: platform.request(name) for name, *_ in PINS}
        self.comb += [
            # Bytes that arrive before the system is out of reset wait.
            source.valid.eq(pin["received__valid"] & ~ResetSignal()),
            source.data.eq(pin["received__payload"]),
            pin["received__ready"].eq(source.ready & ~ResetSignal()),
            pin["transmitted__valid"].eq(sink.valid),
            pin["transmitted__payload"].eq(sink.data),
            sink.ready.eq(pin["transmitted__ready"]),
        ]


class Soc(SoCCore):
    """The system.

    core   the file that `seustream verilog` wrote
    line   the host's line: `Line` in a simulation, `UARTPHY` on a board
    """

    def __init__(
        self, platform: GenericPlatform, clock: LiteXModule, core: Path, line: LiteXModule
    ) -> None:
        self.crg = clock
        super().__init__(
            platform, CLOCK, cpu_type=None, with_uart=False, with_timer=False, with_ctrl=False,
            integrated_sram_size=0, integrated_main_ram_size=MEMORY, ident="",
        )  # fmt: skip
        self.line = line
        self.bone = bone = UARTBone(line, CLOCK, address_width=self.bus.address_width)
        self.core = Core(core, platform)
        self.bus.add_slave("core", self.core.control, SoCRegion(0x8000_0000, 0x1000, cached=False))

        def port() -> wishbone.Interface:
            return wishbone.Interface(32, self.bus.address_width, addressing="word")

        # Of the two byte orders in a word, this one leaves the bytes as they are.
        self.to_core = to_core = WishboneDMAReader(port(), "big", with_csr=True)
        self.from_core = from_core = WishboneDMAWriter(port(), "big")
        # It waits until it has an address; by default it would discard data.
        from_core.add_ctrl(ready_on_idle=0)
        from_core.add_csr()
        for name, master in (
            ("line", bone.wishbone), ("to_core", to_core.bus), ("from_core", from_core.bus)
        ):  # fmt: skip
            self.bus.add_master(name, master)
        self.widen = widen = stream.Converter(32, BEAT)
        self.narrow = narrow = stream.Converter(BEAT, 32)
        self.comb += [
            to_core.source.connect(widen.sink),
            widen.source.connect(self.core.sink),
            self.core.source.connect(narrow.sink),
            narrow.source.connect(from_core.sink),
        ]


PINS = [
    ("received__valid", 0, Pins(1)),
    ("received__payload", 0, Pins(8)),
    ("received__ready", 0, Pins(1)),
    ("transmitted__valid", 0, Pins(1)),
    ("transmitted__payload", 0, Pins(8)),
    ("transmitted__ready", 0, Pins(1)),
]


def simulated(core: Path) -> tuple[str, dict[str, Any]]:
    """Returns the system's Verilog for a simulation, including the core's, and LiteX's map of
    it."""
    platform = GenericPlatform("", [("clk", 0, Pins(1)), ("rst", 0, Pins(1)), *PINS], name="board")
    soc = Soc(platform, CRG(*map(platform.request, ("clk", "rst"))), core, Line(platform))
    soc.finalize()
    found = platform.get_verilog(soc, name="board")
    # The host provides the content of the memory.
    text = re.sub(r"initial begin\s*\$readmemh[^;]*;\s*end", "", found.main_source)
    said = get_csr_json(soc.csr_regions, soc.constants, soc.mem_regions)
    return text + core.read_text(), json.loads(said)
