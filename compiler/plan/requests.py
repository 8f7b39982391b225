"""Join request table: numbered factors, selections and attributes, and what each subquery needs.

before  subqueries with leaves that name columns
after   numbers: factor k, selection bit k of a slot, attribute k of a slot
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from seustream.compiler.catalogue import Column
from seustream.compiler.plan.decompose import Subquery
from seustream.compiler.plan.divide import Attribute, JoinFactor, SelectionTerm
from seustream.compiler.plan.layout import Layout
from seustream.compiler.plan.limits import within
from seustream.compiler.plan.normalise import merged
from seustream.hdl.config import DeviceConfig
from seustream.hdl.device import selection_entries


@dataclass(frozen=True, slots=True)
class Request:
    """A row of the table: a subquery, its factors and its (slot, selection bit) pairs."""

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
    rows: list[Request] = []
    for subquery in subqueries:
        if len(subquery.slots) == 1:
            continue
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
    for number, known in enumerate(selections):
        own = [subquery for subquery in subqueries if subquery.slots == (number,)]
        if own:
            terms = [term for subquery in own for term in _terms(subquery)]
            used[number].update(test.column for term in terms for test in term.tests)
            selections[number], made = _selected(number, own, known, rows, config)
            rows += made
    rows.sort(key=lambda row: row.subquery.number)
    attributes = tuple(
        in_schema_order(slot.stream.columns, names)
        for slot, names in zip(layout.slots, used, strict=True)
    )
    for slot, names, numbered in zip(layout.slots, attributes, selections, strict=True):
        within("attributes used", len(names), config.attributes, f"{slot.name}: {', '.join(names)}")
        within("selections", len(numbered), config.selections, f"stream {slot.name}")
        # A tuple of any stream is a probe when it arrives.
        within(
            "selections in a probe", len(numbered), config.probe_selections, f"stream {slot.name}"
        )
    return Requests(tuple(factors), tuple(tuple(s) for s in selections), attributes, tuple(rows))


def admission(slot: int, rows: Iterable[Request]) -> tuple[int, ...]:
    """Returns the selections that a raw tuple must satisfy to be of use to some subquery. If no
    join stores the tuple, one of the selections is enough: the output applies the others."""
    mine = [row for row in rows if slot in row.slots]
    alone = all(len(row.slots) == 1 for row in mine)
    masks = set()
    for row in mine:
        bits = [bit for owner, bit in row.selections if owner == slot]
        masks.add(sum(1 << bit for bit in (bits[:1] if alone else bits)))
    return tuple(
        sorted(mask for mask in masks if not any(o != mask and o & mask == o for o in masks))
    )


def _selected(
    slot: int,
    own: Sequence[Subquery],
    known: Mapping[SelectionTerm, int],
    joins: list[Request],
    config: DeviceConfig,
) -> tuple[dict[SelectionTerm, int], list[Request]]:
    """Builds the rows of subqueries over one stream. Admission looks at one test of each bit at
    once. Tests share bits so that it needs the fewest rows of entries, and among equals the fewest
    bits."""
    best: tuple[tuple[int, int], dict[SelectionTerm, int], list[Request]] | None = None
    together = max(sum(leaf.every for leaf in _terms(subquery)) for subquery in own)
    for most in range(max(together, 1), 0, -1):
        numbers, made = dict(known), []
        for subquery in own:
            bits = {numbers.setdefault(term, len(numbers)) for term in _shared(subquery, most)}
            made.append(Request(subquery, (), tuple((slot, bit) for bit in sorted(bits))))
        if best is not None and len(numbers) > config.probe_selections:
            break
        sizes = [len(term.tests) for term in numbers]
        entries = selection_entries(sizes, admission(slot, [*joins, *made]), config.selectors)
        if best is None or (entries, len(numbers)) < best[0]:
            best = (entries, len(numbers)), numbers, made
    assert best is not None
    return best[1], best[2]


def _terms(subquery: Subquery) -> list[SelectionTerm]:
    return [leaf for leaf in subquery.leaves if isinstance(leaf, SelectionTerm)]


def _shared(subquery: Subquery, most: int) -> list[SelectionTerm]:
    """Returns the selections of a subquery over one stream, with up to `most` plain tests in each."""
    terms = _terms(subquery)
    plain = sorted((term for term in terms if term.every), key=lambda term: term.tests)
    found = [term for term in terms if not term.every]
    for first in range(0, len(plain), most):
        found += [
            t for t in merged(tuple(plain[first : first + most])) if isinstance(t, SelectionTerm)
        ]
    return found


def in_schema_order(columns: tuple[Column, ...], names: set[str]) -> tuple[str, ...]:
    order = {column.name: index for index, column in enumerate(columns)}
    return tuple(sorted(names, key=lambda name: (order.get(name, len(order)), name)))
