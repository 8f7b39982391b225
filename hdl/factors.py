"""Factor array: many factors of several pairs in one cycle."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.config import DeviceConfig
from hdl.isa import Condition
from hdl.layouts import STREAM_BITS, Layouts

FACTOR = data.StructLayout(
    {
        "window_attribute": 2,
        "probe_stream": STREAM_BITS,
        "probe_attribute": 2,
        "condition": 3,
        "register": 4,
    }
)
"""A factor's comparator: a CMP that was loaded."""


def decide(condition: Value, below: Value, equal: Value) -> Value:
    """A condition, of a probe attribute that is below, equal to or above a window attribute."""
    cases = {
        Condition.LT: below,
        Condition.EQ: equal,
        Condition.GT: ~(below | equal),
        Condition.GE: ~below,
        Condition.LE: below | equal,
        Condition.NE: ~equal,
        Condition.TRUE: 1,
        Condition.FALSE: 0,
    }
    held = cases[Condition.FALSE]
    for code, outcome in cases.items():
        held = Mux(condition == code, outcome, held)
    return held


class FactorArray(wiring.Component):
    """`lanes` rows of comparators, as many a lane as are built (`comparators_a_lane`).

    latency     3 cycles: pick the attribute; compare; decide
    throughput  `lanes` pairs a cycle

    tuples      the window tuples of a row
    factors     what each comparator does, in this cycle
    operands    per comparator, the probe's attribute
    carried     per comparator, whether the probe carries that stream: 0 where not, whatever
                the operand, but for the condition TRUE
    held        per lane, the outcome of each factor
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        lanes, factors = config.lanes, config.comparators_a_lane
        super().__init__(
            {
                "tuples": In(data.ArrayLayout(layouts.attributes, lanes)),
                "operands": In(data.ArrayLayout(config.attribute_width, factors)),
                "carried": In(factors),
                "factors": In(data.ArrayLayout(FACTOR, factors)),
                "held": Out(data.ArrayLayout(factors, lanes)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = self.config.comparators_a_lane
        operands = Signal(self.operands.shape(), reset_less=True)
        carried = [Signal(count, name=f"carried_{i}", reset_less=True) for i in range(2)]
        conditions = [
            Signal(data.ArrayLayout(3, count), name=f"conditions_{i}", reset_less=True)
            for i in range(2)
        ]
        m.d.sync += [
            operands.eq(self.operands),
            carried[0].eq(self.carried),
            carried[1].eq(carried[0]),
            conditions[0].eq(Cat(factor.condition for factor in self.factors)),
            conditions[1].eq(conditions[0]),
        ]
        for lane in range(self.config.lanes):
            outcomes = []
            for number in range(count):
                factor = self.factors[number]
                below = Signal(name=f"below_{lane}_{number}", reset_less=True)
                equal = Signal(name=f"equal_{lane}_{number}", reset_less=True)
                stored = Signal(
                    self.config.attribute_width, name=f"stored_{lane}_{number}", reset_less=True
                )
                m.d.sync += stored.eq(self.tuples[lane][factor.window_attribute])
                m.d.sync += below.eq(operands[number] < stored)
                m.d.sync += equal.eq(operands[number] == stored)
                condition = conditions[1][number]
                always = condition == Condition.TRUE
                outcomes.append(decide(condition, below, equal) & (carried[1][number] | always))
            held = Signal(count, name=f"held_{lane}", reset_less=True)
            m.d.sync += held.eq(Cat(outcomes))
            m.d.comb += self.held[lane].eq(held)
        return m
