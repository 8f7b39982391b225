"""Factor array: evaluates many factors of several pairs per cycle."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import MAX_ATTRIBUTES, DeviceConfig
from seustream.hdl.isa import Condition
from seustream.hdl.layouts import STREAM_BITS, Layouts

FACTOR = data.StructLayout(
    {
        "window_attribute": 2,
        "probe_stream": STREAM_BITS,
        "probe_attribute": 2,
        "condition": 3,
        "register": 4,
        "comparator": 4,
        "turn": 4,
    }
)
"""A CMP that was loaded, and where it is compared: by which comparator of a lane, and in which turn
of a row."""


def comparison_layout(config: DeviceConfig) -> data.StructLayout:
    """Layout of a comparator's work in a cycle: the probe's attribute, whether the probe carries its
    stream, the condition, and the window attribute that it is compared with."""
    return data.StructLayout(
        {
            "operand": config.attribute_width,
            "carried": 1,
            "condition": 3,
            "window_attribute": 2,
        }
    )


BUFFER_BITS = 5
"""Width of a probe's number among those whose comparisons are kept: thirty-two at once, sixteen if a row takes two
turns, eight if it takes three or four, four up to eight, and two if more."""


def kept_at(config: DeviceConfig, turn: Value, buffer: Value, last_turn: Value) -> Value:
    """Address at which a comparator keeps its comparison for a turn of a probe. The more turns a row takes, the
    more bits of the probe's number are replaced by bits of the turn."""
    place, probes = [], BUFFER_BITS
    for bit in range(ceil_log2(config.turns)):
        probes -= 1
        place.append(Mux(last_turn[bit:].any(), turn[bit], buffer[probes]))
    return Cat(*place, buffer[:probes])


def all_kept(config: DeviceConfig, count: Value, last_turn: Value) -> Value:
    """Asserted if there is no place for the comparisons of one more probe than `count`."""
    full: Value = count[BUFFER_BITS]
    for bit in range(ceil_log2(config.turns)):
        full = Mux(last_turn[bit:].any(), count[BUFFER_BITS - 1 - bit], full)
    return full


def put_layout(config: DeviceConfig) -> data.StructLayout:
    """Layout of a comparison on its way to its comparator, with its turn and its probe."""
    return data.StructLayout(
        {
            "valid": 1,
            "comparator": 4,
            "turn": 4,
            "buffer": BUFFER_BITS,
            "comparison": comparison_layout(config),
        }
    )


def decide(condition: Value, below: Value, equal: Value) -> Value:
    """Evaluates a condition on a probe attribute that is below, equal to or above a window attribute."""
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
    """Compares `lanes` window tuples with a probe, by `comparators` comparators per lane.

    latency     3 cycles: pick the attribute; compare; decide
    throughput  `lanes` pairs per cycle

    tuples       in: the window tuples of a row
    comparisons  in: work of each comparator in this cycle; if the probe does not carry the stream, the outcome is
                 0 whatever the operand, except for the condition TRUE
    held         out: per lane, the outcome of each comparator
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        lanes, count = config.lanes, config.comparators
        super().__init__(
            {
                "tuples": In(data.ArrayLayout(Layouts(config).attributes, lanes)),
                "comparisons": In(data.ArrayLayout(comparison_layout(config), count)),
                "held": Out(data.ArrayLayout(count, lanes)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, count, few = self.config, self.config.comparators, self.config.kinds
        does = [
            Signal(self.comparisons.shape(), name=f"does_{i}", reset_less=True) for i in range(2)
        ]
        m.d.sync += [does[0].eq(self.comparisons), does[1].eq(does[0])]
        for lane in range(config.lanes):
            outcomes, picked = [], []
            for number in range(count):
                if number < few:
                    stored = Signal(
                        config.attribute_width, name=f"stored_{lane}_{number}", reset_less=True
                    )
                    mine = Array(self.tuples[lane][a] for a in range(number, MAX_ATTRIBUTES, few))
                    which = self.comparisons[number].window_attribute >> ceil_log2(few)
                    m.d.sync += stored.eq(mine[which] if len(mine) > 1 else mine[0])
                    picked.append(stored)
                operand, stored = does[0][number].operand, picked[number % few]
                below = Signal(name=f"below_{lane}_{number}", reset_less=True)
                equal = Signal(name=f"equal_{lane}_{number}", reset_less=True)
                m.d.sync += [below.eq(operand < stored), equal.eq(operand == stored)]
                now = does[1][number]
                always = now.condition == Condition.TRUE
                outcomes.append(decide(now.condition, below, equal) & (now.carried | always))
            held = Signal(count, name=f"held_{lane}", reset_less=True)
            m.d.sync += held.eq(Cat(outcomes))
            m.d.comb += self.held[lane].eq(held)
        return m
