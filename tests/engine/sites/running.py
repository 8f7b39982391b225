"""Drives simulated runs: feeds blocks, injects faults and crashes, collects results."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

from seustream.engine.sites.centre import Centre
from seustream.engine.sites.costs import UnitCosts
from seustream.engine.sites.keys import Key
from seustream.engine.sites.layout import SiteLayout
from seustream.engine.sites.model import BlockRows, Entry, EquiJoin, SiteRow
from seustream.engine.sites.site import Site
from seustream.engine.sites.synopsis import SynopsisKind
from tests.engine.sites.network import NO_FAULTS, LineFaults, SiteNetwork
from tests.engine.sites.oracle import Combination, answer, random_blocks, random_windows


def costs(chance: random.Random, nodes: int) -> UnitCosts:
    return UnitCosts.of(
        [[0 if a == b else chance.randint(1, 10) for b in range(nodes)] for a in range(nodes)]
    )


def network(
    join: EquiJoin,
    seed: int = 0,
    faults: LineFaults = NO_FAULTS,
    planner: str = "auto",
    **options: object,
) -> SiteNetwork:
    n = len(join)
    layout = SiteLayout(join, costs(random.Random(seed), n + 1), n, planner)
    return SiteNetwork(replace(layout, **options), faults, seed)  # type: ignore[arg-type]


def found(net: SiteNetwork, member: int = 0) -> list[Combination]:
    return sorted(result.tids for m, result in net.results if m == member)


def feed(net: SiteNetwork, blocks: Sequence[BlockRows], lockstep: bool = False) -> None:
    """Feeds all blocks in order; with `lockstep` each is done before the next comes."""
    for block in blocks:
        net.submit(block)
        if lockstep:
            net.run()
        else:
            for _ in range(net.mail.chance.randint(0, 12)):
                if not net.idle:
                    net.step()
    net.run(most=60_000)


INF = math.inf


def block(stream: int, tau: float, *keys: object, t: float | None = None) -> BlockRows:
    return BlockRows(stream, tau, tuple(SiteRow((key,), tau if t is None else t) for key in keys))


def sites(net: SiteNetwork) -> list[Site]:
    return [node.site for node in net.nodes.values() if node.site is not None]


def centres(net: SiteNetwork) -> list[Centre]:
    return [node.centre for node in net.nodes.values() if node.centre is not None]


def leader(net: SiteNetwork) -> Centre:
    return max((centre for centre in centres(net) if centre.active), key=lambda c: c.epoch)


def rebuilds(net: SiteNetwork) -> int:
    return sum(centre.counters["rebuilds"] for centre in centres(net))


def stormy(
    seed: int, crash: float = 0.0, kind: SynopsisKind | None = None, strategy: str = "planned"
) -> SiteNetwork:
    """Runs a random case, all of it drawn from the seed. Raises if it differs from the answer."""
    chance = random.Random(seed)
    n = chance.choice([2, 3, 3, 4])
    windows, blocks = random_windows(chance, n), random_blocks(chance, n)
    faults = LineFaults(
        chance.choice([0, 5, 30, 60]), chance.choice([0, 0.1, 0.3]), chance.choice([0, 0.2])
    )
    options: dict[str, object] = {"strategy": strategy}
    options |= {} if kind is None else {"kind": kind}
    net = network(EquiJoin.on_one_key(windows), seed, faults, **options)
    for one in blocks:
        net.submit(one)
        for _ in range(net.mail.chance.randint(0, 12)):
            if not net.idle:
                net.step()
        if chance.random() < crash:
            at = max(site.epoch for site in sites(net))[1]
            net.crash_centre(at, net.now + chance.choice([0, 50, 400]))
        if crash and chance.random() < crash:
            net.set_costs(costs(chance, n + 1), [chance.randrange(n)])
    net.run(most=60_000)
    assert found(net) == answer(windows, blocks), seed
    return net


def of_values(values: dict[Key, int]) -> dict[Entry, int]:
    """Makes a synopsis vector over one class from plain values."""
    return {(value,): count for value, count in values.items() if count}
