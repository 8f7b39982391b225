"""Input files of APAS queries: the schema of a file, the same rows in every format, and
mistakes."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seustream.engine.temporal.elements import FOREVER
from seustream.errors import InputError, UserError
from seustream.intervals import by_files, read_intervals, read_schema

pytestmark = pytest.mark.usefixtures("here")
COLUMNS = ["ts", "te", "at.x", "at.y", "name"]
ROWS = [(1, 4, 7, 0.5, "a"), (2, 2, 8, 1.5, None)]


def put(name: str, text: str) -> Path:
    Path(name).write_text(text)
    return Path(name)


def test_every_format_has_the_same_rows() -> None:
    """The leaves of a group stand together, wherever the file has them; a missing `te` equals
    `ts`."""
    files = [
        put("a.csv", "at.x,name,te,ts,at.y\n7,a,4,1,0.5\n8,,,2,1.5\n"),
        put(
            "a.jsonl",
            '{"ts": 1, "te": 4, "at": {"x": 7, "y": 0.5}, "name": "a"}\n'
            '{"ts": 2, "at": {"x": 8, "y": 1.5}, "name": null}\n',
        ),
        Path("a.parquet"),
    ]
    table = {
        "at": [{"x": 7, "y": 0.5}, {"x": 8, "y": 1.5}],
        "te": pa.array([4.0, None]),
        "ts": pa.array([1, 2], pa.timestamp("ms")),
        "name": ["a", None],
    }
    pq.write_table(pa.table(table), files[2])
    for path in files:
        stream, found = read_intervals(path, "S")
        assert stream.name == "S"
        assert found.rows.column_names == COLUMNS, path
        assert [tuple(row.values()) for row in found.rows.to_pylist()] == ROWS, path


def test_an_interval_without_an_end_ends_never() -> None:
    _, found = read_intervals(put("a.csv", "ts,te,v\n1,inf,1\n2,3,1\n"), "S")
    assert found.rows.column("te").to_pylist() == [FOREVER, 3]
    _, found = read_intervals(put("b.csv", "ts,v\n5,1\n"), "S")
    assert found.rows.column("te").to_pylist() == [5]


@pytest.mark.parametrize(
    ("ends", "due"),
    [
        (("9007199254740993", "inf"), [9007199254740993, FOREVER]),
        (("-9223372036854775807", "inf"), [-9223372036854775807, FOREVER]),
        (("2020-01-02T00:00:00", " Inf"), [1577923200000, FOREVER]),
        (("5.0", ""), [5, 1]),
        (("5.0", "Infinity"), [5, FOREVER]),
        (("inf", "inf"), [FOREVER, FOREVER]),
    ],
)
def test_ends_are_exact_beside_those_that_never_come(ends: tuple[str, str], due: list[int]) -> None:
    first, second = ends
    text = f"ts,te,v\n{min(due[0], 1)},{first},1\n1,{second},1\n"
    _, found = read_intervals(put("a.csv", text), "S")
    assert found.rows.column("te").to_pylist() == due


def test_a_file_without_ends() -> None:
    _, found = read_intervals(put("b.csv", "ts,v\n5,1\n"), "S")
    assert found.rows.column("te").to_pylist() == [5]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.txt", "", "a.txt: unknown format, the known suffixes are .csv, .jsonl, .ndjson, .json"),
        ("a.csv", "t,v\n1,2\n", "a.csv: no time column, expected one named ts"),
        ("a.csv", "ts,v,v\n1,2,3\n", "a.csv: column v is there 2 times"),
        ("a.csv", "ts,v\n1,2\n,3\n", "a.csv:3: column ts: NULL, every tuple needs a time"),
        ("a.csv", "ts,v\nx,2\n", "a.csv:2: column ts: 'x' is not a time"),
        ("a.csv", "ts,te,v\n1,x,2\n", "a.csv: row 1: te: 'x' is not a time"),
        ("a.csv", "ts,te,v\n1,2,3\n1,2.5,3\n", "a.csv: row 2: te: '2.5' is not a time"),
        ("a.csv", "ts,te,v\n1,1e19,2\n", "a.csv: row 1: te: '1e19' is not a time"),
        ("a.csv", "ts,te,v\n1,99999999999999999999,2\n", "a.csv: row 1: te: '9999"),
        ("a.csv", "ts,a,a.b\n1,2,3\n", "a.csv: a is a column and a group of columns"),
        ("a.csv", "ts,v\n1,2,3\n", "a.csv:2: 3 cells, the header has 2"),
        ("a.jsonl", '{"ts": 1, "v": [1]}', "a.jsonl: column v: list<item: int64> is none of"),
        ("a.parquet", "x", "a.parquet: "),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_name(name: str, text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read_intervals(put(name, text), "S")
    assert str(caught.value).startswith(said)


def test_inputs_are_those_of_streams() -> None:
    """Packed files, folders and patterns; texts as they are; times are rounded down."""
    text = "TS,te,v,s\n2026-01-05T08:00:10.1239Z,2026-01-05T08:00:20Z,5,NA\n"
    Path("many").mkdir()
    put("many/a.csv", text)
    put("many/b.csv", text.replace("NA", '""'))
    Path("c.csv.gz").write_bytes(gzip.compress(text.encode()))
    row = {"ts": 1767600010123, "te": 1767600020000, "v": 5, "s": "NA"}
    for given, wanted in (
        ("many", [row, row | {"s": ""}]),
        ("many/*.csv", [row, row | {"s": ""}]),
        ("c.csv.gz", [row]),
    ):
        _, found = read_intervals(Path(given), "S")
        assert found.rows.to_pylist() == wanted
    put("many/a.ndjson", '{"ts": 1, "at": {"x": {"y": 2}}}\n')
    put("many/b.ndjson", '{"ts": 2, "at": {"x": {"y": 2.5}}}\n')
    _, found = read_intervals(Path("many/*.ndjson"), "S")
    assert found.rows.column("at.x.y").to_pylist() == [2.0, 2.5]


def test_a_file_that_is_not_there() -> None:
    for read in (read_intervals, read_schema):
        with pytest.raises(InputError, match=r"a\.csv: no such file"):
            read(Path("a.csv"), "S")
    with pytest.raises(InputError, match=r"a\.json: No such file"):
        read_schema(Path("a.json"), "S")


def test_a_schema_is_that_of_rows_or_of_lists() -> None:
    of_rows = read_schema(put("a.csv", "ts,at.x,ok\n1,2,true\n"), "S")
    lists = '[["at", [["x", "INTEGER"]]], ["ok", "BOOLEAN"]]'
    assert read_schema(put("a.json", lists), "S") == of_rows
    for bad in ('[["v", "FLOAT"]]', "{", "[" * 100_000):
        with pytest.raises(InputError, match=r"^a\.json:(1:)? "):
            read_schema(put("a.json", bad), "S")


def test_each_stream_has_a_file() -> None:
    found = by_files(["I=i.csv", "II=a=b.csv"], lambda path, name: (str(path), name))
    assert found == {"I": ("i.csv", "I"), "II": ("a=b.csv", "II")}
    for wrong in ("I", "I=", "=a.csv", "1=a.csv", "ü=a.csv"):
        with pytest.raises(UserError, match="want STREAM=FILE") as caught:
            by_files([wrong], lambda path, name: None)
        assert caught.value.hint is not None
