"""Queries that share a join: which do, and that each gets the same results as by itself."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from seustream.compiler.pipeline import Options, compile_text
from seustream.engine.graph import GraphRun
from seustream.engine.host import stages
from seustream.engine.host.shared import shape

STREAMS = "CREATE STREAM R (k int, v int, w int); CREATE STREAM S (k int, u int);"


def shape_of(where: str, window: str = "RANGE 9") -> object:
    c = compile_text(f"{STREAMS} SELECT R.v FROM R, S WHERE {where} WINDOW {window};")
    return shape(c.program.queries[0])


def test_queries_share_a_join_of_the_same_equalities_and_windows() -> None:
    usual = shape_of("R.k = S.k AND R.v = 17")
    assert usual is not None
    assert shape_of("R.v = 23 AND R.k = S.k") == usual
    assert shape_of("R.k = S.k AND R.v = 23 AND S.u > 5 AND R.w < S.u") == usual
    for other in ("R.k = S.u AND R.v = 17", "R.k = S.k AND R.w = 17", "R.k = S.k",
                  "R.k = S.k AND R.v = S.u AND R.v = 17"):  # fmt: skip
        assert shape_of(other) != usual, other
    assert shape_of("R.k = S.k AND R.v = 17", "RANGE 8") != usual
    assert shape_of("R.k < S.k AND R.v = 17") is None, "its results may be many"
    assert shape_of("R.v = 17 AND S.u = 3") is None


@pytest.mark.parametrize("seed", range(4))
def test_each_query_gets_what_it_gets_alone(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows come in pieces; brute force over pairs within the window is the judge."""
    print(f"seed {seed}")
    chance = random.Random(seed)

    def rows(*columns: str) -> pa.Table:
        ts = sorted(chance.randrange(60) for _ in range(40))
        cells = {
            c: pa.array([chance.choice([None, 0, 1, 2, 3]) for _ in ts], pa.int32())
            for c in columns
        }
        return pa.table({"ts": ts, **cells})

    streams = {"R": rows("k", "v", "w"), "S": rows("k", "u")}
    tests = [("R.v = {}", lambda r, s, n: r["v"] == n), ("S.u > {}", lambda r, s, n: s["u"] > n),
             ("R.w < S.u + {}", lambda r, s, n: r["w"] < s["u"] + n)]  # fmt: skip
    asked = []
    for number in range(8):
        some = [(chance.choice(tests), chance.randrange(4)) for _ in range(chance.randint(1, 2))]
        asked.append((f"q{number}", [(text.format(n), fits, n) for (text, fits), n in some]))
    text = STREAMS + "".join(
        f"REGISTER QUERY {name} AS SELECT R.v, S.u FROM R, S WHERE R.k = S.k AND"
        f" {' AND '.join(term for term, _, _ in terms)} WINDOW RANGE 9;"
        for name, terms in asked
    )
    made: list[int] = []
    join = stages.SharedJoin

    class Counting(join):  # type: ignore[valid-type, misc]
        def __init__(self, queries: Any, *rest: Any) -> None:
            made.append(len(queries))
            super().__init__(queries, *rest)

    monkeypatch.setattr(stages, "SharedJoin", Counting)
    run = GraphRun(compile_text(text, options=Options(devices=0)))
    found: dict[str, Counter[tuple[Any, ...]]] = {name: Counter() for name, _ in asked}
    for start in range(0, 40, 10):
        for name, table in streams.items():
            run.push(name, table.slice(start, 10))
        for name, results in run.finish() if start == 30 else run.advance():
            found[name].update(zip(*(c.to_pylist() for c in results.columns), strict=True))
    assert max(made) > 1, "some share"
    for name, terms in asked:
        want: Counter[tuple[Any, ...]] = Counter()
        for r in streams["R"].to_pylist():
            for s in streams["S"].to_pylist():
                times = sorted((r["ts"], s["ts"]))
                if r["k"] is None or r["k"] != s["k"] or times[1] - times[0] > 9:
                    continue
                if all(_true(fits, r, s, n) for _, fits, n in terms):
                    want[r["v"], s["u"], *times] += 1
        assert found[name] == want, name


def _true(fits: Any, r: dict[str, Any], s: dict[str, Any], n: int) -> bool:
    try:
        return bool(fits(r, s, n))
    except TypeError:  # NULL
        return False
