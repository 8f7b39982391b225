"""Names, scopes, functions, and every semantic error with its exact place."""

from __future__ import annotations

from typing import Any

import pytest

from seustream.compiler.apas.functions import Aggregate, Overload, Scalar
from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.apas.symbols import Schema
from seustream.compiler.apas.tree import SchemaRefused, from_lists, group, leaf, to_lists
from seustream.compiler.apas.types import DOUBLE
from seustream.compiler.errors import CompileError
from tests.compiler.apas.schemas import SECTION_5, VALUES, catalogue, compiled, places, problems
from tests.engine.temporal.reference.elements import insertion, moment
from tests.engine.temporal.running import Run

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


def test_a_local_name_hides_that_of_the_catalogue() -> None:
    c = compiled("from J[x = $I.d]; select [y = $J.x]")
    assert c.warnings == ("stream J of the query hides that of the catalogue",)
    assert c.tree.types == [DOUBLE]


# --- scopes -------------------------------------------------------------------


@pytest.mark.acceptance(32)
def test_three_spellings_are_one() -> None:
    texts = ["O[z[x = $I.d]]", "O[z.x = $I.d]", "O.z.x = $I.d", "O.z[x = $I.d]"]
    networks = [compiled(f"select {text}").network for text in texts]
    assert all(network == networks[0] for network in networks)


@pytest.mark.acceptance(36)
def test_the_last_value_of_one_type_wins() -> None:
    one = Run("select [a = 1, a = 2, b = $I.v]", VALUES)
    one.feed("I", insertion(1, 2, 7, 0.0, "", True, 0))
    assert one.finish() == [(1, 2, 2, 7)]


@pytest.mark.acceptance(36)
def test_also_in_copies() -> None:
    one = Run("select [v = 1, $J[T], v = v + 1]", VALUES)
    one.feed("J", insertion(1, 2, 40))
    assert one.finish() == [(1, 2, 41)]


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


def test_t_copies_children_and_leaves() -> None:
    of = catalogue(I=[["a", "INTEGER"], ["c", [["p", "STRING"], ["e", [["q", "INTEGER"]]]]]])
    for text, shape in {
        "[$I[T]]": "out{a INTEGER, c{p STRING, e{q INTEGER}}}",
        "[$I.c[T]]": "out{p STRING, e{q INTEGER}}",
        "[$I[c[T], a.T]]": "out{p STRING, e{q INTEGER}, a INTEGER}",
        "[$I.c.e.T, $I.c[p.T]]": "out{q INTEGER, p STRING}",
        "[x[$I.c[e[T]]], y[$out.x.T]]": "out{x{q INTEGER}, y{q INTEGER}}",
    }.items():
        assert str(compiled(f"select {text}", of).tree) == shape


# --- functions ----------------------------------------------------------------


class Stats(Aggregate):
    """max, min and mean as a tree."""

    overloads = (
        Overload(
            (DOUBLE,), group("", leaf("max", DOUBLE), leaf("min", DOUBLE), leaf("avg", DOUBLE))
        ),
    )
    merges = True

    def init(self, v: tuple[Any, ...]) -> Any:
        return (v[0], v[0], v[0], 1)

    def add(self, state: Any, v: tuple[Any, ...]) -> Any:
        return self.merge(state, self.init(v))

    def merge(self, a: Any, b: Any) -> Any:
        return (max(a[0], b[0]), min(a[1], b[1]), a[2] + b[2], a[3] + b[3])

    def final(self, state: Any) -> tuple[Any, ...]:
        return (state[0], state[1], state[2] / state[3])


class Halves(Scalar):
    """A tree of two."""

    overloads = (Overload((DOUBLE,), group("", leaf("low", DOUBLE), leaf("high", DOUBLE))),)

    def call(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return (values[0] / 2, values[0] * 2)


@pytest.fixture
def libraries() -> Libraries:
    found = Libraries()
    found.register("mine", {"stats": Stats(), "halves": Halves()})
    return found


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


def test_names_of_functions_are_taken_once(libraries: Libraries) -> None:
    with pytest.raises(ValueError, match=r"agg\.sum is registered already"):
        libraries.register("agg", {"sum": Stats()})


def test_types_of_aggregates() -> None:
    tree = compiled(
        "select [a = agg.sum($I.d), b = agg.min($I.t), c = agg.avg($I.v), d = agg.max($I.s), e = agg.min($I.f)]"
    ).tree
    shown = "out{a DOUBLE, b DATETIME, c DOUBLE, d STRING, e BOOLEAN}"
    assert str(tree) == shown


# --- schemas ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lists", "reason"),
    [
        ([["ts", "INTEGER"]], "ts is reserved"),
        ([["a", "INTEGER"], ["a", "DOUBLE"]], "two attributes a"),
        ([["a", "FLOAT"]], "no type 'FLOAT'"),
        ([["1a", "DOUBLE"]], "no label"),
        ([["a"]], "neither"),
        ("a INTEGER", "want a list"),
        ([["a", [["b", 3]]]], "want a list"),
    ],
)
def test_schemas_no_stream_can_have(lists: object, reason: str) -> None:
    with pytest.raises(SchemaRefused, match=reason):
        from_lists("S", lists)


def test_schemas_as_lists() -> None:
    lists = [["a", "INTEGER"], ["g", [["ts", "STRING"]]]]
    assert to_lists(from_lists("S", lists)) == lists
    assert from_lists("S", []).children == []
    assert SECTION_5["I"].tree.paths == [("a",), ("b",), ("c", "p"), ("c", "q")]
