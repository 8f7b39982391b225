"""Tests EqualityIndex: a walk meets every tuple of its bucket that was stored when it began."""

from __future__ import annotations

import dataclasses

import cocotb
import numpy as np
import pytest

from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.hashing import bucket_of, seed_bits
from seustream.hdl.index import EqualityIndex
from seustream.hdl.layouts import MARK_BITS
from tests.hdl.bench import MUCH, NONE, SOME, Bench, simulate

_APART = 5
"""Cycles between two tuples that go into the index."""

CASES = {
    f"depth {depth}, {width} bits": (
        lambda depth=depth, width=width: EqualityIndex(
            dataclasses.replace(CONFIGURATIONS["tiny"], depth=depth, lanes=1, attribute_width=width)
        )
    )
    for depth, width in ((16, 16), (4, 8))
}


@pytest.mark.parametrize("case", CASES)
def test_equality_index(case: str) -> None:
    simulate(__name__, CASES, case)


@cocotb.test()
async def a_walk_meets_every_tuple_of_its_bucket(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance, index = bench.chance, bench.component
    depth, width = index.config.depth, index.config.attribute_width
    bits = index.layouts.bucket_bits

    def bucket(key: int) -> int:
        return int(bucket_of(np.array([key]), seed, bits)[0])

    walks = met = wrapped = during = put_off = foreign = 0
    for rate in (NONE, SOME, MUCH):
        seed = chance.getrandbits(seed_bits(index.config))
        await bench.reset(seed=seed)
        keys: list[int] = []  # of every tuple ever stored, in order
        head = tail = 0
        inserted = bench.cycle
        keep = 0  # the first tuple that must stay, because the present walk sees it
        kinds = [chance.getrandbits(width) for _ in range(6)]

        async def step(
            walking: bool, rate: float = rate, kinds: list = kinds, keys: list = keys
        ) -> None:
            """Runs a cycle in which a tuple may be stored, in a slot that a walk no longer sees."""
            nonlocal head, during, inserted
            oldest = keep if walking else tail  # noqa: B023
            apart = bench.cycle > inserted
            insert = apart and head - oldest < depth and chance.random() >= rate
            bench.set("insert", insert)
            bench.set("key", chance.getrandbits(width))
            bench.set("slot", chance.randrange(depth))
            if insert:
                inserted = bench.cycle
                key = chance.choice(kinds)
                bench.set("key", key)
                bench.set("slot", head % depth)
                keys.append(key)
                head += 1
                during += walking
            await bench.settle()

        for _ in range(400):
            for _ in range(chance.randrange(6)):
                await step(False)
                await bench.clock()
            bench.set("insert", 0)
            while bench.cycle - inserted < _APART:  # a view is taken when the last tuple is in
                await bench.tick()
            tail = max(tail, head - depth, chance.randrange(tail, head + 1) - 2)
            keep, count = tail, head - tail
            key = chance.choice([*kinds, chance.getrandbits(width)])
            # Wanted: all that are in view, the newest first.
            wanted = [i for i in reversed(range(tail, head)) if bucket(keys[i]) == bucket(key)]
            visited: list[int] = []
            newest, after, before = True, 0, depth
            for _ in range(chance.randrange(3)):  # tuples may come meanwhile
                await step(True)
                await bench.clock()
            for _ in range(4 * depth):
                bench.set("lookup.ask", newest)
                bench.set("lookup.bucket", bucket(key))
                bench.set("lookup.after", after)
                while True:
                    # It announces this a cycle before.
                    ready = inserted < bench.cycle - 1 or not newest
                    await step(True)
                    assert bench.bits("lookup.ready") == (inserted < bench.cycle)
                    put_off += not ready
                    await bench.clock()
                    if ready:
                        break
                bench.set("lookup.ask", 0)
                bench.set("lookup.after", chance.randrange(depth))
                await step(True)
                await bench.clock()
                await step(True)
                link = {} if newest else bench.get("lookup.older")
                after = bench.bits("lookup.newest") if newest else link["slot"]
                await bench.clock()
                if not newest and link["mark"] != bucket(key) % (1 << MARK_BITS):
                    foreign += 1  # the last one met is of another bucket
                    visited = [at for at in visited if at != keep + before]
                    break
                offset = (after - keep) % depth
                if offset >= before:  # a chain leads from newer to older
                    break
                if offset < count:
                    visited.append(keep + offset)
                newest, before = False, offset
            else:
                raise AssertionError("a chain without an end")
            assert [i for i in visited if i in set(wanted)] == wanted
            walks += 1
            met += len(wanted)
            wrapped += head > 2 * depth
    assert met > 500
    assert wrapped > 500
    assert foreign > 10, "led into another chain"
    assert put_off > 10, "asked while it was exchanged"
    assert during > 100, "stored while a walk was under way"
