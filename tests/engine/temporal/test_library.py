"""Windows and indexes of users: against their definitions by brute force, tuple at a time and on
columns, however the input is cut, over a snapshot, and where the library is at fault."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.apas.functions import BadArgument, Overload, Scalar, StreamFunction
from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.apas.streams import (
    NONE,
    Lifetimes,
    LiveWindow,
    Matching,
    WindowFunction,
)
from seustream.compiler.apas.types import BOOLEAN, DOUBLE, INTEGER
from seustream.compiler.errors import CompileError
from seustream.engine.temporal.elements import FOREVER, ElementKind, StreamElement
from seustream.engine.temporal.stream import NodeFailed
from tests.engine.temporal import windows
from tests.engine.temporal.reference.elements import insertion, moment
from tests.engine.temporal.reference.operators import Profile
from tests.engine.temporal.running import (
    PRODUCT,
    Run,
    compiled,
    keys_never_decrease,
    node,
    random_stream,
    results_of,
    run,
    schemas,
)
from tests.engine.temporal.running import table as rows_of

REFERENCE = Profile(derived_boundaries=False, reference=True)
SERVED = Profile(derived_boundaries=False)
CATALOGUE = schemas(A=[["k", "INTEGER"], ["v", "INTEGER"]], B=[["k", "INTEGER"], ["v", "INTEGER"]])
LIBRARIES = Libraries()
LIBRARIES.register("mine", windows.LIBRARIES["mine"])

QUERIES = {
    "until": "where mine.until($A, $A.v - 1) select [$A[T], t = $A.ts, u = $A.te]",
    "tumbling": "where mine.tumbling($A, 4) select [$A[T]]",
    "last": "where mine.last($A, n = 3) select [$A[T]]",
    "session": "where mine.session($A, $A.k, 3) select [$A[T]]",
}  # fmt: skip
MORE = [
    "where mine.last($A, 2) select [n = agg.count($A), s = agg.sum($A.v)]",
    "where mine.session($A, $A.k, 2), mine.until($B, $B.v), $A.k == $B.k select [a = $A.v, b = $B.v, t = $A.te]",
    "where mine.tumbling($A, 5), $A.v > 2 select [m = mine.middle($A.v), n = agg.count($A)]",
    """from where util.union($A, $B) select u[$new[T]];
       where mine.last($u, 4), $u.v > 3 select [s = mine.spread($u.v), m = agg.max($u.k)]""",
    "where mine.near($A.v, $B.v, $B.k), window.range($A, 4) select [a = $A.v, b = $B.v, k = $B.k]",
    "where $A.k == $B.k, mine.near($B.v, $A.v, 2) select [a = $A.v, b = $B.v]",
    "where window.table($A, $A.k), mine.near($A.v, $B.v, 1) select [a = $A.v, b = $B.v]",
    "where mine.near($A.v, $A.k, 2) select [$A[T]]",
    "where mine.last($A, 3), $A.k == $B.k select [t = $A.te, s = $A.ts, b = $B.te]",
]  # fmt: skip


def make(chance: random.Random) -> tuple[Any, ...]:
    return (chance.randint(1, 4), chance.randint(0, 9))


def table(stream: list[StreamElement]) -> pa.Table:
    return rows_of(stream, CATALOGUE["A"].tree)


def columnar(
    query: str, streams: dict[str, list[StreamElement]], step_rows: int
) -> list[tuple[Any, ...]]:
    c = compiled(query, CATALOGUE, libraries=LIBRARIES)
    one = node(c, CATALOGUE, step_rows)
    return results_of(one, {name: table(streams[name]) for name in c.network.sources})


def reference(
    query: str, streams: dict[str, list[StreamElement]], profile: Profile
) -> list[tuple[Any, ...]]:
    c = compiled(query, CATALOGUE, libraries=LIBRARIES)
    used = {name: streams[name] for name in c.network.sources}
    out = run(c, CATALOGUE, used, profile)
    assert keys_never_decrease(out)
    return [(x.ts, x.te, *x.values) for x in out if x.kind is ElementKind.INSERTION]


def streams_of(chance: random.Random, most: int = 30) -> dict[str, list[StreamElement]]:
    return {name: random_stream(chance, make, most, boundaries=False) for name in "AB"}


# --- the definitions ----------------------------------------------------------


def expected(kind: str, stream: list[StreamElement]) -> list[tuple[int, int]]:
    """The lifetimes, by the words of each window."""
    begins = [x.ts for x in stream]
    if kind == "until":
        return [(x.ts, x.ts + max(x.values[1] - 1, 0)) for x in stream]  # type: ignore[operator]  # an INTEGER
    if kind == "tumbling":
        return [((t // 4 + 1) * 4, (t // 4 + 2) * 4) for t in begins]
    if kind == "last":
        return [(t, [*begins, *[FOREVER] * 3][i + 3]) for i, t in enumerate(begins)]
    found = []
    for x in stream:
        end = x.ts
        for y in stream:
            if y.values[0] == x.values[0] and y.ts >= end and y.ts < end + 3:
                end = y.ts
        found.append((x.ts, end + 3))
    return found


@pytest.mark.parametrize("kind", QUERIES)
@pytest.mark.parametrize("seed", range(12))
def test_windows_give_the_lifetimes_they_say(kind: str, seed: int) -> None:
    print(f"seed {seed}")
    streams = streams_of(random.Random(seed))
    lifetimes = expected(kind, streams["A"])
    want = Counter(
        (ts, te, *x.values, *((moment(ts), moment(te)) if kind == "until" else ()))
        for (ts, te), x in zip(lifetimes, streams["A"], strict=True)
    )
    for step_rows in (1, 6, 1000):
        found = columnar(QUERIES[kind], streams, step_rows)
        assert Counter(found) == want
        assert [row[:2] for row in found] == sorted(row[:2] for row in found)
    assert Counter(reference(QUERIES[kind], streams, PRODUCT)) == want


@pytest.mark.parametrize("query", [*QUERIES.values(), *MORE])
@pytest.mark.parametrize("seed", range(8))
def test_columns_equal_the_reference(query: str, seed: int) -> None:
    """The reference asks no index of a join."""
    print(f"seed {seed}")
    streams = streams_of(random.Random(seed))
    want = reference(query, streams, REFERENCE)
    assert repr(reference(query, streams, SERVED)) == repr(want)
    for step_rows in (1, 5, 1000):
        assert repr(columnar(query, streams, step_rows)) == repr(want), step_rows


def test_the_cases_have_results() -> None:
    streams = streams_of(random.Random(5), 80)
    for query in MORE:
        assert columnar(query, streams, 9), query


@pytest.mark.parametrize("query", [*QUERIES.values(), *MORE])
@pytest.mark.parametrize("seed", range(6))
def test_any_cut_and_a_snapshot_change_nothing(query: str, seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    streams = streams_of(chance)
    want = columnar(query, streams, 1000)
    c = compiled(query, CATALOGUE, libraries=LIBRARIES)
    one = node(c, CATALOGUE, 7)
    found: list[tuple[Any, ...]] = []
    for now in sorted(chance.sample(range(17), 4)):
        coming = {}
        for name in c.network.sources:
            coming[name] = [x for x in streams[name] if x.ts < now]
            streams[name] = streams[name][len(coming[name]) :]
        found += results_of(one, {name: table(rows) for name, rows in coming.items()}, now - 1)
        assert all(row[0] <= now for row in found)
        state = one.snapshot()
        one = node(c, CATALOGUE, 7)
        one.restore(state)
    found += results_of(one, {name: table(streams[name]) for name in c.network.sources})
    if "agg." in query or "mine.middle" in query:
        # An advance may split an interval; what holds at each instant is the same.
        assert at_each_instant(found) == at_each_instant(want)
    else:
        assert found == want


def at_each_instant(rows: list[tuple[Any, ...]]) -> list[Counter[tuple[Any, ...]]]:
    return [Counter(row[2:] for row in rows if row[0] <= t < row[1]) for t in range(40)]


def test_tuples_that_wait_hold_the_others_back() -> None:
    """Results come as soon as nothing earlier can, and not sooner."""
    one = Run(
        compiled(QUERIES["last"].replace("n = 3", "n = 1"), CATALOGUE, libraries=LIBRARIES),
        CATALOGUE,
    )
    one.feed("A", insertion(1, 2, 1, 1))
    assert one.rows() == []
    one.feed("A", insertion(4, 5, 1, 2))
    assert one.rows() == [(1, 4, 1, 1)]
    one.feed("A", insertion(6, 7, 1, 3))
    assert one.rows() == [(1, 4, 1, 1), (4, 6, 1, 2)]
    marks = [x.ts for x in one.out if x.kind is ElementKind.BOUNDARY]
    assert marks == [1, 4, 6]
    assert one.finish() == [(1, 4, 1, 1), (4, 6, 1, 2), (6, FOREVER, 1, 3)]


# --- errors of queries --------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("mine.last($A)", "n is missing"),
        ("mine.last($A, $A.k)", "mine.last: n is not constant"),
        ("mine.last($A, 'x')", "mine.last: n is INTEGER; given STRING"),
        ("mine.last($A, [x = 1])", "mine.last: n is INTEGER, not a tree"),
        ("mine.last($A, 1 div 0)", "mine.last: n is not constant"),
        ("mine.tumbling($A, 0)", "mine.tumbling: the size is not positive"),
        ("mine.until($A, $B.v)", "mine.until: length reads B, which is not the stream it changes"),
        ("mine.until($A.v, 1)", "mine.until: $A.v is no stream"),
        ("mine.last($A, 2), window.now($A)", "window.now: A has a window already: mine.last(n = 2)"),
        ("mine.last($A, 2) and true", "mine.last changes a stream, it has no value"),
    ],
)  # fmt: skip
def test_errors_of_queries(where: str, message: str) -> None:
    with pytest.raises(CompileError) as error:
        compiled(f"where {where} select [$A[T]]", CATALOGUE, libraries=LIBRARIES)
    assert message in str(error.value)
    assert error.value.problems[0].kind == "BadArgument"


# --- libraries that cannot run ------------------------------------------------


class Nothing(WindowFunction):
    pass


class Untyped(WindowFunction):
    names = ("stream", "n")

    def open(self, **constants: Any) -> LiveWindow:
        raise NotImplementedError


class Stranger(WindowFunction):
    constants = ("n",)

    def open(self, **constants: Any) -> LiveWindow:
        raise NotImplementedError


class Change(StreamFunction):
    pass


class Mute(Scalar):
    pass


class Unserved(Matching):
    overloads = (Overload((INTEGER, INTEGER), BOOLEAN),)

    def call(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return (True,)


class Number(windows.Near):
    overloads = (Overload((INTEGER, INTEGER, INTEGER), DOUBLE),)


class Uneven(windows.Near):
    sides = (1, 1)


class Promised(windows.Middle):
    spans = True


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (Nothing(), "a window gives `ends` or `open`"),
        (Untyped(), "`takes` has 0 types for 1 parameters"),
        (Stranger(), "n is in `constants` and not in `names`"),
        (Change(), "a stream function is a WindowFunction; there is nothing else it could do"),
        (Mute(), "it has no `call`"),
        (Unserved(), "it has no `index`"),
        (Number(), "a Matching is a condition: every overload gives BOOLEAN"),
        (Uneven(), "`sides` says 2 values, an overload takes another number"),
        (Promised(), "it has no `over`, which `spans` promises"),
        (windows.Last, "is no object of Scalar, Matching, Aggregate or WindowFunction"),
    ],
)
def test_what_cannot_run_is_refused_when_it_is_registered(function: Any, why: str) -> None:
    libraries = Libraries()
    with pytest.raises(ValueError, match=r"mine\.f: ") as error:
        libraries.register("mine", {"f": function})
    assert why in str(error.value)
    assert "mine" not in libraries.libraries


def test_names_no_query_could_write_are_refused() -> None:
    for library, name in (("mine", "a-b"), ("my lib", "f"), ("mine", "ä")):
        with pytest.raises(ValueError, match="is no name a query could write"):
            Libraries().register(library, {name: windows.Last()})


# --- libraries at fault -------------------------------------------------------


class Broken(LiveWindow):
    def __init__(self, how: int) -> None:
        self.how = how

    def push(self, first: int, ts: Any, te: Any, *columns: Any) -> Lifetimes:
        which = np.arange(first, first + len(ts))
        match self.how:
            case 0:
                raise KeyError("x")
            case 1:
                return Lifetimes(which, ts - 1, te)
            case 2:
                return Lifetimes(which, ts, ts - 1)
            case 3:
                return Lifetimes(which + 1, ts, te)
            case 4:
                return Lifetimes(which, ts, te[:0])
            case 5:
                return Lifetimes(which, ts, te + 0.5)
            case _:
                return NONE


class Breaking(WindowFunction):
    names = ("stream", "how")
    takes = (INTEGER,)
    constants = ("how",)

    def check(self, **constants: Any) -> None:
        if constants["how"] > 6:
            raise BadArgument("there are seven ways")

    def open(self, **constants: Any) -> LiveWindow:
        return Broken(constants["how"])


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (0, r"bad.breaking\(how = 0\): KeyError: 'x' \(test_library.py:\d+\)"),
        (1, r"\[0, 3\) begins before its tuple, which begins at 1"),
        (2, r"\[1, 0\) ends before it begins"),
        (3, r"lifetime"),
        (4, r"numbers, begins and ends are 1, 1 and 0 values"),
        (5, r"want a column of integers, got float64 \(1,\)"),
        (6, r"no lifetime at the end"),
    ],
)
def test_a_library_at_fault_is_named(how: int, message: str) -> None:
    libraries = Libraries()
    libraries.register("bad", {"breaking": Breaking()})
    c = compiled(f"where bad.breaking($A, {how}) select [$A[T]]", CATALOGUE, libraries=libraries)
    one = node(c, CATALOGUE)
    with pytest.raises(NodeFailed, match=message):
        results_of(one, {"A": table([insertion(1, 3, 1, 1)])})
    live = Run(c, CATALOGUE)
    live.feed("A", insertion(1, 3, 1, 1))
    live.finish()
    (asked,) = live.asked[:1]
    assert asked[0] == "EXCEPTION"
    assert live.rows() == []
    assert live.network.skipped >= 1


def test_a_state_no_snapshot_holds() -> None:
    class Odd(windows._Last):
        def save(self) -> Any:
            return {1, 2}

    class OddWindow(windows.Last):
        def open(self, **constants: Any) -> LiveWindow:
            return Odd(constants["n"])

    libraries = Libraries()
    libraries.register("odd", {"last": OddWindow()})
    c = compiled("where odd.last($A, 2) select [$A[T]]", CATALOGUE, libraries=libraries)
    one = node(c, CATALOGUE)
    with pytest.raises(NodeFailed, match="set is no plain value"):
        one.snapshot()
