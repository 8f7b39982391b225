"""Router: every joined tuple to all its destinations, once, where there is room (P7, P11)."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.hdl import Array, Cat, Module, Mux, Signal

from hdl.router import Router
from tests.formal.harness import (
    Case,
    Specification,
    altered,
    anything,
    before,
    build,
    check,
    constant,
    drive,
    proof,
    small,
)


class RouterRoutes(Specification):
    """Any of the senders is followed. A sender holds what it emits until the cycle after it is
    granted, or takes it back."""

    def __init__(self, make: type = Router) -> None:
        super().__init__()
        self.make = make

    def describe(self, m: Module) -> None:
        n = 3
        router = self.make(small(streams=n))
        build(m, "router", router)
        drive(m, router, "emit", "emitted", "level", "destination")
        who = constant(m, 2, "who")
        senders = range(n + 1)
        level_bits = len(router.push_level)
        size = len(router.pushed.as_value())
        payload = size + n + 1 + level_bits
        offered = []
        for s in senders:
            wants, what = anything(m, 1, f"wants{s}"), anything(m, payload, f"what{s}")
            offered.append(what)
            m.d.comb += [
                router.emit[s].eq(wants),
                router.emitted[s].eq(what[:size]),
                router.destination[s].eq(what[size : size + n + 1]),
            ]
            if s < n:
                m.d.comb += router.level[s].eq(what[size + n + 1 :])
            had, got = before(m, wants), before(m, router.granted[s])
            same = what == before(m, what)
            self.assume(m, ~had | ~wants | same)
            self.assume(m, ~got | (~wants & same))

        granted = router.granted.bit_select(who, 1)
        what = Array(offered)[who]
        areas, output = what[size : size + n], what[size + n]
        level = Mux(who == n, 0, what[size + n + 1 :] + 1)[:level_bits]
        room = Array(
            Cat(router.rooms[area][number] for area in range(n))
            for number in range(1 << level_bits)
            if number < len(router.rooms[0])
        )[level]

        self.claim(m, (router.granted & (router.granted - 1)) == 0)
        self.claim(m, (router.granted & ~router.emit) == 0)
        # Room everywhere, or it waits.
        fits = ((areas & ~room) == 0) & (~output | router.output_room)
        wants = router.emit.bit_select(who, 1)
        self.claim(m, ~granted | before(m, wants & fits))
        # Then, all destinations at once, and nothing that was not granted.
        was_granted = before(m, granted)
        with m.If(was_granted):
            self.claim(m, router.sent == sum(Cat(areas, output)))
            self.claim(m, router.context == what[: len(router.context)])
        with m.If(before(m, was_granted)):
            self.claim(m, router.push == before(m, areas))
            self.claim(m, router.output == before(m, output))
            self.claim(m, router.pushed.as_value() == before(m, what[:size]))
            self.claim(m, router.push_level == before(m, level))
        none = before(m, router.granted == 0, init=1)
        self.claim(m, ~none | (router.sent == 0))
        silent = before(m, none, init=1)
        self.claim(m, ~silent | ((router.push == 0) & ~router.output))
        # Who always has room waits for each of the others once at most.
        waits = Signal(3)
        wanting = wants & router.roomy.bit_select(who, 1)
        with m.If(wanting & ~granted):
            m.d.sync += waits.eq(waits + 1)
        with m.Else():
            m.d.sync += waits.eq(0)
        self.claim(m, waits <= n)

        self.reach(m, (waits == n) & granted)
        self.reach(m, granted & (areas == 0b101) & output & (who == n))
        self.reach(m, before(m, before(m, wants & ~fits)) & granted)


def faulty(old: str, new: str) -> object:
    return lambda: RouterRoutes(altered(Router, (old, new)))


@pytest.mark.parametrize(
    "case",
    [
        proof("router", RouterRoutes, "prove", 6, campaign=False),
        proof("router", RouterRoutes, "cover", 10),
        proof(
            "output-unasked",
            faulty("destination.output & ~self.output_room", "0"),
            "bmc",
            6,
            "FAIL",
            campaign=False,
        ),
        proof("any-room", faulty("self.emit & self.roomy", "self.emit"), "bmc", 6, "FAIL"),
        proof(
            "same-level", faulty("self.level[sender] + 1", "self.level[sender]"), "bmc", 6, "FAIL"
        ),
        proof(
            "sent-without-output",
            faulty(
                "sum(Cat(destination.areas, destination.output))", "sum(Cat(destination.areas))"
            ),
            "bmc",
            6,
            "FAIL",
        ),
    ],
)
def test_router(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
