"""The form of results: for a query its columns, then two times; for a definition the rows of its
stream."""

from __future__ import annotations

import dataclasses

import pyarrow as pa

from seustream.compiler.pipeline import compile_text
from seustream.engine.stream import answers
from seustream.engine.stream.answers import answer, as_rows, no_results, result_schema

(QUERY,) = compile_text(
    "CREATE STREAM R (a int, t varchar); SELECT a AS b, t FROM R WINDOW NOW;"
).program.queries
COLUMNS = [pa.array([1, 2], pa.int32()), ["x", None], [10, 20], [11, 22]]


def test_results_have_their_own_columns_then_two_times() -> None:
    schema = result_schema(QUERY)
    assert schema.names == ["b", "t", "ts_oldest", "ts_newest"]
    assert schema.types == [pa.int32(), pa.string(), pa.int64(), pa.int64()]
    assert [field.nullable for field in schema] == [True, True, False, False]
    assert no_results(QUERY).schema == schema
    assert no_results(QUERY).num_rows == 0
    assert answer(QUERY, COLUMNS).to_pylist() == [
        {"b": 1, "t": "x", "ts_oldest": 10, "ts_newest": 11},
        {"b": 2, "t": None, "ts_oldest": 20, "ts_newest": 22},
    ]


def test_results_of_a_definition_are_rows_at_the_time_of_their_newest_component() -> None:
    of_stream = dataclasses.replace(QUERY, defines="D")
    assert answer(of_stream, COLUMNS).to_pylist() == [
        {"ts": 11, "b": 1, "t": "x"},
        {"ts": 22, "b": 2, "t": None},
    ]
    keeps = dataclasses.replace(of_stream, keeps_oldest=True)
    found = answer(keeps, COLUMNS)
    assert found.column_names == ["ts", "b", "t", "ts_oldest"]
    assert found.column("ts_oldest").to_pylist() == [10, 20]
    plain = answer(QUERY, COLUMNS)
    assert as_rows(keeps, plain).equals(found)
    assert as_rows(QUERY, plain) is plain


def test_what_is_remembered_of_a_query_is_not_another_s() -> None:
    """Identities of objects recur once the objects are gone; and the cache keeps no more than its
    limit."""
    for number in range(answers._KEPT + 100):
        item = dataclasses.replace(QUERY.items[0], name=f"c{number}")
        one = dataclasses.replace(QUERY, items=(item,))
        assert result_schema(one).names[0] == f"c{number}"
        del one
    assert len(answers._by_query) <= answers._KEPT
    assert result_schema(QUERY).names[0] == "b"
