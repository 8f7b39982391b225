"""A keyed pattern query as a stateful operator of a Spark stream.

    found = match(spark_stream, query, "ts", delay="10 seconds")

The matcher is the engine's own: each key has an operator of its own. Between micro-batches it is kept as
its snapshot in Spark's state store, so that it is in every checkpoint and survives a restart. Spark's
watermark is the operator's: rows wait until it passes them, and a timer on event time wakes a key whose
matches become certain without a new row of that key.

Needs Spark 4.1 or later with the RocksDB state store, which `settings` names.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from seustream.compiler.pattern import ir
from seustream.engine.pattern.errors import PatternError
from seustream.engine.pattern.matchers import operator_of
from seustream.engine.pattern.operator import PatternOperator
from seustream.engine.pattern.output import schema
from seustream.engine.pattern.recognize.operator import RowOperator
from seustream.engine.pattern.variants import VariantsOperator
from seustream.engine.stream.schema import stream_schema
from seustream.spark_feeder.workers import settle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger(__name__)

settings = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}
"""The settings that a session must have."""

MATCHED_AT = "matched_at"
"""The column after those of RETURN: the time of the match, in milliseconds."""


def match(
    rows: DataFrame, query: ir.MatchQuery, time: str = "ts", delay: str = "0 seconds"
) -> DataFrame:
    """Returns the matches of a query with PARTITION BY over a stream. `time` is its timestamp
    column; `delay` is how far its times may fall back. The columns are those of RETURN, and the
    time of the match."""
    if not query.partition:
        raise PatternError(
            f"query {query.name}: a stateful operator needs keys",
            "PARTITION BY a column: each of its values is matched by itself",
        )
    if ir.TIME in query.partition:
        raise PatternError(
            f"query {query.name}: the time is no key of a stateful operator",
            "PARTITION BY a column, whose values come again",
        )
    if query.window is None:
        raise PatternError(
            f"query {query.name}: a stream has no end to wait for", "add WITHIN to the query"
        )
    from pyspark.sql import functions as f

    columns = {column.name.lower(): column.name for column in query.stream.columns}
    keys = [columns[name] for name in query.partition]
    inside = [columns[name] for name in columns if name not in query.partition]
    keyed = (
        rows.withWatermark(time, delay)
        .select(
            *[f.col(name).alias(f"key_{number}") for number, name in enumerate(keys)],
            f.col(time),
            f.unix_millis(f.col(time)).alias("_ts"),
            *[f.col(name) for name in inside],
        )
        .groupBy(*[f"key_{number}" for number in range(len(keys))])
    )
    processor = _processor(query, columns, inside)
    return keyed.transformWithState(
        statefulProcessor=processor,
        outputStructType=_spark_schema(query),
        outputMode="Append",
        timeMode="EventTime",
    )


def _spark_schema(query: ir.MatchQuery) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema(query).append(pa.field(MATCHED_AT, pa.int64())))


def _processor(query: ir.MatchQuery, columns: dict[str, str], inside: list[str]) -> Any:
    """Returns the processor, a subclass of Spark's class, defined here so that this module imports
    without Spark."""
    from pyspark.sql import Row
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class PatternProcessor(StatefulProcessor):
        def init(self, handle: Any) -> None:
            settle()
            self._handle = handle
            self._state = handle.getValueState("operator", "snapshot string")

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Any:  # noqa: N802, N803
            operator = self._operator()
            before = operator.stats.bad_events
            given = dict(zip((columns[name] for name in query.partition), key, strict=True))
            taken = [{"ts": row["_ts"], **{n: row[n] for n in inside}, **given} for row in rows]
            operator.push_table(pa.Table.from_pylist(taken, schema=stream_schema(query.stream)))
            untimed = operator.stats.bad_events - before
            if untimed:
                log.warning("query %s, key %s: %d rows without a time", query.name, key, untimed)
            yield from self._advance(operator, timerValues)

        def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Any:  # noqa: N802, N803
            yield from self._advance(self._operator(), timerValues)

        def close(self) -> None:
            pass

        def _operator(self) -> PatternOperator | VariantsOperator | RowOperator:
            operator = operator_of(query)
            stored = self._state.get()
            if stored is not None:
                operator.restore(json.loads(stored[0]))
            return operator

        def _advance(
            self, operator: PatternOperator | VariantsOperator | RowOperator, timer_values: Any
        ) -> Iterator[Any]:
            # A row at Spark's watermark is not late yet.
            now = timer_values.getCurrentWatermarkInMs() - 1
            found, times = operator.advance_table(max(now, operator.watermark))
            rows = zip(found.to_pylist(), times.tolist(), strict=True)
            yield from (Row(**row, **{MATCHED_AT: time}) for row, time in rows)
            for timer in list(self._handle.listTimers()):
                self._handle.deleteTimer(timer)
            due = operator.next_due
            if due is None:
                self._state.clear()
            else:
                self._handle.registerTimer(due + 1)
                self._state.update((json.dumps(operator.snapshot()),))

    return PatternProcessor()
