"""Tests RawDrain: raw tuples pass in order, and wait behind a drain until nothing is in flight and the groups have left."""

from __future__ import annotations

import cocotb
import pytest

from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.drain import _STILL, RawDrain
from tests.hdl.bench import PACES, Bench, Driver, Monitor, Scoreboard, simulate

CASES = {"tiny": lambda: RawDrain(CONFIGURATIONS["tiny"])}


@pytest.mark.parametrize("case", CASES)
def test_drain(case: str) -> None:
    simulate(__name__, CASES, case)


@cocotb.test()
async def none_passes_a_drain(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance = bench.chance
    for idle, pressure in PACES:
        await bench.reset()
        board = Scoreboard("going")
        raws = Driver(bench, "coming", idle)
        Monitor(bench, "going", pressure, board.came, firm=False)
        for at in range(60):
            raw = {"admit": chance.random() < 0.7, "filler": chance.random() < 0.4}
            raws.queue.append({**dict.fromkeys(("stream", "sequence"), 0), **raw, "timestamp": at})
        drains = 0  # that were taken and have not ended
        ended = 0

        def taken(raw: dict, board: Scoreboard = board) -> None:
            nonlocal drains
            if raw["filler"] and raw["admit"]:
                drains += 1
            else:
                board.expect({**raw, "attributes": [0] * 4})

        raws.taken = taken
        still = leaves = 0
        for _ in range(20_000):
            quiet, drained = chance.random() < 0.9, leaves == 1
            bench.set("quiet", quiet)
            bench.set("drained", drained)
            before, seen = drains, board.seen
            await bench.settle()
            assert not before or board.seen == seen, "one passed the drain"
            assert bench.bits("draining") == before <= 1
            assert bench.bits("drain") == (before == 1 and still >= _STILL)
            if bench.bits("drain") and not leaves:
                leaves = chance.randrange(2, 9)
            elif leaves:
                leaves -= 1
            still = still + 1 if before and quiet else 0
            if drained:
                drains, ended = drains - 1, ended + 1
            await bench.clock()
            if not raws.queue and not drains:
                break
        assert board.empty
        assert not raws.queue
        assert ended > 5
