"""What happened to a query, for people: append-only, kept after its end."""

from __future__ import annotations

import threading
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """`run` counts the registrations of this name."""

    time: int
    run: int
    level: str
    event: str
    detail: str

    def __str__(self) -> str:
        return f"{self.time} run {self.run} {self.level:7} {self.event}: {self.detail}"


class History:
    """The log of one name."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._lock = threading.Lock()

    def append(self, event: Event) -> None:
        with self._lock:
            self._events.append(event)

    @property
    def events(self) -> tuple[Event, ...]:
        with self._lock:
            return tuple(self._events)
