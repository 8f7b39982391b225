"""What planned joins are compared with: a hub, and filters without a centre."""

from __future__ import annotations

import hashlib

from engine.sites.keys import Key
from engine.sites.lockstep import (
    ENTRY_UNITS,
    Outcome,
    Rounds,
    Terms,
    hub_costs,
    results_of,
    task_of,
)
from engine.sites.setting import Setting

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
                at = min(left, key=lambda k, at=at: (w[at][k], k))  # type: ignore[misc]  # default binds it
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
