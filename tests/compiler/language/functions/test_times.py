"""Functions of times: formats, and the limits of the calendar."""

from __future__ import annotations

import datetime
from typing import Any

from tests.compiler.language.folding import fault, value

MIDNIGHT = datetime.datetime(2024, 2, 29)


def test_formats_of_timestamps() -> None:
    def read(text: str, form: str) -> Any:
        return value(f"to_timestamp('{text}', '{form}')")

    assert read("29.02.2024", "dd.MM.yyyy") == MIDNIGHT
    assert read("29 Feb 24", "d MMM yy") == MIDNIGHT
    assert read("2024-02-29T12:30:05.25", "yyyy-MM-dd''T''HH:mm:ss.SS") == (
        datetime.datetime(2024, 2, 29, 12, 30, 5, 250_000)
    )
    assert read("12:05 am", "hh:mm a").hour == 0
    assert read("12:05 PM", "hh:mm a").hour == 12
    assert fault("to_timestamp('30.02.2024', 'dd.MM.yyyy')") == "no timestamp"
    assert fault("to_timestamp('2024', 'yyyy yyyy')") == "no timestamp"
    assert fault("to_timestamp('2024', 'QQ')") == "no timestamp"
    assert fault("to_timestamp('13:05 am', 'hh:mm a')") == "no timestamp"


def test_moments_end_with_the_calendar() -> None:
    assert fault("TIMESTAMP '9999-12-31' + 1 d") == "timestamp overflow"
    assert fault("TIMESTAMP '0001-01-01' - 1 ms") == "timestamp overflow"
    assert value("date_trunc('week', TIMESTAMP '0001-01-07')") == datetime.datetime(1, 1, 1)
