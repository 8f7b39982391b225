"""Proves the output: one record per tuple, of the queries that are found for it (P9, P1)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from amaranth.hdl import Array, Cat, Elaboratable, Module, Mux, Signal

from seustream.hdl.control_words import Target
from seustream.hdl.output import Output
from seustream.hdl.query_search import QuerySearch
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
    narrowed,
    proof,
)
from tests.formal.test_query_search import PLACES, QUERIES, SMALL, tiny

TAGS = 2
FILTERS = {"SELECTIONS": 2, "FILTERED": 1, "FILTER_BITS": 2, "STREAM_BITS": 1}
LATE = 4
"""Cycles from the router's look at `room` to its push (see `test_router`)."""
SOONEST = 4
"""Cycles from a tuple's entry into the search until it is found, at least; in fact there are
more."""
COUNTED = 3
"""Cycles in which the queries of a record are counted."""


class AnySearch(QuerySearch):
    """Stands in for the search, whose own proof shows what it finds: any queries, in any order."""

    def elaborate(self, platform: object) -> Elaboratable:
        return Module()


class OutputDelivers(Specification):
    """Any tables; any one tuple is followed, among any others."""

    def __init__(self, *fault: tuple[str, str]) -> None:
        super().__init__()
        self.fault = fault

    @contextlib.contextmanager
    def setting(self) -> Iterator[None]:
        with narrowed({**SMALL, "TAG_BITS": 1}, {}):
            yield

    def describe(self, m: Module) -> None:
        config = tiny()
        n = config.streams
        searches: list[AnySearch] = []

        def made(config: object) -> AnySearch:
            searches.append(AnySearch(config))
            return searches[-1]

        own = {"PLACES": PLACES, "PLACE_BITS": 2, "TAG_BITS": 1, "QuerySearch": made, **FILTERS}
        output = altered(Output, *self.fault, **own)(config)
        build(m, "output", output)
        (search,) = searches
        drive(m, output, "tables", "push", "pushed", "fetch",
              "results")  # fmt: skip

        # Load, then exchange the halves.
        queries = [constant(m, QUERIES, f"queries{tag}") for tag in range(TAGS)]
        firsts = [constant(m, 1, f"first{tag}") for tag in range(TAGS)]
        writes: list[tuple] = []
        for tag in range(TAGS):
            writes += [(Target.PART, 0, firsts[tag]), (Target.QUERIES, tag, queries[tag])]
        filters = {}
        for unit in range(2):
            for address in range(4):
                filters[unit, address] = constant(m, QUERIES, f"filter{unit}_{address}")
                writes.append((Target.FILTER, address, filters[unit, address], unit))
        clock = Signal(range(len(writes) + 1))
        loaded = clock == len(writes)
        with m.If(~loaded):
            m.d.sync += clock.eq(clock + 1)
        bus = output.tables
        m.d.comb += [bus.valid.eq(~loaded), bus.half.eq(loaded)]
        for number, (target, address, word, *unit) in enumerate(writes):
            with m.If(clock == number):
                m.d.comb += [bus.target.eq(target), bus.address.eq(address), bus.data.eq(word)]
                m.d.comb += bus.unit.eq(*(unit or (0,)))

        # How many came, were requested, and are done; `followed` is the number of the one that is
        # followed.
        came, asked, answered, done = (Signal(6) for _ in range(4))
        followed = constant(m, 6, "index")
        width = len(output.pushed.as_value())
        mine = constant(m, width, "mine")
        reference = output.pushed.shape()(mine)
        seen = output.room
        for _ in range(LATE):
            seen = before(m, seen)
        push = anything(m, 1, "push") & seen & loaded
        pushed = anything(m, width, "pushed")
        m.d.comb += [output.push.eq(push), output.pushed.as_value().eq(pushed)]
        self.assume(m, ~(push & (came == followed)) | (pushed == mine))
        self.assume(m, (reference.tag < 2) & (reference.carries != 0))
        m.d.sync += came.eq(came + push)

        # The tuple fetch: in order, two cycles after the request or at any later time.
        request = output.fetch.request
        m.d.comb += request.ready.eq(anything(m, 1, "ready"))
        taken = request.valid & request.ready
        m.d.sync += asked.eq(asked + taken)
        response = (answered != before(m, asked)) & anything(m, 1, "response")
        m.d.sync += answered.eq(answered + response)
        self.claim(m, ~taken | (asked != came))
        is_mine = asked == followed
        self.claim(m, ~(request.valid & is_mine) | (request.payload.as_value() == mine))
        whole = constant(m, len(output.fetch.data.as_value()), "whole")
        other = anything(m, len(whole), "other")
        m.d.comb += [
            output.fetch.response.eq(response),
            output.fetch.data.as_value().eq(Mux(answered == followed, whole, other)),
        ]
        tuple_ = output.fetch.data.shape()(whole)
        self.assume(m, tuple_.reference.as_value() == mine)
        self.assume(m, ~tuple_.stream[1])

        # The search: what comes is found once, and stays found.
        begun, arrived, pending, taken = Signal(6), Signal(6), Signal(PLACES), Signal(PLACES)
        comes = search.came
        for _ in range(SOONEST):
            comes = before(m, comes)
        kept = Array(Signal(QUERIES, name=f"kept{place}") for place in range(PLACES))
        found, place = anything(m, 1, "found"), anything(m, 2, "place")
        finds = Signal()
        has = anything(m, QUERIES, "has")
        m.d.comb += [
            finds.eq(found & pending.bit_select(place, 1)),
            search.found.eq(finds),
            search.place.eq(place),
            search.some.eq(has != 0),
            search.left.eq(kept[search.read]),
        ]
        with m.If(finds):
            m.d.sync += [kept[place].eq(has), pending.bit_select(place, 1).eq(0)]
            m.d.sync += taken.bit_select(place, 1).eq(0)
        with m.If(comes):
            m.d.sync += [pending.bit_select(arrived[:2], 1).eq(1), arrived.eq(arrived + 1)]
        with m.If(search.came):
            m.d.sync += [taken.bit_select(begun[:2], 1).eq(1), begun.eq(begun + 1)]
        self.claim(m, ~search.came | ~taken.bit_select(begun[:2], 1))
        expected, decided = Signal(QUERIES), Signal()
        with m.If(finds & (place == followed[:2]) & (arrived > followed) & ~decided):
            m.d.sync += [expected.eq(has), decided.eq(1)]

        # By the definition.
        ages, ranks, carried = [], [], []
        for s in range(n):
            ages.append((tuple_.now - tuple_.components[s].timestamp)[:2])
            ranks.append((tuple_.counters[s] - tuple_.components[s].sequence)[:2])
            carried.append(reference.carries[s])
        greatest = Signal(2)
        counted = [Mux(carried[s], ages[s], 0) for s in range(n)]
        m.d.comb += greatest.eq(Mux(counted[0] > counted[1], *counted))
        tag = reference.tag[:1]
        # The two selection bits of a raw tuple are looked up one by one.
        of_stream = tuple_.stream[:1]
        passed = Array(
            filters[unit, bits & 1] & filters[unit, 2 | bits >> 1]
            for bits in range(4)
            for unit in range(2)
        )[Cat(of_stream, tuple_.bits[:2])]
        is_raw = reference.carries == 1 << of_stream
        of_tag = Array(queries)[tag]
        with m.If(before(m, search.came & (begun == followed))):
            self.claim(m, search.queries == Mux(is_raw, of_tag & passed, of_tag))
        with m.If(search.came & (begun == followed)):
            self.claim(m, search.test == Array(firsts)[tag])
            self.claim(m, search.keys.carries == reference.carries)
            for s in range(n):
                self.claim(m, ~carried[s] | (search.keys.ages[s] == ages[s]))
                self.claim(m, ~carried[s] | (search.keys.ranks[s] == ranks[s]))

        results = output.results
        m.d.comb += results.ready.eq(anything(m, 1, "results_ready"))
        handed = results.valid & results.ready
        now = (done == followed) & (answered > followed)
        m.d.sync += done.eq(done + output.done.commit)
        self.claim(m, ~output.done.commit | (done != answered))
        of_it = Mux(handed, sum(results.payload.queries), 0)
        for _ in range(COUNTED):
            of_it = before(m, of_it)
        self.claim(m, output.delivered == of_it)
        self.claim(m, ~results.valid | (output.done.commit == results.ready))
        with m.If(now):
            with m.If(results.valid):
                result = results.payload
                self.claim(m, decided & (result.queries == expected) & (expected != 0))
                self.claim(m, result.carries == reference.carries)
                self.claim(m, result.newest == tuple_.now)
                self.claim(m, result.oldest == (tuple_.now - greatest)[:2])
                for s in range(n):
                    its = tuple_.components[s].sequence
                    self.claim(m, ~carried[s] | (result.sequences[s] == its))
            with m.If(output.done.commit):
                self.claim(m, decided & (results.valid == (expected != 0)))
                self.claim(m, output.done.context == reference.context)
        # A waiting output does not change.
        for what in (results, request):
            waits = before(m, what.valid & ~what.ready)
            payload = what.payload.as_value()
            self.claim(m, ~waits | (what.valid & (payload == before(m, payload))))

        self.reach(m, now & output.done.commit & (expected == 3) & (followed == 1))
        self.reach(m, now & output.done.commit & (queries[1] == 3) & (expected == 0) & (tag == 1))
        self.reach(m, (came - asked)[:6] == config.output_fifo_depth + LATE)
        # A place is used again.
        self.reach(m, now & output.done.commit & (followed == PLACES))
        self.reach(
            m, now & output.done.commit & is_raw & (of_tag == 3) & (passed == 2) & (expected == 2)
        )


def delivers(*fault: tuple[str, str]) -> object:
    return lambda: OutputDelivers(*fault)


@pytest.mark.parametrize(
    "case",
    [
        proof("output", delivers(), "search", 20, campaign=False),
        proof("output", delivers(), "search", 26, limit=1800),
        proof("output", delivers(), "meet", 46),
        proof(
            "age-of-another",
            delivers(("search.keys.ages.eq(ages)", "search.keys.ages.eq(ranks)")),
            "search",
            26,
            "FAIL",
        ),
        proof(
            "all-filters-passed",
            delivers(
                ("read.data | is_joined.replicate(len(kept))", "~is_joined.replicate(len(kept))")
            ),
            "search",
            26,
            "FAIL",
        ),
        proof(
            "repeats",
            delivers(("here.eq(leaves)", "here.eq(here | leaves)")),
            "search",
            30,
            "FAIL",
        ),
        proof(
            "one-place-too-many",
            delivers(("asked < PLACES - 1", "asked < PLACES + 1")),
            "search",
            32,
            "FAIL",
        ),
    ],
)
def test_output(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
