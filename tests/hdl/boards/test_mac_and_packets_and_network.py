"""Tests the Ethernet port of a board, at the PHY's clock: its throughput, what a bad or hostile
network does to it, ARP and ping. Packets are made and read by scapy, or by `wire`, which is checked
against scapy."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable

import numpy as np
import pytest
from amaranth.sim import Simulator, SimulatorContext
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

from seustream.cosim.boards.build import ADDRESS
from seustream.cosim.boards.simulated import SimulatedBoard
from seustream.cosim.boards.wire import (
    Packet,
    enclosed,
    framed,
    internet_checksum,
    packed,
    unframed,
    unpacked,
)
from seustream.cosim.link.processor import LinkProcessor
from seustream.cosim.link.session import LinkSession
from seustream.cosim.link.udp import AHEAD
from seustream.cosim.processor.bits import flatten, pack, unpack
from seustream.cosim.processor.device import RESULTS
from seustream.hdl.boards.network import DatagramWriter
from seustream.hdl.boards.protocol import COUNTERS, FLAG, FrameKind, LinkCounter, LinkFrame
from seustream.hdl.control import COMMAND, RESPONSE
from seustream.hdl.control_words import ControlOperation
from seustream.hdl.layouts import Layouts
from tests.cosim.boards.cable import CONFIG, Cable, mirror

LAYOUTS = Layouts(CONFIG)
RAW, RESULT = flatten(LAYOUTS.raw), flatten(LAYOUTS.result)
OURS, BOARD = "02:00:c0:a8:01:0a", "02:53:c0:a8:01:32"
IP_OURS, IP_BOARD = "192.168.1.10", "192.168.1.50"


def opened_processor(cable: Cable, seed: int = 0) -> tuple[LinkProcessor, LinkSession]:
    session = LinkSession(
        cable, wait=0.0002, patience=1.0, ahead=AHEAD, now=cable.now, chance=random.Random(seed)
    )
    return LinkProcessor(session, CONFIG), session


def mirrored(processor: LinkProcessor, count: int, seed: int) -> None:
    """Sends tuples of two columns of 32 bits, each of which gives a result at once."""
    chance = np.random.default_rng(seed)
    none = np.zeros(count, np.uint64)
    stream = chance.integers(0, 2, count).astype(np.uint64)
    sequence = none.copy()
    for each in (0, 1):
        sequence[stream == each] = np.arange((stream == each).sum())
    columns = {
        "stream": stream,
        "admit": none + np.uint64(1),
        "timestamp": np.cumsum(chance.integers(0, 3, count)).astype(np.uint64),
        "sequence": sequence,
        "attributes.0": chance.integers(0, 1 << 32, count).astype(np.uint64),
        "attributes.1": chance.integers(0, 1 << 32, count).astype(np.uint64),
        "attributes.2": none,
        "attributes.3": none,
    }
    processor.run(pack(RAW, columns, count), 0)
    got = unpack(RESULT, processor.take(RESULTS, 1))
    oldest = columns["timestamp"] - (columns["attributes.1"] & np.uint64(0xFFF))
    oldest &= np.uint64((1 << CONFIG.timestamp_width) - 1)
    for name, want in (
        ("queries", np.uint64(1) << stream),
        ("carries", none + np.uint64(3)),
        ("newest", columns["timestamp"]),
        ("oldest", oldest),
        ("sequences.0", sequence),
        ("sequences.1", columns["attributes.0"]),
    ):
        assert np.array_equal(got[name], want), name


@pytest.mark.parametrize("clock", [125.0, 100.0])
@pytest.mark.parametrize(
    ("share", "count", "rate"),
    [(0.0, 20_000, 4e6), (0.001, 20_000, 4e6), (0.01, 4_000, 1e6), (0.1, 1_000, 1e4)],
)
def test_four_million_tuples_a_second_each_way(
    share: float, count: int, rate: float, clock: float
) -> None:
    """Rates are in the time of the simulated PHY, with this share lost, repeated, late and damaged;
    and with a processor that is slower than its port."""
    seed = 1
    print(f"seed {seed}")
    cable = Cable(mirror(clock), share, seed)
    processor, session = opened_processor(cable)
    before = cable.now()
    mirrored(processor, count, seed)
    reached = count / (cable.now() - before)
    print(f"{reached / 1e6:.2f} M tuples/s, {session.resent} times again, {cable.happened}")
    assert reached > rate
    assert bool(session.resent) == all(cable.happened.values()) == bool(share)
    assert not counted(processor)[LinkCounter.OVERFLOWS]
    cable.close()


def said(board: SimulatedBoard, frame: Ether) -> list[Ether]:
    """Returns the answers of the board to a frame."""
    board.put(packed(framed(bytes(frame))))
    board.run(6_000)
    lines = [unframed(line) for line in unpacked(board.take())]
    assert None not in lines, "preamble, length or checksum"
    return [Ether(line) for line in lines]


def test_arp_and_ping_are_answered() -> None:
    board = mirror()
    asks = ARP(op=1, hwsrc=OURS, psrc=IP_OURS, pdst=IP_BOARD)
    (answer,) = said(board, Ether(src=OURS, dst="ff:ff:ff:ff:ff:ff") / asks)
    assert (answer.dst, answer.src, answer[ARP].op) == (OURS, BOARD, 2)
    assert (answer[ARP].hwsrc, answer[ARP].psrc) == (BOARD, IP_BOARD)
    assert (answer[ARP].hwdst, answer[ARP].pdst) == (OURS, IP_OURS)
    other = ARP(op=1, hwsrc=OURS, psrc=IP_OURS, pdst="192.168.1.51")
    assert said(board, Ether(src=OURS, dst="ff:ff:ff:ff:ff:ff") / other) == []
    chance = random.Random(1)
    for size in (0, 1, 17, 18, 19, 700, 1472):
        for _ in range(6):
            echo = ICMP(id=chance.getrandbits(16), seq=chance.getrandbits(16))
            ping = IP(src="10.1.2.3", dst=IP_BOARD) / echo / Raw(chance.randbytes(size))
            (answer,) = said(board, Ether(src=OURS, dst=BOARD) / ping)
            assert (answer.dst, answer.src, answer[IP].dst) == (OURS, BOARD, "10.1.2.3")
            packet = bytes(answer)[14 : 14 + 28 + size]
            assert not internet_checksum(packet[:20])
            assert not internet_checksum(packet[20:] + bytes(size % 2))
            assert packet[20] == 0
            assert packet[24:] == bytes(IP(bytes(ping)))[24:]
    board.close()


OTHER, IP_OTHER = "0c:11:12:13:14:15", "192.168.1.11"


def datagram(mac: str, ip: str, port: int, payload: bytes) -> bytes:
    """Returns a frame with a datagram to the board."""
    to_board = Ether(src=mac, dst=BOARD) / IP(src=ip, dst=IP_BOARD)
    return framed(bytes(to_board / UDP(sport=port, dport=ADDRESS.port) / Raw(payload)))


def opened_to(board: SimulatedBoard, session: int) -> list[tuple[str, str, int]]:
    """Returns to whom the board says that a session is open."""
    board.run(30_000)
    found = []
    for line in unpacked(board.take()):
        frame = Ether(unframed(line))
        kind, number = frame[UDP].load[1], int.from_bytes(frame[UDP].load[2:4], "little")
        if (kind, number) == (FrameKind.OPENED, session):
            found.append((frame.dst, frame[IP].dst, frame[UDP].dport))
    return found


@pytest.mark.parametrize("clock", [125.0, 100.0, 80.0, 62.5])
def test_a_host_that_opens_is_heard_among_the_datagrams_of_another(clock: float) -> None:
    """The processor is so slow that the sender of the next datagram is right behind the frame that opens."""
    for padding in range(4):
        board = mirror(clock)
        board.put(packed(datagram(OURS, IP_OURS, 1111, LinkFrame(FrameKind.OPEN, 1).encode())))
        board.run(5_000)
        for _ in range(2):
            board.put(packed(datagram(OURS, IP_OURS, 1111, bytes(1472))))
        opens = bytes([FLAG]) * padding + LinkFrame(FrameKind.OPEN, 2).encode()
        board.put(packed(datagram(OTHER, IP_OTHER, 2222, opens)))
        board.put(packed(datagram(OURS, IP_OURS, 1111, bytes(20))))
        assert opened_to(board, 2) == [(OTHER, IP_OTHER, 2222)], padding
        board.close()


def test_a_host_whose_address_came_damaged_is_heard_when_it_asks_again() -> None:
    board = mirror()
    frame = datagram(OTHER, IP_OTHER, 2222, LinkFrame(FrameKind.OPEN, 2).encode())
    damaged = bytearray(frame)
    damaged[frame.index(bytes.fromhex(OTHER.replace(":", "")))] ^= 1
    board.put(packed(bytes(damaged)))
    assert opened_to(board, 2) != [(OTHER, IP_OTHER, 2222)]
    board.put(packed(frame))
    assert opened_to(board, 2) == [(OTHER, IP_OTHER, 2222)]
    board.close()


@pytest.mark.parametrize("cut", [1, 2, 30, 100])
def test_a_frame_cut_off_holds_up_at_most_the_next(cut: int) -> None:
    """The link is reset, but not its port."""
    writer, sizes = DatagramWriter(), list[int]()
    cut_off = LinkFrame(FrameKind.DATA, 7, 0, 0, 8192, bytes(200)).encode()[:cut]
    whole = LinkFrame(FrameKind.OPENED, 7, 0, 0, 8192, bytes(28)).encode()

    async def driven(ctx: SimulatorContext) -> None:
        ctx.set(writer.going.ready, 1)
        ctx.set(writer.ready.ready, 1)
        for frame in (cut_off, whole, whole, whole):
            waiting = list(frame)
            for _ in range(len(frame) + 100):
                ctx.set(writer.bytes.valid, bool(waiting))
                ctx.set(writer.bytes.payload, waiting[0] if waiting else 0)
                *_, taken, leaves, size = await ctx.tick().sample(
                    writer.bytes.ready, writer.ready.valid, writer.ready.payload.size
                )
                waiting = waiting[bool(taken and waiting) :]
                sizes.extend([size] * leaves)

    simulator = Simulator(writer)
    simulator.add_clock(1e-8)
    simulator.add_testbench(driven)
    simulator.run()
    assert sum(sizes) == cut + 3 * len(whole)
    assert sizes[-1] == len(whole)


FLOOD = framed(
    bytes(Ether(src=OURS, dst="ff:ff:ff:ff:ff:ff") / ARP(hwsrc=OURS, psrc=IP_OURS, pdst=IP_BOARD))
)
"""An ARP request, to be sent as fast as the cable carries it."""


def hostile(chance: random.Random) -> bytes:
    """Returns a frame that should never be sent: noise, cut off, with a wrong bit, wrong lengths,
    wrong kinds, or a whole one of another session, from another host or in the name of ours."""
    payload = chance.randbytes(chance.randrange(1400))
    ours = chance.random() < 0.5
    spoofed = LinkFrame(
        chance.randrange(2, 8),
        chance.getrandbits(16),
        *(chance.getrandbits(16) for _ in range(3)),
        payload=payload[: chance.randrange(249)],
    ).encode()
    host = (5000, 10) if ours else (chance.getrandbits(16), chance.getrandbits(8))
    good = enclosed(Packet(host, spoofed), ADDRESS)
    plain = bytearray(good[8:-4])

    def lengths() -> bytes:
        plain[chance.choice([16, 17, 38, 39])] = chance.getrandbits(8)
        plain[24:26] = bytes(2)
        plain[24:26] = internet_checksum(bytes(plain[14:34])).to_bytes(2, "big")
        return framed(bytes(plain))

    def header() -> bytes:
        plain[chance.randrange(12, 42)] ^= 1 << chance.randrange(8)
        return framed(bytes(plain))

    def damaged() -> bytes:
        at = chance.randrange(len(good))
        return good[:at] + bytes([good[at] ^ 1 << chance.randrange(8)]) + good[at + 1 :]

    def asked() -> bytes:
        mac = bytes(ADDRESS.mac) if chance.random() < 0.5 else b"\xff" * 6
        kind = chance.choice([b"\x08\x06", b"\x08\x00\x45\x00"])
        return framed(mac + chance.randbytes(6) + kind + payload[:1480])

    kinds: tuple[Callable[[], bytes], ...] = (
        lambda: good,
        lambda: good[: chance.randrange(1, len(good))],
        lambda: framed(payload + bytes(20)),
        lambda: chance.randbytes(chance.randrange(1, 300)),
        lambda: framed(bytes(ADDRESS.mac) + payload * 3)[:4000],
        lambda: FLOOD,
        lengths,
        header,
        damaged,
        asked,
    )
    return chance.choice(kinds)()


def among_strangers(seed: int, rounds: int, packets: int) -> dict[LinkCounter, int]:
    """Sends tuples and checks their results, with this many hostile packets before each round, all
    of which the board must have counted; returns the counts."""
    chance = random.Random(seed)
    cable = Cable(mirror())
    processor, _ = opened_processor(cable)
    sent = dict.fromkeys(("whole", "broken", "nothing"), 0)
    for number in range(rounds):
        for _ in range(packets):
            frame = hostile(chance)
            sent[_judged(frame)] += 1
            cable.board.put(packed(frame))
        if chance.random() < 0.5:  # otherwise they come while the host is at work
            while cable.board.waiting:
                cable.board.run(20_000)
        mirrored_next(processor, number)
    ours = cable.sent
    counts = counted(processor)
    assert counts[LinkCounter.BROKEN] == sent["broken"]
    whole = counts[LinkCounter.WHOLE] - sent["whole"]
    assert ours < whole <= cable.sent
    assert counts[LinkCounter.STRANGERS] > 0 < counts[LinkCounter.SESSIONS]
    assert counts[LinkCounter.ASKED] > 0 < counts[LinkCounter.PASSED]
    assert sum(sent.values()) == rounds * packets
    cable.close()
    return counts


def _judged(line: bytes) -> str:
    """Classifies a frame by its beginning and its checksum alone."""
    begun = line.lstrip(b"\x55")
    body, check = begun[1:-4], begun[-4:]
    if not begun:
        return "nothing"
    whole = begun[0] == 0xD5 and zlib.crc32(body).to_bytes(4, "little") == check
    return "whole" if whole else "broken"


def counted(processor: LinkProcessor) -> dict[LinkCounter, int]:
    found = {}
    for counter in LinkCounter:
        fields = {"operation": ControlOperation.READ, "address": COUNTERS + counter}
        columns = {name: np.array([value], np.uint64) for name, value in fields.items()}
        _, answer = processor.commands(pack(flatten(COMMAND), columns, 1), 0)
        found[counter] = int(unpack(flatten(RESPONSE), answer[None])["data"][0])
    return found


def mirrored_next(processor: LinkProcessor, number: int) -> None:
    """Sends a few tuples, later than those before."""
    columns = {name: np.arange(20, dtype=np.uint64) for name in RAW}
    columns |= {"stream": np.zeros(20, np.uint64), "filler": np.zeros(20, np.uint64)}
    columns |= {
        name: columns[name] + np.uint64(1000 * number) for name in ("timestamp", "sequence")
    }
    columns["admit"] = np.ones(20, np.uint64)
    processor.run(pack(RAW, columns, 20), 0)
    got = unpack(RESULT, processor.take(RESULTS, 1))
    assert np.array_equal(got["newest"], columns["timestamp"])
    assert np.array_equal(got["sequences.0"], columns["sequence"])


def test_strangers_change_nothing() -> None:
    seed = 11
    print(f"seed {seed}")
    assert among_strangers(seed, 6, 60)[LinkCounter.WHOLE] > 100
