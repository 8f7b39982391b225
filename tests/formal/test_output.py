"""Output: of each tuple, the results its queries' windows let through, once each (P9, P1)."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data

from seustream.hdl.control_words import KIND_SHIFT, Target
from seustream.hdl.device import WindowKind
from seustream.hdl.output import Output
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

QUERIES = 2
SMALL = (
    # 2 queries and 2 route tags, so that the memories are small.
    ("import CONTEXT_BITS, QUERY_BITS, TAG_BITS, Layouts",
     "import CONTEXT_BITS, Layouts\n\nQUERY_BITS, TAG_BITS = 1, 1\n"),
    ("Cat(reference.tag, self.half)", "Cat(reference.tag[:1], self.half)"),
)  # fmt: skip
LATE = 4
"""Cycles from the router's look at `room` to its push (see `test_router`)."""


class OutputDelivers(Specification):
    """Any tables; one tuple is followed, any, among any others."""

    def __init__(self, *fault: tuple[str, str]) -> None:
        super().__init__()
        self.make = altered(Output, *SMALL, *fault)

    def describe(self, m: Module) -> None:
        config = small(attribute_width=1, timestamp_width=4, sequence_width=4, output_fifo_depth=1)
        n = config.streams
        output = self.make(config)
        build(m, "output", output)
        drive(m, output, "write", "half", "push", "pushed", "request", "response", "fetched",
              "results")  # fmt: skip

        # Load, then exchange the halves.
        clock = Signal(4)
        size = data.StructLayout({"kind": 2, "size": 4})
        queries = [constant(m, QUERIES, f"queries{tag}") for tag in range(2)]
        windows = [[constant(m, 6, f"window{s}_{q}") for q in range(QUERIES)] for s in range(n)]
        writes = [(Target.QUERIES, 0, tag, queries[tag]) for tag in range(2)]
        for s in range(n):
            for q in range(QUERIES):
                window = size(windows[s][q])
                writes.append((Target.WINDOW, s, q | window.kind << KIND_SHIFT, window.size))
        loaded = clock == len(writes)
        with m.If(~loaded):
            m.d.sync += clock.eq(clock + 1)
        bus = output.write
        m.d.comb += [bus.valid.eq(~loaded), output.half.eq(loaded)]
        for number, (target, unit, address, word) in enumerate(writes):
            with m.If(clock == number):
                m.d.comb += [
                    bus.target.eq(target),
                    bus.unit.eq(unit),
                    bus.address.eq(address),
                    bus.data.eq(word),
                ]

        # How many came, were requested, and are done; `index` is the one that is followed.
        came, asked, answered, done = (Signal(6) for _ in range(4))
        index = constant(m, 6, "index")
        width = len(output.pushed.as_value())
        mine = constant(m, width, "mine")
        reference = output.pushed.shape()(mine)
        seen = output.room
        for _ in range(LATE):
            seen = before(m, seen)
        push = anything(m, 1, "push") & seen & loaded
        pushed = anything(m, width, "pushed")
        m.d.comb += [output.push.eq(push), output.pushed.as_value().eq(pushed)]
        self.assume(m, ~(push & (came == index)) | (pushed == mine))
        self.assume(m, (reference.tag < 2) & (reference.carries != 0))
        m.d.sync += came.eq(came + push)

        # The tuple fetch: in order, two cycles after it was asked or whenever it likes then.
        request = output.request
        m.d.comb += request.ready.eq(anything(m, 1, "ready"))
        taken = request.valid & request.ready
        m.d.sync += asked.eq(asked + taken)
        response = (answered != before(m, asked)) & anything(m, 1, "response")
        m.d.sync += answered.eq(answered + response)
        self.claim(m, ~taken | (asked != came))
        is_mine = asked == index
        self.claim(m, ~(request.valid & is_mine) | (request.payload.as_value() == mine))
        whole = constant(m, len(output.fetched.as_value()), "whole")
        other = anything(m, len(whole), "other")
        m.d.comb += [
            output.response.eq(response),
            output.fetched.as_value().eq(Mux(answered == index, whole, other)),
        ]
        tuple_ = output.fetched.shape()(whole)
        self.assume(m, tuple_.reference.as_value() == mine)

        # By the definition.
        ages, ranks, carried = [], [], []
        for s in range(n):
            ages.append((tuple_.now - tuple_.components[s].timestamp)[:4])
            ranks.append((tuple_.counters[s] - tuple_.components[s].sequence)[:4])
            carried.append(reference.carries[s])
        greatest = Signal(4)
        counted = [Mux(carried[s], ages[s], 0) for s in range(n)]
        m.d.comb += greatest.eq(Mux(counted[0] > counted[1], *counted))
        expected = Signal(QUERIES)
        for q in range(QUERIES):
            fits = []
            for s in range(n):
                window = size(windows[s][q])
                by_age = (window.kind == WindowKind.RANGE) & (ages[s] > window.size)
                by_rank = (window.kind == WindowKind.ROWS) & (ranks[s] >= window.size)
                fits.append(~carried[s] | ~(by_age | by_rank))
            asks = Array(queries)[reference.tag[:1]][q]
            m.d.comb += expected[q].eq(asks & Cat(fits).all())

        results = output.results
        m.d.comb += results.ready.eq(anything(m, 1, "results_ready"))
        handed = results.valid & results.ready
        got = Signal(QUERIES)
        got_now = got | Mux(handed, 1 << results.payload.query, 0)
        now = (done == index) & (answered > index)
        m.d.sync += done.eq(done + output.commit)
        self.claim(m, ~output.commit | (done != answered))
        self.claim(m, output.delivered == handed)
        with m.If(now):
            with m.If(handed):
                m.d.sync += got.eq(got_now)
            with m.If(results.valid):
                result = results.payload
                mark = 1 << result.query
                self.claim(m, (mark & expected) != 0)
                self.claim(m, (mark & got) == 0)
                self.claim(m, result.carries == reference.carries)
                self.claim(m, result.newest == tuple_.now)
                self.claim(m, result.oldest == (tuple_.now - greatest)[:4])
                for s in range(n):
                    its = tuple_.components[s].sequence
                    self.claim(m, ~carried[s] | (result.sequences[s] == its))
            with m.If(output.commit):
                self.claim(m, got_now == expected)
                self.claim(m, output.context == reference.context)
        # What waits stays as it is.
        for what in (results, request):
            waits = before(m, what.valid & ~what.ready)
            payload = what.payload.as_value()
            self.claim(m, ~waits | (what.valid & (payload == before(m, payload))))

        self.reach(m, now & output.commit & (expected == 3) & (index == 1))
        self.reach(m, now & output.commit & (queries[1] == 3) & (expected == 0))
        self.reach(m, (came - asked)[:6] == config.output_fifo_depth + LATE)


def delivers(*fault: tuple[str, str]) -> object:
    return lambda: OutputDelivers(*fault)


@pytest.mark.parametrize(
    "case",
    [
        proof("output", delivers(), "search", 18, campaign=False),
        proof("output", delivers(), "search", 24),
        proof("output", delivers(), "meet", 36),
        proof(
            "age-off-by-one",
            delivers(("ages[s] <= window", "ages[s] < window")),
            "search",
            26,
            "FAIL",
        ),
        proof(
            "rank-off-by-one",
            delivers(("ranks[s] < window", "ranks[s] <= window")),
            "search",
            26,
            "FAIL",
        ),
        proof(
            "repeats",
            delivers(("left.eq(rest)", "left.eq(left)")),
            "search",
            32,
            "FAIL",
        ),
    ],
)
def test_output(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
