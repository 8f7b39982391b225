"""Library functions: their arguments, and results that are trees."""

from __future__ import annotations

import pytest

from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.errors import CompileError
from tests.compiler.apas.schemas import VALUES, compiled
from tests.engine.temporal.reference.elements import insertion
from tests.engine.temporal.running import Run


@pytest.mark.acceptance(41)
def test_new_functions_and_tree_aggregates(libraries: Libraries) -> None:
    text = "select [s = mine.stats($I.d), r = s.max - s.min, n = agg.count($I)]"
    one = Run(compiled(text, libraries=libraries), VALUES)
    one.feed("I", insertion(1, 5, 1, 3.0, "", True, 0), insertion(2, 6, 1, 7.0, "", True, 0))
    assert (
        str(one.compiled.tree) == "out{s{max DOUBLE, min DOUBLE, avg DOUBLE}, r DOUBLE, n INTEGER}"
    )
    assert one.finish() == [
        (1, 2, 3.0, 3.0, 3.0, 0.0, 1),
        (2, 5, 7.0, 3.0, 5.0, 4.0, 2),
        (5, 6, 7.0, 7.0, 7.0, 0.0, 1),
    ]


@pytest.mark.acceptance(41)
def test_a_tree_in_arithmetic_is_no_operator(libraries: Libraries) -> None:
    with pytest.raises(CompileError) as caught:
        compiled("select [r = mine.stats($I.d) + 1]", libraries=libraries)
    assert [p.kind for p in caught.value.problems] == ["NoOperator"]


def test_a_scalar_with_a_tree(libraries: Libraries) -> None:
    one = Run(compiled("select [h = mine.halves($J.v), x = h.high]", libraries=libraries), VALUES)
    one.feed("J", insertion(1, 5, 6))
    assert one.finish() == [(1, 5, 3.0, 12.0, 12.0)]


def test_types_of_aggregates() -> None:
    tree = compiled(
        "select [a = agg.sum($I.d), b = agg.min($I.t), c = agg.avg($I.v), d = agg.max($I.s), e = agg.min($I.f)]"
    ).tree
    shown = "out{a DOUBLE, b DATETIME, c DOUBLE, d STRING, e BOOLEAN}"
    assert str(tree) == shown
