"""Virtual time: tasks of several processes that take turns, in an order that a seed decides.

A task is a greenlet. It runs until it waits: for time, for a lock, for another task. Nothing else
interrupts it, so a run is the same again under the same seed. A process is a set of tasks that die
together, without warning: whatever they would do on their way out finds neither disk nor network.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet

from seustream.cosim.bridge.world import World


class Killed(GreenletExit):
    """Ends a task of a process that has died."""


class Stuck(AssertionError):
    """Nothing will happen any more, or not in time."""


class Process:
    def __init__(self, name: str) -> None:
        self.name, self.alive = name, True
        self.tasks: dict[SimTask, None] = {}
        self.hooks: list[Callable[[], None]] = []
        """Functions through which others notice its end."""
        self.client: Any = None


class SimTask:
    """A function of a process while it runs. `context` is whatever its caller wants it to have."""

    def __init__(
        self, process: Process, name: str, work: Callable[[], Any], context: Any = None
    ) -> None:
        self.process, self.name, self.work, self.context = process, name, work, context
        self.done, self.woken, self.turn = False, False, 0
        self.error: BaseException | None = None
        self.result: Any = None
        self.joining: list[SimTask] = []
        self.greenlet: Any = None


_Turn = tuple[float, float, int, Any, int]
_IDLE: list[Any] = []
"""Greenlets whose task is over, for reuse: starting one takes longer than most turns."""


class Simulation:
    """A simulated world. `story` holds the lines of what happened, with their times."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(f"turns {seed}")
        self.time = 0.0
        self.jump = 0
        """Milliseconds by which the time of day is wrong."""
        self.current: SimTask | None = None
        self.story: list[tuple[float, str]] = []
        self.crashed: str | None = None
        """The error that ended a thread of the product, which must never happen."""
        self._hub = getcurrent()
        self._queue: list[_Turn] = []
        self._processes: dict[Process, None] = {}
        self._number = 0
        self._until = 0.0
        self._is_quiet: Callable[[], bool] = bool

    def tell(self, what: str) -> None:
        self.story.append((self.time, what))

    # --- tasks ------------------------------------------------------------------

    def spawn(
        self, process: Process, name: str, work: Callable[[], Any], context: Any = None
    ) -> SimTask:
        task = SimTask(process, name, work, context)
        process.tasks[task] = self._processes[process] = None
        self._push(self.time, task, 0)
        return task

    def _begin(self, task: SimTask) -> None:
        """Runs the first turn of a task."""
        while _IDLE and _IDLE[-1].parent is not self._hub:
            _IDLE.pop()
        task.greenlet = _IDLE.pop() if _IDLE else greenlet(_carry, parent=self._hub)
        task.greenlet.switch(self, task)

    def _over(self, task: SimTask) -> None:
        task.done = True
        task.process.tasks.pop(task, None)
        for other in task.joining:
            self.wake(other)

    def at(self, time: float, work: Callable[[], None]) -> None:
        """Schedules something that happens to the world; it does not wait."""
        self._push(time, work, 0)

    def kill(self, process: Process) -> None:
        """Kills a process, at once or after the running task has waited."""
        process.alive = False
        self.at(self.time, lambda: self._bury(process))

    def _bury(self, process: Process) -> None:
        for task in list(process.tasks):
            if not task.done:
                if task.greenlet is not None:
                    before, self.current = self.current, task
                    task.greenlet.throw(Killed)
                    self.current = before
                task.done = True
                for other in task.joining:
                    self.wake(other)
        process.tasks.clear()
        hooks, process.hooks = process.hooks, []
        for hook in hooks:
            hook()

    def run(
        self,
        until: float,
        over: Callable[[], bool],
        look: Callable[[], None],
        is_quiet: Callable[[], bool],
    ) -> None:
        """Runs until it is over, and calls `look` after each step. Raises `Stuck` if it is not over
        in time. If nothing else comes first and `is_quiet` takes the look, a task that waits goes
        on by itself."""
        self._until, self._is_quiet = until, is_quiet
        queue = self._queue
        while not over():
            if not queue or queue[0][0] > until:
                raise Stuck(f"not over at {self.time:.1f} s")
            time, _, _, what, turn = heapq.heappop(queue)
            self.time = max(self.time, time)
            if not isinstance(what, SimTask):
                what()
            elif not what.done and what.turn == turn:
                what.turn += 1
                self.current = what
                if what.greenlet is None:
                    self._begin(what)
                else:
                    what.greenlet.switch()
                self.current = None
            look()

    def end(self) -> None:
        """Releases every task that is left, also those that wait for others: the stack of a task
        that never ends is never collected."""
        while self._processes:
            process, _ = self._processes.popitem()
            process.alive = False
            self._bury(process)

    # --- waiting ----------------------------------------------------------------

    def park(self, timeout: float | None = None) -> bool:
        """Makes the running task wait; returns whether it was woken before its time."""
        task = self.current
        assert task is not None, "only a task can wait"
        if not task.process.alive:
            raise Killed
        task.woken = False
        if timeout is not None:
            mine = self._push(self.time + max(timeout, 0.0), task, task.turn)
            if self._queue[0] is mine and mine[0] <= self._until and self._is_quiet():
                heapq.heappop(self._queue)
                self.time = mine[0]
                task.turn += 1
                return False
        self._hub.switch()
        if not task.process.alive:
            raise Killed
        return task.woken

    def wake(self, task: SimTask) -> None:
        if not task.done:
            task.woken = True
            self._push(self.time, task, task.turn)

    def join(self, task: SimTask, timeout: float | None = None) -> None:
        until = None if timeout is None else self.time + timeout
        while not task.done and (until is None or self.time < until):
            assert self.current is not None
            task.joining.append(self.current)
            self.park(None if until is None else until - self.time)

    def _push(self, time: float, what: Any, turn: int) -> _Turn:
        # Chance decides which of several things at one moment comes first.
        self._number += 1
        made = (time, self.chance.random(), self._number, what, turn)
        heapq.heappush(self._queue, made)
        return made


