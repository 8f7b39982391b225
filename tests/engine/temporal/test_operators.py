"""The operators: the snapshot law by brute force, and every example of section 3."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from seustream.compiler.apas import network as n
from seustream.compiler.errors import CompileError
from seustream.engine.temporal.elements import FOREVER, ElementKind
from tests.engine.temporal.reference.elements import STOP, boundary, insertion, moment
from tests.engine.temporal.reference.operators import ElementAggregate, ElementJoin, Profile
from tests.engine.temporal.running import (
    INSTANTS,
    PAPER,
    PRODUCT,
    REFERENCE,
    Run,
    insertions,
    keys_never_decrease,
    random_stream,
    run,
    schemas,
    snapshot,
)

TWO = schemas(A=[["k", "INTEGER"], ["v", "INTEGER"]], B=[["k", "INTEGER"], ["v", "INTEGER"]])
PROFILES = [PAPER, PRODUCT, REFERENCE]


def pair(chance: random.Random) -> tuple[int, int]:
    return chance.randint(0, 2), chance.randint(0, 9)


Bag = Counter[tuple[Any, ...]]


def law_filter(a: Bag, b: Bag) -> Bag:
    return Counter({e: c for e, c in a.items() if e[1] > 4})


def law_map(a: Bag, b: Bag) -> Bag:
    found: Bag = Counter()
    for (k, v), c in a.items():
        found[v + k, v * 2] += c
    return found


def law_union(a: Bag, b: Bag) -> Bag:
    return a + b


def law_join(a: Bag, b: Bag) -> Bag:
    found: Bag = Counter()
    for (k, v), c in a.items():
        for (j, w), d in b.items():
            if k == j and v < w + 3:
                found[v, w] += c * d
    return found


def law_cross(a: Bag, b: Bag) -> Bag:
    found: Bag = Counter()
    for x, c in a.items():
        for y, d in b.items():
            if x[1] != y[1]:
                found[x[0], y[1]] += c * d
    return found


LAWS = {
    "where $A.v > 4 select [$A[T]]": law_filter,
    "select [x = $A.v + $A.k, y = $A.v * 2]": law_map,
    "where util.union($A, $B) select [$new[T]]": law_union,
    "where $A.k == $B.k, $A.v < $B.v + 3 select [a = $A.v, b = $B.v]": law_join,
    "where $A.v != $B.v select [a = $A.k, b = $B.v]": law_cross,
}


@pytest.mark.acceptance(13, 14)
@pytest.mark.parametrize("query", LAWS)
@pytest.mark.parametrize("seed", range(25))
def test_snapshot_law(query: str, seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    streams = {name: random_stream(chance, pair) for name in "AB"}
    for profile in PROFILES:
        out = run(query, TWO, streams, profile, chance=chance)
        assert keys_never_decrease(out)
        for t in INSTANTS:
            want = LAWS[query](snapshot(streams["A"], t), snapshot(streams["B"], t))
            assert snapshot(out, t) == want, (query, t)


@pytest.mark.acceptance(14)
@pytest.mark.parametrize("seed", range(25))
def test_snapshot_law_of_a_query_with_everything(seed: int) -> None:
    """A join of a union with a filter; both read source A."""
    text = """
    from where util.union($A[T], $B[T]) select both[$new[T]];
         where $A.v > 2 select some[key = $A.k, $A[v.T]];
    where $both.k == $some.key, $both.v >= $some.v select [$both[T], w = $some.v]
    """
    print(f"seed {seed}")
    chance = random.Random(seed)
    streams = {name: random_stream(chance, pair) for name in "AB"}
    for profile in PROFILES:
        out = run(text, TWO, streams, profile, chance=chance)
        assert keys_never_decrease(out)
        for t in INSTANTS:
            a, b = snapshot(streams["A"], t), snapshot(streams["B"], t)
            want: Bag = Counter()
            for (k, v), c in (a + b).items():
                for (j, w), d in a.items():
                    if w > 2 and k == j and v >= w:
                        want[k, v, w] += c * d
            assert snapshot(out, t) == want


@pytest.mark.acceptance(11)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "query",
    [
        *LAWS,
        "where $A.k == $B.k select [n = agg.count($A.v), s = agg.sum($B.v)]",
        """from where window.range($A, 5) select x[s = agg.sum($A.v)];
                where window.now($B) select y[s = agg.max($B.v)];
           where util.union($x, $y) select [$new[T]]""",
    ],
)
def test_interleavings_agree(query: str, seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    streams = {name: random_stream(chance, pair) for name in "AB"}
    one = run(query, TWO, streams)
    other = run(query, TWO, streams, chance=chance)
    assert [repr(x) for x in one] == [repr(x) for x in other]


# --- join ---------------------------------------------------------------------

NAMED = schemas(L=[["n", "STRING"]], R=[["n", "STRING"]])


@pytest.mark.acceptance(15)
@pytest.mark.parametrize("profile", PROFILES)
def test_join_example(profile: Any) -> None:
    streams = {
        "L": [insertion(5, 9, "a"), insertion(5, 10, "b")],
        "R": [insertion(1, 6, "x"), insertion(2, 20, "y")],
    }
    out = insertions(run("select [n = $L.n || $R.n]", NAMED, streams, profile))
    want = [(5, 6, "ax"), (5, 6, "bx"), (5, 9, "ay"), (5, 10, "by")]
    assert [(x.ts, x.te, *x.values) for x in out] == want


def test_three_inputs_left_deep() -> None:
    catalogue = schemas(**{s: [["k", "INTEGER"], ["v", "INTEGER"]] for s in "ABC"})
    text = "where $A.k == $B.k, $B.v == $C.v, $A.v > 0 select [a = $A.v, c = $C.k, at = $B.ts]"
    one = Run(text, catalogue)
    assert [type(node).__name__ for node in one.compiled.network.nodes] == [
        "StreamNode", "StreamNode", "StreamNode", "JoinNode", "JoinNode",
    ]  # fmt: skip
    one.feed("A", insertion(1, 10, 1, 5), insertion(2, 10, 1, 0))
    one.feed("B", insertion(3, 8, 1, 7))
    one.feed("C", insertion(4, 20, 9, 7))
    assert one.finish() == [(4, 8, 5, 9, moment(3))]


@pytest.mark.acceptance(25)
def test_a_union_behind_a_filter_that_drops_all_never_stalls() -> None:
    text = """
    from where $A.v > 1000 select none[$A[T]];
    where util.union($none, $B) select [$new[T]]
    """
    one = Run(text, TWO)
    for t in range(5):
        one.feed("A", insertion(t, t + 1, 0, 0))
        one.feed("B", insertion(t, t + 1, 0, t))
        assert len(one.results()) == t  # all except those of the last instant
    stalled = Run(text, TWO, PAPER)
    for t in range(5):
        stalled.feed("A", insertion(t, t + 1, 0, 0))
        stalled.feed("B", insertion(t, t + 1, 0, t))
    assert stalled.results() == []


def test_derived_boundaries_are_sent_once() -> None:
    one = Run("where $A.v > 1000 select [$A[T]]", TWO)
    one.feed("A", *(insertion(t, t + 1, 0, 0) for t in (1, 1, 2, 2, 2, 3)))
    assert [repr(x) for x in one.out[1:]] == ["B(1)", "B(2)", "B(3)"]


# --- windows and instants -----------------------------------------------------


@pytest.mark.acceptance(16)
def test_range_window() -> None:
    streams = {"A": [insertion(t, t, 0, 0) for t in (3, 5, 7, 9)]}
    out = insertions(run("where window.range($A, 10) select [$A[v.T]]", TWO, streams))
    assert [x.key for x in out] == [(3, 13), (5, 15), (7, 17), (9, 19)]


@pytest.mark.acceptance(16)
def test_range_saturates() -> None:
    late = insertion(FOREVER - 2, FOREVER - 1, 0, 0)
    (x,) = insertions(run("where window.range($A, 1h) select [$A[v.T]]", TWO, {"A": [late]}))
    assert x.te == FOREVER


@pytest.mark.acceptance(16)
@pytest.mark.parametrize("size", ["0", "-5", "$A.v", "1.5", "'x'", "1 / 0", "5 - 5"])
def test_a_range_that_is_no_size(size: str) -> None:
    with pytest.raises(CompileError) as caught:
        run(f"where window.range($A, {size}) select [$A[T]]", TWO, {})
    assert [p.kind for p in caught.value.problems] == ["BadArgument"]


def test_now_and_unbounded() -> None:
    streams = {"A": [insertion(3, 9, 0, 1), insertion(4, 4, 0, 2)]}
    now = insertions(run("where window.now($A) select [$A[v.T]]", TWO, streams))
    assert [x.key for x in now] == [(3, 4), (4, 5)]
    ever = insertions(run("where window.unbounded($A) select [$A[v.T]]", TWO, streams))
    assert [x.key for x in ever] == [(3, FOREVER), (4, FOREVER)]


@pytest.mark.acceptance(19)
def test_instants_pass_what_keeps_nothing_and_do_nothing_elsewhere() -> None:
    a, b = [insertion(3, 3, 1, 7)], [insertion(3, 8, 1, 9)]
    for text in (
        "where $A.v > 0 select [$A[T]]",
        "select [$A[T]]",
        "where util.union($A, $B) select [$new[T]]",
    ):
        out = insertions(run(text, TWO, {"A": a, "B": b if "B" in text else []}))
        assert (3, 3) in [x.key for x in out]
    window = insertions(run("where window.range($A, 2) select [$A[T]]", TWO, {"A": a}))
    assert [x.key for x in window] == [(3, 5)]
    for text in ("select [x = $A.v, y = $B.v]", "select [s = agg.sum($A.v)]"):
        assert insertions(run(text, TWO, {"A": a, "B": b if "B" in text else []})) == []


@pytest.mark.acceptance(17)
@pytest.mark.parametrize("seed", range(20))
def test_nothing_stored_is_expired(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    one = Run("where $A.k == $B.k select [s = agg.count($A.v)]", TWO)
    streams = {name: random_stream(chance, pair) for name in "AB"}
    for operator in one.network.operators:
        if isinstance(operator, ElementJoin | ElementAggregate):
            _watch(operator)
    for name, stream in streams.items():
        one.feed(name, *stream)
    one.finish()


def _watch(operator: ElementJoin | ElementAggregate) -> None:
    plain = operator.reorganise

    def watched(now: int) -> None:
        plain(now)
        if isinstance(operator, ElementJoin):
            assert all(row.te > now for c in operator.collections for row in c.scan())
            assert all(entry[0] >= now for entry in operator.buffer)

    operator.reorganise = watched  # type: ignore[method-assign]


@pytest.mark.acceptance(10)
def test_stop_drains_and_ends() -> None:
    one = Run("where util.union($A, $B) select [$new[T]]", TWO)
    one.feed("A", insertion(1, 2, 0, 0), insertion(9, 10, 0, 0))
    one.feed("B", insertion(5, 6, 0, 0))
    assert len(one.results()) == 2
    one.feed("B", STOP)
    assert len(one.results()) == 3
    assert not one.network.finished.is_set()
    one.feed("A", STOP)
    assert one.network.finished.is_set()
    assert one.out[-1] is STOP
    one.feed("A", insertion(11, 12, 0, 0))  # STOP is final
    assert len(one.results()) == 3


# --- edges and memory ---------------------------------------------------------


@pytest.mark.acceptance(18)
def test_edges_carry_what_is_needed() -> None:
    catalogue = schemas(
        S=[["a", "INTEGER"], ["b", "DOUBLE"], ["g", [["p", "STRING"], ["q", "INTEGER"]]]],
        R=[["a", "INTEGER"], ["x", "DOUBLE"], ["y", "DOUBLE"]],
    )
    text = """
    from d[$S[T], twice = $S.a * 2, unused = $S.b];
         where $d.twice == $R.a select e[x = $R.x, q = $d.g.q, p = $d.g.p, w = $R.y];
    select f[x = $e.x, q = $e.q, n = $e.p == 'n']
    """
    plan = Run(text, catalogue).compiled.network
    shown = {
        title: [tuple(_leaf(plan, edge.node, c) for c in edge.columns) for edge in node.edges]
        for title, node in zip(plan.titles, plan.nodes, strict=True)
    }
    assert shown == {
        "stream S": [],
        "select d": [("a", "g.p", "g.q")],
        "stream R": [],
        "join d, R": [("g.p", "g.q", "twice"), ("a", "x")],
        "select f": [("x", "q", "p")],
    }
    (source,) = [
        node for node in plan.nodes if isinstance(node, n.StreamNode) and node.stream == "S"
    ]
    assert [".".join(path) for path in source.paths] == ["a", "g.p", "g.q"]


def _leaf(plan: n.Network, node: int, column: int) -> str:
    return ("ts", "te", *(name for name, _ in plan.nodes[node].leaves))[column]


@pytest.mark.acceptance(31)
def test_temporaries_never_leave_a_node() -> None:
    text = "select O[a = [x = $A.k, y = $A.v], b = a.x + a.y, [z = $A.v]]"
    one = Run(text, TWO)
    one.feed("A", insertion(1, 2, 3, 4))
    assert one.finish() == [(1, 2, 3, 4, 7, 4)]


@pytest.mark.acceptance(38)
def test_values_that_do_not_exist_are_null_and_counted() -> None:
    one = Run("select [x = 7 / $A.k, y = $A.v * 2]", TWO)
    one.feed("A", insertion(1, 2, -2, 1), insertion(2, 3, 0, 1), insertion(3, 4, 1, 2**62))
    assert one.rows() == [(1, 2, -3.5, 2), (2, 3, None, 2), (3, 4, 7.0, None)]
    assert one.asked == []
    found = one.network.faults
    assert [(str(place), n) for place, n in found.count.items()] == [
        ("division by zero in 7 / $A.k", 1),
        ("integer overflow in $A.v * 2", 1),
    ]


@pytest.mark.parametrize(
    ("last", "due"),
    [
        ("where window.now($o) select r[m = $o.m]", [(0, 1, 1), (2, 3, 1), (5, 6, 1)]),
        (
            "where window.now($o) select r[m = $o.m, n = $o.n]",
            [(0, 1, 1, 1), (2, 3, 1, 2), (5, 6, 1, 1)],
        ),
        (
            "where window.range($o, 2) select r[k = agg.count($o)]",
            [(0, 2, 1), (2, 4, 1), (5, 7, 1)],
        ),
        ("select r[m = $o.m]", [(0, 2, 1), (2, 5, 1), (5, 10, 1)]),
    ],
)
@pytest.mark.parametrize("profile", PROFILES)
def test_an_aggregate_that_nobody_reads_begins_tuples(
    last: str, due: list[tuple[int, ...]], profile: Profile
) -> None:
    """Tuples are merged if all values of their aggregation are equal, also those that are not read."""
    text = f"from o[n = agg.count($A), m = agg.min($A.v)]; {last}"
    one = Run(text, TWO, profile)
    one.feed("A", insertion(0, 10, 0, 1), insertion(2, 5, 0, 2))
    assert one.finish() == due


def test_a_time_table_whose_aggregates_are_not_read() -> None:
    """The example of section 3, of which only a constant is read."""
    text = (
        "from where window.table($A, $A.k) select o[n = agg.count($A), s = agg.sum($A.v), c = 5];"
        " select r[c = $o.c]"
    )
    one = Run(text, TWO)
    rows = [
        (2, FOREVER, 1, 10),
        (2, FOREVER, 2, 3),
        (5, FOREVER, 1, 4),
        (8, 12, -2, 0),
        (9, 9, -1, 0),
    ]
    one.feed("A", *(insertion(*row) for row in rows))
    assert one.finish() == [(2, 5, 5), (5, 8, 5), (8, 9, 5), (9, 12, 5)]


def test_the_result_can_be_copied_into_a_group_of_its_own() -> None:
    one = Run("select r[k = $A.v, g[$r[T]]]", TWO)
    one.feed("A", insertion(1, 2, 0, 7))
    assert one.finish() == [(1, 2, 7, 7)]


@pytest.mark.acceptance(38)
def test_strict_values_that_do_not_exist_raise_exceptions() -> None:
    one = Run("select [x = 7 / $A.k, y = $A.v * 2]", TWO, Profile(strict=True))
    one.feed("A", insertion(1, 2, -2, 1), insertion(2, 3, 0, 1), insertion(3, 4, 1, 2**62))
    assert one.rows() == [(1, 2, -3.5, 2)]
    assert [(kind, d["tuple"].ts) for kind, _, d in one.asked] == [
        ("EXCEPTION", 2),
        ("EXCEPTION", 3),
    ]
    assert "division by zero in 7 / $A.k" in one.asked[0][2]["error"]
    assert one.network.skipped == 2


def test_and_or_leave_out_what_they_do_not_need() -> None:
    one = Run("where $A.k == 0 or 7 / $A.k >= 2 select [$A[T]]", TWO)
    one.feed("A", insertion(1, 2, 0, 1), insertion(2, 3, 3, 1), insertion(3, 4, 7, 1))
    assert [row[2] for row in one.rows()] == [0, 3]
    assert one.asked == []


def test_boundaries_pass_and_never_fall() -> None:
    one = Run("where window.range($A, 5) select [$A[T]]", TWO)
    one.feed("A", insertion(3, 3, 0, 0), boundary(3), boundary(4))
    assert [repr(x) for x in one.out if x.kind is not ElementKind.HEADER] == ["[3,8) 0, 0", "B(4)"]
