"""A job in a simulated world: Spark, a bridge on a machine, and everything that goes wrong, under one seed.

    story = play(7)         raises `Violation`, with its story, for what must not be
    shrink(violation)       the same with fewer faults and rows

What must hold: each query's results are the reference's, each once, also when a batch is read again;
nothing that was acknowledged is lost; watermarks never retreat; what waits stays under its bounds;
after the last fault everything comes to its end in bounded time; and a bridge refuses to go on only
over a disk that lied, naming file and place.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import re
import uuid
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa

from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.pipeline import Compilation
from seustream.cosim.bridge import loading, registry
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.journal_errors import JournalDamaged
from seustream.cosim.bridge.limits import USUAL
from seustream.cosim.bridge.mark import MARK
from seustream.cosim.bridge.statements import Entry, entries_of
from seustream.engine.assembly import answer_schemas
from seustream.spark_feeder import source
from seustream.spark_feeder.errors import FeedError, cause
from seustream.spark_feeder.job import _LASTING
from tests.cosim.bridge.serving import Rows, compiled, wanted
from tests.cosim.bridge.simdisk import SimDisk
from tests.world.checks import Checks
from tests.world.faults import Faults
from tests.world.machine import BootDisk, SlowDevice, cut, flip
from tests.world.network import Network, SimService
from tests.world.operators import TEXT, Operators
from tests.world.simulation import Process, Simulation, SimWorld, Stuck
from tests.world.spark import Checkpoint, Driver, TaskFailed

FOLDER = Path("/j")
NAMES = ("pairs", "large", "counts")
LIMITS = replace(
    USUAL, journal_bytes=7_000, waiting_rows=30, result_rows=30, patience=5.0,
    replay_seconds=float("inf"),
)  # fmt: skip
IDLE, GRACE = 30.0, 10.0
CALM = 40.0
"""Virtual seconds during which faults happen."""
DRAINED = 300.0
"""Virtual seconds after the last fault in which everything must be over."""
SLACK = 24
"""Milliseconds by which rows are out of order in some jobs."""
SIZES = (60, 10, 24, 10, 10, 10)
"""Rows of each stream, by seed."""
DATASETS = 6
LIBRARIES = Libraries()
"""Shared by all jobs, so that a query set is compiled once."""


class Violation(AssertionError):
    def __init__(
        self, seed: int, without: tuple[str, ...], rows: int, what: str, story: str
    ) -> None:
        super().__init__(f"seed {seed}: {what}")
        self.seed, self.without, self.rows, self.what, self.story = seed, without, rows, what, story


@functools.cache
def compilation(text: str) -> Compilation:
    return compiled(text)


@functools.cache
def data(number: int, rows: int) -> tuple[dict[str, pa.Table], dict[str, Rows]]:
    """Returns rows of both streams, and the results of the reference."""
    chance = np.random.default_rng(number)
    key = [chance.integers(0, 8, rows).astype(np.int32) for _ in range(2)]
    ts = [np.sort(chance.choice(4 * rows, rows, replace=False)) for _ in range(2)]
    r = {"a": pa.array(key[0], mask=chance.random(rows) < 0.05)}
    r["b"] = pa.array(chance.integers(0, 1000, rows).astype(np.int32))
    s = {"d": pa.array(key[1]), "name": pa.array([f"n{i % 7}" for i in range(rows)])}
    made = {
        "R": pa.table({"ts": pa.array(ts[0]), **r}),
        "S": pa.table({"ts": pa.array(ts[1]), **s}),
    }
    return made, wanted(compilation(TEXT), made)


def out_of_order(rows: pa.Table, seed: int) -> pa.Table:
    """Returns the same rows, each delayed by less than the slack."""
    ts = rows["ts"].to_numpy()
    later = ts + np.random.default_rng(seed).integers(0, SLACK, len(ts))
    return rows.take(pa.array(np.argsort(later, kind="stable")))


class Job:
    def __init__(self, seed: int, without: Collection[str], rows: int) -> None:
        self.simulation = Simulation(seed)
        self.faults = Faults(seed, without, CALM)
        self.network = Network(self.simulation, self.faults)
        self.disk = SimDisk()
        self.rows, self.wanted = data(seed % DATASETS, rows)
        if seed % 4 == 3:
            self.rows = {name: out_of_order(table, seed) for name, table in self.rows.items()}
        self.feeds = {name: Checkpoint() for name in self.rows}
        self.readers = {name: Checkpoint() for name in NAMES}
        self.output: dict[str, dict[int, pa.Table]] = {name: {} for name in NAMES}
        self.acked: dict[str, int] = {}
        self.finished: set[str] = set()
        self.refused: str | None = None
        self.wrong: str | None = None
        self.driver: Driver | None = None
        self.bridge: Process | None = None
        self.operators = Operators(self, seed)
        self.checks = Checks(self)
        self.idle = IDLE
        self.run = p.Run(slack=SLACK if seed % 4 == 3 else None)

    # --- the bridge -------------------------------------------------------------

    def boot(self) -> None:
        process = self.bridge = Process("bridge")
        self.simulation.spawn(process, "bridge", lambda: self._serve(process))

    def _serve(self, process: Process) -> None:
        simulation = self.simulation
        world = SimWorld(simulation, process)
        disk = BootDisk(simulation, process, self.disk, self.faults, self.lose_power)
        wrong = self.faults.of_disk
        try:
            bridge = Bridge(
                SlowDevice(simulation, self.faults), FOLDER, "golden", LIMITS, world, most_calls=1e9,
                libraries=LIBRARIES, disk=disk,
            )  # fmt: skip
        except JournalDamaged as error:
            self.refuse(str(error))
            return
        except (OSError, BridgeError) as error:
            simulation.tell(f"bridge: does not start: {error}")
            self.restart_bridge(1.0)
            return
        except Exception as error:
            self.fail(f"the bridge does not start: {type(error).__name__}: {error}")
            return
        simulation.tell("bridge: serves" + "".join(f"; {note}" for note in bridge.journal.notes))
        self.network.server = (process, SimService(bridge))
        self._check_kept(bridge)
        begun = [path for path in self.disk.files if path.match("staged/*.partial")]
        if begun and self.faults.of_disk == wrong and self.disk.room is None:
            self.fail(f"a bridge that has started leaves {begun[0].name}, which nobody will end")
        while True:
            world.sleep(IDLE / 4)
            for peer in bridge.exchanges.idle(IDLE):
                self.network.cut(peer)

    def refuse(self, why: str) -> None:
        """Notes that a bridge refuses to go on; it must give the place, and its disk must have
        lied."""
        self.simulation.tell(f"bridge: refuses: {why}")
        if not self.faults.damaged:
            self.fail(f"a refusal over a disk that did not lie: {why}")
        if not re.search(r"/j/[\w/.-]+: byte [\d,]+: ", why):
            self.fail(f"a refusal that does not say where: {why}")
        self.refused = why

    def _stop(self, bridge: Bridge) -> None:
        """Stops a bridge as a signal does."""
        process, begun = self.bridge, self.simulation.time
        bridge.stop()
        for exchange in list(self.network.exchanges):
            self.network.cut(exchange.peer)
        ended = bridge.close(GRACE)
        slow = {"device slow", "disk slow", "bridge stalled"} & {*self.faults.happened}
        if not slow and (not ended or self.simulation.time - begun > 1.0):
            self.fail("a bridge that is asked to stop goes on")
        if process is self.bridge:
            self.restart_bridge(1.0)
            if self.faults.happens("power lost after a stop", self.simulation.time):
                soon = 1.0 + 3 * self.faults.of("power lost after a stop").random()
                self.simulation.at(self.simulation.time + soon, self.lose_power)

    def restart_bridge(self, after: float, power: bool = False) -> None:
        process = self.bridge
        if process is None:
            return
        self.bridge, self.network.server = None, None
        self.simulation.kill(process)

        def again() -> None:
            if power:
                # The mark of the folder is where it was; nothing is promised on a disk that forgets
                # both.
                forgets = self.faults.happens("folder forgotten", self.simulation.time)
                if forgets and self.disk.forget(FOLDER, FOLDER / MARK):
                    self.simulation.tell("disk: the last sync of the folder is forgotten")
                self.disk.lose_power(self.faults.of("power lost"))
            self.disk.restart()
            self.boot()

        self.simulation.at(self.simulation.time + after, again)

    def lose_power(self) -> None:
        self.faults.note("power lost", self.simulation.time)
        self.simulation.tell("machine: the power is lost")
        self.restart_bridge(2.0, power=True)

    # --- Spark ------------------------------------------------------------------

    def start_driver(self) -> None:
        driver = self.driver = Driver(self.simulation, self.network, self.faults)
        self.simulation.spawn(driver.process, "driver", lambda: self._drive(driver))

    def _drive(self, driver: Driver) -> None:
        def load() -> None:
            try:
                driver.client().load(compilation(TEXT), self.run)
            except BridgeError as error:
                # Another set has been swapped in, or the catalogue has one more query.
                if error.kind != "in-use":
                    raise

        self._lasting(load)
        columns = answer_schemas(compilation(TEXT).program)
        flows = [
            self._flow(driver, f"feed {name}", lambda name=name: self._feed(driver, name))
            for name in self.rows
        ] + [
            self._flow(
                driver,
                f"read {name}",
                lambda name=name: driver.deliver(
                    name,
                    columns[name],
                    self.readers[name],
                    self.output[name],
                    lambda: self._over(driver, name),
                ),
            )
            for name in NAMES
        ]
        for flow in flows:
            self.simulation.join(flow)

    def _feed(self, driver: Driver, name: str) -> None:
        driver.feed(name, self.rows[name], self.feeds[name], self.acked)
        driver.client().end(name)

    def _over(self, driver: Driver, name: str) -> bool:
        """Returns whether a reader has come to the end. It asks once its streams are fed: before
        that there is none."""
        if not all(f"feed {one}" in self.finished for one in self.rows):
            return False
        kept = self.readers[name]
        last = kept.offsets[kept.next - 1][1]["0"] if kept.next else 0
        found = driver.client().latest(name, last)
        return bool(found["over"]) and found["end"] == last

    def _flow(self, driver: Driver, name: str, work: Callable[[], None]) -> Any:
        def run() -> None:
            self._lasting(work)
            self.finished.add(name)
            self.simulation.tell(f"spark: {name} is over")

        return self.simulation.spawn(driver.process, name, run)

    def _lasting(self, work: Callable[[], None]) -> None:
        """Repeats something until it succeeds, if its error may pass."""
        while True:
            try:
                return work()
            except AssertionError as error:
                return self.fail(str(error))
            except (FeedError, BridgeError, TaskFailed) as error:
                kind = error.kind if isinstance(error, BridgeError) else None
                if isinstance(error, FeedError):
                    kind = cause(f"FeedError: {error}")[0] or str(error).partition(":")[0]
                self.simulation.tell(f"spark: {kind}: {error}")
                if kind == "failed" and self.faults.damaged:
                    return self.refuse(str(error))
                if kind in _LASTING or kind == "internal":
                    return self.fail(f"a job ends with {kind}: {error}")
            except Exception as error:
                return self.fail(f"{type(error).__name__}: {error}")
            self.simulation.park(0.5)

    # --- what happens to it -----------------------------------------------------

    def tick(self) -> None:
        """Runs once a second: whatever may befall the world."""
        simulation, faults = self.simulation, self.faults
        now = simulation.time
        simulation.at(now + 1.0, self.tick)
        if faults.happens("bridge killed", now) and self.bridge is not None:
            simulation.tell("bridge: killed")
            self.restart_bridge(1.0)
        if faults.happens("power lost", now):
            self.lose_power()
        if faults.happens("driver killed", now) and self.driver is not None:
            simulation.tell("spark: the driver is killed")
            simulation.kill(self.driver.process)
            self.driver = None
            simulation.at(now + 2.0, self.start_driver)
        if faults.happens("network down", now):
            simulation.tell("network: down")
            self.network.down_until = now + 6 * faults.of("network down").random()
        if faults.happens("clock of day set", now):
            hours = faults.of("clock of day set").randint(-48, 48)
            simulation.tell(f"machine: somebody sets the clock by {hours} hours")
            simulation.jump += hours * 3_600_000
        if faults.happens("bridge stalled", now):
            simulation.tell("machine: nothing happens for a while")
            simulation.time += 10.0
        if faults.happens("disk full", now):
            simulation.tell("disk: full")
            self.disk.room = self.disk.used + 100
            simulation.at(now + 5.0, self._room)
        if faults.happens("bit flipped", now):
            simulation.tell(f"disk: a bit flips: {flip(self.disk, faults.of('bit flipped'))}")
        if faults.happens("file cut", now):
            simulation.tell(f"disk: a file is cut: {cut(self.disk, faults.of('file cut'))}")
        if faults.happens("bridge stopped", now) and self.network.server is not None:
            simulation.tell("bridge: is asked to stop")
            process, service = self.network.server
            self.network.server = None
            simulation.spawn(process, "stop", lambda: self._stop(service.bridge))
        self.operators.tick()

    def _room(self) -> None:
        self.disk.room = None

    # --- what must hold ---------------------------------------------------------

    def fail(self, what: str) -> None:
        self.wrong = self.wrong or what

    def _check_kept(self, bridge: Bridge) -> None:
        """Checks that nothing that was acknowledged is lost."""
        for writer, epoch in self.acked.items():
            last = bridge.session.epochs.last(writer) if bridge.has_session else -1
            if last < epoch:
                self.fail(f"epoch {epoch} of {writer} was acknowledged, and {last} is the last")

    def over(self) -> bool:
        """Returns whether all is done, no exchange is left open, and a bridge's replay is over."""
        if self.refused is not None:
            return True
        server = self.network.server
        if len(self.finished) < len(self.rows) + len(NAMES) or server is None:
            return False
        bridge = server[1].bridge
        return not len(bridge.exchanges) and bridge.session.applied >= bridge.session.replayed


