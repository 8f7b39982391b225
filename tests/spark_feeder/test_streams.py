"""Results as streaming frames: all of them, once, and the reasons for refusals."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from seustream.errors import Error
from seustream.spark import sql_streams
from seustream.spark_feeder.errors import FeedError
from seustream.spark_feeder.streams import _local

SQL = """
REGISTER QUERY settled AS SELECT o.customer, p.id, p.paid FROM orders o, payments p
    WHERE o.id = p.id WINDOW RANGE 90 seconds;
REGISTER QUERY large AS SELECT p.id FROM payments p WHERE p.paid > 60 WINDOW NOW;
"""
START = datetime(2026, 1, 5, 8)
ORDERS = "ts timestamp_ntz, id int, customer string"


def shop(seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    chance = np.random.default_rng(seed)

    def ts(rows: int) -> list[datetime]:
        return [START + timedelta(seconds=int(s)) for s in np.sort(chance.integers(0, 600, rows))]

    orders = pd.DataFrame({"ts": ts(300), "id": chance.integers(0, 40, 300)})
    orders["customer"] = [f"c{number}" for number in range(300)]
    payments = pd.DataFrame({"ts": ts(200), "id": chance.integers(0, 40, 200)})
    payments["paid"] = chance.integers(0, 100, 200) / 4 * 4.0
    return orders, payments


def within(orders: pd.DataFrame, payments: pd.DataFrame) -> list[tuple[Any, ...]]:
    """The join by definition, in pandas."""
    both = orders.merge(payments, on="id", suffixes=("_o", "_p"))
    apart = (both.ts_o - both.ts_p).abs() <= timedelta(seconds=90)
    newest = both[["ts_o", "ts_p"]].max(axis=1)
    rows = both.assign(newest=newest)[apart][["customer", "id", "paid", "newest"]]
    return sorted(rows.itertuples(index=False, name=None))


def deliver(rows: DataFrame, folder: Path) -> None:
    """Delivers all results there are by now into files, as a user would write it."""
    writer = rows.writeStream.format("parquet").option("checkpointLocation", f"{folder}-state")
    writer.trigger(availableNow=True).start(str(folder)).awaitTermination()


def test_all_results_once_and_after_a_restart_nothing_new(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Joins a stream of files with a static frame through `spark.sql` without backticks, one query
    after the other; then again from the checkpoint, then with rows after the end."""
    seed = 25
    print(f"seed {seed}")
    orders, payments = shop(seed)
    (tmp_path / "orders").mkdir()
    for part in range(2):
        name = tmp_path / "orders" / f"{part}.json"
        orders[part * 150 : part * 150 + 150].to_json(
            name, orient="records", lines=True, date_format="iso"
        )
    want = within(orders, payments)
    assert len(want) > 100

    def started(text: str = SQL) -> Any:
        given = spark.readStream.schema(ORDERS).json(str(tmp_path / "orders"))
        paid = spark.createDataFrame(payments).selectExpr("to_timestamp_ntz(ts) ts", "id", "paid")
        return sql_streams(spark, text, orders=given, payments=paid, checkpoint=tmp_path / "state")

    for _ in range(2):
        streams = started()
        assert list(streams) == ["settled", "large"]
        streams["settled"].createOrReplaceTempView("settled")
        deliver(
            spark.sql("SELECT customer, id, paid, ts_newest FROM settled"), tmp_path / "settled"
        )
        deliver(streams["large"].select("id"), tmp_path / "large")
        found = spark.read.parquet(str(tmp_path / "settled")).toPandas()
        assert sorted(found.itertuples(index=False, name=None)) == want
        large = spark.read.parquet(str(tmp_path / "large")).toPandas()
        assert sorted(large.id) == sorted(payments[payments.paid > 60].id)
    with pytest.raises(StreamingQueryException, match="trimmed: settled: its first"):
        deliver(started()["settled"], tmp_path / "another")
    with pytest.raises(Error, match="is the checkpoint of other queries") as refused:
        started(SQL.replace("60", "61"))
    assert "name another one" in str(refused.value.hint)

    orders[:1].to_json(
        tmp_path / "orders" / "late.json", orient="records", lines=True, date_format="iso"
    )
    with pytest.raises(StreamingQueryException) as ended:
        deliver(started()["settled"], tmp_path / "settled")
    lines = str(ended.value).splitlines()
    assert "FeedError: stream orders: conflict: stream orders has ended" in "\n".join(lines[:2])
    assert "another checkpoint" in "\n".join(lines[:2])


def test_mistakes_are_said_before_anything_runs(spark: SparkSession, tmp_path: Path) -> None:
    good = spark.readStream.schema(ORDERS).json(str(tmp_path))
    untimed = spark.readStream.schema("id int").json(str(tmp_path))
    odd = spark.readStream.schema("ts bigint, id interval year to month").json(str(tmp_path))
    other = spark.readStream.schema("timestamp bigint, id int").json(str(tmp_path))
    bare = spark.readStream.schema("ts bigint").json(str(tmp_path))
    pandas = pd.DataFrame({"ts": [1], "id": [1]})
    one = "SELECT id FROM orders WINDOW NOW"
    for text, frames, message, hint in (
        (one, {"orders": untimed}, "orders: no time column", "integer milliseconds"),
        ("SELECT di FROM orders WINDOW NOW", {"orders": good}, "1:8: .* has a column di", "id"),
        (SQL, {"orders": good}, "no stream.* payments", None),
        ("CREATE STREAM orders (id int);", {"orders": good}, "no queries", "SELECT"),
        (one, {}, "no stream.* orders", None),
        (one, {"orders": odd}, "orders: .*YearMonthIntervalType", "drop"),
        (
            "SELECT count(*) FROM o WINDOW NOW",
            {"o": bare},
            "o has no column but its time",
            "add one",
        ),
        (one, {"orders": pandas}, "orders is a pandas.DataFrame", "createDataFrame"),
        ("CREATE STREAM orders (id int);" + one, {"orders": other}, "no column ts", "selectExpr"),
    ):
        with pytest.raises(Error, match=message) as raised:
            sql_streams(spark, text, **frames)
        assert hint is None or hint in str(raised.value.hint)


def test_a_bridge_here_is_out_of_reach_of_a_cluster(tmp_path: Path) -> None:
    class Cluster:
        class conf:  # noqa: N801
            get = staticmethod(lambda name, default: "spark://host:7077")

    with (
        pytest.raises(FeedError, match=r"out of reach of the workers of spark://host") as refused,
        _local(Cluster(), tmp_path),  # type: ignore[arg-type]
    ):
        pass
    assert "seustream serve" in str(refused.value.hint)
