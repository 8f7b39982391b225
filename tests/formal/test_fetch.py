"""Proves the tuple fetch: one response per request, in order, with the requested tuple (P2,
P11)."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.hdl import Array, Cat, Module, Mux, Signal

from seustream.hdl.fetch import TupleFetch
from seustream.hdl.layouts import CONTEXT_BITS
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


class FetchFetches(Specification):
    """One request of any requester is followed; any one slot of any one window contains `stored`. A
    window reads in 2 cycles, and only while its `fetching` is set. A reference gives the stream of
    the raw tuple that is kept under its context."""

    def __init__(self, make: type = TupleFetch) -> None:
        super().__init__()
        self.make = make

    def describe(self, m: Module) -> None:
        n = 3
        config = small(streams=n, depth=4, attribute_width=1, timestamp_width=4, sequence_width=4)
        who_all = 3
        fetch = self.make(config, who_all)
        made = build(m, "fetch", fetch)
        window, slot = constant(m, range(n), "window"), constant(m, 2, "slot")
        stored = constant(m, fetch.windows[0].component.as_value().shape(), "stored")
        stamp_bits = len(fetch.windows[0].component.timestamp) + len(
            fetch.windows[0].component.sequence
        )
        stamp, rest = slice(stamp_bits), slice(stamp_bits, None)
        drive(m, fetch, "requesters", "windows", "remember", "context", "raw", "whole_results")
        fetching, whole, coming = (
            Cat(getattr(window, name) for window in fetch.windows)
            for name in ("fetching", "whole", "coming")
        )
        responses, answering = (
            Cat(getattr(requester, name) for requester in fetch.requesters)
            for name in ("response", "answering")
        )
        fetched = fetch.requesters[0].data
        who = constant(m, range(who_all), "who")
        self.assume(m, (who < who_all) & (window < n))

        context = constant(m, CONTEXT_BITS, "of")
        raw = constant(m, fetch.raw.as_value().shape(), "raw")
        # The raw tuple was kept before it is requested; others come and go.
        remember, number = anything(m, 1, "remember"), anything(m, CONTEXT_BITS, "number")
        it = anything(m, raw.shape(), "it")
        m.d.comb += [fetch.remember.eq(remember), fetch.context.eq(number), fetch.raw.eq(it)]
        kept = Signal()
        its = fetch.raw.shape()(raw)
        # It is the last of its stream.
        self.assume(
            m, Array(its.counters[s] for s in range(n))[its.stream] == its.component.sequence
        )
        with m.If(remember & (number == context)):
            m.d.sync += kept.eq(1)
            self.assume(m, it == raw)
        arrival = made.submodules.arrivals.read_port(domain="comb")
        there, attributes = arrival.data, its.component.attributes.as_value()
        m.d.comb += arrival.addr.eq(context)
        self.claim(m, ~kept | (there.brought.bits == its.bits))
        self.claim(m, ~kept | (there.brought.attributes.as_value() == attributes))
        self.claim(m, ~kept | (there.now == its.component.timestamp))
        self.claim(m, ~kept | (there.counters.as_value() == its.counters.as_value()))

        for s in range(n):
            here = (window == s) & (fetch.windows[s].slot == slot)
            other = anything(m, stored.shape(), f"other{s}")
            component = fetch.windows[s].component.as_value()
            for reads, part in ((fetching, stamp), (whole, rest)):
                found = before(m, before(m, before(m, here & reads[s])))
                m.d.comb += component[part].eq(Mux(found, stored[part], other[part]))
        self.claim(m, (whole & ~fetching) == 0)
        whole_results = anything(m, 1, "whole_results")
        m.d.comb += fetch.whole_results.eq(whole_results)
        requests = []
        for r in range(who_all):
            valid = anything(m, 1, f"valid{r}")
            reference = anything(
                m, fetch.requesters[r].request.payload.as_value().shape(), f"reference{r}"
            )
            m.d.comb += [fetch.requesters[r].request.valid.eq(valid)]
            m.d.comb += fetch.requesters[r].request.payload.as_value().eq(reference)
            stays = before(m, valid & ~fetch.requesters[r].request.ready)
            self.assume(m, ~stays | (valid & (reference == before(m, reference))))
            requests.append(reference)
        valid = Array(fetch.requesters[r].request.valid for r in range(who_all))[who]
        ready = Array(fetch.requesters[r].request.ready for r in range(who_all))[who]
        taken = valid & ready

        # Any one of its requests is followed: it waits in the second place or the first, is chosen,
        # and then proceeds, one stage per cycle.
        own_places = {
            name: Array(inside(made, f"{name}{r}") for r in range(who_all))[who]
            for name in ("asks", "full", "first", "second")
        }
        granted = made.submodules.arbiter.granted
        grants = granted.bit_select(who, 1)
        chosen = inside(made, "chosen")
        makes_way = chosen.bit_select(who, 1)
        second, first, age, flying = Signal(), Signal(), Signal(4), Signal(4)
        waits, waited = Signal(4), Signal(4)
        asked = Signal(len(requests[0]))
        response = responses.bit_select(who, 1)
        answered = age == 6
        free = ~second & ~first & ((age == 0) | answered)
        m.d.sync += flying.eq(flying + taken - response)
        follow = taken & free & anything(m, 1, "this")
        at_once = ~own_places["asks"] | (makes_way & ~own_places["full"])
        with m.If(age != 0):
            m.d.sync += age.eq(Mux(answered, 0, age + 1))
        with m.If(second & makes_way):
            m.d.sync += [second.eq(0), first.eq(~grants), age.eq(grants)]
        with m.If(first & grants):
            m.d.sync += [first.eq(0), age.eq(1)]
        with m.If(follow):
            m.d.sync += [first.eq(at_once), second.eq(~at_once), asked.eq(Array(requests)[who])]
            m.d.sync += waited.eq(waits)
        self.claim(m, second + first + (age != 0) <= 1)
        self.claim(m, ~second | (own_places["full"] & (own_places["second"] == asked)))
        self.claim(m, ~(first | (age == 1)) | (own_places["first"] == asked))
        self.claim(m, ~first | (own_places["asks"] & ~makes_way))
        self.claim(m, (age != 1) | makes_way)
        self.claim(m, ~makes_way | own_places["asks"])
        self.claim(m, ~own_places["full"] | own_places["asks"])
        on_its_way = [inside(made, f"wanted{i}").bit_select(who, 1) for i in range(5)]
        waiting = own_places["asks"] + own_places["full"]
        self.claim(m, flying == sum(on_its_way) + waiting)
        for i in range(5):
            at = age == i + 2
            self.claim(m, ~at | (on_its_way[i] & (inside(made, f"reference{i}") == asked)))
        self.claim(m, age <= 6)
        self.claim(m, ~answered | response)
        # One requester at a time is chosen, of those that ask.
        self.claim(m, (chosen & (chosen - 1)) == 0)
        self.claim(m, ~grants | own_places["asks"])
        # The windows' memories are used only for a request: for a joined tuple those of the streams
        # that it carries, except the raw tuple's own; for a stored tuple, all.
        self.claim(m, (fetching == 0) | inside(made, "wanted0").any())
        wanted = type(fetched.reference)(fetched.reference.shape(), asked)
        as_stored, stamps_alone = who == who_all - 1, who == who_all - 2
        needed = Mux(as_stored, (1 << n) - 1, wanted.carries & ~(1 << wanted.stream)[:n])
        no_more, had_no_more = stamps_alone & ~before(m, whole_results), Signal()
        with m.If(age == 2):
            m.d.sync += had_no_more.eq(no_more)
            self.claim(m, fetching == needed)
            self.claim(m, whole == Mux(no_more, 0, needed))
        self.claim(m, whole == before(m, coming))
        self.claim(m, (responses & (responses - 1)) == 0)
        self.claim(m, responses == before(m, answering))

        kept_then = Signal()
        with m.If(follow):
            m.d.sync += kept_then.eq(kept)
        self.claim(m, kept | ~kept_then)
        with m.If(answered):
            self.claim(m, fetched.reference.as_value() == asked)
            self.claim(m, fetched.stream == wanted.stream)
            its_context = kept_then & (wanted.context == context)
            known = its_context & (wanted.stream == its.stream)
            with m.If(its_context):
                self.claim(m, fetched.bits == its.bits)
                self.claim(m, fetched.now == its.component.timestamp)
                self.claim(m, fetched.counters.as_value() == its.counters.as_value())
            got = Array(fetched.components[s].as_value() for s in range(n))[window]
            own = known & (its.stream == window) & ~as_stored
            with m.If(own):
                self.claim(m, got == its.component.as_value())
            carried = known & wanted.carries.bit_select(window, 1)
            foreign = as_stored | (carried & (its.stream != window))
            right = Array(wanted.slots[s] for s in range(n))[window] == slot
            with m.If(foreign & right):
                self.claim(m, got[stamp] == stored[stamp])
                self.claim(m, (got[rest] == stored[rest]) | had_no_more)
            self.reach(m, own & (waited == who_all - 1))
            self.reach(m, foreign & right & (waited == who_all - 1))
            self.reach(m, as_stored & right)
        # Every requester gets its turn, after one for each of the others.
        with m.If(own_places["asks"] & ~grants & ~makes_way):
            m.d.sync += waits.eq(waits + 1)
        with m.Else():
            m.d.sync += waits.eq(0)
        self.claim(m, waits <= who_all - 1)


def faulty(old: str, new: str) -> object:
    return lambda: FetchFetches(altered(TupleFetch, (old, new)))


@pytest.mark.parametrize(
    "case",
    [
        proof("fetch", FetchFetches, "search", 8, campaign=False),
        proof("fetch", FetchFetches, "prove", 10),
        proof("fetch", FetchFetches, "meet", 14),
        proof(
            "fetches-late",
            faulty("fetching.eq(reduce(or_, reads))", "fetching.eq(whole)"),
            "search",
            12,
            "FAIL",
        ),
        proof(
            "whole-for-stamps",
            faulty("Mux(self.whole_results, reads[-2], 0)", "reads[-2]"),
            "search",
            12,
            "FAIL",
        ),
        proof(
            "window-of-own",
            faulty("first.carries & ~(1 << first.stream)", "first.carries"),
            "search",
            12,
            "FAIL",
        ),
        proof(
            "not-all-for-replay",
            faulty("if i < self.count - 1 else", "if i < self.count else"),
            "search",
            12,
            "FAIL",
        ),
        proof(
            "own-as-stored",
            faulty("(its == number) & ~as_stored", "its == number"),
            "search",
            12,
            "FAIL",
        ),
    ],
)
def test_fetch(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
