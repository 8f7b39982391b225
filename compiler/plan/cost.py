"""Routes by cost: shared tags, no cross product where factors connect the streams.

A tag stands for what its tuples carry and what has been checked: an intermediate that several
subqueries need, or that is another subquery's result, is produced once. From what is bound, the
next stream is the connected one expected to let the fewest tuples through.

Of each raw tuple a tag's tuples are reached by one way only; where two ways would meet, the later
one gets a tag of its own, so that nothing is produced twice.
"""

from __future__ import annotations

from compiler.plan.requests import Request, Requests
from compiler.plan.routes import RoutePlan, Tag, factors_between, selections_of
from compiler.plan.statistics import Estimate

_Checked = tuple[frozenset[int], frozenset[int], frozenset[tuple[int, int]]]


def plan(requests: Requests, slots: int, estimate: Estimate) -> RoutePlan:
    return _Planner(requests, slots, estimate).run()


class _Planner:
    def __init__(self, requests: Requests, slots: int, estimate: Estimate) -> None:
        self.requests, self.estimate = requests, estimate
        self.routes = RoutePlan.start(slots)
        self.by_content: dict[_Checked, list[Tag]] = {}
        # (raw stream, tag) -> the tag before it on the way from there
        self.came_from: dict[tuple[int, int], int] = {}

    def run(self) -> RoutePlan:
        # Short subqueries first: their results are the intermediates longer ones share.
        for request in sorted(self.requests.rows, key=lambda r: len(r.slots)):
            for raw in request.slots:
                self._from(raw, request)
        return self.routes

    def _from(self, raw: int, request: Request) -> None:
        tag = self.routes.tags[raw]
        while len(tag.bound) < len(request.slots):
            area = self._next(tag.bound, request)
            after = self._tag(raw, tag, tag.bound | {area}, request)
            self.routes.step(request, self.requests, tag, area, after)
            after.subqueries.add(request.subquery.number)
            tag = after
        tag.queries.update(request.subquery.parents)

    def _next(self, bound: frozenset[int], request: Request) -> int:
        """The cheapest stream to probe; one without a factor only if none has any."""

        def cost(area: int) -> tuple[bool, float, int]:
            factors = factors_between(request, self.requests, bound, area)
            through = self.estimate.rows(area)
            for number in factors:
                through *= self.estimate.selectivity(self.requests.factors[number])
            through *= 0.5 ** len(selections_of(request, area))
            return (not factors, through, area)

        return min((slot for slot in request.slots if slot not in bound), key=cost)

    def _tag(self, raw: int, before: Tag, bound: frozenset[int], request: Request) -> Tag:
        content: _Checked = (
            bound,
            frozenset(
                number
                for number in request.factors
                if {
                    self.requests.factors[number].left.slot,
                    self.requests.factors[number].right.slot,
                }
                <= bound
            ),
            frozenset(pair for pair in request.selections if pair[0] in bound),
        )
        candidates = self.by_content.setdefault(content, [])
        for tag in candidates:
            if self.came_from.get((raw, tag.number), before.number) == before.number:
                break
        else:
            tag = self.routes.new_tag(bound)
            candidates.append(tag)
        self.came_from[raw, tag.number] = before.number
        return tag
