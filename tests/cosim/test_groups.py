"""Tests groups of results against adding one result after the other."""

from __future__ import annotations

import random

import numpy as np

from seustream.cosim.groups import groups_of, members_of
from seustream.hdl.config import MAX_ATTRIBUTES, MAX_STREAMS
from seustream.hdl.device import Batch, Grouped

Group = tuple[int, ...]


def _one_by_one(
    grouped: Grouped, rows: list[tuple[int, np.ndarray, int]], into: dict[Group, Group]
) -> None:
    """Adds results, given by time, attributes and oldest time, to their groups."""
    for time, attributes, oldest in rows:
        key, value = (
            0 if place is None else int(attributes[place]) for place in (grouped.key, grouped.value)
        )
        of = grouped.query, (time - grouped.offset) // grouped.period, key
        known = into.get(of, (0, 0, value, value, oldest, time))
        into[of] = (
            known[0] + 1,
            known[1] + value,
            min(known[2], value),
            max(known[3], value),
            min(known[4], oldest),
            min(known[5], time),
        )


def test_groups_are_those_of_single_results() -> None:
    seed = 11
    print(f"seed {seed}")
    chance = random.Random(seed)
    for _ in range(100):
        want: dict[Group, Group] = {}
        members = []
        for query in range(chance.randrange(3)):
            for _ in range(chance.randrange(4)):
                n = chance.randrange(30)
                time = np.sort(np.array([chance.randrange(100) for _ in range(n)], np.int64))
                grouped = Grouped(
                    query,
                    chance.choice([None, (0, 1), (3, 3)]),
                    chance.choice([None, (1, 0), (0, 1)]),
                    chance.choice([1, 7, 1000]),
                    chance.choice([0, 3]),
                )
                block = Batch(
                    np.zeros(n, np.uint8),
                    time,
                    np.arange(n),
                    np.ones(n, np.bool_),
                    np.zeros((n, MAX_ATTRIBUTES), np.uint32),
                )
                row = np.array([chance.randrange(n) for _ in range(2 * n)], np.int64)
                codes = [chance.choice([0, 1, 2**32 - 1]) for _ in range(2 * n * 16)]
                attributes = np.array(codes, np.uint32).reshape(-1, MAX_STREAMS, MAX_ATTRIBUTES)
                oldest = time[row] - 5
                some = np.array([chance.random() < 0.7 for _ in row], np.bool_)
                members.append(members_of(grouped, block, row, attributes, oldest, some))
                rows = [
                    (int(time[r]), attributes[i], int(oldest[i]))
                    for i, r in enumerate(row)
                    if some[i]
                ]
                _one_by_one(grouped, rows, want)
        groups = groups_of(members)
        columns = (
            groups.count,
            groups.total,
            groups.least,
            groups.greatest,
            groups.oldest,
            groups.first,
        )
        got = list(
            zip(
                groups.query.tolist(),
                groups.key.tolist(),
                *(c.tolist() for c in columns),
                strict=True,
            )
        )
        assert got == [
            (query, key, *want[query, period, key]) for query, period, key in sorted(want)
        ]


def test_no_results_are_no_groups() -> None:
    assert len(groups_of([])) == len(groups_of([]).of(0)) == 0
