"""What planned joins are compared with: a hub, filters without a centre, and either by turns."""

from __future__ import annotations

import hashlib

from engine.multijoin.keys import Key
from engine.multijoin.lockstep import (
    ENTRY_UNITS,
    Outcome,
    Rounds,
    Terms,
    hub_costs,
    results_of,
    run_smj,
    task_of,
)
from engine.multijoin.planner import Planner, auto
from engine.multijoin.setting import Setting
from engine.multijoin.strategy import Strategy, Unit

BITS = 64


def run_hub(setting: Setting, terms: Terms | None = None) -> Outcome:
    """Everything to one node, the best in hindsight."""
    terms = terms or Terms()
    outcomes = [hub_costs(setting, terms, h) for h in range(setting.n + 1)]
    return min(outcomes, key=lambda outcome: outcome.total)


def run_bloom(setting: Setting, terms: Terms | None = None) -> Outcome:
    """After each block its site sends every other site 64 bits that tell which keys it has;
    sites filter by what they were sent and route to the nearest site not yet visited."""
    terms = terms or Terms()
    rounds, outcome, w = Rounds(setting, terms.window), Outcome(), setting.costs.w
    for t in range(len(setting.keys)):
        cost, found = 0.0, 0
        for _ in rounds.expired(t):
            pass
        for i, block in rounds.blocks(t):
            others = [k for k in setting.sources if k != i]
            filters = dict.fromkeys(others, 0)
            for k in others:
                for (key,) in (entry for _, kept in rounds.live[k] for entry in kept):
                    filters[k] |= bits(key)
            survivors = {
                entry: count
                for entry, count in block.items()
                if all(bits(entry[0]) & filters[k] == bits(entry[0]) for k in others)
            }
            task = task_of(setting, i, rounds.synopses.sizes(i, survivors), terms.deliver)
            order: tuple[int, ...] = ()
            at, left = i, set(others)
            while left:
                at = min(left, key=lambda k, at=at: (w[at][k], k))  # type: ignore[misc]
                order, left = (*order, at), left - {at}
            if survivors:
                cost += task.cost(order)
            if block:
                cost += ENTRY_UNITS * sum(w[i][k] for k in others)
            found += results_of(rounds, i, block)
        outcome.costs.append(cost)
        outcome.results.append(found)
    return outcome


def bits(key: Key) -> int:
    """The two bits of a key: the first two bytes of the hash of its decimal form."""
    digest = hashlib.blake2b(str(key).encode(), digest_size=8).digest()
    return 1 << digest[0] % BITS | 1 << digest[1] % BITS


def run_auto(
    setting: Setting, terms: Terms | None = None, planner: Planner = auto
) -> tuple[Outcome, Strategy]:
    """Planned joins or a hub, as `strategy` decides; what moves cost is in the unit after."""
    terms = terms or Terms()
    planned = run_smj(setting, planner, terms)
    sink = setting.query_node if terms.deliver else None
    strategy = Strategy(setting.costs, sink, range(setting.n + 1))
    outcome = Outcome(results=list(planned.results))
    charged = 0.0
    for t, keys in enumerate(setting.keys):
        rows = [len(block) for block in keys]
        first = max(0, t - int(min(terms.window, t)))
        live = [sum(len(unit[i]) for unit in setting.keys[first : t + 1]) for i in setting.sources]
        own = planned.costs[t] if strategy.hub is None else None
        spent, moved = strategy.spent, strategy.migration
        strategy.after(Unit(own, rows, planned.results[t], live, last=t + 1 == len(setting.keys)))
        outcome.costs.append(strategy.spent - spent + charged)
        charged = strategy.migration - moved
    return outcome, strategy
