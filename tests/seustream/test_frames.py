"""Rows in every form that Python has for them."""

from __future__ import annotations

import datetime
import gzip
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import BIGINT
from seustream.compiler.pipeline import compile_text
from seustream.errors import InputError
from seustream.frames import declared, stream_of, table_of, tuples_of
from seustream.reading import read_timed

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
        ({"ts": [1], "a": [1, 2]}, "R: "),
        ([], "an empty list has no columns"),
        (5, "int is no table"),
        ("none.csv", "no such file"),
        ("none.txt", "unknown format"),
        ("semicolons.csv", "no time column, expected one named ts, there are ts;a"),
        ("short.csv", "short.csv:3: 2 cells, the header has 3"),
        ("latin.csv", "latin.csv:2: not UTF-8 text, at byte 14"),
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


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_an_empty_file_declares_no_stream(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"r{suffix}"
    path.write_text("")
    with pytest.raises(InputError, match=r"is empty, expected a header|file size is 0 bytes"):
        stream_of("r", path)


def _types(path: Path) -> dict[str, str]:
    return {column.name: str(column.type) for column in stream_of("R", path).columns}


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        ("", "bigint"),
        ("NA", "varchar"),
        ("NULL", "varchar"),
        ("nan", "double precision"),
        ("1.5", "double precision"),
        ("x", "varchar"),
    ],
)
@pytest.mark.parametrize("where", ["beside", "far behind", "another file"])
def test_the_types_of_a_csv_file_hold_for_all_of_its_rows(
    where: str, cell: str, kind: str, tmp_path: Path
) -> None:
    """What is guessed is what is read, also behind the first block of a file and in another one."""
    head, folder = "ts,b,x\n1,0,5\n", tmp_path / "r"
    folder.mkdir()
    if where == "another file":
        (folder / "1.csv").write_text(head)
        (folder / "2.csv").write_text(f"ts,b,x\n2,0,{cell}\n")
    else:
        between = "1,0,5\n" * (300_000 if where == "far behind" else 0)
        (folder / "1.csv").write_text(f"{head}{between}2,0,{cell}\n")
    assert _types(folder) == {"b": "bigint", "x": kind}
    rows = read_timed(folder, stream_of("R", folder)).rows
    assert (
        rows.column("x")[-1].as_py() == {"bigint": None, "double precision": 1.5}.get(kind, cell)
        or cell == "nan"
    )


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["2026-03-02T09"], "varchar"),
        (["2026-03-02 09:00:00"], "timestamp"),
        (["2026-03-02"], "date"),
        (["true", "x"], "varchar"),
        (["true", "false"], "boolean"),
        (["0x1F", "5"], "varchar"),
        (["1e400", "1"], "varchar"),
        (["inf", "1"], "double precision"),
    ],
)
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_type_is_guessed_only_if_it_is_read(
    form: str, cells: list[str], kind: str, tmp_path: Path
) -> None:
    path = tmp_path / f"r.{form}"
    if form == "csv":
        path.write_text("ts,x\n" + "".join(f"1,{cell}\n" for cell in cells))
    else:
        path.write_text("".join(f'{{"ts": 1, "x": "{cell}"}}\n' for cell in cells))
    found = _types(path)["x"]
    assert found == kind or form == "jsonl"  # Arrow takes fewer texts of JSON for something else
    assert read_timed(path, stream_of("R", path)).rows.num_rows == len(cells)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["12345678901234567890", "12345678901234567891", "", "-3"], "decimal(38,0)"),
        (["9223372036854775808"], "decimal(38,0)"),
        (["9223372036854775807"], "bigint"),
        (["9" * 38, "1"], "decimal(38,0)"),
        (["12345678901234567890", "1.5"], "double precision"),
        (["1e20", "1"], "double precision"),
        (["12345678901234567890.0"], "double precision"),
    ],
)
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_large_integers_stay_apart(form: str, cells: list[str], kind: str, tmp_path: Path) -> None:
    """Arrow takes them for reals, among which they are equal."""
    path = tmp_path / f"r.{form}"
    if form == "csv":
        path.write_text("ts,x\n" + "".join(f"1,{cell}\n" for cell in cells))
    else:
        path.write_text("".join(f'{{"ts": 1, "x": {cell or "null"}}}\n' for cell in cells))
    assert _types(path)["x"] == kind
    found = read_timed(path, stream_of("R", path)).rows["x"].to_pylist()
    assert len(set(found)) == len(set(cells))


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("declared", [True, False])
def test_the_name_of_a_file_need_not_be_utf8(declared: bool, form: str, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(f"m.{form}".encode().replace(b"m", b"m\xfc"))
    rows = pa.table({"ts": [1], "x": [5]})
    text = {"csv": b"ts,x\n1,5\n", "jsonl": b'{"ts": 1, "x": 5}\n'}.get(form)
    if text is None:
        with path.open("wb") as file:
            pq.write_table(rows, file)
    else:
        path.write_bytes(text)
    stream = Stream("R", (Column("x", BIGINT),)) if declared else stream_of("R", path)
    assert read_timed(path, stream).rows.to_pydict() == {"ts": [1], "x": [5]}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("r.csv", f"ts,x\n1,{'9' * 39}\n2,1\n"),
        ("r.jsonl", f'{{"ts": 1, "x": {"9" * 45}}}\n{{"ts": 2, "x": 1}}\n'),
    ],
)
def test_integers_that_no_type_holds_are_refused(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match="column x has integers of more than 38 digits") as caught:
        stream_of("R", path)
    assert "CREATE STREAM" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("ts,a\n1,2,3\n", ":2: 3 cells, the header has 2"),
        ("ts,a\n1,\xff\n", "not UTF-8"),
    ],
)
def test_problems_name_the_file_that_was_packed(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "r.csv.gz"
    path.write_bytes(gzip.compress(text.encode("latin-1")))
    with pytest.raises(InputError) as caught:
        stream_of("R", path)
    assert str(caught.value).startswith(str(path))
    assert said in str(caught.value)
