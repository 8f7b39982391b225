"""Parts shared by both planners: tags, steps, and the factors that can be checked in an area."""

from __future__ import annotations

from seustream.compiler.plan.routes import RoutePlan, Step, factors_between, selections_of
from seustream.hdl.device import Combination
from tests.compiler.plan.cases import compiled

CHAIN = compiled("R.a = S.d AND S.e = T.f AND R.b = T.g AND R.c > 1 AND T.f > 2", "R, S, T")
(ROW,) = CHAIN.requests.rows
R, S, T = range(3)


def between(bound: set[int], area: int) -> tuple[int, ...]:
    return factors_between(ROW, CHAIN.requests, frozenset(bound), area)


def test_factors_that_can_be_checked() -> None:
    """0 is R-S, 1 is S-T, 2 is R-T."""
    assert between({R}, S) == (0,)
    assert between({S}, R) == (0,)
    assert between({R}, T) == (2,)
    assert between({R, S}, T) == (1, 2)
    assert between({S, T}, R) == (0, 2)
    assert between(set(), R) == ()


def test_selections_of_a_slot() -> None:
    assert [selections_of(ROW, slot) for slot in (R, S, T)] == [(0,), (), (0,)]


def test_a_plan_starts_with_the_raw_tuples() -> None:
    plan = RoutePlan.start(3)
    assert [(t.number, t.bound, t.inserts) for t in plan.tags] == [
        (0, {0}, False),
        (1, {1}, False),
        (2, {2}, False),
    ]
    tag = plan.new_tag(frozenset((0, 1)))
    assert (tag.number, tag.inserts) == (3, False)


def test_a_raw_tuple_shows_its_own_selections_an_intermediate_does_not() -> None:
    plan = RoutePlan.start(3)
    pair, whole = plan.new_tag(frozenset((R, S))), plan.new_tag(frozenset((R, S, T)))
    plan.step(ROW, CHAIN.requests, plan.tags[R], S, pair)
    plan.step(ROW, CHAIN.requests, pair, T, whole)
    assert plan.steps == [
        Step(S, R, (0,), (), (0,), pair.number),
        Step(T, pair.number, (1, 2), (0,), (), whole.number),
    ]
    assert (plan.tags[R].probes, pair.probes, whole.probes) == ({S}, {T}, set())
    # A tuple that no later tuple meets is not stored.
    assert [tag.inserts for tag in plan.tags] == [False, True, True, False, False]


def test_the_same_step_is_made_once() -> None:
    plan = RoutePlan.start(3)
    pair = plan.new_tag(frozenset((R, S)))
    for _ in range(2):
        plan.step(ROW, CHAIN.requests, plan.tags[R], S, pair)
    assert len(plan.steps) == 1


def test_combinations_are_an_areas_steps_in_order_of_tags() -> None:
    steps = [
        Step(1, 7, (4,), (0,), (), 9),
        Step(0, 1, (2,), (), (), 5),
        Step(1, 0, (4, 2), (), (1,), 8),
        Step(1, 0, (), (), (), 3),
    ]
    plan = RoutePlan([], steps)
    assert plan.combinations(1, {2: 0, 4: 1}) == (
        Combination(0, (), (), (), 3),
        Combination(0, (1, 0), (), (1,), 8),
        Combination(7, (1,), (0,), (), 9),
    )
    assert [step.is_cross_product for step in steps] == [False, False, False, True]
