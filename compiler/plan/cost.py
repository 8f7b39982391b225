"""Plans routes by cost: shared tags, no cross product where factors connect the streams.

Two steps.

1. Build a tree for each arriving stream. Its nodes record what is bound and what has been checked;
   from each, the next stream for a subquery is the connected one expected to let the fewest tuples
   through. Each node occurs in the tree once, so an intermediate that several subqueries need, or
   that is another subquery's result, is produced once, and no result twice.
2. Merge nodes of different trees into one tag if they mean the same and continue in the same way.
   Tuples that have taken different ways so far then share programs and route rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from seustream.compiler.plan.requests import Request, Requests
from seustream.compiler.plan.routes import RoutePlan, Step, factors_between, selections_of
from seustream.compiler.plan.statistics import Estimate


@dataclass(frozen=True, slots=True)
class _Content:
    """A joined tuple: the streams it carries, and the conditions known to hold for it."""

    bound: frozenset[int]
    factors: frozenset[int] = frozenset()
    selections: frozenset[tuple[int, int]] = frozenset()


@dataclass(slots=True)
class _Node:
    """A place in the tree of one arriving stream; `next` by area and content."""

    content: _Content
    next: dict[tuple[int, _Content], _Node] = field(default_factory=dict)
    subqueries: set[int] = field(default_factory=set)
    queries: set[int] = field(default_factory=set)


def plan(requests: Requests, slots: int, estimate: Estimate) -> RoutePlan:
    trees = [_tree(raw, requests, estimate) for raw in range(slots)]
    return _Merge(slots).run(trees)


# --- trees --------------------------------------------------------------------


def _tree(raw: int, requests: Requests, estimate: Estimate) -> _Node:
    root = _Node(_Content(frozenset((raw,))))
    nodes = {root.content: root}
    # Short subqueries first: their results are the intermediates that longer ones share.
    for request in sorted(requests.rows, key=lambda row: len(row.slots)):
        if not request.subquery.completed_by(raw):
            continue
        node = root
        while len(node.content.bound) < len(request.slots):
            area = _next_area(node, request, requests, estimate)
            content = _content(node.content.bound | {area}, request, requests)
            found = nodes.get(content)
            if found is None:
                found = nodes[content] = node.next[area, content] = _Node(content)
            found.subqueries.add(request.subquery.number)
            node = found
        node.queries.update(request.subquery.parents)
    return root


def _next_area(node: _Node, request: Request, requests: Requests, estimate: Estimate) -> int:
    """Returns the cheapest stream to probe; one without a factor only if none has any."""
    bound = node.content.bound

    def cost(area: int) -> tuple[bool, float, bool, int]:
        factors = factors_between(request, requests, bound, area)
        through = estimate.rows(area)
        for number in factors:
            through *= estimate.selectivity(requests.factors[number])
        through *= 0.5 ** len(selections_of(request, area))
        shared = (area, _content(bound | {area}, request, requests)) in node.next
        return (not factors, through, not shared, area)

    return min((slot for slot in request.slots if slot not in bound), key=cost)


def _content(bound: frozenset[int], request: Request, requests: Requests) -> _Content:
    def inside(number: int) -> bool:
        factor = requests.factors[number]
        return {factor.left.slot, factor.right.slot} <= bound

    return _Content(
        bound,
        frozenset(number for number in request.factors if inside(number)),
        frozenset(pair for pair in request.selections if pair[0] in bound),
    )


# --- tags ---------------------------------------------------------------------

_Meaning = tuple[_Content, frozenset[tuple[int, int]]]


class _Merge:
    """Numbers the nodes; those that mean the same and continue alike get one number."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.classes: dict[_Meaning, int] = {}
        self.class_of: dict[int, int] = {}  # by identity of the node

    def run(self, trees: list[_Node]) -> RoutePlan:
        for root in trees:
            for node in root.next.values():
                self._classify(node)
        routes = RoutePlan.start(self.slots)
        for tag, root in zip(routes.tags, trees, strict=True):
            tag.queries |= root.queries
        numbers: dict[int, int] = {}
        level = [(raw, root) for raw, root in enumerate(trees)]
        while level:
            level = [
                (self._tag(routes, numbers, number, area, node, after), after)
                for number, node in level
                for (area, _), after in node.next.items()
            ]
        return routes

    def _classify(self, node: _Node) -> int:
        after = frozenset((area, self._classify(n)) for (area, _), n in node.next.items())
        mine = self.classes.setdefault((node.content, after), len(self.classes))
        self.class_of[id(node)] = mine
        return mine

    def _tag(
        self,
        routes: RoutePlan,
        numbers: dict[int, int],
        before: int,
        area: int,
        node: _Node,
        after: _Node,
    ) -> int:
        """Returns the tag of a node, and adds the step that leads to it."""
        mine = self.class_of[id(after)]
        if mine not in numbers:
            numbers[mine] = routes.new_tag(after.content.bound).number
        tag = routes.tags[numbers[mine]]
        tag.subqueries |= after.subqueries
        tag.queries |= after.queries
        old, new = node.content, after.content
        fresh = sorted(new.selections - old.selections)
        routes.add(
            Step(
                area,
                before,
                tuple(sorted(new.factors - old.factors)),
                tuple(bit for slot, bit in fresh if slot == area),
                tuple(bit for slot, bit in fresh if slot != area),
                tag.number,
            )
        )
        return tag.number
