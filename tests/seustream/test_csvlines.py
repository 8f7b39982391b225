"""CSV that comes in pieces: the rows and errors of the whole file. `test_reading` has the formats' rules."""

from __future__ import annotations

import csv
import io
import random
from pathlib import Path

import pyarrow as pa
import pytest

from seustream import csvlines
from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import INT, VARCHAR
from seustream.csvlines import CsvText, read_pieces
from seustream.engine.stream.schema import stream_schema
from seustream.errors import InputError
from seustream.fitting import InputFile
from seustream.reading import read
from seustream.tables import fields

R = Stream("R", (Column("a", INT), Column("s", VARCHAR)))


def in_pieces(data: bytes, lines: int) -> list[dict[str, object]]:
    """Reads pieces of so many lines each."""
    source = InputFile(Path("r.csv"), "r.csv", R, fields(R), lambda text: None)
    every = data.splitlines(keepends=True)
    pieces = [b"".join(every[n : n + lines]) for n in range(0, len(every), lines)]
    parts = [pa.table(columns, schema=stream_schema(R)) for columns in read_pieces(source, pieces)]
    return pa.concat_tables(parts).to_pylist()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(csvlines, "PIECE", 40)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("small")
def test_pieces_are_read_as_the_whole() -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    for _ in range(30):
        out = io.StringIO()
        writer = csv.writer(out, lineterminator=chance.choice(("\n", "\r\n")))
        writer.writerow(["s", "ts", "more", "a"])
        for ts in range(chance.randrange(1, 30)):
            text = "".join(
                chance.choices(['"', ",", "\n", "x", "é", " ", "\n\n"], k=chance.randrange(9))
            )
            writer.writerow([text, ts, "", chance.choice(("", ts))])
        data = chance.choice((b"", b"\xef\xbb\xbf")) + out.getvalue().encode()
        Path("r.csv").write_bytes(data)
        whole = read(Path("r.csv"), R, lambda text: None).to_pylist()
        assert in_pieces(data, chance.randrange(1, 6)) == whole


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "line",
    [
        '7,x,"t"',
        '7,8,"t',
        "7,8",
        "7,8,9,10",
        "7,99999999999,t",
        "7,8,\xff",
        'x,8,"a\nb\nc"',
        '7,"x\n",t',
    ],
)
def test_errors_have_the_lines_of_the_file(line: str) -> None:
    """Among long cells, so that pieces end within them."""
    good = '5,6,"one\ntwo\n\nthree"\n'
    data = ("ts,a,s\n" + 10 * good + line + "\n" + 3 * good).encode("latin-1")
    Path("r.csv").write_bytes(data)
    with pytest.raises(InputError) as whole:
        read(Path("r.csv"), R, lambda text: None)
    with pytest.raises(InputError) as parts:
        in_pieces(data, 1)
    assert parts.value.messages[0] == whole.value.messages[0]


def test_nothing_is_no_file() -> None:
    with pytest.raises(InputError, match="is empty, expected a header"):
        in_pieces(b"\n\n", 1)


def test_the_row_behind_a_text_is_not_of_it() -> None:
    data = pa.py_buffer(b"1,2\n" + csvlines._end(2))
    text = CsvText(data, 2, (1,))
    assert bytes(text.text) == b"1,2\n"
    assert [row for _, _, row in text.rows()] == [["1", "2"]]
    cells = text.cells()
    assert cells is not None
    assert cells.to_pylist() == [{"1": "2"}]
