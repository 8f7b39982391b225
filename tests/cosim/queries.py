"""Queries as plain data, tables that a simple code generator makes of them, and batches.

`oracle` defines what a query means, and knows nothing of tables. The generator here is deliberately
artless (queries that differ only in windows share tags, and each arriving stream has one order of
probes), so that a suspicious result can be traced by hand.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from seustream.hdl import isa
from seustream.hdl.config import MAX_ATTRIBUTES
from seustream.hdl.device import (
    UNUSED,
    Area,
    Batch,
    Combination,
    Comparison,
    Device,
    Factor,
    Results,
    Retention,
    Route,
    Selection,
    Status,
    Tables,
    Window,
    WindowKind,
)
from seustream.hdl.isa import Condition

R, S, T, U = range(4)
UNBOUNDED = Window(WindowKind.UNBOUNDED)

CONDITIONS = {condition.symbol: condition for condition in Condition}


RANGE = functools.partial(Window, WindowKind.RANGE)
ROWS = functools.partial(Window, WindowKind.ROWS)


class On(NamedTuple):
    """`x.a symbol y.b`."""

    x: int
    a: int
    symbol: str
    y: int
    b: int


class Where(NamedTuple):
    """All or any of `(attribute, symbol, constant)`."""

    comparisons: tuple[tuple[int, str, int], ...]
    every: bool = True


@dataclass(frozen=True)
class Query:
    """A join of the streams that have a window, on any of the terms. A term is the conjunction of
    its comparisons, so the empty term is a cross product."""

    windows: dict[int, Window]
    terms: tuple[tuple[On, ...], ...] = ((),)
    where: dict[int, Where] = field(default_factory=dict)


class Raw(NamedTuple):
    stream: int
    timestamp: int
    sequence: int
    admit: bool
    attributes: tuple[int, ...]


# --- tables -------------------------------------------------------------------


def build(queries: Sequence[Query], groups: tuple[int, ...] = (0, 1, 2)) -> Tables:
    n = len(groups)
    selections: list[list[Selection]] = [[] for _ in groups]
    admission: list[list[int]] = [[] for _ in groups]
    routes = {stream: Route() for stream in range(n)}
    areas = [_AreaBuilder(stream) for stream in range(n)]

    def bit(stream: int, where: Where | None) -> tuple[int, ...]:
        if where is None:
            return ()
        selection = Selection(
            where.every, tuple(Comparison(a, CONDITIONS[s], c) for a, s, c in where.comparisons)
        )
        if selection not in selections[stream]:
            selections[stream].append(selection)
        return (selections[stream].index(selection),)

    def widen(tag: int, insert: bool, probes: Iterable[int], queries: Iterable[int]) -> None:
        old = routes.get(tag, Route())
        routes[tag] = Route(
            old.insert or insert, old.probes.union(probes), old.queries | {*queries}
        )

    alike: dict[object, list[int]] = {}
    filters = [0] * len(queries)
    for number, query in enumerate(queries):
        key = frozenset(query.windows), query.terms, tuple(sorted(query.where.items()))
        alike.setdefault(key, []).append(number)
    for numbers in alike.values():
        query = queries[numbers[0]]
        bits = {stream: bit(stream, query.where.get(stream)) for stream in query.windows}
        for stream in query.windows:
            admission[stream].append(sum(1 << index for index in bits[stream]))
            order = [s for s in sorted(query.windows) if s > stream]
            order += [s for s in sorted(query.windows) if s < stream]
            if not order:
                widen(stream, False, (), numbers)
                for number in numbers:
                    filters[number] = admission[stream][-1]
                continue
            widen(stream, True, order[:1], ())
            for term in query.terms:
                tag, bound = stream, {stream}
                for step, area in enumerate(order):
                    post = len(routes)
                    final = step == len(order) - 1
                    after = () if final else (order[step + 1],)
                    widen(post, False, after, numbers if final else ())
                    probe_bits = bits[stream] if step == 0 else ()
                    areas[area].combine(tag, bound, term, bits[area], probe_bits, post)
                    tag = post
                    bound.add(area)

    return Tables(
        groups,
        tuple(map(tuple, selections)),
        tuple(map(tuple, admission)),
        tuple(
            area.finish(Retention.over(q.windows.get(area.stream, UNUSED) for q in queries))
            for area in areas
        ),
        routes,
        tuple(tuple(q.windows.get(stream, UNUSED) for stream in range(n)) for q in queries),
        tuple(filters) if any(filters) else (),
    )


class _AreaBuilder:
    def __init__(self, stream: int) -> None:
        self.stream = stream
        self.factors: list[Factor] = []
        self.combinations: list[Combination] = []

    def combine(
        self,
        pre: int,
        bound: set[int],
        term: tuple[On, ...],
        window_bits: tuple[int, ...],
        probe_bits: tuple[int, ...],
        post: int,
    ) -> None:
        indices = []
        for on in term:
            condition = CONDITIONS[on.symbol]
            if on.y == self.stream and on.x in bound:
                factor = Factor(on.b, on.x, on.a, condition)
            elif on.x == self.stream and on.y in bound:
                factor = Factor(on.a, on.y, on.b, condition.mirrored())
            else:
                continue
            if factor not in self.factors:
                self.factors.append(factor)
            indices.append(self.factors.index(factor))
        row = Combination(pre, tuple(dict.fromkeys(indices)), window_bits, probe_bits, post)
        self.combinations.append(row)

    def finish(self, retention: Retention) -> Area:
        code: list[isa.Instruction] = [
            isa.Cmp(f.window_attribute, f.probe_stream, f.probe_attribute, f.condition, r)
            for r, f in enumerate(self.factors)
        ]
        if all(row.factors for row in self.combinations):
            code.append(isa.Jmpli())
        for row in self.combinations:
            needs = [*row.factors]
            needs += [isa.WINDOW_SELECTION_REGISTERS[index] for index in row.window_selections]
            needs += [isa.PROBE_SELECTION_REGISTERS[index] for index in row.probe_selections]
            holds = needs[0] if needs else isa.TRUE_REGISTER
            step: list[isa.Instruction] = []
            for register in needs[1:]:
                step.append(isa.AndRegisters(holds, register, 16))
                holds = 16
            step.append(isa.Emit(holds, row.post_tag))
            code.append(isa.Jmpct(row.pre_tag, len(code) + 1 + len(step)))
            code += step
        code.append(isa.Nop())
        return Area(tuple(self.factors), tuple(self.combinations), assemble(*code), retention)


def assemble(*code: isa.Instruction) -> tuple[int, ...]:
    return tuple(instruction.encode() for instruction in code)


def with_area(tables: Tables, number: int, **members: object) -> Tables:
    """Returns the tables with members of one area replaced."""
    areas = list(tables.areas)
    areas[number] = dataclasses.replace(areas[number], **members)  # type: ignore[arg-type]
    return dataclasses.replace(tables, areas=tuple(areas))


# --- batches ------------------------------------------------------------------


def arrivals(
    rows: Iterable[tuple[int, int, tuple[int, ...]]],
    groups: tuple[int, ...] = (0, 1, 2),
    ticks: Sequence[int] = (),
) -> list[Raw]:
    """Numbers (source, timestamp, attributes) rows, and repeats each one for all streams of its
    source; rows whose positions are in `ticks` are not admitted."""
    seen = dict.fromkeys(groups, 0)
    raws = []
    for position, (source, timestamp, attributes) in enumerate(rows):
        padded = (*attributes, *(0,) * (MAX_ATTRIBUTES - len(attributes)))
        for stream, group in enumerate(groups):
            if group == source:
                admit = position not in ticks
                raws.append(Raw(stream, timestamp, seen[source], admit, padded))
        seen[source] += 1
    return raws


def batch(raws: Sequence[Raw]) -> Batch:
    return Batch(
        np.array([raw.stream for raw in raws], np.uint8),
        np.array([raw.timestamp for raw in raws], np.int64),
        np.array([raw.sequence for raw in raws], np.int64),
        np.array([raw.admit for raw in raws], np.bool_),
        np.array([raw.attributes for raw in raws], np.uint32).reshape(-1, MAX_ATTRIBUTES),
    )


def run(device: Device, raws: Sequence[Raw], at_once: int | None = None) -> Results:
    """Pushes the tuples, `at_once` per batch, and drains the device."""
    size = at_once or max(len(raws), 1)
    parts = [device.push(batch(raws[i : i + size])) for i in range(0, len(raws), size)]
    return Results.concatenate([*parts, device.flush()])


Row = tuple[int, int, int, tuple[int, ...]]
"""Query, newest and oldest timestamp, sequence number of each stream."""


def rows_of(results: Results) -> list[Row]:
    """Returns one row per result, of which a record has several."""
    record, queries = results.each()
    return [
        (query, newest, oldest, tuple(sequences))
        for query, newest, oldest, sequences in zip(
            queries.tolist(),
            results.newest[record].tolist(),
            results.oldest[record].tolist(),
            results.sequences[record].tolist(),
            strict=True,
        )
    ]


def exact(device: Device) -> Status:
    """Returns the counters, without those in which a processor may count encounters with a tuple
    that has just died."""
    return dataclasses.replace(device.status(), pairs=0, circulated=0)


def counts_as(processor: Status, model: Status, guards: bool = False) -> bool:
    """Returns whether all counters agree. A processor may count encounters with a tuple that has
    just died, and it may compare fewer pairs if there are guards (`seustream.hdl.device.Area`)."""
    more = processor.circulated >= model.circulated and (guards or processor.pairs >= model.pairs)
    return (
        more
        and dataclasses.replace(processor, pairs=model.pairs, circulated=model.circulated) == model
    )


def handed_over(results: Results) -> list[tuple[int, int, int, int]]:
    """Returns stream and sequence number of each tuple handed over, and of its taker."""
    handed = results.handed_over
    columns = (handed.stream, handed.sequence, handed.taker, handed.taken_by)
    return list(zip(*(map(int, column) for column in columns), strict=True))
