"""Partial groups: counts and sums that a device keeps of its results by key, for windows of time.

before  q#1: FROM R, S WHERE R.k = S.k ...   q: SELECT R.k, sum(S.v) FROM q#1 GROUP BY R.k, TUMBLE(ts, 1 minute)
after   q#1: its results by R.k, with sum, least and greatest S.v, a minute at a time

A window consists of whole periods, so the host builds its groups from these as it would from single
results. The device's condition must be the whole condition, and no result may come twice: what the device
has counted is not checked again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from seustream.compiler.language import expressions as x
from seustream.compiler.logical.program import PeriodGroups, Periodic, Program
from seustream.compiler.plan.divide import Attribute
from seustream.compiler.plan.encoding import Codec, Encoding
from seustream.compiler.plan.layout import Layout, encoding_of
from seustream.compiler.plan.normalise import Normalised
from seustream.compiler.plan.requests import Requests, in_schema_order
from seustream.compiler.plan.routes import RoutePlan
from seustream.hdl.config import DeviceConfig
from seustream.hdl.device import Grouped

_FUNCTIONS = ("count", "sum", "avg", "min", "max")


@dataclass(frozen=True, slots=True)
class PartialGroups:
    """The groups that a device forms of a query's results, by the query's number there; `name` is the query that
    groups them."""

    query: int
    name: str
    key: Attribute | None
    value: Attribute | None
    period: int
    offset: int


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """The groups that a device forms and, by query name, the reasons why it forms no others."""

    groups: tuple[PartialGroups, ...] = ()
    left: dict[str, str] = field(default_factory=dict)

    def of(self, query: int) -> PartialGroups | None:
        """Returns the groups of a query, by its number in the device."""
        return next((one for one in self.groups if one.query == query), None)


def with_partials(
    program: Program,
    layout: Layout,
    normalised: tuple[Normalised, ...],
    requests: Requests,
    config: DeviceConfig,
) -> tuple[Layout, Requests, GroupPlan]:
    """Finds the groups that a device can form, with attributes of their own if there is room for
    them."""
    readers = {
        node.inputs[0].name: node for node in program.operations if isinstance(node, PeriodGroups)
    }
    groups: list[PartialGroups] = []
    left: dict[str, str] = {}
    encodings = dict(layout.encodings)
    used = [set(names) for names in requests.attributes]
    on_device = [one for one in normalised if one.division.on_device]
    for number, one in enumerate(on_device):
        node = readers.get(one.division.query.defines or "")
        if node is None:
            continue
        form = _Form(node, one, encodings, used, config)
        why = next(form.obstacles(), None)
        if why is not None:
            left[node.name] = why
            continue
        encodings |= form.encodings
        for attribute in form.attributes:
            used[attribute.slot].add(attribute.column)
        groups.append(form.groups(number))
    attributes = tuple(
        in_schema_order(slot.stream.columns, names)
        for slot, names in zip(layout.slots, used, strict=True)
    )
    return (
        replace(layout, encodings=encodings),
        replace(requests, attributes=attributes),
        GroupPlan(tuple(groups), left),
    )


def grouped_tags(partials: GroupPlan, routes: RoutePlan, requests: Requests) -> dict[int, Grouped]:
    """Returns the groups of each route tag; if several of its queries have groups, the first one's."""

    def place(of: Attribute | None) -> tuple[int, int] | None:
        return None if of is None else (of.slot, requests.attribute(of))

    found: dict[int, Grouped] = {}
    for tag in routes.tags:
        for one in partials.groups:
            if one.query in tag.queries and tag.number not in found:
                found[tag.number] = Grouped(
                    one.query, place(one.key), place(one.value), one.period, one.offset
                )
    return found


class _Form:
    """A query that groups by windows, and what a device would see of it."""

    def __init__(
        self,
        node: PeriodGroups,
        one: Normalised,
        encodings: dict[tuple[str, str], Encoding],
        used: list[set[str]],
        config: DeviceConfig,
    ) -> None:
        self.node, self.one, self.config = node, one, config
        self._known, self._used = encodings, used
        self.encodings: dict[tuple[str, str], Encoding] = {}
        parts = [*node.group_by, *(item.expression for item in node.items)]
        parts += [key.expression for key in node.order_by]
        parts += [] if node.having is None else [node.having]
        self.calls = list(
            dict.fromkeys(
                e for part in parts for e in x.walk(part) if isinstance(e, x.AggregateCall)
            )
        )
        inside = {column for call in self.calls for column in x.columns(call) if column.source >= 0}
        outside = {column for part in parts for column in _outside(part) if column.source >= 0}
        self.keys, self.values = sorted(outside, key=_order), sorted(inside, key=_order)

    def obstacles(self) -> Iterator[str]:
        """Yields the reasons why a device cannot form the groups."""
        node, every = self.node, self.node.every
        if not self.config.groups:
            yield f"configuration {self.config.name!r} has no grouping unit"
        if node.changes:
            yield "EMIT CHANGES gives a row at each result"
        if not isinstance(every, Periodic):
            yield "a session has no end that is known before"
        elif every.by_rows:
            yield "its windows are of rows"
        if self.one.residual:
            yield f"the host checks {x.show(self.one.residual[0])}"
        if len(self.one.terms) > 1:
            yield "a result may come once for each of its terms"
        for call in self.calls:
            if call.function not in _FUNCTIONS or call.distinct or call.where is not None:
                yield f"{x.show(call)} is computed in software"
            if not all(isinstance(argument, x.ColumnReference) for argument in call.arguments):
                yield f"{x.show(call)} is of more than a column"
        for what, columns in (("groups", self.keys), ("aggregates", self.values)):
            if len(columns) > 1:
                yield f"a device {what} by one column, here are {len(columns)}"
        for column in dict.fromkeys((*self.keys, *self.values)):
            source = self.one.division.query.sources[column.source].stream
            key = (source.name, column.name)
            encoding = self._known.get(key) or encoding_of(column, self.config.attribute_width)
            if encoding is None or encoding.codec is not Codec.INTEGER:
                yield f"{column.type} is wider than an attribute, or not exact"
                return
            self.encodings[key] = encoding
        for call in self.calls:
            types = [argument.type for argument in call.arguments]
            if call.function in ("sum", "avg") and not (types[0].is_integer or types[0].is_decimal):
                yield f"{x.show(call)} is computed in software"
        for slot, names in enumerate(self._used):
            more = names | {a.column for a in self.attributes if a.slot == slot}
            if len(more) > self.config.attributes:
                yield f"no attribute is left for {', '.join(sorted(more - names))}"

    @property
    def attributes(self) -> list[Attribute]:
        return [self._attribute(column) for column in (*self.keys, *self.values)]

    def _attribute(self, column: x.ColumnReference) -> Attribute:
        return Attribute(self.one.division.slots[column.source], column.name)

    def groups(self, number: int) -> PartialGroups:
        every = self.node.every
        assert isinstance(every, Periodic)
        key, value = (
            self._attribute(columns[0]) if columns else None for columns in (self.keys, self.values)
        )
        # Whole periods make up a window: each window begins and ends with one.
        period = math.gcd(every.size, every.slide)
        return PartialGroups(number, self.node.name, key, value, period, every.offset % period)


def _outside(e: x.Expression) -> Iterator[x.ColumnReference]:
    """Yields the columns of an expression that are outside aggregates."""
    if isinstance(e, x.AggregateCall):
        return
    if isinstance(e, x.ColumnReference):
        yield e
    for part in x.children(e):
        yield from _outside(part)


def _order(column: x.ColumnReference) -> tuple[int, str]:
    return column.source, column.name
