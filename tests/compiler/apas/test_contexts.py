"""The meaning of a name in its context, and the hint for a name without one."""

from __future__ import annotations

import pytest

from seustream.compiler.apas.symbols import Schema
from seustream.compiler.apas.tree import group
from tests.compiler.apas.schemas import VALUES, problems
from tests.engine.temporal.reference.elements import insertion, moment
from tests.engine.temporal.running import Run


def test_hints_name_what_is_near() -> None:
    for text, hint in {
        "select [a = $I.vv]": "did you mean $I.v?",
        "select [a = $S.g.y]": "attributes of $S.g",
        "select [a = agg.summ($I.v)]": "did you mean agg.sum?",
        "select [a = summ($I.v)]": "did you mean sum?",
        "select [a = 1 < $I.v < 3]": "AND",
        "where util.union($J, $J) select [a = $J.v]": "its tuples are in $new",
        "select [a = $S.g]": "a[$S.g[T]]",
    }.items():
        assert hint in (problems(text)[0].hint or ""), text


@pytest.mark.acceptance(1)
def test_an_unconnected_stream_has_no_attributes() -> None:
    of = {**VALUES, "U": Schema(group("U"), 0)}
    for text in (
        "select [a = $U.v]",
        "select [$U[T]]",
        "where util.union($U, $J) select [$new[T]]",
    ):
        (found,) = problems(text, of)
        assert (found.kind, found.hint) == ("UnknownAttribute", "source not connected")


@pytest.mark.acceptance(37)
def test_relative_names_are_of_the_nearest_bracket() -> None:
    text = "select O[x = $I.v, a[y = {}]]"
    (found,) = problems(text.format("x"))
    assert found.kind == "UnknownAttribute"
    assert "$O.x" in (found.hint or "")
    assert problems(text.format("$O.x")) == []
    assert [p.kind for p in problems("select O[x = $I.v, a = [y = x]]")] == ["UnknownAttribute"]
    assert problems("select O[a[x = $I.v, y = x]]") == []


def test_times_can_be_read() -> None:
    text = "where window.range($I, 5) select O[from_ = $I.ts, to = $I.te, d = util.millis($O.te) - util.millis($O.ts)]"
    one = Run(text, VALUES)
    one.feed("I", insertion(3, 3, 7, 0.0, "", True, 0))
    assert one.finish() == [(3, 8, moment(3), moment(8), 5.0)]
