"""FactorArray against the comparisons of Python, in every cycle, all conditions and widths."""

from __future__ import annotations

import dataclasses
import operator
import random

import cocotb
import pytest

from hdl.config import CONFIGURATIONS, DeviceConfig
from hdl.factors import FactorArray
from hdl.isa import Condition
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


def config(width: int) -> DeviceConfig:
    return dataclasses.replace(CONFIGURATIONS["tiny"], attribute_width=width)


CASES = {f"{width} bits": (lambda width=width: FactorArray(config(width))) for width in (8, 16, 32)}


@pytest.mark.parametrize("case", CASES)
def test_factor_array(case: str) -> None:
    simulate(__name__, CASES, case)


def value(chance: random.Random, width: int) -> int:
    """Near each other, near the ends, or anything; equal ones are common."""
    top = 1 << width
    near = [0, 1, 2, top // 2 - 1, top // 2, top // 2 + 1, top - 2, top - 1]
    return chance.choice([*near, chance.randrange(top)])


@cocotb.test()
async def every_pair_is_compared(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance, unit = bench.chance, bench.component
    width, lanes, count = (
        unit.config.attribute_width,
        unit.config.lanes,
        unit.config.comparators_a_lane,
    )
    seen = set()
    await bench.reset()
    wanted: list[list[int]] = []
    for cycle in range(800):
        # With factors in parts, what a comparator does changes from cycle to cycle.
        if cycle % 40 == 0 or chance.random() < 0.5:
            factors = [
                {
                    "window_attribute": chance.randrange(4),
                    "probe_stream": chance.randrange(4),
                    "probe_attribute": chance.randrange(4),
                    "condition": chance.randrange(8),
                }
                for _ in range(count)
            ]
            bench.set("factors", factors)
        tuples = [[value(chance, width) for _ in range(4)] for _ in range(lanes)]
        operands = [value(chance, width) for _ in range(count)]
        carried = chance.getrandbits(count)
        bench.set("tuples", tuples)
        bench.set("operands", operands)
        bench.set("carried", carried)
        row = []
        for lane in range(lanes):
            held = 0
            for number, factor in enumerate(factors):
                condition = Condition(factor["condition"])
                outcome = HOLDS[condition](
                    operands[number], tuples[lane][factor["window_attribute"]]
                )
                # A probe that lacks the stream satisfies nothing but TRUE.
                outcome &= bool(carried >> number & 1) or condition is Condition.TRUE
                held |= outcome << number
                seen.add((condition, outcome))
            row.append(held)
        wanted.append(row)
        await bench.settle()
        if len(wanted) > 3:
            assert bench.get("held") == wanted.pop(0)
        await bench.clock()
    assert len(seen) == 14  # TRUE and FALSE have one outcome each
