"""Compact enumeration of plain subsets: constant work per event, and every step leads to a match.

For ANY SUBSETS with nothing but types, constants, middle absences and the window, partial matches
need not be kept apart. Every state keeps the events that reached it. With each event it keeps the
range of nodes in the previous state from which the event can have come, and the latest start that
any way back leads to. These starts never decrease along a state, so the ways still within the
window are the end of each range, found by bisection. Following any of them leads to a match.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from seustream.engine.pattern.errors import EngineRefused, PatternBudgetExceeded
from seustream.engine.pattern.event import BEGIN_OF_TIME, END_OF_STREAM, Event, Match
from seustream.engine.pattern.meaning import Meaning
from seustream.engine.pattern.planner import supports


@dataclass(slots=True)
class CompactNode:
    """An event in a state. Its ways back are the nodes `low` to `high` of the previous state and,
    in a loop, all nodes of its own state up to `own`."""

    event: Event
    low: int
    high: int
    own: int


@dataclass(slots=True)
class CompactState:
    """A state of `element`: `enters` if it is the element's first, `loops` if it repeats.
    `absences` are the negated elements before it. Nodes are numbered from `base`; earlier ones are
    forgotten. Nodes below `committed` are earlier than the present time; nodes of the previous
    state below `low` are cut off by an absence."""

    element: int
    enters: bool
    loops: bool
    absences: tuple[int, ...]
    nodes: list[CompactNode] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    base: int = 0
    committed: int = 0
    low: int = 0

    @property
    def end(self) -> int:
        return self.base + len(self.nodes)

    def reach(self, low: int, high: int, earliest: int) -> range:
        """Returns the nodes from `low` up to `high` that have a way back to this start or a later
        one."""
        first = bisect_left(self.starts, earliest) + self.base
        return range(max(low, first), high)


class Compact:
    """Holds the states of a query."""

    def __init__(self, meaning: Meaning, max_matches: int | None = None) -> None:
        reason = supports(meaning.query)["compact"]
        if reason is not None:
            raise EngineRefused(f"P016 compact enumeration cannot run this query: {reason}")
        self.meaning = meaning
        self._query = meaning.query
        self._max_matches = max_matches
        self.states = list(self._unrolled())
        self._now = BEGIN_OF_TIME

    def _unrolled(self) -> Iterator[CompactState]:
        """Yields the states: a group of at least k is k states, of which the last loops."""
        absences: list[int] = []
        for number, element in enumerate(self._query.elements):
            if element.negated:
                absences.append(number)
                continue
            count = element.least or 1
            for index in range(count):
                last = index + 1 == count
                yield CompactState(number, index == 0, element.kleene and last, tuple(absences))
                absences = []

    @property
    def held(self) -> int:
        return sum(len(state.nodes) for state in self.states)

    @property
    def largest(self) -> int:
        return max(len(state.nodes) for state in self.states)

    def advance(self, events: Sequence[Event], old: int, new: int) -> list[Match]:
        """Takes the events with old < ts ≤ new, in order; returns the matches determined since,
        ordered."""
        found: list[Match] = []
        at = 0
        while at < len(events) and not self._query.empty:
            end = at
            while end < len(events) and events[end].ts == events[at].ts:
                end += 1
            self._instant(events[at:end], found)
            at = end
        self._forget(new)
        return sorted(found, key=lambda match: match.order)

    def _instant(self, events: Sequence[Event], found: list[Match]) -> None:
        """Takes all events of one time: none of them can follow another in the next element."""
        for state in self.states:
            state.committed = state.end
        for event in events:
            made = []
            for number, state in enumerate(self.states):
                if self.meaning.fits(state.element, event):
                    way = self._node(number, state, event)
                    if way is not None:
                        made.append((number, *way))
            for number, node, start in made:
                self.states[number].nodes.append(node)
                self.states[number].starts.append(start)
                if number + 1 == len(self.states):
                    self._enumerate(node, found)
        for number, state in enumerate(self.states):
            if any(self.meaning.fits(n, e) for n in state.absences for e in events):
                # Affects later events only: the gap is open at both ends.
                state.low = max(state.low, self.states[number - 1].committed)

    def _node(
        self, number: int, state: CompactState, event: Event
    ) -> tuple[CompactNode, int] | None:
        """Returns an event's node in a state and its latest start, if any way leads there."""
        own = state.end if state.loops else state.base
        starts = [state.starts[-1]] if state.loops and state.starts else []
        low = high = 0
        if number == 0:
            starts.append(event.ts)
        else:
            before = self.states[number - 1]
            high = before.committed if state.enters else before.end
            low = max(state.low, before.base)
            if low < high:
                starts.append(before.starts[high - 1 - before.base])
        return (CompactNode(event, low, high, own), max(starts)) if starts else None

    def _enumerate(self, node: CompactNode, found: list[Match]) -> None:
        """Appends the match of every way back from a last-state node that is within the window."""
        window = self._query.window
        earliest = BEGIN_OF_TIME if window is None else node.event.ts - window
        last = len(self.states) - 1
        stack: list[tuple[int, CompactNode, _Way]] = [(last, node, _Way(node.event, last, None))]
        while stack:
            number, at, way = stack.pop()
            state = self.states[number]
            if number == 0:
                if at.event.ts >= earliest:
                    found.append(self._match(way))
            else:
                before = self.states[number - 1]
                for child in before.reach(at.low, at.high, earliest):
                    one = before.nodes[child - before.base]
                    stack.append((number - 1, one, _Way(one.event, number - 1, way)))
            if state.loops:
                for child in state.reach(state.base, at.own, earliest):
                    one = state.nodes[child - state.base]
                    stack.append((number, one, _Way(one.event, number, way)))
            if self._max_matches is not None and len(found) > self._max_matches:
                raise PatternBudgetExceeded(
                    f"query {self._query.name}: more than {self._max_matches:,} matches at once",
                    "narrow WITHIN, add conditions, or raise max_matches",
                )

    def _match(self, way: _Way | None) -> Match:
        groups: list[list[Event]] = [[] for _ in self._query.elements]
        first = last = None
        while way is not None:
            groups[self.states[way.state].element].append(way.event)
            first, last, way = first or way.event, way.event, way.after
        assert first is not None
        assert last is not None
        return Match(tuple(map(tuple, groups)), self.meaning.determined(first.ts, last.ts))

    def _forget(self, now: int) -> None:
        window = 0 if now == END_OF_STREAM else self._query.window
        if window is None:
            return
        for state in self.states:
            gone = bisect_left(state.starts, now + 1 - window)
            del state.nodes[:gone]
            del state.starts[:gone]
            state.base += gone


@dataclass(slots=True, eq=False)
class _Way:
    """The rest of a match, shared between ways that end alike."""

    event: Event
    state: int
    after: _Way | None
