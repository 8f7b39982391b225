"""Tests the contract of `seustream.hdl.device`, rule 9: each result is in a group or delivered, whatever
is grouped and however the device does it.

The expected outcome is a fold, one result after the other, of what the oracle finds.
"""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from seustream.compiler.wjasip.image import encode
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.device import Device, Grouped, Tables
from seustream.hdl.layouts import GROUP_COUNT_BITS
from tests.cosim.contract import EQUAL, NARROW, TINY, NewDevice, loaded
from tests.cosim.devices import held
from tests.cosim.generate import random_arrivals, random_queries
from tests.cosim.grouping import fold, folded, grouped_at_random
from tests.cosim.oracle import expected
from tests.cosim.queries import (
    RANGE,
    UNBOUNDED,
    Query,
    R,
    Raw,
    Row,
    S,
    Where,
    arrivals,
    batch,
    build,
)

GROUPS = [(0, 1), (0, 1, 2), (0, 0), (0, 0, 2)]


def agree(
    device: Device,
    tables: Sequence[Tables],
    config: DeviceConfig,
    queries: Sequence[Query],
    raws: Sequence[Raw],
    groups: tuple[int, ...],
    at_once: int,
) -> Counter:
    """Asserts that each push gives its own results, in groups or not; before some pushes other
    tables are loaded."""
    seen: Counter = Counter()
    place = {(raw.stream, raw.sequence): at for at, raw in enumerate(raws)}
    of_push: dict[int, list[Row]] = {}
    for row in expected(raws, queries, groups):
        latest = max(place[part] for part in enumerate(row[3]) if part[1] >= 0)
        of_push.setdefault(latest // at_once, []).append(row)
    before = device.status().delivered
    begins = range(0, len(raws), at_once)
    together = max(2, len(begins) // 4)  # loads take long
    for number, begin in enumerate(begins):
        now = tables[number // together % len(tables)]
        if len(tables) > 1 and number and number % together == 0:
            device.load(encode(now, config))
        results = device.push(batch(raws[begin : begin + at_once]))
        assert not len(results.handed_over)
        want = fold(now, raws, of_push.get(number, []))
        assert folded(now, raws, results) == want
        seen["delivered"] += results.delivered
        seen["in groups"] += int(results.grouped.count.sum())
        seen["of grouped queries"] += sum(each[0] for each in want[0].values())
    last = device.flush()
    assert not len(last)
    assert not len(last.grouped)
    assert device.status().delivered - before == seen["delivered"]
    return seen


def _one_term(queries: Sequence[Query]) -> list[Query]:
    """Drops the terms that may give a result twice."""
    return [dataclasses.replace(query, terms=query.terms[:1]) for query in queries]


@pytest.mark.parametrize("seed", range(24))
def test_random_groups_of_random_queries(new_device: NewDevice, seed: int) -> None:
    """Times pass the end of the counter; some ages are more than a quarter of its range."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    far = seed % 2
    while True:
        groups = chance.choice(GROUPS)
        queries = _one_term(random_queries(chance, groups))
        raws = random_arrivals(chance, groups, 60)
        stretched = NARROW.longest_range // 8 if far else 1
        if far:
            queries = [
                dataclasses.replace(
                    query,
                    windows={s: RANGE(chance.randrange(8) * stretched) for s in query.windows},
                )
                for query in queries
            ]
        base = chance.choice([0, (1 << 16) - 40, (1 << 14) - 20, -60, (1 << 40) - 50])
        raws = [raw._replace(timestamp=base + stretched * raw.timestamp) for raw in raws]
        tables = [
            grouped_at_random(chance, build(queries, groups), queries)
            for _ in range(chance.choice([1, 2]))
        ]
        if expected(raws, queries, groups) and tables[0].grouped:
            break
    device = loaded(new_device, tables[0], NARROW)
    held(device, seed)
    agree(device, tables, NARROW, queries, raws, groups, chance.randrange(1, 60))


def _same_place(chance: random.Random, n: int) -> list[int]:
    """Returns different keys of three digits of three bits, all of which fall into one place of
    eight."""
    high = [chance.randrange(1 << 6) for _ in range(n)]
    return [each << 3 | (each ^ each >> 3) & 7 for each in high]


KEYS: dict[str, Callable[[random.Random, int], list[int]]] = {
    "equal": lambda chance, n: [7] * n,
    "few": lambda chance, n: [chance.randrange(6) for _ in range(n)],
    "many": lambda chance, n: [chance.randrange(1 << 16) for _ in range(n)],
    "zipf": lambda chance, n: [int(chance.paretovariate(1.0)) & 0xFFF for _ in range(n)],
    "in bursts": lambda chance, n: [i // 9 for i in range(n)],
    "one place": _same_place,
}


def _keyed(chance: random.Random, keys: str, n: int, top: int = 0xFFFF, step: int = 3) -> list[Raw]:
    """Returns tuples that join by their first attribute; the second is a key, the third any
    value."""
    rows, now = [], 0
    for key in KEYS[keys](chance, n):
        now += chance.choice([0, 0, 1, step])
        value = chance.choice([0, 1, top, chance.randrange(top)])
        rows.append((chance.randrange(2), now, (chance.randrange(4), key & top, value)))
    return arrivals(rows, (0, 1), [i for i in range(n) if chance.random() < 0.05])


_QUERIES = [
    Query({R: RANGE(12), S: RANGE(12)}, (EQUAL,)),
    Query({R: RANGE(5), S: RANGE(9)}, (EQUAL,)),
    Query({R: RANGE(0)}, where={R: Where(((0, ">", 0),))}),
    Query({S: RANGE(0)}),
]


def _tables(*by: Grouped) -> Tables:
    """Returns the tables of `_QUERIES`, some of them grouped."""
    tables = build(_QUERIES, (0, 1))
    grouped = {
        tag: one for tag, route in tables.routes.items() for one in by if one.query in route.queries
    }
    return dataclasses.replace(tables, grouped=grouped)


_BY = (
    _tables(Grouped(0, (R, 1), (S, 2), 40), Grouped(2, (R, 1), (R, 2), 64, 5)),
    _tables(Grouped(1, (S, 1), None, 1 << 30), Grouped(3, (S, 1), (S, 2), 25)),
    _tables(),
    _tables(Grouped(0, None, (R, 2), 1 << 30), Grouped(3, None, None, 1 << 30)),
)


@pytest.mark.parametrize("keys", KEYS)
def test_groups_by_keys_of_any_kind(new_device: NewDevice, keys: str) -> None:
    """The grouping changes between pushes; after a reset all begins anew, and nothing from before
    is left."""
    print(f"seed {len(keys)}")
    chance = random.Random(len(keys))
    device = loaded(new_device, _BY[0], NARROW)
    seen: Counter = Counter()
    for run in range(2):
        if run:
            device.load(encode(_BY[0], NARROW))
            device.reset()
            assert device.status().delivered == 0
            held(device, len(keys))
        raws = _keyed(chance, keys, 240)
        seen += agree(device, _BY, NARROW, _QUERIES, raws, (0, 1), 40)
    assert seen["in groups"]
    if hasattr(device, "hold"):
        # The RTL has eight places.
        assert (seen["in groups"] < seen["of grouped queries"]) == (keys != "equal")


def test_a_group_of_more_than_it_counts(new_device: NewDevice) -> None:
    """One push has more results of one key than the count of a processor holds, all with the
    greatest value."""
    many, few, top = 6000, 11, 0xFFFF
    query = Query({R: UNBOUNDED, S: RANGE(0)})
    assert many * few > 1 << GROUP_COUNT_BITS
    tables = build([query], (0, 1))
    grouped = {
        tag: Grouped(0, (R, 0), (S, 1), 1 << 30)
        for tag, route in tables.routes.items()
        if route.queries
    }
    tables = dataclasses.replace(tables, grouped=grouped)
    device = loaded(new_device, tables, TINY)
    rows = [(R, 0, (9,)) for _ in range(few)]
    raws = arrivals([*rows, *((S, 1 + i, (0, top)) for i in range(many))], (0, 1))
    results = device.push(batch(raws))
    groups, rest = folded(tables, raws, results)
    assert groups == {(0, 9, 0): (many * few, many * few * top, top, top, 0, 1)}
    assert not rest
    assert results.delivered == device.status().delivered == many * few
    if hasattr(device, "hold"):
        assert results.grouped.count.tolist() == [(1 << GROUP_COUNT_BITS) - 1]
        assert int(np.bitwise_count(results.queries).sum()) == len(results)


def test_without_places_all_are_delivered(new_device: NewDevice) -> None:
    serial = CONFIGURATIONS["serial"]
    assert not serial.groups
    chance = random.Random(5)
    device = loaded(new_device, _BY[0], serial)
    seen = agree(device, _BY[:2], serial, _QUERIES, _keyed(chance, "few", 120, 0xFF), (0, 1), 30)
    assert seen["of grouped queries"]
    assert not seen["in groups"]
