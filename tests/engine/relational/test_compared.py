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


def as_pairs(left: list[Cells], right: list[Cells]) -> set[tuple[int, int]]:
    """By definition: the pairs that `R.a = S.c AND R.b = S.c + 0.0` holds for."""
    return {
        (i, j)
        for i, (a, b) in enumerate(left)
        for j, (c, _) in enumerate(right)
        if None not in (a, b, c) and a == c and b == c
    }


@pytest.mark.parametrize("seed", range(30))
def test_partners_are_all_with_equal_keys(seed: int) -> None:
    chance = random.Random(seed)
    left = rows_of(chance, lambda: chance.choice([0.0, -0.0, 1.5, None]))
    right = rows_of(chance, lambda: chance.choice(["x", "", None]))
    of, (r, s) = comparisons("R.a = S.c AND R.b = S.c + 0.0", left, right)
    pairs = as_pairs(left, right)
    known = chance.randint(0, len(left)), chance.randint(0, len(right))
    assert of.partners(1, np.arange(0)) is None  # nothing is known yet
    of.follow((r.rows[: known[0]], s.rows[: known[1]]))
    of.follow((r.rows, s.rows))  # goes on from what it knows
    with patch.object(compared, "_MANY", 0):
        for side, (mine, theirs) in enumerate(((right, left), (left, right)), 0):
            others = np.array(chance.sample(range(len(theirs)), min(2, len(theirs))))
            found = of.partners(1 - side, others)
            if 4 * len(others) > len(mine):
                assert found is None
                continue
            assert found is not None
            wanted = {pair[1 - side] for pair in pairs if pair[side] in others.tolist()}
            assert found.tolist() == sorted(wanted)
    stay = np.flatnonzero(np.arange(len(left)) % 2 == 0)
    of.keep(0, stay)
    ours, keys = of.known(np.arange(len(stay)), np.arange(len(right)))  # type: ignore[misc]
    assert {
        (int(stay[i]), j)
        for i, key in enumerate(ours.tolist())
        for j in np.flatnonzero((keys == key) & (key >= 0)).tolist()
    } == {(i, j) for i, j in pairs if i in stay.tolist()}


def test_keys_with_a_fault_lead_nowhere() -> None:
    """The whole condition decides in which pairs a fault counts."""
    left: list[Cells] = [(a, None) for a in (0, *[1] * 40)]
    of, (r, s) = comparisons("1 / R.a = S.c", left, [(1, None)])
    of.follow((r.rows, s.rows))
    with patch.object(compared, "_MANY", 0):
        assert of.partners(0, np.array([0])) is None
        assert of.known(np.arange(3), np.array([0])) is None
        stay = np.arange(1, 41)  # without the row that has it
        of.keep(0, stay)
        of.follow((r.rows[stay], s.rows))
        assert of.partners(0, np.array([0])).tolist() == [*range(40)]  # type: ignore[union-attr]


def test_codes_begin_again_once_most_have_no_row() -> None:
    numbers: list[Cells] = [(at, None) for at in range(5000)]
    texts: list[Cells] = [(at, f"{at}") for at in range(5000)]
    of, (r, s) = comparisons("CAST(R.a AS varchar) = S.d", numbers, texts)
    of.follow((r.rows, s.rows))
    assert not of.is_crowded
    few = np.arange(2)
    of.keep(0, few)
    of.keep(1, few)
    assert of.is_crowded
    of.begin()
    assert not of.is_crowded
    of.follow((r.rows[few], s.rows[few]))
    assert not of.is_crowded


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
    tests = of.tests(r.rows, s.rows)
    if value is None:
        assert (tests.tests, tests.ways, tests.others) == ([], [[]], of.conjuncts)
        return
    assert not tests.others
    who, row = (each.reshape(-1) for each in np.meshgrid(range(5), range(4), indexing="ij"))
    found = np.any([all_hold([*tests.tests, *way], who, row) for way in tests.ways], axis=0)
    for i, j, holds in zip(who.tolist(), row.tolist(), found.tolist(), strict=True):
        a, c = left[i][0], right[j][0]
        assert holds == (a is not None and c is not None and value(a, c)), (i, j)
