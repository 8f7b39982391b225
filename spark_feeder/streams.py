"""Query results as streaming frames of Spark: the implementation of `seustream.spark`.

Nothing runs until a result is read: its first reader starts the queries that feed the streams. A
reader with the trigger `availableNow` wants everything there is and an end. The feed then reads
what its sources have, ends the streams, and the reader stops after the last result.

Without an address the bridge runs in this process, with its journal beside the checkpoint.
"""

from __future__ import annotations

import atexit
import contextlib
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from seustream.compiler.pipeline import Compilation
from seustream.cosim.bridge.access import NONE, Access
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.journal_errors import JournalDamaged, JournalHeld, JournalRefused
from seustream.cosim.bridge.limits import Limits
from seustream.cosim.bridge.protocol import PLAIN, Run
from seustream.cosim.bridge.service import Service
from seustream.hdl.config import DeviceConfig
from seustream.spark_feeder.bridged import BridgedQueries, bridged
from seustream.spark_feeder.checkpoints import check, held
from seustream.spark_feeder.connection import Connection
from seustream.spark_feeder.draining import Drain
from seustream.spark_feeder.errors import FeedError
from seustream.spark_feeder.job import Job, Trigger, feeding, started
from seustream.spark_feeder.keyed import INSIDE, keyed
from seustream.spark_feeder.progress import OBSERVED
from seustream.spark_feeder.queries import config_of

_LOOK, _GRACE = 0.1, 5.0
"""Seconds between polls of readers' requests, and for a bridge to end."""
_RESTARTS = 20
_ROOM = Limits(result_rows=1 << 24, result_bytes=4 << 30)
"""Limits of a bridge in this process, wide because queries may be read one after the other."""
_RUNNING: dict[Path, SqlStreams] = {}
"""By checkpoint. A notebook's cell that runs again replaces its former run."""


class SqlStreams(dict[str, DataFrame]):
    """The results of each query as a streaming frame, by the query's name.

    `bridge` is the address at which the queries run, or `spark`. `stop` ends the feed and a bridge in this
    process; it is also called at exit. With a checkpoint, the same streams can resume later.
    """

    bridge = INSIDE

    def __init__(
        self, frames: Iterable[tuple[str, DataFrame]], place: Path, stack: contextlib.ExitStack
    ) -> None:
        self._place, self._stack = place, stack
        super().__init__(frames)
        _RUNNING[place] = self
        atexit.register(self.stop)

    def stop(self) -> None:
        """Stops everything that runs here."""
        atexit.unregister(self.stop)
        self._stack.close()
        _RUNNING.pop(self._place, None)


class _Stopped(Exception):
    """Ends a feed whose results are not wanted any more."""


