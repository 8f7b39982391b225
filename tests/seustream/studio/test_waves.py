"""Signals: values by cycle, beginning at the start."""

from __future__ import annotations

from seustream.studio.waves import _rank, _within


def test_values_are_by_the_cycle_from_which_they_hold() -> None:
    changes = [(0, 0), (9, 1), (10, 255), (21, 0), (40, 1)]
    assert _within(changes, 0, 15) == [(0, "0"), (5, "ff"), (11, "0")]
    assert _within(changes, 7, 15) == [(7, "ff"), (11, "0")]
    assert _within(changes, 12, 15) == [(12, "0")]
    assert _within([], 0, 9) == []


def test_a_tuples_way_comes_first() -> None:
    names = ["area0.window.x", "zebra", "results__valid", "raw__valid", "area0.pairs__valid"]
    assert sorted(names, key=_rank) == [
        "raw__valid",
        "results__valid",
        "zebra",
        "area0.pairs__valid",
        "area0.window.x",
    ]
