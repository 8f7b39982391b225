"""Queries and operations of a text, and the hidden streams they create."""

from __future__ import annotations

import pytest

from seustream.compiler.errors import CompileError
from seustream.compiler.logical import program as logical
from seustream.compiler.logical.levels import levels
from seustream.compiler.pipeline import compile_text

STREAMS = "CREATE STREAM R (a int, b int);\n"
UNION = "SELECT a FROM R UNION ALL SELECT b FROM R UNION ALL SELECT a + b AS c FROM R"


def program(text: str) -> logical.Program:
    return compile_text(STREAMS + text).program


def test_a_union_reads_a_hidden_stream_of_each_part() -> None:
    found = program(f"REGISTER QUERY q AS {UNION}; SHOW STREAMS")
    assert [query.defines for query in found.queries] == ["q#1", "q#2", "q#3"]
    assert found.names == ["q"]
    (union,) = found.operations
    assert [stream.name for stream in union.inputs] == ["q#1", "q#2", "q#3"]
    assert [item.name for item in union.items] == ["a"]
    assert levels(found) == {"q#1": 1, "q#2": 1, "q#3": 1}
    assert found.requests[0].lines == ("stream R (a int, b int)",)


def test_a_dropped_query_leaves_no_streams() -> None:
    found = program(f"REGISTER QUERY q AS {UNION}; DROP QUERY q; DROP STREAM R")
    assert (found.streams, found.queries, found.operations) == ((), (), ())


def test_a_dropped_stream_leaves_no_streams() -> None:
    found = program(f"CREATE STREAM u AS {UNION}; DROP STREAM u; DROP STREAM R")
    assert (found.streams, found.queries, found.operations) == ((), (), ())


def test_a_stream_and_a_query_of_one_name() -> None:
    found = program(f"CREATE STREAM q AS {UNION}; REGISTER QUERY q AS {UNION}; SELECT a FROM q")
    assert {operation.defines for operation in found.operations} == {"q", None}
    hidden = [stream.name for o in found.operations for stream in o.inputs]
    assert len(set(hidden)) == 6


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"REGISTER QUERY q AS {UNION}; DROP STREAM R", "stream R is used by query q\n"),
        (f"CREATE STREAM u AS {UNION}; DROP STREAM R", "stream R is used by stream u\n"),
        (f'REGISTER QUERY q AS {UNION}; SELECT * FROM "q#1"', "there is no stream q#1\n"),
    ],
)
def test_hidden_streams_are_nobodys(text: str, said: str) -> None:
    with pytest.raises(CompileError) as caught:
        program(text)
    assert said in str(caught.value)
