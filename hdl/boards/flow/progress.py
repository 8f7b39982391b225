"""Progress of placing and routing, read from nextpnr's output."""

from __future__ import annotations

import re

from seustream.hdl.boards.flow.tools import Note

_PHASES = (
    (re.compile(r"Packing (constants|carries|LUTs|slices|block RAM)"), "packing"),
    (re.compile(r"initialising bels"), "placing"),
    (re.compile(r"simulated annealing"), "refining the placement"),
    (re.compile(r"Routing globals"), "routing"),
)
_OVERLAP = re.compile(r"overlap: .*COMB=([\d.]+)%")
_REFINED = re.compile(r"at iteration #(\d+): temp = .*wirelen = (\d+)")
_ARCS = re.compile(r"Routing (\d+) arcs")
_LEFT = re.compile(r"Info: +\d+ \|.*\| +(\d+)\|[^|]*\|$")
STEP = 5
"""Percentage points of the overlap, or of the arcs, between two notes."""


class FlowProgress:
    """Reports the news in each line that it is given."""

    def __init__(self, what: str, note: Note) -> None:
        self._what, self._note = what, note
        self._phase = ""
        self._arcs = self._routed = 0
        self._overlap = 100

    def line(self, text: str) -> None:
        for pattern, name in _PHASES:
            if pattern.search(text) and name != self._phase:
                self._phase = name
                self._tell(name)
        if found := _OVERLAP.search(text):
            share = int(float(found[1]))
            if share <= self._overlap - STEP:
                self._overlap = share + -share % STEP
                self._tell(f"{self._phase}, {self._overlap} % of the logic still overlaps")
        elif found := _REFINED.search(text):
            self._tell(f"{self._phase}, round {found[1]}: {int(found[2]):,} of wire")
        elif found := _ARCS.search(text):
            self._arcs, self._routed = int(found[1]), 0
        elif self._arcs and (found := _LEFT.search(text)):
            share = 100 * (self._arcs - int(found[1])) // self._arcs
            if share >= self._routed + STEP:
                self._routed = share - share % STEP
                self._tell(f"routing, {self._routed} % of {self._arcs:,} wires")

    def _tell(self, what: str) -> None:
        self._note(f"{self._what}: {what}")
