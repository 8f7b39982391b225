"""A session with a board: two streams of bytes over a line that may damage anything.

`seustream.hdl.boards.protocol` says what goes over the line. The board keeps no time; this side asks when
nothing comes that it waits for, or something that is not next. Time and chance are handed in.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Protocol

from seustream.cosim.link.errors import NoAnswer, SessionLost
from seustream.hdl.boards.protocol import FLAG, MOST, PLACES, FrameKind, LinkFrame, longer, shorter

_LONGEST = 2 * (MOST + 32)
"""Bytes between two flags that can be a frame; more is noise."""
_CREDIT = 1 << 14
"""Bytes the board may send ahead; this side takes all there is."""
AHEAD = 8
"""Frames it sends ahead on a serial line: on a bad one one of them is lost, and all behind it are in
vain."""
_MOST_WAITS = 8
"""It never waits longer than so many times as long as the first time: a line has one user, so
there is no crowd to make room for."""


class LinkLine(Protocol):
    """Whatever carries bytes, perhaps not all of them, perhaps changed."""

    def read(self, timeout: float) -> bytes:
        """Returns what came; waits up to `timeout` seconds for it."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


class LinkSession:
    """
    wait      seconds before it asks; as long as nothing is heard twice as many, up to 8 times
    patience  seconds without any answer after which the board counts as gone
    ahead     frames it sends ahead, if there is room for so many
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
        """Times it had to ask or send again, and pieces between flags that were no frames."""

    def _begin(self, number: int) -> None:
        self._number = number
        self._outgoing = bytearray()  # from the first byte not acknowledged
        self._first = 0  # its place
        self._sent = 0  # bytes of it that are on their way
        self._most = MOST  # bytes in a frame: fewer on a bad line
        self._limit = 0  # place the board takes no byte at yet
        self._next = 0  # place of the next byte wanted
        self._incoming = bytearray()
        self._gap = False  # something came that is not next, so something was lost
        self._gap_asked = False  # nothing was next since
        self._owes = False
        self._lost = False
        self._wait = self._shortest
        self._heard = self._moved = self._now()
        self._asks_at = self._heard + self._wait
        self._silent = True  # nothing was heard since it asked

    # --- sessions -------------------------------------------------------------

    def open(self) -> bytes:
        """Opens a session and gives the board's identity. Twice, under different numbers: one
        of them is not that of a session the board may still have."""
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
        """More for the board; `step` sends it."""
        self._outgoing += data
        self._wait = self._shortest
        self._heard = self._moved = self._now()
        self._asks_at = self._heard + self._wait

    @property
    def backlog(self) -> int:
        """Bytes the board has not acknowledged."""
        return len(self._outgoing)

    @property
    def still(self) -> float:
        """Seconds since either stream got on."""
        return self._now() - self._moved

    def take(self) -> bytes:
        """Returns what has come from the board since."""
        data = bytes(self._incoming)
        self._incoming.clear()
        return data

    def step(self, timeout: float) -> bool:
        """Sends what may be sent and waits for something to come, up to `timeout` seconds.
        Gives whether either stream got on."""
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
            if room > PLACES // 2:  # beyond what it takes
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
            # A piece that only begins earlier is not taken either: the board may have given the
            # places of its ring that are acknowledged to bytes that come later.
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
