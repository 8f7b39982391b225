"""Tests RawRoutes: each stream has the route of the words loaded last, once their half is in use."""

from __future__ import annotations

import cocotb
import pytest

from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.control_words import Command, ControlOperation, Target
from seustream.hdl.raw_routes import RawRoutes
from tests.hdl.bench import Bench, Load, simulate

CASES = {"tiny": lambda: RawRoutes(CONFIGURATIONS["tiny"])}


@pytest.mark.parametrize("case", CASES)
def test_raw_routes(case: str) -> None:
    simulate(__name__, CASES, case)


@cocotb.test()
async def the_half_in_use(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance, n = bench.chance, bench.component.config.streams
    await bench.reset()
    load = Load(bench)
    loaded: list[dict] = [{}, {}]  # by half, what was loaded
    for _ in range(40):
        words, half = [], loaded[load.half ^ 1]
        for stream in range(n):
            if chance.random() < 0.7:
                half["route", stream] = chance.getrandbits(3)
                words.append((Target.RAW_ROUTE, stream, 0, half["route", stream]))
            if chance.random() < 0.7:
                half["to", stream] = chance.getrandbits(n + 1)
                words.append((Target.DESTINATION, 0, stream, half["to", stream]))
            # Words for other tables and other tags change nothing.
            words.append((Target.RANGE, stream, 0, chance.getrandbits(24)))
            words.append((Target.DESTINATION, 0, n + stream, chance.getrandbits(n + 1)))
        chance.shuffle(words)
        before = _shown(bench)
        for word in words:
            command = Command(ControlOperation.WRITE, *word)
            for name in ("target", "unit", "address", "data"):
                bench.set(f"tables.{name}", getattr(command, name))
            bench.set("tables.valid", 1)
            await bench.tick()
            assert _shown(bench) == before, "not in use yet"
        await load.words([])
        await bench.tick()
        half = loaded[load.half]
        stores, groups, destinations = _shown(bench)
        for stream in range(n):
            route, to = half.get(("route", stream), 0), half.get(("to", stream), 0)
            assert stores >> stream & 1 == route & 1
            assert groups[stream] == route >> 1
            assert destinations[stream] == {"areas": to & (1 << n) - 1, "output": to >> n}


def _shown(bench: Bench) -> tuple:
    return bench.bits("stores"), bench.get("groups"), bench.get("destinations")
