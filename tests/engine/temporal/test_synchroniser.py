"""Algorithm 1: the printed figures, and its properties on random streams.

The properties state what is released when; the order of release is that of a sort, written here.
"""

from __future__ import annotations

import itertools
import random

import pytest

from seustream.engine.temporal.elements import ElementKind, StreamElement
from tests.engine.temporal.reference.elements import REMOVE, STOP, boundary, header, insertion
from tests.engine.temporal.reference.synchroniser import Synchroniser


class Recorder:
    """Records everything released with its input, counted from 1 as in the figures."""

    def __init__(self) -> None:
        self.released: list[tuple[int, int, int]] = []
        self.boundaries: list[tuple[int, int]] = []
        self.controls: list[tuple[int, ElementKind]] = []
        self.now: list[int] = []
        self.ended = 0

    def reorganise(self, now: int) -> None:
        self.now.append(now)

    def execute(self, source: int, x: StreamElement) -> None:
        assert self.now[-1] == x.ts
        self.released.append((x.ts, x.te, source + 1))

    def broadcast(self, source: int, x: StreamElement) -> None:
        self.boundaries.append((x.ts, source + 1))

    def control(self, source: int, x: StreamElement) -> None:
        self.controls.append((source + 1, x.kind))

    def end(self) -> None:
        self.ended += 1


def synchroniser(inputs: int) -> tuple[Synchroniser, Recorder]:
    seen = Recorder()
    return Synchroniser(inputs, seen), seen


def put(sync: Synchroniser, number: int, *keys: tuple[int, int]) -> None:
    for ts, te in keys:
        sync.put(number - 1, insertion(ts, te))


FIGURE_3 = [(10, 14), (11, 13), (19, 20), (19, 21), (20, 24)]


@pytest.mark.acceptance(26)
def test_figure_3_with_the_boundary() -> None:
    sync, seen = synchroniser(2)
    put(sync, 1, (15, 16))
    sync.put(0, boundary(24))
    put(sync, 2, *FIGURE_3)
    want = [(10, 14, 2), (11, 13, 2), (15, 16, 1), (19, 20, 2), (19, 21, 2), (20, 24, 2)]
    assert seen.released == want
    assert seen.boundaries == []
    assert sync.waiting == [[boundary(24)], []]


@pytest.mark.acceptance(26)
def test_figure_3_without_the_boundary() -> None:
    sync, seen = synchroniser(2)
    put(sync, 1, (15, 16))
    put(sync, 2, *FIGURE_3)
    assert seen.released == [(10, 14, 2), (11, 13, 2), (15, 16, 1)]


@pytest.mark.acceptance(26)
def test_figure_3_with_its_first_tuple_on_the_other_stream() -> None:
    sync, seen = synchroniser(2)
    put(sync, 1, (10, 14), (15, 16))
    sync.put(0, boundary(24))
    put(sync, 2, *FIGURE_3[1:])
    want = [(10, 14), (11, 13), (15, 16), (19, 20), (19, 21), (20, 24)]
    assert [key[:2] for key in seen.released] == want


@pytest.mark.acceptance(26)
def test_figure_4() -> None:
    sync, seen = synchroniser(3)
    put(sync, 1, (4, 5), (5, 9))
    put(sync, 2, (5, 8), (6, 9))
    put(sync, 3, (6, 8), (6, 9))
    assert seen.released == [(4, 5, 1), (5, 8, 2), (5, 9, 1)]
    assert sorted(sync.heap) == [(6, 8, 2), (6, 9, 1)]  # heap [3, 2], counted from 1
    sync.put(0, STOP)
    assert seen.released[3:] == [(6, 8, 3), (6, 9, 2)]


def streams_of(chance: random.Random, inputs: int) -> list[list[StreamElement]]:
    """Returns streams in key order, with ties, instants and boundaries."""
    found = []
    for _ in range(inputs):
        keys = sorted(
            (t, t + chance.choice((0, 0, 1, 5)))
            for t in (chance.randint(0, 12) for _ in range(chance.randint(0, 6)))
        )
        stream = [
            boundary(a) if a == b and chance.random() < 0.5 else insertion(a, b) for a, b in keys
        ]
        found.append([*stream, STOP])
    return found


@pytest.mark.acceptance(27)
@pytest.mark.parametrize("seed", range(100))
def test_released_keys_never_decrease_and_some_open_input_is_empty(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    streams = streams_of(chance, chance.randint(1, 4))
    sync, seen = synchroniser(len(streams))
    places = [i for i, stream in enumerate(streams) for _ in stream]
    chance.shuffle(places)
    coming = [iter(stream) for stream in streams]
    for i in places:
        sync.put(i, next(coming[i]))
        assert not any(sync.open) or any(
            opened and not queue for opened, queue in zip(sync.open, sync.queues, strict=True)
        )
    everything = [
        (x.ts, x.te, i + 1)
        for i, stream in enumerate(streams)
        for x in stream
        if x.kind is ElementKind.INSERTION
    ]
    assert seen.released == sorted(everything)
    assert seen.ended == 1
    assert seen.now == sorted(seen.now)


@pytest.mark.acceptance(28)
@pytest.mark.parametrize("seed", range(12))
def test_every_interleaving_gives_the_same_releases(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    streams = [
        stream[:3] if stream[:3][-1] is STOP else [*stream[:2], STOP]
        for stream in streams_of(chance, 3)
    ]
    places = [i for i, stream in enumerate(streams) for _ in stream]
    outcomes = set()
    for order in set(itertools.permutations(places)):
        sync, seen = synchroniser(3)
        coming = [iter(stream) for stream in streams]
        for i in order:
            sync.put(i, next(coming[i]))
        outcomes.add((tuple(seen.released), tuple(seen.boundaries)))
    assert len(outcomes) == 1


@pytest.mark.acceptance(29)
def test_one_input_releases_at_once() -> None:
    sync, seen = synchroniser(1)
    for t in range(4):
        put(sync, 1, (t, t + 1))
        assert len(seen.released) == t + 1


@pytest.mark.acceptance(29)
def test_a_stopped_input_does_not_block() -> None:
    sync, seen = synchroniser(2)
    put(sync, 1, (1, 2))
    assert seen.released == []
    sync.stop(1)
    assert seen.released == [(1, 2, 1)]
    with pytest.raises(ValueError, match="input 1 has stopped"):
        sync.put(1, boundary(9))


def test_controls_act_on_reaching_the_head() -> None:
    sync, seen = synchroniser(2)
    sync.put(0, header("a"))
    assert seen.controls == [(1, ElementKind.HEADER)]
    put(sync, 1, (1, 2))
    sync.put(0, REMOVE)
    sync.put(0, STOP)
    assert len(seen.controls) == 1
    put(sync, 2, (3, 4))
    assert seen.controls == [
        (1, ElementKind.HEADER),
        (1, ElementKind.REMOVE),
        (1, ElementKind.STOP),
    ]
    assert seen.released == [(1, 2, 1), (3, 4, 2)]
    assert seen.ended == 0
    sync.put(1, STOP)
    assert seen.ended == 1


def test_high_water() -> None:
    sync, _ = synchroniser(2)
    put(sync, 1, (1, 2), (3, 4), (5, 6))
    put(sync, 2, (9, 9))
    assert sync.most_waiting == 4
