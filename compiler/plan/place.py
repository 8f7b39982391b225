"""Placement: assigns queries to devices, and the rest to the engine.

    device 1: q1, q4   device 2: q2   engine: q3 (attributes used: 5 needed, at most 4)

A limit of the device is not an error. Queries are tried in the order of the work they save the engine,
those that save most first; a query that exceeds a limit is tried on the next device. Queries of one
shape, which differ in constants alone, exceed the same limit: after two of them the others are not
tried on that device.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from seustream.compiler.language import expressions as x
from seustream.compiler.logical.program import Query
from seustream.compiler.plan.limits import LimitExceeded
from seustream.compiler.plan.statistics import TYPICAL_ROWS, Statistics
from seustream.hdl.config import DeviceConfig
from seustream.hdl.device import Window, WindowKind
from seustream.hdl.isa import Condition

MOST_DEVICES = 64
"""The most devices that `auto` uses."""
_OF_A_SHAPE = 2
_REFUSED = 48
"""Total refusals after which a device counts as full, since each costs a plan."""
_EQUAL = 0.01
"""The share of a window that the engine looks at if an equality leads to it."""

Exceeds = Callable[[Sequence[Query]], LimitExceeded | None]
"""Returns the limit that some queries exceed together on one device, if any."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The names of the queries on each device, and the reasons for those on none."""

    devices: tuple[frozenset[str], ...] = ()
    software: dict[str, str] = field(default_factory=dict)


def place(
    queries: Sequence[Query],
    exceeds: Exceeds,
    config: DeviceConfig,
    statistics: Statistics,
    devices: int | None,
) -> Placement:
    """Places queries on at most `devices` devices, or with None on as many as needed. Candidates of
    patterns come last."""
    waiting = sorted(queries, key=lambda query: -worth(query, statistics))  # stable
    waiting.sort(key=lambda query: query.last is not None)
    groups: list[frozenset[str]] = []
    why: dict[str, str] = {}
    while waiting and len(groups) < (MOST_DEVICES if devices is None else devices):
        filling = _Filling(exceeds, config)
        filling.add(waiting)
        if not filling.taken:
            why = filling.why
            break
        groups.append(frozenset(query.name for query in filling.taken))
        waiting = [query for query in waiting if query.name not in groups[-1]]
        why = filling.why
    return Placement(
        tuple(groups), {query.name: why.get(query.name, "no device") for query in waiting}
    )


@dataclass
class _Filling:
    """Fills one device."""

    exceeds: Exceeds
    config: DeviceConfig
    taken: list[Query] = field(default_factory=list)
    why: dict[str, str] = field(default_factory=dict)
    refused: Counter[object] = field(default_factory=Counter)
    reasons: dict[object, str] = field(default_factory=dict)
    last: str = ""

    def add(self, queries: Sequence[Query]) -> None:
        """Takes as many queries as fit, in their order, several at a time while they do."""
        waiting = list(queries)
        step = len(waiting)
        while waiting:
            if known := self._known(waiting[0]):
                self.why[waiting.pop(0).name] = known
                continue
            some = waiting[:step]
            over = self._over([*self.taken, *some])
            if over is None:
                self.taken += some
                waiting = waiting[step:]
                step *= 2
            elif len(some) > 1:
                step = len(some) // 2
            else:
                self._refuse(waiting.pop(0), over)

    def _known(self, query: Query) -> str | None:
        """Returns why the device does not take a query, if this can be decided without a plan."""
        shape = shape_of(query)
        if self.refused[shape] >= _OF_A_SHAPE:
            return self.reasons[shape]
        if self.refused.total() >= _REFUSED:
            return self.last
        over = self._quickly([*self.taken, query])
        return str(over) if over is not None else None

    def _over(self, queries: Sequence[Query]) -> LimitExceeded | None:
        return self._quickly(queries) or self.exceeds(queries)

    def _quickly(self, queries: Sequence[Query]) -> LimitExceeded | None:
        """Checks the limits for which counting is enough."""
        if len(queries) > self.config.queries:
            return LimitExceeded("queries", len(queries), self.config.queries)
        copies = Counter[str]()
        for query in queries:
            copies |= Counter(source.stream.name for source in query.sources)
        if copies.total() > self.config.streams:
            return LimitExceeded(
                "streams", copies.total(), self.config.streams, ", ".join(sorted(copies))
            )
        return None

    def _refuse(self, query: Query, over: LimitExceeded) -> None:
        shape = shape_of(query)
        self.refused[shape] += 1
        self.reasons[shape] = self.why[query.name] = self.last = str(over)


def worth(query: Query, statistics: Statistics) -> float:
    """Estimates the rows that the engine looks at per arrival: a whole window, or a small part of
    it if an equality leads there; no window rows for a selection."""
    if len(query.sources) == 1:
        return 0.0
    equated = set[int]()
    for conjunct in x.conjuncts(query.where):
        match conjunct:
            case x.Compare(Condition.EQ, left, right):
                ends = (x.sources(left), x.sources(right))
                if all(len(end) == 1 for end in ends) and ends[0] != ends[1]:
                    equated |= ends[0] | ends[1]
    return sum(
        _rows(source.window, statistics.rows.get(source.stream.name.lower(), TYPICAL_ROWS))
        * (_EQUAL if number in equated else 1.0)
        for number, source in enumerate(query.sources)
    )


def _rows(window: Window, known: float) -> float:
    return min(known, float(window.size)) if window.kind is WindowKind.ROWS else known


def shape_of(query: Query) -> tuple[object, ...]:
    """Returns the streams, windows and condition of a query, without its constants."""
    sources = tuple((source.stream.name, source.window.kind) for source in query.sources)
    return sources, _without_constants(query.where)


def _without_constants(e: x.Expression) -> x.Expression:
    if isinstance(e, x.Literal):
        return x.Literal(None, e.type)
    return x.rebuild(e, _without_constants)


def everything(queries: Iterable[Query], why: str) -> Placement:
    """Places all queries in the engine, for one reason."""
    return Placement((), {query.name: why for query in queries})
