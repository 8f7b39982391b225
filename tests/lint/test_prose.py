"""Tests that the checker of prose finds each habit, and lets good prose pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.habits import HABITS, MOST_WORDS, habits_of
from tests.lint.prose import complaints, habits, helps, prose_of

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
    page = "# A page\n\nIt tells `told`.\n\n```\nnobody\n```\nNobody makes [use](told.md) of\n  the the page.\n"
    assert sorted((line, what.split("'")[1]) for line, what in habits_of(prose_of(page))) == [
        (3, "tells"),
        (8, "Nobody"),
        (9, "the the"),
    ]
    assert not list(habits_of("It is the\n\nthe page. | the | the | Wait: wait, with *that* that."))


def test_a_long_sentence_is_found() -> None:
    part = "is " + "a word " * (MOST_WORDS // 2)
    assert not list(habits_of(f"{part}. {part}; {part}: {part}\n\n{part}\n- {part}"))
    ((line, what),) = habits_of(f"A.\n\nIs {part}at 2.5 MHz.\n")
    assert (line, what) == (3, f"a sentence of {MOST_WORDS + 4} words: make two of it")


@pytest.mark.parametrize(
    "prose",
    ["in order\nto go", "is able to go", "The files etc. are", "leverages it", "Please note that",
     "It allows to go", "a so-called row", "more simple", "should of gone", "It works!", "and/or"],
)  # fmt: skip
def test_habits_of_many_kinds_are_found(prose: str) -> None:
    assert list(habits_of(prose)), prose


def test_there_are_sixty_habits_and_help_has_none() -> None:
    assert len({pattern.pattern for pattern, _ in HABITS}) == 60
    assert all(instead for _, instead in HABITS)
    names = [name for name, _ in helps()]
    assert {"seustream", "seustream run", "seustream query list"} <= {*names}


def test_what_is_known_may_only_go_down(tmp_path: Path) -> None:
    (tmp_path / "hdl").mkdir()
    (tmp_path / "hdl" / "a.py").write_text('"""What it does."""\n')
    found = "hdl/a.py:1: a docstring begins with 'What': begin with a verb, or name the thing"
    assert complaints(tmp_path, {}) == [found]
    assert complaints(tmp_path, {"hdl": 1}) == []
    assert complaints(tmp_path, {"hdl": 2}) == []
