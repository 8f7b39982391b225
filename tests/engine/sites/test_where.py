"""Conditions that are no equalities: where they are looked at, by values worked by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from compiler.plan.pipeline import compile_text
from engine.sites.model import Join
from engine.sites.queries import join_of
from engine.sites.where import Where, at_source, carried
from engine.sites.wire import decode, encode

STREAMS = "CREATE STREAM R (a int, b int, when date); CREATE STREAM S (d int, e int);"


def join(condition: str) -> Join:
    text = f"{STREAMS} SELECT * FROM R, S WHERE R.a = S.d AND {condition} WINDOW RANGE 9;"
    return join_of(compile_text(text).program.queries[0])


def test_a_condition_reads_what_rows_carry() -> None:
    made = join("(R.b < S.e OR S.e IS NULL)")
    assert [stream.carried for stream in made.streams] == [("b",), ("e",)]
    (where,) = made.residuals
    rows = [((0, 1), (0, 2)), ((1, 2), (0, 2)), ((2, None), (5, 9)), ((3, 7), (1, None))]
    assert where.among(rows) == [True, False, False, True]


def test_a_condition_over_one_stream_is_looked_at_where_it_is() -> None:
    made = join("R.b > 2")
    rows = pa.table({"ts": [1, 2, 3], "a": [1, 1, 1], "b": pa.array([3, 2, None], pa.int32())})
    assert at_source(made, 0, rows) == [0]
    assert at_source(made, 1, rows) == [0, 1, 2]
    assert carried(made, 0, rows) == [(0, 3), (1, 2), (2, None)]


@pytest.mark.parametrize(
    "condition",
    [
        "R.b % 3 <> S.e + 1",
        "NOT (R.b IS NOT NULL AND S.e = 2)",
        "R.when < DATE '2026-01-02'",
        "R.ts <= S.ts",
        "coalesce(R.b, S.e) > 1",
        "CAST(S.e AS varchar) LIKE '1%'",
    ],
)
def test_conditions_cross_the_wire(condition: str) -> None:
    (where,) = join(condition).residuals
    assert isinstance(where, Where)
    assert decode(encode(where)) == where
