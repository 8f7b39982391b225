"""The world of a bridge and its clients: time, threads and chance, injected at one seam.

`World` is this machine's. A test substitutes one in which time is virtual, threads take turns, and
a seed decides everything; sessions, catalogues and clients never ask the machine itself.
"""

from __future__ import annotations

import os
import random
import resource
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol


class Flag(Protocol):
    def set(self) -> None: ...
    def is_set(self) -> bool: ...
    def wait(self, timeout: float | None = None) -> bool: ...


class Mutex(Protocol):
    """A reentrant lock."""

    def __enter__(self) -> bool: ...
    def __exit__(self, *error: Any) -> None: ...


class Monitor(Protocol):
    """A condition with a reentrant lock."""

    def __enter__(self) -> bool: ...
    def __exit__(self, *error: Any) -> None: ...
    def wait(self, timeout: float | None = None) -> bool: ...
    def notify_all(self) -> None: ...


class Activity(Protocol):
    """A function that runs concurrently."""

    def join(self, timeout: float | None = None) -> None: ...
    def is_alive(self) -> bool: ...


class World:
    """The clocks, threads and random numbers of this machine."""

    def now(self) -> float:
        """Returns monotonic seconds, from an arbitrary origin."""
        return time.monotonic()

    def today(self) -> int:
        """Returns the wall-clock time in milliseconds since the epoch, which users may set."""
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def chance(self) -> float:
        """Returns a random number in [0, 1)."""
        return random.random()

    def resident(self) -> int:
        """Returns the bytes of memory that this process uses."""
        try:
            return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            # Without /proc, the peak, which is the safe side; macOS counts bytes.
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            return most if sys.platform == "darwin" else most * 1024

    def lock(self) -> Mutex:
        return threading.RLock()

    def event(self) -> Flag:
        return threading.Event()

    def condition(self) -> Monitor:
        return threading.Condition(threading.RLock())

    def start(self, name: str, work: Callable[[], None]) -> Activity:
        """Runs a function in a thread that ends with the process."""
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        return thread


MACHINE = World()
