"""Waits for the signal that ends a server."""

from __future__ import annotations

import signal
import socket

ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals that end a command or a server."""


class EndSignal:
    """Lets the main thread wait for SIGTERM, Ctrl-C or the end of its terminal, unless `nohup` has it
    ignore that.

    Python's own handlers run when the main thread next runs. A main thread that waits for a lock
    does not notice a signal that the kernel delivered to a thread of gRPC, so the server would live
    on. What the interpreter writes to a wake-up descriptor arrives whichever thread got the signal.
    """

    def __enter__(self) -> EndSignal:
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._handlers = {number: signal.getsignal(number) for number in ENDS}
        if self._handlers[signal.SIGHUP] is signal.SIG_IGN:
            del self._handlers[signal.SIGHUP]
        for number in self._handlers:
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        return self

    def wait(self) -> None:
        """Returns once a signal has come, including one before the call."""
        while not set(self._reader.recv(64)) & self._handlers.keys():
            pass

    def __exit__(self, *error: object) -> None:
        signal.set_wakeup_fd(-1)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._reader.close()
        self._writer.close()
