"""Tests the core with AXI ports as text; the bench that goes with it judges what it does
(`tests/cosim/export/test_core_and_bench.py`)."""

from __future__ import annotations

import re

from seustream.cosim.export import core
from seustream.hdl.config import DeviceConfig

SMALL = DeviceConfig(
    name="small", streams=2, attribute_width=8, timestamp_width=16, sequence_width=8, depth=8,
    lanes=2, indexes=1, comparisons=16, selectors=2, comparators=1, probe_fifo_depth=2, output_fifo_depth=2,
    factors=4, selections=2, probe_selections=2, tags=16, instructions=64, queries=4,
)  # fmt: skip

STREAM = ("tdata", "tkeep", "tlast", "tvalid", "tready")
LITE = (
    "awaddr", "awprot", "awvalid", "awready", "wdata", "wstrb", "wvalid", "wready",
    "bresp", "bvalid", "bready", "araddr", "arprot", "arvalid", "arready",
    "rdata", "rresp", "rvalid", "rready",
)  # fmt: skip


def test_the_module_has_the_names_that_tools_look_for() -> None:
    text = core.axi(SMALL)
    head = re.search(r"^module seustream\((.*?)\);", text, re.MULTILINE | re.DOTALL)
    assert head is not None
    want = {f"{port}_{name}" for port in ("s_axis", "m_axis") for name in STREAM}
    want |= {f"s_axil_{name}" for name in LITE} | {"aclk", "aresetn"}
    assert {name.strip() for name in head[1].split(",")} == want
    inputs = re.findall(r"^  input (?:\[.*?\] )?(\w+);", text.split("endmodule")[0], re.MULTILINE)
    assert {name for name in inputs if name.startswith("s_axis")} == want & {
        "s_axis_tdata", "s_axis_tkeep", "s_axis_tlast", "s_axis_tvalid",
    }  # fmt: skip
    assert "\\$" not in text
