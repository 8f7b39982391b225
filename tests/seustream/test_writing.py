"""Result files read back as they were written, and appear all together or not at all."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seustream.errors import OutputError
from seustream.writing import FORMATS, OutputSet, Writer
from tests.seustream.outputs import put

ONE = pa.schema([("a", pa.int32()), ("b", pa.string())])


pytestmark = pytest.mark.usefixtures("here")


def rows(*values: tuple[int | None, str | None]) -> pa.Table:
    return pa.table({"a": [a for a, _ in values], "b": [b for _, b in values]}, schema=ONE)


def names(directory: str = "out") -> list[str]:
    return sorted(os.listdir(directory))


def test_columns_of_one_name() -> None:
    schema = pa.schema([("a", pa.int32()), ("a", pa.int32())])
    table = pa.table([[1], [2]], schema=schema)
    assert put("csv", table).read_text() == "a,a\n1,2\n"
    for format in ("jsonl", "parquet"):
        with pytest.raises(OutputError) as caught:
            OutputSet("out", format, {"q": schema})
        assert caught.value.messages == ("query q has 2 columns a",)


def test_rows_of_another_schema_are_a_fault_of_ours() -> None:
    with (
        pytest.raises(ValueError, match="rows of another schema"),
        OutputSet("out", "csv", {"q": ONE}) as out,
    ):
        out.write("q", pa.table({"a": [1]}))
    assert not Path("out").exists()


def test_many_small_tables_are_one_row_group() -> None:
    with OutputSet("out", "parquet", {"q": ONE}) as out:
        for n in range(100):
            out.write("q", rows((n, "x")).to_batches()[0])
    assert pq.ParquetFile("out/q.parquet").metadata.num_row_groups == 1
    assert pq.read_table("out/q.parquet")["a"].to_pylist() == list(range(100))


# --- All or nothing ------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
def test_nothing_appears_before_the_end(format: str) -> None:
    with OutputSet("out", format, {"q": ONE, "p": ONE}) as out:
        out.write("q", rows((1, "x")))
        assert all(name.endswith(".tmp") for name in names())
    assert names() == [f"p.{format}", f"q.{format}"]


@pytest.mark.parametrize("format", FORMATS)
def test_an_exception_leaves_everything_as_it_was(format: str) -> None:
    Path("out").mkdir()
    Path(f"out/q.{format}").write_text("old")

    def fail() -> NoReturn:
        with OutputSet("out", format, {"q": ONE, "p": ONE}) as out:
            out.write("q", rows((1, "x")))
            out.write("p", rows((1, "x")))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert names() == [f"q.{format}"]
    assert Path(f"out/q.{format}").read_text() == "old"


def test_success_replaces_old_files() -> None:
    Path("out").mkdir()
    Path("out/q.csv").write_text("old")
    Path("out/other.csv").write_text("other")
    put("csv", rows((1, "x")))
    assert names() == ["other.csv", "q.csv"]
    assert Path("out/q.csv").read_text() == "a,b\n1,x\n"


def test_a_failed_rename_undoes_those_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("out").mkdir()
    Path("out/old.csv").write_text("old")
    Path("out/last.csv").write_text("old too")
    replace = Path.replace

    def refuse(self: Path, target: Path) -> Path:
        if target.name == "last.csv" and self.read_text().startswith("a,b"):
            raise OSError(28, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", refuse)
    with (
        pytest.raises(OutputError) as caught,
        OutputSet("out", "csv", {"old": ONE, "new": ONE, "last": ONE}) as out,
    ):
        out.write("old", rows((1, "x")))
    assert caught.value.messages == ("out/last.csv: cannot be written: No space left on device",)
    assert names() == ["last.csv", "old.csv"]
    assert Path("out/old.csv").read_text() == "old"
    assert Path("out/last.csv").read_text() == "old too"


@pytest.mark.parametrize("fails", [False, True])
def test_without_hard_links(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    def no_links(*arguments: object, **named: object) -> NoReturn:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    Path("out").mkdir()
    Path("out/q.csv").write_text("old")
    out = OutputSet("out", "csv", {"q": ONE, "r": ONE})
    with out:
        out.write("q", rows((1, "x")))
        if fails:
            monkeypatch.setattr(out._writers["r"], "publish", no_links)
            with pytest.raises(PermissionError):
                out.commit()
    assert names() == (["q.csv"] if fails else ["q.csv", "r.csv"])
    assert Path("out/q.csv").read_text() == ("old" if fails else "a,b\n1,x\n")


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> NoReturn:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError) as caught:
        put("csv", rows((1, "x")))
    assert caught.value.messages == ("out/q.csv: cannot be written: No space left on device",)
    assert not Path("out").exists()


def test_directories_made_are_removed_again() -> None:
    Path("there").mkdir()

    def fail() -> NoReturn:
        with OutputSet("there/a/b", "csv", {"q": ONE}) as out:
            out.write("q", rows((1, "x")))
            assert Path("there/a/b").is_dir()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert names("there") == []


def test_a_directory_made_is_kept_if_someone_else_uses_it() -> None:
    out = OutputSet("out", "csv", {"q": ONE})
    with out:
        Path("out/theirs").touch()
        out.abort()
    assert names() == ["theirs"]


def test_no_queries_make_no_directory() -> None:
    with OutputSet("out", "csv", {}):
        pass
    assert not Path("out").exists()


def test_places_that_cannot_be_written() -> None:
    Path("file").touch()
    Path("out/q.csv").mkdir(parents=True)
    for directory, message in [
        ("file", "file: cannot be written: not a directory"),
        ("file/x", "file/x: cannot be written: Not a directory"),
        ("out", "out/q.csv: cannot be written: Is a directory"),
    ]:
        with pytest.raises(OutputError) as caught, OutputSet(directory, "csv", {"q": ONE}):
            pass
        assert caught.value.messages == (message,)
    assert names() == ["q.csv"]


def test_files_have_usual_permissions() -> None:
    mask = os.umask(0o027)
    try:
        path = put("csv", rows((1, "x")))
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_commit_may_come_before_the_end() -> None:
    with OutputSet("out", "csv", {"q": ONE}) as out:
        out.commit()
        assert names() == ["q.csv"]
        with pytest.raises(ValueError, match="is closed"):
            out.write("q", rows((1, "x")))
    assert Path("out/q.csv").read_text() == "a,b\n"


def test_names_that_cannot_be_files() -> None:
    with pytest.raises(OutputError) as caught:
        OutputSet("out", "csv", {"a/b": ONE, "": ONE, "q": ONE, "Q": ONE})
    assert caught.value.messages == (
        "query 'a/b' cannot name a file",
        "query '' cannot name a file",
        "query 'q' has the file name of another, q.csv, but for case",
        "query 'Q' has the file name of another, Q.csv, but for case",
    )
    put("csv", rows((1, "x")), "x" * 251)
    with pytest.raises(OutputError, match="File name too long"):
        put("csv", rows((1, "x")), "x" * 252)
    assert names() == ["x" * 251 + ".csv"]


def test_a_writer_alone() -> None:
    writer = Writer(Path("q.csv"), ONE, "csv")
    assert names(".") == []
    writer.write(rows((1, "x")))
    writer.commit()
    writer.abort()
    assert names(".") == ["q.csv"]
    other = Writer(Path("q.csv"), ONE, "csv")
    other.write(rows((2, "y")))
    other.abort()
    assert names(".") == ["q.csv"]
    assert Path("q.csv").read_text() == "a,b\n1,x\n"
    Writer(Path("q.csv"), ONE, "csv").commit()
    assert Path("q.csv").read_text() == "a,b\n"


# --- Stdout ------------------------------------------------------


@pytest.mark.parametrize("directory", [None, "-", Path("-")])
def test_stdout_csv(directory: Path | str | None) -> None:
    file = io.BytesIO()
    with OutputSet(directory, "csv", {"q": ONE}, file) as out:
        out.write("q", rows((1, "x")))
        out.write("q", rows((None, "")))
    assert file.getvalue() == b'a,b\n1,x\n,""\n'
    assert out.paths == {}


def test_stdout_jsonl_names_the_query() -> None:
    file = io.BytesIO()
    with OutputSet("-", "jsonl", {"q": ONE, "p": ONE}, file) as out:
        out.write("p", rows((1, "x")))
        out.write("q", rows((2, None)).to_batches()[0])
    assert file.getvalue() == (
        b'{"query": "p", "a": 1, "b": "x"}\n{"query": "q", "a": 2, "b": null}\n'
    )


def test_stdout_is_the_process_s(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with OutputSet(None, "csv", {"q": ONE}):
        pass
    assert capfdbinary.readouterr().out == b"a,b\n"


@pytest.mark.parametrize(
    ("format", "schemas", "message"),
    [
        (
            "csv",
            {"q": ONE, "p": ONE},
            "the results of 2 queries cannot be one CSV on stdout, their columns differ",
        ),
        ("parquet", {"q": ONE}, "Parquet cannot go to stdout"),
    ],
)
def test_stdout_refuses(format: str, schemas: dict[str, pa.Schema], message: str) -> None:
    with pytest.raises(OutputError) as caught:
        OutputSet("-", format, schemas)
    assert caught.value.messages == (message,)
    assert caught.value.hint == "use --format jsonl, or -o with a directory"


def test_stdout_refuses_a_column_called_query() -> None:
    schema = pa.schema([("query", pa.int32())])
    with pytest.raises(OutputError, match="query q has 2 columns query"):
        OutputSet("-", "jsonl", {"q": schema}, io.BytesIO())


def test_unknown_format() -> None:
    with pytest.raises(OutputError, match="unknown format 'xml'") as caught:
        OutputSet("out", "xml", {"q": ONE})
    assert caught.value.hint == "formats: csv, jsonl, parquet"


def test_a_closed_pipe_is_not_a_file_error() -> None:
    """The command line treats it differently: the reader has seen enough."""

    class Pipe(io.BytesIO):
        def write(self, data: object) -> NoReturn:
            raise BrokenPipeError(32, "Broken pipe")

    with pytest.raises(BrokenPipeError), OutputSet("-", "csv", {"q": ONE}, Pipe()) as out:
        out.write("q", rows((1, "x")))
