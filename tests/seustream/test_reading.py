"""Input files: the rows read from each format, and the messages for files that cannot be read."""

from __future__ import annotations

import datetime as dt
import os
import random
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seustream import csvlines
from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    SMALLINT,
    TIMESTAMP,
    Kind,
    Type,
)
from seustream.errors import InputError
from seustream.frames import stream_of
from seustream.reading import read, read_timed
from tests.seustream.streamfiles import ROADS, R, errors, put, rows, silent

pytestmark = pytest.mark.usefixtures("here")


# --- All formats ------------------------------------------------------


def test_unknown_suffix() -> None:
    assert errors(put("r.txt", "ts")) == [
        "r.txt: unknown format, the known suffixes are .csv, .jsonl, .ndjson, .json, .parquet"
    ]


def test_no_such_file() -> None:
    assert errors(Path("r.csv")) == ["r.csv: no such file"]


def test_a_directory() -> None:
    Path("r.csv").mkdir()
    assert errors(Path("r.csv")) == ["r.csv: no file of this folder is an input"]
    os.mkfifo("p.csv")
    wanted = "p.csv: is a pipe or a device, expected a file: it is read twice"
    assert errors(Path("p.csv")) == [wanted]


def test_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    path = put("r.csv", "ts")

    def refuse(self: Path, *arguments: object, **named: object) -> NoReturn:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert errors(path) == ["r.csv: cannot be read: Permission denied"]


# --- CSV ------------------------------------------------------


def test_csv_nulls_and_empty_texts() -> None:
    path = put("r.csv", 'ts,a,b\n1,,""\n2,"",\n3,"3","x"\n')
    assert rows(path) == [(1, None, ""), (2, None, None), (3, 3, "x")]


