"""Layouts of three sites, the query node, and a centre on a node of its own."""

from __future__ import annotations

import random

from seustream.engine.sites.layout import SiteLayout
from seustream.engine.sites.model import EquiJoin
from tests.engine.sites.running import costs

QUERY_NODE, CENTRE = 3, 4


def layout(windows: list[float], **options: object) -> SiteLayout:
    of = costs(random.Random(7), 5)
    values: dict[str, object] = {"candidates": (CENTRE, 0), "retry": 40.0} | options
    # The first centre is the cheapest candidate; the costs make this the node of its own.
    w = [
        [0 if a == b else 1 if CENTRE in (a, b) else c for b, c in enumerate(row)]
        for a, row in enumerate(of.w)
    ]
    return SiteLayout(EquiJoin.on_one_key(windows), type(of).of(w), QUERY_NODE, **values)  # type: ignore[arg-type]
