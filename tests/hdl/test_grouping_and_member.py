"""Tests GroupingUnit against a dictionary of groups in unbounded numbers, and GroupMember against
the tables loaded into it."""

from __future__ import annotations

import dataclasses
from collections import Counter, deque
from typing import Any

import cocotb
import pytest

from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.control_words import output_commands
from seustream.hdl.device import Grouped, Route, Tables, Window, WindowKind
from seustream.hdl.grouping import GroupingUnit
from seustream.hdl.layouts import GROUP_COUNT_BITS, Layouts
from seustream.hdl.member import GroupMember
from seustream.hdl.query_search import PLACES
from tests.hdl.bench import MUCH, PACES, Agent, Bench, Driver, Load, Monitor, pack, simulate

_NARROW = dataclasses.replace(
    CONFIGURATIONS["tiny"], attribute_width=8, timestamp_width=16, sequence_width=8,
    streams=2, queries=32, tags=32,
)  # fmt: skip
_WIDE = dataclasses.replace(
    _NARROW, attribute_width=32, timestamp_width=48, sequence_width=32, streams=3, groups=16
)
UNITS = {
    "unit of 8 groups": lambda: GroupingUnit(_NARROW),
    "unit of 16 groups": lambda: GroupingUnit(_WIDE),
}
MEMBERS = {
    "member of 2 streams": lambda: GroupMember(_NARROW),
    "member of 3 streams": lambda: GroupMember(_WIDE),
}
CASES = {**UNITS, **MEMBERS}
FULL = (1 << GROUP_COUNT_BITS) - 1
_QUERIES = 32


@pytest.mark.parametrize("case", UNITS)
def test_grouping_unit(case: str) -> None:
    tests = ["groups_of_random_results", "a_result_a_cycle", "a_full_group_takes_no_more"]
    simulate(__name__, CASES, case, tests)


@pytest.mark.parametrize("case", MEMBERS)
def test_group_member(case: str) -> None:
    simulate(__name__, CASES, case, ["members_as_the_tables_say"])


# --- the grouping unit ----------------------------------------------------------


class Places:
    """Models what a grouping unit keeps: a group per place. Times do not wrap here."""

    def __init__(self, config: DeviceConfig) -> None:
        self.config, self.layouts = config, Layouts(config)
        self.groups: dict[int, dict[str, int]] = {}  # in the order in which they began
        self.seen: Counter = Counter()

    def place(self, query: int, key: int) -> int:
        bits = self.config.groups.bit_length() - 1
        while key:
            query ^= key % self.config.groups
            key >>= bits
        return query % self.config.groups

    def take(self, result: dict, member: dict) -> dict | None:
        """Adds a result to its group; returns what is delivered."""
        query, queries = member["query"], result["queries"]
        if not member["grouped"] or not queries >> query & 1:
            self.seen["of no group"] += 1
            return self._shown(result, queries)
        of = {name: member[name] for name in ("query", "key")}
        value, times = member["value"], {"first": result["newest"], "oldest": result["oldest"]}
        place = self.place(**of)
        group = self.groups.get(place)
        if group is None:
            some = {"count": 1, "total": value, "least": value, "greatest": value}
            self.groups[place] = of | some | times
            self.seen["began"] += 1
        elif of.items() <= group.items() and group["count"] < FULL:
            group["count"] += 1
            group["total"] += value
            group["greatest"] = max(group["greatest"], value)
            for name, each in (("least", value), *times.items()):
                group[name] = min(group[name], each)
            self.seen["added"] += 1
        else:
            self.seen["no room"] += 1
            return self._shown(result, queries)
        queries &= ~(1 << query)
        self.seen["added and delivered"] += queries > 0
        return self._shown(result, queries) if queries else None

    def leave(self) -> list[dict]:
        """Drops all groups; returns them in parts."""
        n, size, parts = self.config.streams, self.config.sequence_width, []
        for group in self.groups.values():
            bits = pack(
                self.layouts.group, {name: group[name] for name in self.layouts.group.members}
            )
            for part in range(self.layouts.group_parts):
                words = [bits >> size * (part * n + s) & (1 << size) - 1 for s in range(n)]
                times = {"newest": group["first"], "oldest": group["oldest"]}
                parts.append(self._shown({"sequences": words, **times, "carries": (1 << n) - 1}, 0))
        self.groups.clear()
        return parts

    def _shown(self, result: dict, queries: int) -> dict:
        time = (1 << self.config.timestamp_width) - 1
        times = {name: result[name] & time for name in ("newest", "oldest")}
        return result | times | {"queries": queries}


