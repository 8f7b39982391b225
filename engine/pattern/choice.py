"""Chooses among the matchers that can run a query: the one estimated to be cheapest.

What the estimate needs, lengths of lists and shares of pairs a condition lets through, is sampled
from the first events of an epoch: those of one window, and no more than 10,000. Of a short epoch the events held
from before are sampled, too, and it gets its part of the work that they make. The work, steps of a search or runs
tested, is weighed with what it takes each matcher; an epoch and an
event cost something in any case. Long epochs are the columns' field, where a step costs next to
nothing; of a few events at a time they are not ready before the others are done.
`seustream bench patterns:costs` measures the figures of `COSTS`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Class, Mode, Strategy
from seustream.engine.pattern.batch import EventBatch, concat
from seustream.engine.pattern.links import link
from seustream.engine.pattern.lists import Lists
from seustream.engine.pattern.planner import CostEstimate, cost_order, pick, stale, supports
from seustream.engine.pattern.sampling import constants, fitting, share

SAMPLED = 10_000
MARGIN = 2.0
"""A matcher at work gives way only to one that is so many times cheaper."""
_OF_ALL_KEYS = ("columns", "compiled")
_SEARCHING = ("columns", "optiseq")
"""They go through what is kept in every epoch."""
_PAIRS_AT_ONCE = 1 << 20
_LONGEST_GROUP = 40
"""Of more events than this in a group the subsets are beyond counting anyway."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Microseconds of processor time for an epoch and each of its elements, for an event, and for
    a unit of work: a partial match made, or a run tested."""

    epoch: float
    event: float
    work: float


COSTS: Mapping[str, Cost] = {
    "columns": Cost(epoch=16.0, event=0.003, work=0.15),
    "compiled": Cost(epoch=16.0, event=0.005, work=0.07),
    "optiseq": Cost(epoch=1.2, event=0.3, work=10.0),
    "nfa": Cost(epoch=1.5, event=1.2, work=14.0),
    "compact": Cost(epoch=0.5, event=1.8, work=11.0),
}


@dataclass(frozen=True, slots=True)
class Sample:
    """The expected shape of an epoch: its events and keys, the anchors' lists and how often
    conditions on pairs hold, and how many events a group's list has in a window; `kept` are the
    events held from before. Where these are sampled, too, only a `part` of the work is the epoch's. The keys
    follow each other in the estimate, as in the columns' layout."""

    events: int
    keys: int
    anchors: CostEstimate
    groups: tuple[float, ...]
    kept: int = 0
    part: float = 1.0


@dataclass(frozen=True, slots=True)
class Choice:
    """A matcher and why. `costs` are the estimates for the epoch, in microseconds, by matcher;
    empty where nothing was sampled or only one can."""

    engine: str
    why: str
    costs: Mapping[str, float] = field(default_factory=dict)


def candidates(query: ir.PatternQuery) -> list[str]:
    """The matchers to choose from. Where whole columns do, runs of the compiled automaton are not to be
    more than there may be."""
    can = [name for name, reason in supports(query).items() if reason is None]
    return [name for name in can if name != "compiled" or "columns" not in can]


def compares(query: ir.PatternQuery) -> bool:
    """Tells the queries of which the columns compare events by kernels: nothing else goes through so
    many pairs, however short an epoch is."""
    pairs = (c for c in query.conjuncts if c.cls is Class.PAIR)
    return supports(query)["columns"] is None and any(link(c) is not None for c in pairs)


def beginning(batch: EventBatch, window: int | None) -> EventBatch:
    """The first events of an epoch, which are sampled."""
    end = min(len(batch), SAMPLED)
    if window is not None and len(batch):
        end = min(end, int(np.searchsorted(batch.ts, int(batch.ts[0]) + window, "right")))
    return batch if end == len(batch) else batch.take(np.arange(end))


@dataclass(frozen=True, slots=True)
class HeldEvents:
    """Events held from before an epoch: the latest of them, how many there are, and how many came meanwhile."""

    latest: EventBatch
    count: int
    came: float


def sample(
    query: ir.PatternQuery,
    batch: EventBatch,
    events: int,
    kept: int = 0,
    held: HeldEvents | None = None,
) -> Sample:
    """An epoch of so many events that begins with these, after epochs of which so many are kept; with `held` a short
    one, for which these stand."""
    part, covers = 1.0, events
    if held is not None:
        part, covers = events / (held.came + events), held.count + events
        batch = concat(held.latest, batch)
    rows = fitting(query, batch, constants(query))
    lists = Lists(query, batch, rows)
    scale = covers / max(len(batch), 1)
    span = lists.span * scale * lists.keys
    window = float(query.window) if query.window is not None else max(span, 1.0)
    shares = tuple(_share(lists, c) for c in query.conjuncts if c.cls is Class.PAIR)
    counts = tuple(round(len(lists.rows[i]) * scale) for i in query.anchors)
    windows = max(span / window, 1.0)
    groups = [len(lists.rows[i]) for i, element in enumerate(query.elements) if element.kleene]
    estimate = CostEstimate(counts, span, window, shares)
    in_window = tuple(n * scale / windows for n in groups)
    return Sample(events, lists.keys, estimate, in_window, kept, part)