@functools.cache
def _entries_of(text: str) -> tuple[Entry, ...]:
    return entries_of(compilation(text))


@contextlib.contextmanager
def patched(simulation: Simulation) -> Iterator[None]:
    """Replaces Spark's task context, and identifiers, by ones that follow the seed. What a text
    alone decides is computed once; catalogues look at their clocks every second, and no garbage is
    collected meanwhile."""
    numbers = itertools.count(1)

    class Context:
        @staticmethod
        def get() -> Any:
            return None if simulation.current is None else simulation.current.context

    def uuid4() -> uuid.UUID:
        return uuid.UUID(int=next(numbers))

    with (
        mock.patch.object(source, "TaskContext", Context),
        mock.patch.object(source.uuid, "uuid4", uuid4),
        mock.patch.object(loading, "_REMEMBERED", 64),
        mock.patch.object(registry, "entries_of", lambda c: _entries_of(c.source.text)),
        mock.patch.object(registry, "_CLOCK", 1.0),
    ):
        collected = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if collected:
                gc.enable()


def play(seed: int, without: Collection[str] = (), rows: int | None = None) -> Job:
    """Plays one job from its beginning to its end. Most are short, because short ones see more
    faults in the same time; in the others, whatever waits or is kept reaches its bounds."""
    rows = rows or SIZES[seed % len(SIZES)]
    job = Job(seed, without, rows)
    simulation = job.simulation
    with patched(simulation):
        simulation.at(0.0, job.boot)
        simulation.at(0.5, job.start_driver)
        simulation.at(1.0, job.tick)
        try:
            simulation.run(CALM + DRAINED, job.over, job.checks.look, job.checks.is_quiet)
            if job.refused is None:
                job.checks.check()
        except (AssertionError, Stuck) as error:
            story = "\n".join(f"{time:9.3f} s  {what}" for time, what in simulation.story)
            raise Violation(seed, tuple(without), rows, str(error), story) from error
        finally:
            simulation.end()
    return job


def shrink(found: Violation) -> Violation:
    """Returns the same violation, with as few kinds of faults and rows as show one."""
    for rows in (10, 25):
        if rows < found.rows:
            with contextlib.suppress(_Held):
                found = _once_more(found.seed, found.without, rows)
                break
    for kind in Faults(found.seed).kinds:
        if kind not in found.without:
            with contextlib.suppress(_Held):
                found = _once_more(found.seed, (*found.without, kind), found.rows)
    return found


class _Held(Exception):
    """There is no violation any more."""


def _once_more(seed: int, without: tuple[str, ...], rows: int) -> Violation:
    try:
        play(seed, without, rows)
    except Violation as found:
        return found
    raise _Held
