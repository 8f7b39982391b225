"""The automaton and the subsets, compiled: events go in as columns, matches come out as columns.

Whatever depends on one event alone is evaluated in columns: which elements the event fits, and each
side of a comparison between two events. `kernels.native.Automaton` advances the runs. Where only
types, constants and the window matter, `kernels.native.Subsets` follows the ways. For a condition
that is not a comparison of two events, the kernel calls back with the events of one run. `nfa` and
`compact` are the readable twins.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.language.types import Type
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Class, Pick, Strategy
from seustream.engine.kernels import native
from seustream.engine.pattern.automaton import Automaton, ElementSpan, TransitionTest
from seustream.engine.pattern.batch import EventBatch
from seustream.engine.pattern.columns import Ints
from seustream.engine.pattern.compact import Compact
from seustream.engine.pattern.errors import EngineRefused, PatternBudgetExceeded
from seustream.engine.pattern.event import END_OF_STREAM, Event
from seustream.engine.pattern.fill import Completion
from seustream.engine.pattern.found import Found, GroupMembers, together
from seustream.engine.pattern.kept import KeptEvents
from seustream.engine.pattern.keys import PartitionKeys
from seustream.engine.pattern.links import of_any, side_of
from seustream.engine.pattern.lists import FAR, Lists
from seustream.engine.pattern.meaning import Meaning
from seustream.engine.pattern.planner import supports
from seustream.engine.stream.evaluate import evaluate
from seustream.engine.stream.numbers import as_column, comparable, converted, numbers

_STRATEGIES = (Strategy.ANY, Strategy.NEXT, Strategy.STRICT)
_SPANS = (ElementSpan.ONCE, ElementSpan.LATEST, ElementSpan.ALL)
_PICKS = (Pick.ONE, Pick.EACH, Pick.FIRST, Pick.LAST, Pick.PREVIOUS)
_COUNT, _CONSTANT = 5, 6
_ASKED = (-1, 0, 0, 0, 0, 0, 0)
_MOST_STATES = 64
_WHOLE = 1 << 62
_THROUGH, _RUNS, _MATCHES = -1, -2, -3  # what the kernels return, besides the event to go on with

Side = tuple[int, int, int]
"""A column, a stage, and which of its events; or a constant. See `native.Automaton`."""


class CompiledSearch:
    """The runs of a query, over all keys. The matches of a part have about `most` events. No key may
    have more than `max_runs` runs. The automaton may have no more than `max_matches` matches that
    end at one time, or wait to be certain; subsets come in parts even then."""

    def __init__(
        self,
        meaning: Meaning,
        max_runs: int | None = None,
        max_matches: int | None = None,
        most: int | None = None,
    ) -> None:
        query = meaning.query
        reason = supports(query)["compiled"]
        if reason is not None:
            raise EngineRefused(f"P016 the compiled automaton cannot run this query: {reason}")
        self.kept = KeptEvents(meaning)
        self.running = 0
        self._meaning, self._query = meaning, query
        self._keys = PartitionKeys(query.partition)
        self._limits = {_RUNS: ("runs", max_runs), _MATCHES: ("matches", max_matches)}
        self._most = _WHOLE if most is None else most
        self._sides: dict[tuple[x.Expression, Type], int] = {}
        self._asked: list[TransitionTest] = []
        self._codes = native.Codes()
        limits = [-1 if most is None else most for most in (max_runs, max_matches)]
        window = -1 if query.window is None else query.window
        plain = query.kleene and supports(query)["compact"] is None
        states = _states(meaning) if plain else []
        self._subsets = native.Subsets() if plain and len(states) <= _MOST_STATES else None
        if self._subsets is not None:
            numbered = np.array(states, np.int64).reshape(-1)
            self._subsets.configure(numbered, len(query.positives), window)
            return
        automaton = Automaton(meaning)
        self._stages = {stage.element: place for place, stage in enumerate(automaton.stages)}
        tests = np.array(list(self._tests(automaton)), np.int64).reshape(-1)
        self._automaton = native.Automaton()
        self._automaton.configure(
            np.array([_stage(query.elements[e], e) for e in query.positives], np.int64).reshape(-1),
            tests,
            self._ask,
            len(self._sides),
            window,
            _STRATEGIES.index(query.strategy),
            query.waits,
            *limits,
        )

    @property
    def held(self) -> int:
        """Returns the number of events and runs kept."""
        return len(self.kept) + self.running

    def advance(self, batch: EventBatch, old: int, new: int) -> Found | None:
        """Takes a batch of events with old < ts ≤ new, in order; returns the matches determined
        since, ordered, or None."""
        return together(self.parts(batch, old, new))

    def parts(self, batch: EventBatch, old: int, new: int, dated: bool = False) -> Iterator[Found]:
        """Acts like `advance`; yields the matches in parts, in order. `dated`: those that wait for
        the end of the stream have the times of their last events. Must be iterated to its end."""
        batch, fits = self.kept.take(batch)
        if self._query.empty:
            self.kept.expire(new)
            return
        kernel: native.Automaton | native.Subsets
        if self._subsets is None:
            kernel, parts = self._automaton, self._runs(batch, fits, new)
            if dated and self._query.ends_with_stream:
                parts = (one.dated(self._query).sorted(self._query) for one in parts)
        else:
            kernel, parts = self._subsets, self._ways(self._subsets, batch, fits, new)
            if not self.kept.ordered:  # the kernel's order is that of times
                whole = together(parts)
                parts = iter([] if whole is None else [whole.sorted(self._query)])
        yield from parts
        over = new == END_OF_STREAM
        self.running = kernel.forget(max(min(new, FAR), -FAR), over)
        self.kept.expire(new)
        if self._keys.many:
            numbers = np.empty(len(self._keys), np.int64)
            self._keys.keep(numbers[: kernel.retain(numbers)])

    def _runs(self, batch: EventBatch, fits: list[Ints], new: int) -> Iterator[Found]:
        """Yields the matches of the automaton; those of one time come together."""
        at = 0 if len(batch) else _THROUGH
        if len(batch):
            of = *self._events(batch, fits), *self._values(batch)
        while True:
            if len(batch):
                at = self._automaton.advance(*of, at, self._most)
            if at < _THROUGH:
                self._refuse(at)
            to = new if at < 0 else int(batch.ts[at]) - 1
            while self._automaton.certain(to):
                until = self._automaton.until(to, self._most // len(self._query.positives))
                yield from self._found(self._automaton, until, False)
            if at < 0:
                return

    def _ways(
        self, subsets: native.Subsets, batch: EventBatch, fits: list[Ints], new: int
    ) -> Iterator[Found]:
        """Yields the matches of the subsets."""
        events, at = self._events(batch, fits), 0
        while at >= 0 and len(batch):
            at = subsets.advance(*events, at, self._most)
            if subsets.certain(new):
                yield from self._found(subsets, new, True)

    def _events(self, batch: EventBatch, fits: list[Ints]) -> tuple[Ints, Ints, Ints]:
        bits: Ints = np.zeros(len(batch), np.int64)
        for element, rows in enumerate(fits):
            bits[rows] |= 1 << element
        return self._keys.of(batch), np.ascontiguousarray(batch.ts), bits

    def _refuse(self, status: int) -> NoReturn:
        what, most = self._limits[status]
        raise PatternBudgetExceeded(
            f"query {self._query.name}: more than {most:,} {what} at once",
            f"narrow WITHIN, add conditions, or raise max_{what}",
        )

    # --- conditions -----------------------------------------------------------

    def _tests(self, automaton: Automaton) -> Iterator[tuple[int, ...]]:
        """Yields the conditions of all edges in the kernel's form."""
        for place, stage in enumerate(automaton.stages):
            for when, tests in enumerate((stage.begin, stage.take)):
                for test in tests:
                    yield (place, when, *self._test(test))
        for test in automaton.accept:
            yield (len(automaton.stages) - 1, 2, *self._test(test))

    def _test(self, test: TransitionTest) -> tuple[int, ...]:
        condition, over = test.condition, test.over
        if over is ElementSpan.ALL and not condition.kleene:
            over = ElementSpan.ONCE
        through = self._stages[condition.kleene[0]] if condition.kleene else -1
        self._asked.append(test)
        later = condition.conjunct.cls is Class.STEP
        begun = (len(self._asked) - 1, _SPANS.index(over), through, int(later))
        e = condition.conjunct.expression
        if not comparable(e) or len(condition.kleene) > 1:
            return (*begun, *_ASKED)
        assert isinstance(e, x.Compare)
        left, right = self._side(e.left, e.of), self._side(e.right, e.of)
        if left is None or right is None:
            return (*begun, *_ASKED)
        return (*begun, int(e.condition), *left, *right)

    def _side(self, e: x.Expression, of: Type) -> Side | None:
        """Returns one side of a comparison in the kernel's form, or None if it is not about one
        event."""
        read = side_of(e, of)
        if read is None:
            return None
        if isinstance(e, ir.GroupAggregate):
            return 0, self._stages[e.element], _COUNT
        part = converted((e, of))
        if not read:
            value = evaluate(part, _nothing, 1)
            return (
                None if value.null_count else (int(numbers(value, self._codes)[0][0]), 0, _CONSTANT)
            )
        ((element, pick),) = read
        column = self._sides.setdefault((of_any(part), of), len(self._sides))
        return column, self._stages[element], _PICKS.index(pick)

    def _values(self, batch: EventBatch) -> tuple[Ints, npt.NDArray[np.uint8]]:
        """Returns the sides of comparisons for each event. The kernel asks back for a value that
        may be a fault."""
        found: Ints = np.zeros((len(batch), len(self._sides)), np.int64)
        flags = np.ones((len(batch), len(self._sides)), np.uint8)

        def leaf(e: x.Leaf) -> pa.Array:
            assert isinstance(e, ir.Value)
            return as_column(batch.ts) if e.attribute == ir.TIME else batch.columns[e.attribute]

        for (e, _), column in self._sides.items():
            faults = Faults()
            value = evaluate(e, leaf, len(batch), faults)
            found[:, column], mine = numbers(value, self._codes)
            if mine is not None:
                flags[:, column] = np.where(mine, 1, 2 if faults.count else 0)
        return found, flags

    def _ask(self, number: int, rows: bytes, stages: bytes) -> bool:
        """Returns whether a condition holds for the events of a run."""
        log = self.kept.log
        assert log is not None
        groups: list[list[Event]] = [[] for _ in self._query.elements]
        places = np.frombuffer(rows, np.int64) - self.kept.gone
        positives = self._query.positives
        for place, stage in zip(places.tolist(), memoryview(stages).cast("q"), strict=True):
            groups[positives[stage]].append(log.event(place))
        return self._asked[number].holds(self._meaning, groups)

    # --- matches --------------------------------------------------------------

    def _found(
        self, kernel: native.Automaton | native.Subsets, to: int, ordered: bool
    ) -> Iterator[Found]:
        """Yields the matches that are certain at a time, in order, without those that an event
        forbids."""
        log = self.kept.log
        assert log is not None
        determined, stages = kernel.take(to, log.seq, self.kept.gone, ordered)
        found = Found(log, _ints(determined), {}, {})
        for element, (counts, rows) in zip(self._query.positives, stages, strict=True):
            if self._query.elements[element].kleene:
                found.groups[element] = GroupMembers(_ints(counts), _ints(rows))
            else:
                found.singles[element] = _ints(rows)
        if self._meaning.forbidding:
            lists = Lists(self._query, log, self.kept.rows)
            found = found.keep(Completion(self._meaning, lists).allowed(found))
        if len(found):
            yield found


def _ints(data: bytes) -> Ints:
    return np.frombuffer(data, np.int64)


def _nothing(e: x.Leaf) -> Any:
    raise AssertionError(e)


def _stage(element: ir.Element, number: int) -> tuple[int, ...]:
    most = 1 if element.single else -1 if element.most is None else element.most
    return number, element.least or 1, most, int(element.kleene)


def _states(meaning: Meaning) -> list[tuple[int, ...]]:
    """Returns the states of plain subsets in the form of `native.Subsets`."""
    stage = {element: place for place, element in enumerate(meaning.positives)}
    return [
        (
            state.element,
            stage[state.element],
            sum(1 << absence for absence in state.absences),
            int(state.enters),
            int(state.loops),
        )
        for state in Compact(meaning).states
    ]
