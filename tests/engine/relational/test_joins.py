"""Trees of joins against DuckDB over the whole streams, and each result at its moment."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from seustream.compiler.pipeline import compile_text
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun
from seustream.engine.host.errors import EvaluationError
from tests.engine.relational.joining import check
from tests.engine.relational.running import at_once, in_pieces

STREAMS = "CREATE STREAM R (a int, b int); CREATE STREAM S (a int, d int NOT NULL);\n"


@pytest.mark.parametrize("seed", range(40))
def test_a_random_tree(seed: int) -> None:
    print(f"seed {seed}")
    check(seed)


def rows(*pairs: tuple[int, int]) -> pa.Table:
    ts, a = zip(*pairs, strict=True)
    nothing = pa.array([0] * len(ts), pa.int32())
    cells = [pa.array(ts, pa.int64()), pa.array(a, pa.int32()), nothing]
    return pa.table(cells, names=["ts", "a", "n"])


R = rows((1, 1), (3, 2), (5, 3), (20, 1)).rename_columns(["ts", "a", "b"])
S = rows((2, 1), (6, 7), (9, 3), (30, 5)).rename_columns(["ts", "a", "d"])


def moments(select: str) -> dict[int, list[tuple[object, ...]]]:
    """What a query gives once all that happens up to a time has arrived, and nothing later; at 99 the
    streams have ended."""
    compilation = compile_text(STREAMS + select)
    run, found = GraphRun(compilation, GoldenDevice(compilation.options.config)), {}
    for now in range(1, 40):
        for name, table in {"R": R, "S": S}.items():
            run.push(name, table.filter(pc.equal(table["ts"], now)))
            run.promise(name, now + 1)
        if new := [tuple(row.values()) for _, part in run.advance() for row in part.to_pylist()]:
            found[now] = new
    if last := [tuple(row.values()) for _, part in run.finish() for row in part.to_pylist()]:
        found[99] = last
    return found


def test_what_has_no_match_comes_when_it_leaves_its_window() -> None:
    found = moments(
        "SELECT R.a AS l, S.a AS r FROM R LEFT JOIN S ON R.a = S.a WINDOW RANGE 5, RANGE 2"
    )
    assert found == {
        2: [(1, 1, 1, 2)],
        8: [(2, None, 3, 3)],
        9: [(3, 3, 5, 9)],
        25: [(1, None, 20, 20)],
    }


def test_a_window_of_rows_ends_with_the_rows_that_follow() -> None:
    found = moments("SELECT R.a FROM R LEFT ANTI JOIN S ON R.a = S.a WINDOW ROWS 1, RANGE 0")
    assert found == {5: [(2, 3, 3)], 99: [(1, 20, 20)]}


def test_the_first_match_decides() -> None:
    found = moments("SELECT a FROM R WHERE EXISTS (SELECT * FROM S WHERE S.a <> R.a) WINDOW 9 ms")
    assert found == {3: [(2, 3, 3)], 5: [(3, 5, 5)], 6: [(1, 1, 1)]}


def test_without_a_bound_nothing_is_alone_before_the_end() -> None:
    found = moments(
        "SELECT S.a FROM R RIGHT JOIN S ON R.a = S.a WHERE R.a IS NULL WINDOW UNBOUNDED"
    )
    assert found == {99: [(7, 6, 6), (5, 30, 30)]}


def test_what_reads_it_waits_for_the_window() -> None:
    """In a derived stream a match follows what came before it, which is certain only later."""
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
    # R.a, S in its window at that moment, rows of the group, oldest, newest
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
