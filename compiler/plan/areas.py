"""Areas: all tables that a device loads, except the programs.

before  route plan
after   per join area its factors, combinations and retention; route table; output windows;
        selection and admission tables
"""

from __future__ import annotations

from seustream.compiler.plan.layout import Layout
from seustream.compiler.plan.limits import within
from seustream.compiler.plan.normalise import Normalised
from seustream.compiler.plan.requests import Requests, admission
from seustream.compiler.plan.routes import RoutePlan
from seustream.hdl.config import DeviceConfig
from seustream.hdl.device import (
    UNUSED,
    Area,
    Comparison,
    Factor,
    Retention,
    Route,
    Selection,
    Tables,
    Window,
    WindowKind,
)


def allocate(
    normalised: tuple[Normalised, ...],
    requests: Requests,
    routes: RoutePlan,
    layout: Layout,
    config: DeviceConfig,
) -> Tables:
    slots = range(len(layout.slots))
    windows = tuple(
        _windows(one, len(slots), config) for one in normalised if one.division.on_device
    )
    within("queries", len(windows), config.queries)
    joined = [row for row in windows if sum(window != UNUSED for window in row) > 1]
    filters = _filters(requests, len(windows))
    areas = []
    for slot in slots:
        numbers = factor_numbers(slot, routes)
        factors = tuple(_factor(number, slot, requests) for number in numbers)
        within(
            "factors in an area", len(factors), config.factors, f"area {layout.slots[slot].name}"
        )
        positions = {number: position for position, number in enumerate(numbers)}
        areas.append(
            Area(
                factors,
                routes.combinations(slot, positions),
                (),
                Retention.over(row[slot] for row in joined if routes.tags[slot].inserts),
            )
        )
    names = [slot.stream.name for slot in layout.slots]
    tables = Tables(
        tuple(names.index(name) for name in names),
        tuple(_selections(slot, requests) for slot in slots),
        tuple(admission(slot, requests.rows) for slot in slots),
        tuple(areas),
        {
            tag.number: Route(tag.inserts, frozenset(tag.probes), frozenset(tag.queries))
            for tag in routes.tags
        },
        windows,
        filters if any(filters) else (),
    )
    for slot in slots:
        within(
            "comparisons",
            tables.selection_entries(slot, config.selectors),
            config.comparisons,
            f"stream {layout.slots[slot].name}, in rows of {config.selectors}",
        )
    return tables


def _filters(requests: Requests, queries: int) -> tuple[int, ...]:
    """Returns the selection bits that the queries over one stream need."""
    filters = [0] * queries
    for row in requests.rows:
        if len(row.slots) == 1:
            for query in row.subquery.parents:
                filters[query] = sum(1 << bit for _, bit in row.selections)
    return tuple(filters)


def _windows(one: Normalised, slots: int, config: DeviceConfig) -> tuple[Window, ...]:
    row = [UNUSED] * slots
    for slot, source in zip(one.division.slots, one.division.query.sources, strict=True):
        if source.window.kind is WindowKind.RANGE:
            within(
                "ticks of a RANGE window",
                source.window.size,
                config.longest_range,
                f"{config.timestamp_width}-bit timestamps; UNBOUNDED has no such limit",
            )
        elif source.window.kind is WindowKind.ROWS:
            within(
                "rows of a ROWS window",
                source.window.size,
                config.longest_rows,
                f"{config.sequence_width}-bit sequence numbers; UNBOUNDED has no such limit",
            )
        row[slot] = source.window
    return tuple(row)


def factor_numbers(area: int, routes: RoutePlan) -> list[int]:
    """Returns the request table numbers of the factors that an area evaluates, ascending."""
    return sorted({number for step in routes.steps if step.area == area for number in step.factors})


def _factor(number: int, area: int, requests: Requests) -> Factor:
    """Returns a factor as seen from an area: `probe condition window`."""
    factor = requests.factors[number]
    window, probe, condition = factor.left, factor.right, factor.condition.mirrored()
    if factor.right.slot == area:
        window, probe, condition = factor.right, factor.left, factor.condition
    return Factor(requests.attribute(window), probe.slot, requests.attribute(probe), condition)


def _selections(slot: int, requests: Requests) -> tuple[Selection, ...]:
    names = requests.attributes[slot]
    return tuple(
        Selection(
            term.every,
            tuple(Comparison(names.index(t.column), t.condition, t.code) for t in term.tests),
        )
        for term in requests.selections[slot]
    )
