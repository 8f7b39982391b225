"""Queries inside Spark as streaming frames: all results once, across restarts, and the reasons for
refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from seustream.errors import Error
from seustream.spark import sql_streams
from tests.spark_feeder.test_streams import ORDERS, SQL, deliver, shop, within


def test_results_over_restarts(spark: SparkSession, tmp_path: Path) -> None:
    """Joins a stream of files with a static frame. The first run leaves the streams open, the
    second brings more of one and ends them, the third brings nothing, the fourth brings rows after
    the end."""
    seed = 26
    print(f"seed {seed}")
    orders, payments = shop(seed)
    orders["id"] = orders["id"].astype("Int64")
    orders.loc[orders.index % 11 == 5, "id"] = None
    want = within(orders.dropna().astype({"id": int}), payments)
    assert len(want) > 100

    def put(part: int) -> None:
        (tmp_path / "orders").mkdir(exist_ok=True)
        path = tmp_path / "orders" / f"{part}.json"
        some = orders.iloc[part * 150 : part * 150 + 150]
        some.to_json(path, orient="records", lines=True, date_format="iso")

    def run(ends: bool) -> list[tuple[Any, ...]]:
        given = spark.readStream.schema(ORDERS).json(str(tmp_path / "orders"))
        paid = spark.createDataFrame(payments).selectExpr("to_timestamp_ntz(ts) ts", "id", "paid")
        streams = sql_streams(
            spark,
            SQL,
            bridge="spark",
            checkpoint=tmp_path / "state",
            ends=ends,
            orders=given,
            payments=paid,
        )
        assert list(streams) == ["settled", "large"]
        deliver(streams["settled"].drop("ts_oldest"), tmp_path / "settled")
        streams.stop()
        found = spark.read.parquet(str(tmp_path / "settled"))
        rows = found.select("customer", "id", "paid", "ts_newest").toPandas()
        return sorted(rows.itertuples(index=False, name=None))

    put(0)
    first = run(ends=False)
    assert 0 < len(first) < len(want)
    put(1)
    assert run(ends=True) == want
    assert run(ends=True) == want
    orders.iloc[:1].to_json(
        tmp_path / "orders" / "9.json", orient="records", lines=True, date_format="iso"
    )
    with pytest.raises(StreamingQueryException) as ended:
        run(ends=True)
    assert "FeedError: conflict: stream orders has ended (give another checkpoint)" in str(
        ended.value
    )


def test_mistakes_are_said_before_anything_runs(spark: SparkSession, tmp_path: Path) -> None:
    good = spark.readStream.schema(ORDERS).json(str(tmp_path))
    for text, message, hint in (
        ("SELECT a.id FROM orders a, orders b WHERE a.id < b.id WINDOW RANGE 9",
         "inside Spark queries go by key: query q0 does not equate", "seustream serve"),
        ("SELECT di FROM orders WINDOW NOW", "1:8: .* has a column di", "id"),
    ):  # fmt: skip
        with pytest.raises(Error, match=message) as raised:
            sql_streams(spark, text, bridge="spark", orders=good)
        assert hint in str(raised.value.hint)
    name = "spark.sql.streaming.stateStore.providerClass"
    rocks = spark.conf.get(name)
    try:
        spark.conf.unset(name)
        with pytest.raises(Error, match="need a setting") as raised:
            sql_streams(spark, "SELECT id FROM orders WINDOW NOW", bridge="spark", orders=good)
        assert name in str(raised.value.hint)
    finally:
        spark.conf.set(name, str(rocks))
