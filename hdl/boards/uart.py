"""UART: converts pins to bytes and bytes to pins; one start bit, eight data bits, one stop bit."""

from __future__ import annotations

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal
from amaranth.lib import cdc, stream, wiring
from amaranth.lib.wiring import In, Out

FRACTION_BITS = 4
PARTS = 1 << FRACTION_BITS
"""A divisor counts sixteenths of a cycle, so that any clock gives any baud rate closely enough: a bit
takes a whole number of cycles, and the remainder is carried over to the next bit."""
DIVISOR_BITS = 16 + FRACTION_BITS
LEAST_CYCLES = 4
"""Minimum cycles of a bit; with fewer its middle cannot be found."""


class _BitTimer(Elaboratable):
    """Times the bits of a byte.

    latency     -
    throughput  -

    divisor     in: sixteenths of a cycle per bit
    half        in: restart, and time half a bit
    whole       in: restart, and time a bit
    due         out: last cycle of the bit, or of the half; the next bit begins by itself
    """

    def __init__(self, divisor: Signal) -> None:
        self.divisor = divisor
        self.half, self.whole, self.due = Signal(), Signal(), Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        left = Signal(DIVISOR_BITS - FRACTION_BITS)
        over = Signal(FRACTION_BITS)  # sixteenths by which the bits so far were too short
        due = Signal(DIVISOR_BITS)
        m.d.comb += [
            self.due.eq(left == 0),
            due.eq(
                Mux(self.half, self.divisor >> 1, self.divisor)
                + Mux(self.half | self.whole, 0, over)
            ),
        ]
        with m.If(self.due | self.half | self.whole):
            m.d.sync += [left.eq(due[FRACTION_BITS:] - 1), over.eq(due[:FRACTION_BITS])]
        with m.Else():
            m.d.sync += left.eq(left - 1)
        return m


class UartReceiver(wiring.Component):
    """Waits for a start bit, then samples the middle of every bit. A start bit that ends before its
    middle is noise; a byte whose stop bit is missing is dropped, and the receiver waits for an idle line.

    latency     9.5 bits and 3 cycles
    throughput  a byte in 10 bits

    rx          in: pin
    divisor     in: sixteenths of a cycle per bit
    bytes       out: stream of bytes; does not wait
    broken      out: pulse: a byte without a stop bit
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "rx": In(1, init=1),
                "divisor": In(DIVISOR_BITS),
                "bytes": Out(stream.Signature(8)),
                "broken": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pin = Signal(init=1)
        m.submodules.synchroniser = cdc.FFSynchronizer(self.rx, pin, init=1)
        m.submodules.timer = timer = _BitTimer(self.divisor)
        bits, received = Signal(3), Signal(8)
        look = timer.due
        m.d.sync += [self.bytes.valid.eq(0), self.broken.eq(0)]
        with m.FSM():
            with m.State("IDLE"):
                # Time to the middle of the start bit, one cycle of which has passed when it is detected.
                m.d.comb += timer.half.eq(1)
                with m.If(~pin):
                    m.next = "START"
            with m.State("START"):
                with m.If(pin):
                    m.next = "IDLE"
                with m.Elif(look):
                    m.next = "DATA"
            with m.State("DATA"):
                with m.If(look):
                    m.d.sync += [received.eq(Cat(received[1:], pin)), bits.eq(bits + 1)]
                    with m.If(bits == 7):
                        m.next = "STOP"
            with m.State("STOP"):
                with m.If(look):
                    m.d.sync += [self.bytes.valid.eq(pin), self.broken.eq(~pin)]
                    m.d.sync += self.bytes.payload.eq(received)
                    m.next = "IDLE"
                    with m.If(~pin):
                        m.next = "BREAK"
            with m.State("BREAK"):
                with m.If(pin):
                    m.next = "IDLE"
        return m


class UartTransmitter(wiring.Component):
    """Sends bytes.

    latency     1 cycle to the start bit
    throughput  a byte in 10 bits and a cycle

    tx          out: pin
    divisor     in: sixteenths of a cycle per bit
    bytes       in: stream of bytes to send
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "tx": Out(1, init=1),
                "divisor": In(DIVISOR_BITS),
                "bytes": In(stream.Signature(8)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.timer = timer = _BitTimer(self.divisor)
        bits = Signal(range(11))  # bits left, including the one on the pin
        sent = Signal(9, init=-1)
        m.d.comb += self.bytes.ready.eq(bits == 0)
        with m.If(bits == 0):
            with m.If(self.bytes.valid):
                m.d.sync += [
                    self.tx.eq(0),
                    sent.eq(Cat(self.bytes.payload, 1)),
                    bits.eq(10),
                ]
            m.d.comb += timer.whole.eq(1)
        with m.Elif(timer.due):
            m.d.sync += [
                self.tx.eq(sent[0]),
                sent.eq(Cat(sent[1:], 1)),
                bits.eq(bits - 1),
            ]
        return m
