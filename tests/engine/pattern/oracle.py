"""The definition of a match, by brute force: enumerates all bindings, prunes only by the window,
and tests every rule again on each. Slow, but simple enough to trust.

Shares with the matchers only the evaluation of one expression for one binding.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from seustream.compiler.language import expressions as x
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Class, Mode, Strategy
from seustream.engine.pattern.event import Event, Ids
from seustream.engine.pattern.leaves import evaluator

Binding = list[tuple[Event, ...]]
Found = dict[Ids, int]
"""Matches by their ids, with the time from which each is certain."""

FOREVER = 1 << 62


class Oracle:
    def __init__(self, query: ir.PatternQuery) -> None:
        self.query = query
        self.window = FOREVER if query.window is None else query.window
        self.positives = [i for i, e in enumerate(query.elements) if not e.negated]
        self.conditions = [(c, _valued(c.expression)) for c in query.conjuncts]

    def matches(self, events: Sequence[Event]) -> Found:
        if self.query.empty:
            return {}
        if self.query.partition:
            return self._by_key(events)
        self.events = sorted(events, key=lambda e: (e.ts, e.seq))
        self.fits = [
            [e for e in self.events if self._fits(i, e)] for i in range(len(self.query.elements))
        ]
        grouped = self.query.strategy is Strategy.ANY and self.query.mode is Mode.GROUP
        candidates = self._maximal() if grouped else self._chosen([()] * len(self.fits), 0)
        found: Found = {}
        for binding in candidates:
            if self._is_match(binding):
                ids = tuple(tuple(e.seq for e in group) for group in binding)
                found[ids] = self._determined(binding)
        return found

    def _by_key(self, events: Sequence[Event]) -> Found:
        keys = [
            tuple(e.ts if name == ir.TIME else e.attrs.get(name) for name in self.query.partition)
            for e in events
        ]
        found: Found = {}
        for key in set(keys):
            alone = Oracle(self.query)
            alone.query = _without_partition(self.query)
            found |= alone.matches([e for e, k in zip(events, keys, strict=True) if k == key])
        return found

    # --- candidates -----------------------------------------------------------

    def _fits(self, element: int, event: Event) -> bool:
        of = self.query.elements[element]
        if of.types and event.type not in of.types:
            return False
        binding: Binding = [()] * len(self.query.elements)
        binding[element] = (event,)
        zeros = [0] * len(binding)
        return all(
            value(binding, zeros) is True
            for c, value in self.conditions
            if c.cls is Class.CONSTANT and c.refs == (element,)
        )

    def _chosen(self, binding: Binding, place: int) -> Iterator[Binding]:
        """Yields every assignment of events to the positive elements from `place` on."""
        if place == len(self.positives):
            yield binding
            return
        element = self.positives[place]
        of = self.query.elements[element]
        earlier = [e for group in binding for e in group]
        fits = [
            e
            for e in self.fits[element]
            if not earlier or (self._before(earlier[-1], e) and e.ts - earlier[0].ts <= self.window)
        ]
        sizes = [1]
        if of.kleene:
            least = 1 if of.least is None else of.least
            sizes = list(range(least, min(of.most or len(fits), len(fits)) + 1))
        for size in sizes:
            for group in itertools.combinations(fits, size):
                if not group or group[-1].ts - (earlier or group)[0].ts <= self.window:
                    yield from self._chosen(
                        [group if i == element else g for i, g in enumerate(binding)], place + 1
                    )

    def _maximal(self) -> Iterator[Binding]:
        """Yields every choice of the single events, with the largest groups between them."""
        singles = [i for i in self.positives if self.query.elements[i].single]
        for chosen in itertools.product(*(self.fits[i] for i in singles)):
            if not all(a.ts < b.ts for a, b in itertools.pairwise(chosen)):
                continue
            if chosen[-1].ts - chosen[0].ts > self.window:
                continue
            binding: Binding = [()] * len(self.query.elements)
            for element, event in zip(singles, chosen, strict=True):
                binding[element] = (event,)
            for element in self.positives:
                if self.query.elements[element].kleene:
                    binding[element] = self._group(element, singles, binding)
            yield binding

    def _group(self, element: int, singles: list[int], binding: Binding) -> tuple[Event, ...]:
        before = [binding[i][0].ts for i in singles if i < element]
        after = [binding[i][0].ts for i in singles if i > element]
        times = before + after

        def inside(e: Event) -> bool:
            low = before[-1] < e.ts if before else times[-1] - self.window <= e.ts
            high = e.ts < after[0] if after else e.ts <= times[0] + self.window
            return low and high

        members = []
        for event in filter(inside, self.fits[element]):
            trial = list(binding)
            trial[element] = (event,)
            if all(
                value(trial, [0] * len(trial)) is True
                for c, value in self.conditions
                if c.cls is Class.MEMBER and element in c.refs
            ):
                members.append(event)
        return tuple(members)

    # --- the six rules --------------------------------------------------------

    def _before(self, a: Event, b: Event) -> bool:
        return a.ts < b.ts

    def _is_match(self, binding: Binding) -> bool:
        elements = self.query.elements
        groups = [binding[i] for i in self.positives]
        for i in self.positives:
            of, size = elements[i], len(binding[i])
            least, most = (1, 1) if of.least is None else (of.least, of.most)
            if size < least or (most is not None and size > most):
                return False
        groups = [group for group in groups if group]
        if not groups or not all(self._before(a[-1], b[0]) for a, b in itertools.pairwise(groups)):
            return False
        if groups[-1][-1].ts - groups[0][0].ts > self.window:
            return False
        tested = (Class.CONSTANT, Class.NEGATED)
        if not all(self._true(c, v, binding) for c, v in self.conditions if c.cls not in tested):
            return False
        for i, element in enumerate(elements):
            if element.negated and any(self._forbids(i, e, binding) for e in self.fits[i]):
                return False
        return self.query.strategy is Strategy.ANY or self._contiguous(groups, binding)

    def _true(self, c: ir.Conjunct, value: object, binding: Binding) -> bool:
        """Returns whether the condition is TRUE for all members it applies to; a step applies from
        the second on."""
        elements = self.query.elements
        loops = [i for i in c.refs if elements[i].kleene and _goes_through(c.expression, i)]
        first = 1 if c.cls is Class.STEP else 0
        for at in itertools.product(*(range(first, len(binding[i])) for i in loops)):
            indices = [0] * len(binding)
            for i, index in zip(loops, at, strict=True):
                indices[i] = index
            if value(binding, indices) is not True:  # type: ignore[operator]
                return False
        return True

    def _forbids(self, element: int, event: Event, binding: Binding) -> bool:
        before = [binding[i] for i in self.positives if i < element and binding[i]]
        after = [binding[i] for i in self.positives if i > element and binding[i]]
        groups = [*before, *after]
        low = (
            before[-1][-1].ts < event.ts if before else groups[-1][-1].ts - self.window <= event.ts
        )
        high = event.ts < after[0][0].ts if after else event.ts <= groups[0][0].ts + self.window
        if not (low and high):
            return False
        bound = list(binding)
        bound[element] = (event,)
        return all(
            self._true(c, value, bound)
            for c, value in self.conditions
            if c.cls is Class.NEGATED and element in c.refs
        )

    def _determined(self, binding: Binding) -> int:
        groups = [binding[i] for i in self.positives if binding[i]]
        grouped = self.query.strategy is Strategy.ANY and self.query.mode is Mode.GROUP
        last = [
            e
            for e, g in zip(self.query.elements, binding, strict=True)
            if g or e.negated or grouped
        ][-1]
        if last.negated or (last.kleene and grouped):
            return groups[0][0].ts + self.window
        return groups[-1][-1].ts

    # --- NEXT and STRICT ------------------------------------------------------

    def _contiguous(self, groups: list[tuple[Event, ...]], binding: Binding) -> bool:
        """Returns whether no relevant event lies between two consecutive chosen events."""
        flat = [(place, e) for place, group in enumerate(groups) for e in group]
        for number, ((_, a), (_, b)) in enumerate(itertools.pairwise(flat), start=1):
            prefix = flat[:number]
            for event in self.events:
                between = (a.ts, a.seq) < (event.ts, event.seq) < (b.ts, b.seq)
                if between and (
                    self.query.strategy is Strategy.STRICT or self._relevant(event, prefix)
                ):
                    return False
        return True

    def _relevant(self, event: Event, prefix: list[tuple[int, Event]]) -> bool:
        """Returns whether the event could have been the next one chosen."""
        place = prefix[-1][0]
        of = self.query.elements[self.positives[place]]
        count = sum(p == place for p, _ in prefix)
        if event.ts - prefix[0][1].ts > self.window:
            return False
        if (
            of.kleene
            and (of.most is None or count < of.most)
            and self._extends(event, prefix, place)
        ):
            return True
        return (
            place + 1 < len(self.positives)
            and count >= (of.least or 1)
            and self._before(prefix[-1][1], event)
            and self._extends(event, prefix, place + 1)
        )

    def _extends(self, event: Event, prefix: list[tuple[int, Event]], place: int) -> bool:
        """Returns whether every condition that can be decided holds with the event in this
        place."""
        if event not in self.fits[self.positives[place]]:
            return False
        binding: Binding = [()] * len(self.query.elements)
        for p, e in [*prefix, (place, event)]:
            binding[self.positives[p]] += (e,)
        bound = {self.positives[p] for p in range(place + 1)}
        open_group = (
            self.positives[place] if self.query.elements[self.positives[place]].kleene else -1
        )
        for c, value in self.conditions:
            if c.cls in (Class.CONSTANT, Class.NEGATED) or not set(c.refs) <= bound:
                continue
            if c.cls is Class.GROUP and open_group in c.refs:
                continue
            if not self._true(c, value, binding):
                return False
        return True


def _valued(e: x.Expression) -> Callable[[Binding, Sequence[int]], object]:
    value = evaluator(e, [])
    return lambda binding, at: value((binding, at))


def _goes_through(e: x.Expression, element: int) -> bool:
    """Returns whether an expression refers to the members of a group in turn."""
    for part in ir.parts(e):
        if isinstance(part, ir.Value) and part.element == element:
            if part.pick in (ir.Pick.EACH, ir.Pick.PREVIOUS):
                return True
        elif isinstance(part, ir.GroupAggregate) and part.element == element and part.before:
            return True
    return False


def _without_partition(query: ir.PatternQuery) -> ir.PatternQuery:
    from dataclasses import replace

    return replace(query, partition=())
