"""Queries inside Spark as streaming frames: all results once, across restarts, and the reasons for
refusals."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from seustream.compiler.pipeline import compile_text
from seustream.cosim.bridge.protocol import Run
from seustream.errors import Error
from seustream.spark import sql_streams
from seustream.spark_feeder.keyed import keyed
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


@pytest.mark.parametrize("mapped", [False, True])
def test_a_micro_batch_of_an_empty_file(spark: SparkSession, tmp_path: Path, mapped: bool) -> None:
    """The streams end after the last file, not at the first that Spark gives no task; also if the
    frame does not have the files' metadata any more."""
    for place, rows in enumerate((3, 0, 4, 0)):
        path = tmp_path / f"{place}.json"
        lines = [f'{{"ts": {10 * place + row}, "id": {place}}}\n' for row in range(rows)]
        path.write_text("".join(lines))
        os.utime(path, (1_000_000_000 + place,) * 2)
    files = spark.readStream.schema("ts bigint, id int").option("maxFilesPerTrigger", 1)
    orders = files.json(str(tmp_path))
    streams = sql_streams(
        spark,
        "REGISTER QUERY sums AS SELECT id, count(*) AS n FROM orders GROUP BY id, TUMBLE(ts, 100)",
        bridge="spark",
        orders=orders.mapInArrow(lambda rows: rows, orders.schema) if mapped else orders,
    )
    deliver(streams["sums"].drop("ts_oldest", "ts_newest"), tmp_path / "sums")
    streams.stop()
    rows = spark.read.parquet(str(tmp_path / "sums")).collect()
    assert sorted(map(tuple, rows)) == [(0, 3), (2, 4)]


@pytest.mark.parametrize("bridge", [None, "spark"])
def test_instants_in_a_session_of_another_zone(
    spark: SparkSession, tmp_path: Path, bridge: str | None
) -> None:
    """A `timestamp` comes back as the same moment, whatever the session's zone, and a
    `timestamp_ntz` as the same local time."""
    path = tmp_path / "in"
    path.mkdir()
    (path / "r.json").write_text(
        '{"ts": 1, "k": 1, "sold": "2026-01-05T08:00:00.000001Z", "local": "2026-01-05T08:00:00"}\n'
        '{"ts": 2, "k": 1, "sold": "1969-12-31T23:59:59.5Z", "local": "1969-12-31T23:59:59.5"}\n'
    )
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        rows = spark.readStream.schema(
            "ts bigint, k int, sold timestamp, local timestamp_ntz"
        ).json(str(path))
        streams = sql_streams(
            spark,
            "REGISTER QUERY q AS SELECT k, sold, local, sold + INTERVAL '1' HOUR AS later,"
            " CASE WHEN sold > local THEN sold ELSE local END AS mixed FROM R WHERE k = 1",
            bridge=bridge,
            R=rows,
        )
        kinds = {name: kind for name, kind in streams["q"].dtypes if kind.startswith("timestamp")}
        assert kinds == {
            "sold": "timestamp",
            "local": "timestamp_ntz",
            "later": "timestamp",
            "mixed": "timestamp_ntz",
        }
        deliver(streams["q"].drop("ts_oldest", "ts_newest"), tmp_path / "out")
        streams.stop()
        found = spark.read.parquet(str(tmp_path / "out"))
        micros = found.selectExpr(
            "unix_micros(sold)", "unix_micros(later)", "string(local)", "string(mixed)"
        )
        hour = 3_600_000_000
        first, second = 1_767_600_000_000_001, -500_000
        assert sorted(map(tuple, micros.collect())) == [
            (second, second + hour, "1969-12-31 23:59:59.5", "1969-12-31 23:59:59.5"),
            (first, first + hour, "2026-01-05 08:00:00", "2026-01-05 08:00:00.000001"),
        ]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_rows_late_by_the_lag_of_another_stream(spark: SparkSession, tmp_path: Path) -> None:
    """S is a second ahead when the second row of R comes; that row is late for all queries."""
    text = """
    CREATE STREAM R (a int); CREATE STREAM S (a int);
    REGISTER QUERY j AS SELECT R.a, S.a AS b FROM R, S WHERE R.a = S.a WINDOW RANGE 5000;
    REGISTER QUERY r AS SELECT a FROM R;
    """
    for name, times in (("R", (0, 10)), ("S", (1000, 1001))):
        (tmp_path / name).mkdir()
        for at in times:
            path = tmp_path / name / f"{at}.json"
            path.write_text(f'{{"ts": {at}, "a": 1}}\n')
            os.utime(path, (1_000_000_000 + at,) * 2)
    one = spark.readStream.schema("ts bigint, a int").option("maxFilesPerTrigger", 1)
    frames = {name: one.json(str(tmp_path / name)) for name in "RS"}
    how = Run(lag=100, late=True)
    at = keyed(compile_text(text), frames, tmp_path / "state", how)
    for name, rows in {**{n: at.results(n) for n in at.names}, "late": at.late("R")}.items():
        deliver(rows, tmp_path / name)

    def found(name: str, column: str) -> list[int]:
        return sorted(
            row[0] for row in spark.read.parquet(str(tmp_path / name)).select(column).collect()
        )

    assert found("j", "ts_newest") == [1000, 1001]
    assert found("r", "ts_newest") == [0]
    assert found("late", "ts") == [10]


def test_a_static_frame_with_other_rows(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "orders").mkdir()

    def started(*rows: tuple[int, datetime.time | None]) -> None:
        sql_streams(
            spark,
            "CREATE TABLE n (id int, at time); SELECT o.id, n.at FROM orders o JOIN n ON o.id = n.id",
            bridge="spark",
            checkpoint=tmp_path / "state",
            orders=spark.readStream.schema(ORDERS).json(str(tmp_path / "orders")),
            n=spark.createDataFrame(list(rows), "id int, at time(6)"),
        ).stop()

    first, second = (1, datetime.time(12)), (2, None)
    started(first, second, second)
    started(second, first, second)
    for other in (
        (first, second),
        (first, first, second),
        ((1, datetime.time(13)), second, second),
    ):
        with pytest.raises(Error, match="conflict: the checkpoint has other rows of n") as refused:
            started(*other)
        assert "another checkpoint" in str(refused.value.hint)


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


def test_a_frame_with_a_watermark_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Spark uses the least watermark of a query."""
    given = spark.readStream.schema("ts timestamp, id int").parquet(str(tmp_path))
    text = (
        "REGISTER QUERY sums AS SELECT id, count(*) AS n FROM orders GROUP BY id, TUMBLE(ts, 100)"
    )
    with pytest.raises(Error, match="stream orders: its frame has a watermark"):
        sql_streams(
            spark,
            text,
            bridge="spark",
            orders=given.withWatermark("ts", "1 minute").where("id > 5"),
        )
