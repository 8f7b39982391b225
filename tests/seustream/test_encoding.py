"""Results as text and Parquet: every type survives the round trip, and other readers agree."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import random
from collections.abc import Callable
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import Kind, Type
from seustream.encoding import encoder_of
from seustream.engine.stream.schema import stream_schema
from seustream.reading import read
from seustream.writing import FORMATS, OutputSet
from tests.seustream.outputs import ALL, put, table_of

pytestmark = pytest.mark.usefixtures("here")
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
        while at < count:  # in uneven parts, which are views of the whole
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


def test_duckdb_reads_parquet_as_it_was_written() -> None:
    rows = duckdb.connect().read_parquet(str(put("parquet", EXTREMES))).to_arrow_table()
    for name in EXTREMES.column_names:
        mine = EXTREMES[name]
        assert rows[name].cast(mine.type).equals(mine), name


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


@pytest.mark.parametrize(
    "column",
    [
        pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(9, 2)),
        pa.array([dt.datetime(2024, 2, 29, 12, 30), None, dt.datetime(1969, 1, 1)], pa.timestamp("us")),
        pa.array([0.1, INFINITE, None]),
        pa.array(['a"', None, "b"]),
        pa.array([[1, None], None, []], pa.list_(pa.int32())),
    ],
    ids=lambda column: str(column.type),
)  # fmt: skip
@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_lists_write_their_elements_as_they_are_by_themselves(
    column: pa.Array, format: str
) -> None:
    def lines(values: pa.Array, of: str) -> list[str]:
        table, file = pa.table({"x": values}), io.BytesIO()
        encoder = encoder_of(of, file, table.schema)
        encoder.write(table)
        encoder.close()
        return file.getvalue().decode().splitlines()

    alone = ", ".join(line[len('{"x": ') : -1] for line in lines(column, "jsonl"))
    offsets = pa.array([0, 0, None, 0, 3], pa.int32())
    whole = pa.ListArray.from_arrays(offsets, column)
    spelled = ["[]", "[]", None, f"[{alone}]"]
    for lists, texts in ((whole, spelled), (whole.slice(1), spelled[1:])):
        if format == "csv":
            cells = [row[0] if row else "" for row in csv.reader(lines(lists, "csv")[1:])]
            assert cells == [text or "" for text in texts]
        else:
            assert lines(lists, "jsonl") == [f'{{"x": {text or "null"}}}' for text in texts]
