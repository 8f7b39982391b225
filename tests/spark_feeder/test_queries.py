"""Query sets for Spark: texts and files, and queries that have no key."""

from __future__ import annotations

from pathlib import Path

import pytest

from seustream.compiler.pipeline import compile_text
from seustream.cosim.bridge.client import BridgeClient
from seustream.spark_feeder.errors import FeedError
from seustream.spark_feeder.queries import compiled_for, keys_inside, text_of_file
from tests.cosim.bridge.serving import QUERIES, bridge, compiled


def test_a_text_or_a_file_of_it(tmp_path: Path) -> None:
    path = tmp_path / "q.xsql"
    path.write_text("\ufeff" + QUERIES, encoding="utf-8")
    assert text_of_file(QUERIES) == (QUERIES, "<sql>")
    assert text_of_file(path) == text_of_file(str(path)) == (QUERIES, str(path))
    with pytest.raises(FeedError, match=r"gone\.xsql: cannot be read: "):
        text_of_file(str(tmp_path / "gone.xsql"))
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(FeedError, match=r"q\.xsql: cannot be read: "):
        text_of_file(path)


def test_a_query_set_is_compiled_for_the_device_of_its_bridge(tmp_path: Path) -> None:
    with bridge(tmp_path / "journal") as (_, url), BridgeClient(url) as client:
        found = compiled_for(client, QUERIES)
        assert found.options.config.to_json() == client.health()["config"]
    assert found.program.names == compiled().program.names


def test_inside_spark_every_query_goes_by_a_key() -> None:
    streams = "CREATE STREAM R (a int, b int); CREATE STREAM S (d int, e int);"
    by = f"{streams} REGISTER QUERY q AS SELECT R.b FROM R, S WHERE R.a = S.d WINDOW RANGE 9;"
    found = keys_inside(compile_text(by, "q").program)
    assert {name: found["q"].of(name) for name in ("R", "S")} == {"R": "a", "S": "d"}
    without = by.replace("R.a = S.d", "R.a < S.d")
    with pytest.raises(FeedError, match="inside Spark queries go by key: ") as refused:
        keys_inside(compile_text(without, "q").program)
    assert "seustream explain" in str(refused.value.hint)
