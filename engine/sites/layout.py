"""The settings that all nodes of one join share before they start."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from seustream.engine.sites.costs import UnitCosts
from seustream.engine.sites.errors import BadCosts, BadQuery
from seustream.engine.sites.messages import Epoch
from seustream.engine.sites.model import EquiJoin
from seustream.engine.sites.synopsis import Exact, SynopsisKind

RETRY_LIMIT = 5
MAX_PENDING = 1024
Strategy: TypeAlias = Literal["planned", "auto"]


@dataclass(frozen=True)
class SiteLayout:
    """Node k is the site of stream k. The query node and other candidates for the centre follow, or
    are sites as well. With the strategy `auto`, rows go to a hub where planned joins would cost
    more (seustream.engine.sites.account)."""

    join: EquiJoin
    costs: UnitCosts
    query_node: int
    planner: str = "auto"
    candidates: tuple[int, ...] = ()
    deliver: bool = True
    kind: SynopsisKind = field(default_factory=Exact)
    retry: float = 20.0
    retry_limit: int = RETRY_LIMIT
    max_pending: int = MAX_PENDING
    strategy: Strategy = "planned"
    first_centre: int | None = None

    def __post_init__(self) -> None:
        if not self.candidates:
            object.__setattr__(self, "candidates", tuple(range(len(self.join))))
        needed = max(len(self.join) - 1, self.query_node, *self.candidates) + 1
        if len(self.costs) < needed:
            raise BadCosts(f"unit costs for {len(self.costs)} nodes, there are {needed}")
        if self.strategy not in get_args(Strategy):
            raise BadQuery(f"there is no strategy {self.strategy!r}", "planned or auto")

    @property
    def nodes(self) -> tuple[int, ...]:
        return tuple(sorted({*range(len(self.join)), self.query_node, *self.candidates}))

    @property
    def hubs(self) -> tuple[int, ...]:
        """The nodes that all rows can reach, and from which results can reach the query node."""
        w, sites = self.costs.w, range(len(self.join))
        return tuple(
            h
            for h in sorted({*sites, self.query_node})
            if math.inf not in (w[h][self.query_node], *(w[k][h] for k in sites))
        )

    @property
    def sources(self) -> int:
        return len(self.join)

    @property
    def first_epoch(self) -> Epoch:
        if self.first_centre is not None:
            return 1, self.first_centre
        return 1, self.costs.centre(range(len(self.join)), self.candidates)
