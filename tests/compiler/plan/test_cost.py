"""The cost plan: correct, free of cross products where possible, with shared tags."""

from __future__ import annotations

import random

import pytest

from seustream.compiler.pipeline import Compilation, Options
from seustream.compiler.plan.statistics import Statistics
from tests.compiler.plan.cases import Case, cases, compiled, compiled_all
from tests.compiler.plan.eight import compiled_eight
from tests.compiler.plan.random_queries import query
from tests.compiler.plan.shown import Shower
from tests.compiler.plan.walk import check_plan, deliveries, is_connected, truths


@pytest.mark.parametrize("case", cases("cost"), ids=str)
def test_case(case: Case) -> None:
    c = compiled_all("\n".join(case.before))
    assert Shower(c.layout).routes(c.routes) == list(case.after)
    check_plan(c.routes, c.requests)


def random_sets(seed: int, count: int, connected: bool) -> list[Compilation]:
    chance = random.Random(seed)
    found = []
    while len(found) < count:
        text = "\n".join(query(chance, connected) for _ in range(chance.choice((1, 2, 3))))
        c = compiled_all(text, stop_after="routes")
        outcomes = len(c.requests.factors) + sum(map(len, c.requests.selections))
        if outcomes <= 7:  # few enough to try every combination
            found.append(c)
    return found


@pytest.mark.parametrize("connected", [False, True])
def test_random_plans_deliver_what_was_asked(connected: bool) -> None:
    for c in random_sets(11, 25, connected):
        check_plan(c.routes, c.requests)


def test_a_combination_is_delivered_once_for_each_term_at_most() -> None:
    """A query that is one conjunction delivers it exactly once."""
    for c in random_sets(12, 10, connected=False):
        for truth in truths(c.requests):
            for raw in range(len(c.layout.slots)):
                for number, times in deliveries(c.routes, c.requests, raw, truth).items():
                    assert 1 <= times <= len(c.device_queries[number].terms)


def test_no_cross_product_where_factors_connect_the_streams() -> None:
    crossing = 0
    for connected in (True, False):
        for c in random_sets(13, 40, connected):
            rows = {row.subquery.number: row for row in c.requests.rows}
            for step in c.routes.steps:
                if step.is_cross_product:
                    crossing += 1
                    for number in c.routes.tags[step.post].subqueries:
                        assert not is_connected(rows[number], c.requests)
    assert crossing > 5


def test_a_cross_product_comes_last() -> None:
    """R joins S, and T has no condition: whichever of R and S arrives probes the other before T."""
    c = compiled("R.a = S.d", "R, T, S")
    names = [slot.name for slot in c.layout.slots]
    assert names == ["R", "S", "T"]
    for raw, first in ((0, {1}), (1, {0})):
        assert c.routes.tags[raw].probes == first


def test_fewer_tags_than_the_thesis() -> None:
    cost, thesis = compiled_eight("cost"), compiled_eight("thesis")
    assert len(thesis.routes.tags) == 43
    assert len(cost.routes.tags) < len(thesis.routes.tags) / 2
    check_plan(cost.routes, cost.requests)
    assert not any(
        step.is_cross_product
        for step in cost.routes.steps
        for number in cost.routes.tags[step.post].subqueries
        if is_connected(cost.requests.rows[number], cost.requests)
    )


def test_never_more_tags_than_the_thesis() -> None:
    chance = random.Random(14)
    for _ in range(40):
        text = "\n".join(query(chance) for _ in range(chance.choice((1, 2, 3, 4))))
        cost = compiled_all(text, stop_after="routes")
        thesis = compiled_all(text, Options(plan="thesis"), stop_after="routes")
        assert len(cost.routes.tags) <= len(thesis.routes.tags)


def test_a_result_of_one_query_is_the_intermediate_of_another() -> None:
    c = compiled_all(
        "SELECT * FROM R, S, T WHERE R.a = S.d AND S.e = T.f WINDOW 5;"
        "SELECT * FROM R, S WHERE R.a = S.d WINDOW 5;"
    )
    (shared,) = [tag for tag in c.routes.tags if tag.queries == {1}]
    assert shared.probes == {2}
    assert shared.subqueries == {0, 1}


