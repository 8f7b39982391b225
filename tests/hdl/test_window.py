"""Tests WindowBuffer against a list: which tuples stay, which leave and how, and what readers see
meanwhile."""

from __future__ import annotations

import dataclasses
from collections import Counter, deque

import cocotb
import pytest

from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.layouts import CONTEXTS
from seustream.hdl.window import RangeKind, WindowBuffer
from tests.hdl.bench import MUCH, NONE, SOME, Agent, Bench, Monitor, Scoreboard, simulate


def config(depth: int, lanes: int) -> DeviceConfig:
    return dataclasses.replace(
        CONFIGURATIONS["tiny"], depth=depth, lanes=lanes, timestamp_width=16, sequence_width=8
    )


CASES = {
    "8 deep, 2 lanes": lambda: WindowBuffer(config(8, 2)),
    "4 deep, 4 lanes": lambda: WindowBuffer(config(4, 4)),
    "32 deep, serial": lambda: WindowBuffer(config(32, 0)),
}

LONGEST = config(8, 2).longest_range
RETENTIONS = [
    (RangeKind.NONE, 0, 0),
    (RangeKind.NONE, 0, 3),
    (RangeKind.NONE, 0, config(8, 2).longest_rows),
    (RangeKind.TICKS, 0, 0),
    (RangeKind.TICKS, 5, 0),
    (RangeKind.TICKS, 3, 6),
    (RangeKind.TICKS, LONGEST, 0),
    (RangeKind.FOREVER, 0, 0),
]


@pytest.mark.parametrize("case", CASES)
def test_window_buffer(case: str) -> None:
    simulate(__name__, CASES, case)


