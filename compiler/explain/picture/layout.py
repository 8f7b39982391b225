"""Places the boxes of a layered graph from left to right, with few crossings and no overlaps.

An edge that passes a layer gets a place of its own there, so that it runs between the boxes, not
through them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

_ROUNDS = 12
_GAP = 14.0
_LANE = 8.0


@dataclass(slots=True)
class PicturePlace:
    """A box, or an edge as it passes a layer (`key` is None then)."""

    key: str | None
    layer: int
    height: float
    y: float = 0.0  # of its middle
    before: list[PicturePlace] = field(default_factory=list)
    after: list[PicturePlace] = field(default_factory=list)

    @property
    def gap(self) -> float:
        return _GAP if self.key is not None else _LANE


@dataclass(slots=True)
class PictureLayout:
    """Boxes by key, and for each edge the places it goes through, its ends included."""

    boxes: dict[str, PicturePlace]
    routes: list[list[PicturePlace]]
    height: float


def lay_out(
    boxes: Sequence[tuple[str, int, float]], edges: Sequence[tuple[str, str]]
) -> PictureLayout:
    """Lays out boxes, given as (key, layer, height); edges run from a lower to a higher layer."""
    places = {key: PicturePlace(key, layer, height) for key, layer, height in boxes}
    layers: list[list[PicturePlace]] = [
        [] for _ in range(max((b[1] for b in boxes), default=-1) + 1)
    ]
    connected = {end for edge in edges for end in edge}
    for key, place in places.items():
        if key in connected:
            layers[place.layer].append(place)
    routes = []
    for source, target in edges:
        route = [places[source]]
        for layer in range(places[source].layer + 1, places[target].layer):
            lane = PicturePlace(None, layer, 0.0)
            layers[layer].append(lane)
            route.append(lane)
        route.append(places[target])
        for one, other in pairwise(route):
            one.after.append(other)
            other.before.append(one)
        routes.append(route)
    layers = _ordered(layers)
    _stand(layers)
    for key, place in places.items():
        if key not in connected:  # not drawn yet, so it goes to the end of its layer
            below = [other.y + other.height / 2 + _GAP for other in layers[place.layer]]
            place.y = max(below, default=0.0) + place.height / 2
            layers[place.layer].append(place)
    return PictureLayout(places, routes, _from_the_top(layers))


# --- order within the layers --------------------------------------------------


def _ordered(layers: list[list[PicturePlace]]) -> list[list[PicturePlace]]:
    """Sorts layers by the middle of their neighbours, back and forth, and keeps the best round."""
    best, fewest = [list(layer) for layer in layers], _crossings(layers)
    for number in range(_ROUNDS):
        backwards = number % 2 == 1
        for layer in reversed(layers) if backwards else layers:
            position = {id(place): i for other in layers for i, place in enumerate(other)}

            def middle(
                place: PicturePlace, at: dict[int, int] = position, back: bool = backwards
            ) -> float:
                beside = place.after if back else place.before
                if not beside:
                    return float(at[id(place)])
                return sum(at[id(other)] for other in beside) / len(beside)

            layer.sort(key=middle)
        crossed = _crossings(layers)
        if crossed < fewest:
            best, fewest = [list(layer) for layer in layers], crossed
    return best


def _crossings(layers: list[list[PicturePlace]]) -> int:
    """Counts the pairs of edges between neighbouring layers that cross."""
    found = 0
    for left, right in pairwise(layers):
        position = {id(place): i for i, place in enumerate(right)}
        ends: list[int] = []
        for place in left:
            mine = [position[id(other)] for other in place.after]
            found += sum(end > one for one in mine for end in ends)
            ends += mine
    return found


# --- heights ------------------------------------------------------------------


def _stand(layers: list[list[PicturePlace]]) -> None:
    """Moves every place as near to the middle of its neighbours as the order allows."""
    for layer in layers:
        y = 0.0
        for place in layer:
            place.y = y + place.height / 2
            y += place.height + place.gap
    for number in range(_ROUNDS):
        back = number % 2 == 1
        for layer in reversed(layers) if back else layers:
            wanted = []
            for place in layer:
                beside = (place.after if back else place.before) or [place]
                wanted.append(sum(other.y for other in beside) / len(beside))
            for place, y in zip(layer, _apart(layer, wanted), strict=True):
                place.y = y


def _from_the_top(layers: list[list[PicturePlace]]) -> float:
    """Moves everything so that it begins at 0; returns the total height."""
    everywhere = [place for layer in layers for place in layer]
    top = min((p.y - p.height / 2 for p in everywhere), default=0.0)
    for place in everywhere:
        place.y -= top
    return max((p.y + p.height / 2 for p in everywhere), default=0.0)


def _apart(layer: Sequence[PicturePlace], wanted: Sequence[float]) -> list[float]:
    """Returns the heights nearest to the wanted ones at which nothing overlaps.

    Measured from where each place would be if all were packed, the heights may only rise; runs that
    would fall are pooled at their mean.
    """
    packed, at = [], 0.0
    for one, other in zip([None, *layer], layer, strict=False):
        if one is not None:
            at += one.height / 2 + max(one.gap, other.gap) + other.height / 2
        packed.append(at)
    pools: list[tuple[float, int]] = []
    for want, offset in zip(wanted, packed, strict=True):
        mean, count = want - offset, 1
        while pools and pools[-1][0] > mean:
            before, many = pools.pop()
            mean, count = (before * many + mean * count) / (many + count), many + count
        pools.append((mean, count))
    shifts = [mean for mean, count in pools for _ in range(count)]
    return [offset + shift for offset, shift in zip(packed, shifts, strict=True)]