# --- order --------------------------------------------------------------------


def first_probe(stream: int, condition: str, **statistics: object) -> str:
    options = Options(statistics=Statistics(**statistics))  # type: ignore[arg-type]
    c = compiled(condition, "R, S, T, U", options=options)
    (area,) = c.routes.tags[stream].probes
    return c.layout.slots[area].name


def test_equality_comes_before_inequality() -> None:
    assert first_probe(1, "S.d < R.a AND S.e = T.f AND T.g = U.h") == "T"
    assert first_probe(1, "S.d = R.a AND S.e < T.f AND T.g = U.h") == "R"
    assert first_probe(1, "S.d <> R.a AND S.e < T.f AND T.g = U.h") == "T"


def test_more_factors_come_before_fewer() -> None:
    assert first_probe(1, "R.a < S.d AND S.e < T.f AND S.d > T.g AND T.g = U.h") == "T"


def test_a_selection_makes_a_stream_cheaper() -> None:
    assert first_probe(1, "R.a = S.d AND S.e = T.f AND T.g = U.h") == "R"
    assert first_probe(1, "R.a = S.d AND S.e = T.f AND T.g = U.h AND T.g > 5") == "T"


def test_statistics_change_the_order() -> None:
    condition = "R.a = S.d AND S.e = T.f AND T.g = U.h"
    assert first_probe(1, condition) == "R"
    assert first_probe(1, condition, rows={"r": 5000.0}) == "T"
    assert first_probe(1, condition, rows={"t": 10.0}) == "T"
    assert first_probe(1, condition, distinct={("t", "f"): 100_000.0}) == "T"
    assert first_probe(1, condition, distinct={("s", "d"): 2.0, ("r", "a"): 3.0}) == "T"


def test_statistics_change_no_result() -> None:
    chance = random.Random(15)
    for _ in range(10):
        text = "\n".join(query(chance) for _ in range(2))
        rows = {name: chance.choice((1.0, 1e6)) for name in "rstu"}
        options = Options(statistics=Statistics({}, rows))
        c = compiled_all(text, options, stop_after="routes")
        if len(c.requests.factors) + sum(map(len, c.requests.selections)) <= 7:
            check_plan(c.routes, c.requests)


def test_four_streams_all_joined_with_all() -> None:
    condition = "R.a = S.d AND R.a = T.f AND R.a = U.h AND S.d = T.f AND S.d = U.h AND T.f = U.h"
    c = compiled(condition, "R, S, T, U")
    assert not any(step.is_cross_product for step in c.routes.steps)
    assert max(len(step.factors) for step in c.routes.steps) == 3
    check_plan(c.routes, c.requests)


def test_what_two_orders_of_probes_lead_to_is_made_once() -> None:
    """From R, q1 probes T first, because q0 has already made those pairs; by the time of q3 the
    pairs with S exist too, and S comes first."""
    c = compiled_all(
        "SELECT * FROM R, T WHERE R.b = T.f WINDOW 5;"
        "SELECT * FROM R, S, T WHERE R.a = S.d AND R.b = T.f WINDOW 5;"
        "SELECT * FROM R, S, U WHERE R.a = S.d AND S.e = U.h WINDOW 5;"
        "SELECT * FROM R, S, T WHERE R.a = S.d AND R.b = T.f WINDOW 7;"
    )
    check_plan(c.routes, c.requests)
    (whole,) = [tag for tag in c.routes.tags if {1, 3} & tag.queries]
    assert whole.queries == {1, 3}


def test_no_statistics_make_a_cross_product_worth_while() -> None:
    chance = random.Random(16)
    for _ in range(25):
        text = "\n".join(query(chance, connected=True) for _ in range(2))
        rows = {name: chance.choice((1.0, 10.0, 1e6)) for name in "rstu"}
        distinct = {(s, c): chance.choice((1.0, 1e6)) for s, c in zip("rstu", "adfh", strict=True)}
        c = compiled_all(text, Options(statistics=Statistics(distinct, rows)), stop_after="routes")
        assert not any(step.is_cross_product for step in c.routes.steps)
