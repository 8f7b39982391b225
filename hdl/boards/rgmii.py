"""RGMII: converts the pins of a gigabit PHY, four bits at each clock edge, to and from bytes.

The receive clock drives the whole PHY side, so that one clock domain serves both directions.
"""

from __future__ import annotations

from amaranth.hdl import (
    Cat,
    ClockDomain,
    ClockSignal,
    DomainRenamer,
    Instance,
    Module,
    Signal,
    Value,
)
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.boards.reset import ClockGate, Steady

_TAP = 25
"""Picoseconds per step of a pin's delay."""


def _delayed(m: Module, name: str, pin: Value, picoseconds: int) -> Value:
    out = Signal(name=f"{name}_delayed")
    m.submodules[f"{name}_delay"] = Instance(
        "DELAYG",
        p_DEL_MODE="USER_DEFINED",
        p_DEL_VALUE=picoseconds // _TAP,
        i_A=pin,
        o_Z=out,
    )
    return out


class RgmiiReceiver(wiring.Component):
    """Converts receive pins to bytes.

    latency     2 cycles
    throughput  a byte per cycle

    ctl, data   in: pins, with the clock edges centred in them
    byte, active   out: a byte, and that there is one
    """

    def __init__(self, delay: int) -> None:
        self.delay = delay
        super().__init__({"ctl": In(1), "data": In(4), "byte": Out(8), "active": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rising, falling = Signal(5), Signal(5)
        for bit, pin in enumerate((*self.data, self.ctl)):
            m.submodules[f"pin{bit}"] = Instance(
                "IDDRX1F",
                i_D=_delayed(m, f"pin{bit}", pin, self.delay),
                i_SCLK=ClockSignal(),
                i_RST=0,
                o_Q0=rising[bit],
                o_Q1=falling[bit],
            )
        m.d.sync += [self.byte.eq(Cat(rising[:4], falling[:4])), self.active.eq(rising[4])]
        return m


class RgmiiTransmitter(wiring.Component):
    """Converts bytes to transmit pins.

    latency     2 cycles
    throughput  a byte per cycle

    byte, active   in: a byte, and that there is one
    ctl, data      out: pins
    clock          out: their clock; its edges are centred in them
    """

    def __init__(self, delay: int) -> None:
        self.delay = delay
        super().__init__(
            {"byte": In(8), "active": In(1), "ctl": Out(1), "data": Out(4), "clock": Out(1)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        byte, active = Signal(8), Signal()
        m.d.sync += [byte.eq(self.byte), active.eq(self.active)]
        pairs = [(byte[bit], byte[bit + 4]) for bit in range(4)]
        for bit, (first, second) in enumerate((*pairs, (active, active))):
            m.d.comb += Cat(self.data, self.ctl)[bit].eq(
                self._at_both_edges(m, f"pin{bit}", first, second)
            )
        clock = self._at_both_edges(m, "clock", 1, 0)
        m.d.comb += self.clock.eq(_delayed(m, "clock", clock, self.delay))
        return m

    @staticmethod
    def _at_both_edges(m: Module, name: str, first: Value | int, second: Value | int) -> Value:
        pin = Signal(name=name)
        m.submodules[name] = Instance(
            "ODDRX1F", i_D0=first, i_D1=second, i_SCLK=ClockSignal(), i_RST=0, o_Q=pin
        )
        return pin


class RgmiiPhy(wiring.Component):
    """Connects the pins of a PHY to a `Networked`. The PHY is held in reset for a while, and its clock is
    enabled after it has run for a while longer: the registers of the domain `phy` then start with the
    value from the bitstream.

    latency     2 cycles each way
    throughput  a byte per cycle

    oscillator  in: a clock that always runs
    rx_clock, rx_ctl, rx_data, tx_clock, tx_ctl, tx_data, reset_n   in, in, in, out, out, out, out: pins
    clock       out: clock for the domain `phy`
    received, receiving, sent, sending   out, out, in, in: as in `Networked`

    `receive_delay`, `send_delay`: delays of the receive data and of the transmit clock in picoseconds, if the PHY
    does not add them. `wake`: cycles of the oscillator that the PHY is held in reset, and has to start afterwards.
    """

    def __init__(self, receive_delay: int, send_delay: int, wake: int) -> None:
        self.receive_delay, self.send_delay, self.wake = receive_delay, send_delay, wake
        super().__init__(
            {
                "oscillator": In(1),
                "rx_clock": In(1),
                "rx_ctl": In(1),
                "rx_data": In(4),
                "tx_clock": Out(1),
                "tx_ctl": Out(1),
                "tx_data": Out(4),
                "reset_n": Out(1),
                "clock": Out(1),
                "received": Out(8),
                "receiving": Out(1),
                "sent": In(8),
                "sending": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.oscillator = ClockDomain(local=True, reset_less=True)
        at_phy = DomainRenamer("phy")
        m.submodules.reset = reset = DomainRenamer("oscillator")(Steady(self.wake))
        m.submodules.gate = gate = ClockGate(self.wake)
        m.submodules.receiver = receiver = at_phy(RgmiiReceiver(self.receive_delay))
        m.submodules.transmitter = transmitter = at_phy(RgmiiTransmitter(self.send_delay))
        m.d.comb += [
            ClockSignal("oscillator").eq(self.oscillator),
            reset.level.eq(1),
            self.reset_n.eq(reset.steady),
            gate.oscillator.eq(self.oscillator),
            gate.source.eq(self.rx_clock),
            gate.locked.eq(reset.steady),
            self.clock.eq(gate.clock),
            receiver.ctl.eq(self.rx_ctl),
            receiver.data.eq(self.rx_data),
            self.received.eq(receiver.byte),
            self.receiving.eq(receiver.active),
            transmitter.byte.eq(self.sent),
            transmitter.active.eq(self.sending),
            self.tx_ctl.eq(transmitter.ctl),
            self.tx_data.eq(transmitter.data),
            self.tx_clock.eq(transmitter.clock),
        ]
        return m
