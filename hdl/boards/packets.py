"""Packets of a network: answers ARP and ping, and passes UDP datagrams to and from the host link.

Byte positions in a frame are those of Ethernet, IPv4 without options, and UDP: 14, 20 and 8 bytes of header.
"""

from __future__ import annotations

from amaranth.hdl import Array, C, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.boards.board import NetworkAddress
from seustream.hdl.boards.mac import CHECKSUM, SHORTEST

MAC, TYPE, IP, PAYLOAD = 6, 12, 14, 42
"""Byte positions in a frame: of the sender's address, the type, the IP header and the UDP payload."""
IPV4, ARP = 0x0800, 0x0806
ICMP, UDP = 1, 17
SENDER = data.StructLayout({"mac": 48, "ip": 32, "port": 16})
"""Sender of a datagram; the first byte of each field is the lowest."""
SENDER_BYTES = SENDER.size // 8
LENGTH_BITS = 11
_SENDER_PLACES = (*range(6, 12), *range(26, 30), *range(34, 36))


def _number(octets: tuple[int, ...]) -> int:
    """Converts octets in the order in which they arrive: the first is the lowest."""
    return int.from_bytes(bytes(octets), "little")


class PacketReceiver(wiring.Component):
    """Examines incoming frames. A request by ARP or ping is kept, one frame at a time, until it is
    answered. For a datagram to the host link, the sender is output before the payload. It is output before the
    rest of the frame has been examined, so that the reader must start anew at each `begin`.

    latency     1 cycle
    throughput  a byte per cycle

    begin, data, come, good   in: of the incoming frame, as in `FrameReceiver`
    bytes       out: stream of a sender, then the payload of a datagram; does not wait
    asked       out: a request waits for its answer
    length      out: length of that frame, without checksum
    arp         out: it is an ARP request, otherwise a ping
    check       out: for a ping, the checksum of its answer
    place, read in: a byte position in that frame; pulse: read it
    byte        out: the byte read by the pulse before the last one, from the next cycle on
    answered    in: pulse: the request may be discarded
    kept        out: pulse: a request has ended and will be answered
    datagram    out: pulse: a datagram to the host link has ended
    dropped     out: pulse: a frame has ended that was neither, or a request while another waits
    """

    def __init__(self, address: NetworkAddress) -> None:
        self.address = address
        super().__init__(
            {
                "begin": In(1),
                "data": In(8),
                "come": In(1),
                "good": In(1),
                "bytes": Out(stream.Signature(data.StructLayout({"byte": 8, "begin": 1}))),
                "asked": Out(1),
                "length": Out(LENGTH_BITS),
                "arp": Out(1),
                "check": Out(16),
                "place": In(LENGTH_BITS),
                "read": In(1),
                "byte": Out(8),
                "answered": In(1),
                "kept": Out(1),
                "datagram": Out(1),
                "dropped": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.asking = kept = memory.Memory(shape=8, depth=1 << LENGTH_BITS, init=[])
        write, read = kept.write_port(), kept.read_port()
        place = Signal(LENGTH_BITS)  # of the current byte; it saturates at the last one
        byte = self.data
        before = Signal(8)  # the byte before it
        pair = Signal(16)
        m.d.comb += pair.eq(Cat(byte, before))
        with m.If(self.come):
            m.d.sync += before.eq(byte)
            with m.If(~place.all()):
                m.d.sync += place.eq(place + 1)
        with m.If(self.begin):
            m.d.sync += place.eq(0)

        # For each kind that the frame might be of: a condition that was violated so far.
        not_mine, everyone = Signal(), Signal(init=1)
        no_arp, no_ip, no_udp, no_ping = Signal(), Signal(), Signal(), Signal()
        total, payload = Signal(16), Signal(16)  # length in the IP header; bytes of payload to come
        folded, header = Signal(16), Signal(17)
        m.d.comb += folded.eq(header[:16] + header[16])

        def must(at: int, value: int, no: Signal) -> None:
            with m.If((place == at) & (byte != value)):
                m.d.sync += no.eq(1)

        with m.If(self.come):
            for at, value in enumerate(self.address.mac):
                must(at, value, not_mine)
            with m.If((place < 6) & (byte != 0xFF)):
                m.d.sync += everyone.eq(0)
            for at, value in enumerate(
                (ARP >> 8, ARP & 255, 0, 1, IPV4 >> 8, IPV4 & 255, 6, 4, 0, 1)
            ):
                must(TYPE + at, value, no_arp)
            for at, value in ((TYPE, IPV4 >> 8), (TYPE + 1, IPV4 & 255), (IP, 0x45), (21, 0)):
                must(at, value, no_ip)
            with m.If((place == 20) & ((byte & 0x3F) != 0)):  # in fragments
                m.d.sync += no_ip.eq(1)
            must(23, UDP, no_udp)
            must(23, ICMP, no_ping)
            for at, value in enumerate(self.address.ip):
                must(30 + at, value, no_ip)
                must(38 + at, value, no_arp)
            for at in (34, 35):
                must(at, (8, 0)[at - 34], no_ping)
            must(36, self.address.port >> 8, no_udp)
            must(37, self.address.port & 255, no_udp)
            with m.If(place == 17):
                m.d.sync += total.eq(pair)
            # Ones' complement sum, sixteen bits at a time: the carry is added again at the bottom.
            with m.If((place >= IP) & (place < 34) & place[0]):
                m.d.sync += header.eq(folded + pair)
            with m.If((place == 34) & (folded != 0xFFFF)):
                m.d.sync += no_ip.eq(1)
            with m.If(place == 39):
                m.d.sync += payload.eq(pair - 8)
                with m.If((pair < 8) | (pair + 20 != total)):
                    m.d.sync += no_udp.eq(1)
        with m.If(self.begin):
            m.d.sync += [
                s.eq(0) for s in (not_mine, no_arp, no_ip, no_udp, no_ping, header, payload)
            ]
            m.d.sync += everyone.eq(1)

        # Datagrams.
        names_sender = Signal()
        m.d.comb += names_sender.eq(Cat(place == at for at in _SENDER_PLACES).any())
        is_payload = Signal()
        m.d.comb += is_payload.eq(
            (place >= PAYLOAD) & (payload != 0) & ~(not_mine | no_ip | no_udp)
        )
        with m.If(self.come & is_payload):
            m.d.sync += payload.eq(payload - 1)
        m.d.sync += [
            self.bytes.valid.eq(self.come & (names_sender | is_payload)),
            self.bytes.payload.byte.eq(byte),
            self.bytes.payload.begin.eq(place == _SENDER_PLACES[0]),
        ]

        # Requests.
        asks = Signal()
        m.d.comb += [
            asks.eq((~no_arp & (~not_mine | everyone)) | ~(not_mine | no_ip | no_ping)),
            write.en.eq(self.come & ~self.asked),
            write.addr.eq(place),
            write.data.eq(byte),
            read.addr.eq(self.place),
            read.en.eq(self.read),
        ]
        with m.If(self.read):  # a block RAM takes most of a cycle to output a byte
            m.d.sync += self.byte.eq(read.data)
        fits = (place >= SHORTEST + CHECKSUM) & (place <= 1514 + CHECKSUM)
        # The type of an answer is smaller by 8 than that of the ping, so its checksum is larger; end-around carry.
        grown = Signal(17)
        m.d.comb += grown.eq(pair + 0x0800)
        with m.If(self.come & (place == 37) & ~self.asked):
            m.d.sync += self.check.eq(grown[:16] + grown[16])
        with m.If(self.answered):
            m.d.sync += self.asked.eq(0)
        m.d.sync += [self.kept.eq(0), self.datagram.eq(0), self.dropped.eq(0)]
        # A frame that began while a request waited was not kept.
        whole = Signal()
        with m.If(self.begin):
            m.d.sync += whole.eq(~self.asked)
        with m.If(self.good):
            with m.If(asks & fits & whole):
                m.d.sync += [
                    self.asked.eq(1),
                    self.kept.eq(1),
                    self.arp.eq(~no_arp),
                    self.length.eq(place - CHECKSUM),
                ]
            with m.Elif(asks | not_mine | no_ip | no_udp):
                m.d.sync += self.dropped.eq(1)
            with m.Else():
                m.d.sync += self.datagram.eq(1)
        return m


class PacketTransmitter(wiring.Component):
    """Sends answers first, then datagrams, one frame at a time.

    latency     4 cycles to a frame's first byte
    throughput  a byte per cycle, less 28 cycles per frame

    asked, length, arp, check, place, read, byte, answered   of the packet receiver
    host        in: destination of the next datagram
    size        in: bytes of its payload
    ready       in: this datagram is complete
    taken       out: pulse: it has been sent
    payload, more   in, out: its bytes, one in each cycle with `more`
    bytes, last out: stream of the bytes of a frame, to the frame transmitter
    """

    def __init__(self, address: NetworkAddress) -> None:
        self.address = address
        super().__init__(
            {
                "asked": In(1),
                "length": In(LENGTH_BITS),
                "arp": In(1),
                "check": In(16),
                "place": Out(LENGTH_BITS),
                "read": Out(1),
                "byte": In(8),
                "answered": Out(1),
                "host": In(SENDER),
                "size": In(LENGTH_BITS),
                "ready": In(1),
                "taken": Out(1),
                "payload": In(8),
                "more": Out(1),
                "bytes": Out(stream.Signature(8)),
                "last": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        own_mac, own_ip = self.address.mac, self.address.ip
        after = Signal(LENGTH_BITS, init=1)  # position of the byte after the current one
        header = Signal(8 * PAYLOAD)
        left = Signal(LENGTH_BITS)
        host_mac, host_ip, host_port = self.host.mac, self.host.ip, self.host.port
        total = Signal(16)
        summed, folded = Signal(19), Signal(17)
        check = Signal(16)

        def big(low_first: Value) -> Value:
            """Swaps the bytes, so that the first one is the highest."""
            return Cat(low_first[8:16], low_first[:8])

        # For an answer: the position in the request that its next byte is copied from. The position is known a byte
        # before it is read, and the byte is read one before it is sent: the memory has registers on both sides.
        sought, turned = Signal(LENGTH_BITS, init=1), Signal(LENGTH_BITS)
        m.d.comb += turned.eq(sought)
        with m.If(sought < MAC):
            m.d.comb += turned.eq(sought + MAC)
        with m.Elif(self.arp & (sought >= 32) & (sought < PAYLOAD)):
            m.d.comb += turned.eq(sought - 10)
        with m.Elif(~self.arp & (sought >= 30) & (sought < 34)):
            m.d.comb += turned.eq(sought - 4)
        seeks = Signal()
        place = Signal(LENGTH_BITS, init=MAC)
        with m.If(seeks):
            m.d.sync += [place.eq(turned), sought.eq(sought + 1)]
        m.d.comb += self.place.eq(place)
        known = Array(Const(value, 8) for value in (*own_mac, 0, 0, *own_ip, 0, 0, 0, 0))
        which = Signal(4)
        inserts, inserted = Signal(), Signal(8)  # of the byte after the current one
        m.d.comb += inserted.eq(known[which])
        with m.If((after >= MAC) & (after < 2 * MAC)):
            m.d.comb += [inserts.eq(1), which.eq(after - MAC)]
        with m.Elif(self.arp & (after >= 22) & (after < 28)):
            m.d.comb += [inserts.eq(1), which.eq(after - 22)]
        with m.Elif(self.arp & (after >= 28) & (after < 32)):
            m.d.comb += [inserts.eq(1), which.eq(after - 28 + 8)]
        with m.Elif(~self.arp & (after >= 26) & (after < 30)):
            m.d.comb += [inserts.eq(1), which.eq(after - 26 + 8)]
        for arp, place_of, value in (
            (1, 21, C(2, 8)),
            (0, 34, C(0, 8)),
            (0, 36, self.check[8:]),
            (0, 37, self.check[:8]),
        ):
            with m.If((self.arp == arp) & (after == place_of)):
                m.d.comb += [inserts.eq(1), inserted.eq(value)]
        ours, own = Signal(), Signal(8)  # the current byte is not copied from the request
        answer = Mux(ours, own, self.byte)

        sends = Signal()  # a datagram, otherwise an answer
        is_payload, is_last = Signal(), Signal()  # of the current byte
        m.d.comb += [
            self.bytes.payload.eq(Mux(sends, Mux(is_payload, self.payload, header[:8]), answer)),
            self.last.eq(is_last),
        ]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += [self.read.eq(1), seeks.eq(self.asked)]
                m.d.sync += [
                    sends.eq(~self.asked),
                    left.eq(Mux(self.asked, self.length, self.size + PAYLOAD)),
                    is_payload.eq(0),
                    is_last.eq(0),
                    total.eq(self.size + 28),
                    summed.eq(big(host_ip[:16]) + big(host_ip[16:])),
                ]
                with m.If(self.asked):
                    m.next = "FIRST"
                with m.Elif(self.ready):
                    m.next = "SUM"
            with m.State("FIRST"):  # byte of an answer; the next one is being read
                m.d.comb += [self.read.eq(1), seeks.eq(1)]
                m.next = "FRAME"
            with m.State("SUM"):
                constant = 0x4500 + 0x4000 + 0x4000 + UDP
                constant += (own_ip[0] << 8) + own_ip[1] + (own_ip[2] << 8) + own_ip[3]
                m.d.sync += summed.eq(summed + total + constant)
                m.next = "FOLD"
            with m.State("FOLD"):
                m.d.sync += folded.eq(summed[:16] + summed[16:])
                m.next = "HEADER"
            with m.State("HEADER"):
                m.d.comb += check.eq(~(folded[:16] + folded[16]))
                port = self.address.port
                length = Signal(16)
                m.d.comb += length.eq(total - 20)
                m.d.sync += header.eq(
                    Cat(
                        host_mac,
                        C(_number(own_mac), 48),
                        C(_number((IPV4 >> 8, IPV4 & 255, 0x45, 0)), 32),
                        big(total),
                        C(_number((0, 0, 0x40, 0, 64, UDP)), 48),
                        big(check),
                        C(_number(own_ip), 32),
                        host_ip,
                        C(_number((port >> 8, port & 255)), 16),
                        host_port,
                        big(length),
                        C(0, 16),
                    )
                )
                m.next = "FRAME"
            with m.State("FRAME"):
                m.d.comb += self.bytes.valid.eq(1)
                with m.If(self.bytes.ready):
                    m.d.comb += [self.read.eq(1), seeks.eq(1), self.more.eq(is_payload)]
                    m.d.sync += [
                        after.eq(after + 1),
                        ours.eq(inserts),
                        own.eq(inserted),
                        left.eq(left - 1),
                        is_last.eq(left == 2),
                        header.eq(header >> 8),
                    ]
                    with m.If(after == PAYLOAD):
                        m.d.sync += is_payload.eq(sends)
                    with m.If(is_last):
                        m.d.comb += [self.answered.eq(~sends), self.taken.eq(sends)]
                        m.next = "GAP"
            with m.State("GAP"):  # the receiver discards the request that was answered
                m.d.sync += [after.eq(1), ours.eq(0), sought.eq(1), place.eq(MAC)]
                m.next = "IDLE"
        return m
