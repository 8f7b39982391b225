"""Drives simulated runs: blocks in, weather and mishaps as they come, results out."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from engine.multijoin.costs import UnitCosts
from engine.multijoin.model import BlockRows, Join
from engine.multijoin.node import Layout
from engine.multijoin.transport import CLEAR, Network, Weather
from tests.engine.multijoin.oracle import Combination


def costs(chance: random.Random, nodes: int) -> UnitCosts:
    return UnitCosts.of(
        [[0 if a == b else chance.randint(1, 10) for b in range(nodes)] for a in range(nodes)]
    )


def network(
    join: Join, seed: int = 0, weather: Weather = CLEAR, planner: str = "auto", **options: object
) -> Network:
    n = len(join)
    layout = Layout(join, costs(random.Random(seed), n + 1), n, planner)
    return Network(replace(layout, **options), weather, seed)  # type: ignore[arg-type]


def found(net: Network, member: int = 0) -> list[Combination]:
    return sorted(result.tids for m, result in net.results if m == member)


def feed(net: Network, blocks: Sequence[BlockRows], lockstep: bool = False) -> None:
    """All blocks, in order; in lockstep each is done before the next comes."""
    for block in blocks:
        net.submit(block)
        if lockstep:
            net.run()
        else:
            for _ in range(net.chance.randint(0, 12)):
                if not net.idle:
                    net.step()
    net.run()
