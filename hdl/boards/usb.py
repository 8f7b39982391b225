"""USB: carries the bytes of the host link over two bulk endpoints of a full-speed device, at pins of the FPGA.

The device is LUNA's: line coding, tokens, checksums, toggles, and the requests of the enumeration. Ours are its
descriptors and the clock domain crossings.
"""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.boards.linked import Linked
from seustream.hdl.boards.protocol import (
    USB_ENDPOINT,
    USB_MAKER,
    USB_PACKET,
    USB_PRODUCT,
    USB_TITLE,
    USB_VENDOR,
)

WIRES = {
    "dp": In(1), "dn": In(1), "driven": Out(1), "dp_out": Out(1), "dn_out": Out(1), "pull_up": Out(1),
}  # fmt: skip
"""Ports at the line, as in `UsbPort`."""
_DEPTH = 256
"""Bytes in the clock domain crossing, in each direction."""


class UsbPort(wiring.Component):
    """pins <-> device with two endpoints <-> FIFOs <-> link

    The device is in the domains `usb`, at 12 MHz, one cycle per bit, and `usb_io`, at 48 MHz, in phase with it.
    Back-pressure reaches the host: its bytes wait there while there is no room for them. A packet is sent once it
    is full, or when there are no more bytes.

    latency     a packet each way, plus 4 cycles for the clock domain crossing
    throughput  up to 1.2 million bytes per second, both directions together

    dp, dn           in: levels of the line
    driven           out: the device drives the line
    dp_out, dn_out   out: levels that it drives
    pull_up          out: pull D+ up, because the device is present
    bytes, replies   out, in: streams to and from the link
    """

    def __init__(self) -> None:
        super().__init__(
            {
                **WIRES,
                "bytes": Out(stream.Signature(8)),
                "replies": In(stream.Signature(8)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        line = SimpleNamespace(
            d_p=SimpleNamespace(i=self.dp, o=self.dp_out, oe=self.driven),
            d_n=SimpleNamespace(i=self.dn, o=self.dn_out, oe=Signal()),
            pullup=SimpleNamespace(o=self.pull_up),
        )
        device, from_host, to_host = _device(line)
        m.submodules.device = device
        m.submodules.coming = coming = fifo.AsyncFIFOBuffered(
            width=8, depth=_DEPTH, w_domain="usb", r_domain="sync"
        )
        m.submodules.going = going = fifo.AsyncFIFO(
            width=8, depth=_DEPTH, w_domain="sync", r_domain="usb"
        )
        m.d.comb += [
            device.connect.eq(1),
            coming.w_data.eq(from_host.payload),
            coming.w_en.eq(from_host.valid),
            from_host.ready.eq(coming.w_rdy),
            self.bytes.payload.eq(coming.r_data),
            self.bytes.valid.eq(coming.r_rdy),
            coming.r_en.eq(self.bytes.ready),
            going.w_data.eq(self.replies.payload),
            going.w_en.eq(self.replies.valid),
            self.replies.ready.eq(going.w_rdy),
            to_host.payload.eq(going.r_data),
            to_host.valid.eq(going.r_rdy),
            # A transfer to the host ends with a short packet, so one is sent when nothing follows.
            to_host.last.eq(going.r_level == 1),
            going.r_en.eq(to_host.ready),
        ]
        return m


def _device(line: Any) -> tuple[Any, Any, Any]:
    """Returns the device at a line, and the streams of its endpoints: from the host, and to it."""
    with warnings.catch_warnings():
        # LUNA uses a part of Amaranth that is deprecated.
        warnings.simplefilter("ignore")
        from luna.gateware.usb.request.standard import StandardRequestHandler
        from luna.gateware.usb.usb2.control import USBControlEndpoint
        from luna.gateware.usb.usb2.device import USBDevice
        from luna.gateware.usb.usb2.endpoints.stream import (
            USBStreamInEndpoint,
            USBStreamOutEndpoint,
        )
        from usb_protocol.emitters import DeviceDescriptorCollection

        descriptors = DeviceDescriptorCollection()
        with descriptors.DeviceDescriptor() as own:
            own.idVendor, own.idProduct = USB_VENDOR, USB_PRODUCT
            own.iManufacturer, own.iProduct = USB_MAKER, USB_TITLE
            own.bNumConfigurations = 1
        with (
            descriptors.ConfigurationDescriptor() as configuration,
            configuration.InterfaceDescriptor() as interface,
        ):
            interface.bInterfaceNumber = 0
            interface.bInterfaceClass = 0xFF  # vendor-specific
            for address in (USB_ENDPOINT, 0x80 | USB_ENDPOINT):
                with interface.EndpointDescriptor() as endpoint:
                    endpoint.bEndpointAddress, endpoint.wMaxPacketSize = address, USB_PACKET
        device = USBDevice(bus=line)
        requests = StandardRequestHandler(descriptors)
        token = requests.interface.tokenizer
        # A new request aborts the one before. Otherwise the device would wait for ever for a request whose last
        # acknowledgement was lost, and would answer nothing else.
        anew = ResetInserter({"usb": token.new_token & token.is_setup})
        control = USBControlEndpoint(utmi=device.utmi)
        control.add_request_handler(anew(requests))
        device.add_endpoint(control)
        ends = {"endpoint_number": USB_ENDPOINT, "max_packet_size": USB_PACKET}
        from_host, to_host = USBStreamOutEndpoint(**ends), USBStreamInEndpoint(**ends)
        device.add_endpoint(from_host)
        device.add_endpoint(to_host)
    return device, from_host.stream, to_host.stream


class UsbLinked(wiring.Component):
    """USB <-> link, and what the link leads to

    latency     that of its parts
    throughput  the slowest of them, which is the line

    dp, dn, driven, dp_out, dn_out, pull_up   of `UsbPort`
    open, bad, idle   of `Linked`
    """

    def __init__(self, linked: Linked) -> None:
        self.linked = linked
        super().__init__(
            {
                **WIRES,
                "open": Out(1),
                "bad": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.usb = usb = UsbPort()
        m.submodules.linked = linked = self.linked
        wiring.connect(m, usb.bytes, linked.received)
        wiring.connect(m, linked.transmitted, usb.replies)
        m.d.comb += [
            usb.dp.eq(self.dp),
            usb.dn.eq(self.dn),
            self.driven.eq(usb.driven),
            self.dp_out.eq(usb.dp_out),
            self.dn_out.eq(usb.dn_out),
            self.pull_up.eq(usb.pull_up),
            self.open.eq(linked.open),
            self.bad.eq(linked.bad),
            self.idle.eq(linked.idle),
        ]
        return m
