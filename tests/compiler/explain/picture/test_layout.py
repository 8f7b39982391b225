"""Positions of boxes and edges: few crossings, and no edge through a box."""

from __future__ import annotations

from seustream.compiler.explain.picture.layout import lay_out


def test_layout_orders_layers_so_that_edges_do_not_cross() -> None:
    nodes = [("a", 0, 10.0), ("b", 0, 10.0), ("c", 1, 10.0), ("d", 1, 10.0)]
    layout = lay_out(nodes, [("a", "d"), ("b", "c")])
    assert layout.boxes["a"].y < layout.boxes["b"].y
    assert layout.boxes["d"].y < layout.boxes["c"].y


def test_an_edge_over_a_layer_passes_between_its_boxes() -> None:
    nodes = [("a", 0, 10.0), ("b", 1, 40.0), ("c", 2, 10.0)]
    layout = lay_out(nodes, [("a", "b"), ("b", "c"), ("a", "c")])
    (route,) = [route for route in layout.routes if len(route) == 3]
    lane, box = route[1], layout.boxes["b"]
    assert lane.key is None
    assert abs(lane.y - box.y) >= box.height / 2


def test_a_box_without_edges_goes_to_the_end_of_its_layer() -> None:
    layout = lay_out([("alone", 1, 10.0), ("a", 0, 10.0), ("b", 1, 10.0)], [("a", "b")])
    assert layout.boxes["alone"].y > layout.boxes["b"].y
