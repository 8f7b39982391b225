"""Report of a build, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seustream.hdl.boards.board import Board, NetworkAddress
from seustream.hdl.boards.flow.placement import Placed
from seustream.hdl.boards.mac import CHECKSUM, GAP
from seustream.hdl.boards.messages import ATTRIBUTES, HEAD_BITS, bytes_of, widths
from seustream.hdl.boards.packets import PAYLOAD
from seustream.hdl.boards.protocol import DATAGRAM, HEADER, MOST, TRAILER, USB_PACKET
from seustream.hdl.config import DeviceConfig

_GIGABIT = 125_000_000
"""Bytes per second."""
_FULL_SPEED = 19 * USB_PACKET * 1000
"""Bytes per second: 19 packets fit into a millisecond."""
_AROUND = 8 + PAYLOAD + CHECKSUM + GAP
"""Overhead of a datagram on the cable in bytes, from the preamble to the gap."""
_OUTER = ("linked", "wjasip")
_SERIAL_CYCLES = 15
"""Cycles that an execution unit without lanes takes for a pair with four conditions (`seustream bench device`)."""
_FILL = 2
"""Cycles that a message takes in addition to its bytes."""
NAMES = {"TRELLIS_COMB": "LUT4", "TRELLIS_FF": "registers", "DP16KD": "block RAMs"}


def component(cell: str) -> str:
    """Names the components that a cell is in, outermost first. Names made up by synthesis contain a
    dollar sign and are left out."""
    parts = [part for part in cell.split(".")[:-1] if part not in _OUTER and "$" not in part]
    return ".".join(parts[:2]) or "top"


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of the slowest path that lies within a component, or between two."""

    where: str
    logic: float
    routing: float


def segments(path: list[dict[str, Any]]) -> list[Segment]:
    """Divides the slowest path by component, from its beginning to its end."""
    found: list[Segment] = []
    for step in path:
        begin, end = component(step["from"]["cell"]), component(step["to"]["cell"])
        where = begin if begin == end else f"{begin} to {end}"
        delay = step["delay"]
        wire = step["type"] == "routing"
        last = found[-1] if found and found[-1].where == where else Segment(where, 0.0, 0.0)
        found = found[:-1] if found and found[-1].where == where else found
        logic, routing = last.logic + delay * (not wire), last.routing + delay * wire
        found.append(Segment(where, logic, routing))
    return found


@dataclass(frozen=True, slots=True)
class BuildReport:
    """Results of a build.

    version  version of the gateware
    best     seed that the bitstream is made from
    tried    all seeds that were placed
    unplaced seeds that were tried and could not be placed
    address  address of the Ethernet port, if the host link is there
    usb      the host link is on the USB port
    """

    board: Board
    config: DeviceConfig
    version: int
    baud: int
    best: Placed
    tried: Sequence[Placed]
    unplaced: Sequence[int] = ()
    address: NetworkAddress | None = None
    usb: bool = False

    @property
    def pairs(self) -> float:
        """Maximum pairs per second: all areas busy, a row of `lanes` pairs per cycle."""
        a_cycle = self.config.lanes or 1 / _SERIAL_CYCLES
        return self.config.streams * a_cycle * self.runs_at * 1e6

    @property
    def seeds(self) -> int:
        """Number of seeds tried."""
        return len(self.tried) + len(self.unplaced)

    @property
    def met(self) -> int:
        """Number of seeds that reached the clock."""
        return sum(seed.meets for seed in self.tried)

    @property
    def runs_at(self) -> float:
        """Clock of the bitstream in MHz."""
        return self.best.wanted

    @property
    def line_tuples(self) -> float:
        """Maximum raw tuples of two columns per second through the port. Behind a network port the
        processor's clock limits it, too: a byte per cycle, plus two cycles per message."""
        fields = widths(self.config)
        message = HEAD_BITS // 8 + sum(bytes_of(fields[name]) for name in ("step", *ATTRIBUTES[:2]))
        frame = MOST + HEADER + TRAILER + 2
        if not self.address:
            line = _FULL_SPEED if self.usb else self.baud / 10
            return line * MOST / frame / message
        cycles = self.runs_at * 1e6
        cable = _GIGABIT * DATAGRAM / (DATAGRAM + _AROUND)
        return min(min(cable, cycles) * MOST / frame / message, cycles / (message + _FILL))

    def short_by(self) -> str:
        """Describes by how much and where timing fails."""
        best = self.best
        path = segments(best.path)
        where = f"; slowest path: {path[0].where} to {path[-1].where}" if path else ""
        missing = best.wanted - best.clock
        return (
            f"{best.clock:.1f} MHz of {best.wanted:g} MHz asked, {missing:.1f} MHz"
            f" ({missing / best.wanted:.0%}) short in the best of {self.seeds}"
            f" seed{'s' * (self.seeds != 1)}{where}"
        )

    def _port(self) -> dict[str, object]:
        if self.usb:
            return {"usb": "full speed"}
        return {"address": str(self.address)} if self.address else {"baud": self.baud}

    def to_json(self) -> dict[str, object]:
        best = self.best
        return {
            "board": self.board.name,
            "part": self.board.part.name,
            "config": self.config.to_json(),
            "version": f"{self.version:08x}",
            "port": self._port(),
            "clock": {"wanted": best.wanted, "reached": round(best.clock, 2), "met": best.meets},
            "seeds": {
                **{str(p.seed): round(p.clock, 2) for p in self.tried},
                **dict.fromkeys(map(str, self.unplaced)),
            },
            "seed": best.seed,
            "used": {
                NAMES[cell]: {"used": n, "of": of}
                for cell, (n, of) in best.used.items()
                if cell in NAMES
            },
            "path": [
                {"where": s.where, "logic": round(s.logic, 3), "routing": round(s.routing, 3)}
                for s in segments(best.path)
            ],
            "pairs_a_second": round(self.pairs),
            "tuples_a_second": {"line": round(self.line_tuples)},
        }

    def to_text(self) -> str:
        best = self.best
        lines = [
            f"{self.board.title}, configuration {self.config.name},"
            f" bitstream version {self.version:08x}",
            "",
        ]
        for cell, (used, of) in best.used.items():
            if cell in NAMES:
                lines.append(f"  {NAMES[cell]:<11} {used:>7,} of {of:>7,}  {used / of:>4.0%}")
        verdict = "met" if best.meets else "NOT met"
        outcomes = [f"{p.seed}: {p.clock:.1f} MHz" for p in self.tried]
        outcomes += [f"{seed}: not placed" for seed in self.unplaced]
        lines += [
            "",
            f"  clock       {best.clock:.1f} MHz reached, {best.wanted:g} MHz asked: {verdict}",
            f"  seeds       {', '.join(outcomes)}; {self.met} of {self.seeds} met it",
            f"  pairs       {self.pairs / 1e6:,.0f} million a second at most",
            *(
                f"  {name:<11} {reached:.1f} MHz reached, {wanted:g} MHz asked"
                for name, (reached, wanted) in best.clocks.items()
                if self.address or self.usb
            ),
            f"  tuples      {self.line_tuples:,.0f} a second over the"
            f" {'Ethernet' if self.address else 'USB' if self.usb else 'serial'} port at most; what the processor takes",
            "              depends on the queries (`seustream bench device`)",
            "",
            "  slowest path, in ns of logic and of wire",
        ]
        for s in segments(best.path):
            lines.append(f"    {s.logic:5.2f} {s.routing:5.2f}  {s.where}")
        return "\n".join(lines) + "\n"
