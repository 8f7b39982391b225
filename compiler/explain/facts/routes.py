"""Routes: the table, the steps between tags, and the cross products among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from seustream.compiler.explain.facts.names import View, bracketed, marks
from seustream.compiler.explain.marks import GLUE, WIDTH, branches, circled
from seustream.compiler.explain.text import Columns, NamedLines
from seustream.compiler.plan.requests import Request
from seustream.compiler.plan.routes import Step


@dataclass(frozen=True, slots=True)
class TagFacts:
    """A row of the route table; `carries` are the bound streams, `inserts` marks a raw tuple."""

    COLUMNS: ClassVar[Columns] = (
        ("tag", "tag"),
        ("carries", "carries"),
        ("insert", lambda tag: tag.carries[0] if tag.inserts else ""),
        ("probe", "probes"),
        ("queries", "queries"),
        ("subqueries", "subqueries"),
    )

    tag: int
    carries: tuple[str, ...]
    inserts: bool
    probes: tuple[str, ...]
    queries: tuple[str, ...]
    subqueries: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StepFacts:
    """A step: a tuple with tag `pre` that matches a tuple in the window of `area` becomes one with
    tag `post`. The conditions are those of its factors, then those of its selections."""

    pre: int
    area: str
    factors: tuple[int, ...]
    selections: tuple[str, ...]
    conditions: tuple[str, ...]
    cross_product: bool
    post: int

    @property
    def marks(self) -> str:
        return " ".join((marks(self.factors) or "×", *self.selections))

    @property
    def words(self) -> str:
        conditions = ", ".join(self.conditions)
        return f"× any tuple {conditions}".rstrip() if self.cross_product else conditions


@dataclass(frozen=True, slots=True)
class RawResults:
    """Queries over a single stream, for which a tuple is a result if it satisfies these selections."""

    stream: str
    selections: tuple[str, ...]
    conditions: tuple[str, ...]
    queries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CrossProduct:
    """A place where every tuple of one side meets every tuple of the other. `asked_for` if the
    condition itself, not the plan, leaves its streams unconnected."""

    query: str
    subquery: int
    asked_for: bool
    text: str


@dataclass(frozen=True, slots=True)
class WayStep:
    """A step of an arriving stream: the check, the resulting tag, and results or a hint."""

    COLUMNS: ClassVar[Columns] = (("", "check"), ("", "becomes"), ("", "end"))

    check: str
    becomes: str
    end: str


@dataclass(frozen=True, slots=True)
class Arrival:
    """The steps that the tuples of a stream go through."""

    BELOW: ClassVar = (("", "ways"),)

    stream: str
    ways: tuple[WayStep, ...]

    @property
    def title(self) -> str:
        return f"  {self.stream} arrives"


@dataclass(frozen=True, slots=True)
class Routes:
    BELOW: ClassVar = (("", "tags"), ("", "arrivals"), ("", "legend"), ("", "crossing"))

    plan: str
    tags: tuple[TagFacts, ...]
    steps: tuple[StepFacts, ...]
    cross_products: tuple[CrossProduct, ...]
    selects: tuple[RawResults, ...]

    @property
    def crossing(self) -> NamedLines:
        found = self.cross_products
        return NamedLines(
            "", tuple((f"× {c.query}, subquery {c.subquery}:", c.text) for c in found)
        )

    @property
    def is_wide(self) -> bool:
        """Returns whether full conditions would leave no room for the tags."""
        ways = [way for one in self._arrivals() for way in one.ways]
        parts = ([len(getattr(way, name)) for way in ways] for name in ("check", "becomes", "end"))
        return sum(max(lengths, default=0) for lengths in parts) > WIDTH - 8

    @property
    def arrivals(self) -> tuple[Arrival, ...]:
        """Returns the steps of every arriving stream. Conditions that would be too wide are shown
        by their marks."""
        return self._arrivals(brief=self.is_wide)

    @property
    def legend(self) -> NamedLines:
        """Explains the marks of all steps if they replace the conditions: factors, then selections."""
        signs: dict[str, str] = {}
        for step in self.steps if self.is_wide else ():
            names = (*map(circled, step.factors), *step.selections)
            signs |= zip(names, step.conditions, strict=True)
        for one in self.selects if self.is_wide else ():
            signs |= zip(one.selections, one.conditions, strict=True)
        order = sorted(signs, key=lambda mark: ("σ" in mark, len(mark), mark))
        return NamedLines("", tuple((mark, signs[mark]) for mark in order))

    def _arrivals(self, brief: bool = False) -> tuple[Arrival, ...]:
        tags = {tag.tag: tag for tag in self.tags}
        found = []
        for raw in (tag for tag in self.tags if len(tag.carries) == 1):
            own = [one for one in self.selects if one.stream == raw.carries[0]]
            rows = list(_follow(self.steps, tags, raw.tag, 1, set()))
            leads = branches([0, *(1 for _ in own), *(depth for depth, _, _ in rows)])[1:]
            ways = [
                WayStep(
                    f"{lead}select  {' '.join(one.selections) if brief else ', '.join(one.conditions)}".replace(
                        " ", GLUE
                    ),
                    "",
                    f"⇒ {', '.join(one.queries)}",
                )
                for lead, one in zip(leads, own, strict=False)
            ]
            ways += [
                WayStep(
                    f"{lead}probe {step.area}  {step.marks if brief else step.words}".replace(
                        " ", GLUE
                    ),
                    f"→ tag {step.post}"
                    + ("" if brief else f" ({','.join(tags[step.post].carries)})"),
                    end,
                )
                for lead, (_, step, end) in zip(leads[len(own) :], rows, strict=True)
            ]
            found.append(Arrival(raw.carries[0], tuple(ways)))
        return tuple(found)


def _follow(
    steps: Sequence[StepFacts], tags: dict[int, TagFacts], pre: int, depth: int, shown: set[int]
) -> Iterator[tuple[int, StepFacts, str]]:
    """Yields the steps from a tag on. Below a tag already shown for the same stream there is only a
    hint."""
    for step in sorted((s for s in steps if s.pre == pre), key=lambda s: (s.area, s.post)):
        queries = tags[step.post].queries
        end = f"⇒ {', '.join(queries)}" if queries else ""
        if step.post in shown and any(s.pre == step.post for s in steps):
            yield depth, step, f"{end}  (goes on as above)".lstrip()
            continue
        shown.add(step.post)
        yield depth, step, end
        yield from _follow(steps, tags, step.post, depth + 1, shown)


def routes(scope: View) -> Routes:
    wanted, tags, steps = scope.subqueries, scope.tags, scope.steps
    areas: dict[int, set[int]] = {}
    for step in steps:
        areas.setdefault(step.pre, set()).add(step.area)
    return Routes(
        scope.c.options.plan,
        tuple(
            TagFacts(
                tag.number,
                scope.slots(tag.bound),
                tag.inserts,
                scope.slots(areas.get(tag.number, ())),
                scope.device_queries(tag.queries),
                tuple(sorted(tag.subqueries & wanted)),
            )
            for tag in scope.c.routes.tags
            if tag.number in tags
        ),
        tuple(_step(scope, step) for step in steps),
        cross_products(scope),
        tuple(_selects(scope)),
    )


def _selects(scope: View) -> Iterator[RawResults]:
    for row in scope.c.requests.rows:
        queries = scope.device_queries(row.subquery.parents)
        if len(row.slots) == 1 and queries:
            yield RawResults(
                scope.slot(row.slots[0]),
                tuple(scope.selection_mark(*pair) for pair in row.selections),
                tuple(
                    bracketed(scope.c.requests.selections[slot][bit])
                    for slot, bit in row.selections
                ),
                queries,
            )


def _step(scope: View, step: Step) -> StepFacts:
    requests, selections = scope.c.requests, scope.step_selections(step)
    return StepFacts(
        step.pre,
        scope.slot(step.area),
        tuple(number + 1 for number in step.factors),
        tuple(scope.selection_mark(slot, bit) for slot, bit in selections),
        (
            *(scope.factor(requests.factors[number]) for number in step.factors),
            *(bracketed(requests.selections[slot][bit]) for slot, bit in selections),
        ),
        step.is_cross_product,
        step.post,
    )


def cross_products(scope: View) -> tuple[CrossProduct, ...]:
    found = []
    wanted = scope.numbers
    for row in scope.c.requests.rows:
        parents = [parent for parent in row.subquery.parents if parent in wanted]
        groups = _connected(scope, row)
        asked_for = len(groups) > 1
        if not parents or not (asked_for or _crossing(scope, row)):
            continue
        if asked_for:
            sides = " and ".join("(" + ", ".join(scope.slots(group)) + ")" for group in groups)
            text = f"no condition between {sides}, so every tuple of one meets all of the other"
        else:
            pairs = sorted(
                {
                    ", ".join(scope.slots(scope.c.routes.tags[step.pre].bound))
                    + " with "
                    + scope.slot(step.area)
                    for step in _crossing(scope, row)
                }
            )
            text = (
                f"plan {scope.c.options.plan} pairs {'; '.join(pairs)} before any condition holds"
            )
            text += "; plan cost does not"
        for query in scope.device_queries(parents):
            found.append(CrossProduct(query, row.subquery.number, asked_for, text))
    return tuple(found)


def _crossing(scope: View, row: Request) -> list[Step]:
    """Returns the steps of a subquery that check no factor."""
    number, tags = row.subquery.number, scope.c.routes.tags
    return [
        step
        for step in scope.c.routes.steps
        if step.is_cross_product
        and number in tags[step.post].subqueries
        and (len(tags[step.pre].bound) == 1 or number in tags[step.pre].subqueries)
    ]


def _connected(scope: View, row: Request) -> list[frozenset[int]]:
    """Groups the streams of a subquery that its factors connect."""
    groups = [frozenset((slot,)) for slot in row.slots]
    for number in row.factors:
        factor = scope.c.requests.factors[number]
        pair = {factor.left.slot, factor.right.slot}
        joined = frozenset().union(*(group for group in groups if group & pair))
        groups = [group for group in groups if not group & pair] + [joined]
    return sorted(groups, key=min)
