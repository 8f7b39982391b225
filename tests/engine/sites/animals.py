"""The animal-tracking data set of the specification: three sites, ids 1 to 10."""

from __future__ import annotations

import math

from seustream.engine.sites.costs import UnitCosts
from seustream.engine.sites.model import BlockRows, EquiJoin, SiteRow, counts
from seustream.engine.sites.synopsis import Synopses

COSTS = UnitCosts.of([[0, 18, 25], [18, 0, 20], [25, 20, 0]])
DATA = (
    ((1, 0), (3, 0), (4, 0), (4, 1), (5, 1), (9, 1)),
    ((2, 0), (3, 1), (5, 0), (10, 1), (10, 1)),
    ((2, 0), (3, 0), (4, 1), (5, 1), (7, 1), (10, 0)),
)
FIRST, SECOND = (3, 4, 8), (3, 5, 8)


def vector(of: dict[tuple[object, ...], int]) -> list[int]:
    return [of.get((key,), 0) for key in range(1, 11)]


def block(keys: tuple[int, ...]) -> dict[tuple[int | float | str | bytes, ...], int]:
    return counts((key,) for key in keys)


def join(window: float = math.inf) -> EquiJoin:
    return EquiJoin.on_one_key([math.inf, window, math.inf])


def synopses() -> Synopses:
    known = Synopses(join())
    for site, rows in zip(known.sites, DATA, strict=True):
        site.add(counts((key,) for key, _ in rows))
    return known


def blocks() -> list[BlockRows]:
    """Returns the data as blocks at times 0 and 1, then the two blocks of the second site."""
    found = [
        BlockRows(k, t, tuple(SiteRow((key,), t) for key, when in rows if when == t))
        for t in (0, 1)
        for k, rows in enumerate(DATA)
    ]
    for tau, keys in ((2, FIRST), (3, SECOND)):
        found.append(BlockRows(1, tau, tuple(SiteRow((key,), tau) for key in keys)))
    return found
