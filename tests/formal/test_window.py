"""Window buffer: what it keeps, what leaves and how (P3, P6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.formal.harness import Case, check, proof
from tests.formal.window import WindowKeepsWhatItMust, deeper, with_fault


def faulty(old: str, new: str) -> object:
    return with_fault(WindowKeepsWhatItMust, old, new)


@pytest.mark.parametrize(
    "case",
    [
        proof("window", WindowKeepsWhatItMust, "prove", 7),
        proof("window-of-4", deeper(WindowKeepsWhatItMust, 4, 2), "prove", 7),
        proof("window", WindowKeepsWhatItMust, "meet", 30),
        proof(
            "never-uncountable",
            faulty("half = age[-1] | rank[-1]", "half = age[-1] & ~age[-1]"),
            "search",
            16,
            "FAIL",
            campaign=False,
        ),
        proof(
            "settles-early",
            faulty("& ~is_dead & ~half) | (stored == i)", "& ~is_dead) | (stored == i)"),
            "search",
            30,
            "FAIL",
        ),
        proof(
            "rank-forgotten",
            faulty("too_old & (rank[-1] | ~in_rank)", "too_old"),
            "search",
            14,
            "FAIL",
        ),
        proof(
            "age-off-by-one",
            faulty("self.ticks + 1", "self.ticks"),
            "search",
            14,
            "FAIL",
        ),
        proof(
            "second-unknown",
            faulty("dead[i].eq((known > i) & is_dead", "dead[i].eq(is_dead"),
            "search",
            17,
            "FAIL",
        ),
        proof(
            "no-room",
            faulty("room_now.eq(~wanted | (self._room & (~full | dead[0])))", "room_now.eq(1)"),
            "search",
            24,
            "FAIL",
        ),
        proof(
            "judged-before",
            faulty('ongoing("JUDGE")) & (leave == 0)', 'ongoing("JUDGE"))'),
            "search",
            24,
            "FAIL",
        ),
        proof(
            "still-full",
            faulty("self.config.capacity) & (leave == 0)", "self.config.capacity)"),
            "search",
            24,
            "FAIL",
        ),
        proof(
            "room-for-one-twice",
            faulty("Mux(self._due, self.config.depth - 1, self.config.depth)", "self.config.depth"),
            "search",
            24,
            "FAIL",
        ),
        # What is on its way from the memory in the cycle of `clear` is of before.
        proof(
            "prefetch-in-clear",
            faulty("Cat(on_its_way, ahead,", "Cat(ahead,"),
            "search",
            14,
            "FAIL",
        ),
    ],
)
def test_window(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
