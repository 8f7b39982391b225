"""Proves the window buffer: a stored tuple stays as it was, and each context in flight sees what
was there when its raw tuple came (P4); with it, everything of `test_window.py`. Flowing tuples are
not proved but searched."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.hdl import Array, Module, Mux, Signal

from seustream.hdl.window import RangeKind
from tests.formal.arrivals import CONTEXT_BITS, WIDTH
from tests.formal.harness import Case, anything, before, check, constant, proof
from tests.formal.window import (
    WindowKeepsWhatItMust,
    deeper,
    flowing,
    with_fault,
    written_or,
)


class WindowShowsWhatItKeeps(WindowKeepsWhatItMust):
    def describe(self, m: Module) -> None:
        """Follows one tuple from its arrival on, as long as anything may look at it."""
        super().describe(m)
        window, env = self.window, self.env
        bits = len(window.written)
        followed, slot = Signal(), Signal(bits)
        component = Signal(window.arrivals.tuple.as_value().shape())
        selection = Signal(16)
        place = Signal(len(window.rewriting.first))
        m.d.comb += place.eq((slot - window.rewriting.first)[:bits])
        there = followed & (place < window.occupancy)

        # Any context: it sees what was there when its view was taken, and nothing else.
        context = constant(m, CONTEXT_BITS, "context")
        seen = Signal()
        flies = env.in_flight(context)
        # Tuples whose rank is beyond the limit are dead, and not looked at.
        _, rows, kind = self.limits
        cut = Signal(range(window.config.depth + 1))
        with m.If(before(m, kind == RangeKind.NONE.value) & (window.occupancy > rows)):
            m.d.comb += cut.eq(window.occupancy - rows)
        with m.If(window.arrivals.snapshot & (window.arrivals.context == context)):
            m.d.sync += seen.eq(there & (place >= cut))
        # That is searched, not proved: each has a number of its own.
        for i in range(0 if self.induces else window.config.depth):
            dead, _ = self.fate(self.ages[i], self.ranks[i], *self.limits)
            self.claim(
                m, ~(window.arrivals.snapshot & self.there[i] & (self.places[i] < cut)) | dead
            )
        looks = flies & seen
        leaves_window = followed & ~there & ~looks
        stored = window.arrivals.store & anything(m, 1, "this")
        with m.If(stored & (~followed | leaves_window)):
            m.d.sync += [
                followed.eq(1),
                slot.eq(window.written),
                component.eq(window.arrivals.tuple),
                selection.eq(window.arrivals.bits),
                seen.eq(0),
            ]
        with m.Elif(leaves_window):
            m.d.sync += followed.eq(0)
        kept = followed & (there | looks)
        self.claim(m, ~(kept & window.arrivals.store & (window.written == slot)))

        # New selection bits come only while nothing is in flight.
        rewrite = anything(m, 1, "rewrite")
        m.d.comb += window.rewriting.rewrite.eq(rewrite & env.quiet)
        with m.If(window.rewriting.rewrite & (window.rewriting.slot == slot)):
            m.d.sync += selection.eq(window.rewriting.bits)

        stamp = self.made.submodules.stamps.read_port(domain="comb")
        chosen = self.made.submodules.selections.read_port(domain="comb")
        m.d.comb += [stamp.addr.eq(slot), chosen.addr.eq(slot)]
        # Everything is written a cycle later, from registers; no reader may look so soon.
        stamped = written_or(self.made.submodules.stamps, slot, stamp.data)
        self.claim(m, ~kept | (stamped == component[: 2 * WIDTH]))
        (port,) = self.made.submodules.selections.write_ports
        late = Signal()
        m.d.comb += late.eq(port.en & (port.addr == slot))
        self.claim(m, ~kept | (Mux(late, port.data, chosen.data) == selection))
        self.claim(m, port.en == before(m, window.arrivals.store | window.rewriting.rewrite))
        self.claim(m, ~late | ~(followed & looks))
        self.claim(m, ~port.en | ~window.arrivals.snapshot | window.arrivals.flow)
        # What its readers get.
        asked = kept & (window.reading.slot == slot) & window.reading.fetching
        for _ in range(3):
            asked = before(m, asked) & kept
        stamp_bits = 2 * WIDTH
        self.claim(
            m, ~asked | (window.reading.component.as_value()[:stamp_bits] == component[:stamp_bits])
        )
        asked = kept & (window.reading.slot == slot) & window.reading.whole
        for _ in range(3):
            asked = before(m, asked) & kept
        self.claim(
            m, ~asked | (window.reading.component.as_value()[stamp_bits:] == component[stamp_bits:])
        )
        hit = kept & (window.hit == slot) & window.hit_take & ~window.rewriting.rewrite & ~late
        self.claim(m, ~(before(m, hit) & kept) | (window.hit_bits == selection))
        row_bits = window.row_bits
        bank_bits = bits - row_bits
        read = kept & (window.row == slot[bank_bits:]) & ~window.reading.whole
        for _ in range(3):
            read = before(m, read) & kept
        attributes = component[-4 * window.config.attribute_width :]
        for b in range(window.banks):
            memory = self.made.submodules[f"bank{b}"]
            bank = memory.read_port(domain="comb")
            m.d.comb += bank.addr.eq(slot[bank_bits:])
            there_in = kept & ((slot[:bank_bits] if bank_bits else 0) == b)
            held = written_or(memory, slot[bank_bits:], bank.data)
            self.claim(m, ~there_in | (held == attributes))
        found = Array(window.tuples[b].as_value() for b in range(window.banks))[slot[:bank_bits]]
        self.claim(m, ~read | (found == attributes))
        # The view of a context, counted from the tail of that time, is read at the earliest two
        # cycles after it was recorded.
        asked = (window.context == context) & flies & before(m, flies) & followed & ~stored
        asked = before(m, before(m, asked) & flies & kept & ~stored)
        offset = (slot - window.tail)[:bits]
        self.claim(m, ~(asked & flies & kept) | ((offset < window.count) == seen))
        self.reach(m, asked & flies & seen & ~there & window.arrivals.store)
        view = self.made.submodules.views.read_port(domain="comb")
        m.d.comb += view.addr.eq(context)
        noted = view.data.shape()(written_or(self.made.submodules.views, context, view.data))
        self.claim(m, ~(flies & kept) | (((slot - noted.first)[:bits] < noted.count) == seen))


def faulty(old: str, new: str) -> object:
    return with_fault(WindowShowsWhatItKeeps, old, new)


@pytest.mark.parametrize(
    "case",
    [
        proof("window", WindowShowsWhatItKeeps, "prove", 6, campaign=False),
        proof("window-of-4", deeper(WindowShowsWhatItKeeps, 4, 2), "prove", 6),
        proof("window", WindowShowsWhatItKeeps, "meet", 30),
        proof("window-flows", flowing(WindowShowsWhatItKeeps, 8, 5), "search", 9, campaign=False),
        proof("window-flows", flowing(WindowShowsWhatItKeeps, 8, 5), "search", 12),
        proof("window-flows-slowly", flowing(WindowShowsWhatItKeeps, 2, 1), "search", 14),
        proof(
            "view-overwritten",
            faulty("Mux(busy[-1], oldest.data.tail, tail)", "tail"),
            "search",
            24,
            "FAIL",
        ),
        proof(
            "view-short",
            faulty("Mux(more, ranks, self._stored_now)", "Mux(more, ranks, self._stored_now - 1)"),
            "search",
            14,
            "FAIL",
        ),
    ],
)
def test_window_contents(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
