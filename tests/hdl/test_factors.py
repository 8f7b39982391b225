"""Tests FactorArray against Python's comparisons, in every cycle, for all conditions and widths."""

from __future__ import annotations

import dataclasses
import operator
import random

import cocotb
import pytest

from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.factors import FactorArray
from seustream.hdl.isa import Condition
from tests.hdl.bench import Bench, simulate

HOLDS = {
    Condition.LT: operator.lt,
    Condition.EQ: operator.eq,
    Condition.GT: operator.gt,
    Condition.GE: operator.ge,
    Condition.LE: operator.le,
    Condition.NE: operator.ne,
    Condition.TRUE: lambda a, b: True,
    Condition.FALSE: lambda a, b: False,
}


def config(width: int, comparators: int) -> DeviceConfig:
    return dataclasses.replace(
        CONFIGURATIONS["tiny"], attribute_width=width, comparators=comparators
    )


CASES = {
    f"{width} bits, {count} comparators": lambda width=width, count=count: FactorArray(
        config(width, count)
    )
    for width, count in ((8, 4), (16, 8), (32, 4), (8, 1), (8, 2))
}


def attributes_of(comparator: int, config: DeviceConfig) -> list[int]:
    """Returns the attributes that a comparator can compare."""
    return [a for a in range(4) if a % min(4, config.comparators) == comparator % 4]


@pytest.mark.parametrize("case", CASES)
def test_factor_array(case: str) -> None:
    simulate(__name__, CASES, case)


def value(chance: random.Random, width: int) -> int:
    """Returns a value near others, near the ends, or anywhere; equal ones are common."""
    top = 1 << width
    near = [0, 1, 2, top // 2 - 1, top // 2, top // 2 + 1, top - 2, top - 1]
    return chance.choice([*near, chance.randrange(top)])


@cocotb.test()
async def every_pair_is_compared(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance, unit = bench.chance, bench.component
    width, lanes, count = unit.config.attribute_width, unit.config.lanes, unit.config.comparators
    seen = set()
    await bench.reset()
    wanted: list[list[int]] = []
    for cycle in range(800):
        # With factors in turns, what a comparator does changes from cycle to cycle.
        if cycle % 40 == 0 or chance.random() < 0.5:
            does = [
                (chance.choice(attributes_of(number, unit.config)), chance.randrange(8))
                for number in range(count)
            ]
        tuples = [[value(chance, width) for _ in range(4)] for _ in range(lanes)]
        comparisons = [
            {
                "operand": value(chance, width),
                "carried": chance.getrandbits(1),
                "condition": condition,
                "window_attribute": attribute,
            }
            for attribute, condition in does
        ]
        bench.set("tuples", tuples)
        bench.set("comparisons", comparisons)
        row = []
        for lane in range(lanes):
            held = 0
            for number, its in enumerate(comparisons):
                condition = Condition(its["condition"])
                outcome = HOLDS[condition](its["operand"], tuples[lane][its["window_attribute"]])
                # A probe that lacks the stream satisfies only TRUE.
                outcome &= bool(its["carried"]) or condition is Condition.TRUE
                held |= outcome << number
                seen.add((condition, outcome))
            row.append(held)
        wanted.append(row)
        await bench.settle()
        if len(wanted) > 3:
            assert bench.get("held") == wanted.pop(0)
        await bench.clock()
    assert len(seen) == 14  # TRUE and FALSE have one outcome each
