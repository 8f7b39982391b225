"""A query set at its bridges: problems of its sources are reported first, and static frames become
tables."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from seustream.compiler.pipeline import Options, compile_text
from seustream.spark_feeder.bridged import _keys, check_times
from seustream.spark_feeder.errors import FeedError
from seustream.spark_feeder.inputs import InputSource, read
from seustream.spark_feeder.job import files, run
from tests.cosim.bridge.serving import QUERIES, TINY, bridge, compiled, streams
from tests.spark_feeder.feeding import found, frames, write


def test_what_is_wrong_with_a_job_is_said_first(spark: SparkSession, tmp_path: Path) -> None:
    compilation = compiled()
    write(tmp_path, streams(10, 1), 1)
    good = frames(spark, compilation, tmp_path)
    crossed = compiled(QUERIES.replace("R.a = S.d", "R.a < S.d"))
    with bridge(tmp_path / "journal") as (_, url):
        for queries, sources, options, complaint in (
            (compilation, {}, {}, "no sources"),
            (compilation, {"R": good["R"]}, {}, "no source for stream S"),
            (compilation, {**good, "T": good["R"]}, {}, "there is no stream T"),
            (compilation, {**good, "S": good["R"]}, {}, "stream S: no column d, name"),
            (compilation, good, {"select": {"R": "nothing"}}, "stream R: .*nothing"),
            (crossed, good, {"bridge": (url, url)}, "query pairs does not equate"),
        ):
            with pytest.raises(FeedError, match=complaint):
                run(queries, sources, files("x"), **{"bridge": url, **options})


def test_a_frame_that_does_not_stream_is_a_table(spark: SparkSession, tmp_path: Path) -> None:
    text = """CREATE STREAM R (a int, b int); CREATE TABLE t (a int, n varchar);
    REGISTER QUERY q AS SELECT R.b, t.n FROM R LEFT JOIN t ON R.a = t.a"""
    (tmp_path / "r.csv").write_text("ts,a,b\n1,1,10\n2,2,20\n")
    (tmp_path / "t.csv").write_text("a,n\n1,one\n3,three\n")
    c = compile_text(text, options=Options(TINY))
    sources = {
        s.name: read(spark, InputSource.parse(f"{tmp_path}/{s.name.lower()}.csv"), s)
        for s in c.streams
    }
    with bridge(tmp_path / "journal") as (_, url):
        run(c, sources, files(tmp_path / "out"), bridge=url).wait(timeout=120)
    want = {(10, "one", 1, 1): 1, (20, None, 2, 2): 1}
    assert found(tmp_path / "out", ["q"]) == {"q": want}


def test_a_session_whose_worker_died_while_it_looked_for_sources_has_this_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    manager = "org.apache.spark.sql.execution.datasources.DataSourceManager$"
    known = jvm.java.lang.Class.forName(manager).getDeclaredField("dataSourceBuilders")
    known.setAccessible(True)
    before = known.get(None)
    try:
        known.set(None, jvm.scala.Option.apply(jvm.scala.Predef.Map().empty()))
        other = spark.newSession()
        jvm.SparkSession.setActiveSession(other._jsparkSession)
        with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
            other.readStream.format("seustream").load()
        compilation = compiled()
        write(tmp_path / "in", streams(10, 1), 1)
        with bridge(tmp_path / "journal") as (_, url):
            sources = frames(other, compilation, tmp_path / "in")
            run(compilation, sources, files(tmp_path / "out"), bridge=url).wait(timeout=120)
    finally:
        known.set(None, before)
        jvm.SparkSession.setActiveSession(spark._jsparkSession)


def test_a_session_without_times_of_day_is_refused_where_one_is_needed() -> None:
    """The session may be another program's, without the option."""
    schema = pa.schema({"ts": pa.int64(), "a": pa.time64("us")})
    option = "spark.sql.timeType.enabled"
    for conf in ({}, {option: "false"}):
        session: Any = SimpleNamespace(conf=conf)
        with pytest.raises(FeedError, match="T: a is a time of day") as caught:
            check_times(session, {"T": schema})
        assert option in (caught.value.hint or "")
        check_times(session, {"S": pa.schema({"a": pa.int64()})})
    check_times(SimpleNamespace(conf={option: "true"}), {"T": schema})  # type: ignore[arg-type]


def test_a_query_set_is_divided_by_the_columns_it_joins_by() -> None:
    assert _keys(compiled(), 1) == {}
    assert _keys(compiled(), 3) == {"R": "a", "S": "d"}
    with pytest.raises(FeedError, match="cannot be divided over 3 bridges: query pairs") as caught:
        _keys(compiled(QUERIES.replace("R.a = S.d", "R.a < S.d")), 3)
    assert "explain" in (caught.value.hint or "")
