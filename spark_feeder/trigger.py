"""A stream that reports how a Spark query was started: one row at the beginning of each run.

Spark shows the trigger `availableNow` of a query to its sources alone, so that they come to an end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

NAME = "seustream_trigger"


def runs(spark: SparkSession) -> DataFrame:
    """Returns a row for each run of the query that reads it; its column `bounded` tells whether the
    query ends."""
    spark.dataSource.register(TriggerSource)
    return spark.readStream.format(NAME).load()


class TriggerSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return "bounded boolean"

    def streamReader(self, schema: StructType) -> TriggerReader:  # noqa: N802
        return TriggerReader()


@dataclass
class OneRun(InputPartition):
    bounded: bool


class TriggerReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads runs. An offset has the number of a run, and whether it is bounded, so that a run read
    again after a failure is the same."""

    def __init__(self) -> None:
        self._bounded = False
        self._latest: dict[str, Any] | None = None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._bounded = True

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {"run": 0, "bounded": False}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        if self._latest is None:
            self._latest = {"run": start["run"] + 1, "bounded": self._bounded}
        return self._latest

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[OneRun]:
        return [OneRun(end["bounded"])]

    def read(self, partition: InputPartition) -> Iterator[tuple[bool]]:
        assert isinstance(partition, OneRun)
        yield (partition.bounded,)

    def commit(self, end: dict[str, Any]) -> None:
        """Does nothing, since no resources are held."""

    def stop(self) -> None:
        """Does nothing, since no resources are held."""
