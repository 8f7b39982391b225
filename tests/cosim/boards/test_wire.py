"""Tests the frames around datagrams to and from a board against scapy."""

from __future__ import annotations

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from seustream.cosim.boards.build import ADDRESS
from seustream.cosim.boards.wire import Packet, enclosed, framed, opened, packed, unframed, unpacked
from seustream.hdl.boards.protocol import FrameKind, LinkFrame
from tests.cosim.boards.cable import mirror

BOARD, IP_OURS, IP_BOARD = "02:53:c0:a8:01:32", "192.168.1.10", "192.168.1.50"


def test_datagrams_are_those_of_scapy() -> None:
    payload = b"some frames"
    want = Ether(src="02:00:c0:a8:01:0a", dst=BOARD) / IP(
        src=IP_OURS, dst=IP_BOARD, id=0, flags="DF"
    ) / UDP(sport=5000, dport=ADDRESS.port, chksum=0) / Raw(payload)  # fmt: skip
    assert enclosed(Packet((5000, 10), payload), ADDRESS) == framed(bytes(want))
    board = mirror()
    open_frame = LinkFrame(FrameKind.OPEN, 77).encode()
    board.put(packed(enclosed(Packet((5000, 10), open_frame), ADDRESS)))
    board.run(6_000)
    (line,) = unpacked(board.take())
    answer = Ether(unframed(line))
    checks = answer[IP].chksum
    del answer[IP].chksum
    assert Ether(bytes(answer))[IP].chksum == checks
    assert (answer[IP].src, answer[IP].dst) == (IP_BOARD, IP_OURS)
    assert (answer[UDP].sport, answer[UDP].dport, answer[UDP].chksum) == (ADDRESS.port, 5000, 0)
    packet = opened(line)
    assert packet is not None
    assert packet.payload == bytes(answer[Raw])[: answer[UDP].len - 8]
    board.close()
