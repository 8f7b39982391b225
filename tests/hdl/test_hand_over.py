"""Tests HandOver: every tuple that leaves is handed over once, in the order of its window, with the raw tuple that
displaces it."""

from __future__ import annotations

import cocotb
import pytest

from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.hand_over import HandOver
from tests.hdl.bench import PACES, Bench, Driver, Monitor, Scoreboard, simulate

_N = CONFIGURATIONS["tiny"].streams
CASES = {"tiny": lambda: HandOver(CONFIGURATIONS["tiny"])}


@pytest.mark.parametrize("case", CASES)
def test_hand_over(case: str) -> None:
    simulate(__name__, CASES, case)


@cocotb.test()
async def each_once_with_its_taker(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance = bench.chance
    for idle, pressure in PACES:
        await bench.reset()
        board = Scoreboard("handed_over", key=lambda item: item["stream"])
        Monitor(bench, "handed_over", pressure, board.came)
        windows = [Driver(bench, f"leaving.{stream}", idle) for stream in range(_N)]
        for _ in range(20):
            taker = {"taker": chance.randrange(_N), "taken_by": chance.getrandbits(16)}
            for name, value in taker.items():
                bench.set(name, value)
            for stream in chance.sample(range(_N), chance.randrange(1, _N + 1)):
                for _ in range(chance.randrange(1, 4)):
                    sequence = chance.getrandbits(16)
                    windows[stream].queue.append(sequence)
                    board.expect({"stream": stream, "sequence": sequence, **taker})
            # The next raw tuple is dealt with when all have been taken.
            await bench.until(lambda windows=windows: not any(w.queue for w in windows))
        await bench.until(lambda board=board: board.empty)
        board.finish()