def _carry(simulation: Simulation, task: SimTask) -> None:
    """Runs in a greenlet: one task after the other."""
    while True:
        try:
            task.result = task.work()
        except Killed as error:
            task.error = error
        except Exception as error:
            task.error = error
        simulation._over(task)
        _IDLE.append(task.greenlet)
        hub = simulation._hub
        del simulation, task  # the stack of a waiting one is never collected
        simulation, task = hub.switch()


class SimMutex:
    """A reentrant lock."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._owner: SimTask | None = None
        self._depth = 0
        self._waiting: list[SimTask] = []

    def __enter__(self) -> bool:
        task = self._simulation.current
        assert task is not None
        while self._owner not in (None, task):
            self._waiting.append(task)
            self._simulation.park()
        self._owner, self._depth = task, self._depth + 1
        return True

    def __exit__(self, *error: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._free()

    def _free(self) -> None:
        self._owner = None
        waiting, self._waiting = self._waiting, []
        for task in waiting:
            self._simulation.wake(task)


class SimMonitor(SimMutex):
    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation)
        self._sleeping: list[SimTask] = []

    def wait(self, timeout: float | None = None) -> bool:
        task, depth = self._simulation.current, self._depth
        assert task is not None
        assert self._owner is task
        self._depth = 0
        self._free()
        self._sleeping.append(task)
        woken = self._simulation.park(timeout)
        if task in self._sleeping:
            self._sleeping.remove(task)
        self.__enter__()
        self._depth = depth
        return woken

    def notify_all(self) -> None:
        sleeping, self._sleeping = self._sleeping, []
        for task in sleeping:
            self._simulation.wake(task)


class SimFlag:
    def __init__(self, simulation: Simulation) -> None:
        self._simulation, self._set = simulation, False
        self._waiting: list[SimTask] = []

    def set(self) -> None:
        self._set = True
        waiting, self._waiting = self._waiting, []
        for task in waiting:
            self._simulation.wake(task)

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout: float | None = None) -> bool:
        if not self._set:
            assert self._simulation.current is not None
            self._waiting.append(self._simulation.current)
            self._simulation.park(timeout)
        return self._set


class SimActivity:
    def __init__(self, simulation: Simulation, task: SimTask) -> None:
        self._simulation, self._task = simulation, task

    def join(self, timeout: float | None = None) -> None:
        self._simulation.join(self._task, timeout)

    def is_alive(self) -> bool:
        return not self._task.done


class SimWorld(World):
    """The world as a process of a simulation sees it."""

    def __init__(self, simulation: Simulation, process: Process) -> None:
        self.simulation, self.process = simulation, process

    def now(self) -> float:
        return self.simulation.time

    def today(self) -> int:
        return 1_700_000_000_000 + int(self.simulation.time * 1000) + self.simulation.jump

    def sleep(self, seconds: float) -> None:
        self.simulation.park(seconds)

    def chance(self) -> float:
        return self.simulation.chance.random()

    def lock(self) -> SimMutex:
        return SimMutex(self.simulation)

    def event(self) -> SimFlag:
        return SimFlag(self.simulation)

    def condition(self) -> SimMonitor:
        return SimMonitor(self.simulation)

    def start(self, name: str, work: Callable[[], None]) -> SimActivity:
        def watched() -> None:
            try:
                work()
            except Exception as error:
                self.simulation.crashed = f"thread {name}: {type(error).__name__}: {error}"

        return SimActivity(self.simulation, self.simulation.spawn(self.process, name, watched))
