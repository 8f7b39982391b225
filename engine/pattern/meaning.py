"""The requirements of a query on events, in a form to evaluate: filters, tests, gaps and times.

All matchers except the columnar one evaluate them here, each in its own order. All they share is
the meaning of one condition on one binding.
"""

from __future__ import annotations

import contextlib
import itertools
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults, Place
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Class
from seustream.engine.pattern.columns import Prepared
from seustream.engine.pattern.event import BEGIN_OF_TIME, END_OF_STREAM, Event
from seustream.engine.pattern.leaves import Binding, Evaluator, evaluator, may_fault

Groups = Sequence[Sequence[Event]]
Range = tuple[int, int]
"""Times from the first, up to but not including the second."""


@dataclass(frozen=True, slots=True)
class BoundCondition:
    """A conjunct with its evaluators, one for single bindings and one for columns. `kleene` lists
    the groups whose members it ranges over; `latest` is the last positive element it mentions."""

    conjunct: ir.Conjunct
    evaluate: Evaluator
    prepared: Prepared
    kleene: tuple[int, ...]
    latest: int


class Meaning:
    """A query's parts by element number. Faults are counted in `faults` wherever a matcher
    evaluates, under the arrival number of the binding's newest event."""

    def __init__(self, query: ir.PatternQuery, faults: Faults | None = None) -> None:
        self.query = query
        self.faults: Faults | None = Faults() if faults is None else faults
        self.positives = query.positives
        self.size = len(query.elements)
        self.conditions = tuple(self._condition(c) for c in query.conjuncts)
        self._constants: list[list[Evaluator]] = [[] for _ in query.elements]
        self.forbidding: dict[int, list[BoundCondition]] = {
            i: [] for i, element in enumerate(query.elements) if element.negated
        }
        for condition in self.conditions:
            conjunct = condition.conjunct
            if conjunct.cls is Class.CONSTANT:
                self._constants[conjunct.refs[0]].append(condition.evaluate)
            elif conjunct.cls is Class.NEGATED:
                (negated,) = (i for i in conjunct.refs if query.elements[i].negated)
                self.forbidding[negated].append(condition)
        self._zeros = (0,) * self.size
        self._waits = query.waits

    def _condition(self, conjunct: ir.Conjunct) -> BoundCondition:
        elements = self.query.elements
        each = {
            part.element
            for part in ir.parts(conjunct.expression)
            if (isinstance(part, ir.Value) and part.pick in (ir.Pick.EACH, ir.Pick.PREVIOUS))
            or (isinstance(part, ir.GroupAggregate) and part.before)
        }
        positive = [i for i in conjunct.refs if not elements[i].negated]
        return BoundCondition(
            conjunct,
            self.evaluator(conjunct.expression),
            Prepared(conjunct.expression),
            tuple(sorted(i for i in each if elements[i].kleene)),
            max(positive, default=-1),
        )

    def evaluator(self, e: x.Expression) -> Evaluator:
        """Returns a function that evaluates an expression for a binding and counts its faults."""
        noted: list[Place] = []
        value = evaluator(e, noted)
        if not may_fault(e):
            return value

        def counted(binding: Binding) -> object:
            found = value(binding)
            if noted:
                self._count(noted, binding)
            return found

        return counted

    def _count(self, noted: list[Place], binding: Binding) -> None:
        places = list(noted)
        noted.clear()
        if self.faults is None:
            return
        newest = max(event.seq for group in binding[0] for event in group)
        for place in places:
            self.faults.add(place, 1, newest)

    @contextlib.contextmanager
    def uncounted(self) -> Iterator[None]:
        """Suspends the counting of faults: they were counted before, or the evaluation is a
        sample."""
        faults, self.faults = self.faults, None
        try:
            yield
        finally:
            self.faults = faults

    @contextlib.contextmanager
    def tentative(self) -> Iterator[None]:
        """Counts the faults of what is evaluated within only if it comes to its end."""
        faults = self.faults
        if faults is None:
            yield
            return
        tried = self.faults = Faults(faults.strict)
        try:
            yield
        finally:
            self.faults = faults
        for place, rows in tried.count.items():
            faults.add(place, rows, tried.first[place])

    def of(self, *classes: Class) -> list[BoundCondition]:
        return [c for c in self.conditions if c.conjunct.cls in classes]

    # --- one event ------------------------------------------------------------

    def fits(self, element: int, event: Event) -> bool:
        """Returns whether an event has an element's type and passes its constants."""
        wanted = self.query.elements[element].types
        if wanted and event.type not in wanted:
            return False
        constants = self._constants[element]
        if not constants:
            return True
        groups: list[Sequence[Event]] = [()] * self.size
        groups[element] = (event,)
        binding = (groups, self._zeros)
        for evaluate in constants:  # noqa: SIM110  # for every event: a generator costs more
            if evaluate(binding) is not True:
                return False
        return True

    # --- bindings -------------------------------------------------------------

    def once(self, condition: BoundCondition, groups: Groups) -> bool:
        """Tests a condition that ranges over no members."""
        return condition.evaluate((groups, self._zeros)) is True

    def member(self, condition: BoundCondition, groups: Groups, index: int) -> bool:
        """Tests a condition on one member of its group."""
        at = list(self._zeros)
        at[condition.kleene[0]] = index
        return condition.evaluate((groups, at)) is True

    def throughout(self, condition: BoundCondition, groups: Groups) -> bool:
        """Tests a condition on complete groups, for all members it ranges over; a step starts at
        the second member."""
        first = 1 if condition.conjunct.cls is Class.STEP else 0
        if not condition.kleene:
            return self.once(condition, groups)
        at = list(self._zeros)
        spans = [range(first, len(groups[i])) for i in condition.kleene]
        for indices in itertools.product(*spans):
            for element, index in zip(condition.kleene, indices, strict=True):
                at[element] = index
            if condition.evaluate((groups, at)) is not True:
                return False
        return True

    # --- gaps and times -------------------------------------------------------

    def gap(self, element: int, groups: Groups) -> Range:
        """Returns the times at which an event would forbid a negated element: strictly between its
        neighbours or, at an end of the sequence, wherever it would still be within the window."""
        first, last = self.ends(groups)
        before = [i for i in self.positives if i < element]
        after = [i for i in self.positives if i > element]
        window = self.query.window
        low = groups[before[-1]][-1].ts + 1 if before else BEGIN_OF_TIME
        high = groups[after[0]][0].ts if after else END_OF_STREAM
        if window is not None:
            low = low if before else last - window
            high = high if after else first + window + 1
        return low, high

    def ends(self, groups: Groups) -> tuple[int, int]:
        """Returns the times of the first and the last event."""
        return groups[self.positives[0]][0].ts, groups[self.positives[-1]][-1].ts

    def forbidden(self, groups: Groups, lists: Sequence[EventList]) -> bool:
        """Returns whether some event of `lists` forbids this complete binding."""
        return any(
            self._forbids(element, groups, lists[element].between(*self.gap(element, groups)))
            for element in self.forbidding
        )

    def _forbids(self, element: int, groups: Groups, events: Sequence[Event]) -> bool:
        conditions = self.forbidding[element]
        if not conditions:
            return bool(events)
        bound = list(groups)
        for event in events:
            bound[element] = (event,)
            if all(self.throughout(condition, bound) for condition in conditions):
                return True
        return False

    def determined(self, first: int, last: int) -> int:
        """Returns D, the time at which a match between these times is certain."""
        if not self._waits:
            return last
        return END_OF_STREAM if self.query.window is None else first + self.query.window


class EventList:
    """The events that fit an element, in order, with their times beside them."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.times: list[int] = []

    def __len__(self) -> int:
        return len(self.events)

    def append(self, event: Event) -> None:
        self.events.append(event)
        self.times.append(event.ts)

    def between(self, low: int, high: int) -> Sequence[Event]:
        """Returns the events from `low` up to but not including `high`."""
        return self.events[bisect_left(self.times, low) : bisect_left(self.times, high)]

    def expire(self, before: int) -> None:
        """Forgets events earlier than `before`."""
        gone = bisect_left(self.times, before)
        if gone:
            del self.events[:gone]
            del self.times[:gone]
