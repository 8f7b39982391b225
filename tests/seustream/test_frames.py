"""Rows in every form that Python has for them."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seustream.compiler.pipeline import compile_text
from seustream.errors import InputError
from seustream.frames import declared, stream_of, table_of, tuples_of

AT = datetime.datetime(2026, 1, 1, 12, 0, 0, 5000)
MS = 1767268800005
ROWS = pa.table(
    {
        "ts": pa.array([AT, AT], pa.timestamp("us")),
        "id": pa.array([1, 2], pa.int32()),
        "name": ["Ada", None],
        "x": [0.5, 1.5],
    }
)
FORMS: dict[str, Any] = {
    "table": ROWS,
    "batch": ROWS.to_batches()[0],
    "reader": lambda: pa.RecordBatchReader.from_batches(ROWS.schema, ROWS.to_batches()),
    "pandas": ROWS.to_pandas(),
    "polars": pl.from_arrow(ROWS),
    "lazy": pl.DataFrame(ROWS).lazy(),
    "columns": ROWS.to_pydict(),
    "rows": ROWS.to_pylist(),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_rows(form: str) -> None:
    given = FORMS[form]() if form == "reader" else FORMS[form]
    stream = stream_of("R", ROWS)
    found = tuples_of("R", given, stream)
    assert found.rows.to_pylist() == [
        {"ts": MS, "id": 1, "name": "Ada", "x": 0.5},
        {"ts": MS, "id": 2, "name": None, "x": 1.5},
    ]
    assert pa.types.is_timestamp(found.time)
    columns = {
        column.name: str(column.type)
        for column in stream_of("R", table_of("R", FORMS["pandas"])).columns
    }
    assert columns == {"id": "int", "name": "varchar", "x": "double precision"}


@pytest.mark.parametrize("of", [pl.Categorical, pl.Enum(["x", "y"])], ids=str)
def test_codes_of_polars(of: Any) -> None:
    frame = pl.DataFrame({"ts": [1, 2, 3], "a": pl.Series(["y", None, "x"], dtype=of)})
    stream = stream_of("R", table_of("R", frame))
    assert tuples_of("R", frame, stream).rows.column("a").to_pylist() == ["y", None, "x"]


def test_a_relation_of_duckdb() -> None:
    with duckdb.connect() as connection:
        relation = connection.sql(
            "SELECT 7::BIGINT AS ts, 1::INT AS id, 'Ada' AS name, 0.5::DOUBLE AS x"
        )
        found = tuples_of("R", relation, stream_of("R", ROWS))
    assert found.rows.to_pylist() == [{"ts": 7, "id": 1, "name": "Ada", "x": 0.5}]
    assert found.time == pa.int64()


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_file_tells_its_columns(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"r.{suffix}"
    if suffix == "parquet":
        pq.write_table(ROWS, path)
    elif suffix == "csv":
        path.write_text("ts,id,name,x\n2026-01-01T12:00:00.005,1,Ada,0.5\n")
    else:
        path.write_text('{"ts": "2026-01-01T12:00:00.005", "id": 1, "name": "Ada", "x": 0.5}\n')
    stream = stream_of("R", str(path))
    assert [column.name for column in stream.columns] == ["id", "name", "x"]
    assert tuples_of("R", path, stream).rows.to_pylist()[0] == {
        "ts": MS,
        "id": 1,
        "name": "Ada",
        "x": 0.5,
    }


def test_every_type_comes_as_it_is_declared() -> None:
    """The statement made from a frame creates the same stream that was read from the frame."""
    columns = {
        "ts": pa.array([1]),
        "tiny": pa.array([1], pa.int8()),
        "more": pa.array([1], pa.uint16()),
        "wide": pa.array([1], pa.uint32()),
        "half": pa.array([0.5], pa.float32()),
        "yes": [True],
        "day": [datetime.date(2026, 1, 1)],
        "at": [AT],
        "hour": pa.array([datetime.time(1)], pa.time64("us")),
        "span": [datetime.timedelta(seconds=1)],
        "cost": [Decimal("1.25")],
        "kind": pa.array(["a"]).dictionary_encode(),
        "select": ["a keyword"],
        "two words": pa.array(["x"], pa.large_string()),
        "none": pa.array([None]),
    }
    table = pa.table(columns)
    stream = stream_of("My stream", table)
    (known,) = compile_text(f'{declared(stream)} SELECT tiny FROM "My stream" WINDOW NOW').streams
    assert known == stream
    kept = tuples_of("My stream", table, known).rows.to_pylist()[0]
    assert kept["cost"] == Decimal("1.25")
    assert (kept["kind"], kept["none"]) == ("a", None)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"a": [1]}, "no time column"),
        ({"ts": [1], "a": [[1]]}, "column a has type list"),
        ({"TimeStamp": [1], "a": [1], "ts": [2]}, "column ts is there 2 times: 'TimeStamp', 'ts'"),
        ({"ts": [1], "a": [1, 2]}, "R: "),
        ([], "an empty list has no columns"),
        (5, "int is no table"),
        ("none.csv", "no such file"),
        ("none.txt", "unknown format"),
        ("semicolons.csv", "no time column, expected one named ts, there are ts;a"),
        ("short.csv", "short.csv:3: 2 cells, the header has 3"),
        ("latin.csv", "latin.csv:2: not UTF-8 text, at byte 7 of the line"),
        ("list.json", "list.json: a list"),
        ("torn.parquet", "torn.parquet: "),
        ({"ts": [1], 'a"b': [1]}, "cannot name"),
    ],
)
def test_what_is_no_stream(
    rows: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("semicolons.csv").write_text("ts;a\n1;2\n")
    Path("short.csv").write_text("ts,a,b\n1,2,3\n1,2\n")
    Path("latin.csv").write_bytes(b"ts,a,b\n1,2,caf\xe9\n")
    Path("list.json").write_text('[{"ts": 1}]')
    Path("torn.parquet").write_text("PAR1")
    with pytest.raises(InputError, match=message):
        declared(stream_of("R", rows))


def test_rows_that_are_not_the_streams() -> None:
    stream = stream_of("R", ROWS)
    with pytest.raises(InputError, match="no column id"):
        tuples_of("R", {"ts": [1], "name": ["x"], "x": [1.0]}, stream)
    with pytest.raises(InputError, match="row 2: column id"):
        tuples_of(
            "R", {"ts": [1, 2], "id": [1, 1 << 40], "name": ["", ""], "x": [1.0, 2.0]}, stream
        )
