"""Streams from their statements."""

from __future__ import annotations

import pytest

from seustream.compiler.catalogue import Stream
from seustream.compiler.errors import CompileError
from seustream.compiler.pipeline import compile_text


def stream(text: str) -> Stream:
    (one,) = compile_text(f"CREATE {text}").program.streams
    return one


@pytest.mark.parametrize(
    ("bound", "ms"),
    [
        ("at", 0),
        ("at - INTERVAL '5' SECOND", 5_000),
        ("at - INTERVAL '1 min 1 ms'", 60_001),
        ("at - 250 ms", 250),
        ("at - 250", 250),
    ],
)
def test_the_watermark_of_flink(bound: str, ms: int) -> None:
    found = stream(f"STREAM R (a int, at timestamp, WATERMARK FOR at AS {bound})")
    assert (found.time, found.out_of_orderness) == ("at", ms)


@pytest.mark.parametrize("bound", ["b - INTERVAL '5' SECOND", "at + 5 s", "at - b", "7"])
def test_another_watermark(bound: str) -> None:
    with pytest.raises(CompileError, match="no value of max_out_of_orderness"):
        stream(f"STREAM R (at timestamp, b int, WATERMARK FOR at AS {bound})")


def test_a_column_may_be_called_watermark() -> None:
    assert [c.name for c in stream("STREAM R (a int, watermark int)").columns] == ["a", "watermark"]


def test_a_watermark_for_the_implicit_time() -> None:
    found = stream("STREAM R (a int, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)")
    assert (found.time, found.out_of_orderness) == (None, 5_000)


def test_digits_of_a_second() -> None:
    found = stream("STREAM R (a timestamp(3), b time(0), c timestamp_ltz(9), d int8, e float8)")
    assert [str(column.type) for column in found.columns] == [
        "timestamp", "time", "timestamp", "bigint", "double precision",
    ]  # fmt: skip
