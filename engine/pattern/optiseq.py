"""OptiSeq: searches ordered event lists from the shortest outwards, one event at a time.

An event is kept in the list of every element whose type and constants it fits. Only the single
positive elements, the anchors, are searched. The bound ones always form a block of neighbours, so
the next one has a range of times, found by bisection. Conditions are tested as soon as their events
are bound. Groups and absences are looked at when all anchors are bound.
"""

from __future__ import annotations

import heapq
import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Class
from seustream.engine.pattern.event import BEGIN_OF_TIME, END_OF_STREAM, Event, Ids, Match
from seustream.engine.pattern.meaning import BoundCondition, EventList, Meaning
from seustream.engine.pattern.planner import Order, OrderChooser, check_order
from seustream.engine.pattern.sampling import sample_step

Groups = list[Sequence[Event]]


@dataclass(frozen=True, slots=True)
class OrderStep:
    """A step of the search, for the trace. `kind` is order, range, bind, fail, match or reject;
    `depth` is the number of anchors bound before."""

    kind: str
    depth: int
    text: str


class OptiSeq:
    """A query's lists and their search. `tighten` leaves room in a range for the elements still to
    come on its other side. `order` is cost, paper, or anchor positions. `on_step` is called with
    every step. If more than `most` matches are found, the search is repeated for each `most` of
    them."""

    def __init__(
        self,
        meaning: Meaning,
        order: str | Order = "cost",
        tighten: bool = True,
        most: int | None = None,
        on_step: Callable[[OrderStep], None] | None = None,
    ) -> None:
        query = meaning.query
        check_order(order, len(query.anchors))
        self.meaning = meaning
        self.lists = [EventList() for _ in query.elements]
        self.chooser = OrderChooser(query, order, self._share)
        self.levels: list[int] = []
        self._query = query
        self._tighten = tighten
        self._most = most
        self._after: tuple[int, Ids] | None = None
        self._left = False
        self._on_step = on_step
        self._anchors = query.anchors
        self._pairs = meaning.of(Class.PAIR)
        self._whole = meaning.of(Class.FIRST, Class.STEP, Class.GROUP)
        self._members = meaning.of(Class.MEMBER)
        self._loops = [i for i in query.positives if query.elements[i].kleene]
        self._order: Order = ()
        self._due: list[list[BoundCondition]] = []
        self._bounds: list[tuple[int, int]] = []
        self._epoch = (0, 0)
        self._found: list[Match] = []

    @property
    def held(self) -> int:
        return sum(map(len, self.lists))

    @property
    def largest(self) -> int:
        return max(map(len, self.lists), default=0)

    @property
    def order(self) -> Order:
        """The search order of the last epoch."""
        return self._order

    def advance(self, events: Sequence[Event], old: int, new: int) -> Iterator[Match]:
        """Takes the events with old < ts ≤ new, in order; yields the matches determined since, in
        order. Must be iterated to its end."""
        for event in events:
            for element, one in enumerate(self.lists):
                if self.meaning.fits(element, event):
                    one.append(event)
        if not self._query.empty and all(len(self.lists[i]) for i in self._anchors):
            yield from self._ordered(old, new)
        horizon = 0 if new == END_OF_STREAM else self._query.horizon
        if horizon is not None:
            for one in self.lists:
                one.expire(new + 1 - horizon)

    def _ordered(self, old: int, new: int) -> Iterator[Match]:
        """Yields the matches of an epoch in order."""
        self._found, self._after, self._left = [], None, False
        self._search(old, new)
        while True:
            self._found.sort(key=lambda match: match.order)
            found = self._found[: self._most]
            left = self._left or len(found) < len(self._found)
            yield from found
            if not left:
                return
            self._found, self._after, self._left = [], found[-1].order, False
            with self.meaning.uncounted():
                self._search(old, new)

    def _add(self, match: Match) -> None:
        if self._after is not None and match.order <= self._after:
            return
        self._found.append(match)
        if self._most is not None and len(self._found) > 2 * self._most:
            self._found = heapq.nsmallest(self._most, self._found, lambda match: match.order)
            self._left = True

    # --- planning -------------------------------------------------------------

    def _search(self, old: int, new: int) -> None:
        lists = [self.lists[i] for i in self._anchors]
        first = min(one.times[0] for one in lists)
        last = max(one.times[-1] for one in lists)
        self._epoch = (old, new)
        self._bounds = self._determining(old, new)
        searched = [len(o.between(*of)) for o, of in zip(lists, self._bounds, strict=True)]
        self._order = self.chooser.choose([len(one) for one in lists], last - first, searched)
        self.levels = [0] * (len(self._anchors) - 1)
        self._due = self._conditions_by_step()
        start = self._order[0]
        element = self._anchors[start]
        low, high = self._bounds[start]
        groups: Groups = [()] * self.meaning.size
        names = [str(self._query.elements[self._anchors[place]]) for place in self._order]
        self._tell("order", 0, ", ".join(names))
        for event in self.lists[element].between(low, high):
            groups[element] = (event,)
            if self._holds(groups, element, 0):
                self._verify(groups, start, start, 1)
        groups[element] = ()

    def _conditions_by_step(self) -> list[list[BoundCondition]]:
        """Returns, for each anchor of the order, the conditions that it completes."""
        found, bound = [], set()
        for place in self._order:
            element = self._anchors[place]
            bound.add(element)
            refs = [(c, set(c.conjunct.refs)) for c in self._pairs]
            found.append([c for c, names in refs if element in names and names <= bound])
        return found

    def _determining(self, old: int, new: int) -> list[tuple[int, int]]:
        """Returns for each anchor the range of times it may have, excluding the end. The anchor
        that determines D is bound to the epoch, so that a match is found in the one epoch that
        holds its D."""
        bounds = [(BEGIN_OF_TIME, END_OF_STREAM + 1)] * len(self._anchors)
        query = self._query
        if not query.waits:
            if self._anchors[-1] == query.positives[-1]:
                bounds[-1] = (old + 1, new + 1)
        elif query.window is not None and self._anchors[0] == query.positives[0]:
            bounds[0] = (old + 1 - query.window, new + 1 - query.window)
        return bounds

    def _share(self, conjunct: ir.Conjunct, first: int, second: int) -> tuple[int, int]:
        """Returns how many pairs of two anchors were sampled, and how many a condition lets
        through."""
        condition = next(c for c in self._pairs if c.conjunct is conjunct)
        a, b = self._anchors[first], self._anchors[second]
        earlier, later = self.lists[a], self.lists[b]
        window = END_OF_STREAM if self._query.window is None else self._query.window
        pairs = passed = 0
        groups: Groups = [()] * self.meaning.size
        with self.meaning.uncounted():
            for event in earlier.events[:: sample_step(len(earlier))]:
                groups[a] = (event,)
                for partner in later.between(event.ts + 1, event.ts + window + 1):
                    groups[b] = (partner,)
                    pairs += 1
                    passed += self.meaning.once(condition, groups)
        return pairs, passed

    # --- search ---------------------------------------------------------------

    def _verify(self, groups: Groups, low: int, high: int, step: int) -> None:
        """Binds the next anchor in every possible way; `low` to `high` are bound."""
        if step == len(self._order):
            self._complete(groups)
            return
        place = self._order[step]
        element = self._anchors[place]
        one = self.lists[element]
        begin, end = self._range(groups, low, high, place)
        bound = (min(low, place), max(high, place))
        first, last = bisect_left(one.times, begin), bisect_left(one.times, end)
        if self._on_step is not None:
            inside = " ".join(map(repr, one.events[first:last])) or "none"
            span = f"{_time(begin)} ≤ ts < {_time(end)}"
            self._tell("range", step, f"{self._query.elements[element]} at {span}: {inside}")
        for index in range(first, last):
            self.levels[step - 1] += 1
            groups[element] = (one.events[index],)
            if self._holds(groups, element, step):
                self._verify(groups, *bound, step + 1)
        groups[element] = ()

    def _range(self, groups: Groups, low: int, high: int, place: int) -> tuple[int, int]:
        """Returns the times that an anchor next to the block may have: strictly after or before it,
        all within the window."""
        window = self._query.window
        left, right = groups[self._anchors[low]][0].ts, groups[self._anchors[high]][0].ts
        begin, end = self._bounds[place]
        if place > high:
            begin = max(begin, right + 1)
            if window is not None:
                end = min(end, left + window + 1 - self._missing(low, before=True))
            return begin, min(end, self._first_absence(high, right))
        end = min(end, left)
        if window is not None:
            begin = max(begin, right - window + self._missing(high, before=False))
        return max(begin, self._last_absence(low, left)), end

    def _missing(self, place: int, before: bool) -> int:
        """Returns the fewest ticks that the positives beyond an anchor need."""
        if not self._tighten:
            return 0
        element = self._anchors[place]
        return sum((i < element) if before else (i > element) for i in self._query.positives)

    def _plain_absences(self, left: int, right: int) -> list[EventList]:
        """Returns the lists of absences that depend on constants only, between two neighbouring
        anchors with nothing else between them."""
        between = range(self._anchors[left] + 1, self._anchors[right])
        if any(not self._query.elements[i].negated for i in between):
            return []
        return [self.lists[i] for i in between if not self.meaning.forbidding[i]]

    def _first_absence(self, high: int, after: int) -> int:
        """Bounds the next anchor: it may be no later than the first forbidding event after this
        one."""
        end = END_OF_STREAM + 1
        for one in self._plain_absences(high, high + 1):
            index = bisect_right(one.times, after)
            if index < len(one):
                end = min(end, one.times[index] + 1)
        return end

    def _last_absence(self, low: int, before: int) -> int:
        begin = BEGIN_OF_TIME
        for one in self._plain_absences(low - 1, low):
            index = bisect_left(one.times, before)
            if index:
                begin = max(begin, one.times[index - 1])
        return begin

    def _holds(self, groups: Groups, element: int, depth: int) -> bool:
        """Returns whether the conditions that this anchor completes hold, and traces the
        outcome."""
        found = all(self.meaning.once(condition, groups) for condition in self._due[depth])
        if self._on_step is not None:
            self._tell("bind" if found else "fail", depth, repr(groups[element][0]))
        return found

    def _tell(self, kind: str, depth: int, text: str) -> None:
        if self._on_step is not None:
            self._on_step(OrderStep(kind, depth, text))

    # --- groups and absences --------------------------------------------------

    def _complete(self, groups: Groups) -> None:
        old, new = self._epoch
        for whole in self._filled(groups):
            if not all(self.meaning.throughout(c, whole) for c in self._whole):
                self._reject(whole, "a condition on its groups does not hold")
                continue
            determined = self.meaning.determined(*self.meaning.ends(whole))
            if not old < determined <= new:
                self._reject(whole, f"certain at {_time(determined)}, not in this epoch")
                continue
            if self.meaning.forbidden(whole, self.lists):
                self._reject(whole, "an event forbids it")
                continue
            if self._on_step is not None:
                self._tell("match", len(self._order), show(whole))
            self._add(Match(tuple(map(tuple, whole)), determined))

    def _reject(self, whole: Groups, why: str) -> None:
        if self._on_step is not None:
            self._tell("reject", len(self._order), f"{show(whole)}: {why}")

    def _filled(self, groups: Groups) -> Iterable[Groups]:
        """Returns the anchors together with their groups, in every possible way."""
        if not self._loops:
            return (groups,)
        return self._maximal(groups) if self._query.grouped else self._subsets(groups)

    def _maximal(self, groups: Groups) -> Iterator[Groups]:
        """GROUP: every Kleene element takes all events that fit its gap."""
        whole = list(groups)
        for element in self._loops:
            of = self._query.elements[element]
            begin, end = self._gap(element, groups)
            members = self._fitting(element, groups, begin, end)
            if len(members) < (of.least or 1) or (of.most is not None and len(members) > of.most):
                return
            whole[element] = members
        yield whole

    def _gap(self, element: int, groups: Groups) -> tuple[int, int]:
        """Returns the times at which a group may be: between the singles beside it or, at an end of
        the sequence, within the window of the singles."""
        window = self._query.window
        before = [i for i in self._anchors if i < element]
        after = [i for i in self._anchors if i > element]
        begin, end = BEGIN_OF_TIME, END_OF_STREAM + 1
        if before:
            begin = groups[before[-1]][0].ts + 1
        elif window is not None:
            begin = groups[self._anchors[-1]][0].ts - window
        if after:
            end = groups[after[0]][0].ts
        elif window is not None:
            end = groups[self._anchors[0]][0].ts + window + 1
        return begin, end

    def _fitting(self, element: int, groups: Groups, begin: int, end: int) -> Sequence[Event]:
        """Returns the events of a gap that pass the conditions on single members."""
        events = self.lists[element].between(begin, end)
        conditions = [c for c in self._members if c.kleene == (element,)]
        if not conditions:
            return events
        trial = list(groups)
        found = []
        for event in events:
            trial[element] = (event,)
            if all(self.meaning.member(c, trial, 0) for c in conditions):
                found.append(event)
        return found

    def _subsets(self, groups: Groups) -> Iterator[Groups]:
        """SUBSETS: yields every choice of members, each group strictly after the previous one."""
        fitting = {i: self._fitting(i, groups, *self._gap(i, groups)) for i in self._loops}

        def fill(whole: Groups, rest: list[int], after: int) -> Iterator[Groups]:
            if not rest:
                yield whole
                return
            element, *others = rest
            of = self._query.elements[element]
            events = [event for event in fitting[element] if event.ts > after]
            most = len(events) if of.most is None else min(of.most, len(events))
            for size in range(of.least or 1, most + 1):
                for members in itertools.combinations(events, size):
                    chosen = list(whole)
                    chosen[element] = members
                    yield from fill(chosen, others, members[-1].ts)

        yield from fill(list(groups), self._loops, BEGIN_OF_TIME)


def show(groups: Sequence[Sequence[Event]]) -> str:
    """Shows the events of a match, element by element."""
    return " | ".join(" ".join(map(repr, group)) for group in groups if group)


def _time(ts: int) -> str:
    return "−∞" if ts <= BEGIN_OF_TIME + 1 else "∞" if ts >= END_OF_STREAM else str(ts)
