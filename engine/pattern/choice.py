"""Chooses between two matchers for subsets of groups: the automaton's kernel, and a search of lists.

All other queries have their matcher from the beginning (`planner.pick`). Where a condition compares
the events before and after a group, the automaton makes all subsets that a later event might
complete; the search first binds the single events, and makes the subsets between them. Which is
cheaper depends on the lengths of lists and on the share of pairs that a condition lets through. Both
are sampled from the first events of an epoch: those of one window, and no more than 10,000. For a
short epoch, the events held from before are sampled too, and it is charged its share of the work
that they make. The work, steps of a search or runs tested, is weighed with each matcher's cost of a
unit; an epoch and an event cost something in any case. The figures are rough: they have to tell
apart what differs by orders of magnitude. `seustream bench pattern_costs` shows what the choice
costs beside all other matchers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Class
from seustream.engine.pattern.batch import EventBatch, concat
from seustream.engine.pattern.links import asks
from seustream.engine.pattern.lists import Lists
from seustream.engine.pattern.planner import CostEstimate, cost_order, pick, stale, supports
from seustream.engine.pattern.sampling import constants, fitting, share

SAMPLED = 10_000
MARGIN = 2.0
"""Another matcher must be cheaper by this factor to replace the one at work."""
_SMALL_PART = 8
"""Fewer held events than this part of an epoch do not matter."""
_SHORT = 64
"""Shorter epochs count as this long: they cost the same, and their lengths change all the time."""
_PAIRS_AT_ONCE = 1 << 20
_LONGEST_GROUP = 40
"""Longer groups are estimated as this long: their subsets are beyond counting anyway."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Microseconds of processor time per epoch for each element and condition, per event, and per
    unit of work: a partial match made, or a run tested."""

    epoch: float
    event: float
    work: float


COSTS: Mapping[str, Cost] = {
    "compiled": Cost(epoch=8.0, event=0.03, work=0.08),
    "optiseq": Cost(epoch=8.0, event=1.5, work=7.0),
}
ASKED = 100
"""The cost of a test for which the kernel asks, in tests that it decides itself."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The expected shape of an epoch: its events and keys, the anchors' lists, how often conditions
    on pairs hold, and how many events a group's list has in a window. `kept` counts the events held
    from before. Where held events are sampled too, only the share `part` of the work belongs to the
    epoch. The estimate lays the keys one after the other, as the columns do."""

    events: int
    keys: int
    anchors: CostEstimate
    groups: tuple[float, ...]
    kept: int = 0
    part: float = 1.0


@dataclass(frozen=True, slots=True)
class Choice:
    """A matcher and the reason for it. `costs` holds the estimates for the epoch, in microseconds,
    by matcher; it is empty where nothing was sampled or only one matcher can run."""

    engine: str
    why: str
    costs: Mapping[str, float] = field(default_factory=dict)


def candidates(query: ir.PatternQuery) -> list[str]:
    """Returns the matchers to choose from: more than one for subsets of a group between two events
    that a condition compares."""
    reasons = supports(query)
    if reasons["columns"] is None or any(reasons[name] for name in COSTS):
        return [pick(query)[0]]
    groups = [i for i, element in enumerate(query.elements) if element.kleene]
    pairs = [c.refs for c in query.conjuncts if c.cls is Class.PAIR]
    around = any(min(refs) < group < max(refs) for refs in pairs for group in groups)
    return list(COSTS) if around else [pick(query)[0]]


def beginning(batch: EventBatch, window: int | None) -> EventBatch:
    """Returns the first events of an epoch, which are the ones sampled."""
    end = min(len(batch), SAMPLED)
    if window is not None and len(batch):
        end = min(end, int(np.searchsorted(batch.ts, int(batch.ts[0]) + window, "right")))
    return batch if end == len(batch) else batch.take(np.arange(end))


@dataclass(frozen=True, slots=True)
class HeldEvents:
    """Events held from before an epoch: the latest of them, how many are held, and how many arrived
    meanwhile."""

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
    """Samples an epoch of `events` events that begins with `batch` and finds `kept` events held.
    With `held`, the epoch is short and is sampled together with the latest held events."""
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
    """Returns the cost of such an epoch for each of the matchers to choose from."""
    steps = len(query.elements) + len(query.conjuncts)
    compiled, optiseq = COSTS["compiled"], COSTS["optiseq"]
    tests = _from_the_left(seen.anchors) * _subsets(seen) * (ASKED if asks(query) else 1)
    last = len(seen.anchors.counts) - 1
    fit = seen.anchors.raw(0, last) * seen.anchors.passing(0, last)
    made = cost_order(seen.anchors)[0] + fit * _subsets(seen)
    looked_at = seen.events + seen.kept  # the search goes through all events held
    return {
        "compiled": compiled.epoch * steps
        + compiled.event * seen.events
        + compiled.work * tests * seen.part,
        "optiseq": optiseq.epoch * steps * seen.keys
        + optiseq.event * looked_at
        + optiseq.work * made * seen.part,
    }


def _subsets(seen: Sample) -> float:
    """Estimates the subsets of a group in a window. An event is in one or is not. The average is of
    windows of different sizes, and the fullest have most of the subsets."""
    return math.exp(sum(min(events, _LONGEST_GROUP) for events in seen.groups))


def _from_the_left(anchors: CostEstimate) -> float:
    """Returns the sum of `cost_order` over the prefixes of the pattern: runs times events."""
    work = float(anchors.counts[0])
    for high in range(1, len(anchors.counts)):
        work += anchors.raw(0, high) * anchors.passing(0, high - 1)
    return work


class EngineChooser:
    """Chooses the matcher for each epoch. The choice is reconsidered when the length of an epoch has
    changed by more than a factor of two, or the number of events held has grown by as much: with few
    events held, as after a gap, an epoch says little about those that follow."""

    def __init__(self, query: ir.PatternQuery, engine: str) -> None:
        name, why = pick(query, engine)
        self.choice = Choice(name, why)
        self.query = query
        self.open = engine == "auto" and len(candidates(query)) > 1
        self.considered: tuple[int, ...] = ()

    def due(self, events: int, kept: int = 0) -> bool:
        """Returns whether an epoch of `events` events calls for a new choice, with `kept` events
        held."""
        if not self.open or not events:
            return False
        before = tuple(max(length, _SHORT) for length in self.considered[:1])
        return stale(before, (max(events, _SHORT),)) or self._is_fuller(events, kept)

    def _is_fuller(self, events: int, kept: int) -> bool:
        """Returns whether many more events are held than when the matcher at work was chosen."""
        return bool(self.considered) and kept > 2 * max(self.considered[1], events // _SMALL_PART)

    def resume(self, engine: str, considered: Sequence[int]) -> None:
        """Takes over the state of another chooser of the same query."""
        if self.open and engine in COSTS:  # which others need not be
            self.choice = Choice(engine, "chosen before")
            self.considered = tuple(considered)

    def consider(
        self, batch: EventBatch, events: int, kept: int = 0, held: HeldEvents | None = None
    ) -> Choice:
        """Chooses a matcher for an epoch that begins with `batch`, whose events are in order."""
        # What was chosen with few events held has no advantage over the others.
        margin = 1.0 if self._is_fuller(events, kept) else MARGIN
        self.considered = (events, kept)
        seen = sample(self.query, beginning(batch, self.query.window), events, kept, held)
        return self.by_cost(costs(self.query, seen), margin)

    def by_cost(self, found: Mapping[str, float], margin: float = MARGIN) -> Choice:
        """Switches to the cheapest matcher if it is cheaper by `margin`; otherwise keeps the present
        one."""
        cheapest = min(found, key=lambda name: (found[name], name))
        engine = self.choice.engine
        if found[cheapest] * margin <= found[engine]:
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
