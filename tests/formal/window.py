"""A window buffer, and which tuples stay in it (P3, P6): the part that the specifications of the
window share."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value

from seustream.hdl import ports
from seustream.hdl.window import _PLACES, RangeKind, WindowBuffer
from tests.formal.arrivals import CONTEXT_BITS, CONTEXTS, HALF, NEAR_BITS, WIDTH, Arrivals
from tests.formal.harness import (
    Specification,
    altered,
    anything,
    before,
    build,
    constant,
    drive,
    in_state,
    inside,
    small,
)

SMALL = ("import CONTEXT_BITS, CONTEXTS, SELECTIONS", "import SELECTIONS")
FEW = (
    "class RangeKind",
    f"CONTEXT_BITS, CONTEXTS = {CONTEXT_BITS}, {CONTEXTS}\n\n\nclass RangeKind",
)
NEAR = ("_PLACES, _AT_HAND = 3, 4, 8", "_PLACES, _AT_HAND = 3, 4, 4")
"""Fewer contexts than a build has, and fewer tuples at hand."""


class WindowKeepsWhatItMust(Specification):
    """Compares every tuple stored, by its true age and rank, with what the window does with it."""

    depth, lanes = 2, 1
    margin = 0
    """Spare slots that make a window calm; without them nothing flows."""
    induces = True
    """Includes the invariants that make it provable by induction, if nothing flows."""

    def __init__(self, *fault: tuple[str, str]) -> None:
        super().__init__()
        self.make = altered(
            WindowBuffer,
            SMALL,
            FEW,
            NEAR,
            *fault,
            _MARGIN=max(1, self.margin),
            _YOUNG_BITS=NEAR_BITS,
            TupleArrivals=altered(ports.TupleArrivals, CONTEXT_BITS=CONTEXT_BITS),
        )

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
            m, window, "arrivals", "ticks", "kind", "rows", "clear", "leaving", "rewriting.rewrite", "forget"
        )  # fmt: skip
        ticks, rows = constant(m, WIDTH, "ticks"), constant(m, WIDTH, "rows")
        kind = constant(m, 2, "kind")
        m.d.comb += [window.ticks.eq(ticks), window.kind.eq(kind), window.rows.eq(rows)]
        m.d.comb += window.leaving.ready.eq(anything(m, 1, "ready"))
        # Longer windows are refused at load.
        self.assume(m, (ticks < HALF) & (rows < HALF) & (kind <= 2))
        env = self.env = Arrivals(self, m, window, self.margin)

        head, tail = window.rewriting.end, window.rewriting.first
        pointer = len(head)
        # Number of tuples that have just left, which the tail does not show yet.
        gone = inside(made, "gone_now")
        m.d.comb += window.forget.eq(anything(m, 1, "forget") & env.quiet)
        # A tuple that is taken leaves in the next cycle.
        handed = window.leaving.valid & window.leaving.ready
        self.tells = before(m, handed)
        told = before(m, self.tells)
        self.limits = (ticks, rows, kind)

        # By the rules: age and rank of the tuple in each place.
        self.ages = [Signal(WIDTH + 1, name=f"true_age{i}") for i in range(depth)]
        self.ranks = [Signal(WIDTH + 1, name=f"true_rank{i}") for i in range(depth)]
        self.there = [Signal(name=f"there{i}") for i in range(depth)]
        self.places = [Signal(pointer, name=f"place{i}") for i in range(depth)]
        for i in range(depth):
            age, rank, there = self.ages[i], self.ranks[i], self.there[i]
            place = self.places[i]  # counted from the oldest
            m.d.comb += place.eq((i - tail)[: pointer - 1])
            m.d.comb += there.eq(place < window.occupancy)
            with m.If(window.arrivals.store & (window.written == i)):
                its_age, its_rank = env.now - env.tuple.timestamp, env.counter - env.tuple.sequence
                m.d.sync += [
                    age.eq(its_age[:WIDTH] + Mux(env.takes, env.step, 0)),
                    rank.eq(its_rank[:WIDTH] + Mux(env.takes, env.bump, 0)),
                ]
            with m.Elif(env.takes & there):
                m.d.sync += [age.eq(age + env.step), rank.eq(rank + env.bump)]
            dead, uncountable = self.fate(age, rank, *self.limits)
            leaves = there & (place < gone)
            with m.If(leaves & ~told):
                self.claim(m, dead)
            with m.If(leaves & told):
                full = window.occupancy == config.capacity
                self.claim(m, ~dead & (uncountable | (full & env.settling & env.stores)))
            with m.If(there & (place == 0) & handed):
                self.claim(m, (env.counter - rank)[:WIDTH] == window.leaving.payload)
            stays = there & (place >= gone + inside(made, "leave"))
            with m.If(stays & env.settling & ~env.flowing & env.settled):
                self.claim(m, ~dead & ~uncountable)
            # A flowing tuple may find some dead ones, but none whose age or rank cannot be told.
            with m.If(there & env.flowing):
                self.claim(m, (age < HALF) & (rank < HALF))
            # Nothing dead stays, except that the last tuple may be dead at once.
            with m.If(there & env.quiet):
                self.claim(m, (~dead | (rank == 0)) & ~uncountable)
            with m.If(window.arrivals.store & (window.written == i)):
                self.claim(m, ~there)
        # If rank alone keeps tuples, some dead ones may be there, too.
        bounded = (kind == RangeKind.NONE.value) & (rows <= config.capacity)
        self.claim(m, (window.occupancy <= config.capacity) | (bounded if self.margin else 0))
        if self.margin:
            self.claim(m, window.occupancy <= depth)
            self.claim(m, ~env.quiet | (window.occupancy <= config.capacity))
        # It waits for a tuple that is to be stored after it settled, no longer.
        due = (env.settling & ~env.flowing & env.stores) | window.arrivals.store
        self.claim(m, ~inside(made, "_due") | due)
        self.claim(m, ~told | (gone == 1))
        self.claim(m, ~window.leaving.valid | (env.settling & ~env.flowing))
        # When a tuple is stored or a view is taken, everything that leaves is gone; tuples that the
        # next one makes leave are seen.
        self.claim(
            m,
            ~(window.arrivals.store | window.arrivals.snapshot)
            | env.check
            | window.arrivals.flow
            | (gone == 0),
        )
        # A waiting output does not change.
        waits = before(m, window.leaving.valid & ~window.leaving.ready)
        payload = before(m, window.leaving.payload)
        self.claim(m, ~waits | (window.leaving.valid & (window.leaving.payload == payload)))

        if self.induces:
            self.invariants(m)
        if self.margin:
            # Dead ones leave while others flow; one is stored while others are judged; the last
            # check.
            self.reach(m, (gone != 0) & env.flowing & env.snapshot)
            self.reach(m, window.arrivals.store & env.flowing & in_state(made, "JUDGE"))
            self.reach(m, (gone != 0) & env.closing & (window.occupancy == 2))
            # One that flowed by is still seen, where it was.
            self.reach(
                m,
                window.arrivals.snapshot
                & window.arrivals.flow
                & ~env.settling
                & (window.occupancy == 2),
            )
            return

        self.reach(m, handed & env.settling & (window.occupancy == config.capacity) & env.busy)
        self.reach(m, (gone == 2) & (env.now < 3))
        for which in RangeKind:
            # A tuple past half of the counter's range is handed over, or dropped.
            self.reach(m, (kind == which.value) & handed & (self.ages[0] > HALF))

    @staticmethod
    def fate(age: Value, rank: Value, ticks: Value, rows: Value, kind: Value) -> tuple:
        kept_by_age = Mux(
            kind == RangeKind.FOREVER.value, 1, (kind == RangeKind.TICKS.value) & (age <= ticks)
        )
        dead = ~kept_by_age & (rank >= rows)
        return dead, ~dead & ((age >= HALF) | (rank >= HALF))

    def invariants(self, m: Module) -> None:
        """Claims the invariants: they are promised to no one, but make the promises provable by
        induction."""
        window, env, made, depth = self.window, self.env, self.made, self.depth
        capacity = window.config.capacity
        head, stored = window.rewriting.end, window.occupancy
        self.claim(m, (head - window.rewriting.first)[: len(head)] == stored)
        bits = len(window.written)
        ages, ranks = self.ages, self.ranks

        def state(name: str) -> Value:
            return in_state(made, name)

        # Tail and number without the tuples that have just left, and with the one to be stored.
        left = inside(made, "gone_now")
        tail, remain = (
            _few(m, it, len(head)) for it in (window.rewriting.first + left, stored - left)
        )
        to_be = _few(m, remain + window.arrivals.store, len(head))
        self.claim(m, (left <= 2) & (left <= stored))
        # Nothing flows.
        self.claim(
            m, ~(env.flowing | env.owes | env.closing | env.lately.any() | window.arrivals.flow)
        )
        # The stored tuples, and their order of arrival.
        stamps = []
        for i in range(depth):
            port = made.submodules.stamps.read_port(domain="comb")
            m.d.comb += port.addr.eq(i)
            stamp = written_or(made.submodules.stamps, i, port.data)
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

        # The oldest, as far as they have places; those that wait; and those on the way from the
        # memory.
        at = Array(stamps)
        ticks, rows, _ = self.limits

        def is_at(it: Value, offset: Value) -> Value:
            """Returns whether an entry is that of the tuple at this distance from the oldest."""
            stamp = at[(tail + offset)[:bits]]
            time, number = stamp[:WIDTH], stamp[WIDTH:]
            dead = Cat((time + ticks + 1)[:WIDTH], (number + rows)[:WIDTH])
            return it == Cat(stamp, dead)

        # Places, counted from that of the oldest.
        first, following = inside(made, "first_place"), inside(made, "next_place")
        oldest = [inside(made, f"oldest{i}") for i in range(_PLACES)]

        def from_first(flags: Value, j: int) -> Signal:
            return _few(m, (first.rotate_left(j) & flags).any(), 1)

        self.claim(m, Cat(first == 1 << i for i in range(_PLACES)).any())
        has_place = [from_first(inside(made, "there"), j) for j in range(_PLACES)]
        here = _few(m, sum(has_place), 3)
        for j in range(1, _PLACES):
            self.claim(m, ~has_place[j] | has_place[j - 1])
        self.claim(m, here <= remain)
        for j in range(_PLACES + 1):
            self.claim(m, (here != j) | (following == first.rotate_left(j)))
        for j in range(_PLACES):
            for i in range(_PLACES):
                there = first[(i - j) % _PLACES] & has_place[j]
                self.claim(m, ~there | is_at(oldest[i], j))
        hands = made.submodules.at_hand
        waits = _few(m, inside(made, "put") - inside(made, "got"), len(inside(made, "put")))
        self.claim(m, waits <= hands.depth)
        for j in range(hands.depth):
            port = hands.read_port(domain="comb")
            m.d.comb += port.addr.eq(inside(made, "got") + j)
            self.claim(m, (waits <= j) | is_at(Value.cast(port.data), here + j))
        way = inside(made, "on_its_way")
        ahead, asked = inside(made, "ahead"), inside(made, "asked")
        there = here + waits
        self.claim(m, ahead == left + there + way[2] + way[1] + way[0])
        self.claim(m, (ahead <= hands.depth) & (ahead - left <= remain))
        self.claim(m, asked == (tail + ahead - left)[: len(head)])
        at_fetched = at[(tail + there)[:bits]]
        fetched = Cat(window.reading.component.timestamp, window.reading.component.sequence)
        self.claim(m, ~way[2] | (fetched == at_fetched))
        at_stamp = at[(tail + there + way[2])[:bits]]
        self.claim(m, ~way[1] | (window._stamp.as_value() == at_stamp))
        offset = there + way[2] + way[1]
        self.claim(m, ~way[0] | (inside(made, "stamp_slot") == (tail + offset)[:bits]))
        # A stamp that is just being written is not read.
        (write,) = made.submodules.stamps.write_ports
        just = before(m, window.arrivals.store)
        self.claim(m, write.en == just)
        self.claim(m, ~just | (write.addr == (head - 1)[:bits]))
        self.claim(m, ~way[0] | (offset < remain - just))

        self.claim(m, state("SETTLED") | (env.settling & ~env.check))
        out, displaced = state("LEAVE"), state("DISPLACE")
        self.claim(m, ~(out | displaced) | (has_place[0] & (left == 0)))
        self.claim(m, self.tells == inside(made, "taken"))
        self.claim(m, ~self.tells | out | displaced)
        # Every tuple that is still there stays, except one that makes room.
        decided = state("SETTLED") | state("ROOM") | displaced
        for i in range(depth):
            fate = self.fate(ages[i], ranks[i], *self.limits)
            remains = self.there[i] & (self.places[i] >= left)
            stays = remains & decided & env.settling & ~env.check
            self.claim(m, ~stays | ~(fate[0] | fate[1]))
            stays = remains & ~env.settling
            self.claim(m, ~stays | ((~fate[0] | (ranks[i] == 0)) & ~fate[1]))
        first_age, first_rank = Array(ages)[tail[:bits]], Array(ranks)[tail[:bits]]
        dead, uncountable = self.fate(first_age, first_rank, *self.limits)
        self.claim(m, ~out | uncountable)
        self.claim(m, ~displaced | (env.stores & (stored == capacity) & ~dead & ~uncountable))

        # The values judged by: the same for all, except in the first cycle, in which there is
        # nothing to be judged.
        began = before(m, Const(1))
        sure = inside(made, "sure")
        judged = Cat(inside(made, "judged_now0"), inside(made, "judged_counter0"))
        for i in range(1, _PLACES):
            its = Cat(inside(made, f"judged_now{i}"), inside(made, f"judged_counter{i}"))
            # Two of them are kept inverted.
            self.claim(m, ((~its if i & 2 else its) == judged) | ~began)
        self.claim(m, began | ~(sure.any() | here.any()))
        current, shown = Cat(env.now, env.counter), env.shown[: 2 * WIDTH]
        past = Cat(inside(made, "past"), inside(made, "counter_past"))
        checked = Cat(inside(made, "checked"), inside(made, "counter_checked"))
        earlier, fresh = inside(made, "by_checked"), inside(made, "fresh")
        judging = state("JUDGE")
        of_this = judging | out
        self.claim(m, ~env.check | ((past == current) & (judged == current) & ~earlier[0]))
        self.claim(m, state("SETTLED") | (checked == current))
        self.claim(m, decided | of_this)
        self.claim(m, ~of_this | fresh | (judged == current))
        self.claim(m, ~earlier[0] | (judged == current))
        self.claim(m, ~(env.heard_once & ~earlier[0]) | (judged == shown))
        self.claim(m, ~(env.heard_once | env.heard) | env.have)
        self.claim(m, ~env.heard | env.heard_once)
        self.claim(m, env.step <= HALF)
        # What was found in the cycle before was found by these values.
        by = before(m, judged)
        masked = before(m, fresh & judging)
        self.claim(m, ~masked | (sure == 0))
        self.claim(m, ~(judging & sure.any()) | (by == current))
        self.claim(m, ~(env.check & ~earlier[1]) | (by == current))
        self.claim(m, ~(env.heard & ~earlier[1]) | (by == shown))
        self.claim(m, ~(sure & ~inside(made, "there")).any())
        wanted = inside(made, "judged_wanted")
        self.claim(m, state("SETTLED") | (wanted == env.stores))
        self.claim(m, ~(env.heard & env.was_settled) | (wanted == env.shown[-1]))
        self.claim(m, ~env.check | (wanted == env.stores))
        due = Mux(env.settling & ~env.check, env.stores, window.arrivals.store)
        self.claim(m, inside(made, "_due") == (state("SETTLED") & due))
        judges, waits = judging | env.check, state("ROOM") | displaced
        self.claim(m, ~(judges | waits) | (inside(made, "full") == (to_be == capacity)))
        self.claim(m, ~(waits & window.arrivals.store))
        for i in range(min(3, depth)):
            place = (tail + i)[:bits]
            dead, _ = self.fate(Array(ages)[place], Array(ranks)[place], *self.limits)
            half = (Array(ages)[place] >= HALF) | (Array(ranks)[place] >= HALF)
            stays = (to_be == i) | (has_place[i] & ~dead & ~half)
            for name, right in (
                ("dead", has_place[i] & dead),
                ("stays_at", stays),
                ("late", has_place[i] & ~dead & half),
            ):
                self.claim(m, ~(judges & inside(made, name)[i]) | right)

        # Views, from the oldest context to the newest: each begins and ends no earlier.
        starts, ends, flies = [], [], []
        for n in range(CONTEXTS):
            context = (env.oldest + n)[:CONTEXT_BITS]
            port = made.submodules.views.read_port(domain="comb")
            m.d.comb += port.addr.eq(context)
            view = written_or(made.submodules.views, context, port.data)
            begins, firsts, counts = (view[i * len(head) : (i + 1) * len(head)] for i in range(3))
            starts.append((head - begins)[: len(head)])
            ends.append((head - firsts - counts)[: len(head)])
            flies.append(env.viewed > n)
            looked_at = _few(m, head - firsts, len(head))
            self.claim(m, ~flies[n] | ((looked_at <= starts[n]) & (looked_at >= ends[n])))
        starts.append(stored)
        ends.append(Const(0))
        for n in range(CONTEXTS):
            newer = Mux(flies[n + 1], starts[n + 1], stored) if n + 1 < CONTEXTS else stored
            self.claim(m, ~flies[n] | ((starts[n] <= depth) & (starts[n] >= newer)))
            newer = Mux(flies[n + 1], ends[n + 1], 0) if n + 1 < CONTEXTS else 0
            self.claim(m, ~flies[n] | ((ends[n] <= starts[n]) & (ends[n] >= newer)))
        # Slots that must not be written, as they are and as the window knows of them.
        pointer = len(head)
        held = Mux(env.viewed != 0, starts[0], stored)
        heard = (head - inside(made, "kept_from"))[:pointer]
        cleared = before(m, env.clear) | before(m, before(m, env.clear))
        self.claim(m, cleared | ((held <= heard) & (heard <= depth)))
        self.claim(m, held <= depth)
        self.claim(m, ~window._room | (held != depth))
        settles = env.settling & ~env.check
        room = (heard != depth) | cleared
        self.claim(m, ~(window._room & settles) | room)
        stores = env.settling & env.settled & env.stores
        self.claim(
            m, ~(env.check & window._room) | (heard + window.arrivals.store < depth) | cleared
        )
        self.claim(m, ~stores | (heard + window.arrivals.store < depth))
        self.claim(m, ~stores | (to_be - inside(made, "leave") < capacity))
        self.claim(m, ~window.arrivals.store | (remain < capacity))
        self.claim(m, ~window.arrivals.store | (heard != depth))


def _few(m: Module, value: Value, bits: int) -> Signal:
    """Returns this many bits of a difference."""
    it = Signal(bits)
    m.d.comb += it.eq(value)
    return it


def written_or(memory: object, address: Value | int, data: object) -> Value:
    """Returns the content of a memory at an address that was read, or the content that is just
    being written."""
    (port,) = memory.write_ports
    writes = port.en & (port.addr == address)
    return Mux(writes, Value.cast(port.data), Value.cast(data))


def with_fault(specification: type, old: str, new: str) -> object:
    return lambda: specification((old, new))


def deeper(specification: type, depth: int, lanes: int) -> type:
    return type("Deeper", (specification,), {"depth": depth, "lanes": lanes})


def flowing(specification: type, depth: int, margin: int) -> type:
    """Returns a specification that is not proved, only searched."""
    members = {"depth": depth, "margin": margin, "induces": False}
    return type("Flowing", (specification,), members)
