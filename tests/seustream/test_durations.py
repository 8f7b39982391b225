"""Tests durations: numbers and texts, of options and of arguments."""

from __future__ import annotations

import pytest

from seustream.durations import milliseconds_of, slack_of
from seustream.errors import QueryError


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("7", 7),
        ("-7", -7),
        ("5s", 5_000),
        ("1 hour 30 min", 5_400_000),
        ("5", 5),
        ("x", None),
        ("", None),
    ],
)
def test_a_duration_is_a_number_or_has_a_unit(text: str, found: int | None) -> None:
    assert milliseconds_of(text) == found


def test_slack_is_none_or_no_less_than_0() -> None:
    assert [slack_of(given) for given in (None, 0, 5, "5s", "7")] == [None, 0, 5, 5_000, 7]
    for wrong in (-1, "-1", "soon", 0.5, [5]):
        with pytest.raises(QueryError, match="is no duration") as caught:
            slack_of(wrong)  # type: ignore[arg-type]  # as users may
        assert "500ms" in (caught.value.hint or "")
