"""A processor with its host link: all of a board except pins and clock."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.boards.board import NetworkAddress
from seustream.hdl.boards.identity import Identity
from seustream.hdl.boards.link import Link
from seustream.hdl.boards.network import NetworkPort
from seustream.hdl.boards.port import HostPort
from seustream.hdl.boards.protocol import NETWORK_COUNTERS, RING
from seustream.hdl.buffer import StreamBuffer
from seustream.hdl.config import DeviceConfig
from seustream.hdl.top import Wjasip


class Linked(wiring.Component):
    """The part of a board's top behind its port: a link, and the processor or loop-back that it leads to.

    latency     that of its parts
    throughput  the slowest of them, at most a byte per cycle of the line

    received, transmitted   in, out: the line, as streams of bytes
    open, bad, stranger, opens   out, out, in, out: of the link
    network     in: of the link: events of a network port
    idle        out: nothing is in flight behind the link

    `ring` is the number of bytes that the link keeps in each direction.
    """

    def __init__(self, identity: Identity, ring: int = RING) -> None:
        self.link = Link(identity, ring)
        super().__init__(
            {
                "received": In(stream.Signature(8)),
                "transmitted": Out(stream.Signature(8)),
                "open": Out(1),
                "bad": Out(1),
                "stranger": In(1),
                "opens": Out(1),
                "network": In(len(NETWORK_COUNTERS)),
                "idle": Out(1),
            }
        )


class LinkedWjasip(Linked):
    """link <-> host port <-> processor; the processor's results go through a buffer

    latency     that of its parts
    throughput  the slowest of them, which is the line before the link

    received, transmitted, open, bad, stranger, opens, network, idle   as in `Linked`
    """

    def __init__(self, config: DeviceConfig, identity: Identity, ring: int = RING) -> None:
        self.config = config
        self.port = HostPort(config)
        self.wjasip = Wjasip(config)
        super().__init__(identity, ring)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.link = link = self.link
        m.submodules.port = port = self.port
        m.submodules.wjasip = wjasip = self.wjasip
        wiring.connect(m, wiring.flipped(self.received), link.received)
        wiring.connect(m, link.transmitted, wiring.flipped(self.transmitted))
        wiring.connect(m, link.from_host, port.from_host)
        wiring.connect(m, port.to_host, link.to_host)
        wiring.connect(m, port.commands, wjasip.commands)
        wiring.connect(m, wjasip.responses, port.responses)
        wiring.connect(m, port.raw, wjasip.raw)
        m.submodules.results = results = StreamBuffer(port.results.payload.shape())
        wiring.connect(m, wjasip.results, results.coming)
        wiring.connect(m, results.going, port.results)
        wiring.connect(m, wjasip.handed_over, port.handed_over)
        # `idle` comes from all over the chip; port and LEDs do not need it at once.
        m.d.sync += self.idle.eq(wjasip.idle)
        # Registered, because the link lies by its pins, far from the port. No byte of a new session comes before
        # `clear` reaches the port.
        m.d.sync += port.clear.eq(link.clear)
        m.d.comb += [
            port.idle.eq(self.idle),
            link.cleared.eq(port.cleared),
            self.open.eq(link.open),
            self.bad.eq(link.bad),
            link.stranger.eq(self.stranger),
            self.opens.eq(link.opens),
            link.network.eq(self.network),
            link.counter.eq(port.counter),
            port.count.eq(link.count),
        ]
        return m


class Networked(wiring.Component):
    """network <-> link, and what the link leads to

    latency     that of its parts
    throughput  the slowest of them

    received, receiving, sent, sending   of `NetworkPort`
    open, bad, idle   of `Linked`
    """

    def __init__(self, linked: Linked, address: NetworkAddress) -> None:
        self.linked = linked
        self.address = address
        super().__init__(
            {
                "received": In(8),
                "receiving": In(1),
                "sent": Out(8),
                "sending": Out(1),
                "open": Out(1),
                "bad": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.network = network = NetworkPort(self.address)
        m.submodules.linked = linked = self.linked
        wiring.connect(m, network.bytes, linked.received)
        wiring.connect(m, linked.transmitted, network.replies)
        m.d.comb += [
            network.received.eq(self.received),
            network.receiving.eq(self.receiving),
            self.sent.eq(network.sent),
            self.sending.eq(network.sending),
            linked.stranger.eq(network.stranger),
            network.opens.eq(linked.opens),
            linked.network.eq(network.events),
            self.open.eq(linked.open),
            self.bad.eq(linked.bad),
            self.idle.eq(linked.idle),
        ]
        return m
