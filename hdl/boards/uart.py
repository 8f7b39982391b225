"""UART: pins to bytes and bytes to pins, one start bit, eight data bits, one stop bit."""

from __future__ import annotations

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal
from amaranth.lib import cdc, stream, wiring
from amaranth.lib.wiring import In, Out

FRACTION_BITS = 4
PARTS = 1 << FRACTION_BITS
"""A divisor counts sixteenths of a cycle, so that any clock makes any baud rate near enough: a bit
is as many cycles long as are due, and what is left over counts for the next."""
DIVISOR_BITS = 16 + FRACTION_BITS
LEAST_CYCLES = 4
"""A bit; with fewer its middle is not to be found."""


class _BitTimer(Elaboratable):
    """
    latency     -
    throughput  -

    divisor     sixteenths of a cycle a bit
    half        begin anew, and count half a bit
    whole       begin anew, and count a bit
    due         the last cycle of the bit, or of the half; the next bit begins by itself
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
    """Looks for a start bit, then at the middle of every bit. A start that is gone before its
    middle was noise; a byte whose stop bit is missing is dropped, and the line waited for.

    latency     9.5 bits, and 3 cycles
    throughput  a byte in 10 bits

    rx          pin
    divisor     sixteenths of a cycle a bit
    bytes       as they come; they do not wait
    broken      pulse: a byte without a stop bit
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
                # To the middle of the start bit, of which a cycle is over when it is seen.
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
    """
    latency     1 cycle to the start bit
    throughput  a byte in 10 bits

    tx          pin
    divisor     sixteenths of a cycle a bit
    bytes       to send
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
        bits = Signal(range(11))  # still to go, with the one on the pin
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
