"""The checker of prose finds each habit, and lets good prose pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.prose import complaints, habits, page_habits

GOOD = '''"""Merges streams; where two rows have one time, the first stream is first."""

MOST = 3
"""The number of rows that wait."""


class Gate:
    """A gate: whether it is open is a matter of what came."""

    def push(self) -> None:
        """Returns whether a row fits."""
        text = "whoever is told"
        "What stands here is no docstring."


def untold() -> None: ...
'''


def test_good_prose_passes() -> None:
    assert list(habits(GOOD)) == []


@pytest.mark.parametrize(
    ("before", "after", "line", "what"),
    [
        ('"""Merges', '"""What merges', 1, "'What'"),
        ('"""The number', '"""How many', 4, "'How'"),
        ('"""A gate:', '"""Where a gate is:', 8, "'Where'"),
        ('"""Returns whether', '"""Whether', 11, "'Whether'"),
        ("is first.", "is told.", 1, "'told'"),
        ("a matter of", "for whoever asks", 8, "'whoever'"),
        ("a row fits", "a row fits, as it hears", 11, "'hears'"),
        ("def untold", "def told", 16, "'told'"),
        ("class Gate", "class Weather", 7, "'Weather'"),
    ],
)
def test_a_habit_is_found(before: str, after: str, line: int, what: str) -> None:
    assert before in GOOD
    (where, message), *others = habits(GOOD.replace(before, after, 1))
    assert (where, others) == (line, [])
    assert what in message


def test_a_habit_of_a_page_is_found() -> None:
    page = "# A page\n\nIt tells `told`.\n\n```\nnobody\n```\nNobody reads it.\n"
    assert [(line, what.split("'")[1]) for line, what in page_habits(page)] == [
        (3, "tells"),
        (8, "Nobody"),
    ]


def test_what_is_known_may_only_go_down(tmp_path: Path) -> None:
    (tmp_path / "hdl").mkdir()
    (tmp_path / "hdl" / "a.py").write_text('"""What it does."""\n')
    found = "hdl/a.py:1: a docstring begins with 'What': begin with a verb, or name the thing"
    assert complaints(tmp_path, {}) == [found]
    assert complaints(tmp_path, {"hdl": 1}) == []
    assert complaints(tmp_path, {"hdl": 2}) == []
