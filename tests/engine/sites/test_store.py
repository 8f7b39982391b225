"""A row store compared with a list of rows, under random storing, probing and deleting."""

from __future__ import annotations

import math
import random

import pytest

from seustream.engine.sites.model import EquiJoin, SiteStream, Stored, extend, start
from seustream.engine.sites.store import BlockStore

JOIN = EquiJoin(
    (SiteStream("a", ("x",)), SiteStream("b", ("x", "y")), SiteStream("c", ("x", "y"))),
    (((0, "x"), (1, "x")), ((1, "x"), (2, "x")), ((1, "y"), (2, "y"))),
)


def stored(chance: random.Random, stream: int, no: int, index: int) -> Stored:
    values = tuple(chance.randint(1, 3) for _ in JOIN.classes_of(stream))
    t = no - chance.choice([0, 1])
    end = chance.choice([t + 2, t + 5, math.inf])
    return Stored((stream, no, index), values, t, no, (end,))


@pytest.mark.parametrize("seed", range(20))
def test_against_a_list(seed: int) -> None:
    chance = random.Random(seed)
    store, rows, watermark = BlockStore(JOIN, 2), [], -math.inf
    for no in range(12):
        new = [stored(chance, 2, no, index) for index in range(chance.randint(0, 4))]
        store.store(new)
        rows += new
        watermark = max(watermark, no - chance.randint(0, 6))
        gone = store.expire(watermark)
        assert set(gone) == {row for row in rows if row.end < watermark}
        rows = [row for row in rows if row.end >= watermark]
        assert set(store.rows()) == set(rows)
        assert len(store) == len(rows)
        parts = [start(JOIN, stored(chance, k, no, 0)) for k in (0, 1)]
        visible = chance.randint(0, no)
        want = [
            extended
            for part in parts
            for row in rows
            if row.tid[1] <= visible and (extended := extend(JOIN, part, row)) is not None
        ]
        found = store.probe(parts, visible)
        assert sorted(part.tids for part in found) == sorted(part.tids for part in want)
    store.clear()
    assert not len(store)
    assert store.expire(math.inf) == []
