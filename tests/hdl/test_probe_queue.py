"""ProbeQueue against a list, and a note a level of where its probe was left."""

from __future__ import annotations

import dataclasses
from collections import Counter

import cocotb
import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.control_words import ADDRESS_BITS
from seustream.hdl.layouts import CONTEXT_BITS, CONTEXTS, Layouts
from seustream.hdl.probe_queue import ProbeQueue, probe_layout
from tests.hdl.bench import PACES, Bench, simulate

CASES = {
    f"{streams} streams": (
        lambda streams=streams: Alone(dataclasses.replace(CONFIGURATIONS["tiny"], streams=streams))
    )
    for streams in (2, 4)
}


class Alone(wiring.Component):
    """The queue without the rest of the unit."""

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        super().__init__(
            {
                "enter": In(1),
                "entering": In(probe_layout(config)),
                "may_enter": Out(1),
                "commit": In(1),
                "rewind": In(1),
                "left": In(data.StructLayout({"slot": layouts.slot_bits, "pc": ADDRESS_BITS})),
                "resume_level": In(layouts.level_bits),
                "resumed": In(1),
                "resume": Out(1),
                "resume_slot": Out(layouts.slot_bits),
                "level": Out(layouts.level_bits),
                "context": Out(CONTEXT_BITS),
                "busy": Out(1),
                "current": Out(probe_layout(config)),
                "current_resumed": Out(1),
                "current_slot": Out(layouts.slot_bits),
                "current_pc": Out(ADDRESS_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        current = Signal(probe_layout(self.config))
        probes = ProbeQueue(m, self, current, self.left)
        m.d.comb += [
            self.current.eq(current),
            self.current_resumed.eq(probes.resumed),
            self.current_slot.eq(probes.resumed_slot),
            self.current_pc.eq(probes.resumed_pc),
        ]
        return m


@pytest.mark.parametrize("case", CASES)
def test_probe_queue(case: str) -> None:
    simulate(__name__, CASES, case)


@cocotb.test()
async def every_probe_is_current_in_its_turn(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance, layouts = bench.chance, bench.component.layouts
    levels, slots = layouts.levels, bench.component.config.depth
    seen: Counter = Counter()
    for idle, pressure in PACES:
        await bench.reset()
        queue: list[dict] = []
        may_enter, settled = False, False  # whether the first of the queue was it a cycle ago
        left: dict[int, dict] = {}  # by level
        pending: set[int] = set()
        for _ in range(800):
            level = chance.randrange(levels)
            entering = {
                "reference": {
                    "context": chance.randrange(CONTEXTS),
                    "tag": chance.getrandbits(8),
                    "carries": chance.getrandbits(levels + 1),
                    "slots": [chance.randrange(slots) for _ in range(levels + 1)],
                },
                "level": level,
                "bits": chance.getrandbits(15),
            }
            place = {"slot": chance.randrange(slots), "pc": chance.getrandbits(ADDRESS_BITS)}
            current = queue[0] if settled else None
            enter = may_enter and chance.random() >= idle
            rewind = current is not None and chance.random() < 0.1
            commit = current is not None and not rewind and chance.random() >= pressure
            bench.set("enter", enter)
            bench.set("entering", entering)
            bench.set("rewind", rewind)
            bench.set("commit", commit)
            bench.set("left", place)
            bench.set("resume_level", level)
            bench.set("resumed", enter)
            await bench.settle()
            assert bench.bits("may_enter") == may_enter
            assert bench.bits("busy") == bool(queue)
            assert bench.bits("resume") == (level in pending)
            if level in pending:
                assert bench.bits("resume_slot") == left[level]["slot"]
                seen["resume"] += 1
            if current is not None:
                assert bench.get("current") == current
                assert bench.bits("level") == current["level"]
                assert bench.bits("context") == current["reference"]["context"]
                was = left.get(current["level"])
                assert bench.bits("current_resumed") == (was is not None)
                if was:
                    now = {"slot": bench.bits("current_slot"), "pc": bench.bits("current_pc")}
                    assert now == was
                    seen["left"] += 1
            await bench.clock()
            may_enter = len(queue) < 3
            settled = bool(queue) and not commit
            if enter:
                pending.discard(level)
                queue.append(entering)
            assert len(queue) <= 4
            seen["full"] += len(queue) == 4
            if commit:
                left.pop(queue.pop(0)["level"], None)
            if rewind:
                left[queue[0]["level"]] = place
                pending = set(left)
                queue.clear()
                settled = False
    assert min(seen[what] for what in ("resume", "left", "full")) > 20, seen
