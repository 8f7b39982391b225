"""Errors of the bridge within Spark's messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from seustream.cosim.bridge.errors import BridgeError
from seustream.errors import InputError
from seustream.spark_feeder.errors import FeedError, as_feed_errors, cause, cause_of

SPARK = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: boom
  File "source.py", line 1, in write
seustream.spark_feeder.errors.FeedError: gap: epoch 3 of writer w, but 0 is next (a hint: perhaps)
"""


def test_the_kind_is_found_in_what_spark_says() -> None:
    kind, message = cause(SPARK)
    assert kind == "gap"
    assert message == "gap: epoch 3 of writer w, but 0 is next (a hint: perhaps)"
    assert cause("Python worker exited\nmore") == (None, "Python worker exited")
    assert cause("") == (None, "")


def test_kinds_are_told() -> None:
    with pytest.raises(FeedError, match=r"^busy: no room \(read\)$"), as_feed_errors():
        raise BridgeError("busy", "no room", "read")
    with pytest.raises(ZeroDivisionError), as_feed_errors():
        raise ZeroDivisionError


def test_errors_of_an_input_are_one_line() -> None:
    error = InputError(["r.csv:2: bad", "r.csv:3: bad"], "a hint", total=7)
    with pytest.raises(FeedError) as caught, as_feed_errors():
        raise error
    said = "schema: r.csv:2: bad, and 6 more errors (a hint)"
    assert str(caught.value) == said
    assert cause(f"boom\nFeedError: {said}\n") == ("schema", said)


def test_a_file_that_spark_cannot_read(spark: SparkSession, tmp_path: Path) -> None:
    """It is no better the next time."""
    (tmp_path / "r.parquet").write_bytes(b"PAR1 torn")
    rows = spark.readStream.schema("ts bigint").parquet(str(tmp_path))
    query = rows.writeStream.format("noop").trigger(availableNow=True).start()
    with pytest.raises(StreamingQueryException):
        query.awaitTermination()
    error = query.exception()
    assert error is not None
    kind, message = cause_of(error)
    assert kind == "schema"
    assert "[FAILED_READ_FILE." in message
    assert message.endswith("is not a Parquet file (length is too low: 9)")


def test_a_disk_may_come_back() -> None:
    class Chained(Exception):
        _cause: Exception | None = None
        _stackTrace = "java.io.IOException: no answer\n\tat …"  # noqa: N815

    error, reading = Chained("failed"), Chained("[FAILED_READ_FILE.NO_HINT] r.parquet")
    error._cause, reading._cause = reading, Chained("no answer")
    assert cause_of(error) == (None, "[FAILED_READ_FILE.NO_HINT] r.parquet: no answer")
    assert cause_of(Chained("failed")) == (None, "failed")
