"""UART: pins to bytes and bytes to pins, one start bit, eight data bits, one stop bit."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import cdc, stream, wiring
from amaranth.lib.wiring import In, Out

DIVISOR_BITS = 16
LEAST_DIVISOR = 4
"""Cycles a bit; with fewer the middle of a bit is not to be found."""


class UartReceiver(wiring.Component):
    """Looks for a start bit, then at the middle of every bit. A start that is gone before its
    middle was noise; a byte whose stop bit is missing is dropped, and the line waited for.

    latency     9.5 bits, and 3 cycles
    throughput  a byte in 10 bits

    rx          pin
    divisor     cycles a bit
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
        left = Signal(DIVISOR_BITS)  # cycles to the next look
        bits, received = Signal(3), Signal(8)
        look = Signal()
        m.d.comb += look.eq(left == 0)
        m.d.sync += [
            left.eq(Mux(look, self.divisor - 1, left - 1)),
            self.bytes.valid.eq(0),
            self.broken.eq(0),
        ]
        with m.FSM():
            with m.State("IDLE"):
                # To the middle of the start bit, of which a cycle is over when it is seen.
                m.d.sync += left.eq((self.divisor >> 1) - 1)
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
    divisor     cycles a bit
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
        left = Signal(DIVISOR_BITS)
        bits = Signal(range(11))  # still to go, with the one on the pin
        sent = Signal(9, init=-1)
        m.d.comb += self.bytes.ready.eq(bits == 0)
        with m.If(bits == 0):
            with m.If(self.bytes.valid):
                m.d.sync += [
                    self.tx.eq(0),
                    sent.eq(Cat(self.bytes.payload, 1)),
                    bits.eq(10),
                    left.eq(self.divisor - 1),
                ]
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        with m.Else():
            m.d.sync += [
                self.tx.eq(sent[0]),
                sent.eq(Cat(sent[1:], 1)),
                bits.eq(bits - 1),
                left.eq(self.divisor - 1),
            ]
        return m
