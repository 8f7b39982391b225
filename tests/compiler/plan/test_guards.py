"""Guards: equalities that every combination requires, on the attributes that serve most tags."""

from __future__ import annotations

import dataclasses
import itertools
import random
from typing import Any

import pytest

from seustream.compiler.pipeline import PLANS, Options
from seustream.compiler.plan.guards import choose, equalities
from seustream.compiler.plan.statistics import Statistics
from seustream.compiler.wjasip.check import check
from seustream.compiler.wjasip.image import decode
from seustream.cosim.iss import IssDevice
from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.device import Area, Combination, Factor
from seustream.hdl.isa import Condition
from tests.compiler.plan.cases import Case, cases, compiled_all
from tests.compiler.plan.shown import Shower
from tests.cosim.queries import arrivals, run

DEFAULT = CONFIGURATIONS["default"]
STAR = "SELECT * FROM R, S, T, U WHERE R.a = S.d AND R.b = T.f AND R.c = U.h WINDOW 5"


@pytest.mark.parametrize("case", cases("guards"), ids=str)
def test_case(case: Case) -> None:
    c = compiled_all("\n".join(case.before))
    assert Shower(c.layout).guards(c.tables) == list(case.after)


def guards_of_r(indexes: int, statistics: Statistics | None = None, text: str = STAR) -> object:
    config = dataclasses.replace(DEFAULT, indexes=indexes)
    c = compiled_all(text, Options(config, statistics=statistics or Statistics()))
    check(c.tables, config)
    assert decode(c.image, config) == c.tables
    return c.tables.areas[0].guards


def test_no_more_attributes_than_indexes() -> None:
    assert guards_of_r(0) == {}
    assert guards_of_r(1) == {1: 0}
    assert guards_of_r(2) == {1: 0, 2: 1}
    assert guards_of_r(3) == guards_of_r(4) == {1: 0, 2: 1, 3: 2}


def test_the_more_selective_attribute_is_preferred() -> None:
    known = Statistics({("r", "a"): 5.0, ("r", "b"): 10.0, ("r", "c"): 5000.0})
    assert guards_of_r(1, known) == {3: 2}
    assert guards_of_r(2, known) == {2: 1, 3: 2}


def test_serving_more_tags_comes_before_selectivity() -> None:
    text = "SELECT * FROM R, S, T WHERE R.a = S.d AND R.a = T.f AND R.b = S.e WINDOW 5"
    known = Statistics({("r", "a"): 2.0, ("s", "d"): 2.0, ("t", "f"): 2.0, ("r", "b"): 5000.0})
    one, two = guards_of_r(1, known, text), guards_of_r(2, known, text)
    c = compiled_all(text)
    window = [factor.window_attribute for factor in c.tables.areas[0].factors]
    assert isinstance(one, dict)
    assert isinstance(two, dict)
    assert {window[index] for index in one.values()} == {0}
    assert one.keys() == two.keys()
    assert {window[index] for index in two.values()} == {0, 1}


@pytest.mark.parametrize("plan", PLANS)
def test_programs_do_not_depend_on_guards(plan: str) -> None:
    text = f"{STAR}; SELECT * FROM R, S WHERE R.a = S.d OR R.b > 3 WINDOW 5"
    with_, without = (
        compiled_all(text, Options(dataclasses.replace(DEFAULT, indexes=n), plan)) for n in (2, 0)
    )
    assert with_.programs == without.programs
    assert any(area.guards for area in with_.tables.areas)
    unguarded = tuple(dataclasses.replace(area, guards={}) for area in with_.tables.areas)
    assert dataclasses.replace(with_.tables, areas=unguarded) == without.tables


class Watched(IssDevice):
    """Watches guards: asserts that every pair a program joins fulfils the guard of its tag."""

    guarded = 0

    def _execute(self, area: int, probe: Any) -> Any:
        joined = super()._execute(area, probe)
        assert self._tables is not None
        stated = self._tables.areas[area]
        if probe.tag in stated.guards:
            factor = stated.factors[stated.guards[probe.tag]]
            for each in joined:
                ours = probe.parts[factor.probe_stream].attributes[factor.probe_attribute]
                assert each.parts[area].attributes[factor.window_attribute] == ours
                self.guarded += 1
        return joined


@pytest.mark.parametrize("plan", PLANS)
def test_programs_join_nothing_that_a_guard_excludes(plan: str) -> None:
    chance = random.Random(plan)
    c = compiled_all(
        f"{STAR}; SELECT * FROM R, S WHERE R.a = S.d AND R.b > 3 WINDOW 5", Options(plan=plan)
    )
    device = Watched(DEFAULT)
    device.load(c.image)
    low = 1 << 31
    rows = [
        (chance.randrange(4), t, tuple(low + chance.randrange(5) for _ in range(3)))
        for t in range(300)
    ]
    assert len(run(device, arrivals(rows, (0, 1, 2, 3))))
    assert device.guarded


# --- against a definition -------------------------------------------------------


def random_area(chance: random.Random) -> Area:
    conditions = [Condition.EQ, Condition.EQ, Condition.EQ, Condition.LT]
    factors = tuple(
        Factor(chance.randrange(4), 1, chance.randrange(4), chance.choice(conditions))
        for _ in range(chance.randrange(1, 7))
    )
    rows = tuple(
        Combination(
            chance.randrange(5),
            tuple(sorted(chance.sample(range(len(factors)), chance.randint(0, len(factors))))),
            (),
            (),
            9,
        )
        for _ in range(chance.randrange(7))
    )
    return Area(factors, tuple(sorted(rows, key=lambda row: row.pre_tag)))


@pytest.mark.parametrize("seed", range(40))
def test_no_choice_of_attributes_does_better(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    for _ in range(20):
        area = random_area(chance)
        shares = [chance.choice([0.01, 0.1, 0.5]) for _ in area.factors]
        indexes = chance.randrange(5)
        guards = choose(area, shares, indexes)
        columns = {area.factors[index].window_attribute for index in guards.values()}
        assert len(columns) <= indexes
        for tag, index in guards.items():
            rows = [row for row in area.combinations if row.pre_tag == tag]
            assert rows
            assert all(index in row.factors for row in rows)
            assert area.factors[index].condition is Condition.EQ
        served = []
        for chosen in itertools.combinations(range(4), min(indexes, 4)):
            best = {
                tag: min(
                    (
                        shares[index]
                        for index in equalities(area, tag)
                        if area.factors[index].window_attribute in chosen
                    ),
                    default=None,
                )
                for tag in {row.pre_tag for row in area.combinations}
            }
            known = [share for share in best.values() if share is not None]
            served.append((-len(known), sum(known)))
        cost = (-len(guards), sum(shares[index] for index in guards.values()))
        assert cost == pytest.approx(min(served))