class _Ring:
    """Tuples in the order in which they were stored; a slot is a tuple's number modulo the
    depth."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.tuples: list[dict] = []
        self.tail = 0
        self.contexts: deque[tuple[int, int, int]] = deque()  # number, tail, end

    @property
    def kept(self) -> range:
        """Returns the tuples that must not be overwritten: stored, or in the view of some
        context."""
        first = self.contexts[0][1] if self.contexts else self.tail
        return range(first, len(self.tuples))

    def at(self, slot: int) -> dict | None:
        """Returns the tuple that must be in a slot."""
        return next((self.tuples[i] for i in self.kept if i % self.depth == slot), None)


class _Reader(Agent):
    """Reads at random in every cycle, through all ports."""

    def __init__(self, bench: Bench, ring: _Ring, fetching: float) -> None:
        self.bench, self.ring, self.unit = bench, ring, bench.component
        self.fetching = fetching
        self.fetches: deque = deque([None] * 3)
        self.rows: deque = deque([[]] * 3)
        self.hit: int | None = None
        self.bits: dict[int, int] = {}
        self.views: deque = deque([None] * 2)
        self.noted: list[tuple[int, int, int]] = []
        self.seen: Counter = Counter()

    def drive(self) -> None:
        bench, chance, ring = self.bench, self.bench.chance, self.ring
        self.slot = chance.randrange(ring.depth)
        self.row = chance.randrange(ring.depth // self.unit.banks)
        self.hit_slot, self.take = chance.randrange(ring.depth), chance.random() < 0.5
        # A view that was recorded in the cycle before is not there yet.
        views = [each for each in ring.contexts if each in self.noted]
        self.view, self.noted = chance.choice(views) if views else None, list(ring.contexts)
        self.fetches_now = chance.random() < self.fetching
        self.whole = self.fetches_now and chance.random() < 0.7
        bench.set("reading.slot", self.slot)
        bench.set("reading.fetching", self.fetches_now)
        bench.set("reading.whole", self.whole)
        bench.set("row", self.row)
        bench.set("hit", self.hit_slot)
        bench.set("hit_take", self.take)
        bench.set("context", self.view[0] if self.view else 0)

    def look(self) -> None:
        bench, ring, banks = self.bench, self.ring, self.unit.banks
        wanted = self.fetches.popleft()
        if wanted is not None:
            came = bench.get("reading.component")
            assert {name: came[name] for name in wanted} == wanted
            self.seen["fetched"] += 1
        self.fetches.append(None)
        there = ring.at(self.slot)
        if there and self.fetches_now:
            self.fetches[-1] = dict(there["component"])
            if not self.whole:
                del self.fetches[-1]["attributes"]

        row = self.rows.popleft()
        if row:
            tuples = bench.get("tuples")
            for bank, attributes in row:
                assert tuples[bank] == attributes
                self.seen["row"] += 1
        slots = [self.row * banks + bank for bank in range(banks)]
        found = [(bank, ring.at(slot)) for bank, slot in enumerate(slots)]
        there = [] if self.whole else [(bank, it) for bank, it in found if it]
        self.rows.append([(bank, it["component"]["attributes"]) for bank, it in there])

        if self.hit is not None:
            assert bench.bits("hit_bits") == self.hit
            self.seen["hit"] += 1
        # Bits are in the memory a cycle after they arrived.
        if self.take:
            bits = self.bits.get(self.hit_slot)
            there = ring.at(self.hit_slot)
            self.hit = bits if there and there["bits"] == bits else None
        self.bits = {i % ring.depth: ring.tuples[i]["bits"] for i in ring.kept}

        view = self.views.popleft()
        if view is not None and view in ring.contexts:
            assert bench.bits("tail") == view[1] % ring.depth
            assert bench.bits("count") == view[2] - view[1]
            self.seen["view"] += 1
        self.views.append(self.view)


@cocotb.test()
async def who_stays_and_who_leaves(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance, window = bench.chance, bench.component
    depth, capacity = window.config.depth, window.config.capacity
    longest_range, longest_rows = window.config.longest_range, window.config.longest_rows
    seen: Counter = Counter()
    for number, (kind, ticks, rows) in enumerate(RETENTIONS):
        hurry = 0.05 if number % 2 else 0.5  # how likely a context retires
        pressure = chance.choice([NONE, SOME, MUCH])
        await bench.reset(kind=kind.value, ticks=ticks, rows=rows)
        ring = _Ring(depth)
        board = Scoreboard("leaving")
        Monitor(bench, "leaving", pressure, lambda item, board=board: board.came(item))
        reader = _Reader(bench, ring, chance.choice([NONE, SOME, MUCH]))
        now, counter, next_context = chance.getrandbits(16), chance.getrandbits(8), 0
        # The window may learn of contexts this many cycles late.
        flights = deque([(False, 0)] * chance.randrange(3))

        def retire(ring: _Ring = ring, hurry: float = hurry) -> None:
            if ring.contexts and chance.random() < hurry:
                ring.contexts.popleft()

        async def cycle(ring: _Ring = ring, flights: deque = flights) -> None:
            flights.append((bool(ring.contexts), ring.contexts[0][0] if ring.contexts else 0))
            busy, oldest = flights.popleft()
            bench.set("arrivals.busy", busy)
            bench.set("arrivals.oldest", oldest)
            await bench.settle()

        for _ in range(3):
            await bench.tick()
        bench.add(reader)
        # The tuple on its way into the window, with a view or not; maybe while the window checks
        # for the next one.
        arriving: dict | None = None
        snapshot, together = False, False

        def settled_now() -> bool:
            return bool(
                bench.bits("arrivals.passes")
                or (bench.bits("arrivals.rests") and not bench.bits("arrivals.check"))
            )

        async def put(
            arriving: dict | None, snapshot: bool, staying: int, ring: _Ring = ring
        ) -> bool:
            nonlocal next_context
            await cycle()
            assert bench.bits("occupancy") == staying
            settled = settled_now()
            assert not arriving or bench.bits("written") == len(ring.tuples) % depth
            await bench.clock()
            bench.set("arrivals.store", 0)
            bench.set("arrivals.snapshot", 0)
            if snapshot:  # the tuple itself is not in its view
                ring.contexts.append((next_context, ring.tail, len(ring.tuples)))
                next_context = (next_context + 1) % CONTEXTS
            if arriving:
                ring.tuples.append(arriving)
            return settled

        def show(now: int, counter: int, wanted: bool) -> None:
            bench.set("arrivals.now", now)
            bench.set("arrivals.counter", counter)
            bench.set("arrivals.wanted", wanted)

        def after(now: int, counter: int, kind: RangeKind) -> tuple[int, int, bool]:
            # Seldom enough for a deep ring to fill up in between.
            leaps = [1 << 14, 1 << 15] * (kind != 0 and chance.random() < 4 / depth)
            now += chance.choice([0, 0, 1, 1, 1, 2, 3, 6, *leaps])
            counter += chance.choice([1, 1, 1, 1, 2, 3, 1 << 7 if chance.random() < 0.2 else 1])
            return now, counter, chance.random() < 0.7

        next_one = after(now, counter, kind)
        show(*next_one)
        for _ in range(3):
            await cycle()
            await bench.clock()
        for _ in range(200):
            now, counter, wanted = next_one
            # The tuples that must be gone once it has settled.
            leavers, there = 0, [*ring.tuples, *([arriving] if together and arriving else [])]
            staying = len(ring.tuples) - ring.tail  # while it is stored
            tail = ring.tail
            while tail < len(there):
                oldest = there[tail]
                age, rank = now - oldest["now"], counter - oldest["counter"]
                dead = {
                    RangeKind.NONE: True, RangeKind.TICKS: age > ticks, RangeKind.FOREVER: False
                }[kind] and rank >= rows  # fmt: skip
                if not dead and age <= longest_range and rank <= longest_rows:
                    break
                if not dead:
                    board.expect(oldest["component"]["sequence"])
                seen["dead" if dead else "old" if age > longest_range else "ranked"] += 1
                tail += 1
                leavers += 1
            if wanted and len(there) - tail == capacity:
                board.expect(there[tail]["component"]["sequence"])
                tail += 1
                seen["displaced"] += 1
            # The next one is known already, or only after this one has settled.
            next_one, early = after(now, counter, kind), chance.random() < 0.7
            if early:
                show(*next_one)
            else:
                show(chance.getrandbits(16), chance.getrandbits(8), chance.random() < 0.5)
            bench.set("arrivals.check", 1)
            if together:
                settled = await put(arriving, snapshot, staying)
                seen["stored with check"] += bool(arriving)
            else:
                await cycle()
                settled = settled_now()
                await bench.clock()
            bench.set("arrivals.check", 0)
            ring.tail = tail
            staying = len(ring.tuples) - ring.tail
            waited = 0
            while not settled:
                await cycle()
                settled = settled_now()
                await bench.clock()
                waited += 1
                assert waited < 2_000, "never settled"
                if wanted and len(ring.kept) == depth:
                    seen["waited for a context"] += 1
                if wanted or chance.random() < 0.1:
                    retire()
            seen["settled at once"] += not waited
            seen["settled as two left"] += not waited and leavers == 2
            assert not wanted or len(ring.kept) < depth, "no room for what comes"
            assert board.empty, "settled, but who had to leave early is still there"

            coming = {
                "now": now,
                "counter": counter,
                "component": {
                    "timestamp": now & 0xFFFF,
                    "sequence": counter & 0xFF,
                    "attributes": [chance.getrandbits(16) for _ in range(4)],
                },
                "bits": chance.getrandbits(16),
            }
            arriving = coming if wanted else None
            snapshot = len(ring.contexts) < CONTEXTS and chance.random() < 0.8
            bench.set("arrivals.tuple", coming["component"])
            bench.set("arrivals.bits", coming["bits"])
            bench.set("arrivals.store", wanted)
            bench.set("arrivals.snapshot", snapshot)
            bench.set("arrivals.context", next_context)
            # A tuple is stored only when the window was seen to be settled, a cycle ago.
            bench.set("arrivals.store", 0)
            bench.set("arrivals.snapshot", 0)
            show(*next_one)
            for _ in range(2 if early else 3):
                await cycle()
                await bench.clock()
            bench.set("arrivals.store", wanted)
            bench.set("arrivals.snapshot", snapshot)
            together = chance.random() < 0.5
            if together:
                continue
            assert await put(arriving, snapshot, staying)
            stored = range(ring.tail, len(ring.tuples))
            if stored and chance.random() < 0.1:
                again, bits = chance.choice(stored), chance.getrandbits(16)
                bench.set("rewriting.rewrite", 1)
                bench.set("rewriting.slot", again % depth)
                bench.set("rewriting.bits", bits)
                reader.hit = None
                await cycle()
                await bench.clock()
                bench.set("rewriting.rewrite", 0)
                ring.tuples[again]["bits"] = bits
            if not ring.contexts and chance.random() < 0.6:
                kind, ticks, rows = chance.choice(RETENTIONS)
                for name, value in (("kind", kind.value), ("ticks", ticks), ("rows", rows)):
                    bench.set(name, value)
                bench.set("forget", 1)
                await cycle()
                await bench.clock()
                bench.set("forget", 0)
                await cycle()
                await bench.clock()
                seen["forgotten"] += bool(stored)
            for _ in range(chance.choice([0, 0, 3, 9])):
                retire()
                await cycle()
                await bench.clock()
        if together:
            assert await put(arriving, snapshot, staying)
        stored = range(ring.tail, len(ring.tuples))
        await cycle()
        assert bench.bits("rewriting.end") - bench.bits("rewriting.first") & 2 * depth - 1 == len(
            stored
        )
        await bench.clock()
        assert board.empty
        seen.update(reader.seen)
        ring.contexts.clear()
        bench.set("clear", 1)
        await bench.tick()
        bench.set("clear", 0)
        await bench.settle()
        assert bench.bits("occupancy") == 0
        await bench.clock()
    for what in ("dead", "old", "ranked", "displaced", "waited for a context", "view",
                 "stored with check", "settled at once", "settled as two left", "forgotten"):  # fmt: skip
        assert seen[what] > 1, f"{what}: {seen[what]} times"
    for what in ("fetched", "row", "hit"):
        assert seen[what] > 200, f"{what}: {seen[what]} times"
