"""Tests Replay: every stored tuple, of every window, gets its new bits once."""

from __future__ import annotations

import dataclasses

import cocotb
import pytest

from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.replay import Replay
from tests.hdl.bench import MUCH, NONE, SOME, Bench, Monitor, simulate

CASES = {
    f"{n} windows": (lambda n=n: Replay(dataclasses.replace(CONFIGURATIONS["tiny"], streams=n)))
    for n in (2, 3)
}


@pytest.mark.parametrize("case", CASES)
def test_replay(case: str) -> None:
    simulate(__name__, CASES, case)


@cocotb.test()
async def every_stored_tuple_is_worked_out_once(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance, replay = bench.chance, bench.component
    n, depth = replay.config.streams, replay.config.depth
    pointers = 2 * depth
    most = 0
    for number in range(30):
        slow = chance.choice([NONE, SOME, MUCH])
        await bench.reset()
        firsts = [chance.randrange(pointers) for _ in range(n)]
        counts = [0 if number % 5 == 0 else chance.randrange(depth + 1) for _ in range(n)]
        windows = [
            [[chance.getrandbits(16) for _ in range(4)] for _ in range(depth)] for _ in range(n)
        ]
        bench.set_each("windows", "first", firsts)
        bench.set_each(
            "windows",
            "end",
            [(first + count) % pointers for first, count in zip(firsts, counts, strict=True)],
        )
        await bench.tick()
        wanted = [(s, (firsts[s] + i) % depth) for s in range(n) for i in range(counts[s])]
        most = max(most, len(wanted))
        asked: list[dict] = []
        Monitor(bench, "fetch.request", slow, asked.append)
        done: list[tuple[int, int]] = []
        respond = work = -1
        fetched: list = []
        bits: dict[tuple, int] = {}
        key: tuple = ()
        written = -5
        for cycle in range(20_000):
            bench.set("start", cycle == 0)
            bench.set("fetch.response", respond == 0)
            bench.set(
                "fetch.data",
                {"components": [{"attributes": part} for part in fetched]} if respond == 0 else {},
            )
            bench.set("selection.known", work == 0)
            bench.set("selection.bits", bits[key] if work == 0 else chance.getrandbits(16))
            await bench.settle()
            busy = bench.bits("busy")
            assert cycle != 1 or busy, "control waits for it to end"
            respond, work = max(respond - 1, -1), max(work - 1, -1)
            if asked:
                slots = asked.pop()["slots"]
                fetched = [windows[s][slots[s]] for s in range(n)]
                respond = chance.randrange(2, 6)
            if bench.bits("selection.again"):
                key = (bench.bits("selection.stream"), tuple(bench.get("selection.attributes")))
                bits[key] = chance.getrandbits(16)
                work = chance.randrange(2, 6)
            rewrite = bench.bits_each("windows", "rewrite")
            if rewrite:
                s = rewrite.bit_length() - 1
                assert rewrite == 1 << s
                # An index takes this long for a tuple.
                assert cycle - written >= 5
                written = cycle
                slot = bench.get_same("windows", "slot")
                attributes = windows[s][slot]
                assert bench.get("selection.attributes") == attributes
                assert bench.get_same("windows", "bits") == bits[s, tuple(attributes)]
                done.append((s, slot))
            await bench.clock()
            if cycle and not busy:
                break
        else:
            raise AssertionError("never done")
        assert done == wanted
        assert not asked
        assert respond == work == -1
    assert most > depth
