"""Join request table: factors, selections and attributes numbered, what each subquery asks.

before  subqueries with leaves that name columns
after   numbers: factor k, selection bit k of a slot, attribute k of a slot
"""

from __future__ import annotations

from dataclasses import dataclass

from seustream.compiler.catalogue import Column
from seustream.compiler.plan.decompose import Subquery
from seustream.compiler.plan.divide import Attribute, JoinFactor, SelectionTerm
from seustream.compiler.plan.layout import Layout
from seustream.compiler.plan.limits import within
from seustream.hdl.config import DeviceConfig


@dataclass(frozen=True, slots=True)
class Request:
    """A row of the table: subquery, its factors and its (slot, selection bit) pairs."""

    subquery: Subquery
    factors: tuple[int, ...]
    selections: tuple[tuple[int, int], ...]

    @property
    def slots(self) -> tuple[int, ...]:
        return self.subquery.slots


@dataclass(frozen=True, slots=True)
class Requests:
    """`factors` and `selections[slot]` by number; `attributes[slot]` are column names by
    number."""

    factors: tuple[JoinFactor, ...]
    selections: tuple[tuple[SelectionTerm, ...], ...]
    attributes: tuple[tuple[str, ...], ...]
    rows: tuple[Request, ...]

    def attribute(self, of: Attribute) -> int:
        return self.attributes[of.slot].index(of.column)


def request(subqueries: tuple[Subquery, ...], layout: Layout, config: DeviceConfig) -> Requests:
    within("streams", len(layout.slots), config.streams, ", ".join(s.name for s in layout.slots))
    factors: dict[JoinFactor, int] = {}
    selections: list[dict[SelectionTerm, int]] = [{} for _ in layout.slots]
    used: list[set[str]] = [set() for _ in layout.slots]
    rows = []
    for subquery in subqueries:
        mine: list[int] = []
        bits: list[tuple[int, int]] = []
        for leaf in subquery.leaves:
            if isinstance(leaf, JoinFactor):
                mine.append(factors.setdefault(leaf, len(factors)))
                for side in (leaf.left, leaf.right):
                    used[side.slot].add(side.column)
            else:
                numbers = selections[leaf.slot]
                bits.append((leaf.slot, numbers.setdefault(leaf, len(numbers))))
                used[leaf.slot].update(test.column for test in leaf.tests)
        rows.append(Request(subquery, tuple(sorted(mine)), tuple(sorted(bits))))
    attributes = tuple(
        _in_schema_order(slot.stream.columns, names)
        for slot, names in zip(layout.slots, used, strict=True)
    )
    for slot, names, numbered in zip(layout.slots, attributes, selections, strict=True):
        within("attributes used", len(names), config.attributes, f"{slot.name}: {', '.join(names)}")
        within("selections", len(numbered), config.selections, f"stream {slot.name}")
        # Every stream of a query arrives some time and is then a probe.
        within(
            "selections in a probe", len(numbered), config.probe_selections, f"stream {slot.name}"
        )
    return Requests(tuple(factors), tuple(tuple(s) for s in selections), attributes, tuple(rows))


def _in_schema_order(columns: tuple[Column, ...], names: set[str]) -> tuple[str, ...]:
    order = {column.name: index for index, column in enumerate(columns)}
    return tuple(sorted(names, key=lambda name: (order.get(name, len(order)), name)))
