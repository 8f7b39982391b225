"""Attribute trees: schemas as nested lists, and the first place where two of them differ."""

from __future__ import annotations

import pytest

from seustream.compiler.apas.tree import (
    SchemaRefused,
    first_difference,
    from_lists,
    group,
    joined,
    leaf,
    to_lists,
)
from seustream.compiler.language import types as t
from tests.compiler.apas.schemas import SECTION_5


@pytest.mark.parametrize(
    ("lists", "reason"),
    [
        ([["ts", "INTEGER"]], "ts is reserved"),
        ([["a", "INTEGER"], ["a", "DOUBLE"]], "two attributes a"),
        ([["a", "FLOAT"]], "no type 'FLOAT'"),
        ([["1a", "DOUBLE"]], "no label"),
        ([["a"]], "neither"),
        ("a INTEGER", "want a list"),
        ([["a", [["b", 3]]]], "want a list"),
    ],
)
def test_schemas_no_stream_can_have(lists: object, reason: str) -> None:
    with pytest.raises(SchemaRefused, match=reason):
        from_lists("S", lists)


def test_schemas_as_lists() -> None:
    lists = [["a", "INTEGER"], ["g", [["ts", "STRING"]]]]
    assert to_lists(from_lists("S", lists)) == lists
    assert from_lists("S", []).children == []
    assert SECTION_5["I"].tree.paths == [("a",), ("b",), ("c", "p"), ("c", "q")]


def test_nodes_by_label_and_by_place() -> None:
    tree = from_lists("S", [["a", "INTEGER"], ["g", [["x", "DOUBLE"], ["y", "STRING"]]]])
    assert tree.at(("g", "y")) is tree.at((1, 1))
    assert tree.at(()) is tree
    for nowhere in (("b",), ("g", 2), (-1,), ("a", "x"), ("g", "x", 0)):
        assert tree.at(nowhere) is None
    assert str(tree) == "S{a INTEGER, g{x DOUBLE, y STRING}}"


def test_a_copy_is_apart() -> None:
    tree = from_lists("S", [["g", [["x", "DOUBLE"]]]])
    copy = tree.copy("T")
    found = copy.at(("g", "x"))
    assert found is not None
    found.id = 7
    assert str(copy) == "T{g{x DOUBLE 7}}"
    assert str(tree) == "S{g{x DOUBLE}}"


@pytest.mark.parametrize(
    ("one", "other", "where"),
    [
        ([["a", "INTEGER"]], [["a", "INTEGER"]], None),
        ([["a", "INTEGER"]], [["b", "INTEGER"]], "under the root: a against b"),
        ([["a", "INTEGER"]], [["a", "DOUBLE"]], "a: INTEGER against DOUBLE"),
        ([["g", [["x", "STRING"]]]], [["g", [["x", "DOUBLE"]]]], "g.x: STRING against DOUBLE"),
        ([["g", [["x", "STRING"]]]], [["g", []]], "under g: 1 attributes against 0"),
        ([], [["a", "INTEGER"]], "under the root: 0 attributes against 1"),
    ],
)
def test_two_schemas_differ_where_they_first_do(
    one: list[object], other: list[object], where: str | None
) -> None:
    assert first_difference(from_lists("S", one), from_lists("T", other)) == where


def test_the_schema_of_two_has_the_wider_types() -> None:
    one = group("S", leaf("a", t.INT), group("g", leaf("x", t.DOUBLE), leaf("s", t.VARCHAR)))
    other = group("T", leaf("a", t.BIGINT), group("g", leaf("x", t.REAL), leaf("s", t.VARCHAR)))
    assert first_difference(one, other) is None
    assert joined(one, other, "new").types == [t.BIGINT, t.DOUBLE, t.VARCHAR]
    assert joined(one, other, "new").paths == one.paths
    assert one.types == [t.INT, t.DOUBLE, t.VARCHAR]


def test_nested_without_end_is_refused() -> None:
    lists: list[object] = [["x", "INTEGER"]]
    for _ in range(300):
        lists = [["g", lists]]
    with pytest.raises(SchemaRefused):
        from_lists("S", lists)
