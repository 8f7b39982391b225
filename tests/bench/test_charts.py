"""Charts: where points are drawn, what is left out, and that they are well-formed."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from bench.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, lines


def points(svg: str) -> list[list[tuple[float, float]]]:
    return [
        [(float(a), float(b)) for a, b in re.findall(r"([\d.]+),([\d.]+)", line)]
        for line in re.findall(r'points="([^"]*)"', svg)
    ]


def test_points_are_where_their_values_are() -> None:
    svg = lines("a < b", "x", "y", [3, 5, 8], {"one": [0, 50, 100], "two": [100, 100, 100]})
    ElementTree.fromstring(svg)
    one, two = points(svg)
    assert one[0] == (LEFT, HEIGHT - BOTTOM)
    assert one[-1] == (WIDTH - RIGHT, TOP)
    assert one[1][1] == (TOP + HEIGHT - BOTTOM) / 2
    assert {y for _, y in two} == {TOP}
    assert "a &lt; b" in svg


def test_a_long_name_has_room_beside_the_lines() -> None:
    (short,), (long,) = (points(lines("t", "x", "y", [0, 1], {n: [0, 1]})) for n in ("a", "m" * 24))
    assert short[-1][0] == WIDTH - RIGHT
    assert long[-1][0] <= WIDTH - 44 - 24 * 7


def test_logarithms() -> None:
    svg = lines("t", "x", "y", [0, 1, 2], {"one": [1, 10, 100], "gap": [0, 10, 10]}, True)
    one, gap = points(svg)
    assert one[1][1] == pytest.approx((TOP + HEIGHT - BOTTOM) / 2, abs=0.1)
    assert len(gap) == 2


@pytest.mark.parametrize("values", [[5.0], [0.0], [-3.0]])
@pytest.mark.parametrize("logarithmic", [False, True])
def test_few_values(values: list[float], logarithmic: bool) -> None:
    ElementTree.fromstring(lines("t", "x", "y", [1], {"one": values}, logarithmic))


def test_no_two_lines_look_alike() -> None:
    svg = lines("t", "x", "y", [0, 1], {str(k): [k, k] for k in range(16)})
    looks = re.findall(r'<polyline class="([^"]*)"', svg)
    assert len(set(looks)) == 16