class Results(Driver):
    """Offers results, each with its member; between them the inputs are random."""

    def drive(self) -> None:
        bench, noise = self.bench, self.bench.chance.getrandbits
        if not self.offered and self.queue:
            self.offered = bench.chance.random() >= self.idle
        bench.set("found.valid", self.offered)
        if self.offered:
            result, member = self.queue[0]
        else:
            result = {"queries": noise(_QUERIES)}
            member = {"grouped": 1, "query": noise(3), "key": noise(2), "value": 1}
        bench.set("found.payload", result)
        bench.set("member", member)


class Watched(Agent):
    """A grouping unit between a driver and a monitor, beside its model."""

    def __init__(self, bench: Bench, idle: float, pressure: float) -> None:
        self.bench, self.model = bench, Places(bench.component.config)
        self.wanted: deque[dict] = deque()
        self.on_its_way: dict | None = None  # when the groups were cleared
        self.late = 0  # how often that came
        bench.add(self)
        self.driver = Results(bench, "found", idle)
        self.driver.taken = self._taken
        self.results = Monitor(bench, "results", pressure, self._came)
        self.held, self.drains = 0, 0  # cycles of this drain; drains that are done

    def _taken(self, item: tuple[dict, dict]) -> None:
        assert self.held < 2, "taken during a drain"
        shown = self.model.take(*item)
        if shown is not None:
            self.wanted.append(shown)

    def _came(self, item: dict) -> None:
        assert self.wanted, f"came, but was not expected: {item}"
        wanted = self.wanted.popleft()
        assert item == wanted, f"{item}, want {wanted}"

    def look(self) -> None:
        if self.on_its_way is not None and self.bench.bits("results.valid"):
            self.wanted.appendleft(self.on_its_way)
            self.late += 1
        self.on_its_way = None

    async def cycle(self, drains: bool = False, clears: bool = False) -> None:
        """Runs one cycle; a drain that begins goes on until it is done."""
        bench, model = self.bench, self.model
        drains |= self.held > 0
        bench.set("drain", drains)
        bench.set("clear", clears)
        self.held = self.held + 1 if drains else 0
        if self.held == 2:
            # A result that came in the cycle in which the drain began was taken; none is from now
            # on.
            self.wanted.extend(model.leave())
        before = len(self.wanted)
        await bench.settle()
        if bench.bits("idle") and not self.held:
            assert not before, "idle, but something is to come"
        if bench.bits("drained"):
            assert self.held > 1, "drained unasked"
            # The last part may wait to be taken.
            assert len(self.wanted) <= 1, "drained, but groups are left"
            self.held, self.drains = 0, self.drains + 1
        if clears:
            parts = [each for each in self.wanted if not each["queries"]]
            model.seen["cleared in a drain"] += bool(parts)
            model.seen["cleared"] += bool(model.groups)
            model.groups.clear()
            # A part that is offered stays; otherwise one may be offered in the next cycle.
            offered = bench.bits("results.valid") and not self.results.ready
            if parts and parts[0] is self.wanted[0] and not offered:
                self.on_its_way = parts[0]
            stays = offered and parts and parts[0] is self.wanted[0]
            self.wanted = deque(each for each in self.wanted if each["queries"])
            if stays:
                self.wanted.appendleft(parts[0])
        await bench.clock()


