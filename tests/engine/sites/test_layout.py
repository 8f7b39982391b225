"""The agreement between the nodes of a join: the places of roles, and layouts that are refused."""

from __future__ import annotations

import math

import pytest

from seustream.engine.sites.costs import UnitCosts
from seustream.engine.sites.errors import BadCosts, BadQuery
from seustream.engine.sites.layout import SiteLayout
from seustream.engine.sites.model import EquiJoin

JOIN = EquiJoin.on_one_key([5, 5, 5])
# Node 1 is the nearest to all sites; of nodes 0 and 2, node 2 is nearer.
COSTS = UnitCosts.of([[0, 2, 6, 1], [2, 0, 1, 1], [6, 1, 0, 1], [1, 1, 1, 0]])


def test_the_centre_begins_where_it_costs_least() -> None:
    assert SiteLayout(JOIN, COSTS, 3).first_epoch == (1, 1)
    assert SiteLayout(JOIN, COSTS, 3, candidates=(0, 2)).first_epoch == (1, 2)
    assert SiteLayout(JOIN, COSTS, 3, first_centre=0).first_epoch == (1, 0)
    assert SiteLayout(JOIN, COSTS, 3).nodes == (0, 1, 2, 3)


def test_all_rows_can_reach_a_hub_and_it_the_query_node() -> None:
    inf = math.inf
    assert SiteLayout(JOIN, COSTS, 3).hubs == (0, 1, 2, 3)
    far = UnitCosts.of([[0, 2, 6, inf], [2, 0, 1, 1], [inf, 1, 0, 1], [1, 1, 1, 0]])
    assert SiteLayout(JOIN, far, 3).hubs == (1, 2)


def test_what_is_no_layout_is_refused() -> None:
    with pytest.raises(BadCosts, match="for 4 nodes, there are 5"):
        SiteLayout(JOIN, COSTS, 4)
    with pytest.raises(BadQuery, match="no strategy 'best'"):
        SiteLayout(JOIN, COSTS, 3, strategy="best")  # type: ignore[arg-type]
