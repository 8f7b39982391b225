"""Combinations of tuples: how long each lives, and whether two are within their windows together,
by definition."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.errors import Span
from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import INT
from seustream.compiler.logical.program import Source
from seustream.compiler.logical.windows import LandmarkWindow
from seustream.engine.host.stores import Stores
from seustream.engine.relational.combinations import (
    NEVER,
    NOTHING,
    Combinations,
    Frontier,
    TreeSources,
    together,
    until_landmark,
)
from seustream.engine.stream.merge import Slice
from seustream.engine.stream.schema import stream_schema
from seustream.hdl.device import Window, WindowKind

NAMES = "RST"
STREAMS = [Stream(name, (Column("a", INT),)) for name in NAMES]
AT = Span(0, 1)
WINDOWS = [
    Window(WindowKind.RANGE, 5), Window(WindowKind.RANGE, 0), Window(WindowKind.ROWS, 2),
    Window(WindowKind.ROWS, 1), Window(WindowKind.UNBOUNDED),
    LandmarkWindow(WindowKind.UNBOUNDED, every=7),
]  # fmt: skip


def frame_of(order: list[tuple[int, int]], windows: list[Window]) -> TreeSources:
    """Makes sources over stores with these rows: stream and time, in the order of all streams. Each has
    its time, modulo 3, as value."""
    stores = Stores(STREAMS, dict.fromkeys(NAMES, 1), {})
    tables = []
    for number, stream in enumerate(STREAMS):
        times = [time for of, time in order if of == number]
        values = [time % 3 for time in times]
        tables.append(pa.table([times, values], schema=stream_schema(stream)))
    stores.add(Slice(tuple(tables), np.array([of for of, _ in order])))
    sources = [Source(s.name.lower(), s, w, AT, AT) for s, w in zip(STREAMS, windows, strict=True)]
    return TreeSources(sources, stores)


def is_in(window: Window, mine: int, order: list[tuple[int, int]], at: int) -> bool:
    """By definition: returns whether the row at place `mine` is in its window when the row at place
    `at` arrives."""
    of, time = order[mine]
    now = order[at][1]
    if isinstance(window, LandmarkWindow):
        assert window.every is not None
        return time // window.every == now // window.every
    if window.kind is WindowKind.RANGE:
        return time >= now - window.size
    if window.kind is WindowKind.ROWS:
        own = [place for place, (other, _) in enumerate(order[: at + 1]) if other == of]
        return mine in own[-window.size :]
    return True


@pytest.mark.parametrize("seed", range(12))
def test_within_is_each_tuple_in_its_window_when_the_latest_arrives(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    now, order = 0, []
    for _ in range(40):
        now += chance.choice([0, 0, 1, 2, 5])
        order.append((chance.randrange(3), now))
    windows: list[Window] = [chance.choice(WINDOWS) for _ in NAMES]
    frame = frame_of(order, windows)
    places = [[p for p, (of, _) in enumerate(order) if of == n] for n in range(3)]
    rows, plain = [], []
    for _ in range(200):
        used = chance.sample(range(3), chance.randint(1, 3))
        row = [NOTHING] * 3
        for of in used:
            if places[of]:
                row[of] = chance.randrange(len(places[of]))
        if any(one != NOTHING for one in row):
            rows.append(row)
            plain.append([places[of][one] for of, one in enumerate(row) if one != NOTHING])
    table = np.array(rows)
    lives = frame.lives(table)
    assert lives.place.tolist() == [max(some) for some in plain]
    assert lives.time.tolist() == [order[max(some)][1] for some in plain]
    assert frame.oldest(table).tolist() == [min(order[p][1] for p in some) for some in plain]
    one, other = np.arange(len(rows)), np.random.default_rng(seed).permutation(len(rows))
    found = lives.pick(one).within(lives.pick(other))
    for mine, theirs, within in zip(one.tolist(), other.tolist(), found.tolist(), strict=True):
        latest = max(plain[mine] + plain[theirs])
        # Each side was within when its own latest row came; otherwise it would be no combination.
        want = all(
            is_in(windows[order[p][0]], p, order, latest) for p in plain[mine] + plain[theirs]
        )
        assert within == want, (plain[mine], plain[theirs], windows, order)
    for place in (0, 10, 25, 39):
        ended = Frontier(place, order[place][1]).ended(lives)
        for some, over in zip(plain, ended.tolist(), strict=True):
            alive = [
                at
                for at in range(place, 40)
                if all(is_in(windows[order[p][0]], p, order, max(at, *some)) for p in some)
            ]
            assert not (over and alive), "what has ended is within with nothing that comes later"


def test_until_the_next_landmark() -> None:
    times = np.array([-8, -7, -1, 0, 6, 7])
    found = until_landmark(LandmarkWindow(WindowKind.UNBOUNDED, every=7), times).tolist()
    assert found == [max(t for t in range(-20, 20) if t // 7 == now // 7) for now in times.tolist()]
    since = until_landmark(LandmarkWindow(WindowKind.UNBOUNDED, since=3), times)
    assert since.tolist() == [NEVER] * 6


def test_a_moment_is_put_off_by_time_then_place() -> None:
    def at(*moments: tuple[int, int]) -> dict[str, Any]:
        return {
            "time": np.array([t for t, _ in moments]),
            "place": np.array([p for _, p in moments]),
        }

    some = Combinations(np.zeros((4, 1), np.int64), **at((1, 5), (1, 5), (2, 5), (2, 5)),
                        matched=np.zeros(4, np.bool_))  # fmt: skip
    found = some.not_before(**at((2, 0), (1, 6), (1, 9), (2, 4)))
    moments = list(zip(found.time.tolist(), found.place.tolist(), strict=True))
    assert moments == [(2, 0), (1, 6), (2, 5), (2, 5)]
    both = together([found, Combinations.none(1), some.pick(np.array([2]))])
    assert both.time.tolist() == [2, 1, 2, 2, 2]


def test_columns_are_null_where_there_is_no_tuple() -> None:
    frame = frame_of([(0, 1), (1, 2), (0, 3)], [Window(WindowKind.RANGE, 9)] * 3)
    rows = np.array([[1, NOTHING, NOTHING], [NOTHING, 0, NOTHING], [0, 0, NOTHING]])
    reads = [x.ColumnReference(n, "a", INT, True, name) for n, name in enumerate("rs")]
    found = frame.columns(reads, rows)
    assert found[0, "a"].to_pylist() == [0, None, 1]
    assert found[1, "a"].to_pylist() == [None, 2, 2]
    assert frame.named(rows[2]) == "r at ts 1, s at ts 2"
    assert [places.tolist() for places in frame.places(rows)] == [
        [2, NOTHING, 0], [NOTHING, 1, 1], [NOTHING] * 3
    ]  # fmt: skip
