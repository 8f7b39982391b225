"""A query or a stream in place of another of its name: it goes on from a state as if the other had
had another name, and where it is the same, as if nothing had changed."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.engine.graph import GraphRun
from seustream.engine.lineage import lineages_of
from tests.engine.test_beginning import run_of, snapshot_of

STREAMS = "CREATE STREAM R (a int, b int); CREATE STREAM S (a int, d int);"
WITHIN = {
    "groups": "SELECT count(*) AS n, min(h.b) AS low FROM (SELECT a, b FROM R WHERE b {0}) AS h WINDOW RANGE 20",
    "join": "SELECT h.b, S.d FROM (SELECT a, b FROM R WHERE b {0}) AS h, S WHERE h.a = S.a WINDOW RANGE 15",
    "changed join": "SELECT h.b, S.d FROM (SELECT a, b FROM R WHERE b {0}) AS h LEFT JOIN S ON h.a = S.a"
    " WINDOW RANGE 15",
    "windows": "SELECT n, S.d FROM (SELECT a, count(*) AS n FROM R WHERE b {0} GROUP BY a, TUMBLE(ts, 5)) AS h, S"
    " WHERE h.a = S.a WINDOW RANGE 25",
    "with": "WITH h AS (SELECT a, b FROM R WHERE b {0}), k AS (SELECT a + 1 AS a, b FROM h)"
    " SELECT k.b, S.d FROM k, S WHERE k.a = S.a WINDOW RANGE 15",
    "distinct": "SELECT DISTINCT a FROM (SELECT a, b FROM R WHERE b {0} WINDOW NOW) AS h WINDOW RANGE 15",
    "frames": "SELECT a, sum(b) OVER (PARTITION BY a ORDER BY ts RANGE 20 PRECEDING) AS s"
    " FROM (SELECT a, b FROM R WHERE b {0}) AS h",
}
OVER_STREAMS = WITHIN | {
    "pattern": "SELECT * FROM (SELECT a, b FROM R WHERE b {0}) MATCH_RECOGNIZE (PARTITION BY a ORDER BY ts"
    " MEASURES A.b AS b, B.ts AS at PATTERN (A B) WITHIN INTERVAL '0.015' SECOND DEFINE B AS B.b <> A.b)",
}
"""Queries whose subquery the tests put into a stream of its own; some forms need one."""


def rows(seed: int) -> dict[str, list[dict[str, int]]]:
    chance = random.Random(seed)
    return {
        "R": [{"ts": ts, "a": chance.randrange(3), "b": chance.randrange(4)} for ts in range(120)],
        "S": [{"ts": ts, "a": chance.randrange(3), "d": ts} for ts in range(0, 120, 3)],
    }


def after(
    before: Compilation, then: Compilation, query: str, seed: int, contained: bool = False
) -> list[dict[str, Any]]:
    """Returns the results of a query of `then` that come if its run goes on at 60 with the state of
    one of `before`."""
    run, every = GraphRun(before, contained=True) if contained else run_of(before), rows(seed)
    for at in range(0, 120, 10):
        if at == 60:
            state = run.state()
            run = GraphRun(then, contained=True) if contained else run_of(then)
            run.resume(snapshot_of(state))
            found = []
        for name, some in every.items():
            part = [row for row in some if at <= row["ts"] < at + 10]
            columns = {n: pa.int64() if n == "ts" else pa.int32() for n in part[0]}
            run.push(name, pa.Table.from_pylist(part, pa.schema(columns)))
            run.promise(name, at + 10)
        given = list(run.advance())
        if at >= 60:
            found += given
    found += list(run.finish())
    return [row for name, some in found if name == query for row in some.to_pylist()]


def compiled(text: str, devices: int) -> Compilation:
    return compile_text(STREAMS + text, options=Options(devices=devices))


@pytest.mark.parametrize("devices", [0, 1])
@pytest.mark.parametrize("form", WITHIN)
def test_a_query_of_another_text(form: str, devices: int) -> None:
    """Of its own subqueries nothing is there, and of others' what there is for anyone."""
    for seed in range(3):
        print(f"seed {seed}")
        old = f"REGISTER QUERY q AS {WITHIN[form].format('= 3')};"
        new = f"REGISTER QUERY {{}} AS {WITHIN[form].format('< 2')};"
        found = after(compiled(old, devices), compiled(new.format("q"), devices), "q", seed)
        assert found
        assert found == after(compiled(old, devices), compiled(new.format("z"), devices), "z", seed)


@pytest.mark.parametrize("devices", [0, 1])
@pytest.mark.parametrize("form", WITHIN)
def test_the_same_query_beside_others(form: str, devices: int) -> None:
    text = f"REGISTER QUERY q AS {WITHIN[form].format('< 2')};"
    more = "REGISTER QUERY o AS SELECT count(*) AS n FROM S WINDOW RANGE 9;"
    before, both = compiled(text, devices), compiled(more + text, devices)
    alone = after(before, before, "q", 1)
    assert alone == after(before, both, "q", 1) == after(both, before, "q", 1)
    assert lineages_of(before.program).streams.items() <= lineages_of(both.program).streams.items()


@pytest.mark.parametrize("devices", [0, 1])
@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize(
    "form", ["groups", "join", "changed join", "distinct", "pattern", "frames"]
)
def test_a_stream_that_is_defined_otherwise(form: str, between: bool, devices: int) -> None:
    """A stream of another definition is another stream, also for those that read it behind others."""
    define = "CREATE STREAM {0} AS SELECT a, b FROM R WHERE b {1};"
    if between:
        define += "CREATE STREAM {0}2 AS SELECT a, b FROM {0} WHERE a < 2;"
    reader = f"REGISTER QUERY q AS {OVER_STREAMS[form]};".replace(
        "(SELECT a, b FROM R WHERE b {0} WINDOW NOW)", "{0}"
    ).replace("(SELECT a, b FROM R WHERE b {0})", "{0}2" if between else "{0}")
    old = compiled(define.format("D", "= 3") + reader.format("D"), devices)
    other = [
        compiled(define.format(name, "< 2") + reader.format(name), devices) for name in ("D", "E")
    ]
    for seed in range(3):
        print(f"seed {seed}")
        found = after(old, other[0], "q", seed)
        assert found
        assert found == after(old, other[1], "q", seed)


def test_what_failed_with_a_stream_begins_anew_with_another() -> None:
    define = "CREATE STREAM D AS SELECT a, 1 / (b {}) AS b FROM R WITH (strict);"
    reader = "REGISTER QUERY q AS SELECT a, b FROM D;"
    old, same, other = (compiled(define.format(by) + reader, 0) for by in ("- 1", "- 1", "+ 1"))
    assert not after(old, same, "q", 1, contained=True)
    assert len(after(old, other, "q", 1, contained=True)) == 60


def test_an_apas_query_over_a_stream_that_is_defined_otherwise() -> None:
    define = "CREATE STREAM {0} AS SELECT a, b FROM R WHERE b {1};"
    reader = (
        "REGISTER QUERY q AS APAS $$ where window.range(${0}, 20) select m[n = agg.count(${0})] $$;"
    )
    old = compiled(define.format("D", "= 3") + reader.format("D"), 0)
    found = [
        after(old, compiled(define.format(name, "< 2") + reader.format(name), 0), "q", 1)
        for name in ("D", "E")
    ]
    assert found[0]
    assert found[0] == found[1]
