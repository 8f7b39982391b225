"""A file's columns are matched with a stream's: by name, in any order, with two names for the
time."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import DATE, INT, Kind, Type
from seustream.errors import InputError
from seustream.reading import read
from tests.seustream.streamfiles import ROADS, R, errors, put, rows

pytestmark = pytest.mark.usefixtures("here")


@pytest.mark.parametrize("suffix", ["csv", "CSV", "jsonl", "ndjson", "json", "parquet"])
def test_order_of_rows_and_columns(suffix: str) -> None:
    path = Path(f"r.{suffix}")
    table = pa.table({"B": ["x", "y"], "TIMESTAMP": [9, 5], "A": [1, 2]})
    if suffix == "parquet":
        pq.write_table(table, path)
    elif suffix.lower() == "csv":
        put(path.name, "B,TIMESTAMP,A\nx,9,1\ny,5,2\n")
    else:
        put(path.name, "".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    assert rows(path) == [(9, 1, "x"), (5, 2, "y")]


def test_a_stream_that_takes_both_names_of_the_time() -> None:
    stream = Stream("R", (Column("ts", INT), Column("TimeStamp", INT)))
    assert errors(put("r.csv", "ts,timestamp\n1,2\n"), stream) == [
        "r.csv: stream R has columns ts and TimeStamp of its own, "
        "which leaves no name for the time column"
    ]


def test_a_stream_with_a_time_column_of_its_own() -> None:
    stream = Stream("R", (Column("TimeStamp", DATE),))
    path = put("r.csv", "timestamp,ts\n2024-01-02,7\n")
    assert rows(path, stream) == [(7, dt.date(2024, 1, 2))]


def test_csv_missing_columns() -> None:
    assert errors(put("roads.csv", "tss,xpoz,dir\n1,2,3\n"), ROADS) == [
        "roads.csv: no time column, expected one named ts or TimeStamp; the nearest is 'tss'",
        "roads.csv: no column xPos, which stream Roads has; the nearest is 'xpoz'",
        "roads.csv: no column speed, which stream Roads has",
    ]


def test_csv_columns_twice() -> None:
    assert errors(put("r.csv", "ts,TimeStamp,a,A,b\n1,1,1,1,x\n")) == [
        "r.csv: column ts is there 2 times: 'ts', 'TimeStamp'",
        "r.csv: column a is there 2 times: 'a', 'A'",
    ]


def test_csv_other_separator() -> None:
    with pytest.raises(InputError) as caught:
        read(put("r.csv", "ts;a;b\n1;2;x\n"), R)
    assert caught.value.hint == "the header has semicolons; cells are separated by commas"


def test_csv_unknown_columns_are_ignored_with_a_warning() -> None:
    warnings: list[str] = []
    table = read(put("r.csv", "x,ts,a,b,x\n?,1,2,y,?\n"), R, warnings.append)
    assert table.to_pylist() == [{"ts": 1, "a": 2, "b": "y"}]
    assert warnings == ["r.csv: columns 'x', 'x' are not in stream R and ignored"]
    with pytest.warns(UserWarning, match="columns 'x', 'x' are not in stream R and ignored"):
        read(Path("r.csv"), R)


def test_parquet_columns() -> None:
    pq.write_table(pa.table({"ts": [1], "a": [1], "A": [1], "R.b": ["x"]}), "r.parquet")
    assert errors(Path("r.parquet")) == [
        "r.parquet: column a is there 2 times: 'a', 'A'",
        "r.parquet: no column b, which stream R has; the nearest is 'R.b'",
    ]
    stream = Stream("R", (Column("R.b", Type(Kind.VARCHAR)),))
    warnings: list[str] = []
    assert read(Path("r.parquet"), stream, warnings.append).to_pylist() == [{"ts": 1, "R.b": "x"}]
    assert warnings == ["r.parquet: columns 'a', 'A' are not in stream R and ignored"]
