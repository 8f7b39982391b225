"""Tests random cases: evenly drawn, and as small as can be where one fails."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.chances import SIZE, Chance, random_cases


def test_a_case_that_fails_is_made_small() -> None:
    failed = list[list[int]]()

    @random_cases(100)
    def short_of_three_large_ones(chance: random.Random) -> None:
        found = [chance.randint(0, 9)]
        while chance.random() < 0.9:
            found.append(chance.randint(0, 9))
        if sum(value > 6 for value in found) >= 3:
            failed.append(found)
            raise AssertionError

    with pytest.raises(AssertionError):
        short_of_three_large_ones()
    assert [value for value in failed[-1] if value] == [7, 7, 7], "the last tried is the smallest"
    assert sum(failed[0]) > 21


def test_draws_are_even_and_go_on_beyond_the_bytes() -> None:
    chance = Chance(random.Random(5).randbytes(SIZE))
    found = Counter(chance.randrange(6) for _ in range(6_000))
    assert all(850 < found[value] < 1_150 for value in range(6))
    assert 0.45 < sum(chance.random() for _ in range(2_000)) / 2_000 < 0.55
    assert sorted(chance.sample(range(50), 50)) == list(range(50))


def test_zeros_are_the_first_choice_and_end_loops() -> None:
    chance = Chance(bytes(SIZE))
    assert chance.choice("abc") == "a"
    assert chance.randint(3, 9) == 3
    assert 0.99 < chance.random() < 1


def test_the_same_bytes_give_the_same_case() -> None:
    first = Chance(b"seven".ljust(SIZE, bytes(1)))
    again = eval(repr(first))
    draws = range(3_000)
    assert [first.getrandbits(20) for _ in draws] == [again.getrandbits(20) for _ in draws]
