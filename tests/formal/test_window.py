"""Window buffer: what it keeps, what leaves and how, and what contexts in flight see (P3, P4, P6).

Time and sequence numbers wrap after 16, so every wrap is within reach.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value

from hdl.window import RangeKind, WindowBuffer
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
    proof,
    small,
)

CONTEXT_BITS, CONTEXTS = 2, 4
SMALL = ("import CONTEXT_BITS, CONTEXTS, SELECTIONS", "import SELECTIONS")
FEW = (
    "class RangeKind",
    f"CONTEXT_BITS, CONTEXTS = {CONTEXT_BITS}, {CONTEXTS}\n\n\nclass RangeKind",
)
"""Fewer contexts than a build has."""

WIDTH = 4
HALF = 1 << WIDTH - 1


class Arrivals:
    """What a sequencer does to a window: arrival, settling, perhaps storing, sending.

    A step of the clock is at most half of what it counts (a filler comes where it would be
    more), one of the counter at most 1. `stale` contexts retire in order, at any time.
    """

    def __init__(self, spec: Specification, m: Module, window: WindowBuffer) -> None:
        self.now, self.counter = Signal(WIDTH), Signal(WIDTH)
        self.step, self.bump = anything(m, WIDTH, "step"), anything(m, 1, "bump")
        arrives, others = anything(m, 1, "arrives"), anything(m, 1, "others")
        stores, granted = anything(m, 1, "stores"), anything(m, 1, "granted")
        sends, retires = anything(m, 1, "sends"), anything(m, 1, "retires")
        self.clear = anything(m, 1, "clear")
        self.settling, self.sending, self.stores = Signal(), Signal(), Signal()
        bits = CONTEXT_BITS
        self.next, self.oldest, self.active = Signal(bits), Signal(bits), Signal(bits + 1)
        self.waiting = ~self.settling & ~self.sending
        quiet = self.waiting & (self.active == 0)

        spec.assume(m, self.step <= HALF)
        spec.assume(m, ~self.clear | (quiet & ~arrives))
        self.check = self.waiting & arrives & (self.active != CONTEXTS)
        self.busy = self.active != 0
        m.d.comb += [
            window.check.eq(self.check),
            window.now.eq(self.now),
            window.counter.eq(self.counter),
            window.tuple.timestamp.eq(self.now),
            window.tuple.sequence.eq(self.counter),
            window.store.eq(self.settling & self.stores & others),
            window.snapshot.eq(self.sending),
            window.snapshot_context.eq(self.next),
            window.busy.eq(self.busy),
            window.oldest.eq(self.oldest),
            window.clear.eq(self.clear),
        ]
        self.attributes = Signal(len(window.tuple.attributes.as_value()))
        self.bits = Signal(16)
        m.d.comb += [window.tuple.attributes.eq(self.attributes), window.bits.eq(self.bits)]
        with m.If(self.check):
            m.d.sync += [
                self.now.eq(self.now + self.step),
                self.counter.eq(self.counter + self.bump),
                self.stores.eq(stores),
                self.attributes.eq(anything(m, len(self.attributes), "attributes")),
                self.bits.eq(anything(m, 16, "bits")),
                self.settling.eq(1),
            ]
        with m.If(self.settling & window.settled & others & (~self.stores | window.stored)):
            m.d.sync += [self.settling.eq(0), self.sending.eq(sends)]
        self.sent = self.sending & granted
        with m.If(self.sent):
            m.d.sync += [self.next.eq(self.next + 1), self.sending.eq(0)]
        retired = self.busy & retires
        with m.If(retired):
            m.d.sync += self.oldest.eq(self.oldest + 1)
        m.d.sync += self.active.eq(self.active + self.sent - retired)
        spec.claim(m, (self.next - self.oldest)[:bits] == self.active[:bits])
        spec.claim(m, self.active <= CONTEXTS)
        spec.claim(m, ~self.sending | (self.active < CONTEXTS))
        spec.claim(m, ~self.settling | (self.active < CONTEXTS))
        spec.claim(m, ~(self.settling & self.sending))

    def in_flight(self, context: Value) -> Value:
        return (context - self.oldest)[:CONTEXT_BITS] < self.active


class WindowKeepsWhatItMust(Specification):
    """Every tuple stored, and its true age and rank, against what the window does with it."""

    depth, lanes = 2, 1

    def __init__(self, make: type | None = None) -> None:
        super().__init__()
        self.make = make or altered(WindowBuffer, SMALL, FEW)

    def describe(self, m: Module) -> None:
        depth = self.depth
        config = small(
            depth=depth,
            lanes=self.lanes,
            timestamp_width=WIDTH,
            sequence_width=WIDTH,
            attribute_width=1,
        )
        window = self.window = self.make(config)
        made = self.made = build(m, "window", window)
        drive(
            m, window, "now", "counter", "check", "store", "tuple", "bits", "snapshot",
            "snapshot_context", "busy", "oldest", "ticks", "kind", "rows", "clear", "leaving",
            "rewrite",
        )  # fmt: skip
        ticks, rows = constant(m, WIDTH, "ticks"), constant(m, WIDTH, "rows")
        kind = constant(m, 2, "kind")
        m.d.comb += [window.ticks.eq(ticks), window.kind.eq(kind), window.rows.eq(rows)]
        m.d.comb += window.leaving.ready.eq(anything(m, 1, "ready"))
        # Longer windows are refused at load.
        self.assume(m, (ticks < HALF) & (rows < HALF) & (kind <= 2))
        env = self.env = Arrivals(self, m, window)

        head, tail = window.end, window.first
        pointer = len(head)
        gone = Signal(2)  # how many leave in this cycle
        m.d.comb += gone.eq(inside(made, "leave"))
        handed = window.leaving.valid & window.leaving.ready
        self.limits = (ticks, rows, kind)

        # By the rules: age and rank of what is in each place.
        self.ages = [Signal(WIDTH + 1, name=f"true_age{i}") for i in range(depth)]
        self.ranks = [Signal(WIDTH + 1, name=f"true_rank{i}") for i in range(depth)]
        self.there = [Signal(name=f"there{i}") for i in range(depth)]
        self.places = [Signal(pointer, name=f"place{i}") for i in range(depth)]
        for i in range(depth):
            age, rank, there = self.ages[i], self.ranks[i], self.there[i]
            place = self.places[i]  # from the oldest on
            m.d.comb += place.eq((i - tail)[: pointer - 1])
            m.d.comb += there.eq(place < window.occupancy)
            with m.If(window.stored & (window.written == i)):
                m.d.sync += [age.eq(0), rank.eq(0)]
            with m.Elif(env.check & there):
                m.d.sync += [age.eq(age + env.step), rank.eq(rank + env.bump)]
            dead, uncountable = self.fate(age, rank, *self.limits)
            leaves = there & (place < gone)
            with m.If(leaves & ~handed):
                self.claim(m, dead)
            with m.If(leaves & handed):
                full = window.occupancy == depth
                self.claim(m, ~dead & (uncountable | (full & env.settling & env.stores)))
                self.claim(m, (env.counter - rank)[:WIDTH] == window.leaving.payload)
            with m.If(there & env.settling & window.settled):
                self.claim(m, ~dead & ~uncountable)
            with m.If(window.stored & (window.written == i)):
                self.claim(m, ~there)
        self.claim(m, window.occupancy <= depth)
        self.claim(m, ~handed | (gone == 1))
        self.claim(m, ~before(m, env.check) | ~window.settled)
        self.claim(m, ~window.stored | window.store)
        # What waits to leave stays as it is.
        waits = before(m, window.leaving.valid & ~window.leaving.ready)
        payload = before(m, window.leaving.payload)
        self.claim(m, ~waits | (window.leaving.valid & (window.leaving.payload == payload)))

        self._contents(m)
        self.invariants(m)

        self.reach(m, handed & env.settling & (window.occupancy == depth) & env.busy)
        self.reach(m, (gone == 2) & (env.now < 3))
        for which in RangeKind:
            # A tuple past half of what the counter counts is handed over, or dropped.
            self.reach(m, (kind == which.value) & handed & (self.ages[0] > HALF))

    @staticmethod
    def fate(age: Value, rank: Value, ticks: Value, rows: Value, kind: Value) -> tuple:
        kept_by_age = Mux(
            kind == RangeKind.FOREVER.value, 1, (kind == RangeKind.TICKS.value) & (age <= ticks)
        )
        dead = ~kept_by_age & (rank >= rows)
        return dead, ~dead & ((age >= HALF) | (rank >= HALF))

    def _contents(self, m: Module) -> None:
        """One tuple is followed from its arrival on, as long as anyone may look at it."""
        window, env = self.window, self.env
        bits = len(window.written)
        followed, slot = Signal(), Signal(bits)
        component = Signal(window.tuple.as_value().shape())
        selection = Signal(16)
        place = Signal(len(window.first))
        m.d.comb += place.eq((slot - window.first)[:bits])
        there = followed & (place < window.occupancy)

        # The context is any: what was there when its view was taken is seen, nothing else.
        context = constant(m, CONTEXT_BITS, "context")
        seen = Signal()
        flies = env.in_flight(context)
        with m.If(window.snapshot & (window.snapshot_context == context)):
            m.d.sync += seen.eq(there)
        looks = flies & seen
        leaves_window = followed & ~there & ~looks
        stored = window.stored & anything(m, 1, "this")
        with m.If(stored & (~followed | leaves_window)):
            m.d.sync += [
                followed.eq(1),
                slot.eq(window.written),
                component.eq(window.tuple),
                selection.eq(window.bits),
                seen.eq(0),
            ]
        with m.Elif(leaves_window):
            m.d.sync += followed.eq(0)
        kept = followed & (there | looks)
        self.claim(m, ~(kept & window.stored & (window.written == slot)))

        # New selection bits only while nothing is in flight.
        rewrite = anything(m, 1, "rewrite")
        m.d.comb += window.rewrite.eq(rewrite & env.waiting & ~env.busy)
        with m.If(window.rewrite & (window.rewrite_slot == slot)):
            m.d.sync += selection.eq(window.rewrite_bits)

        whole = self.made.submodules.whole.read_port(domain="comb")
        chosen = self.made.submodules.selections.read_port(domain="comb")
        m.d.comb += [whole.addr.eq(slot), chosen.addr.eq(slot)]
        self.claim(m, ~kept | (whole.data.as_value() == component))
        self.claim(m, ~kept | (chosen.data == selection))
        # What its readers get.
        asked = kept & (window.fetch == slot) & ~window.blocked
        asked = before(m, before(m, asked) & kept) & kept
        self.claim(m, ~asked | (window.fetched.as_value() == component))
        hit = before(m, kept & (window.hit == slot) & window.hit_take & ~window.rewrite)
        self.claim(m, ~(hit & kept & ~before(m, window.rewrite)) | (window.hit_bits == selection))
        row_bits = window.row_bits
        bank_bits = bits - row_bits
        read = kept & (window.row == slot[bank_bits:])
        read = before(m, before(m, read) & kept) & kept
        attributes = component[-4 * window.config.attribute_width :]
        for b in range(window.banks):
            bank = self.made.submodules[f"bank{b}"].read_port(domain="comb")
            m.d.comb += bank.addr.eq(slot[bank_bits:])
            there_in = kept & ((slot[:bank_bits] if bank_bits else 0) == b)
            self.claim(m, ~there_in | (bank.data.as_value() == attributes))
        found = Array(window.tuples[b].as_value() for b in range(window.banks))[slot[:bank_bits]]
        self.claim(m, ~read | (found == attributes))
        # Its view by a context: counted from the tail of that time.
        asked = before(m, (window.context == context) & flies)
        offset = (slot - window.tail)[:bits]
        follows = before(m, followed & ~stored)
        self.claim(m, ~(asked & flies & kept & follows) | ((offset < window.count) == seen))
        self.reach(m, asked & flies & seen & ~there & window.stored)
        view = [
            Array(inside(self.made, f"{name}_of_{c}") for c in range(CONTEXTS))[context]
            for name in ("tail", "count")
        ]
        self.claim(m, ~(flies & kept) | (((slot - view[0])[:bits] < view[1]) == seen))

    def invariants(self, m: Module) -> None:
        """Nothing anyone was promised; what makes the promises provable by induction."""
        window, env, made, depth = self.window, self.env, self.made, self.depth
        head, tail, stored = window.end, window.first, window.occupancy
        bits = len(window.written)
        known = inside(made, "known")
        oldest = [inside(made, f"oldest{i}") for i in range(2)]
        ages, ranks = self.ages, self.ranks

        # What is stored, and in which order it came.
        stamps = []
        for i in range(depth):
            port = made.submodules.whole.read_port(domain="comb")
            m.d.comb += port.addr.eq(i)
            stamp = port.data.as_value()[: 2 * WIDTH]
            stamps.append(stamp)
            true = Cat((env.now - ages[i])[:WIDTH], (env.counter - ranks[i])[:WIDTH])
            there = self.there[i]
            self.claim(m, ~there | (stamp == true))
            most = Mux(env.settling, 2 * HALF - 1, HALF - 1)
            self.claim(
                m, ~there | ((ages[i] <= most) & (ranks[i] <= Mux(env.settling, HALF, HALF - 1)))
            )
            for j in range(depth):
                before_it = there & self.there[j] & (self.places[i] < self.places[j])
                self.claim(m, ~before_it | ((ages[i] >= ages[j]) & (ranks[i] >= ranks[j])))

        # The two oldest, as far as known; one more is on its way.
        at = Array(stamps)
        self.claim(m, (known <= 2) & (known <= stored))
        for i in range(2):
            slot = (tail + i)[:bits]
            self.claim(m, (known <= i) | (oldest[i] == at[slot]))
        arriving = inside(made, "arriving")
        self.claim(m, ~(window.blocked | arriving) | ((known < 2) & (known < stored)))
        whole = window._whole.as_value()[: 2 * WIDTH]
        self.claim(m, ~arriving | (whole == at[(tail + known)[:bits]]))

        def state(name: str) -> Value:
            return in_state(made, name)

        self.claim(m, state("SETTLED") | env.settling)
        busy = state("COMPARE") | state("DECIDE") | state("LEAVE") | state("DISPLACE")
        self.claim(m, ~busy | (known != 0))
        first_age, first_rank = Array(ages)[tail[:bits]], Array(ranks)[tail[:bits]]
        dead, uncountable = self.fate(first_age, first_rank, *self.limits)
        self.claim(m, ~state("LEAVE") | uncountable)
        self.claim(m, ~state("DISPLACE") | (env.stores & (stored == depth) & ~dead & ~uncountable))
        aged = inside(made, "both_aged")
        for i in range(2):
            measured = Cat(inside(made, f"age{i}"), inside(made, f"rank{i}"))
            it = oldest[i]
            true = Cat((env.now - it[:WIDTH])[:WIDTH], (env.counter - it[WIDTH:])[:WIDTH])
            self.claim(m, ~(state("COMPARE") & (aged | (i == 0))) | (measured == true))
        self.claim(m, ~(state("COMPARE") & aged) | (known == 2))

        # Views, from the oldest context to the newest: each begins and ends no earlier.
        starts, ends, flies = [], [], []
        for n in range(CONTEXTS):
            context = (env.oldest + n)[:CONTEXT_BITS]
            tails, counts = (
                Array(inside(made, f"{name}_of_{c}") for c in range(CONTEXTS))[context]
                for name in ("tail", "count")
            )
            starts.append((head - tails)[: len(head)])
            ends.append((head - tails - counts)[: len(head)])
            flies.append(env.active > n)
        starts.append(stored)
        ends.append(Const(0))
        for n in range(CONTEXTS):
            newer = Mux(flies[n + 1], starts[n + 1], stored) if n + 1 < CONTEXTS else stored
            self.claim(m, ~flies[n] | ((starts[n] <= depth) & (starts[n] >= newer)))
            newer = Mux(flies[n + 1], ends[n + 1], 0) if n + 1 < CONTEXTS else 0
            self.claim(m, ~flies[n] | ((ends[n] <= starts[n]) & (ends[n] >= newer)))
        held = (
            head
            - Mux(
                env.busy,
                Array(inside(made, f"tail_of_{c}") for c in range(CONTEXTS))[env.oldest],
                tail,
            )
        )[: len(head)]
        self.claim(m, ~window._room | (held != depth))


def deeper(depth: int, lanes: int) -> type:
    return type("Deeper", (WindowKeepsWhatItMust,), {"depth": depth, "lanes": lanes})


def faulty(old: str, new: str) -> object:
    return lambda: WindowKeepsWhatItMust(altered(WindowBuffer, SMALL, FEW, (old, new)))


@pytest.mark.parametrize(
    "case",
    [
        proof("window", WindowKeepsWhatItMust, "prove", 5, campaign=False),
        proof("window-of-4", deeper(4, 2), "prove", 5),
        proof("window", WindowKeepsWhatItMust, "cover", 20),
        proof(
            "never-uncountable",
            faulty("(ages[i][-1] | ranks[i][-1])", "0"),
            "bmc",
            14,
            "FAIL",
            campaign=False,
        ),
        proof(
            "settles-early",
            faulty("last = both & ~uncountable[1]", "last = both"),
            "bmc",
            24,
            "FAIL",
        ),
        proof(
            "rank-forgotten",
            faulty("too_old & (ranks[i] >= self.rows) & ~forever", "too_old & ~forever"),
            "bmc",
            14,
            "FAIL",
        ),
        proof(
            "age-off-by-one",
            faulty("ages[i] > self.ticks", "ages[i] >= self.ticks"),
            "bmc",
            14,
            "FAIL",
        ),
        proof(
            "second-unknown",
            faulty("dead[0] & both & dead[1]", "dead[0] & dead[1]"),
            "bmc",
            14,
            "FAIL",
        ),
        proof("room-too-late", faulty("& ~self.stored)", ")"), "bmc", 14, "FAIL"),
        proof(
            "view-overwritten",
            faulty("Mux(self.busy, tails[self.oldest], self._tail)", "self._tail"),
            "bmc",
            14,
            "FAIL",
        ),
        proof(
            "view-short",
            faulty(
                ".eq(self._stored_now),\n            ]", ".eq(self._stored_now - 1),\n            ]"
            ),
            "bmc",
            14,
            "FAIL",
        ),
        # A real one: a prefetch that began in the cycle of `clear` found a tuple.
        proof(
            "prefetch-in-clear",
            faulty(" & (leave == 0) & ~self.clear", " & (leave == 0)"),
            "bmc",
            14,
            "FAIL",
        ),
    ],
)
def test_window(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
