"""Proves the sequencer: a raw tuple is stored and sent once, to areas at once and to the output by
an offer, and a context is used again only when nothing of it is in flight (P7, P1). Raw tuples flow
only while all windows are calm, and are followed by a check. These are also the properties that
`test_window` assumes of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value

from seustream.hdl.contexts import Contexts
from seustream.hdl.layouts import OFFERS
from seustream.hdl.ports import TupleArrivals, TupleDone
from seustream.hdl.sequencer import Sequencer
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
    in_state,
    inside,
    part,
    proof,
    small,
)

CONTEXT_BITS, EPOCH_BITS = 2, 1  # fewer than a build has
_WITHIN = CONTEXT_BITS - EPOCH_BITS


class SequencerSends(Specification):
    """Any tables. Any one context is followed; what is in flight of it, and of its epoch, is counted.

    Times and numbers have fewer bits than `near` compares, so that a flowing tuple has those of the one before.
    The router counts a joined tuple a cycle after it was granted, when the probe it came from may already
    be done. A tuple in flight may become any number of tuples before it is done.
    """

    def __init__(self, *fault: tuple[str, str], contexts: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__()
        numbers = altered(Contexts, *contexts, CONTEXT_BITS=CONTEXT_BITS, EPOCH_BITS=EPOCH_BITS)
        bits = {"CONTEXT_BITS": CONTEXT_BITS}
        ports = {one.__name__: altered(one, **bits) for one in (TupleArrivals, TupleDone)}
        self.make = altered(Sequencer, *fault, **bits, **ports, Contexts=numbers)

    def describe(self, m: Module) -> None:
        n = 2
        config = small(streams=n, attribute_width=1, timestamp_width=4, sequence_width=4)
        unit = self.make(config)
        made = build(m, "unit", unit)
        numbers = made.submodules.contexts
        counts = part(made, "contexts")
        drive(m, unit, "selected", "groups", "stores", "destinations", "windows", "probes", "offers", "sent",
              "sent_context", "done", "clear")  # fmt: skip
        windows = unit.windows
        store, wanted, rests, passes, counters = (
            Cat(getattr(window, name) for window in windows)
            for name in ("store", "wanted", "rests", "passes", "counter")
        )
        probe = Cat(probes.push for probes in unit.probes)
        for name in ("groups", "stores", "destinations"):
            whole = getattr(unit, name)
            whole = getattr(whole, "as_value", lambda whole=whole: whole)()
            m.d.comb += whole.eq(constant(m, len(whole), name))
        size = len(unit.selected.payload.as_value())
        payload, valid = anything(m, size, "payload"), anything(m, 1, "valid")
        m.d.comb += [unit.selected.valid.eq(valid), unit.selected.payload.as_value().eq(payload)]
        came = unit.selected.payload
        self.assume(m, came.raw.stream < n)
        self.assume(m, ~(came.raw.filler & came.admitted))
        comes = valid & unit.selected.ready
        takes, goes = inside(made, "takes"), inside(made, "goes")
        checked = before(m, windows[0].check)  # windows see it a cycle later
        flowing, flows_on, closes = (
            in_state(made, "FLOW"),
            inside(made, "flows_on"),
            inside(made, "closes"),
        )
        closing = Signal()  # the one dealt with is no raw tuple
        owes = Signal()  # the one taken last flows, and no check came since
        with m.If(takes | closes):
            m.d.sync += [closing.eq(closes), owes.eq(flows_on)]
        # The two that wait, the one dealt with, and the one that went to the windows.
        coming, after, tuple_, gone = (
            type(came)(came.shape(), Signal(size, name=name))
            for name in ("next", "after_it", "tuple", "gone")
        )
        have, have_after, some, deals = Signal(), Signal(), Signal(), Signal()
        with m.If(takes):
            m.d.sync += [tuple_.as_value().eq(coming.as_value()), some.eq(1)]
            m.d.sync += [have.eq(have_after | comes), have_after.eq(have_after & comes)]
            m.d.sync += coming.as_value().eq(Mux(have_after, after.as_value(), payload))
            m.d.sync += after.as_value().eq(payload)
        with m.Elif(comes & ~have):
            m.d.sync += [coming.as_value().eq(payload), have.eq(1)]
        with m.Elif(comes):
            m.d.sync += [after.as_value().eq(payload), have_after.eq(1)]
        self.claim(m, ~comes | ~have_after)
        with m.If(goes):
            m.d.sync += gone.as_value().eq(tuple_.as_value())
        with m.If(takes | goes):
            m.d.sync += deals.eq(takes)
        self.claim(m, ~takes | (have & (~deals | goes)))
        # A separate check: nothing else is there, and after it none is owed.
        self.claim(m, ~closes | (owes & ~have & ~deals & ~takes & ~goes))
        self.claim(m, ~unit.idle | ~owes)
        # The windows see it in this cycle, and, unless it flows, in the two before.
        known = [windows[0].now, counters, wanted]
        had = [have, before(m, have)]
        had.append(before(m, had[-1]))
        for each in known:
            earlier = before(m, each)
            still = (earlier == each) & (before(m, earlier) == each)
            self.claim(m, ~takes | flows_on | (Cat(had).all() & still))
            self.claim(m, ~closes | still)
        # Where there is none they see the values of the one before.
        self.claim(m, have | ((wanted == 0) & (~some | (windows[0].now == tuple_.raw.timestamp))))
        self.claim(m, have | (counters == inside(made, "last_ones")))
        with m.If(have):
            its_window = Mux(coming.admitted, unit.stores & (1 << coming.raw.stream), 0)
            self.claim(m, windows[0].now == coming.raw.timestamp)
            self.claim(m, wanted == its_window[:n])
            for s in range(n):
                moves = unit.groups[s] == Array(unit.groups[i] for i in range(n))[coming.raw.stream]
                last = inside(made, "last_ones").word_select(s, 4)
                self.claim(m, windows[s].counter == Mux(moves, coming.raw.sequence, last))
        self.claim(m, ~before(m, takes) | (inside(made, "last_ones") == before(m, known[1])))
        self.claim(m, ~goes | deals | closing)
        raw = tuple_.raw
        keeps, leads = Signal(n), Signal(n + 1)
        kept, led = Signal.like(keeps), Signal.like(leads)
        for what, its_keeps, its_leads in ((tuple_, keeps, leads), (gone, kept, led)):
            with m.If(what.admitted):
                m.d.comb += [
                    its_keeps.eq(unit.stores & (1 << what.raw.stream)),
                    its_leads.eq(Array(d.as_value() for d in unit.destinations)[what.raw.stream]),
                ]

        # A window that was told to check settles some time, maybe at once, and stays settled (see
        # `test_window`).
        m.d.comb += [
            rests.eq(anything(m, n, "rests")),
            passes.eq(anything(m, n, "passes")),
        ]
        settled = passes | (rests & ~checked.replicate(n))
        self.assume(m, checked | ((before(m, settled) & ~settled) == 0))

        # Tuples near the one before flow while all windows are calm; each other one waits for all.
        calm, rooms = anything(m, n, "calm"), anything(m, n, "rooms")
        m.d.comb += [
            Cat(window.calm for window in windows).eq(calm),
            Cat(probes.room for probes in unit.probes).eq(rooms),
        ]
        lasts = Array(inside(made, "last_ones").word_select(s, 4) for s in range(n))
        close = coming.raw.timestamp == Mux(some, tuple_.raw.timestamp, 0)
        close &= coming.raw.sequence == lasts[coming.raw.stream]
        self.claim(m, ~flows_on | (have & before(m, calm.all()) & close & ~coming.raw.filler))
        strict = (takes & ~flows_on) | closes
        self.claim(m, ~strict | settled.all())
        # The windows are told as long as it may be stored, and not when the next one is judged.
        self.claim(m, ~(flows_on | flowing) | windows[0].flow)
        told = flowing
        for _ in range(4):
            told = before(m, told)
            self.claim(m, ~told | windows[0].flow)
            self.claim(m, ~(told & (in_state(made, "WAIT"))) | ~strict)
        self.claim(m, ~strict | ~(windows[0].flow | before(m, windows[0].flow)))

        # Tuples in flight of the followed context, and of its epoch, once an area or the router
        # took them.
        context = constant(m, CONTEXT_BITS, "followed")
        epoch = context[_WITHIN:]
        flying, together = Signal(4), Signal(4)
        granted = Signal(OFFERS)
        m.d.sync += granted.eq(anything(m, OFFERS, "taking") & unit.offers.emit & ~granted)
        m.d.comb += unit.offers.granted.eq(granted)
        other, sent = anything(m, CONTEXT_BITS, "whose"), anything(m, 2, "places")
        self.assume(m, (other != context) | (flying != 0) | (sent == 0))
        self.assume(m, (other[_WITHIN:] != epoch) | (together != 0) | (sent == 0))
        m.d.comb += [unit.sent.eq(before(m, sent)), unit.sent_context.eq(before(m, other))]
        done, done_together = [], []
        for i in range(n + 1):
            pulse, of = anything(m, 1, f"done{i}"), anything(m, CONTEXT_BITS, f"whose{i}")
            m.d.comb += [unit.done[i].commit.eq(pulse), unit.done[i].context.eq(of)]
            done.append(pulse & (of == context))
            done_together.append(pulse & (of[_WITHIN:] == epoch))
        offers = [(unit.offers.emit[i], unit.offers.emitted[i]) for i in range(OFFERS)]
        # An offer may follow another at once if the router took that one.
        begins = [
            emit & (~before(m, emit) | before(m, granted[i])) for i, (emit, _) in enumerate(offers)
        ]
        # Offers of the context, and of its epoch.
        own = [emit & (reference.context == context) for emit, reference in offers]
        owned = [emit & (reference.context[_WITHIN:] == epoch) for emit, reference in offers]
        its, of_epoch = Signal(), Signal()
        m.d.comb += [its.eq(Cat(own).any()), of_epoch.eq(Cat(owned).any())]
        begun, begun_together = (
            sum(granted[i] & which[i] for i in range(OFFERS)) for which in (own, owned)
        )
        probed = Mux(unit.snapshot & (unit.context == context), sum(probe), 0)
        probed_together = Mux(unit.snapshot & (unit.context[_WITHIN:] == epoch), sum(probe), 0)
        less, less_together, more, more_together = (
            Signal(3, name=name) for name in ("less", "less_together", "more", "more_together")
        )
        m.d.comb += [
            less.eq(sum(done)),
            less_together.eq(sum(done_together)),
            more.eq(Mux(other == context, sent, 0)),
            more_together.eq(Mux(other[_WITHIN:] == epoch, sent, 0)),
        ]
        self.assume(m, (less <= flying) & (less_together - less <= together - flying))
        self.assume(m, together + more_together < 8)
        m.d.sync += [
            flying.eq(flying + more + begun + probed - less),
            together.eq(
                together + more_together + begun_together + probed_together - less_together
            ),
        ]

        active, ahead = inside(counts, "active"), numbers.number
        flies = (flying != 0) | its | (unit.snapshot & (unit.context == context))
        self.claim(m, ~(unit.snapshot & (unit.context == context) & (flying != 0)))
        behind = (context - windows[0].oldest)[:CONTEXT_BITS] <= (unit.context - windows[0].oldest)[
            :CONTEXT_BITS
        ]
        self.claim(m, ~flies | (active.any() & behind))
        self.claim(m, windows[0].busy == before(m, active.any()))
        self.claim(m, ~unit.idle | ~(flies | store.any() | unit.snapshot))

        # It is stored where it should be and its view is taken, once and both together, while the
        # next is taken.
        leaves = store.any() | unit.snapshot
        went = before(m, goes & ~closing)
        self.claim(m, leaves == (went & ((kept != 0) | (led != 0))))
        # Nothing is stored before every window has dropped its dead tuples, unless it flows.
        self.claim(m, ~goes | flowing | (settled.all() & ~checked))
        with m.If(leaves):
            self.claim(m, store == kept)
            self.claim(m, unit.snapshot == (led != 0))
            component = windows[0].tuple
            self.claim(m, component.timestamp == gone.raw.timestamp)
            self.claim(m, component.sequence == gone.raw.sequence)
            self.claim(m, component.attributes.as_value() == gone.raw.attributes.as_value())
            self.claim(m, windows[0].bits == gone.bits)
        with m.If(unit.snapshot):
            self.claim(m, unit.raw.stream == gone.raw.stream)
            self.claim(m, unit.raw.bits == gone.bits)
            self.claim(m, unit.raw.component.as_value() == windows[0].tuple.as_value())
            self.claim(m, unit.raw.counters.as_value() == before(m, inside(made, "last_ones")))
        with m.If(some):
            self.claim(m, (unit.taker == raw.stream) & (unit.taken_by == raw.sequence))
            self.claim(m, inside(made, "kept") == Mux(closing, 0, keeps))
        self.claim(m, windows[0].check == (takes | closes))
        took = before(m, takes)
        self.claim(m, unit.taken == (took & ~raw.filler))
        self.claim(m, unit.tick == (took & ~raw.filler & ~raw.admit))
        self.claim(m, unit.dropped == (took & raw.admit & ~tuple_.admitted))
        # Then it is sent once to where it leads: to areas that had room when last seen, and to the
        # output.
        self.claim(m, probe == Mux(unit.snapshot, led[:n], 0))
        had_room = before(m, before(m, before(m, rooms)))
        self.claim(m, (probe & ~had_room) == 0)
        self.claim(m, sum(begins) == (unit.snapshot & led[n]))
        for i, (emit, reference) in enumerate(offers):
            with m.If(begins[i]):
                self.claim(m, reference.context == unit.context)
                self.claim(m, reference.tag == gone.raw.stream)
                self.claim(m, reference.stream == gone.raw.stream)
                self.claim(m, reference.carries == 1 << gone.raw.stream)
            waits = before(m, emit & ~granted[i])
            what = reference.as_value()
            self.claim(m, ~waits | (emit & (what == before(m, what))))

        # Invariants.
        settles = in_state(made, "SETTLE")
        sending = (leads != 0) & ~closing
        self.claim(m, ~settles | ((inside(made, "sends") == sending) & ~checked))
        self.claim(m, ~flowing | ((inside(made, "sends") == sending) & ~closing))
        seen = inside(made, "settled")
        self.claim(m, ~(in_state(made, "SETTLE") & seen) | settled.all())
        within, epoch_ahead = ahead[:_WITHIN], ahead[_WITHIN:]
        open_, oldest = within != 0, windows[0].oldest[_WITHIN:]
        beyond = (epoch_ahead + open_)[:EPOCH_BITS]  # the first epoch of which no context was given
        for number in range(1 << EPOCH_BITS):
            full = (beyond == oldest) & active.any()
            used = (beyond - oldest)[:EPOCH_BITS]
            place = (number - oldest)[:EPOCH_BITS]
            self.claim(m, active[number] == (full | (place < used)))
        self.claim(m, ~open_ | active.bit_select(epoch_ahead, 1))
        # Registers show whether there is a context.
        next_epoch = (epoch_ahead + 1)[:EPOCH_BITS]
        self.claim(m, inside(counts, "here") == 1 << epoch_ahead)
        self.claim(m, ~inside(counts, "free") | open_ | ~active.bit_select(epoch_ahead, 1))
        self.claim(
            m,
            ~(inside(counts, "next_free") & within.all()) | ~active.bit_select(next_epoch, 1),
        )

        def given(which: Value) -> Value:
            mine = which[_WITHIN:]
            yet = open_ & (epoch_ahead == mine) & (which[:_WITHIN] >= within)
            return active.bit_select(mine, 1) & ~yet

        self.claim(m, ~((together != 0) | of_epoch) | active.bit_select(epoch, 1))
        self.claim(m, flying <= together)
        self.claim(m, ~flies | given(context))
        # The rest of an epoch is skipped only when nothing is in flight.
        self.claim(m, ~flies | (ahead == (unit.context + 1)[:CONTEXT_BITS]))
        counted, change, begun_then = (
            Array(inside(counts, f"{name}_{e}") for e in range(1 << EPOCH_BITS))[epoch]
            for name in ("in_flight", "change", "began")
        )
        # A tuple that was sent is counted four cycles after the grant, one that is done after five;
        # a raw tuple in the third cycle in which it is offered.
        less_late, more_late = Signal(5), Signal(5)
        lately, sent_lately = [before(m, less_together)], [before(m, more_together)]
        for _ in range(3):
            lately.append(before(m, lately[-1]))
        for _ in range(2):
            sent_lately.append(before(m, sent_lately[-1]))
        m.d.comb += [less_late.eq(sum(lately)), more_late.eq(sum(sent_lately))]
        its_begins = unit.snapshot & (unit.context[_WITHIN:] == epoch)
        counted_now = Array(inside(counts, f"begins_{e}") for e in range(1 << EPOCH_BITS))
        self.claim(m, counted_now[epoch] == its_begins)
        placed_late = before(m, Mux(its_begins, numbers.places, 0))
        self.claim(m, begun_then == before(m, its_begins))
        self.claim(m, change + lately[-1] == sent_lately[-1] + placed_late)
        offered = sum(owned[i] & ~begins[i] for i in range(OFFERS))
        self.claim(m, counted + more_late + placed_late == together + less_late + offered)
        self.claim(m, ~unit.snapshot | (numbers.places == sum(led)))
        self.claim(m, sum(own) <= 1)
        # When a register reports that an epoch is finished, nothing of it has come since.
        finished = inside(counts, "finished")
        its_end = (finished & active).bit_select(epoch, 1)
        # ... except for one that was given meanwhile.
        self.claim(m, ~its_end | its_begins | ~((together != 0) | of_epoch | (more_late != 0)))
        self.claim(m, inside(counts, "gave") == unit.snapshot)
        self.claim(
            m, ~unit.snapshot | (its_begins == inside(counts, "was_here").bit_select(epoch, 1))
        )
        self.claim(m, ~some | (inside(made, "tuple_") == tuple_.as_value()))
        self.claim(m, have == inside(made, "have"))
        self.claim(m, have_after == inside(made, "have_after"))
        self.claim(m, ~have | (inside(made, "coming")[:size] == coming.as_value()))
        held = type(came)(came.shape(), inside(made, "coming")[:size])
        fields = inside(made, "coming")[size:]
        near, moved, its_leads_to = fields[0], fields[1 : n + 1], fields[2 * n + 1 : -1]
        self.claim(m, ~(have & near) | (close & ~coming.raw.filler))
        self.claim(m, have | some | (windows[0].now == 0))
        with m.If(have):
            leads_to = Array(d.as_value() for d in unit.destinations)[coming.raw.stream]
            self.claim(m, its_leads_to == leads_to)
            self.claim(m, fields[-1] == (coming.admitted & (leads_to != 0)))
        for s in range(n):
            group = Array(unit.groups[i] for i in range(n))[coming.raw.stream]
            self.claim(m, ~have | (moved[s] == (unit.groups[s] == group)))
            last = Mux(moved[s], held.raw.sequence, inside(made, f"last_{s}"))
            self.claim(m, last == windows[s].counter)
        self.claim(m, ~have_after | (have & (inside(made, "after") == after.as_value())))
        busy = in_state(made, "JUDGE") | settles | flowing
        self.claim(m, deals == (busy & ~closing))
        self.claim(m, ~(deals | owes | closing) | some)
        self.claim(m, in_state(made, "JUDGE") == (checked & ~owes))
        self.claim(m, ~flowing | owes)
        self.claim(m, owes == inside(made, "owes"))
        self.claim(m, closing == inside(made, "closing"))
        # Attributes wait elsewhere, in order of arrival.
        put, got = inside(made, "put"), inside(made, "got")
        self.claim(m, (put - got)[: len(put)] == deals + have + have_after)
        waiting = (deals, tuple_, 0), (have, coming, deals), (have_after, after, deals + have)
        for there, what, before_it in waiting:
            kept_ones = made.submodules.attributes.read_port(domain="comb")
            m.d.comb += kept_ones.addr.eq(got + before_it)
            its_own = what.raw.attributes.as_value()
            self.claim(m, ~there | (kept_ones.data.as_value() == its_own))
        its_leads = inside(made, "leads")
        self.claim(m, ~(some & tuple_.admitted) | (its_leads == leads))
        first = before(m, Const(1)) == 0  # since reset
        for name in ("may", "settled"):
            self.claim(m, first | (inside(made, name) == inside(made, f"{name}_wide")))
        self.claim(m, ~first | (in_state(made, "WAIT") & ~seen & ~inside(made, "may_wide")))
        self.claim(m, numbers.gives == numbers.gives_wide)
        sure = (settles | flowing) & inside(made, "may") & inside(made, "sends")
        self.claim(m, ~sure | open_ | ~active.bit_select(epoch_ahead, 1))
        held = unit.offers.emit & ~granted
        self.claim(m, ~(sure & leads[n]) | ~held.bit_select(inside(made, "offer"), 1))

        self.reach(m, unit.snapshot & (flying != 0) & (unit.context != context))
        self.reach(
            m,
            unit.snapshot
            & (unit.context[:_WITHIN] == 0)
            & (context[:_WITHIN] == 0)
            & before(m, before(m, windows[0].busy)),
        )
        self.reach(m, unit.snapshot & its & (keeps != 0))
        self.reach(m, takes & ~goes & some & (flying == 2))
        self.reach(m, unit.snapshot & store.any() & checked)
        # Two that flow in successive cycles; their check; one that waits for all and follows them.
        self.reach(m, unit.snapshot & before(m, unit.snapshot) & before(m, store.any()))
        self.reach(m, closing & goes)
        flowed = flowing
        for _ in range(6):
            flowed = before(m, flowed)
        self.reach(m, strict & takes & flowed)


def sends(*fault: tuple[str, str], contexts: tuple[tuple[str, str], ...] = ()) -> object:
    return lambda: SequencerSends(*fault, contexts=contexts)


@pytest.mark.parametrize(
    "case",
    [
        proof("sequencer", sends(), "search", 7, campaign=False),
        proof("sequencer", sends(), "search", 10, limit=1800),
        proof("sequencer", sends(), "prove", 5, limit=3600),
        proof("sequencer", sends(), "meet", 16),
        proof(
            "freed-while-sent",
            sends(contexts=((" & ~began & ~begins)", ")"),)),
            "search",
            16,
            "FAIL",
        ),
        proof(
            "done-too-soon",
            sends(contexts=(("for stage in range(3):", "for stage in range(1):"),)),
            "search",
            16,
            "FAIL",
        ),
        proof(
            "stores-unsettled",
            sends(("each.eq(each_settled.all())", "each.eq(each_settled.any())")),
            "search",
            12,
            "FAIL",
        ),
        proof(
            "rests-unheard",
            sends(("(rests & ~checked.replicate(n))", "rests")),
            "search",
            12,
            "FAIL",
        ),
        proof(
            "of-the-next",
            sends(
                ("window.tuple.eq(self.raw.component)", "window.tuple.sequence.eq(raw.sequence)")
            ),
            "search",
            12,
            "FAIL",
        ),
        proof(
            "context-twice",
            sends(contexts=(("open_ | ~(active & here).any()", "1"),)),
            "search",
            24,
            "FAIL",
        ),
        # Flowing tuples.
        proof(
            "flows-by-one-calm",
            sends(("for window in self.windows).all()", "for window in self.windows).any()")),
            "search",
            8,
            "FAIL",
        ),
        proof(
            "flows-from-afar",
            sends(("have & coming.near & calm", "have & calm")),
            "search",
            8,
            "FAIL",
            campaign=False,
        ),
        proof(
            "unsettled-after-flow",
            sends(("quiet = settled & ~lately.any()", "quiet = ~lately.any()")),
            "search",
            12,
            "FAIL",
        ),
        proof(
            "owes-nothing",
            sends(("store.any() | owes", "store.any()")),
            "search",
            12,
            "FAIL",
        ),
        proof(
            "check-stores",
            sends(("m.d.sync += kept.eq(0)", "pass")),
            "search",
            12,
            "FAIL",
        ),
        proof(
            "two-of-one-context",
            sends(
                contexts=(
                    ("numbered.eq(Mux(gives, ~crosses | next_free, free))", "numbered.eq(free)"),
                )
            ),
            "search",
            20,
            "FAIL",
        ),
        proof(
            "no-room-in-area",
            sends(("~(its[:n] & ~rooms).any()", "~(leads[:n] & ~rooms).any()")),
            "search",
            12,
            "FAIL",
        ),
        proof(
            "ends-while-open",
            sends(contexts=(("ends & ~(open_ & (epoch == oldest))\n", "ends\n"),)),
            "search",
            24,
            "FAIL",
        ),
    ],
)
def test_sequencer(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
