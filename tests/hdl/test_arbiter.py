"""Tests RoundRobin against the rule in words: the grant goes to the first requester after the one
served last."""

from __future__ import annotations

import cocotb
import pytest

from seustream.hdl.arbiter import RoundRobin
from tests.hdl.bench import MUCH, NONE, SOME, Bench, simulate

CASES = {str(count): (lambda count=count: RoundRobin(count)) for count in (1, 2, 5)}


@pytest.mark.parametrize("case", CASES)
def test_round_robin(case: str) -> None:
    simulate(__name__, CASES, case)


@cocotb.test()
async def turns_are_taken(dut: object) -> None:
    bench = Bench(dut, CASES)
    count = bench.component.count
    for wanting in (0.1, 0.5, 1.0):
        for disabled in (NONE, SOME, MUCH):
            await bench.reset()
            last = count - 1
            granted = [0] * count
            for _ in range(300):
                requests = [bench.chance.random() < wanting for _ in range(count)]
                enable = bench.chance.random() >= disabled
                bench.set("requests", sum(want << i for i, want in enumerate(requests)))
                bench.set("enable", enable)
                await bench.settle()
                turn = [(last + 1 + i) % count for i in range(count)]
                first = next((i for i in turn if requests[i]), None)
                if enable and first is not None:
                    assert bench.bits("granted") == 1 << first
                    last = first
                    granted[first] += 1
                else:
                    assert bench.bits("granted") == 0
                await bench.clock()
            if wanting == 1.0:
                assert max(granted) - min(granted) <= 1
