"""A session with a board: two streams of bytes over a line that may damage anything.

`seustream.hdl.boards.protocol` defines what goes over the line. The board keeps no time; this side
sends a request when expected data does not come, or something out of sequence does. Time and chance
are injected.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Protocol

from seustream.cosim.link.errors import NoAnswer, SessionLost
from seustream.hdl.boards.protocol import FLAG, MOST, PLACES, FrameKind, LinkFrame, longer, shorter

_LONGEST = 2 * (MOST + 32)
"""The most bytes between two flags that can be a frame; more is noise."""
_CREDIT = 1 << 14
"""Bytes that the board may send ahead; this side takes all of them."""
AHEAD = 8
"""Frames sent ahead on a serial line: on a bad line one of them is lost, and all after it are in
vain."""
_MOST_WAITS = 8
"""The longest wait as a multiple of the first: a line has one user, so there is no congestion to
relieve."""


class LinkLine(Protocol):
    """Carries bytes, possibly not all of them, possibly changed."""

    def read(self, timeout: float) -> bytes:
        """Returns received bytes; waits up to `timeout` seconds for them."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


class LinkSession:
    """A session with a board.

    wait      seconds before a request; doubled while nothing is received, up to 8 times
    patience  seconds without any answer after which the board counts as gone
    ahead     frames sent ahead, if there is room for as many
    advice    what may help against silence
    """

    def __init__(
        self,
        line: LinkLine,
        *,
        wait: float = 0.1,
        patience: float = 5.0,
        ahead: int = AHEAD,
        advice: str = "is it powered, does it hold a bitstream of ours, and is the baud rate right?",
        now: Callable[[], float] = time.monotonic,
        chance: random.Random | None = None,
    ) -> None:
        self._line, self._now = line, now
        self._shortest, self._patience, self._advice = wait, patience, advice
        self._ahead = ahead
        self._chance = chance or random.SystemRandom()
        self._between = bytearray()  # since the last flag
        self._identity: bytes | None = None
        self._begin(0)
        self.resent = self.refused = 0
        """How often it had to ask or send again, and how many pieces between flags were not frames."""

    def _begin(self, number: int) -> None:
        self._number = number
        self._outgoing = bytearray()  # from the first unacknowledged byte
        self._first = 0  # its place
        self._sent = 0  # the number of its bytes that are on their way
        self._most = MOST  # bytes in a frame: fewer on a bad line
        self._limit = 0  # the first place that the board does not yet accept
        self._next = 0  # place of the next expected byte
        self._incoming = bytearray()
        self._gap = False  # something out of sequence came, so something was lost
        self._gap_asked = False  # nothing in sequence came since
        self._owes = False
        self._lost = False
        self._wait = self._shortest
        self._heard = self._moved = self._now()
        self._asks_at = self._heard + self._wait
        self._silent = True  # nothing was received since the request

    # --- sessions -------------------------------------------------------------

    def open(self) -> bytes:
        """Opens a session and returns the board's identity. It opens twice, under different
        numbers, one of which is not that of a session the board may still have."""
        first = self._chance.randrange(1, PLACES)
        self._open(first)
        identity = self._open(first % (PLACES - 1) + 1)
        self._send(FrameKind.DATA)
        return identity

    def _open(self, number: int) -> bytes:
        self._begin(number)
        self._identity = None
        while True:
            self._send(FrameKind.OPEN)
            self._asks_at = self._now() + self._wait
            self._wait = self._waits_longer()
            while (left := self._asks_at - self._now()) > 0:
                self._listen(left)
                if (said := self._said()) is not None:
                    return said
            self._check_silence("it does not answer")

    def _said(self) -> bytes | None:
        return self._identity

    def close(self) -> None:
        self._line.close()

    # --- streams --------------------------------------------------------------

    def put(self, data: bytes) -> None:
        """Queues data for the board; `step` sends it."""
        self._outgoing += data
        self._wait = self._shortest
        self._heard = self._moved = self._now()
        self._asks_at = self._heard + self._wait

    @property
    def backlog(self) -> int:
        """Returns the number of bytes that the board has not acknowledged."""
        return len(self._outgoing)

    @property
    def still(self) -> float:
        """Returns the seconds since either stream made progress."""
        return self._now() - self._moved

    def take(self) -> bytes:
        """Returns what has come from the board since the last call."""
        data = bytes(self._incoming)
        self._incoming.clear()
        return data

    def step(self, timeout: float) -> bool:
        """Sends what may be sent and waits up to `timeout` seconds for data. Returns whether either
        stream made progress."""
        self._transmit()
        place, first = self._next, self._first
        now = self._now()
        self._listen(max(0.0, min(timeout, self._asks_at - now)))
        if self._lost:
            raise SessionLost(
                "the board was reset, or opened by another host: its windows are gone",
                "load the image and feed the streams again",
            )
        moved = (self._next, self._first) != (place, first)
        if moved:
            self._wait = self._shortest
            self._moved = self._now()
            self._asks_at = self._moved + self._wait
            if self._first != first:
                self._most = longer(self._most)
        elif self._now() >= self._asks_at:
            self._check_silence("it fell silent")
            self._wait = self._waits_longer() if self._silent else self._shortest
            if self._sent:
                self._most = shorter(self._most)
            self._sent = 0
            self._ask()
        if self._gap:
            self._gap = False
            self._ask()
        self._transmit()
        return moved

    def _ask(self) -> None:
        self._asks_at = self._now() + self._wait
        self._silent = True
        self.resent += 1
        self._send(FrameKind.ASK)

    def _waits_longer(self) -> float:
        return min(2 * self._wait, _MOST_WAITS * self._shortest)

    # --- frames ---------------------------------------------------------------

    def _transmit(self) -> None:
        frames = []
        while True:
            place = (self._first + self._sent) % PLACES
            room = (self._limit - place) % PLACES
            if room > PLACES // 2:  # beyond what it accepts
                room = 0
            payload = bytes(self._outgoing[self._sent : self._sent + min(self._most, room)])
            if not payload or self._sent >= self._ahead * self._most:
                break
            self._sent += len(payload)
            frames.append(self._frame(FrameKind.DATA, place, payload))
        if self._owes:
            frames.append(self._frame(FrameKind.DATA))
        if frames:
            self._line.write(b"".join(frames))

    def _send(self, kind: FrameKind) -> None:
        self._line.write(self._frame(kind))

    def _frame(self, kind: FrameKind, place: int | None = None, payload: bytes = b"") -> bytes:
        if place is None:
            place = (self._first + self._sent) % PLACES
        if kind is not FrameKind.OPEN:
            self._owes = False
        return LinkFrame(kind, self._number, place, self._next, _CREDIT, payload).encode()

    def _listen(self, timeout: float) -> None:
        for piece in (data := self._line.read(timeout)).split(bytes([FLAG]))[:-1]:
            self._between += piece
            self._piece(bytes(self._between))
            self._between.clear()
        self._between += data[data.rfind(FLAG) + 1 :]
        if len(self._between) > _LONGEST:
            del self._between[_LONGEST:]

    def _piece(self, between: bytes) -> None:
        frame = LinkFrame.decode(between)
        if frame is None:
            self.refused += bool(between)
        elif frame.session == self._number:
            if frame.kind == FrameKind.OPEN:  # which no board sends
                raise NoAnswer("no board, but a port that returns what is sent", self._advice)
            self._heard, self._silent = self._now(), False
            if frame.kind == FrameKind.OPENED:
                self._identity = frame.payload
                self._credit(frame)
            elif frame.kind == FrameKind.LOST:
                self._lost = self._identity is not None
            elif frame.kind in (FrameKind.DATA, FrameKind.GAP):
                self._data(frame)

    def _data(self, frame: LinkFrame) -> None:
        gone = (frame.ack - self._first) % PLACES
        if gone > len(self._outgoing):
            return  # from before the last acknowledgement
        del self._outgoing[:gone]
        self._first = frame.ack
        self._sent = max(self._sent - gone, 0)
        self._credit(frame)
        if frame.kind == FrameKind.GAP and self._sent:
            self._sent = 0
            self.resent += 1
        if frame.payload:
            # A piece that only begins earlier is not taken either: the board may have reused the
            # acknowledged places of its ring for later bytes.
            if frame.sequence == self._next:
                self._incoming += frame.payload
                self._next = (self._next + len(frame.payload)) % PLACES
                self._gap_asked = False
            elif (frame.sequence - self._next) % PLACES <= _CREDIT and not self._gap_asked:
                self._gap = self._gap_asked = True
            self._owes = True

    def _credit(self, frame: LinkFrame) -> None:
        self._limit = (frame.ack + frame.credit) % PLACES

    def _check_silence(self, what: str) -> None:
        if self._now() - self._heard > self._patience:
            raise NoAnswer(f"no answer from the board: {what}", self._advice)
