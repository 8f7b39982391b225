"""Builds the automaton: its states, its edges, and the conditions each edge can decide.

A single element is one state. A Kleene element is two: `e[1]` for its first event and `e[i]` for
all later ones. Negated elements have no states; they are looked for when a match is complete. A
condition is placed on the first edge at which everything it mentions is known: it is *settled*
there.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Class, Strategy
from seustream.engine.pattern.meaning import BoundCondition, Groups, Meaning


class ElementSpan(enum.Enum):
    """The elements that a settled condition ranges over."""

    ONCE = "once"
    LATEST = "latest"  # the member just taken
    ALL = "all"  # every member of its groups


@dataclass(frozen=True, slots=True)
class TransitionTest:
    condition: BoundCondition
    over: ElementSpan

    def holds(self, meaning: Meaning, groups: Groups) -> bool:
        if self.over is ElementSpan.ONCE:
            return meaning.once(self.condition, groups)
        if self.over is ElementSpan.LATEST:
            (element,) = self.condition.kleene
            return meaning.member(self.condition, groups, len(groups[element]) - 1)
        return meaning.throughout(self.condition, groups)


@dataclass(slots=True)
class AutomatonStage:
    """A positive element: the names of its states, and the tests on its edges. `begin` enters it,
    `take` adds a member."""

    element: int
    first_state: str
    loop_state: str | None
    least: int
    most: int | None
    begin: list[TransitionTest] = field(default_factory=list)
    take: list[TransitionTest] = field(default_factory=list)

    def state(self, count: int) -> str:
        """Returns the state of a run that has `count` events in this stage."""
        return self.first_state if count == 1 or self.loop_state is None else self.loop_state


@dataclass(frozen=True, slots=True)
class Transition:
    """An edge for display: `kind` is begin, take, proceed or ignore."""

    kind: str
    source: str
    target: str
    conditions: tuple[str, ...]


class Automaton:
    """The stages of a query in order, and `accept`, the tests made when the last stage is
    complete."""

    def __init__(self, meaning: Meaning) -> None:
        self.meaning = meaning
        query = meaning.query
        self.stages = [self._stage(query, element) for element in meaning.positives]
        self.accept: list[TransitionTest] = []
        for condition in meaning.conditions:
            if condition.conjunct.cls not in (Class.CONSTANT, Class.NEGATED):
                self._settle(condition)

    def _stage(self, query: ir.PatternQuery, number: int) -> AutomatonStage:
        element = query.elements[number]
        name = element.variable
        # Two elements may share a name where no reference has to tell them apart.
        if sum(other.variable == name for other in query.elements) > 1:
            name = f"{name}#{number + 1}"
        if not element.kleene:
            return AutomatonStage(number, name, None, 1, 1)
        return AutomatonStage(number, f"{name}[1]", f"{name}[i]", element.least or 1, element.most)

    def _settle(self, condition: BoundCondition) -> None:
        """Puts a condition on the edges that decide it."""
        elements = self.meaning.query.elements
        place = {stage.element: i for i, stage in enumerate(self.stages)}
        latest = place[condition.latest]
        stage = self.stages[latest]
        cls = condition.conjunct.cls
        if cls in (Class.PAIR, Class.FIRST):
            stage.begin.append(TransitionTest(condition, ElementSpan.ONCE))
        elif cls in (Class.MEMBER, Class.STEP):
            if not elements[condition.latest].kleene:
                stage.begin.append(TransitionTest(condition, ElementSpan.ALL))
                return
            if cls is Class.MEMBER:
                stage.begin.append(TransitionTest(condition, ElementSpan.LATEST))
            stage.take.append(TransitionTest(condition, ElementSpan.LATEST))
        elif not elements[condition.latest].kleene:
            stage.begin.append(TransitionTest(condition, ElementSpan.ALL))
        elif latest + 1 < len(self.stages):
            self.stages[latest + 1].begin.append(TransitionTest(condition, ElementSpan.ALL))
        else:
            self.accept.append(TransitionTest(condition, ElementSpan.ALL))

    # --- for showing ----------------------------------------------------------

    @property
    def states(self) -> list[str]:
        named = [s for stage in self.stages for s in (stage.first_state, stage.loop_state) if s]
        return [*named, FINAL]

    @property
    def edges(self) -> list[Transition]:
        """Returns every edge; the empty name stands for the start."""
        found: list[Transition] = []
        before: AutomatonStage | None = None
        for stage in self.stages:
            sources = [""] if before is None else [before.state(1)]
            if before is not None and before.loop_state is not None:
                sources.append(before.loop_state)
            entering = self._conditions(stage, stage.begin)
            found += [
                Transition("begin", source, stage.first_state, entering) for source in sources
            ]
            if stage.loop_state is not None:
                taking = self._conditions(stage, stage.take)
                found.append(Transition("take", stage.first_state, stage.loop_state, taking))
                found.append(Transition("take", stage.loop_state, stage.loop_state, taking))
            before = stage
        assert before is not None
        ends = [before.first_state, *([before.loop_state] if before.loop_state else [])]
        accepting = tuple(test.condition.conjunct.text for test in self.accept)
        found += [Transition("proceed", end, FINAL, accepting) for end in ends]
        if self.meaning.query.strategy is not Strategy.STRICT:
            when = ("no other edge",) if self.meaning.query.strategy is Strategy.NEXT else ()
            waiting = [state for state in self.states[:-1] if state != ends[0] or len(ends) > 1]
            found += [Transition("ignore", state, state, when) for state in waiting]
        return found

    def _conditions(self, stage: AutomatonStage, tests: list[TransitionTest]) -> tuple[str, ...]:
        constants = [
            c.conjunct.text
            for c in self.meaning.of(Class.CONSTANT)
            if c.conjunct.refs == (stage.element,)
        ]
        element = self.meaning.query.elements[stage.element]
        kind = [element.filter] if element.filter else []
        return (*kind, *constants, *(test.condition.conjunct.text for test in tests))


FINAL = "final"
