"""A pattern as an operator on a stream: adds time, keys and skipping to a matcher.

Events arrive in any order above the watermark, one by one or as tables. `advance` moves the
watermark. The events it passes go to the matcher in order of (ts, arrival), and every match that is
certain by then is given out once. Events that arrive at or below the watermark are late.

Matches are given out in parts, of which one is in memory at a time. Events in columns are cut by
their matcher (`ColumnSearch.parts`, `CompiledSearch.parts`); the other matchers take the events of
one time after those of another.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np
import pyarrow as pa

from seustream.compiler.language.faults import Faults
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Skip
from seustream.engine.pattern import output, state
from seustream.engine.pattern.arrivals import FARTHEST, Stats, WaitingRows
from seustream.engine.pattern.batch import EventBatch, concat, needed, of_events
from seustream.engine.pattern.choice import SAMPLED, Choice, EngineChooser, HeldEvents
from seustream.engine.pattern.compact import Compact
from seustream.engine.pattern.compiled import CompiledSearch
from seustream.engine.pattern.errors import EngineRefused, PatternBudgetExceeded
from seustream.engine.pattern.event import (
    BEGIN_OF_TIME,
    END_OF_STREAM,
    Event,
    Match,
    key_of,
)
from seustream.engine.pattern.found import Found
from seustream.engine.pattern.meaning import Meaning
from seustream.engine.pattern.nfa import Nfa
from seustream.engine.pattern.optiseq import OptiSeq
from seustream.engine.pattern.output import Returned, Rows
from seustream.engine.pattern.planner import Order, pick, supports
from seustream.engine.pattern.skip import Skipping
from seustream.engine.pattern.tied import tied
from seustream.engine.pattern.vector import ColumnSearch
from seustream.engine.stream.sorting import lexsort

Key = tuple[Any, ...]
MAX_ROWS = 50_000_000
"""The most matches that have to be in memory together, in columns; and as objects."""
MAX_MATCHES = 5_000_000
MAX_RUNS = 1_000_000
_OBJECT = 10
"""The memory that an event of a match takes as an object, in those that it takes in columns."""


class Matcher(Protocol):
    """A matcher that runs a query on the events of one key."""

    @property
    def held(self) -> int: ...
    @property
    def largest(self) -> int: ...
    def advance(self, events: list[Event], old: int, new: int) -> Iterable[Match]: ...


class PatternOperator:
    """A query on a stream. `engine` is auto, columns, compiled, optiseq, nfa or compact; `late` is
    drop or error. The matches of a part have about `part` events (by default PART). `PatternBudgetExceeded` is raised
    for more than `max_runs` runs, and where more than `max_matches` matches have to be in memory
    together (by default MAX_ROWS in columns and MAX_MATCHES elsewhere): those that an automaton
    ends at one time or that wait in it, and those without WITHIN that wait for the end of the
    stream as objects. Faults are counted in `faults`, or raised there."""

    def __init__(
        self,
        query: ir.PatternQuery,
        engine: str = "auto",
        late: str = "drop",
        order: str | Order = "cost",
        max_matches: int | None = None,
        max_runs: int = MAX_RUNS,
        faults: Faults | None = None,
        part: int | None = None,
    ) -> None:
        if late not in ("drop", "error"):
            raise EngineRefused(f"late={late!r}", "late events: drop, or error")
        if not isinstance(query, ir.PatternQuery) or query.variants:
            several = "one operator runs a PATTERN of one way through its sequence"
            raise EngineRefused(several, "operator_of(query) of engine.pattern.matchers runs all")
        query = tied(query)
        self.query = query
        self._chooser = EngineChooser(query, engine)
        self.watermark = BEGIN_OF_TIME
        self._order = order
        self._max_rows = MAX_ROWS if max_matches is None else max_matches
        self._max_matches = MAX_MATCHES if max_matches is None else max_matches
        self._max_runs = max_runs
        self._part = output.PART if part is None else part
        self.faults = Faults() if faults is None else faults
        self._meaning = Meaning(query, self.faults)
        self._needed = needed(query)
        self._arrivals = WaitingRows(query, set(self._needed) - {ir.TIME}, late)
        self._heap: list[tuple[int, int, Event]] = []
        self._columns = self._new_columns()
        self._matchers: dict[Key, Matcher] = {}
        self._skipping = Skipping(query)
        self._returned = Returned(self._meaning)
        self._nothing = self._returned.of_found(None), np.zeros(0, np.int64)
        self._retained: list[Event] = []

    @property
    def choice(self) -> Choice:
        """The matcher at work, the reason for it, and the estimated cost of an epoch for each
        matcher."""
        return self._chooser.choice

    @property
    def engine(self) -> str:
        return self.choice.engine

    @property
    def stats(self) -> Stats:
        return self._arrivals.stats

    # --- input ----------------------------------------------------------------

    def push(self, event: Event) -> None:
        """Takes one event; its `seq` is assigned here, by arrival."""
        seq = self._arrivals.arrived
        self._arrivals.arrived += 1
        ts: object = event.ts
        if not isinstance(ts, int) or isinstance(ts, bool) or not -FARTHEST < ts < FARTHEST:
            self.stats.bad_events += 1
            return
        if ts <= self.watermark:
            self._arrivals.refuse(1, ts, self.watermark)
            return
        self.stats.taken += 1
        attrs = {n: None if v != v else v for n, v in event.attrs.items()}
        heapq.heappush(self._heap, (ts, seq, Event(ts, seq, event.type, attrs)))

    def push_table(self, rows: pa.Table) -> None:
        """Takes rows of the stream, with a column ts (int64)."""
        self._arrivals.push(rows, self.watermark)

    # --- output ---------------------------------------------------------------

    @property
    def output_watermark(self) -> int:
        """The output watermark: every later match has a time above it."""
        if self.query.skip is not Skip.NONE or self.query.ends_with_stream:
            return self._skipping.output_watermark(self.watermark)
        return self.watermark

    def mark(self, watermark: int, events: int) -> int:
        """Returns the watermark to move to if about so many waiting events are to be taken on the
        way to `watermark`: all of one time at once."""
        return watermark if self._heap else self._arrivals.mark(watermark, events)

    def advance(self, watermark: int) -> list[Match]:
        """Moves the watermark; returns the matches certain by now, in order of (D, events)."""
        if self.query.skip is not Skip.NONE:
            return self.dated(self._counted(watermark))
        return [m for part in self._found(watermark, True) for m in self._matches(part)]

    def firsts(self, watermark: int) -> list[Match]:
        """Moves the watermark; returns of the matches certain by now the first from each start.
        Those that had to wait for the end of the stream have its time."""
        found: dict[tuple[int, int], Match] = {}
        for part in self._found(watermark, False):
            first = part.firsts(self.query) if isinstance(part, Found) else part
            for match in self._matches(first):
                start = match.first.order
                if start not in found or match.order < found[start].order:
                    found[start] = match
        return sorted(found.values(), key=lambda match: match.order)

    def _matches(self, found: list[Match] | Found) -> list[Match]:
        return found.matches(self.query) if isinstance(found, Found) else found

    def advance_table(self, watermark: int) -> Rows:
        """Moves the watermark like `advance`; returns the matches as rows of RETURN, with their
        times."""
        return output.together([*self.parts(watermark)] or [self._nothing])

    def parts(self, watermark: int) -> Iterator[Rows]:
        """Acts like `advance_table`; yields the rows in parts. Must be iterated to its end."""
        if self.query.skip is not Skip.NONE:
            counted = self.dated(self._counted(watermark))
            if counted:
                yield self.rows_of(counted)
            return
        for found in self._found(watermark, True):
            if isinstance(found, Found):
                for part in found.parts(self._part):
                    yield self._returned.of_found(part), part.determined
            else:
                yield self.rows_of(found)

    def pass_over(self, watermark: int) -> None:
        """Moves the watermark past events whose matches were given out, and whose faults were
        counted, elsewhere."""
        with self._meaning.uncounted():
            deque(self.parts(watermark), 0)

    def rows_of(self, matches: Sequence[Match]) -> Rows:
        """Returns matches of the query as rows of RETURN, with their times."""
        times = np.array([match.D for match in matches], np.int64)
        return self._returned.of_matches(matches), times

    def dated(self, found: list[Match]) -> list[Match]:
        """Dates matches that had to wait for the end of the stream by their last event."""
        if self.query.ends_with_stream:
            found = [dataclasses.replace(m, D=m.last.ts) for m in found]
            found.sort(key=lambda match: match.order)
        return found

    def _counted(self, watermark: int) -> list[Match]:
        """Moves the watermark; returns the matches that AFTER MATCH keeps and that are settled by
        now."""
        counted = self._skipping.counted(self.firsts(watermark), watermark)
        self.stats.matches += len(counted)
        return counted

    def _found(self, watermark: int, dated: bool) -> Iterator[list[Match] | Found]:
        """Moves the watermark; yields the matches certain by now, in parts. `dated`: those that had
        to wait for the end of the stream are dated by their last events."""
        old = self.watermark
        if watermark < old:
            raise ValueError(f"the watermark goes back from {old} to {watermark}")
        released = self._released(watermark)
        if self._chooser.due(len(released), self._kept):
            self._consider(released)
        parts: Iterator[list[Match] | Found]
        if self._columns is not None:
            batch = self._as_batch(released)
            parts = self._columns.parts(batch, old, watermark, dated)
        else:
            events = released.rows() if isinstance(released, EventBatch) else released
            parts = self._by_time(events, old, watermark, dated)
        for part in parts:
            if self.query.skip is Skip.NONE:
                self.stats.matches += len(part)
            yield part
        self.watermark = watermark
        if self._columns is not None:
            self._note(self._columns.held)

    def _consider(self, released: EventBatch | list[Event]) -> None:
        """Switches to another matcher if it would be far cheaper for an epoch like this one."""
        before = self.engine
        few = released if isinstance(released, EventBatch) else released[:SAMPLED]
        held = self._held_before() if self._kept > len(released) else None
        self._chooser.consider(self._as_batch(few), len(released), self._kept, held)
        if self.engine != before:
            self._build(self._seen())

    @property
    def _kept(self) -> int:
        """The number of events held from before."""
        return len(self._retained) if self._columns is None else len(self._columns.kept)

    def _held_before(self) -> HeldEvents:
        if self._columns is None:
            return HeldEvents(self._as_batch(self._retained[-SAMPLED:]), self._kept, self._kept)
        kept = self._columns.kept
        came = self._kept * kept.came / (kept.gone + self._kept)
        return HeldEvents(kept.latest(SAMPLED), self._kept, came)

    def _as_batch(self, released: EventBatch | list[Event]) -> EventBatch:
        if isinstance(released, EventBatch):
            return released
        return of_events(released, self._needed)

    def _note(self, held: int) -> None:
        self.stats.peak_held = max(self.stats.peak_held, held)

    # --- in order -------------------------------------------------------------

    def _released(self, watermark: int) -> EventBatch | list[Event]:
        """Releases all events up to the watermark, in order; as columns where rows came in
        tables."""
        events = self._popped(watermark)
        batch = self._arrivals.released(watermark)
        if batch is None:
            return events
        if not events:
            return batch
        if self._columns is None:
            return sorted([*events, *batch.rows()], key=lambda event: event.order)
        both = concat(dataclasses.replace(of_events(events, self._needed), events=None), batch)
        return both.take(lexsort((both.seq, both.ts)))

    def _popped(self, watermark: int) -> list[Event]:
        events = []
        while self._heap and self._heap[0][0] <= watermark:
            events.append(heapq.heappop(self._heap)[2])
        return events

    # --- keys -----------------------------------------------------------------

    def _by_time(
        self, events: list[Event], old: int, new: int, dated: bool
    ) -> Iterator[list[Match]]:
        """Yields the matches of all keys in parts, in order."""
        self._retained += events
        most = max(self._part // _OBJECT, 1)
        found: list[Match] = []
        for match in self._in_order(events, old, new):
            found.append(match)
            if dated and self.query.ends_with_stream:
                if len(found) > self._max_matches:
                    self._refuse()
            elif len(found) >= most:
                yield found
                found = []
        if found:
            yield self.dated(found) if dated else found
        self._retain(new)
        self._note(sum(matcher.held for matcher in self._matchers.values()))
        for key in [key for key, matcher in self._matchers.items() if not matcher.held]:
            del self._matchers[key]

    def _in_order(self, events: list[Event], old: int, new: int) -> Iterator[Match]:
        """Yields the matches of all keys, in order, taking events time by time."""
        for ts, some in itertools.groupby(events, lambda event: event.ts):
            if ts == new:
                yield from self._at(list(some), old, new, True)
                return
            # Without new events, matches are found only where they wait.
            yield from self._at(list(some), old, ts, self.query.waits)
            old = ts
        yield from self._at([], old, new, True)

    def _at(self, events: list[Event], old: int, new: int, every: bool) -> Iterator[Match]:
        """Yields the matches with old < D ≤ new of the keys of these events, or of `every` key."""
        parts: dict[Key, list[Event]] = {key: [] for key in self._matchers} if every else {}
        for event in events:
            parts.setdefault(key_of(event, self.query.partition), []).append(event)
        for key in parts:
            if key not in self._matchers:
                self._matchers[key] = self._new_matcher()
        found = [self._matchers[key].advance(some, old, new) for key, some in parts.items()]
        return heapq.merge(*found, key=lambda match: match.order)

    def _refuse(self) -> NoReturn:
        raise PatternBudgetExceeded(
            f"query {self.query.name}: more than {self._max_matches:,} matches at once",
            "narrow WITHIN, add conditions, or raise max_matches",
        )

    def _new_matcher(self) -> Matcher:
        if self.engine == "nfa":
            return Nfa(self._meaning, max_runs=self._max_runs, max_matches=self._max_matches)
        if self.engine == "compact":
            return Compact(self._meaning, max_matches=self._max_matches)
        return OptiSeq(self._meaning, self._order, most=max(self._part // _OBJECT, 1))

    def _new_columns(self) -> ColumnSearch | CompiledSearch | None:
        """Returns the matcher of all keys, if the chosen one takes columns."""
        if self.engine == "columns":
            return ColumnSearch(self._meaning, self._order, most=self._part)
        if self.engine == "compiled":
            # Without groups, runs are no more than events or matches.
            few = supports(self.query)["columns"] is None and pick(self.query)[0] == "compiled"
            most = self._max_rows if few else self._max_runs
            return CompiledSearch(self._meaning, most, self._max_rows, self._part)
        return None

    # --- memory and state -----------------------------------------------------

    @property
    def next_due(self) -> int | None:
        """The next watermark at which there may be something to give out or to forget; None if
        nothing is held."""
        times = [self._heap[0][0]] if self._heap else []
        if self._arrivals.held:
            times.append(self._arrivals.earliest)
        window, horizon = self.query.window, self.query.horizon
        kept = self._seen()
        if window is not None and horizon is not None:
            times += [e.ts + after for e in kept for after in (window, horizon)]
            times += self._skipping.due
        later = [ts for ts in times if ts > self.watermark]
        if later:
            return min(later)
        return self.watermark + 1 if self.held else None

    @property
    def latest(self) -> int:
        """The time of the last waiting event, or the watermark."""
        return max((ts for ts, _, _ in self._heap), default=self.watermark)

    @property
    def held(self) -> int:
        """The number of items kept: waiting events, lists, runs, buffers, pending matches."""
        matchers: Iterable[Matcher] = self._matchers.values()
        columns = 0 if self._columns is None else self._columns.held
        kept = len(self._retained) + self._arrivals.held + self._skipping.held
        return len(self._heap) + columns + kept + sum(m.held for m in matchers)

    @property
    def largest(self) -> int:
        """The number of events in the largest list or page."""
        if self._columns is not None:
            return self._columns.kept.largest
        return max((matcher.largest for matcher in self._matchers.values()), default=0)

    def _retain(self, watermark: int) -> None:
        """Drops the events older than one horizon; a restored operator has to see the others
        again."""
        horizon = 0 if watermark == END_OF_STREAM else self.query.horizon
        if horizon is not None:
            earliest = watermark + 1 - horizon
            at = 0
            while at < len(self._retained) and self._retained[at].ts < earliest:
                at += 1
            del self._retained[:at]

    def snapshot(self) -> dict[str, Any]:
        """Returns the state as plain values, for JSON: the retained events suffice to rebuild
        everything else."""
        waiting = [event for _, _, event in sorted(self._heap)]
        if self._arrivals.tables is not None:
            waiting += self._arrivals.tables.rows()
        return {
            "watermark": self.watermark,
            "arrived": self._arrivals.arrived,
            "engine": self.engine,
            "considered": list(self._chooser.considered),
            "stats": dataclasses.asdict(self.stats),
            "retained": state.events(self._seen()),
            "waiting": state.events(waiting),
            "skipping": state.skipping(self._skipping),
        }

    def restore(self, stored: dict[str, Any]) -> None:
        """Continues from a snapshot, in a fresh operator of the same query. The retained events are
        run again; matches given out before the snapshot are not given out again."""
        if self._arrivals.arrived:
            raise ValueError("an operator is restored before it is used")
        self._chooser.resume(stored["engine"], stored["considered"])
        self.watermark = stored["watermark"]
        self._build(state.events_of(stored["retained"]))
        self._arrivals.arrived = stored["arrived"]
        self._arrivals.stats = Stats(**stored["stats"])
        for event in state.events_of(stored["waiting"]):
            heapq.heappush(self._heap, (event.ts, event.seq, event))
        self._skipping = state.skipping_of(self.query, stored["skipping"])

    def _seen(self) -> list[Event]:
        """Returns the events that a rebuilt matcher has to see again."""
        return self._retained if self._columns is None else self._columns.kept.events()

    def _build(self, seen: list[Event]) -> None:
        """Builds the chosen matcher as if it had run from the start; its matches were given out
        before."""
        self._matchers, self._retained = {}, []
        with self._meaning.uncounted():
            self._run_again(seen)

    def _run_again(self, seen: list[Event]) -> None:
        self._columns = self._new_columns()
        if self._columns is not None:
            batch = of_events(seen, self._needed)
            deque(self._columns.parts(batch, BEGIN_OF_TIME, self.watermark), 0)
            return
        parts: dict[Key, list[Event]] = {}
        for event in seen:
            parts.setdefault(key_of(event, self.query.partition), []).append(event)
        for key, events in parts.items():
            matcher = self._matchers[key] = self._new_matcher()
            deque(matcher.advance(events, BEGIN_OF_TIME, self.watermark), 0)
        self._retained = seen
