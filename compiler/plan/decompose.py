"""Decomposition: each term of a normal form is a subquery, shared if two are the same.

before  per query: terms
after   numbered subqueries (streams, leaves, windows) that know their parent queries
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from seustream.compiler.plan.divide import Leaf
from seustream.compiler.plan.normalise import Normalised
from seustream.hdl.device import Window


@dataclass(frozen=True, slots=True)
class Subquery:
    """A conjunction over some slots. `parents` are device query numbers: positions among the
    queries that use the device. If there is a `last` slot, only its arrivals complete the subquery."""

    number: int
    slots: tuple[int, ...]
    windows: tuple[Window, ...]
    leaves: tuple[Leaf, ...]
    parents: tuple[int, ...]
    last: int | None = None

    def completed_by(self, slot: int) -> bool:
        return slot in self.slots and self.last in (None, slot)


def decompose(normalised: tuple[Normalised, ...]) -> tuple[Subquery, ...]:
    keys: dict[tuple[object, ...], int] = {}
    found: list[Subquery] = []
    on_device = [one for one in normalised if one.division.on_device]
    for parent, one in enumerate(on_device):
        sources = one.division.query.sources
        by_slot = sorted(zip(one.division.slots, sources, strict=True), key=lambda pair: pair[0])
        slots = tuple(slot for slot, _ in by_slot)
        windows = tuple(source.window for _, source in by_slot)
        which = one.division.query.last
        last = None if which is None else one.division.slots[which]
        for term in one.terms:
            key = (slots, windows, frozenset(term), last)
            number = keys.get(key)
            if number is None:
                keys[key] = len(found)
                found.append(Subquery(len(found), slots, windows, term, (parent,), last))
            elif parent not in found[number].parents:
                old = found[number]
                found[number] = replace(old, parents=(*old.parents, parent))
    return tuple(found)
