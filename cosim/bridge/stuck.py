"""Ends a call into a user's library that does not return, so that its query fails and all others
continue.

Python cannot end a thread, but it can raise an exception in one, at its next Python instruction. A
call that waits outside Python (a lock, a socket) gets it only on return, and is reported meanwhile.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from types import FrameType

from seustream.compiler.apas.libraries import Libraries


class CallTooLong(Exception):
    """A library function has not returned within its time limit. Python creates it, without
    arguments, in the thread that is to raise it."""

    def __init__(self) -> None:
        super().__init__("it did not return within the time a call may take")


class Watch:
    """Watches the calls of one thread into some libraries; each may take `seconds`. It inspects the
    thread's stack, so that a call has no overhead."""

    def __init__(self, libraries: Libraries, seconds: float) -> None:
        self.seconds = seconds
        functions = [f for library in libraries.libraries.values() for f in library.values()]
        named = {type(function).__module__ for function in functions}
        self._modules = {name for name in named if not name.startswith("seustream.compiler.")}
        self._call: FrameType | None = None
        self._since = 0.0

    def look(self, thread: object, now: float) -> str | None:
        """Ends a thread's call that takes too long, and returns which it is. A call that continues
        is ended again at each look."""
        if not self._modules or not isinstance(thread, threading.Thread) or thread.ident is None:
            return None
        call = self._outermost(sys._current_frames().get(thread.ident))
        if call is not self._call:
            self._call, self._since = call, now
        if call is None or now - self._since <= self.seconds:
            return None
        raised = ctypes.py_object(CallTooLong)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), raised)
        code = call.f_code
        return f"{code.co_qualname} ({code.co_filename}:{call.f_lineno}) takes {now - self._since:.0f} s"

    def _outermost(self, frame: FrameType | None) -> FrameType | None:
        """Returns the outermost call into a library, which includes all inner ones."""
        found = None
        while frame is not None:
            if frame.f_globals.get("__name__") in self._modules:
                found = frame
            frame = frame.f_back
        return found
