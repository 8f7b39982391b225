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
import itertools
import re
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa

from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.pipeline import Compilation
from seustream.cosim.bridge import loading
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.journal_errors import JournalDamaged
from seustream.cosim.bridge.limits import USUAL
from seustream.cosim.bridge.service import Bridge
from seustream.engine.graph import answer_schemas
from seustream.spark_feeder import source
from seustream.spark_feeder.errors import FeedError, cause
from seustream.spark_feeder.job import _LASTING
from tests.cosim.bridge.serving import QUERIES, Rows, compiled, multiset, wanted
from tests.cosim.bridge.simdisk import SimDisk
from tests.world.faults import Faults
from tests.world.machine import BootDisk, SlowDevice, flip
from tests.world.network import Network, SimService
from tests.world.simulation import Process, Simulation, SimWorld, Stuck
from tests.world.spark import Checkpoint, Driver, TaskFailed

FOLDER = Path("/j")
TEXT = QUERIES + "REGISTER QUERY counts AS SELECT R.a, count(*) FROM R GROUP BY R.a WINDOW ROWS 9;"
MORE = TEXT + "REGISTER QUERY few AS SELECT S.d FROM S WHERE S.d > 5 WINDOW NOW;"
NAMES = ("pairs", "large", "counts")
NEW = "REGISTER QUERY extra AS SELECT R.a, R.b FROM R WHERE R.b > 300 WINDOW NOW"
LIMITS = replace(
    USUAL, journal_bytes=7_000, waiting_rows=30, result_rows=30, patience=5.0,
    replay_seconds=float("inf"),
)  # fmt: skip
IDLE = 30.0
CALM = 40.0
"""Virtual seconds in which faults happen."""
DRAINED = 300.0
"""And those after the last in which all must be over."""
DATASETS = 6


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
    """Rows of both streams, and the results of the reference."""
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


