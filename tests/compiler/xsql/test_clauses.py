"""Windows of a WINDOW clause as written."""

from __future__ import annotations

import pytest

from tests.compiler.xsql.shapes import windows


@pytest.mark.parametrize(
    ("written", "window"),
    [
        ("100", ("rows", 100, None)),
        ("ROWS 3", ("rows", 3, None)),
        ("rows -1", ("rows", -1, None)),
        ("ROWS 2.5", ("rows", 2.5, None)),
        ("RANGE 100", ("range", 100, None)),
        ("RANGE 0", ("range", 0, None)),
        ("RANGE -5", ("range", -5, None)),
        ("RANGE 5 minutes", ("range", 5, "minutes")),
        ("range 1.5 s", ("range", 1.5, "s")),
        ("30 seconds", ("range", 30, "seconds")),
        ("+30 Seconds", ("range", 30, "Seconds")),
        ("2h", ("range", 2, "h")),
        ("NOW", ("now", None, None)),
        ("unbounded", ("unbounded", None, None)),
    ],
)
def test_window(written: str, window: tuple[str, int | float | None, str | None]) -> None:
    assert windows(written) == [window]


def test_one_window_for_each_stream() -> None:
    assert windows("NOW, 5, RANGE 1 d, UNBOUNDED") == [
        ("now", None, None),
        ("rows", 5, None),
        ("range", 1, "d"),
        ("unbounded", None, None),
    ]
