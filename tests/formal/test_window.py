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
            faulty("(ages[i][-1] | ranks[i][-1])", "0"),
            "search",
            16,
            "FAIL",
            campaign=False,
        ),
        proof(
            "settles-early",
            faulty("last = both & ~uncountable[1]", "last = both"),
            "search",
            30,
            "FAIL",
        ),
        proof(
            "rank-forgotten",
            faulty("too_old & (ranks[i] >= self.rows) & ~forever", "too_old & ~forever"),
            "search",
            14,
            "FAIL",
        ),
        proof(
            "age-off-by-one",
            faulty("ages[i] > self.ticks", "ages[i] >= self.ticks"),
            "search",
            14,
            "FAIL",
        ),
        proof(
            "second-unknown",
            faulty("dead[0] & both & dead[1]", "dead[0] & dead[1]"),
            "search",
            17,
            "FAIL",
        ),
        proof(
            "no-room",
            faulty("~self.wanted | (self._room & spare)", "1"),
            "search",
            24,
            "FAIL",
        ),
        proof("displaced-too-soon", faulty(" & ~lately.any()", ""), "search", 24, "FAIL"),
        # A real one: a prefetch that began in the cycle of `clear` found a tuple.
        proof(
            "prefetch-in-clear",
            faulty("lacks & (left == 0) & ~self.clear", "lacks & (left == 0)"),
            "search",
            14,
            "FAIL",
        ),
    ],
)
def test_window(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
