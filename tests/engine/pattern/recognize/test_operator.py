"""MATCH_RECOGNIZE compared with its definition: random queries, random cuts, a snapshot in
between."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest

from seustream.compiler.pattern.rows import RowQuery
from seustream.compiler.pattern.statements import compile_pattern
from seustream.engine.pattern import keys, output
from seustream.engine.pattern.errors import SkipStuck
from seustream.engine.pattern.event import END_OF_STREAM
from seustream.engine.pattern.recognize.operator import RowOperator
from tests.engine.pattern.recognize.generate import STREAM, case
from tests.engine.pattern.recognize.reference import Case, Stuck


def compiled(sql: str) -> RowQuery:
    query = compile_pattern(sql, STREAM, bounded=True)
    assert isinstance(query, RowQuery)
    return query


def whole(query: RowQuery, rows: pa.Table) -> list[dict[str, Any]]:
    operator = RowOperator(query)
    operator.push_table(rows)
    found, _ = operator.advance_table(END_OF_STREAM)
    assert not operator.held
    return found.to_pylist()


def in_cuts(query: RowQuery, rows: pa.Table, chance: random.Random) -> list[dict[str, Any]]:
    """Returns the same results, from input cut at random with snapshots in between."""
    operator = RowOperator(query)
    found: list[dict[str, Any]] = []
    times = rows["ts"].to_pylist()
    marks = sorted({chance.randint(-1, max(times, default=0)) for _ in range(chance.randint(1, 8))})
    given = 0
    for mark in [*marks, END_OF_STREAM]:
        upto = max(given, sum(ts <= mark for ts in times))
        operator.push_table(rows.slice(given, upto - given))
        given = upto
        before = operator.output_watermark
        results, own = operator.advance_table(mark)
        assert all(ts > before for ts in own.tolist()), "a result at or before the watermark"
        assert operator.output_watermark >= before
        found += results.to_pylist()
        if chance.random() < 0.5:
            stored, reached = json.loads(json.dumps(operator.snapshot())), operator.output_watermark
            operator = RowOperator(query)
            operator.restore(stored)
            assert operator.output_watermark == reached
    assert not operator.held
    assert not operator.advance_table(END_OF_STREAM)[0].num_rows
    return found


def expected(reference: Case, rows: pa.Table) -> list[dict[str, Any]]:
    every = rows.to_pylist()
    found = []
    for key in dict.fromkeys(row[reference.key] for row in every):
        found += reference.results([row for row in every if row[reference.key] == key])
    return found


def plain(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(str(sorted(row.items())) for row in rows)


def check(seed: int, key: str = "k", alone: bool = False) -> int:
    sql, reference, rows = case(seed, alone)
    sql, reference.key = sql.replace("PARTITION BY k", f"PARTITION BY {key}"), key
    print(f"seed {seed}\n{sql}\n{rows.to_pylist()}")
    query = compiled(sql)
    try:
        want = plain(expected(reference, rows))
    except Stuck:
        with pytest.raises(SkipStuck):
            whole(query, rows)
        return 0
    assert plain(whole(query, rows)) == want
    assert plain(in_cuts(query, rows, random.Random(seed))) == want
    return len(want)


@pytest.mark.parametrize("block", range(20))
def test_random_queries(block: int) -> None:
    found = [check(seed) for seed in range(25 * block, 25 * block + 25)]
    assert sum(found) > 25, "the cases find something"


@pytest.mark.parametrize("seed", range(80))
def test_parts_are_the_whole_in_order(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sql, _, rows = case(seed, False)
    print(f"seed {seed}\n{sql}\n{rows.to_pylist()}")
    query = compiled(sql)
    try:
        want = whole(query, rows)
    except SkipStuck:
        return
    monkeypatch.setattr(output, "PART", 2)
    assert whole(query, rows) == want
    operator = RowOperator(query)
    operator.push_table(rows)
    sizes = [found.num_rows for found, _ in operator.parts(END_OF_STREAM)]
    assert max(sizes, default=0) <= 2


@pytest.mark.parametrize("block", range(4))
def test_keys_without_rows_are_forgotten_at_every_step(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that a later row of such a key needs goes with it."""
    monkeypatch.setattr(keys, "_SPARE", -(1 << 30))
    found = [check(seed) for seed in range(500 + 25 * block, 525 + 25 * block)]
    assert sum(found) > 25, "the cases find something"


FORGETTING = {
    "MEASURES A.x AS p PATTERN (A B) WITHIN 5 DEFINE B AS B.x > PREV(B.x)": 0,
    "MEASURES PREV(B.x) AS p PATTERN (A B) WITHIN 5": 0,
    "MEASURES PREV(B.x, 2) AS p PATTERN (A B) WITHIN 5": 30,
    "MEASURES A.x AS p PATTERN (A B) WITHIN 5 DEFINE B AS B.x / PREV(B.x) > 1": 30,
    "MEASURES A.x AS p PATTERN (A B) WITHIN 5 DEFINE A AS A.x > PREV(A.x)": 30,
    "MEASURES A.x AS p PATTERN (^ A B) WITHIN 5": 30,
    "MEASURES MATCH_NUMBER() AS p PATTERN (A B) WITHIN 5": 10,
}
"""The keys that a query needs of 30, of which 10 have a match."""


