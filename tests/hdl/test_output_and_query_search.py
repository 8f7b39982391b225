"""Tests Output against the windows of each query (`seustream.hdl.device`, rule 5), worked out in
unbounded numbers."""

from __future__ import annotations

import dataclasses
from collections import Counter, deque

import cocotb
import pytest

from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.control_words import output_commands
from seustream.hdl.device import Route, Tables, Window, WindowKind
from seustream.hdl.layouts import CONTEXTS, SELECTIONS
from seustream.hdl.output import Output
from tests.hdl.bench import LATE, PACES, Bench, Load, Monitor, Scoreboard, simulate

_TAGS = 8
CASES = {
    f"{n} streams": (
        lambda n=n: Output(
            dataclasses.replace(
                CONFIGURATIONS["tiny"], streams=n, timestamp_width=16, sequence_width=8
            )
        )
    )
    for n in (2, 4)
}


def _tables(
    windows: list[tuple[Window, ...]], routes: dict[int, set[int]], filters: list[int]
) -> Tables:
    led = {tag: Route(queries=frozenset(each)) for tag, each in routes.items()}
    groups = tuple(range(len(windows[0]))) if filters else ()
    return Tables(groups, (), (), (), led, tuple(windows), tuple(filters))


@pytest.mark.parametrize("case", CASES)
def test_output(case: str) -> None:
    simulate(__name__, CASES, case)


@cocotb.test()
async def each_query_gets_what_fits_its_windows(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance, output = bench.chance, bench.component
    config = output.config
    n, queries = config.streams, config.queries
    fits: Counter = Counter()
    for idle, pressure in PACES:
        await bench.reset()
        load = Load(bench)
        kinds = [WindowKind.RANGE, WindowKind.ROWS, WindowKind.UNBOUNDED]
        alike = chance.random() < 0.5

        def window(kinds: list[WindowKind] = kinds) -> Window:
            kind = chance.choice(kinds)
            if kind is WindowKind.RANGE:
                return Window(kind, chance.choice([0, 1, 5, 100, config.longest_range]))
            sizes = [1, 2, 3, 100, config.longest_rows]
            return Window(kind, chance.choice(sizes) if kind is WindowKind.ROWS else 0)

        windows = [
            tuple([window()] * n if alike else [window() for _ in range(n)]) for _ in range(queries)
        ]
        routes = {
            tag: {chance.randrange(queries) for _ in range(chance.choice([1, 1, 2, 5, 40]))}
            for tag in range(_TAGS)
        }
        routes[n] = {0, queries - 1}
        # The first tags are those of raw tuples, which share no query with the others.
        for tag in range(_TAGS):
            half = range(32) if tag < n else range(32, queries)
            routes[tag] = {half[query % len(half)] for query in routes[tag]}
        filters = [
            sum(1 << chance.randrange(SELECTIONS) for _ in {*range(chance.choice([0, 1, 2, 5]))})
            & (1 << SELECTIONS) - 1
            for _ in range(32)
        ] + [0] * (queries - 32)
        await load.words([*output_commands(_tables(windows, routes, filters), config)])

        results, commits = Scoreboard("results"), Scoreboard("commits")
        Monitor(bench, "results", pressure, results.came)
        asked: list[dict] = []
        Monitor(bench, "fetch.request", idle, asked.append)
        tuples: dict[int, dict] = {}  # by reference, identified by its slots
        rooms: deque[bool] = deque([False] * LATE, maxlen=LATE)
        answers: deque[tuple[int, dict]] = deque()
        delivered, wanted, pushed, rate, most = 0, 0, 0, idle, 0
        for _ in range(20_000):
            push = pushed < 60 and rooms[0] and chance.random() >= rate
            bench.set("push", push)
            if push:
                now = chance.choice([3, 1 << 15, (1 << 16) + 2]) + (1 << 20)
                raw = chance.random() < 0.3
                carries = chance.choice(
                    [c for c in range(1 << n) if (c.bit_count() == 1) == raw and c]
                )
                latest = chance.choice([s for s in range(n) if carries >> s & 1])
                bits = chance.choice([0, (1 << SELECTIONS) - 1, chance.randrange(1 << SELECTIONS)])
                if chance.random() < 0.5:  # all but one
                    bits = (1 << SELECTIONS) - 1 ^ 1 << chance.randrange(SELECTIONS)
                # Age and rank of each component; the latest has none.
                ages = [chance.choice([0, 1, 5, 6, 101, config.longest_range]) for _ in range(n)]
                ranks = [chance.choice([0, 1, 2, 3, 100, config.longest_rows]) for _ in range(n)]
                ages[latest] = ranks[latest] = 0
                counters = [(1 << 10) + chance.randrange(300) for _ in range(n)]
                sequences = [counters[s] - ranks[s] & 0xFF for s in range(n)]
                reference = {
                    "context": chance.randrange(CONTEXTS),
                    "tag": latest if raw else chance.randrange(n, _TAGS),
                    "stream": latest,
                    "carries": carries,
                    "slots": [pushed >> 4 * s & 15 for s in range(n)],
                }
                tuples[pushed] = {
                    "reference": reference,
                    "components": [
                        {"timestamp": now - ages[s], "sequence": sequences[s]} for s in range(n)
                    ],
                    "now": now,
                    "counters": counters,
                    "stream": latest,
                    "bits": bits,
                }
                bench.set("pushed", reference)
                pushed += 1
                part = [s for s in range(n) if carries >> s & 1]
                has = 0
                for query in routes[reference["tag"]]:
                    good = True
                    for s in part:
                        each = windows[query][s]
                        if each.kind is WindowKind.RANGE:
                            good &= ages[s] <= each.size
                        elif each.kind is WindowKind.ROWS:
                            good &= ranks[s] < each.size
                    if raw:
                        good = not filters[query] & ~bits
                    fits[good] += 1
                    has |= good << query
                if has:
                    result = {
                        "queries": has,
                        "carries": carries,
                        "newest": now & 0xFFFF,
                        "oldest": now - max(ages[s] for s in part) & 0xFFFF,
                        "sequences": sequences,
                    }
                    results.expect(result)
                    wanted += has.bit_count()
                commits.expect(reference["context"])
            # The fetch answers in order, each request some cycles later.
            now_answered = answers and answers[0][0] <= bench.cycle and chance.random() < 0.7
            bench.set("fetch.response", bool(now_answered))
            bench.set("fetch.data", answers.popleft()[1] if now_answered else {})
            await bench.settle()
            rooms.append(bool(bench.bits("room")))
            if asked:
                which = sum(slot << 4 * s for s, slot in enumerate(asked[-1]["slots"]))
                answer = tuples.pop(which)
                assert asked.pop() == answer["reference"]
                answers.append((bench.cycle + chance.randrange(2, 8), answer))
                most = max(most, len(answers))
            delivered += bench.bits("delivered")
            if bench.bits("done.commit"):
                commits.came(bench.bits("done.context"))
            await bench.clock()
            if pushed == 60 and commits.empty:
                break
        results.finish()
        commits.finish()
        assert most > 1, "never asked for one while another was on its way"
        assert not tuples
        for _ in range(10):
            await bench.settle()
            assert not bench.bits("results.valid")
            assert not bench.bits("done.commit")
            delivered += bench.bits("delivered")
            await bench.clock()
        assert delivered == wanted
    assert all(count > 100 for count in fits.values())
