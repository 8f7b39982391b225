"""Meters: count many events in one memory."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import DeviceConfig

COUNT_BITS = 48


class Meters(wiring.Component):
    """Counts the cycles in which each of many events is high. Each event has a counter of a few bits;
    one after the other, these are added to their word of a memory and cleared. A counter of
    48 bits for each would take more logic than a join area's loader.

    latency     an event is in its word after at most as many cycles as there are events, plus 4
    throughput  all events in every cycle

    events          in: the events to count
    address, count  in, out: number of an event; its count, a cycle later
    forget          in: pulse: clear all counts, in as many cycles as there are events; they read as 0 meanwhile
    """

    def __init__(self, config: DeviceConfig, events: int) -> None:
        self.config = config
        super().__init__(
            {
                "events": In(events),
                "address": In(range(events)),
                "count": Out(COUNT_BITS),
                "forget": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n = len(self.events)
        m.submodules.counts = counts = memory.Memory(shape=COUNT_BITS, depth=n, init=[])
        write, read = counts.write_port(), counts.read_port(domain="comb")
        shown = counts.read_port(domain="comb")
        few = Array(Signal(ceil_log2(n) + 1, name=f"few_{number}") for number in range(n))

        turn, to_clear = (
            Signal(range(n)),
            Signal(range(n + 4), init=n + 3),
        )  # a reset does not clear the memory
        clears = Signal()
        m.d.comb += clears.eq(to_clear != 0)
        with m.If(self.forget):
            m.d.sync += to_clear.eq(n + 3)  # until the last is in the memory
        with m.Elif(clears):
            m.d.sync += to_clear.eq(to_clear - 1)
        m.d.sync += turn.eq(Mux(turn == n - 1, 0, turn + 1))
        for number, register in enumerate(few):
            mine = turn == number
            m.d.sync += register.eq(Mux(mine, 0, register) + self.events[number])

        # Pipeline stages: turn, increment, sum, memory.
        at = [Signal.like(turn, name=f"at_{stage}") for stage in range(2)]
        forgets = [Signal(name=f"forgets_{stage}") for stage in range(2)]
        more, before = Signal(len(few[0])), Signal(COUNT_BITS)
        m.d.comb += read.addr.eq(turn)
        m.d.sync += [
            Cat(at).eq(Cat(turn, at[0])),
            Cat(forgets).eq(Cat(clears, forgets[0])),
            more.eq(few[turn]),
            before.eq(read.data),
            write.data.eq(Mux(forgets[0], 0, before + more)),
        ]
        m.d.comb += [write.addr.eq(at[1]), write.en.eq(1)]
        m.d.comb += shown.addr.eq(self.address)
        m.d.sync += self.count.eq(Mux(clears, 0, shown.data))
        return m
