"""USB: the bytes of the host link over two bulk endpoints of a full-speed device, at pins of the FPGA.

The device is LUNA's: line coding, tokens, checksums, toggles, and the requests of an enumeration. What is
ours is what it says of itself, and the way between the clocks.
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
"""Ports at the line, as `UsbPort` has them."""
_DEPTH = 256
"""Bytes on their way between the clocks, each way."""


class UsbPort(wiring.Component):
    """pins <-> device with two endpoints <-> FIFOs <-> link

    The device is in the domains `usb`, of 12 MHz, a cycle a bit, and `usb_io`, of 48 MHz, in step with it.
    What a host sends waits in the host while there is no room for it. A packet goes out once it is full, or
    when no more is there.

    latency     a packet each way, and 4 cycles from clock to clock
    throughput  up to 1.2 million bytes a second, both ways together

    dp, dn           what is on the line
    driven           the line is the device's
    dp_out, dn_out   what it puts there
    pull_up          the device is there: pulls D+ up
    bytes, replies   of the link
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
            # A host's transfer ends with a packet that is not full, so one is sent when nothing follows.
            to_host.last.eq(going.r_level == 1),
            going.r_en.eq(to_host.ready),
        ]
        return m


def _device(line: Any) -> tuple[Any, Any, Any]:
    """Returns the device at a line, and the streams of its endpoints: from the host, and to it."""
    with warnings.catch_warnings():
        # It is written with a part of Amaranth that is to go.
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
            interface.bInterfaceClass = 0xFF  # of nobody's kind
            for address in (USB_ENDPOINT, 0x80 | USB_ENDPOINT):
                with interface.EndpointDescriptor() as endpoint:
                    endpoint.bEndpointAddress, endpoint.wMaxPacketSize = address, USB_PACKET
        device = USBDevice(bus=line)
        requests = StandardRequestHandler(descriptors)
        token = requests.interface.tokenizer
        # A request ends what is left of the one before. Else one whose last acknowledgement was lost would
        # be waited for until the power goes, and nothing else be answered.
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
    """USB <-> link, and what it leads to

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
