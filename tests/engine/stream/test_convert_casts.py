"""Casts, value by value: every pair of types the compiler allows, and the values with no
counterpart."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import math
import random
import re
from collections.abc import Callable

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.errors import CompileError
from seustream.compiler.language.faults import Faults
from seustream.engine.host.rows import leaves
from seustream.engine.stream.evaluate import evaluate
from tests.engine.host.reference import ARROW, NUMBERS
from tests.engine.stream.expressions import bound, computed, judged, one, same


class No(Exception):
    """Raised for a value with no counterpart in the target type."""


def to_integer(bits: int) -> Callable[[object], object]:
    def cast(v: object) -> object:
        if isinstance(v, str):
            if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)", v.strip()):
                raise No
            v = int(v.strip().partition(".")[0])
        assert isinstance(v, (int, float))
        if math.isinf(v) or not -(1 << bits) <= math.trunc(v) < 1 << bits:
            raise No
        return math.trunc(v)

    return cast


def to_double(v: object) -> object:
    if isinstance(v, str):
        if "_" in v or "nan" in v:
            raise No
        try:
            v = float(v)
        except ValueError:
            raise No from None
    assert isinstance(v, (int, float))
    return None if math.isnan(v) else float(v)


def to_real(v: object) -> object:
    found = to_double(v)
    with np.errstate(over="ignore"):
        return found if found is None else float(np.float32(found))  # past the largest: infinity


def to_boolean(v: object) -> object:
    if isinstance(v, str):
        if v.strip().lower() not in ("true", "false", "1", "0", "t", "yes"):
            raise No
        return v.strip().lower() in ("true", "1", "t", "yes")
    return bool(v)


def to_date(v: object) -> object:
    try:
        return datetime.datetime.fromisoformat(v).date() if isinstance(v, str) else v.date()  # type: ignore[attr-defined]
    except ValueError:
        raise No from None


def to_time(v: object) -> object:
    try:
        found = (
            v.time() if isinstance(v, datetime.datetime) else datetime.time.fromisoformat(str(v))
        )
    except ValueError:
        raise No from None
    return found.replace(microsecond=found.microsecond // 1000 * 1000)


def to_timestamp(v: object) -> object:
    if isinstance(v, datetime.date):
        return datetime.datetime.combine(v, datetime.time())
    if isinstance(v, datetime.time):
        return datetime.datetime.combine(datetime.date(1970, 1, 1), v)
    try:
        found = datetime.datetime.fromisoformat(str(v))
    except ValueError:
        raise No from None
    if found.tzinfo is not None:
        found = found.astimezone(datetime.UTC).replace(tzinfo=None)
    return found


def to_text(v: object) -> object:
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, (datetime.time, datetime.datetime)):
        text = str(v)
        return text.rstrip("0") if "." in text else text
    return str(v)


CASTS: dict[str, Callable[[object], object]] = {
    "smallint": to_integer(15),
    "int": to_integer(31),
    "bigint": to_integer(63),
    "real": to_real,
    "double precision": to_double,
    "boolean": to_boolean,
    "date": to_date,
    "time": to_time,
    "timestamp": to_timestamp,
    "varchar(40)": to_text,
}
REALS = [
    0.0,
    -0.0,
    0.5,
    1.5,
    2.5,
    -0.5,
    -2.5,
    3.7,
    40000.0,
    2.0**31,
    -(2.0**31),
    2.0**63,
    1e30,
    math.inf,
    -math.inf,
]
WORDS = ["5", "-5", "005", "", " 5", "5 ", "+", "five", "5.5", "1e3", "-0.0", "inf", "nan", "1e39", "1e400", "99999", "99999999999", "9223372036854775808"]  # fmt: skip
WORDS += ["true", "FALSE", "True", "yes", "t", "0", "1", "2006-03-01", "1969-12-31", "2006-02-30", "2006-03-01 12:30:00", "2006-03-01T12:30:00.5+01:00", "12:30:00", "12:30", "23:59:59.9999", "24:00:00", "日本"]  # fmt: skip
FROM: dict[str, list[object]] = {
    "smallint": [0, 1, -1, 32767, -32768],
    "int": [0, 1, -1, 32768, 2**31 - 1, -(2**31), 16777217],
    "bigint": [0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)],
    "real": [float(np.float32(v)) for v in REALS],
    "double precision": [*REALS, 1e300, 5e-324],
    "boolean": [True, False],
    "date": [datetime.date(2006, 3, 1), datetime.date(1970, 1, 1), datetime.date(1, 1, 1), datetime.date(9999, 12, 31)],
    "time": [datetime.time(), datetime.time(12, 30), datetime.time(1, 2, 3, 5000), datetime.time(23, 59, 59, 990_000)],
    "timestamp": [datetime.datetime(2006, 3, 1, 12, 30), datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime.datetime(1, 1, 1), datetime.datetime(2006, 3, 1, 1, 2, 3, 500_000)],
    "varchar(40)": list(WORDS),
}  # fmt: skip


def legal(of: str, to: str) -> bool:
    if of == to or "varchar(40)" in (of, to):
        return True
    if of in NUMBERS:
        return to in NUMBERS or to == "boolean"
    if of == "boolean":
        return to in NUMBERS
    return {of, to} in ({"date", "timestamp"}, {"time", "timestamp"})


PAIRS = [(of, to) for of in FROM for to in CASTS if legal(of, to)]


def test_which_casts_are_legal() -> None:
    """The pairs below are all that the compiler allows."""
    for of, to in itertools.product(FROM, CASTS):
        refused = pytest.raises(CompileError, match="cannot become")
        with contextlib.nullcontext() if legal(of, to) else refused:
            bound(f"CAST(a AS {to})", f"CREATE STREAM R (a {of});")


@pytest.mark.parametrize(("of", "to"), PAIRS)
def test_casts(of: str, to: str) -> None:
    """Checks each value's result, or that it is NULL and a fault."""
    e = bound(f"CAST(a AS {to})", f"CREATE STREAM R (a {of});")
    shape = ARROW.get(of, pa.string())
    width = {"real": np.float32, "double precision": np.float64}.get(of)
    for v in [*FROM[of], None]:
        rows = {(0, "a"): pa.array([v], shape)}
        lost = False
        try:
            want = None if v is None else v if of == to and of != "boolean" else CASTS[to](v)
        except No:
            want, lost = None, True
        faults = Faults()
        (found,) = evaluate(e, leaves(rows), 1, faults).to_pylist()
        assert [str(place) for place in faults.count] == [f"no {to} in CAST(R.a AS {to})"] * lost, v
        if width and to == "varchar(40)" and v is not None:
            assert isinstance(found, str)
            assert (width(found), found[0] == "-") == (v, np.signbit(v))
        else:
            assert found == want, v
            assert type(found) is type(want), v


