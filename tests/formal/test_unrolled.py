"""Tests the search as a whole, on circuits whose answers are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.formal.unrolled import Circuit, Unrolled, solve


def counter(constraint: str = "") -> Circuit:
    """Returns a counter of two bits, which an input lets advance; it is bad when it is 3. Bit 0
    changes with the input; bit 1 with the input and bit 0."""
    text = "\n".join(
        [
            f"aag 12 1 2 0 7 1 {1 if constraint else 0}",
            "2",
            "4 14",
            "6 20",
            "8",
            *([constraint] if constraint else []),
            "8 6 4",
            "10 2 4",
            "12 3 5",
            "14 13 11",
            "16 10 6",
            "18 11 7",
            "20 19 17",
        ]
    )
    return Circuit.read(text)


def reached(circuit: Circuit, cycles: int, tmp_path: Path) -> bool:
    unrolled = Unrolled(circuit)
    bads = [bad for _ in range(cycles) for bad in unrolled.cycle()]
    answers = solve(unrolled.question([bads]), tmp_path, True, 60)
    assert answers is not None
    return answers[0]


@pytest.mark.parametrize(("cycles", "can"), [(1, False), (3, False), (4, True), (6, True)])
def test_a_counter_is_3_in_its_fourth_cycle(cycles: int, can: bool, tmp_path: Path) -> None:
    assert reached(counter(), cycles, tmp_path) == can


def test_what_is_assumed_holds_in_every_cycle(tmp_path: Path) -> None:
    # Never both bits at once: then it is not 3. Never bit 1 alone: then it cannot become 3 either.
    assert not reached(counter("9"), 8, tmp_path)
    assert not reached(counter("7"), 8, tmp_path)


def test_an_input_that_is_assumed_needs_no_solver() -> None:
    held = Unrolled(counter("3"))
    bads = [bad for _ in range(6) for bad in held.cycle()]
    assert bads == [0] * 6


def test_a_register_without_a_first_value_may_have_any(tmp_path: Path) -> None:
    text = "aag 1 0 1 0 0 1\n2 2 2\n2\n"
    assert reached(Circuit.read(text), 1, tmp_path)
    assert not reached(Circuit.read(text.replace("2 2 2", "2 2 0")), 3, tmp_path)


def test_from_any_state_what_was_so_is_supposed(tmp_path: Path) -> None:
    unrolled = Unrolled(counter(), anywhere=True)
    bads = [bad for _ in range(2) for bad in unrolled.cycle()]
    assert solve(unrolled.question([bads[:1], bads[1:]]), tmp_path, False, 60) == [True, True]
    # From 2 it can become 3; of a state that is supposed not to be 3, nothing more is known.
    unrolled = Unrolled(counter(), anywhere=True)
    (first,) = unrolled.cycle()
    unrolled.suppose(first ^ 1)
    assert solve(unrolled.question([unrolled.cycle()]), tmp_path, False, 60) == [True]
    stays = Unrolled(counter("7"), anywhere=True)
    for _ in range(2):
        (bad,) = stays.cycle()
        stays.suppose(bad ^ 1)
    assert solve(stays.question([[bad], stays.cycle()]), tmp_path, True, 60) == [False, False]
