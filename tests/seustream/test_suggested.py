"""The columns that files suggest are those that are read."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import BIGINT
from seustream.errors import InputError
from seustream.frames import stream_of
from seustream.reading import read_timed


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


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("2.csv", "ts,id\n"),
        ("2.csv", "ts,id\n3,\n"),
        ("2.csv", "ts,ID\n3,99999999999999999997\n"),
        ("2.jsonl", '{"ts": 3, "Id": 99999999999999999997}\n'),
        ("2.csv", "ts,id,more\n3,7,99999999999999999997\n"),
        ("2.csv", "ts, id \n3,7\n"),
    ],
)
def test_large_integers_stay_apart_beside_other_files(name: str, text: str, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    folder.mkdir()
    (folder / "1.csv").write_text("ts,id\n1,99999999999999999998\n2,99999999999999999999\n")
    (folder / name).write_text(text)
    assert _types(folder)["id"] == "decimal(38,0)"
    rows = read_timed(folder, stream_of("R", folder), lambda warning: None).rows
    found = rows["id"].to_pylist()
    assert found[:2] == [99999999999999999998, 99999999999999999999]


def test_large_integers_beside_a_parquet_file(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("ts,id\n1,99999999999999999998\n")
    pq.write_table(
        pa.table({"ts": [2], "id": pa.array([7], pa.decimal128(38, 0))}), tmp_path / "2.parquet"
    )
    assert _types(tmp_path)["id"] == "decimal(38,0)"


@pytest.mark.parametrize("column", ["id", "big"])
def test_a_column_that_a_later_file_lacks(column: str, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text(f"ts,{column}\n1,99999999999999999998\n")
    (tmp_path / "2.csv").write_text("ts,other\n3,1\n")
    stream = stream_of("R", tmp_path)
    assert str(stream.columns[0].type) == "decimal(38,0)"
    with pytest.raises(InputError, match=f"no column {column}"):
        read_timed(tmp_path, stream, lambda warning: None)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("r.jsonl", b'{"ts": 1, "a": 1}\n{"ts": 2, "a": }\n', "r.jsonl:2: not a JSON object"),
        ("r.jsonl", b'{"ts": 1, "a": 1}\n{"ts": 2, "a": "six"}\n', "r.jsonl:2: column a: 'six'"),
        (
            "r.jsonl",
            b'{"ts": 1, "a": null}\n{"ts": 2, "a": 1}\n{"ts": 3, "a": "x"}\n',
            "r.jsonl:3: col",
        ),
        ("r.jsonl", b'{"ts": 1, "a": 1}\n{"ts": "x", "a": 2}\n', "r.jsonl:2: column ts"),
        ("r.jsonl", b"", "is empty, expected one JSON object a line"),
        ("r.jsonl", b'{"ts": 1, "a\xff": 1}\n', "r.jsonl:1: not UTF-8"),
        ("r.jsonl", b"garbage\n", "r.jsonl:1: not a JSON object"),
        ("r.csv", b"ts,a,caf\xe9\n1,2,3\n", "r.csv:1: not UTF-8 text, at byte 8"),
    ],
)
def test_what_is_wrong_is_said_by_line(name: str, text: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(text)
    with pytest.raises(InputError) as caught:
        stream_of("R", tmp_path / name)
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["ts,a,s", "ts,a,s\n", " ts , a , s \n"])
def test_a_header_suffices(text: str, tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(text)
    assert _types(path) == {"a": "varchar", "s": "varchar"}
    assert read_timed(path, stream_of("R", path)).rows.num_rows == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "r.csv")
    with pytest.raises(InputError, match="is a pipe or a device"):
        stream_of("R", tmp_path / "r.csv")


@pytest.mark.parametrize("name", ["missing.csv", "missing.csv.gz", "a\0.csv", "a\0.csv.gz"])
def test_a_file_that_is_not_there(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        stream_of("R", tmp_path / name)
