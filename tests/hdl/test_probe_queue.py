"""Tests ProbeQueue against a list, and a note per level of where its probe was left."""

from __future__ import annotations

import dataclasses
from collections import Counter

import cocotb
import pytest

from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.control_words import ADDRESS_BITS, ROW_BITS, ROWS_BITS
from seustream.hdl.layouts import CONTEXTS
from seustream.hdl.probe_queue import KNOWN, ProbeQueue
from tests.hdl.bench import PACES, Bench, simulate

CASES = {
    f"{streams} streams": (
        lambda streams=streams: ProbeQueue(
            dataclasses.replace(CONFIGURATIONS["tiny"], streams=streams)
        )
    )
    for streams in (2, 4)
}


@pytest.mark.parametrize("case", CASES)
def test_probe_queue(case: str) -> None:
    simulate(__name__, CASES, case)


@cocotb.test()
async def every_probe_is_decided_and_sent_in_its_turn(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance, layouts = bench.chance, bench.component.layouts
    levels, slots = layouts.levels, bench.component.config.depth
    seen: Counter = Counter()
    for idle, pressure in PACES:
        await bench.reset()
        queue: list[dict] = []
        decided_of = 0  # number of these that are decided
        # Whether the probe of each pointer was it two cycles ago.
        may_enter, decides, sends = False, False, False
        committed: dict | None = None  # sent a cycle ago
        had_decided = had_entered = fresh = False
        left: dict[int, dict] = {}  # by level
        pending: set[int] = set()
        for cycle in range(1200):
            busy = cycle // 150 % 4 == 1  # busy with something else, so that the queue fills
            level = chance.randrange(levels)
            entering = {
                "reference": {
                    "context": chance.randrange(CONTEXTS),
                    "tag": chance.getrandbits(8),
                    "stream": chance.randrange(levels + 1),
                    "carries": chance.getrandbits(levels + 1),
                    "slots": [chance.randrange(slots) for _ in range(levels + 1)],
                },
                "level": level,
                "bits": chance.getrandbits(15),
                "row": chance.getrandbits(ROW_BITS),
                "rows": chance.getrandbits(ROWS_BITS),
            }
            place = {"slot": chance.randrange(slots), "pc": chance.getrandbits(ADDRESS_BITS)}
            enter = may_enter and chance.random() >= idle
            rewind = sends and chance.random() < 0.1
            decided = decides and not rewind and chance.random() >= pressure
            sent = sends and decided_of > 0 and not rewind and chance.random() >= pressure
            sent, rewind = sent and not busy, rewind and not busy
            rewind = rewind and committed is None
            bench.set("enter", enter)
            bench.set("entering", entering)
            bench.set("rewind", rewind)
            bench.set("decided", decided)
            bench.set("sent", sent)
            bench.set("commit", committed is not None)
            bench.set("left", place)
            bench.set("resume_level", level)
            bench.set("resumed", enter)
            await bench.settle()
            may_enter = bool(bench.bits("may_enter"))
            assert may_enter == (len(queue) + enter < KNOWN - 1)
            assert bench.bits("busy") == bool(queue)
            assert bench.bits("resume") == (level in pending)
            if level in pending:
                assert bench.bits("resume_slot") == left[level]["slot"]
                seen["resume"] += 1
            if decides:
                probe, resumed = queue[decided_of]
                assert bench.get("deciding") == probe
                assert bench.bits("was_left") == resumed
                if resumed:
                    now = {"slot": bench.bits("left_slot"), "pc": bench.bits("left_pc")}
                    assert now == left[probe["level"]]
                    seen["left"] += 1
                seen["one after the other"] += decided and had_decided
                seen["entered one after the other"] += enter and had_entered
            if sends:
                probe, _ = queue[0]
                assert bench.get("sending") == probe
                assert bench.bits("level") == probe["level"]
            if committed is not None:
                assert bench.bits("committed_level") == committed["level"]
                assert bench.bits("context") == committed["reference"]["context"]
                left.pop(committed["level"], None)
                committed = None
            await bench.clock()
            known = len(queue) - fresh
            decides = known > decided_of + decided
            had_decided, had_entered = decided, enter
            sends = known > sent
            fresh = enter
            if enter:
                queue.append((entering, level in pending))
                pending.discard(level)
            assert len(queue) <= KNOWN
            seen["full"] += len(queue) >= KNOWN - 1
            decided_of += decided - sent
            seen["ahead"] += decided_of > 1
            if sent:
                committed = queue.pop(0)[0]
            if rewind:
                left[queue[0][0]["level"]] = place
                pending = set(left)
                queue.clear()
                decided_of = 0
                decides = sends = fresh = False
    often = ["resume", "left", "full", "ahead", "one after the other"]
    often += ["entered one after the other"]
    assert min(seen[what] for what in often) > 20, seen