def test_csv_quotes_commas_and_newlines_in_cells() -> None:
    path = put("r.csv", '"ts",a,b\n1,1,"x,""y""\nz"\n2,2,a"b\n3,3," c "\n')
    assert rows(path) == [(1, 1, 'x,"y"\nz'), (2, 2, 'a"b'), (3, 3, " c ")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_csv_ends_of_lines(end: str, last: bool) -> None:
    text = end.join(["", "ts,a,b", "1,1,x", "", "2,2,y"]) + (end if last else "")
    assert rows(put("r.csv", text)) == [(1, 1, "x"), (2, 2, "y")]


@pytest.mark.parametrize("text", ["ts,a,b", "ts,a,b\n", "ts,a,b\r\n\r\n"])
def test_csv_without_rows(text: str) -> None:
    assert rows(put("r.csv", text)) == []


def test_csv_byte_order_mark() -> None:
    assert rows(put("r.csv", b"\xef\xbb\xbfts,a,b\n1,2,\xc3\xa9\n")) == [(1, 2, "é")]


def test_csv_header_over_two_lines() -> None:
    stream = Stream("R", (Column("a", INT),))
    warnings: list[str] = []
    path = put("r.csv", 'ts,"x\ny",a\n1,2,3\nz,4,5\n')
    with pytest.raises(InputError) as caught:
        read(path, stream, warnings.append)
    assert warnings == ["r.csv: column 'x\\ny' is not in stream R and ignored"]
    assert caught.value.messages[0].startswith("r.csv:4: column ts: 'z' is not a time")


@pytest.mark.parametrize("text", ["", "\n\n", b"\xef\xbb\xbf"])
def test_csv_empty(text: str) -> None:
    assert errors(put("r.csv", text)) == [
        "r.csv: is empty, expected a header with the names of the columns"
    ]


def test_csv_bad_cells() -> None:
    text = "ts,xPos,dir,speed\n1,7,E,1.5\n2,abc,north,1e39\n,9,W,fast\n\n4,99999999999,E,\n"
    assert errors(put("roads.csv", text), ROADS) == [
        "roads.csv:3: column xPos: 'abc' is not an int",
        "roads.csv:3: column dir: 'north' has 5 characters, varchar(4) holds 4",
        "roads.csv:3: column speed: '1e39' is too large for real",
        "roads.csv:4: column ts: NULL, every tuple needs a time",
        "roads.csv:4: column speed: 'fast' is not a real number",
        "roads.csv:6: column xPos: '99999999999' is out of range, int is -2147483648 to 2147483647",
    ]


def test_csv_not_null() -> None:
    stream = Stream("R", (Column("a", INT, nullable=False), Column("b", DOUBLE, nullable=False)))
    assert errors(put("r.csv", "ts,a,b\n1,,1\n2,2,NaN\n3,3,3\n"), stream) == [
        "r.csv:2: column a: NULL, the column is NOT NULL",
        "r.csv:3: column b: 'NaN' reads as NULL, the column is NOT NULL",
    ]


def test_csv_lines_after_a_cell_of_several_lines() -> None:
    text = 'ts,a,b\n1,1,"x\r\ny\nz"\n2,?,"p\nq"\n3,!,r\n'
    assert errors(put("r.csv", text)) == [
        "r.csv:5: column a: '?' is not an int",
        "r.csv:7: column a: '!' is not an int",
    ]


def test_csv_first_errors_and_their_number() -> None:
    good, bad = "1,1,x\n" * 100, "1,x,x\n" * 30
    path = put("r.csv", "ts,a,b\n" + good + bad + "1,2\n")
    with pytest.raises(InputError) as caught:
        read(path, R)
    assert caught.value.total == 31
    *listed, last = caught.value.messages
    assert listed == [f"r.csv:{102 + n}: column a: 'x' is not an int" for n in range(20)]
    assert last == "r.csv: 31 errors in all, the first 20 are listed"


def test_csv_ragged_rows() -> None:
    path = put("r.csv", "ts,a,b\n1,1,x\n2\n3,3,x,y\n4,four,x\n")
    assert errors(path) == [
        "r.csv:3: 1 cell, the header has 3",
        "r.csv:4: 4 cells, the header has 3",
        "r.csv:5: column a: 'four' is not an int",
    ]


@pytest.mark.parametrize("row", ['2,2,"x', '2,2,"x\n3,3,y\n', '2,"2,x\n3,3,y\n', '2,2,"x""'])
def test_csv_quote_not_closed(row: str) -> None:
    assert errors(put("r.csv", "ts,a,b\n1,1,x\n\n" + row)) == [
        "r.csv:4: a quote is opened in this row and not closed before the end of the file"
    ]


def test_csv_quote_not_closed_in_a_column_of_no_interest() -> None:
    path = put("r.csv", 'ts,a,b,c\n1,1,x,\n2,z\n2,2,x,"\n3,3,y,\n')
    with pytest.raises(InputError) as caught:
        read(path, R, lambda message: None)
    assert caught.value.messages == (
        "r.csv:3: 2 cells, the header has 4",
        "r.csv:4: a quote is opened in this row and not closed before the end of the file",
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"ts,a,b\n1,1,x\n2,2,\xff\n", "r.csv:3: not UTF-8 text, at byte 4 of the line"),
        (b"ts,a,b\xe9\n1,1,x\n", "r.csv:1: not UTF-8 text, at byte 6 of the line"),
        ("ts,a,b\n".encode("utf-16"), "r.csv:1: not UTF-8 text, at byte 0 of the line"),
    ],
)
def test_csv_bad_utf8(data: bytes, message: str) -> None:
    assert errors(put("r.csv", data)) == [message]


def test_csv_cell_longer_than_a_block_and_than_pythons_limit() -> None:
    long = "x" * 3_000_000
    assert rows(put("r.csv", f"ts,a,b\n1,1,{long}\n2,2,y\n")) == [(1, 1, long), (2, 2, "y")]
    path = put("r.csv", f"ts,a,b\n1,1,{long}\nz,2,y\n")
    assert errors(path) == [
        "r.csv:3: column ts: 'z' is not a time (integer milliseconds or an ISO timestamp)"
    ]


