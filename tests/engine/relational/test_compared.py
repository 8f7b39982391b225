"""Comparisons between the sides of a join: keys that are equal where the equalities hold, and tests
for pairs, on random rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.logical.joins import JoinTree, TreeJoin
from seustream.compiler.pipeline import compile_text
from seustream.engine.host.stores import Stores
from seustream.engine.relational import compared
from seustream.engine.relational.combinations import NOTHING, Combinations, TreeSources
from seustream.engine.relational.compared import Comparisons
from seustream.engine.stream.merge import Slice
from seustream.engine.stream.numbers import all_hold
from seustream.engine.stream.schema import stream_schema

Cells = tuple[int | None, ...]


def comparisons(
    on: str, left: list[Cells], right: list[Cells]
) -> tuple[Comparisons, list[Combinations]]:
    """Returns the comparisons of R (a, b) and S (c, d), and the combinations of their rows."""
    text = f"""CREATE STREAM R (a int, b double); CREATE STREAM S (c int, d varchar);
    SELECT R.a FROM R LEFT JOIN S ON {on} WINDOW UNBOUNDED"""
    (node,) = compile_text(text).program.asked_relations
    assert isinstance(node, JoinTree)
    assert isinstance(node.tree, TreeJoin)
    stores = Stores(node.inputs, {"R": 1, "S": 1}, {})
    tables = []
    for stream, rows in zip(node.inputs, (left, right), strict=True):
        schema = stream_schema(stream)
        cells = zip(*([at, *row] for at, row in enumerate(rows)), strict=True)
        columns = [pa.array(column, of) for column, of in zip(cells, schema.types, strict=True)]
        tables.append(pa.table(columns, schema=schema))
    stores.add(Slice(tuple(tables), np.repeat([0, 1], [len(left), len(right)])))
    sides = []
    for number, count in enumerate((len(left), len(right))):
        rows_ = np.full((count, 2), NOTHING)
        rows_[:, number] = np.arange(count)
        none = np.zeros(count, np.int64)
        sides.append(Combinations(rows_, none, none, np.zeros(count, np.bool_)))
    return Comparisons(node.tree, TreeSources(node.sources, stores)), sides


def rows_of(chance: random.Random, kind: Callable[[], object]) -> list[Cells]:
    return [(chance.choice([None, 0, 1, 2, 3]), kind()) for _ in range(chance.randint(1, 40))]  # type: ignore[misc]


@pytest.mark.parametrize("seed", range(30))
def test_narrowed_sides_have_all_pairs_of_equal_keys(seed: int) -> None:
    chance = random.Random(seed)
    left = rows_of(chance, lambda: chance.choice([0.0, -0.0, 1.5, None]))
    right = rows_of(chance, lambda: chance.choice(["x", "", None]))
    of, (r, s) = comparisons("R.a = S.c AND R.b = S.c + 0.0", left, right)
    pairs = {
        (i, j)
        for i, (a, b) in enumerate(left)
        for j, (c, _) in enumerate(right)
        if None not in (a, b, c) and a == c and b == c
    }
    known = chance.randint(0, len(left)), chance.randint(0, len(right))
    first = r.pick(np.arange(known[0])), s.pick(np.arange(known[1]))
    of.follow(first, [0, 0])
    of.follow((r, s), [*known])  # goes on from what it knows
    some, others = np.arange(len(left)), np.arange(len(right))
    few = np.sort(np.array(chance.sample(range(len(right)), min(3, len(right)))))
    with patch.object(compared, "_MANY", 0):
        for mine, theirs in ((some, few), (some[:2], others), (some, others)):
            near, far = of.narrowed(mine, theirs)
            wanted = {(i, j) for i, j in pairs if i in mine and j in theirs}
            assert wanted <= {(i, j) for i in near.tolist() for j in far.tolist()}
            assert set(near.tolist()) <= set(mine.tolist())
    stay = np.arange(len(left)) % 2 == 0
    of.keep(0, stay)
    assert of.keys[0] is not None
    assert len(of.keys[0][0]) == stay.sum()


@pytest.mark.parametrize(
    ("on", "value"),
    [
        ("R.a < S.c", lambda a, c: a < c),
        ("S.c <> R.a AND R.a >= S.c", lambda a, c: a > c),
        ("R.a = S.c OR R.a + 1 < S.c", lambda a, c: a == c or a + 1 < c),
        ("R.a = S.c OR R.a > 2", None),
        ("1 / R.a = S.c", None),
    ],
)
def test_tests_of_pairs(on: str, value: Callable[[int, int], bool] | None) -> None:
    """A condition with something else than a comparison of both sides, or with a fault, remains."""
    left: list[Cells] = [(a, None) for a in (0, 1, 2, 3, None)]
    right: list[Cells] = [(c, None) for c in (3, 0, None, 2)]
    of, (r, s) = comparisons(on, left, right)
    tests, ways, rest = of.tests(r.rows, s.rows)
    if value is None:
        assert (tests, ways, rest) == ([], [[]], of.conjuncts)
        return
    assert not rest
    who, row = (each.reshape(-1) for each in np.meshgrid(range(5), range(4), indexing="ij"))
    found = all_hold(tests, who, row) & np.any([all_hold(way, who, row) for way in ways], axis=0)
    for i, j, holds in zip(who.tolist(), row.tolist(), found.tolist(), strict=True):
        a, c = left[i][0], right[j][0]
        assert holds == (a is not None and c is not None and value(a, c)), (i, j)
