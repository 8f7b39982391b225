"""The columnar engine gives the insertions of the reference in the same order, for any steps.

The queries cover every node and every form of expression; the numbers keep sums of doubles exact.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import seustream as ss
from seustream.compiler.apas.functions import Aggregate, Overload, Scalar
from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.apas.types import DOUBLE
from seustream.compiler.pipeline import Options, compile_text
from seustream.engine.graph import GraphRun
from seustream.engine.stream.merge import END_OF_STREAM
from seustream.engine.temporal.elements import FOREVER, ElementKind, StreamElement
from seustream.engine.temporal.stream import NodeFailed
from tests.engine.temporal.reference.elements import insertion
from tests.engine.temporal.reference.operators import Profile
from tests.engine.temporal.running import (
    compiled,
    node,
    random_stream,
    results_of,
    run,
    schemas,
    table,
)

REFERENCE = Profile(derived_boundaries=False, reference=True)
CATALOGUE = schemas(
    A=[
        ["k", "INTEGER"],
        ["v", "INTEGER"],
        ["d", "DOUBLE"],
        ["g", [["s", "STRING"], ["f", "BOOLEAN"]]],
    ],
    B=[
        ["k", "INTEGER"],
        ["v", "INTEGER"],
        ["d", "DOUBLE"],
        ["g", [["s", "STRING"], ["f", "BOOLEAN"]]],
    ],
)


class Median(Aggregate):
    """Supports neither merging nor removal."""

    overloads = (Overload((DOUBLE,), DOUBLE),)

    def init(self, v: tuple[Any, ...]) -> Any:
        return (v[0],)

    def add(self, state: Any, v: tuple[Any, ...]) -> Any:
        return tuple(sorted((*state, v[0])))

    def final(self, state: Any) -> tuple[Any, ...]:
        return (state[len(state) // 2],)


class Mean(Scalar):
    names = ("one", "other")
    overloads = (Overload((DOUBLE, DOUBLE), DOUBLE),)

    def call(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return ((values[0] + values[1]) / 2,)


LIBRARIES = Libraries()
LIBRARIES.register("mine", {"median": Median(), "mean": Mean()})

QUERIES = [
    "where $A.v > 2, $A.g.s != 'x' or 6 / $A.v > 1 select [$A[T], w = $A.v * 2 - $A.k, h = $A.v / 3]",
    "select [a = -$A.d, b = $A.g.f xor $A.v > 4, c = $A.g.s || $A.v, d = $A.d / 0.0, e = $A.k is null, t = $A.ts, u = $A.te]",
    "select [a = mine.mean($A.v, [x = $A.d]), b = [y = $A.k, z = y + 1], c = util.millis($A.ts)]",
    "where util.union($A, $B) select [$new[T]]",
    "where window.range($A, 4), $A.k == $B.k, $A.v <= $B.v + 2 select [a = $A.v, b = $B.v, t = $B.te]",
    "where $A.g.s == $B.g.s, $A.d + 1 == $B.v / 2, $A.v > 0 select [a = $A.k, s = $A.g.s]",
    "select [a = $A.k, b = $B.k]",
    """select [n = agg.count($A), s = agg.sum($A.v), a = agg.avg($A.d), lo = agg.min($A.v), hi = agg.max($A.d),
               first = agg.min($A.g.s), last = agg.max($A.g.s), t = agg.max($A.ts)]""",
    "where window.range($A, 6), $A.v > 3 select [s = agg.sum($A.d) + agg.count($A.k), m = agg.max($A.v - $A.k)]",
    "where window.unbounded($A) select [s = agg.sum($A.d)]",
    "where window.now($A), $A.k == $B.k select [s = agg.sum($A.v), n = agg.count($B)]",
    """from where util.union($A, $B) select u[$new[T]];
            where window.range($u, 3) select x[s = agg.sum($u.v)];
            where $u.v > 5 select y[s = $u.v];
       where util.union($x, $y) select [$new[T]]""",
    "where coalesce($A.k, 0) between -1 and 3, $A.g.s like '%z' or $A.v in (1, 2, null) select [c = case when $A.d < 0 then 'n' else upper($A.g.s) end, d = $A.v div $A.k, m = mod($A.v, $A.k), h = date_part('hour', $A.ts)]",
    "select [m = median($A.d), d = count(distinct $A.k), f = count(*) filter (where $A.v > 4), s = sum($A.v) filter (where $A.k < 2), v = stddev_samp($A.d), c = agg.count($A.k)]",
    "where window.range($A, 4) select [f = agg.sum($A.k), g = agg.min($A.g.f), t = agg.max($A.te), x = bool_and($A.g.f), j = string_agg($A.g.s, ',')]",
    "where $A.k is not distinct from $B.k, $A.d < $B.d select [a = $A.k, b = $B.d]",
    "where window.table($A, $A.k), $A.v > 2 select [s = agg.sum($A.v), n = agg.count($A)]",
    "where window.table($A, $A.k), $A.k == $B.v select [a = $A.v, b = $B.k]",
    "where window.range($A, 5) select [m = mine.median($A.d)]",
]  # fmt: skip


def make(chance: random.Random) -> tuple[Any, ...]:
    s = chance.choice(("x", "y", "zz", ""))
    values = (
        chance.randint(-3, 4),
        chance.randint(0, 9),
        chance.randint(-8, 8) / 4,
        s,
        chance.random() < 0.5,
    )
    return tuple(None if chance.random() < 0.1 else value for value in values)


def columnar(
    query: str, streams: dict[str, list[StreamElement]], step_rows: int
) -> list[tuple[Any, ...]]:
    c = compiled(query, CATALOGUE, libraries=LIBRARIES)
    one = node(c, CATALOGUE, step_rows)
    rows = {name: table(streams[name], CATALOGUE[name].tree) for name in c.network.sources}
    for name, each in rows.items():
        half = each.num_rows // 2
        one.push(name, each.slice(0, half))
        rows[name] = each.slice(half)
    return results_of(one, rows)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("seed", range(12))
def test_equals_the_reference(query: str, seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    streams = {name: random_stream(chance, make, 30, boundaries=False) for name in "AB"}
    if "table" in query and "$B.v" in query:
        streams["A"] = [x for x in streams["A"] if x.values[0]]
    c = compiled(query, CATALOGUE, libraries=LIBRARIES)
    used = {name: streams[name] for name in c.network.sources}
    want = [
        (x.ts, x.te, *x.values)
        for x in run(c, CATALOGUE, used, REFERENCE)
        if x.kind is ElementKind.INSERTION
    ]
    for step_rows in (1, 5, 1000):
        assert repr(columnar(query, streams, step_rows)) == repr(want), step_rows


def test_the_cases_have_results() -> None:
    chance = random.Random(3)
    streams = {name: random_stream(chance, make, 60, boundaries=False) for name in "AB"}
    for query in QUERIES:
        assert columnar(query, streams, 7), query


@pytest.mark.parametrize("seed", range(30))
def test_tuples_of_one_time_come_in_any_order(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    catalogue = schemas(A=[["v", "INTEGER"]])
    rows = sorted(
        [
            (chance.randint(0, 9), chance.randint(0, 12), chance.choice((1, 2, None)))
            for _ in range(20)
        ],
        key=lambda row: row[0],
    )
    refused: list[pa.Table] = []
    c = compiled("select [$A[T]]", catalogue)
    one = node(c, catalogue, on_refused=lambda stream, rows: refused.append(rows))
    found = []
    for part, mark in ((rows[:9], rows[8][0] - 1), (rows[9:], END_OF_STREAM)):
        columns = [pa.array(column, pa.int64()) for column in zip(*part, strict=True)]
        table = pa.table(columns, names=["ts", "te", "v"])
        found += results_of(one, {"A": table}, mark)
    assert [row[:2] for row in found] == sorted(row[:2] for row in rows if row[1] >= row[0])
    assert Counter(found) == Counter(row for row in rows if row[1] >= row[0])
    wrong = [row for row in rows if row[1] < row[0]]
    assert one.refused.total() == len(wrong)
    assert Counter(
        row for each in refused for row in zip(*each.to_pydict().values(), strict=True)
    ) == Counter(wrong)


FAULTY = [
    ("select [x = 7 / $A.k]", [insertion(1, 2, 0, 1, 0.5, "x", True)], "division by zero in 7 / $A.k"),
    ("select [x = $A.v * 4]", [insertion(1, 2, 1, 2**62, 0.5, "x", True)], "integer overflow in $A.v * 4"),
    (
        "select [x = agg.sum($A.v)]",
        [insertion(1, FOREVER, 1, 2**62, 0.5, "x", True)] * 2,
        "sum overflow in agg.sum($A.v)",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("query", "stream", "fault"), FAULTY)
def test_a_fault_is_null_and_counted(query: str, stream: list[StreamElement], fault: str) -> None:
    for strict in (False, True):
        c = compiled(query, CATALOGUE, libraries=LIBRARIES)
        one = node(c, {"A": CATALOGUE["A"]}, strict=strict)
        rows = {"A": table(stream, CATALOGUE["A"].tree)}
        if strict:
            with pytest.raises(NodeFailed, match=re.escape(fault)):
                results_of(one, rows)
        else:
            assert [row[2:] for row in results_of(one, rows)] == [(None,)]
            assert [(str(place), n) for place, n in one.faults[c.name].count.items()] == [
                (fault, 1)
            ]


def test_a_strict_fault_names_the_tuple() -> None:
    c = compiled(FAULTY[0][0], CATALOGUE)
    one = node(c, {"A": CATALOGUE["A"]}, strict=True)
    with pytest.raises(NodeFailed, match=r"node select out: .*, row \[1,2\)"):
        results_of(one, {"A": table(FAULTY[0][1], CATALOGUE["A"].tree)})


def test_a_null_that_nobody_reads_takes_no_tuple_away() -> None:
    streams = {
        "A": [insertion(t, 10, t, 1, None, None, None) for t in (1, 2, 3)],
        "B": [],
    }
    assert columnar("select [n = agg.count($A), m = agg.count($A.d)]", streams, 10)[-1][2:] == (
        3,
        0,
    )


# --- among streams of other languages -------------------------------------------


def answers(text: str, **streams: dict[str, pa.Array]) -> dict[str, list[tuple[Any, ...]]]:
    """Returns the rows of each query, with columns in their order; the streams end one after the
    other."""
    run = GraphRun(compile_text(text, "q", Options(devices=0)))
    found: dict[str, list[tuple[Any, ...]]] = {}
    for name, columns in streams.items():
        run.push(name, pa.table(columns))
        run.end(name)
        for query, rows in run.advance():
            found.setdefault(query, []).extend(tuple(row.values()) for row in rows.to_pylist())
    return found


UNION = """
CREATE STREAM A ({}); CREATE STREAM B ({});
CREATE STREAM u AS APAS $$ where util.union({}) select u[$new[T]] $$;
REGISTER QUERY m AS APAS $$ where util.union({}) select m[$new[T]] $$;
REGISTER QUERY s AS APAS $$ where util.union({}), window.unbounded($new) select s[s = agg.sum($new.v)] $$;
REGISTER QUERY x AS SELECT ts, v FROM u WINDOW NOW;
"""


@pytest.mark.parametrize(
    ("narrow", "wide", "low", "high"),
    [
        ("int", "bigint", pa.array([7, None, -1], pa.int32()), pa.array([1 << 40, 5], pa.int64())),
        (
            "smallint",
            "int",
            pa.array([7, None, -1], pa.int16()),
            pa.array([1 << 30, 5], pa.int32()),
        ),
        (
            "real",
            "double precision",
            pa.array([0.1, None, -1], pa.float32()),
            pa.array([0.1, 5], pa.float64()),
        ),
        ("varchar(2)", "varchar", pa.array(["a", None, "b"]), pa.array(["long", "c"])),
    ],
)
@pytest.mark.parametrize("order", ["$A, $B", "$B, $A"])
def test_a_union_has_the_wider_type(
    order: str, narrow: str, wide: str, low: pa.Array, high: pa.Array
) -> None:
    text = UNION.format(f"v {narrow}", f"v {wide}", order, order, order)
    numbers = "varchar" not in wide
    if not numbers:
        text = text.replace("agg.sum", "agg.max")
    found = answers(text, A={"ts": [1, 2, 5], "v": low}, B={"ts": [3, 4], "v": high})
    (a, b, c), (d, e) = low.to_pylist(), high.to_pylist()
    want = [(1, a), (2, b), (3, d), (4, e), (5, c)]
    assert [row[:2] for row in found["x"]] == want
    assert found["m"] == [(ts, ts, v) for ts, v in want]
    every = [v for v in (a, b, c, d, e) if v is not None]
    assert found["s"][-1][2] == (sum(every) if numbers else max(every))


def test_a_union_of_unions_and_windows_has_the_wider_type() -> None:
    text = """
    CREATE STREAM A (v smallint, w real); CREATE STREAM B (v int, w real); CREATE STREAM C (v bigint, w double precision);
    REGISTER QUERY m AS APAS $$
    from where util.union($A, $B), window.range($new, 2) select u[$new[T]];
         where window.now($C) select c[$C[T]];
    where util.union($c, $u) select m[$new[T]] $$;
    """
    made = {"A": (1, pa.int16()), "B": (2, pa.int32()), "C": (3, pa.int64())}
    streams = {
        name: {
            "ts": [v],
            "v": pa.array([v], of),
            "w": pa.array([0.5], pa.float64() if v == 3 else pa.float32()),
        }
        for name, (v, of) in made.items()
    }
    assert answers(text, **streams)["m"] == [(1, 3, 1, 0.5), (2, 4, 2, 0.5), (3, 4, 3, 0.5)]


@pytest.mark.parametrize(
    "between",
    [
        "SELECT * FROM a WINDOW NOW",
        "SELECT n, te FROM a WHERE n > 0 WINDOW NOW",
        "PATTERN ANY p FROM a WITHIN 1 s RETURN p.n AS n, p.te AS te",
        "SELECT * FROM a MATCH_RECOGNIZE (ORDER BY ts MEASURES A.n AS n, A.te AS te PATTERN (A) WITHIN INTERVAL '1' SECOND)",
    ],
)
def test_what_never_ends_does_not_end_behind_another_query(between: str) -> None:
    text = f"""
    CREATE STREAM t (x int);
    CREATE STREAM a AS APAS $$ where window.unbounded($t) select a[n = agg.count($t)] $$;
    CREATE STREAM b AS {between};
    REGISTER QUERY direct AS APAS $$ select m[k = sum($a.n)] $$;
    REGISTER QUERY behind AS APAS $$ select m[k = sum($b.n)] $$;
    """
    found = answers(text, t={"ts": [1, 2, 3], "x": pa.array([1, 2, 3], pa.int32())})
    assert found["direct"] == [(1, 2, 1), (2, 3, 2), (3, FOREVER, 3)]
    assert found["behind"] == found["direct"]


def test_a_row_of_a_base_stream_without_an_end_is_a_point() -> None:
    text = "CREATE STREAM t (te bigint, x int); REGISTER QUERY m AS APAS $$ select m[x = $t.x] $$;"
    ends = pa.array([4, None], pa.int64())
    found = answers(text, t={"ts": [1, 2], "te": ends, "x": pa.array([1, 2], pa.int32())})
    assert found["m"] == [(1, 4, 1), (2, 2, 2)]


def test_a_strict_stream_ends_its_readers() -> None:
    text = """CREATE STREAM t (x int); CREATE STREAM s AS APAS $$ select s[q = 1 / $t.x] $$ WITH (strict);
    REGISTER QUERY q AS SELECT q FROM s"""
    rows = {"ts": [1, 2], "x": pa.array([1, 0], pa.int32())}
    with pytest.raises(ss.Error, match=r"division by zero in 1 / \$t\.x"):
        ss.run(text, t=rows)
    with pytest.warns(ss.DataWarning, match="1 fault in s"):
        found = ss.run(text.replace(" WITH (strict)", ""), t=rows)["q"].rows()
    assert [row[0] for row in found] == [1.0, None]
