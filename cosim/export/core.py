"""Writes the Verilog of the core, for any tool that reads Verilog."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seustream.cosim.verilated.build import BuildFailed, to_verilog, tool_version
from seustream.hdl.config import DeviceConfig

TOP = "seustream"

STYLE = (
    "ASCRANGE", "CASEINCOMPLETE", "CMPCONST", "DECLFILENAME", "PROCASSINIT", "UNSIGNED",
    "UNUSEDSIGNAL", "VARHIDDEN", "WIDTHEXPAND", "WIDTHTRUNC",
)  # fmt: skip
"""Verilator's warnings about the style of generated code. Those about its behaviour stay on."""


def axi(config: DeviceConfig) -> str:
    """Returns the core with AXI4-Stream and AXI4-Lite ports."""
    from seustream.hdl.axi.top import AxiWjasip

    return _text(AxiWjasip(config), config)


def plain(config: DeviceConfig) -> str:
    """Returns the core with the processor's own ports: each a payload with valid and ready."""
    from seustream.hdl.top import Wjasip

    return _text(Wjasip(config), config)


def check() -> None:
    """Raises `BuildFailed` unless the Verilog writer is installed."""
    if not tool_version("amaranth"):
        raise BuildFailed("Verilog needs amaranth", 'python3 -m pip install "seustream[rtl]"')


INTERFACES: dict[str, Callable[[DeviceConfig], str]] = {"axi": axi, "stream": plain}


def _text(component: Any, config: DeviceConfig) -> str:
    head = [
        f"// The SEUSTREAM stream-join processor, configuration {config.name}. Generated; not to be edited.",
        *(f"/* verilator lint_off {warning} */" for warning in STYLE),
    ]
    return "\n".join([*head, to_verilog(component, TOP)])


def layout(config: DeviceConfig) -> str:
    """Returns Verilog constants for the plain interface: the place of each member in its payload."""
    from seustream.cosim.processor.bits import flatten
    from seustream.hdl.control import COMMAND, RESPONSE
    from seustream.hdl.layouts import Layouts

    layouts = Layouts(config)
    payloads = {
        "commands": COMMAND,
        "responses": RESPONSE,
        "raw": layouts.raw,
        "results": layouts.result,
        "handed_over": layouts.handed_over,
    }
    lines = ["// Members of the payloads of seustream.v: lowest bit and width. Generated."]
    for port, shape in payloads.items():
        for name, (at, width) in flatten(shape).items():
            constant = f"SEUSTREAM_{port}_{name}".upper().replace(".", "_")
            lines += [
                f"localparam {constant}_LSB = {at};",
                f"localparam {constant}_WIDTH = {width};",
            ]
    return "\n".join(lines) + "\n"
