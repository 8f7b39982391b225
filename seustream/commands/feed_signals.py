"""Holds signals back while Spark is called."""

from __future__ import annotations

import signal

from seustream.commands.signals import ENDS


class HeldSignals:
    """Holds signals that end a command back until `look`, or until the end of the block.

    Within a call of Spark, the exception of a handler would leave Spark's answer unread, and the calls
    that stop Spark would take it for theirs. A second signal is not held back.
    """

    def __enter__(self) -> HeldSignals:
        self._came: int | None = None
        handlers = {number: signal.getsignal(number) for number in ENDS}
        self._handlers = {
            n: handler for n, handler in handlers.items() if handler != signal.SIG_IGN
        }
        for number in self._handlers:
            signal.signal(number, self._take)
        return self

    def look(self) -> None:
        """Delivers the signal that has come."""
        came, self._came = self._came, None
        if came is not None:
            self._restore()
            signal.raise_signal(came)

    def _take(self, number: int, _: object) -> None:
        before, self._came = self._came, number
        if before is not None:
            self.look()

    def _restore(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def __exit__(self, *error: object) -> None:
        self._restore()
        self.look()
