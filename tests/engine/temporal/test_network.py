"""Networks: the road query of section 8.5 with its tables, remapped schemas, sinks, memory."""

from __future__ import annotations

import pytest

from seustream.engine.temporal.elements import ElementKind
from tests.compiler.apas.test_parse import ROAD, TWO
from tests.engine.temporal.reference.elements import header, insertion
from tests.engine.temporal.running import PAPER, PRODUCT, REFERENCE, Run, schemas

FIRST = [(2, 10, 40.0), (4, 10, 70.0), (8, 14, 70.0), (9, 17, 80.0)]
SECOND = [(3, 7, 90.0), (5, 9, 70.0), (7, 14, 50.0), (9, 18, 100.0)]
O1 = ROAD.split(";")[0].replace("from", "").replace("o1[", "select [")
O2 = "where window.range($II, 10) " + ROAD.split(";")[1].replace("o2[", "select [")
FACTS = ROAD[: ROAD.rindex("where")] + "select [$facts[T]]"


def fed(text: str, profile: object = PRODUCT) -> Run:
    one = Run(text, TWO, profile)  # type: ignore[arg-type]
    for first, second in zip(FIRST, SECOND, strict=True):
        one.feed("I", insertion(*first))
        one.feed("II", insertion(*second))
    return one


@pytest.mark.acceptance(50)
def test_table_6() -> None:
    o1 = fed(O1, PAPER)
    assert o1.rows() == [(2, 4, 1, 40, 40), (4, 8, 1, 55, 55), (8, 9, 1, 60, 55)]
    o2 = fed(ROAD.split(";")[1].replace("o2[", "select ["), PAPER)
    assert o2.rows() == [(3, 5, 2, 90, 90), (5, 7, 2, 80, 80), (7, 9, 2, 60, 60)]
    facts = fed(FACTS, PAPER)
    assert [(row[:3]) for row in facts.rows()] == [
        (2, 4, 1),
        (3, 5, 2),
        (4, 8, 1),
        (5, 7, 2),
        (7, 9, 2),
    ]
    assert fed(ROAD, PAPER).rows() == [(3, 5, 2, 90, 90), (5, 7, 2, 80, 80)]


@pytest.mark.acceptance(50)
@pytest.mark.parametrize("profile", [PRODUCT, REFERENCE])
def test_with_derived_boundaries_the_last_comes_out(profile: object) -> None:
    assert [row[:3] for row in fed(FACTS, profile).rows()][-1] == (8, 9, 1)


@pytest.mark.acceptance(50)
def test_after_stop() -> None:
    assert fed(O1, PAPER).finish()[3:] == [
        (9, 10, 1, 65, 60),
        (10, 14, 1, 75, 75),
        (14, 17, 1, 80, 80),
    ]
    second = ROAD.split(";")[1].replace("o2[", "select [")
    assert fed(second, PAPER).finish()[3:] == [(9, 14, 2, 75, 75), (14, 18, 2, 100, 100)]


@pytest.mark.acceptance(50)
def test_table_7() -> None:
    one = Run(O2, TWO, PAPER)
    without = Run(O2.replace("where window.range($II, 10)", ""), TWO, PAPER)
    for t, _, v in SECOND:
        for each in (one, without):
            each.feed("II", insertion(t, t, v))
    assert one.rows() == [(3, 5, 2, 90, 90), (5, 7, 2, 80, 80), (7, 9, 2, 70, 70)]
    assert without.finish() == []


def test_a_sink_gets_a_header_first() -> None:
    one = fed(ROAD)
    assert one.out[0].kind is ElementKind.HEADER
    assert str(one.out[0].schema) == "out{sektor INTEGER, avg DOUBLE, minmax DOUBLE}"


def test_a_sink_that_raises_is_left_out() -> None:
    one = Run("select [$I[T]]", TWO)
    calls = []

    def faulty(x: object) -> None:
        calls.append(x)
        if len(calls) > 1:
            raise OSError("full")

    one.network.subscribe(faulty)
    one.feed("I", insertion(1, 2, 1.0), insertion(2, 3, 2.0))
    assert len(one.rows()) == 2
    assert len(calls) == 2
    assert one.network.failed_sinks == 1


def test_a_later_schema_is_mapped_by_label() -> None:
    before = schemas(I=[["val", "DOUBLE"], ["x", "STRING"]])
    after = schemas(I=[["new", "INTEGER"], ["x", "STRING"], ["val", "DOUBLE"]])
    one = Run("select [v = $I.val, x = $I.x]", before)
    one.feed("I", insertion(1, 2, 1.5, "a"), header(after["I"].tree), insertion(2, 3, 9, "b", 2.5))
    assert one.rows() == [(1, 2, 1.5, "a"), (2, 3, 2.5, "b")]
    assert [kind for kind, _, _ in one.asked] == ["SCHEMA_CHANGED"]


def test_high_water_is_told() -> None:
    one = Run("where util.union($I, $II) select [$new[T]]", TWO)
    one.feed("I", *(insertion(t, t + 1, 1.0) for t in range(7)))
    assert one.network.most_waiting == 7
