"""Frames and messages of the host link, the same for every board.

*Bytes.* A frame is enclosed by two flags; a flag or an escape within it is escaped.
After any damage, the next flag therefore restores synchronization.

    FLAG | kind | session | sequence | ack | credit | length | payload | CRC-32 | FLAG

*Stream.* Each side sends a stream of bytes, cut into frames at any point. `sequence` is the
place in the stream of the payload's first byte, `ack` the place of the first byte not yet received from
the other side, and the other side may send up to `ack + credit`. All three count modulo
2^16. A frame that is not the next one is dropped; a side whose bytes were not acknowledged sends them
again.

*Time.* Only the host has timeouts. When an expected answer does not come, it asks (`ASK`): the
board goes back to the last byte that the host acknowledged, sends again from there, and acknowledges. The host
also asks when it receives a frame that is not the next one. When the board receives one, it sends a `GAP`, once, and
the host sends again from there. The board never retransmits of its own accord.

*Sessions.* The host opens a session under a number of its own (`OPEN`); the board drops everything in
flight, and then answers `OPENED` with its identity. A frame of another session is answered
`LOST`, so that a host notices a board that was reset.

*Messages* are the content of the streams (`seustream.hdl.boards.messages`).
"""

from __future__ import annotations

import enum
import zlib
from dataclasses import dataclass

FLAG, ESCAPE, ESCAPED = 0x7E, 0x7D, 0x20
"""An escaped byte is sent as ESCAPE, followed by its XOR with ESCAPED."""

PLACES = 1 << 16
"""Number of bytes after which places in a stream wrap around."""
MOST, LEAST, STEP = 248, 16, 8
"""Maximum payload of a frame, in bytes. A side that has to send again halves the length of its frames, down
to LEAST, because on a bad line most short frames get through and hardly any long ones; with each
acknowledgement of something new they grow by STEP."""
RING = 2048
"""Bytes that a board keeps in each direction behind a serial port, in a block RAM: a round trip of 7 ms at
3 megabaud, of which a USB port takes 1 or 2 ms."""
NETWORK_RING = 8192
"""The same behind a network port: a round trip of 70 microseconds at a gigabit."""
HEADER, TRAILER = 10, 4
LONGEST = 2 * (HEADER + MOST + TRAILER) + 2
"""Maximum bytes of a frame on the line: all of them escaped, and two flags."""
PORT, DATAGRAM = 21333, 1472
"""UDP port of a board, unless its address gives another; and the maximum bytes of a datagram: an Ethernet
frame less the headers of IP and UDP."""
USB_VENDOR, USB_PRODUCT = 0x1209, 0x0001
"""Numbers of the USB device, from the pid.codes range for tests; maker and title are ours."""
USB_MAKER, USB_TITLE = "SEUSTREAM", "WJASIP"
USB_ENDPOINT, USB_PACKET = 1, 64
"""Endpoint number, for both directions; and bytes of a packet, the most that full speed allows."""
VERSION = 3
"""Version of this protocol; the first byte of an identity."""


def shorter(most: int) -> int:
    """Returns the maximum payload after a loss."""
    return max(most // 2, LEAST)


def longer(most: int) -> int:
    """Returns the maximum payload after an acknowledgement of something new."""
    return min(most + STEP, MOST)


class FrameKind(enum.IntEnum):
    OPEN = 1
    OPENED = 2
    DATA = 3
    ASK = 4  # DATA that requests an answer
    LOST = 5
    GAP = 6  # DATA, after a frame that was not the next one


class Opcode(enum.IntEnum):
    """Messages to the board; MARK is answered when everything before it is done."""

    COMMAND = 1
    RAW = 2
    MARK = 3


class Reply(enum.IntEnum):
    """Messages from the board."""

    RESPONSE = 1
    RESULT = 2
    HANDED_OVER = 3
    MARK = 4
    RESULTS = 5  # a result of several queries


class LinkCounter(enum.IntEnum):
    """Counters of everything that has come to a board since it was switched on. A READ of `COUNTERS` plus the
    number returns one, without involving the processor; those of a network stay 0 on a serial line."""

    FRAMES = 0  # intact frames of the host link
    DAMAGED = 1  # bytes between two flags that were no intact frame
    STRANGERS = 2  # frames from others than the host that open no session
    SESSIONS = 3  # frames of a session that is not open
    GAPS = 4  # payloads that were not the next
    WHOLE = 5  # intact Ethernet frames
    BROKEN = 6  # Ethernet frames with a wrong checksum or preamble
    PASSED = 7  # intact Ethernet frames that are not for the board
    ASKED = 8  # ARP requests and pings, answered
    DATAGRAMS = 9  # datagrams to the host link
    OVERFLOWS = 10  # bytes that came faster than they were taken, with the rest of their packet


NETWORK_COUNTERS = tuple(counter for counter in LinkCounter if counter >= LinkCounter.WHOLE)
COUNTERS = 512
"""Address of the first link counter; the processor's counters are below."""


@dataclass(frozen=True, slots=True)
class LinkFrame:
    kind: int
    session: int
    sequence: int = 0
    ack: int = 0
    credit: int = 0
    payload: bytes = b""

    def encode(self) -> bytes:
        """Encodes the frame as it is sent, with its flags."""
        body = b"".join(
            value.to_bytes(width, "little")
            for value, width in zip(
                (self.kind, self.session, self.sequence, self.ack, self.credit, len(self.payload)),
                (1, 2, 2, 2, 2, 1),
                strict=True,
            )
        )
        body += self.payload
        body += zlib.crc32(body).to_bytes(TRAILER, "little")
        for special in (ESCAPE, FLAG):
            body = body.replace(bytes([special]), bytes([ESCAPE, special ^ ESCAPED]))
        return bytes([FLAG]) + body + bytes([FLAG])

    @classmethod
    def decode(cls, between: bytes) -> LinkFrame | None:
        """Decodes the bytes between two flags; None if they are no intact frame."""
        if not len(between) >= HEADER + TRAILER:
            return None
        body = _unescaped(between)
        if body is None or len(body) < HEADER + TRAILER:
            return None
        inner, crc = body[:-TRAILER], body[-TRAILER:]
        if zlib.crc32(inner).to_bytes(TRAILER, "little") != crc:
            return None
        if len(inner) != HEADER + inner[HEADER - 1]:
            return None
        session, sequence, ack, credit = (
            int.from_bytes(inner[at : at + 2], "little") for at in (1, 3, 5, 7)
        )
        return cls(inner[0], session, sequence, ack, credit, inner[HEADER:])


def _unescaped(between: bytes) -> bytes | None:
    parts = between.split(bytes([ESCAPE]))
    if any(not part for part in parts[1:]):
        return None
    return parts[0] + b"".join(bytes([part[0] ^ ESCAPED]) + part[1:] for part in parts[1:])
