"""The ids of Fig. 5, 9 and 15 and of the example of section 5."""

from __future__ import annotations

import pytest

from seustream.compiler.apas.layout import Structure, lay_out, number
from seustream.compiler.apas.tree import Node, group, leaf
from seustream.compiler.apas.types import DOUBLE, INTEGER, STRING


def structure(name: str, leaves: int, *children: Structure) -> Structure:
    return Structure(group(name, *(leaf(f"l{i}", INTEGER) for i in range(leaves))), list(children))


def ids(tree: Node) -> list[int | None]:
    return [one.id for _, one in tree.leaves()]


@pytest.mark.acceptance(30)
def test_figure_5() -> None:
    tree = group("I", leaf("name", STRING), group("position", leaf("x", DOUBLE), leaf("y", DOUBLE)))
    lay_out(Structure(tree))
    assert str(tree) == "I{name STRING 2, position{x DOUBLE 3, y DOUBLE 4}}"
    assert tree.at(("position", 1)) is tree.at(("position", "y"))


@pytest.mark.acceptance(30)
@pytest.mark.parametrize(
    ("start", "want", "length"),
    [
        (1, [range(1, 5), range(5, 7), range(7, 15), range(5, 10)], 15),
        (2, [range(2, 6), range(6, 8), range(8, 16), range(6, 11)], 16),
    ],
)
def test_figure_9(start: int, want: list[range], length: int) -> None:
    second = structure("2", 8)
    first, third = structure("1", 2, second), structure("3", 5)
    new = structure("new", 4, first, third)
    assert number(start, new) == length
    assert [ids(s.tree) for s in (new, first, second, third)] == [list(each) for each in want]
