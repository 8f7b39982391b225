"""Facts about a pattern for EXPLAIN: its text, its matcher, its automaton and its lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from seustream.compiler.explain.marks import clip
from seustream.compiler.explain.picture.diagram import Arrow, Box, Diagram, Legend
from seustream.compiler.explain.text import Columns
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.fields import fields
from seustream.compiler.pattern.ir import Class, Strategy
from seustream.compiler.pattern.rows import RowQuery
from seustream.engine.pattern.automaton import Automaton
from seustream.engine.pattern.choice import EngineChooser, Sample, candidates, costs
from seustream.engine.pattern.ends import SequenceEnds, sequence_ends
from seustream.engine.pattern.meaning import Meaning
from seustream.engine.pattern.planner import cost_order, supports
from seustream.engine.pattern.recognize.explain import decided, row_automaton
from seustream.engine.pattern.tied import tied

STAGES = ("automaton", "lists")
Labelled = Iterator[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ConditionFacts:
    """A conjunct; `decided` is its class, or the moment at which it is decided."""

    COLUMNS: ClassVar[Columns] = (
        ("decided", "decided"),
        ("mentions", "mentions"),
        ("condition", "text"),
    )

    decided: str
    mentions: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class EdgeFacts:
    COLUMNS: ClassVar[Columns] = (
        ("from", lambda edge: edge.source or "start"),
        ("edge", "kind"),
        ("to", "target"),
        ("if", lambda edge: " and ".join(edge.conditions)),
    )

    kind: str
    source: str
    target: str
    conditions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AutomatonFacts:
    BELOW: ClassVar = (("", "edges"),)

    name: str
    text: str
    runs: bool
    states: tuple[str, ...]
    edges: tuple[EdgeFacts, ...]
    on_match: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"automaton of {self.name}"

    @property
    def labelled(self) -> Labelled:
        if not self.runs:
            yield "runs", "not: it cannot run groups"
        for absence in self.on_match:
            yield "on a match", absence

    @property
    def diagram(self) -> Diagram:
        """Draws states from left to right; begin and proceed lead on, take and ignore lead back."""
        states = ["", *self.states]
        boxes = [
            Box(s, n, s or "start", kind="pill" if not s else "box") for n, s in enumerate(states)
        ]
        boxes[-1] = Box(states[-1], len(states) - 1, states[-1], kind="result")
        arrows = [
            Arrow(
                edge.source,
                edge.target,
                edge.kind,
                "crossed" if edge.kind == "ignore" else "",
                hint=" and ".join(edge.conditions),
                key=f"edge-{number}",
            )
            for number, edge in enumerate(self.edges)
        ]
        legend = [
            f"{e.kind} {e.source or 'start'} → {e.target}: {' and '.join(e.conditions)}"
            for e in self.edges
            if e.conditions and e.kind != "ignore"
        ]
        legend += [f"on a match: {absence}" for absence in self.on_match]
        return Diagram(self.title, boxes, arrows, self.text, legend=list(map(Legend, legend)))


@dataclass(frozen=True, slots=True)
class ListFacts:
    COLUMNS: ClassVar[Columns] = (
        ("list", "name"),
        ("role", "role"),
        ("keeps", lambda one: " and ".join(one.filter)),
        ("then tested", lambda one: " and ".join(one.then)),
    )

    name: str
    role: str
    filter: tuple[str, ...]
    then: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListsFacts:
    BELOW: ClassVar = (("", "elements"),)

    name: str
    text: str
    searched: bool
    elements: tuple[ListFacts, ...]
    horizon_ms: int | None
    certain: str
    order: tuple[str, ...]
    no_dead_ends: bool = False

    @property
    def title(self) -> str:
        return f"ordered lists of {self.name}"

    @property
    def reach(self) -> str:
        return "everything" if self.horizon_ms is None else f"{self.horizon_ms:,} ms"

    @property
    def labelled(self) -> Labelled:
        if not self.searched:
            yield "searched", "not by this strategy"
        if self.elements:
            anew = "chosen each epoch from the lists' lengths and sampled selectivities"
            yield "kept", f"{self.reach}; a match is certain {self.certain}"
            always = "; always, without dead ends" if self.no_dead_ends else ""
            yield "order", (", ".join(self.order) or anew) + always

    @property
    def diagram(self) -> Diagram:
        """Draws a line per list: the events it keeps, and the conditions tested later."""
        boxes, arrows = [], []
        for number, one in enumerate(self.elements):
            kind = "result" if one.role == "anchor" else "box"
            kept = clip(" and ".join(one.filter) or "every event", 60)
            boxes.append(Box(f"list-{number}", 0, one.name, one.role, kind))
            boxes.append(Box(f"kept-{number}", 1, "keeps", kept))
            arrows.append(Arrow(f"list-{number}", f"kept-{number}"))
            if then := clip(" and ".join(one.then), 60):
                boxes.append(Box(f"then-{number}", 2, "then tests", then))
                arrows.append(Arrow(f"kept-{number}", f"then-{number}"))
        certain = Legend(f"kept: {self.reach}; certain {self.certain}", ink="soft")
        return Diagram(self.title, boxes, arrows, self.text, legend=[certain])


@dataclass(frozen=True, slots=True)
class PatternFacts:
    BELOW: ClassVar = (("", "conditions"), ("", "automaton"), ("", "lists"))

    name: str
    text: str
    stream: str
    window_ms: int | None
    strategy: str
    skip: str
    partition: tuple[str, ...]
    engine: str
    why: str
    columns: tuple[str, ...]
    conditions: tuple[ConditionFacts, ...]
    automaton: AutomatonFacts
    lists: ListsFacts | None = None
    never: str = ""
    can: tuple[str, ...] = ()
    costs_us: Mapping[str, float] = field(default_factory=dict)
    cannot: Mapping[str, str] = field(default_factory=dict)
    elements: tuple[str, ...] = ()
    candidates: str = ""
    whole: str = ""

    @property
    def title(self) -> str:
        return f"pattern {self.name}"

    @property
    def labelled(self) -> Labelled:
        window = "unbounded" if self.window_ms is None else f"{self.window_ms:,} ms"
        by = f", by {', '.join(self.partition)}" if self.partition else ""
        yield "text", self.text
        if self.elements:
            yield "matches", "; ".join(self.elements)
        yield "engine", f"{self.engine}: {self.why}"
        others = [name for name in self.can if name != self.engine]
        if others and not self.costs_us:
            yield "or", f"{', '.join(others)}, where an epoch's sample shows that it costs far less"
        for name, reason in self.cannot.items():
            if name != "compiled" or reason != self.cannot.get("nfa"):  # one line covers both
                yield f"not {name}", reason
        yield "strategy", f"{self.strategy}, window {window}, after a match {self.skip}"
        yield "reads", self.stream + by
        if self.candidates:
            yield "looks at", f"events between those that {self.candidates} joins"
        elif self.whole:
            yield "looks at", f"all events: {self.whole}"
        yield "returns", ", ".join(self.columns)
        if self.never:
            yield "no match", f"{self.never} is never true"


def pattern(query: ir.MatchQuery, seen: Sample | None = None) -> PatternFacts:
    """Returns the facts of a query. With a sample of its stream, these include each matcher's cost
    and the order of a search."""
    if isinstance(query, RowQuery):
        return _rows(query)
    assert isinstance(query, ir.PatternQuery)
    run = tied(query)
    chooser = EngineChooser(run, "auto")
    if seen is not None and chooser.open:
        chooser.by_cost(costs(run, seen))
    choice = chooser.choice
    mode = f" {query.mode.value}" if query.kleene and query.strategy is Strategy.ANY else ""
    return PatternFacts(
        query.name,
        query.text,
        query.stream.name,
        query.window,
        query.strategy.value + mode,
        query.skip.value,
        tuple(run.partition),
        choice.engine,
        choice.why,
        tuple(name for name, _, _ in fields(query)),
        tuple(
            ConditionFacts(c.cls.value, tuple(query.elements[i].variable for i in c.refs), c.text)
            for c in query.conjuncts
        ),
        _automaton(query),
        _lists(query, seen, sequence_ends(run) if choice.engine == "columns" else None),
        query.empty,
        tuple(candidates(run)),
        dict(choice.costs),
        {name: why for name, why in supports(run).items() if why is not None},
        tuple(map(str, query.elements)) if "#" in query.name else (),
        "" if query.candidates is None else query.candidates.name,
        query.whole,
    )


def _rows(query: RowQuery) -> PatternFacts:
    states, ways = row_automaton(query)
    return PatternFacts(
        query.name,
        query.text,
        query.stream.name,
        query.window,
        query.give.value,
        query.skip.value,
        tuple(query.partition),
        "rows",
        "by depth, the preferred way first, where it stood",
        tuple(name for name, _, _ in fields(query)),
        tuple(ConditionFacts(when, (name,), text) for when, name, text in decided(query)),
        AutomatonFacts(
            query.name, query.text, True, tuple(states), tuple(EdgeFacts(*way) for way in ways), ()
        ),
    )


def _automaton(query: ir.PatternQuery) -> AutomatonFacts:
    meaning = Meaning(query)
    automaton = Automaton(meaning)
    return AutomatonFacts(
        query.name,
        query.text,
        supports(query)["nfa"] is None,
        tuple(automaton.states),
        tuple(
            EdgeFacts(edge.kind, edge.source, edge.target, tuple(edge.conditions))
            for edge in automaton.edges
        ),
        tuple(f"no {query.elements[i]}" + _on_absence(query, i) for i in meaning.forbidding),
    )


def _on_absence(query: ir.PatternQuery, element: int) -> str:
    texts = [c.text for c in query.conjuncts if c.cls is Class.NEGATED and element in c.refs]
    return f" where {' and '.join(texts)}" if texts else ""


def _lists(query: ir.PatternQuery, seen: Sample | None, ends: SequenceEnds | None) -> ListsFacts:
    sure = ends is not None and ends.sure
    order: Sequence[int] = ()
    if sure and ends is not None:
        order = ends.tree.order
    elif seen is not None and seen.anchors.counts:
        order = [query.anchors[place] for place in cost_order(seen.anchors)[1]]
    return ListsFacts(
        query.name,
        query.text,
        supports(query)["optiseq"] is None,
        tuple(_list(query, number) for number in range(len(query.elements))),
        query.horizon,
        "one window after the first event" if query.waits else "with the last event",
        tuple(str(query.elements[element]) for element in order),
        sure,
    )


def _list(query: ir.PatternQuery, number: int) -> ListFacts:
    element = query.elements[number]
    role = "absence" if element.negated else "group" if element.kleene else "anchor"
    filters = [element.filter] if element.filter else []
    filters += [c.text for c in query.conjuncts if c.cls is Class.CONSTANT and c.refs == (number,)]
    later = [
        c.text
        for c in query.conjuncts
        if c.cls is not Class.CONSTANT and number in c.refs and number == max(c.refs)
    ]
    return ListFacts(str(element), role, tuple(filters), tuple(later))
