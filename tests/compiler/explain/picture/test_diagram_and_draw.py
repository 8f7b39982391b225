"""The one writer of pictures: every box and every word is within the picture, in whichever
direction arrows point."""

from __future__ import annotations

import random
import re
from itertools import combinations
from xml.etree import ElementTree

import pytest

from seustream.compiler.explain.picture.diagram import (
    Arrow,
    Bars,
    Box,
    Diagram,
    Legend,
    of_trees,
    picture,
)
from seustream.compiler.explain.text import TreeNode

SVG = "{http://www.w3.org/2000/svg}"


def drawn(fact: Diagram | Bars) -> ElementTree.Element:
    return ElementTree.fromstring(picture(fact))


def edges(of: ElementTree.Element) -> tuple[float, float, float, float]:
    x, y, width, height = (float(of.attrib[a]) for a in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


def numbers(path: ElementTree.Element) -> list[tuple[float, float]]:
    """Returns the points of a path that consists of coordinate pairs only."""
    found = [float(n) for n in re.findall(r"-?\d+\.?\d*", path.attrib["d"].split("H")[0])]
    return list(zip(found[::2], found[1::2], strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_random_diagrams_are_whole_and_nothing_overlaps(seed: int) -> None:
    chance = random.Random(seed)
    boxes = [
        Box(f"b{n}", chance.randrange(4), "x" * chance.randrange(1, 20), "y" * chance.randrange(20),
            flat=chance.random() < 0.5)
        for n in range(chance.randrange(1, 14))
    ]  # fmt: skip
    arrows = [
        Arrow(*(chance.choice(boxes).key for _ in range(2)), "w" * chance.randrange(9), key=f"a{n}")
        for n in range(chance.randrange(12))
    ]
    root = drawn(Diagram("t", boxes, arrows, "about", ["one", "two"], [Legend("sign", "done")]))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    groups = {g.attrib["id"]: g.find(f"{SVG}rect") for g in root.iter(f"{SVG}g")}
    layer = {box.key: box.layer for box in boxes}
    ahead = {a.key for a in arrows if a.words and layer[a.source] < layer[a.target]}
    assert set(groups) == {box.key for box in boxes} | ahead
    places = {}
    for key, rectangle in groups.items():
        assert rectangle is not None
        places[key] = edges(rectangle)
        left, top, right, bottom = places[key]
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
    for (one, a), (other, b) in combinations(places.items(), 2):
        apart = a[2] <= b[0] + 0.2 or b[2] <= a[0] + 0.2 or a[3] <= b[1] or b[3] <= a[1]
        assert apart, f"{one} lies on {other}"
    assert sum("edge" in p.attrib["class"] for p in root.iter(f"{SVG}path")) >= len(arrows)


def test_arrows_back_go_around_their_boxes_on_both_sides() -> None:
    boxes = [Box("a", 0, "a"), Box("b", 1, "b")]
    arrows = [Arrow("a", "b", "on"), Arrow("b", "b", "take"), Arrow("b", "b", "ignore", "crossed")]
    root = drawn(Diagram("t", boxes, arrows))
    (box,) = (g.find(f"{SVG}rect") for g in root.iter(f"{SVG}g") if g.attrib["id"] == "b")
    assert box is not None
    _, top, _, bottom = edges(box)
    loops = [p for p in root.iter(f"{SVG}path") if "C" in p.attrib["d"]][1:]
    above, below = (numbers(loop) for loop in loops)
    assert min(y for _, y in above) < top == above[-1][1]
    assert max(y for _, y in below) > bottom == below[-1][1]
    height = float(root.attrib["height"])
    assert all(0 < y < height for _, y in (*above, *below))
    assert {"take", "ignore"} <= {text.text for text in root.iter(f"{SVG}text")}


def test_trees_keep_the_order_of_their_nodes() -> None:
    leaves = tuple(TreeNode(1, n + 1, "", "leaf", str(n), ()) for n in range(5))
    trees = [TreeNode(1, 1, "", "root", "", leaves[:3]), TreeNode(2, 1, "", "root", "", leaves[3:])]
    root = drawn(of_trees("T", trees))
    tops = {g.attrib["id"]: edges(r)[1] for g in root.iter(f"{SVG}g") if (r := g.find(f"{SVG}rect")) is not None}  # fmt: skip
    order = ["node-0-0", "node-0-1", "node-0-2", "node-1-0", "node-1-1"]
    assert sorted(order, key=tops.__getitem__) == order
    assert tops["node-0"] == tops["node-0-1"]


def test_bars_are_as_long_as_their_numbers() -> None:
    rows = [(("1", "a"), (10.0, 5.0), "10 / 5"), (("2", "b"), (0.0, 2.5), "2.5")]
    root = drawn(Bars("t", ("time", "way"), ("predicted", "actual"), rows))
    found = [r for r in root.iter(f"{SVG}rect") if r.attrib["class"] in ("predicted", "actual")]
    lengths = [float(r.attrib["width"]) for r in found[2:]]  # the first two belong to the heads
    assert [length / lengths[0] for length in lengths] == [1, 0.5, 0, 0.25]
    assert picture(Bars("t", (), ("predicted",), [])).startswith("<svg")


def test_empty_pictures() -> None:
    assert picture(Diagram("t", [], [], heads=["no queries"])).startswith("<svg")
    assert drawn(Diagram("t", [], [])).tag == f"{SVG}svg"


def test_words_cannot_leave_the_text() -> None:
    root = drawn(Diagram("<t>", [Box('k"', 0, "<a>&", "\x1b[0m", hint="\x00")], [], "<b>"))
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts == ["<t>", "<b>", "<a>&", "␛[0m"]
