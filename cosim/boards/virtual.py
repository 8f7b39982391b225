"""Virtual boards: a port on this machine with a simulated board behind it, and one whose port is a serial
port that is none, a pseudo-terminal, so that whatever talks to a board's port talks to it."""

from __future__ import annotations

import os
import select
import threading
import tty
from typing import Self

from seustream.cosim.boards.simulated import SimulatedBoard

_CHUNK = 2_000
"""Cycles between looks at the port."""
_CALM = 50
"""Chunks without a byte after which the board only runs when one comes, or now and then."""
_NOW_AND_THEN = 0.02


class Behind:
    """A thread that moves bytes between a port and a simulated board, which runs only as long as
    something happens. A subclass knows the port. With `with`, or `close`."""

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
        """Gives the board what came, after `wait` seconds at most; whether anything did."""
        raise NotImplementedError

    def _say(self, data: bytes) -> None:
        """Sends what the board says."""
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
    """`port` is the name of its serial port."""

    def __init__(self, board: SimulatedBoard) -> None:
        self._ours, theirs = os.openpty()
        tty.setraw(theirs)
        self.port = os.ttyname(theirs)
        self._theirs = theirs  # kept open: a terminal nobody has open gives errors
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
