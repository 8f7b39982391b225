"""Names, scopes, functions, and every semantic error at its exact place."""

from __future__ import annotations

import pytest

from seustream.compiler.apas.types import DOUBLE
from tests.compiler.apas.schemas import compiled, places, problems

# --- errors -------------------------------------------------------------------

ERRORS: dict[str, list[tuple[str, int, int]]] = {
    "select [a = $X.v]": [("UnknownStream", 1, 14)],
    "select [a = $I.w]": [("UnknownAttribute", 1, 14)],
    "select [$I.w[T]]": [("UnknownAttribute", 1, 10)],
    "select [a = $I.v, b = c]": [("UnknownAttribute", 1, 23)],
    "where v > 1 select [a = $I.v]": [("UnknownAttribute", 1, 7)],
    "select [a = $S.g]": [("UntypedAttribute", 1, 13)],
    "select [a = $S]": [("UntypedAttribute", 1, 13)],
    "select [a = $I.v,\n b = $I.v - 'x']": [("NoOperator", 2, 6)],
    "select [a = not $I.d]": [("NoOperator", 1, 17)],
    "select [a = -$I.s]": [("NoOperator", 1, 13)],
    "select [a = +$I.s]": [("NoOperator", 1, 13)],
    "select [a = 1, a = 2.0, b = $I.v]": [("TypeRedefined", 1, 16)],
    "select [a.b = 1, a = 2, c = $I.v]": [("TypeRedefined", 1, 18)],
    "select [a = 1, a.b = 2, c = $I.v]": [("TypeRedefined", 1, 16)],
    "select [a = $I.v, ts = 1]": [("ReservedName", 1, 19)],
    "select [a = nope.f($I.v)]": [("UnknownFunction", 1, 13)],
    "select [a = summ($I.v)]": [("UnknownFunction", 1, 13)],
    "select [a = 1]": [("NoInput", 1, 8)],
    "where $I.v select [a = $I.v]": [("NotBoolean", 1, 7)],
    "select I[a = $I.v]": [("NameConflict", 1, 15)],
    "where $I.v > 1 select I[a = 1]": [("NameConflict", 1, 23)],
    "from d[a = $I.v]; d[a = $I.v]; select [$d[T]]": [("DuplicateStream", 1, 19)],
    "from d[a = $e.a]; e[a = $I.v]; select [$d[T]]": [("UnknownStream", 1, 13)],
    "from d[a = $d.a]; select [$d[T]]": [("UnknownAttribute", 1, 13)],
    "where util.union($J, $K) select [$new[T]]": [("SchemaMismatch", 1, 22)],
    "where util.union($J) select [$new[T]]": [("BadArgument", 1, 7)],
    "where util.union($J, $J) select [a = $J.v]": [("UnknownStream", 1, 39)],
    "where util.union($I.v, $J) select [$new[T]]": [("BadArgument", 1, 18)],
    "where window.range($I, 1), window.now($I) select [a = $I.v]": [("BadArgument", 1, 39)],
    "where window.range($I) select [a = $I.v]": [("BadArgument", 1, 7)],
    "where window.range($I, 1) > 2 select [a = $I.v]": [("BadArgument", 1, 7)],
    "where window.table($S, $S.g) select [a = $S.id]": [("BadArgument", 1, 24)],
    "where window.table($S, 3) select [a = $S.id]": [("BadArgument", 1, 24)],
    "select [a = window.now($I)]": [("BadArgument", 1, 13)],
    "select [a = agg.sum($I.s)]": [("BadArgument", 1, 13)],
    "select [a = agg.sum()]": [("BadArgument", 1, 13)],
    "select [a = agg.sum(val = $I.v)]": [("BadArgument", 1, 13)],
    "select [a = agg.sum($I.v) + $I.v]": [("NotAggregated", 1, 30)],
    "select [a = agg.sum($I.v), $J[T]]": [("NotAggregated", 1, 29)],
    "select [a = agg.sum(agg.min($I.v))]": [("NestedAggregate", 1, 21)],
    "where agg.sum($I.v) > 1 select [a = $I.v]": [("AggregateInWhere", 1, 7)],
    "select O[a = agg.sum($I.v), b = agg.sum($O.a)]": [("AggregateArgument", 1, 42)],
    f"select [a = {'9' * 39} + $I.v]": [("BadLiteral", 1, 13)],
    "select [a = 1 < $I.v < 3]": [("NoOperator", 1, 13)],
    "select [a = cast($I.v as integers)]": [("UnknownType", 1, 26)],
    "select [a = abs([x = 1]), b = $I.v]": [("BadArgument", 1, 17)],
}


@pytest.mark.acceptance(20, 39, 44)
@pytest.mark.parametrize("text", ERRORS)
def test_errors_have_their_place(text: str) -> None:
    assert places(text) == ERRORS[text]
    assert all(problem.hint for problem in problems(text))


@pytest.mark.acceptance(39)
def test_independent_errors_are_both_reported_and_follow_ups_are_silent() -> None:
    text = "from d[x = $I.nope, y = x + 1, z = x]; where $d.x > 1 select [a = $d.z, b = $J.nope]"
    assert places(text) == [("UnknownAttribute", 1, 13), ("UnknownAttribute", 1, 78)]


@pytest.mark.acceptance(42)
def test_forward_references_cycles_and_duplicates() -> None:
    for text in (
        "from a[x = $b.x]; b[x = $a.x]; select [$b[T]]",
        "from a[x = $a.x]; select [$a[T]]",
        "from a[x = $I.v]; a[x = $I.v]; select [$a[T]]",
    ):
        assert problems(text)
    assert "defined later" in (
        problems("from a[x = $b.x]; b[x = $I.v]; select [$a[T]]")[0].hint or ""
    )


def test_a_local_name_hides_that_of_the_catalogue() -> None:
    c = compiled("from J[x = $I.d]; select [y = $J.x]")
    assert c.warnings == ("stream J of the query hides that of the catalogue",)
    assert c.tree.types == [DOUBLE]
