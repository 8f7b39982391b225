"""Combinations that stay for a while, beside lists from which those that leave are removed."""

from __future__ import annotations

import random
from unittest.mock import patch

import numpy as np
import pytest

from seustream.compiler.logical.windows import PartitionWindow
from seustream.engine.relational.combinations import NOTHING, Combinations, Frontier
from seustream.engine.relational.pool import Ordered, Pool
from seustream.hdl.device import WindowKind
from tests.engine.relational.test_combinations import WINDOWS, frame_of


def numbers(chance: random.Random, since: int) -> list[int]:
    """Draws some numbers that mostly rise."""
    base = since if chance.random() < 0.7 else 0
    return [base + chance.randint(0, 20) for _ in range(chance.randint(0, 6))]


@pytest.mark.parametrize("seed", range(30))
def test_ordered_gives_what_is_below(seed: int) -> None:
    chance = random.Random(seed)
    of, held, place = Ordered(), dict[int, int](), 0
    for _ in range(80):
        new = numbers(chance, place)
        of.add(np.array(new, np.int64), np.arange(place, place + len(new)))
        held |= {place + at: number for at, number in enumerate(new)}
        place += len(new)
        below = chance.randint(0, place + 10)
        wanted = {at for at, number in held.items() if number < below}
        assert sorted(of.take(below).tolist()) == sorted(wanted)
        held = {at: number for at, number in held.items() if at not in wanted}


@pytest.mark.parametrize("seed", range(30))
def test_ordered_gives_the_least_that_waits(seed: int) -> None:
    chance = random.Random(seed)
    of, waiting, place = Ordered(), dict[int, int](), 0
    here, matched = np.ones(800, np.bool_), np.zeros(800, np.bool_)
    for _ in range(80):
        new = numbers(chance, place)
        of.add(np.array(new, np.int64), np.arange(place, place + len(new)))
        waiting |= {place + at: number for at, number in enumerate(new)}
        place += len(new)
        for at in chance.sample([*waiting], min(len(waiting), chance.randint(0, 5))):
            del waiting[at]
            if chance.random() < 0.5:
                here[at] = False
            else:
                matched[at] = True
        least = of.least(here, matched)
        if waiting:
            assert least is not None
            assert waiting[least] == min(waiting.values())
        else:
            assert least is None


@pytest.mark.parametrize("seed", range(60))
def test_a_pool_beside_a_list(seed: int) -> None:
    """All rows are in the stores, and the frontier passes over them; rows are pushed out of partitions a
    while before. Combinations come once their last row has, and leave when they have ended, or at random."""
    chance = random.Random(seed)
    time, order = 0, list[tuple[int, int]]()
    for _ in range(60):
        time += chance.choice([0, 0, 1, 2])
        order.append((chance.randrange(3), time))
    partitioned = [PartitionWindow(WindowKind.UNBOUNDED, n, ("a",)) for n in (1, 2)]
    frame = frame_of(
        order, [chance.choice([*WINDOWS, *partitioned, *partitioned]) for _ in range(3)]
    )
    pushed = 0
    rows = [np.flatnonzero([of == source for of, _ in order]) for source in range(3)]
    frontiers = [Frontier(at, order[at][1]) for at in sorted(chance.sample(range(60), 12))]
    held = Pool(frame, range(3), waits=True)
    numbers_of, count = np.empty(0, np.int64), 0
    by_number = dict[int, list[int]]()
    with patch("seustream.engine.relational.slots.FEW", 3):
        for frontier in frontiers:
            before, pushed = pushed, max(pushed, min(60, frontier.place + 1 + chance.randint(0, 9)))
            for source, partition in frame.partitions.items():
                some = (rows[source] >= before) & (rows[source] < pushed)
                partition.add(np.flatnonzero(some))
            new = []
            for _ in range(chance.randint(0, 8)):
                chosen = [
                    int(chance.choice(range(int(n)))) if n and chance.random() < 0.7 else NOTHING
                    for n in (np.searchsorted(of, frontier.place) for of in rows)
                ]
                if any(one != NOTHING for one in chosen):
                    new.append(chosen)
            if new:
                moments = np.arange(len(new))
                unmatched = np.zeros(len(new), np.bool_)
                places = held.add(Combinations(np.array(new), moments, moments, unmatched))
                assert places.tolist() == [*range(len(held) - len(new), len(held))]
                numbers_of = np.concatenate((numbers_of, count + np.arange(len(new))))
                by_number |= {count + at: of for at, of in enumerate(new)}
                count += len(new)
            here = np.flatnonzero(held.here)
            assert held.view.rows[here].tolist() == [
                by_number[n] for n in numbers_of[here].tolist()
            ]
            lives, exact = held.lives(here), frame.lives(held.view.rows[here])
            for name in ("place", "time", "gone", "gone_time", "last"):
                assert getattr(lives, name).tolist() == getattr(exact, name).tolist()
            over = held.ended(frontier)
            assert sorted(over.tolist()) == here[frontier.ended(exact)].tolist()
            held.leave(over)
            here = np.flatnonzero(held.here)
            out = here[[chance.random() < 0.2 for _ in here]]
            held.leave(out)
            for place in np.flatnonzero(held.here).tolist():
                if chance.random() < 0.3:
                    held.view.matched[place] = True
            waiting = np.flatnonzero(held.here & ~held.view.matched)
            begin = frame.lives(held.view.rows[waiting])
            first = held.pending()
            if len(waiting):
                assert first == Frontier(int(begin.place.min()), int(begin.time.min()))
            else:
                assert first is None
            if held.is_sparse:
                numbers_of = numbers_of[held.compact()]
                assert held.left == 0


def test_those_before_a_place_are_given_once() -> None:
    order = [(0, at) for at in range(100)]
    frame = frame_of(order, [WINDOWS[0]] * 3)
    held = Pool(frame, range(3), waits=True)
    rows = np.full((100, 3), NOTHING)
    rows[:, 0] = np.random.default_rng(1).permutation(100)
    moments = np.zeros(100, np.int64)
    held.add(Combinations(rows, moments, moments, np.zeros(100, np.bool_)))
    for place in (0, 30, 30, 77, 100):
        found = held.before(place)
        held.leave(found)
        left = held.view.rows[np.flatnonzero(held.here), 0]
        assert sorted(left.tolist()) == [*range(place, 100)]
        assert (np.diff(found) > 0).all()


def test_all_end_with_their_streams() -> None:
    """Whatever their windows, also where nothing ends before."""
    frame = frame_of([(0, 0), (1, 0), (0, 1)], [WINDOWS[4], WINDOWS[2], WINDOWS[0]])
    assert WINDOWS[4].kind is WindowKind.UNBOUNDED
    held = Pool(frame, (0, 1), waits=False)
    rows = np.array([[0, NOTHING, NOTHING], [NOTHING, 0, NOTHING], [1, NOTHING, NOTHING]])
    held.add(Combinations(rows, *np.zeros((2, 3), np.int64), np.zeros(3, np.bool_)))
    assert not len(held.ended(Frontier(3, 100)))
    never = np.iinfo(np.int64).max
    assert held.ended(Frontier(never, never)).tolist() == [0, 1, 2]
