"""The tables for a device, and that the device would load them."""

from __future__ import annotations

import pytest

from seustream.compiler.pipeline import Options
from seustream.compiler.wjasip.check import check
from seustream.compiler.wjasip.image import decode
from tests.compiler.plan.cases import Case, cases, compiled_all
from tests.compiler.plan.shown import Shower


@pytest.mark.parametrize("case", cases("areas"), ids=str)
def test_case(case: Case) -> None:
    c = compiled_all("\n".join(case.before))
    assert Shower(c.layout).tables(c.tables) == list(case.after)


@pytest.mark.parametrize("plan", ["cost", "thesis"])
@pytest.mark.parametrize("fixture", ["areas", "cost", "decompose", "requests"])
def test_a_device_would_load_them(fixture: str, plan: str) -> None:
    for case in cases(fixture):
        c = compiled_all("\n".join(case.before), Options(plan=plan))
        check(c.tables, c.options.config)
        assert decode(c.image, c.options.config) == c.tables


def test_a_factor_is_seen_from_both_sides() -> None:
    """`probe condition window`: for R.b > S.e the area of S compares with >, the area of R with
    <."""
    c = compiled_all("SELECT * FROM R, S WHERE R.b > S.e WINDOW 5")
    assert [area.factors[0].condition.symbol for area in c.tables.areas] == ["<", ">"]
    assert [area.factors[0].probe_stream for area in c.tables.areas] == [1, 0]


def test_selections_carry_their_constants() -> None:
    c = compiled_all("SELECT * FROM R, S WHERE R.a = S.d AND R.b > 5 AND S.e <= -1 WINDOW 5")
    constants = [s.comparisons[0].constant for bits in c.tables.selections for s in bits]
    assert constants == [(1 << 31) + 5, (1 << 31) - 1]