def _item(bench: Bench, now: int, mode: str) -> tuple[dict, dict]:
    """Returns a result and its member. No time is further from another of its group than half of
    the counter's range."""
    chance, config = bench.chance, bench.component.config
    far = ((1 << config.timestamp_width - 1) - 1) // 3
    newest = now + chance.choice([0, 1, far, chance.randrange(far)])
    top = (1 << config.attribute_width) - 1
    query = chance.choice([0, 0, 1, 16, _QUERIES - 1])  # 0 and 16 share places
    key = {
        "one key": 5,
        "few keys": chance.randrange(4),
        "any key": chance.getrandbits(config.attribute_width),
        "one place": 0,
    }[mode]
    if mode == "one place":
        # The lowest bits of the key make up for the query and its higher bits.
        high = chance.randrange(4) * config.groups
        key = high | Places(config).place(query, high) ^ 3
    queries = 1 << query if chance.random() < 0.5 else chance.getrandbits(_QUERIES) or 1 << query
    result = {
        "queries": queries,
        "carries": chance.randrange(1, 1 << config.streams),
        "newest": newest,
        "oldest": newest - chance.choice([0, 1, far, chance.randrange(far)]),
        "sequences": [chance.getrandbits(config.sequence_width) for _ in range(config.streams)],
    }
    member = {
        "grouped": int(chance.random() < 0.85),
        "query": query,
        "key": key,
        "value": chance.choice([0, 1, top, chance.randint(0, top)]),
    }
    return result, member


