"""Jobs whose queries run inside Spark: one Spark query for each, from the sources to the
destination of its results."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seustream.compiler.pipeline import Compilation, compile_text
from seustream.cosim.bridge.protocol import Run
from seustream.spark_feeder.checkpoints import check, held, location
from seustream.spark_feeder.connection import Connection
from seustream.spark_feeder.errors import FeedError
from seustream.spark_feeder.job import Flow, Job, Sink, Start, Trigger, started
from seustream.spark_feeder.keyed import COUNTED, FOLDER, KeyedQueries, keyed
from seustream.spark_feeder.progress import LATE_ROWS, QUERY, FeedCounts
from seustream.spark_feeder.queries import text_of_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass
class KeyedJob(Job):
    """A job that runs inside Spark. `flows` starts its queries, until the end of the present data
    if bounded."""

    flows: Callable[[Trigger], list[Flow]] = field(kw_only=True)
    _batches: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)

    def look(self) -> None:
        for flow in self.writers:
            for progress in flow.query.recentProgress:
                of = flow.name.removeprefix(QUERY).removeprefix(LATE_ROWS)
                found = progress["observedMetrics"].get(COUNTED + of)
                if found is not None:
                    self._batches[flow.name, progress["batchId"]] = found.asDict()
        super().look()

    def finish(
        self, show: Callable[[FeedCounts, float], None] | None = None, ends: bool = True
    ) -> FeedCounts:
        """Ends the streams, if `ends` and the job is not bounded: the data there by now is their
        content."""
        if ends and not self.bounded:
            self.look()
            for flow in self.writers:
                flow.query.stop()
            self.bounded = True
            self.writers = self.flows(Trigger(bounded=True))
            return self.wait(show)
        self.look()
        counts = self.counts()
        if show is not None:
            show(counts, self.world.now() - self.began)
        self.stop()
        return counts

    def counts(self) -> FeedCounts:
        """Returns the counts of the completed micro-batches. Each query counts the rows of its
        streams."""
        counts = FeedCounts()
        of: dict[str, dict[str, int]] = {}
        for (name, batch), found in self._batches.items():
            counts.epochs = max(counts.epochs, batch + 1)
            mine = of.setdefault(name, {})
            for what, count in found.items():
                if what != "faults":
                    mine[what] = mine.get(what, 0) + (count or 0)
            for lines in found.get("faults") or ():
                _add_faults(counts, name.removeprefix(QUERY), json.loads(lines))
        for name, sums in of.items():
            for what, count in sums.items():
                kind, _, stream = what.partition(" ")
                into = {"taken": counts.rows, "late": counts.late}.get(kind)
                if into is not None:
                    into[stream] = max(into.get(stream, 0), count)
                elif name.startswith(QUERY):
                    counts.results[name.removeprefix(QUERY)] = count
        return counts


def _add_faults(counts: FeedCounts, query: str, lines: dict[str, list[Any]]) -> None:
    mine = counts.faults.setdefault(query, {})
    for place, (count, row) in lines.items():
        before, first = mine.get(place, (0, row))
        mine[place] = (before + count, first)


def start(
    queries: Compilation | str | Path,
    sources: Mapping[str, DataFrame],
    sink: Sink,
    checkpoint: str | Path | None,
    trigger: Trigger,
    how: Run,
    select: Mapping[str, str] | None,
    restarts: int,
    late: Sink | None,
) -> KeyedJob:
    """Starts a job inside Spark, as `job.run` does."""
    compilation = queries
    if not isinstance(compilation, Compilation):
        compilation = compile_text(*text_of_file(compilation))
    with contextlib.ExitStack() as stack:
        folder = checkpoint
        if folder is None:
            made = tempfile.TemporaryDirectory(prefix="seustream-", ignore_cleanup_errors=True)
            folder = stack.enter_context(made)
        place = Path(folder).absolute()
        stack.enter_context(held(place))
        if (place / "streams").exists():
            what = f"{place} is the checkpoint of a job at a bridge"
            raise FeedError(what, "name another one, or the bridge")
        check(place)
        at = keyed(compilation, sources, place, replace(how, late=late is not None), select)

        def flows(trigger: Trigger) -> list[Flow]:
            return started(_starts(at, place, trigger, sink, late))

        job = KeyedJob(Connection(()), flows(trigger), [], trigger.bounded, restarts, flows=flows)
        job.held = stack.pop_all()
    return job


def _starts(
    at: KeyedQueries, place: Path, trigger: Trigger, sink: Sink, late: Sink | None
) -> list[Start]:
    """Returns the queries of a job: one for the results of each, one for the late rows of each
    stream."""

    def deliver(query: str) -> StreamingQuery:
        writer = sink(query, at.results(query)).queryName(QUERY + query)
        return trigger.of(
            writer.option("checkpointLocation", location(place / FOLDER / query))
        ).start()

    def put_aside(stream: str) -> StreamingQuery:
        assert late is not None
        writer = late(stream, at.late(stream)).queryName(LATE_ROWS + stream)
        return trigger.of(
            writer.option("checkpointLocation", location(place / "late" / stream))
        ).start()

    starts: list[Start] = [(QUERY + name, deliver, name) for name in at.names]
    if late is not None:
        streaming = [name for name, rows in at.frames.items() if rows.isStreaming]
        starts += [(LATE_ROWS + name, put_aside, name) for name in streaming]
    return starts
