"""The time that the centre takes to order one block's visits, by planner and number of sites."""

from __future__ import annotations

import time
from collections.abc import Callable

from seustream.commands.bench import Measurement
from seustream.engine.sites.model import EquiJoin, counts
from seustream.engine.sites.planner import (
    Order,
    Task,
    branch_and_bound,
    enumerate_orders,
    smjh,
    subset_dp,
    two_pass,
)
from seustream.engine.sites.synopsis import Synopses
from tests.engine.sites.lockstep import setting

TITLE = "planners: milliseconds to plan one block, filter and sizes included, 3 to 12 sites"

SITES = range(3, 13)
MOST = {"all orders": 8, "branch and bound": 9}
PLANNERS: dict[str, Callable[[Task], Order]] = {
    "all orders": enumerate_orders,
    "branch and bound": branch_and_bound,
    "subset_dp": subset_dp,
    "smjh": smjh,
    "two_pass": two_pass,
}
BLOCKS = 20


def measure() -> Measurement:
    rows: list[tuple[object, ...]] = []
    times: dict[str, dict[int, float]] = {name: {} for name in PLANNERS}
    dearer: dict[str, float] = {"smjh": 0.0, "two_pass": 0.0}
    for n in SITES:
        best = 0.0
        costs: dict[str, float] = {}
        for name, planner in PLANNERS.items():
            if n > MOST.get(name, n):
                continue
            begun = time.process_time()
            costs[name] = sum(planner(task).cost for task in _tasks(n))
            times[name][n] = (time.process_time() - begun) * 1000 / BLOCKS
        best = costs["subset_dp"]
        for name in dearer:
            dearer[name] += costs[name] / best / len(SITES)
        shown = [f"{times[name][n]:.2f}" if n in times[name] else "-" for name in PLANNERS]
        rows.append((n, *shown))
    return Measurement(
        ("sites", *PLANNERS),
        rows,
        {
            "time, subset_dp over branch and bound, 9 sites": times["subset_dp"][9]
            / times["branch and bound"][9],
            "time, two_pass over subset_dp, 12 sites": times["two_pass"][12]
            / times["subset_dp"][12],
            "cost, smjh over best, mean": dearer["smjh"],
            "cost, two_pass over best, mean": dearer["two_pass"],
        },
        f"{BLOCKS} blocks for each number of sites, stores of ten units of the paper's setting, "
        "results delivered; - where a planner stops",
    )


def _tasks(n: int) -> list[Task]:
    """Returns blocks of the first site after ten units, each with synopses of its own."""
    found = []
    for s in range(BLOCKS):
        of = setting(1000 * n + s, n, units=11)
        known = Synopses(EquiJoin.on_one_key([float("inf")] * n))
        for unit in of.keys[:10]:
            for site, keys in zip(known.sites, unit, strict=True):
                site.add(counts((key,) for key in keys))
        block = counts((key,) for key in of.keys[10][0])
        kept = known.filter(0, block)
        found.append(Task(n, 0, known.sizes(0, kept), of.costs, of.query_node))
    return found
