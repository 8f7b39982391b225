"""Conditions other than equalities: the place where each is evaluated, with values worked out by
hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from seustream.compiler.pipeline import compile_text
from seustream.engine.sites.codec import decode, encode
from seustream.engine.sites.model import BlockRows, EquiJoin, SiteStream
from seustream.engine.sites.query import Where, join_of, rows_of
from tests.engine.sites.running import network

STREAMS = "CREATE STREAM R (a int, b int, when date); CREATE STREAM S (d int, e int);"


def join(condition: str) -> EquiJoin:
    text = f"{STREAMS} SELECT * FROM R, S WHERE R.a = S.d AND {condition} WINDOW RANGE 9;"
    return join_of(compile_text(text).program.queries[0])


def test_a_condition_reads_what_rows_carry() -> None:
    made = join("(R.b < S.e OR S.e IS NULL)")
    assert [stream.carried for stream in made.streams] == [("b",), ("e",)]
    (where,) = made.residuals
    rows = [((0, 1), (0, 2)), ((1, 2), (0, 2)), ((2, None), (5, 9)), ((3, 7), (1, None))]
    assert where.among(rows) == [True, False, False, True]


def test_a_condition_over_one_stream_is_evaluated_where_it_is() -> None:
    made = join("R.b > 2")
    rows = pa.table({"ts": [1, 2, 3], "a": [1, 1, 1], "b": pa.array([3, 2, None], pa.int32())})
    assert [row.payload for row in rows_of(made.streams[0], rows)] == [(0, 3), (1, 2), (2, None)]
    net = network(made)
    net.submit(BlockRows(0, 3, tuple(rows_of(made.streams[0], rows))))
    site = net.nodes[0].site
    assert site is not None
    assert [row.tid for row in site.store.rows()] == [(0, 0, 0)]


def test_keys_are_numbers_or_texts() -> None:
    when = pa.array([10, None], pa.date32())
    rows = pa.table({"ts": [1, 2], "when": when, "on": pa.array([True, None])})
    keys = [row.keys for row in rows_of(SiteStream("R", ("when", "on")), rows)]
    assert keys == [(10, 1), (None, None)]


@pytest.mark.parametrize(
    "condition",
    [
        "mod(R.b, 3) <> S.e + 1",
        "NOT (R.b IS NOT NULL AND S.e = 2)",
        "R.when < DATE '2026-01-02'",
        "R.ts <= S.ts",
        "coalesce(R.b, S.e) > 1",
        "CAST(S.e AS varchar) LIKE '1%'",
    ],
)
def test_conditions_cross_between_nodes(condition: str) -> None:
    (where,) = join(condition).residuals
    assert isinstance(where, Where)
    assert decode(encode(where)) == where
