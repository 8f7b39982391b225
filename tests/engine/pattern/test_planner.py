"""The matcher chosen for a query, and the order in which its lists are searched. The number in a
test's name is that of the acceptance statement."""

from __future__ import annotations

import itertools

import pytest

from seustream.engine.pattern.errors import EngineRefused
from seustream.engine.pattern.operator import PatternOperator
from seustream.engine.pattern.planner import (
    CostEstimate,
    check_order,
    cost_order,
    paper_order,
    pick,
    supports,
)
from tests.engine.pattern.generate import query_of

TABLE = [
    # query, whether OptiSeq can, whether NFA^b can, the planner's choice
    ("PATTERN A; !N; B WITHIN 5 ms RETURN *", True, True, "columns"),
    (
        "PATTERN A; B+; C WHERE a.x > b.x WITHIN 5 ms USING ANY SUBSETS RETURN *",
        True,
        True,
        "compiled",
    ),
    (
        "PATTERN A; B+; C WHERE a.x + b.x > c.x WITHIN 5 ms USING ANY SUBSETS RETURN *",
        True,
        True,
        "optiseq",  # no kernel compares these
    ),
    ("PATTERN A; B; !N WITHIN 5 ms RETURN *", True, True, "compiled"),
    ("PATTERN A; B; !N WHERE a.x + b.x > n.x WITHIN 5 ms RETURN *", True, True, "columns"),
    ("PATTERN A; B; !N WHERE a.x = b.x WITHIN 5 ms RETURN *", True, True, "columns"),
    ("PATTERN A; B; C; !N WITHIN 5 ms RETURN *", True, True, "columns"),
    ("PATTERN A; B WHERE a.x = b.x WITHIN 5 ms USING NEXT RETURN *", False, True, "columns"),
    ("PATTERN A; B WHERE a.x = b.x WITHIN 5 ms USING STRICT RETURN *", False, True, "compiled"),
    ("PATTERN A; B+; C WITHIN 5 ms USING ANY SUBSETS RETURN *", True, True, "compiled"),
    ("PATTERN A+; B WITHIN 5 ms USING ANY SUBSETS RETURN *", False, True, "compiled"),
    ("PATTERN A{1,2}; B WITHIN 5 ms USING ANY SUBSETS RETURN *", False, True, "compiled"),
    ("PATTERN A; B+; C WITHIN 5 ms RETURN *", True, False, "columns"),
    ("PATTERN A; B WITHIN 5 ms USING NEXT RETURN *", False, True, "compiled"),
    ("PATTERN A; B+; C WITHIN 5 ms USING NEXT RETURN *", False, True, "compiled"),
    ("PATTERN A; B WITHIN 5 ms USING STRICT RETURN *", False, True, "compiled"),
    ("PATTERN A; B WHERE a.x * b.x > 1 WITHIN 5 ms USING STRICT RETURN *", False, True, "columns"),
    ("PATTERN A; B+ WITHIN 5 ms USING STRICT RETURN *", False, True, "compiled"),
]


@pytest.mark.parametrize(("text", "optiseq", "nfa", "choice"), TABLE)
def test_51_the_planner_follows_the_table(text: str, optiseq: bool, nfa: bool, choice: str) -> None:
    query = query_of(text)
    can = supports(query)
    assert (can["optiseq"] is None, can["nfa"] is None) == (optiseq, nfa)
    assert pick(query)[0] == choice
    for engine, possible in (("optiseq", optiseq), ("nfa", nfa)):
        if possible:
            assert PatternOperator(query, engine).engine == engine
        else:
            with pytest.raises(EngineRefused, match="P016"):
                PatternOperator(query, engine)


def test_paper_order() -> None:
    assert paper_order((5, 2, 3, 2)) == (1, 2, 3, 0)  # equal means: forward
    assert paper_order((1, 2, 3)) == (0, 1, 2)
    assert paper_order((3, 2, 1)) == (2, 1, 0)
    assert paper_order((4, 1, 4)) == (1, 2, 0)  # equal means: forward
    assert paper_order((3, 1, 4)) == (1, 0, 2)
    assert paper_order((7,)) == (0,)


def cost_of(estimate: CostEstimate, order: tuple[int, ...]) -> float:
    """Returns the sum of the specification for one order."""
    cost = float(estimate.counts[order[0]])
    for size in range(2, len(order) + 1):
        before, block = order[: size - 1], order[:size]
        inside = [
            share
            for places, share in estimate.selectivities
            if all(place in before for place in places)
        ]
        product = 1.0
        for share in inside:
            product *= share
        cost += estimate.raw(min(block), max(block)) * product
    return cost


@pytest.mark.parametrize("counts", list(itertools.product((1, 30, 400), repeat=3)))
def test_cost_order_is_the_cheapest(counts: tuple[int, ...]) -> None:
    estimate = CostEstimate((*counts, 50), 1_000, 40, (((0, 1), 0.2), ((1, 2), 0.5), ((2, 3), 0.9)))
    orders = [
        order
        for order in itertools.permutations(range(4))
        if all(order[i] in (min(order[:i]) - 1, max(order[:i]) + 1) for i in range(1, 4))
    ]
    best = min((cost_of(estimate, order), order) for order in orders)
    cost, order = cost_order(estimate)
    assert cost == pytest.approx(best[0])
    assert cost_of(estimate, order) == pytest.approx(best[0])


@pytest.mark.parametrize("count", [0, 1, 1_000_000])
def test_the_cost_of_many_elements_is_a_number(count: int) -> None:
    estimate = CostEstimate((count,) * 180, 0, 40, (((0, 1), 0.0),))
    cost, order = cost_order(estimate)
    assert cost >= count
    assert sorted(order) == list(range(180))
    few = CostEstimate((6,) * 4, 40, 40)
    assert few.raw(0, 3) == pytest.approx(6**4 / 6)


@pytest.mark.parametrize("order", ["fast", (0, 2, 1), (0, 1), (1, 1, 0), (0, 1, 2, 3)])
def test_orders_that_are_none(order: object) -> None:
    with pytest.raises(EngineRefused):
        check_order(order, 3)  # type: ignore[arg-type]
