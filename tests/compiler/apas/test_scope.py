"""The meaning of names and calls: functions of all languages beside library functions, NULL,
FILTER."""

from __future__ import annotations

from typing import Any

import pytest

from seustream.compiler.apas.functions import Overload, Scalar
from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.apas.types import DOUBLE
from tests.compiler.apas.schemas import catalogue, compiled
from tests.engine.temporal.reference.elements import insertion
from tests.engine.temporal.running import Run

OF = catalogue(I=[["v", "INTEGER"], ["d", "DOUBLE"], ["s", "STRING"]])


class Half(Scalar):
    overloads = (Overload((DOUBLE,), DOUBLE),)

    def call(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return (values[0] / 2,)


LIBRARIES = Libraries()
LIBRARIES.register("mine", {"half": Half()})

VALUES: dict[str, Any] = {
    "round(7 / 2.0) + abs(-$I.v)": 8.0,
    "coalesce($I.d, -1.0)": -1.0,
    "$I.d + 1": None,
    "case when $I.d is null then 'none' else $I.s end": "none",
    "mine.half($I.v)": 2.0,
    "mine.half($I.d)": None,
    "greatest(mine.half($I.v), 1.5) + 1": 3.0,
    "upper($I.s || '!')": "X!",
    "$I.v::string": "4",
    "$I.v = 4 and $I.v == 4": True,
    "10s + 5 min": "interval",
}


@pytest.mark.parametrize("expression", VALUES)
def test_values(expression: str) -> None:
    one = Run(compiled(f"select [x = {expression}, y = $I.v]", OF, LIBRARIES), OF)
    one.feed("I", insertion(1, 2, 4, None, "x"))
    ((_, _, found, _),) = one.finish()
    if VALUES[expression] == "interval":
        assert found.total_seconds() == 310
    else:
        assert found == VALUES[expression]


def test_count_of_a_tree_of_one_leaf_counts_tuples() -> None:
    of = catalogue(I=[["val", "INTEGER"]])
    one = Run(
        compiled("select [a = agg.count($I), b = agg.count($I[T]), c = agg.count($I.val)]", of), of
    )
    for v in (4, None):
        one.feed("I", insertion(1, 3, v))
    assert one.finish() == [(1, 3, 2, 2, 1)]


def test_aggregates_by_both_names() -> None:
    text = """select [a = agg.sum($I.v), b = sum($I.v), c = count(*), d = agg.count($I.d), e = agg.count($I),
        f = count(distinct $I.v), g = sum($I.v) filter (where $I.d is not null), h = median($I.v)]"""
    one = Run(compiled(text, OF), OF)
    for v, d in ((4, None), (4, 1.0), (7, None)):
        one.feed("I", insertion(1, 3, v, d, None))
    assert one.finish()[-1] == (1, 3, 15, 15, 3, 1, 3, 2, 4, 4.0)
