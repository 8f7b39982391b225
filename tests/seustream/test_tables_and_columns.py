"""The spellings of values: what each type accepts, and that the vectorised path and the path by
single cells give the same values."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from seustream import tables
from seustream.columns import from_column
from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    VARCHAR,
    Kind,
    Type,
    decimal,
)
from seustream.engine.stream.schema import arrow_type
from seustream.tables import BadCells, Field, Wrong, fields, from_cells, from_text, shown

TS = fields(Stream("R", ()))[0]


def column(of: Type, nullable: bool = True) -> Field:
    return fields(Stream("R", (Column("c", of, nullable),)))[1]


def cell(text: str, of: Field) -> Any:
    """Returns the value of one cell, or the reason why it has none; both paths must agree."""
    chunk = pa.array([text])
    faults = BadCells()
    slow = tables._slow([text], of, 0, faults)
    fast = tables._fast(chunk, of)
    assert fast is None or (fast.equals(slow) and not faults.total)
    both = BadCells()
    assert from_text(pa.chunked_array([chunk]), of, both).chunk(0).equals(slow)
    assert both == faults
    return faults.listed[0][1] if faults.total else slow[0].as_py()


GOOD = [
    (SMALLINT, "-32768", -32768),
    (SMALLINT, "32767", 32767),
    (INT, "-2147483648", -(2**31)),
    (INT, "2147483647", 2**31 - 1),
    (BIGINT, "-9223372036854775808", -(2**63)),
    (BIGINT, "9223372036854775807", 2**63 - 1),
    (INT, "007", 7),
    (INT, "-0", 0),
    (INT, "+5", 5),
    (INT, "\t 5 ", 5),
    (INT, "", None),
    (INT, "  ", None),
    (INT, "0" * 5000 + "1", 1),
    (DOUBLE, "1.5", 1.5),
    (DOUBLE, ".5", 0.5),
    (DOUBLE, "5.", 5.0),
    (DOUBLE, "-1e-3", -0.001),
    (DOUBLE, "1E+300", 1e300),
    (DOUBLE, "1e-400", 0.0),
    (DOUBLE, "inf", float("inf")),
    (DOUBLE, "-Infinity", float("-inf")),
    (DOUBLE, "NaN", None),
    (DOUBLE, "-nan", None),
    (DOUBLE, " 2 ", 2.0),
    (REAL, "0.5", 0.5),
    (REAL, "3.4028235e38", 3.4028234663852886e38),
    (REAL, "3.4028235677973366e38", 3.4028234663852886e38),  # via a double it is too large
    (REAL, "-INF", float("-inf")),
    (Type(Kind.CHAR, 2), "ab", "ab"),
    (Type(Kind.VARCHAR, 2), "", ""),
    (Type(Kind.VARCHAR, 2), "é€", "é€"),
    (VARCHAR, " a ", " a "),
    (DATE, "2024-02-29", dt.date(2024, 2, 29)),
    (DATE, "0001-01-01", dt.date(1, 1, 1)),
    (DATE, "9999-12-31", dt.date(9999, 12, 31)),
    (DATE, " 1970-01-01", dt.date(1970, 1, 1)),
    (TIME, "00:00", dt.time(0, 0)),
    (TIME, "23:59:59.999", dt.time(23, 59, 59, 999_000)),
    (TIME, "12:34:56.7", dt.time(12, 34, 56, 700_000)),
    (TIME, "12:34:56.7899", dt.time(12, 34, 56, 789_000)),
    (TIMESTAMP, "2024-01-02", dt.datetime(2024, 1, 2)),
    (TIMESTAMP, "2024-01-02 03:04", dt.datetime(2024, 1, 2, 3, 4)),
    (TIMESTAMP, "2024-01-02T03:04:05.000006", dt.datetime(2024, 1, 2, 3, 4, 5, 6)),
    (TIMESTAMP, "1969-12-31T23:59:59.9999999", dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
    (TIMESTAMP, "2024-01-02T03:04:05Z", dt.datetime(2024, 1, 2, 3, 4, 5)),
    (TIMESTAMP, "2024-01-02t03:04:05z", dt.datetime(2024, 1, 2, 3, 4, 5)),
    (TIMESTAMP, "2024-01-02 03:04:05+02:00", dt.datetime(2024, 1, 2, 1, 4, 5)),
    (TIMESTAMP, "2024-01-02 03:04:05.25-0530", dt.datetime(2024, 1, 2, 8, 34, 5, 250_000)),
    (TIMESTAMP, "2024-01-02 03:04:05+02", dt.datetime(2024, 1, 2, 1, 4, 5)),
    (decimal(38, 0), "9" * 38, Decimal("9" * 38)),
    (decimal(9, 2), "0e99999999999999999999", Decimal("0.00")),
    (decimal(9, 2), "-0.0e-99999999999999999999", Decimal("0.00")),
    (decimal(9, 2), "1" + "0" * 30 + "e-" + "0" * 20 + "30", Decimal("1.00")),
    (decimal(38, 19), "9" * 19 + "." + "9" * 19, Decimal("9" * 19 + "." + "9" * 19)),
    (decimal(38, 38), "-0." + "9" * 38, Decimal("-0." + "9" * 38)),
    (BOOLEAN, "TRUE", True),
    (BOOLEAN, "t", True),
    (BOOLEAN, "1", True),
    (BOOLEAN, "False", False),
    (BOOLEAN, "F", False),
    (BOOLEAN, "0", False),
    (BOOLEAN, " true", True),
    (BOOLEAN, "", None),
]


@pytest.mark.parametrize(("of", "text", "value"), GOOD)
def test_a_good_cell(of: Type, text: str, value: object) -> None:
    assert cell(text, column(of)) == value


BAD = [
    (SMALLINT, "32768", "'32768' is out of range, smallint is -32768 to 32767"),
    (INT, "-2147483649", "'-2147483649' is out of range, int is -2147483648 to 2147483647"),
    (
        BIGINT,
        "9223372036854775808",
        "'9223372036854775808' is out of range, "
        "bigint is -9223372036854775808 to 9223372036854775807",
    ),
    (
        SMALLINT,
        "9" * 5000,
        "'" + "9" * 57 + "'… is out of range, smallint is -32768 to 32767",
    ),
    (INT, "abc", "'abc' is not an int"),
    (SMALLINT, "1.0", "'1.0' is not a smallint"),
    (BIGINT, "0x1F", "'0x1F' is not a bigint"),
    (INT, "1_000", "'1_000' is not an int"),
    (INT, "1\n", "'1\\n' is not an int"),
    (INT, "٣", "'٣' is not an int"),
    (DOUBLE, "1,5", "'1,5' is not a double precision number"),
    (DOUBLE, "nan(1)", "'nan(1)' is not a double precision number"),
    (DOUBLE, "1e400", "'1e400' is too large for double precision"),
    (REAL, "-1e39", "'-1e39' is too large for real"),
    (REAL, "3.4028235677973367e38", "'3.4028235677973367e38' is too large for real"),
    (REAL, "0x1p3", "'0x1p3' is not a real number"),
    (Type(Kind.VARCHAR, 4), "north", "'north' has 5 characters, varchar(4) holds 4"),
    (Type(Kind.CHAR, 1), "ab", "'ab' has 2 characters, char(1) holds 1"),
    (DATE, "2023-02-29", "'2023-02-29' is not a date (YYYY-MM-DD): no such day"),
    (DATE, "2023-2-9", "'2023-2-9' is not a date (YYYY-MM-DD)"),
    (DATE, "2023-02-09 00:00", "'2023-02-09 00:00' is not a date (YYYY-MM-DD)"),
    (TIME, "24:00:00", "'24:00:00' is not a time (HH:MM:SS)"),
    (TIME, "12:60", "'12:60' is not a time (HH:MM:SS)"),
    (TIMESTAMP, "2024-01-02 10", "'2024-01-02 10' is not a timestamp (YYYY-MM-DD HH:MM:SS)"),
    (
        TIMESTAMP,
        "2024-13-02 10:00",
        "'2024-13-02 10:00' is not a timestamp (YYYY-MM-DD HH:MM:SS): no such day",
    ),
    (
        TIMESTAMP,
        "2024-01-02 10:00+24:00",
        "'2024-01-02 10:00+24:00' is not a timestamp (YYYY-MM-DD HH:MM:SS)",
    ),
    (TIMESTAMP, "1700000000", "'1700000000' is not a timestamp (YYYY-MM-DD HH:MM:SS)"),
    (DATE, "0000-02-29", "'0000-02-29' is out of range, a date is 0001-01-01 to 9999-12-31"),
    (
        TIMESTAMP,
        "0001-01-01T00:00+01:00",
        "'0001-01-01T00:00+01:00' is out of range, a timestamp is in the years 1 to 9999",
    ),
    (
        TIMESTAMP,
        "9999-12-31t23:59-00:01",
        "'9999-12-31t23:59-00:01' is out of range, a timestamp is in the years 1 to 9999",
    ),
    (
        decimal(38, 0),
        "1e99999999999999999999",
        "'1e99999999999999999999' is too large for decimal(38,0)",
    ),
    (decimal(9, 2), "-1.5E+99999999999", "'-1.5E+99999999999' is too large for decimal(9,2)"),
    (
        decimal(9, 2),
        "1e-99999999999999999999",
        "'1e-99999999999999999999' has more digits after the point than decimal(9,2), which has 2",
    ),
    *(
        (decimal(38, 0), "9" * digits, f"'{'9' * digits}' is too large for decimal(38,0)")
        for digits in (39, 45, 57)
    ),
    (BOOLEAN, "yes", "'yes' is not a boolean (true or false)"),
    (BOOLEAN, "2", "'2' is not a boolean (true or false)"),
]


@pytest.mark.parametrize(("of", "text", "reason"), BAD)
def test_a_bad_cell(of: Type, text: str, reason: str) -> None:
    assert cell(text, column(of)) == reason


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-5", -5),
        ("9223372036854775807", 2**63 - 1),
        ("1970-01-01 00:00:01", 1000),
        ("1970-01-01T01:00:00.0019+01:00", 1),
        ("1969-12-31T23:59:59.9985", -2),  # rounds down, not towards 1970
        ("1969-12-31T23:59:59.9999999Z", -1),
        ("0000-02-29", -62162121600000),
        ("", "'' reads as NULL, every tuple needs a time"),
        ("noon", "'noon' is not a time (integer milliseconds or an ISO timestamp)"),
        ("1.5", "'1.5' is not a time (integer milliseconds or an ISO timestamp)"),
        (
            "9223372036854775808",
            "'9223372036854775808' is out of range, "
            "a time is -9223372036854775808 to 9223372036854775807 milliseconds",
        ),
    ],
)
def test_a_time(text: str, value: object) -> None:
    assert cell(text, TS) == value


def test_times_of_both_kinds_in_one_column() -> None:
    faults = BadCells()
    text = pa.chunked_array([["5", "1970-01-01 00:00:00.006"]])
    assert from_text(text, TS, faults).to_pylist() == [5, 6]
    assert not faults.total


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "NULL, the column is NOT NULL"),
        ("nan", "'nan' reads as NULL, the column is NOT NULL"),
        (" ", "' ' reads as NULL, the column is NOT NULL"),
    ],
)
def test_not_null(text: str | None, reason: str) -> None:
    faults = BadCells()
    of = column(DOUBLE, nullable=False)
    assert from_text(pa.chunked_array([["1", text]], pa.string()), of, faults).null_count == 1
    assert faults.listed == [(1, reason)]


def test_rows_are_counted_across_chunks() -> None:
    faults = BadCells()
    text = pa.chunked_array([["1", "2"], ["x"], ["3", "y"]])
    assert from_text(text, column(INT), faults).to_pylist() == [1, 2, None, 3, None]
    assert [row for row, _ in faults.listed] == [2, 4]


def test_only_the_first_faults_are_kept() -> None:
    faults = BadCells()
    from_text(pa.chunked_array([["x"] * 50]), column(INT), faults)
    assert [row for row, _ in faults.listed] == list(range(20))
    assert faults.total == 50


def test_a_cell_that_is_no_text() -> None:
    faults = BadCells()
    cells = ["1", Wrong("an odd thing"), None]
    assert from_cells(cells, column(INT, nullable=False), 10, faults).to_pylist() == [1, None, None]
    assert faults.listed == [(11, "an odd thing"), (12, "NULL, the column is NOT NULL")]


def test_both_paths_agree_on_random_cells() -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    samples = [text for _, text, _ in [*GOOD, *BAD] if len(text) < 100]
    kinds = {of for of, _, _ in GOOD}
    for _ in range(4000):
        text = list(rng.choice(samples))
        for _ in range(rng.choice((0, 0, 1, 2))):
            at = rng.randrange(len(text) + 1)
            text[at : at + rng.randrange(2)] = rng.choice("0123459+-.:eETtZz infNaxX é")
        for of in (TS, column(rng.choice(sorted(kinds, key=str)))):
            cell("".join(text), of)


def typed(values: pa.Array, of: Field) -> Any:
    faults = BadCells()
    found = from_column(pa.chunked_array([values]), of, faults)
    if found is None:
        return None
    assert found.type == arrow_type(of.type)
    return faults.listed or found.to_pylist()


DAY = dt.datetime(2024, 1, 2, 3, 4, 5, 678_901)

TYPED = [
    (SMALLINT, pa.array([-32768, 32767, None]), [-32768, 32767, None]),
    (
        TIMESTAMP,
        pa.array([-62135596801, -62135596800], pa.timestamp("s")),
        [
            (
                0,
                "'0000-12-31 23:59:59.000000' is out of range, a timestamp is in the years 1 to 9999",
            )
        ],
    ),
    (
        DATE,
        pa.array([2932896, 2932897], pa.int32()).cast(pa.date32()),
        [(1, "'10000-01-01' is out of range, a date is 0001-01-01 to 9999-12-31")],
    ),
    (SMALLINT, pa.array([1, 32768]), [(1, "'32768' is out of range, smallint is -32768 to 32767")]),
    (INT, pa.array([7], pa.uint8()), [7]),
    (INT, pa.array([7.0]), None),
    (INT, pa.array(["7"]), None),
    (INT, pa.nulls(2), [None, None]),
    (
        BIGINT,
        pa.array([2**63], pa.uint64()),
        [
            (
                0,
                "'9223372036854775808' is out of range, "
                "bigint is -9223372036854775808 to 9223372036854775807",
            )
        ],
    ),
    (REAL, pa.array([0.5, float("nan"), None, float("inf")]), [0.5, None, None, float("inf")]),
    (REAL, pa.array([0.1]), [pa.scalar(0.1, pa.float32()).as_py()]),
    (REAL, pa.array([1.0, 1e39]), [(1, "'1e+39' is too large for real")]),
    (DOUBLE, pa.array([0.5], pa.float16()), [0.5]),
    (DOUBLE, pa.array([2**53 + 1]), [float(2**53)]),
    (DOUBLE, pa.array([None, 1]).cast(pa.decimal128(25, 2)), [None, 1.0]),
    (DOUBLE, pa.array([Decimal("610.30"), None]), [610.3, None]),
    (DOUBLE, pa.array([Decimal("610.30")]).dictionary_encode(), [610.3]),
    (REAL, pa.array([Decimal("0.1")], pa.decimal32(9, 4)), [pa.scalar(0.1, pa.float32()).as_py()]),
    (DOUBLE, pa.array(["1"]), None),
    (VARCHAR, pa.array(["a", "", None], pa.large_string()), ["a", "", None]),
    (VARCHAR, pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
    (VARCHAR, pa.array(["a"], pa.string_view()), ["a"]),
    (VARCHAR, pa.array([b"a"]), None),
    (
        Type(Kind.VARCHAR, 2),
        pa.array(["ab", None, "abc"]),
        [(2, "'abc' has 3 characters, varchar(2) holds 2")],
    ),
    (BOOLEAN, pa.array([True, None, False]), [True, None, False]),
    (BOOLEAN, pa.array([1]), None),
    (DATE, pa.array([DAY.date()]), [DAY.date()]),
    (DATE, pa.array([DAY.date()], pa.date64()), [DAY.date()]),
    (DATE, pa.array([DAY]), None),
    (TIME, pa.array([DAY.time()], pa.time64("ns")), [dt.time(3, 4, 5, 678_000)]),
    (TIME, pa.array([1], pa.time32("s")), [dt.time(0, 0, 1)]),
    (TIMESTAMP, pa.array([DAY], pa.timestamp("us", "Asia/Tokyo")), [DAY]),
    (
        TIMESTAMP,
        pa.array([-1], pa.timestamp("ns")),
        [dt.datetime(1969, 12, 31, 23, 59, 59, 999999)],
    ),
    (TIMESTAMP, pa.array([1], pa.timestamp("s")), [dt.datetime(1970, 1, 1, 0, 0, 1)]),
    (TIMESTAMP, pa.array([1]), None),
    (decimal(20, 0), pa.array([2**64 - 1, None], pa.uint64()), [Decimal(2**64 - 1), None]),
    (decimal(38, 0), pa.array([-(2**63)]), [Decimal(-(2**63))]),
    (decimal(9, 2), pa.array([9_999_999]), [Decimal("9999999.00")]),
    (decimal(9, 2), pa.array([10**7]), [(0, "'10000000' is out of range for a decimal(9,2)")]),
    (
        INTERVAL,
        pa.array([-1, 1_999, None, 0], pa.duration("us")),
        [dt.timedelta(milliseconds=-1), dt.timedelta(milliseconds=1), None, dt.timedelta()],
    ),
    (INTERVAL, pa.array([-1], pa.duration("ns")), [dt.timedelta(milliseconds=-1)]),
    (INTERVAL, pa.array([90], pa.duration("s")), [dt.timedelta(seconds=90)]),
    *(
        (
            INTERVAL,
            pa.array([long], pa.duration("s")),
            [(0, f"'{long}' is out of range for an interval (1 hour 30 min, or milliseconds)")],
        )
        for long in (2**61, 2**61 + 1, -(2**62))
    ),
]


@pytest.mark.parametrize(("of", "values", "expected"), TYPED)
def test_a_typed_column(of: Type, values: pa.Array, expected: object) -> None:
    assert typed(values, column(of)) == expected


@pytest.mark.parametrize("of", [DOUBLE, REAL])
def test_decimals_are_rounded_as_texts_are(of: Type) -> None:
    chance = random.Random(5)
    for places in range(20):
        texts = [f"{chance.randrange(10**18)}e-{places}" for _ in range(200)]
        numbers = pa.array([Decimal(text) for text in texts], pa.decimal128(38, places))
        exact = from_cells(list(map(str, numbers.to_pylist())), column(of), 0, BadCells())
        assert typed(numbers, column(of)) == exact.to_pylist()


def test_integers_and_texts_are_decimals_of_every_precision() -> None:
    """No digit more than fits is taken for another number."""
    chance = random.Random(6)
    for _ in range(3_000):
        digits = chance.randint(1, 38)
        of = decimal(digits, chance.randint(0, digits))
        text = str(chance.randrange(10 ** chance.randint(1, 60)))
        fits = len(text.lstrip("0")) <= digits - (of.scale or 0)
        want = Decimal(text) if fits else f"{shown(text)} is too large for {of}"
        assert cell(text, column(of)) == want
        number = int(text)
        if number < 2**64:
            found = typed(pa.array([number], pa.uint64()), column(of))
            assert found == [want] if fits else isinstance(found[0], tuple)


def test_a_typed_time() -> None:
    assert typed(pa.array([-1, 0], pa.timestamp("us")), TS) == [-1, 0]
    assert typed(pa.array([1], pa.timestamp("s", "UTC")), TS) == [1000]
    assert typed(pa.array([5], pa.int32()), TS) == [5]
    assert typed(pa.array([5.0]), TS) is None
    assert typed(pa.array([5, None]), TS) == [(1, "NULL, every tuple needs a time")]
    ((row, reason),) = typed(pa.array([0, 2**62], pa.timestamp("s")), TS)
    assert row == 1
    assert reason.endswith("is out of range for " + TS.expected)


def test_typed_not_null() -> None:
    of = column(DOUBLE, nullable=False)
    assert typed(pa.array([1.0, None, float("nan")]), of) == [
        (1, "NULL, the column is NOT NULL"),
        (2, "'nan' reads as NULL, the column is NOT NULL"),
    ]


def test_typed_text_that_is_not_utf8() -> None:
    broken = pa.Array.from_buffers(pa.string(), 2, pa.array([b"ok", b"\xff\xfe"]).buffers())
    assert typed(broken, column(VARCHAR)) == [(1, "not UTF-8 text")]


def test_fields_leave_a_name_to_the_time() -> None:
    def names(*columns: str) -> tuple[str, ...]:
        return fields(Stream("R", tuple(Column(name, INT) for name in columns)))[0].names

    assert names("a") == ("timestamp", "ts")
    assert names("TS") == ("timestamp",)
    assert names("timestamp") == ("ts",)
    assert names("ts", "TimeStamp") == ()
