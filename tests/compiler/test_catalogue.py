"""Streams and their columns."""

from __future__ import annotations

import pytest

from seustream.compiler.catalogue import TIME_COLUMN, Column, Stream
from seustream.compiler.language.types import BIGINT, INT, REAL

PLAIN = Stream("R", (Column("a", INT), Column("Speed", REAL, nullable=False)))


@pytest.mark.parametrize("name", ["Speed", "speed", "SPEED"])
def test_a_column_is_found_in_any_case(name: str) -> None:
    assert PLAIN.column(name) == Column("Speed", REAL, False)


@pytest.mark.parametrize("name", ["ts", "TS", "timestamp", "TimeStamp"])
def test_every_stream_has_a_time(name: str) -> None:
    assert PLAIN.column(name) is TIME_COLUMN


def test_the_time_is_whole_milliseconds_and_always_there() -> None:
    assert Column("TimeStamp", BIGINT, nullable=False) == TIME_COLUMN


@pytest.mark.parametrize("name", ["", "b", "a ", "time", "speed_"])
def test_an_unknown_column_is_none(name: str) -> None:
    assert PLAIN.column(name) is None


def test_a_column_of_a_derived_stream_hides_the_time() -> None:
    derived = Stream("D", (Column("ts", REAL),), defined_by="SELECT ...")
    assert derived.column("TS") == Column("ts", REAL)
    assert derived.column("timestamp") is TIME_COLUMN


def test_columns_may_be_null_unless_said_otherwise() -> None:
    assert Column("a", INT).nullable