class BridgedStreams(SqlStreams):
    """Results of queries at a bridge, with the feed that brings it the streams. Those of a `resumed`
    feed may have been read and given up before: a reader without a checkpoint wants them all."""

    def __init__(
        self,
        at: BridgedQueries,
        place: Path,
        drain: Drain,
        ends: bool,
        resumed: bool,
        stack: contextlib.ExitStack,
    ) -> None:
        self.bridge = at.connection.bridges[0]
        self._at, self._drain, self._ends = at, drain, ends
        self._stopped = threading.Event()
        self._job: Job | None = None
        program = at.compilation.program
        frames = []
        for name in program.names:
            begin = 0 if resumed else at.connection.client().latest(name)["first"]
            rows = at.results(name, f"{OBSERVED}_{name}", drain=drain.folder, begin=str(begin))
            frames.append((name, rows))
        super().__init__(frames, place, stack)
        self._thread = threading.Thread(target=self._feed, name="seustream feed", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        super().stop()

    def _feed(self) -> None:
        """Brings rows once they are wanted; this is the thread's work."""
        try:
            # Makes this session the thread's: Spark finds Python's data sources in no other.
            self._at.spark.createDataFrame([], "nothing int")
            while not self._stopped.wait(_LOOK):
                if self._drain.all_wanted:
                    return self._drained()
                if self._drain.wanted and self._job is None:
                    self._job = self._started(Trigger(bounded=False))
                if self._job is not None:
                    self._job.look()
        except FeedError as error:
            self._drain.fail(f"{error}{f' ({error.hint})' if error.hint else ''}")
        except Exception as error:
            self._drain.fail(f"{type(error).__name__}: {error}")
        finally:
            if self._job is not None:
                self._job.stop()
        return None

    def _drained(self) -> None:
        """Reads what the sources have by now, to the last result."""
        if self._job is not None:
            self._job.stop()
        self._job = self._started(Trigger(bounded=True))
        while not self._job.read:
            self._job.look()
            if self._stopped.wait(_LOOK):
                return
        with contextlib.suppress(_Stopped):
            self._job.finish(self._check_wanted, ends=self._ends)
            self._drain.answer()

    def _check_wanted(self, *counts: object) -> None:
        if self._stopped.is_set():
            raise _Stopped

    def _started(self, trigger: Trigger) -> Job:
        self._at.put_whole()
        writers = started(feeding(self._at, self._place, trigger))
        return Job(self._at.connection, writers, [], trigger.bounded, _RESTARTS)


def sql_streams(
    spark: SparkSession,
    compile: Callable[[DeviceConfig], Compilation],
    sources: Mapping[str, DataFrame],
    *,
    bridge: str | None = None,
    checkpoint: str | Path | None = None,
    how: Run = PLAIN,
    ends: bool = True,
    access: Access = NONE,
) -> SqlStreams:
    """Returns the results of a query set over these frames. `compile` compiles it for the device of
    the bridge, which may be `INSIDE`; with `ends`, a reader of everything there is ends the
    streams."""
    with contextlib.ExitStack() as stack:
        place = _place(checkpoint, stack)
        if place in _RUNNING:
            _RUNNING[place].stop()
        stack.enter_context(held(place))
        check(place)
        if bridge == INSIDE:
            inside = keyed(compile(DeviceConfig()), sources, place, how, ends=ends)
            return SqlStreams(
                [(name, inside.results(name, f"{OBSERVED}_{name}")) for name in inside.names],
                place,
                stack.pop_all(),
            )
        url = bridge or stack.enter_context(_local(spark, place / "journal"))
        connection = Connection((url,), access)
        at = bridged(compile(config_of(connection.client())), sources, connection)
        try:
            at.load(how, fresh=checkpoint is None)
        except BridgeError as error:
            if error.kind != "in-use" or bridge is not None:
                raise
            raise FeedError(
                f"{place} is the checkpoint of other queries",
                "name another one, or give the text it was begun with",
            ) from None
        drain = Drain(stack.enter_context(tempfile.TemporaryDirectory(prefix="seustream-feed-")))
        return BridgedStreams(at, place, drain, ends, checkpoint is not None, stack.pop_all())


def _place(checkpoint: str | Path | None, stack: contextlib.ExitStack) -> Path:
    if checkpoint is not None:
        return Path(checkpoint).absolute()
    folder = tempfile.TemporaryDirectory(prefix="seustream-", ignore_cleanup_errors=True)
    return Path(stack.enter_context(folder))


@contextlib.contextmanager
def _local(spark: SparkSession, journal: Path) -> Iterator[str]:
    """Runs a bridge in this process, which joins without a device; yields its address."""
    master = spark.conf.get("spark.master", "") or ""
    if not master.startswith("local"):
        raise FeedError(
            f"a bridge in this process is out of reach of the workers of {master or 'Spark Connect'}",
            "start one with `seustream serve` and name it: bridge='grpc://HOST:8815'",
        )
    try:
        journal.parent.mkdir(parents=True, exist_ok=True)
        served = Bridge(None, journal, "engine", _ROOM)
    except JournalHeld:
        raise FeedError(
            f"{journal.parent} is the checkpoint of a job that is running",
            "stop that one first, or name another checkpoint",
        ) from None
    except (JournalDamaged, JournalRefused) as error:
        hint = f"seustream journal check {journal}: says what is there and what can be saved"
        raise FeedError(str(error), hint) from None
    except OSError as error:
        raise FeedError(f"{journal}: {error.strerror}") from None
    service = Service(served, "grpc://127.0.0.1:0")
    try:
        yield f"grpc://127.0.0.1:{service.port}"
    finally:
        service.stop(_GRACE)
        served.close(_GRACE)
