"""Trees of joins compared with DuckDB over the whole streams, and each result at its moment."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import pytest
from hypothesis import reject

from seustream.compiler.pipeline import compile_text
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun
from seustream.engine.host.errors import EvaluationError
from tests.chances import random_cases
from tests.engine.relational.joining import check
from tests.engine.relational.moments import STREAMS, R, S, moments
from tests.engine.relational.running import at_once, in_pieces


@random_cases(40)
def test_a_random_tree(chance: random.Random) -> None:
    try:
        check(chance)
    except duckdb.InternalException:  # DuckDB's own fault: it cannot plan some nested EXISTS
        reject()


def test_what_reads_it_waits_for_the_window() -> None:
    """In a derived stream a match follows everything before it, and that is certain only later."""
    text = "CREATE STREAM j AS SELECT R.a AS l, S.a AS r FROM R LEFT JOIN S ON R.a = S.a WINDOW RANGE 5;"
    found = moments(f"{text} SELECT l, r, ts AS at FROM j")
    assert {now: [row[:3] for row in some] for now, some in found.items()} == {
        2: [(1, 1, 2)],
        8: [(2, None, 3)],
        9: [(3, 3, 9)],
        25: [(1, None, 20)],
    }


def test_groups_count_what_is_in_the_windows() -> None:
    text = f"""{STREAMS}SELECT R.a, count(S.a) AS n, count(*) AS m
    FROM R LEFT JOIN S ON R.a >= S.a GROUP BY R.a WINDOW RANGE 5"""
    found = at_once(text, {"R": R, "S": S})
    got = [tuple(row.values()) for row in found["q0"].to_pylist()]
    # R.a, the S in its window at that moment, rows of the group, oldest, newest
    assert got == [
        (1, 1, 1, 1, 2),
        (2, 1, 1, 2, 3),
        (3, 1, 1, 2, 5),
        (3, 1, 1, 5, 9),
        (1, 0, 1, 20, 20),
    ]
    assert found == in_pieces(text, {"R": R, "S": S}, 3)


def test_a_fault_in_a_condition_is_counted_where_nothing_else_decides() -> None:
    text = f"{STREAMS}SELECT R.a FROM R LEFT JOIN S ON R.a = S.a AND 1 / S.d > 0 WINDOW RANGE 9"
    compilation = compile_text(text)
    run = GraphRun(compilation, GoldenDevice(compilation.options.config))
    for name, table in {"R": R, "S": S}.items():
        run.push(name, table)
    got = Counter(row["a"] for _, part in run.finish() for row in part.to_pylist())
    assert got == {1: 2, 2: 1, 3: 1}
    ((count, first),) = run.report.faults["q0"].values()
    assert (count, first) == (2, "R at ts 1, S at ts 2")


def test_a_combination_is_named_by_its_times_under_strict() -> None:
    text = f"{STREAMS}SELECT R.a FROM R LEFT JOIN S ON 1 / S.d > 0 WINDOW RANGE 9 WITH (strict)"
    with pytest.raises(
        EvaluationError, match=r"division by zero in 1 / S\.d at 2:36, R at ts 1, S at ts 2"
    ):
        at_once(text, {"R": R, "S": S})


def test_queries_within_are_joined_like_streams() -> None:
    text = f"""{STREAMS}WITH late AS (SELECT a, ts AS at FROM R WHERE a > 1)
    SELECT late.a, n FROM (SELECT a AS k, count(*) AS n FROM S GROUP BY a WINDOW 9) s
    RIGHT JOIN late ON s.k = late.a WHERE NOT EXISTS (SELECT * FROM (SELECT d FROM S) z WHERE d > at)
    WINDOW RANGE 9"""
    found = at_once(text, {"R": R, "S": S})
    got = [tuple(row.values()) for row in found["q0"].to_pylist()]
    assert got == [(2, None, 3, 3), (3, 1, 5, 9)]
    assert found == in_pieces(text, {"R": R, "S": S}, 5)
