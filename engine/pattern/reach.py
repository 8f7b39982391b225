"""The reach of an event: how early a chain from it may end, and how late a chain to it began.

For an event of element i, `ends` is the earliest end of a chain through the elements after it, with
one event of each list. `begins` is the latest begin of a chain through the elements before it.
Neither decreases along a list, since a later event leaves no more choice. So the events of a list
that can still join the bound ones in a match form a range, found by bisection. Where only order,
window and constants count, every event in such a range leads to a match: there are no dead ends,
and the work is proportional to the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seustream.engine.pattern.columns import Ints

NEVER = 1 << 62
"""No chain at all: an end later than any other or, negated, a begin earlier than any other."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The reach of events by element, along its list."""

    ends: dict[int, Ints]
    begins: dict[int, Ints]


def reach(times: Sequence[Ints], chain: Sequence[int]) -> Reach:
    """Computes the reach of the elements of `chain`, in order, whose lists have these times."""
    ends: dict[int, Ints] = {}
    after: Ints | None = None
    for place in reversed(range(len(chain))):
        own = times[chain[place]]
        if after is None:
            ends[chain[place]] = own
        else:
            follower = np.searchsorted(times[chain[place + 1]], own, "right")
            ends[chain[place]] = np.append(after, NEVER)[follower]
        after = ends[chain[place]]
    begins: dict[int, Ints] = {}
    before: Ints | None = None
    for place, element in enumerate(chain):
        own = times[element]
        if before is None:
            begins[element] = own
        else:
            earlier = np.searchsorted(times[chain[place - 1]], own, "left")
            begins[element] = np.insert(before, 0, -NEVER)[earlier]
        before = begins[element]
    return Reach(ends, begins)