class Job:
    def __init__(self, seed: int, without: Collection[str], rows: int) -> None:
        self.simulation = Simulation(seed)
        self.faults = Faults(seed, without, CALM)
        self.network = Network(self.simulation, self.faults)
        self.disk = SimDisk()
        self.rows, self.wanted = data(seed % DATASETS, rows)
        self.feeds = {name: Checkpoint() for name in self.rows}
        self.readers = {name: Checkpoint() for name in NAMES}
        self.output: dict[str, dict[int, pa.Table]] = {name: {} for name in NAMES}
        self.acked: dict[str, int] = {}
        self.finished: set[str] = set()
        self.refused: str | None = None
        self.wrong: str | None = None
        self.driver: Driver | None = None
        self.bridge: Process | None = None
        self.operators = Process("operators")
        self.swaps = "queries swapped" in self.faults.kinds
        self.registered: int | None = None
        self.asked = False
        self.libraries = Libraries()
        self._promises: tuple[Any, dict[str, int]] = (None, {})
        self._steps = 0

    # --- the bridge -------------------------------------------------------------

    def boot(self) -> None:
        process = self.bridge = Process("bridge")
        self.simulation.spawn(process, "bridge", lambda: self._serve(process))

    def _serve(self, process: Process) -> None:
        simulation = self.simulation
        world = SimWorld(simulation, process)
        disk = BootDisk(simulation, process, self.disk, self.faults, self.lose_power)
        try:
            bridge = Bridge(
                SlowDevice(simulation, self.faults), FOLDER, "golden", LIMITS, world, most_calls=1e9,
                libraries=self.libraries, disk=disk,
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
        while True:
            world.sleep(IDLE / 4)
            for peer in bridge.exchanges.idle(IDLE):
                self.network.cut(peer)

    def refuse(self, why: str) -> None:
        """A bridge says that it cannot go on."""
        self.simulation.tell(f"bridge: refuses: {why}")
        if not self.faults.damaged:
            self.fail(f"a refusal over a disk that did not lie: {why}")
        if not re.search(r"/j/[\w/.-]+: byte [\d,]+: ", why):
            self.fail(f"a refusal that does not say where: {why}")
        self.refused = why

    def restart_bridge(self, after: float, power: bool = False) -> None:
        process = self.bridge
        if process is None:
            return
        self.bridge, self.network.server = None, None
        self.simulation.kill(process)

        def again() -> None:
            if power:
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
                driver.client().load(compilation(TEXT))
            except BridgeError as error:
                # Another set has been swapped in, or the catalogue has one query more.
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
        """A reader has come to the end."""
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
        """Does something again until it succeeds, if its error may pass."""
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
        """Once a second, whatever may befall the world."""
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
        if faults.happens("queries swapped", now):
            text = faults.of("queries swapped").choice((TEXT, MORE))
            simulation.spawn(self.operators, "swap", lambda: self._swap(text))
        if not self.swaps and not self.asked and faults.happens("query registered", now):
            self.asked = True
            simulation.spawn(self.operators, "register", self._register)

    def _room(self) -> None:
        self.disk.room = None

    def _operator(self) -> Any:
        driver = Driver(self.simulation, self.network, self.faults)
        return driver.client()

    def _swap(self, text: str) -> None:
        self.simulation.tell(f"operator: swaps to {text.count('QUERY')} queries")
        with contextlib.suppress(BridgeError):
            self._operator().swap(compilation(text))

    def _register(self) -> None:
        self.simulation.tell("operator: registers a query")
        while True:
            try:
                self._operator().act("statement", p.Statement(NEW))
            except BridgeError as error:
                if error.kind != "compile" and not (error.retriable or error.kind == "no-session"):
                    if not self.faults.damaged:
                        self.fail(f"a query is not registered: {error}")
                    return
                if error.kind != "compile":
                    self.simulation.park(1.0)
                    continue
            planned = max(self.feeds["R"].offsets, default=-1)
            self.registered = planned + 1
            return

    # --- what must hold ---------------------------------------------------------

    def fail(self, what: str) -> None:
        self.wrong = self.wrong or what

    def _check_kept(self, bridge: Bridge) -> None:
        """Nothing that was acknowledged is lost."""
        for writer, epoch in self.acked.items():
            last = bridge.session.epochs.last(writer) if bridge.has_session else -1
            if last < epoch:
                self.fail(f"epoch {epoch} of {writer} was acknowledged, and {last} is the last")

    def look(self) -> None:
        """After each step; mostly only a glance."""
        if self.wrong is not None:
            raise AssertionError(self.wrong)
        assert self.simulation.crashed is None, self.simulation.crashed
        self._steps += 1
        if self._steps % 8 or self.network.server is None:
            return
        session = self.network.server[1].bridge._session
        if session is None:
            return
        run = session.runner.run
        promises = run.promises
        if self._promises[0] is run:
            for name, before in self._promises[1].items():
                assert promises.get(name, before) >= before, f"the watermark of {name} retreats"
        self._promises = (run, promises)
        if session.applied >= session.replayed:  # a restart takes up what was taken before
            assert session.waiting_rows <= LIMITS.waiting_rows, f"{session.waiting_rows} rows wait"
        assert session.delivery.retained < LIMITS.result_rows + 60, "results wait without a bound"
        assert len(session.epochs.staged) < 60, "staged parts heap up"
        assert self.disk.used < 250_000, f"the journal has {self.disk.used:,} bytes"
        for one in self.network.server[1].bridge.exchanges._open:
            since = self.simulation.time if one.waiting is None else one.waiting
            assert self.simulation.time - since < 2 * IDLE, "an idle exchange stays open"
        self._check_failure(session.failure)

    def _check_failure(self, failure: str | None) -> None:
        if failure is not None:
            process = self.bridge
            if self.faults.damaged:
                self.refuse(failure)
            elif process is not None and process.alive and self.disk.power:
                raise AssertionError(f"the session has failed: {failure}")

    def over(self) -> bool:
        return self.refused is not None or len(self.finished) == len(self.rows) + len(NAMES)

    def check(self) -> None:
        """The end."""
        for name in NAMES:
            found: Rows = Counter()
            for rows in self.output[name].values():
                found += multiset(rows)
            if found != self.wanted[name]:
                lost = (self.wanted[name] - found).total()
                more = (found - self.wanted[name]).total()
                raise AssertionError(f"{name}: {lost} results lost, {more} too many")
        if self.registered is not None and self.network.server is not None:
            self._check_registered(self.network.server[1].bridge)

    def _check_registered(self, bridge: Bridge) -> None:
        """A query that came in mid-stream has all rows of the epochs that came after it, and before
        them those that still waited for the other stream: a row and all that follow."""
        assert self.registered is not None
        log = bridge.session.logs["extra"]
        found = Counter(zip(*(log.rows.column(n).to_pylist() for n in ("a", "b")), strict=True))
        rows, offsets = self.rows["R"], self.feeds["R"].offsets
        latest = offsets[self.registered][0] if self.registered in offsets else rows.num_rows
        for start in range(latest + 1):
            part = rows.slice(start)
            all = zip(part["a"].to_pylist(), part["b"].to_pylist(), strict=True)
            if found == Counter(one for one in all if one[1] > 300):
                return
        raise AssertionError(f"extra has {found.total()} results, which begin nowhere")


@contextlib.contextmanager
def patched(simulation: Simulation) -> Iterator[None]:
    """Spark's context of a task, and identifiers, by the seed; query sets stay compiled."""
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
    ):
        yield


def play(seed: int, without: Collection[str] = (), rows: int = 60) -> Job:
    """One job from its beginning to its end."""
    job = Job(seed, without, rows)
    simulation = job.simulation
    with patched(simulation):
        simulation.at(0.0, job.boot)
        simulation.at(0.5, job.start_driver)
        simulation.at(1.0, job.tick)
        try:
            simulation.run(CALM + DRAINED, job.over, job.look)
            if job.refused is None:
                job.check()
        except (AssertionError, Stuck) as error:
            story = "\n".join(f"{time:9.3f} s  {what}" for time, what in simulation.story)
            raise Violation(seed, tuple(without), rows, str(error), story) from error
        finally:
            simulation.end()
    return job


def shrink(found: Violation) -> Violation:
    """The same violation, with as few kinds of faults and rows as show one."""
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
    """No violation any more."""


def _once_more(seed: int, without: tuple[str, ...], rows: int) -> Violation:
    try:
        play(seed, without, rows)
    except Violation as found:
        return found
    raise _Held