@cocotb.test()
async def groups_of_random_results(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance, config = bench.chance, bench.component.config
    half = 1 << config.timestamp_width - 1
    seen: Counter = Counter()
    for run, (idle, pressure) in enumerate(PACES):
        await bench.reset()
        watched = Watched(bench, idle, pressure)
        driver, now, mode, of_mode = watched.driver, 2 * half - half // 2, "", 0
        count = 60 if idle == MUCH else 300
        often = (0.005, 0.1, 0.02)[run % 3]
        drained = 0
        for _ in range(30_000):
            if not driver.queue and not driver.offered and len(driver.sent) < count:
                if not of_mode:
                    mode = chance.choice(["one key", "few keys", "any key", "one place"])
                    of_mode = chance.randrange(1, 60)
                of_mode -= 1
                if watched.drains > drained:  # times go on, and wrap around
                    now, drained = now + half // 7, watched.drains
                driver.queue.append(_item(bench, now, mode))
            stuck = watched.held and chance.random() < 0.02
            drains, clears = chance.random() < often, stuck or chance.random() < often / 4
            await watched.cycle(drains, clears)
            if len(driver.sent) == count and not watched.held:
                break
        assert len(driver.sent) == count
        seen += watched.model.seen
        seen["drains"] += watched.drains
        seen["time came round"] += now > 2 * half
        seen["forgotten too late"] += watched.late
        if run % 2:
            # Existing groups meet a reset.
            seen["reset"] += len(watched.model.groups)
            continue
        # One more drain, by itself; nothing is left after it.
        before = watched.drains
        for _ in range(3_000):
            await watched.cycle(drains=watched.drains == before)
            if watched.drains > before and not watched.wanted and bench.bits("idle"):
                break
        assert not watched.wanted
        assert not watched.model.groups
        for _ in range(20):
            await watched.cycle()
            assert bench.bits("idle")
    for what in ("of no group", "began", "added", "no room", "added and delivered", "drains"):
        assert seen[what] > 30, f"{what}: {seen[what]}"
    for what in (
        "cleared",
        "cleared in a drain",
        "time came round",
        "forgotten too late",
        "reset",
    ):
        assert seen[what], what


@cocotb.test()
async def a_result_a_cycle(dut: object) -> None:
    """Results are never held up, whatever becomes of them; those that only go into groups not even
    when the output is not taken."""
    bench = Bench(dut, CASES)
    config, parts = bench.component.config, bench.component.layouts.group_parts
    n, mask = config.streams, (1 << _QUERIES) - 1
    # Queries of a result, how often it is grouped, and whether results are taken.
    for queries, grouped, pressure in (
        (mask, 0, 0.0),
        (mask, 1, 0.0),
        (1, 1, 1.0),
        (mask, 0.5, 0.0),
    ):
        await bench.reset()
        watched = Watched(bench, 0.0, pressure)
        keys = range(2) if pressure else range(3 * config.groups)
        for at in range(300):
            member = {
                "grouped": int(bench.chance.random() < grouped),
                "query": 0,
                "key": bench.chance.choice(keys),
                "value": at % 256,
            }
            result = {
                "queries": queries,
                "carries": 1,
                "newest": at,
                "oldest": 0,
                "sequences": [at % 256] * n,
            }
            watched.driver.queue.append((result, member))
        await bench.until(lambda watched=watched: bool(watched.driver.sent), 50)
        taken, first = bench.cycle, None
        while watched.driver.queue:
            before = len(watched.driver.sent), len(watched.results.got)
            await watched.cycle()
            assert len(watched.driver.sent) == before[0] + 1, "a result a cycle is promised"
            if first is None and watched.results.got:
                first = bench.cycle
            elif first is not None:
                assert len(watched.results.got) == before[1] + 1, "a result a cycle is promised"
        # The clock advanced once more after the cycle in which it was taken, or came.
        assert pressure or first == taken + 7, first - taken
        for _ in range(10):
            await watched.cycle()
        assert not watched.wanted
        if pressure:
            watched.results.pressure = 0.0
        groups, begun = len(watched.model.groups), bench.cycle
        await watched.cycle(drains=True)
        while watched.held:
            await watched.cycle()
        assert bench.cycle - begun <= groups * (parts + 3) + 5
        assert groups == {0: 0, 1: min(len(keys), config.groups), 0.5: config.groups}[grouped]


@cocotb.test()
async def a_full_group_takes_no_more(dut: object) -> None:
    """A result comes in as many cycles as a group counts, for which the clock needs no help."""
    from cocotb.triggers import ClockCycles, FallingEdge

    bench = Bench(dut, CASES)
    config, n = bench.component.config, bench.component.config.streams
    await bench.reset()
    watched = Watched(bench, 0.0, 0.0)
    top = (1 << config.attribute_width) - 1
    sequences = [(1 << config.sequence_width) - 1] * n
    result = {"queries": 1, "carries": 1, "newest": 70, "oldest": 60, "sequences": sequences}
    member = {"grouped": 1, "query": 0, "key": top, "value": top}
    watched.driver.queue.append((result, member))
    await bench.until(lambda: bool(watched.driver.sent), 50)
    few = 2
    for name, value in (("found.payload", result), ("member", member), ("found.valid", 1)):
        bench.set(name, value)
    await FallingEdge(dut.clk)
    await ClockCycles(dut.clk, FULL - few - 1)
    group = watched.model.groups[watched.model.place(0, top)]
    group |= {"count": FULL - few, "total": (FULL - few) * top}
    assert not watched.results.got
    for number in range(few + 3):
        # Neither results of another key nor those beyond the limit are lost.
        value = top - number
        more = result | {"newest": 71 + number, "oldest": 59 - number}
        watched.driver.queue.append((more, member | {"value": value}))
        watched.driver.queue.append((more, member | {"key": top - 1, "value": value}))
    while watched.driver.queue:
        await watched.cycle()
    assert watched.model.seen["no room"] == 3
    assert group["count"] == FULL
    await watched.cycle(drains=True)
    while watched.held or watched.wanted:
        await watched.cycle()
    assert not watched.model.groups
    assert len(watched.results.got) == 3 + 2 * bench.component.layouts.group_parts


# --- the group member -----------------------------------------------------------


def _tables(bench: Bench, some: float) -> Tables:
    """Returns tables in which some route tags are grouped, each in any way."""
    chance, config = bench.chance, bench.component.config
    n = config.streams

    def place() -> tuple[int, int] | None:
        return (chance.randrange(n), chance.randrange(4)) if chance.random() < 0.8 else None

    routes, grouped = {}, {}
    for tag in chance.sample(range(config.tags), 20):
        queries = frozenset(chance.sample(range(_QUERIES), chance.choice([0, 1, 1, 3])))
        routes[tag] = Route(queries=queries)
        if chance.random() < some:
            grouped[tag] = Grouped(chance.randrange(_QUERIES), place(), place(), 100)
    for stream in range(n):
        routes.setdefault(stream, Route())
    windows = tuple((Window(WindowKind.UNBOUNDED),) * n for _ in range(_QUERIES))
    return Tables(tuple(range(n)), (), (), (), routes, windows, (), grouped)


class Asker(Agent):
    """Asks for tuples, and supplies them some cycles later; sees each member two cycles after
    that."""

    def __init__(self, bench: Bench, load: Load, often: float) -> None:
        self.bench, self.load, self.often = bench, load, often
        self.tables: dict[int, Tables] = {}  # by half
        self.asked: deque[tuple[int, dict]] = deque()
        self.wanted: deque[dict | None] = deque([None, None])
        self.seen: Counter = Counter()
        bench.add(self)

    def drive(self) -> None:
        bench, chance = self.bench, self.bench.chance
        config = bench.component.config
        tables = self.tables.get(self.load.half)
        attributes = [
            [chance.getrandbits(config.attribute_width) for _ in range(4)]
            for _ in range(config.streams)
        ]
        bench.set("fetched", {"components": [{"attributes": each} for each in attributes]})
        came = bool(self.asked) and self.asked[0][0] <= bench.cycle and chance.random() < self.often
        bench.set("came", came)
        self.wanted.append(self._member(self.asked.popleft()[1], attributes) if came else None)
        asks = tables is not None and len(self.asked) < PLACES - 1 and chance.random() < self.often
        tag = chance.choice([*tables.routes]) if tables else 0
        bench.set("asked", asks)
        bench.set("tag", tag)
        if asks:
            grouped = tables.grouped.get(tag) if tables.routes[tag].queries else None
            self.asked.append((bench.cycle + 2 + chance.choice([0, 0, 1, 40]), {"plan": grouped}))
            self.seen["of a tag whose queries are none"] += (
                tag in tables.grouped and grouped is None
            )
            self.seen["most"] = max(self.seen["most"], len(self.asked))

    def _member(self, asked: dict, attributes: list[list[int]]) -> dict:
        plan: Grouped | None = asked["plan"]
        self.seen["grouped" if plan else "not grouped"] += 1
        if plan is None:
            return {"grouped": 0}
        self.seen["without a key"] += plan.key is None
        self.seen["without a value"] += plan.value is None
        key, value = (
            0 if place is None else attributes[place[0]][place[1]]
            for place in (plan.key, plan.value)
        )
        return {"grouped": 1, "query": plan.query, "key": key, "value": value}

    def look(self) -> None:
        wanted = self.wanted.popleft()
        if wanted is not None:
            member: dict[str, Any] = self.bench.get("member")
            assert wanted.items() <= member.items(), f"{member}, want {wanted}"


@cocotb.test()
async def members_as_the_tables_say(dut: object) -> None:
    bench = Bench(dut, CASES)
    seen: Counter = Counter()
    for often in (1.0, 0.5, 0.1):
        await bench.reset()
        load = Load(bench)
        asker = Asker(bench, load, often)
        whole = 0
        for some in (0.6, 0.0, 1.0, 0.05, 0.0, 0.6):
            tables = _tables(bench, some)
            asker.tables[load.half ^ 1] = tables
            words = [*output_commands(tables, bench.component.config)]
            await bench.settle()
            assert bench.bits("whole") == whole, "what is loaded is not in use yet"
            await bench.clock()
            await load.words(words)
            used = [tag for tag in tables.grouped if tables.routes[tag].queries]
            whole = int(bool(used))
            await bench.tick()
            for _ in range(120):
                await bench.settle()
                assert bench.bits("whole") == whole
                await bench.clock()
            seen[f"whole {whole}"] += 1
        seen["most"] = max(seen["most"], asker.seen.pop("most"))
        seen += asker.seen
    assert seen["most"] > 8
    for what in ("grouped", "not grouped", "without a key", "without a value"):
        assert seen[what] > 20, f"{what}: {seen[what]}"
    for what in ("whole 0", "whole 1", "of a tag whose queries are none"):
        assert seen[what], what
