"""Virtual boards: a port on this machine with a simulated board behind it. One of them uses a
pseudo-terminal as its serial port, so that any code that talks to a board's port can talk to it."""

from __future__ import annotations

import os
import select
import threading
import tty
from typing import Self

from seustream.cosim.boards.simulated import SimulatedBoard

_CHUNK = 2_000
"""Cycles between polls of the port."""
_CALM = 50
"""Chunks without a byte after which the board runs only when one arrives, or now and then."""
_NOW_AND_THEN = 0.02


class Behind:
    """Runs a thread that moves bytes between a port and a simulated board, at full speed only while
    there is traffic. A subclass implements the port. Use it with `with`, or call `close`."""

    def __init__(self, board: SimulatedBoard) -> None:
        self._board = board
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._ending.set()
        self._thread.join()
        self._board.close()

    def _hear(self, wait: float) -> bool:
        """Passes received bytes to the board, after at most `wait` seconds; returns whether there
        were any."""
        raise NotImplementedError

    def _say(self, data: bytes) -> None:
        """Sends the board's output."""
        raise NotImplementedError

    def _run(self) -> None:
        calm = 0
        while not self._ending.is_set():
            heard = self._hear(_NOW_AND_THEN if calm > _CALM else 0.0)
            self._board.run(_CHUNK)
            data = self._board.take()
            self._say(data)
            calm = 0 if heard or data or self._board.waiting else calm + 1


class VirtualBoard(Behind):
    """Runs a board behind a serial port, whose name is `port`."""

    def __init__(self, board: SimulatedBoard) -> None:
        self._ours, theirs = os.openpty()
        tty.setraw(theirs)
        self.port = os.ttyname(theirs)
        self._theirs = theirs  # kept open: a terminal that no process has open gives errors
        super().__init__(board)

    def close(self) -> None:
        super().close()
        os.close(self._ours)
        os.close(self._theirs)

    def _hear(self, wait: float) -> bool:
        heard = bool(select.select([self._ours], [], [], wait)[0])
        if heard:
            self._board.put(os.read(self._ours, 4096))
        return heard

    def _say(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._ours, data) :]
