"""Runs the automaton: NFA^b, whose runs share the events they took in one versioned buffer.

A run stands on a buffer entry, in some stage, with a version. Each event may advance it by `take`
(another member of its present group) or `begin` (the first event of the next element). The strategy
decides whether the run may also stay as it was. Negated elements are looked for when a match is
complete, among the events remembered for them.

There are two numberings of versions. `per_take`: every event taken adds a digit. No live run's
version is a prefix of another's, so exactly one way leads back. `per_state`: one digit per state,
as in the sources. It is sound where a run that ignores an event does nothing else with it, so not
under ANY.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Mode, Strategy
from seustream.engine.pattern.automaton import Automaton
from seustream.engine.pattern.buffer import BufferEntry, SharedBuffer
from seustream.engine.pattern.errors import EngineRefused, InternalError, PatternBudgetExceeded
from seustream.engine.pattern.event import END_OF_STREAM, Event, Match
from seustream.engine.pattern.meaning import EventList, Meaning
from seustream.engine.pattern.versions import Numbering, Version, add_stage, increase, root


@dataclass(slots=True, eq=False)
class ChosenMatch:
    """The events a run chose, newest first; clones share the list."""

    stage: int
    event: Event
    before: ChosenMatch | None


@dataclass(slots=True, eq=False)
class PartialMatch:
    """A run. It stands at the `count`-th event of stage `stage`."""

    stage: int
    count: int
    start: Event
    version: Version
    entry: BufferEntry
    chosen: ChosenMatch


@dataclass(frozen=True, slots=True)
class Move:
    """A step of a run, for the trace. `kind` is start, take, begin, stay, drop, expire or match."""

    kind: str
    version: Version
    label: Version | None
    entry: str


class Nfa:
    """The automaton of a query with its runs. `on_move` is called with every step."""

    def __init__(
        self,
        meaning: Meaning,
        numbering: Numbering = Numbering.PER_TAKE,
        max_runs: int | None = None,
        max_matches: int | None = None,
        on_move: Callable[[Move], None] | None = None,
    ) -> None:
        query = meaning.query
        reason = refusal(query)
        if reason is not None:
            raise EngineRefused(f"P016 the automaton cannot run this query: {reason}")
        if numbering is Numbering.PER_STATE and query.strategy is Strategy.ANY:
            raise EngineRefused("versions per state are ambiguous under ANY", "use per_take")
        self.meaning = meaning
        self.automaton = Automaton(meaning)
        self.buffer = SharedBuffer()
        self.tests = 0
        self.peak_runs = 0
        self._on_move = on_move
        self._numbering = numbering
        self._max_runs, self._max_matches = max_runs, max_matches
        self._query = query
        self._stages = self.automaton.stages
        self._runs: list[list[PartialMatch]] = [[] for _ in self._stages]
        self._roots = 0
        self._lists = [EventList() for _ in query.elements]
        self._pending: list[Match] = []
        self._found: list[Match] = []

    @property
    def runs(self) -> list[PartialMatch]:
        return [run for runs in self._runs for run in runs]

    @property
    def held(self) -> int:
        """The number of runs, entries, remembered events and pending matches kept."""
        lists = sum(map(len, self._lists))
        return sum(map(len, self._runs)) + len(self.buffer) + lists + len(self._pending)

    @property
    def largest(self) -> int:
        """The number of events in the largest list or page."""
        pages = [len(page) for page in self.buffer.pages.values()]
        return max([*pages, *map(len, self._lists)], default=0)

    # --- events ---------------------------------------------------------------

    def advance(self, events: Sequence[Event], old: int, new: int) -> list[Match]:
        """Takes the events with old < ts ≤ new, in order; returns the matches determined since,
        ordered."""
        self._found = []
        for event in events:
            self.on_event(event)
        found = self._found
        self._found = []
        if self._query.waits:
            self._pending += found
            found = [m for m in self._pending if new >= m.D]
            self._pending = [m for m in self._pending if new < m.D]
            found = [match for match in found if not self._forbidden(match)]
        self._forget(new)
        return sorted(found, key=lambda match: match.order)

    def _forget(self, now: int) -> None:
        """Drops everything that no later event can belong to: runs first, then the entries they
        stood on."""
        window, horizon = self._query.window, self._query.horizon
        if now == END_OF_STREAM:
            window = horizon = 0
        if window is None or horizon is None:
            return
        self._expire(lambda run: run.start.ts + window <= now)
        self.buffer.prune(now - window)
        for one in self._lists:
            one.expire(now + 1 - horizon)

    def _forbidden(self, match: Match) -> bool:
        return self.meaning.forbidden(match.groups, self._lists)

    def on_event(self, event: Event) -> None:
        """Takes one event; events come in the order of (ts, seq)."""
        meaning, query = self.meaning, self._query
        for element in meaning.forbidding:
            if meaning.fits(element, event):
                self._lists[element].append(event)
        if query.empty:
            return
        fits = [meaning.fits(stage.element, event) for stage in self._stages]
        # Runs made by this event are put aside: only runs that existed before may see it.
        made: list[PartialMatch] = []
        for place, runs in enumerate(self._runs):
            onward = place + 1 < len(self._stages) and fits[place + 1]
            looped = fits[place] and self._stages[place].loop_state is not None
            if runs and (onward or looped or query.strategy is Strategy.STRICT):
                self._runs[place] = [
                    kept for run in runs if (kept := self._step(run, event, fits, made)) is not None
                ]
        if fits[0] and self._allowed(0, event, None):
            self._start(event, made)
        for run in made:
            self._runs[run.stage].append(run)
        count = sum(map(len, self._runs))
        self.peak_runs = max(self.peak_runs, count)
        if self._max_runs is not None and count > self._max_runs:
            raise PatternBudgetExceeded(
                f"query {query.name}: more than {self._max_runs:,} runs at once",
                "narrow WITHIN, add conditions, or raise max_runs",
            )

    def _expire(self, over: Callable[[PartialMatch], bool]) -> None:
        for place, runs in enumerate(self._runs):
            kept = []
            for run in runs:
                if over(run):
                    self._move("expire", run.version, None, run.entry)
                    self.buffer.release(run.entry)
                else:
                    kept.append(run)
            self._runs[place] = kept

    def _step(
        self, run: PartialMatch, event: Event, fits: list[bool], made: list[PartialMatch]
    ) -> PartialMatch | None:
        """Advances one run; returns the run itself if it stays, else None."""
        query = self._query
        if query.window is not None and event.ts - run.start.ts > query.window:
            self._move("expire", run.version, None, run.entry)
            self.buffer.release(run.entry)
            return None
        self.tests += 1
        options: list[int] = []  # the stages it may lead to, its own first
        stage = self._stages[run.stage]
        if (
            stage.loop_state is not None
            and fits[run.stage]
            and (stage.most is None or run.count < stage.most)
            and self._allowed(run.stage, event, run)
        ):
            options.append(run.stage)
        onward = run.stage + 1
        if (
            onward < len(self._stages)
            and fits[onward]
            and run.count >= stage.least
            and event.ts > run.chosen.event.ts
            and self._allowed(onward, event, run)
        ):
            options.append(onward)
        for number, target in enumerate(options):
            label, version = self._labels(run, number, target, len(options))
            self._enter(run, target, event, label, version, made)
        if query.strategy is Strategy.ANY or (query.strategy is Strategy.NEXT and not options):
            if options and self._numbering is Numbering.PER_TAKE:
                run.version = increase(run.version, len(options))
            if options:
                self._move("stay", run.version, None, run.entry)
            return run
        self._move("drop", run.version, None, run.entry)
        self.buffer.release(run.entry)
        return None

    def _labels(
        self, run: PartialMatch, number: int, target: int, options: int
    ) -> tuple[Version, Version]:
        """Returns the versions of the new edge and of the run that stands on it."""
        if self._numbering is Numbering.PER_TAKE:
            label = increase(run.version, number)
            return label, add_stage(label)
        if target == run.stage:
            # If the run also leaves, a digit tells it from the clone that stays.
            stays = increase(run.version) if options > 1 else run.version
            return stays, stays
        label = run.version
        if self._stages[run.stage].loop_state is not None:
            label = add_stage(label)
        return label, add_stage(label)

    def _allowed(self, target: int, event: Event, run: PartialMatch | None) -> bool:
        """Returns whether the conditions settled by this step hold."""
        begins = run is None or target != run.stage
        stage = self._stages[target]
        tests = stage.begin if begins else stage.take
        if not tests:
            return True
        groups = self._groups(None if run is None else run.chosen)
        groups[stage.element].append(event)
        return all(test.holds(self.meaning, groups) for test in tests)

    def _groups(self, chosen: ChosenMatch | None) -> list[list[Event]]:
        groups: list[list[Event]] = [[] for _ in self._query.elements]
        while chosen is not None:
            groups[self._stages[chosen.stage].element].append(chosen.event)
            chosen = chosen.before
        for group in groups:
            group.reverse()
        return groups

    # --- runs -----------------------------------------------------------------

    def _start(self, event: Event, made: list[PartialMatch]) -> None:
        self._roots += 1
        label = root(self._roots)
        entry = self.buffer.put(self._stages[0].state(1), event, label, None)
        run = PartialMatch(0, 1, event, add_stage(label), entry, ChosenMatch(0, event, None))
        self._move("start", run.version, label, entry)
        self._arrive(run, label, made)

    def _enter(
        self,
        run: PartialMatch,
        target: int,
        event: Event,
        label: Version,
        version: Version,
        made: list[PartialMatch],
    ) -> None:
        count = run.count + 1 if target == run.stage else 1
        entry = self.buffer.put(self._stages[target].state(count), event, label, run.entry)
        clone = PartialMatch(
            target, count, run.start, version, entry, ChosenMatch(target, event, run.chosen)
        )
        self._move("take" if target == run.stage else "begin", version, label, entry)
        self._arrive(clone, label, made)

    def _arrive(self, run: PartialMatch, label: Version, made: list[PartialMatch]) -> None:
        """Places a run on its new entry: it may complete a match, and it may go on."""
        self.buffer.lock(run.entry)
        stage = self._stages[run.stage]
        last = run.stage + 1 == len(self._stages)
        if last and run.count >= stage.least and self._accepted(run):
            self._match(run, label)
        if last and stage.loop_state is None:
            self.buffer.release(run.entry)
        else:
            made.append(run)

    def _accepted(self, run: PartialMatch) -> bool:
        if not self.automaton.accept:
            return True
        groups = self._groups(run.chosen)
        return all(test.holds(self.meaning, groups) for test in self.automaton.accept)

    def _match(self, run: PartialMatch, label: Version) -> None:
        paths = self.buffer.extract(run.entry, label)
        if self._numbering is Numbering.PER_TAKE and len(paths) != 1:
            raise InternalError(f"{len(paths)} ways back from {run.entry!r} with {label}")
        for path in paths:
            match = self._as_match([event for _, event in path], run)
            if self._query.waits or not self._forbidden(match):
                self._move("match", label, None, run.entry)
                self._found.append(match)
        most = self._max_matches
        if most is not None and len(self._found) + len(self._pending) > most:
            raise PatternBudgetExceeded(
                f"query {self._query.name}: more than {most:,} matches at once",
                "narrow WITHIN, add conditions, or raise max_matches",
            )

    def _as_match(self, events: list[Event], run: PartialMatch) -> Match:
        """Builds a match from a path's events, cut into groups as the run chose them."""
        counts = [0] * len(self._stages)
        chosen: ChosenMatch | None = run.chosen
        while chosen is not None:
            counts[chosen.stage] += 1
            chosen = chosen.before
        groups: list[tuple[Event, ...]] = [()] * len(self._query.elements)
        at = 0
        for stage, count in zip(self._stages, counts, strict=True):
            groups[stage.element] = tuple(events[at : at + count])
            at += count
        if at != len(events):
            raise InternalError("a path of another length than its run")
        return Match(tuple(groups), self.meaning.determined(events[0].ts, events[-1].ts))

    def _move(self, kind: str, version: Version, label: Version | None, entry: BufferEntry) -> None:
        if self._on_move is not None:
            self._on_move(Move(kind, version, label, repr(entry)))

    # --- counting references --------------------------------------------------

    def check(self) -> None:
        """Checks that every reference is accounted for; used by tests and traces."""
        entries = list(self.buffer.entries())
        edges = sum(edge.target is not None for entry in entries for edge in entry.edges)
        refs = sum(entry.refs for entry in entries)
        if refs != len(self.runs) + edges or any(entry.refs < 1 for entry in entries):
            raise InternalError(f"{refs} references, {len(self.runs)} runs and {edges} edges")
        if any(not self.buffer.alive(run.entry) for run in self.runs):
            raise InternalError("a run stands on nothing")


def refusal(query: ir.PatternQuery) -> str | None:
    """Returns the reason why the automaton cannot run a query, or None if it can."""
    if query.strategy is Strategy.ANY and query.mode is Mode.GROUP and query.kleene:
        return "its groups are the largest there are"
    return None
