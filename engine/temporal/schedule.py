"""Schedulers of the nodes: `inline`, in the caller's thread, or `threads`, one for each node.

Outputs are equal, as results depend on the streams' contents alone. Inner queues are unbounded:
bounded ones deadlock where two branches of a source meet again.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from seustream.engine.temporal.elements import StreamElement

Deliver = Callable[[int, int, StreamElement], None]
"""Hands an element to an input of a node, now."""


class Halted(BaseException):
    """The network stops: unwinds whatever node is at work. Not an error of a node's, so it is no
    `Exception`."""


class Scheduler(Protocol):
    def start(self, nodes: int, deliver: Deliver) -> None: ...

    def put(self, node: int, source: int, x: StreamElement) -> None:
        """Queues an element for an input of a node."""

    def drain(self) -> None:
        """Returns when everything put so far has been handled."""

    def stop(self) -> None:
        """Ends all threads; what is queued is dropped. Idempotent."""

    @property
    def most_waiting(self) -> int: ...


class Inline:
    """Deterministic: first in, first handled, in the thread that puts."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[int, int, StreamElement]] = deque()
        self.most_waiting = 0
        self.lock = threading.RLock()
        self.busy = self.halted = False
        self.deliver: Deliver | None = None

    def start(self, nodes: int, deliver: Deliver) -> None:
        self.deliver = deliver

    def put(self, node: int, source: int, x: StreamElement) -> None:
        with self.lock:
            if self.halted:
                return
            self.waiting.append((node, source, x))
            self.most_waiting = max(self.most_waiting, len(self.waiting))
            if not self.busy:
                self._work()

    def drain(self) -> None:
        """Nothing waits when `put` has returned."""

    def stop(self) -> None:
        with self.lock:
            self.halted = True
            self.waiting.clear()

    def _work(self) -> None:
        self.busy = True
        try:
            while self.waiting and self.deliver is not None:
                self.deliver(*self.waiting.popleft())
        except Halted:
            self.halted = True
            self.waiting.clear()
        finally:
            self.busy = False


class Threads:
    """Each node has a thread and a queue."""

    def __init__(self) -> None:
        self.queues: list[queue.SimpleQueue[tuple[int, StreamElement] | None]] = []
        self.threads: list[threading.Thread] = []
        self.most_waiting = 0
        self.pending = 0
        self.idle = threading.Condition()
        self.halted = False

    def start(self, nodes: int, deliver: Deliver) -> None:
        self.queues = [queue.SimpleQueue() for _ in range(nodes)]
        for number in range(nodes):
            thread = threading.Thread(
                target=self._run, args=(number, deliver), name=f"node {number}", daemon=True
            )
            self.threads.append(thread)
            thread.start()

    def put(self, node: int, source: int, x: StreamElement) -> None:
        with self.idle:
            if self.halted:
                return
            self.pending += 1
        self.queues[node].put((source, x))
        self.most_waiting = max(self.most_waiting, self.queues[node].qsize())

    def drain(self) -> None:
        with self.idle:
            self.idle.wait_for(lambda: self.pending == 0 or self.halted)

    def stop(self) -> None:
        self._halt()
        for each in self.queues:
            each.put(None)
        for thread in self.threads:
            if thread is not threading.current_thread():
                thread.join()
        self.threads = [t for t in self.threads if t is threading.current_thread()]
        self.queues = []

    def _halt(self) -> None:
        with self.idle:
            self.halted = True
            self.idle.notify_all()

    def _run(self, number: int, deliver: Deliver) -> None:
        mine = self.queues[number]
        while (item := mine.get()) is not None:
            if self.halted:
                continue
            try:
                deliver(number, *item)
            except Halted:
                self._halt()
            finally:
                with self.idle:
                    self.pending -= 1
                    if not self.pending:
                        self.idle.notify_all()


SCHEDULERS: dict[str, Callable[[], Scheduler]] = {"inline": Inline, "threads": Threads}
