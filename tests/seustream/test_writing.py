"""Result files: they read back as they were written, and appear together or not at all."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import os
import random
import stat
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    Kind,
    Type,
)
from seustream.engine.stream.schema import stream_schema
from seustream.errors import OutputError
from seustream.reading import read
from seustream.writing import FORMATS, OutputSet, Writer

ALL = Stream(
    "All",
    (
        Column("R.small", SMALLINT),
        Column("R.int", INT),
        Column("R.big", BIGINT),
        Column("real", REAL),
        Column("double", DOUBLE),
        Column("char", Type(Kind.CHAR, 8)),
        Column('var"char, ', Type(Kind.VARCHAR)),
        Column("date", DATE),
        Column("time", TIME),
        Column("at", TIMESTAMP),
        Column("ok", BOOLEAN),
    ),
)
ONE = pa.schema([("a", pa.int32()), ("b", pa.string())])


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def rows(*values: tuple[int | None, str | None]) -> pa.Table:
    return pa.table({"a": [a for a, _ in values], "b": [b for _, b in values]}, schema=ONE)


def put(format: str, table: pa.Table, name: str = "q") -> Path:
    with OutputSet("out", format, {name: table.schema}) as out:
        out.write(name, table)
    return out.paths[name]


def names(directory: str = "out") -> list[str]:
    return sorted(os.listdir(directory))


def table_of(*columns: list[object]) -> pa.Table:
    return pa.table(list(columns), schema=stream_schema(ALL))


INFINITE = float("inf")
EXTREMES = table_of(
    [-(2**63), 2**63 - 1, 0, 0, 0],
    [-(2**15), 2**15 - 1, 0, None, 1],
    [-(2**31), 2**31 - 1, 0, None, 1],
    [-(2**63), 2**63 - 1, 0, None, 1],
    [3.4028234663852886e38, 1.401298464324817e-45, -0.0, None, -INFINITE],
    [1.7976931348623157e308, 5e-324, -0.0, None, INFINITE],
    ["", " a ", 'a"b', None, "\\n'\t"],
    ["", 'a,"b"\r\nc\n', "żółw 海 🐢\u2028", None, "null"],
    [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1970, 1, 1), None, dt.date(2024, 2, 29)],
    [dt.time(0), dt.time(23, 59, 59, 999_000), dt.time(1, 2, 3), None, dt.time(0, 0, 0, 1000)],
    [
        dt.datetime(1, 1, 1),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999_999),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
        None,
        dt.datetime(2024, 1, 2, 3, 4, 5),
    ],
    [True, False, True, None, False],
)


@pytest.mark.parametrize("format", FORMATS)
def test_round_trip_of_every_type(format: str) -> None:
    assert read(put(format, EXTREMES), ALL).equals(EXTREMES)


@pytest.mark.parametrize("format", FORMATS)
def test_round_trip_without_rows(format: str) -> None:
    path = put(format, EXTREMES.slice(0, 0))
    assert read(path, ALL, lambda message: None).equals(EXTREMES.slice(0, 0))


@pytest.mark.parametrize("format", FORMATS)
def test_round_trip_of_only_nulls(format: str) -> None:
    table = table_of([1, 2], *[[None, None]] * len(ALL.columns))
    assert read(put(format, table), ALL).equals(table)


@pytest.mark.parametrize("format", FORMATS)
def test_random_round_trip(format: str) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    count = rng.choice((1, 100, 40_000))
    alphabet = 'ab,"\\\n\r\t \x00\x01é海🐢/{}[]:\x7f\ufeff'

    def text() -> str:
        return "".join(rng.choices(alphabet, k=rng.randrange(8)))

    def integer(bits: int) -> int:
        return rng.randrange(-(1 << bits), 1 << bits) >> rng.randrange(bits)

    makers: list[Callable[[], object]] = [
        lambda: integer(63),
        lambda: integer(15),
        lambda: integer(31),
        lambda: integer(63),
        lambda: (
            pa.scalar(rng.uniform(-1, 1) * 10 ** rng.randrange(-45, 38), pa.float32()).as_py()
            if count < 1000
            else integer(20) / 8
        ),
        lambda: rng.uniform(-1, 1) * 10.0 ** rng.randrange(-320, 308),
        text,
        text,
        lambda: dt.date.fromordinal(rng.randrange(1, dt.date.max.toordinal())),
        lambda: dt.time(rng.randrange(24), 0, rng.randrange(60), rng.randrange(1000) * 1000),
        lambda: dt.datetime(1, 1, 1) + dt.timedelta(microseconds=rng.randrange(3 * 10**17)),
        lambda: rng.random() < 0.5,
    ]
    table = table_of(
        *(
            [None if place and rng.random() < 0.1 else maker() for _ in range(count)]
            for place, maker in enumerate(makers)
        )
    )
    with OutputSet("out", format, {"q": table.schema}) as out:
        at = 0
        while at < count:  # in uneven parts, which are views into the whole
            size = rng.randrange(1, count + 1)
            out.write("q", table.slice(at, size))
            at += size
    assert read(out.paths["q"], ALL).equals(table)


def test_csv_text() -> None:
    table = pa.table(
        {
            "R.a": [1, None],
            "b,c": ["", None],
            "d": ['say "x"', "plain"],
            "at": pa.array([0, None], pa.timestamp("us")),
            "f": [float("nan"), 1.0],
        }
    )
    assert put("csv", table).read_text() == (
        'R.a,"b,c",d,at,f\n1,"","say ""x""",1970-01-01T00:00:00.000000,NaN\n,,plain,,1\n'
    )