def test_csv_of_many_rows_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A good file never goes through the readers that go row by row or cell by cell."""

    def slow(*arguments: object) -> NoReturn:
        raise AssertionError("the slow path")

    monkeypatch.setattr(csvlines, "_diagnosed", slow)
    monkeypatch.setattr("seustream.tables._slow", slow)
    stream = Stream(
        "R",
        (
            Column("i", SMALLINT),
            Column("l", BIGINT, nullable=False),
            Column("d", DOUBLE),
            Column("t", Type(Kind.VARCHAR, 10)),
            Column("day", DATE),
            Column("clock", Type(Kind.TIME)),
            Column("at", Type(Kind.TIMESTAMP)),
            Column("ok", BOOLEAN),
        ),
    )
    count = 200_000
    lines = [
        f'{n},{n % 1000 - 500},{n},{n / 8},"r,\n{n}",2024-01-02,03:04:05.678,2024-01-02T03:04:05Z,'
        f"{'tf'[n % 2]}\n"
        if n % 10
        else f"{n},,{n},nan,,,,,\n"
        for n in range(count)
    ]
    path = put("r.csv", "ts,i,l,d,t,day,clock,at,ok\n" + "".join(lines))
    table = read(path, stream, silent)
    assert table.num_rows == count
    assert table["ts"].to_pylist() == list(range(count))
    assert table["d"].null_count == table["t"].null_count == count // 10
    assert table.slice(199_999).to_pylist() == [
        {
            "ts": 199_999,
            "i": 499,
            "l": 199_999,
            "d": 24_999.875,
            "t": "r,\n199999",
            "day": dt.date(2024, 1, 2),
            "clock": dt.time(3, 4, 5, 678_000),
            "at": dt.datetime(2024, 1, 2, 3, 4, 5),
            "ok": False,
        }
    ]


def test_the_slow_path_is_there_to_be_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Supports the test above: a bad file does go through the slow path."""
    called: list[object] = []
    diagnose = csvlines._diagnosed
    monkeypatch.setattr(
        csvlines, "_diagnosed", lambda *given: called.append(given) or diagnose(*given)
    )
    errors(put("r.csv", "ts,a,b\n1,x,x\n"))
    assert len(called) == 1


# --- JSON lines ------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        ("1767225600000", pa.int64()),
        ("2026-01-01", pa.timestamp("ms")),
        ("2026-01-01 00:00:00.5", pa.timestamp("ms")),
        ("2026-01-01T00:00:00Z", pa.timestamp("ms", "UTC")),
        ("2026-01-01T00:00-05:30", pa.timestamp("ms", "UTC")),
    ],
)
def test_the_first_cell_tells_the_type_of_the_time(first: str, kind: pa.DataType) -> None:
    """The rows have milliseconds in any case, and later cells may have another spelling."""
    for path in (
        put("r.csv", f"a,ts,b\n1,{first},x\n2,5,\n"),
        put("r.jsonl", f'{{"a": 1, "ts": "{first}", "b": "x"}}\n{{"ts": 5}}\n'),
    ):
        found = read_timed(path, R, silent)
        assert found.time == kind
        assert found.rows.column("ts").type == pa.int64()


def test_a_parquet_time_has_its_columns_type() -> None:
    kind = pa.timestamp("ns", "Asia/Tokyo")
    pq.write_table(pa.table({"a": [1], "b": ["x"], "ts": pa.array([5_000_000], kind)}), "r.parquet")
    assert read_timed(Path("r.parquet"), R, silent).time == kind


# --- Parquet ------------------------------------------------------


def test_parquet_errors() -> None:
    table = pa.table({"ts": [1, None, 3], "a": [1, 2, 2**31], "b": ["x", "y", "z"]})
    pq.write_table(table, "r.parquet")
    assert errors(Path("r.parquet")) == [
        "r.parquet: row 2: column ts: NULL, every tuple needs a time",
        "r.parquet: row 3: column a: '2147483648' is out of range, "
        "int is -2147483648 to 2147483647",
    ]


def test_parquet_rows_are_counted_across_groups() -> None:
    table = pa.table({"ts": range(10), "a": [1] * 9 + [2**40], "b": ["x"] * 10})
    pq.write_table(table, "r.parquet", row_group_size=3)
    (message,) = errors(Path("r.parquet"))
    assert message.startswith("r.parquet: row 10: column a: ")


def test_parquet_wrong_types() -> None:
    pq.write_table(pa.table({"ts": [1.0], "a": ["1"], "b": [[1]]}), "r.parquet")
    assert errors(Path("r.parquet")) == [
        "r.parquet: column ts has type double, "
        "expected integers, in milliseconds, or a type for timestamps",
        "r.parquet: column a has type string, expected an int",
        "r.parquet: column b has type list<element: int64>, expected a varchar",
    ]


def test_parquet_times() -> None:
    at = dt.datetime(2024, 1, 2, tzinfo=dt.UTC)
    times = pa.array([at, at + dt.timedelta(microseconds=1999)], pa.timestamp("ns", "Europe/Paris"))
    pq.write_table(pa.table({"TS": times, "A": [1, 2], "b": ["x", None]}), "r.parquet")
    assert rows(Path("r.parquet")) == [(1704153600000, 1, "x"), (1704153600001, 2, None)]


