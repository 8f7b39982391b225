"""Tests the whole processor, all its ports driven cycle by cycle, against the golden model: random
queries and arrivals, random stalls at every port, programs exchanged while tuples are in flight."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections import Counter as Tally

import cocotb
import numpy as np
import pytest

from seustream.compiler.wjasip.image import decode, encode
from seustream.cosim.golden import GoldenDevice
from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.control_words import Command, ControlOperation, Counter, load_commands
from seustream.hdl.device import Grouped, Results, Tables
from seustream.hdl.top import Wjasip
from tests.cosim.generate import random_arrivals, random_queries
from tests.cosim.queries import (
    RANGE,
    UNBOUNDED,
    On,
    Query,
    Raw,
    arrivals,
    batch,
    build,
    handed_over,
    rows_of,
)
from tests.hdl.bench import MUCH, NONE, SOME, Bench, Driver, Monitor, pack, simulate, unpack

CONFIG = dataclasses.replace(
    CONFIGURATIONS["tiny"],
    streams=2, attribute_width=8, timestamp_width=16, sequence_width=8, depth=8,
    probe_fifo_depth=2, output_fifo_depth=2, tags=32, queries=8, factors=8, comparisons=32,
    selectors=4,
)  # fmt: skip
CASES = {"two streams": lambda: Wjasip(CONFIG)}


@pytest.mark.parametrize("case", CASES)
def test_top(case: str) -> None:
    simulate(__name__, CASES, case)


def with_guards(chance: random.Random, tables: Tables) -> Tables:
    """Lets an index serve some probes, where all combinations of their tag share an equality."""
    areas = []
    for area in tables.areas:
        guards = {}
        for row in area.combinations:
            same = [other for other in area.combinations if other.pre_tag == row.pre_tag]
            shared = set(row.factors).intersection(*(other.factors for other in same))
            equal = [f for f in sorted(shared) if area.factors[f].condition == 1]
            if equal and chance.random() < 0.8:
                guards[row.pre_tag] = equal[0]
        areas.append(dataclasses.replace(area, guards=guards))
    return dataclasses.replace(tables, areas=tuple(areas))


@cocotb.test()
async def results_as_of_the_golden_model(dut: object) -> None:
    bench = Bench(dut, CASES)
    # Separate from the drivers' chance, so that what is drawn does not depend on the processor's
    # pace.
    chance = random.Random(bench.chance.getrandbits(64))
    seen: Tally = Tally()
    paces = [(NONE, NONE), (SOME, SOME), (NONE, MUCH), (MUCH, NONE)]
    for run, (idle, pressure) in enumerate(paces):
        await bench.reset()
        commands = Driver(bench, "commands", min(idle, SOME))
        raw = Driver(bench, "raw", idle)
        answers = Monitor(bench, "responses", min(pressure, SOME))
        results = Monitor(bench, "results", pressure)
        handed = Monitor(bench, "handed_over", pressure)

        ask = functools.partial(_ask, bench, commands, answers)
        groups = [(0, 1), (0, 0)][run % 2]
        images = []
        for _ in range(2):
            while True:
                queries = random_queries(chance, groups)
                # Some tuples leave for the counters alone, so that it is not their own stream that
                # takes their place.
                queries[0].windows[0] = UNBOUNDED
                tables = build(queries, groups)
                if len(tables.routes) <= CONFIG.tags:
                    break
            images.append(encode(with_guards(chance, tables), CONFIG))
        rows = random_arrivals(chance, groups, 90)
        # Counters wrap around: inside, time and sequence numbers have few bits.
        leaps = sorted(chance.sample([i for i, each in enumerate(rows) if each.stream == 1], 3))
        rows = [
            each._replace(
                timestamp=each.timestamp + (1 << 16) - 40 + 20_000 * sum(i >= k for k in leaps)
            )
            for i, each in enumerate(rows)
        ]
        swap = chance.randrange(20, 70)
        golden = GoldenDevice(CONFIG)
        parts = []
        for image, part in ((images[0], rows[:swap]), (images[1], rows[swap:])):
            golden.load(image)
            if part:
                parts.append(golden.push(batch(part)))

        for number, image in enumerate(images):
            loading = [
                Command(ControlOperation.BEGIN),
                *load_commands(decode(image, CONFIG), CONFIG),
                Command(ControlOperation.COMMIT, data=int(number == 0)),
            ]
            # The second image comes while tuples of the first are in flight.
            seen["in flight at a swap"] += number and not bench.bits("idle")
            await ask(*loading)
            assert not number or not raw.queue, "a swap waits for what is at the door"
            for each in rows[:swap] if number == 0 else rows[swap:]:
                raw.queue.append(_raw(each))
            if number == 0:
                # A COMMIT must find the last of them taken, otherwise they would meet the new
                # image.
                await bench.until(lambda raw=raw: not raw.queue, 200_000)
        # Idle must mean that nothing more comes.
        await bench.until(lambda raw=raw: not raw.queue and bool(bench.bits("idle")), 200_000)
        came = len(results.got), len(handed.got)
        for _ in range(50):
            await bench.tick()
        assert came == (len(results.got), len(handed.got)), "something came after idle"
        _compare(Results.concatenate(parts), results.got, handed.got)
        status = golden.status()
        for counter in ("taken", "ticks", "dropped", "delivered", "handed_over", "circulated"):
            read = await ask(Command(ControlOperation.READ, address=Counter[counter.upper()]))
            assert read == getattr(status, counter), counter
        for stream, occupancy in enumerate(status.occupancy):
            read = await ask(Command(ControlOperation.READ, address=Counter.OCCUPANCY + stream))
            assert read == occupancy
        seen["results"] += len(results.got)
        seen["of several queries"] += sum(r["queries"].bit_count() > 1 for r in results.got)
        seen["handed over"] += len(handed.got)
        seen["handed over for another"] += sum(x["stream"] != x["taker"] for x in handed.got)
        seen["dropped"] += status.dropped
        seen["stalls"] += await ask(Command(ControlOperation.READ, address=Counter.STALLS))
    for what in (
        "results",
        "of several queries",
        "handed over",
        "handed over for another",
        "dropped",
        "stalls",
        "in flight at a swap",
    ):
        assert seen[what], what


@cocotb.test()
async def a_drain_is_of_all_before_it_and_of_nothing_behind(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance = random.Random(bench.chance.getrandbits(64))
    longest = 1 << CONFIG.timestamp_width - 3
    size, needed = CONFIG.sequence_width, bench.component.layouts.group_parts
    seen: Tally = Tally()
    queries = [
        Query({0: RANGE(longest), 1: RANGE(longest)}, ((On(0, 0, "=", 1, 0),),)),
        Query({0: RANGE(longest), 1: RANGE(longest)}, ((On(0, 0, "=", 1, 0),),)),
        Query({1: UNBOUNDED}),
    ]
    tables = build(queries, (0, 1))
    grouped = {
        tag: Grouped(query, (1, 0), (1, 1), 1 << 40)
        for tag, route in tables.routes.items()
        for query in route.queries - {1}
    }
    tables = dataclasses.replace(tables, grouped=grouped)
    for idle, pressure in ((NONE, MUCH), (SOME, NONE)):
        await bench.reset()
        commands, answers = Driver(bench, "commands"), Monitor(bench, "responses")
        Monitor(bench, "handed_over")
        words = load_commands(tables, CONFIG)
        begin = Command(ControlOperation.BEGIN)
        await _ask(
            bench, commands, answers, begin, *words, Command(ControlOperation.COMMIT, data=1)
        )

        # Some tuples, then a drain; some drains have nothing before them.
        rows, ends, now = [], [], 1000
        for _ in range(12):
            now += 200
            for _ in range(chance.choice([0, 1, 2, 12])):
                now += chance.randrange(3)
                rows.append(
                    (chance.randrange(2), now, (chance.randrange(3), chance.randrange(256)))
                )
            ends.append(len(rows))
        raws = arrivals(rows, (0, 1))
        of_time = {raw.timestamp: sum(end <= at for end in ends) for at, raw in enumerate(raws)}
        events: list[tuple[str, int]] = []  # what happened, and in which part of all
        raw = Driver(bench, "raw", idle)
        raw.taken = lambda item, of=of_time, log=events: (
            None if item["filler"] else log.append(("taken", of[item["timestamp"]]))
        )
        results = Monitor(bench, "results", pressure)
        for begins, end in zip([0, *ends], ends, strict=False):
            raw.queue.extend(_raw(each) for each in raws[begins:end])
            last = raws[end - 1] if end else Raw(0, 0, 0, True, (0,) * 4)
            raw.queue.append(_raw(last) | {"filler": 1, "admit": 1})
        parts: list[int] = []
        got: Tally = Tally()

        def came(item: dict, of=of_time, log=events, parts=parts, got=got) -> None:
            if item["queries"]:
                log.append(("result", of[item["newest"]]))
                got[of[item["newest"]], "delivered"] += (item["queries"] & 0b101).bit_count()
                got[of[item["newest"]], "of no group"] += item["queries"] >> 1 & 1
                return
            log.append(("part", of[item["newest"]]))
            parts.append(pack(bench.component.layouts.result["sequences"].shape, item["sequences"]))
            if len(parts) == needed:
                bits = sum(part << 2 * size * at for at, part in enumerate(parts))
                parts.clear()
                got[of[item["newest"]], "grouped"] += unpack(bench.component.layouts.group, bits)[
                    "count"
                ]

        results._came = came
        quiet = 0
        for _ in range(60_000):
            await bench.settle()
            # Everything was taken, and it is idle: nothing more comes.
            quiet = quiet + 1 if bench.bits("idle") else 0
            before = len(events)
            await bench.clock()
            if quiet > 50 and not raw.queue:
                break
            assert quiet < 2 or before == len(events)
        assert not raw.queue
        assert not parts
        # By part, what belongs together comes together: all but one is gone before the next begins.
        number = {
            kind: [of for which, of in events if which == kind] for kind in ("result", "part")
        }
        for kind, times in number.items():
            assert times == sorted(times), f"a {kind} left before the drain it was behind"
        left: Tally = Tally(events)
        now_in = 0
        for what, of in events:
            if what == "taken" and of > now_in:
                for earlier in range(of):
                    assert not left["result", earlier], "taken while a result was on its way"
                assert sum(left["part", earlier] for earlier in range(of)) <= 1, "taken too early"
                now_in = of
            left[what, of] -= 1
            if what == "part":
                assert not left["taken", of], "a group left before all of it was there"
                assert not left["result", of], "a group left before a result"
        # Each result is in a group or delivered; the golden model knows their number.
        golden = GoldenDevice(CONFIG)
        golden.load(encode(tables, CONFIG))
        for at, (begins, end) in enumerate(zip([0, *ends], ends, strict=False)):
            if begins == end:
                seen["empty drains"] += 1
                continue
            want = golden.push(batch(raws[begins:end]))
            assert got[at, "grouped"] + got[at, "delivered"] == int(want.grouped.count.sum())
            assert got[at, "of no group"] == len(want.queries)
            for what in ("grouped", "delivered", "of no group"):
                seen[what] += got[at, what]
    for what in ("empty drains", "grouped", "of no group"):
        assert seen[what], what


async def _ask(bench: Bench, commands: Driver, answers: Monitor, *words: Command) -> int:
    """Sends commands, all of which must be answered with OK; returns the data of the last
    answer."""
    before = len(answers.got)
    for word in words:
        members = Command.__dataclass_fields__
        commands.queue.append({name: int(getattr(word, name)) for name in members})
    await bench.until(lambda: len(answers.got) == before + len(words), 100_000)
    for answer in answers.got[before:]:
        assert answer["verdict"] == 0
    return answers.got[-1]["data"]


def _raw(each: Raw) -> dict:
    return {
        "stream": each.stream,
        "admit": each.admit,
        "filler": 0,
        "timestamp": each.timestamp,
        "sequence": each.sequence,
        "attributes": list(each.attributes),
    }


def _compare(want: Results, results: list[dict], handed: list[dict]) -> None:
    """Compares the outputs, as far as the processor's counters go."""
    n = CONFIG.streams
    time, number = (1 << CONFIG.timestamp_width) - 1, (1 << CONFIG.sequence_width) - 1
    wanted = sorted(
        (query, newest & time, oldest & time, *(s & number if s >= 0 else -1 for s in parts[:n]))
        for query, newest, oldest, parts in rows_of(want)
    )
    got = sorted(
        (
            query, each["newest"], each["oldest"],
            *(part if each["carries"] >> s & 1 else -1 for s, part in enumerate(each["sequences"])),
        )
        for each in results
        for query in range(CONFIG.queries)
        if each["queries"] >> query & 1
    )  # fmt: skip
    assert got == wanted
    assert sorted(
        (each["stream"], each["sequence"], each["taker"], each["taken_by"]) for each in handed
    ) == sorted((s, i & number, t, j & number) for s, i, t, j in handed_over(want))
    assert np.all(want.queries < 1 << CONFIG.queries)
