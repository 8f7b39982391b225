"""A port without a processor: it answers each tuple with a result at once, so that only the way
there and back takes time."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import wiring

from seustream.hdl.boards.identity import Identity
from seustream.hdl.boards.linked import Linked
from seustream.hdl.boards.port import HostPort
from seustream.hdl.config import DeviceConfig


class Mirror(Linked):
    def __init__(self, config: DeviceConfig, identity: Identity, ring: int) -> None:
        self.port = HostPort(config)
        super().__init__(identity, ring)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.link = link = self.link
        m.submodules.port = port = self.port
        wiring.connect(m, wiring.flipped(self.received), link.received)
        wiring.connect(m, link.transmitted, wiring.flipped(self.transmitted))
        wiring.connect(m, link.from_host, port.from_host)
        wiring.connect(m, port.to_host, link.to_host)
        raw, result = port.raw.payload, port.results.payload
        m.d.comb += [
            port.responses.valid.eq(port.commands.valid),
            port.commands.ready.eq(port.responses.ready),
            port.results.valid.eq(port.raw.valid & ~raw.filler),
            port.raw.ready.eq(port.results.ready | raw.filler),
            result.queries.eq(1 << raw.stream),
            result.carries.eq(0b11),
            result.newest.eq(raw.timestamp),
            result.oldest.eq(raw.timestamp - raw.attributes[1][:12]),
            result.sequences[0].eq(raw.sequence),
            result.sequences[1].eq(raw.attributes[0]),
            port.idle.eq(1),
            port.clear.eq(link.clear),
            link.cleared.eq(port.cleared),
            link.stranger.eq(self.stranger),
            self.opens.eq(link.opens),
            link.network.eq(self.network),
            link.counter.eq(port.counter),
            port.count.eq(link.count),
            self.open.eq(link.open),
            self.bad.eq(link.bad),
            self.idle.eq(1),
        ]
        return m
