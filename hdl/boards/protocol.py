"""Frames and messages of the host link, the same for every board.

*Bytes.* A frame stands between two flags; a flag or an escape within it is escaped.
So after any damage the next flag is a new beginning.

    FLAG | kind | session | sequence | ack | credit | length | payload | CRC-32 | FLAG

*Stream.* Each side sends a stream of bytes, cut into frames anywhere. `sequence` is the
place of the payload's first byte in it, `ack` the place of the first byte not yet had from
the other side, and the other side may send up to `ack + credit`. All three count modulo
2^16. A frame that is not the next one is dropped; a side whose bytes were not acknowledged sends them
again.

*Time.* Only the host keeps it. When nothing comes that it waits for, it asks (`ASK`): the
board goes back to what the host acknowledged, sends that again, and acknowledges. So it does
when something comes that is not next; the board sends a `GAP` then, once, and the host sends again what
comes after. The board never repeats anything of its own accord.

*Sessions.* The host opens one under a number of its own (`OPEN`); the board drops what was
under way, and answers `OPENED` with its identity once nothing is. A frame of another session
is answered `LOST`, so that a host notices a board that was reset.

*Messages* are what the streams carry (`seustream.hdl.boards.messages`).
"""

from __future__ import annotations

import enum
import zlib
from dataclasses import dataclass

FLAG, ESCAPE, ESCAPED = 0x7E, 0x7D, 0x20
"""An escaped byte is sent as ESCAPE and its exclusive or with ESCAPED."""

PLACES = 1 << 16
"""Places in a stream come round after so many bytes."""
MOST, LEAST, STEP = 248, 16, 8
"""Bytes of payload in a frame, at most. Who has to send again makes its frames half as long, down
to LEAST, for most of the short ones get through where hardly a long one does; with each
acknowledgement of something new they grow by STEP."""
RING = 2048
"""Bytes that a board keeps each way behind a serial port, in a block RAM: a round trip of 7 ms at
3 megabaud, of which a USB port takes one or two."""
NETWORK_RING = 8192
"""And behind a network's: a round trip of 70 microseconds at a gigabit."""
HEADER, TRAILER = 10, 4
LONGEST = 2 * (HEADER + MOST + TRAILER) + 2
"""Bytes of a frame on the line, at most: all of them escaped, and two flags."""
PORT, DATAGRAM = 21333, 1472
"""UDP port of a board, unless its address says another; and bytes of a datagram, at most: a frame of
Ethernet less the headers of IP and UDP."""
USB_VENDOR, USB_PRODUCT = 0x1209, 0x0001
"""Names a USB device by numbers for tests, of pid.codes; maker and title are ours."""
USB_MAKER, USB_TITLE = "SEUSTREAM", "WJASIP"
USB_ENDPOINT, USB_PACKET = 1, 64
"""Both ways; and bytes of a packet, the most that full speed allows."""
VERSION = 3
"""Of this protocol; the first byte of an identity."""


def shorter(most: int) -> int:
    """The longest payload after something was lost."""
    return max(most // 2, LEAST)


def longer(most: int) -> int:
    """And after something arrived."""
    return min(most + STEP, MOST)


class FrameKind(enum.IntEnum):
    OPEN = 1
    OPENED = 2
    DATA = 3
    ASK = 4  # DATA that wants an answer
    LOST = 5
    GAP = 6  # DATA, after something that was not next


class Opcode(enum.IntEnum):
    """Messages to the board; MARK is answered when all before it is done."""

    COMMAND = 1
    RAW = 2
    MARK = 3


class Reply(enum.IntEnum):
    """Messages from the board."""

    RESPONSE = 1
    RESULT = 2
    HANDED_OVER = 3
    MARK = 4
    RESULTS = 5  # one of several queries


class LinkCounter(enum.IntEnum):
    """Counts of all that has come to a board since it was switched on. A READ of `COUNTERS` and the
    number gives it, without asking the processor; those of a network stay 0 on a serial line."""

    FRAMES = 0  # of the host link, whole
    DAMAGED = 1  # what was between two flags, and no frame
    STRANGERS = 2  # frames of others than the host, which open no session
    SESSIONS = 3  # frames of a session that is not open
    GAPS = 4  # pieces that were not next
    WHOLE = 5  # frames of Ethernet
    BROKEN = 6  # what has a wrong checksum, or does not begin as a frame
    PASSED = 7  # whole ones that are nothing of the board's
    ASKED = 8  # ARP and ping, answered
    DATAGRAMS = 9  # to the host link
    OVERFLOWS = 10  # bytes that came faster than they were taken, with the rest of their packet


NETWORK_COUNTERS = tuple(counter for counter in LinkCounter if counter >= LinkCounter.WHOLE)
COUNTERS = 512
"""Address of the first of them; the processor's are below."""


@dataclass(frozen=True, slots=True)
class LinkFrame:
    kind: int
    session: int
    sequence: int = 0
    ack: int = 0
    credit: int = 0
    payload: bytes = b""

    def encode(self) -> bytes:
        """With its flags, as it is sent."""
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
        """Reads the bytes between two flags; None if they are no frame."""
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
