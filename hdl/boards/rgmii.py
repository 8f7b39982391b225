"""RGMII: the pins of a gigabit PHY, four bits at each edge of a clock, to and from bytes.

The clock that comes with what is received is that of all of the PHY's side, so that one domain does for
both ways.
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
"""Picoseconds of a step of a pin's delay."""


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
    """
    latency     2 cycles
    throughput  a byte a cycle

    ctl, data   pins, with the edges of the clock in their middle
    byte, active   what comes
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
    """
    latency     2 cycles
    throughput  a byte a cycle

    byte, active   what goes out
    ctl, data      pins
    clock          their clock; its edges are in their middle
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
    """All between the pins of a PHY and a `Networked`. It is held in reset for a while, and its clock is
    let through once it has run for a while longer: the registers of the domain `phy` then begin with the
    value the bitstream gave them.

    latency     2 cycles each way
    throughput  a byte a cycle

    oscillator  a clock that always runs
    rx_clock, rx_ctl, rx_data, tx_clock, tx_ctl, tx_data, reset_n   pins
    clock       for the domain `phy`
    received, receiving, sent, sending   as in `Networked`

    `receive_delay`, `send_delay`: picoseconds that the data and the clock are to be late, where the PHY
    does not see to it. `wake`: cycles of the oscillator that the PHY has to begin.
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
