"""Proves the router: every joined tuple goes to all its destinations, once, where there is room
(P7, P11)."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value

from seustream.hdl.layouts import FOLLOWING, OFFERS
from seustream.hdl.router import Router
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
    inside,
    proof,
    small,
)

LATE = 3
"""Cycles from a look at the rooms to a grant."""


class RouterRoutes(Specification):
    """Any one of the senders is followed; those beyond the areas lead to the output alone. A sender
    holds what it emits until it is granted, and may then emit the next at once, as it must where it
    announced that; or it takes it back while it cannot be granted: not roomy, not granted. Its
    announcement of the next two stays until then."""

    def __init__(self, make: type = Router) -> None:
        super().__init__()
        self.make = make

    def describe(self, m: Module) -> None:
        n = 3
        router = self.make(small(streams=n))
        made = build(m, "router", router)
        drive(m, router, "offers", "raws")
        # A bit for each sender.
        emit = Cat(Cat(offer.emit for offer in router.offers), router.raws.emit)
        taking, granted, roomy = (inside(made, name) for name in ("taking", "granted", "roomy"))
        for s, offer in enumerate(router.offers):
            self.claim(m, (offer.taking == taking[s]) & (offer.roomy == roomy[s]))
        self.claim(m, router.raws.granted == granted[n:])
        push = Cat(probes.push for probes in router.probes)
        who = constant(m, 3, "who")
        senders = range(n + OFFERS)
        self.assume(m, who < n + OFFERS)
        level_bits = len(router.probes[0].level)
        size = len(router.pushed.as_value())
        payload = size + n + 1 + level_bits
        offered = []
        what_follows: Value = Const(0)
        for s in senders:
            wants = anything(m, 1, f"wants{s}")
            if s < n:
                what = anything(m, payload, f"what{s}")
                offer = router.offers[s]
                m.d.comb += [
                    offer.emit.eq(wants),
                    offer.emitted.eq(what[:size]),
                    offer.destination.eq(what[size : size + n + 1]),
                ]
            else:
                what = Cat(anything(m, size, f"what{s}"), Const(1 << n, n + 1 + level_bits))
                m.d.comb += [
                    router.raws.emit[s - n].eq(wants),
                    router.raws.emitted[s - n].eq(what[:size]),
                ]
            offered.append(what)
            had, got = before(m, wants), before(m, granted[s])
            if s < n:
                level = what[size + n + 1 :]
                follows = anything(m, FOLLOWING, f"follows{s}")
                to = [anything(m, n + 1, f"follows_to{s}_{i}") for i in range(FOLLOWING)]
                m.d.comb += [
                    offer.level.eq(level),
                    offer.follows.eq(follows),
                    *(offer.follows_to[i].eq(to[i]) for i in range(FOLLOWING)),
                ]
                self.assume(m, follows[0] | ~follows[1])
                said, then = (before(m, follows[i]) for i in range(FOLLOWING))
                same_level = level == before(m, level)
                as_said = wants & same_level & (what[size : size + n + 1] == before(m, to[0]))
                self.assume(m, ~(got & said) | as_said)
                self.assume(m, ~(~had & said & wants) | as_said)
                # The second one announced is the first once that one is offered.
                moved = got | (~had & wants)
                still = follows[0] & (to[0] == before(m, to[1]))
                self.assume(m, ~(moved & said & then) | still)
                stays = follows[0] & (to[0] == before(m, to[0]))
                self.assume(m, ~(had & ~got & said) | stays)
                what_follows = Mux(who == s, said, what_follows)
            same = what == before(m, what)
            stuck = before(m, ~roomy[s] & ~granted[s])
            self.assume(m, ~had | ~wants | same | got)
            self.assume(m, ~had | wants | got | stuck)

        its_grant = granted.bit_select(who, 1)
        what = Array(offered)[who]
        areas, output = what[size : size + n], what[size + n]
        level = Mux(who >= n, 0, what[size + n + 1 :] + 1)[:level_bits]
        # A grant depends on the rooms of that time.
        rooms, output_room = Cat(probes.room for probes in router.probes), router.output_room
        for _ in range(LATE):
            rooms, output_room = before(m, rooms), before(m, output_room)
        levels = len(router.probes[0].room)
        room = Array(
            Cat(rooms[area * levels + number] for area in range(n))
            for number in range(1 << level_bits)
            if number < levels
        )[level]

        self.claim(m, (granted & (granted - 1)) == 0)
        self.claim(m, (granted & ~emit) == 0)
        self.claim(m, router.circulated == granted[:n].any())
        # There is room everywhere, or it waits.
        fits = ((areas & ~room) == 0) & (~output | output_room)
        wants, may = emit.bit_select(who, 1), roomy.bit_select(who, 1)
        self.claim(m, ~its_grant | (wants & fits & before(m, wants & may)))
        self.claim(m, ~may | before(m, wants) | what_follows)
        # Then all destinations get it at once, and nothing that was not granted.
        with m.If(before(m, its_grant)):
            places = Mux(who >= n, 0, sum(Cat(areas, output)))
            self.claim(m, router.sent == before(m, places))
            self.claim(m, router.context == before(m, what[: len(router.context)]))
            self.claim(m, push == before(m, areas))
            self.claim(m, router.output == before(m, output))
            self.claim(m, router.pushed.as_value() == before(m, what[:size]))
            for probes in router.probes:
                self.claim(m, probes.pushed.as_value() == router.pushed.as_value())
                self.claim(m, probes.level == before(m, level))
        none = before(m, granted == 0, init=1)
        self.claim(m, ~none | ((router.sent == 0) & (push == 0) & ~router.output))
        # A sender that always has room waits for each of the others at most once.
        waits, others = Signal(3), n + OFFERS - 1
        taken = taking.bit_select(who, 1)
        with m.If(wants & may & ~taken):
            m.d.sync += waits.eq(waits + 1)
        with m.Else():
            m.d.sync += waits.eq(0)
        self.claim(m, waits <= others)
        self.claim(m, (waits != others) | taken | ~wants | ~may)

        self.reach(m, (waits == others) & taken)
        self.reach(m, its_grant & (areas == 0b101) & output & (who == n - 1))
        self.reach(m, its_grant & (who == n + OFFERS - 1))
        # Grants one after the other, and one to a sender that offered nothing before.
        last_one = before(m, its_grant)
        self.reach(m, its_grant & last_one & before(m, last_one) & (who < n))
        self.reach(m, its_grant & before(m, before(m, ~wants)) & (who < n))
        self.reach(m, before(m, before(m, wants & ~fits)) & its_grant)
        taken_back = before(m, wants) & ~wants
        self.reach(m, before(m, before(m, before(m, taken_back))) & its_grant)


def faulty(old: str, new: str) -> object:
    return lambda: RouterRoutes(altered(Router, (old, new)))


@pytest.mark.parametrize(
    "case",
    [
        proof("router", RouterRoutes, "prove", 6, campaign=False),
        proof("router", RouterRoutes, "meet", 10),
        proof(
            "output-unasked",
            faulty("room[n].eq(output_room)", "room[n].eq(1)"),
            "search",
            6,
            "FAIL",
            campaign=False,
        ),
        proof("any-room", faulty("emit & roomy", "emit"), "search", 6, "FAIL"),
        proof("twice", faulty("Mux(gone, later[0], first)", "first"), "search", 6, "FAIL"),
        proof(
            "follows-anywhere",
            faulty("~(Cat(to.areas, to.output) & ~room).any()", "1"),
            "search",
            7,
            "FAIL",
        ),
        proof(
            "third-for-second",
            faulty("Mux(granted[sender], later[1], later[0])", "later[1]"),
            "search",
            8,
            "FAIL",
        ),
        proof(
            "raw-to-nowhere",
            faulty("m.d.comb += destination.output.eq(1)", "pass"),
            "search",
            6,
            "FAIL",
        ),
        proof(
            "same-level",
            faulty("offer.level + 1", "offer.level"),
            "search",
            6,
            "FAIL",
        ),
        proof(
            "sent-without-output",
            faulty(
                "sum(Cat(destination.areas, destination.output))", "sum(Cat(destination.areas))"
            ),
            "search",
            6,
            "FAIL",
        ),
    ],
)
def test_router(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
