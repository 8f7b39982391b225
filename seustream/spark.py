"""`sql_streams`: continuous queries over streaming frames of Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from seustream.compiler.pipeline import Options
from seustream.cosim.bridge.access import Access
from seustream.cosim.bridge.protocol import Run
from seustream.errors import QueryError
from seustream.frames import declarations, declared, stream_of
from seustream.hdl.config import DeviceConfig
from seustream.texts import compiled, text_of, translated

try:
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame
    from pyspark.sql.pandas.types import to_arrow_schema

    from seustream.spark_feeder.errors import FeedError
    from seustream.spark_feeder.job import session
    from seustream.spark_feeder.streams import SqlStreams
    from seustream.spark_feeder.streams import sql_streams as started
except ModuleNotFoundError as error:
    if error.name != "pyspark":
        raise
    raise ImportError('Spark is not installed: python3 -m pip install "seustream[spark]"') from None

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from seustream.compiler.pipeline import Compilation

__all__ = ["SqlStreams", "session", "sql_streams"]


def sql_streams(
    spark: SparkSession,
    sql: str | Path,
    /,
    *,
    bridge: str | None = None,
    checkpoint: str | Path | None = None,
    slack: int | None = None,
    strict: bool = False,
    ends: bool = True,
    token_file: str | None = None,
    tls_ca: str | None = None,
    tls_cert: str | None = None,
    tls_key: str | None = None,
    **frames: DataFrame,
) -> SqlStreams:
    """Runs queries over streaming frames; returns the results of each query as a frame, by its name.

    `sql` is a text, or the `Path` of a file. Each stream is a frame with a column `ts`; CREATE STREAM
    may be left out, since the columns define the stream. A frame that is not streaming is read whole.
    Reading a result starts the feed. With the trigger `availableNow`, everything that the sources have by
    then is read, the streams end, and so does the query after its last row.

    Args:
        bridge: the address of a bridge; without one the queries run in this process. With "spark", queries
            that have a key run inside Spark's executors, each with its state in the checkpoint of its reader.
        checkpoint: a folder that keeps the progress of the feed, and the journal of a bridge in
            this process, so that the same call continues from there.
        slack: milliseconds by which a stream's times may fall back before a row is late.
        strict: the first evaluation without a value stops the queries, instead of being NULL.
        ends: False: rows that wait for later ones after `availableNow` wait for the next run.
        token_file: a file with the bridge's token.
        tls_ca: a file with the certificate of the authority that signed the bridge's.
        tls_cert: a file with the client's certificate, if the bridge requires one.
        tls_key: a file with the key of that certificate.
        **frames: streaming frames by the stream's name.

    The [tutorial](../tutorial-spark.md) has an example that runs.
    """
    for name, frame in frames.items():
        _check_frame(name, frame)
    with translated():
        try:
            return started(
                spark,
                lambda config: _compiled(sql, frames, config),
                frames,
                bridge=bridge,
                checkpoint=checkpoint,
                how=Run(slack=slack, strict=strict),
                ends=ends,
                access=Access(token_file, tls_ca, tls_cert, tls_key),
            )
        except FeedError as error:
            raise QueryError(str(error), error.hint) from None


def _check_frame(name: str, frame: object) -> None:
    if not isinstance(frame, DataFrame):
        kind = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__name__}"
        raise QueryError(f"{name} is a {kind}", "give a frame of Spark: spark.createDataFrame")


def _compiled(sql: str | Path, frames: dict[str, DataFrame], config: DeviceConfig) -> Compilation:
    text = text_of(sql)
    known = declarations(text, whole=True)
    before, options = "", Options(config)
    for name, frame in frames.items():
        if name.lower() not in known:
            try:
                rows = to_arrow_schema(frame.schema, timezone="UTC").empty_table()
            except PySparkException as error:
                what = f"{name}: {error}"
                raise QueryError(what, "leave the column out of the frame: drop") from None
            stream = stream_of(name, rows)
            if not stream.columns:
                raise QueryError(
                    f"{name} has no column but its time", "add one to the frame, such as lit(1)"
                )
            before += declared(stream) + "\n"
    found = compiled(compiled(None, before, options) if before else None, text, options)
    if not found.program.names:
        raise QueryError("there are no queries in it", "SELECT … FROM … WINDOW …")
    return found
