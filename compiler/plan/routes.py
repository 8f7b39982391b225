"""Routes: for every arriving stream, the order in which it probes the others.

before  join request table
after   route tags: what a tuple with the tag carries, where it goes next, which queries it satisfies;
        and the steps between them, each a row of some area's combination part

Two planners make the same kind of plan and give the same results: `thesis` numbers tags as the
thesis does, `cost` (default) shares them and avoids cross products.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from seustream.compiler.plan.requests import Request, Requests
from seustream.hdl.device import Combination


@dataclass(slots=True)
class Tag:
    """One route tag. `bound` are the slots that its tuples carry, `subqueries` those that it
    serves."""

    number: int
    bound: frozenset[int]
    probes: set[int] = field(default_factory=set)
    queries: set[int] = field(default_factory=set)
    subqueries: set[int] = field(default_factory=set)
    inserts: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """A step: in `area`, a tuple with tag `pre` that agrees in factors and selections becomes one
    with tag `post`. Factors are numbered as in the request table."""

    area: int
    pre: int
    factors: tuple[int, ...]
    window_selections: tuple[int, ...]
    probe_selections: tuple[int, ...]
    post: int

    @property
    def is_cross_product(self) -> bool:
        return not self.factors


@dataclass(slots=True)
class RoutePlan:
    """All tags, by number; the first ones belong to the raw streams."""

    tags: list[Tag]
    steps: list[Step]

    @classmethod
    def start(cls, slots: int) -> RoutePlan:
        return cls([Tag(slot, frozenset((slot,))) for slot in range(slots)], [])

    def new_tag(self, bound: frozenset[int]) -> Tag:
        tag = Tag(len(self.tags), bound)
        self.tags.append(tag)
        return tag

    def step(self, request: Request, requests: Requests, pre: Tag, area: int, post: Tag) -> None:
        """Adds the step by which `pre` meets the window of `area` for one subquery."""
        factors = factors_between(request, requests, pre.bound, area)
        raw = next(iter(pre.bound)) if len(pre.bound) == 1 else None
        step = Step(
            area,
            pre.number,
            factors,
            selections_of(request, area),
            # A raw tuple's own selections are checked with its first partner; from then on the tag
            # implies that they hold.
            () if raw is None else selections_of(request, raw),
            post.number,
        )
        self.add(step)

    def add(self, step: Step) -> None:
        """Adds a step. The tag it starts from probes the area, which therefore stores what arrives."""
        self.tags[step.pre].probes.add(step.area)
        self.tags[step.area].inserts = True
        if step not in self.steps:
            self.steps.append(step)

    def combinations(self, area: int, factor_numbers: dict[int, int]) -> tuple[Combination, ...]:
        rows = [
            Combination(
                step.pre,
                tuple(factor_numbers[factor] for factor in step.factors),
                step.window_selections,
                step.probe_selections,
                step.post,
            )
            for step in self.steps
            if step.area == area
        ]
        return tuple(sorted(rows, key=lambda row: (row.pre_tag, row.post_tag)))


def factors_between(
    request: Request, requests: Requests, bound: frozenset[int], area: int
) -> tuple[int, ...]:
    """Returns the factors of a subquery that can be checked when a tuple over `bound` meets `area`."""
    found = []
    for number in request.factors:
        factor = requests.factors[number]
        pair = {factor.left.slot, factor.right.slot}
        if area in pair and (pair - {area}) <= bound:
            found.append(number)
    return tuple(found)


def selections_of(request: Request, slot: int) -> tuple[int, ...]:
    return tuple(bit for owner, bit in request.selections if owner == slot)
