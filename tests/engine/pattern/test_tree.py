"""The tree by which a sequence is searched: examples, and laws that hold for random conditions."""

from __future__ import annotations

import itertools
import random

import pytest

from seustream.engine.pattern.links import PatternLink, link
from seustream.engine.pattern.tree import SequenceTree
from seustream.hdl.isa import Condition
from tests.engine.pattern.generate import query_of


def tree_of(where: str, count: int, by: str = "") -> SequenceTree:
    names = "abcdef"[:count]
    sequence = "; ".join(f"ANY {name}" for name in names)
    text = f"PATTERN {sequence}{by}{f' WHERE {where}' * bool(where)} WITHIN 5 ms RETURN *"
    query = query_of(text, bounded=True)
    links: list[PatternLink] = [one for c in query.conjuncts if (one := link(c)) is not None]
    return SequenceTree(query, links)


@pytest.mark.parametrize(
    ("where", "parents"),
    [
        ("", [1, 2, 3, -1]),
        ("a.x < b.x AND b.x < c.x AND c.x < d.x", [1, 2, 3, -1]),
        ("a.x < d.x AND b.x < d.x AND c.y < d.y", [3, 3, 3, -1]),
        ("a.x < b.x AND a.x < c.x AND a.y < d.y", [3, 0, 0, -1]),
        ("a.x = b.x AND a.x = c.x AND a.x = d.x", [1, 2, 3, -1]),  # equal along the sequence
        ("a.x = b.x AND a.x = c.x AND a.x = d.x AND a.y < d.y", [3, 2, 3, -1]),
        ("a.x = d.x AND a.y > b.y", [3, 0, 3, -1]),
        ("a.x = d.x AND b.x < c.x", [3, 2, 3, -1]),
        ("a.x = c.x AND b.x < d.x", [2, 2, 3, -1]),  # the second would cross the first
        ("a.x = d.x AND a.y < b.y AND b.y < d.y", [3, 0, 3, -1]),  # what is equal comes first
        ("a.x <> d.x", [1, 2, 3, -1]),  # most events differ
    ],
)
def test_what_hangs_on_what(where: str, parents: list[int]) -> None:
    assert tree_of(where, 4).parents == parents


def test_keys_are_equal_along_the_edges() -> None:
    tree = tree_of("a.x < c.x", 3, " PARTITION BY k")
    equal = [(one.one, one.other) for one in tree.links if one.op is Condition.EQ]
    assert sorted(equal) == [((0, None), (2, None)), ((1, None), (2, None))]
    assert tree.parents == [2, 2, -1]


def test_what_is_later_is_bound_first() -> None:
    where = "a.x < e.x AND c.x < a.x AND d.x < c.x AND a.y < c.y"
    assert tree_of(where, 5).parents == [4, 2, 0, 2, -1]
    assert tree_of(where, 5).order == [4, 0, 2, 3, 1]


@pytest.mark.parametrize("seed", range(20))
def test_random_conditions(seed: int) -> None:
    """All elements hang on the last one, no edges cross, and equalities follow from the links."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    for _ in range(50):
        count = chance.randint(1, 6)
        pairs = [*itertools.combinations("abcdef"[:count], 2)]
        some = [chance.choice(pairs) for _ in range(chance.randint(0, 5) * bool(pairs))]
        equal = [(a, b) for a, b in some if chance.random() < 0.6]
        parts = [f"{a}.x {'=' if (a, b) in equal else chance.choice('<>')} {b}.x" for a, b in some]
        tree = tree_of(" AND ".join(parts), count)
        edges = [tuple(sorted(pair)) for pair in enumerate(tree.parents[:-1])]
        assert not any(a < c < b < d for (a, b), (c, d) in itertools.product(edges, repeat=2))
        for element in range(count):
            way = element
            for _ in range(count):
                way = way if tree.parents[way] < 0 else tree.parents[way]
            assert way == count - 1
        known = [(one.one[0], one.other[0]) for one in tree.links if one.op is Condition.EQ]
        assert classes(count, known) == classes(count, [("abcdef".index(a), "abcdef".index(b)) for a, b in equal])  # fmt: skip
        for one in tree.links:
            a, b = one.one[0], one.other[0]
            assert tree.parents[b] != a or b > a  # what hangs on it is found from it


def classes(count: int, equal: list[tuple[int, int]]) -> list[int]:
    """Returns for each element the least one that has to be equal."""
    least = [*range(count)]
    for _ in range(count):
        for a, b in equal:
            least[a] = least[b] = min(least[a], least[b])
    return least
