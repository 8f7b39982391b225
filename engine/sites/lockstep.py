"""The experiment in lockstep: what a run costs, from counts of rows alone.

In each time unit first what no window reaches is deleted, then the sites' blocks come one by one,
each seen by the next. No row is made: sizes of joins are products of counts, so that runs with
10^8 results take milliseconds. `tests` hold it against the protocol with real rows.

    unit t:  delete rows with t - t_r > window   (Expire: a quarter for each key, site to centre)
             for each site: Delta, filter, order, Plan, Probes, Result
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from engine.sites.costs import UnitCosts
from engine.sites.lottery import Lottery
from engine.sites.model import Counts, Entry, Join
from engine.sites.planner import Planner, Task, plan
from engine.sites.setting import Setting
from engine.sites.sizes import Synopses, counts

ENTRY_UNITS = 0.25
"""What a synopsis entry weighs, in rows."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How a run is counted. `vector`, if given, is the price of a synopsis in entries, as if it
    were sent dense: of each non-empty block's, of the plan for it, of each deletion's."""

    window: float = math.inf
    deliver: bool = True
    vector: int | None = None

    def entries(self, counts: Collection[Entry], cause: Counts | None = None) -> float:
        """The price of sending counts; a dense plan for a non-empty block has all its entries."""
        dense = self.vector if cause or counts else None
        return ENTRY_UNITS * (dense or len(counts))


@dataclass(slots=True)
class Outcome:
    """Cost and results by time unit."""

    costs: list[float] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    synopses: float = 0.0

    @property
    def total(self) -> float:
        return sum(self.costs)

    @property
    def mean(self) -> float:
        return self.total / len(self.costs)


class Rounds:
    """A setting's blocks in order, with the synopses as they are when each comes."""

    def __init__(self, setting: Setting, window: float) -> None:
        self.setting, self.window = setting, window
        self.synopses = Synopses(Join.on_one_key([window] * setting.n))
        self.live: list[deque[tuple[int, Counts]]] = [deque() for _ in setting.sources]

    def expired(self, t: int) -> Iterator[tuple[int, Counts]]:
        """What each site deletes at the start of a unit."""
        for i in self.setting.sources:
            gone: dict[tuple[int | float | str | bytes, ...], int] = {}
            while self.live[i] and t - self.live[i][0][0] > self.window:
                for entry, count in self.live[i].popleft()[1].items():
                    gone[entry] = gone.get(entry, 0) + count
            if gone:
                self.synopses.sites[i].remove(gone)
                yield i, gone

    def blocks(self, t: int) -> Iterator[tuple[int, Counts]]:
        """Each site's block; it is in the synopses once the next is asked for."""
        for i in self.setting.sources:
            block = counts((key,) for key in self.setting.keys[t][i])
            yield i, block
            self.synopses.sites[i].add(block)
            self.live[i].append((t, block))


def results_of(rounds: Rounds, source: int, block: Counts) -> int:
    """How many results a block gives."""
    everyone = (1 << rounds.setting.n) - 1 & ~(1 << source)
    return int(rounds.synopses.sizes(source, rounds.synopses.filter(source, block))(everyone))


def run_smj(
    setting: Setting,
    planner: Planner,
    terms: Terms | None = None,
    *,
    filtered: bool = True,
    on_block: Callable[[Task, float], None] | None = None,
) -> Outcome:
    """Synopses, filter and a planned order; without `filtered` only the order, as if counts were
    known for nothing."""
    terms = terms or Terms()
    rounds, w = Rounds(setting, terms.window), setting.costs.w
    centre = setting.costs.centre(setting.sources)
    outcome = Outcome()
    for t in range(len(setting.keys)):
        cost, found = 0.0, 0
        for i, gone in rounds.expired(t):
            cost += terms.entries(gone) * w[i][centre] if filtered else 0
        outcome.synopses += cost
        for i, block in rounds.blocks(t):
            kept = rounds.synopses.filter(i, block)
            synopses = (
                terms.entries(block) * w[i][centre]
                + terms.entries(kept, cause=block) * w[centre][i]
            )
            if filtered:
                outcome.synopses += synopses
                cost += synopses
            going = kept if filtered else block
            if going:
                task = task_of(setting, i, rounds.synopses.sizes(i, going), terms.deliver)
                order = plan(task, planner)
                assert order is not None
                cost += order.cost
                found += int(task.size(task.all))
                if on_block is not None:
                    on_block(task, order.cost)
        outcome.costs.append(cost)
        outcome.results.append(found)
    return outcome


def task_of(setting: Setting, source: int, size: Callable[[int], float], deliver: bool) -> Task:
    sink = setting.query_node if deliver else None
    return Task(setting.n, source, size, setting.costs, sink)


def run_lottery(setting: Setting, terms: Terms | None = None) -> Outcome:
    """Lottery routing, which knows neither synopses nor costs."""
    terms = terms or Terms()
    rounds, lottery = Rounds(setting, terms.window), Lottery(setting.n)
    outcome = Outcome()
    for t in range(len(setting.keys)):
        cost, found = 0.0, 0
        for _ in rounds.expired(t):
            pass
        for i, block in rounds.blocks(t):
            trip = lottery.route(i, block, rounds.synopses)
            cost += trip.cost(setting.costs, setting.query_node if terms.deliver else None)
            found += trip.results
        outcome.costs.append(cost)
        outcome.results.append(found)
    return outcome


def hub_costs(setting: Setting, terms: Terms, h: int) -> Outcome:
    """Everything goes to one node, results from there."""
    rounds, outcome = Rounds(setting, terms.window), Outcome()
    for t in range(len(setting.keys)):
        for _ in rounds.expired(t):
            pass
        shipped, found = 0.0, 0
        for i, block in rounds.blocks(t):
            shipped += sum(block.values()) * setting.costs.w[i][h]
            found += results_of(rounds, i, block)
        outcome.costs.append(shipped + (_result_cost(setting.costs, h, setting, found, terms)))
        outcome.results.append(found)
    return outcome


def _result_cost(costs: UnitCosts, at: int, setting: Setting, results: int, terms: Terms) -> float:
    return results * costs.w[at][setting.query_node] if terms.deliver else 0.0
