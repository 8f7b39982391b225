"""A virtual board: a serial port that is none, with a simulated board behind it.

The port is a pseudo-terminal, so whatever talks to a board's port talks to it; a thread moves
bytes between it and the simulation, which runs only as long as something happens.
"""

from __future__ import annotations

import os
import select
import threading
import tty

from seustream.cosim.boards.simulated import SimulatedBoard

_CHUNK = 2_000
"""Cycles between looks at the port."""
_CALM = 50
"""Chunks without a byte after which the board only runs when one comes, or now and then."""
_NOW_AND_THEN = 0.02


class VirtualBoard:
    """`port` is the name of its serial port. With `with`, or `close`."""

    def __init__(self, board: SimulatedBoard) -> None:
        self._board = board
        self._ours, theirs = os.openpty()
        tty.setraw(theirs)
        self.port = os.ttyname(theirs)
        self._theirs = theirs  # kept open: a terminal nobody has open gives errors
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="virtual board", daemon=True)
        self._thread.start()

    def __enter__(self) -> VirtualBoard:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._ending.set()
        self._thread.join()
        os.close(self._ours)
        os.close(self._theirs)
        self._board.close()

    def _run(self) -> None:
        calm = 0
        while not self._ending.is_set():
            wait = _NOW_AND_THEN if calm > _CALM else 0.0
            if select.select([self._ours], [], [], wait)[0]:
                self._board.put(os.read(self._ours, 4096))
                calm = 0
            self._board.run(_CHUNK)
            data = self._board.take()
            if data or self._board.waiting:
                calm = 0
            else:
                calm += 1
            while data:
                data = data[os.write(self._ours, data) :]
