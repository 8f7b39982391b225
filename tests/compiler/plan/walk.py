"""Follows one tuple of each stream through a route plan.

The factors and selections that hold are given. Walking the plan finds what it then delivers, and by
how many paths it reaches each tag, independently of the planner.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from seustream.compiler.plan.requests import Request, Requests
from seustream.compiler.plan.routes import RoutePlan


class Truth(NamedTuple):
    """The factors that hold, and the selections that hold as (slot, bit)."""

    factors: frozenset[int]
    selections: frozenset[tuple[int, int]]


def truths(requests: Requests) -> Iterator[Truth]:
    """Yields every combination of outcomes."""
    bits = [
        (slot, bit) for slot, terms in enumerate(requests.selections) for bit in range(len(terms))
    ]
    outcomes = [*range(len(requests.factors)), *bits]
    for chosen in itertools.product((False, True), repeat=len(outcomes)):
        held = [outcome for outcome, holds in zip(outcomes, chosen, strict=True) if holds]
        yield Truth(
            frozenset(o for o in held if isinstance(o, int)),
            frozenset(o for o in held if not isinstance(o, int)),
        )


def tags_reached(plan: RoutePlan, raw: int, truth: Truth) -> Counter[int]:
    """Counts the paths to each tag made of the raw tuple's combination with the others."""
    reached: Counter[int] = Counter()
    open_tags = [raw]
    while open_tags:
        tag = plan.tags[open_tags.pop()]
        for area in tag.probes:
            assert area not in tag.bound, "a tuple probes a stream it already carries"
            for step in plan.steps:
                if step.area != area or step.pre != tag.number:
                    continue
                window = {(area, bit) for bit in step.window_selections}
                probe = {(raw, bit) for bit in step.probe_selections}
                if truth.factors >= set(step.factors) and truth.selections >= window | probe:
                    assert plan.tags[step.post].bound == tag.bound | {area}
                    reached[step.post] += 1
                    open_tags.append(step.post)
    return reached


def satisfied(row: Request, truth: Truth) -> bool:
    return truth.factors >= set(row.factors) and truth.selections >= set(row.selections)


def check_plan(plan: RoutePlan, requests: Requests) -> None:
    """Every query gets its results and no others, whichever stream arrives last, and no tag is
    reached by two paths."""
    for truth in truths(requests):
        for raw in range(len(requests.selections)):
            reached = tags_reached(plan, raw, truth)
            assert max(reached.values(), default=1) == 1
            delivered = {query for tag in reached for query in plan.tags[tag].queries}
            wanted = {
                parent
                for row in requests.rows
                if raw in row.slots and satisfied(row, truth)
                for parent in row.subquery.parents
            }
            assert delivered == wanted


def deliveries(plan: RoutePlan, requests: Requests, raw: int, truth: Truth) -> Counter[int]:
    """Counts how often each query gets the combination."""
    reached = tags_reached(plan, raw, truth)
    return Counter(query for tag in reached for query in plan.tags[tag].queries)


def is_connected(row: Request, requests: Requests) -> bool:
    """Returns whether the factors of a subquery connect all its streams."""
    pairs = [{requests.factors[n].left.slot, requests.factors[n].right.slot} for n in row.factors]
    found = {row.slots[0]}
    for _ in row.slots:
        for pair in pairs:
            if pair & found:
                found |= pair
    return found == set(row.slots)
