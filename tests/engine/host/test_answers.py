"""Results of a query's rows, from a stream or a join, all of them or some; and the query a fault
belongs to."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.logical.program import Query
from seustream.compiler.pipeline import compile_text
from seustream.engine.host.answers import Blaming, JoinRows, StreamRows
from seustream.engine.host.errors import EvaluationError
from seustream.engine.host.grouping import Grouping
from seustream.engine.host.join import Side
from seustream.engine.host.rows import RowStore
from seustream.engine.stream.faults import QueryFaults
from seustream.engine.stream.schema import stream_schema

STREAMS = "CREATE STREAM R (a int, b int); CREATE STREAM S (c int);"
ROWS = pa.table(
    {
        "ts": [10, 11, 12, 13],
        "a": pa.array([1, 2, 0, 4], pa.int32()),
        "b": pa.array([5, 6, 7, 8], pa.int32()),
    }
)


def query(select: str) -> tuple[Query, QueryFaults]:
    c = compile_text(STREAMS + select)
    return c.program.queries[0], QueryFaults(source=c.source)


def rows_of(table: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.parametrize("pieces", [1, 3])
def test_rows_of_a_stream_are_numbered_on(pieces: int) -> None:
    table = pa.concat_tables([ROWS.slice(n * 2, 2) for n in range(2)]) if pieces > 1 else ROWS
    rows = StreamRows(table, 100, "R")
    assert len(rows) == 4
    assert rows.name(2) == "row 103 of R at ts 12"
    one, faults = query("SELECT a + b AS s, ts AS t FROM R WINDOW NOW;")
    assert rows_of(rows.select(one, None, faults)) == [
        (6, 10, 10, 10), (8, 11, 11, 11), (7, 12, 12, 12), (12, 13, 13, 13)
    ]  # fmt: skip
    some = np.array([3, 0])
    assert rows_of(rows.answer(one, None, some, faults)) == [(12, 13, 13, 13), (6, 10, 10, 10)]
    assert rows.answer(one, None, np.array([], np.int64), faults).num_rows == 0


def test_groups_take_the_rows_they_are_given() -> None:
    one, faults = query("SELECT count(*) AS n, sum(b) AS s FROM R WINDOW ROWS 2;")
    rows, grouping = StreamRows(ROWS, 0, "R"), Grouping(one)
    assert rows.answer(one, grouping, np.array([], np.int64), faults).num_rows == 0
    found = rows.answer(one, grouping, np.array([0, 1, 3]), faults)
    assert [row[:2] for row in rows_of(found)] == [(1, 5), (2, 11), (1, 8)]


def test_a_fault_names_its_row_of_the_stream() -> None:
    one, faults = query("SELECT 7 / a AS q FROM R WINDOW NOW;")
    found = StreamRows(ROWS, 100, "R").answer(one, None, np.array([1, 2]), faults)
    assert [row[0] for row in rows_of(found)] == [3.5, None]
    ((count, row),) = faults.lines.values()
    assert (count, row) == (1, "row 103 of R at ts 12")


def test_rows_of_a_join_are_combinations() -> None:
    one, faults = query("SELECT R.a, S.c, R.b / S.c AS q FROM R, S WHERE R.a = S.c WINDOW RANGE 9;")
    sides = []
    for number, (source, times) in enumerate(zip(one.sources, ([10, 11], [12, 13]), strict=True)):
        store = RowStore(stream_schema(source.stream), 1)
        ts = np.array(times, np.int64)
        cells = [pa.array(values, pa.int32()) for values in (([1, 2], [5, 6]), ([3, 0],))[number]]
        store.append(pa.table([ts, *cells], schema=store.schema), ts, [ts])
        sides.append(Side(store, 0, source.window, source.alias))
    rows = JoinRows(sides, np.array([[0, 0], [1, 0], [0, 1]]))
    assert rows.name(1) == "R at ts 11, S at ts 12"
    found = rows.answer(one, None, np.array([0, 2]), faults)
    assert rows_of(found) == [(1, 3, 5 / 3, 10, 12), (1, 0, None, 10, 13)]
    ((count, row),) = faults.lines.values()
    assert (count, row) == (1, "R at ts 10, S at ts 13")
    assert rows.answer(one, None, np.array([], np.int64), faults).num_rows == 0


@pytest.mark.parametrize(
    ("defines", "said"), [(None, "query q0: "), ("D", "stream D: "), ("q7#1", "q7: ")]
)
def test_under_strict_it_is_said_whose_a_fault_is(defines: str | None, said: str) -> None:
    """For a part that was derived from a query, the message names the query."""
    one, faults = query("SELECT 7 / a AS q FROM R WINDOW NOW;")
    one, faults.strict = dataclasses.replace(one, defines=defines), True
    with pytest.raises(EvaluationError) as caught, Blaming(one, faults):
        StreamRows(ROWS, 0, "R").answer(one, None, np.arange(4), faults)
    assert str(caught.value).startswith(said)
    assert str(caught.value).endswith("division by zero in 7 / R.a at 1:66, row 3 of R at ts 12")
    assert caught.value.hint is not None
    with pytest.raises(KeyError), Blaming(one, faults):
        raise KeyError
