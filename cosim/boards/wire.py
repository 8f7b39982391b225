"""An Ethernet cable to a simulated board: datagrams in packets in frames, from preamble to
checksum, as one side sends them and the other receives them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from seustream.hdl.boards.board import NetworkAddress

PREAMBLE = bytes([0x55] * 7 + [0xD5])
_SHORTEST, _CHECKSUM = 60, 4


@dataclass(frozen=True, slots=True)
class Packet:
    """A UDP datagram between a board and a host, which is known by its port and the last number of
    its address."""

    host: tuple[int, int]
    payload: bytes


def framed(frame: bytes) -> bytes:
    """Adds preamble, padding and checksum."""
    frame = frame.ljust(_SHORTEST, b"\0")
    return PREAMBLE + frame + zlib.crc32(frame).to_bytes(_CHECKSUM, "little")


def unframed(line: bytes) -> bytes | None:
    """Returns the frame without these, None if it is damaged."""
    body, check = line[len(PREAMBLE) : -_CHECKSUM], line[-_CHECKSUM:]
    whole = line.startswith(PREAMBLE) and zlib.crc32(body).to_bytes(_CHECKSUM, "little") == check
    return body if whole and len(body) >= _SHORTEST else None


def enclosed(packet: Packet, board: NetworkAddress) -> bytes:
    """Returns the frame of a packet to a board."""
    port, last = packet.host
    ip = bytes([*board.ip[:3], last])
    size = 8 + len(packet.payload)
    header = (
        struct.pack(">BBHHHBBH", 0x45, 0, 20 + size, 0, 0x4000, 64, 17, 0) + ip + bytes(board.ip)
    )
    header = header[:10] + internet_checksum(header).to_bytes(2, "big") + header[12:]
    datagram = struct.pack(">HHHH", port, board.port, size, 0) + packet.payload
    return framed(bytes(board.mac) + bytes([2, 0, *ip]) + b"\x08\x00" + header + datagram)


def opened(line: bytes) -> Packet | None:
    """Returns the packet in a frame from a board, if there is one and all of it is valid."""
    frame = unframed(line)
    if frame is None or frame[12:14] != b"\x08\x00" or frame[14] != 0x45 or frame[23] != 17:
        return None
    total, size = (int.from_bytes(frame[at : at + 2], "big") for at in (16, 38))
    if internet_checksum(frame[14:34]) or total != size + 20 or 14 + total > len(frame):
        return None
    port = int.from_bytes(frame[36:38], "big")
    return Packet((port, frame[33]), frame[42 : 34 + size])


def internet_checksum(data: bytes) -> int:
    """Returns the checksum; 0 for a header whose checksum is right."""
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def packed(line: bytes) -> bytes:
    """Packs a frame as the shim takes it."""
    return len(line).to_bytes(2, "little") + line


def unpacked(data: bytes) -> Iterator[bytes]:
    """Yields frames from the shim's format."""
    at = 0
    while at < len(data):
        end = at + 2 + int.from_bytes(data[at : at + 2], "little")
        yield data[at + 2 : end]
        at = end