def test_parquet_that_is_none() -> None:
    assert errors(put("r.parquet", "")) == ["r.parquet: is empty, expected a Parquet file"]
    (message,) = errors(put("r.parquet", "ts,a,b\n1,2,3\n"))
    assert message.startswith("r.parquet: cannot be read as Parquet: ")
    pq.write_table(pa.table({"ts": [1], "a": [1], "b": ["x"]}), "r.parquet")
    data = bytearray(Path("r.parquet").read_bytes())
    data[4:40] = bytes(36)
    (message,) = errors(put("r.parquet", bytes(data)))
    assert message.startswith("r.parquet: cannot be read")


def test_parquet_without_rows() -> None:
    pq.write_table(pa.table({"ts": [1], "a": [1], "b": ["x"]}).slice(0, 0), "r.parquet")
    assert rows(Path("r.parquet")) == []


# --- Random files ------------------------------------------------------


OWN_FOLDER = HealthCheck.function_scoped_fixture
"""Each case overwrites the file of the case before."""
MOSTLY = st.sampled_from([True] * 9 + [False])
CELLS = st.sampled_from(["x", "", "xENDy", '"ENDEND"', "a,b", ' "', "é"])


@settings(max_examples=200, deadline=None, database=None, suppress_health_check=[OWN_FOLDER])
@given(
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.tuples(CELLS, MOSTLY, st.booleans()), max_size=30),
    st.booleans(),
)
def test_random_csv_names_the_lines_of_bad_cells(
    end: str, given_rows: list[tuple[str, bool, bool]], ends: bool
) -> None:
    """Rows over several lines, empty lines and all kinds of line ends, compared with a simple
    count."""
    texts, values, bad, line = ["ts,a,b"], [], [], 2
    for row, (text, good, empty) in enumerate(given_rows):
        b = text.replace("END", end)
        cell = '"' + b.replace('"', '""') + '"'
        if good:
            texts.append(f"{row},{row * row},{cell}")
            values.append((row, row * row, b))
        else:
            texts.append(f"{row},?{row},{cell}")
            bad.append(f"r.csv:{line}: column a: '?{row}' is not an int")
        line += 1 + b.count(end)
        if empty:
            texts.append("")
            line += 1
    path = put("r.csv", end.join(texts) + (end if ends else ""))
    if bad:
        assert errors(path)[:9] == bad[:9]  # and the rest likewise
    else:
        assert rows(path) == values


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_any_bytes_are_a_table_or_an_input_error(suffix: str) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    tokens = {
        "csv": [
            "1",
            "abc",
            *[","] * 4,
            "\n",
            "\r",
            '"',
            '""',
            " ",
            "é",
            "\x00",
            "1,2,x\n",
            "\ufeff",
        ],
        "jsonl": [
            "{",
            "}",
            '"ts"',
            '"a"',
            ":",
            ",",
            "1",
            "null",
            "\n",
            "[",
            '{"ts":1,"a":1,"b":"x"}\n',
            "-",
        ],
    }[suffix]
    good = 0
    messages: list[str] = []
    for _ in range(500):
        data = "".join(rng.choices(tokens, k=rng.randrange(20))).encode()
        if suffix == "csv":
            data = b"ts,a,b" + rng.choice([b"\n", b"\r\n", b"\r"]) + data
        if rng.random() < 0.1:
            at = rng.randrange(len(data) + 1)
            data = data[:at] + rng.choice([b"\xff", b"\xc3", b"\x00"]) + data[at:]
        try:
            read(put(f"r.{suffix}", data), R, lambda message: None)
        except InputError as error:
            messages += error.messages
        else:
            good += 1
    assert good
    assert all(message.startswith(f"r.{suffix}:") for message in messages)


def test_parquet_times_of_96_bits() -> None:
    """They reach far beyond those in nanoseconds; Spark writes them."""
    times = [
        dt.datetime(1600, 1, 1),
        dt.datetime(2024, 1, 1, 0, 0, 0, 5),
        dt.datetime(9999, 12, 31),
    ]
    table = pa.table({"ts": pa.array(times, pa.timestamp("us")), "a": [1, 2, 3]})
    pq.write_table(table, "r.parquet", use_deprecated_int96_timestamps=True)
    stream = Stream("R", (Column("a", BIGINT), Column("at", TIMESTAMP)))
    pq.write_table(
        table.append_column("at", table["ts"]), "r.parquet", use_deprecated_int96_timestamps=True
    )
    found = read_timed(Path("r.parquet"), stream, lambda text: None).rows
    assert found["at"].to_pylist() == times
    since = [(at - dt.datetime(1970, 1, 1)) // dt.timedelta(milliseconds=1) for at in times]
    assert found["ts"].to_pylist() == since
    assert stream_of("R", Path("r.parquet")).columns == stream.columns
