"""Members and groups that are released, compared with keeping all of them.

Finds: a member that leaves too early or too late if windows end in no order; a key or a member that
stays after the held data was rebuilt, or is lost there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.language.types import BIGINT, DOUBLE, NULL, VARCHAR
from seustream.engine.host import sliding
from seustream.engine.host.sliding import Sliding

ARGUMENT = x.Literal(None, NULL)
OVER = [
    x.AggregateCall("sum", (ARGUMENT,), (BIGINT,), BIGINT),
    x.AggregateCall("max", (ARGUMENT,), (BIGINT,), BIGINT),
    x.AggregateCall("count", (ARGUMENT,), (BIGINT,), BIGINT, distinct=True),
    x.AggregateCall("median", (ARGUMENT,), (DOUBLE,), DOUBLE),
]


@pytest.mark.parametrize("clocks", [0, 1, 2])
@pytest.mark.parametrize("ordered", [True, False])
def test_members_by_clocks(clocks: int, ordered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readings are near each other or far apart, which is not always known from the first ones."""
    monkeypatch.setattr(sliding, "_FEW", 3)
    for seed in range(48):
        chance = np.random.default_rng(seed)
        step = (1, 1 << 27, 1 << 30, 1 << 50)[seed // 2 % 4]
        made = Sliding([VARCHAR], OVER, [(0,), (0,), (0,), (1,)], [BIGINT, DOUBLE], clocks, ordered)
        now = [int(chance.choice((0, -(1 << 60), (1 << 60)))) for _ in range(clocks)]
        held: list[tuple[str, int, list[int]]] = []
        for _ in range(12):
            count = int(chance.integers(0, 7))
            shown = [step * np.cumsum(chance.integers(0, 3, count)) + one for one in now]
            now = [int(one[-1]) if count else n for one, n in zip(shown, now, strict=True)]
            arrival = (
                np.sort(chance.integers(0, count, 2 * count)) if count else np.empty(0, np.int64)
            )
            keys = [f"k{seed}{int(k)}" for k in chance.integers(0, 3, 2 * count)]
            values = [int(v) for v in chance.integers(-9, 9, 2 * count)]
            ends = [
                one[arrival] + step * (4 if ordered else chance.integers(-1, 9, 2 * count))
                for one in shown
            ]
            if not ordered and seed % 3 == 0:
                for end in ends:
                    end[chance.random(2 * count) < 0.05] = np.iinfo(np.int64).max
            own = made.enter(
                [pa.array(keys, pa.string())],
                [pa.array(values, pa.int64()), pa.array(values, pa.float64())],
                2 * count,
                arrival,
                tuple(shown),
                [4 * step] * clocks if ordered and seed % 2 else ends,
            )
            who, points = own or (np.arange(2 * count), np.arange(2 * count))
            found = [one.to_pylist() for one in made.results(Faults())]
            wanted: list[list[Any]] = [[] for _ in OVER]
            first: list[int] = []
            for number in np.unique(arrival).tolist():
                mine = np.flatnonzero(arrival == number).tolist()
                held += [(keys[m], values[m], [int(end[m]) for end in ends]) for m in mine]
                clock = [int(one[number]) for one in shown]
                held = [h for h in held if all(e >= c for e, c in zip(h[2], clock, strict=True))]
                for m in mine:
                    if keys[m] in [keys[other] for other in mine if other < m]:
                        continue
                    first.append(m)
                    some = sorted(h[1] for h in held if h[0] == keys[m])
                    middle = (some[(len(some) - 1) // 2] + some[len(some) // 2]) / 2 if some else 0
                    for to, value in zip(
                        wanted,
                        (sum(some), max(some, default=None), len(set(some)), middle),
                        strict=True,
                    ):
                        to.append(value if some or to is wanted[2] else None)
            assert who.tolist() == first
            assert [keys[who[p]] for p in points] == keys
            assert found == wanted
            assert made.live == len(held)


@pytest.mark.parametrize("size", [1, 3])
def test_the_last_rows_of_each_group(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sliding, "_FEW", 3)
    for seed in range(12):
        chance = np.random.default_rng(seed)
        made = Sliding([BIGINT], OVER[:2], [(0,)] * 2, [BIGINT], 0, rows=size)
        held: dict[int, list[int]] = {}
        for _ in range(20):
            count = int(chance.integers(0, 6))
            keys, values = chance.integers(0, 4, count), chance.integers(-9, 9, count)
            made.enter([pa.array(keys)], [pa.array(values)], count, None)
            found = [one.to_pylist() for one in made.results(Faults())]
            wanted: list[list[int]] = [[], []]
            for key, value in zip(keys.tolist(), values.tolist(), strict=True):
                held[key] = [*held.get(key, []), value][-size:]
                wanted[0].append(sum(held[key]))
                wanted[1].append(max(held[key]))
            assert found == wanted
            assert made.live == sum(map(len, held.values()))


def test_ends_at_the_last_reading_of_a_clock() -> None:
    """Each member has an arrival of its own, and stays for a number of readings."""
    last = np.iinfo(np.int64).max
    made = Sliding([], OVER[:1], [(0,)], [BIGINT], 1)
    for values, clock, wanted in (([1, 2], [0, 5], [1, 3]), ([4, 8], [6, last], [7, 8])):
        own = made.enter([], [pa.array(values)], 2, None, (np.array(clock),), (last - 10,))
        assert own is None
        (found,) = made.results(Faults())
        assert found.to_pylist() == wanted
    assert made.live == 1


FOLDED = [
    (x.AggregateCall("sum", (ARGUMENT,), (BIGINT,), BIGINT), (0,)),
    (x.AggregateCall("avg", (ARGUMENT,), (DOUBLE,), DOUBLE), (1,)),
    (x.AggregateCall("count", (ARGUMENT,), (DOUBLE,), BIGINT), (1,)),
    (x.AggregateCall("count", (), (), BIGINT), ()),
    (x.AggregateCall("sum", (ARGUMENT,), (BIGINT,), BIGINT, distinct=True), (0,)),
    (x.AggregateCall("min", (ARGUMENT,), (VARCHAR,), VARCHAR), (2,)),
    (x.AggregateCall("max", (ARGUMENT,), (DOUBLE,), DOUBLE), (1,)),
    (x.AggregateCall("first", (ARGUMENT,), (VARCHAR,), VARCHAR), (2,)),
    (x.AggregateCall("last", (ARGUMENT,), (BIGINT,), BIGINT), (0,)),
    (x.AggregateCall("max_by", (ARGUMENT, ARGUMENT), (VARCHAR, DOUBLE), VARCHAR), (2, 1)),
]


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_groups_that_nothing_leaves_keep_few_members(
    seed: int, ordered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They equal groups that keep all; also when both begin again with what was held."""
    chance = np.random.default_rng(seed)
    some = chance.permutation(len(FOLDED))[: chance.integers(1, len(FOLDED) + 1)]
    aggregates, numbers = zip(*(FOLDED[one] for one in some), strict=True)
    keys = [VARCHAR] if seed % 3 else []
    of = [BIGINT, DOUBLE, VARCHAR]
    one, other = (Sliding(keys, aggregates, numbers, of, 0, ordered) for _ in range(2))
    assert one.stays
    other.stays = False
    most = 0
    for _ in range(30):
        count = int(chance.integers(0, 12))
        integers = chance.integers(-9, 9, count)
        columns = [
            pa.array(integers, mask=chance.random(count) < 0.2),
            pa.array(
                chance.choice([0.1, 1e300, -1e-9, 7.0, np.inf], count),
                mask=chance.random(count) < 0.2,
            ),
            pa.array([f"t{n}" for n in integers], pa.string()),
        ]
        by = (
            [pa.array([f"k{n}" for n in chance.integers(0, 3, count)], pa.string())] if keys else []
        )
        found = []
        for each, few in ((one, 3), (other, 1 << 30)):
            monkeypatch.setattr(sliding, "_FEW", few)
            points = each.enter(by, columns, count, None, (), ())
            results = each.results(Faults())
            found.append((points, [result.to_pylist() for result in results]))
        assert found[0] == found[1]
        most = max(most, one.live)
        if chance.random() < 0.2:
            held, again = one.held(), Sliding(keys, aggregates, numbers, of, 0, ordered)
            again.fill(held)
            one = again
    distinct = 20 if any(e.distinct for e in aggregates) else 0
    picked = sum(e.function in ("min", "max", "first", "last", "max_by") for e in aggregates)
    assert most <= 3 + 2 * 3 * (distinct + picked) + 12
