"""Merges several inputs into one order: Algorithm 1 of StreamAPAS, a tuple at a time.

An element is released when its key (ts, te, input) is the least of all inputs' heads, so each open
input must hold something. BOUNDARY is ordered like data and keeps slow inputs from holding the
others back. This version reads like the specification; `merge` does the same on columns.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import Protocol

from seustream.engine.temporal.elements import FOREVER, ElementKind, StreamElement


class ElementReceiver(Protocol):
    """Receives what a synchroniser releases."""

    def reorganise(self, now: int) -> None:
        """Declares that nothing released from now on starts before `now`."""

    def execute(self, source: int, x: StreamElement) -> None:
        """Receives an INSERTION in its turn."""

    def broadcast(self, source: int, x: StreamElement) -> None:
        """Receives a BOUNDARY in its turn."""

    def control(self, source: int, x: StreamElement) -> None:
        """Receives a HEADER, REMOVE or STOP that has reached the head of its queue."""

    def end(self) -> None:
        """Declares that all inputs have stopped."""


class Synchroniser:
    """Releases the elements of `inputs` queues in the order (ts, te, input)."""

    def __init__(self, inputs: int, receiver: ElementReceiver) -> None:
        self.queues: list[deque[StreamElement]] = [deque() for _ in range(inputs)]
        self.open = [True] * inputs
        self.receiver = receiver
        self.heap: list[tuple[int, int, int]] = []
        self.most_waiting = 0
        self._running = self._ended = False

    def put(self, i: int, x: StreamElement) -> None:
        """Takes the next element of input i."""
        if not self.open[i]:
            raise ValueError(f"input {i} has stopped")
        self.queues[i].append(x)
        self.most_waiting = max(self.most_waiting, sum(map(len, self.queues)))
        if len(self.queues[i]) == 1:
            self._head(i)
            self.run()

    def stop(self, i: int) -> None:
        """Stops input i: it no longer blocks; what waits on it is still released in its turn."""
        self.open[i] = False
        self.run()

    def run(self) -> None:
        """Releases all elements that can be released."""
        if self._running:
            return
        self._running = True
        try:
            while self.heap and not self._blocked():
                i = heapq.heappop(self.heap)[2]
                queue = self.queues[i]
                # Consecutive elements of one input cost no heap work.
                while (
                    queue
                    and queue[0].kind.timed
                    and (not self.heap or self._key(i) <= self.heap[0])
                ):
                    x = queue.popleft()
                    self.receiver.reorganise(x.ts)
                    if x.kind is ElementKind.BOUNDARY:
                        self.receiver.broadcast(i, x)
                    else:
                        self.receiver.execute(i, x)
                self._head(i)
            if not self._ended and not any(self.open) and not any(self.queues):
                self._ended = True
                self.receiver.reorganise(FOREVER)
                self.receiver.end()
        finally:
            self._running = False

    @property
    def waiting(self) -> list[list[StreamElement]]:
        return [list(queue) for queue in self.queues]

    def _blocked(self) -> bool:
        return any(
            opened and not queue for queue, opened in zip(self.queues, self.open, strict=True)
        )

    def _head(self, i: int) -> None:
        """Handles the controls at the head of input i; enters the element after them into the
        heap."""
        queue = self.queues[i]
        while queue and not queue[0].kind.timed:
            x = queue.popleft()
            if x.kind is ElementKind.STOP:
                self.open[i] = False
                queue.clear()
            self.receiver.control(i, x)
        if queue:
            heapq.heappush(self.heap, self._key(i))

    def _key(self, i: int) -> tuple[int, int, int]:
        x = self.queues[i][0]
        return (x.ts, x.te, i)