def _share(lists: Lists, conjunct: ir.Conjunct) -> tuple[tuple[int, ...], float]:
    places = tuple(lists.query.anchors.index(i) for i in conjunct.refs)
    if len(places) != 2:
        return places, 1.0
    pairs, passed = share(lists, conjunct, conjunct.refs, _PAIRS_AT_ONCE)
    return places, max(passed, 1) / pairs if pairs else 1.0


def costs(query: ir.PatternQuery, seen: Sample) -> dict[str, float]:
    """Returns what each matcher that can run the query needs for such an epoch."""
    steps = len(query.elements) + len(query.conjuncts)
    return {
        name: COSTS[name].epoch * steps * (1 if name in _OF_ALL_KEYS else seen.keys)
        + COSTS[name].event * (seen.events + seen.kept * (name in _SEARCHING))
        + COSTS[name].work * _work(name, query, seen) * seen.part
        for name in candidates(query)
    }


def _work(engine: str, query: ir.PatternQuery, seen: Sample) -> float:
    """Partial matches a search makes, or runs that are tested."""
    anchors = seen.anchors
    groups = 1.0
    if query.mode is Mode.SUBSETS or query.strategy is not Strategy.ANY:
        # An event is in a subset or not. Where so many come in a window on average, those with more have most subsets.
        choices = math.e if query.mode is Mode.SUBSETS else 2.0
        for events in seen.groups:
            groups *= choices ** min(events, _LONGEST_GROUP)
    if not anchors.counts:
        return groups * seen.events
    if query.strategy is Strategy.STRICT:  # a step fits or it does not
        return float(anchors.counts[0] * len(anchors.counts)) * groups
    if query.strategy is Strategy.NEXT:
        return _chains(anchors) * groups
    if engine == "nfa" or (engine == "compiled" and supports(query)["compact"] is not None):
        return _from_the_left(anchors) * groups
    if engine in ("compact", "compiled"):  # a node an event, and a step for every event of a result
        last = len(anchors.counts) - 1
        return sum(anchors.counts) + anchors.raw(0, last) * groups
    return cost_order(anchors)[0] * (groups if query.mode is Mode.SUBSETS else 1.0)


def _from_the_left(anchors: CostEstimate) -> float:
    """The sum of `cost_order` over the beginnings of the pattern: runs times events."""
    work = float(anchors.counts[0])
    for high in range(1, len(anchors.counts)):
        work += anchors.raw(0, high) * anchors.passing(0, high - 1)
    return work


def _chains(anchors: CostEstimate) -> float:
    """Under NEXT a run looks at events until one fits, and is one run all the time."""
    work = starts = float(anchors.counts[0])
    for high in range(1, len(anchors.counts)):
        there = anchors.raw(high, high) / max(anchors.span / anchors.window, 1.0)
        fits = anchors.passing(0, high) / max(anchors.passing(0, high - 1), 1e-9)
        work += starts * min(there, 1 / max(fits, 1e-9))
    return work


class EngineChooser:
    """The matcher for each epoch; considered anew when the epochs have become more than twice as
    long or short as when it last was, or if they are short what is held meanwhile."""

    def __init__(self, query: ir.PatternQuery, engine: str) -> None:
        name, why = pick(query, engine)
        self.choice = Choice(name, why)
        self.query = query
        self.open = engine == "auto" and not compares(query) and len(candidates(query)) > 1
        self.considered: tuple[int, ...] = ()

    def due(self, events: int, kept: int = 0) -> bool:
        """Returns whether an epoch of so many events is worth a look, if so many are held."""
        return self.open and events > 0 and stale(self.considered, (events, max(events, kept)))

    def resume(self, engine: str, considered: Sequence[int]) -> None:
        """Returns where another chooser of the same query was."""
        if self.open:
            self.choice = Choice(engine, "chosen before")
            self.considered = tuple(considered)

    def consider(
        self, batch: EventBatch, events: int, kept: int = 0, held: HeldEvents | None = None
    ) -> Choice:
        """An epoch that begins with these events; they are in order."""
        self.considered = (events, max(events, kept))
        seen = sample(self.query, beginning(batch, self.query.window), events, kept, held)
        return self.by_cost(costs(self.query, seen))

    def by_cost(self, found: Mapping[str, float]) -> Choice:
        """The cheapest, if it is so by far; else the one there is."""
        cheapest = min(found, key=lambda name: (found[name], name))
        engine = self.choice.engine
        if found[cheapest] * MARGIN <= found[engine]:
            engine = cheapest
        others = ", ".join(f"{n} {_time(c)}" for n, c in found.items() if n != engine)
        why = f"estimated {_time(found[engine])} an epoch; {others}"
        self.choice = Choice(engine, why, found)
        return self.choice


def _time(microseconds: float) -> str:
    if microseconds < 1_000:
        return f"{microseconds:.0f} µs"
    if microseconds < 1_000_000:
        return f"{microseconds / 1_000:.0f} ms"
    return f"{microseconds / 1_000_000:,.0f} s"