@pytest.mark.parametrize("inside", FORGETTING)
def test_a_key_is_kept_for_what_a_later_row_may_need(
    inside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "_SPARE", 2)
    inside = inside.replace("WITHIN 5", "WITHIN INTERVAL '5' MILLISECOND")
    operator = RowOperator(
        compiled(f"SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts {inside})")
    )
    want = FORGETTING[inside.replace("WITHIN INTERVAL '5' MILLISECOND", "WITHIN 5")]
    most = 0
    for key in range(30):
        count = 1 + (key % 3 == 0)
        columns = {"ts": [20 * key + i for i in range(count)], "k": [f"k{key}"] * count}
        operator.push_table(pa.table(columns | {"x": pa.array([3, 5][:count], pa.int32())}))
        operator.advance_table(20 * key + 19)
        most = max(most, len(operator._keys.known))
    assert most == 30 if want == 30 else most <= 2 * want + 3
    stored = json.loads(json.dumps(operator.snapshot()))
    assert len(stored["keys"]) == len(stored["places"]) == want


@pytest.mark.parametrize("block", range(8))
def test_random_queries_whose_conditions_refer_to_no_other_row(block: int) -> None:
    found = [check(seed, alone=True) for seed in range(25 * block, 25 * block + 25)]
    assert sum(found) > 25, "the cases find something"


@pytest.mark.parametrize(
    "pattern",
    [
        "(A*? B?)+",
        "(A*?)*",
        "(A*?){2,}",
        "((A??)*?)+",
        "(() | A*?)+",
        "((() | B) A{0,2}?)*",
        "((A | B)*? B?)+",
    ],
)
def test_an_iteration_that_prefers_to_be_empty_is_not_the_last(pattern: str) -> None:
    """Whether anything is remembered must not matter: it is not if a condition looks at the match."""
    rows = pa.table({"ts": range(4), "k": ["a"] * 4, "x": pa.array([1, 2, 9, 3], pa.int32())})
    found = []
    for condition in ("A.x > 0", "sum(A.x) > 0"):
        define = f"A AS {condition}" + ", B AS B.x > 2" * ("B" in pattern)
        sql = (
            "SELECT m, v FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES MATCH_NUMBER() AS m,"
            f" CLASSIFIER() AS v ALL ROWS PER MATCH PATTERN ({pattern}) DEFINE {define})"
        )
        found.append(whole(compiled(sql), rows))
    assert found[0] == found[1]
    assert [row["m"] for row in found[0]] == [1, 1, 1, 1]


@pytest.mark.parametrize("pattern", ["(A? B?)* C", "((A*)* B*)* C", "(A{0,2} (B? A?)*)+ C"])
def test_nothing_is_tried_twice_in_repetitions_that_may_be_empty(pattern: str) -> None:
    """Without memory, 300 rows take longer than anybody waits."""
    rows = pa.table(
        {"ts": range(300), "k": ["a"] * 300, "x": pa.array([1] * 299 + [9], pa.int32())}
    )
    sql = (
        "SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES count(*) AS n"
        f" PATTERN ({pattern}) DEFINE A AS A.x < 9, B AS B.x < 9, C AS C.x > 9)"
    )
    assert not whole(compiled(sql), rows)
    assert whole(compiled(sql.replace("> 9", "= 9")), rows) == [{"k": "a", "n": 300}]


@pytest.mark.parametrize("block", range(4))
def test_random_queries_by_time(block: int) -> None:
    """Every stream has its time, so each time can be a partition."""
    found = [check(seed, "ts") for seed in range(25 * block, 25 * block + 25)]
    assert sum(found) > 25, "the cases find something"


ENDED = [
    "MEASURES PREV(A.x) AS p PATTERN (A)",
    "MEASURES A.x AS p PATTERN (A) DEFINE A AS A.x > PREV(A.x)",
    "MEASURES PREV(A.x, 3) AS p PATTERN (A B) DEFINE B AS B.x >= PREV(B.x, 2)",
    "MEASURES NEXT(A.x) AS p PATTERN (A) DEFINE A AS A.x > PREV(A.x) OR NEXT(A.x) IS NULL",
    "MEASURES PREV(A.x) AS p ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A B) DEFINE B AS B.x > 2",
]


@pytest.mark.parametrize("inside", ENDED)
def test_a_snapshot_after_the_end_holds_no_rows(inside: str) -> None:
    query = compiled(f"SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts {inside})")
    operator = RowOperator(query)
    numbers = pa.array([1, 3, 2, 3, 1], pa.int32())
    operator.push_table(pa.table({"ts": [1, 2, 2, 4, 5], "k": [*"aabba"], "x": numbers}))
    found, _ = operator.advance_table(END_OF_STREAM)
    assert found.num_rows
    state = json.loads(json.dumps(operator.snapshot()))
    again = RowOperator(query)
    again.restore(state)
    assert again.snapshot() | {"kept": state["kept"]} == state
    for one in (operator, again):
        assert not one.held
        assert one.next_due is None
        assert not one.advance_table(END_OF_STREAM)[0].num_rows