@pytest.mark.parametrize("kind", ["real", "double precision"])
def test_the_text_of_a_real_reads_back_as_the_same(kind: str) -> None:
    chance = random.Random(1)
    width = np.float32 if kind == "real" else np.float64
    bits = np.frombuffer(chance.randbytes(8000), width)
    column = pa.array(bits[np.isfinite(bits)])
    text = evaluate(
        bound("CAST(a AS varchar)", f"CREATE STREAM R (a {kind});"),
        leaves({(0, "a"): column}),
        len(column),
    )
    back = evaluate(
        bound(f"CAST(a AS {kind})", "CREATE STREAM R (a varchar);"),
        leaves({(0, "a"): text}),
        len(column),
    )
    assert back.equals(column)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("CAST('hello' AS varchar(3))", "hel"),
        ("CAST('日本語' AS char(2))", "日本"),
        ("CAST(12345 AS varchar(2))", "12"),
        ("CAST(TRUE AS varchar(2))", "tr"),
        ("CAST('a' AS varchar(9))", "a"),
        ("CAST('a' AS varchar)", "a"),
        ("CAST(NULL AS int)", None),
        ("CAST(NULL AS varchar(2))", None),
        ("CAST(NULL AS date)", None),
        ("CAST(CAST('1.5' AS real) AS int)", 1),
        ("CAST(CAST('2006-03-01 23:00:00' AS timestamp) AS date)", datetime.date(2006, 3, 1)),
    ],
)
def test_casts_by_hand(text: str, want: object) -> None:
    assert one(text) == want


def test_try_cast_has_no_fault() -> None:
    rows = {(0, "t"): pa.array(["5", None, "five"])}
    for to, want in (("int", 5), ("double precision", 5.0), ("date", None), ("interval", None)):
        faults = Faults()
        found = evaluate(bound(f"TRY_CAST(t AS {to})"), leaves(rows), 3, faults)
        assert found.to_pylist() == [want, None, None]
        assert not faults.total


def test_a_cast_of_a_column_casts_every_row(duck: duckdb.DuckDBPyConnection) -> None:
    for text, sql in (
        ("CAST(i AS double precision)", "CAST(i AS DOUBLE)"),
        ("CAST(s AS bigint)", None),
        ("CAST(f AS int)", None),
        ("CAST(c AS boolean)", None),
        ("CAST(z AS date)", None),
        ("CAST(d AS timestamp)", None),
        ("CAST(d AS varchar(40))", None),
        ("CAST(m AS varchar(40))", None),
        ("CAST(z AS varchar(30))", None),
        ("CAST(CAST(m AS varchar(40)) AS time)", "m"),
        ("CAST(CAST(z AS varchar(30)) AS timestamp)", "z"),
        ("CAST(CAST(d AS varchar(40)) AS date)", "d"),
        ("CAST(i AS varchar(40)) || t", None),
    ):
        same(computed(text), judged(duck, sql or text), text)
