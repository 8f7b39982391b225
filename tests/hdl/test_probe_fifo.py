"""ProbeFifo against lists: one a level, each with what was taken of it."""

from __future__ import annotations

import dataclasses

import cocotb
import pytest

from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.probe_fifo import IN_FLIGHT, ProbeFifo
from tests.hdl.bench import LATE, PACES, Bench, simulate

CASES = {
    "two levels": lambda: ProbeFifo(dataclasses.replace(CONFIGURATIONS["tiny"], streams=3)),
    "one level": lambda: ProbeFifo(dataclasses.replace(CONFIGURATIONS["tiny"], streams=2)),
}


@pytest.mark.parametrize("case", CASES)
def test_probe_fifo(case: str) -> None:
    simulate(__name__, CASES, case)


@cocotb.test()
async def every_probe_comes_out_in_order(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance = bench.chance
    fifo = bench.component
    levels, depth = fifo.layouts.levels, fifo.config.probe_fifo_depth
    wraps = rewinds = full = taken_and_rewound = 0
    for idle, pressure in PACES:
        await bench.reset()
        kept: list[list[int]] = [[] for _ in range(levels)]  # pushed and not let go
        taken = [0] * levels  # how many of them were taken
        # A sender sees room late: of each level, what it saw in the last cycles.
        seen = [[False] * LATE for _ in range(levels)]
        wanted: int | None = None
        was_below = [False] * levels
        was_available, was_waiting = [False] * levels, [False] * levels
        took = False
        for cycle in range(800):
            drain = cycle > 700
            push = not drain and chance.random() >= idle
            push_level = chance.randrange(levels)
            push &= seen[push_level][0]
            pushed = chance.getrandbits(8)
            bench.set("push", push)
            bench.set("push_level", push_level)
            bench.set("pushed", {"tag": pushed, "context": pushed & 3})
            level = chance.randrange(levels)
            # A loader sees late what is available, and does not take in two cycles after another.
            take = not took and was_available[level] and (drain or chance.random() >= pressure)
            bench.set("take", take)
            bench.set("take_level", level)
            commit_level = chance.randrange(levels)
            commit = taken[commit_level] > 0 and (drain or chance.random() >= pressure)
            rewind = not drain and not commit and chance.random() < 0.02
            bench.set("commit", commit)
            bench.set("commit_level", commit_level)
            bench.set("rewind", rewind)
            await bench.settle()
            for n in range(levels):
                if cycle:
                    assert bench.bits("available") >> n & 1 == was_available[n]
                    assert bench.bits("waiting") >> n & 1 == was_waiting[n]
                    assert bench.bits("room") >> n & 1 == was_below[n]
                seen[n] = [*seen[n][1:], bool(bench.bits("room") >> n & 1)]
                full += not was_below[n]
                was_below[n] = len(kept[n]) < depth
                was_available[n] = taken[n] < len(kept[n])
                was_waiting[n] = len(kept[n]) > 0
            if wanted is not None:
                assert bench.get("reference")["tag"] == wanted
                assert bench.get("reference")["context"] == wanted & 3
            await bench.clock()
            wanted = kept[level][taken[level]] if take else None
            if push:
                kept[push_level].append(pushed)
                wraps += 1
                assert len(kept[push_level]) < depth + IN_FLIGHT, "the test pushes more than it may"
            taken[level] += take
            if commit:
                kept[commit_level].pop(0)
                taken[commit_level] -= 1
            took = take and not rewind
            if rewind:
                rewinds += any(taken)
                taken_and_rewound += take
                taken = [0] * levels
        assert not any(kept)
        assert not bench.bits("waiting")
    assert wraps > 10 * fifo.depth
    assert rewinds > 10
    assert taken_and_rewound > 5
    assert full > 10