def test_jsonl_text() -> None:
    table = pa.table(
        {
            "R.a": [1, None],
            'b"': ["", None],
            "d": ['say "x"\n', "é"],
            "day": [dt.date(2024, 1, 2), None],
            "clock": pa.array([1, None], pa.time32("ms")),
            "f": [float("-inf"), float("nan")],
            "ok": [True, None],
        }
    )
    assert put("jsonl", table).read_text(encoding="utf-8") == (
        '{"R.a": 1, "b\\"": "", "d": "say \\"x\\"\\n", "day": "2024-01-02", '
        '"clock": "00:00:00.001", "f": "-Infinity", "ok": true}\n'
        '{"R.a": null, "b\\"": null, "d": "é", "day": null, '
        '"clock": null, "f": "NaN", "ok": null}\n'
    )


@pytest.mark.parametrize("mark", ["\r", "\n", ",", '"', " ", "\x00"])
def test_csv_quotes(mark: str) -> None:
    stream = Stream("R", (Column("a", Type(Kind.VARCHAR)),))
    table = pa.table([[1, 2], [mark, f"x{mark}y"]], schema=stream_schema(stream))
    assert read(put("csv", table), stream).equals(table)


@pytest.mark.parametrize("mark", ["\x00", "\t", "\n", "\r", "\x1f", "\\", '"'])
def test_jsonl_escapes(mark: str) -> None:
    (line,) = put("jsonl", pa.table({"a": [mark]})).read_bytes().splitlines()
    assert json.loads(line) == {"a": mark}


def test_other_readers_agree() -> None:
    with put("csv", EXTREMES).open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    assert header == EXTREMES.schema.names
    assert [line[7] for line in lines] == [t or "" for t in EXTREMES.column(7).to_pylist()]
    text = put("jsonl", EXTREMES).read_text(encoding="utf-8")
    objects = [json.loads(line) for line in text.removesuffix("\n").split("\n")]
    for name in ("ts", "R.big", 'var"char, ', "ok"):
        assert [each[name] for each in objects] == EXTREMES[name].to_pylist()


def test_nested_and_unusual_columns() -> None:
    table = pa.table(
        {
            "list": [[1, None], None],
            "struct": [{"x": dt.date(2024, 1, 2), "y": [float("inf")]}, None],
            "word": pa.array(["a", None]).dictionary_encode(),
            "null": pa.nulls(2),
            "zoned": pa.array([0, None], pa.timestamp("ms", "UTC")),
        }
    )
    objects = [json.loads(line) for line in put("jsonl", table).read_text().splitlines()]
    assert objects == [
        {
            "list": [1, None],
            "struct": {"x": "2024-01-02", "y": ["Infinity"]},
            "word": "a",
            "null": None,
            "zoned": "1970-01-01T00:00:00.000Z",
        },
        dict.fromkeys(table.schema.names),
    ]
    assert put("csv", table).read_text().splitlines()[1] == (
        '"[1, null]","{""x"": ""2024-01-02"", ""y"": [""Infinity""]}",a,,1970-01-01T00:00:00.000Z'
    )


def test_years_that_arrow_cannot_spell() -> None:
    table = pa.table({"at": pa.array([2**62, None, 0], pa.timestamp("us"))})
    assert put("csv", table).read_text() == (
        "at\n148108-07-06T14:00:27.387904\n\n1970-01-01T00:00:00.000000\n"
    )


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


# All or nothing


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
        ("out", "out/q.csv: cannot be written: is a directory"),
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


# Stdout


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
    """The command line treats it apart: whoever reads has seen enough."""

    class Pipe(io.BytesIO):
        def write(self, data: object) -> NoReturn:
            raise BrokenPipeError(32, "Broken pipe")

    with pytest.raises(BrokenPipeError), OutputSet("-", "csv", {"q": ONE}, Pipe()) as out:
        out.write("q", rows((1, "x")))
