"""The reach of an event: how early a chain from it may end, how late one to it began.

For an event of element i, `ends` is the earliest end of a chain through the elements after it, one
event of each list, and `begins` the latest begin of a chain through those before. Neither falls
along a list, since a later event leaves no more choice: so which events of a list can still be part
of a match beside what is bound is a range, found by bisection. Where only order, window and
constants count, every event in such a range leads to a match: there are no dead ends, and the work
is proportional to the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seustream.engine.pattern.columns import Ints

NEVER = 1 << 62
"""No chain at all: an end later than any, and, negative, a begin earlier than any."""


@dataclass(frozen=True, slots=True)
class Reach:
    """By element, along its list."""

    ends: dict[int, Ints]
    begins: dict[int, Ints]


def reach(times: Sequence[Ints], chain: Sequence[int]) -> Reach:
    """Of the elements of `chain`, in order, whose lists have these times."""
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
