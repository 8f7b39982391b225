"""Window buffer: what it keeps, what leaves and how (P3, P6). Where nothing flows that is proved; what
flows is followed for so many cycles."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.formal.harness import Case, check, proof
from tests.formal.window import WindowKeepsWhatItMust, deeper, flowing, with_fault


def faulty(old: str, new: str) -> object:
    return with_fault(WindowKeepsWhatItMust, old, new)


FLOWS = flowing(WindowKeepsWhatItMust, 8, 5)
"""With the margin that the sequencer of a build needs."""
FLOWS_SLOWLY, FLOWS_BARELY = (flowing(WindowKeepsWhatItMust, depth, 1) for depth in (4, 2))


def flows_faulty(old: str, new: str, specification: type = FLOWS_SLOWLY) -> object:
    return with_fault(specification, old, new)


@pytest.mark.parametrize(
    "case",
    [
        proof("window", WindowKeepsWhatItMust, "prove", 6),
        proof("window-of-4", deeper(WindowKeepsWhatItMust, 4, 2), "prove", 6),
        proof("window", WindowKeepsWhatItMust, "meet", 30),
        proof("window-flows", FLOWS, "search", 10, campaign=False),
        proof("window-flows", FLOWS, "search", 17),
        proof("window-flows", FLOWS, "meet", 20),
        proof("window-flows-slowly", FLOWS_SLOWLY, "search", 18),
        proof(
            "judged-by-one-before",
            flows_faulty(
                "with m.If(self.arrivals.check):",
                "with m.If(self.arrivals.check & ~self.arrivals.flow):",
                FLOWS,
            ),
            "search",
            16,
            "FAIL",
            campaign=False,
        ),
        proof(
            "calm-though-old",
            flows_faulty("young & self._spare", "self._spare"),
            "search",
            16,
            "FAIL",
        ),
        proof(
            "calm-though-full",
            flows_faulty("young & self._spare", "young", FLOWS_BARELY),
            "search",
            16,
            "FAIL",
        ),
        proof(
            "waits-for-what-flowed",
            flows_faulty("settles & wanted & ~self.arrivals.flow", "settles & wanted"),
            "search",
            16,
            "FAIL",
        ),
        proof(
            "never-uncountable",
            faulty("found_half[i].eq(age[-1] | rank[-1])", "found_half[i].eq(0)"),
            "search",
            16,
            "FAIL",
            campaign=False,
        ),
        proof(
            "makes-room-for-what-flowed",
            flows_faulty("with m.If(self.arrivals.check & self.arrivals.flow):", "with m.If(0):"),
            "search",
            24,
            "FAIL",
        ),
        proof(
            "settles-early",
            faulty("~found_dead & ~found_half", "~found_dead"),
            "search",
            30,
            "FAIL",
        ),
        proof(
            "rank-forgotten",
            faulty("too_old & (rank[-1] | ~in_rank)", "too_old"),
            "search",
            18,
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
            faulty("(at & sure & found[name])", "(at & found[name])"),
            "search",
            17,
            "FAIL",
        ),
        proof(
            "no-room",
            faulty(
                "room_now.eq(~wanted | (self._room & (~full | dead[0])))",
                "room_now.eq(1)",
            ),
            "search",
            24,
            "FAIL",
        ),
        proof(
            "judged-before",
            faulty("(goes == by) & inside", "(by == 0) & inside"),
            "search",
            24,
            "FAIL",
        ),
        proof(
            "still-full",
            faulty("& (leave == 0)", "& (leave != 3)"),
            "search",
            24,
            "FAIL",
        ),
        # What was found by the raw tuple after the one that is checked, and by the one before it.
        proof(
            "judged-by-one-after",
            faulty("(fresh & judging) | self.clear", "self.clear"),
            "search",
            24,
            "FAIL",
        ),
        proof(
            "stays-for-one-before",
            faulty("by_checked[1] & ~judging", "by_checked[1] & judging"),
            "search",
            24,
            "FAIL",
        ),
        proof(
            "none-though-some-left",
            faulty(
                "unchanged = Signal(_PLACES), (gone_now == 0) &", "unchanged = Signal(_PLACES),"
            ),
            "search",
            24,
            "FAIL",
        ),
        proof(
            "room-for-one-twice",
            faulty("held != most", "held != depth"),
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
