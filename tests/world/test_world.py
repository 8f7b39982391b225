"""Tests jobs in a simulated world: a few hundred seeds, some planted faults, and the world
itself."""

from __future__ import annotations

import pytest

from tests.world.faults import KINDS
from tests.world.planted import PLANTED, planted
from tests.world.world import Violation, play, shrink

CHUNK = 10


@pytest.mark.parametrize("first", range(0, 300, CHUNK))
def test_nothing_is_lost_or_repeated_whatever_goes_wrong(first: int) -> None:
    for seed in range(first, first + CHUNK):
        try:
            play(seed)
        except Violation as found:
            pytest.fail(f"{shrink(found)}\n{found.story}")


def test_a_seed_is_the_same_again() -> None:
    stories = [play(5).simulation.story for _ in range(2)]
    assert stories[0] == stories[1]
    assert len(stories[0]) > 10


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("an epoch counts each time it comes", ""),
        ("operators of a snapshot are not restored", "results"),
        ("records are not synced", "acknowledged"),
    ],
)
def test_a_planted_fault_is_found_and_its_story_shrunk(name: str, what: str) -> None:
    with planted(name):
        found = first_violation(200)
        assert found is not None
        assert what in found.what
        least = shrink(found)
    assert least.rows <= found.rows
    assert set(least.without) >= set(found.without)
    assert " s  " in least.story


def first_violation(seeds: int) -> Violation | None:
    for seed in range(seeds):
        try:
            play(seed)
        except Violation as found:
            return found
    return None


@pytest.mark.parametrize("name", PLANTED)
def test_a_fault_can_be_planted_and_is_gone_afterwards(name: str) -> None:
    with planted(name):
        pass


def test_the_kinds_of_faults() -> None:
    assert len(KINDS) >= 14
    assert len(PLANTED) >= 40
