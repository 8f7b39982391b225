"""Lines and messages as rows, without Spark: the same as `seustream run` reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from seustream.compiler.pipeline import compile_text
from seustream.errors import InputError
from seustream.reading import read
from seustream.spark_feeder.errors import FeedError
from seustream.spark_feeder.lines import LineReader
from seustream.tables import fields

TEXT = "CREATE STREAM R (a int, b double precision, c varchar(3), d decimal(9,2)); SELECT a FROM R;"
(R,) = compile_text(TEXT).streams
READER = LineReader(R, fields(R))
FULL = b'{"ts": 0, "a": null, "b": null, "c": null, "d": null}'


def lines(path: str, values: Sequence[bytes], begin: int = 0, whole: bool = True) -> pa.RecordBatch:
    columns = {"origin": f"file:///in/{path}", "begin": begin, "whole": whole}
    return pa.record_batch(
        {"value": pa.array(values, pa.binary())}
        | {name: pa.array([value] * len(values)) for name, value in columns.items()}
    )


def messages(values: Sequence[bytes | None], partition: int, offset: int) -> pa.RecordBatch:
    batch = lines("", [value or b"" for value in values], whole=False)
    origins = pa.array([f"topic t, partition {partition}"] * len(values))
    batch = batch.set_column(0, "value", pa.array(values, pa.binary()))
    batch = batch.set_column(1, "origin", origins)
    return batch.append_column("number", pa.array(range(offset, offset + len(values))))


def rows(*batches: pa.RecordBatch, reader: LineReader = READER) -> list[tuple[object, ...]]:
    found = [row for batch in reader(iter(batches)) for row in batch.to_pylist()]
    return [tuple(row.values()) for row in found]


@pytest.mark.parametrize(
    "line",
    [
        b'{"ts":1,"a":1}{"ts":2,"a":2}',
        b'{"ts":1,"a":1} oops',
        b'{"ts":1,"a":1,"A":2}',
        b"{'ts':1,'a':1}",
        b'{"ts":1,"a":1 /* one */}',
        b'{"ts":1,"b":NaN,"d":NaN}',
        b'{"ts":1,"b":-Infinity}',
        b'{"ts":1,"d":"","a":" "}',
        b'{"ts":1,"d":"NaN"}',
        b'{"ts":1,"d":1.005}',
        b'{"ts":1,"c":5}',
        b'{"ts":1,"c":"four"}',
        b'{"ts":1,"c":"\xff"}',
        b'{"TimeStamp":"2026-03-02 09:00+01:00","A":"3"}',
        b'{"a":1}',
        b"   ",
        b"[1]",
        b"null",
    ],
)
def test_a_line_is_read_as_run_reads_it(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(FULL + b"\n" + line)
    try:
        host = [tuple(row.values()) for row in read(path, R, lambda text: None).to_pylist()]
    except InputError as error:
        reason = error.messages[0].partition(":2: ")[2]
        with pytest.raises(FeedError) as caught:
            rows(lines("r.jsonl", [FULL, line]))
        assert str(caught.value) == f"schema: /in/r.jsonl:2: {reason}"
    else:
        assert rows(lines("r.jsonl", [FULL, line])) == host


def test_files_and_their_parts_have_lines_of_their_own() -> None:
    """A batch of Spark has rows of several files, and a file is in several batches."""
    first = lines("1.jsonl", [FULL] * 2)
    second = lines("a%20b.jsonl", [FULL] * 2)
    both = pa.Table.from_batches([first, second]).combine_chunks().to_batches()[0]
    assert len(rows(first, both)) == 6
    bad = lines("a%20b.jsonl", [b"{", FULL, b"["])
    with pytest.raises(
        FeedError, match=r"^schema: /in/a b.jsonl:3: .* column 2, and 1 more errors$"
    ):
        rows(both, bad)
    part = lines("a%20b.jsonl", [b"x"], 512, whole=False)
    with pytest.raises(FeedError, match=r"/in/a b.jsonl, from byte 512:1: not a JSON object"):
        rows(second, part)


def test_a_column_is_somewhere_in_a_file() -> None:
    """A part of a file need not have it."""
    assert rows(lines("r.jsonl", [b'{"ts": 5}', FULL]))[0] == (5, None, None, None, None)
    assert len(rows(lines("r.jsonl", [b'{"ts": 5}'], whole=False))) == 1
    with pytest.raises(
        FeedError, match=r"/in/r.jsonl: no column a, which stream R has, and 3 more"
    ):
        rows(lines("r.jsonl", [b'{"ts": 5}']))
    assert rows(lines("r.jsonl", [b""])) == []


def test_messages() -> None:
    """A message without a value is passed over, and so is an empty one."""
    values = [b'{"ts": 5, "a": 1}', None, b" ", b'{"ts": 6}']
    assert rows(messages(values, 0, 7)) == [(5, 1, None, None, None), (6, *[None] * 4)]
    with pytest.raises(FeedError) as caught:
        rows(messages(values, 0, 7), messages([*values, b'{"ts": "x"}'], 2, 40))
    where = "topic t, partition 2: offset 44: column ts: 'x' is not a time"
    assert str(caught.value).startswith(f"schema: {where}")


def test_csv() -> None:
    reader = LineReader(R, fields(R), csv=True)
    header = b"d,c,b,a,ts,other"
    one, two = [header, b'1.50,"', b"\r", b'",,7,5,'], [header, b"2,,inf,,6,"]
    found = rows(
        lines("1.csv", one[:3]), lines("1.csv", one[3:]), lines("2.csv", two), reader=reader
    )
    assert [row[:4] for row in found] == [(5, 7, None, "\n\r\n"), (6, None, float("inf"), None)]
    with pytest.raises(FeedError, match=r"/in/2.csv:2: column a: 'x' is not an int"):
        rows(lines("1.csv", one), lines("2.csv", [header, b"1,,,x,5,"]), reader=reader)
    with pytest.raises(FeedError, match="Spark divides this file"):
        rows(lines("1.txt", one, whole=False), reader=reader)
