"""Tests ProbeFifo against lists: one per level, each with what was taken of it."""

from __future__ import annotations

import dataclasses
from collections import Counter, deque

import cocotb
import pytest

from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.layouts import CONTEXTS, SELECTIONS
from seustream.hdl.probe_fifo import _BROUGHT as BROUGHT
from seustream.hdl.probe_fifo import _RAW_IN_FLIGHT as RAW_IN_FLIGHT
from seustream.hdl.probe_fifo import IN_FLIGHT, ProbeFifo
from tests.hdl.bench import LATE, PACES, Bench, simulate

CASES = {
    name: (lambda n=n: ProbeFifo(dataclasses.replace(CONFIGURATIONS["tiny"], streams=n)))
    for n, name in ((4, "three levels"), (3, "two levels"), (2, "one level"))
}


@pytest.mark.parametrize("case", CASES)
def test_probe_fifo(case: str) -> None:
    simulate(__name__, CASES, case)


@cocotb.test()
async def every_probe_comes_out_in_order(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance = bench.chance
    fifo = bench.component
    n, width = fifo.config.streams, fifo.config.attribute_width
    levels, depth = fifo.layouts.levels, fifo.config.probe_fifo_depth
    count: Counter = Counter()

    def raw_tuple() -> dict:
        return {
            "context": chance.randrange(CONTEXTS),
            "stream": chance.randrange(n),
            "brought": {
                "bits": chance.getrandbits(SELECTIONS),
                "attributes": [chance.getrandbits(width) for _ in range(4)],
            },
        }

    def joined_tuple() -> dict:
        return {
            "context": chance.randrange(CONTEXTS),
            "tag": chance.getrandbits(8),
            "stream": chance.randrange(n),
            "carries": chance.getrandbits(n),
            "slots": [chance.randrange(fifo.config.depth) for _ in range(n)],
        }

    def reference_of(raw: dict) -> dict:
        """Returns the reference of a raw tuple: all but the slots, which it does not need."""
        stream = raw["stream"]
        return {
            "context": raw["context"],
            "tag": stream,
            "stream": stream,
            "carries": 1 << stream,
        }

    for idle, pressure in PACES:
        await bench.reset()
        kept: list[list[dict]] = [[] for _ in range(levels)]  # pushed and not released
        taken = [0] * levels  # how many of them were taken
        known = 0  # how many of the raw tuples in it were taken once
        brought: deque[dict] = deque()  # what all others brought, and those whose is not given yet
        to_give: deque[int] = deque()  # cycles in which these were taken
        # A sender sees room late: for each level, what it saw in the last cycles.
        seen = [[False] * LATE for _ in range(levels)]
        wanted: tuple[int, dict] | None = None  # level, and what was taken in the previous cycle
        taken_now = given_before = False
        brings = False  # the last one taken is a raw tuple, the first time
        was_below, was_waiting = [False] * levels, [False] * levels
        pushed_before = [False] * levels
        for cycle in range(800):
            drain = cycle > 700
            # A raw tuple and a joined one may come in the same cycle.
            come: list[tuple[int, dict]] = []
            for level in {0, chance.randrange(levels)}:
                if not drain and seen[level][0] and chance.random() >= idle:
                    come.append((level, joined_tuple() if level else raw_tuple()))
            raws, joined = ([each for each in come if bool(each[0]) == k] for k in (False, True))
            bench.set("raw_probes.push", bool(raws))
            bench.set("raw_probes.pushed", raws[0][1] if raws else raw_tuple())
            bench.set("joined_probes.push", bool(joined))
            level = joined[0][0] if joined else chance.randrange(levels)
            bench.set("joined_probes.level", level)
            bench.set("joined_probes.pushed", joined[0][1] if joined else joined_tuple())
            level = chance.randrange(levels)
            is_there = taken[level] < len(kept[level])
            take = is_there and (drain or chance.random() >= pressure)
            bench.set("take", take)
            bench.set("take_level", level)
            commit_level = chance.randrange(levels)
            commit = taken[commit_level] > 0 and (drain or chance.random() >= pressure)
            rewind = not drain and not commit and chance.random() < 0.02
            bench.set("commit", commit)
            bench.set("commit_level", commit_level)
            bench.set("rewind", rewind)
            # A loader needs it some cycles after the take.
            give = (
                bool(to_give) and to_give[0] < cycle - 3 and (drain or chance.random() >= pressure)
            )
            bench.set("give", give)
            await bench.settle()
            for k in range(levels):
                takes = take and k == level
                assert bench.bits("available") >> k & 1 == (taken[k] + takes < len(kept[k]))
                if cycle:
                    assert bench.bits("waiting") >> k & 1 == was_waiting[k]
                    assert bench.bits("joined_probes.room") >> k & 1 == was_below[k]
                seen[k] = [*seen[k][1:], bool(bench.bits("joined_probes.room") >> k & 1)]
                assert k or bench.bits("raw_probes.room") == seen[0][-1]
                count["full"] += not was_below[k]
                was_below[k] = len(kept[k]) < depth
                if k == 0:
                    was_below[0] &= len(brought) < BROUGHT - RAW_IN_FLIGHT
                was_waiting[k] = len(kept[k]) > 0
            if wanted is not None:  # it stays until the next is taken
                of, probe = wanted
                expected = probe if of else reference_of(probe)
                reference = bench.get("reference")
                assert {name: reference[name] for name in expected} == expected
                count["taken one after the other"] += take and taken_now
                count["still there"] += not taken_now
            assert bench.bits("brings") == brings
            if to_give and to_give[0] < cycle - 3:
                assert bench.get("raw") == brought[0]
                count["not given yet"] += not give
                count["given one after the other"] += give and given_before
            given_before = give
            await bench.clock()
            if give:
                brought.popleft()
                to_give.popleft()
            taken_now = take
            if take:
                wanted = level, kept[level][taken[level]]
                first_time = level == 0 and taken[0] == known
                brings = first_time
                known += first_time and not rewind
                if first_time and not rewind:
                    to_give.append(cycle)
                count["a raw tuple again"] += level == 0 and not first_time
                newest = taken[level] == len(kept[level]) - 1
                count["taken at once"] += newest and pushed_before[level]
                count[f"of level {level}"] += 1
            count["both ways"] += len(come) == 2
            count["pushed"] += len(come)
            for to, probe in come:
                kept[to].append(probe)
                if not to:
                    brought.append(probe["brought"])
                assert len(kept[to]) < depth + IN_FLIGHT, "the test pushes more than it may"
                assert len(brought) <= BROUGHT, "the test pushes more than it may"
            pushed_before = [any(to == k for to, _ in come) for k in range(levels)]
            taken[level] += take
            if commit:
                kept[commit_level].pop(0)
                known -= commit_level == 0
                taken[commit_level] -= 1
            if rewind:
                count["rewind"] += any(taken)
                count["taken and rewound"] += take
                taken = [0] * levels
        assert not any(kept)
        assert not bench.bits("waiting")
    assert count["pushed"] > 10 * fifo.depth
    assert count["taken and rewound"] > 5
    often = ["rewind", "full", "taken one after the other", "not given yet"]
    often += ["given one after the other"]
    often += ["a raw tuple again", "still there"]
    often += ["taken at once", *(["both ways"] if levels > 1 else [])]
    for what in (*often, *(f"of level {level}" for level in range(levels))):
        assert count[what] > 10, what
